"""`certify omission` at a table: what a player can show who kept the opening of his seat, its path, and the table's own
statements.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from certification import omission
from rgs.core.statements import ExportLine, format_line, parse_envelope, parse_line, parse_statement
from rgs.core.times import format_time
from tests.support.records.audited import SEEN_S, Case, entries_of
from tests.support.records.factory import START_MS
from tests.support.records.table_day import TableDay, seated

SOON = format_time(SEEN_S * 1000 + 1000)
PERIOD_MS = 11 * 60_000
"""Longer than `demo` lets an interrupted round stay open."""


def begun(day: TableDay) -> None:
    """A round up to its open seats."""
    day.table.fix(day.workers[0], day.stakes)
    day.table.deal(day.workers[0])
    day.table.open_seats(day.workers[1])


def revealed(day: TableDay) -> None:
    for phase in ("preflop", "flop", "river"):
        day.table.window(phase, {})
    day.table.reveal(day.workers[0])


def case_of(folder: Path, day: TableDay) -> Case:
    case = Case(folder, day.factory)
    (folder / "keys.json").write_bytes(day.factory.keys())
    (folder / "policy.txt").write_text(case.policy)
    return case


def found(day: TableDay, kind: str) -> list[bytes]:
    """The export lines of a kind."""
    return [line for line in day.factory.lines if f"vnd.rgs.{kind.replace('_', '-')}.v1".encode() in line]


def omitted(case: Case, *lines: bytes) -> int:
    path = case.folder / "receipt"
    path.write_bytes(b"\n".join(lines) + b"\n")
    files = ["--policy", str(case.folder / "policy.txt"), "--keys", str(case.folder / "keys.json")]
    return omission.main([str(path), "--log", str(case.log), *files, "--root", case.factory.root.keyid, "--now", SOON])


def test_the_statements_of_a_table_are_receipts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    day = seated()
    begun(day)
    revealed(day)
    day.table.end_seats(day.workers[1])
    case = case_of(tmp_path, day)
    case.publish()
    kept = [found(day, kind)[0] for kind in ("table_round", "table_deal", "seat_opening", "table_final", "seat_final")]
    assert omitted(case, *kept) == 0
    result = capsys.readouterr().out
    assert result.count("INCLUDED") == 5
    assert "UNDER_ROOT seat 1 of round" in result
    assert "WITHOUT_FINAL" not in result
    for line in kept:
        assert omitted(case, parse_line(line).envelope) == 0  # the envelope alone
    assert "_ROOT" not in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["table_round", "seat_opening", "seat_final"])
def test_a_missing_statement_of_a_table_is_an_omission(
    tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    day = seated()
    begun(day)
    revealed(day)
    day.table.end_seats(day.workers[1])
    case, (mine, *_) = case_of(tmp_path, day), found(day, kind)
    case.publish([entry for entry in entries_of(day.factory) if entry != parse_line(mine).envelope])
    assert omitted(case, mine) == 1
    assert f"PROVEN_OMITTED {kind}" in capsys.readouterr().out


@pytest.mark.parametrize("from_log", [True, False])
def test_a_player_who_was_dealt_in_and_left_out_of_the_log_is_found(
    tmp_path: Path, from_log: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """Planted: the log holds the round with all but one seat. The player holds opening and path."""
    day = seated()
    begun(day)
    case, mine = case_of(tmp_path, day), found(day, "seat_opening")[1]
    case.publish([entry for entry in entries_of(day.factory) if entry != parse_line(mine).envelope])
    kept = [] if from_log else [found(day, "table_round")[0], found(day, "table_deal")[0]]
    assert omitted(case, *kept, mine) == 1
    result = capsys.readouterr().out
    assert "PROVEN_OMITTED seat_opening" in result
    assert "UNDER_ROOT seat 2 of round" in result


def test_a_path_that_leads_elsewhere_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Planted: the seat's path is that of another seat, or there is no table_round to compare it with."""
    day = seated()
    begun(day)
    case = case_of(tmp_path, day)
    case.publish()
    mine, other = (parse_line(line) for line in found(day, "seat_opening")[:2])
    assert omitted(case, format_line(ExportLine(mine.envelope, None, other.path))) == 0
    result = capsys.readouterr().out
    assert "NOT_UNDER_ROOT seat 1 of round" in result
    entries = entries_of(day.factory)
    rounds = [parse_line(line).envelope for line in found(day, "table_round")]
    case.publish([entry for entry in entries if entry not in rounds])
    assert omitted(case, format_line(mine)) == 0
    assert "the path was not compared" in capsys.readouterr().out


def test_a_seat_that_names_another_statement_as_its_deal_is_not_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Planted: what the opening names as its table_deal is the table_round."""

    def lie(kind: str, _count: int, body: dict[str, Any]) -> None:
        if kind == "seat_opening":
            body["deal"] = day.table.table_round

    day = seated(lie=lie)
    begun(day)
    case = case_of(tmp_path, day)
    case.publish()
    assert omitted(case, found(day, "table_round")[0], found(day, "seat_opening")[0]) == 0
    assert "the path was not compared" in capsys.readouterr().out


def test_a_seat_without_its_final_and_a_table_without_its_end_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    day = seated()
    begun(day)
    case = case_of(tmp_path, day)
    kept = [found(day, "table_round")[0], found(day, "seat_opening")[2]]
    case.publish(time_s=START_MS // 1000)
    assert omitted(case, *kept) == 0
    assert "WITHOUT_FINAL" not in capsys.readouterr().out  # there is time still
    revealed(day)
    day.table.end_seat(day.workers[0], day.table.seats[0])
    day.factory.clock_ms += PERIOD_MS
    day.factory.event(day.workers[0])
    case.publish(time_s=START_MS // 1000)
    assert omitted(case, *kept) == 0
    (line,) = [line for line in capsys.readouterr().out.split("\n") if "WITHOUT_FINAL" in line]
    assert line.startswith(f"WITHOUT_FINAL seat 3 of round {day.table.round_id}: opened ")
    day.table.end_seat(day.workers[0], day.table.seats[2])
    case.publish(time_s=START_MS // 1000)
    assert omitted(case, *kept) == 0
    assert "WITHOUT_FINAL" not in capsys.readouterr().out


def test_a_round_whose_draw_is_never_signed_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The bets are fixed, and nothing follows: whoever holds the table_round can say so."""
    day = seated()
    day.table.fix(day.workers[0], day.stakes)
    (mine,) = found(day, "table_round")
    day.factory.clock_ms += PERIOD_MS
    day.factory.event(day.workers[0])
    case = case_of(tmp_path, day)
    case.publish(time_s=START_MS // 1000)
    assert omitted(case, mine) == 0
    result = capsys.readouterr().out
    assert f"WITHOUT_FINAL round {day.table.round_id} of table table-1: opened " in result
    assert "under demo an interrupted round ends after 0:10:00" in result
    day.table.make_void(day.workers[1])
    case.publish(time_s=START_MS // 1000)
    assert omitted(case, mine) == 0
    assert "WITHOUT_FINAL" not in capsys.readouterr().out
    assert parse_statement(parse_envelope(parse_line(mine).envelope))[1]["round_id"] == day.table.round_id
