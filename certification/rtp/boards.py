"""Every board against every pair of hands, as counts: who beats whom, and where the dealer qualifies.

**Kinds of board.** Suits matter only for flushes, and a board allows a flush in one suit at most, the one of which it
holds three or more. Without one it is known by its ranks (6,175 kinds); with one, by its ranks of that suit and its
other ranks (286 x 91, 715 x 13, 1,287 kinds). **Kinds of hole**: on the former 13 kinds of card make 91 pairs, on the
latter 26 (a rank, and whether of that suit) make 351. So 2,598,960 boards with 1,081 holes each become 13,411,333
entries, an entry being (kind of board, kind of hole). `tri(i, j)`, i <= j, numbers the pairs of kinds of card.

**Counts.** The dealer has C(45, 2) = 990 hands, none of which shares a card with the player's. On one board the
possible holes are walked from the worst to the best, holding how many hands have been passed, and how many of them
contain a card of each kind; from the former the latter are taken off for the player's two cards. No pair of hands is
ever compared. An entry keeps

- `strength`  the player's, -1 where no such hole is left,
- `worse`     dealer hands that lose to the player's,
- `level`     dealer hands that lose or tie,
- `low`       dealer hands that do not qualify;

and since a hand that does not qualify is worse than one that does, these three give all six cells of (qualifies,
outcome): see `fill_cells`. All are at most 990 and fit sixteen bits.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from certification.rtp.compiled import Longs, Shorts, compiled
from certification.rtp.evaluator import Tables

DEALER_HANDS: Final = 990
PAIRS_OF_RANKS: Final = 91
PAIRS_OF_KINDS: Final = 351
_PLAIN: Final = 6_175
_FIRST_THREE: Final = _PLAIN * PAIRS_OF_RANKS
_FIRST_FOUR: Final = _FIRST_THREE + 286 * 91 * PAIRS_OF_KINDS
_FIRST_FIVE: Final = _FIRST_FOUR + 715 * 13 * PAIRS_OF_KINDS
ENTRIES: Final = _FIRST_FIVE + 1_287 * PAIRS_OF_KINDS

WON, LOST, TIED = 0, 1, 2
"""The columns of the cells; the rows are 0, the dealer does not qualify, and 1, he does."""


class Boards(NamedTuple):
    """The counts of all entries."""

    strength: Shorts
    worse: Shorts
    level: Shorts
    low: Shorts


@compiled
def tri(one: int, other: int) -> int:
    """Return the number of a pair of kinds of card, whatever their order."""
    if one > other:
        one, other = other, one
    return other * (other + 1) // 2 + one


def count_boards(tables: Tables, least_qualified: int, *, exactly_two: bool = False) -> Boards:
    """Return all entries for a dealer that qualifies with this strength.

    `exactly_two` counts the hands of another game, in which two own cards and three of the board must be used: what
    S4's wording would mean if it were taken literally (RULEBOOK H-5).
    """
    boards = Boards(*(np.full(ENTRIES, -1, dtype=np.int16) for _ in Boards._fields))
    _count_all(tables, _plain_strengths(tables, exactly_two), least_qualified, exactly_two, boards)
    return boards


@compiled
def _plain_strengths(tables: Tables, exactly_two: bool) -> Shorts:
    """Return what each pair of ranks is worth with each five ranks of a board, flushes left out."""
    first, end = tables.first_node[5], tables.first_node[6]
    strengths = np.full((end - first, 91), -1, np.int16)
    ranks = np.zeros(5, np.int64)
    for board in range(first, end):
        count = 0
        for rank in range(13):
            for _ in range(tables.held[board, rank]):
                ranks[count] = rank
                count += 1
        for one in range(13):
            for other in range(one, 13):
                if tables.held[board, one] < 4 and tables.held[board, other] < (3 if one == other else 4):
                    if exactly_two:
                        best = _best_of_three(tables, ranks, tables.step[tables.step[0, one], other])
                    else:
                        best = tables.rank_strength[tables.step[tables.step[board, one], other]]
                    strengths[board - first, tri(one, other)] = best
    return strengths


@compiled
def _best_of_three(tables: Tables, ranks: Longs, node: int) -> int:
    """Return the best that three of the board's five ranks make of a pair of ranks."""
    best = -1
    for first in range(3):
        for second in range(first + 1, 4):
            for third in range(second + 1, 5):
                five = tables.step[tables.step[tables.step[node, ranks[first]], ranks[second]], ranks[third]]
                best = max(best, tables.rank_strength[five])
    return best


@compiled
def entry_of(tables: Tables, suited: int, size: int, others: int) -> int:
    """Return the first entry of a board: its ranks of the suit, their number, and the number of its other ranks.

    `others` is the node of the other ranks. `size` 0 says that no flush is possible.
    """
    local = others - tables.first_node[5 - size]
    if size == 0:
        return int(local * 91)
    if size == 3:
        return int(_FIRST_THREE + (tables.places[suited] * 91 + local) * 351)
    if size == 4:
        return int(_FIRST_FOUR + (tables.places[suited] * 13 + local) * 351)
    return int(_FIRST_FIVE + tables.places[suited] * 351)


