"""Transcripts: what a shuffle consumed gives back its deck, and nothing else does."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rng.errors import TranscriptError
from rng.shuffle import shuffle, transcript_to_deck
from tests.unit.rng.reference import swap_by_swap


@st.composite
def transcripts(draw: st.DrawFn) -> tuple[bytes, list[int], int]:
    """The transcript of one shuffle, the numbers it stands for, and the deck's size."""
    n = draw(st.integers(1, 60))
    octets, accepted = bytearray(), []
    for bound in range(n, 1, -1):
        limit = 256 - 256 % bound
        if limit < 256:
            octets += bytes(draw(st.lists(st.integers(limit, 255), max_size=2)))
        octets.append(draw(st.integers(0, limit - 1)))
        accepted.append(octets[-1] % bound)
    return bytes(octets), accepted, n


@given(transcripts())
def test_a_transcript_gives_the_deck_of_the_second_implementation(case: tuple[bytes, list[int], int]) -> None:
    transcript, accepted, n = case
    deck = transcript_to_deck(transcript, n)
    assert list(deck) == swap_by_swap(accepted, n)
    assert sorted(deck) == list(range(n))


@given(st.binary(min_size=400, max_size=500))
def test_what_a_shuffle_consumes_is_its_transcript(tape: bytes) -> None:
    unread = iter(tape)
    try:
        deck = shuffle(unread.__next__)
    except StopIteration:
        assume(False)
    transcript = tape[: len(tape) - len(bytes(unread))]
    assert transcript_to_deck(transcript) == tuple(deck)


@given(transcripts(), st.data())
def test_a_byte_too_few_or_too_many_is_refused(case: tuple[bytes, list[int], int], data: st.DataObject) -> None:
    transcript, _, n = case
    with pytest.raises(TranscriptError, match="TRANSCRIPT_SURPLUS"):
        transcript_to_deck(transcript + data.draw(st.binary(min_size=1, max_size=9)), n)
    if transcript:
        with pytest.raises(TranscriptError, match="TRANSCRIPT_SHORT"):
            transcript_to_deck(transcript[: data.draw(st.integers(0, len(transcript) - 1))], n)
