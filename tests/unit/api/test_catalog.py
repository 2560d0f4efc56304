"""The catalog over the contract: games in every language, the caller's terms, and all texts by code."""

from __future__ import annotations

import re
from typing import Any

import pytest

from rgs.api.catalog import catalog_methods
from rgs.api.errors import ERRORS
from rgs.core.errors import InvalidFieldError, UnknownRulesetError
from rgs.core.hands import Category
from rgs.core.jurisdictions import SHIPPED_JURISDICTIONS, load_jurisdiction
from rgs.core.links import OperatorLinks, format_links
from rgs.core.rulesets import SHIPPED_RULESETS
from rgs.core.sessions import Funding
from rgs.core.texts import LANGUAGES, load_texts, placeholders
from rgs.service.callers import Caller, Role
from rgs.service.game_catalog import GameCatalog
from rgs.service.play.catalog import Catalog
from rgs.service.play.terms import OperatorTerms
from rgs.store.allowed import links_key
from rgs.v1 import catalog_pb2 as pb
from rgs.v1 import common_pb2, table_pb2
from tests.support.waiting import at_once

ANNA = Caller("op-1", Role.OPERATOR, "demo")
LINKS = OperatorLinks("https://op-1.example/cashier", "https://op-1.example/limits", "https://op-1.example/help")


class Metas:
    """What a store has under its keys."""

    def __init__(self, **values: str) -> None:
        self.values = values

    async def meta(self, key: str) -> str:
        return self.values.get(key, "")


def call(method: str, request: Any, caller: Caller = ANNA, *, fundings: dict[str, Funding] | None = None) -> Any:
    games = GameCatalog(fundings)
    store: Any = Metas(**{links_key("op-1"): format_links(LINKS)})
    found: Any = catalog_methods(Catalog(games), OperatorTerms(store, games))[method]
    return getattr(pb, f"{method}Response").FromString(at_once(found.answer(caller, request)))


def texts_of(language: str, game: str = "") -> pb.GetTextsResponse:
    answer: pb.GetTextsResponse = call("GetTexts", pb.GetTextsRequest(language=language, game=game))
    return answer


# --- games ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("game", SHIPPED_RULESETS)
def test_a_game_is_named_in_every_language(game: str) -> None:
    shown = call("GetGame", pb.GetGameRequest(ruleset_id=game)).game
    texts = {language: texts_of(language, game) for language in LANGUAGES}
    assert (shown.currency, shown.currency_exponent) == ("EUR", 2)
    assert {*shown.names} == {*shown.rules_by_language} == {*LANGUAGES}
    assert list(shown.rules) == list(shown.rules_by_language["en"].sentences)
    for language, said in texts.items():
        assert shown.names[language] == said.game_name
        assert list(shown.rules_by_language[language].sentences) == list(said.rules)
        for part in (*shown.limits, *shown.paytables):
            assert part.names[language] == said.bets[part.bet]
        for row in (row for paytable in shown.paytables for row in paytable.rows):
            assert row.names[language] == said.rows[row.category]
            assert row.pays in said.pays or re.fullmatch(r"\d+:\d+", row.pays)
        for figure in shown.returns:
            assert said.return_bases[figure.basis]
            assert figure.names[language]
            assert "{" not in figure.names[language]


def test_returns_are_named_by_bet_and_stake() -> None:
    shown = call("GetGame", pb.GetGameRequest(ruleset_id="casino-holdem")).game
    names = [dict(figure.names) for figure in shown.returns]
    bets = {"en": ("main bet", "AA"), "it": ("puntata principale", "AA"), "de": ("Hauptspiel", "AA")}
    stakes = {
        "en": ("per initial stake", "per total stake"),
        "it": ("sulla puntata iniziale", "sulla puntata totale"),
        "de": ("auf den ersten Einsatz", "auf den gesamten Einsatz"),
    }
    for language, (main, aa) in bets.items():
        initial, total = stakes[language]
        expected = [f"{main}, {initial}", f"{main}, {total}", f"{aa}, {initial}"]
        assert [name[language] for name in names] == expected


def test_a_caller_without_a_jurisdiction_has_no_currency() -> None:
    shown = call("GetGame", pb.GetGameRequest(ruleset_id="uth-solo"), Caller("lab", Role.LAB, "")).game
    assert (shown.currency, shown.currency_exponent) == ("", 0)


