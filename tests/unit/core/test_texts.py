"""What a player reads: one form in every language, each game's own words, and a text for every code that is shown."""

from __future__ import annotations

import re

import pytest

from certification.dispute_page import languages
from rgs.api.errors import ERRORS
from rgs.core.errors import FormatError, InvalidFieldError, RgsError
from rgs.core.games import FAMILIES
from rgs.core.hands import Category
from rgs.core.rulesets import SHIPPED_RULESETS, load_ruleset
from rgs.core.tables.machine import Step
from rgs.core.texts import (
    LANGUAGES,
    REFERENCE,
    Texts,
    check_language,
    load_texts,
    parse_texts,
    placeholders,
    verify_texts,
)
from rgs.devkit.terminal.i18n import load_words
from rgs.service.play import catalog
from rgs.service.tables.dealer import CLOCK_UNTRUSTED, DEALER_LINES, WINDOW_OVERRUN
from rgs.v1 import common_pb2, table_pb2

OTHERS = [language for language in LANGUAGES if language != REFERENCE]


@pytest.fixture(params=LANGUAGES)
def texts(request: pytest.FixtureRequest) -> Texts:
    return load_texts(request.param)


# --- one form ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", OTHERS)
def test_every_language_has_the_same_keys_and_placeholders(language: str) -> None:
    """Without the loader, which says the same."""
    reference, texts = load_texts(REFERENCE).texts, load_texts(language).texts
    assert list(texts) == list(reference)
    assert {key: placeholders(text) for key, text in texts.items()} == {
        key: placeholders(text) for key, text in reference.items()
    }


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda texts: texts.pop("outcome.TIE"), "outcome.TIE"),
        (lambda texts: texts.update({"outcome.MORE": "more"}), "outcome.MORE"),
        (lambda texts: texts.update({"outcome.DEALER": "{who} wins"}), "outcome.DEALER"),
        (lambda texts: texts.update({"outcome.DEALER": "The dealer wins"}), "outcome.DEALER"),
    ],
    ids=["one less", "one more", "another placeholder", "no placeholder"],
)
def test_a_language_of_another_form_is_refused(change, named) -> None:  # type: ignore[no-untyped-def]
    reference = load_texts(REFERENCE).texts
    verify_texts(dict(reference), reference)
    bent = dict(reference)
    change(bent)
    with pytest.raises(FormatError) as caught:
        verify_texts(bent, reference)
    assert caught.value.field == named


@pytest.mark.parametrize("document", ["a = 1", "a = ''", "a = ' b'", "a"])
def test_what_is_no_texts_is_refused(document: str) -> None:
    with pytest.raises(FormatError):
        parse_texts(document)


def test_a_text_that_is_no_format_is_refused() -> None:
    with pytest.raises(FormatError):
        placeholders("{open")


@pytest.mark.parametrize("use", [check_language, load_texts])
def test_an_unknown_language_is_refused_with_those_that_there_are(use) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InvalidFieldError, match="there are no texts in language 'fr'; languages: en, it, de") as caught:
        use("fr")
    assert (caught.value.field, caught.value.metadata) == ("language", {"limit": "en, it, de", "value": "fr"})


# --- every code has a text --------------------------------------------------------------------------------------------

ENUMS = {
    "phase": common_pb2.Phase,
    "outcome": common_pb2.Outcome,
    "result": common_pb2.BetResult,
    "round_status": common_pb2.RoundStatus,
    "session_status": common_pb2.SessionStatus,
    "funding": common_pb2.Funding,
    "mode": common_pb2.Mode,
    "decided_by": common_pb2.DecidedBy,
    "progress": common_pb2.OperationProgress,
    "table_state": table_pb2.TableState,
}
"""Table of the texts -> the enum of the contract whose values it names."""
NO_ENUMS_OF_A_PLAYER = {"Action"}
"""Actions are named for each game."""


def values(enum: object) -> set[str]:
    names = enum.keys()  # type: ignore[attr-defined]
    prefix = min(names, key=enum.Value).removesuffix("UNSPECIFIED")  # type: ignore[attr-defined]
    return {name.removeprefix(prefix) for name in names} - {"UNSPECIFIED"}


def test_every_value_of_every_enum_that_a_player_meets_has_a_text(texts: Texts) -> None:
    for table, enum in ENUMS.items():
        assert values(enum) == set(texts.table(table)) - {"not_qualified"}, table
    known = {enum.DESCRIPTOR.name for enum in ENUMS.values()} | NO_ENUMS_OF_A_PLAYER
    contract = {name for module in (common_pb2, table_pb2) for name in module.DESCRIPTOR.enum_types_by_name}
    assert contract == known, "an enum of what a player sees is new: it needs texts"


def reasons(kind: type[RgsError]) -> set[str]:
    """Of the core's errors: what the command line and the tests raise besides never comes from a server."""
    own = {kind.reason} if kind.__module__ == "rgs.core.errors" else set()
    return own.union(*(reasons(other) for other in kind.__subclasses__()))


def test_every_reason_has_a_text(texts: Texts) -> None:
    wanted = set(ERRORS) | reasons(RgsError)
    assert wanted - set(texts.table("error")) == set()
    # A limit, or the balance, stands against a decision (`Headroom.reason_against`).
    assert set(texts.table("unavailable")) == {"INSUFFICIENT_BALANCE", "LOSS_LIMIT", "STAKE_LIMIT"}


