"""The games: each module is one game, found by the `game` of a ruleset.

All that differs between the two games is in their tables (`RULES`); the functions are common (ARCHITECTURE 2.1):
`deal`, `legal_actions`, `apply`, `settle`, `view`, and around them `check_stakes`, `default_action` and the exposure of
a round. They are pure: a game receives a deck and never sees the generator. A game with other mechanics would be a
module with functions of its own.

Refuses a ruleset that names no game known here (when the ruleset is parsed).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Protocol

from rgs.core.games import casino_holdem, ultimate_texas_holdem
from rgs.core.games.types import Action, GameRules, LegalAction, Phase, Ruleset, Seat, SeatStakes, SeatView, Settlement

__all__ = ["GAMES", "GameModule", "game_of"]


class GameModule(Protocol):
    """What every game module offers; the meaning is documented where the functions are defined."""

    @property
    def RULES(self) -> GameRules: ...  # noqa: N802

    @property
    def TRANSITIONS(self) -> Mapping[Phase, Mapping[Action, Phase]]: ...  # noqa: N802

    def check_stakes(
        self, ruleset: Ruleset, bets: Mapping[str, int], *, enforce_limits: bool = True
    ) -> tuple[tuple[str, int], ...]: ...

    def cheapest_finish(self, ruleset: Ruleset, bets: Mapping[str, int]) -> int: ...

    def dearest_finish(self, ruleset: Ruleset, bets: Mapping[str, int]) -> int: ...

    def largest_ante(self, ruleset: Ruleset, balance_minor: int, side_bets: Mapping[str, int]) -> int: ...

    def deal(
        self, ruleset: Ruleset, deck: Sequence[int], seats: Sequence[SeatStakes], *, enforce_limits: bool = True
    ) -> tuple[Seat, ...]: ...

    def legal_actions(self, seat: Seat) -> tuple[LegalAction, ...]: ...

    def apply(self, seat: Seat, action: Action) -> Seat: ...

    def settle(self, seat: Seat) -> Settlement: ...

    def view(self, seat: Seat, *, shown_phase: Phase | None = None, to_owner: bool = True) -> SeatView: ...

    def table_phase(self, seats: Iterable[Seat]) -> Phase: ...

    def default_action(self, seat: Seat) -> Action: ...


GAMES: Final[Mapping[str, GameModule]] = MappingProxyType(
    {
        ultimate_texas_holdem.RULES.name: ultimate_texas_holdem,
        casino_holdem.RULES.name: casino_holdem,
    }
)


def game_of(ruleset: Ruleset) -> GameModule:
    """Return the module of the game that the ruleset is of."""
    return GAMES[ruleset.game]
