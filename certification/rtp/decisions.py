"""Optimal play and what comes of it: the loops over all states, for stakes and payments given as whole numbers.

Backwards: on the river an entry is worth the better of the bet and the fold; at the flop a state the better of the bet
and the sum of its rivers; before the flop one of the 169 holes the better of the bet and the sum of its flops.
Forwards: each state's weight is put on the entries that it visits, by how it is played, and each entry's 990 deals are
counted by action, class of hand, dealer's qualification and outcome. Everything that is told of a ruleset is arithmetic
over these counts.

Bounds. What a round pays, in whole numbers, is at most `MAX_PAYMENT`, so an entry is worth at most 990 x 45,000 and the
48 boards of one flop with one card more at most 48 of these, < 2^31. A state sums 1,081 entries, < 2^36, a hole
12 x 19,600 states, < 2^54: 64 bits hold them, whatever the paytable. An entry of `visits` counts (hole, flop, turn and
river) of one kind: at most 16 holes x 4^5 boards x 10 flops < 2^18, and not more than 24 x 1,176 x 1,176 < 2^25 on a
flop while boards with the hole's own cards are still in it. Deals are counted to 2.78e13 < 2^45.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from certification.rtp.boards import Boards, fill_cells
from certification.rtp.compiled import Bytes, Ints, Longs, Shorts, compiled
from certification.rtp.evaluator import Tables
from certification.rtp.flops import States, find_boards, kinds_of, row_of, sum_flop, sum_state

MAX_PAYMENT: Final = 45_000
HOLES: Final = 169

PASS, RAISE, EITHER = range(3)
"""A decision: check or fold, bet, or exactly indifferent."""

REST, OPENING, DECIDED = range(3)
"""The fields of a value: best play of what follows, the opening bets when played, one unit of the bet decided on."""

RAISED_PREFLOP, RAISED_FLOP, RAISED_RIVER, FOLDED = range(4)
"""How a round was played."""


@compiled
def value_entries(
    boards: Boards, class_of: Longs, opening: Longs, decided: Longs,
    least_qualified: int, river_multiple: int, fold: int, values: Ints, rivers: Bytes,
) -> None:  # fmt: skip
    """Write what each entry is worth, summed over the dealer's hands, and the decision on the river.

    `opening[class, qualifies, outcome]` and `decided[qualifies, outcome]` are payments, `fold` the payment for a fold.
    Without a bet on the river (`river_multiple` 0) whoever comes there has folded.
    """
    cells = np.zeros((2, 3), np.int64)
    given_up = 990 * fold
    for entry in range(len(boards.strength)):
        if boards.strength[entry] < 0:
            continue
        fill_cells(cells, boards, entry, least_qualified)
        hand = class_of[boards.strength[entry]]
        opened = decision = 0
        for qualifies in range(2):
            for outcome in range(3):
                opened += cells[qualifies, outcome] * opening[hand, qualifies, outcome]
                decision += cells[qualifies, outcome] * decided[qualifies, outcome]
        played = opened + river_multiple * decision
        if river_multiple and played >= given_up:
            rivers[entry] = EITHER if played == given_up else RAISE
        values[entry * 3 + REST] = max(played, given_up) if river_multiple else given_up
        values[entry * 3 + OPENING] = opened
        values[entry * 3 + DECIDED] = decision


@compiled
def hole_number(one: int, other: int) -> int:
    """Return the number of a hole among the 169, 13 x row + column of the usual grid of ranks, suited above."""
    high, low = max(one % 13, other % 13), min(one % 13, other % 13)
    return high * 13 + low if one // 13 == other // 13 else low * 13 + high


@compiled
def decide_flops(
    tables: Tables, states: States, first: int, end: int, values: Ints, multiple: int, side_payment: Longs,
    decisions: Bytes, five_strength: Shorts, holes: Longs,
) -> None:  # fmt: skip
    """Write the decision at every state, the worth of its five cards, and what each of the 169 holes is worth, all of
    the flops from `first` to `end`, without the latter.

    `side_payment[strength of the five cards]` is paid besides when the bet is made; `holes[number]` gets the three
    fields of a value.
    """
    entries, groups = np.zeros((52, 52), np.int32), np.zeros((52, 52), np.int32)
    of_all, of_card = np.zeros((5, 351 * 3), np.int64), np.zeros((52, 5, 351 * 3), np.int32)
    kinds, total = np.zeros(5, np.int64), np.zeros(3, np.int64)
    for flop in range(first, end):
        find_boards(tables, states.cards[flop], entries, groups)
        left = cards_left(states.cards[flop])
        sum_flop(values, left, entries, groups, of_all, of_card)
        for state in range(states.first_state[flop], states.first_state[flop + 1]):
            one, other = states.hole[state]
            sum_state(values, one, other, entries, groups, of_all, of_card, kinds, total)
            five_strength[state] = _strength_of_five(tables, states.cards[flop], one, other)
            raised = total[OPENING] + multiple * total[DECIDED] + 1081 * 990 * side_payment[five_strength[state]]
            rest = total[REST]
            decisions[state] = RAISE if raised > rest else PASS if raised < rest else EITHER
            times = states.flop_weight[flop] * states.weight[state]
            number = hole_number(one, other)
            holes[number, REST] += times * max(raised, rest)
            holes[number, OPENING] += times * total[OPENING]
            holes[number, DECIDED] += times * total[DECIDED]


@compiled
def _strength_of_five(tables: Tables, flop: Ints, one: int, other: int) -> int:
    node = tables.step[tables.step[0, one % 13], other % 13]
    ranks = 1 << one % 13 | 1 << other % 13
    suited = one // 13 == other // 13
    for card in flop:
        node = tables.step[node, card % 13]
        ranks |= 1 << card % 13
        suited = suited and card // 13 == one // 13
    return int(tables.flush_strength[ranks] if suited else tables.rank_strength[node])


@compiled
def cards_left(flop: Ints) -> Ints:
    """Return the 49 cards that are not on the flop."""
    left = np.zeros(49, np.int32)
    count = 0
    for card in range(52):
        if card not in (flop[0], flop[1], flop[2]):
            left[count] = card
            count += 1
    return left


@compiled
def visit_entries(tables: Tables, states: States, first: int, end: int, played: Bytes, visits: Ints) -> None:
    """Count, for every entry, the (hole, flop, turn and river) of its kind, by how they are played; of the flops from
    `first` to `end`, without the latter.

    `played[state]` is RAISED_PREFLOP, RAISED_FLOP or RAISED_RIVER (which stands for coming to the river undecided).
    """
    entries, groups = np.zeros((52, 52), np.int32), np.zeros((52, 52), np.int32)
    kinds = np.zeros(5, np.int64)
    of_all, of_card = np.zeros((5, 351 * 3), np.int32), np.zeros((52, 5, 351 * 3), np.int32)
    for flop in range(first, end):
        find_boards(tables, states.cards[flop], entries, groups)
        left = cards_left(states.cards[flop])
        of_all[:] = 0
        of_card[:] = 0
        for state in range(states.first_state[flop], states.first_state[flop + 1]):
            one, other = states.hole[state]
            times = np.int32(states.flop_weight[flop] * states.weight[state])
            how = played[state]
            kinds_of(one, other, kinds)
            for group in range(5):
                cell = kinds[group] * 3 + how
                of_all[group, cell] += times
                of_card[one, group, cell] -= times
                of_card[other, group, cell] -= times
            visits[(entries[one, other] + kinds[groups[one, other]]) * 3 + how] += times
        for place in range(49):
            for earlier in range(place):
                turn, river = left[place], left[earlier]
                group = groups[turn, river]
                board = row_of(visits, entries[turn, river], group)
                every, with_turn, with_river = of_all[group], of_card[turn, group], of_card[river, group]
                for cell in range(len(board)):
                    board[cell] += every[cell] + with_turn[cell] + with_river[cell]


@compiled
def count_deals(
    boards: Boards, class_of: Longs, least_qualified: int, visits: Ints, rivers: Bytes, raise_ties: bool, deals: Longs
) -> int:
    """Count all deals: `deals[how, class, qualifies, outcome]`; after a fold the outcome is what it would have been.

    Returns in how many (hole, flop, turn and river) the decision on the river is indifferent.
    """
    cells = np.zeros((2, 3), np.int64)
    indifferent = 0
    for entry in range(len(boards.strength)):
        if boards.strength[entry] < 0:
            continue
        fill_cells(cells, boards, entry, least_qualified)
        hand = class_of[boards.strength[entry]]
        if rivers[entry] == EITHER:
            indifferent += visits[entry * 3 + RAISED_RIVER]
        for how in range(3):
            times = np.int64(visits[entry * 3 + how])
            if times:
                last = how
                if how == RAISED_RIVER and not (rivers[entry] == RAISE or (raise_ties and rivers[entry] == EITHER)):
                    last = FOLDED
                for qualifies in range(2):
                    for outcome in range(3):
                        deals[last, hand, qualifies, outcome] += times * cells[qualifies, outcome]
    return indifferent
