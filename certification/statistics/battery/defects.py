"""Planted defects: shuffles that are wrong in a known way, and the number of decks at which the battery catches each.

A battery that never failed a bad shuffle shows nothing (ST-08: bad shuffles must fail). `CAUGHT` lists the defects
that it catches, at the sample size that was worked out beforehand (`docs/statistics.md`). `NOT_CAUGHT` lists what no
affordable sample shows, with the source rule that guards against it instead. The defects use numpy's generator: they
are never part of dealing, and dealing never imports them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt

from certification.rtp.compiled import Bytes, Longs, compiled
from certification.statistics.battery.decks import DeckChunk, inverse
from rng.shuffle import DECK_SIZE

Words = npt.NDArray[np.uint64]
Make = Callable[[int, np.random.Generator], Bytes]
_LAST: Final = DECK_SIZE - 1


@dataclass(frozen=True, slots=True)
class Defect:
    """One defect: `make` gives so many decks of it, and the battery fails it at `decks` of them."""

    name: str
    decks: int
    make: Make


@dataclass(frozen=True, slots=True)
class Planted:
    """A defect as a source of decks. A run is one chunk, so that seeds and streams go on through it."""

    defect: Defect
    seed: int

    @property
    def reported(self) -> str:
        return f"planted: {self.defect.name}"

    def chunk(self, number: int, count: int) -> DeckChunk:
        return DeckChunk(self.defect.make(count, np.random.default_rng([self.seed, number])))

    def raw(self, _count: int, _number: int = 0, /) -> None:
        """Decks alone are planted; `mersenne_words` is a planted raw output."""


def swapped(partners: Longs, order: range) -> Bytes:
    """Return decks in which place order[k] was swapped with partners[:, k], one step after the other."""
    decks = np.tile(np.arange(DECK_SIZE, dtype=np.uint8), (len(partners), 1))
    rows = np.arange(len(partners))
    for step, place in enumerate(order):
        partner = partners[:, step]
        held = decks[rows, partner]
        decks[rows, partner] = decks[:, place]
        decks[:, place] = held
    return decks


_DOWN: Final = range(_LAST, 0, -1)
_CHOICES: Final = np.arange(DECK_SIZE, 1, -1)
"""How many partners each step of the right shuffle has."""


def fair(count: int, chance: np.random.Generator) -> Bytes:
    """No defect: what the others are measured against."""
    return swapped(chance.integers(0, _CHOICES, (count, _LAST)), _DOWN)


def sattolo(count: int, chance: np.random.Generator) -> Bytes:
    """The partner is never the card itself."""
    return swapped(chance.integers(0, _CHOICES - 1, (count, _LAST)), _DOWN)


def naive(count: int, chance: np.random.Generator) -> Bytes:
    """The partner is any card, at every step."""
    return swapped(chance.integers(0, DECK_SIZE, (count, DECK_SIZE)), range(DECK_SIZE))


def rounded(count: int, chance: np.random.Generator) -> Bytes:
    """round(u i) in place of floor(u (i + 1)): both ends have half their weight."""
    return swapped(np.rint(chance.random((count, _LAST)) * (_CHOICES - 1)).astype(np.int64), _DOWN)


def one_step_early(count: int, chance: np.random.Generator) -> Bytes:
    """The loop stops before the last step."""
    return swapped(chance.integers(0, _CHOICES[:-1], (count, _LAST - 1)), range(_LAST, 1, -1))


def random_comparator(count: int, chance: np.random.Generator) -> Bytes:
    """Insertion sort with a coin for a comparison."""
    return _coin_sorted(chance.integers(0, 2, (count, DECK_SIZE * _LAST // 2), np.uint8))


@compiled
def _coin_sorted(coins: Bytes) -> Bytes:
    decks = np.empty((coins.shape[0], 52), np.uint8)
    for number in range(coins.shape[0]):
        tossed = 0
        for card in range(52):
            place = card
            while place:
                tossed += 1
                if coins[number, tossed - 1]:
                    break
                decks[number, place] = decks[number, place - 1]
                place -= 1
            decks[number, place] = card
    return decks


def sort_keys(bits: int, count: int, chance: np.random.Generator) -> Bytes:
    """Sort by keys of so many bits, stably: equal keys keep the order of the cards."""
    keys = chance.integers(0, 1 << bits, (count, DECK_SIZE), np.uint32)
    return np.argsort(keys, axis=1, kind="stable").astype(np.uint8)


def riffle(times: int, count: int, chance: np.random.Generator) -> Bytes:
    """So many riffles (Gilbert, Shannon, Reeds): the inverse of a stable sort by keys of so many bits."""
    return inverse(sort_keys(times, count, chance))


def modulo(bits: int, count: int, chance: np.random.Generator) -> Bytes:
    """A number of so many bits, its remainder taken without rejection."""
    return swapped(chance.integers(0, 1 << bits, (count, _LAST), np.int64) % _CHOICES, _DOWN)


def modulo_255(count: int, chance: np.random.Generator) -> Bytes:
    """A byte that is never 255, its remainder taken without rejection."""
    return swapped(chance.integers(0, 255, (count, _LAST)) % _CHOICES, _DOWN)


def multiply_floor(bits: int, count: int, chance: np.random.Generator) -> Bytes:
    """A number of so many bits, scaled by multiplication."""
    return swapped((chance.integers(0, 1 << bits, (count, _LAST), np.int64) * _CHOICES) >> bits, _DOWN)


def seed_per_deal(bits: int, count: int, chance: np.random.Generator) -> Bytes:
    """A right shuffle from a good generator that is seeded with so many bits for every deal."""
    seeds = chance.integers(0, 1 << bits, count, np.uint64)
    steps = np.arange(1, _LAST + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    words = _mixed(_mixed(seeds)[:, None] + steps)
    return swapped((words % _CHOICES.astype(np.uint64)).astype(np.int64), _DOWN)


def _mixed(words: Words) -> Words:
    """The finalizer of SplitMix64."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def linear_congruential(count: int, chance: np.random.Generator) -> Bytes:
    """One stream of a congruential generator of 16 bits through all deals."""
    return swapped(_congruential(count, int(chance.integers(0, 1 << 16))), _DOWN)


