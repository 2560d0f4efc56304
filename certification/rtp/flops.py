"""The flops and the holes that go with them, up to suits; and, on one flop, the sum over turn and river.

Of the 22,100 flops 1,755 differ in more than the names of the suits; of the 1,176 holes on each of these, those are
kept that differ in more than the suits which the flop leaves alike: 1,286,792 states in all, each with the number of
(hole, flop) pairs that it stands for. They add up to C(52, 2) x C(50, 3) = 25,989,600.

**The sum over turn and river** of a state has 1,081 terms, one entry of `boards` each. On one flop the boards fall
into five groups, by the suit in which they allow a flush (0: none), and inside a group an entry depends on the hole
only through its kind. So for every kind of hole the flop's 1,176 boards are summed once, and again those with each
of the 49 cards; a hole then takes from the former what has its first card, what has its second, and puts back the one
board that has both. A board with a card of the hole may have no entry for it; whatever stands in its place is added
and taken off again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import permutations
from typing import Final, NamedTuple

import numpy as np

from certification.rtp.boards import entry_of, tri
from certification.rtp.compiled import Ints, Longs, compiled
from certification.rtp.evaluator import Tables

FLOPS: Final = 1_755
STATES: Final = 1_286_792


class States(NamedTuple):
    """All states, flop by flop: those of flop f are `first_state[f]` to `first_state[f + 1]`, without the latter.

    `cards[f]` are a flop's cards and `flop_weight[f]` the number of flops it stands for; `hole[state]` are two cards
    and `weight[state]` is how many holes on the same flop the state stands for.
    """

    cards: Ints
    flop_weight: Longs
    first_state: Ints
    hole: Ints
    weight: Ints


@dataclass(frozen=True, eq=False)
class Flops:
    """The states, and what finds them.

    `flop_of[a, b, c]` is the flop of any three cards, `renaming_of[a, b, c]` how their suits are renamed to its own (a
    row of `renamings`), `state_of[f, a, b]` the state of any hole on the flop as it stands in `states.cards`.
    """

    states: States
    renamings: Ints
    flop_of: Ints
    renaming_of: Ints
    state_of: Ints

    def state(self, hole: Sequence[int], flop: Sequence[int]) -> int:
        """Return the state of two cards and three."""
        one, other, third = flop
        suits = self.renamings[self.renaming_of[one, other, third]]
        first, second = (suits[card // 13] * 13 + card % 13 for card in hole)
        return int(self.state_of[self.flop_of[one, other, third], first, second])


@cache
def flops() -> Flops:
    """Return the flops and states."""
    renamings = np.array(list(permutations(range(4))), dtype=np.int32)
    states = States(
        cards=np.zeros((FLOPS, 3), np.int32),
        flop_weight=np.zeros(FLOPS, np.int64),
        first_state=np.zeros(FLOPS + 1, np.int32),
        hole=np.zeros((STATES, 2), np.int32),
        weight=np.zeros(STATES, np.int32),
    )
    flop_of, renaming_of = np.full((52, 52, 52), -1, np.int32), np.zeros((52, 52, 52), np.int32)
    state_of = np.full((FLOPS, 52, 52), -1, np.int32)
    _find_flops(renamings, states, flop_of, renaming_of)
    _find_holes(renamings, states, state_of)
    return Flops(states, renamings, flop_of, renaming_of, state_of)


@compiled
def _renamed(card: int, renaming: Ints) -> int:
    return int(renaming[card // 13] * 13 + card % 13)


@compiled
def _in_order(one: int, other: int, third: int) -> tuple[int, int, int]:
    least, most = min(one, other, third), max(one, other, third)
    return least, one + other + third - least - most, most


@compiled
def _find_flops(renamings: Ints, states: States, flop_of: Ints, renaming_of: Ints) -> None:
    """Write the flops: of the renamings of a flop the one with the least cards stands for all."""
    flops_found = 0
    for one in range(52):
        for other in range(one + 1, 52):
            for third in range(other + 1, 52):
                best, at = (one, other, third), 0
                for number in range(len(renamings)):
                    turn = renamings[number]
                    image = _in_order(_renamed(one, turn), _renamed(other, turn), _renamed(third, turn))
                    if number == 0 or image < best:
                        best, at = image, number
                if flop_of[best] < 0:  # its own least image comes before all others that it stands for
                    states.cards[flops_found] = best
                    flop_of[best] = flops_found
                    flops_found += 1
                flop = flop_of[best]
                states.flop_weight[flop] += 1
                for a, b, c in (
                    (one, other, third), (one, third, other), (other, one, third),
                    (other, third, one), (third, one, other), (third, other, one),
                ):  # fmt: skip
                    flop_of[a, b, c] = flop
                    renaming_of[a, b, c] = at


@compiled
def _find_holes(renamings: Ints, states: States, state_of: Ints) -> None:
    """Write the states: holes are alike if a renaming of suits that leaves the flop as it is takes one to the other."""
    found = 0
    for flop in range(len(states.cards)):
        one, other, third = states.cards[flop]
        states.first_state[flop] = found
        alike = [
            turn
            for turn in renamings
            if _in_order(_renamed(one, turn), _renamed(other, turn), _renamed(third, turn)) == (one, other, third)
        ]
        for a in range(52):
            for b in range(a + 1, 52):
                if a in (one, other, third) or b in (one, other, third):
                    continue
                if state_of[flop, a, b] < 0:
                    for turn in alike:
                        x, y = _renamed(a, turn), _renamed(b, turn)
                        state_of[flop, x, y] = state_of[flop, y, x] = found
                    states.hole[found] = a, b
                    found += 1
                states.weight[state_of[flop, a, b]] += 1
    states.first_state[len(states.cards)] = found


@compiled
def find_board(tables: Tables, board: Longs, suits: Longs) -> tuple[int, int]:
    """Return the first entry of five cards, and their group: 0, or 1 + the suit in which they allow a flush."""
    suits[:] = 0
    for card in board:
        suits[card // 13] |= 1 << card % 13
    group = 0
    for suit in range(4):
        if tables.bits[suits[suit]] > 2:
            group = suit + 1
    others = 0
    for card in board:
        if card // 13 != group - 1:
            others = tables.step[others, card % 13]
    suited = suits[group - 1] if group else 0
    return entry_of(tables, suited, tables.bits[suited], others), group


@compiled
def find_boards(tables: Tables, flop: Ints, entries: Ints, groups: Ints) -> None:
    """Write, for every turn and river, the first entry of the board and its group."""
    board, suits = np.zeros(5, np.int64), np.zeros(4, np.int64)
    board[:3] = flop
    for turn in range(52):
        for river in range(turn):
            board[3], board[4] = turn, river
            entry, group = find_board(tables, board, suits)
            entries[turn, river] = entries[river, turn] = entry
            groups[turn, river] = groups[river, turn] = group


@compiled
def find_entry(tables: Tables, one: int, other: int, board: Longs) -> int:
    """Return the entry of two cards and five."""
    kinds = np.zeros(5, np.int64)
    kinds_of(one, other, kinds)
    entry, group = find_board(tables, board, np.zeros(4, np.int64))
    return int(entry + kinds[group])


@compiled
def sum_boards(tables: Tables, values: Ints, one: int, other: int, flop: Longs) -> Longs:
    """Return the sum of `values` over the 1,081 boards of one state, term by term."""
    total = np.zeros(3, np.int64)
    board = np.zeros(5, np.int64)
    board[:3] = flop
    for turn in range(52):
        for river in range(turn):
            board[3], board[4] = turn, river
            free = True
            for card in (turn, river):
                if card in (one, other, flop[0], flop[1], flop[2]):
                    free = False
            if free:
                entry = find_entry(tables, one, other, board)
                for field in range(3):
                    total[field] += values[entry * 3 + field]
    return total


@compiled
def kinds_of(one: int, other: int, kinds: Longs) -> None:
    """Write the kind of a hole in each of the five groups."""
    kinds[0] = tri(one % 13, other % 13)
    for suit in range(4):
        first = one % 13 + (13 if one // 13 == suit else 0)
        second = other % 13 + (13 if other // 13 == suit else 0)
        kinds[suit + 1] = tri(first, second)


@compiled
def row_of(fields: Ints, entry: int, group: int) -> Ints:
    """Return the part of an array of three fields an entry that is about one board."""
    return fields[entry * 3 : (entry + (351 if group else 91)) * 3]


@compiled
def sum_flop(values: Ints, left: Ints, entries: Ints, groups: Ints, of_all: Longs, of_card: Ints) -> None:
    """Write the sums of `values` by group, kind of hole and field: over all boards, and over those with each card."""
    of_all[:] = 0
    of_card[:] = 0
    for card in left:
        for other in left:
            if other != card:
                sums = of_card[card, groups[card, other]]
                board = row_of(values, entries[card, other], groups[card, other])
                for cell in range(len(board)):
                    sums[cell] += board[cell]
        of_all += of_card[card]
    of_all //= 2  # each board has two cards besides the flop


@compiled
def sum_state(
    values: Ints, one: int, other: int, entries: Ints, groups: Ints, of_all: Longs, of_card: Ints, kinds: Longs,
    total: Longs,
) -> None:  # fmt: skip
    """Write the sum of `values` over the 1,081 boards that hold neither card of the hole, and its kinds."""
    kinds_of(one, other, kinds)
    both = (entries[one, other] + kinds[groups[one, other]]) * 3
    for field in range(3):
        total[field] = values[both + field]
    for group in range(5):
        for field in range(3):
            cell = kinds[group] * 3 + field
            total[field] += of_all[group, cell] - of_card[one, group, cell] - of_card[other, group, cell]
