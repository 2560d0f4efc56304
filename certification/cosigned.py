"""Checkpoints that outside witnesses have cosigned, as far as this auditor knows: from the state, from files that the
auditor brings, and from the log today. Under a revoked key nothing else stands (docs/keys.md).

Whole notes are kept and judged under today's policy. A witness that turns out to belong to the operator of the RGS, or
that is no longer trusted, counts for nothing from then on. At most NOTES_MAX notes are kept; of old ones fewer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final

from certification.replay import FileError, read_file
from rgs.core.errors import FormatError, RgsError
from rgs.core.replay import Witnessed
from rgs.core.replay.revocations import read_witnessed
from rgs.core.tlog.checkpoints import parse_checkpoint
from rgs.core.tlog.note import NOTE_BYTES_MAX, parse_note
from rgs.core.tlog.policies import Policy

NOTES_MAX: Final = 512


def read_notes(paths: Iterable[Path], policy: Policy, own: Collection[str]) -> list[bytes]:
    """The cosigned checkpoints of files. FileError, also for one that no outside witness has cosigned."""
    notes = []
    for path in paths:
        note = read_file(path, NOTE_BYTES_MAX)
        try:
            read_witnessed(note, policy, own)
        except RgsError as error:
            raise FileError(f"--witnessed {path}: {error}") from error
        notes.append(note)
    return notes


class CosignedCheckpoints:
    """Cosigned checkpoints of one system's shards: for each size the one with the earliest outside cosignature."""

    def __init__(self, policy: Policy, own: Collection[str], notes: Iterable[str] = ()) -> None:
        """`notes` are those of a state; FormatError if one cannot be read."""
        self._policy = policy
        self._own = frozenset(own)
        self._held: dict[tuple[str, int], tuple[bytes, Witnessed | None]] = {}
        for note in notes:
            self.add(note.encode("utf-8"))

    def add(self, note: bytes) -> None:
        """Add a note; FormatError. The policy says whether it counts."""
        checkpoint = parse_checkpoint(parse_note(note).text)
        try:
            seen = read_witnessed(note, self._policy, self._own)
        except RgsError:
            seen = None
        of = (checkpoint.origin, checkpoint.size)
        _, before = self._held.get(of, (b"", None))
        if before is None or (seen is not None and seen.time < before.time):
            self._held[of] = (note, seen)

    @property
    def witnessed(self) -> list[Witnessed]:
        """The checkpoints that count under today's policy."""
        return [seen for _, seen in self._held.values() if seen is not None]

    @property
    def notes(self) -> list[str]:
        """The notes that a state keeps, by shard and size: all if few, else every second one of the older half."""
        kept = [self._held[of][0].decode("utf-8") for of in sorted(self._held)]
        while len(kept) > NOTES_MAX:
            middle = len(kept) // 2
            kept = kept[:middle:2] + kept[middle:]
        return kept


def of_document(notes: object, policy: Policy, own: Collection[str]) -> CosignedCheckpoints:
    """The cosigned checkpoints of a state. FormatError."""
    if not isinstance(notes, list) or not all(isinstance(note, str) for note in notes):
        raise FormatError("the state has no list of cosigned checkpoints")
    return CosignedCheckpoints(policy, own, notes)
