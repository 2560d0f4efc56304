"""For how long each witness of the log's policy has not cosigned what is published.

A witness cosigns as long as its line is on the published checkpoint, or a line of it is new. So a log without new
statements makes no witness old. One that never answers is counted from the first reading.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rgs.core.errors import FormatError
from rgs.core.tlog.checkpoints import parse_checkpoint
from rgs.core.tlog.note import cosigned_s, parse_note
from rgs.node.config import Config
from rgs.node.log_folder import shards
from rgs.node.transparency_log import load_policy
from rgs.tlog.directory import LogDirectory


@dataclass(kw_only=True, eq=False, repr=False)
class WitnessAges:
    """Reads the newest shard. The policy is the one of the start, which asks the witnesses."""

    config: Config
    _cosigned_ms: dict[str, int] = field(default_factory=dict, init=False)
    """Name -> when it was last known to cosign, by the running clock."""

    def __post_init__(self) -> None:
        """FileRefusedError, InvalidFieldError."""
        path = self.config.log_policy
        parties = {} if path is None else load_policy(path)[0].witnesses
        self._names = [party.key.name for party in parties.values() if party.url]

    def read(self, running_ms: int, now_ms: int) -> dict[str, float]:
        """Name -> seconds, at this running time and this time. It asks no clock, so that a thread may call it."""
        lines = self._lines(now_ms)
        for name in self._names:
            before_ms = self._cosigned_ms.get(name, running_ms)
            line_ms = min(lines.get(name, 0), now_ms)
            self._cosigned_ms[name] = max(before_ms, running_ms - (now_ms - line_ms))
        return {name: (running_ms - since_ms) / 1000 for name, since_ms in self._cosigned_ms.items()}

    def _lines(self, now_ms: int) -> dict[str, int]:
        """Name -> the time of its newest line in milliseconds: now for a line on what is published."""
        found: dict[str, int] = {}
        folders = shards(self.config)
        if not folders:
            return found
        directory = LogDirectory(folders[-1])
        for read, is_published in ((directory.cosigned, False), (directory.checkpoint, True)):
            try:
                if not (kept := read()):
                    continue
                note = parse_note(kept)
                origin = parse_checkpoint(note.text).origin
            except (OSError, FormatError):
                continue  # nothing that can be read: the ages grow
            for line in note.signatures:
                if line.name != origin:
                    found[line.name] = now_ms if is_published else cosigned_s(line) * 1000
        return found
