"""The windows of a table's round: when each decision could be taken, and why the window ended.

An auditor reads them from `table_final` (check 26). A pause ends a window; after it the whole window runs again.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from rgs.core.games.types import Phase
from rgs.core.times import format_time

LATE_MAX_MS: Final = 10_000
"""The most that a window may last beyond its time. A table that is later than this pauses, and the window runs again
whole: an outage is no longer window for those who can still reach the server.
"""

WINDOWS_MAX: Final = 64
"""The most windows of a round that a `table_final` holds."""


class WindowEnd(StrEnum):
    """TIME: it ran out. DECIDED: nobody was undecided. PAUSED: a malfunction; the phase gets another whole window."""

    TIME = "time"
    DECIDED = "decided"
    PAUSED = "paused"


@dataclass(frozen=True, slots=True)
class Window:
    """One decision window, closed. Times are milliseconds; a decision at `close_ms` is still inside."""

    phase: Phase
    open_ms: int
    close_ms: int
    end: WindowEnd

    def body(self) -> dict[str, Any]:
        """The object that is signed."""
        return {
            "close_time": format_time(self.close_ms),
            "end": self.end.value,
            "open_time": format_time(self.open_ms),
            "phase": self.phase.value,
        }
