"""What each source says of one thing, as small values: the rows that matching compares, and the break that results.

Amounts are minor units, times milliseconds since 1970 UTC.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Final

from rgs.core.reconcile.classes import BreakClass
from rgs.core.statements import format_canonical

OF_ROUNDS: Final = frozenset({"transfer", "free_bet"})
"""The sources of transfers for a round."""


@dataclass(frozen=True, slots=True)
class SignedTransfer:
    """A transfer that a verified statement names. `source` is the kind of the statement: purchase, participation_end,
    transfer, or free_bet, which moves money of a campaign and so names no player. `is_sound` is False if a check of the
    replay failed on it or on its session's link. The request to the wallet lies between `begun_ms` and `time_ms`; that
    for the credit of a single bet after `time_ms`.
    """

    transaction_id: str
    kind: str
    amount_minor: int
    currency: str
    operator: str
    player: str
    game: str
    session_id: str
    participation_id: str
    reference: str
    """What the wallet got with the id: the participation, or `session:purpose:round` with the purpose bet, return,
    free_bet or free_bet_return.
    """
    purchase_no: int
    regulator_session_id: str
    regulator_participation_id: str
    source: str
    begun_ms: int
    time_ms: int
    statement: str
    is_sound: bool


@dataclass(frozen=True, slots=True)
class WalletRow:
    """One row of the operator's wallet statement."""

    transaction_id: str
    kind: str
    player: str
    currency: str
    amount_minor: int
    time_ms: int
    reference: str
    status: str
    balance_after_minor: int | None
    operator: str
    book: str


@dataclass(frozen=True, slots=True)
class Ticket:
    """A purchase as the regulator's book holds it, with the currency of its session there. `is_session_known`: the
    record has its session.
    """

    regulator_session_id: str
    regulator_participation_id: str
    purchase_no: int
    player: str
    amount_minor: int
    transaction_id: str
    time_ms: int
    currency: str = ""
    is_session_known: bool = True


@dataclass(frozen=True, slots=True)
class SeatFact:
    """One seat of a round from its signed opening and final; `final` is empty and `ended_ms` 0 while it is open."""

    session_id: str
    round_no: int
    round_id: str
    opening: str
    final: str
    available_minor: int
    staked_minor: int
    returned_minor: int
    opened_ms: int
    ended_ms: int
    due_ms: int
    status: str
    currency: str
    operator: str
    game: str
    player: str
    regulator_session_id: str
    regulator_participation_id: str
    is_sound: bool

    @property
    def subject(self) -> str:
        """The name of the seat in a break."""
        return f"session {self.session_id} stage {self.round_no}"


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage as the regulator's book holds it."""

    regulator_session_id: str
    regulator_participation_id: str
    round_no: int
    available_minor: int
    staked_minor: int
    returned_minor: int
    opening: str
    final: str
    time_ms: int
    currency: str = ""
    is_session_known: bool = True


@dataclass(frozen=True, slots=True)
class ReceiptRow:
    """An opening as the operator stored it. `time_ms` is 0 if the operator kept no time."""

    session_id: str
    round_no: int
    opening: str
    time_ms: int
    is_session_known: bool = True


@dataclass(frozen=True, slots=True)
class SessionFact:
    """A session as its links show it. `closed_ms` and `ended_ms` are 0 before the close and the end. `is_whole`: the
    files hold it from its open.
    """

    session_id: str
    operator: str
    currency: str
    game: str
    player: str
    regulator_session_id: str
    test_regulator: bool
    opened_ms: int
    closed_ms: int
    ending_ms: int
    """When its end was first requested; `ended_ms` is when that was signed."""
    ended_ms: int
    participation_id: str
    regulator_participation_id: str
    bought_minor: int
    staked_minor: int
    returned_minor: int
    paid_out_minor: int
    rounds: int
    is_whole: bool
    is_sound: bool


@dataclass(frozen=True, slots=True)
class RegulatorSessionRow:
    """A session as the regulator's book holds it, with its close."""

    regulator_session_id: str
    reference: str
    operator: str
    currency: str
    opened_ms: int
    ruleset: str
    test_regulator: bool
    closes: int
    closed_ms: int


@dataclass(frozen=True, slots=True)
class RegulatorEnd:
    """The end of a participation as the regulator's book holds it."""

    regulator_session_id: str
    regulator_participation_id: str
    rounds: int
    final_balance_minor: int
    time_ms: int


@dataclass(frozen=True, slots=True)
class Break:
    """One thing on which the sources differ. `found` says what each source shows, in order.

    `amount_minor` is the amount concerned, never negative; the age of the break counts from `time_ms`.
    """

    kind: BreakClass
    subject: str
    found: tuple[tuple[str, str], ...]
    time_ms: int
    amount_minor: int = 0
    operator: str = ""
    player: str = ""
    currency: str = ""
    game: str = ""
    sources: tuple[str, ...] = field(default=())
    is_owed: bool = False
    """A player is owed money."""

    @property
    def break_id(self) -> str:
        """32 hex digits over what was found, not over age or order. A resolution binds to it."""
        said = {
            "class": self.kind.value,
            "currency": self.currency,
            "found": [[name, value] for name, value in self.found],
            "operator": self.operator,
            "player": self.player,
            "subject": self.subject,
        }
        return hashlib.sha256(b"rgs/break/v1\x00" + format_canonical(said)).hexdigest()[:32]
