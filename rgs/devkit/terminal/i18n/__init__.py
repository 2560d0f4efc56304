"""The words of the terminal client: the texts of the contract's codes (`rgs.core.texts`), and its own screens and keys.

`en.toml`, `it.toml` and `de.toml` here have what only the terminal says. `key.<game>` has the key of each decision; its
word is in the texts. English is the reference: a language with other keys, or with other placeholders in a text, is
refused when it is loaded. A missing text is a KeyError.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final

from rgs.core.errors import FormatError
from rgs.core.texts import LANGUAGES, REFERENCE, Texts, load_texts, parse_texts, verify_texts

_FIRST: Final = ("field", "limit", "value")


@dataclass(frozen=True, slots=True)
class Choice:
    """A key and what it does."""

    key: str
    text: str

    def __str__(self) -> str:
        return f"[{self.key}] {self.text}"


@dataclass(frozen=True, slots=True, eq=False)
class Words(Texts):
    """The texts of one language, those of the terminal among them."""

    def choice(self, name: str, **values: object) -> Choice:
        """One of `choice.*`."""
        key, _, what = self(f"choice.{name}", **values).partition(" ")
        return Choice(key, what)

    def action(self, family: str, action: str) -> Choice:
        """Key and word of a decision (`PLAY_4X`) in a game."""
        return Choice(self(f"key.{family}.{action}"), self(f"game.{family}.action.{action}"))

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
    """The words of one of LANGUAGES, compared with the reference. InvalidFieldError, FormatError."""
    shared = load_texts(language).texts
    own = parse_words((resources.files(__name__) / f"{language}.toml").read_text(encoding="utf-8"))
    if language != REFERENCE:
        verify_texts({**shared, **own}, load_words(REFERENCE).texts)
    if both := sorted(shared.keys() & own.keys()):
        raise FormatError(f"{both[0]} stands in the texts and in those of the terminal", field=both[0])
    return Words(language, {**shared, **own})


def parse_words(document: str) -> dict[str, str]:
    """The terminal's own texts by their dotted keys. FormatError."""
    texts = parse_texts(document)
    for key, text in texts.items():
        if key.startswith("choice.") and text[1:2] != " ":
            raise FormatError(f"{key} must begin with one key and a space", field=key)
        if key.startswith("key.") and len(text) != 1:
            raise FormatError(f"{key} must be one key", field=key)
    return texts
