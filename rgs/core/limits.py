"""Session limits that an operator sets on opening, and what they leave (ARCHITECTURE 2.4, RULEBOOK R-8).

Limits stop new rounds and dearer decisions, never a decision that is owed: what finishes a round for nothing is always
possible. Refuses to look at a clock: times come in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from rgs.core.errors import InsufficientBalanceError, LossLimitError, RgsError, StakeLimitError
from rgs.core.ledger import PARTICIPATION_MINOR_MAX, Participation
from rgs.core.values import check_range

DURATION_MS_MAX = 365 * 86_400_000


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """`loss_minor`: most that may be lost; `stake_minor`: most that may be staked in all; `duration_ms`; 0: none."""

    loss_minor: int = 0
    stake_minor: int = 0
    duration_ms: int = 0

    def body(self) -> dict[str, str]:
        """The limits as `session_open` holds them: those that are set."""
        named = (("duration_ms", self.duration_ms), ("loss_minor", self.loss_minor), ("stake_minor", self.stake_minor))
        return {name: str(value) for name, value in named if value}

    def verify(self) -> None:
        """InvalidFieldError naming the limit that is none."""
        for name, value, most in (
            ("loss_minor", self.loss_minor, PARTICIPATION_MINOR_MAX),
            ("stake_minor", self.stake_minor, PARTICIPATION_MINOR_MAX),
            ("duration_ms", self.duration_ms, DURATION_MS_MAX),
        ):
            check_range(value, f"limits.{name}", 0, most)


class Room(NamedTuple):
    """What may be staked now under the balance and each limit, in minor units; None where there is no such limit."""

    balance_minor: int
    loss_left_minor: int | None
    stake_left_minor: int | None

    @property
    def minor(self) -> int:
        """The least of them: what a round may cost."""
        least = self.balance_minor
        if self.loss_left_minor is not None and self.loss_left_minor < least:
            least = self.loss_left_minor
        if self.stake_left_minor is not None and self.stake_left_minor < least:
            least = self.stake_left_minor
        return least

    def reason_against(self, cost_minor: int) -> str:
        """Why `cost_minor` is not covered: the reason of the error that says so; empty where it is."""
        error = self._error_of(cost_minor)
        return error.reason if error is not None else ""

    def verify_covers(self, cost_minor: int, field: str, rule: str) -> None:
        """InsufficientBalanceError, LossLimitError or StakeLimitError, the first that applies."""
        error = self._error_of(cost_minor)
        if error is not None:
            limit = {
                InsufficientBalanceError.reason: self.balance_minor,
                LossLimitError.reason: self.loss_left_minor,
                StakeLimitError.reason: self.stake_left_minor,
            }[error.reason]
            raise error(
                f"{cost_minor} exceeds what is left, {limit}", field=field, value=cost_minor, limit=limit, rule=rule
            )

    def _error_of(self, cost_minor: int) -> type[RgsError] | None:
        if cost_minor > self.balance_minor:
            return InsufficientBalanceError
        if self.loss_left_minor is not None and cost_minor > self.loss_left_minor:
            return LossLimitError
        if self.stake_left_minor is not None and cost_minor > self.stake_left_minor:
            return StakeLimitError
        return None


def room_of(limits: SessionLimits, money: Participation) -> Room:
    """What may be staked now. Open stakes count as lost until they come back."""
    loss_left = max(0, limits.loss_minor + money.net_position_minor) if limits.loss_minor else None
    stake_left = max(0, limits.stake_minor - money.staked_minor) if limits.stake_minor else None
    return Room(money.balance_minor, loss_left, stake_left)
