"""What one party may take of this process at once, so that a noisy one leaves the others their share (threat model, 2).

Per party: calls and messages under way, messages a second, open streams. Each process counts for itself: with N of
them behind one name a party has up to N times as much. Asked before a request is read. What is above a limit is
refused with PARTY_LIMIT (RESOURCE_EXHAUSTED) and the time after which it may come again; it has changed nothing.

A stream that has waited for its client too long is ended: STREAM_STALLED if an answer was not read, STREAM_IDLE if
nothing was asked. A client that does not take what it is told from its connection holds the places of its calls and
streams until the connection ends, for gRPC cannot take back what it has begun to send: they are that party's places.

Costs a call a look into a dictionary and a few integers. Refuses to write a line a refusal: `look`, once a second,
tells how many a party had.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, cast

import structlog

from rgs.core.clock import Clock
from rgs.core.errors import PartyLimitError, RgsError, StreamIdleError, StreamStalledError
from rgs.service.callers import Caller

RETRY_MS: Final = 100
"""The least time that a refused caller is told to wait; a stream of his is not read from for so long."""
STREAM_RETRY_MS: Final = 5_000
"""The same for one who has too many streams: they end by his own doing."""
HEALTH_CALLS_MAX: Final = 64
"""Calls for the server's health, watches among them, that one certificate may have under way."""
WATCHERS_MAX: Final = 1_024
"""Certificates that are remembered to have asked for it; above, those with something under way."""
SECOND_US: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one party in one process; the last two of one stream, in seconds. Set by `rgs.toml`."""

    calls_max: int = 1_024
    messages_per_s: int = 10_000
    streams_max: int = 4_096
    stall_s: int = 60
    idle_s: int = 3_600


class Account:
    """What one party has under way. `enter` and `leave` hold a call; streams are `Streams`' to count."""

    __slots__ = ("_clock", "_limits", "_paid_us", "_party", "_step_us", "calls", "refused", "streams")

    def __init__(self, party: str, limits: Limits, clock: Clock) -> None:
        self._party = party
        self._limits = limits
        self._clock = clock
        self._step_us = SECOND_US // limits.messages_per_s
        # A bucket of one second's messages, as the time until which those that came would have lasted (GCRA).
        self._paid_us = 0
        self.calls = 0
        self.streams = 0
        self.refused: dict[str, int] = {}
        """What was refused since the last `look`, by the setting that refused it."""

    def enter(self) -> None:
        """A call or message has come; PartyLimitError if it is one too many."""
        now_us = self._clock.running_ms() * 1_000
        ahead_us = self._paid_us - now_us
        if not 0 <= ahead_us <= SECOND_US:
            ahead_us = 0  # nothing came for a second
        if ahead_us + self._step_us > SECOND_US:
            retry_ms = max(RETRY_MS, (ahead_us + self._step_us - SECOND_US) // 1_000)
            limit = self._limits.messages_per_s
            raise self.refusal("party_messages_per_s", "messages a second", limit, limit + 1, retry_ms)
        if self.calls >= self._limits.calls_max:
            limit = self._limits.calls_max
            raise self.refusal("party_calls_max", "calls at once", limit, self.calls + 1, RETRY_MS)
        self._paid_us = now_us + ahead_us + self._step_us
        self.calls += 1

    def leave(self, _: object = None) -> None:
        """It was answered."""
        self.calls -= 1

    def refusal(self, field: str, what: str, limit: int, value: int, retry_ms: int) -> PartyLimitError:
        """The error, counted."""
        self.refused[field] = self.refused.get(field, 0) + 1
        return PartyLimitError(
            f"{self._party} has {value} {what}, at most {limit}: again after {retry_ms} ms",
            field=field,
            limit=limit,
            value=value,
            retry_after_ms=retry_ms,
            party=self._party,
        )

    def tell(self) -> None:
        """Log what was refused since the last time: a line a limit."""
        refused, self.refused = self.refused, {}
        for field, times in refused.items():
            structlog.get_logger().warning("party_limit", party=self._party, field=field, refused=times)


class Quotas:
    """The accounts of this process: one a party that was let in, so that there are as many as the allow-list has; and
    one a certificate that asked for the server's health, for which no list is asked.
    """

    def __init__(self, limits: Limits, clock: Clock) -> None:
        self._limits = limits
        self._clock = clock
        self._accounts: dict[tuple[str, str], Account] = {}
        self._watchers: dict[bytes | None, Account] = {}

    def of(self, caller: Caller) -> Account:
        """The caller's account."""
        return self._accounts.get((caller.role, caller.party)) or self._opened(caller)

    def enter(self, caller: Caller) -> Account:
        """The caller's account, with a call of his under way until the task that runs is done; PartyLimitError.

        Not until the answer was given: who does not take his answers from the connection has them under way.
        """
        account = self._accounts.get((caller.role, caller.party)) or self._opened(caller)
        account.enter()
        cast("asyncio.Task[Any]", asyncio.current_task()).add_done_callback(account.leave)
        return account

    def enter_health(self, certificate: bytes | None) -> None:
        """As `enter`, for who asks for the server's health."""
        account = self._watchers.get(certificate)
        if account is None:
            if len(self._watchers) >= WATCHERS_MAX:
                self._watchers = {known: held for known, held in self._watchers.items() if held.calls}
            account = Account("health", replace(self._limits, calls_max=HEALTH_CALLS_MAX), self._clock)
            self._watchers[certificate] = account
        account.enter()
        cast("asyncio.Task[Any]", asyncio.current_task()).add_done_callback(account.leave)

    def look(self) -> None:
        """Log what was refused."""
        for account in self._accounts.values():
            if account.refused:
                account.tell()

    def _opened(self, caller: Caller) -> Account:
        account = self._accounts[caller.role, caller.party] = Account(caller.party, self._limits, self._clock)
        return account


class OpenStream:
    """A stream under way. `reads_s` and `writes_s` stand at the time since which it waits for its client to say
    something or to read, else they are None.
    """

    __slots__ = ("account", "ending", "reads_s", "task", "writes_s")

    def __init__(self, account: Account, task: asyncio.Task[Any]) -> None:
        self.account = account
        self.task = task
        self.reads_s: float | None = None
        self.writes_s: float | None = None
        self.ending: RgsError | None = None
        """Why it was ended by `Streams.look`; its task was cancelled then, and tells it to the client."""

    def look(self, now_s: float, limits: Limits) -> None:
        """End the stream if its client has kept it waiting too long."""
        if self.ending is not None:
            return
        if self.writes_s is not None and now_s - self.writes_s >= limits.stall_s:
            self._end(StreamStalledError(f"no answer was read for {limits.stall_s} s", limit=limits.stall_s))
        elif self.reads_s is not None and now_s - self.reads_s >= limits.idle_s:
            self._end(StreamIdleError(f"nothing was asked for {limits.idle_s} s", limit=limits.idle_s))

    def _end(self, why: RgsError) -> None:
        self.ending = why
        self.task.cancel()


class Streams:
    """The open streams of this process. `now_s` is the time of the last `look`: what streams take their times from."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._open: set[OpenStream] = set()
        self.now_s = 0.0

    def open(self, account: Account) -> OpenStream:
        """The stream of the task that runs, until it is done; PartyLimitError."""
        limit = self._limits.streams_max
        if account.streams >= limit:
            what, value = "open streams", account.streams + 1
            raise account.refusal("party_streams_max", what, limit, value, STREAM_RETRY_MS)
        stream = OpenStream(account, cast("asyncio.Task[Any]", asyncio.current_task()))
        self._open.add(stream)
        account.streams += 1
        # Not when its answers have been given, but when the client has taken them, or the connection has gone.
        stream.task.add_done_callback(self._closer(stream))
        return stream

    def look(self, now_s: float) -> None:
        """To be called about once a second, with a time that only grows."""
        self.now_s = now_s
        for stream in tuple(self._open):
            stream.look(now_s, self._limits)

    def _closer(self, stream: OpenStream) -> Callable[[object], None]:
        def close(_: object) -> None:
            self._open.discard(stream)
            stream.account.streams -= 1

        return close
