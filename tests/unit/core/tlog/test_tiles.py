"""rgs.core.tlog.tiles: which files a tree has, their paths and contents, and subtrees read out of them."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgs.core.errors import FormatError
from rgs.core.tlog.merkle import consistency_proof, inclusion_proof, leaf_hash, root_at, root_of, verify_consistency
from rgs.core.tlog.tiles import (
    ENTRIES,
    ENTRY_BYTES_MAX,
    TILE_WIDTH,
    Tile,
    TileSubtrees,
    format_bundle,
    format_tile,
    format_tile_path,
    new_tiles,
    parse_bundle,
    parse_tile,
    parse_tile_path,
    tile_width,
)


def test_the_examples_of_the_standard() -> None:
    assert format_tile_path(Tile(0, 1_234_067, 256)) == "tile/0/x001/x234/067"
    tiles = Counter((tile.level, tile.width == TILE_WIDTH) for tile in new_tiles(0, 70_000))
    assert tiles == {
        (ENTRIES, True): 273,
        (ENTRIES, False): 1,
        (0, True): 273,
        (0, False): 1,
        (1, True): 1,
        (1, False): 1,
        (2, False): 1,
    }
    assert {tile.width for tile in new_tiles(0, 70_000)} == {256, 112, 17, 1}
    assert [format_tile_path(tile) for tile in new_tiles(0, 256)] == [
        "tile/entries/000",
        "tile/0/000",
        "tile/1/000.p/1",
    ]
    assert list(new_tiles(0, 0)) == []


@given(st.integers(-1, 63), st.integers(0, 10**12), st.integers(1, 256))
def test_paths_there_and_back(level: int, index: int, width: int) -> None:
    tile = Tile(level, index, width)
    assert parse_tile_path(format_tile_path(tile)) == tile


@pytest.mark.parametrize(
    "path",
    [
        "",
        "checkpoint",
        "tile/0/1",
        "tile/00/001",
        "tile/64/001",
        "tile/0/x000/001",
        "tile/0/x001/x234/67",
        "tile/0/001/002",
        "tile/0/001.p/0",
        "tile/0/001.p/256",
        "tile/0/001.p/01",
        "tile/entries/001.p/999",
        "tile/0/001/",
        "/tile/0/001",
        "tile/0/../001",
        "tile/data/001",
        "tile/0/\u0660\u0660\u0661",
    ],
)
def test_a_path_that_is_none(path: str) -> None:
    with pytest.raises(FormatError):
        parse_tile_path(path)


@pytest.mark.parametrize("tile", [Tile(64, 0, 1), Tile(-2, 0, 1), Tile(0, -1, 1), Tile(0, 0, 0), Tile(0, 0, 257)])
def test_a_tile_that_is_none(tile: Tile) -> None:
    with pytest.raises(FormatError):
        format_tile_path(tile)


@given(st.lists(st.integers(0, 70_000), min_size=1, max_size=6))
def test_growing_step_by_step_gives_every_tile_of_the_end(sizes: list[int]) -> None:
    steps = [0, *sorted(sizes)]
    made = {tile for old, new in pairwise(steps) for tile in new_tiles(old, new)}
    assert set(new_tiles(0, steps[-1])) <= made
    for tile in made:
        assert any(tile_width(tile.level, tile.index, size) == tile.width for size in steps)
    assert all(tile_width(tile.level, tile.index, steps[-1]) == tile.width for tile in new_tiles(0, steps[-1]))
    assert not list(new_tiles(steps[-1], steps[-1]))


def test_tiles_and_bundles_there_and_back() -> None:
    hashes = [leaf_hash(bytes([number])) for number in range(200)]
    assert parse_tile(format_tile(hashes), 200) == hashes
    entries = [b"", b"a", b"b" * ENTRY_BYTES_MAX]
    assert parse_bundle(format_bundle(entries), 3) == entries


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=20), st.integers(0, 300), st.data())
def test_bundles_that_are_cut_or_changed(entries: list[bytes], at: int, data: st.DataObject) -> None:
    bundle = format_bundle(entries)
    assert parse_bundle(bundle, len(entries)) == entries
    cut = bundle[: data.draw(st.integers(0, len(bundle) - 1))]
    for broken, width in ((cut, len(entries)), (bundle + b"\x00", len(entries)), (bundle, len(entries) + 1)):
        with pytest.raises(FormatError):
            parse_bundle(broken, width)


def test_contents_that_are_none() -> None:
    for hashes in ([], [bytes(31)], [bytes(32)] * 257):
        with pytest.raises(FormatError):
            format_tile(hashes)
    with pytest.raises(FormatError):
        parse_tile(bytes(33), 1)
    for entries in ([], [b""] * 257, [bytes(ENTRY_BYTES_MAX + 1)]):
        with pytest.raises(FormatError):
            format_bundle(entries)


@pytest.mark.parametrize("size", [1, 255, 256, 257, 511, 513, 1000])
def test_subtrees_out_of_tiles(size: int) -> None:
    leaves = [leaf_hash(str(number).encode()) for number in range(size)]
    files: dict[Tile, list[bytes]] = {}
    for tile in new_tiles(0, size):
        if tile.level != ENTRIES:
            span = TILE_WIDTH**tile.level
            starts = [(tile.index * TILE_WIDTH + nth) * span for nth in range(tile.width)]
            files[tile] = [root_of(leaves[start : start + span]) for start in starts]
    read = TileSubtrees(files.__getitem__, size)
    root = root_of(leaves)
    assert root_at(read, size) == root
    for index in {0, size // 2, size - 1}:
        inclusion_proof(read, index, size)
    for old in {1, size // 2 or 1, size}:
        verify_consistency(old, root_of(leaves[:old]), size, root, consistency_proof(read, old, size))
    with pytest.raises(IndexError):
        read(0, size)
