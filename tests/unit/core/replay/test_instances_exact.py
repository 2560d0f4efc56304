"""Instances and draws at their limits, and what a cut export leaves unsaid of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rgs.core.statements import parse_envelope, parse_line, parse_statement
from rgs.core.times import format_time
from tests.support.records.cutting import cut_session, sessions_of
from tests.support.records.factory import RecordFactory
from tests.support.records.lies import add, lie_at, put
from tests.support.records.lying import two_instances
from tests.support.records.planted_ids import clock_set_back, turned, turned_after_set_back
from tests.support.records.replaying import replay_file, replay_lines, words


def in_flight(count: int) -> RecordFactory:
    """So many draws at once, of which the last is the first to be accounted for."""
    factory = RecordFactory("flight")
    one = factory.start("rgs-1")
    *before, last = [factory.draw(one) for _ in range(count)]
    for draw in (last, *before):
        factory.discard(one, draw)
    factory.end(one)
    return factory


@pytest.mark.parametrize(
    ("count", "reported"), [(9, []), (10, ["9 draws below 10 are outstanding, at most 8 may be"])], ids=["8", "9"]
)
def test_as_many_draws_as_the_window_holds_may_be_outstanding(count: int, reported: list[str]) -> None:
    assert words(replay_lines(in_flight(count))) == reported


def test_draws_that_a_cut_leaves_out_are_not_outstanding() -> None:
    factory = RecordFactory("many")
    one = factory.start("rgs-1")
    for _ in range(20):
        factory.discard(one)
    factory.end(one)
    scope = factory.scope(instances=[{"first": "21", "instance": "rgs-1", "last": "22"}])
    assert replay_lines(factory, [scope, factory.lines[0], *factory.lines[20:]]).failures == []


def test_what_a_process_has_written_under_its_former_key_the_next_one_signs() -> None:
    """A process that changes its keys goes on; one that stops does not."""
    assert replay_lines(turned()).failures == []
    assert "before its key" in words(replay_lines(turned("SHUTDOWN")))[0]


def cut_of(factory: RecordFactory, *, ends: bool) -> list[bytes]:
    """The lines of both instances behind a scope, with or without the end of the first one."""
    bodies = [parse_statement(parse_envelope(parse_line(line).envelope))[1] for line in factory.lines]
    (end,) = [at for at, body in enumerate(bodies) if body["instance"] == "rgs-1" and body["kind"] == "instance_end"]
    last = int(bodies[end]["statement_no"]) - (not ends)
    ranges = [{"first": "1", "instance": "rgs-1", "last": str(last)}]
    ranges.append({"first": "1", "instance": "rgs-2", "last": bodies[-1]["statement_no"]})
    return [factory.scope(instances=ranges), *(line for at, line in enumerate(factory.lines) if ends or at != end)]


@pytest.mark.parametrize(("reason", "ends", "refused"), [
    ("KEYS_CHANGED", True, False), ("KEYS_CHANGED", False, False), ("SHUTDOWN", True, True), ("SHUTDOWN", False, False),
])  # fmt: skip
def test_a_cut_without_the_end_before_cannot_tell_that_the_process_stopped(
    reason: str, *, ends: bool, refused: bool
) -> None:
    factory = turned(reason)
    found = words(replay_lines(factory, cut_of(factory, ends=ends)))
    assert any("before its key" in one for one in found) == refused
    assert found == [] or refused


@pytest.mark.parametrize(("by_ms", "refused"), [(0, False), (-1, True)])
def test_nothing_is_older_than_the_first_process_in_a_cut_either(by_ms: int, *, refused: bool) -> None:
    factory = RecordFactory("cut")
    one = factory.start("rgs-1")
    began_ms = factory.clock_ms
    factory.numbered(one, "instance_end", {"last_draw_no": "0", "reason": "KEYS_CHANGED"})
    two = factory.start("rgs-2", boot_no=2, previous_boot=factory.boot(one))
    factory.event(two, "LARGE_WIN", time=format_time(began_ms + by_ms))
    factory.end(two)
    found = words(replay_lines(factory, cut_of(factory, ends=False)))
    assert any("before its key" in one for one in found) == refused
    assert found == [] or refused


@pytest.mark.parametrize(("ranges", "sessions", "refused"), [
    ([("1", "9")], False, True), ([("1", "4"), ("5", "9")], False, False), ([("2", "9")], False, False),
    ([], True, False), ([("1", "9")], True, False),
])  # fmt: skip
def test_a_cut_that_may_leave_out_a_time_jump_says_nothing_of_dates(
    ranges: list[tuple[str, str]], *, sessions: bool, refused: bool
) -> None:
    """The clock was set back behind the start, and no TIME_JUMP is in the file."""
    factory = clock_set_back(is_reported=False)
    session, last = next(sessions_of(factory))
    links = [{"first": "1", "last": str(last), "session_id": session}] if sessions else []
    scope = factory.scope([{"first": first, "instance": "rgs-1", "last": last} for first, last in ranges], links)
    found = words(replay_lines(factory, [scope, *factory.lines]))
    assert any("before its key" in one for one in found) == refused


@pytest.mark.parametrize("build", [clock_set_back, turned, turned_after_set_back])
def test_each_session_of_a_process_whose_clock_was_set_replays_by_itself(build: Callable[[], RecordFactory]) -> None:
    factory = build()
    for session, last in sessions_of(factory):
        verdict = replay_file(cut_session(factory, session, (1, last)), factory.keys())
        assert words(verdict) == []
        assert verdict.rounds[0] > 0


def test_an_instance_that_declares_itself_lost_is_named_so() -> None:
    factory = two_instances(lie_at("instance_lost", 1, put("lost", "instance", value="rgs-2")))
    assert words(replay_lines(factory))[0] == "an instance cannot declare itself lost"


def test_a_whole_instance_shows_all_that_its_loss_told() -> None:
    factory = two_instances(lie_at("instance_lost", 1, add("lost", "last_statement_no", by=1)))
    assert "instance rgs-1 shows statement 5, and was lost after 6" in words(replay_lines(factory))


@pytest.mark.parametrize("before", [0, 2], ids=["scope first", "scope behind the starts"])
def test_a_cut_instance_may_show_less_than_its_loss_told(before: int) -> None:
    """Lines: the starts of two instances, then open, purchase, opening and final of the first, its loss, and more."""
    factory = two_instances()
    spans = [("rgs-1", 3), ("rgs-2", 3)]
    ranges = [{"first": "1", "instance": name, "last": str(last)} for name, last in spans]
    named = dict(spans)
    bodies = [parse_statement(parse_envelope(parse_line(line).envelope))[1] for line in factory.lines]
    kept = [
        line
        for line, body in zip(factory.lines, bodies, strict=True)
        if int(body["statement_no"]) <= named.get(body["instance"], 0)
    ]
    assert len(kept) == 6
    assert replay_lines(factory, [*kept[:before], factory.scope(instances=ranges), *kept[before:]]).failures == []


NOBODY_LOST = "instance rgs-2: it names no previous boot, and instance rgs-1 before it was not lost"


def test_a_boot_that_tells_nothing_but_its_start_is_excused_in_no_file() -> None:
    factory = RecordFactory("alone")
    factory.start("rgs-1")
    factory.start("rgs-2", boot_no=2)
    assert NOBODY_LOST in words(replay_lines(factory))


def test_the_loss_of_the_boot_before_may_lie_outside_a_cut() -> None:
    factory = RecordFactory("cut")
    one = factory.start("rgs-1")
    two = factory.start("rgs-2", boot_no=2)
    for _ in range(2):
        factory.discard(two)
    factory.lose(two, one)
    factory.end(two)
    assert replay_lines(factory).failures == []
    ranges = [{"first": "1", "instance": "rgs-1", "last": "1"}, {"first": "1", "instance": "rgs-2", "last": "3"}]
    assert replay_lines(factory, [factory.scope(instances=ranges), *factory.lines[:4]]).failures == []


@pytest.mark.parametrize(("last", "reported"), [(1, 0), (2, 0), (0, 1)])
def test_a_boot_that_is_cut_ended_no_earlier_than_it_shows(last: int, reported: int) -> None:
    factory = RecordFactory("former")
    one = factory.start("rgs-1")
    factory.start("rgs-2", boot_no=2, previous_boot={**factory.boot(one), "last_statement_no": str(last)})
    ranges = [{"first": "1", "instance": name, "last": "1"} for name in ("rgs-1", "rgs-2")]
    verdict = replay_lines(factory, [factory.scope(instances=ranges), *factory.lines])
    assert [one.endswith("did not end with the numbers named") for one in words(verdict)] == [True] * reported
