"""The fast health tests fail exactly when the per-sample text of SP 800-90B does, however the stream is cut."""

import hashlib
from collections.abc import Callable
from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from rng.errors import HealthTestError
from rng.health import AdaptiveProportion, RepetitionCount
from tests.unit.rng.reference import adaptive_proportion_fails, repetition_count_fails

# Few values, so that runs and crowds are common; among them those that a careless pattern would treat apart.
streams = st.lists(st.sampled_from([0, 1, 10, 92, 255]), max_size=300).map(bytes)
cuts = st.lists(st.integers(0, 300), max_size=12)


def cut(stream: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(min(place, len(stream)) for place in places), len(stream)]
    return [stream[start:end] for start, end in pairwise(edges)]


def refused_at(check: Callable[[bytes], None], blocks: list[bytes]) -> int | None:
    """The index of the first block refused."""
    for index, block in enumerate(blocks):
        try:
            check(block)
        except HealthTestError:
            return index
    return None


def expected_at(fails: Callable[[bytes], bool], blocks: list[bytes]) -> int | None:
    """The index of the first block after which the per-sample test has failed."""
    return next((i for i in range(len(blocks)) if fails(b"".join(blocks[: i + 1]))), None)


@given(streams, cuts, st.integers(2, 7))
@example(b"\x00" * 6, [1, 2, 3, 4, 5], 6)
def test_repetition_count(stream: bytes, places: list[int], cutoff: int) -> None:
    blocks = cut(stream, places)
    expected = expected_at(lambda samples: repetition_count_fails(samples, cutoff), blocks)
    assert refused_at(RepetitionCount(cutoff).check, blocks) == expected


@given(streams, cuts, st.integers(1, 20), st.integers(2, 9))
@example(b"\x00\x01" * 4, [2, 4, 6], 4, 3)  # windows begin on the cuts
@example(b"\x01" * 3 + b"\x00" * 3, [4], 3, 3)  # a window begins in the middle of a block
def test_adaptive_proportion(stream: bytes, places: list[int], window: int, cutoff: int) -> None:
    blocks = cut(stream, places)
    expected = expected_at(lambda samples: adaptive_proportion_fails(samples, window, cutoff), blocks)
    assert refused_at(AdaptiveProportion(window, cutoff).check, blocks) == expected


@given(st.integers(0, 2**32), st.integers(0, 1400), st.integers(1, 255), cuts)
def test_with_the_cut_offs_in_use(seed: int, size: int, step: int, places: list[int]) -> None:
    # The first byte comes again about 18 times in 512: some streams fail the proportion, some pass, some fail late.
    noise = hashlib.shake_128(seed.to_bytes(8, "big")).digest(size)
    stream = bytes(0 if i == 0 or sample * step % 256 < 9 else sample for i, sample in enumerate(noise))
    blocks = cut(stream, places)
    assert refused_at(RepetitionCount().check, blocks) == expected_at(
        lambda samples: repetition_count_fails(samples, 6), blocks
    )
    assert refused_at(AdaptiveProportion().check, blocks) == expected_at(
        lambda samples: adaptive_proportion_fails(samples, 512, 19), blocks
    )
