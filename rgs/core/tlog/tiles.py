"""The files of a tiled log (C2SP tlog-tiles): paths, widths and contents of hash tiles and entry bundles, pure.

A tile of level L holds up to 256 roots of complete subtrees of 256**L leaves; an entry bundle up to 256 entries, each
after its length in two bytes. Parsing is strict: what was parsed formats to the identical path or bytes. An entry that
is too long for its length field and an empty tile are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rgs.core.tlog.errors import FormatError
from rgs.core.tlog.merkle import HASH_BYTES, node_hash

TILE_HEIGHT: Final = 8
TILE_WIDTH: Final = 1 << TILE_HEIGHT
LEVEL_MAX: Final = 63
ENTRY_BYTES_MAX: Final = 65_535
ENTRIES: Final = -1
"""The level that stands for entry bundles, which lie as the tiles of level 0 do."""
CHECKPOINT_PATH: Final = "checkpoint"
COSIGNED_PATH: Final = "checkpoint.cosigned"
"""Our addition to the standard: the newest checkpoint that met the quorum of the log's own policy."""

_PATH: Final = re.compile(r"tile/(entries|[0-9]{1,2})/((?:x[0-9]{3}/)*[0-9]{3})(?:\.p/([0-9]{1,3}))?", re.ASCII)
_LENGTH_BYTES: Final = 2


@dataclass(frozen=True, slots=True, order=True)
class Tile:
    """One file: `level` 0..63 or ENTRIES, `index` from 0 within the level, `width` 1..256 (256: full)."""

    level: int
    index: int
    width: int


# --- which files there are --------------------------------------------------------------------------------------------


