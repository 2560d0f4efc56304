"""Offline proof that an entry stands in a log (C2SP tlog-proof v1): index, inclusion path, signed checkpoint.

The other half of a receipt is the entry itself, in a file of its own. Parsing is strict: what was parsed formats to the
identical bytes. Extra data is carried but not signed, so it proves nothing.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Final

from rgs.core.tlog.checkpoints import Checkpoint, format_hash, parse_checkpoint, parse_hash, parse_size
from rgs.core.tlog.errors import FormatError
from rgs.core.tlog.merkle import verify_inclusion
from rgs.core.tlog.note import NOTE_BYTES_MAX, Note, decode_base64, format_note, parse_note

HEADER: Final = "c2sp.org/tlog-proof@v1"
PATH_MAX: Final = 63
PROOF_BYTES_MAX: Final = 2 * NOTE_BYTES_MAX


@dataclass(frozen=True, slots=True)
class LogProof:
    """Leaf `index` (from 0), its audit path, sibling first, and the note of the checkpoint; `extra` None: no line."""

    index: int
    path: tuple[bytes, ...]
    checkpoint: Note
    extra: bytes | None = None


def format_log_proof(proof: LogProof) -> bytes:
    """The bytes of a `.tlog-proof` file. Inverse of `parse_log_proof`."""
    lines = [HEADER]
    if proof.extra is not None:
        lines.append(f"extra {base64.b64encode(proof.extra).decode('ascii')}")
    lines.append(f"index {proof.index}")
    lines += [format_hash(one) for one in proof.path]
    return "".join(f"{line}\n" for line in (*lines, "")).encode() + format_note(proof.checkpoint)


def parse_log_proof(data: bytes) -> LogProof:
    """The proof in `data`; FormatError names the first fault."""
    if len(data) > PROOF_BYTES_MAX:
        raise FormatError(f"a proof of {len(data)} bytes is longer than {PROOF_BYTES_MAX}", limit=PROOF_BYTES_MAX)
    head, gap, note = data.partition(b"\n\n")
    try:
        lines = head.decode().split("\n")
    except UnicodeDecodeError:
        raise FormatError("a proof is UTF-8", field="proof") from None
    if not gap or lines.pop(0) != HEADER:
        raise FormatError(f"a proof begins with {HEADER}", field="proof")
    has_extra = bool(lines) and lines[0].startswith("extra ")
    extra = decode_base64(lines.pop(0).removeprefix("extra "), "extra") if has_extra else None
    if not lines or not lines[0].startswith("index "):
        raise FormatError("a proof names the index of its leaf", field="index")
    index = parse_size(lines.pop(0).removeprefix("index "))
    if len(lines) > PATH_MAX:
        raise FormatError(f"an audit path of {len(lines)} hashes", field="path", limit=PATH_MAX, value=len(lines))
    return LogProof(index, tuple(map(parse_hash, lines)), parse_note(note), extra)  # each part in its one form


def verify_log_proof(proof: LogProof, leaf: bytes) -> Checkpoint:
    """The checkpoint under whose root the leaf hash stands; VerificationError otherwise. Signatures are for
    `verify_note` and the policy.
    """
    checkpoint = parse_checkpoint(proof.checkpoint.text)
    verify_inclusion(leaf, proof.index, checkpoint.size, proof.path, checkpoint.root)
    return checkpoint
