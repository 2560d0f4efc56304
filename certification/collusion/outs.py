"""How much each card that is out moves the first decision, estimated: the watch needs a thousand of these a second.

An exact value before the flop takes a tenth of a second (`certification.collusion.values`). Here deals of a hole are
sampled once. Each shows what the bet before the flop wins more than to check and play best by own cards. The mean over
deals without a card, less the mean over all, is the **effect** of that card's being out. The margin of a decision with
several cards out is the exact one by own cards plus their effects: the best straight line, not the exact value.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from certification.collusion.values import Floats, Game, Own
from certification.rtp.compiled import Longs, compiled
from certification.rtp.decisions import RAISE
from certification.rtp.evaluator import Tables
from certification.rtp.flops import find_board, kinds_of

DEALS: Final = 50_000
"""Deals sampled for a hole. The error is below that of the straight line, which is 0.05 antes for twelve cards."""
_LEFT: Final = 50


@compiled
def _strength(tables: Tables, one: int, other: int, board: Longs) -> int:
    """The worth of seven cards."""
    node = tables.step[tables.step[0, one % 13], other % 13]
    suits = np.zeros(4, np.int64)
    suits[one // 13] |= 1 << one % 13
    suits[other // 13] |= 1 << other % 13
    for card in board:
        node = tables.step[node, card % 13]
        suits[card // 13] |= 1 << card % 13
    best = int(tables.rank_strength[node])
    for suit in range(4):
        best = max(best, int(tables.flush_strength[suits[suit]]))
    return best


@compiled
def _margin_of_deal(game: Game, own: Own, one: int, other: int, cards: Longs, kinds: Longs, held: Longs) -> int:
    """What the bet before the flop wins more in a deal: `cards` are the board and the dealer's two."""
    board = cards[:5]
    mine = _strength(game.tables, one, other, board)
    theirs = _strength(game.tables, cards[5], cards[6], board)
    qualifies = 1 if theirs >= game.least_qualified else 0
    outcome = 0 if mine > theirs else 1 if mine < theirs else 2
    opening = game.opening[game.class_of[mine], qualifies, outcome]
    decided = game.decided[qualifies, outcome]
    number = own.flop_of[cards[0], cards[1], cards[2]]
    renaming = own.renamings[own.renaming_of[cards[0], cards[1], cards[2]]]
    first, second = renaming[one // 13] * 13 + one % 13, renaming[other // 13] * 13 + other % 13
    if own.flop[own.state_of[number, first, second]] == RAISE:
        return int((game.preflop_multiple - game.flop_multiple) * decided)
    entry, group = find_board(game.tables, board, held)
    if own.river[entry + kinds[group]] == RAISE:
        return int((game.preflop_multiple - game.river_multiple) * decided)
    return int(opening + game.preflop_multiple * decided - game.fold)


@compiled
def _sample(game: Game, own: Own, one: int, other: int, seed: int, deals: int) -> tuple[int, Longs, Longs]:
    """The sum over all deals, and by card the sum over those with it and their number."""
    np.random.seed(seed)
    deck, count = np.zeros(_LEFT, np.int64), 0
    for card in range(52):
        if card not in (one, other):
            deck[count] = card
            count += 1
    kinds, held = np.zeros(5, np.int64), np.zeros(4, np.int64)
    kinds_of(one, other, kinds)
    total, sums, counts = 0, np.zeros(52, np.int64), np.zeros(52, np.int64)
    for _ in range(deals):
        for place in range(7):
            other_place = np.random.randint(place, _LEFT)
            deck[place], deck[other_place] = deck[other_place], deck[place]
        margin = _margin_of_deal(game, own, one, other, deck, kinds, held)
        total += margin
        for card in deck[:7]:
            sums[card] += margin
            counts[card] += 1
    return total, sums, counts


def effects(game: Game, own: Own, one: int, other: int, *, deals: int = DEALS) -> Floats:
    """By card, how much its being out moves the margin of the bet before the flop, in units of 1 / scale antes."""
    total, sums, counts = _sample(game, own, one, other, 52 * one + other, deals)
    moved: Floats = (total - sums) / np.maximum(deals - counts, 1) - total / deals
    moved[[one, other]] = 0
    return moved


def renaming_of(one: int, other: int) -> Longs:
    """By card, the card that it becomes when suits are renamed so that the hole has the first suits, the higher rank
    the very first: holes of one kind become the same.
    """
    first, second = sorted((one, other), key=lambda card: (-(card % 13), card))
    suits = list(dict.fromkeys((first // 13, second // 13, *range(4))))
    return np.array([suits.index(card // 13) * 13 + card % 13 for card in range(52)], dtype=np.int64)


def effect_of(moved: Floats, dead: Longs) -> Floats:
    """The effect of each row of cards' being out together. The fewer are left, the more each of these counts."""
    out = dead.shape[1]
    sums: Floats = moved[dead].sum(axis=1) * ((_LEFT - 1) / (_LEFT - out))
    return sums
