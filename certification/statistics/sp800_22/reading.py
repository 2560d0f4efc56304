"""Sequences of bits from a file: raw bytes, the highest bit first, or the characters 0 and 1 with white space.

A file counts as characters if its beginning holds nothing else, which is never so for useful raw bytes; `--format`
overrides this guess. Only one sequence is in memory at a time. SequenceError for a pipe (it can be read only once and
has no length), for other text (commas, hexadecimal, a byte order mark: read as raw bytes it would be a biased sequence,
and the verdict would be about the wrong thing), for another character further on, and for a file that is too short.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np

from certification.rtp.compiled import Bytes

FORMATS: Final = ("auto", "raw", "ascii")
_WHITE: Final = b" \t\r\n"
_TEXT: Final = _WHITE + bytes(range(33, 127))
_MARK: Final = b"\xef\xbb\xbf"
_CHECKED: Final = 4096


class SequenceError(ValueError):
    """A file that does not hold the sequences asked for."""


def format_of(path: Path) -> str:
    """Return "ascii" if the file begins with nothing but 0, 1 and white space, else "raw". Raises SequenceError."""
    with path.open("rb") as file:
        beginning = file.read(_CHECKED)
    if not beginning.translate(None, b"01" + _WHITE):
        return "ascii"
    if not beginning.removeprefix(_MARK).translate(None, _TEXT):
        raise SequenceError(f"{path.name} begins with text that is more than 0 and 1: --format raw if these are bytes")
    return "raw"


def check_regular(path: Path) -> None:
    """Refuse a pipe or a device. Raises SequenceError, and OSError for what is not there."""
    if not path.is_dir() and not stat.S_ISREG(path.stat().st_mode):
        raise SequenceError(f"{path} is not a regular file: write the bits to one first")


def bits_in(path: Path, form: str) -> int:
    """Return how many bits the file holds."""
    return 8 * path.stat().st_size if form == "raw" else sum(len(bits) for bits in _characters(path))


def read_sequences(path: Path, form: str, length: int, count: int) -> Iterator[Bytes]:
    """Give the first `count` sequences of `length` bits, one after the other. Raises SequenceError."""
    if form == "raw" and length % 8 and count > 1:
        raise SequenceError(f"sequences of raw bytes are whole bytes long, {length} bits are not")
    left = np.zeros(0, np.uint8)
    pieces = _bytes(path, -(-length // 8)) if form == "raw" else _characters(path)
    given = 0
    for piece in pieces:
        left = np.concatenate((left, piece))
        while len(left) >= length and given < count:
            yield left[:length]
            left = left[length:]
            given += 1
        if given == count:
            return
    raise SequenceError(f"{path.name} holds {given} of the {count} sequences of {length:,} bits")


def _bytes(path: Path, size: int) -> Iterator[Bytes]:
    with path.open("rb") as file:
        while data := file.read(size):
            yield np.unpackbits(np.frombuffer(data, np.uint8))


def _characters(path: Path) -> Iterator[Bytes]:
    offset = 0
    with path.open("rb") as file:
        while data := file.read(1 << 20):
            bits = np.frombuffer(data.translate(None, _WHITE), np.uint8) - ord("0")
            if len(bits) and bits.max() > 1:
                wrong = next(place for place, byte in enumerate(data) if byte not in b"01" + _WHITE)
                raise SequenceError(f"{path.name}: byte {offset + wrong} is neither 0 nor 1 nor white space")
            yield bits
            offset += len(data)
