"""The tree over the seats of a round: its size, its padding, its paths, and what it costs."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from rgs.core.errors import InvalidFieldError, VerificationError
from rgs.core.statements.canonical import digest
from rgs.core.statements.lines import PATH_HASHES_MAX
from rgs.core.tables import tree
from rgs.core.tables.tree import (
    LEAVES_MIN,
    SEATS_MAX,
    SeatTree,
    leaves_for,
    padding_leaf,
    root_of_padded,
)
from rgs.core.tlog.merkle import leaf_hash, node_hash, root_of, verify_inclusion

SALT = bytes(range(0x60, 0x80))


def leaves_of(seats: int) -> list[bytes]:
    return [leaf_hash(b"seat %d" % seat_no) for seat_no in range(1, seats + 1)]


@pytest.mark.parametrize(
    ("seats", "leaves"),
    [
        *((1, 64), (2, 64), (7, 64), (63, 64), (64, 64), (65, 128), (128, 128), (129, 256), (10_000, 16_384)),
        *((524_288, 524_288), (524_289, 1_048_576), (1_048_576, 1_048_576)),
    ],
)
def test_the_number_of_leaves(seats: int, leaves: int) -> None:
    assert leaves_for(seats) == leaves


@pytest.mark.parametrize("seats", [-1, 0, 1_048_577])
def test_a_round_has_at_least_one_seat_and_at_most_so_many(seats: int) -> None:
    with pytest.raises(InvalidFieldError) as caught:
        leaves_for(seats)
    assert caught.value.field == "seats"
    assert caught.value.metadata == {"limit": "1048576"}
    assert caught.value.message == f"seats: a round has 1 to 1048576, not {seats}"
    assert (SEATS_MAX, LEAVES_MIN, 2**PATH_HASHES_MAX) == (1_048_576, 64, SEATS_MAX)


def test_the_padding_is_the_formula_of_the_page() -> None:
    by_hand = hashlib.sha256(b"rgs/padding/v1\x00" + SALT + bytes.fromhex("00000004")).digest()
    assert padding_leaf(SALT, 4) == by_hand
    assert by_hand.hex() == "ed46139e2e288d1577494ce9fb7e29bece8d3376de6f23f453695c97bdd36861"  # formats.md, 10
    assert padding_leaf(SALT, 64).hex() == "f27db75e1b77b2b0d065933dd9e47f2ddc571578ef378f40d0a1f81997f43016"


def test_the_places_behind_the_last_seat_are_padded() -> None:
    three = leaves_of(3)
    whole = [*three, *(padding_leaf(SALT, seat_no) for seat_no in range(4, 65))]
    made = SeatTree(three, SALT)
    assert (made.leaves, made.root) == (64, root_of(whole))
    assert root_of_padded(three, SALT) == made.root
    assert made.path(3)[0] == padding_leaf(SALT, 4)
    assert made.path(2)[0] == three[0]
    assert SeatTree(leaves_of(64), SALT).root == root_of(leaves_of(64))
    assert SeatTree(three, bytes(32)).root != made.root


@pytest.mark.parametrize("seats", [1, 2, 7, 63, 64, 65, 129])
def test_every_path_leads_to_the_root_and_to_its_own_place(seats: int) -> None:
    leaves = leaves_of(seats)
    made = SeatTree(leaves, SALT)
    for seat_no, leaf in enumerate(leaves, 1):
        path = made.path(seat_no)
        verify_inclusion(leaf, seat_no - 1, made.leaves, path, made.root)
        with pytest.raises(VerificationError):
            verify_inclusion(leaf, seat_no % made.leaves, made.leaves, path, made.root)


def test_the_tree_of_two_seats_has_the_size_of_that_of_sixty() -> None:
    """Who holds a root and a path learns no number of seats below the size of the tree."""
    assert {SeatTree(leaves_of(seats), SALT).leaves for seats in (2, 60)} == {64}
    assert {len(SeatTree(leaves_of(seats), SALT).path(1)) for seats in (2, 60)} == {6}


def test_ten_thousand_paths_cost_one_hash_for_each_inner_node(monkeypatch: pytest.MonkeyPatch) -> None:
    leaves = leaves_of(10_000)
    counted = {"node": 0, "padding": 0}

    def count_node(left: bytes, right: bytes) -> bytes:
        counted["node"] += 1
        return node_hash(left, right)

    def count_padding(*parts: Any) -> bytes:
        counted["padding"] += 1
        return digest(*parts)

    monkeypatch.setattr(tree, "node_hash", count_node)
    monkeypatch.setattr(tree, "digest", count_padding)
    made = SeatTree(leaves, SALT)
    paths = [made.path(seat_no) for seat_no in range(1, 10_001)]
    assert counted == {"node": 16_383, "padding": 6_384}
    assert {len(path) for path in paths} == {14}
    verify_inclusion(leaves[-1], 9_999, 16_384, paths[-1], made.root)


def test_the_worked_example_of_the_page() -> None:
    """docs/formats.md, section 10: the leaves of three seats, the padded root, and the path of the third."""
    worked = SeatTree(
        [
            bytes.fromhex("c22d6f742d09c691729a5600148ac66d8a82f2e2851bb847f1eed72c7136fd1f"),
            bytes.fromhex("d1d44e1f26dead3d3380cd37e3c78f2ba07fdb86a5d6772822f87d0c7f154d79"),
            bytes.fromhex("f7c11c627a96748932fa68fc599418f65a69673130286553feef6135fe832be2"),
        ],
        SALT,
    )
    assert worked.root.hex() == "69493fb82267babb110d23bfd20b37da5220f6fef595208fd7a2db6e0a18c46a"
    path = [node.hex() for node in worked.path(3)]
    assert path[:2] == [
        "ed46139e2e288d1577494ce9fb7e29bece8d3376de6f23f453695c97bdd36861",
        "fbea0346d804df5ccee6915afa0dc28c952b93a71ad4977160659410fbcb5645",
    ]
    page = (Path(__file__).parents[4] / "docs" / "formats.md").read_text("utf-8")
    assert f"    root        {worked.root.hex()}\n    path 3      {' '.join(path)}\n" in page
