"""Honest exports pass, in any order of lines that keeps each instance's and each session's own."""

from __future__ import annotations

import json
from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rgs.core.replay import KeyBook
from rgs.core.statements import parse_envelope, parse_line, parse_statement
from tests.support.records.factory import RecordFactory
from tests.support.records.lying import two_rounds, windowed
from tests.support.records.planted_ids import clock_set_back, turned_after_set_back
from tests.support.records.ready_made import large_factory, small_factory
from tests.support.records.replaying import replay_lines

LARGE = large_factory()


def test_the_smallest_export_passes() -> None:
    verdict = replay_lines(small_factory())
    assert verdict.failures == []
    assert verdict.rounds == (1, 0, 0)
    summary = verdict.summary
    assert (summary.lines, summary.sessions, summary.instances) == (8, 1, 1)
    assert (summary.draws_in_rounds, summary.draws_discarded, summary.draws_exposed) == (1, 0, 0)
    assert (summary.staked_minor["EUR"], summary.returned_minor["EUR"]) == (450, 1450)
    assert (summary.private_verified, summary.private_absent) == (3, 0)


def test_a_large_export_passes_and_is_counted() -> None:
    verdict = replay_lines(LARGE)
    assert verdict.failures == []
    assert verdict.rounds == (9, 0, 0)
    summary = verdict.summary
    assert summary.games == {"ultimate_texas_holdem": 7, "casino_holdem": 2}
    assert (summary.sessions, summary.instances, summary.seats_void) == (9, 3, 2)
    # Eight that the lost instance may have drawn, and one deck that could not be unsealed.
    assert (summary.draws_in_rounds, summary.draws_discarded, summary.draws_exposed) == (9, 1, 8 + 1)
    assert not summary.is_cut
    assert not summary.has_development_keys


def test_the_exposure_of_a_lost_instance_is_the_window_in_force_at_its_end() -> None:
    assert replay_lines(windowed()).summary.draws_exposed == 8
    verdict = replay_lines(windowed(12, 16, 0))
    assert (verdict.failures, verdict.summary.draws_exposed, verdict.summary.draws_discarded) == ([], 16, 16)


def test_private_blocks_may_be_erased() -> None:
    factory = small_factory()
    lines = [line[: line.index(b',"private":')] + b',"private":null}' for line in factory.lines]
    verdict = replay_lines(factory, lines)
    assert verdict.failures == []
    assert (verdict.summary.private_verified, verdict.summary.private_absent) == (0, 3)


def test_a_clock_that_is_told_to_be_set_back_excuses_a_key_of_later() -> None:
    assert replay_lines(clock_set_back()).failures == []
    assert replay_lines(turned_after_set_back()).failures == []


def test_development_keys_are_told() -> None:
    assert replay_lines(small_factory(development=True)).summary.has_development_keys


def test_the_root_is_compared_with_the_auditors() -> None:
    factory = small_factory()
    assert KeyBook(factory.keys(), root=factory.root.keyid).anchored
    assert not KeyBook(factory.keys(), root="0" * 64).anchored
    assert not KeyBook(factory.keys()).anchored
    assert KeyBook(factory.keys()).root == factory.root.keyid


def test_a_jurisdictions_pace_may_be_kept() -> None:
    assert replay_lines(two_rounds(jurisdiction="gb-ukgc")).rounds == (2, 0, 0)


def test_an_empty_file_verifies_no_round() -> None:
    verdict = replay_lines(small_factory(), [])
    assert (verdict.failures, verdict.rounds) == ([], (0, 0, 0))


def orders_of(factory: RecordFactory) -> list[tuple[str, ...]]:
    """For each line the orders in which it stands: its instance's; its session's, if it is a link or an event of it."""
    orders = []
    for line in factory.lines:
        _, body = parse_statement(parse_envelope(parse_line(line).envelope))
        orders.append(tuple(body[name] for name in ("instance", "session_id") if name in body))
    return orders


@settings(max_examples=25)
@given(st.randoms(use_true_random=False))
def test_lines_may_stand_in_any_order_that_keeps_the_two(random: object) -> None:
    orders = orders_of(LARGE)
    waiting: dict[str, list[int]] = defaultdict(list)
    for place, names in enumerate(orders):
        for name in names:
            waiting[name].append(place)
    mixed: list[bytes] = []
    while len(mixed) < len(orders):
        ready = [
            place
            for place in {queue[0] for queue in waiting.values() if queue}
            if all(waiting[name][0] == place for name in orders[place])
        ]
        place = random.choice(sorted(ready))  # type: ignore[attr-defined]
        mixed.append(LARGE.lines[place])
        for name in orders[place]:
            waiting[name].pop(0)
    verdict = replay_lines(LARGE, mixed)
    assert verdict.failures == []
    assert verdict.rounds == (9, 0, 0)


@pytest.mark.parametrize("kind", ["artifact", "report", "countersignature"])
def test_statements_that_tell_of_other_things_are_read(kind: str) -> None:
    factory = RecordFactory("others")
    one = factory.start("rgs-1")
    bodies = {
        "artifact": {"bytes": "1", "name": "rulesets/uth-solo", "sha256": "0" * 64},
        "report": {"name": "daily", "sha256": "0" * 64},
        "countersignature": {"party": "lab-1", "statement": factory.hashes[0]},
    }
    if kind == "artifact":
        factory.numbered(one, kind, bodies[kind])
    else:
        factory.line(factory.seal(factory.nodes["node-1"], kind, bodies[kind]))
    factory.end(one)
    verdict = replay_lines(factory)
    assert verdict.failures == []
    assert verdict.summary.statements[kind] == 1


def test_key_statements_in_an_export_stand_in_the_bundle_too() -> None:
    factory = small_factory()
    for envelope in factory.bundle:
        factory.line(envelope)
    assert replay_lines(factory).failures == []
    factory.line(factory.seal(factory.root, "revocation", {"key": "0" * 64, "reason": "STOLEN"}))
    assert replay_lines(factory).checks == ["3 key"]


def test_a_summary_holds_only_what_json_can_tell() -> None:
    summary = replay_lines(LARGE).summary
    assert json.loads(json.dumps({name: getattr(summary, name) for name in summary.__slots__}))["rounds_verified"] == 9
