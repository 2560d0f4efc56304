"""The samples of one process, read from what it holds in memory. Nothing here waits, and nothing here counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from rgs import __version__
from rgs.adapters.grpc.peer import Peer
from rgs.api.calls import Calls
from rgs.core.clock import TrustedClock
from rgs.node.leases import Leases
from rgs.node.metrics.samples import Samples
from rgs.ports.readings import CircuitState
from rgs.service.availability import Availability
from rgs.service.tables.dealer import Dealer
from rgs.store.interface import Store

PACKAGE: Final = "rgs.v1."
OPEN: Final = {CircuitState.CLOSED: 0.0, CircuitState.HALF_OPEN: 0.5, CircuitState.OPEN: 1.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessParts:
    """What a process is asked about. `log` says whether it writes the transparency log, and the lag in milliseconds."""

    node: str
    clock: TrustedClock
    calls: Calls
    store: Store
    availability: Availability
    leases: Leases
    dealer: Dealer
    peers: Callable[[], Sequence[Peer]]
    log: Callable[[], tuple[bool, int]]

    def read(self) -> Samples:
        """All samples of the process."""
        found = Samples()
        found.add("rgs_info", 1, self.node, __version__)
        self._read_calls(found)
        self._read_store(found)
        self._read_guards(found)
        for peer in self.peers():
            self._read_peer(found, peer)
        running_ms = self.clock.running_ms()
        found.add("rgs_lease_age_seconds", max(0, running_ms - self.leases.renewed_ms) / 1000)
        found.add("rgs_clock_trusted", self.clock.is_trusted)
        found.add("rgs_clock_apart_seconds", self.clock.apart_ms / 1000)
        leads, lag_ms = self.log()
        found.add("rgs_log_leads", leads)
        found.add("rgs_log_lag_seconds", lag_ms / 1000)
        for step, late in self.dealer.late.items():
            found.count("rgs_table_step_late_seconds", late, step)
        return found

    def _read_calls(self, found: Samples) -> None:
        calls = self.calls
        for (name, reason), count in calls.reasons.items():
            found.add("rgs_calls_total", count, name.removeprefix(PACKAGE), reason)
        for name, times in calls.times.items():
            found.count("rgs_call_seconds", times, name.removeprefix(PACKAGE))
        found.add("rgs_calls_under_way", calls.under_way)
        found.add("rgs_streams_open", len(calls.streams))

    def _read_store(self, found: Samples) -> None:
        writer = self.store.writer
        found.count("rgs_commit_group_changes", writer.group_sizes)
        found.count("rgs_commit_group_seconds", writer.group_times)
        found.add("rgs_commit_stuck", writer.is_stuck)
        found.add("rgs_draws_unknown", writer.draws_unknown)
        found.add("rgs_draws_owed", self.store.draws_owed)
        found.add("rgs_draw_window", self.store.draw_window)

    def _read_guards(self, found: Samples) -> None:
        for guard in self.availability.guards():
            found.add("rgs_guard_closed", guard.closed, guard.name)
        found.add("rgs_new_rounds", self.availability.serving)
        found.add("rgs_switches_off", len(self.availability.switches()))

    def _read_peer(self, found: Samples, peer: Peer) -> None:
        reading = peer.reading()
        found.add("rgs_circuit_open", OPEN[reading.state], peer.name)
        silent_ms = 0 if reading.silent_since_ms is None else peer.now_ms() - reading.silent_since_ms
        found.add("rgs_circuit_silent_seconds", silent_ms / 1000, peer.name)
        found.add("rgs_circuit_in_flight", reading.in_flight, peer.name)
        found.add("rgs_circuit_unknown_total", reading.unknown, peer.name)
        found.add("rgs_circuit_turned_away_total", reading.turned_away, peer.name)
        for (method, reason), count in peer.reasons.items():
            found.add("rgs_peer_calls_total", count, peer.name, method, reason)
        for method, times in peer.times.items():
            found.count("rgs_peer_call_seconds", times, peer.name, method)
