"""RFC 6962 section 2.1 Merkle tree over SHA-256, pure: roots, inclusion paths and consistency proofs.

The seats of a deal have all their leaves at hand. The transparency log reads its complete subtrees one by one through a
`Subtrees`. A proof must be exactly as long as the sizes demand.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence

from rgs.core.tlog.errors import VerificationError

EMPTY_ROOT = hashlib.sha256(b"").digest()
HASH_BYTES = 32

Subtrees = Callable[[int, int], bytes]
"""(level, index) -> root of the complete subtree of 2**level leaves that begins at leaf index * 2**level."""


def leaf_hash(data: bytes) -> bytes:
    """SHA-256(00 || data), 32 bytes."""
    return hashlib.sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """SHA-256(01 || left || right), 32 bytes."""
    return hashlib.sha256(b"\x01" + left + right).digest()


def _split(size: int) -> int:
    """The largest power of two below `size` (size >= 2)."""
    return 1 << ((size - 1).bit_length() - 1)


def root_of(leaves: Sequence[bytes]) -> bytes:
    """Root over leaf hashes; without leaves SHA-256 of the empty string.

    >>> root_of([leaf_hash(b"a"), leaf_hash(b"b")]) == node_hash(leaf_hash(b"a"), leaf_hash(b"b"))
    True
    """
    if not leaves:
        return EMPTY_ROOT
    if len(leaves) == 1:
        return leaves[0]
    cut = _split(len(leaves))
    return node_hash(root_of(leaves[:cut]), root_of(leaves[cut:]))


def inclusion_path(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """Audit path of leaf `index` (from 0), its sibling first; empty for a tree of one."""
    if not 0 <= index < len(leaves):
        raise IndexError(f"leaf {index} of {len(leaves)}")
    if len(leaves) == 1:
        return []
    cut = _split(len(leaves))
    if index < cut:
        return [*inclusion_path(leaves[:cut], index), root_of(leaves[cut:])]
    return [*inclusion_path(leaves[cut:], index - cut), root_of(leaves[:cut])]


def root_from_path(leaf: bytes, index: int, size: int, path: Sequence[bytes]) -> bytes:
    """The root that an audit path claims; VerificationError if the path is not as long as the tree demands."""
    if not 0 <= index < size:
        raise VerificationError(f"leaf {index} is not in a tree of {size}", field="seat_no", value=index, limit=size)
    sides: list[bool] = []  # True: the sibling stands on the left
    while size > 1:
        cut = _split(size)
        if index < cut:
            sides.append(False)
            size = cut
        else:
            sides.append(True)
            index -= cut
            size -= cut
    if len(path) != len(sides):
        raise VerificationError(f"audit path of {len(path)} hashes where {len(sides)} are due", field="path")
    for sibling, on_the_left in zip(path, reversed(sides), strict=True):
        leaf = node_hash(sibling, leaf) if on_the_left else node_hash(leaf, sibling)
    return leaf


def verify_inclusion(leaf: bytes, index: int, size: int, path: Sequence[bytes], root: bytes) -> None:
    """VerificationError unless `leaf` is the leaf `index` of the tree of `size` leaves with that root."""
    if root_from_path(leaf, index, size, path) != root:
        raise VerificationError("the audit path does not lead to the root", field="path")


# --- trees that are read by their subtrees ----------------------------------------------------------------------------


def root_at(read: Subtrees, size: int) -> bytes:
    """The root of the first `size` leaves."""
    return _root_of_range(read, 0, size) if size else EMPTY_ROOT


def inclusion_proof(read: Subtrees, index: int, size: int) -> list[bytes]:
    """Audit path of leaf `index` in the tree of `size` leaves (RFC 6962 2.1.1), its sibling first."""
    if not 0 <= index < size:
        raise IndexError(f"leaf {index} of {size}")
    path: list[bytes] = []
    first, end = 0, size
    while end - first > 1:
        cut = first + _split(end - first)
        if index < cut:
            path.append(_root_of_range(read, cut, end))
            end = cut
        else:
            path.append(_root_of_range(read, first, cut))
            first = cut
    return path[::-1]


def consistency_proof(read: Subtrees, old: int, new: int) -> list[bytes]:
    """Proof that the tree of `old` leaves is the beginning of that of `new` (RFC 6962 2.1.2); empty where `old` is 0
    or `new`.
    """
    if not 0 <= old <= new:
        raise IndexError(f"the tree of {old} leaves is no beginning of that of {new}")
    if old in (0, new):
        return []
    proof: list[bytes] = []
    first, end, is_whole = 0, new, True
    while old != end:
        cut = first + _split(end - first)
        if old <= cut:
            proof.append(_root_of_range(read, cut, end))
            end = cut
        else:
            proof.append(_root_of_range(read, first, cut))
            first, is_whole = cut, False
    if not is_whole:
        proof.append(_root_of_range(read, first, end))
    return proof[::-1]


def verify_consistency(old: int, old_root: bytes, new: int, new_root: bytes, proof: Sequence[bytes]) -> None:
    """VerificationError unless the proof shows that the tree of `old` leaves is the beginning of that of `new`
    (RFC 9162 2.1.4.2).
    """
    if not 0 <= old <= new:
        raise _inconsistent(f"a tree of {new} leaves does not begin with one of {old}", old, new)
    if old in (0, new):
        if proof:
            raise _inconsistent(f"{len(proof)} hashes where no proof is due", old, new)
        if old_root != (new_root if old else EMPTY_ROOT):
            raise _inconsistent("two roots of one size", old, new)
        return
    node, last = old - 1, new - 1
    while node & 1:
        node, last = node >> 1, last >> 1
    path = [old_root, *proof] if not node else list(proof)
    if not path:
        raise _inconsistent("the proof is too short", old, new)
    seen_old = seen_new = path[0]
    for sibling in path[1:]:
        if not last:
            raise _inconsistent("the proof is too long", old, new)
        if node & 1 or node == last:
            seen_old, seen_new = node_hash(sibling, seen_old), node_hash(sibling, seen_new)
            while node and not node & 1:
                node, last = node >> 1, last >> 1
        else:
            seen_new = node_hash(seen_new, sibling)
        node, last = node >> 1, last >> 1
    if last:
        raise _inconsistent("the proof is too short", old, new)
    if seen_old != old_root or seen_new != new_root:
        raise _inconsistent("the proof does not lead to both roots", old, new)


class Frontier:
    """The right edge of a growing tree: the roots of its complete subtrees, largest first; at most 64 hashes."""

    def __init__(self, size: int = 0, roots: Iterable[bytes] = ()) -> None:
        """A tree of `size` leaves by the roots of its complete subtrees, one for each bit of the size."""
        self.size = size
        self._roots = list(roots)
        if len(self._roots) != size.bit_count():
            raise ValueError(f"{len(self._roots)} subtrees for a tree of {size} leaves")

    @classmethod
    def read(cls, read: Subtrees, size: int) -> Frontier:
        """The right edge of the first `size` leaves of a tree that can be read."""
        roots, first = [], 0
        for level in reversed(range(size.bit_length())):
            if size >> level & 1:
                roots.append(read(level, first >> level))
                first += 1 << level
        return cls(size, roots)

    def append(self, leaf: bytes) -> None:
        """One more leaf, by its hash."""
        self._roots.append(leaf)
        self.size += 1
        for _ in range((self.size & -self.size).bit_length() - 1):
            right = self._roots.pop()
            self._roots[-1] = node_hash(self._roots[-1], right)

    def root(self) -> bytes:
        """The root of the whole tree."""
        if not self._roots:
            return EMPTY_ROOT
        root = self._roots[-1]
        for left in self._roots[-2::-1]:
            root = node_hash(left, root)
        return root


def _root_of_range(read: Subtrees, first: int, end: int) -> bytes:
    """MTH(D[first:end]), where `first` is a multiple of the largest power of two that is not above the length."""
    size = end - first
    level = size.bit_length() - 1
    if size == 1 << level:
        return read(level, first >> level)
    cut = first + (1 << level)
    return node_hash(read(level, first >> level), _root_of_range(read, cut, end))


def _inconsistent(message: str, old: int, new: int) -> VerificationError:
    return VerificationError(f"consistency of {old} with {new}: {message}", field="consistency", value=old, limit=new)
