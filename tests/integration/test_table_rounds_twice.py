"""Rounds of tables by two verifiers that share no code: the same checks and the same last line, on honest files and on
lies.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from certification import replay
from tests.support.records.factory import RecordFactory, join
from tests.support.records.lies import Planted, lie_at, put
from tests.support.records.planted_tables import PLANTED_AT_TABLES
from tests.support.records.table_lies import BOXES, LUGANO, SHARED, later
from tests.support.records.table_stories import body_of, cut, every_kind, kept_lines, played
from tests.verifier import independent_verifier

RULESETS = (SHARED, BOXES, LUGANO)
FAILED = re.compile(r"FAILED ([0-9]+ [a-z ]+)")


class Verifiers:
    """Both, on files in one folder."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._export, self._keys, self._capsys = folder / "export.jsonl", folder / "keys.json", capsys

    def agree(self, factory: RecordFactory, export: bytes | None = None) -> tuple[int, str, set[str]]:
        """Exit status, last line and failed checks, which are those of both."""
        self._export.write_bytes(factory.export() if export is None else export)
        self._keys.write_bytes(factory.keys())
        found = []
        for main in (replay.main, independent_verifier.main):
            status = main([str(self._export), "--keys", str(self._keys), "--root", factory.root.keyid])
            lines = self._capsys.readouterr().out.splitlines()
            matches = [FAILED.match(line) for line in lines if line.startswith("FAILED")]
            found.append((status, lines[-1], {match[1].strip() for match in matches if match}))
        ours, theirs = found
        assert ours == theirs
        return ours


@pytest.fixture
def verifiers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Verifiers:
    return Verifiers(tmp_path, capsys)


# --- honest files ---


@pytest.mark.parametrize("ruleset", RULESETS)
def test_they_agree_on_whole_files(ruleset: str, verifiers: Verifiers) -> None:
    """Four rounds were dealt; the fifth, void before its draw, is no deal."""
    factory = every_kind(ruleset)
    assert verifiers.agree(factory) == (0, "4 rounds verified, 0 failed, ANCHORED", set())


@pytest.mark.parametrize("ruleset", RULESETS)
def test_whole_files_may_leave_the_paths_out(ruleset: str, verifiers: Verifiers) -> None:
    factory = every_kind(ruleset)
    lines = [re.sub(rb',"path":\[[^]]*\]', b"", line) for line in factory.lines]
    assert lines != factory.lines
    assert verifiers.agree(factory, join(lines)) == (0, "4 rounds verified, 0 failed, ANCHORED", set())


@pytest.mark.parametrize("ruleset", RULESETS)
@pytest.mark.parametrize("player", range(3))
def test_they_agree_on_one_session_without_the_number_of_seats(ruleset: str, player: int, verifiers: Verifiers) -> None:
    factory = every_kind(ruleset)
    export = cut(factory, player=player)
    assert b"table-seats" not in export
    assert export.count(b'"path":') == 4
    assert verifiers.agree(factory, export) == (0, "4 rounds verified, 0 failed, ANCHORED", set())


@pytest.mark.parametrize("ruleset", RULESETS)
def test_they_agree_on_one_session_with_the_number_of_seats(ruleset: str, verifiers: Verifiers) -> None:
    factory = every_kind(ruleset)
    export = cut(factory, "table_round", "table_seats", "table_deal", "table_final")
    assert b"table-seats" in export
    assert verifiers.agree(factory, export) == (0, "4 rounds verified, 0 failed, ANCHORED", set())


@pytest.mark.parametrize("ruleset", RULESETS)
def test_a_seat_without_its_final_at_a_cut_is_open(ruleset: str, verifiers: Verifiers) -> None:
    """Of two rounds the first one is held up to the openings, and the second one whole: a later part of the same files
    has the end of the first.
    """
    factory = played(ruleset)
    bodies = [body_of(line) for line in factory.lines]
    opened = [body for body in bodies if body["kind"] == "seat_opening"]
    session, first = opened[0]["session_id"], opened[0]["link_no"]
    ended = next(body["statement_no"] for body in bodies if body["kind"] == "table_final")

    def keep(body: dict[str, str]) -> bool:
        return body["kind"] in ("table_round", "table_deal", "table_final") and body["statement_no"] != ended

    export = kept_lines(factory, keep, {session: (1, int(first))})
    assert verifiers.agree(factory, export) == (0, "1 rounds verified, 0 failed, ANCHORED", set())


@pytest.mark.parametrize(
    "change",
    [put("betting_ms", value="10000"), put("decision_ms", value="5000"), put("limits", 0, "min_minor", value="100")],
    ids=["betting 10 s late", "windows 10 s late", "the least ante is placed"],
)
def test_they_agree_on_what_is_just_allowed(change: Callable[[object], None], verifiers: Verifiers) -> None:
    factory = played(lie=lie_at("table_round", 1, change))
    assert verifiers.agree(factory) == (0, "2 rounds verified, 0 failed, ANCHORED", set())


def test_a_decision_may_come_at_the_last_moment_of_its_window(verifiers: Verifiers) -> None:
    """The window ends with the decision, ends included; the running hash binds the time, so it alone is wrong."""
    factory = played(lie=lie_at("seat_final", 1, later("actions", 0, "time", ms=14_990)))
    assert verifiers.agree(factory) == (1, "1 rounds verified, 1 failed, ANCHORED", {"15 actions"})


# --- lies ---


def test_every_lie_has_a_name_of_its_own() -> None:
    names = [planted.name for planted in PLANTED_AT_TABLES]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("planted", PLANTED_AT_TABLES, ids=str)
def test_both_name_the_check_of_a_lie(planted: Planted, verifiers: Verifiers) -> None:
    factory = planted.build()
    status, _, checks = verifiers.agree(factory, planted.exporting(factory))
    assert status == 1
    assert planted.check in checks
