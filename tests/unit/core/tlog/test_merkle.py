"""The RFC 6962 tree, against its recursive definition and against every wrong path."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgs.core.errors import VerificationError
from rgs.core.tlog.merkle import inclusion_path, leaf_hash, node_hash, root_from_path, root_of, verify_inclusion

LEAVES = st.lists(st.binary(max_size=4).map(leaf_hash), min_size=1, max_size=40)


def defined_root(inputs: Sequence[bytes]) -> bytes:
    """RFC 6962 section 2.1, word by word."""
    if not inputs:
        return hashlib.sha256(b"").digest()
    if len(inputs) == 1:
        return hashlib.sha256(b"\x00" + inputs[0]).digest()
    k = 1
    while k * 2 < len(inputs):
        k *= 2
    return hashlib.sha256(b"\x01" + defined_root(inputs[:k]) + defined_root(inputs[k:])).digest()


@pytest.mark.parametrize("size", range(20))
def test_the_root_is_that_of_the_definition(size: int) -> None:
    inputs = [bytes([number]) for number in range(size)]
    assert root_of([leaf_hash(data) for data in inputs]) == defined_root(inputs)


@given(LEAVES, st.data())
def test_every_leaf_is_proved_at_its_place_and_nowhere_else(leaves: list[bytes], data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(leaves) - 1))
    path, root, size = inclusion_path(leaves, index), root_of(leaves), len(leaves)
    verify_inclusion(leaves[index], index, size, path, root)
    other = data.draw(st.integers(0, size - 1))
    if leaves[other] != leaves[index]:
        with pytest.raises(VerificationError):
            verify_inclusion(leaves[index], other, size, path, root)
    with pytest.raises(VerificationError, match="lead"):
        verify_inclusion(leaf_hash(b"foreign"), index, size, path, root)


@given(LEAVES, st.data())
def test_a_path_of_another_length_or_with_another_hash_is_refused(leaves: list[bytes], data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(leaves) - 1))
    path, root, size = inclusion_path(leaves, index), root_of(leaves), len(leaves)
    for wrong in ([*path, bytes(32)], path[:-1] if path else [bytes(32)]):
        with pytest.raises(VerificationError, match="hashes where"):
            verify_inclusion(leaves[index], index, size, wrong, root)
    for place in range(len(path)):
        with pytest.raises(VerificationError, match="lead"):
            verify_inclusion(leaves[index], index, size, [*path[:place], bytes(32), *path[place + 1 :]], root)


@pytest.mark.parametrize(("index", "size"), [(-1, 3), (3, 3), (0, 0)])
def test_a_leaf_outside_the_tree_is_refused(index: int, size: int) -> None:
    with pytest.raises(VerificationError, match="not in a tree"):
        root_from_path(bytes(32), index, size, [])
    with pytest.raises(IndexError, match=f"leaf {index}"):
        inclusion_path([bytes(32)] * size, index)


def test_a_node_is_no_leaf() -> None:
    left, right = leaf_hash(b"a"), leaf_hash(b"b")
    assert node_hash(left, right) != leaf_hash(left + right)
