"""A log as a folder of plain files (C2SP tlog-tiles), for any static web server.

    checkpoint                 the newest signed checkpoint
    checkpoint.cosigned        the newest one that enough witnesses have cosigned; these two are replaced, nothing else
    tile/<level>/…             hash tiles
    tile/entries/…             entry bundles
    artifact/<hex sha256>      content of what an `artifact` statement names
    .staging/                  files that are being written

A file is written under `.staging`, made durable, and linked to its name: a name has the whole file or none. The content
follows from the entries alone, so that each step can be repeated. A file with other content is never touched; the error
names it. Partial tiles are removed some time after the full one is there: in a log that grows by a few entries at a
time they would take a hundred times the room of the log itself.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from rgs.core.errors import FormatError, RgsError
from rgs.core.tlog.merkle import Frontier, leaf_hash, root_of
from rgs.core.tlog.tiles import (
    CHECKPOINT_PATH,
    COSIGNED_PATH,
    ENTRIES,
    TILE_WIDTH,
    Tile,
    TileSubtrees,
    format_bundle,
    format_tile,
    format_tile_path,
    new_tiles,
    parse_bundle,
    parse_tile,
    tile_width,
)

STAGING: Final = ".staging"
ARTIFACTS: Final = "artifact"
FILE_MODE: Final = 0o644


class LogRefusedError(RgsError, reason="LOG_REFUSED"):
    """The log, its databases and the store contradict each other, or the log is another one: nothing is signed.

    `code` says what is wrong.
    """

    def __init__(self, code: str, message: str, *, path: Path | None = None) -> None:
        super().__init__(message, code=code, path=path or "-")
        self.code = code


class LogDirectory:
    """One log's folder, made where it is missing. One writer at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._staging = folder / STAGING
        self._unsynced: set[Path] = set()

    def prepare(self) -> None:
        """Make the folder, and remove what a killed writer left in staging."""
        self._make(self._staging)
        for path in self._staging.iterdir():
            path.unlink()
        self.sync()

    # --- writing --------------------------------------------------------------------------------------------------

    def put(self, name: str, content: bytes) -> None:
        """Write the file `name`, durable with the next `sync`. LogRefusedError if it is there with other content."""
        target = self.folder / name
        self._make(target.parent)
        staged = self._stage(content)
        try:
            try:
                os.link(staged, target)
            except FileExistsError:
                if target.read_bytes() != content:
                    raise LogRefusedError(
                        "FILE_DIFFERS", f"{name} is there with other content than the log's entries make", path=target
                    ) from None
                # The earlier writer may have been killed before the file or its folder was durable.
                _sync(target)
        finally:
            staged.unlink(missing_ok=True)
        self._unsynced.add(target.parent)

    def sync(self) -> None:
        """Make everything put so far durable."""
        for folder in sorted(self._unsynced):
            _sync(folder)
        self._unsynced.clear()

    def drop_partials(self, old: int, new: int) -> None:
        """Remove the partial files of tiles that are full in a tree of `new` leaves and were not in one of `old`:
        readers find the full ones (C2SP tlog-tiles allows it). A file that cannot be removed only takes room.
        """
        for tile in new_tiles(old, new):
            folder = self.folder / f"{format_tile_path(tile)}.p"
            if tile.width == TILE_WIDTH:
                with contextlib.suppress(OSError):
                    for path in folder.iterdir():
                        path.unlink()
                    folder.rmdir()

    def publish(self, note: bytes) -> None:
        """Replace the checkpoint: a reader sees the old one or the new one."""
        self._replace(CHECKPOINT_PATH, note)

    def keep_cosigned(self, note: bytes) -> None:
        """Replace the checkpoint that has its quorum, in the same way."""
        self._replace(COSIGNED_PATH, note)

    def _replace(self, name: str, note: bytes) -> None:
        self._make(self._staging)
        self._stage(note).replace(self.folder / name)
        self._unsynced.add(self.folder)
        self.sync()

    def _stage(self, content: bytes) -> Path:
        # One writer: one name will do, and a full disk leaves one short file behind.
        staged = self._staging / "new"
        staged.unlink(missing_ok=True)
        descriptor = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        return staged

    def _make(self, folder: Path) -> None:
        """Make the folder and those above it; their entries are durable with the next `sync`."""
        missing = []
        while not folder.is_dir():
            missing.append(folder)
            folder = folder.parent
        for one in reversed(missing):
            one.mkdir(exist_ok=True)
            self._unsynced.add(one.parent)

    # --- reading --------------------------------------------------------------------------------------------------

    def checkpoint(self) -> bytes:
        """The checkpoint that is published; empty if none is."""
        return self._note(CHECKPOINT_PATH)

    def cosigned(self) -> bytes:
        """The newest checkpoint that has its quorum; empty if none has."""
        return self._note(COSIGNED_PATH)

    def _note(self, name: str) -> bytes:
        try:
            return (self.folder / name).read_bytes()
        except FileNotFoundError:
            return b""

    def bundle(self, index: int, width: int) -> list[bytes]:
        """The first `width` entries of a bundle. LogRefusedError where no file holds them."""
        return _parsed(ENTRIES, self._read(Tile(ENTRIES, index, width)), width)

    def hashes(self, tile: Tile) -> list[bytes]:
        """The hashes of a tile. LogRefusedError where no file holds them."""
        return _parsed(tile.level, self._read(tile), tile.width)

    def entries(self, first: int, end: int) -> Iterator[bytes]:
        """The entries `first` to `end` - 1 of a tree of at least `end`."""
        for index in range(first // TILE_WIDTH, -(-end // TILE_WIDTH)):
            begin = index * TILE_WIDTH
            held = self.bundle(index, min(TILE_WIDTH, end - begin))
            yield from held[max(0, first - begin) :]

    def subtrees(self, size: int) -> TileSubtrees:
        """The tree of `size` leaves, read from its tiles."""
        return TileSubtrees(self.hashes, size)

    def _read(self, tile: Tile) -> tuple[bytes, int]:
        """A file with the tile, as it is or full, and the width of what is in it."""
        for width in dict.fromkeys((tile.width, TILE_WIDTH)):
            path = self.folder / format_tile_path(Tile(tile.level, tile.index, width))
            try:
                return path.read_bytes(), width
            except FileNotFoundError:
                pass
        raise LogRefusedError("FILE_MISSING", f"{format_tile_path(tile)} is missing", path=self.folder)


def _parsed(level: int, read: tuple[bytes, int], width: int) -> list[bytes]:
    data, held = read
    try:
        return (parse_bundle if level == ENTRIES else parse_tile)(data, held)[:width]
    except FormatError as error:
        raise LogRefusedError("FILE_MALFORMED", f"a file of level {level}: {error.message}") from None


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# --- the right edge ---------------------------------------------------------------------------------------------------


class Edge:
    """The part of a tree that is not in full files yet: the end of each level, and of the entries."""

    def __init__(self) -> None:
        """The edge of the empty tree; `read` gives others."""
        self._levels: list[list[bytes]] = []
        self._entries: list[bytes] = []
        self._frontier = Frontier()

    @classmethod
    def read(cls, directory: LogDirectory, size: int) -> Edge:
        """The edge of the first `size` leaves, from their files. The caller compares its `root`."""
        edge = cls()
        edge._frontier = Frontier.read(directory.subtrees(size), size)
        level = 0
        while size >> level * 8:
            edge._levels.append(_tail(directory, level, size))
            level += 1
        width = size % TILE_WIDTH
        edge._entries = directory.bundle(size // TILE_WIDTH, width) if width else []
        if size and [leaf_hash(entry) for entry in edge._entries] != edge._levels[0]:
            raise LogRefusedError("FILE_DIFFERS", f"the last {width} entries are not those of the tile above them")
        return edge

    @property
    def size(self) -> int:
        return self._frontier.size

    def root(self) -> bytes:
        """The root of the whole tree."""
        return self._frontier.root()

    def grow(self, entries: Iterable[bytes]) -> Iterator[tuple[str, bytes]]:
        """Append the entries: names and contents of the files of the new tree, bundles first."""
        before, full = self.size, dict[Tile, bytes]()
        for entry in entries:
            self._append(entry, full)
        for tile in new_tiles(before, self.size):
            held = self._entries if tile.level == ENTRIES else self._levels[tile.level]
            content = full.get(tile)
            if content is None:
                content = format_bundle(held) if tile.level == ENTRIES else format_tile(held)
            yield format_tile_path(tile), content

    def _append(self, entry: bytes, full: dict[Tile, bytes]) -> None:
        leaf = leaf_hash(entry)
        self._frontier.append(leaf)
        size = self.size
        self._entries.append(entry)
        if size % TILE_WIDTH == 0:
            full[Tile(ENTRIES, size // TILE_WIDTH - 1, TILE_WIDTH)] = format_bundle(self._entries)
            self._entries = []
        level, hash_ = 0, leaf
        while True:
            if level == len(self._levels):
                self._levels.append([])
            held = self._levels[level]
            held.append(hash_)
            if len(held) < TILE_WIDTH:
                return
            index = (size >> level * 8) // TILE_WIDTH - 1
            full[Tile(level, index, TILE_WIDTH)] = format_tile(held)
            self._levels[level] = []
            hash_ = root_of(held)
            level += 1


def _tail(directory: LogDirectory, level: int, size: int) -> list[bytes]:
    index = (size >> level * 8) // TILE_WIDTH
    width = tile_width(level, index, size)
    return directory.hashes(Tile(level, index, width)) if width else []
