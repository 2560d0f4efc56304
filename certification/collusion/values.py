"""The worth of decisions to a player who knows more cards than his own: exact sums over all cards that are unseen.

`certification.rtp` values decisions of a player who knows his own two cards, once for all. Here d cards of others are
known besides, the `dead` cards. Then C(50 - d, 5) boards are left, and on each of them C(45 - d, 2) hands of the
dealer. What a board is worth depends on its kind only (`certification.rtp.boards`), so each kind is valued once for a
hole and its dead cards, and kept in a `Memo`.

All sums are whole numbers in units of 1 / scale antes. A board is worth at most 990 x 45,000 of them, and a hole's at
most 2,118,760 boards are summed in ten flops each: < 2^50 (the bounds of `certification.rtp.decisions`).
"""

from __future__ import annotations

from typing import Final, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from certification.rtp.boards import LOST, PAIRS_OF_KINDS, PAIRS_OF_RANKS, TIED, WON
from certification.rtp.compiled import Bytes, Ints, Longs, compiled
from certification.rtp.decisions import RAISE, hole_number
from certification.rtp.evaluator import Tables, evaluator
from certification.rtp.flops import find_board, flops, kinds_of
from certification.rtp.payments import Payments
from certification.rtp.strategy import Decisions

FLOPS_OF_BOARD: Final = 10
_PLAIN: Final = 6_175
_SUITED: Final = 286 * 91 + 715 * 13 + 1_287
_KINDS: Final = _PLAIN + 4 * _SUITED
"""Kinds of board: by ranks, or by the suit in which a flush is possible, its ranks and the others."""
BET, LAST, OWN_LAST = range(3)
"""Of a flop: the bet is made there; it is not, and the river is played by all known cards, or by own cards only."""
OWN, RIVER, FLOP, ALL = range(4)
"""A hole's values: played by own cards only; by all known cards on the river; from the flop on; in every decision."""


Floats = npt.NDArray[np.float64]


class Game(NamedTuple):
    """What the compiled loops read: hands of seven cards, and payments as in `certification.rtp.decisions`."""

    tables: Tables
    class_of: Longs
    opening: Longs
    decided: Longs
    least_qualified: int
    preflop_multiple: int
    flop_multiple: int
    river_multiple: int
    fold: int


class Own(NamedTuple):
    """Best play by own cards only, as the loops read it."""

    preflop: Bytes
    flop: Bytes
    river: Bytes
    renamings: Ints
    flop_of: Ints
    renaming_of: Ints
    state_of: Ints

    @classmethod
    def of(cls, decisions: Decisions) -> Self:
        """The decisions, and the states by which they are found."""
        found = flops()
        return cls(
            decisions.preflop, decisions.flop, decisions.river,
            found.renamings, found.flop_of, found.renaming_of, found.state_of,
        )  # fmt: skip


def game_of(payments: Payments) -> Game:
    """The main bets of a ruleset."""
    return Game(
        tables=evaluator().tables,
        class_of=payments.final.of_strength,
        opening=sum(payments.main.values(), start=np.zeros((len(payments.final.names), 2, 3), dtype=np.int64)),
        decided=payments.decided,
        least_qualified=payments.least_qualified,
        preflop_multiple=max(payments.preflop_multiples, default=0),
        flop_multiple=payments.flop_multiple,
        river_multiple=payments.river_multiple,
        fold=payments.folded,
    )


class Memo(NamedTuple):
    """The boards of one hole and its dead cards, by kind: where `stamp[kind]` is `now[0]`, `known[kind]` is what
    `value_board` gave.
    """

    now: Longs
    stamp: Longs
    known: Longs


def new_memo() -> Memo:
    """An empty one."""
    return Memo(np.zeros(1, np.int64), np.zeros(_KINDS, np.int64), np.zeros((_KINDS, 2), np.int64))


