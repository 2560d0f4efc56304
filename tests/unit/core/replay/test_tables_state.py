"""The state of tables between two runs of an audit."""

from __future__ import annotations

import json

import pytest

from rgs.core.replay import KeyBook, Replay, Rulebook
from rgs.core.replay.tables import Tables
from tests.support.records.planted_tables import PLANTED_AT_TABLES
from tests.support.records.table_stories import every_kind


@pytest.mark.parametrize("ruleset", ["uth-online", "uth-seven-box"])
def test_tables_go_on_from_their_state_after_any_line(ruleset: str) -> None:
    factory, rulebook = every_kind(ruleset), Rulebook()
    replay = Replay(KeyBook(factory.keys()), rulebook, goes_on=True)
    for line in factory.lines:
        assert replay.feed(line) == []
        again, state = Tables(), json.dumps(replay._tables.state())
        again.restore(json.loads(state), rulebook)
        assert json.dumps(again.state()) == state
        replay._tables = again
    assert replay.finish() == []
    assert replay.summary.rounds_verified == 4


@pytest.mark.parametrize("name", ["more hands than memory", "ruleset of nobody at a table", "a deal kept back"])
def test_a_faulty_round_is_reported_alike_from_a_state(name: str) -> None:
    (planted,) = [one for one in PLANTED_AT_TABLES if one.name == name]
    factory, rulebook = planted.build(), Rulebook()
    checks = []
    for restores in (False, True):
        replay = Replay(KeyBook(factory.keys()), rulebook, goes_on=True)
        found = []
        for line in factory.lines:
            found += replay.feed(line)
            if restores:
                again = Tables()
                again.restore(json.loads(json.dumps(replay._tables.state())), rulebook)
                replay._tables = again
        found += replay.finish()
        checks.append([failure.metadata["check"] for failure in found])
    assert checks[0] == checks[1]
    assert planted.check in checks[0]
