"""Switches of admins and guards of the server: both stop new sessions, purchases and rounds (ARCHITECTURE 2.19).

Switches are in the store and are read again after every change. `rgs.service.admin.health_monitor` closes and opens
guards. A round that was dealt is always played out and settled.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rgs.core.errors import DisabledError, GuardClosedError
from rgs.store.changes import SwitchOff


@dataclass(frozen=True, slots=True)
class GuardState:
    """A guard. `code` says why it is closed, empty while it is open; a latched guard waits for an admin."""

    name: str
    code: str = ""
    latched: bool = False
    since_ms: int = 0

    @property
    def closed(self) -> bool:
        return bool(self.code)


GUARDS = ("rng", "self_test", "rules", "clock", "regulator", "store", "keys", "log")
"""Guards of: the generator, its known answers, the certified files, the clock, the regulator, the store, the node key,
the transparency log.
"""
STOPS_NO_ROUNDS = frozenset({"regulator"})
"""Without the regulator, calls that open a session or buy fail by themselves; a session that has its ids plays on."""


class Availability:
    """Switches and guards of this node, in memory; the store has the switches and latches."""

    def __init__(self) -> None:
        self._switches: dict[tuple[str, str], SwitchOff] = {}
        self._guards = {name: GuardState(name) for name in GUARDS}

    # --- switches -------------------------------------------------------------------------------------------------

    def load_switches(self, switches: Iterable[SwitchOff]) -> None:
        self._switches = {(switch.scope, switch.subject): switch for switch in switches}

    def switches(self) -> tuple[SwitchOff, ...]:
        return tuple(self._switches.values())

    def verify_enabled(self, operator: str, game: str, player: str) -> None:
        """DisabledError with the widest switch that is off."""
        if not self._switches:
            return
        for scope, subject in (
            ("play", ""),
            ("operator", operator),
            ("game", game),
            ("player", f"{operator}/{player}"),
        ):
            switch = self._switches.get((scope, subject))
            if switch is not None:
                raise DisabledError(
                    f"{scope} {subject} is disabled".replace("  ", " "),
                    scope=scope,
                    subject=subject,
                    code=switch.reason,
                )

    # --- guards ---------------------------------------------------------------------------------------------------

    def close_guard(self, name: str, code: str, now_ms: int, *, latched: bool = False) -> bool:
        """Close a guard; whether it was open before. A latched guard stays as it is."""
        state = self._guards[name]
        if state.latched or (state.closed and not latched):
            return False
        self._guards[name] = GuardState(name, code, latched, now_ms)
        return not state.closed

    def open_guard(self, name: str, *, clear_latch: bool = False) -> bool:
        """Open a guard; whether it was closed before. A latched one opens only with `clear_latch`."""
        state = self._guards[name]
        if not state.closed or (state.latched and not clear_latch):
            return False
        self._guards[name] = GuardState(name)
        return True

    def clear_latch(self, name: str, code: str, now_ms: int) -> None:
        """Clear the latch of a guard: it opens, or stays closed without a latch if there is a code."""
        self._guards[name] = GuardState(name, code, since_ms=now_ms) if code else GuardState(name)

    def guard(self, name: str) -> GuardState:
        return self._guards[name]

    def guards(self) -> tuple[GuardState, ...]:
        return tuple(self._guards.values())

    @property
    def serving(self) -> bool:
        return not any(state.closed for state in self._guards.values() if state.name not in STOPS_NO_ROUNDS)

    def verify_guards(self) -> None:
        """GuardClosedError with the first closed guard that stops new rounds."""
        for state in self._guards.values():
            if state.code and state.name not in STOPS_NO_ROUNDS:
                raise GuardClosedError(
                    f"guard {state.name} is closed: {state.code}",
                    guard=state.name,
                    code=state.code,
                    latched=state.latched,
                )

    def verify_may_start(self, operator: str, game: str, player: str) -> None:
        """Check guards and switches before a new round, session or purchase."""
        self.verify_guards()
        self.verify_enabled(operator, game, player)
