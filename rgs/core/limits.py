"""Session limits that an operator sets at the opening, and what they leave (ARCHITECTURE 2.4, RULEBOOK R-8).

Limits stop new rounds and dearer decisions. They never stop a decision that is owed: a round can always be finished
without a further stake.
"""

from __future__ import annotations

from collections.abc import Mapping
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
        """InvalidFieldError for the first limit that is out of range."""
        for name, value, most in (
            ("loss_minor", self.loss_minor, PARTICIPATION_MINOR_MAX),
            ("stake_minor", self.stake_minor, PARTICIPATION_MINOR_MAX),
            ("duration_ms", self.duration_ms, DURATION_MS_MAX),
        ):
            check_range(value, f"limits.{name}", 0, most)


def parse_limits(body: Mapping[str, str]) -> SessionLimits:
    """The limits of a `session_open`. Inverse of `SessionLimits.body`."""
    return SessionLimits(**{name: int(value) for name, value in body.items()})


class Headroom(NamedTuple):
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
        """The reason of the error that says why `cost_minor` is not covered; empty where it is."""
        broken = self._broken(cost_minor)
        return broken[0].reason if broken else ""

    def verify_covers(self, cost_minor: int, field: str, rule: str) -> None:
        """InsufficientBalanceError, LossLimitError or StakeLimitError, the first that applies."""
        if broken := self._broken(cost_minor):
            error, limit = broken
            raise error(
                f"{cost_minor} exceeds what is left, {limit}", field=field, value=cost_minor, limit=limit, rule=rule
            )

    def _limits(self) -> tuple[tuple[type[RgsError], int | None], ...]:
        return (
            (InsufficientBalanceError, self.balance_minor),
            (LossLimitError, self.loss_left_minor),
            (StakeLimitError, self.stake_left_minor),
        )

    def _broken(self, cost_minor: int) -> tuple[type[RgsError], int] | None:
        left = ((error, limit) for error, limit in self._limits() if limit is not None and cost_minor > limit)
        return next(left, None)


def headroom_of(limits: SessionLimits, money: Participation, reserved_minor: int = 0) -> Headroom:
    """What may be staked now. Open stakes count as lost until they come back, and reserved bets as staked."""
    loss_left = max(0, limits.loss_minor + money.net_position_minor - reserved_minor) if limits.loss_minor else None
    stake_left = max(0, limits.stake_minor - money.staked_minor - reserved_minor) if limits.stake_minor else None
    return Headroom(money.balance_minor - reserved_minor, loss_left, stake_left)
