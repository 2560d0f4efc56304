"""What a deck costs: one `Generator.draw` (reseed from the operating system, health tests, Hash_DRBG, shuffle,
transcript) over one `random.SystemRandom().shuffle` of 52 cards, CPU time of this process.

The yardstick reads the same operating system's entropy, without reseeding, tests or a transcript. The quality of the
shuffles is not measured here.
"""

from __future__ import annotations

from collections.abc import Callable
from random import SystemRandom
from time import process_time

from bench.figures import Figure, ratio
from rng.generator import Generator
from rng.shuffle import DECK_SIZE


def measure(repeats: int, block_s: float) -> list[Figure]:
    """`repeats` pairs of blocks of about `block_s` CPU seconds each."""
    generator = Generator("bench")
    deck = list(range(DECK_SIZE))
    shuffle = SystemRandom().shuffle
    ours: list[float] = []
    yardstick: list[float] = []
    pairs = ((ours, generator.draw), (yardstick, lambda: shuffle(deck)))
    counts = [_count_for(step, block_s) for _, step in pairs]
    for repeat in range(repeats):
        order = list(zip(pairs, counts, strict=True))
        for (times, step), count in order if repeat % 2 == 0 else reversed(order):
            times.append(_seconds(step, count))
    generator.close()
    return [
        ratio("deal_draw_ratio", ours, yardstick),
        Figure("deal_draw_us", tuple(seconds * 1e6 for seconds in ours), "us"),
    ]


def _seconds(step: Callable[[], object], count: int) -> float:
    """CPU seconds of one step, over `count` of them."""
    begin = process_time()
    for _ in range(count):
        step()
    return (process_time() - begin) / count


def _count_for(step: Callable[[], object], block_s: float) -> int:
    """How many steps make a block; this warms up as well."""
    return max(100, int(block_s / _seconds(step, 100)))
