"""How the demo's players decide: simple and sensible rules, not the best ones.

Ultimate Texas Hold'em: 4x before the flop with an ace, a pair of threes or better, or a king beside a nine or better;
3x with a queen beside a jack or better; 2x after the flop with two pair or better, or with a pair of one's own; 1x at
the river with a pair or better; else check, at the river fold. Casino Hold'em: call with a pair or better or with an
ace or king of one's own; else fold. If the wanted bet is not available, the player checks or else folds.

Stakes come from counters, so that two demos differ in their cards alone. Decisions use nothing but the view.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rgs.core.cards import parse_card, rank_of
from rgs.v1 import common_pb2 as pb

ANTES_MINOR: Final = (100, 200, 100, 500, 100, 300, 200)
SIDE_BET: Final = {"uth-solo": "trips", "casino-holdem": "aa"}
SIDE_BET_EVERY: Final = 3
SIDE_BET_MINOR: Final = 100
_WEAK: Final = frozenset({"", "high_card"})
_GIVING_WAY: Final = (pb.ACTION_CHECK, pb.ACTION_FOLD)


def stakes(game: str, number: int, largest_ante_minor: int) -> dict[str, int]:
    """The bets of the round with this number: an ante from the list, a side bet every third round while affordable."""
    ante_minor = min(ANTES_MINOR[number % len(ANTES_MINOR)], largest_ante_minor)
    bets = {"ante": ante_minor}
    if number % SIDE_BET_EVERY == 0 and ante_minor < largest_ante_minor - SIDE_BET_MINOR:
        bets[SIDE_BET[game]] = SIDE_BET_MINOR
    return bets


def table_stakes(limits: Mapping[str, int], number: int) -> dict[str, int]:
    """The bets of a round at a table: once or twice the least ante, and every third time the least trips.

    `limits`: the least stake of each bet there.
    """
    bets = {"ante": limits["ante"] * (1 + number % 2)}
    if number % SIDE_BET_EVERY == 0:
        bets["trips"] = limits["trips"]
    return bets


def decide(round_: pb.RoundView) -> pb.Action.ValueType:
    """The decision for what the view shows."""
    available = [legal.action for legal in round_.legal_actions if legal.available]
    wanted = _wanted(round_)
    return wanted if wanted in available else next(action for action in _GIVING_WAY if action in available)


def _wanted(round_: pb.RoundView) -> pb.Action.ValueType:
    high, low = sorted((rank_of(parse_card(card)) for card in round_.hole_cards), reverse=True)
    made = round_.player_hand.category
    legal = {legal.action for legal in round_.legal_actions}
    if pb.ACTION_CALL in legal:
        return pb.ACTION_CALL if made not in _WEAK or high >= _KING else pb.ACTION_FOLD
    if round_.phase == pb.PHASE_PREFLOP:
        return _before_the_flop(high, low)
    if round_.phase == pb.PHASE_FLOP:
        own_pair = made == "pair" and _pair_rank(round_) in (high, low)
        return pb.ACTION_PLAY_2X if own_pair or made not in _WEAK | {"pair"} else pb.ACTION_CHECK
    if round_.phase == pb.PHASE_RIVER:
        return pb.ACTION_PLAY_1X if made not in _WEAK else pb.ACTION_FOLD
    return pb.ACTION_FOLD


_ACE: Final = 14
_KING: Final = 13
_QUEEN: Final = 12


def _before_the_flop(high: int, low: int) -> pb.Action.ValueType:
    if high == _ACE or (high == low and high >= 3) or (high == _KING and low >= 9):
        return pb.ACTION_PLAY_4X
    return pb.ACTION_PLAY_3X if high == _QUEEN and low >= 11 else pb.ACTION_CHECK


def _pair_rank(round_: pb.RoundView) -> int:
    ranks = [rank_of(parse_card(card)) for card in round_.player_hand.cards]
    return next((rank for rank in ranks if ranks.count(rank) == 2), 0)
