"""The matching rules on facts alone: the corners that a whole day does not reach."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rgs.core.reconcile.classes import BUCKET_NAMES, MEANINGS, OLDEST, PRIORITY, BreakClass, bucket_of
from rgs.core.reconcile.facts import (
    Break,
    ReceiptRow,
    RegulatorEnd,
    RegulatorSessionRow,
    SeatFact,
    SessionFact,
    SignedTransfer,
    Stage,
    Ticket,
    WalletRow,
)
from rgs.core.reconcile.matching import Terms, match_money
from rgs.core.reconcile.records import (
    match_identity,
    match_overdue,
    match_receipt,
    match_round,
    match_sessions,
    match_total,
)
from rgs.core.reconcile.report import Sources, independence

FOREVER = 1 << 62
TERMS = Terms(10_000, 0, FOREVER, True, True, True, FOREVER, FOREVER, FOREVER)
TRANSFER = SignedTransfer(
    "T", "debit", 100, "EUR", "op", "anna", "uth", "S", "P", "P", 1, "M", "N", "purchase", 400, 500, "h", True
)
ROW = WalletRow("T", "debit", "anna", "EUR", 100, 500, "P", "accepted", None, "op", "")
TICKET = Ticket("M", "N", 1, "anna", 100, "T", 500)
SEAT = SeatFact(
    "S", 1, "R", "o", "f", 1000, 100, 50, 400, 500, 900, "settled", "EUR", "op", "uth", "anna", "M", "N", True
)
STAGE = Stage("M", "N", 1, 1000, 100, 50, "o", "f", 500)
SESSION = SessionFact(
    "S", "op", "EUR", "uth", "anna", "M", False, 100, 900, 700, 800, "P", "N", 1000, 100, 50, 950, 1, True, True
)
KNOWN = RegulatorSessionRow("M", "S", "op", "EUR", 100, "uth", False, 1, 900)
END = RegulatorEnd("M", "N", 1, 950, 800)


def money(
    transfers: list[SignedTransfer], rows: list[WalletRow], tickets: list[Ticket], **terms: Any
) -> list[BreakClass]:
    return [found.kind for found in match_money("T", transfers, rows, tickets, replace(TERMS, **terms))]


def test_what_agrees_is_no_break() -> None:
    assert money([TRANSFER], [ROW], [TICKET]) == []
    assert list(match_round(SEAT, [STAGE], TERMS)) == []
    assert list(match_receipt(SEAT, [ReceiptRow("S", 1, "o", 0)], TERMS)) == []
    assert list(match_sessions([SESSION], [KNOWN], [END], TERMS)) == []
    assert list(match_identity(SESSION)) == []


def test_a_test_regulator_holds_no_session_in_earnest() -> None:
    result = replace(KNOWN, test_regulator=True)
    (found,) = match_sessions([SESSION], [result], [END], TERMS)
    assert found.kind is BreakClass.CONTENT_DIFFERS
    assert list(match_sessions([replace(SESSION, test_regulator=True)], [result], [END], TERMS)) == []


def test_one_id_in_two_statements_is_a_duplicate() -> None:
    assert money([TRANSFER, replace(TRANSFER, statement="i")], [ROW], [TICKET]) == [BreakClass.DUPLICATE]


def test_a_bet_that_the_record_itself_takes_back_leaves_nothing() -> None:
    back = replace(TRANSFER, kind="rollback", source="transfer")
    bet = replace(TRANSFER, source="transfer")
    returned = replace(ROW, kind="rollback", time_ms=600)
    assert money([bet, back], [ROW, returned], []) == []
    assert money([bet, back], [ROW], []) == [BreakClass.MISSING_IN_RGS]
    assert money([bet, back], [replace(returned, status="tombstone"), replace(ROW, time_ms=700)], []) == [
        BreakClass.LATE_AFTER_ROLLBACK
    ]


def test_a_statement_that_failed_is_told_once_elsewhere() -> None:
    assert money([replace(TRANSFER, is_sound=False)], [], []) == []
    assert list(match_round(replace(SEAT, is_sound=False), [], TERMS)) == []
    assert list(match_receipt(replace(SEAT, is_sound=False), [], TERMS)) == []
    assert list(match_sessions([replace(SESSION, is_sound=False)], [], [], TERMS)) == []
    assert list(match_identity(replace(SESSION, is_sound=False, paid_out_minor=1))) == []


def test_what_a_cut_export_does_not_tell_is_not_compared() -> None:
    unknown = replace(TRANSFER, currency="", player="")
    assert money([unknown], [replace(ROW, currency="USD", player="bert")], [replace(TICKET, player="bert")]) == []
    assert list(match_sessions([replace(SESSION, is_whole=False)], [], [], TERMS)) == []
    assert list(match_sessions([], [KNOWN], [], replace(TERMS, is_cut=True))) == []
    assert list(match_receipt(None, [ReceiptRow("X", 1, "o", 0, False)], replace(TERMS, is_cut=True))) == []
    late = replace(ROW, time_ms=20_000)
    assert money([], [late], [], is_cut=True) == []
    assert money([], [late], []) == [BreakClass.MISSING_IN_RGS]


def test_a_payout_of_nothing_may_be_left_unsaid() -> None:
    credit = replace(TRANSFER, kind="credit", amount_minor=0, source="participation_end")
    assert money([credit], [], []) == []


def test_a_return_of_nothing_is_looked_for() -> None:
    """It tells the wallet that the round has ended; nobody is owed anything where it is missing."""
    lost = replace(TRANSFER, kind="credit", amount_minor=0, source="transfer")
    row = replace(ROW, kind="credit", amount_minor=0)
    assert money([lost], [row], []) == []
    assert money([lost], [], []) == [BreakClass.STATE_DIFFERS]
    assert not any(found.is_owed for found in match_money("t", [lost], [], [], TERMS))
    assert money([lost], [], [], wallet_until_ms=400) == [BreakClass.TIMING]
    assert money([lost], [replace(row, amount_minor=1)], []) == [BreakClass.AMOUNT_DIFFERS]


def test_an_extra_debit_that_was_reversed_is_no_break() -> None:
    assert money([TRANSFER], [ROW, ROW, replace(ROW, kind="rollback")], [TICKET]) == []


def test_outside_the_period_nothing_is_due() -> None:
    period: dict[str, Any] = {"from_ms": 600, "to_ms": 700}
    assert money([TRANSFER], [], [], **period) == []
    assert money([TRANSFER], [replace(ROW, amount_minor=1)], [], **period) == []
    assert money([TRANSFER], [replace(ROW, time_ms=650)], [TICKET], **period) == [BreakClass.TIMING]
    assert money([], [ROW], [TICKET], **period) == []
    assert money([], [], [TICKET], **period) == []
    assert list(match_round(SEAT, [], replace(TERMS, **period))) == []
    assert list(match_round(None, [STAGE], replace(TERMS, **period))) == []
    assert list(match_receipt(None, [ReceiptRow("S", 1, "o", 500)], replace(TERMS, **period))) == []
    assert list(match_sessions([], [KNOWN], [], replace(TERMS, **period))) == []


@pytest.mark.parametrize("until", ["wallet_until_ms", "regulator_until_ms"])
def test_behind_the_cut_off_it_is_timing(until: str) -> None:
    rows, tickets = ([], [TICKET]) if until == "wallet_until_ms" else ([ROW], [])
    assert money([TRANSFER], rows, tickets, **{until: 400}) == [BreakClass.TIMING]
    terms = replace(TERMS, regulator_until_ms=50, receipts_until_ms=50)
    assert [found.kind for found in match_round(SEAT, [], terms)] == [BreakClass.TIMING]
    assert [found.kind for found in match_receipt(SEAT, [], terms)] == [BreakClass.TIMING]
    assert [found.kind for found in match_sessions([SESSION], [], [], terms)] == [BreakClass.TIMING]
    open_there = replace(KNOWN, closes=0, closed_ms=0)
    assert [found.kind for found in match_sessions([SESSION], [open_there], [], terms)] == [BreakClass.TIMING]


def test_sources_that_were_not_given_are_not_compared() -> None:
    assert money([TRANSFER], [], [], wallet=False, regulator=False) == []
    assert money([], [], [TICKET], wallet=False) == [BreakClass.LINK_MISSING]
    assert money([], [], [replace(TICKET, is_session_known=False)]) == []
    assert list(match_round(None, [replace(STAGE, is_session_known=False)], TERMS)) == []
    assert money([replace(TRANSFER, source="transfer")], [ROW], []) == []  # a bet is no right of participation


def test_a_stage_for_a_round_that_is_open() -> None:
    open_seat = replace(SEAT, status="open", final="", ended_ms=0)
    assert [found.kind for found in match_round(open_seat, [STAGE], TERMS)] == [BreakClass.STATE_DIFFERS]
    assert list(match_round(open_seat, [replace(STAGE, time_ms=20_000)], replace(TERMS, is_cut=True))) == []
    assert list(match_round(open_seat, [], TERMS)) == []
    assert [found.kind for found in match_overdue(open_seat, TERMS)] == [BreakClass.OVERDUE_OPENING]
    assert list(match_overdue(open_seat, replace(TERMS, as_of_ms=900))) == []


def test_a_session_that_nobody_knows_of_but_by_its_end() -> None:
    assert list(match_sessions([], [], [END], TERMS)) == []


def test_over_at_the_regulator_and_open_in_the_record() -> None:
    running = replace(SESSION, closed_ms=0, ended_ms=0)
    assert [found.kind for found in match_sessions([running], [KNOWN], [END], TERMS)] == [BreakClass.STATE_DIFFERS]
    later = replace(TERMS, is_cut=True, as_of_ms=700)
    assert list(match_sessions([running], [KNOWN], [END], later)) == []


def test_an_identity_that_does_not_hold() -> None:
    (found,) = match_identity(replace(SESSION, paid_out_minor=951))
    assert (found.kind, found.amount_minor) == (BreakClass.AMOUNT_DIFFERS, 1)
    sums = "10.00 EUR - 1.00 EUR + 0.50 EUR = 9.50 EUR, paid out 9.51 EUR"
    assert found.found == (("statements", sums),)


def test_a_total_that_single_rows_explain_is_not_told_twice() -> None:
    ours, listed = {"bought": 5}, {"bought": 4}
    for declared in (4, 5):
        assert list(match_total("2026-11-22", "op", "EUR", {"bought": declared}, listed, ours)) == []
    (found,) = match_total("2026-11-22", "op", "EUR", {"bought": 7}, listed, ours)
    assert (found.kind, found.amount_minor, found.time_ms) == (BreakClass.AMOUNT_DIFFERS, 2, 1_795_305_600_000)


def test_an_id_binds_to_what_was_found() -> None:
    one = Break(BreakClass.DUPLICATE, "transaction T", (("wallet", "x"),), 5)
    assert one.break_id == replace(one, time_ms=6).break_id
    assert one.break_id != replace(one, found=(("wallet", "y"),)).break_id
    assert len(one.break_id) == 32


def test_every_class_has_a_meaning_and_owed_players_come_first() -> None:
    assert set(MEANINGS) == set(BreakClass) == set(PRIORITY)
    assert min(PRIORITY, key=lambda kind: PRIORITY[kind]) is BreakClass.MISSING_CREDIT


def test_ages() -> None:
    minute = 60_000
    ages = (0, 15 * minute, 60 * minute, 24 * 60 * minute, 7 * 24 * 60 * minute)
    assert tuple(bucket_of(age) for age in ages) == BUCKET_NAMES
    assert bucket_of(ages[-1] - 1) != OLDEST


@pytest.mark.parametrize(
    ("transfer", "row", "is_owed"),
    [
        (("debit", 100), ("debit", 101), True),
        (("debit", 100), ("debit", 99), False),
        (("credit", 100), ("credit", 99), True),
        (("credit", 100), ("credit", 101), False),
        (("credit", 100), ("debit", 100), True),
        (("debit", 100), ("credit", 100), False),
    ],
)
def test_who_is_short_by_an_amount(transfer: tuple[str, int], row: tuple[str, int], is_owed: bool) -> None:
    ours = replace(TRANSFER, kind=transfer[0], amount_minor=transfer[1], source="participation_end")
    theirs = replace(ROW, kind=row[0], amount_minor=row[1])
    (found,) = match_money("T", [ours], [theirs], [], TERMS)
    kind = BreakClass.AMOUNT_DIFFERS if transfer[0] == row[0] else BreakClass.DIRECTION_DIFFERS
    assert (found.kind, found.is_owed) == (kind, is_owed)
    assert found.amount_minor == (1 if transfer[0] == row[0] else 200)


def test_another_currency_owes_nobody_anything() -> None:
    """Amounts of two currencies are not compared, so nothing says that the player got too little."""
    credit = replace(TRANSFER, kind="credit", source="participation_end")
    row = replace(ROW, kind="credit", currency="USD", amount_minor=99)
    (found,) = match_money("T", [credit], [row], [], TERMS)
    assert (found.kind, found.is_owed, found.amount_minor) == (BreakClass.CURRENCY_DIFFERS, False, 100)


def test_an_end_that_is_no_sessions_is_one_too_many() -> None:
    """Unless the export is cut: it may be that of a session outside the files."""
    ends = [END, replace(END, regulator_participation_id="X")]
    (found,) = match_sessions([SESSION], [KNOWN], ends, TERMS)
    assert (found.kind, found.found[1]) == (BreakClass.DUPLICATE, ("regulator", "2 ends of this participation"))
    assert list(match_sessions([SESSION], [KNOWN], ends, replace(TERMS, is_cut=True))) == []


def test_over_in_the_record_and_open_at_the_regulator() -> None:
    (found,) = match_sessions([SESSION], [replace(KNOWN, closes=0, closed_ms=0)], [], TERMS)
    assert found.kind is BreakClass.STATE_DIFFERS
    assert found.found == (("statements", "ended closed"), ("regulator", "open"))


def test_of_two_stages_for_a_round_that_is_open_the_first_is_named() -> None:
    open_seat = replace(SEAT, status="open", final="", ended_ms=0)
    (one,) = match_round(open_seat, [STAGE], TERMS)
    (found,) = match_round(open_seat, [STAGE, replace(STAGE, staked_minor=7)], TERMS)
    assert found.found == one.found


@pytest.mark.parametrize("is_test", [False, True])
def test_which_source_is_independent_and_why(is_test: bool) -> None:
    made = Sources(
        wallet=True, receipts=False, regulator=True, has_rounds=True, seamless=is_test, embedded_wallet=is_test,
        test_regulator=is_test,
    )  # fmt: skip
    rows = independence(made)
    assert {row["check"]: row["independent"] for row in rows} == {
        "purchases and payouts": not is_test,
        "stakes and returns of single rounds": False,
        "every round dealt is in the record": False,
        "sessions and rights of participation": not is_test,
        "stages of the regulator": False,
        "outcome and settlement of each round": True,
    }
    whys = {row["check"]: row["why"] for row in rows}
    own = [check for check, why in whys.items() if why.startswith("this is a test regulator")]
    regulators = ["sessions and rights of participation", "stages of the regulator"]
    assert own == (regulators if is_test else [])
    assert ("our own" in whys["purchases and payouts"]) is is_test


def test_money_that_came_twice_or_back_too_often_is_named_though_the_record_names_nothing() -> None:
    back = replace(ROW, kind="rollback", time_ms=600)
    assert money([], [ROW, replace(ROW, time_ms=510), back], []) == [BreakClass.DUPLICATE]
    assert money([], [replace(ROW, kind="credit")], []) == [BreakClass.MISSING_IN_RGS]


def test_a_day_that_begins_before_the_period_is_in_it_in_part() -> None:
    period = replace(TERMS, from_ms=600, to_ms=700)
    assert [period.is_in_part(*day) for day in ((500, 600), (500, 601), (699, 800), (700, 800))] == [
        False, True, True, False,
    ]  # fmt: skip
