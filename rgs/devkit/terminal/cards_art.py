"""Cards and hands in a terminal: suit symbols in colour, or letters where only ASCII can be shown.

Takes cards as the contract has them ("As"); another text is a FormatError.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.text import Text

from rgs.core.cards import parse_card, suit_of

_SYMBOLS: Final = {"c": "♣", "d": "♦", "h": "♥", "s": "♠"}
_RED: Final = frozenset("dh")
_EDGES: Final = (("╭────╮", "│", "╰────╯"), ("+----+", "|", "+----+"))  # the second for ASCII
_BACK: Final = ("░░░░", "////")
CARD_ROWS: Final = 3


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
    """One card in a line: `10♥`, or `Th` in ASCII."""
    suit = suit_of(parse_card(card))
    rank = card[0].replace("T", "10")
    return Text(rank + (suit if plain else _SYMBOLS[suit]), "bold red" if suit in _RED else "bold")


def cards_text(cards: Sequence[str], places: int, *, plain: bool = False) -> Text:
    """Cards in a line, then a sign for each empty place up to `places`."""
    text = Text()
    for card in cards:
        text.append(card_text(card, plain=plain)).append(" ")
    return text.append(" ".join("-" if plain else "·" for _ in range(places - len(cards))), "dim")


def hand_text(name: str, cards: Sequence[str], *, plain: bool = False) -> Text:
    """The name of a hand, and the five cards that count."""
    text = Text(name, "bold").append("  ", "")
    for card in cards:
        text.append(card_text(card, plain=plain)).append(" ")
    return text


def _face(card: str, *, plain: bool) -> Text:
    text = card_text(card, plain=plain)
    text.pad_left(3 - len(text))
    text.pad_right(4 - len(text))
    return text


def format_elapsed(elapsed_ms: int) -> str:
    """`1:02:03`, in whole seconds."""
    minutes, seconds = divmod(elapsed_ms // 1000, 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}"
