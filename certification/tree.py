"""The files of a log against its checkpoint: every entry is hashed, every tile recomputed and compared, the root last.

`Tree` holds the right edge of what was read, at most 256 hashes a level. It grows bundle by bundle, so a run goes on
where the last one ended. Failures are VerificationErrors whose check is one of CHECKS. No hash is ever taken from a
tile: tiles are only compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from certification.sources import LogSource
from rgs.core.errors import FormatError, VerificationError
from rgs.core.tlog.checkpoints import Checkpoint, parse_checkpoint
from rgs.core.tlog.merkle import Frontier, root_of
from rgs.core.tlog.note import NOTE_BYTES_MAX, Note, parse_note
from rgs.core.tlog.policies import NONE, Accepted, Policy, verify_checkpoint
from rgs.core.tlog.tiles import (
    CHECKPOINT_PATH,
    COSIGNED_PATH,
    ENTRIES,
    ENTRY_BYTES_MAX,
    TILE_HEIGHT,
    TILE_WIDTH,
    Tile,
    TileSubtrees,
    format_tile,
    format_tile_path,
    parse_bundle,
    parse_tile,
    tile_width,
)

BUNDLE_BYTES_MAX: Final = TILE_WIDTH * (2 + ENTRY_BYTES_MAX)
_TILE_BYTES: Final = TILE_WIDTH * 32
CHECKPOINT: Final = "log checkpoint"
QUORUM: Final = "log quorum"
CONSISTENCY: Final = "log consistency"
ENTRY: Final = "log entries"
TILES: Final = "log tiles"
TIMES: Final = "log times"
ARTIFACTS: Final = "log artifacts"
CHECKS: Final = (CHECKPOINT, QUORUM, CONSISTENCY, ENTRY, TILES, TIMES, ARTIFACTS)
MARGIN_S: Final = 300
"""Two correct clocks may differ by this much: the server's, a witness's, the auditor's."""


def failure(check: str, message: str, **metadata: str | int) -> VerificationError:
    """A check of the log that failed."""
    return VerificationError(message, check=check, **{name: str(value) for name, value in metadata.items()})


def read_checkpoint(source: LogSource) -> Note:
    """The published note; only its form is verified. VerificationError, SourceError."""
    note = _read_note(source, CHECKPOINT_PATH)
    if note is None:
        raise failure(CHECKPOINT, "there is no checkpoint")
    return note


def read_accepted(source: LogSource, policy: Policy) -> tuple[Note, Accepted, Checkpoint]:
    """The newest checkpoint that the policy accepts: the one that is published, or where its cosignatures have not come
    yet the one that is kept beside it until they have. Last what is published, signed by the log in any case.
    VerificationError, SourceError.
    """
    note = read_checkpoint(source)
    try:
        accepted = verify_note_and_quorum(note, policy)
        return note, accepted, accepted.checkpoint
    except VerificationError as error:
        cosigned = _read_note(source, COSIGNED_PATH) if error.metadata["check"] == QUORUM else None
        if cosigned is None:
            raise
        return cosigned, verify_note_and_quorum(cosigned, policy), parse_checkpoint(note.text)


def _read_note(source: LogSource, path: str) -> Note | None:
    data = source.read(path, NOTE_BYTES_MAX)
    try:
        return None if data is None else parse_note(data)
    except FormatError as error:
        raise failure(CHECKPOINT, error.message) from None


def verify_note_and_quorum(note: Note, policy: Policy) -> Accepted:
    """The checkpoint as the policy accepts it. A quorum of `none` is refused: it proves nothing."""
    if policy.quorum == NONE:
        raise failure(QUORUM, "the policy asks for no witness: a log without witnesses proves nothing")
    try:
        return verify_checkpoint(note, policy)
    except FormatError as error:
        raise failure(CHECKPOINT, error.message) from None
    except VerificationError as error:
        raise failure(QUORUM if error.field == "quorum" else CHECKPOINT, error.message) from None


class Tree:
    """The tree as far as its entries were read. `levels` are the hashes of each level that fill no tile yet."""

    def __init__(self, size: int = 0, levels: Sequence[Sequence[bytes]] = ()) -> None:
        self.size = size
        self.levels = [list(level) for level in levels]
        if any(len(held) != (size >> TILE_HEIGHT * level) % TILE_WIDTH for level, held in enumerate(self.levels)):
            raise ValueError(f"these levels are not the edge of a tree of {size} leaves")

    def root(self) -> bytes:
        """The root over everything read."""
        edge = TileSubtrees(lambda tile: self.levels[tile.level], self.size)
        return Frontier.read(edge, self.size).root()

    def grow(self, source: LogSource | None, leaves: Sequence[bytes]) -> Iterator[VerificationError]:
        """Take in leaf hashes; compare each tile that they fill with its file, unless `source` is None."""
        for leaf in leaves:
            self.size += 1
            level, hash_ = 0, leaf
            while True:
                if level == len(self.levels):
                    self.levels.append([])
                held = self.levels[level]
                held.append(hash_)
                if len(held) < TILE_WIDTH:
                    break
                index = (self.size >> TILE_HEIGHT * level) // TILE_WIDTH - 1
                if source is not None:
                    yield from _compare(source, Tile(level, index, TILE_WIDTH), held)
                self.levels[level] = []
                hash_ = root_of(held)
                level += 1

    def finish(self, source: LogSource, checkpoint: Checkpoint) -> Iterator[VerificationError]:
        """Compare the tiles that are not full, and the root with that of the checkpoint."""
        for level, held in enumerate(self.levels):
            if held:
                index = (self.size >> TILE_HEIGHT * level) // TILE_WIDTH
                yield from _compare(source, Tile(level, index, len(held)), held)
        if (self.size, self.root()) != (checkpoint.size, checkpoint.root):
            yield failure(TILES, f"the {self.size} entries do not have the root of the checkpoint", size=self.size)


def read_bundle(source: LogSource, index: int, size: int) -> tuple[bytes, list[bytes]]:
    """A bundle as wide as it is in the tree of `size` leaves: its bytes, and the entries. VerificationError."""
    width = tile_width(ENTRIES, index, size)
    data, held = _read(source, Tile(ENTRIES, index, width), BUNDLE_BYTES_MAX, ENTRY)
    try:
        return data, parse_bundle(data, held)[:width]
    except FormatError as error:
        raise failure(ENTRY, f"bundle {index}: {error.message}", bundle=index) from None


def read_hashes(source: LogSource, tile: Tile) -> list[bytes]:
    """The hashes of a tile. VerificationError if it is missing or shorter."""
    data, held = _read(source, tile, _TILE_BYTES, TILES)
    try:
        return parse_tile(data, held)[: tile.width]
    except FormatError as error:
        raise failure(TILES, f"{format_tile_path(tile)}: {error.message}") from None


def _read(source: LogSource, tile: Tile, limit: int, check: str) -> tuple[bytes, int]:
    """The file of a tile, partial or full, and its width: a partial one may have been deleted."""
    for width in dict.fromkeys((tile.width, TILE_WIDTH)):
        data = source.read(format_tile_path(Tile(tile.level, tile.index, width)), limit)
        if data is not None:
            return data, width
    raise failure(check, f"{format_tile_path(tile)} is missing")


def _compare(source: LogSource, tile: Tile, hashes: Sequence[bytes]) -> Iterator[VerificationError]:
    try:
        if format_tile(read_hashes(source, tile)) != format_tile(hashes):
            yield failure(TILES, f"{format_tile_path(tile)} is not what the entries make", tile=format_tile_path(tile))
    except VerificationError as error:
        yield error
