"""The contract of a regulator's system: its messages, its answers and its rejections.

It implements RULEBOOK R-1, R-2 and regulation ID-01 to ID-05 (the regulator issues both ids, each of 16
characters; purchases and stages are numbered without gaps), PG-09 (no cancellation: a void round is a stage whose
stake is returned), PG-10 (order of messages), PG-11 (transaction ids), IT-04 (cap per participation) and IT-06 (the
amounts of a participation balance).

What every regulator promises:

- The same transaction id with the same data gets the first answer again; with other data it is a conflict. A retry has
  the id of the first call; only reports of stages get a new one, because known stages are skipped.
- A refusal has no effect and carries its code in `metadata["rejection"]`.
- A call without an answer raises RegulatorUnavailableError. The call may have had its effect; the same message with
  the same transaction id settles it.

Without an id of the regulator no round starts. The embedded default is
`rgs.adapters.embedded.regulator.EmbeddedRegulator`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum, unique
from typing import Any, Final, Protocol

from rgs.core import errors
from rgs.core.ids import REGULATOR_ID_ALPHABET, REGULATOR_ID_CHARACTERS, check_name, check_reference, check_ulid
from rgs.core.money import parse_currency
from rgs.core.times import parse_date
from rgs.ports.amounts import check_amount


@dataclass(frozen=True, slots=True)
class SessionOpening:
    """A session begins. `reference` is our own id of it; the cap is for all purchases of a participation together.

    `test_regulator_allowed` says whether the jurisdiction allows a test regulator. It is not sent to a real system.
    """

    transaction_id: str
    reference: str
    operator: str
    jurisdiction: str
    test_regulator_allowed: bool
    ruleset: str
    currency: str
    participation_cap_minor: int
    open_ms: int


@dataclass(frozen=True, slots=True)
class Purchase:
    """A right of participation (`purchase_no` 1) or more of it. `reference` is our own id of the participation."""

    transaction_id: str
    regulator_session_id: str
    reference: str
    player: str
    purchase_no: int
    amount_minor: int
    purchase_ms: int


@dataclass(frozen=True, slots=True)
class ParticipationEnd:
    """A participation is over. `final_balance_minor` goes back to the wallet."""

    transaction_id: str
    regulator_session_id: str
    regulator_participation_id: str
    final_balance_minor: int
    rounds: int
    end_ms: int


@dataclass(frozen=True, slots=True)
class SessionClose:
    """A session is over."""

    transaction_id: str
    regulator_session_id: str
    close_ms: int


@dataclass(frozen=True, slots=True)
class StageReport:
    """One played round for the regulator. `available_minor` is the balance before its stakes."""

    session_id: str
    stage_no: int
    regulator_session_id: str
    regulator_participation_id: str
    available_minor: int
    staked_minor: int
    returned_minor: int
    opening_hash: str
    end_ms: int
    traceparent: str | None = None
    """The trace of the call that made it (W3C Trace Context), which the sending continues; None: it was not traced."""
    final_hash: str = ""


_OURS: Final = frozenset({"test_regulator_allowed", "session_id", "traceparent"})
_REGULATOR_ID: Final = re.compile(f"[{REGULATOR_ID_ALPHABET}]{{{REGULATOR_ID_CHARACTERS}}}")


@unique
class Rejection(StrEnum):
    """Why a regulator refuses. The names are ours: its adapter maps the codes of a real system to them."""

    TRANSACTION_CONFLICT = "TRANSACTION_CONFLICT"  # the transaction id was used with other data
    REFERENCE_USED = "REFERENCE_USED"  # our own id of a session or participation stands for another one already
    UNKNOWN_SESSION = "UNKNOWN_SESSION"
    UNKNOWN_PARTICIPATION = "UNKNOWN_PARTICIPATION"  # no such participation in that session
    SESSION_CLOSED = "SESSION_CLOSED"
    DATE_IN_FUTURE = "DATE_IN_FUTURE"
    AMOUNT_NOT_POSITIVE = "AMOUNT_NOT_POSITIVE"
    ALREADY_SEATED = "ALREADY_SEATED"  # the player has, or had, a participation in this session
    PARTICIPATION_ENDED = "PARTICIPATION_ENDED"
    PURCHASE_GAP = "PURCHASE_GAP"  # not the purchase number that comes next; `metadata["limit"]` is
    ABOVE_MAXIMUM = "ABOVE_MAXIMUM"  # all purchases of the participation together would exceed the cap given at opening
    STAGE_CONFLICT = "STAGE_CONFLICT"  # the stage was reported before with other data
    STAGE_GAP = "STAGE_GAP"  # not the stage number that comes next; `metadata["limit"]` is
    AVAILABLE_MISMATCH = "AVAILABLE_MISMATCH"  # not a balance that the purchases and stages before it leave
    STAKE_NOT_COVERED = "STAKE_NOT_COVERED"  # more staked than was bought and returned
    ENDED_TWICE = "ENDED_TWICE"
    ROUNDS_MISMATCH = "ROUNDS_MISMATCH"  # not as many stages reported as the end claims rounds
    BALANCE_MISMATCH = "BALANCE_MISMATCH"  # the final balance is not bought - staked + returned
    SEATED = "SEATED"  # a participation of the session has not ended
    TOTALS_MISMATCH = "TOTALS_MISMATCH"  # the day's totals are not those of the messages; `metadata["limit"]` is
    LIMIT_REACHED = "LIMIT_REACHED"  # a limit of the player's that the regulator keeps
    JURISDICTION_REFUSED = "JURISDICTION_REFUSED"  # this system does not serve that jurisdiction, or that game in it
    INVALID_FIELD = "INVALID_FIELD"  # a field is missing, malformed or outside its limit; `metadata["field"]`


_ERROR_OF: Final[Mapping[Rejection, type[errors.RgsError]]] = {
    Rejection.TRANSACTION_CONFLICT: errors.IdempotencyConflictError,
    Rejection.SESSION_CLOSED: errors.SessionClosedError,
    Rejection.AMOUNT_NOT_POSITIVE: errors.InvalidFieldError,
    Rejection.ALREADY_SEATED: errors.AlreadySeatedError,
    Rejection.PARTICIPATION_ENDED: errors.ParticipationEndedError,
    Rejection.ABOVE_MAXIMUM: errors.ParticipationCapError,
    Rejection.STAGE_CONFLICT: errors.IdempotencyConflictError,
    Rejection.ENDED_TWICE: errors.ParticipationEndedError,
    Rejection.SEATED: errors.ParticipationOpenError,
    Rejection.JURISDICTION_REFUSED: errors.JurisdictionError,
    Rejection.INVALID_FIELD: errors.InvalidFieldError,
}
"""Rejections with an error class of their own; every other rejection is a RegulatorRefusedError."""


def refusal_of(rejection: Rejection, message: str, *, field: str | None = None, **metadata: object) -> errors.RgsError:
    """The error of a rejection, for every adapter; `metadata["rejection"]` is the code."""
    error = _ERROR_OF.get(rejection, errors.RegulatorRefusedError)
    return error(message, field=field, rejection=rejection.value, **metadata)


def is_regulator_id(text: str) -> bool:
    """Whether `text` has the form of a regulator's id (ID-03: 16 of 0-9 A-Z)."""
    return _REGULATOR_ID.fullmatch(text) is not None


