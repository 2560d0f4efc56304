"""The newest cosigned checkpoint of the log that this process knows. Its `instance_start` names it, and periodically an
event (docs/keys.md).

A statement signed after it cannot be older than the witness's signature, whatever time it gives. So statements of a
stolen key show when they claim to be older than what they name. The events come without play, too: each adds an entry
and so the next checkpoint, so that a stuck log differs from one without play.

A checkpoint with the log's own signature alone does not count. The cosignatures of a note were verified when they were
added to it.
"""

from __future__ import annotations

import asyncio
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
    """A witness saw the log `origin` with `size` entries and this root, in hex."""

    origin: str
    size: int
    root: str

    def body(self) -> dict[str, str]:
        """The checkpoint in a statement."""
        return {"origin": self.origin, "root": self.root, "size": str(self.size)}


def parse_cosigned(note: bytes) -> CosignedCheckpoint | None:
    """The checkpoint of a note; None for an empty note, or one that only the log has signed. FormatError."""
    if not note:
        return None
    parsed = parse_note(note)
    checkpoint = parse_checkpoint(parsed.text)
    if all(line.name == checkpoint.origin for line in parsed.signatures):
        return None
    return CosignedCheckpoint(checkpoint.origin, checkpoint.size, checkpoint.root.hex())


class CosignedNews:
    """Signs an event for a newer checkpoint, at most once a period."""

    def __init__(self, *, known: Callable[[], CosignedCheckpoint | None], events: Events, clock: Clock) -> None:
        self._known = known
        self._events = events
        self._clock = clock
        self._reported = known()
        self._reported_ms = clock.running_ms()

    async def poll(self) -> None:
        """Sign an event if a newer checkpoint is known and the period has passed. StoreError."""
        now_ms = self._clock.running_ms()
        if now_ms - self._reported_ms < PERIOD_MS:
            return
        newest = await asyncio.to_thread(self._known)  # it reads files, and their folder may hang
        if newest is None or newest == self._reported:
            return
        await self._events.emit(EventCode.CHECKPOINT_KNOWN, subject=newest.origin, after=f"{newest.size} {newest.root}")
        self._reported, self._reported_ms = newest, now_ms