# --- terms ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("jurisdiction", SHIPPED_JURISDICTIONS)
def test_the_terms_are_those_of_the_jurisdiction(jurisdiction: str) -> None:
    law = load_jurisdiction(jurisdiction)
    terms = call("GetTerms", pb.GetTermsRequest(), Caller("op-1", Role.OPERATOR, jurisdiction)).terms
    assert (terms.jurisdiction.id, terms.jurisdiction.version) == (law.id, str(law.version))
    assert {one.currency: one.participation_cap_minor for one in terms.currencies} == dict(law.currencies)
    exponents = {"EUR": 2, "GBP": 2, "CHF": 2, "JPY": 0}
    assert all(one.exponent == exponents[one.currency] for one in terms.currencies)
    same = (
        *("min_round_interval_ms", "inactivity_ms", "history_rounds", "tables_max", "early_close_allowed"),
        *("regulator_ids_required", "reality_check_ms", "free_bets_allowed", "demo_allowed", "repeat_allowed"),
        "skip_animations_allowed",
    )
    for name in same:
        assert getattr(terms, name) == getattr(law, name), name
    assert tuple(terms.languages) == law.languages
    assert terms.finish_after_ms == law.finish_after_s * 1000
    assert terms.limit_raise_delay_ms == law.limit_raise_delay_s * 1000
    assert terms.return_floor_percent == ("0.00" if jurisdiction == "gb-ukgc" else "90.00")
    assert terms.participation_required == (jurisdiction in {"it-adm", "demo"})
    listed = {field.name for field in pb.Terms.DESCRIPTOR.fields}
    named = {*same, "jurisdiction", "currencies", "languages", "finish_after_ms", "limit_raise_delay_ms"}
    assert listed == {*named, "return_floor_percent", "participation_required", "funding"}


def test_the_terms_name_how_the_operator_is_funded_and_its_links() -> None:
    answer = call("GetTerms", pb.GetTermsRequest())
    assert answer.terms.funding == common_pb2.FUNDING_PARTICIPATION
    assert (answer.links.cashier, answer.links.responsible_play, answer.links.help) == (
        *(LINKS.cashier, LINKS.responsible_play, LINKS.help),
    )
    other = Caller("op-2", Role.OPERATOR, "gb-ukgc")
    answer = call("GetTerms", pb.GetTermsRequest(), other, fundings={"op-2": Funding.SEAMLESS})
    assert answer.terms.funding == common_pb2.FUNDING_SEAMLESS
    assert answer.links == pb.OperatorLinks(), "another operator's links are not shown"


# --- texts ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("game", ["", *SHIPPED_RULESETS])
@pytest.mark.parametrize("language", LANGUAGES)
def test_all_texts_of_a_page(language: str, game: str) -> None:
    said = texts_of(language, game)
    assert said.language == language
    assert list(said.languages) == list(LANGUAGES)
    for field, value in said.ListFields():
        texts = [value] if isinstance(value, str) else value.values() if hasattr(value, "values") else value
        assert all(text and ("{" in text) == (field.name == "reality_check") for text in texts), field.name
    empty = {field.name for field in said.DESCRIPTOR.fields} - {field.name for field, _ in said.ListFields()}
    of_a_game = {"game_name", "dealer", "rules", "bets", "actions", "outcomes", "not_qualified", "automatic_actions"}
    assert empty == (set() if game else of_a_game)


ENUMS = {
    "results": common_pb2.BetResult,
    "phases": common_pb2.Phase,
    "round_statuses": common_pb2.RoundStatus,
    "session_statuses": common_pb2.SessionStatus,
    "fundings": common_pb2.Funding,
    "modes": common_pb2.Mode,
    "decided_by": common_pb2.DecidedBy,
    "progress": common_pb2.OperationProgress,
    "table_states": table_pb2.TableState,
    "outcomes": common_pb2.Outcome,
}


def test_enums_are_named_as_in_the_contract() -> None:
    said = texts_of("de", "casino-holdem")
    for field, enum in ENUMS.items():
        names: Any = enum
        assert {*getattr(said, field)} == {name for name in names.keys() if names.Value(name)}, field  # noqa: SIM118
    assert dict(said.actions) == {"ACTION_CALL": "mitgehen", "ACTION_FOLD": "passen"}
    assert dict(said.automatic_actions) == {"ACTION_FOLD": "automatisch gepasst"}
    assert said.outcomes["OUTCOME_DEALER"] == "Der Croupier gewinnt"
    assert dict(texts_of("it", "uth-solo").actions)["ACTION_PLAY_4X"] == "play 4x"
    assert dict(texts_of("it", "uth-solo").automatic_actions)["ACTION_CHECK"] == "hai visto automaticamente"


def test_reasons_and_codes_are_keys() -> None:
    said = texts_of("it")
    assert set(ERRORS) <= set(said.errors)
    assert {category.text for category in Category} | {"pair:A"} == set(said.rows)
    assert said.malfunctions[""] == load_texts("it")("malfunction.other")
    assert "other" not in said.malfunctions
    assert said.dealer_lines["BETS_OPEN"] == "Fate il vostro gioco."
    assert placeholders(said.reality_check) == {"elapsed", "staked", "returned", "net"}
    assert said.seat_ends["BARRED"] == "Non puoi più giocare a questo tavolo."


def test_a_language_or_game_that_there_is_not() -> None:
    with pytest.raises(InvalidFieldError, match="languages: en, it, de") as caught:
        texts_of("fr")
    assert (caught.value.field, caught.value.metadata["limit"]) == ("language", "en, it, de")
    with pytest.raises(InvalidFieldError):
        texts_of("")
    with pytest.raises(UnknownRulesetError) as unknown:
        texts_of("en", "baccarat")
    assert unknown.value.field == "game"
