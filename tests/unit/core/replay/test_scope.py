"""Cut exports: what a scope allows, and what it does not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgs.core.replay.scope import NumberSequence, Range
from rgs.core.statements import parse_envelope, parse_line, parse_statement
from tests.support.records.factory import Body, Lie, RecordFactory
from tests.support.records.lies import drop, lie_at, put
from tests.support.records.lying import begun, ended, two_instances, void_factory
from tests.support.records.parts import SessionRecord
from tests.support.records.planted_ids import boots, turned
from tests.support.records.ready_made import large_factory
from tests.support.records.replaying import Verdict, replay_lines


def span(name: str, first: int, last: int, key: str = "instance") -> Body:
    return {"first": str(first), key: name, "last": str(last)}


def links(session_id: str, first: int, last: int) -> Body:
    return span(session_id, first, last, "session_id")


def bodies(factory: RecordFactory) -> list[Body]:
    return [parse_statement(parse_envelope(parse_line(line).envelope))[1] for line in factory.lines]


def chosen(factory: RecordFactory, wanted: Callable[[Body], bool]) -> list[bytes]:
    """Every instance_start, and the lines wanted."""
    pairs = zip(factory.lines, bodies(factory), strict=True)
    return [line for line, body in pairs if body["kind"] == "instance_start" or wanted(body)]


def three_rounds() -> tuple[RecordFactory, SessionRecord]:
    """Statements: 1 start, 2 open, 3 purchase, 4 to 9 rounds, 10 end, 11 close, 12 end. Links: one less."""
    factory, one, player = begun()
    for _ in range(3):
        factory.play(one, player, {"ante": 100}, ["play_4x"])
    return ended(factory, one, player), player


def cut(factory: RecordFactory, player: SessionRecord, first: int, last: int) -> Verdict:
    """Links `first` to `last` of the session."""
    scope = factory.scope(sessions=[links(player.session_id, first, last)])
    lines = chosen(factory, lambda body: "link_no" in body and first <= int(body["link_no"]) <= last)
    return replay_lines(factory, [scope, *lines])


@pytest.mark.parametrize(
    ("first", "last", "rounds"),
    [
        (1, 10, (3, 0, 0)),
        (1, 4, (1, 0, 0)),
        (1, 5, (1, 0, 1)),
        (3, 8, (3, 0, 0)),
        (5, 6, (1, 0, 0)),
        (7, 10, (1, 0, 0)),
    ],
)
def test_a_range_of_a_session_stands_by_itself(first: int, last: int, rounds: tuple[int, int, int]) -> None:
    factory, player = three_rounds()
    verdict = cut(factory, player, first, last)
    assert verdict.failures == []
    assert verdict.rounds == rounds
    assert verdict.summary.is_cut


def test_a_final_whose_opening_lies_outside_is_a_failure() -> None:
    factory, player = three_rounds()
    verdict = cut(factory, player, 4, 10)
    assert verdict.checks == ["11 opening"]
    assert verdict.rounds == (2, 1, 0)


@pytest.mark.parametrize("missing", [4, 5, 6, 7])
def test_a_range_is_held_completely(missing: int) -> None:
    factory, player = three_rounds()
    scope = factory.scope(sessions=[links(player.session_id, 3, 8)])
    wanted = {3, 4, 5, 6, 7, 8} - {missing}
    lines = chosen(factory, lambda body: "link_no" in body and int(body["link_no"]) in wanted)
    assert "7 session" in replay_lines(factory, [scope, *lines]).checks


def test_a_range_is_held_to_its_last_number() -> None:
    factory, player = three_rounds()
    scope = factory.scope(sessions=[links(player.session_id, 3, 8)])
    lines = chosen(factory, lambda body: "link_no" in body and int(body["link_no"]) in range(3, 7))
    assert replay_lines(factory, [scope, *lines]).checks == ["22 scope"]


def test_a_session_that_goes_on_behind_its_close_was_promised_wrongly() -> None:
    factory, player = three_rounds()
    assert cut(factory, player, 1, 10).failures == []
    scope = factory.scope(sessions=[links(player.session_id, 1, 11)])
    lines = chosen(factory, lambda body: "link_no" in body)
    assert replay_lines(factory, [scope, *lines]).checks == ["22 scope"]


def test_what_no_scope_names_must_not_be_there() -> None:
    factory, player = three_rounds()
    scope = factory.scope(sessions=[links(player.session_id, 3, 8)])
    lines = chosen(factory, lambda body: "link_no" in body and int(body["link_no"]) in range(3, 10))
    checks = replay_lines(factory, [scope, *lines]).checks
    assert set(checks) == {"22 scope", "7 session"} or set(checks) == {"22 scope"}
    lines = chosen(factory, lambda body: body["kind"] == "instance_end" or int(body.get("link_no", "0")) in range(3, 9))
    assert replay_lines(factory, [scope, *lines]).checks == ["22 scope"]


def test_what_a_scope_names_must_be_there() -> None:
    factory, _ = three_rounds()
    scope = factory.scope(instances=[span("rgs-9", 1, 4)], sessions=[links("0" * 26, 1, 4)])
    verdict = replay_lines(factory, [scope])
    assert verdict.checks == ["22 scope", "22 scope"]
    assert {"rgs-9", "0" * 26} == {verdict.failures[1].metadata["instance"], verdict.failures[0].metadata["session_id"]}


def test_two_ranges_of_a_session_and_a_gap_between() -> None:
    factory, player = three_rounds()
    scope = factory.scope(sessions=[links(player.session_id, 1, 4), links(player.session_id, 7, 10)])
    lines = chosen(factory, lambda body: int(body.get("link_no", "0")) in {1, 2, 3, 4, 7, 8, 9, 10})
    verdict = replay_lines(factory, [scope, *lines])
    assert verdict.failures == []
    assert verdict.rounds == (2, 0, 0)


@pytest.mark.parametrize(
    "ranges", [[(4, 3)], [(1, 4), (4, 8)], [(5, 8), (1, 4)]], ids=["empty", "overlapping", "backwards"]
)
def test_ranges_rise_and_do_not_touch(ranges: list[tuple[int, int]]) -> None:
    factory, player = three_rounds()
    scope = factory.scope(sessions=[links(player.session_id, first, last) for first, last in ranges])
    assert "22 scope" in replay_lines(factory, [scope]).checks


def test_parts_of_an_instance_may_be_read_one_after_the_other() -> None:
    factory, _ = three_rounds()
    first, second = factory.scope(instances=[span("rgs-1", 1, 5)]), factory.scope(instances=[span("rgs-1", 6, 12)])
    lines = [first, *factory.lines[:5], second, factory.lines[0], *factory.lines[5:]]
    verdict = replay_lines(factory, lines)
    assert verdict.failures == []
    assert verdict.rounds == (3, 0, 0)
    assert verdict.summary.statements["instance_start"] == 1


def test_the_same_start_again_is_a_repetition_in_whole_files() -> None:
    factory, _ = three_rounds()
    assert replay_lines(factory, [factory.lines[0], *factory.lines]).checks == ["21 instance"]


def test_a_later_part_of_an_instance_stands_with_its_start() -> None:
    factory, _ = three_rounds()
    scope = factory.scope(instances=[span("rgs-1", 6, 9)])
    verdict = replay_lines(factory, [scope, factory.lines[0], *factory.lines[5:9]])
    assert verdict.failures == []
    assert verdict.rounds == (2, 0, 0)
    # Without its first draws nothing can be said of them: only that none lies behind the last.
    assert verdict.summary.draws_in_rounds == 2


def test_draws_behind_the_last_show_in_a_cut_instance_too() -> None:
    factory, one, player = begun(
        lie=lambda kind, _, body: body.update(last_draw_no="1") if kind == "instance_end" else None
    )
    for _ in range(2):
        factory.play(one, player, {"ante": 100}, ["play_4x"])
    ended(factory, one, player)
    scope = factory.scope(instances=[span("rgs-1", 6, 10)])
    assert replay_lines(factory, [scope, factory.lines[0], *factory.lines[5:]]).checks == ["20 draws"]


def test_an_instances_range_leaves_gaps_in_sessions_that_others_signed() -> None:
    factory = large_factory()
    mine = [body for body in bodies(factory) if body["instance"] == "rgs-2"]
    scope = factory.scope(instances=[span("rgs-2", 1, len(mine))], node="node-2")
    verdict = replay_lines(factory, [scope, *chosen(factory, lambda body: body["instance"] == "rgs-2")])
    # Two finals answer openings that the lost instance and the third signed: a scope may not cut there.
    assert set(verdict.checks) == {"11 opening"}
    assert verdict.summary.instances == 3


def test_a_round_whose_final_lies_in_a_gap_is_open() -> None:
    factory, one, player = begun()
    two = factory.start("rgs-2", worker=1)
    factory.deal(one, [player], {"ante": 100})
    factory.act(player, ["play_4x"])
    factory.settle(two, player)
    factory.play(one, player, {"ante": 100}, ["play_4x"])
    ended(factory, one, player)
    factory.end(two)
    scope = factory.scope(instances=[span("rgs-1", 1, one.statement_no)])
    verdict = replay_lines(factory, [scope, *chosen(factory, lambda body: body["instance"] == "rgs-1")])
    assert verdict.failures == []
    assert verdict.rounds == (1, 0, 1)


def test_seats_outside_the_cut_do_not_fail_a_round() -> None:
    factory = large_factory()
    boxes = [body["session_id"] for body in bodies(factory) if body.get("table") == "box-table"]
    last = max(int(body["link_no"]) for body in bodies(factory) if body.get("session_id") == boxes[1])
    scope = factory.scope(sessions=[links(boxes[1], 1, last)])
    verdict = replay_lines(factory, [scope, *chosen(factory, lambda body: body.get("session_id") == boxes[1])])
    assert verdict.failures == []
    assert verdict.rounds == (1, 0, 0)


def test_an_instance_that_ends_outside_is_not_missed() -> None:
    factory = large_factory()
    (lost,) = [body for body in bodies(factory) if body["kind"] == "instance_lost"]
    scope = factory.scope(instances=[span("rgs-2", 1, int(lost["statement_no"]))], node="node-2")
    lines = [
        line
        for line, body in zip(factory.lines, bodies(factory), strict=True)
        if body["instance"] == "rgs-2" and int(body["statement_no"]) <= int(lost["statement_no"])
    ]
    verdict = replay_lines(factory, [scope, *lines])
    assert verdict.failures == []  # the lost instance is not in the files


def test_a_boot_before_that_shows_only_in_part_can_still_contradict() -> None:
    factory, one, _ = begun()
    two = factory.start("rgs-2", boot_no=2, previous_boot={**factory.boot(one), "last_statement_no": "2"})
    scope = factory.scope(instances=[span("rgs-1", 1, 3), span("rgs-2", 1, 1)])
    assert two.statement_no == 1
    assert replay_lines(factory, [scope, *factory.lines]).checks == ["21 instance"]


@given(st.lists(st.integers(1, 30), min_size=1, max_size=20))
def test_whole_sequences_take_one_number_after_the_other(numbers: list[int]) -> None:
    sequence, last = NumberSequence(is_whole=True, head=0), 0
    for number in numbers:
        assert (sequence.advance(number, None) == "") == (number == last + 1)
        last = max(last, number)
        assert sequence.last == last
    assert bool(sequence.missing_end(has_ended=False, ranges=None))
    assert not sequence.missing_end(has_ended=True, ranges=None)


def test_a_leap_goes_from_the_end_of_a_range_to_the_beginning_of_the_next() -> None:
    ranges = [Range(3, 5), Range(8, 9)]
    for numbers, right in (
        ([3, 4, 5, 8, 9], True),
        ([3, 4, 8], False),
        ([8], False),
        ([4], False),
        ([3, 4, 5, 9], False),
    ):
        sequence = NumberSequence(is_whole=False, head=0)
        faults = [sequence.advance(number, ranges) for number in numbers]
        assert (faults == [""] * len(numbers)) == right
        assert bool(sequence.missing_end(has_ended=True, ranges=ranges)) == (numbers[-1] != 9)


# --- what voids stand on ---


def void_cut(first: int, lie: Lie | None = None) -> Verdict:
    """The statements of `void_factory` from `first` on. 1 start, 2 open, 3 purchase, 4 opening, 5 and 6 certificates, 7
    malfunction, 8 proposal, 9 final.
    """
    factory = void_factory(lie)
    scope = factory.scope(instances=[span("rgs-1", first, len(factory.lines))])
    return replay_lines(factory, [scope, factory.lines[0], *factory.lines[first - 1 :]])


@pytest.mark.parametrize("first", [2, 3, 4])
def test_what_a_void_stands_on_is_compared_as_far_as_it_is_there(first: int) -> None:
    assert void_cut(first).failures == []
    assert void_cut(first, lie_at("event", 3, put("round_id", value="0" * 26))).checks == ["19 void"]


def test_a_session_alone_has_no_events() -> None:
    """Whatever a void cites there: the malfunction is in the instance's range, which was not asked for."""
    factory = void_factory(lie_at("round_final", 1, put("void", "malfunction", value="0" * 64)))
    session_id = bodies(factory)[1]["session_id"]
    scope = factory.scope(sessions=[links(session_id, 1, 6)])
    verdict = replay_lines(factory, [scope, *chosen(factory, lambda body: "link_no" in body)])
    assert (verdict.failures, verdict.rounds) == ([], (1, 0, 0))
    assert "19 void" in replay_lines(factory).checks


