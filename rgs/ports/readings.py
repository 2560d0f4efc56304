"""The state of the connection to a peer, for recovery and for monitoring. `rgs.adapters.grpc.circuit` makes it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum, unique
from typing import Final

REGULATOR: Final = "regulator"
"""The name of the regulator's system in logs and readings."""


def wallet_name(operator: str) -> str:
    """The name of an operator's wallet in logs and readings."""
    return f"wallet of {operator}"


@unique
class CircuitState(StrEnum):
    """CLOSED lets all calls through, OPEN none, HALF_OPEN one as a probe."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


@dataclass(frozen=True, slots=True)
class CircuitReading:
    """The state of a peer's circuit. Times are of the injected clock."""

    name: str
    state: CircuitState
    in_flight: int
    unknown: int
    """Calls without a credible answer since the start."""
    turned_away: int
    """Calls that were not sent since the start: the circuit was open, or too many were in flight."""
    silent_since_ms: int | None
    """When the first of the latest calls without an answer ended; None after an answer."""
    closings: int = 0
    """How often the circuit has closed again since the start."""
