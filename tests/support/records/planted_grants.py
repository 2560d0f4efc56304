"""Planted faults of free bets: what the campaign paid, for which round, and what goes back to it."""

from __future__ import annotations

from functools import partial

from tests.support.records.cutting import Range, held
from tests.support.records.factory import Body
from tests.support.records.granted import free_bets
from tests.support.records.lies import OTHER_ULID, Change, Planted, add, drop, lie_at, put

_newest = partial(free_bets, law_version=None)

_LINKS = (
    ("the campaign paid less than ante and blind", "18 balance", 1, add("amount_minor", by=-1)),
    ("the campaign paid nothing", "18 balance", 1, put("amount_minor", value="0")),
    ("the campaign gets more back", "18 balance", 2, add("amount_minor", by=1)),
    ("the campaign gets nothing back of a void", "18 balance", 4, put("amount_minor", value="0")),
    ("a lost stake goes back to the campaign", "18 balance", 6, put("amount_minor", value="60")),
    ("a free bet for another round", "7 session", 1, put("round_id", value=OTHER_ULID)),
    ("the return of another round", "7 session", 2, put("round_id", value=OTHER_ULID)),
    ("the return of another free bet", "7 session", 2, put("grant_id", value=OTHER_ULID)),
    ("a debit turned round", "7 session", 1, put("direction", value="credit")),
    ("a return turned round", "7 session", 2, put("direction", value="debit")),
    ("a debit without its campaign", "7 session", 1, drop("campaign")),
    ("a debit without its expiry", "7 session", 1, drop("expiry_time")),
    ("a return with a campaign", "7 session", 2, put("campaign", value="spring")),
    ("a free bet that had expired", "8 rules", 1, put("expiry_time", value="2026-01-01T00:00:00.000Z")),
    (
        "a free bet that expires on a day that does not exist",
        "4 schema",
        1,
        put("expiry_time", value="2027-02-30T00:00:00.000Z"),
    ),
)


def one_grant(kind: str, _number: int, body: Body) -> None:
    """Every free bet is one and the same."""
    if kind == "free_bet":
        body["grant_id"] = OTHER_ULID


def one_transaction(kind: str, _number: int, body: Body) -> None:
    """Every transfer is told under one id."""
    if kind == "free_bet":
        body["transaction_id"] = OTHER_ULID


def in_cut(name: str, check: str, nth: int, change: Change, *ranges: Range) -> Planted:
    """A fault of the nth free_bet, in a file that does not hold the debit before it."""
    return Planted(f"{name}, cut", check, partial(_newest, lie_at("free_bet", nth, change)), held(*ranges))


_CUT = (
    in_cut("the campaign gets more back", "18 balance", 2, add("amount_minor", by=1), (4, 0)),
    in_cut("the campaign gets nothing back of a void", "18 balance", 4, put("amount_minor", value="0"), (10, 0)),
    in_cut("a lost stake goes back to the campaign", "18 balance", 6, put("amount_minor", value="60"), (14, 0)),
    in_cut("the return of another round", "7 session", 2, put("round_id", value=OTHER_ULID), (4, 0)),
    in_cut("a return with a campaign", "7 session", 2, put("campaign", value="spring"), (4, 0)),
    in_cut("a return turned round", "7 session", 2, put("direction", value="debit"), (4, 0)),
    Planted("the return of a free bet that paid for no round", "7 session", partial(_newest, skip=[1]), held((2, 0))),
    Planted("a free bet is given back twice, cut", "7 session", partial(_newest, again=[2]), held((4, 0))),
    Planted(
        "a return without the debit, which the file would hold", "7 session", partial(_newest, skip=[3]), held((4, 0))
    ),
    Planted(
        "the stakes of a hidden deck go back to the campaign in part, cut",
        "18 balance",
        partial(_newest, lie_at("free_bet", 4, add("amount_minor", by=-1)), reason="DECK_UNRECOVERABLE"),
        held((10, 0)),
    ),
    Planted(
        "free bets where none are allowed, whose debit is not in the file",
        "8 rules",
        partial(_newest, jurisdiction="gb-ukgc"),
        held((1, 2), (4, 6)),
    ),
    Planted(
        "free bets with play money, whose debit is not in the file",
        "8 rules",
        partial(_newest, is_demo=True),
        held((1, 2), (4, 6)),
    ),
    Planted(
        "free bets under a version without them, whose round is not in the file",
        "8 rules",
        partial(free_bets, law_version=1),
        held((1, 2), (6, 6)),
    ),
)

GRANTS = (
    *_CUT,
    *(Planted(name, check, partial(_newest, lie_at("free_bet", nth, lie))) for name, check, nth, lie in _LINKS),
    Planted("a free bet is given back twice", "7 session", partial(_newest, again=[2])),
    Planted("a granted stake is paid out", "7 session", partial(_newest, skip=[2])),
    Planted("a free bet is not given back before the end", "7 session", partial(_newest, skip=[8])),
    Planted("a return without a debit", "18 balance", partial(_newest, skip=[1])),
    Planted("a free bet twice", "23 ids", partial(_newest, one_grant)),
    Planted("a transaction of free bets twice", "23 ids", partial(_newest, one_transaction)),
    Planted("free bets where none are allowed", "8 rules", partial(_newest, jurisdiction="gb-ukgc")),
    Planted("free bets with play money", "8 rules", partial(_newest, is_demo=True)),
    Planted("free bets under a version without them", "8 rules", partial(free_bets, law_version=1)),
    Planted(
        "granted stakes among the player's own",
        "18 balance",
        partial(_newest, lie_at("participation_end", 1, add("staked_minor", by=40))),
    ),
)
"""Faults of free bets."""
