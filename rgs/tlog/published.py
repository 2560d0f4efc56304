"""The public part of a log: its files, as far as a published checkpoint covers them.

For the audit service and for receipts. It reads files only, so any copy of a log will do. Bundles and tiles of entries
that no checkpoint covers yet are not read. A shard must have the origin that was asked for. Calls wait for the disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rgs.core.errors import NotFoundError
from rgs.core.receipts import format_key_path, narrow_bundle
from rgs.core.shards import parse_origin
from rgs.core.tlog.checkpoints import parse_checkpoint
from rgs.core.tlog.merkle import consistency_proof, inclusion_proof
from rgs.core.tlog.note import parse_note
from rgs.core.tlog.proofs import LogProof, format_log_proof, verify_log_proof
from rgs.core.tlog.tiles import CHECKPOINT_PATH, TILE_WIDTH, Tile, tile_width
from rgs.tlog.directory import LogDirectory


class PublishedShard:
    """One shard under the checkpoint that was published when this was made; `note` is its signed note."""

    def __init__(self, folder: Path) -> None:
        """FormatError for a malformed checkpoint."""
        self._directory = LogDirectory(folder)
        self.note = self._directory.checkpoint()
        self.checkpoint = parse_checkpoint(parse_note(self.note).text)

    @property
    def origin(self) -> str:
        return self.checkpoint.origin

    @property
    def size(self) -> int:
        return self.checkpoint.size

    def leaf(self, index: int) -> bytes:
        """The hash of an entry below the size."""
        return self._leaves(index // TILE_WIDTH)[index % TILE_WIDTH]

    def find(self, hash_: bytes) -> int | None:
        """The index of a leaf hash, the newest first; None where it is not there. Reads all leaf hashes behind it."""
        for number in reversed(range(-(-self.size // TILE_WIDTH))):
            leaves = self._leaves(number)
            if hash_ in leaves:
                return number * TILE_WIDTH + leaves.index(hash_)
        return None

    def proof(self, index: int, hash_: bytes, extra: bytes) -> bytes:
        """The `.tlog-proof` of the entry with this hash at this index, under the newest checkpoint that witnesses have
        cosigned, or under this one where that does not cover the entry yet. VerificationError if it is another entry.
        """
        note, size = parse_note(self.note), self.size
        if kept := self._directory.cosigned():
            cosigned = parse_note(kept)
            covered = parse_checkpoint(cosigned.text).size
            note, size = (cosigned, covered) if covered > index else (note, size)
        path = inclusion_proof(self._directory.subtrees(size), index, size)
        proof = LogProof(index, tuple(path), note, extra)
        verify_log_proof(proof, hash_)
        return format_log_proof(proof)

    def consistency(self, old: int, new: int) -> list[bytes]:
        """The proof that the tree of `new` leaves begins with that of `old`; `new` is at most the size."""
        return consistency_proof(self._directory.subtrees(self.size), old, new)

    def entries_from(self, index: int) -> list[bytes]:
        """The entries from an index below the size to the end of its bundle, at most 256."""
        number = index // TILE_WIDTH
        held = self._directory.bundle(number, tile_width(0, number, self.size))
        return held[index % TILE_WIDTH :]

    def _leaves(self, number: int) -> list[bytes]:
        return self._directory.hashes(Tile(0, number, tile_width(0, number, self.size)))


def published_shards(folder: Path) -> Iterator[PublishedShard]:
    """The shards in or at a folder, the newest half-year first. FormatError."""
    if (folder / CHECKPOINT_PATH).is_file():
        yield PublishedShard(folder)
        return
    found = [PublishedShard(path.parent) for path in folder.glob(f"*/{CHECKPOINT_PATH}")]
    yield from sorted(found, key=lambda shard: parse_origin(shard.origin)[1], reverse=True)


def published_shard(folder: Path, origin: str = "") -> PublishedShard:
    """The shard of an origin, or the newest one. NotFoundError; FormatError for a malformed origin."""
    if origin:
        path = folder / parse_origin(origin)[1]
        shard = PublishedShard(path) if (path / CHECKPOINT_PATH).is_file() else None
    else:
        shard = next(published_shards(folder), None)
    if shard is None or origin not in {"", shard.origin}:
        raise NotFoundError(f"no checkpoint of {origin or 'a log'} is published here", kind="log", origin=origin)
    return shard


def make_proof(folder: Path, hash_: bytes, *, bundle: bytes, start: bytes) -> bytes:
    """A statement's receipt: its `.tlog-proof` (C2SP tlog-proof) with the key path. NotFoundError, LogRefusedError.

    `folder` is a shard, or holds shards; `start` is the envelope of the signer's instance_start.
    """
    for shard in published_shards(folder):
        index = shard.find(hash_)
        if index is not None:
            return shard.proof(index, hash_, format_key_path(narrow_bundle(bundle, start), start))
    raise NotFoundError("the statement is not in the log yet", kind="log entry", hash=hash_.hex())
