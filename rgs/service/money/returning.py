"""When recovery continues an operation that waits for a peer: by its time and the peer's circuit (ARCHITECTURE 2.17).

An operation waits longer after each attempt without an answer. While the circuit of its peer is open, no call is made
and no attempt is counted. When the circuit lets a probe through, the oldest operation is the probe, due or not. When
the peer has answered, every operation that waits for it is due. So a peer that comes back gets all of them within one
opening of its circuit and a pass or two of recovery. Without readings of a peer, only the operations' times count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rgs.core.errors import RegulatorUnavailableError, WalletUnavailableError
from rgs.ports.readings import REGULATOR, CircuitReading, CircuitState, wallet_name
from rgs.service.money.transfers import AHEAD_MS, GAP_MAX_MS
from rgs.store.changes import Operation


class Returning:
    """The readings and probes of one process."""

    def __init__(self, readings: Callable[[], Sequence[CircuitReading]]) -> None:
        self._readings = readings
        self._before: Mapping[str, int] = {}
        """How often each circuit had closed when the previous pass began. It is empty before the first pass, so that
        everything is due when a process starts.
        """
        self._at_start: Mapping[str, int] = {}
        self._probed: set[str] = set()
        self._known: dict[str, CircuitReading] = {}
        """The last readings. A peer that was called since is read again."""

    def begin(self) -> None:
        """Begin a pass over the pending operations."""
        self._read()
        self._before = self._at_start
        self._at_start = {name: reading.closings for name, reading in self._known.items()}
        self._probed.clear()

    def _read(self) -> None:
        self._known = {reading.name: reading for reading in self._readings()}

    def is_due(self, operation: Operation, now_ms: int) -> bool:
        """Whether this pass continues the operation."""
        name = _peer_of(operation)
        if name not in self._at_start:
            return _is_time(operation, now_ms)
        if name not in self._known:
            self._read()
        reading = self._known[name]
        if reading.state is CircuitState.OPEN:
            return False
        if reading.state is CircuitState.HALF_OPEN:
            is_due = name not in self._probed
            self._probed.add(name)
        else:
            is_due = _is_time(operation, now_ms) or reading.closings != self._before.get(name)
        if is_due:
            del self._known[name]
        return is_due


def _is_time(operation: Operation, now_ms: int) -> bool:
    """Whether its time has come. A time too far ahead to be ours was stored before the clock was set back."""
    return not now_ms < operation.next_ms <= now_ms + AHEAD_MS + GAP_MAX_MS


def _peer_of(operation: Operation) -> str:
    """The peer that the operation waits for; empty if it waits for none."""
    match operation.reason:
        case WalletUnavailableError.reason:
            return wallet_name(operation.party)
        case RegulatorUnavailableError.reason:
            return REGULATOR
        case _:
            return ""