class Unseen(NamedTuple):
    """The unseen cards before a board: how many of each rank, and which ranks of each suit as a set."""

    ranks: Longs
    suits: Longs
    cards: Longs


@compiled
def unseen_of(one: int, other: int, dead: Longs) -> Unseen:
    """All cards but the hole and the dead ones."""
    ranks, suits = np.zeros(13, np.int64), np.zeros(4, np.int64)
    cards = np.zeros(50 - len(dead), np.int64)
    count = 0
    for card in range(52):
        if card not in (one, other) and card not in dead:
            ranks[card % 13] += 1
            suits[card // 13] |= 1 << card % 13
            cards[count] = card
            count += 1
    return Unseen(ranks, suits, cards)


@compiled
def _hands(one: int, other: int, is_same: bool) -> int:
    return one * (one - 1) // 2 if is_same else one * other


@compiled
def _count_plain(tables: Tables, board: int, left: Longs, mine: int, least: int) -> tuple[int, int, int, int]:
    """Count the dealer's hands where no flush is possible: worse than mine, not better, not qualified, all."""
    worse = level = low = total = 0
    for first in range(13):
        node = tables.step[board, first] if left[first] else 0
        for second in range(first if left[first] else 13, 13):
            hands = _hands(left[first], left[second], first == second)
            if hands:
                here = tables.rank_strength[tables.step[node, second]]
                total += hands
                worse += hands * (here < mine)
                level += hands * (here <= mine)
                low += hands * (here < least)
    return worse, level, low, total


@compiled
def _count_suited(
    tables: Tables, board: int, suited: int, left: Longs, mine: int, least: int
) -> tuple[int, int, int, int]:
    """The same where a flush is possible: `left` has 13 kinds of card of other suits, then 13 of the suit."""
    worse = level = low = total = 0
    for first in range(26):
        node = tables.step[board, first % 13] if left[first] else 0
        for second in range(first if left[first] else 26, 26):
            hands = _hands(left[first], left[second], first == second)
            if hands:
                ranks = (1 << first - 13 if first > 12 else 0) | (1 << second - 13 if second > 12 else 0)
                strength = tables.rank_strength[tables.step[node, second % 13]]
                here = max(strength, tables.flush_strength[suited | ranks])
                total += hands
                worse += hands * (here < mine)
                level += hands * (here <= mine)
                low += hands * (here < least)
    return worse, level, low, total


@compiled
def value_board(game: Game, unseen: Unseen, one: int, other: int, board: Longs, group: int) -> tuple[int, int]:
    """Return the sum of the opening bets over the dealer's hands on a board, and that of one ante's worth of the bet
    decided on; `group` is 0, or 1 + the suit in which the board allows a flush.
    """
    tables, least = game.tables, game.least_qualified
    left = np.zeros(26, np.int64)
    left[:13] = unseen.ranks
    node = suited = own = 0
    for card in board:
        node = tables.step[node, card % 13]
        left[card % 13] -= 1
        if card // 13 == group - 1:
            suited |= 1 << card % 13
    mine = int(tables.rank_strength[tables.step[tables.step[node, one % 13], other % 13]])
    if group:
        for card in (one, other):
            if card // 13 == group - 1:
                own |= 1 << card % 13
        mine = max(mine, int(tables.flush_strength[suited | own]))
        for rank in range(13):
            left[13 + rank] = (unseen.suits[group - 1] & ~suited) >> rank & 1
            left[rank] -= left[13 + rank]
        worse, level, low, total = _count_suited(tables, node, suited, left, mine, least)
    else:
        worse, level, low, total = _count_plain(tables, node, left, mine, least)
    cells = np.zeros((2, 3), np.int64)
    if mine < least:  # every hand that qualifies beats it (`certification.rtp.boards.fill_cells`)
        cells[0, WON], cells[0, TIED], cells[0, LOST] = worse, level - worse, low - level
        cells[1, LOST] = total - low
    else:
        cells[0, WON] = low
        cells[1, WON], cells[1, TIED], cells[1, LOST] = worse - low, level - worse, total - level
    opening = game.opening[game.class_of[mine]]
    return int((cells * opening).sum()), int((cells * game.decided).sum())


@compiled
def kind_of(entry: int, group: int) -> int:
    """Return the number of a kind of board, of the entry and group that `find_board` gives."""
    if group == 0:
        return entry // PAIRS_OF_RANKS
    return _PLAIN + (group - 1) * _SUITED + (entry - _PLAIN * PAIRS_OF_RANKS) // PAIRS_OF_KINDS


@compiled
def river_margin(game: Game, hole: Longs, board: Longs, dead: Longs) -> int:
    """Return how much more the bet on the river is worth than the fold, summed over the dealer's hands."""
    unseen = unseen_of(hole[0], hole[1], dead)
    _, group = find_board(game.tables, board, np.zeros(4, np.int64))
    opened, decided = value_board(game, unseen, hole[0], hole[1], board, group)
    hands = len(unseen.cards) - 5
    return opened + game.river_multiple * decided - hands * (hands - 1) // 2 * game.fold


@compiled
def flop_margin(game: Game, memo: Memo, hole: Longs, flop: Longs, dead: Longs) -> int:
    """Return how much more the bet at the flop is worth than to go on without it, summed over boards and dealers."""
    one, other = hole
    unseen = unseen_of(one, other, dead)
    memo.now[0] += 1
    now, stamp, known = memo.now[0], memo.stamp, memo.known
    board, suits = np.zeros(5, np.int64), np.zeros(4, np.int64)
    board[:3] = flop
    hands = len(unseen.cards) - 5
    given_up = hands * (hands - 1) // 2 * game.fold
    margin = 0
    for place in range(len(unseen.cards)):
        for earlier in range(place):
            turn, river = unseen.cards[place], unseen.cards[earlier]
            if turn in flop or river in flop:
                continue
            board[3], board[4] = turn, river
            entry, group = find_board(game.tables, board, suits)
            kind = kind_of(entry, group)
            if stamp[kind] != now:
                stamp[kind] = now
                known[kind] = value_board(game, unseen, one, other, board, group)
            opened, decided = known[kind]
            last = max(opened + game.river_multiple * decided, given_up) if game.river_multiple else given_up
            margin += opened + game.flop_multiple * decided - last
    return margin


@compiled
def sum_flops(game: Game, own: Own, memo: Memo, one: int, other: int, unseen: Unseen) -> tuple[Longs, int, int]:
    """Return the sums over all boards by flop, [flop, BET or LAST or OWN_LAST], and those of the opening bets and of
    one ante's worth of the bet decided on over all boards.
    """
    cards, count = unseen.cards, len(unseen.cards)
    step, first_node = game.tables.step, game.tables.first_node[5]
    now, stamp, known = memo.now[0], memo.stamp, memo.known
    board, kinds, held, suits = (
        np.zeros(5, np.int64),
        np.zeros(5, np.int64),
        np.zeros(4, np.int64),
        np.zeros(4, np.int64),
    )
    kinds_of(one, other, kinds)
    rivers, flop_multiple, river_multiple = own.river, game.flop_multiple, game.river_multiple
    sums = np.zeros((count * (count - 1) * (count - 2) // 6, 3), np.int64)
    worth, within = np.zeros(3, np.int64), np.zeros(3, np.int64)
    given_up = (count - 5) * (count - 6) // 2 * game.fold
    opened_all = decided_all = 0
    for e in range(4, count):
        board[4] = cards[e]
        for d in range(3, e):
            board[3] = cards[d]
            for c in range(2, d):
                board[2] = cards[c]
                for b in range(1, c):
                    board[1] = cards[b]
                    bc, bd, be = flop_number(0, b, c), flop_number(0, b, d), flop_number(0, b, e)
                    cd, ce, de = flop_number(0, c, d), flop_number(0, c, e), flop_number(0, d, e)
                    within[:] = 0
                    node = 0
                    suits[:] = 0
                    for place in range(1, 5):
                        node = step[node, board[place] % 13]
                        suits[board[place] // 13] += 1
                    most = suits.max()
                    for a in range(b):
                        board[0] = cards[a]
                        if most < 3 and suits[cards[a] // 13] < 2:  # no flush: as `find_board`, and sooner
                            entry, group = (step[node, cards[a] % 13] - first_node) * PAIRS_OF_RANKS, 0
                        else:
                            entry, group = find_board(game.tables, board, held)
                        kind = kind_of(entry, group)
                        if stamp[kind] != now:
                            stamp[kind] = now
                            known[kind] = value_board(game, unseen, one, other, board, group)
                        opened, decided = known[kind]
                        played = opened + river_multiple * decided
                        worth[BET] = opened + flop_multiple * decided
                        worth[LAST] = max(played, given_up) if river_multiple else given_up
                        worth[OWN_LAST] = played if rivers[entry + kinds[group]] == RAISE else given_up
                        opened_all += opened
                        decided_all += decided
                        for field in range(3):
                            within[field] += worth[field]
                            for flop in (bc, bd, be, cd, ce, de):
                                sums[flop + a, field] += worth[field]
                    for field in range(3):
                        sums[cd + b, field] += within[field]
                        sums[ce + b, field] += within[field]
                        sums[de + b, field] += within[field]
                        sums[de + c, field] += within[field]
    return sums, opened_all, decided_all


@compiled
def flop_number(a: int, b: int, c: int) -> int:
    """Return the number of three places, a < b < c."""
    return c * (c - 1) * (c - 2) // 6 + b * (b - 1) // 2 + a


@compiled
def value_hole(game: Game, own: Own, memo: Memo, hole: Longs, dead: Longs) -> Longs:
    """Return what a hole is worth, summed over all boards ten times and over all dealers: see OWN to ALL."""
    one, other = hole
    unseen = unseen_of(one, other, dead)
    memo.now[0] += 1
    sums, opened, decided = sum_flops(game, own, memo, one, other, unseen)
    cards, count = unseen.cards, len(unseen.cards)
    values = np.zeros(4, np.int64)
    flop = 0
    for c in range(2, count):
        for b in range(1, c):
            for a in range(b):
                bet, last, own_last = sums[flop]
                number = own.flop_of[cards[a], cards[b], cards[c]]
                renaming = own.renamings[own.renaming_of[cards[a], cards[b], cards[c]]]
                first, second = renaming[one // 13] * 13 + one % 13, renaming[other // 13] * 13 + other % 13
                is_bet = own.flop[own.state_of[number, first, second]] == RAISE
                values[OWN] += bet if is_bet else own_last
                values[RIVER] += bet if is_bet else last
                values[FLOP] += max(bet, last)
                flop += 1
    values[ALL] = values[FLOP]
    if game.preflop_multiple:
        at_once = FLOPS_OF_BOARD * (opened + game.preflop_multiple * decided)
        values[ALL] = max(at_once, values[FLOP])
        if own.preflop[hole_number(one, other)] == RAISE:
            values[:ALL] = at_once
    return values


@compiled
def flop_margins(game: Game, memo: Memo, hole: Longs, flop: Longs, dead: Longs) -> Longs:
    """Return `flop_margin` for each row of dead cards."""
    margins = np.zeros(len(dead), np.int64)
    for row in range(len(dead)):
        margins[row] = flop_margin(game, memo, hole, flop, dead[row])
    return margins


@compiled
def river_margins(game: Game, hole: Longs, board: Longs, dead: Longs) -> Longs:
    """Return `river_margin` for each row of dead cards."""
    margins = np.zeros(len(dead), np.int64)
    for row in range(len(dead)):
        margins[row] = river_margin(game, hole, board, dead[row])
    return margins
