"""The rounds that are played: Ultimate Texas Hold'em decisions in the frequencies of sensible play.

Of 100 rounds 37 raise 4x before the flop, 19 check and raise 2x at the flop, 25 check twice and raise 1x at the river,
19 check twice and fold: an assumption, about what basic strategy comes to. That is 3.07 calls a round: the start, and
2.07 decisions, the last of which settles. The decisions follow a fixed list, not the cards, so that every window costs
the same; who wins is left to chance.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Final

from rgs.v1 import common_pb2 as common

_CHECK: Final = common.ACTION_CHECK
WAYS: Final = {
    (common.ACTION_PLAY_4X,): 37,
    (_CHECK, common.ACTION_PLAY_2X): 19,
    (_CHECK, _CHECK, common.ACTION_PLAY_1X): 25,
    (_CHECK, _CHECK, common.ACTION_FOLD): 19,
}
"""Decisions of a round -> how many of 100 rounds take them."""
CALLS_PER_ROUND: Final = 1 + sum(len(way) * count for way, count in WAYS.items()) / sum(WAYS.values())


def ways_of(player_no: int) -> Iterator[tuple[common.Action.ValueType, ...]]:
    """The rounds of one player, without end: the hundred in an order of its own, the same in every run."""
    rounds = [way for way, count in WAYS.items() for _ in range(count)]
    Random(player_no).shuffle(rounds)  # noqa: S311 - an order, not chance
    while True:
        yield from rounds
