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
from rgs.core.texts import REFERENCE, Texts, load_texts
from rgs.service.game_catalog import GameCatalog


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
    dealer_qualifies_with: str
    after_fold: str
    """What becomes of the side bet after a fold, "paid" or "lost"."""
    returns: tuple[Return, ...]

    @property
    def name(self) -> str:
        """The name of the game, in English."""
        return self.name_in(load_texts(REFERENCE))

    def name_in(self, texts: Texts) -> str:
        """The name of the game in one language."""
        return texts(f"game.{self.ruleset.family}.name")

    def rules_in(self, texts: Texts) -> list[str]:
        """The rules of the game in one language, sentence by sentence."""
        return texts.rules(self.ruleset.family, floor=self.dealer_qualifies_with, after_fold=self.after_fold)


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

    def get(self, ruleset_id: str, field: str = "ruleset_id") -> GameEntry:
        """One game; UnknownRulesetError, naming the request's field, if it is not shipped."""
        entry = self._entries.get(ruleset_id)
        if entry is None:
            raise UnknownRulesetError(f"no game {ruleset_id[:40]}", field=field, value=ruleset_id[:40])
        return entry

    def _offered(self, ruleset_id: str, jurisdiction_id: str) -> bool:
        try:
            self._games.verify_offered(ruleset_id, jurisdiction_id)
        except GameNotOfferedError:
            return False
        return True


def _entry(ruleset: Ruleset) -> GameEntry:
    return GameEntry(
        ruleset=ruleset,
        dealer_qualifies_with=format_floor(ruleset.qualify),
        after_fold=ruleset.trips_after_fold or ruleset.aa_after_fold or "",
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
