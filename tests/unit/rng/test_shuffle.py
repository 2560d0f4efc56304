"""The shuffle gives every order equally often, and a transcript gives back its deck or an error."""

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import permutations, product
from math import factorial

import pytest

from rng.errors import TranscriptError
from rng.generator import DRAW_REQUEST_BYTES
from rng.scaling import below
from rng.shuffle import DECK_SIZE, PROCEDURE, shuffle, transcript_to_deck
from tests.unit.rng.reference import swap_by_swap

Shuffle = Callable[[Callable[[], int], int], list[int]]


def outcomes(shuffling: Shuffle, n: int) -> Counter[tuple[int, ...]]:
    """How often each order comes over all draws j_(n-1) <= n-1, ..., j_1 <= 1: each is equally likely, as `below`
    is uniform. Bytes below the bound are never rejected and stand for themselves.
    """
    draws = product(*(range(i + 1) for i in range(n - 1, 0, -1)))
    return Counter(tuple(shuffling(iter(bytes(draw)).__next__, n)) for draw in draws)


@pytest.mark.parametrize("n", range(1, 8))
def test_every_order_comes_exactly_once_over_all_draws(n: int) -> None:
    counts = outcomes(shuffle, n)
    assert set(counts) == set(permutations(range(n)))
    assert set(counts.values()) == {1}
    assert sum(counts.values()) == factorial(n)


def _sattolo(next_byte: Callable[[], int], n: int) -> list[int]:
    deck = list(range(n))
    for i in range(n - 1, 0, -1):
        j = below(i, next_byte) if i > 1 else next_byte() * 0
        deck[i], deck[j] = deck[j], deck[i]
    return deck


def _one_step_early(next_byte: Callable[[], int], n: int) -> list[int]:
    deck = list(range(n))
    for i in range(n - 1, 1, -1):
        j = below(i + 1, next_byte)
        deck[i], deck[j] = deck[j], deck[i]
    return deck


def _wrong_partner(next_byte: Callable[[], int], n: int) -> list[int]:
    deck = list(range(n))
    for i in range(n - 1, 0, -1):
        j = below(i + 1, next_byte)
        deck[n - 1], deck[j] = deck[j], deck[n - 1]
    return deck


@pytest.mark.parametrize("defect", [_sattolo, _one_step_early, _wrong_partner])
def test_the_enumeration_sees_a_defective_shuffle(defect: Shuffle) -> None:
    counts = outcomes(defect, 4)
    assert set(counts) != set(permutations(range(4))) or set(counts.values()) != {1}


def test_with_no_byte_above_zero_every_swap_is_with_the_top() -> None:
    assert shuffle(iter(bytes(51)).__next__) == [*range(1, 52), 0]


def test_highest_accepted_bytes_leave_the_order_as_it_was() -> None:
    stay = bytes(255 - 256 % n for n in range(52, 1, -1))
    assert shuffle(iter(stay).__next__) == list(range(52))


def test_rejected_bytes_stand_in_the_transcript_and_change_nothing() -> None:
    accepted = bytes((7 * n) % n for n in range(52, 1, -1))
    rejects = {n: bytes(range(256 - 256 % n, 256)) for n in range(52, 1, -1)}
    transcript = b"".join(rejects[n] + accepted[52 - n : 53 - n] for n in range(52, 1, -1))
    assert len(transcript) == 51 + sum(256 % n for n in range(2, 53))
    assert transcript_to_deck(transcript) == transcript_to_deck(accepted)


def test_the_deck_equals_the_second_implementation() -> None:
    accepted = [(n * n + 11) % n for n in range(52, 1, -1)]
    assert list(transcript_to_deck(bytes(accepted))) == swap_by_swap(accepted, 52)


@pytest.mark.parametrize("missing", [1, 2, 51])
def test_a_short_transcript_is_refused(missing: int) -> None:
    with pytest.raises(TranscriptError) as caught:
        transcript_to_deck(bytes(51 - missing))
    assert caught.value.reason == "TRANSCRIPT_SHORT"


def test_a_transcript_that_ends_on_rejected_bytes_is_refused() -> None:
    with pytest.raises(TranscriptError, match="TRANSCRIPT_SHORT"):
        transcript_to_deck(b"\xff" * 51)


@pytest.mark.parametrize("surplus", [b"\x00", b"\xff", b"\x00" * 13])
def test_surplus_bytes_are_refused(surplus: bytes) -> None:
    with pytest.raises(TranscriptError, match=f"TRANSCRIPT_SURPLUS: {len(surplus)} of"):
        transcript_to_deck(bytes(51) + surplus)


def test_a_deck_of_one_card_has_the_empty_transcript() -> None:
    assert transcript_to_deck(b"", 1) == (0,)
    with pytest.raises(TranscriptError, match="TRANSCRIPT_SURPLUS"):
        transcript_to_deck(b"\x00", 1)


@pytest.mark.parametrize("n", [-1, 0, 257])
def test_a_deck_size_that_one_byte_cannot_serve_is_refused(n: int) -> None:
    with pytest.raises(ValueError, match=r"1\.\.256"):
        transcript_to_deck(bytes(51), n)


def test_the_largest_deck_is_served() -> None:
    assert sorted(transcript_to_deck(bytes(255), 256)) == list(range(256))


def test_the_procedure_is_named() -> None:
    assert PROCEDURE == "fisher-yates-52/v1"
    assert DECK_SIZE == 52


def test_the_law_of_the_transcript_length_is_as_documented() -> None:
    # P(length = k) as exact fractions up to the request; the rest is the chance of a second request.
    law = {0: Fraction(1)}
    for n in range(52, 1, -1):
        accept = Fraction(256 - 256 % n, 256)
        following: dict[int, Fraction] = {}
        for length, weight in law.items():
            for more in range(1, DRAW_REQUEST_BYTES - length + 1):
                share = weight * accept * (1 - accept) ** (more - 1)
                following[length + more] = following.get(length + more, Fraction(0)) + share
        law = following
    mean = sum(Fraction(256, 256 - 256 % n) for n in range(2, 53))
    assert round(float(mean), 1) == 53.6
    assert round(float(1 / (1 - sum(law.values()))), -3) == 164_000
