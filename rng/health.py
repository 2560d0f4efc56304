"""Continuous health tests on entropy input, in the manner of SP 800-90B 4.4, and a same-block test.

Samples are bytes, taken at H = 8 bits each with a false alarm of 2^-40 a sample; state runs on across calls. The
byte string primitives of C do the per-sample work; a property test shows equality with the per-sample text.

What a pass shows, and what not: the input was not dead, stuck or repeating. The operating system's output is
conditioned, so these tests say nothing about the quality of its noise source, and estimate no entropy.

Of the data seen it keeps a digest of the last block, the current run, and one byte; it never stores a block.
"""

import hashlib
import re
from typing import Final

from rng.errors import HealthTestError, SelfTestError

REPETITION_CUTOFF: Final = 6  # SP 800-90B 4.4.1: C = 1 + ceil(40 / 8)
PROPORTION_WINDOW: Final = 512  # 4.4.2: window for samples of more than one bit
PROPORTION_CUTOFF: Final = 19  # 4.4.2: C = 1 + critbinom(512, 2^-8, 1 - 2^-40)


class RepetitionCount:
    """Repetition count test (SP 800-90B 4.4.1): fails when a byte comes `cutoff` times in a row."""

    def __init__(self, cutoff: int = REPETITION_CUTOFF) -> None:
        self._find_run = re.compile(rb"(?s)(.)\1{%d}" % (cutoff - 1)).search
        self._run = b""  # the last byte, as often as it has been repeated so far

    def check(self, block: bytes) -> None:
        """Take the next samples. Raises HealthTestError REPETITION_COUNT."""
        samples = self._run + block
        if self._find_run(samples):
            raise HealthTestError("REPETITION_COUNT", "one byte was repeated up to the cut-off")
        self._run = samples[len(samples.rstrip(samples[-1:])) :]


class AdaptiveProportion:
    """Adaptive proportion test (4.4.2): fails when a window's first byte comes `cutoff` times within the window."""

    def __init__(self, window: int = PROPORTION_WINDOW, cutoff: int = PROPORTION_CUTOFF) -> None:
        self._window = window
        self._cutoff = cutoff
        self._first = b""
        self._seen = 0  # samples of the current window, its first included
        self._count = 0  # how many of them equal the first, itself included

    def check(self, block: bytes) -> None:
        """Take the next samples. Raises HealthTestError ADAPTIVE_PROPORTION."""
        start = 0
        while start < len(block):
            if self._seen == 0:
                self._first = block[start : start + 1]
            end = min(len(block), start + self._window - self._seen)
            self._count += block.count(self._first, start, end)
            if self._count >= self._cutoff:
                raise HealthTestError("ADAPTIVE_PROPORTION", "one byte filled a window up to the cut-off")
            self._seen += end - start
            if self._seen == self._window:
                self._seen = self._count = 0
            start = end


class SameBlock:
    """Fails when a block equals the block before (the continuous test of FIPS 140-2 4.9.2, on whole blocks).

    Sees what the two tests above cannot: a source that gives the same good-looking block again.
    """

    def __init__(self) -> None:
        self._last = b""

    def check(self, block: bytes) -> None:
        """Take the next block. Raises HealthTestError SAME_BLOCK."""
        digest = hashlib.sha256(block).digest()  # the block is seed material: only its digest is kept
        if digest == self._last:
            raise HealthTestError("SAME_BLOCK", "a block was given twice in a row")
        self._last = digest


class HealthTests:
    """The three tests over one stream. Not thread-safe, and it does not latch: its owner does both."""

    def __init__(self) -> None:
        self._tests = (RepetitionCount(), AdaptiveProportion(), SameBlock())

    def check(self, block: bytes) -> None:
        """Take the next block of the stream. Raises HealthTestError, whose reason names the test."""
        for test in self._tests:
            test.check(block)


def selftest() -> None:
    """Known answers: each test passes up to one sample below its cut-off and fails at it. Raises SelfTestError."""
    filler = bytes(range(1, 248)) * 2  # 494 bytes, none of them 0
    for reason, accepted, refused in (
        ("REPETITION_COUNT", b"\x00" * 5, b"\x00"),  # a stuck source
        ("ADAPTIVE_PROPORTION", b"\x00\x01" * 18, b"\x00"),  # a source of two values
        ("ADAPTIVE_PROPORTION", b"\x00\x01" * 9 + filler + b"\x02\x03" * 18, b"\x02"),  # again in the second window
        ("SAME_BLOCK", bytes(range(64)), bytes(range(64))),  # a repeating source
    ):
        tests = HealthTests()
        tests.check(accepted)
        try:
            tests.check(refused)
            reported = "nothing"
        except HealthTestError as error:
            reported = error.reason
        if reported != reason:
            raise SelfTestError("HEALTH_TESTS", f"{reason} was due, {reported} was reported")
