"""Checkpoints of a transparency log (C2SP tlog-checkpoint): origin, tree size and root, as the text of a signed note.

Parsing is strict: the parsed value formats to the identical text. Extension lines are read and kept. Our log writes
none, because witnesses do not check them.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from typing import Final

from rgs.core.tlog.errors import FormatError
from rgs.core.tlog.merkle import EMPTY_ROOT, HASH_BYTES

SIZE_MAX: Final = 2**63 - 1
_SIZE: Final = re.compile(r"0|[1-9][0-9]{0,18}", re.ASCII)
_CONTROLS: Final = re.compile(r"[\x00-\x1f]")


class EmptyRootError(FormatError):
    """An empty tree has another root than the hash of nothing. A witness has a status of its own for this."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The log `origin` had `size` leaves with this `root` (32 bytes)."""

    origin: str
    size: int
    root: bytes
    extensions: tuple[str, ...] = ()


def format_checkpoint(checkpoint: Checkpoint) -> str:
    """The text of the note. Inverse of `parse_checkpoint`; FormatError for a malformed checkpoint."""
    root = base64.b64encode(checkpoint.root).decode("ascii")
    lines = (checkpoint.origin, str(checkpoint.size), root, *checkpoint.extensions)
    text = "".join(f"{line}\n" for line in lines)
    _verify_whole(checkpoint)
    return text


def parse_checkpoint(text: str) -> Checkpoint:
    """The checkpoint that is a note's text; FormatError names the first fault."""
    lines = text.split("\n")
    if len(lines) < 4 or lines[-1]:
        raise FormatError("a checkpoint is three lines or more, each with its line feed", field="checkpoint")
    origin, size, root, *extensions = lines[:-1]
    checkpoint = Checkpoint(origin, parse_size(size), parse_hash(root), tuple(extensions))
    _verify_whole(checkpoint)
    return checkpoint


def parse_size(text: str) -> int:
    """A tree size or index: decimal, no leading zero, below 2**63."""
    if _SIZE.fullmatch(text) is None or int(text) > SIZE_MAX:
        raise FormatError("a size is a decimal number without leading zeros", field="size", value=text[:40])
    return int(text)


def parse_hash(text: str) -> bytes:
    """A hash of 32 bytes from base64 in its one form."""
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    if len(raw) != HASH_BYTES or format_hash(raw) != text:
        raise FormatError("a hash is 32 bytes in base64", field="hash", value=text[:60])
    return raw


def format_hash(hash_: bytes) -> str:
    """Base64. Inverse of `parse_hash`."""
    return base64.b64encode(hash_).decode("ascii")


def _verify_whole(checkpoint: Checkpoint) -> None:
    for name, lines in (("origin", (checkpoint.origin,)), ("extensions", checkpoint.extensions)):
        if not all(line and _CONTROLS.search(line) is None for line in lines):
            raise FormatError(f"{name}: a line is empty or has control characters", field=name)
    if len(checkpoint.root) != HASH_BYTES or not 0 <= checkpoint.size <= SIZE_MAX:
        raise FormatError("a root has 32 bytes, a size is 0 to 2**63 - 1", field="root")
    if not checkpoint.size and checkpoint.root != EMPTY_ROOT:
        raise EmptyRootError("the tree of no leaves has the hash of nothing as its root", field="root")
