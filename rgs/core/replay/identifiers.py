"""A set of ULIDs in 16 bytes each: what replay keeps of every round and session to see an id used twice.

Exact, not probabilistic: the ids stand sorted in buckets chosen by their last bits, which are random. Refuses nothing
itself.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import partial

_BUCKETS = 4096
_WIDTH = 16
_DIGITS = str.maketrans("0123456789ABCDEFGHJKMNPQRSTVWXYZ", "0123456789ABCDEFGHIJKLMNOPQRSTUV")


class IdSet:
    """Grows by 16 bytes an id, and by what a growing bucket keeps in reserve."""

    def __init__(self) -> None:
        self._buckets: dict[int, bytearray] = {}

    def add(self, ulid: str) -> bool:
        """True if the id was new, False if it stood there already."""
        bucket, key, place = self._find(ulid)
        if bucket[place : place + _WIDTH] == key:
            return False
        bucket[place:place] = key
        return True

    def __contains__(self, ulid: str) -> bool:
        bucket, key, place = self._find(ulid)
        return bucket[place : place + _WIDTH] == key

    def _find(self, ulid: str) -> tuple[bytearray, bytes, int]:
        """The id's bucket, its 16 bytes, and where they stand or would."""
        number = int(ulid.translate(_DIGITS), 32)
        bucket = self._buckets.setdefault(number % _BUCKETS, bytearray())
        key = number.to_bytes(_WIDTH, "big")
        if bucket[-_WIDTH:] < key:  # as most are: an id begins with the time at which it was made
            return bucket, key, len(bucket)
        return bucket, key, bisect_left(range(len(bucket) // _WIDTH), key, key=partial(_item, bucket)) * _WIDTH


def _item(bucket: bytearray, index: int) -> bytes:
    return bytes(bucket[index * _WIDTH : (index + 1) * _WIDTH])
