"""rgs.v1.CatalogService over `rgs.service.play.catalog` and `rgs.service.play.terms`.

Games and texts are the same for every caller but for limits' currency and what is offered; each is put together once.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from rgs.api.calls import Methods, Unary
from rgs.api.mapping import FUNDINGS, rules_fields, same_fields
from rgs.core.amounts import exponent_of
from rgs.core.games.paytables import Paytable, format_floor
from rgs.core.jurisdictions import load_jurisdiction
from rgs.core.money import format_odds
from rgs.core.rulesets import Ruleset
from rgs.core.texts import LANGUAGES, Texts, load_texts
from rgs.service.callers import Caller
from rgs.service.play.catalog import Catalog, GameEntry, Return
from rgs.service.play.terms import OperatorTerms, TermsView
from rgs.v1 import catalog_pb2 as pb
from rgs.v1 import common_pb2 as common
from rgs.v1 import table_pb2 as table

SERVICE = pb.DESCRIPTOR.services_by_name["CatalogService"].full_name

OTHER: Final = "other"
"""The malfunction whose text stands for the codes that have none."""

_TABLES: Final[Mapping[str, str]] = {
    "rows": "row",
    "hands": "hand",
    "seat_ends": "seat_end",
    "dealer_lines": "dealer_line",
    "unavailable": "unavailable",
    "errors": "error",
    "operations": "operation",
    "pays": "pays",
}
"""Field of GetTextsResponse -> table of the texts, of codes that are the keys in both."""

_ENUMS: Final = {
    "results": ("result", common.BetResult),
    "phases": ("phase", common.Phase),
    "round_statuses": ("round_status", common.RoundStatus),
    "session_statuses": ("session_status", common.SessionStatus),
    "fundings": ("funding", common.Funding),
    "modes": ("mode", common.Mode),
    "decided_by": ("decided_by", common.DecidedBy),
    "progress": ("progress", common.OperationProgress),
    "table_states": ("table_state", table.TableState),
}
"""Field of GetTextsResponse -> table of the texts, and the enum whose names are the keys."""


def catalog_methods(catalog: Catalog, terms: OperatorTerms) -> Methods:
    """The methods of the service."""

    async def list_games(caller: Caller, _message: pb.ListGamesRequest) -> bytes:
        currency = _currency_of(caller)
        return pb.ListGamesResponse(
            games=[_game(entry, currency) for entry in catalog.list(caller.jurisdiction)]
        ).SerializeToString()

    async def get_game(caller: Caller, message: pb.GetGameRequest) -> bytes:
        game = _game(catalog.get(message.ruleset_id), _currency_of(caller))
        return pb.GetGameResponse(game=game).SerializeToString()

    async def get_terms(caller: Caller, _message: pb.GetTermsRequest) -> bytes:
        return _terms(await terms.of(caller)).SerializeToString()

    async def get_texts(_caller: Caller, message: pb.GetTextsRequest) -> bytes:
        texts = load_texts(message.language)
        entry = catalog.get(message.game, "game") if message.game else None
        return _texts(texts, entry).SerializeToString()

    return {
        "ListGames": Unary(pb.ListGamesRequest, list_games),
        "GetGame": Unary(pb.GetGameRequest, get_game),
        "GetTerms": Unary(pb.GetTermsRequest, get_terms),
        "GetTexts": Unary(pb.GetTextsRequest, get_texts),
    }


# --- games ------------------------------------------------------------------------------------------------------------


def _currency_of(caller: Caller) -> str:
    """The first currency of the operator's jurisdiction; empty for callers without one."""
    return next(iter(load_jurisdiction(caller.jurisdiction).currencies)) if caller.jurisdiction else ""


@cache
def _game(entry: GameEntry, currency: str) -> pb.Game:
    ruleset, texts = entry.ruleset, [load_texts(language) for language in LANGUAGES]
    return pb.Game(
        ruleset=rules_fields(ruleset),
        family=ruleset.family,
        name=entry.name,
        table_only=ruleset.table_only,
        seats_max=ruleset.max_seats,
        limits=[_limits(ruleset, bet) for bet in ruleset.limits],
        paytables=[_paytable(ruleset.family, bet, paytable) for bet, paytable in ruleset.paytables.items()],
        dealer_qualifies_with=entry.dealer_qualifies_with,
        rules=entry.rules_in(load_texts(LANGUAGES[0])),
        returns=[_return(ruleset.family, figure) for figure in entry.returns],
        canonical=ruleset.canonical,
        currency=currency,
        currency_exponent=exponent_of(currency),
        names={one.language: entry.name_in(one) for one in texts},
        rules_by_language={one.language: pb.RulesText(sentences=entry.rules_in(one)) for one in texts},
    )


