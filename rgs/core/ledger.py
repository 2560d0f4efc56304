"""The participation account (ARCHITECTURE 2.3, RULEBOOK R-2, R-3): double entry over three accounts that sum to zero.

`participation` is what the player may stake, `wallet` what the operator's wallet gave and got, `bank` what the
operator won. All amounts are integers of the session's minor unit. The participation never falls below zero, and
nothing moves after its end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rgs.core.errors import InsufficientBalanceError, ParticipationCapError, ParticipationEndedError

PARTICIPATION_MINOR_MAX = 10**12
"""No participation is larger, whatever a jurisdiction says: sums stay far inside 64 bits."""


@dataclass(frozen=True, slots=True)
class Participation:
    """Running totals in minor units. bought - staked + returned - paid out = balance, always."""

    bought_minor: int = 0
    staked_minor: int = 0
    returned_minor: int = 0
    paid_out_minor: int = 0
    ended: bool = False

    @property
    def balance_minor(self) -> int:
        return self.bought_minor - self.staked_minor + self.returned_minor - self.paid_out_minor

    @property
    def net_position_minor(self) -> int:
        """What the player has won (positive) or lost."""
        return self.returned_minor - self.staked_minor

    def accounts(self) -> dict[str, int]:
        """The three accounts; their sum is zero."""
        return {
            "wallet": self.paid_out_minor - self.bought_minor,
            "participation": self.balance_minor,
            "bank": self.staked_minor - self.returned_minor,
        }

    def buy(self, amount_minor: int, *, cap_minor: int | None) -> Participation:
        """Wallet -> participation; all purchases together stay within the jurisdiction's cap."""
        self._must_run()
        total = self.bought_minor + amount_minor
        if cap_minor is not None and total > cap_minor:
            raise ParticipationCapError(
                f"purchases of {total} would exceed the cap of {cap_minor} for one participation",
                field="amount_minor",
                limit=cap_minor,
                value=amount_minor,
                bought_minor=self.bought_minor,
            )
        if total > PARTICIPATION_MINOR_MAX:
            raise ParticipationCapError(
                f"purchases of {total} exceed {PARTICIPATION_MINOR_MAX}",
                field="amount_minor",
                limit=PARTICIPATION_MINOR_MAX,
                value=amount_minor,
            )
        return replace(self, bought_minor=total)

    def stake(self, amount_minor: int) -> Participation:
        """Participation -> bank."""
        self._must_run()
        if amount_minor > self.balance_minor:
            raise InsufficientBalanceError(
                f"stake of {amount_minor} exceeds the balance of {self.balance_minor}, both in minor units: stake less,"
                " or buy more",
                limit=self.balance_minor,
                value=amount_minor,
            )
        return self._moved(staked_minor=amount_minor)

    def give_back(self, amount_minor: int) -> Participation:
        """Bank -> participation: winnings with their stakes, pushes, stakes of void rounds."""
        self._must_run()
        return self._moved(returned_minor=amount_minor)

    def bet(self, amount_minor: int) -> Participation:
        """Wallet -> bank in one step, as in seamless mode: what is debited is staked."""
        return self.buy(amount_minor, cap_minor=None).stake(amount_minor)

    def credit(self, amount_minor: int) -> Participation:
        """Bank -> wallet in one step, as in seamless mode: what is returned is credited."""
        returned = self.give_back(amount_minor)
        return replace(returned, paid_out_minor=returned.paid_out_minor + amount_minor)

    def end(self) -> Participation:
        """Participation -> wallet: all that is left."""
        self._must_run()
        return replace(self, paid_out_minor=self.paid_out_minor + self.balance_minor, ended=True)

    def _moved(self, *, staked_minor: int = 0, returned_minor: int = 0) -> Participation:
        """A running participation with these amounts added: `dataclasses.replace` would read field by field."""
        return Participation(
            self.bought_minor, self.staked_minor + staked_minor, self.returned_minor + returned_minor,
            self.paid_out_minor,
        )  # fmt: skip

    def _must_run(self) -> None:
        if self.ended:
            raise ParticipationEndedError("the participation has ended")
