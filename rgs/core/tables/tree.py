"""The tree over the seats of a table's round: padded to a power of two, with every path from one pass.

The leaves are the canonical bytes of the seats in seat order, then padding, so that the tree's size does not show how
many play (docs/formats.md, section 10).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rgs.core.errors import InvalidFieldError
from rgs.core.statements.canonical import digest
from rgs.core.tlog.merkle import node_hash

SEATS_MAX: Final = 1 << 20
"""The most seats of one round of a table."""
LEAVES_MIN: Final = 64
"""The fewest leaves: fewer would show how many play."""
_NODE_BYTES: Final = 32


def leaves_for(seats: int) -> int:
    """The number of leaves of a tree with this many seats; InvalidFieldError unless there are 1 to 1,048,576.

    >>> leaves_for(7), leaves_for(64), leaves_for(65)
    (64, 64, 128)
    """
    if not 1 <= seats <= SEATS_MAX:
        raise InvalidFieldError(f"seats: a round has 1 to {SEATS_MAX}, not {seats}", field="seats", limit=SEATS_MAX)
    return max(LEAVES_MIN, 1 << (seats - 1).bit_length())


def padding_leaf(salt: bytes, seat_no: int) -> bytes:
    """The hash in the place of a seat that nobody has: SHA-256("rgs/padding/v1" 00 || salt[32] || u32 seat number)."""
    return digest("rgs/padding/v1", salt, seat_no.to_bytes(4, "big"))


class SeatTree:
    """All levels of the tree, so that the path of each seat costs no hash: about 64 bytes a leaf."""

    def __init__(self, seats: Sequence[bytes], salt: bytes) -> None:
        """`seats` are the leaf hashes in seat order, `salt` 32 bytes for the padding."""
        padding = range(len(seats) + 1, leaves_for(len(seats)) + 1)
        level = [*seats, *(padding_leaf(salt, seat_no) for seat_no in padding)]
        self._levels = [level]
        while len(level) > 1:
            pairs = zip(level[::2], level[1::2], strict=True)
            level = [node_hash(left, right) for left, right in pairs]
            self._levels.append(level)

    @property
    def leaves(self) -> int:
        """The number of leaves, padding included."""
        return len(self._levels[0])

    @property
    def root(self) -> bytes:
        """The root over all leaves (RFC 6962, 2.1), 32 bytes."""
        return self._levels[-1][0]

    def path(self, seat_no: int) -> list[bytes]:
        """The audit path of a seat (from 1), its sibling first."""
        place = seat_no - 1
        return [level[place >> height ^ 1] for height, level in enumerate(self._levels[:-1])]


def root_of_padded(seats: Sequence[bytes], salt: bytes) -> bytes:
    """The root over the leaf hashes of all seats and the padding behind them."""
    return SeatTree(seats, salt).root


def path_nodes(path: bytes) -> tuple[bytes, ...]:
    """The hashes of a path as a seat's row keeps it: one behind the other."""
    return tuple(path[at : at + _NODE_BYTES] for at in range(0, len(path), _NODE_BYTES))
