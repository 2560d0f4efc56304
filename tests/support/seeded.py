"""Chance that follows from a seed: bytes, again and again the same; which part of a large space a run visits."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import pytest

from rng.shuffle import shuffle


def turn(config: pytest.Config, parts: int) -> int:
    """Which of the parts of a space this run visits, by its printed seed; `slow_exhaustive` tests visit all of it."""
    return int(config.getoption("hypothesis_seed")) % parts


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
