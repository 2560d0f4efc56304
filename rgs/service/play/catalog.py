"""The catalog of games: rules and returns, made from the data that settles rounds (RULEBOOK sections 2-4, F-3).

The returns are those of the exact certificate for the ruleset's hash. Without one they are the published figures. Each
figure is labelled with its basis.
"""

from __future__ import annotations

from dataclasses import dataclass

from rgs.core.errors import GameNotOfferedError, UnknownRulesetError
from rgs.core.games.paytables import format_floor
from rgs.core.games.published import LABEL, published_returns
from rgs.core.returns import certified
from rgs.core.rulesets import Ruleset
from rgs.service.game_catalog import GameCatalog

_NAMES = {"ultimate_texas_holdem": "Ultimate Texas Hold'em", "casino_holdem": "Casino Hold'em"}
_RULES = {
    "ultimate_texas_holdem": (
        "Place an ante; the system places a blind of the same amount. A trips bet may stand beside them.",
        "You and the dealer get two cards each. Then decide: play 4x or 3x the ante, or check.",
        "Three community cards are shown. If you have not played yet: play 2x the ante, or check.",
        "The last two community cards are shown. If you have not played yet: play 1x the ante, or fold.",
        "The best five of seven cards count on each side. The dealer qualifies with {floor}.",
        "You win: play pays 1:1, ante pays 1:1 if the dealer qualifies and comes back if not, blind pays by its table.",
        "The dealer wins: play and blind are lost, and the ante too if the dealer qualifies; otherwise it comes back.",
        "A tie returns ante, blind and play. Folding loses ante and blind.",
        "Trips pays by its table on your best five cards, whatever the dealer holds; after a fold it is {after_fold}.",
    ),
    "casino_holdem": (
        "Place an ante. An AA bet may stand beside it.",
        "You get two cards, the dealer two face down, and three community cards are shown.",
        "Then decide: call with exactly twice the ante, or fold and lose the ante.",
        "After a call the last two community cards are shown. The best five of seven cards count on each side.",
        "The dealer qualifies with {floor}. If not, the ante pays by its table on your hand and the call comes back.",
        "If the dealer qualifies and you win, the ante pays by its table and the call 1:1; a tie returns both.",
        "AA pays by its table on your two cards and the first three community cards; after a fold it is {after_fold}.",
    ),
}

_RANKS = {
    "2": "twos",
    "3": "threes",
    "4": "fours",
    "5": "fives",
    "6": "sixes",
    "7": "sevens",
    "8": "eights",
    "9": "nines",
    "T": "tens",
    "J": "jacks",
    "Q": "queens",
    "K": "kings",
    "A": "aces",
}


@dataclass(frozen=True, slots=True)
class Return:
    """A return to the player in hundredths of a percent: of which bet, per which stake, on which basis."""

    bet: str
    per: str
    basis_points: int
    basis: str


@dataclass(frozen=True, slots=True)
class GameEntry:
    """One game of the catalog."""

    ruleset: Ruleset
    name: str
    rules: tuple[str, ...]
    dealer_qualifies_with: str
    returns: tuple[Return, ...]


class Catalog:
    """The games of this server, and which of them a jurisdiction offers."""

    def __init__(self, games: GameCatalog) -> None:
        self._games = games
        self._entries = {name: _entry(ruleset) for name, ruleset in games.rulesets.items()}

    def list(self, jurisdiction_id: str = "") -> tuple[GameEntry, ...]:
        """All shipped games, or those that are offered under a jurisdiction."""
        return tuple(
            entry
            for name, entry in self._entries.items()
            if not jurisdiction_id or self._offered(name, jurisdiction_id)
        )

    def get(self, ruleset_id: str) -> GameEntry:
        """One game; UnknownRulesetError if it is not shipped."""
        entry = self._entries.get(ruleset_id)
        if entry is None:
            raise UnknownRulesetError(f"no game {ruleset_id[:40]}", field="ruleset_id", value=ruleset_id[:40])
        return entry

    def _offered(self, ruleset_id: str, jurisdiction_id: str) -> bool:
        try:
            self._games.verify_offered(ruleset_id, jurisdiction_id)
        except GameNotOfferedError:
            return False
        return True


def _entry(ruleset: Ruleset) -> GameEntry:
    floor = format_floor(ruleset.qualify)
    after_fold = ruleset.trips_after_fold or ruleset.aa_after_fold
    return GameEntry(
        ruleset=ruleset,
        name=_NAMES[ruleset.family],
        rules=tuple(rule.format(floor=_in_words(floor), after_fold=after_fold) for rule in _RULES[ruleset.family]),
        dealer_qualifies_with=floor,
        returns=_returns(ruleset),
    )


def _returns(ruleset: Ruleset) -> tuple[Return, ...]:
    certificate = certified.load_certified_returns(ruleset)
    if certificate is None:
        return tuple(Return(row.bet, row.per, row.basis_points, LABEL) for row in published_returns(ruleset.id))
    figures = [
        ("main", "initial stake", certificate.return_initial),
        ("main", "total stake", certificate.return_total),
        *((bet, "initial stake", value) for bet, value in certificate.side_bets.items()),
    ]
    return tuple(Return(bet, per, round(10_000 * value), certified.LABEL) for bet, per, value in figures)


def _in_words(floor: str) -> str:
    """Words for "pair:4": "a pair of fours or better"."""
    category, _, rank = floor.partition(":")
    return f"a {category.replace('_', ' ')}{f' of {_RANKS[rank]}' if rank else ''} or better"
