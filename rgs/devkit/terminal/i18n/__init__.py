"""What the terminal client says, in three languages, as data: `en.toml`, `it.toml`, `de.toml` (RULEBOOK F-7).

The words of a game are its own: `vedi` is the check of Ultimate Texas Hold'em (S2) and the call of Casino Hold'em (S4).
English is the reference: a language that lacks a key, has one more, or other placeholders in a text is refused when it
is loaded. Refuses a text that is not there (a misspelt key is a bug, not an empty line), and touches no amount, id,
time or reason: these read the same in every language. What the house's own checks say of a defect stays as they say it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from string import Formatter
from typing import Any, Final

from rgs.core.errors import FormatError

LANGUAGES: Final = ("en", "it", "de")
REFERENCE: Final = LANGUAGES[0]
_FIRST: Final = ("field", "limit", "value")


@dataclass(frozen=True, slots=True)
class Choice:
    """A key and what it does."""

    key: str
    text: str

    def __str__(self) -> str:
        return f"[{self.key}] {self.text}"


class Words:
    """The texts of one language."""

    def __init__(self, language: str, texts: Mapping[str, str]) -> None:
        self.language = language
        self.texts = texts

    def __call__(self, key: str, /, **values: object) -> str:
        """The text with its placeholders filled; KeyError where there is no such text or a value is missing."""
        return self.texts[key].format(**values)

    def known(self, key: str, otherwise: str) -> str:
        """The text, or `otherwise` for what a newer server may say."""
        return self.texts.get(key, otherwise)

    def choice(self, name: str, **values: object) -> Choice:
        """One of `choice.*`."""
        return _choice(self(f"choice.{name}", **values))

    def has(self, key: str) -> bool:
        """Whether there is such a text."""
        return key in self.texts

    # --- what belongs to a game ---------------------------------------------------------------------------------------

    def bet(self, game: str, bet: str) -> str:
        """How the game calls a bet."""
        return self.known(f"game.{game}.bet.{bet}", bet)

    def action(self, game: str, action: str) -> Choice:
        """Key and word of a decision (`PLAY_4X`) in a game."""
        return _choice(self(f"game.{game}.action.{action}"))

    def rules(self, game: str, *, floor: str, after_fold: str) -> list[str]:
        """How the game goes, sentence by sentence; none for a game that is not known here."""
        prefix = f"game.{game}.rule."
        filled = {
            "floor": self.known(f"floor.{floor}", floor),
            "after_fold": self.known(f"game.{game}.after_fold.{after_fold}", after_fold),
        }
        return [text.format(**filled) for key, text in self.texts.items() if key.startswith(prefix)]

    # --- refusals -----------------------------------------------------------------------------------------------------

    def refusal(self, reason: str, message: str, metadata: Mapping[str, str], code: str = "") -> str:
        """A refusal of the server in this language: its reason in words, then the reason itself with its facts.

        Where a reason is not known here, or there is none, the server's own message stands.
        """
        names = [*(name for name in _FIRST if name in metadata), *sorted(metadata.keys() - set(_FIRST))]
        facts = [f"{name}={metadata[name]}" for name in names if metadata[name]]
        return f"{self.known(f'error.{reason}', message)} [{' '.join([reason or code, *facts])}]"


def language_of(environment: Mapping[str, str]) -> str:
    """The language that the environment asks for (LC_ALL, LC_MESSAGES, LANG: the first that is set), else English."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if value := environment.get(name):
            language = value.replace("-", "_").partition("_")[0].partition(".")[0].lower()
            return language if language in LANGUAGES else REFERENCE
    return REFERENCE


@cache
def load_words(language: str) -> Words:
    """The words of one of LANGUAGES, compared with the reference; FormatError where they differ in form."""
    texts = parse_words(_read(language))
    if language != REFERENCE:
        verify_words(texts, load_words(REFERENCE).texts)
    return Words(language, texts)


def parse_words(document: str) -> dict[str, str]:
    """The texts of a TOML document by their dotted keys. FormatError."""
    try:
        tables = tomllib.loads(document)
    except tomllib.TOMLDecodeError as error:
        raise FormatError(f"the words are no TOML: {error}") from None
    texts: dict[str, str] = {}
    _flatten("", tables, texts)
    for key, text in texts.items():
        if not text or text != text.strip():
            raise FormatError(f"{key} is empty, or begins or ends with a space", field=key)
        if (key.startswith("choice.") or ".action." in key) and text[1:2] != " ":
            raise FormatError(f"{key} does not begin with one key and a space", field=key)
    return texts


def verify_words(texts: Mapping[str, str], reference: Mapping[str, str]) -> None:
    """FormatError unless both have the same keys in the same order, and each text the same placeholders."""
    if list(texts) != list(reference):
        different = sorted(set(texts) ^ set(reference)) or ["their order"]
        raise FormatError(f"the words differ from the reference in {', '.join(different[:5])}", field=different[0])
    for key, text in texts.items():
        if placeholders(text) != placeholders(reference[key]):
            raise FormatError(f"{key} has other placeholders than the reference", field=key)


def placeholders(text: str) -> frozenset[str]:
    """The names that a text wants filled. FormatError for a text that is no format."""
    try:
        return frozenset(name for _, name, _, _ in Formatter().parse(text) if name is not None)
    except ValueError as error:
        raise FormatError(f"{text!r} is no text with placeholders: {error}") from None


def _flatten(prefix: str, table: Mapping[str, Any], texts: dict[str, str]) -> None:
    for name, value in table.items():
        key = f"{prefix}{name}"
        if isinstance(value, str):
            texts[key] = value
        elif isinstance(value, dict):
            _flatten(f"{key}.", value, texts)
        else:
            raise FormatError(f"{key} is no text", field=key)


def _choice(text: str) -> Choice:
    key, _, what = text.partition(" ")
    return Choice(key, what)


def _read(language: str) -> str:
    if language not in LANGUAGES:
        raise FormatError(f"no words in {language!r}; there are {', '.join(LANGUAGES)}", field="language")
    return (resources.files(__name__) / f"{language}.toml").read_text(encoding="utf-8")
