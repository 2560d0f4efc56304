"""The regulator's central system: the seam that every one stands behind, its words and its rejections.

What it implements: RULEBOOK R-1, R-2; regulation ID-01 to ID-05 (both ids are issued by the central system and are 16
characters long, purchases and stages are numbered without gaps), PG-09 (no cancellation: a void round is a stage whose
stake is returned), PG-10 (order of messages), PG-11 (transaction ids), IT-04 (cap per participation), IT-06 (the
amounts of a participation balance).

What every central system behind the seam promises. A transaction id never changes over retries: the same id with the
same data is answered as the first time, with other data it is a conflict. A refusal has no effect and carries its code
in `metadata["rejection"]`. What the system did not answer is raised as RegulatorUnavailableError: it may have happened,
and the same message with the same transaction id settles it. No id, no round.

Refuses: an id that has not the form of a regulator's. The embedded default is
`rgs.adapters.embedded.regulator.EmbeddedRegister`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum, unique
from typing import Final, Protocol

from rgs.core.errors import (
    AlreadySeatedError,
    IdempotencyConflictError,
    InvalidFieldError,
    JurisdictionError,
    ParticipationCapError,
    ParticipationEndedError,
    ParticipationOpenError,
    RegulatorRefusedError,
    RgsError,
    SessionClosedError,
)
from rgs.core.ids import REGULATOR_ID_ALPHABET, REGULATOR_ID_CHARACTERS


@dataclass(frozen=True, slots=True)
class SessionOpening:
    """A session begins. `reference` is our own id of it; the cap is for all purchases of a participation together.

    `test_register_allowed` is the jurisdiction's word on test registers; a real central system does not look at it.
    """

    transaction_id: str
    reference: str
    operator: str
    jurisdiction: str
    test_register_allowed: bool
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
    """A participation is over: what goes back to the wallet, after how many rounds."""

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
    """One played round as the regulator hears of it. `available_minor` is the balance before its stakes."""

    session_id: str
    stage_no: int
    regulator_session_id: str
    regulator_participation_id: str
    available_minor: int
    staked_minor: int
    returned_minor: int
    opening_hash: str
    end_ms: int
    final_hash: str = ""


_REGULATOR_ID: Final = re.compile(f"[{REGULATOR_ID_ALPHABET}]{{{REGULATOR_ID_CHARACTERS}}}")


@unique
class Rejection(StrEnum):
    """Why a central system refuses. Own names: the codes of a real system are mapped to them by its client."""

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
    TOTALS_MISMATCH = "TOTALS_MISMATCH"  # the day's totals are not what was told; `metadata["limit"]` is
    LIMIT_REACHED = "LIMIT_REACHED"  # a limit of the player's that the central system keeps
    JURISDICTION_REFUSED = "JURISDICTION_REFUSED"  # this system does not serve that jurisdiction, or that game in it
    INVALID_FIELD = "INVALID_FIELD"  # a field is missing, malformed or outside its limit; `metadata["field"]`


_ERROR_OF: Final[Mapping[Rejection, type[RgsError]]] = {
    Rejection.TRANSACTION_CONFLICT: IdempotencyConflictError,
    Rejection.SESSION_CLOSED: SessionClosedError,
    Rejection.AMOUNT_NOT_POSITIVE: InvalidFieldError,
    Rejection.ALREADY_SEATED: AlreadySeatedError,
    Rejection.PARTICIPATION_ENDED: ParticipationEndedError,
    Rejection.ABOVE_MAXIMUM: ParticipationCapError,
    Rejection.STAGE_CONFLICT: IdempotencyConflictError,
    Rejection.ENDED_TWICE: ParticipationEndedError,
    Rejection.SEATED: ParticipationOpenError,
    Rejection.JURISDICTION_REFUSED: JurisdictionError,
    Rejection.INVALID_FIELD: InvalidFieldError,
}
"""Where our own callers have a word for it; every other rejection is a RegulatorRefusedError."""


def refusal_of(rejection: Rejection, message: str, *, field: str | None = None, **metadata: object) -> RgsError:
    """The error of a rejection, for every client behind the seam; `metadata["rejection"]` is the code."""
    error = _ERROR_OF.get(rejection, RegulatorRefusedError)
    return error(message, field=field, rejection=rejection.value, **metadata)


def check_regulator_id(text: str, field: str) -> str:
    """`text` if it has the form of a regulator's id (ID-03: 16 of 0-9 A-Z); InvalidFieldError naming `field` if not."""
    if _REGULATOR_ID.fullmatch(text) is None:
        raise InvalidFieldError(
            f"{field} is not {REGULATOR_ID_CHARACTERS} capital letters and digits", field=field, value=text[:40]
        )
    return text


