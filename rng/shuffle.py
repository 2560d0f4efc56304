"""Fisher-Yates over a byte source, and its inverse view: the transcript of a draw -> the deck.

Pure and versioned by PROCEDURE: an auditor replays a deal from its transcript, without any generator state. The deck
starts as 0..n-1; for i = n-1 down to 1: j = below(i + 1), swap places i and j; the top of the deck is index 0.
(Durstenfeld 1964; Knuth, The Art of Computer Programming vol. 2, 3.4.2 algorithm P.)

It refuses a transcript with a byte too few or too many, and never sorts, never scales by floats.
"""

from collections.abc import Callable
from typing import Final

from rng.errors import TranscriptError
from rng.scaling import below

PROCEDURE: Final = "fisher-yates-52/v1"
DECK_SIZE: Final = 52


def shuffle(next_byte: Callable[[], int], n: int = DECK_SIZE) -> list[int]:
    """Return a uniform permutation of 0..n-1, 1 <= n <= 256, from uniform bytes; each call of `next_byte` consumes one.

    Raises ValueError for another n, and whatever `next_byte` raises.
    """
    if not 1 <= n <= 256:
        raise ValueError("n is 1..256")
    deck = list(range(n))
    for i in range(n - 1, 0, -1):
        j = below(i + 1, next_byte)
        deck[i], deck[j] = deck[j], deck[i]
    return deck


def transcript_to_deck(transcript: bytes, n: int = DECK_SIZE) -> tuple[int, ...]:
    """Return the deck, top first, that exactly these consumed bytes, rejected ones included, gave.

    Raises TranscriptError when bytes are missing (TRANSCRIPT_SHORT) or left over (TRANSCRIPT_SURPLUS).
    """
    unread = iter(transcript)
    try:
        deck = shuffle(unread.__next__, n)
    except StopIteration:
        raise TranscriptError("TRANSCRIPT_SHORT", f"{len(transcript)} bytes end before the shuffle does") from None
    surplus = len(bytes(unread))
    if surplus:
        raise TranscriptError("TRANSCRIPT_SURPLUS", f"{surplus} of {len(transcript)} bytes are left over")
    return tuple(deck)
