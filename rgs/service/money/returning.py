"""When affairs that wait for a peer are gone on with: by their own time and its connection (ARCHITECTURE 2.17).

An affair that was not answered waits longer after each attempt. While the circuit of its peer is open nothing is asked,
and nothing counts as an attempt. Once it lets a probe through, the oldest affair is the probe, due or not; and when the
peer has answered, every affair that waited for it is due. So a peer that comes back finds all of it within one opening
of its circuit and a pass or two of recovery, however long it was away.

Refuses to know what an affair is; a peer that gives no readings is asked by the affairs' own times alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rgs.core.errors import RegulatorUnavailableError, WalletUnavailableError
from rgs.ports.readings import CENTRAL_SYSTEM, CircuitReading, CircuitState, wallet_name
from rgs.service.money.movements import AHEAD_MS, GAP_MAX_MS
from rgs.store.changes import Affair


class Returning:
    """For one process: the circuits are its own."""

    def __init__(self, readings: Callable[[], Sequence[CircuitReading]]) -> None:
        self._readings = readings
        self._before: Mapping[str, int] = {}
        """How often each circuit had closed when the pass before this one began; none before the first pass: whatever a
        process finds when it starts is due.
        """
        self._at_start: Mapping[str, int] = {}
        self._probed: set[str] = set()
        self._known: dict[str, CircuitReading] = {}
        """As read last; a peer that has been asked since is read again."""

    def begin(self) -> None:
        """A pass over what waits begins."""
        self._read()
        self._before = self._at_start
        self._at_start = {name: reading.closings for name, reading in self._known.items()}
        self._probed.clear()

    def _read(self) -> None:
        self._known = {reading.name: reading for reading in self._readings()}

    def is_due(self, affair: Affair, now_ms: int) -> bool:
        """Whether the affair is gone on with in this pass."""
        name = _peer_of(affair)
        if name not in self._at_start:
            return _is_time(affair, now_ms)
        if name not in self._known:
            self._read()
        reading = self._known[name]
        if reading.state is CircuitState.OPEN:
            return False
        if reading.state is CircuitState.HALF_OPEN:
            is_due = name not in self._probed
            self._probed.add(name)
        else:
            is_due = _is_time(affair, now_ms) or reading.closings > self._before.get(name, -1)
        if is_due:
            del self._known[name]
        return is_due


def _is_time(affair: Affair, now_ms: int) -> bool:
    """Its time has come; one further ahead than any of ours can be is from before the clock was set back."""
    return not now_ms < affair.next_ms <= now_ms + AHEAD_MS + GAP_MAX_MS


def _peer_of(affair: Affair) -> str:
    """Whose silence the affair waits out; empty where it waits for nobody."""
    match affair.reason:
        case WalletUnavailableError.reason:
            return wallet_name(affair.party)
        case RegulatorUnavailableError.reason:
            return CENTRAL_SYSTEM
        case _:
            return ""