def new_tiles(old: int, new: int) -> Iterator[Tile]:
    """The files that a tree of `new` leaves has and one of `old` has not, in the order in which they can be written."""
    levels = range(-(-new.bit_length() // TILE_HEIGHT))
    for level in (ENTRIES, *levels) if new else ():
        shift = max(level, 0) * TILE_HEIGHT
        first, last = old >> shift, new >> shift
        for index in range(first // TILE_WIDTH, -(-last // TILE_WIDTH)):
            width = min(last - index * TILE_WIDTH, TILE_WIDTH)
            if width > first - index * TILE_WIDTH:
                yield Tile(level, index, width)


def tile_width(level: int, index: int, size: int) -> int:
    """How many hashes or entries the tile holds in a tree of `size` leaves; 0 where there is no such tile."""
    held = (size >> max(level, 0) * TILE_HEIGHT) - index * TILE_WIDTH
    return max(0, min(held, TILE_WIDTH))


# --- paths ------------------------------------------------------------------------------------------------------------


def format_tile_path(tile: Tile) -> str:
    """`tile/0/x001/234.p/5`. Inverse of `parse_tile_path`.

    >>> format_tile_path(Tile(0, 1234, 5))
    'tile/0/x001/234.p/5'
    """
    if not (ENTRIES <= tile.level <= LEVEL_MAX and tile.index >= 0 and 1 <= tile.width <= TILE_WIDTH):
        raise FormatError(f"{tile} is not a tile: level, index or width is out of range", field="tile", value=str(tile))
    groups = [f"{tile.index % 1000:03d}"]
    rest = tile.index // 1000
    while rest:
        groups.append(f"x{rest % 1000:03d}")
        rest //= 1000
    level = "entries" if tile.level == ENTRIES else str(tile.level)
    suffix = "" if tile.width == TILE_WIDTH else f".p/{tile.width}"
    return f"tile/{level}/{'/'.join(reversed(groups))}{suffix}"


def parse_tile_path(path: str) -> Tile:
    """The tile of a path relative to the log's prefix; FormatError for any other form of it."""
    match = _PATH.fullmatch(path)
    if match is None:
        raise FormatError("the path of a tile is malformed", field="path", value=path[:80])
    level, index, width = match.groups()
    tile = Tile(
        ENTRIES if level == "entries" else int(level),
        int(index.replace("x", "").replace("/", "")),
        TILE_WIDTH if width is None else int(width),
    )
    if tile.width in (0, TILE_WIDTH) and width is not None:
        raise FormatError("a partial tile is 1 to 255 wide", field="path", value=path[:80])
    if format_tile_path(tile) != path:
        raise FormatError("this path of a tile is not in its one form", field="path", value=path[:80])
    return tile


# --- contents ---------------------------------------------------------------------------------------------------------


def format_tile(hashes: Sequence[bytes]) -> bytes:
    """The bytes of a hash tile. Inverse of `parse_tile`."""
    if not 1 <= len(hashes) <= TILE_WIDTH or any(len(one) != HASH_BYTES for one in hashes):
        raise FormatError("a tile holds 1 to 256 hashes of 32 bytes", field="tile", value=len(hashes))
    return b"".join(hashes)


def parse_tile(data: bytes, width: int) -> list[bytes]:
    """The hashes of a tile of this width; FormatError for any other length."""
    if len(data) != width * HASH_BYTES:
        raise FormatError(
            f"a tile of {width} hashes has {width * HASH_BYTES} bytes, not {len(data)}",
            field="tile",
            limit=width * HASH_BYTES,
            value=len(data),
        )
    return [data[at : at + HASH_BYTES] for at in range(0, len(data), HASH_BYTES)]


def format_bundle(entries: Sequence[bytes]) -> bytes:
    """The bytes of an entry bundle. Inverse of `parse_bundle`."""
    if not 1 <= len(entries) <= TILE_WIDTH:
        raise FormatError("a bundle holds 1 to 256 entries", field="bundle", value=len(entries))
    parts = []
    for entry in entries:
        if len(entry) > ENTRY_BYTES_MAX:
            raise FormatError(
                f"an entry of {len(entry)} bytes is longer than {ENTRY_BYTES_MAX}",
                field="entry",
                limit=ENTRY_BYTES_MAX,
                value=len(entry),
            )
        parts += [len(entry).to_bytes(_LENGTH_BYTES, "big"), entry]
    return b"".join(parts)


def parse_bundle(data: bytes, width: int) -> list[bytes]:
    """The `width` entries of a bundle; FormatError where lengths and bytes do not agree."""
    entries, at = [], 0
    for _ in range(width):
        begin = at + _LENGTH_BYTES
        at = begin + int.from_bytes(data[at:begin], "big")
        if begin > len(data) or at > len(data):
            raise FormatError(f"the bundle ends before its {width} entries do", field="bundle", value=len(data))
        entries.append(data[begin:at])
    if at != len(data):
        raise FormatError(f"{len(data) - at} bytes after the {width} entries", field="bundle", value=len(data))
    return entries


# --- reading subtrees from tiles --------------------------------------------------------------------------------------


class TileSubtrees:
    """Roots of complete subtrees from the tiles of a tree of `size` leaves, as `rgs.core.tlog.merkle` reads them.

    `read_tile` gives the hashes of a tile as wide as it is in this tree; its errors pass through.
    """

    def __init__(self, read_tile: Callable[[Tile], Sequence[bytes]], size: int) -> None:
        self._read_tile = read_tile
        self._size = size

    def __call__(self, level: int, index: int) -> bytes:
        tile_level, inner = divmod(level, TILE_HEIGHT)
        first = index << inner
        width = tile_width(tile_level, first // TILE_WIDTH, self._size)
        at, count = first % TILE_WIDTH, 1 << inner
        if at + count > width:
            raise IndexError(f"no complete subtree {index} of level {level} in a tree of {self._size} leaves")
        hashes = self._read_tile(Tile(tile_level, first // TILE_WIDTH, width))[at : at + count]
        while len(hashes) > 1:
            hashes = [node_hash(hashes[nth], hashes[nth + 1]) for nth in range(0, len(hashes), 2)]
        return hashes[0]
