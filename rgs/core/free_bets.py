"""Free bets: opening bets that an operator's campaign pays for the player (docs/money.md, section 7).

A grant is one free bet: it pays the ante of one round, and the blind that the system places beside it. What the
campaign pays never enters the player's account. So the stake is never paid out; what it wins is the player's. With own
amounts only (all stakes - granted; all returns - reclaimed) the account keeps its identity:

    bought - (staked - granted) + (returned - reclaimed) - paid out = balance

All amounts are integers of minor units. Granted is what the campaign paid for a round; reclaimed is what goes back to
the campaign at its end: the granted stakes that the round returned.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from rgs.core.errors import FreeBetRefusedError, InvalidFieldError
from rgs.core.ids import derive_ulid

GRANTED_BETS: Final = frozenset({"ante", "blind"})
"""The bets that a grant pays. Side bets and decisions are the player's own."""

_CAMPAIGN: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,31}")


class GrantStatus(StrEnum):
    """OPEN: it may be played. USED: a round, or the debit before one, has taken it. CANCELLED: by the operator."""

    OPEN = "open"
    USED = "used"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Grant:
    """A free bet that an operator has granted to a player in one game. `stake_minor` is the ante that it pays."""

    grant_id: str
    operator: str
    player: str
    ruleset_id: str
    currency: str
    campaign: str
    stake_minor: int
    granted_ms: int
    expires_ms: int
    """From this time on it cannot be played."""
    status: GrantStatus = GrantStatus.OPEN
    round_id: str = ""
    """The round that has used it."""
    request_id: str = ""
    nth: int = 0
    """The request that granted it, and which of its grants it is, from 1. Both are empty if it takes the place of one
    whose round is void.
    """

    @property
    def reference(self) -> str:
        """How rounds, statements' readers and the wallet name it: the campaign and the grant."""
        return f"{self.campaign}:{self.grant_id}"

    def verify_playable(self, ruleset_id: str, currency: str, bets: Mapping[str, int], now_ms: int) -> None:
        """FreeBetRefusedError unless it may pay for a round with these bets of the player now."""
        refusal = ""
        if self.status is not GrantStatus.OPEN:
            refusal = f"it is {self.status}"
        elif now_ms >= self.expires_ms:
            refusal = "it has expired"
        elif (ruleset_id, currency) != (self.ruleset_id, self.currency):
            refusal = f"it is for {self.ruleset_id} in {self.currency}, not for {ruleset_id} in {currency}"
        elif bets.get("ante") != self.stake_minor:
            refusal = f"it pays an ante of {self.stake_minor}, not of {bets.get('ante', 0)}"
        if refusal:
            raise FreeBetRefusedError(
                f"free bet {self.grant_id} cannot be played: {refusal}",
                field="free_bet",
                grant_id=self.grant_id,
                limit=self.stake_minor,
                value=bets.get("ante", 0),
            )


def check_campaign(text: str) -> str:
    """`text` if it names a campaign; InvalidFieldError otherwise."""
    if _CAMPAIGN.fullmatch(text) is None:
        raise InvalidFieldError(
            "campaign must be 1 to 32 lowercase letters, digits, '.', '_' or '-', beginning with a letter or digit",
            field="campaign",
            limit=32,
            value=text[:80],
        )
    return text


def granted_minor(bets: Iterable[tuple[str, int]]) -> int:
    """What a grant pays of these opening bets."""
    return sum(amount for bet, amount in bets if bet in GRANTED_BETS)


def reclaimed_minor(settled: Sequence[Mapping[str, Any]]) -> int:
    """What goes back to the campaign: each granted stake whose bet was won or pushed.

    `settled` are settled bets as `round_final` shows them. A lost stake has gone; a bet that comes back brings its
    stake.
    """
    return sum(
        int(bet["stake_minor"]) for bet in settled if bet["bet"] in GRANTED_BETS and bet["result"] in {"win", "push"}
    )


def reclaim_id(round_id: str) -> str:
    """The transaction that gives back to the campaign what a round returned of its stakes."""
    return derive_ulid("rgs/free-bet-return/v1", round_id)


def renewed_id(round_id: str) -> str:
    """The grant that takes the place of the one that a void round had used."""
    return derive_ulid("rgs/free-bet-renewed/v1", round_id)