def _limits(ruleset: Ruleset, bet: str) -> Any:
    limits = ruleset.limits[bet]
    return {
        "bet": bet,
        "min_minor": limits.min_minor,
        "max_minor": limits.max_minor,
        "step_minor": ruleset.step_minor,
        "required": bet == ruleset.rules.placed_bets[0],
        "names": _bet_names(ruleset.family, bet),
    }


def _bet_names(family: str, bet: str) -> dict[str, str]:
    return {language: load_texts(language).bet(family, bet) for language in LANGUAGES}


def _paytable(family: str, bet: str, paytable: Paytable) -> Any:
    rows = []
    for floor, odds in paytable.rows:
        category = format_floor(floor)
        names = {language: load_texts(language)(f"row.{category}") for language in LANGUAGES}
        rows.append({"category": category, "pays": format_odds(odds), "names": names})
    return {"bet": bet, "rows": rows, "names": _bet_names(family, bet)}


def _return(family: str, figure: Return) -> Any:
    names = {language: load_texts(language).return_name(family, figure.bet, figure.per) for language in LANGUAGES}
    return {
        "name": f"{figure.bet}, per {figure.per}",
        "percent": _percent(figure.basis_points),
        "basis": figure.basis,
        "names": names,
    }


def _percent(basis_points: int) -> str:
    whole, hundredths = divmod(basis_points, 100)
    return f"{whole}.{hundredths:02d}"


# --- terms ------------------------------------------------------------------------------------------------------------


def _terms(view: TermsView) -> pb.GetTermsResponse:
    law = view.jurisdiction
    terms = pb.Terms(
        **same_fields(law, "min_round_interval_ms", "inactivity_ms", "history_rounds", "tables_max"),
        **same_fields(law, "early_close_allowed", "regulator_ids_required", "languages", "reality_check_ms"),
        **same_fields(law, "free_bets_allowed", "demo_allowed", "repeat_allowed", "skip_animations_allowed"),
        jurisdiction=rules_fields(law),
        currencies=[
            pb.CurrencyTerms(currency=currency, exponent=exponent_of(currency), participation_cap_minor=cap_minor)
            for currency, cap_minor in law.currencies.items()
        ],
        finish_after_ms=law.finish_after_s * 1000,
        participation_required=view.participation_required,
        funding=FUNDINGS[view.funding],
        return_floor_percent=_percent(law.return_floor_basis_points),
        limit_raise_delay_ms=law.limit_raise_delay_s * 1000,
    )
    links = pb.OperatorLinks(**same_fields(view.links, "cashier", "responsible_play", "help"))
    return pb.GetTermsResponse(terms=terms, links=links)


# --- texts ------------------------------------------------------------------------------------------------------------


@cache
def _texts(texts: Texts, entry: GameEntry | None) -> pb.GetTextsResponse:
    """All texts of a language; with a game those that depend on it, too."""
    response = pb.GetTextsResponse(language=texts.language, languages=LANGUAGES)
    for field, name in _TABLES.items():
        getattr(response, field).update(texts.table(name))
    for field, (name, enum) in _ENUMS.items():
        getattr(response, field).update(_named(enum, texts.table(name)))
    malfunctions = texts.table("malfunction")
    response.malfunctions.update({"": malfunctions.pop(OTHER), **malfunctions})
    response.return_bases.update({basis: texts(f"return.{basis}") for basis in ("published", "certified")})
    response.reality_check = texts.texts["reality_check.message"]
    if entry is not None:
        _add_game(response, texts, entry)
    return response


def _add_game(response: pb.GetTextsResponse, texts: Texts, entry: GameEntry) -> None:
    game = f"game.{entry.ruleset.family}"
    dealer = texts(f"{game}.the_dealer")
    response.game_name = entry.name_in(texts)
    response.dealer = texts(f"{game}.dealer")
    response.not_qualified = texts("outcome.not_qualified", dealer=dealer)
    response.rules.extend(entry.rules_in(texts))
    response.bets.update(texts.table(f"{game}.bet"))
    response.actions.update(_named(common.Action, texts.table(f"{game}.action")))
    response.automatic_actions.update(_named(common.Action, texts.table(f"{game}.automatic")))
    outcomes = {name: texts(f"outcome.{name}", dealer=dealer) for name in ("PLAYER", "DEALER", "TIE", "FOLD")}
    response.outcomes.update(_named(common.Outcome, outcomes))


def _named(enum: Any, texts: Mapping[str, str]) -> dict[str, str]:
    """The texts under the names that the contract's enum has for them. KeyError for one that it does not have."""
    prefix = enum.Name(0).removesuffix("UNSPECIFIED")
    return {enum.Name(enum.Value(f"{prefix}{name}")): text for name, text in texts.items()}
