"""From statements to the rows that are compared: what a day of play does not show."""

from __future__ import annotations

from typing import Any

from rgs.core.jurisdictions import load_jurisdiction
from rgs.core.reconcile.extract import PLAYED_FREE, SEATS, SESSIONS, TRANSFERS, Extract
from rgs.core.replay import Rulebook
from rgs.core.replay.keys import SigningKey
from rgs.core.replay.reading import Statement
from rgs.core.rounds import rules_object
from rgs.core.rulesets import load_ruleset
from rgs.core.statements import KINDS, KeyRole

TIME = "2026-11-18T00:00:00.000Z"
KEY = SigningKey(KeyRole.INSTANCE, bytes(32), "i", "", False, TIME)
OPEN = {
    "currency": "EUR",
    "jurisdiction": rules_object(load_jurisdiction("demo")),
    "operator": "op-1",
    "ruleset": rules_object(load_ruleset("uth-solo")),
    "test_regulator": True,
}
TRANSFER = {"amount_minor": "5", "direction": "debit", "round_id": "R"}


def statement(kind: str, body: dict[str, Any], block: dict[str, str] | None = None) -> Statement:
    private = None if block is None else {"block": block, "salt": "00" * 32}
    return Statement(KINDS[kind], {"session_id": "S", "time": TIME, **body}, f"hash of {kind}", KEY, "k", private, "R")


def extracted(*statements: Statement, **options: Any) -> tuple[Extract, list[tuple[str, tuple[str, ...]]]]:
    extract = Extract(Rulebook(), **options)
    rows = [row for one in statements for row in extract.take(one, is_sound=True)]
    return extract, [*rows, *extract.finish()]


def opened(**changes: Any) -> Statement:
    return statement("session_open", {**OPEN, **changes}, {"player": "anna", "regulator_session_id": "M" * 16})


def test_a_transfer_names_its_transaction_in_the_body() -> None:
    debit = statement("transfer", {**TRANSFER, "transaction_id": "T1"})
    credit = statement("transfer", {**TRANSFER, "direction": "credit", "transaction_id": "T2"})
    _, rows = extracted(opened(), debit, credit)
    assert [row[:3] for table, row in rows if table == TRANSFERS] == [("T1", "debit", "5"), ("T2", "credit", "5")]


def test_statements_of_no_session_move_the_clock_only() -> None:
    extract, rows = extracted(statement("event", {"code": "X"}), statement("node_key", {}))
    assert rows == []
    assert extract.newest_ms == 1_794_960_000_000


def test_without_its_private_block_nothing_can_be_matched() -> None:
    purchase = statement("purchase", {"participation_id": "P", "bought_minor": "5", "amount_minor": "5"})
    extract, rows = extracted(statement("session_open", OPEN), purchase)
    assert extract.missing == {"hash of session_open": "S", "hash of purchase": ""}
    assert [table for table, _ in rows] == [TRANSFERS, SESSIONS]
    assert (rows[0][1][0], rows[0][1][14]) == ("", "0")  # no id, and when it began is not known


def test_another_operators_sessions_are_left_out() -> None:
    round_opening = {
        "round_no": "1", "balance_before_minor": "9", "seat": {"bets": [{"amount_minor": "1", "bet": "ante"}]},
    }  # fmt: skip
    transfer = statement("transfer", {**TRANSFER, "transaction_id": "T1"}, {})
    extract, rows = extracted(opened(), transfer, statement("round_opening", round_opening), operator="op-2")
    assert rows == []
    assert extract.operators == {"op-1"}


def test_a_final_whose_opening_is_outside_the_files() -> None:
    final = {"opening": "x", "staked_minor": "1", "returned_minor": "0", "status": "settled"}
    _, rows = extracted(statement("round_final", final))
    assert [(table, row[18]) for table, row in rows] == [(SESSIONS, "false")]


def test_an_unknown_jurisdiction_gives_a_day() -> None:
    unknown = {**OPEN["jurisdiction"], "version": "99"}  # type: ignore[dict-item]
    round_opening = {
        "round_no": "1", "balance_before_minor": "9", "seat": {"bets": [{"amount_minor": "1", "bet": "ante"}]},
    }  # fmt: skip
    for options, due in (({}, 86_400_000), ({"overdue_s": 7}, 7_000)):
        _, rows = extracted(opened(jurisdiction=unknown), statement("round_opening", round_opening), **options)
        (seat,) = [row for table, row in rows if table == SEATS]
        assert int(seat[10]) - int(seat[8]) == due


def test_play_money_is_counted_and_compared_with_nothing() -> None:
    demo = {**OPEN, "mode": "demo", "test_regulator": False}
    purchase = {"participation_id": "P", "bought_minor": "5", "amount_minor": "5", "purchase_no": "1"}
    round_opening = {
        "round_no": "1", "balance_before_minor": "9", "seat": {"bets": [{"amount_minor": "1", "bet": "ante"}]},
    }  # fmt: skip
    final = {"opening": "hash of round_opening", "staked_minor": "1", "returned_minor": "0", "status": "settled"}
    end = {
        "rounds": "1", "staked_minor": "1", "returned_minor": "0", "bought_minor": "5", "paid_out_minor": "4",
        "participation_id": "P",
    }  # fmt: skip
    free = {"reason": "PLAY_MONEY"}
    links = [
        statement("purchase", purchase, free), statement("round_opening", round_opening),
        statement("round_final", final), statement("participation_end", end, free),
    ]  # fmt: skip
    extract, rows = extracted(statement("session_open", demo, {"player": "anna"}), *links)
    assert rows == [(PLAYED_FREE, ("S",))]
    assert (extract.demo_sessions, extract.demo_rounds, extract.missing) == (1, 1, {})
    extract, rows = extracted(*links)  # files that begin later: the block beside the purchase says it
    assert rows == [(PLAYED_FREE, ("S",))]
    assert (extract.demo_sessions, extract.demo_rounds) == (1, 1)
    extract, rows = extracted(statement("session_open", demo), *links, operator="op-2")
    assert (extract.demo_sessions, extract.demo_rounds) == (0, 0)
