"""A set of ids in 16 bytes each. Replay keeps the ids of rounds, sessions, participations and transactions in it, to
find an id that is used twice.

The set is exact for ULIDs; of other ids it keeps the first 16 bytes of their SHA-256. The ids stand sorted in buckets
chosen by their last bits, which are random.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from bisect import bisect_left
from collections.abc import Mapping
from functools import partial
from hashlib import sha256

_BUCKETS = 4096
_WIDTH = 16
_DIGITS = str.maketrans("0123456789ABCDEFGHJKMNPQRSTVWXYZ", "0123456789ABCDEFGHIJKLMNOPQRSTUV")


class IdSet:
    """It grows by 16 bytes an id, and by the reserve of its buckets."""

    def __init__(self) -> None:
        self._buckets: dict[int, bytearray] = {}

    def add(self, ulid: str) -> bool:
        """True if the ULID is new."""
        return self._add(_key(ulid))

    def add_text(self, *texts: str) -> bool:
        """The same for an id of any form: first what it identifies, then its parts, none with a line feed."""
        return self._add(sha256("\n".join(texts).encode()).digest()[:_WIDTH])

    def __contains__(self, ulid: str) -> bool:
        bucket, place = self._find(key := _key(ulid))
        return bucket[place : place + _WIDTH] == key

    def state(self) -> dict[str, str]:
        """The ids for JSON: each bucket in base64."""
        return {str(number): b64encode(held).decode("ascii") for number, held in self._buckets.items()}

    def restore(self, state: Mapping[str, str]) -> None:
        """Replace the ids by those of a `state`."""
        self._buckets = {int(number): bytearray(b64decode(held)) for number, held in state.items()}

    def _add(self, key: bytes) -> bool:
        bucket, place = self._find(key)
        if bucket[place : place + _WIDTH] == key:
            return False
        bucket[place:place] = key
        return True

    def _find(self, key: bytes) -> tuple[bytearray, int]:
        """The bucket of the 16 bytes, and where they stand or would."""
        bucket = self._buckets.setdefault(int.from_bytes(key[-2:], "big") % _BUCKETS, bytearray())
        if bucket[-_WIDTH:] < key:  # as of most ULIDs: they begin with the time at which they were made
            return bucket, len(bucket)
        return bucket, bisect_left(range(len(bucket) // _WIDTH), key, key=partial(_item, bucket)) * _WIDTH


def _key(ulid: str) -> bytes:
    return int(ulid.translate(_DIGITS), 32).to_bytes(_WIDTH, "big")


def _item(bucket: bytearray, index: int) -> bytes:
    return bytes(bucket[index * _WIDTH : (index + 1) * _WIDTH])
