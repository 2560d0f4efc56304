"""Casino Hold'em as tables (RULEBOOK section 3: C-1 to C-8, C-10).

Ante, AA on the side, and one decision after the flop: call for twice the ante, or fold. The ante is paid by its table
on the player's hand. Without a qualified dealer it is paid even if the dealer's hand is better (C-3). What the tables
leave out is not allowed.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from rgs.core.games.types import Action, FamilyRules, Outcome, Pay, Phase

_TRANSITIONS: Final[Mapping[Phase, Mapping[Action, Phase]]] = MappingProxyType(
    {Phase.FLOP: MappingProxyType({Action.CALL: Phase.SHOWDOWN, Action.FOLD: Phase.SHOWDOWN})}
)

_NOT_QUALIFIED: Final = MappingProxyType({"ante": Pay.TABLE, "call": Pay.PUSH})
_FOLDED: Final = MappingProxyType({"ante": Pay.LOST})

_SETTLEMENT: Final[Mapping[tuple[bool, Outcome], Mapping[str, Pay]]] = MappingProxyType(
    {
        # C-3: (dealer qualifies, outcome). Without a qualified dealer the hands do not decide.
        (False, Outcome.PLAYER): _NOT_QUALIFIED,
        (False, Outcome.DEALER): _NOT_QUALIFIED,
        (False, Outcome.TIE): _NOT_QUALIFIED,
        # C-4: the dealer qualifies, the hands decide.
        (True, Outcome.PLAYER): MappingProxyType({"ante": Pay.TABLE, "call": Pay.EVEN}),
        (True, Outcome.DEALER): MappingProxyType({"ante": Pay.LOST, "call": Pay.LOST}),
        (True, Outcome.TIE): MappingProxyType({"ante": Pay.PUSH, "call": Pay.PUSH}),
        # C-1: a fold loses the ante.
        (False, Outcome.FOLD): _FOLDED,
        (True, Outcome.FOLD): _FOLDED,
    }
)

RULES: Final = FamilyRules(
    name="casino_holdem",
    opening_bets=("ante", "aa"),
    placed_bets=("ante", "aa"),
    side_bet="aa",
    side_bet_on_flop=True,  # C-6: AA looks at the player's two cards and the flop.
    decided_bet="call",
    paytables=("ante", "aa"),
    transitions=_TRANSITIONS,
    multiples=MappingProxyType({Action.CALL: 2}),
    board_shown=MappingProxyType({Phase.FLOP: 3, Phase.SHOWDOWN: 5}),
    settlement=_SETTLEMENT,
    decision_rule="C-1",
    stake_rule="C-8",
    funds_rule="R-3",
)
