"""A circuit breaker for one peer, with a limit of calls in flight.

It implements ARCHITECTURE 2.17 (unknown is a state) under load. After `failures_max` calls in a row without an answer
the circuit opens. For `open_ms` no call is sent; then one call is let through as a probe. Its answer closes the
circuit, its silence opens it again. A refusal by the peer is an answer. A call that is not sent raises the same
unavailable error as a call without an answer. Opening logs one warning and closing one line of information, however
many probes fail in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import structlog

from rgs.core.errors import UnavailableError
from rgs.ports.readings import CircuitReading, CircuitState

RETRY_MIN_MS: Final = 1
"""Least `retry_after_ms` of a call that is not sent."""


@dataclass(eq=False, repr=False)
class Circuit:
    """The circuit of one peer. It is made for one event loop and is not thread-safe."""

    name: str
    now_ms: Callable[[], int]
    unavailable: type[UnavailableError]
    failures_max: int = 5
    open_ms: int = 5_000
    in_flight_max: int = 256

    _in_flight: int = field(default=0, init=False)
    _failures: int = field(default=0, init=False)
    _open_until_ms: int | None = field(default=None, init=False)
    _probing: bool = field(default=False, init=False)
    _unknown: int = field(default=0, init=False)
    _turned_away: int = field(default=0, init=False)
    _silent_since_ms: int | None = field(default=None, init=False)
    _closings: int = field(default=0, init=False)

    def reading(self) -> CircuitReading:
        """The state now."""
        if self._open_until_ms is None:
            state = CircuitState.CLOSED
        elif self._probing or self.now_ms() >= self._open_until_ms:
            state = CircuitState.HALF_OPEN
        else:
            state = CircuitState.OPEN
        return CircuitReading(
            self.name,
            state,
            self._in_flight,
            self._unknown,
            self._turned_away,
            self._silent_since_ms,
            self._closings,
        )

    @contextmanager
    def call(self) -> Iterator[CallOutcome]:
        """A block for one call to the peer. It sets `is_answered`; otherwise the call counts as unknown.

        The unavailable error, with `retry_after_ms`, if the call must not be sent. The call of a cancelled task is
        unknown and does not count against the peer.
        """
        probe = self._admit()
        outcome = CallOutcome()
        self._in_flight += 1
        try:
            yield outcome
        except Exception:
            self._settle(outcome, probe)
            raise
        except BaseException:
            self._unknown += 1
            raise
        else:
            self._settle(outcome, probe)
        finally:
            self._in_flight -= 1
            if probe:
                self._probing = False

    def _admit(self) -> bool:
        """Whether this call is the probe; the unavailable error if it must not be sent."""
        now_ms = self.now_ms()
        if self._open_until_ms is not None and (self._probing or now_ms < self._open_until_ms):
            self._turned_away += 1
            wait_ms = max(RETRY_MIN_MS, self._open_until_ms - now_ms)
            raise self.unavailable(f"{self.name} has not answered for a while", retry_after_ms=wait_ms)
        if self._in_flight >= self.in_flight_max:
            self._turned_away += 1
            raise self.unavailable(
                f"{self.name} has {self._in_flight} calls in flight", limit=self.in_flight_max, value=self._in_flight
            )
        self._probing = self._open_until_ms is not None
        return self._probing

    def _settle(self, outcome: CallOutcome, probe: bool) -> None:
        if outcome.is_answered:
            if self._open_until_ms is not None:
                self._closings += 1
                silent_ms = self.now_ms() - (self._silent_since_ms or 0)
                structlog.get_logger().info("circuit_closed", peer=self.name, silent_ms=silent_ms)
            self._failures, self._open_until_ms, self._silent_since_ms = 0, None, None
            return
        now_ms = self.now_ms()
        self._unknown += 1
        self._failures += 1
        if self._silent_since_ms is None:
            self._silent_since_ms = now_ms
        if probe or self._failures >= self.failures_max:
            if self._open_until_ms is None:
                structlog.get_logger().warning(
                    "circuit_open", peer=self.name, failures=self._failures, open_ms=self.open_ms
                )
            self._open_until_ms = now_ms + self.open_ms


@dataclass(slots=True)
class CallOutcome:
    """Whether the peer has given a credible answer to a call: an acceptance or a refusal."""

    is_answered: bool = False