def test_a_certificate_that_was_removed_before_it_was_added_stays_removed() -> None:
    factory = RecordFactory("removed")
    one = factory.start("rgs-1")
    factory.event(one, "CERTIFICATE_REMOVED", subject=f"admin admin-1 {1:064x}")
    player = factory.open(one)
    factory.buy(one, player, 10_000)
    factory.deal(one, [player], {"ante": 100})
    factory.void(one, player)
    (failure,) = replay_lines(ended(factory, one, player)).failures
    assert failure.message.startswith("no event shows that admin-1 was an admin at ")


def test_a_boot_behind_one_whose_loss_lies_outside_may_be_cut() -> None:
    factory = two_instances(lie_at("instance_start", 3, drop("previous_boot")))
    assert replay_lines(factory).failures == []  # it was alive still, and the files tell its loss
    lines = [line for line in factory.lines if b"instance-lost" not in line]
    scope = factory.scope(instances=[span("rgs-1", 1, 5), span("rgs-3", 1, 3)])
    kept = [line for line, body in zip(lines, bodies(factory), strict=False) if body["instance"] != "rgs-2"]
    assert "21 instance" not in replay_lines(factory, [scope, *kept]).checks


def test_a_boot_whose_predecessor_lies_outside_the_cut_stands() -> None:
    factory = boots(numbers=(1, 2))
    second = [line for line, body in zip(factory.lines, bodies(factory), strict=True) if body["instance"] == "rgs-2"]
    scope = factory.scope(instances=[span("rgs-2", 1, len(second))])
    verdict = replay_lines(factory, [scope, *second])
    assert (verdict.failures, verdict.rounds) == ([], (1, 0, 0))


def test_what_a_cut_boot_signs_has_no_known_beginning() -> None:
    """Its process may have begun with the boot before, which is not there; where it is there, its end decides."""
    factory = turned()
    second = [line for line, body in zip(factory.lines, bodies(factory), strict=True) if body["instance"] == "rgs-2"]
    scope = factory.scope(instances=[span("rgs-2", 1, len(second))])
    assert "3 key" not in replay_lines(factory, [scope, *second]).checks
