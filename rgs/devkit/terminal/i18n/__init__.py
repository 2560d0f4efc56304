"""The texts of the terminal client in three languages: `en.toml`, `it.toml`, `de.toml` (F-7, three languages).

Each game has its own words: `vedi` is the check of Ultimate Texas Hold'em and the call of Casino Hold'em. English is
the reference: a language with other keys, or with other placeholders in a text, is refused when it is loaded. A missing
text is a KeyError. Amounts, ids, times, reasons and the errors of checks are the same in every language.
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


@dataclass(frozen=True, slots=True)
class Words:
    """The texts of one language."""

    language: str
    texts: Mapping[str, str]

    def __call__(self, key: str, /, **values: object) -> str:
        """The text with its placeholders filled. KeyError if the text or a value is missing."""
        return self.texts[key].format(**values)

    def known(self, key: str, otherwise: str) -> str:
        """The text, or `otherwise` for a word of a newer server."""
        return self.texts.get(key, otherwise)

    def choice(self, name: str, **values: object) -> Choice:
        """One of `choice.*`."""
        return _choice(self(f"choice.{name}", **values))

    def has(self, key: str) -> bool:
        """Whether the text exists."""
        return key in self.texts

    # --- what belongs to a game ---------------------------------------------------------------------------------------

    def bet(self, family: str, bet: str) -> str:
        """The name of a bet in the game."""
        return self.known(f"game.{family}.bet.{bet}", bet)

    def action(self, family: str, action: str) -> Choice:
        """Key and word of a decision (`PLAY_4X`) in a game."""
        return _choice(self(f"game.{family}.action.{action}"))

    def rules(self, family: str, *, floor: str, after_fold: str) -> list[str]:
        """The rules of the game, sentence by sentence; empty for an unknown game."""
        prefix = f"game.{family}.rule."
        filled = {
            "floor": self.known(f"floor.{floor}", floor),
            "after_fold": self.known(f"game.{family}.after_fold.{after_fold}", after_fold),
        }
        return [text.format(**filled) for key, text in self.texts.items() if key.startswith(prefix)]

    # --- refusals -----------------------------------------------------------------------------------------------------

    def refusal(self, reason: str, message: str, metadata: Mapping[str, str], code: str = "") -> str:
        """A refusal of the server: its text in this language, then the reason with its facts.

        A reason without a text has the server's own message.
        """
        names = [*(name for name in _FIRST if name in metadata), *sorted(metadata.keys() - set(_FIRST))]
        facts = [f"{name}={metadata[name]}" for name in names if metadata[name]]
        return f"{self.known(f'error.{reason}', message)} [{' '.join([reason or code, *facts])}]"


def language_of(environment: Mapping[str, str]) -> str:
    """The language of the environment (the first of LC_ALL, LC_MESSAGES, LANG that is set), else English."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if value := environment.get(name):
            language = value.replace("-", "_").partition("_")[0].partition(".")[0].lower()
            return language if language in LANGUAGES else REFERENCE
    return REFERENCE


@cache
def load_words(language: str) -> Words:
    """The texts of one of LANGUAGES, compared with the reference. FormatError."""
    texts = parse_words(_read(language))
    if language != REFERENCE:
        verify_words(texts, load_words(REFERENCE).texts)
    return Words(language, texts)


def parse_words(document: str) -> dict[str, str]:
    """The texts of a TOML document by their dotted keys. FormatError."""
    try:
        tables = tomllib.loads(document)
    except tomllib.TOMLDecodeError as error:
        raise FormatError(f"cannot parse the texts as TOML: {error}") from None
    texts: dict[str, str] = {}
    _flatten("", tables, texts)
    for key, text in texts.items():
        if not text or text != text.strip():
            raise FormatError(f"{key} is empty, or begins or ends with a space", field=key)
        if (key.startswith("choice.") or ".action." in key) and text[1:2] != " ":
            raise FormatError(f"{key} must begin with one key and a space", field=key)
    return texts


def verify_words(texts: Mapping[str, str], reference: Mapping[str, str]) -> None:
    """FormatError unless both have the same keys in the same order, and each text the same placeholders."""
    if list(texts) != list(reference):
        different = sorted(set(texts) ^ set(reference)) or ["their order"]
        raise FormatError(f"the texts differ from the reference in {', '.join(different[:5])}", field=different[0])
    for key, text in texts.items():
        if placeholders(text) != placeholders(reference[key]):
            raise FormatError(f"{key} has other placeholders than the reference", field=key)


def placeholders(text: str) -> frozenset[str]:
    """The names of the placeholders in a text. FormatError."""
    try:
        return frozenset(name for _, name, _, _ in Formatter().parse(text) if name is not None)
    except ValueError as error:
        raise FormatError(f"cannot parse the placeholders of {text!r}: {error}") from None


def _flatten(prefix: str, table: Mapping[str, Any], texts: dict[str, str]) -> None:
    for name, value in table.items():
        key = f"{prefix}{name}"
        if isinstance(value, str):
            texts[key] = value
        elif isinstance(value, dict):
            _flatten(f"{key}.", value, texts)
        else:
            raise FormatError(f"{key} must be text", field=key)


def _choice(text: str) -> Choice:
    key, _, what = text.partition(" ")
    return Choice(key, what)


def _read(language: str) -> str:
    if language not in LANGUAGES:
        raise FormatError(f"unknown language {language!r}; known languages: {', '.join(LANGUAGES)}", field="language")
    return (resources.files(__name__) / f"{language}.toml").read_text(encoding="utf-8")
