"""How a connection to a peer is, as those read it who decide when to ask again and who tell people.

Refuses nothing: readings are made by `rgs.adapters.grpc.circuit`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum, unique
from typing import Final

CENTRAL_SYSTEM: Final = "central system"
"""What logs and readings call the regulator's."""


def wallet_name(operator: str) -> str:
    """What logs and readings call an operator's wallet."""
    return f"wallet of {operator}"


@unique
class CircuitState(StrEnum):
    """CLOSED lets calls through, OPEN none, HALF_OPEN one as a probe."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


@dataclass(frozen=True, slots=True)
class CircuitReading:
    """What there is to tell of a peer. Times by the clock that was injected."""

    name: str
    state: CircuitState
    in_flight: int
    unknown: int
    """Calls that were sent and not answered, or not believably, since the start."""
    turned_away: int
    """Calls that were not sent: circuit open, or too many in flight."""
    silent_since_ms: int | None
    """When the first of the calls in a row without an answer was given up; None once one is answered."""
    closings: int = 0
    """How often the circuit has closed again since the start."""
