"""The newest cosigned checkpoint of the log, as this process knows it: named by its `instance_start`, and from time to
time by an event (docs/keys.md).

What is signed after it cannot have been made before the witness saw it, whatever time it bears: so a stolen key shows
whose statements claim to be older than what they name. A house without play tells it as well: each event brings the
next checkpoint, and a log that stands still can be told from one that nobody plays on.

Refuses to call a checkpoint known that bears the log's own signature alone. Whether a cosignature is a witness's was
looked at when it was taken into the note.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from rgs.core.clock import Clock
from rgs.core.tlog.checkpoints import parse_checkpoint
from rgs.core.tlog.note import parse_note
from rgs.service.events import EventCode, Events

PERIOD_MS: Final = 300_000


@dataclass(frozen=True, slots=True)
class CosignedCheckpoint:
    """The log `origin` had `size` entries with this root, hex, and a witness saw it."""

    origin: str
    size: int
    root: str

    def body(self) -> dict[str, str]:
        """As statements name it."""
        return {"origin": self.origin, "root": self.root, "size": str(self.size)}


def parse_cosigned(note: bytes) -> CosignedCheckpoint | None:
    """The checkpoint of a note; None where there is none, or nobody but the log has signed it. FormatError."""
    if not note:
        return None
    parsed = parse_note(note)
    checkpoint = parse_checkpoint(parsed.text)
    if all(line.name == checkpoint.origin for line in parsed.signatures):
        return None
    return CosignedCheckpoint(checkpoint.origin, checkpoint.size, checkpoint.root.hex())


class CosignedNews:
    """Tells what becomes known, at most once a period."""

    def __init__(self, *, known: Callable[[], CosignedCheckpoint | None], events: Events, clock: Clock) -> None:
        self._known = known
        self._events = events
        self._clock = clock
        self._told = known()
        self._told_ms = clock.running_ms()

    async def look(self) -> None:
        """Sign an event if a newer checkpoint is known and the last one was told a while ago. StoreError."""
        now_ms = self._clock.running_ms()
        if now_ms - self._told_ms < PERIOD_MS:
            return
        newest = self._known()
        if newest is None or newest == self._told:
            return
        await self._events.tell(EventCode.CHECKPOINT_KNOWN, subject=newest.origin, after=f"{newest.size} {newest.root}")
        self._told, self._told_ms = newest, now_ms