def check_regulator_id(text: str, field: str) -> str:
    """`text` if it has the form of a regulator's id; InvalidFieldError naming `field` if not."""
    if not is_regulator_id(text):
        raise errors.InvalidFieldError(
            f"{field} is not {REGULATOR_ID_CHARACTERS} capital letters and digits", field=field, value=text[:40]
        )
    return text


def _check_purchase_amount(value: int, field: str) -> int:
    if type(value) is int and value <= 0:
        message = f"the amount of a purchase must be positive, not {value}"
        raise refusal_of(Rejection.AMOUNT_NOT_POSITIVE, message, field=field, value=value)
    return check_amount(value, field, 1)


def _at_least(least: int) -> Callable[[int, str], int]:
    return lambda value, field: check_amount(value, field, least)


_CHECKS: Final[Mapping[str, Callable[[Any, str], object]]] = {
    "transaction_id": check_ulid,
    "reference": check_reference,
    "operator": check_name,
    "jurisdiction": check_name,
    "ruleset": check_name,
    "node": check_name,
    "player": check_reference,
    "currency": lambda value, _: parse_currency(value),
    "day": lambda value, _: parse_date(value),
    "regulator_session_id": check_regulator_id,
    "regulator_participation_id": check_regulator_id,
    "amount_minor": _check_purchase_amount,
    **dict.fromkeys(("participation_cap_minor", "purchase_no", "stage_no"), _at_least(1)),
    **dict.fromkeys(("available_minor", "staked_minor", "returned_minor", "bought_minor"), _at_least(0)),
    **dict.fromkeys(("final_balance_minor", "rounds", "purchases", "stages", "ends"), _at_least(0)),
}
"""How the field of a message must be, by its name, in every message."""


def checked_fields(message: _Message) -> dict[str, Any]:
    """The fields of a message that a regulator gets, by name; InvalidFieldError or FormatError for a bad value.

    The field `test_regulator_allowed` and a stage's `session_id` and `traceparent` are left out: they stay with us.
    """
    sent = {field.name: getattr(message, field.name) for field in fields(message) if field.name not in _OURS}
    for name, value in sent.items():
        if name in _CHECKS:
            _CHECKS[name](value, name)
    return sent


