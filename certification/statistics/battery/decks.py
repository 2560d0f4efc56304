"""Where decks come from, chunk by chunk: production, a seed through `rng.shuffle`, or an array that is given.

A source is picklable and makes the chunk of any number in any process. Production: a `Generator` of its own for each
chunk, reseeded from the operating system before every draw, its transcript made into a deck as an auditor does. Seeded:
bytes of a Hash_DRBG into `rng.shuffle`, so that a run can be repeated. Nothing is filtered.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Protocol

import numpy as np

from certification.rtp.compiled import Bytes, Longs
from rng.drbg import MAX_REQUEST_BYTES, HashDrbg
from rng.export import export
from rng.generator import Generator
from rng.shuffle import DECK_SIZE, shuffle, transcript_to_deck

CHUNK: Final = 10_000


@dataclass(frozen=True, eq=False)
class DeckChunk:
    """Decks in the order of their dealing, n x 52, and how often each byte was consumed for them, if that is known."""

    decks: Bytes
    byte_counts: Longs | None = None

    @cached_property
    def places(self) -> Bytes:
        """Where each card lies: the inverse of every deck."""
        return inverse(self.decks)

    @cached_property
    def steps(self) -> Bytes:
        """From each deck to the next: where the card of each place lies in the following deck."""
        return np.take_along_axis(self.places[1:], self.decks[:-1], axis=1)


class DeckSource(Protocol):
    """Makes chunks of decks, and raw output where there is any."""

    @property
    def reported(self) -> str:
        """What it is, for the report."""

    def chunk(self, number: int, count: int) -> DeckChunk: ...

    def raw(self, count: int, number: int = 0, /) -> bytes | None:
        """Return so many bytes, others for each number."""


def inverse(decks: Bytes) -> Bytes:
    """Return the inverse permutations, row by row."""
    places = np.empty_like(decks)
    np.put_along_axis(places, decks, np.arange(decks.shape[1], dtype=np.uint8)[None, :], axis=1)
    return places


@dataclass(frozen=True)
class Production:
    """The generator that deals."""

    reported: str = "the production generator"

    def chunk(self, number: int, count: int) -> DeckChunk:
        """Draw `count` decks from a generator of the chunk's own."""
        generator = Generator(f"battery-{os.getpid()}-{number}")
        transcripts = [generator.draw().transcript for _ in range(count)]
        generator.close()
        return from_transcripts(transcripts)

    def raw(self, count: int, _number: int = 0, /) -> bytes:
        """Collect bytes as `rng export --what raw` does, never the same."""
        out = io.BytesIO()
        export("raw", count, text=False, out=out, progress=io.StringIO())
        return out.getvalue()


@dataclass(frozen=True)
class Seeded:
    """A Hash_DRBG of a fixed seed into `rng.shuffle`."""

    seed: bytes

    @property
    def reported(self) -> str:
        return f"seed {self.seed.hex()}"

    def chunk(self, number: int, count: int) -> DeckChunk:
        """Shuffle `count` decks from the bytes of the chunk's own instance."""
        tape = Tape(self._drbg(b"decks", number))
        next_byte = iter(tape).__next__
        rows = b"".join(bytes(shuffle(next_byte)) for _ in range(count))
        return DeckChunk(np.frombuffer(rows, np.uint8).reshape(count, DECK_SIZE), tape.consumed())

    def raw(self, count: int, number: int = 0, /) -> bytes:
        """Generate bytes apart from those of the decks."""
        drbg = self._drbg(b"raw", number)
        return b"".join(
            drbg.generate(min(MAX_REQUEST_BYTES, count - start)) for start in range(0, count, MAX_REQUEST_BYTES)
        )

    def _drbg(self, use: bytes, number: int) -> HashDrbg:
        return HashDrbg(
            entropy_input=hashlib.sha512(self.seed).digest(),
            nonce=number.to_bytes(16, "big"),
            personalization=b"battery/" + use,
        )


@dataclass(eq=False)
class Tape:
    """The bytes of a DRBG one by one, counting those that were taken."""

    drbg: HashDrbg
    _counts: Longs = field(default_factory=lambda: np.zeros(256, np.int64))
    _left: Iterator[int] = field(default_factory=lambda: iter(b""))

    def __iter__(self) -> Iterator[int]:
        while True:
            block = self.drbg.generate(MAX_REQUEST_BYTES)
            self._counts += _byte_counts(block)
            self._left = iter(block)
            yield from self._left

    def consumed(self) -> Longs:
        """Return how often each byte was taken; the tape is over then."""
        return self._counts - _byte_counts(bytes(self._left))


@dataclass(frozen=True)
class Given:
    """Transcripts that were recorded before."""

    transcripts: tuple[bytes, ...]
    reported: str

    def chunk(self, number: int, count: int) -> DeckChunk:
        """Take the chunk's transcripts."""
        return from_transcripts(self.transcripts[number * CHUNK : number * CHUNK + count])

    def raw(self, _count: int, _number: int = 0, /) -> None:
        """None: a transcript is not raw output, because words are out of step after every rejection."""


def from_transcripts(transcripts: tuple[bytes, ...] | list[bytes]) -> DeckChunk:
    """Return the decks of transcripts. Raises TranscriptError for bytes that are the transcript of no shuffle."""
    rows = b"".join(bytes(transcript_to_deck(transcript)) for transcript in transcripts)
    decks = np.frombuffer(rows, np.uint8).reshape(len(transcripts), DECK_SIZE)
    return DeckChunk(decks, _byte_counts(b"".join(transcripts)))


def _byte_counts(data: bytes) -> Longs:
    return np.bincount(np.frombuffer(data, np.uint8), minlength=256)
