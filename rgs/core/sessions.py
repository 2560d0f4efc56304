"""A session as durable state: one player at one game, the regulator's ids, one participation, a chain of statements.

The checks before each step are methods of the session.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from rgs.core.errors import (
    AffairPendingError,
    DurationLimitError,
    FundingModeError,
    NumberExpectedError,
    ParticipationEndedError,
    ParticipationMissingError,
    ParticipationOpenError,
    RegulatorUnavailableError,
    RoundOpenError,
    SessionClosedError,
    SessionInactiveError,
)
from rgs.core.ledger import PARTICIPATION_MINOR_MAX, Participation
from rgs.core.limits import Room, SessionLimits, room_of
from rgs.core.statements import LINK_ZERO
from rgs.core.values import changed


class SessionStatus(StrEnum):
    """PENDING: the regulator's system was asked for an id and has not answered yet."""

    PENDING = "pending"
    OPEN = "open"
    CLOSED = "closed"


class Funding(StrEnum):
    """Where the money of a session's stakes comes from (docs/money.md).

    PARTICIPATION: the player buys a right of participation, stakes and returns move inside it. SEAMLESS: each bet is
    debited from the operator's wallet, each return credited to it.
    """

    PARTICIPATION = "participation"
    SEAMLESS = "seamless"


