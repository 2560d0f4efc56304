"""Breaks as people read them: who says what, what is at stake, and whether the player is out of pocket."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from rgs.core.reconcile.classes import BreakClass as Kind
from rgs.core.reconcile.facts import Break, ReceiptRow, SignedTransfer, Ticket, WalletRow
from rgs.core.reconcile.matching import match_money
from rgs.core.reconcile.records import (
    match_identity,
    match_overdue,
    match_receipt,
    match_round,
    match_sessions,
    match_total,
)
from tests.unit.core.reconcile.test_matching import (
    END,
    KNOWN,
    ROW,
    SEAT,
    SESSION,
    STAGE,
    TERMS,
    TICKET,
    TRANSFER,
)

CREDIT = replace(TRANSFER, kind="credit", source="participation_end")
BET = replace(TRANSFER, source="transfer", reference="S:bet:R")
BACK = replace(ROW, kind="rollback", time_ms=600)
LONE = replace(TICKET, currency="EUR")
OPEN_SEAT = replace(SEAT, status="open", final="", ended_ms=0)
MOVED = "debit 1.00 EUR accepted 1970-01-01T00:00:00.500Z"
STAGED = "available 10.00 EUR, staked 1.00 EUR, returned 0.50 EUR"
ALL = ("op", "anna", "EUR", "uth")
LATE_MS = 900_000
LATE = "1970-01-01T00:15:00.000Z"

Said = tuple[Any, ...]
"""Class, what each source says, time, amount at stake, sources that are wrong or meant, whether somebody is owed."""


def said(breaks: Iterable[Break]) -> list[Said]:
    return [
        (found.kind, dict(found.found), found.time_ms, found.amount_minor, found.sources, found.is_owed)
        for found in breaks
    ]


def whose(found: Break) -> tuple[str, str, str, str]:
    return found.operator, found.player, found.currency, found.game


STATED, WALLET, REGULATOR = ("statements", "wallet"), ("wallet",), ("regulator",)
KEPT = ("statements", "regulator")

MONEY: dict[str, tuple[list[SignedTransfer], list[WalletRow], list[Ticket], dict[str, Any], list[Said]]] = {
    "no debit": (
        [TRANSFER], [], [TICKET], {},
        [(Kind.MISSING_DEBIT, {"statements": "debit 1.00 EUR", "wallet": "nothing"}, 500, 100, STATED, False)],
    ),
    "no credit": (
        [CREDIT], [], [], {},
        [(Kind.MISSING_CREDIT, {"statements": "credit 1.00 EUR", "wallet": "nothing"}, 500, 100, STATED, True)],
    ),
    "no credit yet": (
        [CREDIT], [], [], {"wallet_until_ms": 500},
        [(Kind.TIMING, {"statements": "credit 1.00 EUR", "wallet": "nothing"}, 500, 100, STATED, False)],
    ),
    "debited twice": (
        [TRANSFER], [ROW, replace(ROW, time_ms=501)], [TICKET], {},
        [
            (
                Kind.DUPLICATE,
                {"statements": "debit 1.00 EUR", "wallet": f"{MOVED}; {MOVED[:-2]}1Z"},
                500, 100, WALLET, True,
            )
        ],
    ),
    "two statements of one id": (
        [TRANSFER, replace(TRANSFER, statement="i", amount_minor=70)], [ROW], [], {},
        [
            (
                Kind.DUPLICATE,
                {"statement h": "debit 1.00 EUR", "statement i": "debit 0.70 EUR"},
                500, 100, ("statements",), False,
            )
        ],
    ),
    "taken and given back": (
        [TRANSFER], [ROW, BACK], [TICKET], {},
        [
            (
                Kind.STATE_DIFFERS,
                {
                    "statements": "debit 1.00 EUR",
                    "wallet": f"{MOVED}; rollback 1.00 EUR accepted 1970-01-01T00:00:00.600Z",
                },
                500, 100, STATED, False,
            )
        ],
    ),
    "no ticket": (
        [TRANSFER], [ROW], [], {},
        [
            (
                Kind.MISSING_AT_REGULATOR,
                {"statements": "purchase 1 of 1.00 EUR", "regulator": "nothing"},
                500, 100, KEPT, False,
            )
        ],
    ),
    "two tickets": (
        [TRANSFER], [ROW], [TICKET, TICKET], {},
        [
            (
                Kind.DUPLICATE,
                {"statements": "purchase 1 of 1.00 EUR", "regulator": "2 purchases of this number"},
                500, 100, REGULATOR, False,
            )
        ],
    ),
    "an amount that both tell otherwise": (
        [TRANSFER], [replace(ROW, amount_minor=110)], [replace(TICKET, amount_minor=150)], {},
        [
            (Kind.AMOUNT_DIFFERS, {"statements": "1.00 EUR", "regulator": "1.50 EUR"}, 500, 50, KEPT, False),
            (
                Kind.AMOUNT_DIFFERS,
                {"statements": "debit 1.00 EUR", "wallet": "debit 1.10 EUR"},
                500, 10, STATED, True,
            ),
        ],
    ),
    "a player whom both call otherwise": (
        [TRANSFER], [replace(ROW, player="bert")], [replace(TICKET, player="carla")], {},
        [
            (
                Kind.CONTENT_DIFFERS,
                {"statements": "player anna", "wallet": "player bert", "regulator": "player carla"},
                500, 100, (*STATED, "regulator"), False,
            )
        ],
    ),
    "a purchase by the session's id": (
        [TRANSFER], [replace(ROW, reference="S")], [TICKET], {},
        [(Kind.CONTENT_DIFFERS, {"statements": "reference P", "wallet": "reference S"}, 500, 100, STATED, False)],
    ),
    "another operator": (
        [TRANSFER], [replace(ROW, operator="op-2")], [TICKET], {},
        [(Kind.OPERATOR_DIFFERS, {"statements": "operator op", "wallet": "operator op-2"}, 500, 100, STATED, False)],
    ),
    "a time that the period of the report begins with": (
        [TRANSFER], [ROW], [replace(TICKET, time_ms=LATE_MS)], {"from_ms": LATE_MS},
        [
            (
                Kind.TIME_DIFFERS,
                {
                    "statements": "between 1970-01-01T00:00:00.400Z and 1970-01-01T00:00:00.500Z",
                    "regulator": LATE,
                },
                500, 100, KEPT, False,
            )
        ],
    ),
    "what nobody signed": (
        [], [ROW], [], {},
        [(Kind.MISSING_IN_RGS, {"statements": "nothing", "wallet": MOVED}, 500, 100, WALLET, True)],
    ),
    "what nobody signed, with a ticket": (
        [], [ROW], [TICKET], {},
        [
            (
                Kind.LINK_MISSING,
                {"statements": "nothing", "wallet": MOVED, "regulator": "purchase of 1.00 EUR"},
                500, 100, ("wallet", "regulator"), True,
            )
        ],
    ),
    "pending twice": (
        [], [replace(ROW, status="pending", amount_minor=7), replace(ROW, status="pending", time_ms=600)], [], {},
        [
            (
                Kind.STATE_DIFFERS,
                {
                    "statements": "nothing",
                    "wallet": "debit 0.07 EUR pending 1970-01-01T00:00:00.500Z;"
                    " debit 1.00 EUR pending 1970-01-01T00:00:00.600Z",
                },
                500, 7, WALLET, False,
            )
        ],
    ),
    "a ticket for which nothing moved": (
        [], [], [LONE], {},
        [
            (
                Kind.ORPHAN_TICKET,
                {"statements": "nothing", "wallet": "nothing", "regulator": "purchase 1 of 1.00 EUR"},
                500, 100, REGULATOR, False,
            )
        ],
    ),
    "a ticket that no statement names": (
        [], [], [LONE], {"wallet": False},
        [
            (
                Kind.LINK_MISSING,
                {"statements": "nothing", "regulator": "purchase 1 of 1.00 EUR"},
                500, 100, REGULATOR, False,
            )
        ],
    ),
    "what is not told": ([TRANSFER], [replace(ROW, operator="", reference="", player="")], [TICKET], {}, []),
    "a ticket that tells no player and no transaction": (
        [TRANSFER], [ROW], [replace(TICKET, player="", transaction_id="")], {}, [],
    ),
    "a bet by the session's id": ([BET], [replace(ROW, reference="S")], [], {}, []),
}  # fmt: skip


@pytest.mark.parametrize("name", MONEY)
def test_money(name: str) -> None:
    transfers, rows, tickets, terms, expected = MONEY[name]
    breaks = list(match_money("T", transfers, rows, tickets, replace(TERMS, **terms)))
    assert said(breaks) == expected
    assert {found.subject for found in breaks} <= {"transaction T"}
    assert {whose(found) for found in breaks if transfers} <= {ALL}
    assert {whose(found) for found in breaks if not transfers and rows} <= {("op", "anna", "EUR", "")}
    assert {whose(found) for found in breaks if not transfers and not rows} <= {("", "anna", "EUR", "")}


@pytest.mark.parametrize(("rows", "shown", "rest"), [(10, 10, []), (11, 10, ["and more"])])
def test_of_many_rows_ten_are_shown(rows: int, shown: int, rest: list[str]) -> None:
    (found,) = match_money("T", [], [ROW] * rows, [], TERMS)
    assert dict(found.found)["wallet"].split("; ") == [MOVED] * shown + rest
    (found,) = match_receipt(SEAT, [ReceiptRow("S", 1, f"x{number:02d}", 0) for number in range(rows)], TERMS)
    assert [opening for _, opening in found.found[1:]] == [f"x{number:02d}" for number in range(shown)]


def test_a_player_is_owed_what_the_wallet_took_too_much_not_what_the_regulator_was_told() -> None:
    rows, tickets = [replace(ROW, amount_minor=110)], [replace(TICKET, amount_minor=5_000)]
    breaks = list(match_money("T", [TRANSFER], rows, tickets, TERMS))
    assert sum(found.amount_minor for found in breaks if found.is_owed) == 10


# --- rounds and receipts ---


def test_a_stage_that_nobody_signed() -> None:
    (found,) = match_round(None, [replace(STAGE, currency="EUR")], TERMS)
    reported = (Kind.MISSING_IN_RGS, {"statements": "nothing", "regulator": STAGED}, 500, 100, REGULATOR, False)
    assert (said([found]), found.subject, whose(found)) == ([reported], "participation N stage 1", ("", "", "EUR", ""))


ROUNDS: dict[str, tuple[Any, Any, Said]] = {
    "open": (
        OPEN_SEAT,
        [STAGE],
        (Kind.STATE_DIFFERS, {"statements": "open", "regulator": STAGED}, 400, 100, KEPT, False),
    ),
    "missing": (
        SEAT,
        [],
        (Kind.MISSING_AT_REGULATOR, {"statements": STAGED, "regulator": "nothing"}, 500, 100, KEPT, False),
    ),
    "twice": (
        SEAT,
        [STAGE, STAGE],
        (Kind.DUPLICATE, {"statements": STAGED, "regulator": "2 stages of this number"}, 500, 100, REGULATOR, False),
    ),
    "session": (
        SEAT,
        [replace(STAGE, regulator_session_id="X")],
        (Kind.CONTENT_DIFFERS, {"statements": "M", "regulator": "X"}, 500, 100, KEPT, False),
    ),
    "hashes": (
        SEAT,
        [replace(STAGE, opening="x", final="y")],
        (
            Kind.CONTENT_DIFFERS,
            {
                "statements: opening": "o",
                "regulator: opening": "x",
                "statements: final": "f",
                "regulator: final": "y",
            },
            500,
            100,
            KEPT,
            False,
        ),
    ),
    "time": (
        replace(SEAT, ended_ms=LATE_MS),
        [STAGE],
        (
            Kind.TIME_DIFFERS,
            {"statements": f"ended {LATE}", "regulator": "1970-01-01T00:00:00.500Z"},
            LATE_MS,
            100,
            KEPT,
            False,
        ),
    ),
    "amounts": (
        SEAT,
        [replace(STAGE, available_minor=1)],
        (
            Kind.AMOUNT_DIFFERS,
            {"statements": STAGED, "regulator": STAGED.replace("10.00", "0.01")},
            500,
            100,
            KEPT,
            False,
        ),
    ),
}


@pytest.mark.parametrize("name", ROUNDS)
def test_rounds(name: str) -> None:
    seat, stages, expected = ROUNDS[name]
    (found,) = match_round(seat, stages, TERMS)
    assert (said([found]), found.subject, whose(found)) == ([expected], "session S stage 1", ALL)


@pytest.mark.parametrize(("kept_ms", "time_ms"), [(700, 700), (0, 10_000)])
def test_a_receipt_for_what_the_record_does_not_show(kept_ms: int, time_ms: int) -> None:
    """It counts from when it was kept; where nothing tells, from the moment of the report."""
    (found,) = match_receipt(None, [ReceiptRow("S", 1, "o", kept_ms)], TERMS)
    reported = (Kind.SEAT_MISSING, {"statements": "nothing", "receipts": "o"}, time_ms, 0, ("receipts",), False)
    assert (said([found]), found.subject) == ([reported], "session S stage 1")


def test_a_receipt_of_a_session_that_a_cut_record_holds() -> None:
    cut = replace(TERMS, is_cut=True)
    assert [found.kind for found in match_receipt(None, [ReceiptRow("S", 1, "o", 0)], cut)] == [Kind.SEAT_MISSING]
    assert list(match_receipt(None, [ReceiptRow("S", 1, "o", 0, is_session_known=False)], cut)) == []


def test_receipts_of_a_seat() -> None:
    (found,) = match_receipt(SEAT, [], TERMS)
    sources = ("statements", "receipts")
    reported = (Kind.SEAT_MISSING, {"statements": "o", "receipts": "nothing"}, 500, 100, sources, False)
    assert (said([found]), whose(found)) == ([reported], ALL)
    (found,) = match_receipt(SEAT, [ReceiptRow("S", 1, other, 0) for other in ("x", "o", "a")], TERMS)
    assert (found.kind, found.sources) == (Kind.CONTENT_DIFFERS, sources)
    assert found.found == (("statements", "o"), ("receipts", "a"), ("receipts", "x"))


def test_a_round_that_is_overdue() -> None:
    (found,) = match_overdue(OPEN_SEAT, TERMS)
    words = "opened 1970-01-01T00:00:00.400Z, due 1970-01-01T00:00:00.900Z"
    assert said([found]) == [(Kind.OVERDUE_OPENING, {"statements": words}, 400, 100, ("statements",), False)]
    assert list(match_overdue(OPEN_SEAT, replace(TERMS, from_ms=401))) == []


# --- sessions ---

SESSIONS: dict[str, tuple[dict[str, Any] | None, dict[str, Any] | None, Kind, str, str, int]] = {
    "currency": ({"currency": "USD"}, {}, Kind.CURRENCY_DIFFERS, "EUR", "USD", 0),
    "operator": ({"operator": "op-2"}, {}, Kind.OPERATOR_DIFFERS, "operator op", "operator op-2", 0),
    "reference": ({"reference": "X"}, {}, Kind.CONTENT_DIFFERS, "S", "reference X", 0),
    "ruleset": ({"ruleset": "x"}, {}, Kind.CONTENT_DIFFERS, "ruleset uth", "ruleset x", 0),
    "test regulator": (
        {"test_regulator": True}, {}, Kind.CONTENT_DIFFERS, "a session in earnest", "of a test regulator", 0,
    ),
    "opened": (
        {"opened_ms": LATE_MS}, {}, Kind.TIME_DIFFERS,
        "open between 1970-01-01T00:00:00.100Z and 1970-01-01T00:00:00.100Z", LATE, 0,
    ),
    "closed": (
        {"closed_ms": LATE_MS}, {}, Kind.TIME_DIFFERS,
        "closed between 1970-01-01T00:00:00.800Z and 1970-01-01T00:00:00.900Z", LATE, 0,
    ),
    "ended": (
        {}, {"time_ms": LATE_MS}, Kind.TIME_DIFFERS,
        "ended between 1970-01-01T00:00:00.700Z and 1970-01-01T00:00:00.800Z", LATE, 0,
    ),
    "unknown": (None, {}, Kind.LINK_MISSING, "opened 1970-01-01T00:00:00.100Z", "nothing", 0),
    "no end": ({}, None, Kind.STATE_DIFFERS, "ended closed", "closed", 0),
    "no close": ({"closes": 0, "closed_ms": 0}, {}, Kind.STATE_DIFFERS, "ended closed", "ended", 0),
    "end of another": (
        {}, {"regulator_participation_id": "X"}, Kind.CONTENT_DIFFERS, "participation N", "X", 0,
    ),
    "balance": ({}, {"final_balance_minor": 3}, Kind.AMOUNT_DIFFERS, "paid out 9.50 EUR", "0.03 EUR", 947),
    "rounds": ({}, {"rounds": 7}, Kind.STATE_DIFFERS, "1 rounds", "7 rounds", 0),
}  # fmt: skip


@pytest.mark.parametrize("name", SESSIONS)
def test_sessions(name: str) -> None:
    known, end, kind, ours, theirs, amount_minor = SESSIONS[name]
    known_ = [] if known is None else [replace(KNOWN, **known)]
    (found,) = match_sessions([SESSION], known_, [] if end is None else [replace(END, **end)], TERMS)
    assert said([found]) == [(kind, {"statements": ours, "regulator": theirs}, 900, amount_minor, KEPT, False)]
    assert (found.subject, whose(found)) == ("session S", ALL)


def test_sessions_and_ends_that_are_there_twice() -> None:
    two = "2 sessions of this id"
    reported: Said = (Kind.DUPLICATE, {"statements": "one session", "regulator": two}, 900, 0, KEPT, False)
    assert said(match_sessions([SESSION], [KNOWN, KNOWN], [END], TERMS)) == [reported]
    two = "2 ends of this participation"
    reported = (Kind.DUPLICATE, {"statements": "one end", "regulator": two}, 900, 0, REGULATOR, False)
    assert said(match_sessions([SESSION], [KNOWN], [END, END], TERMS)) == [reported]


def test_what_the_regulator_does_not_tell_of_a_session_is_not_compared() -> None:
    unreported = replace(KNOWN, reference="", ruleset="", operator="")
    assert list(match_sessions([SESSION], [unreported], [END], TERMS)) == []


def test_a_session_that_is_younger_than_the_regulator_is_timing() -> None:
    for until_ms, kind in ((SESSION.opened_ms, Kind.TIMING), (SESSION.opened_ms + 1, Kind.LINK_MISSING)):
        (found,) = match_sessions([SESSION], [], [], replace(TERMS, regulator_until_ms=until_ms))
        assert found.kind is kind


def test_of_two_sessions_at_a_table_the_one_without_an_end_of_its_own_meets_the_stray_one() -> None:
    other = replace(SESSION, session_id="S2", regulator_participation_id="N2")
    ends = [replace(END, regulator_participation_id="X"), replace(END, regulator_participation_id="N2")]
    (found,) = match_sessions([SESSION, other], [KNOWN], ends, TERMS)
    assert (found.kind, found.subject) == (Kind.CONTENT_DIFFERS, "session S")
    assert dict(found.found) == {"statements": "participation N", "regulator": "X"}


def test_a_session_of_which_nothing_is_signed() -> None:
    (found,) = match_sessions([], [replace(KNOWN, opened_ms=300)], [], TERMS)
    words = {"statements": "nothing", "regulator": "opened 1970-01-01T00:00:00.300Z"}
    assert said([found]) == [(Kind.LINK_MISSING, words, 300, 0, REGULATOR, False)]
    assert (found.subject, whose(found)) == ("regulator session M", ("op", "", "EUR", ""))


def test_what_has_not_ended_in_the_record_has_no_sums_to_compare() -> None:
    running = replace(SESSION, closed_ms=0, ended_ms=0, ending_ms=0, paid_out_minor=0, rounds=0)
    (found,) = match_sessions([running], [KNOWN], [END], TERMS)
    words = {"statements": "open", "regulator": "ended closed"}
    assert said([found]) == [(Kind.STATE_DIFFERS, words, 100, 0, KEPT, False)]


def test_a_break_counts_from_the_newest_that_is_known_of_its_session() -> None:
    for session, time_ms in ((SESSION, 900), (replace(SESSION, closed_ms=0), 800)):
        (found,) = match_identity(replace(session, bought_minor=999))
        assert found.time_ms == time_ms
    (found,) = match_sessions([replace(SESSION, closed_ms=0, ended_ms=0)], [], [], TERMS)
    assert found.time_ms == SESSION.opened_ms


def test_a_total_of_nothing_agrees_with_a_day_of_which_nothing_is_signed() -> None:
    """What the regulator's own rows say beside it is told stage by stage."""
    assert list(match_total("2026-11-22", "op", "EUR", {"bought": 0}, {"bought": 4}, {})) == []


def test_sums() -> None:
    (found,) = match_identity(replace(SESSION, paid_out_minor=940))
    words = "10.00 EUR - 1.00 EUR + 0.50 EUR = 9.50 EUR, paid out 9.40 EUR"
    assert said([found]) == [(Kind.AMOUNT_DIFFERS, {"statements": words}, 900, 10, ("statements",), False)]
    bought, rounds = match_total(
        "2026-11-22", "op", "EUR", {"rounds": 3, "bought": 7}, {"bought": 4}, {"bought": 5, "rounds": 2}
    )
    words_ = {"statements": "0.05 EUR", "regulator": "0.07 EUR", "regulator's own rows": "0.04 EUR"}
    assert said([bought]) == [(Kind.AMOUNT_DIFFERS, words_, 1_795_305_600_000, 2, REGULATOR, False)]
    assert (bought.subject, whose(bought)) == ("total bought of 2026-11-22 op EUR", ("op", "", "EUR", ""))
    words_ = {"statements": "2", "regulator": "3", "regulator's own rows": "0"}
    assert said([rounds]) == [(Kind.AMOUNT_DIFFERS, words_, 1_795_305_600_000, 0, REGULATOR, False)]
