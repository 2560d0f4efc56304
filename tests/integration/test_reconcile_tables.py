"""Rounds of a table in reconciliation: seats are stages, transfers are those of solo play, and faults have their names.

The server makes no such rounds yet: a factory signs them, and the other books are written from what it signed.
"""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rgs.adapters.embedded.books import WALLET_COLUMNS, receipt_line
from rgs.core.reconcile.classes import BreakClass
from rgs.core.reconcile.extract import _COLUMNS, SEATS, SESSIONS, TRANSFERS, Extract
from rgs.core.replay import KeyBook, Replay, Rulebook
from rgs.core.statements import leaf_hash, parse_envelope, parse_line, parse_statement
from tests.support.records.factory import RecordFactory
from tests.support.records.table_day import seated, table_day
from tests.support.service.reconciling import Day

RULESETS = ("uth-online", "uth-seven-box", "uth-lugano")
Body = dict[str, Any]


def statements(factory: RecordFactory) -> Iterator[tuple[str, str, Body, Body]]:
    """Kind, hash, body and private block of each."""
    for line in factory.lines:
        parsed = parse_line(line)
        kind, body = parse_statement(parse_envelope(parsed.envelope))
        yield kind.name, leaf_hash(parsed.envelope).hex(), body, (parsed.private or {}).get("block", {})


def books_of(folder: Path, factory: RecordFactory) -> Day:
    """What wallet, regulator and operator hold after all of it."""
    day = Day(folder)
    folder.mkdir()
    day.statements.write_bytes(factory.export())
    day.keys.write_bytes(factory.keys())
    wallet: list[Body] = []
    regulator: list[Body] = []
    receipts: list[bytes] = []
    sessions: dict[str, Body] = {}
    openings: dict[str, Body] = {}
    totals: dict[str, int] = defaultdict(int)
    closes: dict[str, Body] = {}
    balances: dict[str, int] = defaultdict(int)
    for (kind, name, body, block), line in zip(statements(factory), factory.lines, strict=True):
        session = sessions.get(body.get("session_id", ""), {})
        of = {"regulator_session_id": session.get("id", ""), "time": body["time"], "test_regulator": True}
        match kind:
            case "session_open":
                known = block["regulator_session_id"] in {one["id"] for one in sessions.values()}
                sessions[body["session_id"]] = {"id": block["regulator_session_id"], "player": block["player"]}
                of["regulator_session_id"] = block["regulator_session_id"]
                if not known:
                    regulator.append({
                        **of, "kind": "session", "reference": body["session_id"], "operator": body["operator"],
                        "currency": body["currency"], "ruleset": body["ruleset"]["id"],
                    })  # fmt: skip
            case "purchase" | "participation_end":
                is_debit = kind == "purchase"
                amount = body["amount_minor" if is_debit else "paid_out_minor"]
                session["participation"] = block["regulator_participation_id"]
                balances[session["player"]] += -int(amount) if is_debit else int(amount)
                of["regulator_participation_id"] = session["participation"]
                wallet.append({
                    "transaction_id": block["wallet_transaction_id"], "kind": "debit" if is_debit else "credit",
                    "player": session["player"], "currency": "EUR", "amount_minor": amount, "time": body["time"],
                    "reference": body["participation_id"], "status": "accepted", "balance_after_minor": "",
                    "operator": "operator-1", "book": "embedded",
                })  # fmt: skip
                if is_debit:
                    regulator.append({
                        **of, "kind": "purchase", "purchase_no": body["purchase_no"], "player": session["player"],
                        "amount_minor": amount, "transaction_id": block["wallet_transaction_id"],
                    })  # fmt: skip
                    totals["bought_minor"] += int(amount)
                else:
                    regulator.append({**of, "kind": "end", "rounds": body["rounds"], "final_balance_minor": amount})
                    totals["paid_out_minor"] += int(amount)
            case "seat_opening":
                openings[name] = body
                receipts.append(receipt_line(parse_line(line).envelope))
            case "seat_final":
                regulator.append({
                    **of, "kind": "stage", "regulator_participation_id": session["participation"],
                    "stage_no": body["round_no"], "available_minor": openings[body["opening"]]["balance_before_minor"],
                    "staked_minor": body["staked_minor"], "returned_minor": body["returned_minor"],
                    "opening_hash": body["opening"], "final_hash": name,
                })  # fmt: skip
                totals["rounds"] += 1
                totals["staked_minor"] += int(body["staked_minor"])
                totals["returned_minor"] += int(body["returned_minor"])
            case "session_close":
                closes[session["id"]] = {**of, "kind": "close"}
    regulator += closes.values()
    if totals:
        date = next(body["time"][:10] for _, _, body, _ in statements(factory))
        regulator.append({
            "kind": "total", "date": date, "operator": "operator-1", "currency": "EUR", "test_regulator": True,
            **{name: str(value) for name, value in totals.items()},
        })  # fmt: skip
    with day.wallet.open("w", newline="") as file:
        writer = csv.DictWriter(file, WALLET_COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(wallet)
    day.regulator.write_text("".join(json.dumps(row) + "\n" for row in regulator))
    day.receipts.write_bytes(b"".join(receipts))
    return day


def run(day: Day, out: Path) -> tuple[str, list[str], Body]:
    done = day.run(out, root=None)
    return done.verdict, [one["class"] for one in done.document["breaks"]], done.document


@pytest.mark.parametrize("ruleset", RULESETS)
def test_a_day_at_a_table_is_clean(tmp_path: Path, ruleset: str) -> None:
    verdict, breaks, document = run(books_of(tmp_path / "day", table_day(ruleset).factory), tmp_path / "out")
    assert breaks == []
    assert verdict == "clean"
    assert document["verification"]["rounds_verified"] == 4
    compared = document["compared"]
    assert compared["transfers"] == 6  # a purchase and an end of each
    assert compared["seats"] == 12


@pytest.mark.parametrize("ruleset", RULESETS)
def test_seats_are_rounds_of_their_sessions_and_transfers_are_as_in_solo_play(ruleset: str) -> None:
    day = table_day(ruleset)
    replay, extract = Replay(KeyBook(day.factory.keys()), Rulebook()), Extract(Rulebook())
    rows: dict[str, list[dict[str, str]]] = defaultdict(list)
    found = []
    for line in day.factory.lines:
        assert replay.feed(line) == []
        assert replay.statement is not None
        found += list(extract.take(replay.statement, is_sound=True))
    found += list(extract.finish())
    for table, row in found:
        rows[table].append(dict(zip(_COLUMNS[table], row, strict=True)))
    assert {player.session_id for player in day.players} == {row["session_id"] for row in rows[SESSIONS]}
    for player in day.players:
        seats = [row for row in rows[SEATS] if row["session_id"] == player.session_id]
        assert [row["round_no"] for row in seats] == ["1", "2", "3", "4"]
        assert [row["status"] for row in seats] == ["settled", "settled", "void", "void"]
        assert sum(int(row["staked_minor"]) for row in seats) == player.staked
        assert sum(int(row["returned_minor"]) for row in seats) == player.returned
        transfers = [row for row in rows[TRANSFERS] if row["session_id"] == player.session_id]
        assert [(row["kind"], row["source"], row["amount_minor"]) for row in transfers] == [
            ("debit", "purchase", "50000"),
            ("credit", "participation_end", str(player.paid_out)),
        ]


def stages(day: Day, change: Any) -> None:
    def one(rows: list[Body]) -> None:
        change([row for row in rows if row["kind"] == "stage"][-1])

    day.change_regulator(one)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda row: row.update(returned_minor="1"), [BreakClass.AMOUNT_DIFFERS]),
        (lambda row: row.update(final_hash="0" * 64), [BreakClass.CONTENT_DIFFERS]),
        (lambda row: row.update(stage_no="9"), [BreakClass.MISSING_IN_RGS, BreakClass.MISSING_AT_REGULATOR]),
    ],
    ids=["amount", "final", "number"],
)
def test_a_stage_that_differs_from_its_seat_is_named(tmp_path: Path, change: Any, expected: list[BreakClass]) -> None:
    day = books_of(tmp_path / "day", table_day().factory)
    stages(day, change)
    _, breaks, _ = run(day, tmp_path / "out")
    assert sorted(breaks) == sorted(expected)


