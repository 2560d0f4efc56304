"""RFC 6962 section 2.1 Merkle tree over SHA-256, pure: roots and inclusion paths. Used for the seats of a deal."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from rgs.core.errors import VerificationError


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
    """Root over leaf hashes; of none: SHA-256 of the empty string."""
    if not leaves:
        return hashlib.sha256(b"").digest()
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
