"""Bytes that follow from a seed, for tests that need chance again and again the same."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from rng.shuffle import shuffle


class Bytes:
    """A stream of bytes that follows from its seed."""

    def __init__(self, seed: str) -> None:
        self._stream = self._blocks(seed.encode())

    @staticmethod
    def _blocks(seed: bytes) -> Iterator[int]:
        count = 0
        while True:
            yield from hashlib.sha256(seed + count.to_bytes(8, "big")).digest()
            count += 1

    def take(self, count: int) -> bytes:
        return bytes(next(self._stream) for _ in range(count))

    def transcript(self) -> bytes:
        """The bytes that one shuffle consumes."""
        consumed = bytearray()

        def next_byte() -> int:
            consumed.append(next(self._stream))
            return consumed[-1]

        shuffle(next_byte)
        return bytes(consumed)