def test_every_other_code_has_a_text(texts: Texts) -> None:
    assert set(texts.table("dealer_line")) == set(DEALER_LINES.values())
    assert {*DEALER_LINES} <= set(Step)
    assert set(texts.table("seat_end")) == {"LEFT", "BARRED", "CLOSED", "NOT_SEATED"}  # SeatView.ended
    assert {CLOCK_UNTRUSTED, WINDOW_OVERRUN, "STORE_RECOVERED", "DECK_UNRECOVERABLE", "other"} <= set(
        texts.table("malfunction")
    )
    assert set(texts.table("operation")) == {"open", "purchase", "start", "act", "end", "close"}  # PendingOperation
    assert {*texts.table("hand")} == {category.text for category in Category}
    assert {category.text for category in Category} <= {*texts.table("row")}


def test_every_row_floor_and_return_of_every_game_has_a_name(texts: Texts) -> None:
    for ruleset_id in SHIPPED_RULESETS:
        ruleset = load_ruleset(ruleset_id)
        entry = catalog._entry(ruleset)
        assert texts.has(f"floor.{entry.dealer_qualifies_with}")
        assert texts.has(f"game.{ruleset.family}.after_fold.{entry.after_fold}")
        for figure in entry.returns:
            assert texts.has(f"return.{figure.per.replace(' ', '_')}")
            assert texts.has(f"return.{figure.basis}")
        bets = {*ruleset.paytables, *ruleset.limits, *ruleset.rules.opening_bets, ruleset.rules.decided_bet}
        assert bets == set(texts.table(f"game.{ruleset.family}.bet"))
        actions = {action for legal in ruleset.rules.transitions.values() for action in legal}
        assert {action.name for action in actions} == set(texts.table(f"game.{ruleset.family}.action"))
        silent = {action.name for action in ruleset.default_decisions.values()}
        assert silent == set(texts.table(f"game.{ruleset.family}.automatic"))


# --- the games' own words (RULEBOOK F-7) -------------------------------------------------------------------------


def test_vedi_is_check_in_one_game_and_call_in_the_other() -> None:
    texts = load_texts("it")
    assert texts("game.ultimate_texas_holdem.action.CHECK") == "vedi"
    assert texts("game.casino_holdem.action.CALL") == "vedi"
    assert texts.bet("casino_holdem", "call") == "Vedi"
    assert {texts(f"game.{game}.action.FOLD") for game in FAMILIES} == {"lascia"}


def test_the_ante_has_its_own_name_in_casino_holdem() -> None:
    texts = load_texts("it")
    assert texts.bet("casino_holdem", "ante") == "Puntata Antecedente"
    assert texts.bet("ultimate_texas_holdem", "ante") == "ante"


def test_a_game_or_bet_that_is_not_known() -> None:
    texts = load_texts("it")
    assert texts.bet("baccarat", "tie") == "tie"
    assert texts.rules("baccarat", floor="pair", after_fold="paid") == []
    with pytest.raises(KeyError):
        texts("say.nothing")


# --- words that are right ---------------------------------------------------------------------------------------------

WORD_BY_WORD = {
    "it": r"\b(portafogli\w?|sale|impegno|dichiarazion[ei]|affermazion[ei]|casa|giocare \dx|ritorno teorico)\b",
    "de": r"\b(Brieftasche|Spielkonto|Salz|Aussagen?|Erklärung(en)?|Hause?s?|Festlegung|Wurzelschlüssels?)\b",
}
"""What a translation word by word would say, and no player of that language does."""
SPOKEN_TO = {"it": r"\b(Lei|Suo|Sua|prema|scelga|attenda)\b", "de": r"\b(du|dein|deine|dir|dich)\b"}
"""The other form of address than ours: tu in Italian, Sie in German."""


@pytest.mark.parametrize("language", OTHERS)
def test_no_text_is_translated_word_by_word(language: str) -> None:
    spoken = [*load_words(language).texts.values(), str(languages()[language])]
    for text in spoken:
        assert not re.search(WORD_BY_WORD[language], text), text
        assert not re.search(SPOKEN_TO[language], text), text


def test_the_words_that_players_know_are_there() -> None:
    italian, german = (load_texts(language).texts for language in ("it", "de"))
    assert italian["error.INSUFFICIENT_FUNDS"] == "il saldo del conto di gioco non basta"
    assert german["error.INSUFFICIENT_FUNDS"] == "das Guthaben auf dem Spielerkonto reicht nicht"
    assert "percentuale di ritorno al giocatore" in italian["error.GAME_NOT_OFFERED"]
    for texts in (italian, german):
        plays = [texts[f"game.ultimate_texas_holdem.action.PLAY_{times}X"].lower() for times in (4, 3, 2, 1)]
        assert plays == ["play 4x", "play 3x", "play 2x", "play 1x"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_return_of_the_certificate_has_a_name_without_gaps(language: str) -> None:
    texts = load_texts(language)
    main = texts.return_name("uth", "main", "initial stake")
    side = texts.return_name("uth", "trips", "initial stake")
    assert main != side
    for name in (main, side):
        assert not placeholders(name)
        assert "initial_stake" not in name
