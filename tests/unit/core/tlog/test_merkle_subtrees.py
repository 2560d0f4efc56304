"""rgs.core.tlog.merkle over subtrees: proofs against the plain definitions, frontiers, and proofs that are none."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgs.core.errors import VerificationError
from rgs.core.tlog.merkle import (
    EMPTY_ROOT,
    Frontier,
    consistency_proof,
    inclusion_path,
    inclusion_proof,
    leaf_hash,
    node_hash,
    root_at,
    root_of,
    verify_consistency,
    verify_inclusion,
)

LEAVES = [leaf_hash(str(number).encode()) for number in range(200)]


def read(level: int, index: int) -> bytes:
    first = index << level
    assert first + (1 << level) <= len(LEAVES), "a subtree that is not there was asked for"
    return root_of(LEAVES[first : first + (1 << level)])


def proof_by_definition(old: int, leaves: Sequence[bytes], is_whole: bool = True) -> list[bytes]:
    """RFC 6962 2.1.2, SUBPROOF as it stands there."""
    size = len(leaves)
    if old == size:
        return [] if is_whole else [root_of(leaves)]
    cut = 1
    while cut * 2 < size:
        cut *= 2
    if old <= cut:
        return [*proof_by_definition(old, leaves[:cut], is_whole), root_of(leaves[cut:])]
    return [*proof_by_definition(old - cut, leaves[cut:], False), root_of(leaves[:cut])]


@pytest.mark.parametrize("size", range(1, 40))
def test_proofs_are_those_of_the_rfc(size: int) -> None:
    root = root_of(LEAVES[:size])
    assert root_at(read, size) == root
    for index in range(size):
        path = inclusion_proof(read, index, size)
        assert path == inclusion_path(LEAVES[:size], index)
        verify_inclusion(LEAVES[index], index, size, path, root)
    for old in range(size + 1):
        proof = consistency_proof(read, old, size)
        assert proof == (proof_by_definition(old, LEAVES[:size]) if old else [])
        verify_consistency(old, root_of(LEAVES[:old]), size, root, proof)


def test_the_empty_tree() -> None:
    assert root_at(read, 0) == EMPTY_ROOT == hashlib.sha256(b"").digest() == Frontier().root()
    verify_consistency(0, EMPTY_ROOT, 0, EMPTY_ROOT, [])


@given(st.integers(0, 200), st.integers(0, 200))
def test_a_frontier_grows_to_the_same_root(one: int, other: int) -> None:
    old, new = sorted((one, other))
    frontier = Frontier.read(read, old)
    for leaf in LEAVES[old:new]:
        frontier.append(leaf)
    assert (frontier.size, frontier.root()) == (new, root_of(LEAVES[:new]))


def test_a_frontier_has_a_root_for_each_bit() -> None:
    with pytest.raises(ValueError, match="subtrees"):
        Frontier(3, [LEAVES[0]])


@given(st.integers(1, 60), st.integers(1, 60), st.data())
def test_a_wrong_proof_is_refused(one: int, other: int, data: st.DataObject) -> None:
    old, new = sorted((one, other))
    roots = root_of(LEAVES[:old]), root_of(LEAVES[:new])
    proof = consistency_proof(read, old, new)
    longer = [*proof, LEAVES[0]]
    wrong = [longer]
    if proof:
        nth = data.draw(st.integers(0, len(proof) - 1))
        wrong += [proof[:-1], proof[1:], [*proof[:nth], bytes(32), *proof[nth + 1 :]], []]
    for false in wrong:
        with pytest.raises(VerificationError):
            verify_consistency(old, roots[0], new, roots[1], false)
    for old_root, new_root in ((bytes(32), roots[1]), (roots[0], bytes(32))):
        with pytest.raises(VerificationError):
            verify_consistency(old, old_root, new, new_root, proof)


@pytest.mark.parametrize(
    ("old", "new", "old_root", "proof"),
    [
        (2, 1, EMPTY_ROOT, []),
        (-1, 1, EMPTY_ROOT, []),
        (0, 1, bytes(32), []),
        (0, 1, EMPTY_ROOT, [LEAVES[0]]),
        (1, 1, bytes(32), []),
        (1, 1, LEAVES[0], [LEAVES[0]]),
    ],
)
def test_sizes_and_roots_that_cannot_be(old: int, new: int, old_root: bytes, proof: list[bytes]) -> None:
    with pytest.raises(VerificationError):
        verify_consistency(old, old_root, new, LEAVES[0], proof)


def test_what_is_outside_the_tree_is_no_question() -> None:
    for index, size in ((3, 3), (-1, 3), (0, 0)):
        with pytest.raises(IndexError):
            inclusion_proof(read, index, size)
    for old, new in ((3, 2), (-1, 2)):
        with pytest.raises(IndexError):
            consistency_proof(read, old, new)


def test_a_rollback_and_a_fork_are_no_growth() -> None:
    forked = [*LEAVES[:5], leaf_hash(b"other"), *LEAVES[6:9]]
    for old in range(6, 9):
        proof = proof_by_definition(old, forked)
        with pytest.raises(VerificationError):
            verify_consistency(old, root_of(LEAVES[:old]), 9, root_of(forked), proof)
    assert node_hash(LEAVES[0], LEAVES[1]) == root_of(LEAVES[:2])
