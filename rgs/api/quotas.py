"""Limits of one party in this process, so that a noisy party leaves the others their share (threat model, 2).

For each party it counts calls and messages under way, messages a second, and open streams. Each process counts for
itself: with N processes behind one name a party has up to N times as much. The limits are checked before a request is
read. A call above a limit gets PARTY_LIMIT (RESOURCE_EXHAUSTED) with the time after which it may come again, and
changes nothing.

A stream that has waited for its client too long ends: STREAM_STALLED if an answer was not read, STREAM_IDLE if nothing
was sent. A client that does not read its answers from the connection keeps its calls and streams counted until the
connection ends, because gRPC cannot take back what it has begun to send.

Refusals are not logged one by one: `poll`, once a second, logs how many a party had.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, cast

import structlog

from rgs.core.clock import Clock
from rgs.core.errors import PartyLimitError, RgsError, StreamIdleError, StreamStalledError
from rgs.service.callers import Caller

RETRY_MS: Final = 100
"""The shortest time after which a refused caller may come again; its stream is not read from for so long."""
STREAM_RETRY_MS: Final = 5_000
"""The same for a caller with too many open streams."""
HEALTH_CALLS_MAX: Final = 64
"""Health calls, watches included, that one certificate may have under way."""
WATCHERS_MAX: Final = 1_024
"""Certificates with health calls that are remembered; above this number only those with a call under way."""
SECOND_US: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class PartyLimits:
    """The limits of one party in one process, and the waiting times of a stream in seconds. Set in `rgs.toml`."""

    calls_max: int = 1_024
    messages_per_s: int = 10_000
    streams_max: int = 4_096
    stall_s: int = 60
    idle_s: int = 3_600


class Account:
    """What one party has under way. `enter` and `leave` count calls; `OpenStreams` counts streams."""

    __slots__ = ("_clock", "_limits", "_paid_us", "_party", "_step_us", "calls", "refused", "streams")

    def __init__(self, party: str, limits: PartyLimits, clock: Clock) -> None:
        self._party = party
        self._limits = limits
        self._clock = clock
        self._step_us = SECOND_US // limits.messages_per_s
        # A bucket of one second's messages, kept as the time until which the messages so far would last (GCRA).
        self._paid_us = 0
        self.calls = 0
        self.streams = 0
        self.refused: dict[str, int] = {}
        """Refusals since the last `poll`, by the setting of the limit."""

    def enter(self) -> None:
        """Count a call or message. PartyLimitError if it is above a limit."""
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

    def enter_for_task(self) -> None:
        """Count a call until the current task is done. PartyLimitError."""
        self.enter()
        task: Any = asyncio.current_task()
        task.add_done_callback(self.leave)

    def leave(self, _: object = None) -> None:
        """Count it as answered."""
        self.calls -= 1

    def refusal(self, field: str, what: str, limit: int, value: int, retry_ms: int) -> PartyLimitError:
        """The error of a limit. The refusal is counted."""
        self.refused[field] = self.refused.get(field, 0) + 1
        return PartyLimitError(
            f"{self._party} has {value} {what}, at most {limit} are allowed: try again after {retry_ms} ms",
            field=field,
            limit=limit,
            value=value,
            retry_after_ms=retry_ms,
            party=self._party,
        )

    def emit(self) -> None:
        """Log the refusals since the last time, one line for each limit."""
        refused, self.refused = self.refused, {}
        for field, times in refused.items():
            structlog.get_logger().warning("party_limit", party=self._party, field=field, refused=times)


class Quotas:
    """The accounts of this process: one for each admitted party, and one for each certificate with health calls, which
    need no entry in the allow-list.
    """

    def __init__(self, limits: PartyLimits, clock: Clock) -> None:
        self._limits = limits
        self._clock = clock
        self._accounts: dict[tuple[str, str], Account] = {}
        self._watchers: dict[bytes | None, Account] = {}

    def of(self, caller: Caller) -> Account:
        """The caller's account."""
        account = self._accounts.get((caller.role, caller.party))
        if account is None:
            account = self._accounts[caller.role, caller.party] = Account(caller.party, self._limits, self._clock)
        return account

    def enter(self, caller: Caller) -> Account:
        """The caller's account. It has one call more under way until the current task is done. PartyLimitError.

        The task ends when the client has taken the answer from the connection, not when the answer was made.
        """
        account = self.of(caller)
        account.enter_for_task()
        return account

    def enter_health(self, certificate: bytes | None) -> None:
        """As `enter`, for a call of the health service."""
        account = self._watchers.get(certificate)
        if account is None:
            if len(self._watchers) >= WATCHERS_MAX:
                self._watchers = {known: held for known, held in self._watchers.items() if held.calls}
            account = Account("health", replace(self._limits, calls_max=HEALTH_CALLS_MAX), self._clock)
            self._watchers[certificate] = account
        account.enter_for_task()

    def poll(self) -> None:
        """Log the refusals of all parties."""
        for account in self._accounts.values():
            if account.refused:
                account.emit()


class OpenStream:
    """A stream under way. `reads_s` and `writes_s` say since when it waits for a message, or for its answer to be read;
    None: it does not wait.
    """

    __slots__ = ("account", "ending", "reads_s", "task", "writes_s")

    def __init__(self, account: Account, task: asyncio.Task[Any]) -> None:
        self.account = account
        self.task = task
        self.reads_s: float | None = None
        self.writes_s: float | None = None
        self.ending: RgsError | None = None
        """Why `OpenStreams.look` ended the stream. Its task was cancelled and sends this error to the client."""

    def poll(self, now_s: float, limits: PartyLimits) -> None:
        """End the stream if it has waited for its client too long."""
        if self.ending is not None:
            return
        if self.writes_s is not None and now_s - self.writes_s >= limits.stall_s:
            self._end(StreamStalledError(f"no answer was read for {limits.stall_s} s", limit=limits.stall_s))
        elif self.reads_s is not None and now_s - self.reads_s >= limits.idle_s:
            self._end(StreamIdleError(f"nothing was sent for {limits.idle_s} s", limit=limits.idle_s))

    def _end(self, why: RgsError) -> None:
        self.ending = why
        self.task.cancel()


class OpenStreams:
    """The open streams of this process. `now_s` is the time of the last `poll`; streams take their times from it."""

    def __init__(self, limits: PartyLimits) -> None:
        self._limits = limits
        self._open: set[OpenStream] = set()
        self.now_s = 0.0

    def __len__(self) -> int:
        return len(self._open)

    def open(self, account: Account) -> OpenStream:
        """The stream of the current task, until the task is done. PartyLimitError."""
        limit = self._limits.streams_max
        if account.streams >= limit:
            what, value = "open streams", account.streams + 1
            raise account.refusal("party_streams_max", what, limit, value, STREAM_RETRY_MS)
        stream = OpenStream(account, cast("asyncio.Task[Any]", asyncio.current_task()))
        self._open.add(stream)
        account.streams += 1
        # The task is done when the client has taken the answers, or the connection is gone.
        stream.task.add_done_callback(partial(self._close, stream))
        return stream

    def poll(self, now_s: float) -> None:
        """End the streams that have waited too long. To be called about once a second, with a time that only grows."""
        self.now_s = now_s
        for stream in tuple(self._open):
            stream.poll(now_s, self._limits)

    def _close(self, stream: OpenStream, _: object) -> None:
        self._open.discard(stream)
        stream.account.streams -= 1
