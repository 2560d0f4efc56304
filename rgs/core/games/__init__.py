"""The games: their rules as data (`FAMILIES`), and the functions that play every one of them.

A round is `check_stakes`, `deal`, then `legal_actions` and `apply` until the showdown, then `settle`; `view` returns
what the player may see. `cheapest_finish`, `dearest_finish` and `largest_ante` say what a round can cost. All are pure:
a game receives a deck and never sees the generator. Two games differ only in their tables (`FamilyRules`).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from rgs.core.games import casino_holdem, ultimate_texas_holdem
from rgs.core.games.dealing import deal
from rgs.core.games.decisions import apply, apply_again, default_action, legal_actions, table_phase, view
from rgs.core.games.settling import settle
from rgs.core.games.stakes import cheapest_finish, check_stakes, dearest_finish, largest_ante
from rgs.core.games.types import FamilyRules

__all__ = [
    "FAMILIES",
    "apply",
    "apply_again",
    "cheapest_finish",
    "check_stakes",
    "deal",
    "dearest_finish",
    "default_action",
    "largest_ante",
    "legal_actions",
    "settle",
    "table_phase",
    "view",
]

FAMILIES: Final[Mapping[str, FamilyRules]] = MappingProxyType(
    {rules.name: rules for rules in (ultimate_texas_holdem.RULES, casino_holdem.RULES)}
)
"""The rules of each game, by the `game` of its rulesets."""
