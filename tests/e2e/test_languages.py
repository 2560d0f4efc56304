"""`rgs play` in every language against a real server: a whole session, the history, a proof, and no English left.

What may stand in every language alike (names of games, statements and rulesets, ids, amounts, reasons) is taken out;
what is left must not hold one word that English says and this language does not.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rgs.cli.options import run_app
from rgs.cli.play import app
from rgs.core.texts import LANGUAGES, REFERENCE
from rgs.devkit.client import Client
from rgs.devkit.terminal.i18n import Words, load_words
from rgs.v1.history_pb2 import GetRoundRecordResponse, RoundRecord
from tests.support.process.served import Served, rgs_here, serving

GAMES = {"uth-solo": "ultimate_texas_holdem", "casino-holdem": "casino_holdem"}
OTHERS = [language for language in LANGUAGES if language != REFERENCE]
ALIKE = re.compile(
    r"Ultimate Texas Hold'em|Casino Hold'em|uth-\w+|casino-holdem|\b[a-z]+_[a-z_]+\b|\[[A-Z][A-Z_]+ [^\]]*\]"
    r"|\d+ byte\b|node\S+|\bdemo\b"
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("languages")) as one:
        yield one


def script(words: Words, game: str) -> list[str]:
    """A session as a person would play it in any language: refusals, a round, every page, the proof, the end."""

    def key(name: str) -> str:
        return words.choice(name, bets="", amount="").key

    decisions = ("CHECK", "CHECK", "FOLD") if game == "uth-solo" else ("CALL",)
    round_ = [words.action(GAMES[game], name).key for name in decisions]
    bets = [key("bets"), "5", "1"]
    pages = [key("statements"), key("back"), key("rules"), key("back")]
    past = [key("history"), "1", key("verify"), key("back"), key("back")]
    refused = [key("bets"), "9999", "", key("deal"), key("bets"), "x", "?"]
    end = [key("leave"), key("keep")]
    again = [key("resume"), key("leave"), key("close")]
    return ["2000", "50", *bets, key("deal"), *round_, *pages, *past, *refused, *end, "\0", *again]


def play(served: Served, language: str, game: str) -> str:
    said = ""
    first, _, second = "\n".join(script(load_words(language), game)).partition("\n\0\n")
    for keys in (first, second):
        arguments = ("--home", str(served.home), "--server", served.address, "--player", f"{language}.{game}")
        done = rgs_here("play", *arguments, "--game", game, "--language", language, said=keys + "\n")
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stderr == ""
        said += done.stdout
    return said


def vocabulary(text: str) -> set[str]:
    """The words of a text, of three letters or more, without what is alike everywhere."""
    spoken = re.sub(r"\S*\d\S*", " ", ALIKE.sub(" ", text))  # ids and hashes hold any letters, beside their digits
    return {word.lower() for word in re.findall(r"[^\W\d_]{3,}", spoken)}


def vocabulary_of(words: Words) -> set[str]:
    """Everything that the language's own texts may say."""
    return vocabulary(" ".join(re.sub(r"\{\w+\}", " ", text) for text in words.texts.values()))


@pytest.mark.slow
@pytest.mark.parametrize("game", sorted(GAMES))
@pytest.mark.parametrize("language", OTHERS)
def test_a_whole_session_says_nothing_in_english(served: Served, language: str, game: str) -> None:
    said = play(served, language, game)
    words = load_words(language)
    english = vocabulary_of(load_words(REFERENCE)) | {"the", "round", "stake", "maximum", "minimum", "above", "below"}
    left = vocabulary(said) & english - vocabulary_of(words)
    assert left == set()
    for name in ("head.session_id", "head.participation_id", "felt.commitment", "proof.do_not_play"):
        assert (words.texts[name] in said) == (name != "proof.do_not_play")
    flat = " ".join(said.split())
    assert words("say.closed", bought="50.00 EUR", staked="", returned="", back="").partition(",")[0] in flat
    assert flat.count("[PARTICIPATION_CAP field=amount_minor") == 1
    assert flat.count("[STAKE_ABOVE_MAXIMUM field=") == 1
    assert words("proof.step.shown") in flat
    assert words("proof.computed") in flat


def test_the_search_for_english_finds_some(served: Served) -> None:
    """The test above would see one English line among the others: here are all of them."""
    said = play(served, "en", "casino-holdem")
    italian = vocabulary_of(load_words("it"))
    assert len(vocabulary(said) & vocabulary_of(load_words("en")) - italian) > 100
    assert "Hai" not in said


def test_each_game_has_its_own_words(served: Served) -> None:
    uth, holdem = (play(served, "it", game) for game in ("uth-solo", "casino-holdem"))
    assert "[v] vedi   [4] play 4x 20.00 EUR   [3] play 3x 15.00 EUR" in uth
    assert re.search(r"\[v\] vedi +\[2\] play 2x 10\.00 EUR", uth)
    assert "Puntata Antecedente" not in uth
    assert "[v] vedi 10.00 EUR   [l] lascia" in holdem
    assert "Puntata Antecedente 5.00 EUR" in holdem
    assert "Hai lasciato" in uth