@compiled
def _congruential(count: int, state: int) -> Longs:
    partners = np.empty((count, 51), np.int64)
    for number in range(count):
        for step in range(51):
            state = (25173 * state + 13849) & 0xFFFF
            partners[number, step] = (state * (52 - step)) >> 16
    return partners


def dealt_again(share: float, count: int, chance: np.random.Generator) -> Bytes:
    """The deck of the deal before comes again, now and then."""
    decks = fair(count, chance)
    again = chance.random(count) < share
    again[0] = False
    return decks[np.maximum.accumulate(np.where(again, 0, np.arange(count)))]


def mersenne_words(count: int, seed: int) -> bytes:
    """Raw output of MT19937: a shuffle from it looks fair, but its words show it."""
    return (
        np.random.Generator(np.random.MT19937(seed)).integers(0, 1 << 32, count // 4, np.uint32).astype(">u4").tobytes()
    )


CAUGHT: Final = (
    Defect("Sattolo's shuffle (j < i)", 412, sattolo),
    Defect("naive swap with any card", 1_000, naive),
    Defect("round(u i), ends half-weighted", 499, rounded),
    Defect("sort with a random comparator", 1_000, random_comparator),
    Defect("riffle, 5 times", 1_000, partial(riffle, 5)),
    Defect("riffle, 7 times", 1_000, partial(riffle, 7)),
    Defect("riffle, 9 times", 1_000, partial(riffle, 9)),
    Defect("loop stops one step early", 1_000, one_step_early),
    Defect("16-bit seed per deal", 1_000, partial(seed_per_deal, 16)),
    Defect("20-bit seed per deal", 2_500, partial(seed_per_deal, 20)),
    Defect("24-bit seed per deal", 10_000, partial(seed_per_deal, 24)),
    Defect("31-bit seed per deal", 110_000, partial(seed_per_deal, 31)),
    Defect("32-bit seed per deal", 160_000, partial(seed_per_deal, 32)),
    Defect("one stream of a 16-bit congruential generator", 10_000, linear_congruential),
    Defect("deal before repeated, 1 %", 1_000, partial(dealt_again, 0.01)),
    Defect("deal before repeated, 0.1 %", 5_000, partial(dealt_again, 0.001)),
    Defect("6-bit modulo", 260, partial(modulo, 6)),
    Defect("7-bit modulo", 1_020, partial(modulo, 7)),
    Defect("8-bit modulo", 4_780, partial(modulo, 8)),
    Defect("byte 0..254 modulo", 4_800, modulo_255),
    Defect("8-bit multiply and floor", 4_800, partial(multiply_floor, 8)),
    Defect("8-bit stable sort keys", 1_000, partial(sort_keys, 8)),
    Defect("10-bit modulo", 72_000, partial(modulo, 10)),
    Defect("12-bit stable sort keys", 100_000, partial(sort_keys, 12)),
)

CAUGHT_LATE: Final = (
    Defect("12-bit modulo", 1_300_000, partial(modulo, 12)),
    Defect("40-bit seed per deal", 2_600_000, partial(seed_per_deal, 40)),
)
"""Caught at samples that only `make certify` takes."""

NOT_CAUGHT: Final = (
    (
        "15- or 16-bit modulo or multiply and floor",
        "7e7 shuffles and more",
        "scaling by rejection on single bytes is the only scaling (rng/scaling.py), exhausted over all 256 values",
    ),
    ("31- or 32-bit modulo", "3e17 shuffles and more", "the same"),
    (
        "16-bit stable sort keys",
        "1e7 shuffles (mean descents)",
        "Fisher-Yates is the only shuffle (rng/shuffle.py), every order of small decks exhausted; nothing is sorted",
    ),
    (
        "48-bit seed per deal",
        "4e7 shuffles",
        "512 bits of the operating system reseed before every draw (rng/generator.py); no code takes a seed",
    ),
    (
        "MT19937 with a right shuffle",
        "not to be seen in decks; its raw words fail the linear complexity",
        "rng imports neither random nor numpy; tools/tidy.py refuses both",
    ),
    (
        "known, guessable or reused 64-bit seed, a key kept by somebody",
        "unpredictability is no statistic",
        "known answers, health tests and fresh entropy for every draw; source review; the signed software manifest",
    ),
    (
        "one seed shared by two processes",
        "seen only as duplicate decks across instances",
        "name, process id and serial in nonce and personalization; a forked child is refused (rng/generator.py)",
    ),
)
"""What no affordable sample shows, from which sample on it would, and the source rule that guards against it."""
