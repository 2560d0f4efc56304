"""Every planted fault is named with its check, its statement and its round."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from rgs.core.replay import CHECKS
from tests.support.records.factory import RecordFactory
from tests.support.records.lies import Planted
from tests.support.records.planted import PLANTED, ROUND
from tests.support.records.planted_tables import PLANTED_AT_TABLES
from tests.support.records.ready_made import large_factory, small_factory
from tests.support.records.replaying import replay_file, replay_lines


@pytest.mark.parametrize("planted", PLANTED, ids=str)
def test_a_planted_fault_is_named(planted: Planted) -> None:
    factory = planted.build()
    verdict = replay_file(planted.exporting(factory), factory.keys())
    assert planted.check in verdict.checks


def test_the_names_of_faults_are_different() -> None:
    assert len({planted.name for planted in PLANTED}) == len(PLANTED)


def test_every_check_has_a_fault_that_it_names() -> None:
    # Those of tables are planted for both verifiers in tests/integration/test_table_rounds_twice.py.
    assert {planted.check for planted in (*PLANTED, *PLANTED_AT_TABLES)} == {check.label for check in CHECKS}


def test_a_failure_names_statement_and_round() -> None:
    (planted,) = [planted for planted in ROUND if planted.name == "another deck, the old commitment"]
    factory = planted.build()
    verdict = replay_lines(factory)
    (failure,) = verdict.failures
    assert failure.metadata["check"] == "12 commitment"
    assert failure.metadata["statement"] == factory.hashes[4]
    assert failure.metadata["kind"] == "round_final"
    assert failure.metadata["instance"] == "rgs-1"
    assert failure.metadata["statement_no"] == "5"
    assert set(failure.metadata) == {"check", "kind", "statement", "instance", "statement_no", "session_id", "round_id"}
    assert verdict.rounds == (0, 1, 0)


def test_the_same_record_under_a_foreign_root_is_not_anchored_and_its_lines_have_no_key() -> None:
    factory, foreign = small_factory(), small_factory(seed="foreign")
    verdict = replay_file(foreign.export(), factory.keys())
    assert set(verdict.checks) == {"3 key"}
    assert len(verdict.checks) == 8


# --- removed, repeated, reordered, cut off ---


@pytest.mark.parametrize("place", range(8))
def test_a_removed_statement_shows(place: int) -> None:
    factory = small_factory()
    assert replay_lines(factory, [*factory.lines[:place], *factory.lines[place + 1 :]]).failures


@pytest.mark.parametrize("place", range(8))
def test_a_repeated_statement_shows(place: int) -> None:
    factory = small_factory()
    for after in range(place + 1, 9):
        lines = [*factory.lines[:after], factory.lines[place], *factory.lines[after:]]
        assert replay_lines(factory, lines).failures


@pytest.mark.parametrize("place", range(7))
def test_reordered_statements_show(place: int) -> None:
    factory = small_factory()
    lines = list(factory.lines)
    lines[place], lines[place + 1] = lines[place + 1], lines[place]
    assert replay_lines(factory, lines).failures


@pytest.mark.parametrize("kept", range(1, 8))
def test_a_cut_off_tail_shows(kept: int) -> None:
    factory = small_factory()
    assert replay_lines(factory, factory.lines[:kept]).failures


def places(factory: RecordFactory) -> Sequence[int]:
    return range(len(factory.lines))


@pytest.mark.slow_exhaustive
def test_a_removed_statement_of_a_large_export_shows_wherever_it_stood() -> None:
    factory = large_factory()
    for place in places(factory):
        assert replay_lines(factory, [*factory.lines[:place], *factory.lines[place + 1 :]]).failures, place


@pytest.mark.slow_exhaustive
def test_a_repeated_statement_of_a_large_export_shows_wherever_it_stood() -> None:
    factory = large_factory()
    for place in places(factory):
        assert replay_lines(factory, [*factory.lines, factory.lines[place]]).failures, place


@pytest.mark.slow_exhaustive
def test_statements_of_one_instance_or_session_do_not_change_places() -> None:
    factory = large_factory()
    for place in places(factory)[:-1]:
        lines = list(factory.lines)
        lines[place], lines[place + 1] = lines[place + 1], lines[place]
        signers = {line[line.index(b'"keyid"') :][:80] for line in lines[place : place + 2]}
        if len(signers) == 1:  # one key signed both: one instance
            assert replay_lines(factory, lines).failures, place


def test_one_fault_does_not_drag_other_rounds_along() -> None:
    factory = large_factory()
    finals = [place for place, line in enumerate(factory.lines) if b"round-final" in line]
    verdict = replay_lines(factory, [line for place, line in enumerate(factory.lines) if place != finals[0]])
    # The round without its final, and the next of the session, whose opening comes after a missing link.
    assert verdict.rounds == (7, 2, 0)
    assert len({failure.metadata.get("round_id") for failure in verdict.failures} - {None}) == 2
