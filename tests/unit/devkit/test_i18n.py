"""The words of the terminal client: one form in three languages, a key for each decision, nothing unsaid or unused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import rgs
from certification.dispute_page import languages
from rgs.api.errors import ERRORS
from rgs.core.errors import FormatError, InvalidFieldError
from rgs.core.games import FAMILIES
from rgs.core.hands import Category
from rgs.core.replay.checks import CHECKS
from rgs.core.rulesets import SHIPPED_RULESETS, load_ruleset
from rgs.core.texts import LANGUAGES, REFERENCE, load_texts, placeholders
from rgs.devkit.terminal.i18n import Words, language_of, load_words, parse_words
from rgs.service.tables.dealer import DEALER_LINES
from rgs.v1.common_pb2 import Action, BetResult, DecidedBy, Outcome, Phase, RoundStatus
from rgs.v1.table_pb2 import TableState

RGS = Path(rgs.__file__).parent
OTHERS = [language for language in LANGUAGES if language != REFERENCE]


@pytest.fixture(params=LANGUAGES)
def words(request: pytest.FixtureRequest) -> Words:
    return load_words(request.param)


@pytest.mark.parametrize("language", OTHERS)
def test_every_language_has_the_same_keys_and_placeholders(language: str) -> None:
    """Without the loader, which says the same."""
    reference, texts = load_words(REFERENCE).texts, load_words(language).texts
    assert list(texts) == list(reference)
    assert {key: placeholders(text) for key, text in texts.items()} == {
        key: placeholders(text) for key, text in reference.items()
    }


def test_the_terminal_has_the_texts_of_the_contract_and_its_own(words: Words) -> None:
    """One source: what the API gives to pages is what the terminal says."""
    shared = load_texts(words.language).texts
    assert {key: words.texts[key] for key in shared} == shared
    own = words.texts.keys() - shared.keys()
    assert {key.partition(".")[0] for key in own} == {
        *("head", "felt", "choice", "say", "lobby", "table", "proof", "check", "past", "rules", "key")
    }


@pytest.mark.parametrize(
    "document",
    [
        "a = 1",
        "a = ''",
        "a = ' b'",
        "a",
        "[choice]\nleave = 'leave'",
        "[key.x]\nFOLD = 'fold'",
    ],
)
def test_what_is_no_words_is_refused(document: str) -> None:
    with pytest.raises(FormatError):
        parse_words(document)


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(InvalidFieldError, match="no texts in language 'fr'"):
        load_words("fr")


# --- the games' own words (RULEBOOK F-7) -------------------------------------------------------------------------


def test_every_game_has_a_word_for_each_bet_and_decision(words: Words) -> None:
    for ruleset_id in SHIPPED_RULESETS:
        rules = load_ruleset(ruleset_id).rules
        bets = {*load_ruleset(ruleset_id).paytables, *load_ruleset(ruleset_id).limits, rules.side_bet}
        assert all(words.has(f"game.{load_ruleset(ruleset_id).family}.bet.{bet}") for bet in bets)
    for game, names in (
        ("ultimate_texas_holdem", {"CHECK", "PLAY_4X", "PLAY_3X", "PLAY_2X", "PLAY_1X", "FOLD"}),
        ("casino_holdem", {"CALL", "FOLD"}),
    ):
        prefix = f"key.{game}."
        assert {key.removeprefix(prefix) for key in words.texts if key.startswith(prefix)} == names
        assert names <= {name.removeprefix("ACTION_") for name in Action.keys()}  # noqa: SIM118 - an enum of protobuf


def test_the_page_of_a_dispute_has_the_same_words(words: Words) -> None:
    """A player who has played in the terminal reads the same names on the page of a complaint."""
    page = languages()[words.language]
    for game in FAMILIES:
        prefix = f"game.{game}.bet."
        bets = {key.removeprefix(prefix): text for key, text in words.texts.items() if key.startswith(prefix)}
        assert {bet: text.lower() for bet, text in page["bet"][game].items()} == {
            bet: text.lower() for bet, text in bets.items()
        }
    for category in Category:
        assert page["hand"][category.text] == words(f"row.{category.text}")
    assert page["result"] == {result.lower(): words(f"result.{result}") for result in ("WIN", "LOSE", "PUSH")}
    assert page["fact"]["commitment"].lower().startswith(words("felt.commitment").lower())


# --- nothing unsaid, nothing unused ------------------------------------------------------------------------------


def test_there_is_a_word_for_all_that_a_server_can_say(words: Words) -> None:
    def names(enum: object, prefix: str) -> set[str]:
        return {name.removeprefix(prefix) for name in enum.keys()} - {"UNSPECIFIED"}  # type: ignore[attr-defined]  # noqa: SIM118

    wanted = {f"outcome.{name}" for name in names(Outcome, "OUTCOME_")}
    wanted |= {f"result.{name}" for name in names(BetResult, "BET_RESULT_")}
    wanted |= {f"phase.{name}" for name in names(Phase, "PHASE_")}
    wanted |= {f"round_status.{name}" for name in names(RoundStatus, "ROUND_STATUS_")}
    wanted |= {f"decided_by.{name}" for name in names(DecidedBy, "DECIDED_BY_")}
    wanted |= {f"{table}.{category.text}" for category in Category for table in ("hand", "row")}
    wanted |= {f"check.{check.number}" for check in CHECKS}
    wanted |= {f"error.{reason}" for reason in ERRORS}
    wanted |= {f"game.{game}.{name}" for game in FAMILIES for name in ("dealer", "the_dealer")}
    wanted |= {f"table_state.{name}" for name in names(TableState, "TABLE_STATE_")}
    wanted |= {f"seat_end.{name}" for name in ("LEFT", "BARRED", "CLOSED", "NOT_SEATED")}  # SeatView.ended
    wanted |= {f"dealer_line.{code}" for code in DEALER_LINES.values()}
    assert wanted - set(words.texts) == set()


SPOKEN = re.compile(r"""(?:words|_words|texts)(?:\(|\[|\.known\(|\.has\()\s*f?["']([a-z_.]+)""")
"""Where the client says something: the key, or its constant beginning."""
SAID_BY_NAME = re.compile(r"^(check|head|key)\.")
"""Tables whose rows are named by what the server says; that the server says them is another test's."""


def test_no_key_is_misspelt_and_none_is_unused() -> None:
    source = "\n".join(
        path.read_text("utf-8") for path in [RGS / "cli/play.py", *(RGS / "devkit/terminal").rglob("*.py")]
    )
    keys = set(load_words("en").texts)
    own = keys - set(load_texts("en").texts)
    said = set(SPOKEN.findall(source))
    assert len(said) > 40
    assert [key for key in said if not any(one == key or one.startswith(key) for one in keys)] == []
    quoted = set(re.findall(r"""["']([\w.]+)["']""", source))
    unused = {key for key in own if not SAID_BY_NAME.match(key) and not {key, key.rpartition(".")[2]} & quoted}
    assert unused == set()


# --- menus -------------------------------------------------------------------------------------------------------

MENUS = (
    ("deal", "bets", "top_up", "history", "statements", "rules", "leave"),
    ("close", "keep", "back"),
    ("keep_round", "back"),
    ("again", "give_up"),
    ("resume", "ignore"),
    ("older", "newer", "back"),
    ("verify", "back"),
    ("set_up", "more", "first", "refresh"),
    ("stand", "back"),
    ("take_over", "leave"),
    ("sit", "history", "leave"),
    ("place", "take_back", "bets", "message", "top_up", "history", "statements", "rules", "leave", "wait"),
)


@pytest.mark.parametrize("menu", MENUS)
def test_choices_of_one_menu_have_different_keys(words: Words, menu: tuple[str, ...]) -> None:
    keys = [words.choice(name, bets="", amount="").key for name in menu]
    assert len(set(keys)) == len(keys)
    assert all(len(key) == 1 and key.isascii() and key.islower() for key in keys)


def is_table_game(ruleset_id: str) -> bool:
    return load_ruleset(ruleset_id).table_only


@pytest.mark.parametrize("game", sorted(FAMILIES))
def test_decisions_have_different_keys_beside_leaving(words: Words, game: str) -> None:
    prefix = f"key.{game}."
    keys = [words.action(game, key.removeprefix(prefix)).key for key in words.texts if key.startswith(prefix)]
    keys += [words.choice("leave").key, words.choice("refresh").key]
    assert len(set(keys)) == len(keys) >= 4


@pytest.mark.parametrize("game", sorted({load_ruleset(one).family for one in SHIPPED_RULESETS if is_table_game(one)}))
def test_decisions_at_a_table_have_different_keys_beside_all_else(words: Words, game: str) -> None:
    prefix = f"key.{game}."
    keys = [words.action(game, key.removeprefix(prefix)).key for key in words.texts if key.startswith(prefix)]
    keys += [words.choice(name).key for name in ("message", "statements", "rules", "leave", "wait")]
    assert len(set(keys)) == len(keys) >= 4


def test_leaving_a_purchase_is_said_with_its_letter(words: Words) -> None:
    assert words.choice("leave").key == words("say.leave_word")
    assert f"{words('say.leave_word')} " in words("say.buy", amount="1")


# --- which language ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environment", "language"),
    [
        ({}, "en"),
        ({"LANG": "C.UTF-8"}, "en"),
        ({"LANG": "it_CH.UTF-8"}, "it"),
        ({"LANG": "de"}, "de"),
        ({"LANG": "fr_FR.UTF-8"}, "en"),
        ({"LANG": "de_DE", "LC_ALL": "it_IT.UTF-8"}, "it"),
        ({"LANG": "de_DE", "LC_MESSAGES": "C"}, "en"),
        ({"LANG": "it_IT", "LC_ALL": ""}, "it"),
        ({"LANG": "DE_de"}, "de"),
    ],
)
def test_the_language_of_the_environment(environment: dict[str, str], language: str) -> None:
    assert language_of(environment) == language


def test_a_refusal_in_words_with_its_reason_and_facts() -> None:
    words = load_words("de")
    metadata = {"limit": "10", "field": "bets.ante", "value": "1", "empty": ""}
    result = words.refusal("STAKE_BELOW_MINIMUM", "stake 1 is below", metadata)
    assert result == "der Einsatz liegt unter dem Minimum [STAKE_BELOW_MINIMUM field=bets.ante limit=10 value=1]"
    assert words.refusal("", "socket closed", {}, "UNAVAILABLE") == "socket closed [UNAVAILABLE]"
    assert words.refusal("NEW_REASON", "a newer server", {}) == "a newer server [NEW_REASON]"
