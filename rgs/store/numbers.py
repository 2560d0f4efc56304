"""Row numbers where many processes write: unique over all of them, and in order for each instance, session and
table, without a sequence.

A number is a hybrid logical clock: milliseconds since 2025, a count below the millisecond, and in the lowest 12 bits
the slot of the instance, which no other live instance has. It is always above the numbers that the instance, and the
sessions and tables that it writes of, had before. So statements ordered by it keep the order of every instance, session
and table, as a replay needs, whatever the clocks of the hosts say. Pure.
"""

from __future__ import annotations

from typing import Final

EPOCH_MS: Final = 1_735_689_600_000
"""2025-01-01. The numbers stay below 2^62 until 2059."""
SLOT_BITS: Final = 12
SLOTS: Final = 1 << SLOT_BITS
"""Instances alive at a time."""
_TIME_BITS: Final = 22


class RowNumbers:
    """The numbers of one transaction, rising. `previous` is the greatest one that they must stand behind."""

    def __init__(self, slot: int, now_ms: int, previous: int) -> None:
        clock = max(0, now_ms - EPOCH_MS) << _TIME_BITS
        self._next = max(clock, ((previous >> SLOT_BITS) + 1) << SLOT_BITS) | slot

    def take(self) -> int:
        """The next number."""
        number = self._next
        self._next += SLOTS
        return number
