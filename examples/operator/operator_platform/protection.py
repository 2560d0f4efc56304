"""What protects players: limits of a day, self-exclusion, reality checks.

A lower limit holds at once, a higher one after the jurisdiction's delay. Limits stop new rounds and deposits, never a
decision that is owed. The game server gets what is left of a limit when a session is opened, and signs it; the platform
looks at all sessions of the day together, before each new round. Amounts are limited by currency, the time of play over
all of them. A day is one of UTC.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from typing import Any, Final

from . import fields
from .accounts import now_ms
from .config import DAY_MS
from .errors import PlatformError, invalid
from .store.accounts import Account, AccountRows
from .store.play import PlayRows, PlaySession
from .terms import Terms

LIMITS: Final = ("loss_minor", "stake_minor", "duration_ms", "deposit_minor")
PAUSE_MS: Final = 5 * 60 * 1000
"""A player who sends nothing for so long does not play."""
EXCLUSION_DAYS_MAX: Final = 36_525


def day_of(time_ms: int) -> str:
    """The day in UTC, as "2026-11-23"."""
    return dt.datetime.fromtimestamp(time_ms / 1000, dt.UTC).strftime("%Y-%m-%d")


def day_start_ms(time_ms: int) -> int:
    """When the day in UTC began."""
    return time_ms - time_ms % DAY_MS


class Protection:
    """Limits and exclusion. `on_excluded` ends the player's pages; it is called as soon as the exclusion is durable."""

    def __init__(self, terms: Terms, accounts: AccountRows, play: PlayRows) -> None:
        self._terms = terms
        self._accounts = accounts
        self._play = play
        self.on_excluded: Callable[[int], None] = lambda _: None

    async def limits_json(self, account: Account, currency: str) -> dict[str, Any]:
        """Limits in a currency, those that wait, and what was used today."""
        time_ms = now_ms()
        limits, pending = await self._accounts.limits(account.account_id, currency, time_ms)
        figures = await self._play.figures(account.account_id, day_of(time_ms), currency)
        return {
            "currency": currency,
            "limits": {name: str(value) for name, value in limits.items()},
            "pending_limits": [
                {"name": one.name, "value": None if one.value is None else str(one.value), "due_ms": one.due_ms}
                for one in pending
            ],
            "today": {
                "staked_minor": str(figures.staked_minor),
                "returned_minor": str(figures.returned_minor),
                "played_ms": str(figures.played_ms),
            },
            "raise_delay_ms": str(self._terms.known_raise_delay_ms),
        }

    async def set_limits(self, account: Account, currency: str, body: Mapping[str, Any]) -> None:
        """Set the limits that are named; null takes a limit away, which waits like a raise. The time of play is limited
        over all currencies.
        """
        fields.check_known(body, "currency", *LIMITS)
        values = {
            name: None if body[name] is None else fields.number(body, name, 0, fields.AMOUNT_MAX)
            for name in LIMITS
            if name in body
        }
        if not values:
            raise invalid("body", f"name at least one limit of {', '.join(LIMITS)}")
        time_ms = now_ms()
        limits, _ = await self._accounts.limits(account.account_id, currency, time_ms)
        is_raise = any(name in limits and (value is None or value > limits[name]) for name, value in values.items())
        # A lower limit needs nobody: it holds also while the game server is away.
        due_ms = time_ms + (await self._terms.limit_raise_delay_ms() if is_raise else EXCLUSION_DAYS_MAX * DAY_MS)
        for name, value in values.items():
            its_currency = "" if name == "duration_ms" else currency
            await self._accounts.set_limit(account.account_id, its_currency, name, value, due_ms, time_ms)

    async def exclude(self, account: Account, body: Mapping[str, Any]) -> int:
        """Exclude the player for some days, from now on. Nothing makes it shorter."""
        fields.check_known(body, "days")
        days = fields.number(body, "days", 1, EXCLUSION_DAYS_MAX)
        until_ms = await self._accounts.exclude(account.account_id, now_ms() + days * DAY_MS)
        self.on_excluded(account.account_id)
        return until_ms

    async def left(self, account: Account, currency: str) -> dict[str, int]:
        """What is left of each limit today."""
        time_ms = now_ms()
        limits, _ = await self._accounts.limits(account.account_id, currency, time_ms)
        figures = await self._play.figures(account.account_id, day_of(time_ms), currency)
        used = {
            "loss_minor": figures.staked_minor - figures.returned_minor,
            "stake_minor": figures.staked_minor,
            "duration_ms": figures.played_ms,
        }
        return {name: limits[name] - used[name] for name in used if name in limits}

    async def session_limits(self, account: Account, currency: str) -> dict[str, str]:
        """The limits of a new session: what is left of the day. LIMIT_REACHED if nothing is left."""
        left = await self.left(account, currency)
        for name, value in left.items():
            if value <= 0:
                raise _reached(name, value)
        return {name: str(value) for name, value in left.items()}

    async def verify_may_stake(self, account: Account, currency: str, amount_minor: int) -> None:
        """Refuse a new round whose bets pass a limit of the day."""
        for name, value in (await self.left(account, currency)).items():
            if value <= 0 or (name != "duration_ms" and amount_minor > value):
                raise _reached(name, value)

    async def deposit_limit(self, account: Account, currency: str) -> int | None:
        """The limit of deposits a day."""
        limits, _ = await self._accounts.limits(account.account_id, currency, now_ms())
        return limits.get("deposit_minor")

    async def note_time(self, account: Account) -> None:
        """The player has just played."""
        time_ms = now_ms()
        await self._play.note_time(account.account_id, day_of(time_ms), time_ms, PAUSE_MS)

    async def reality_check_ms(self) -> int:
        """The time between reality checks; 0: none."""
        return await self._terms.reality_check_ms()

    async def is_check_due(self, session: PlaySession, elapsed_ms: int) -> bool:
        """Whether the player has to see a reality check before the next round."""
        every = await self.reality_check_ms()
        return every > 0 and elapsed_ms // every > session.checked_ms // every


def _reached(name: str, left: int) -> PlatformError:
    message = f"the limit {name} of today is reached: {max(0, left)} is left"
    return PlatformError("LIMIT_REACHED", message, 409, {"limit": name, "left": max(0, left)})
