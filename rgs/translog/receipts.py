"""Receipts of statements that are in a log: a `.tlog-proof` (C2SP tlog-proof) under the newest checkpoint that
witnesses have cosigned, or under the published one where that does not cover the statement yet.

Read from the log's own files, so that any copy of them will do. Refuses a statement that is not in the log yet.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rgs.core.checkpoints import parse_checkpoint
from rgs.core.errors import NotFoundError
from rgs.core.logproofs import LogProof, format_log_proof, verify_log_proof
from rgs.core.merkle import inclusion_proof
from rgs.core.note import Note, parse_note
from rgs.core.receipts import format_key_path
from rgs.core.shards import parse_origin
from rgs.core.tiles import CHECKPOINT_PATH, TILE_WIDTH, Tile
from rgs.translog.directory import LogDirectory


def make_proof(folder: Path, hash_: bytes, *, bundle: bytes, start: bytes) -> bytes:
    """The `.tlog-proof` of the statement with this hash, with its key path. NotFoundError, LogRefusedError.

    `folder` is a shard, or holds shards; `start` is the envelope of the signer's instance_start.
    """
    for shard in shards(folder):
        directory = LogDirectory(shard)
        note = parse_note(directory.checkpoint())
        size = parse_checkpoint(note.text).size
        index = find(directory, hash_, size)
        if index is not None:
            note, size = _witnessed(directory, index) or (note, size)
            path = inclusion_proof(directory.subtrees(size), index, size)
            proof = LogProof(index, tuple(path), note, format_key_path(bundle, start))
            verify_log_proof(proof, hash_)
            return format_log_proof(proof)
    raise NotFoundError("the statement is not in the log yet", kind="log entry", hash=hash_.hex())


def _witnessed(directory: LogDirectory, index: int) -> tuple[Note, int] | None:
    """The newest checkpoint that has its quorum, and its size, if it covers the entry."""
    if not (kept := directory.cosigned()):
        return None
    note = parse_note(kept)
    size = parse_checkpoint(note.text).size
    return (note, size) if size > index else None


def shards(folder: Path) -> Iterator[Path]:
    """The folders of logs in or at `folder`, the newest half-year first."""
    if (folder / CHECKPOINT_PATH).is_file():
        yield folder
        return
    found = [path.parent for path in folder.glob(f"*/{CHECKPOINT_PATH}")]
    named = [
        (parse_origin(parse_checkpoint(parse_note(LogDirectory(one).checkpoint()).text).origin)[1], one)
        for one in found
    ]
    yield from (one for _, one in sorted(named, reverse=True))


def find(directory: LogDirectory, hash_: bytes, size: int) -> int | None:
    """The index of a leaf hash, the newest first; None where it is not among the first `size`."""
    for index in reversed(range(-(-size // TILE_WIDTH))):
        hashes = directory.hashes(Tile(0, index, min(TILE_WIDTH, size - index * TILE_WIDTH)))
        if hash_ in hashes:
            return index * TILE_WIDTH + hashes.index(hash_)
    return None
