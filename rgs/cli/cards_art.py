"""Cards, hands and money as a terminal shows them: suit symbols in colour, or plain letters where there are none.

Takes the texts of the contract ("As", "full_house", minor units). Refuses to write an amount in decimals in a currency
whose decimals it does not know: it shows minor units then, and says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.text import Text

from rgs.core.cards import parse_card, suit_of

_SYMBOLS: Final = {"c": "♣", "d": "♦", "h": "♥", "s": "♠"}
_RED: Final = frozenset("dh")
_EDGES: Final = (("╭────╮", "│", "╰────╯"), ("+----+", "|", "+----+"))  # and where only ASCII can be shown
_BACK: Final = ("░░░░", "////")
_CENTS: Final = frozenset({"CHF", "EUR", "GBP", "USD"})
"""Currencies of a hundred minor units; of others the decimals are not known here."""
CARD_ROWS: Final = 3
_DIGITS_MAX: Final = 15


def draw_cards(cards: Sequence[str], places: int, *, face_down: bool = False, plain: bool = False) -> list[Text]:
    """Three rows of text: the cards, then empty places (or backs) up to `places`."""
    top, side, bottom = _EDGES[plain]
    rows = [Text() for _ in range(CARD_ROWS)]
    for place in range(places):
        shown = place < len(cards)
        edge = "" if shown else "dim"
        face = _face(cards[place], plain=plain) if shown else Text(_BACK[plain] if face_down else "    ", "dim")
        for row, text in zip(
            rows, (Text(top, edge), Text(side, edge) + face + Text(side, edge), Text(bottom, edge)), strict=True
        ):
            row.append(text).append(" ")
    return rows


def card_text(card: str, *, plain: bool = False) -> Text:
    """One card in a line: `10♥`, `As` where only letters can be shown."""
    suit = suit_of(parse_card(card))
    rank = card[0].replace("T", "10")
    return Text(rank + (suit if plain else _SYMBOLS[suit]), "bold red" if suit in _RED else "bold")


def hand_text(name: str, cards: Sequence[str], *, plain: bool = False) -> Text:
    """What a hand is called, with the five cards that count."""
    text = Text(name, "bold").append("  ", "")
    for card in cards:
        text.append(card_text(card, plain=plain)).append(" ")
    return text


def _face(card: str, *, plain: bool) -> Text:
    text = card_text(card, plain=plain)
    text.pad_left(3 - len(text))
    text.pad_right(4 - len(text))
    return text


def format_amount(amount_minor: int, currency: str, *, signed: bool = False) -> str:
    """`1,234.50 EUR`; `+` before a gain where `signed`."""
    sign = "-" if amount_minor < 0 else "+" if signed and amount_minor else ""
    if currency not in _CENTS:
        return f"{sign}{abs(amount_minor)} minor units of {currency}"
    whole, cents = divmod(abs(amount_minor), 100)
    return f"{sign}{whole:,}.{cents:02d} {currency}"


def typed_amount(amount_minor: int, currency: str) -> str:
    """An amount as a person would type it. Inverse of `parse_amount`."""
    return f"{amount_minor // 100}.{amount_minor % 100:02d}" if currency in _CENTS else str(amount_minor)


def parse_amount(text: str, currency: str) -> int | None:
    """Minor units of what a person types (`5`, `5.5`, `5,50`); None if it is no amount, or finer than the currency."""
    whole, _, part = text.strip().replace(",", ".").partition(".")
    digits = whole + part
    if not (whole and digits.isascii() and digits.isdecimal() and len(whole) <= _DIGITS_MAX):
        return None
    if currency not in _CENTS:
        return None if part else int(whole)
    return None if len(part) > 2 else int(whole) * 100 + int(part.ljust(2, "0"))


def format_elapsed(elapsed_ms: int) -> str:
    """`1:02:03`, in whole seconds."""
    minutes, seconds = divmod(elapsed_ms // 1000, 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}"
