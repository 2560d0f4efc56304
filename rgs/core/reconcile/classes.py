"""The break classes: what each means, what is done about it by default, and their order, the most urgent first.

A player who is owed money comes first. Amounts have no tolerance. Times have one, because the others' clocks are their
own (`CLOCK_LIMIT_S`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class BreakClass(StrEnum):
    """What is wrong, most urgent first."""

    MISSING_CREDIT = "missing_credit_in_wallet"
    DUPLICATE = "duplicate"
    LATE_AFTER_ROLLBACK = "late_after_rollback"
    MISSING_IN_RGS = "missing_in_rgs"
    CONTENT_DIFFERS = "content_differs"
    SEAT_MISSING = "seat_missing"
    DIRECTION_DIFFERS = "direction_differs"
    AMOUNT_DIFFERS = "amount_differs"
    CURRENCY_DIFFERS = "currency_differs"
    OPERATOR_DIFFERS = "operator_differs"
    BALANCE_DIFFERS = "balance_differs"
    MISSING_AT_REGULATOR = "missing_at_regulator"
    LINK_MISSING = "link_missing"
    ORPHAN_TICKET = "orphan_ticket"
    MISSING_DEBIT = "missing_debit_in_wallet"
    OVERDUE_OPENING = "overdue_opening"
    STATE_DIFFERS = "state_differs"
    TIME_DIFFERS = "time_differs"
    TIMING = "timing"


@dataclass(frozen=True, slots=True)
class Meaning:
    """One class for people: a title, what it says, and the default action."""

    title: str
    says: str
    action: str


MEANINGS: Final[dict[BreakClass, Meaning]] = {
    BreakClass.MISSING_CREDIT: Meaning(
        "Missing credit in the wallet",
        "The record says paid out; the wallet shows no such credit, or took it back. The player is owed.",
        "Send the same credit with the same id again until it lands; never cancel it.",
    ),
    BreakClass.DUPLICATE: Meaning(
        "Duplicate",
        "One transaction id moved money more than once, or one number was registered twice.",
        "Reverse the extra one; open an incident: idempotency has failed.",
    ),
    BreakClass.LATE_AFTER_ROLLBACK: Meaning(
        "Late after rollback",
        "A debit was posted after its rollback: the money of a cancelled purchase or bet was taken.",
        "Give the money back; the wallet keeps no tombstones.",
    ),
    BreakClass.MISSING_IN_RGS: Meaning(
        "Missing in the RGS",
        "The wallet moved money, or the regulator holds a stage, that no signed statement names.",
        "Give a debit back by rollback; open an incident.",
    ),
    BreakClass.CONTENT_DIFFERS: Meaning(
        "Content differs",
        "A statement does not verify, or a hash, a player, a ruleset, an id or a reference is another than the one"
        " signed.",
        "Open an integrity incident: tampering, or another version.",
    ),
    BreakClass.SEAT_MISSING: Meaning(
        "Seat missing",
        "A seat was dealt that the record does not show, or one that the operator holds no receipt for.",
        "Open an integrity incident; ask for the statement by session and round number.",
    ),
    BreakClass.DIRECTION_DIFFERS: Meaning(
        "Direction differs",
        "A debit is reported as a credit, or a credit as a debit: the money went the other way.",
        "Stop the adapter that is wrong (signs); correct by a new entry.",
    ),
    BreakClass.AMOUNT_DIFFERS: Meaning(
        "Amount differs",
        "The same id stands for another amount, or a sum is not what its parts come to.",
        "Stop the adapter that is wrong (units, rounding); correct by a new entry.",
    ),
    BreakClass.CURRENCY_DIFFERS: Meaning(
        "Currency differs",
        "The same id stands in another currency.",
        "Stop the adapter that is wrong; correct by a new entry.",
    ),
    BreakClass.OPERATOR_DIFFERS: Meaning(
        "Operator differs",
        "The same id stands under another operator.",
        "Find out whose it is: the books of two operators are mixed, or an adapter names the wrong one.",
    ),
    BreakClass.BALANCE_DIFFERS: Meaning(
        "Balance differs",
        "A balance in the wallet statement is not the balance before it plus what moved.",
        "Find the row that is missing or wrong in the wallet's own account.",
    ),
    BreakClass.MISSING_AT_REGULATOR: Meaning(
        "Missing at the regulator",
        "A purchase or a stage that is signed is not in the regulator's book.",
        "Compliance break: report it again with the same id; tell the compliance officer.",
    ),
    BreakClass.LINK_MISSING: Meaning(
        "Link missing",
        "A session or purchase at the regulator has no signed link, or a signed session is unknown to the regulator.",
        "Find the operation by its ids; finish it or take it back.",
    ),
    BreakClass.ORPHAN_TICKET: Meaning(
        "Orphan ticket",
        "A right of participation was bought at the regulator; no money moved and no statement names it.",
        "Cancel the ticket within the time allowed.",
    ),
    BreakClass.MISSING_DEBIT: Meaning(
        "Missing debit in the wallet",
        "The record says bought or staked; the wallet shows no such debit.",
        "Ask the wallet by id; then debit again or cancel the participation, as the contract says.",
    ),
    BreakClass.OVERDUE_OPENING: Meaning(
        "Overdue opening without final",
        "A round is open for longer than the jurisdiction allows.",
        "Let the server finish it by the ruleset's default decisions.",
    ),
    BreakClass.STATE_DIFFERS: Meaning(
        "State differs",
        "Ended, closed or accepted on one side, open, pending or taken back on the other.",
        "Send the end or the close again with the same id.",
    ),
    BreakClass.TIME_DIFFERS: Meaning(
        "Time differs",
        "The other side dates it outside the time in which the server asked for it, by more than clocks may differ.",
        "Find out which clock or time zone is wrong, or what was delayed for so long.",
    ),
    BreakClass.TIMING: Meaning(
        "Timing, cut-off",
        "The other side of it falls after the cut-off or into another period.",
        "Hold for one cycle; then it counts as missing.",
    ),
}
PRIORITY: Final[dict[BreakClass, int]] = {member: place for place, member in enumerate(BreakClass, 1)}
CLOCK_LIMIT_S: Final = 300
"""The most that the clocks of wallet and regulator may differ from the server's, unless a run says otherwise."""
_MINUTE_MS: Final = 60_000
BUCKETS: Final[tuple[tuple[str, int], ...]] = (
    ("under 15 min", 15 * _MINUTE_MS),
    ("under 1 h", 60 * _MINUTE_MS),
    ("under 24 h", 24 * 60 * _MINUTE_MS),
    ("1 to 7 days", 7 * 24 * 60 * _MINUTE_MS),
)
OLDEST: Final = "over 7 days"
BUCKET_NAMES: Final = (*(name for name, _ in BUCKETS), OLDEST)


def bucket_of(age_ms: int) -> str:
    """The bucket of an age; an age below 0 is in the youngest."""
    return next((name for name, below_ms in BUCKETS if age_ms < below_ms), OLDEST)
