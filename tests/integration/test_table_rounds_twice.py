"""Rounds of tables by two verifiers that share no code: the same checks and the same last line, on honest files and on
lies.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from certification import replay
from tests.support.records.factory import Body, RecordFactory, join
from tests.support.records.lies import Planted, lie_at, put
from tests.support.records.planted_tables import PLANTED_AT_TABLES
from tests.support.records.table_lies import BOXES, LUGANO, SHARED, later
from tests.support.records.table_stories import begun, body_of, cut, every_kind, kept_lines, played
from tests.support.seeded import turn
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


# --- every field, every line ---

KINDS = ("table_round", "table_seats", "table_deal", "table_final", "seat_opening", "seat_final")
WORDS = {
    "action": ("check", "play_4x", "fold"), "bet": ("ante", "blind", "play"), "by": ("player", "timer", "rule"),
    "category": ("pair", "quads"), "end": ("time", "decided", "paused"), "outcome": ("fold", "tie"),
    "party": ("rgs", "operator-1", "admin-1"), "phase": ("preflop", "flop", "river"), "result": ("push", "win"),
    "reason": ("DECK_UNRECOVERABLE", "MALFUNCTION"), "status": ("settled", "void"),
}  # fmt: skip
VALUES = (
    (r"[0-9a-f]{64}", ("0" * 64,)),
    (r"[0-9]{1,18}", ("0", "1", "2", "9" * 18)),
    (r"[0-9]{4}-.*Z", ("2026-11-18T11:06:45.000Z", "2027-11-18T11:06:44.000Z")),
    (r"[2-9TJQKA][cdhs]", ("As", "2c")),
    (r"#.*", ("#11:11:11",)),
)
LEFT_OUT = object()


def instead_of(name: str | int, value: Any) -> list[Any]:
    """What a liar may put in the place of a value."""
    if isinstance(value, dict):
        return [LEFT_OUT]
    if isinstance(value, list):
        return [LEFT_OUT, [], value[::-1], [*value, *value[:1]], value[:-1]]
    if isinstance(value, bool):
        return [not value]
    words = WORDS.get(str(name), ())
    found: list[Any] = [*words, *(other for form, others in VALUES if re.fullmatch(form, value) for other in others)]
    return [other for other in found or [LEFT_OUT] if other != value]


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Each place in a document, and what may be put there."""
    rows = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in rows:
        if path[:1] != ("deck",) or name in (0, 51):
            yield from (((*path, name), other) for other in instead_of(name, inner))
            yield from places(inner, (*path, name))


def all_ends(lie: Callable[[str, int, Body], None] | None = None) -> RecordFactory:
    """Two boxes: a round played, one void before its draw, one in mid-round, one whose deck nobody can open."""
    story = begun(BOXES, lie, players=2)
    story.play()
    story.table.fix(story.one, story.stakes)
    story.table.make_void(story.two)
    for reason in ("MALFUNCTION", "DECK_UNRECOVERABLE"):
        story.dealt()
        story.table.window("preflop", {1: "play_4x"})
        story.table.make_void(story.two, reason)
        story.table.end_seats(story.one)
    return story.end()


def agree_on_fields(verifiers: Verifiers, first: int, step: int) -> None:
    said: list[tuple[str, int, Body]] = []
    all_ends(lambda kind, count, body: said.append((kind, count, copy.deepcopy(body))))
    changes = [
        (kind, count, path, other)
        for kind, count, body in said
        if kind in KINDS
        for path, other in places(body)
        if path[0] not in ("instance", "kind", "link_no", "session_id", "statement_no")
    ]
    assert len(changes) > 1_000
    for kind, count, path, other in changes[first::step]:

        def lie(
            reported: str, number: int, body: Any, at: Any = (kind, count), path: Any = path, other: Any = other
        ) -> None:
            if (reported, number) == at:
                for name in path[:-1]:
                    body = body[name]
                if other is LEFT_OUT:
                    del body[path[-1]]
                else:
                    body[path[-1]] = copy.deepcopy(other)

        verifiers.agree(all_ends(lie))


def test_they_agree_on_a_field_with_another_value(verifiers: Verifiers, pytestconfig: pytest.Config) -> None:
    agree_on_fields(verifiers, turn(pytestconfig, 40), 40)


@pytest.mark.slow_exhaustive
def test_they_agree_on_every_field_with_another_value(verifiers: Verifiers) -> None:
    agree_on_fields(verifiers, 0, 1)


def agree_on_lines(verifiers: Verifiers, first: int, step: int) -> None:
    """A line left out, repeated at once and at the end, moved, and everything from it on missing."""
    factory = all_ends()
    for export in (factory.export(), cut(factory), cut(factory, *KINDS)):
        lines = export.splitlines(keepends=True)
        start = 1 if b"export-scope" in lines[0] else 0  # a scope stands first
        for place in range(start + first, len(lines), step):
            before, line, behind = lines[:place], lines[place], lines[place + 1 :]
            for changed in (
                [*before, *behind],
                [*before, line, line, *behind],
                [*lines, line],
                [*before, *behind, line],
                [*before, *behind[:1], line, *behind[1:]],
                [*before, *behind[:5], line, *behind[5:]],
                before,
            ):
                verifiers.agree(factory, b"".join(changed))


def test_they_agree_on_a_line_left_out_repeated_or_moved(verifiers: Verifiers, pytestconfig: pytest.Config) -> None:
    agree_on_lines(verifiers, turn(pytestconfig, 20), 20)


@pytest.mark.slow_exhaustive
def test_they_agree_on_every_line_left_out_repeated_or_moved(verifiers: Verifiers) -> None:
    agree_on_lines(verifiers, 0, 1)


@pytest.mark.parametrize(
    ("path", "check"),
    [
        (b'"path":[]', "1 line"),
        (b'"path": ["' + b"0" * 64 + b'"]', "1 line"),
        (b'"path":["' + b"0" * 63 + b'"]', "1 line"),
        (b'"path":[' + b",".join([b'"' + b"0" * 64 + b'"'] * 21) + b"]", "1 line"),
        (b'"path":[' + b",".join([b'"' + b"0" * 64 + b'"'] * 20) + b"]", "28 seats"),
    ],
    ids=["empty", "spaced", "short hash", "21 hashes", "20 hashes"],
)
def test_they_agree_on_a_path_that_is_none(path: bytes, check: str, verifiers: Verifiers) -> None:
    factory = played()
    lines = [re.sub(rb'"path":\[[^]]*\]', path, line) for line in factory.lines]
    assert check in verifiers.agree(factory, join(lines))[2]


def test_they_agree_that_no_other_kind_has_a_path(verifiers: Verifiers) -> None:
    factory = played()
    lines = [
        line.replace(b',"private":null', b',"path":["' + b"0" * 64 + b'"],"private":null') for line in factory.lines
    ]
    assert "1 line" in verifiers.agree(factory, join(lines))[2]