@compiled
def _count_all(tables: Tables, plain: Shorts, least_qualified: int, exactly_two: bool, boards: Boards) -> None:
    """Count the entries of every kind of board."""
    left = np.zeros(26, np.int64)  # cards left of each kind; 0..12 not of the suit, 13..25 of it
    strengths = np.zeros(351, np.int64)
    for suited in range(1 << 13):
        size = tables.bits[suited]
        if size > 5 or 0 < size < 3:
            continue
        kinds = 26 if size else 13
        for others in range(tables.first_node[5 - size], tables.first_node[6 - size]):
            board = others
            for rank in range(13):
                in_suit = suited >> rank & 1
                left[rank] = (3 if size else 4) - tables.held[others, rank]
                left[13 + rank] = 1 - in_suit
                if in_suit:
                    board = tables.step[board, rank]
            _strengths(tables, strengths, plain[board - tables.first_node[5]], kinds, suited, exactly_two)
            _count_board(entry_of(tables, suited, size, others), kinds, left, strengths, least_qualified, boards)


@compiled
def _strengths(tables: Tables, strengths: Longs, plain: Shorts, kinds: int, suited: int, exactly_two: bool) -> None:
    """Write what each pair of kinds of card is worth on a board whose ranks of the suit are these."""
    for other in range(kinds):
        for one in range(other + 1):
            best = plain[tri(one % 13, other % 13)]
            ranks = (1 << one - 13 if one > 12 else 0) | (1 << other - 13 if other > 12 else 0)
            if not exactly_two:
                best = max(best, tables.flush_strength[suited | ranks])
            elif tables.bits[ranks] == 2:
                for first in range(13):
                    for second in range(13):
                        three = suited & ~(1 << first) & ~(1 << second)
                        if tables.bits[three] == 3:
                            best = max(best, tables.flush_strength[three | ranks])
            strengths[tri(one, other)] = best


@compiled
def _count_board(entry: int, kinds: int, left: Longs, strengths: Longs, least_qualified: int, boards: Boards) -> None:
    """Count one board: `left[kind]` cards of each kind are not on it, `strengths[pair]` is what each pair is worth."""
    walk = np.zeros(351, np.int64)
    ones = np.zeros(351, np.int64)
    others = np.zeros(351, np.int64)
    holes = 0
    for other in range(kinds):
        for one in range(other + 1):
            if left[one] * left[other] > 0 and (one != other or left[one] > 1):
                pair = tri(one, other)
                walk[holes] = strengths[pair] << 9 | pair
                ones[pair], others[pair] = one, other
                holes += 1
    walk[:holes].sort()
    passed, passed_with = 0, np.zeros(26, np.int64)
    low_passed, low_with = -1, np.zeros(26, np.int64)
    start = 0
    while start < holes:
        here = walk[start] >> 9
        if low_passed < 0 and here >= least_qualified:
            low_passed = passed
            low_with[:] = passed_with
        end = start
        while end < holes and walk[end] >> 9 == here:
            pair = walk[end] & 511
            boards.worse[entry + pair] = passed - passed_with[ones[pair]] - passed_with[others[pair]]
            end += 1
        for place in range(start, end):
            pair = walk[place] & 511
            one, other = ones[pair], others[pair]
            if one == other:
                passed += left[one] * (left[one] - 1) // 2
                passed_with[one] += left[one] - 1
            else:
                passed += left[one] * left[other]
                passed_with[one] += left[other]
                passed_with[other] += left[one]
        for place in range(start, end):
            pair = walk[place] & 511
            # The player's own two cards, as a dealer's hand, have been taken off twice.
            boards.level[entry + pair] = passed - passed_with[ones[pair]] - passed_with[others[pair]] + 1
        start = end
    if low_passed < 0:
        low_passed = passed
        low_with[:] = passed_with
    for place in range(holes):
        pair = walk[place] & 511
        here = walk[place] >> 9
        boards.strength[entry + pair] = here
        low = low_passed - low_with[ones[pair]] - low_with[others[pair]]
        boards.low[entry + pair] = low + (1 if here < least_qualified else 0)


@compiled
def fill_cells(cells: Longs, boards: Boards, entry: int, least_qualified: int) -> None:
    """Write the six cells of an entry, `cells[qualifies, outcome]`: dealer hands, 990 in all."""
    worse, level, low = boards.worse[entry], boards.level[entry], boards.low[entry]
    cells[:] = 0
    if boards.strength[entry] < least_qualified:  # then so are all that it beats; every hand that qualifies beats it
        cells[0, WON] = worse
        cells[0, TIED] = level - worse
        cells[0, LOST] = low - level
        cells[1, LOST] = 990 - low
    else:  # it beats every hand that does not qualify
        cells[0, WON] = low
        cells[1, WON] = worse - low
        cells[1, TIED] = level - worse
        cells[1, LOST] = 990 - level
