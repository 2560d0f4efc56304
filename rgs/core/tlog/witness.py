"""What a log asks of a witness, and how a witness decides, pure (C2SP tlog-witness, add-checkpoint).

The request is an old size, a consistency proof and a checkpoint. `judge` is the whole decision of a witness for one
origin, from the row that it keeps. Its caller compares and persists in one step before it answers. Parsing is strict:
what was parsed formats to the identical bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rgs.core.tlog.checkpoints import EmptyRootError, format_hash, parse_checkpoint, parse_hash, parse_size
from rgs.core.tlog.errors import FormatError, VerificationError
from rgs.core.tlog.merkle import EMPTY_ROOT, verify_consistency
from rgs.core.tlog.note import NOTE_BYTES_MAX, Note, NoteKey, format_note, parse_note, verify_note

PROOF_MAX: Final = 63
REQUEST_BYTES_MAX: Final = 2 * NOTE_BYTES_MAX
UNKNOWN_ORIGIN: Final = 404
NOT_SIGNED: Final = 403
OLD_TOO_LARGE: Final = 400
STALE: Final = 409
INCONSISTENT: Final = 422
"""HTTP statuses of the refusals, as the standard says."""
SIZE_TYPE: Final = "text/x.tlog.size"
"""Content type of the answer to a stale `old`."""


@dataclass(frozen=True, slots=True)
class AddCheckpoint:
    """`old` is the size that the sender believes the witness has seen last."""

    old: int
    proof: tuple[bytes, ...]
    checkpoint: Note


@dataclass(frozen=True, slots=True)
class SeenTree:
    """The largest tree of an origin that a witness has cosigned."""

    size: int = 0
    root: bytes = EMPTY_ROOT


class WitnessRefusalError(VerificationError, reason="WITNESS_REFUSED"):
    """The witness does not cosign: `status` is the HTTP status, `size` the size last seen where that is the answer."""

    @property
    def status(self) -> int:
        return int(self.metadata["status"])

    @property
    def size(self) -> int | None:
        return int(self.metadata["size"]) if "size" in self.metadata else None


def format_add_checkpoint(request: AddCheckpoint) -> bytes:
    """The body of the request. Inverse of `parse_add_checkpoint`."""
    lines = [f"old {request.old}", *map(format_hash, request.proof), ""]
    return "".join(f"{line}\n" for line in lines).encode() + format_note(request.checkpoint)


def parse_add_checkpoint(body: bytes) -> AddCheckpoint:
    """The request in a body; FormatError names the first fault."""
    if len(body) > REQUEST_BYTES_MAX:
        raise FormatError(f"a request of {len(body)} bytes is longer than {REQUEST_BYTES_MAX}", limit=REQUEST_BYTES_MAX)
    head, gap, note = body.partition(b"\n\n")
    try:
        lines = head.decode("ascii").split("\n")
    except UnicodeDecodeError:
        raise FormatError("the proof is ASCII", field="proof") from None
    if not gap or not lines[0].startswith("old "):
        raise FormatError("the request begins with the old size", field="old")
    if len(lines) - 1 > PROOF_MAX:
        raise FormatError(f"more than {PROOF_MAX} hashes", field="proof", limit=PROOF_MAX, value=len(lines) - 1)
    old = parse_size(lines[0].removeprefix("old "))
    return AddCheckpoint(old, tuple(map(parse_hash, lines[1:])), parse_note(note))


def origin_of(request: AddCheckpoint) -> str:
    """The origin whose row decides: the first line, whatever the others are."""
    return request.checkpoint.text.partition("\n")[0]


def judge(request: AddCheckpoint, keys: Sequence[NoteKey], seen: SeenTree) -> tuple[SeenTree, Note]:
    """What replaces `seen`, and the note that may be cosigned: it has only the lines of the log, because anybody can
    add others. WitnessRefusalError, FormatError otherwise.

    `keys` are the log keys that the witness trusts for this origin.
    """
    if not keys:
        raise WitnessRefusalError("this witness does not know the origin", status=UNKNOWN_ORIGIN)
    try:
        verify_note(request.checkpoint, keys)
    except VerificationError as error:
        raise WitnessRefusalError(str(error), status=NOT_SIGNED) from None
    try:
        checkpoint = parse_checkpoint(request.checkpoint.text)
    except EmptyRootError as error:
        raise WitnessRefusalError(str(error), status=INCONSISTENT) from None
    if request.old > checkpoint.size:
        raise WitnessRefusalError(f"old {request.old} is above the size {checkpoint.size}", status=OLD_TOO_LARGE)
    if request.old != seen.size:
        raise WitnessRefusalError(f"the size last seen is {seen.size}", status=STALE, size=seen.size)
    try:
        verify_consistency(seen.size, seen.root, checkpoint.size, checkpoint.root, request.proof)
    except VerificationError as error:
        raise WitnessRefusalError(str(error), status=INCONSISTENT) from None
    known = {(key.name, key.key_id) for key in keys}
    signed = tuple(one for one in request.checkpoint.signatures if (one.name, one.key_id) in known)
    return SeenTree(checkpoint.size, checkpoint.root), Note(request.checkpoint.text, signed)