def verify_test_regulator_allowed(opening: SessionOpening) -> None:
    """Raise JurisdictionError unless the session's jurisdiction allows a test regulator."""
    if opening.test_regulator_allowed is not True:
        raise errors.JurisdictionError(
            f"jurisdiction {opening.jurisdiction} allows no test regulator",
            field="jurisdiction",
            jurisdiction=opening.jurisdiction,
        )


@dataclass(frozen=True, slots=True)
class RegulatorSession:
    """The id that the regulator issued for a session."""

    regulator_session_id: str
    test_regulator: bool


@dataclass(frozen=True, slots=True)
class RegulatorParticipation:
    """The id that the regulator issued with the first purchase; every further purchase repeats it."""

    regulator_participation_id: str
    test_regulator: bool


@dataclass(frozen=True, slots=True)
class RegulatorReceipt:
    """The regulator has entered the message."""

    transaction_id: str
    test_regulator: bool


@dataclass(frozen=True, slots=True)
class DayTotals:
    """The sums of one operator's sessions in one currency on one UTC day, by the time of each event; minor units."""

    purchases: int
    bought_minor: int
    stages: int
    staked_minor: int
    returned_minor: int
    ends: int
    final_balance_minor: int


@dataclass(frozen=True, slots=True)
class DayAlignment:
    """The totals of a day that is over. `day` is "YYYY-MM-DD", UTC."""

    transaction_id: str
    operator: str
    currency: str
    day: str
    totals: DayTotals


@dataclass(frozen=True, slots=True)
class SoftwareModule:
    """One module of the running software, with hex digests; `sha1` may be empty."""

    name: str
    version: str
    sha256: str
    sha1: str = ""


@dataclass(frozen=True, slots=True)
class ModuleReport:
    """The modules that run on a node, reported once a day and after a start."""

    transaction_id: str
    node: str
    modules: tuple[SoftwareModule, ...]
    report_ms: int


_Message = SessionOpening | Purchase | StageReport | ParticipationEnd | SessionClose | DayAlignment | DayTotals


class Regulator(Protocol):
    """A regulator's system. Every method names its rejections, in the order of the checks.

    Every method may raise RegulatorUnavailableError, after which the outcome of the call is unknown; InvalidFieldError
    or FormatError for a malformed value; and the rejection TRANSACTION_CONFLICT.
    """

    async def open_session(self, opening: SessionOpening) -> RegulatorSession:
        """Ask for a session's id. JurisdictionError where this system may not serve; DATE_IN_FUTURE, REFERENCE_USED."""

    async def buy_participation(self, purchase: Purchase, issued: str = "") -> RegulatorParticipation:
        """Ask for a participation's id, or add to it. `issued` is the id of the purchases before: an answer with
        another one is a contradiction, and counts as none.

        AMOUNT_NOT_POSITIVE, UNKNOWN_SESSION, SESSION_CLOSED, DATE_IN_FUTURE, ALREADY_SEATED, REFERENCE_USED,
        PARTICIPATION_ENDED, PURCHASE_GAP, ABOVE_MAXIMUM.
        """

    async def report_stages(self, transaction_id: str, stages: Sequence[StageReport]) -> RegulatorReceipt:
        """Report played rounds, those of one participation in order. The system enters the whole batch or nothing.

        `stage_no` counts a participation's rounds from 1; `available_minor` is its balance before the stakes. A stage
        that was reported before with the same data is skipped, whatever the transaction id. `metadata["index"]` (from
        0) names the refused stage: UNKNOWN_PARTICIPATION, STAGE_CONFLICT, PARTICIPATION_ENDED, STAGE_GAP,
        DATE_IN_FUTURE, AVAILABLE_MISMATCH, STAKE_NOT_COVERED.
        """

    async def end_participation(self, end: ParticipationEnd) -> RegulatorReceipt:
        """Report the final balance.

        UNKNOWN_PARTICIPATION, ENDED_TWICE, DATE_IN_FUTURE, ROUNDS_MISMATCH, BALANCE_MISMATCH.
        """

    async def close_session(self, close: SessionClose) -> RegulatorReceipt:
        """Report the end of a session. UNKNOWN_SESSION, SESSION_CLOSED, DATE_IN_FUTURE, SEATED."""

    async def align_day(self, alignment: DayAlignment) -> RegulatorReceipt:
        """Report a day's totals; once more, with a new transaction id, when late stages have changed them.

        DATE_IN_FUTURE, TOTALS_MISMATCH.
        """

    async def report_modules(self, report: ModuleReport) -> RegulatorReceipt:
        """Report the hashes of the running software. DATE_IN_FUTURE."""

    async def close(self) -> None:
        """Let running calls end and release the resources."""
