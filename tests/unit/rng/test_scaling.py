"""Scaling is uniform: shown by exhausting every byte for every n."""

from collections import Counter
from collections.abc import Callable

import pytest

from rng.scaling import below

Scaling = Callable[[int, Callable[[], int]], int]


def exhaust(scaling: Scaling, n: int) -> tuple[Counter[int], int]:
    """How often each result comes over all 256 single bytes, and how many bytes are rejected."""
    results: Counter[int] = Counter()
    rejected = 0
    for byte in range(256):
        try:
            results[scaling(n, iter((byte,)).__next__)] += 1
        except StopIteration:  # the one byte was rejected, another was asked for
            rejected += 1
    return results, rejected


def is_uniform(scaling: Scaling, n: int) -> bool:
    results, _ = exhaust(scaling, n)
    return set(results) == set(range(n)) and len(set(results.values())) == 1


@pytest.mark.parametrize("n", range(2, 257))
def test_every_result_has_exactly_as_many_bytes(n: int) -> None:
    results, rejected = exhaust(below, n)
    assert results == dict.fromkeys(range(n), 256 // n)
    assert rejected == 256 % n


def test_one_outcome_consumes_nothing() -> None:
    assert below(1, iter(()).__next__) == 0


@pytest.mark.parametrize("n", [3, 43, 51, 52, 129, 255])
def test_rejected_bytes_are_consumed_and_the_next_accepted_one_decides(n: int) -> None:
    limit = 256 - 256 % n
    rejects = list(range(limit, 256))
    source = iter([*rejects, *rejects, limit - 1, 99])
    assert below(n, source.__next__) == n - 1
    assert list(source) == [99]


@pytest.mark.parametrize("n", [-1, 0, 257])
def test_an_n_that_one_byte_cannot_serve_is_refused(n: int) -> None:
    with pytest.raises(ValueError, match=r"1\.\.256"):
        below(n, iter(b"\x00" * 9).__next__)


@pytest.mark.parametrize(
    "biased",
    [
        lambda n, next_byte: next_byte() % n,
        lambda n, next_byte: next_byte() * n >> 8,
        lambda n, next_byte: round(next_byte() / 255 * (n - 1)),
        lambda n, next_byte: below(n - 1, next_byte),
    ],
    ids=["modulo", "multiply and floor", "rounded float", "one short"],
)
def test_the_exhaustion_sees_a_biased_scaling(biased: Scaling) -> None:
    assert is_uniform(below, 52)
    assert not is_uniform(biased, 52)
