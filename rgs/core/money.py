"""Money: whole numbers of minor units, and odds that are paid exactly (RULEBOOK head note, U-10).

Amounts are integers named `…_minor`; the session's currency is carried beside them. Odds "3:2" pay three for every two
staked and return the stake; "push" returns the stake; "lost" returns nothing. Nothing is rounded: odds that would pay
part of a minor unit raise. Odds are in lowest terms, so that a value has one text. A currency code is checked for its
shape (ISO 4217: three capital letters), not against a list.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from math import gcd
from typing import Final

from rgs.core.errors import FormatError, InvalidFieldError, StakeStepError

MAX_STAKE_MINOR: Final = 10**9
"""No stake is larger, whatever a ruleset says: with `MAX_ODDS` every payout stays far inside 64 bits."""

MAX_ODDS: Final = 10_000
"""No odds are longer than this many to one."""

_CURRENCY: Final = re.compile(r"[A-Z]{3}")
_ODDS: Final = re.compile(r"([1-9][0-9]{0,4}):([1-9][0-9]{0,4})")
_PUSH_TEXT: Final = "push"
_LOST_TEXT: Final = "lost"


def parse_currency(text: str) -> str:
    """Return the code itself, if it has the shape of ISO 4217; raise FormatError otherwise."""
    if not _CURRENCY.fullmatch(text):
        raise FormatError(f"{text!r} is not a currency code of three capital letters", field="currency", value=text)
    return text


def verify_amount(amount_minor: int, field: str, **metadata: object) -> None:
    """Raise InvalidFieldError, naming the field, unless the amount is a whole number >= 0; it carries the metadata."""
    if type(amount_minor) is not int or amount_minor < 0:
        raise InvalidFieldError(
            f"{field}: {amount_minor!r} is not a whole number >= 0 of minor units",
            field=field,
            value=amount_minor,
            **metadata,
        )


@dataclass(frozen=True, slots=True)
class Odds:
    """What a bet pays: `wins` for every `per` staked, with the stake (0 is a push), or the stake is `lost`."""

    wins: int
    per: int = 1
    lost: bool = False

    def returned_minor(self, stake_minor: int) -> int:
        """Stake and winnings, 0 if lost; raises StakeStepError if the winnings are no whole number of minor units."""
        if self.lost:
            return 0
        winnings_minor, rest = divmod(stake_minor * self.wins, self.per)
        if rest:
            raise StakeStepError(
                f"{format_odds(self)} on {stake_minor} would pay part of a minor unit",
                odds=format_odds(self),
                value=stake_minor,
                limit=self.per,
                rule="U-10",
            )
        return stake_minor + winnings_minor

    @property
    def returned_per_unit(self) -> Fraction:
        """What one unit staked returns, stake included: 0 if lost, 1 for a push."""
        return Fraction(0) if self.lost else 1 + Fraction(self.wins, self.per)

    def is_exact_for(self, step_minor: int) -> bool:
        """Whether every stake that is a multiple of the step is paid in whole minor units."""
        return step_minor * self.wins % self.per == 0


LOST: Final = Odds(0, lost=True)
PUSH: Final = Odds(0)
EVEN: Final = Odds(1)


def parse_odds(text: str) -> Odds:
    """Odds from "x:y" in lowest terms, "push" or "lost"; raises FormatError for any other text.

    >>> parse_odds("3:2")
    Odds(wins=3, per=2, lost=False)
    """
    if text == _PUSH_TEXT:
        return PUSH
    if text == _LOST_TEXT:
        return LOST
    match = _ODDS.fullmatch(text)
    if match is None:
        raise FormatError(f"{text!r} is neither odds x:y nor push nor lost", field="odds", value=text)
    wins, per = int(match[1]), int(match[2])
    if gcd(wins, per) != 1 or wins > MAX_ODDS * per:
        raise FormatError(f"odds {text} are not in lowest terms or above {MAX_ODDS}:1", field="odds", value=text)
    return Odds(wins, per)


def format_odds(odds: Odds) -> str:
    """Return the text of odds: "x:y", "push" or "lost"."""
    if odds.lost:
        return _LOST_TEXT
    return f"{odds.wins}:{odds.per}" if odds.wins else _PUSH_TEXT
