"""The folder that a comparison leaves: what is in it, what its report says, and the error where there can be none."""

from __future__ import annotations

import csv
import hashlib
import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from rgs.core.amounts import format_money
from rgs.core.errors import InvalidFieldError, VerificationError
from rgs.core.reconcile.classes import BreakClass
from rgs.core.reconcile.resolutions import Resolution, entry_hash, format_entry
from rgs.core.statements import parse_envelope, parse_line, parse_statement
from rgs.core.statements.lines import KEY_BUNDLE_BYTES_MAX, LINE_BYTES_MAX
from rgs.core.times import format_time, parse_time
from rgs.service.reconciliation import sources
from rgs.service.reconciliation.page import render_page
from rgs.service.reconciliation.reconciliation import ReconcileRequest
from rgs.store.reconciliation import MEMORY_MB_MIN
from tests.integration.test_reconcile_breaks import paper
from tests.support.records.factory import RecordFactory
from tests.support.service.harness import ROOT_KEY
from tests.support.service.reconciling import Day, Row

FILES = {"breaks.csv", "participations.csv", "rejects.csv", "report.html", "report.json", "report.jsonl", "totals.csv"}


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def credits_gone(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row["kind"] != "credit"]


# --- the folder -----------------------------------------------------------------------------------------------------


def test_a_run_takes_an_empty_folder_and_clears_what_a_killed_one_left(day: Day, tmp_path: Path) -> None:
    place = tmp_path / "place"
    (place / "out").mkdir(parents=True)
    (place / ".out.unfinished" / "work").mkdir(parents=True)
    (place / ".out.unfinished" / "old").write_text("old")
    day.run(place / "out")
    assert [path.name for path in place.iterdir()] == ["out"]
    assert {path.name for path in (place / "out").iterdir()} == FILES


def test_the_extract_is_kept_where_it_is_asked_for(day: Day, tmp_path: Path) -> None:
    day.run(tmp_path / "out", keep_extract=True, signed=False)
    assert {path.name for path in (tmp_path / "out").iterdir()} == FILES - {"report.jsonl"} | {"transfers.parquet"}
    assert len(duckdb.connect().read_parquet(str(tmp_path / "out" / "transfers.parquet")).fetchall()) == 7


def test_what_a_request_leaves_out_has_the_default_of_the_page(day: Day, tmp_path: Path) -> None:
    request = ReconcileRequest(day.statements, day.keys, tmp_path / "out")
    assert (request.memory_mb, request.clock_limit_s, request.cut_off_s, request.overdue_s) == (2048, 300, None, None)


# --- the report -----------------------------------------------------------------------------------------------------


def test_what_a_clean_report_says(day: Day, tmp_path: Path) -> None:
    document = day.run(tmp_path / "out").document
    assert json.loads((tmp_path / "out" / "report.json").read_text()) == json.loads(json.dumps(document))
    assert len(document.pop("classes")) > 10
    assert len(document.pop("checks")) == 6
    assert [row["source"] for row in document.pop("totals")] == ["wallet", "regulator", "statements"]
    compared = {
        "embedded_wallet": 7, "r_ends": 3, "r_purchases": 4, "r_sessions": 3, "r_stages": 9, "receipts": 9, "seats": 9,
        "sessions": 3, "test_sessions": 3, "transfers": 7, "wallet": 7,
    }  # fmt: skip
    inputs = [("statements", day.statements, 36), ("receipts", day.receipts, 9), ("wallet", day.wallet, 7)]
    assert document == {
        "as_of": "2026-11-18T11:12:53.500Z",
        "breaks": [],
        "breaks_listed_max": 2000,
        "clock_limit_s": 300,
        "compared": compared,
        "cut_off_s": None,
        "days_in_part": [],
        "difference": None,
        "files": {name: sha256(tmp_path / "out" / name) for name in FILES if name.endswith(".csv")},
        "format": "rgs/reconciliation/v1",
        "identity": [{"holds": 3, "reported": 3, "source": name} for name in ("statements", "wallet", "regulator")],
        "inputs": [
            {
                "mapping_sha256": "", "name": path.name, "rejected": 0, "rows": count, "sha256": sha256(path),
                "source": source,
            }
            for source, path, count in [*inputs, ("regulator", day.regulator, 23)]
        ],
        "is_signed": True,
        "key_path": {"anchored": True, "development": True, "root": ROOT_KEY.keyid, "sha256": sha256(day.keys)},
        "open": 0,
        "operator": "op-1",
        "overdue_s": None,
        "owed": {},
        "period": None,
        "play_money": {"rounds": 0, "sessions": 0},
        "rejected": 0,
        "rejects_allowed": False,
        "resolutions": None,
        "resolved": 0,
        "tool": {"name": "rgs reconcile", "version": "test"},
        "verdict": "clean",
        "verification": {
            "failures": 0, "is_cut": False, "lines": 36, "rounds_failed": 0, "rounds_open": 0, "rounds_verified": 9,
            "sessions": 3,
        },
    }  # fmt: skip


