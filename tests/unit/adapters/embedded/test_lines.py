"""The embedded books, written out line by line as `rgs reconcile` reads them: every byte of both files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rgs.adapters.embedded.books import receipt_line, regulator_lines, wallet_lines
from rgs.core.errors import InsufficientFundsError, WalletRefusedError
from rgs.core.statements import leaf_hash, parse_envelope
from rgs.core.statements.lines import parse_line
from rgs.core.times import format_date, format_time
from rgs.ports.regulator import DayAlignment
from tests.support.adapters.books import NOTHING, NOW_MS, Played, give, make_wallet, modules, move, ulid
from tests.support.records.lying import two_rounds

TIME = format_time(NOW_MS)
DAY_MS = 86_400_000


async def test_each_transaction_is_a_line_of_the_wallets_file_and_an_opening_is_none(tmp_path: Path) -> None:
    wallet, store = make_wallet(tmp_path / "wallet.sqlite")
    await wallet.open_account(operator="op", player="anna", currency="EUR", balance_minor=1_000)
    await wallet.debit(move(1, 300))
    await wallet.rollback(move(1, 300))
    await wallet.rollback(move(2, 77))
    await wallet.open_account(operator="op", player="bert", currency="EUR", balance_minor=0)
    await wallet.credit(give(3, 50))
    with pytest.raises(InsufficientFundsError):
        await wallet.debit(move(4, 5_000))
    with pytest.raises(WalletRefusedError):
        await wallet.debit(move(5, 1, player="carl"))
    await wallet.credit(give(6, 0))
    rows = [
        (1, "debit,anna", 300, "accepted", 700),
        (1, "rollback,anna", 300, "accepted", 1_000),
        (2, "rollback,anna", 77, "tombstone", 1_000),
        (3, "credit,anna", 50, "accepted", 1_050),
        (4, "debit,anna", 5_000, "refused", 1_050),
        (5, "debit,carl", 1, "refused", ""),
        (6, "credit,anna", 0, "accepted", 1_050),
    ]
    assert b"".join(wallet_lines(store.rows())).decode().split("\n") == [
        "transaction_id,kind,player,currency,amount_minor,time,reference,status,balance_after_minor,operator,book",
        *(
            f"{ulid(number)},{what},EUR,{amount},{TIME},{ulid(900)},{status},{balance},op,embedded"
            for number, what, amount, status, balance in rows
        ),
        "",
    ]
    await wallet.close()


async def test_each_event_of_a_session_is_a_line_of_the_regulators_file_and_each_day_has_its_totals(
    played: Played,
) -> None:
    await played.regulator.report_modules(modules(played.number()))
    await played.report(played.stage(3, 440, staked_minor=40, returned_minor=90, end_ms=NOW_MS - DAY_MS))
    await played.buy(purchase_no=2, amount_minor=100)
    day_before = format_date(NOW_MS - 2 * DAY_MS)
    await played.regulator.align_day(DayAlignment(played.number(), "op", "EUR", day_before, NOTHING))
    await played.end(590, 3)
    await played.close()
    ids = {"regulator_session_id": played.session, "regulator_participation_id": played.participation}
    bought = {"player": "anna", "reference": "participation-1", **ids}

    def stage_line(number: int, available: int, staked: int, returned: int, time: str) -> dict[str, str]:
        return {
            "kind": "stage",
            "time": time,
            "stage_no": str(number),
            "available_minor": str(available),
            "staked_minor": str(staked),
            "returned_minor": str(returned),
            "opening_hash": f"{number:064x}",
            "final_hash": f"{number:x}".rjust(64, "f"),
            **ids,
        }

    def totals(date: str, **sums: str) -> dict[str, str]:
        nothing = dict.fromkeys(("bought_minor", "paid_out_minor", "returned_minor", "rounds", "staked_minor"), "0")
        return {"kind": "total", "date": date, "operator": "op", "currency": "EUR", **nothing, **sums}

    yesterday, today = format_date(NOW_MS - DAY_MS), format_date(NOW_MS)
    expected = [
        {
            "kind": "session",
            "time": TIME,
            "operator": "op",
            "reference": "session-1",
            "ruleset": "uth-classic",
            "currency": "EUR",
            "regulator_session_id": played.session,
        },
        {"kind": "purchase", "time": TIME, "purchase_no": "1", "amount_minor": "500", "transaction_id": ulid(2)}
        | bought,
        stage_line(1, 500, 30, 0, TIME),
        stage_line(2, 470, 30, 0, TIME),
        stage_line(3, 440, 40, 90, format_time(NOW_MS - DAY_MS)),
        {"kind": "purchase", "time": TIME, "purchase_no": "2", "amount_minor": "100", "transaction_id": ulid(6)}
        | bought,
        {"kind": "end", "time": TIME, "final_balance_minor": "590", "rounds": "3", **ids},
        {"kind": "close", "time": TIME, "regulator_session_id": played.session},
        totals(yesterday, rounds="1", staked_minor="40", returned_minor="90"),
        totals(today, rounds="2", staked_minor="60", bought_minor="600", paid_out_minor="590"),
    ]
    lines = list(regulator_lines(json.loads(entry.body) for entry in played.store.entries()))
    assert lines == [
        json.dumps({**row, "test_regulator": True}, sort_keys=True, separators=(",", ":")).encode() + b"\n"
        for row in expected
    ]


def test_a_receipt_is_the_line_of_one_opening() -> None:
    envelopes = [parse_line(line).envelope for line in two_rounds().export().splitlines()]
    bodies = {envelope: json.loads(parse_envelope(envelope).payload) for envelope in envelopes}
    openings = {envelope: body for envelope, body in bodies.items() if body["kind"] == "round_opening"}
    assert len(openings) == 2
    for envelope, body in openings.items():
        receipt = (
            f'{{"opening_hash":"{leaf_hash(envelope).hex()}","round_id":"{body["deal"]["round_id"]}",'
            f'"round_no":"{body["round_no"]}","session_id":"{body["session_id"]}","time":"{body["time"]}"}}\n'
        )
        assert receipt_line(envelope) == receipt.encode()