def test_a_payout_that_the_wallet_does_not_have_is_named(tmp_path: Path) -> None:
    day = books_of(tmp_path / "day", table_day().factory)
    day.change_wallet(lambda rows: [row for row in rows if row["kind"] == "debit"] + rows[4:])
    _, breaks, _ = run(day, tmp_path / "out")
    assert breaks == [BreakClass.MISSING_CREDIT]


def test_a_seat_without_a_receipt_and_a_receipt_without_a_seat_are_named(tmp_path: Path) -> None:
    day = books_of(tmp_path / "day", table_day().factory)
    day.change_receipts(lambda rows: rows[1:])
    _, breaks, _ = run(day, tmp_path / "out")
    assert breaks == [BreakClass.SEAT_MISSING]
    more = books_of(tmp_path / "more", table_day().factory)
    more.change_receipts(lambda rows: [*rows, {**rows[0], "round_no": "9", "opening_hash": "0" * 64}])
    _, breaks, _ = run(more, tmp_path / "out2")
    assert breaks == [BreakClass.SEAT_MISSING]


def test_a_seat_that_was_counted_before_the_draw_and_not_opened_is_missing(tmp_path: Path) -> None:
    day = seated()
    day.table.fix(day.workers[0], day.stakes)
    day.table.deal(day.workers[0])
    day.table.open_seats(day.workers[0], day.table.seats[:2])
    for phase in ("preflop", "flop", "river"):
        day.table.window(phase, {})
    day.table.reveal(day.workers[0])
    for seat in day.table.seats[:2]:
        day.table.end_seat(day.workers[0], seat)
    day.end()
    _, breaks, document = run(books_of(tmp_path / "day", day.factory), tmp_path / "out")
    assert breaks == [BreakClass.SEAT_MISSING]
    (found,) = document["breaks"]
    assert "3 seats were dealt, 2 opened" in json.dumps(found)
