"""`certify log` over the rounds of a table: in one run, and with the state put away behind every statement."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from certification.findings import AuditFindings
from certification.memory import format_replay, format_state, parse_replay, parse_state
from rgs.core.replay import KeyBook, Replay, Rulebook
from tests.support.records.audited import Case, entries_of
from tests.support.records.replaying import replay_lines, words
from tests.support.records.table_day import STAKES, TableDay, seated, table_day

STAKED = STAKES["ante"] * 2 + STAKES["trips"]
RULESETS = ("uth-online", "uth-seven-box", "uth-lugano")


def audited(folder: Path, day: TableDay, status: int = 0) -> dict[str, Any]:
    case = Case(folder, day.factory)
    case.publish()
    assert case.audit("--html", str(folder / "report.html")) == status, case.report["failures"]
    return case.report


@pytest.mark.parametrize("ruleset", RULESETS)
def test_rounds_of_a_table_are_audited_as_those_of_solo_play(tmp_path: Path, ruleset: str) -> None:
    day = table_day(ruleset)
    assert words(replay_lines(day.factory)) == []
    report = audited(tmp_path, day)
    assert report["verdict"] == "PASSED WITNESSED ANCHORED"
    summary = report["summary"]
    assert [summary[f"rounds_{name}"] for name in ("verified", "failed", "open")] == [4, 0, 0]
    assert (summary["seats_void"], summary["seats_unrecoverable"]) == (6, 3)
    assert report["statements"]["table_round"] == report["statements"]["table_final"] == 5
    assert report["statements"]["seat_final"] == 12
    assert report["overdue"] == []
    (money,) = report["money"]
    assert money["in_play_minor"] == 0
    assert money["bought_minor"] == 150_000


@pytest.mark.parametrize("ruleset", RULESETS)
def test_a_void_of_a_table_is_told_for_each_seat_and_its_deck_counts_once(tmp_path: Path, ruleset: str) -> None:
    day = table_day(ruleset)
    report = audited(tmp_path, day)
    voids = report["voids"]
    assert [row["seat_no"] for row in voids] == ["1", "2", "3"] * 2
    assert {row["approved_by"] for row in voids} == {"admin-1, admin-2"}
    assert [row["reason"] for row in voids] == ["MALFUNCTION"] * 3 + ["DECK_UNRECOVERABLE"] * 3
    assert all(row["returned_minor"] == row["staked_minor"] == str(STAKED) for row in voids)
    assert all(row["would_have_returned_minor"].isdigit() for row in voids[:3])
    assert {row["would_have_returned_minor"] for row in voids[3:]} == {"unknown"}
    would_have = sum(int(row["would_have_returned_minor"]) for row in voids[:3])
    sums = {
        "currency": "EUR", "voids": 6, "staked_minor": 6 * STAKED, "would_have_returned_minor": would_have, "unknown": 3
    }  # fmt: skip
    assert report["voids_by_admin"] == [{"approved_by": f"admin-{nth}", **sums} for nth in (1, 2)]
    assert {row["session_id"]: row["voids"] for row in report["voids_by_session"]} == {
        player.session_id: 2 for player in day.players
    }
    (exposed,) = report["exposure"]
    assert (exposed["node"], exposed["draws"]) == ("node-2", 1)
    assert report["summary"]["draws_exposed"] == 1
    page = (tmp_path / "report.html").read_text()
    assert page.count("DECK_UNRECOVERABLE") >= 3


@pytest.mark.parametrize("ruleset", ["uth-online", "uth-seven-box"])
def test_behind_every_statement_the_state_is_whole(ruleset: str) -> None:
    """Every run is interrupted behind every statement, and comes to what a whole one comes to."""
    day = table_day(ruleset)
    data, keys = day.factory.lines, day.factory.keys()

    def run(*, is_interrupted: bool) -> tuple[list[str], dict[str, Any], dict[str, Any], int, int]:
        book = KeyBook(keys)
        replay = Replay(book, Rulebook(), goes_on=True)
        findings = AuditFindings(Rulebook(), book.statements)
        failures: list[str] = []
        tables = voids = 0
        for line in data:
            failures += [error.message for error in replay.feed(line)]
            assert replay.statement is not None
            failures += [error.message for error in findings.take(replay.statement)]
            if is_interrupted:
                kept = parse_state(
                    b"".join(format_state({"findings": findings.state(), "replay": format_replay(replay, book)}))
                )
                book = KeyBook(keys)
                replay = parse_replay(kept["replay"], book, Rulebook())
                findings = AuditFindings(Rulebook(), book.statements)
                findings.restore(kept["findings"])
                tables += bool(kept["replay"]["state"]["tables"]["rounds"])
                voids += bool(kept["findings"]["table_voids"])
        failures += [error.message for error in replay.finish()]
        counts, state = (json.loads(json.dumps(one)) for one in (replay.summary.fields(), findings.state()))
        return failures, counts, state, tables, voids

    whole, parts = run(is_interrupted=False), run(is_interrupted=True)
    assert parts[0] == whole[0] == []
    assert parts[1:3] == whole[1:3]
    assert parts[1]["rounds_verified"] == 4
    assert parts[3] > 40  # states with rounds of tables in them
    assert parts[4] > 5  # and with voids whose seats had not ended


def test_an_audit_that_is_resumed_behind_every_statement_says_the_same(tmp_path: Path) -> None:
    day = table_day()
    for name in ("whole", "parts"):
        (tmp_path / name).mkdir()
    whole = audited(tmp_path / "whole", day)
    case, entries = Case(tmp_path / "parts", day.factory), entries_of(day.factory)
    first = next(nth for nth, line in enumerate(day.factory.lines) if b"table-round" in line)
    for size in range(first, len(entries) + 1):
        case.publish(entries[:size])
        assert case.audit() == 0, (size, case.report["failures"])
    assert case.report["verdict"] == "PASSED WITNESSED ANCHORED"
    for report in (whole, case.report):
        report.pop("speed", None)
        report["checkpoint"].pop("verified_before")
    assert case.report == whole


def test_a_fault_in_a_table_is_found_once_however_often_the_run_is_resumed(tmp_path: Path) -> None:
    """Planted: a seat that was counted before the draw and is not opened."""
    day = seated()
    day.table.fix(day.workers[0], day.stakes)
    day.table.deal(day.workers[0])
    day.table.open_seats(day.workers[1], day.table.seats[:2])
    before = len(day.factory.lines)
    for phase in ("preflop", "flop", "river"):
        day.table.window(phase, {})
    day.table.reveal(day.workers[0])
    for seat in day.table.seats[:2]:
        day.table.end_seat(day.workers[0], seat)
    case, entries = Case(tmp_path, day.factory), entries_of(day.factory)
    for size in range(before, len(entries) + 1):
        case.publish(entries[:size])
        assert case.audit() == (size > before), case.report["failures"]
    assert [row["message"] for row in case.report["failures"]] == ["3 seats were dealt, 2 opened"]
    assert case.report["summary"]["rounds_failed"] == 1


def test_a_round_that_a_table_never_ended_is_overdue(tmp_path: Path) -> None:
    """The bets are fixed, and no deal is ever signed: no seat is open, and the round hangs all the same."""
    day = seated()
    day.table.fix(day.workers[0], day.stakes)
    assert audited(tmp_path, day)["overdue"] == []
    day.factory.clock_ms += 11 * 60_000  # a round may stay open for ten minutes under `demo`
    day.factory.event(day.workers[1])
    report = audited(tmp_path, day)
    (row,) = report["overdue"]
    assert (row["round_id"], row["session_id"], row["table"]) == (day.table.round_id, "", "table-1")
    assert "table-1" in (tmp_path / "report.html").read_text()
    day.table.make_void(day.workers[0])
    assert audited(tmp_path, day)["overdue"] == []


def test_a_round_that_was_never_dealt_exposes_no_deck(tmp_path: Path) -> None:
    day = seated()
    day.table.fix(day.workers[0], day.stakes)
    day.table.make_void(day.workers[0], "DECK_UNRECOVERABLE")
    report = audited(tmp_path, day)
    assert (report["exposure"], report["summary"]["draws_exposed"]) == ([], 0)
