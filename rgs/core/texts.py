"""What a player reads for the codes of the contract, in every language (F-7): one source for API, terminal and pages.

`text_data/<language>.toml` has a table for each kind of code: enums, rows of paytables, reasons, and for each game its
bets, decisions and rules in the game's own words: `vedi` is the check of Ultimate Texas Hold'em and the call of Casino
Hold'em. English is the reference: a language with other keys, or with other placeholders in a text, is refused when it
is loaded. Amounts, ids, times and codes are the same in every language; they are no texts.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from string import Formatter
from typing import Any, Final

from rgs.core.errors import FormatError, InvalidFieldError

LANGUAGES: Final = ("en", "it", "de")
REFERENCE: Final = LANGUAGES[0]


@dataclass(frozen=True, slots=True, eq=False)
class Texts:
    """The texts of one language by their dotted keys. There is one object for each language."""

    language: str
    texts: Mapping[str, str]

    def __call__(self, key: str, /, **values: object) -> str:
        """The text with its placeholders filled. KeyError if the text or a value is missing."""
        return self.texts[key].format(**values)

    def known(self, key: str, otherwise: str) -> str:
        """The text, or `otherwise` for a word of a newer server."""
        return self.texts.get(key, otherwise)

    def has(self, key: str) -> bool:
        """Whether the text exists."""
        return key in self.texts

    def table(self, name: str) -> dict[str, str]:
        """The texts of a table, such as `phase`, by their last names, as they stand in the file."""
        prefix = f"{name}."
        return {key.removeprefix(prefix): text for key, text in self.texts.items() if key.startswith(prefix)}

    # --- what belongs to a game ---------------------------------------------------------------------------------------

    def bet(self, family: str, bet: str) -> str:
        """The name of a bet in the game."""
        return self.known(f"game.{family}.bet.{bet}", bet)

    def rules(self, family: str, *, floor: str, after_fold: str) -> list[str]:
        """The rules of the game, sentence by sentence; empty for an unknown game.

        `floor` is what the dealer needs to qualify ("pair:4"), `after_fold` what becomes of a side bet then ("lost").
        """
        filled = {
            "floor": self.known(f"floor.{floor}", floor),
            "after_fold": self.known(f"game.{family}.after_fold.{after_fold}", after_fold),
        }
        return [text.format(**filled) for text in self.table(f"game.{family}.rule").values()]

    def return_name(self, family: str, bet: str, per: str) -> str:
        """The name of a return: of which bet ("main" for the game itself), per which stake ("initial stake")."""
        return self(
            "return.named",
            bet=self("return.main") if bet == "main" else self.bet(family, bet),
            per=self.known(f"return.{per.replace(' ', '_')}", per),
        )


@cache
def load_texts(language: str) -> Texts:
    """The texts of one of LANGUAGES, compared with the reference. InvalidFieldError, FormatError."""
    check_language(language)
    texts = parse_texts((resources.files("rgs.core") / "text_data" / f"{language}.toml").read_text(encoding="utf-8"))
    if language != REFERENCE:
        verify_texts(texts, load_texts(REFERENCE).texts)
    return Texts(language, texts)


def check_language(language: str) -> str:
    """One of LANGUAGES. InvalidFieldError, which names them all."""
    if language not in LANGUAGES:
        known = ", ".join(LANGUAGES)
        raise InvalidFieldError(
            f"there are no texts in language {language[:40]!r}; languages: {known}",
            field="language",
            limit=known,
            value=language[:40],
        )
    return language


def parse_texts(document: str) -> dict[str, str]:
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
    return texts


def verify_texts(texts: Mapping[str, str], reference: Mapping[str, str]) -> None:
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