@dataclass(frozen=True, slots=True)
class RegulatorSession:
    """The id that the central system issued for a session."""

    regulator_session_id: str
    test_register: bool


@dataclass(frozen=True, slots=True)
class RegulatorParticipation:
    """The id that the central system issued with the first purchase; every further purchase repeats it."""

    regulator_participation_id: str
    test_register: bool


@dataclass(frozen=True, slots=True)
class RegulatorReceipt:
    """The central system holds what it was told."""

    transaction_id: str
    test_register: bool


@dataclass(frozen=True, slots=True)
class DayTotals:
    """What one operator's sessions in one currency came to on one UTC day, by the time of each event; minor units."""

    purchases: int
    bought_minor: int
    stages: int
    staked_minor: int
    returned_minor: int
    ends: int
    final_balance_minor: int

    def items(self) -> Iterator[tuple[str, int]]:
        """Names and values, in the order above."""
        return ((field.name, getattr(self, field.name)) for field in fields(self))


@dataclass(frozen=True, slots=True)
class DayAlignment:
    """A day's totals are told. `day` is "YYYY-MM-DD", UTC, and over."""

    transaction_id: str
    operator: str
    currency: str
    day: str
    totals: DayTotals


@dataclass(frozen=True, slots=True)
class SoftwareModule:
    """One module of the software that runs: hex digests; `sha1` may be empty."""

    name: str
    version: str
    sha256: str
    sha1: str = ""


@dataclass(frozen=True, slots=True)
class ModuleReport:
    """The modules that run on a node, told once a day and after a start."""

    transaction_id: str
    node: str
    modules: tuple[SoftwareModule, ...]
    report_ms: int


class CentralSystem(Protocol):
    """A regulator's central system. Every method names its rejections, in the order in which they are looked for.

    Every method may raise RegulatorUnavailableError, after which nothing is known of the call; InvalidFieldError or
    FormatError for values that are none; and the rejection TRANSACTION_CONFLICT.
    """

    async def open_session(self, opening: SessionOpening) -> RegulatorSession:
        """Ask for a session's id. JurisdictionError where this system may not serve; DATE_IN_FUTURE, REFERENCE_USED."""
        ...

    async def buy_participation(self, purchase: Purchase) -> RegulatorParticipation:
        """Ask for a participation's id, or add to it.

        AMOUNT_NOT_POSITIVE, UNKNOWN_SESSION, SESSION_CLOSED, DATE_IN_FUTURE, ALREADY_SEATED, REFERENCE_USED,
        PARTICIPATION_ENDED, PURCHASE_GAP, ABOVE_MAXIMUM.
        """
        ...

    async def report_stages(self, transaction_id: str, stages: Sequence[StageReport]) -> RegulatorReceipt:
        """Tell played rounds, those of one participation in order, all or none of the batch.

        `stage_no` counts a participation's rounds from 1; `available_minor` is its balance before the stakes. A stage
        told before with the same data is passed over, whatever the transaction id. `metadata["index"]` (from 0) names
        the stage at fault: UNKNOWN_PARTICIPATION, STAGE_CONFLICT, PARTICIPATION_ENDED, STAGE_GAP, DATE_IN_FUTURE,
        AVAILABLE_MISMATCH, STAKE_NOT_COVERED.
        """
        ...

    async def end_participation(self, end: ParticipationEnd) -> RegulatorReceipt:
        """Tell what is left. UNKNOWN_PARTICIPATION, ENDED_TWICE, DATE_IN_FUTURE, ROUNDS_MISMATCH, BALANCE_MISMATCH."""
        ...

    async def close_session(self, close: SessionClose) -> RegulatorReceipt:
        """Tell that a session is over. UNKNOWN_SESSION, SESSION_CLOSED, DATE_IN_FUTURE, SEATED."""
        ...

    async def align_day(self, alignment: DayAlignment) -> RegulatorReceipt:
        """Tell a day's totals, again with a new transaction id when late reports have changed them.

        DATE_IN_FUTURE, TOTALS_MISMATCH.
        """
        ...

    async def report_modules(self, report: ModuleReport) -> RegulatorReceipt:
        """Tell the hashes of the software that runs. DATE_IN_FUTURE."""
        ...

    async def close(self) -> None:
        """Finish what was begun and let go."""
        ...