def test_the_language_of_the_environment_is_taken(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LC_ALL", "LC_MESSAGES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LANG", "de_CH.UTF-8")
    arguments = ("--home", str(served.home), "--server", served.address, "--player", "env", "--game", "uth-solo")
    assert "Teilnahmerecht" in rgs_here("play", *arguments, said="q\nj\n").stdout
    done = rgs_here("play", *arguments, "--language", "fr")
    assert done.returncode == 2
    assert (
        done.stderr == "rgs: language must be one of en it de [INVALID_FIELD field=language limit=en it de value=fr]\n"
    )


def test_an_error_of_the_server_is_said_in_the_language(served: Served) -> None:
    arguments = ("--home", str(served.home), "--server", served.address, "--player", "err", "--game", "uth-seven-box")
    done = rgs_here("play", *arguments, "--language", "it")
    assert done.returncode == 1
    assert done.stderr.startswith("rgs: il gioco è disponibile solo ai tavoli [TABLE_ONLY")


# --- the history -------------------------------------------------------------------------------------------------


def test_the_history_is_paged_and_each_round_is_proved(served: Served) -> None:
    rounds = [key for _ in range(11) for key in ("d", "f")]
    arguments = ("--home", str(served.home), "--server", served.address, "--player", "pages")
    keys = ["50", *rounds, "q", "y"]
    assert rgs_here("play", *arguments, "--game", "casino-holdem", said="\n".join([*keys, ""])).returncode == 0
    seen = rgs_here("play", *arguments, "--history", said="o\n2\nv\nb\nn\n1\nb\nb\n")
    assert seen.returncode == 0
    said = seen.stdout
    assert [*re.findall(r"page (\d)", said)] == ["1", "2", "2", "1", "1"]
    assert said.count("✓ what the history shows is what was signed") == 1
    assert "flop: fold" in said
    assert re.search(r"played \d{4}-\d\d-\d\d #[\d:-]+ +casino-holdem +settled", said)
    first = said.index("page 1")
    assert len(re.findall(r"^ +\d +\d{4}-", said[:first], re.MULTILINE)) == 9
    assert len(re.findall(r"^ +\d +\d{4}-", said[first : said.index("page 2")], re.MULTILINE)) == 2
    assert "no round" not in said
    nobody = rgs_here("play", *arguments[:-1], "nobody", "--history", said="b\n")
    assert "No round has ended yet." in nobody.stdout


# --- lied to -----------------------------------------------------------------------------------------------------


def _bend_hole_cards(record: RoundRecord) -> None:
    cards = record.round.hole_cards
    cards[0] = next(card for card in ("2c", "3c", "4c") if card not in cards)


def _bend_list(record: RoundRecord) -> None:
    record.summary.returned_minor += 1


def _bend_commitment(record: RoundRecord) -> None:
    record.round.commitment = bytes(32)


def _swap_statements(record: RoundRecord) -> None:
    record.opening, record.final = record.final, record.opening


def _name_another_round(record: RoundRecord) -> None:
    record.summary.round_id = "01K4ZQ7M2J8T5V9X3B6C1D0EFG"


@pytest.mark.parametrize(
    ("lie", "said"),
    [
        (_bend_hole_cards, "hole_cards was shown as"),
        (_bend_list, "returned of the list was shown as"),
        (_bend_commitment, "commitment was shown as 0000"),
        (_swap_statements, "the round_opening of the history differs from the session's"),
        (_name_another_round, "the session has no round_opening of round 01K4ZQ7M2J8T5V9X3B6C1D0EFG"),
    ],
)
def test_a_history_that_lies_is_not_verified(
    served: Served,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    lie: Callable[[RoundRecord], None],
    said: str,
) -> None:
    arguments = ["--home", str(served.home), "--server", served.address, "--player", f"lied.{lie.__name__}"]
    played = rgs_here("play", *arguments, "--game", "casino-holdem", said="50\nd\nf\nq\ny\n")
    assert played.returncode == 0
    original = Client.call

    def call(self: Client, method: Any, request: Any) -> Any:
        answer = original(self, method, request)
        if isinstance(answer, GetRoundRecordResponse):
            lie(answer.records[0])
        return answer

    monkeypatch.setattr(Client, "call", call)
    monkeypatch.setattr(sys, "stdin", io.StringIO("1\np\nz\nz\n"))
    assert run_app(app, "play", [*arguments, "--history", "--language", "de"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert f"✗ PRÜFUNG NICHT BESTANDEN, Schritt 7 Sitzung: {said}" in out
    assert load_words("de")("proof.step.shown") not in out
