"""rgs.v1.CatalogService over `rgs.service.play.catalog`."""

from __future__ import annotations

from typing import Any

from rgs.api.calls import Methods, Unary
from rgs.api.mapping import rules_fields
from rgs.core.games.paytables import Paytable, format_floor
from rgs.core.jurisdictions import load_jurisdiction
from rgs.core.money import format_odds
from rgs.core.rulesets import Ruleset
from rgs.service.callers import Caller
from rgs.service.play.catalog import Catalog, GameEntry, Return
from rgs.v1 import catalog_pb2 as pb

SERVICE = pb.DESCRIPTOR.services_by_name["CatalogService"].full_name


def catalog_methods(catalog: Catalog) -> Methods:
    """The methods of the service."""

    async def list_games(caller: Caller, _message: pb.ListGamesRequest) -> bytes:
        currency = _currency_of(caller)
        return pb.ListGamesResponse(
            games=[_game(entry, currency) for entry in catalog.list(caller.jurisdiction)]
        ).SerializeToString()

    async def get_game(caller: Caller, message: pb.GetGameRequest) -> bytes:
        game = _game(catalog.get(message.ruleset_id), _currency_of(caller))
        return pb.GetGameResponse(game=game).SerializeToString()

    return {"ListGames": Unary(pb.ListGamesRequest, list_games), "GetGame": Unary(pb.GetGameRequest, get_game)}


def _currency_of(caller: Caller) -> str:
    """The currency of the operator's jurisdiction, in which limits are given; empty for callers without one."""
    return load_jurisdiction(caller.jurisdiction).currency if caller.jurisdiction else ""


def _game(entry: GameEntry, currency: str) -> pb.Game:
    ruleset = entry.ruleset
    return pb.Game(
        ruleset=rules_fields(ruleset),
        family=ruleset.family,
        name=entry.name,
        table_only=ruleset.table_only,
        seats_max=ruleset.max_seats,
        limits=[_limits(ruleset, bet) for bet in ruleset.limits],
        paytables=[_paytable(bet, paytable) for bet, paytable in ruleset.paytables.items()],
        dealer_qualifies_with=entry.dealer_qualifies_with,
        rules=entry.rules,
        returns=[_return(figure) for figure in entry.returns],
        canonical=ruleset.canonical,
        currency=currency,
    )


def _limits(ruleset: Ruleset, bet: str) -> Any:
    limits = ruleset.limits[bet]
    return {
        "bet": bet,
        "min_minor": limits.min_minor,
        "max_minor": limits.max_minor,
        "step_minor": ruleset.step_minor,
        "required": bet == ruleset.rules.placed_bets[0],
    }


def _paytable(bet: str, paytable: Paytable) -> Any:
    rows = [{"category": format_floor(floor), "pays": format_odds(odds)} for floor, odds in paytable.rows]
    return {"bet": bet, "rows": rows}


def _return(figure: Return) -> Any:
    whole, hundredths = divmod(figure.basis_points, 100)
    name = f"{figure.bet}, per {figure.per}"
    return {"name": name, "percent": f"{whole}.{hundredths:02d}", "basis": figure.basis}