@dataclass(frozen=True)
class Session:
    """One row of the sessions table. `version` rises by one with every commit; writers compare and swap on it."""

    session_id: str
    operator: str
    player: str
    operator_reference: str
    ruleset_id: str
    jurisdiction_id: str
    currency: str
    status: SessionStatus
    open_ms: int
    last_ms: int
    version: int = 0
    close_ms: int = 0
    regulator_session_id: str = ""
    test_register: bool = False
    participation_id: str = ""
    regulator_participation_id: str = ""
    participation: Participation = field(default_factory=Participation)
    purchase_no: int = 0
    stage_no: int = 0
    rounds: int = 0
    open_round_id: str = ""
    last_start_ms: int = 0
    """When the last round started, and how many starts fell into that second: RULEBOOK R-4's suffix."""
    code_count: int = 0
    limits: SessionLimits = field(default_factory=SessionLimits)
    funding: Funding = Funding.PARTICIPATION
    """As the operator was funded when the session was opened: it never changes."""
    wallet_balance_minor: int = 0
    """Funded bet by bet: what the operator's wallet told last, what had been credited to it by then, and when. Time 0:
    it has told nothing yet.
    """
    wallet_credited_minor: int = 0
    wallet_balance_ms: int = 0
    pending_affair: str = ""
    """Purchase, end or close that is under way: its durable intent is stored, its effect not yet."""
    link_no: int = 0
    link_hash: str = LINK_ZERO
    """Hex hash of the newest link of the session's chain."""

    @property
    def balance_minor(self) -> int:
        return self.participation.balance_minor

    @property
    def room(self) -> Room:
        """What may be staked now, under the balance and the session's limits. Funded bet by bet it is the wallet that
        says what is covered.
        """
        room = room_of(self.limits, self.participation)
        if self.is_seamless:
            return room._replace(balance_minor=PARTICIPATION_MINOR_MAX - self.participation.bought_minor)
        return room

    @property
    def offer(self) -> Room:
        """What is offered: the room, and no more than what the wallet told last with what rounds have returned since.
        Something else may have changed its balance: whoever asks for more is not refused by it, the wallet decides.
        """
        room = self.room
        if not self.wallet_balance_ms:
            return room
        returned = self.participation.paid_out_minor - self.wallet_credited_minor
        return room._replace(balance_minor=min(room.balance_minor, self.wallet_balance_minor + returned))

    def told(self, balance_minor: int, time_ms: int) -> Session:
        """The session when its wallet has told a balance."""
        return changed(
            self,
            wallet_balance_minor=balance_minor,
            wallet_credited_minor=self.participation.paid_out_minor,
            wallet_balance_ms=time_ms,
        )

    @property
    def is_seamless(self) -> bool:
        return self.funding is Funding.SEAMLESS

    def time_left_ms(self, now_ms: int) -> int | None:
        """How long rounds may still be started; None without a limit."""
        return max(0, self.open_ms + self.limits.duration_ms - now_ms) if self.limits.duration_ms else None

    def verify_in_time(self, idle_ms: int, inactivity_ms: int) -> None:
        """SessionInactiveError once nothing has happened for longer than the jurisdiction's inactivity: no new round,
        no purchase.
        """
        if idle_ms > inactivity_ms:
            raise SessionInactiveError(
                f"nothing happened in this session for {idle_ms} ms, the limit is {inactivity_ms}",
                value=idle_ms,
                limit=inactivity_ms,
                session_id=self.session_id,
            )

    def verify_duration(self, now_ms: int) -> None:
        """DurationLimitError once the time that the operator set is up."""
        if self.time_left_ms(now_ms) == 0:
            raise DurationLimitError(
                f"the session may start rounds for {self.limits.duration_ms} ms, they have passed",
                limit=self.limits.duration_ms,
                value=now_ms - self.open_ms,
                session_id=self.session_id,
            )

    def may_start(self, now_ms: int, inactive_ms: int) -> bool:
        """Whether the session leaves room for another round at all: it is open, its participation runs, it is in time,
        not inactive from `inactive_ms` on, and nothing else of it is under way. A round in play does not count: the
        next one comes behind it.
        """
        return (
            self.status is SessionStatus.OPEN
            and not self.pending_affair
            and not self.participation.ended
            and self.time_left_ms(now_ms) != 0
            and now_ms <= inactive_ms
        )

    def verify_open(self) -> None:
        """SessionClosedError after the close; RegulatorUnavailableError while the regulator's id is outstanding."""
        if self.status is SessionStatus.CLOSED:
            raise SessionClosedError(f"session {self.session_id} is closed", session_id=self.session_id)
        if self.status is SessionStatus.PENDING:
            raise RegulatorUnavailableError(
                f"session {self.session_id} waits for the regulator's session id", session_id=self.session_id
            )

    def verify_no_round(self) -> None:
        """RoundOpenError naming the round in play."""
        if self.open_round_id:
            raise RoundOpenError(
                f"round {self.open_round_id} is still open", round_id=self.open_round_id, session_id=self.session_id
            )

    def verify_may_buy(self, purchase_no: int) -> None:
        """No purchase after the end, none while a round is open (RULEBOOK C-10), none out of turn."""
        self.verify_open()
        self._verify_buys()
        self.verify_no_affair()
        if self.participation.ended:
            raise ParticipationEndedError("the participation of this session has ended", session_id=self.session_id)
        self.verify_no_round()
        _verify_number("purchase_no", purchase_no, self.purchase_no + 1)

    def verify_may_start(self, stage_no: int) -> None:
        """A round needs an open session, a running participation with the regulator's id, and its turn."""
        self.verify_open()
        self.verify_no_affair()
        if not self.participation_id and not self.is_seamless:
            raise ParticipationMissingError("buy a right of participation first", session_id=self.session_id)
        if self.participation.ended:
            raise ParticipationEndedError("the participation of this session has ended", session_id=self.session_id)
        self.verify_no_round()
        _verify_number("stage_no", stage_no, self.stage_no + 1)

    def verify_may_end(self) -> None:
        """The participation ends once, and not while a round is open (RULEBOOK C-10)."""
        self.verify_open()
        self._verify_buys()
        self.verify_no_affair()
        if not self.participation_id:
            raise ParticipationMissingError("there is no participation to end", session_id=self.session_id)
        if self.participation.ended:
            raise ParticipationEndedError("the participation of this session has ended", session_id=self.session_id)
        self.verify_no_round()

    def verify_may_close(self) -> None:
        """Closing with an open round or a running participation is refused, naming it."""
        self.verify_open()
        self.verify_no_affair()
        self.verify_no_round()
        if self.participation_id and not self.participation.ended:
            raise ParticipationOpenError(
                "end the participation first, so that its balance goes back to the wallet",
                participation_id=self.participation_id,
                balance_minor=self.balance_minor,
            )

    def _verify_buys(self) -> None:
        if self.is_seamless:
            raise FundingModeError(
                "this session is funded bet by bet: there is nothing to buy or to end", session_id=self.session_id
            )

    def verify_no_affair(self) -> None:
        """AffairPendingError naming what is under way."""
        if self.pending_affair:
            raise AffairPendingError(
                f"affair {self.pending_affair} of this session is still under way",
                affair_id=self.pending_affair,
                session_id=self.session_id,
            )


def _verify_number(name: str, value: int, expected: int) -> None:
    if value != expected:
        raise NumberExpectedError(
            f"{name} {value} was sent where {expected} is next", field=name, value=value, limit=expected
        )