def test_the_report_is_signed_by_its_hash_and_dated_as_of_itself(day: Day, tmp_path: Path) -> None:
    done = day.run(tmp_path / "out")
    (line,) = (tmp_path / "out" / "report.jsonl").read_bytes().splitlines()
    kind, body = parse_statement(parse_envelope(parse_line(line).envelope))
    digest = sha256(tmp_path / "out" / "report.json")
    assert (kind.name, body["sha256"], body["time"]) == ("report", digest, done.document["as_of"])
    assert done.report_sha256 == digest


def test_breaks_as_rows_and_the_difference_to_the_report_before(day: Day, tmp_path: Path) -> None:
    whole = day.wallet.read_text()
    day.change_wallet(credits_gone)
    before = day.run(tmp_path / "before").document["breaks"]
    with (tmp_path / "before" / "breaks.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    paid_minor = before[0]["amount_minor"]
    assert rows[0] == {
        "break_id": before[0]["break_id"],
        "class": "missing_credit_in_wallet",
        "state": "open",
        "owed": "yes",
        "subject": before[0]["subject"],
        "operator": "op-1",
        "player": "anna",
        "currency": "EUR",
        "game": "uth-solo",
        "amount_minor": str(paid_minor),
        "time": "2026-11-18T11:07:43.000Z",
        "age": "under 15 min",
        "action": before[0]["action"],
        "found": f"statements: credit {format_money(paid_minor, 'EUR')}; wallet: nothing",
        **dict.fromkeys(("resolved_by", "approved_by", "reason", "evidence"), ""),
    }
    day.wallet.write_text(whole)
    difference = day.run(tmp_path / "after", earlier=tmp_path / "before").document["difference"]
    assert difference == {
        "earlier": sha256(tmp_path / "before" / "report.json"),
        "gone": sorted(
            ({name: one[name] for name in ("break_id", "class", "subject")} for one in before),
            key=lambda one: (one["class"], one["subject"]),
        ),
        "gone_total": 3,
        "new": 0,
        "still": 0,
    }


def test_a_wallets_clock_may_be_off_by_the_limit_and_not_by_a_millisecond_more(day: Day, tmp_path: Path) -> None:
    debit_ms = next(parse_time(body["time"]) for body in day.bodies() if body.get("purchase_no"))
    for late_ms, found in ((1_000, []), (1_001, [BreakClass.TIME_DIFFERS])):
        day.change_wallet(lambda rows: rows[0].update(time=format_time(debit_ms + late_ms)))  # noqa: B023
        assert day.breaks(tmp_path / str(late_ms), clock_limit_s=1) == found


def test_a_total_behind_a_day_in_part_is_compared(day: Day, tmp_path: Path) -> None:
    def add(rows: list[Row]) -> list[Row]:
        total = next(row for row in rows if row["kind"] == "total")
        return [*rows, {**total, "date": "2026-11-19"}]

    day.change_regulator(add)
    period = (parse_time("2026-11-18T23:00:00.000Z"), parse_time("2026-11-20T00:00:00.000Z"))
    document = day.run(tmp_path / "out", period=period).document
    assert document["days_in_part"] == ["2026-11-18"]
    subjects = {found["subject"] for found in document["breaks"]}
    assert "total bought of 2026-11-19 op-1 EUR" in subjects
    assert not any("2026-11-18" in subject for subject in subjects)


def test_resolutions_are_named_by_their_number_and_last_hash(day: Day, tmp_path: Path) -> None:
    entry = format_entry(
        Resolution("a" * 32, "RESENT", "ticket 7", "anna", "bert", "2026-11-18T00:00:00.000Z"), 1, "0" * 64
    )
    (tmp_path / "resolutions.jsonl").write_bytes(entry + b"\n")
    document = day.run(tmp_path / "out", resolutions=tmp_path / "resolutions.jsonl").document
    assert document["resolutions"] == {"entries": 1, "last_hash": entry_hash(entry)}


def test_a_regulator_that_calls_its_session_a_test_is_no_independent_one(tmp_path: Path) -> None:
    """Whatever the record says of it."""
    factory = RecordFactory("earnest")
    one = factory.start("node-1-b1-w0")
    player = factory.open(one, jurisdiction="gb-ukgc")
    factory.close(one, player)
    factory.end(one)
    day = paper(tmp_path, factory)
    session = {
        "kind": "session",
        "regulator_session_id": "M" * 16,
        "currency": "EUR",
        "time": "2026-11-18T11:06:40.000Z",
    }
    for number, word in enumerate(("false", "true")):
        day.regulator.write_text(json.dumps({**session, "test_regulator": word}) + "\n")
        document = day.run(tmp_path / word, wallet=None, receipts=None, root=None).document
        (check,) = [row for row in document["checks"] if row["check"] == "sessions and rights of participation"]
        assert (check["independent"], document["compared"]["test_sessions"]) == (word == "false", number)


# --- the page -------------------------------------------------------------------------------------------------------


def test_the_page_draws_open_breaks_and_the_days_of_a_month_at_most(day: Day, tmp_path: Path) -> None:
    day.change_wallet(credits_gone)
    document = day.run(tmp_path / "out").document
    (row,) = [one for one in document["classes"] if one["open"]]
    (total, *_) = document["totals"]

    def page(days: int, **changes: Any) -> str:
        totals = [{**total, "date": f"2026-{1 + number // 28:02d}-{1 + number % 28:02d}"} for number in range(days)]
        classes = [{**one, **changes} if one["class"] == row["class"] else one for one in document["classes"]]
        return render_page({**document, "classes": classes, "totals": totals}, "0" * 64)

    for days, titles in ((31, ["<p><b>Bought</b>", "<p><b>Paid out</b>"]), (32, [])):
        text = page(days)
        assert [title for title in ("<p><b>Bought</b>", "<p><b>Paid out</b>") if title in text] == titles
        assert "Open breaks by class and age" in text
    assert f"2026-01-01 {total['source']}, bought: 350.00 EUR" in page(1)
    resolved = page(1, open=0, resolved=3)
    assert "Open breaks by class and age" not in resolved
    assert f"{row['title']}</span>: 0 open, 3 resolved" in resolved


# --- the inputs -----------------------------------------------------------------------------------------------------


def in_parquet(day: Day, folder: Path, columns: str) -> Path:
    """The wallet statement with these columns instead of its own."""
    path = folder / "wallet.parquet"
    rows = duckdb.connect().read_csv(str(day.wallet), all_varchar=True)
    rows.project(f"* REPLACE ({columns})").write_parquet(str(path))
    return path


def test_our_own_layout_needs_no_strict_reader(day: Day, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wallet statement of millions of rows goes straight into the store."""

    def refuse(*_: object, **__: object) -> Any:
        raise AssertionError("the strict reader was asked")

    monkeypatch.setattr(sources, "csv_records", refuse)
    assert day.run(tmp_path / "csv").verdict == "clean"
    names = ("amount_minor", "balance_after_minor")
    parquet = in_parquet(day, tmp_path, ", ".join(f"CAST({name} AS BIGINT) AS {name}" for name in names))
    monkeypatch.setattr(sources.Outside, "_records", refuse)
    with pytest.raises(AssertionError, match="strict reader"):
        day.run(tmp_path / "lines", wallet=parquet)  # the receipts
    done = day.run(tmp_path / "parquet", wallet=parquet, receipts=None, regulator=None)
    assert (done.verdict, done.document["inputs"][-1]["rows"]) == ("clean", 7)


def test_the_wallets_layout_does_not_make_receipts(day: Day, tmp_path: Path) -> None:
    done = day.run(tmp_path / "out", receipts=day.wallet, wallet=None, regulator=None)
    found = done.document["inputs"][-1]
    assert (found["source"], found["rows"], found["rejected"]) == ("receipts", 0, 7)


def test_a_parquet_file_of_other_types_is_read_row_by_row(day: Day, tmp_path: Path) -> None:
    parquet = in_parquet(day, tmp_path, "CAST(amount_minor AS DECIMAL(18, 0)) AS amount_minor")
    done = day.run(tmp_path / "out", wallet=parquet)
    assert (done.verdict, done.document["inputs"][2]["rows"]) == ("clean", 7)


def test_a_value_of_a_parquet_row_that_would_be_rounded_is_refused(day: Day, tmp_path: Path) -> None:
    parquet = in_parquet(day, tmp_path, "CAST(amount_minor AS DOUBLE) AS amount_minor")
    done = day.run(tmp_path / "out", wallet=parquet)
    with (tmp_path / "out" / "rejects.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["source", "line", "reason"]
    reason = "amount_minor is a float: text, integer, decimal or time expected"
    assert rows == [["wallet", str(number), reason] for number in range(1, 8)]
    assert done.document["inputs"][2]["sha256"] == sha256(parquet)


def test_a_line_that_is_cut_off_is_a_break(day: Day, tmp_path: Path) -> None:
    day.statements.write_bytes(day.statements.read_bytes() + b'{"envelope":')
    (found,) = day.run(tmp_path / "out").document["breaks"]
    assert (found["class"], found["subject"], found["sources"]) == ("content_differs", "line 37", ["statements"])
    assert found["found"] == [["check 1 line", f"cut off, or longer than {LINE_BYTES_MAX} bytes"]]


# --- where there can be no report -----------------------------------------------------------------------------------


def refused(day: Day, out: Path, **changes: Any) -> tuple[str, str | None, dict[str, str]]:
    with pytest.raises(InvalidFieldError) as error:
        day.run(out, **changes)
    return error.value.message, error.value.field, dict(error.value.metadata)


def test_what_is_refused_is_named_with_its_limit(day: Day, tmp_path: Path) -> None:
    out, file, empty = tmp_path / "out", tmp_path / "file", tmp_path / "empty.jsonl"
    file.write_text("mine")
    empty.touch()
    least = {"limit": str(MEMORY_MB_MIN), "value": str(MEMORY_MB_MIN - 1)}
    message = f"memory must be at least {MEMORY_MB_MIN} MB"
    assert refused(day, out, memory_mb=MEMORY_MB_MIN - 1) == (message, "memory_mb", least)
    assert refused(day, file) == (f"{file} is not an empty folder", "out", {"value": "file"})
    assert file.read_text() == "mine"
    message = f"{empty} is empty: there are no statements"
    assert refused(day, out, statements=empty) == (message, "statements", {"value": "empty.jsonl"})
    message = "the statements are of op-1, none is of op-2: nothing would be compared"
    assert refused(day, out, operator="op-2") == (message, "operator", {"limit": "op-1", "value": "op-2"})
    file.write_bytes(b"#" * 65_537)
    message = f"{file} is longer than 65536 bytes"
    assert refused(day, out, mappings={"wallet": file}) == (message, "mapping", {"limit": "65536"})
    file.write_bytes(b"#" * 65_536)
    assert day.run(out, mappings={"wallet": file}).verdict == "clean"
    out = tmp_path / "another"
    for source in ("receipts", "wallet", "regulator"):
        message = f"{source} empty.jsonl is empty"
        assert refused(day, out, **{source: empty}) == (message, source, {"value": "empty.jsonl"})


def test_a_key_bundle_that_is_too_long_is_named_so(day: Day, tmp_path: Path) -> None:
    long = tmp_path / "keys.json"
    with long.open("wb") as file:
        file.truncate(KEY_BUNDLE_BYTES_MAX + 1)
    with pytest.raises(VerificationError, match="key bundle, statement 1: key bundle is too long"):
        day.run(tmp_path / "out", keys=long)
