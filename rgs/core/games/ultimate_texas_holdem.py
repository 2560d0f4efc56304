"""Ultimate Texas Hold'em as tables (RULEBOOK section 2: U-0 to U-11).

Ante and an equal blind, trips on the side, and one play bet of 4 or 3, 2, or 1 times the ante: the earlier, the larger.
What differs between casinos (burns, seats, own or shared cards, trips after a fold, limits) is in the rulesets. What
the tables leave out is not allowed.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from rgs.core.games.types import Action, FamilyRules, Outcome, Pay, Phase

_TRANSITIONS: Final[Mapping[Phase, Mapping[Action, Phase]]] = MappingProxyType(
    {
        # U-2: after a play bet there is no further decision.
        Phase.PREFLOP: MappingProxyType(
            {Action.CHECK: Phase.FLOP, Action.PLAY_4X: Phase.SHOWDOWN, Action.PLAY_3X: Phase.SHOWDOWN}
        ),
        Phase.FLOP: MappingProxyType({Action.CHECK: Phase.RIVER, Action.PLAY_2X: Phase.SHOWDOWN}),
        Phase.RIVER: MappingProxyType({Action.PLAY_1X: Phase.SHOWDOWN, Action.FOLD: Phase.SHOWDOWN}),
    }
)

_FOLDED: Final = MappingProxyType({"ante": Pay.LOST, "blind": Pay.LOST})
_TIED: Final = MappingProxyType({"ante": Pay.PUSH, "blind": Pay.PUSH, "play": Pay.PUSH})

_SETTLEMENT: Final[Mapping[tuple[bool, Outcome], Mapping[str, Pay]]] = MappingProxyType(
    {
        # U-5, row by row: (dealer qualifies, outcome). A tie pushes whether or not the dealer qualifies.
        (False, Outcome.PLAYER): MappingProxyType({"ante": Pay.PUSH, "blind": Pay.TABLE, "play": Pay.EVEN}),
        (False, Outcome.DEALER): MappingProxyType({"ante": Pay.PUSH, "blind": Pay.LOST, "play": Pay.LOST}),
        (True, Outcome.PLAYER): MappingProxyType({"ante": Pay.EVEN, "blind": Pay.TABLE, "play": Pay.EVEN}),
        (True, Outcome.DEALER): MappingProxyType({"ante": Pay.LOST, "blind": Pay.LOST, "play": Pay.LOST}),
        (False, Outcome.TIE): _TIED,
        (True, Outcome.TIE): _TIED,
        (False, Outcome.FOLD): _FOLDED,
        (True, Outcome.FOLD): _FOLDED,
    }
)

RULES: Final = FamilyRules(
    name="ultimate_texas_holdem",
    opening_bets=("ante", "blind", "trips"),
    placed_bets=("ante", "trips"),
    side_bet="trips",
    side_bet_on_flop=False,  # U-7: trips look at the final best five.
    decided_bet="play",
    paytables=("blind", "trips"),
    transitions=_TRANSITIONS,
    multiples=MappingProxyType({Action.PLAY_4X: 4, Action.PLAY_3X: 3, Action.PLAY_2X: 2, Action.PLAY_1X: 1}),
    board_shown=MappingProxyType({Phase.PREFLOP: 0, Phase.FLOP: 3, Phase.RIVER: 5, Phase.SHOWDOWN: 5}),
    settlement=_SETTLEMENT,
    decision_rule="U-2",
    stake_rule="U-10",
    funds_rule="U-11",
)
