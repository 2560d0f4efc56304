"""A session as durable state: one player at one game, the regulator's ids, one participation, a chain of statements.

The checks before each step are methods of the session.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from rgs.core.bet_limits import BetLimits
from rgs.core.errors import (
    BetsReservedError,
    DurationLimitError,
    FundingModeError,
    NumberExpectedError,
    OperationPendingError,
    ParticipationEndedError,
    ParticipationMissingError,
    ParticipationOpenError,
    RegulatorUnavailableError,
    RoundOpenError,
    SessionClosedError,
    SessionInactiveError,
    TableOnlyError,
)
from rgs.core.ledger import PARTICIPATION_MINOR_MAX, Participation
from rgs.core.limits import Headroom, SessionLimits, headroom_of
from rgs.core.statements import LINK_ZERO
from rgs.core.values import changed


class SessionStatus(StrEnum):
    """PENDING: the regulator's system has not answered the request for an id yet."""

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


class Mode(StrEnum):
    """What a session is played for (docs/money.md).

    REAL: money of the operator's wallet. DEMO: play money, which no wallet and no regulator ever hears of.
    """

    REAL = "real"
    DEMO = "demo"


PLAY_MONEY: Final = "PLAY_MONEY"
"""The reason in the private block of a purchase or an end without a wallet's transaction."""


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
    test_regulator: bool = False
    participation_id: str = ""
    regulator_participation_id: str = ""
    participation: Participation = field(default_factory=Participation)
    purchase_no: int = 0
    round_no: int = 0
    rounds: int = 0
    open_round_id: str = ""
    last_start_ms: int = 0
    """When the last round started, and how many starts fell into that second: RULEBOOK R-4's suffix."""
    code_count: int = 0
    limits: SessionLimits = field(default_factory=SessionLimits)
    funding: Funding = Funding.PARTICIPATION
    """The operator's way of funding when the session was opened. It never changes."""
    wallet_balance_minor: int = 0
    """In a session funded bet by bet: the last balance from the operator's wallet, what had been credited to it by
    then, and when. Time 0: no balance yet.
    """
    wallet_credited_minor: int = 0
    wallet_balance_ms: int = 0
    pending_operation: str = ""
    """The purchase, end or close that is under way: its intent is stored, its effect not yet."""
    link_no: int = 0
    link_hash: str = LINK_ZERO
    """Hex hash of the newest link of the session's chain."""
    table_id: str = ""
    """The table that the session plays at; empty in solo play. It never changes."""
    reserved_minor: int = 0
    """What is reserved for bets at the table. It is part of the balance until the seat is opened."""
    mode: Mode = Mode.REAL
    bet_limits: BetLimits = ()
    """Limits on the bets of each round inside the ruleset's: the operator's and the player's."""
    language: str = ""
    """In which the player is to be addressed, and where he goes from here; empty where the operator did not say."""
    return_url: str = ""

    @property
    def balance_minor(self) -> int:
        return self.participation.balance_minor

    @property
    def headroom(self) -> Headroom:
        """What may be staked now, under the balance and the session's limits, beside what is reserved. In a session
        funded bet by bet the wallet decides what is covered.
        """
        headroom = headroom_of(self.limits, self.participation, self.reserved_minor)
        if self.funding is Funding.SEAMLESS:
            return headroom._replace(balance_minor=PARTICIPATION_MINOR_MAX - self.participation.bought_minor)
        return headroom

    @property
    def offer(self) -> Headroom:
        """What is offered: the headroom, but no more than the wallet's last balance and what rounds have returned
        since. The wallet's balance may have changed otherwise, so a request for more is not refused: the wallet
        decides.
        """
        headroom = self.headroom
        if not self.wallet_balance_ms:
            return headroom
        returned = self.participation.paid_out_minor - self.wallet_credited_minor
        return headroom._replace(balance_minor=min(headroom.balance_minor, self.wallet_balance_minor + returned))

    def reported(self, balance_minor: int, time_ms: int) -> Session:
        """The session after its wallet has reported a balance."""
        return changed(
            self,
            wallet_balance_minor=balance_minor,
            wallet_credited_minor=self.participation.paid_out_minor,
            wallet_balance_ms=time_ms,
        )

    @property
    def is_demo(self) -> bool:
        return self.mode is Mode.DEMO

    @property
    def is_seamless(self) -> bool:
        return self.funding is Funding.SEAMLESS

    def time_left_ms(self, now_ms: int) -> int | None:
        """How long new rounds may still start; None without a limit."""
        return max(0, self.open_ms + self.limits.duration_ms - now_ms) if self.limits.duration_ms else None

    def verify_in_time(self, idle_ms: int, inactivity_ms: int) -> None:
        """SessionInactiveError after the jurisdiction's inactivity has passed: no new round, no purchase."""
        if idle_ms > inactivity_ms:
            raise SessionInactiveError(
                f"nothing happened in this session for {idle_ms} ms, the limit is {inactivity_ms}",
                value=idle_ms,
                limit=inactivity_ms,
                session_id=self.session_id,
            )

    def verify_duration(self, now_ms: int) -> None:
        """DurationLimitError after the time that the operator set."""
        if self.time_left_ms(now_ms) == 0:
            raise DurationLimitError(
                f"the session may start rounds for {self.limits.duration_ms} ms, they have passed",
                limit=self.limits.duration_ms,
                value=now_ms - self.open_ms,
                session_id=self.session_id,
            )

    def may_start(self, now_ms: int, inactive_ms: int) -> bool:
        """Whether the session allows another round: it is open, in time and not inactive (from `inactive_ms` on), its
        participation runs, and no operation is under way. A round in play does not count.
        """
        return (
            self.status is SessionStatus.OPEN
            and not self.pending_operation
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

    def verify_nothing_reserved(self) -> None:
        """BetsReservedError while bets wait for a round of the table."""
        if self.reserved_minor:
            raise BetsReservedError(
                f"{self.reserved_minor} is reserved for bets at table {self.table_id}: take them back, or wait for the"
                " end of the round",
                session_id=self.session_id,
                table=self.table_id,
                value=self.reserved_minor,
            )

    def verify_may_buy(self, purchase_no: int) -> None:
        """A purchase needs an open session, a running participation, no open round (RULEBOOK C-10), and its number."""
        self.verify_open()
        self._verify_buys()
        self.verify_no_operation()
        self._verify_between_rounds()
        self.verify_nothing_reserved()
        _verify_number("purchase_no", purchase_no, self.purchase_no + 1)

    def verify_may_start(self, round_no: int) -> None:
        """A round needs a session of solo play that may bet, and its number."""
        if self.table_id:
            raise TableOnlyError(
                f"the session plays at table {self.table_id}: place bets there", session_id=self.session_id
            )
        self.verify_may_bet()
        _verify_number("round_no", round_no, self.round_no + 1)

    def verify_may_bet(self) -> None:
        """Bets need an open session, a running participation with the regulator's id, and no round in play."""
        self.verify_open()
        self.verify_no_operation()
        if not self.participation_id and not self.is_seamless:
            raise ParticipationMissingError("buy a right of participation first", session_id=self.session_id)
        self._verify_between_rounds()

    def verify_may_end(self) -> None:
        """The participation ends once, and not while a round is open (RULEBOOK C-10)."""
        self.verify_open()
        self._verify_buys()
        self.verify_no_operation()
        if not self.participation_id:
            raise ParticipationMissingError("there is no participation to end", session_id=self.session_id)
        self._verify_between_rounds()
        self.verify_nothing_reserved()

    def verify_may_close(self) -> None:
        """A close needs a session without an open round and without a running participation; the error names it."""
        self.verify_open()
        self.verify_no_operation()
        self.verify_no_round()
        if self.participation_id and not self.participation.ended:
            raise ParticipationOpenError(
                "end the participation first, so that its balance goes back to the wallet",
                participation_id=self.participation_id,
                balance_minor=self.balance_minor,
            )

    def _verify_between_rounds(self) -> None:
        if self.participation.ended:
            raise ParticipationEndedError("the participation of this session has ended", session_id=self.session_id)
        self.verify_no_round()

    def _verify_buys(self) -> None:
        if self.is_seamless:
            raise FundingModeError(
                "this session is funded bet by bet: there is nothing to buy or to end", session_id=self.session_id
            )

    def verify_no_operation(self) -> None:
        """OperationPendingError with the operation that is under way."""
        if self.pending_operation:
            raise OperationPendingError(
                f"operation {self.pending_operation} of this session is still under way",
                operation_id=self.pending_operation,
                session_id=self.session_id,
            )


def _verify_number(name: str, value: int, expected: int) -> None:
    if value != expected:
        raise NumberExpectedError(
            f"{name} {value} was sent where {expected} is next", field=name, value=value, limit=expected
        )
