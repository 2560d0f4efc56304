"""Looks for the secrets of a deal in bytes: salt and transcript in every common dress, undealt cards as texts."""

from __future__ import annotations

import base64
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rgs.core.cards import format_card
from rng.shuffle import transcript_to_deck

_HEX = re.compile(rb"[0-9a-f]{32,}")
"""Hashes: among the digits of many, "2c", "9d" and "5c" stand behind one another by chance."""
_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]{40,}={0,2}")
_APART = (b" ", b",", b", ", b'","', b'", "', b"', '", b"\n", b"|")


@dataclass(frozen=True)
class Secret:
    """What a draw must not tell before its round has ended; `hidden` are the cards not dealt yet, in deck order."""

    salt: bytes
    transcript: bytes
    hidden: tuple[int, ...]


def secret_of(salt: bytes, transcript: bytes, shown: int) -> Secret:
    """The secret of a solo deal without burns: `shown` cards of the board lie open, the dealer's do not."""
    deck = transcript_to_deck(transcript)
    return Secret(salt, transcript, (*deck[2:4], *deck[4 + shown :]))


def dressed(secret: bytes) -> Iterator[tuple[str, bytes]]:
    """The first and the last 12 bytes of a secret as they might stand somewhere."""
    for part in (secret[:12], secret[-12:]):
        yield "raw", part
        yield "hex", part.hex().encode()
        yield "HEX", part.hex().upper().encode()
        yield "numbers", ", ".join(map(str, part)).encode()
        yield "repr", repr(part)[2:-1].encode()
        for offset in range(3):
            inner = base64.b64encode(bytes(offset) + part)[4 if offset else 0 : 16]
            yield "base64", inner[:12]


def cards(hidden: Sequence[int]) -> Iterator[tuple[str, re.Pattern[bytes]]]:
    """The dealer's two, and any four of the stock that follow one another."""
    texts = [format_card(card).encode() for card in hidden]
    apart = b"|".join(map(re.escape, _APART))
    yield "dealer's cards", re.compile(texts[0] + rb"(?:" + apart + rb"|[\x00-\x7f]\x02)" + texts[1], re.DOTALL)
    for four in zip(texts[2:7], texts[3:8], texts[4:9], texts[5:10], strict=True):  # three stand in base64 by chance
        yield "stock", re.compile(rb".{0,6}".join(four), re.DOTALL)
    numbers = hidden[2:10]
    yield "stock", re.compile(re.escape(bytes(numbers)))
    yield "stock", re.compile(re.escape(", ".join(map(str, numbers)).encode()))
    yield "stock", re.compile(re.escape(",".join(map(str, numbers)).encode()))


def unpacked(data: bytes) -> bytes:
    """The data, and behind it whatever in it is base64."""
    parts = [data]
    for match in _BASE64.finditer(data):
        text = match[0].rstrip(b"=").replace(b"-", b"+").replace(b"_", b"/")
        for offset in range(4):
            piece = text[offset:]
            parts.append(base64.b64decode(piece[: len(piece) // 4 * 4]))
    return b"\n".join(parts)


def leaks(secret: Secret, places: dict[str, bytes], *, other_rounds: Collection[str] = ()) -> list[str]:
    """Where something of the secret stands. `other_rounds` are places where other rounds may show the same cards."""
    found = []
    for place, data in places.items():
        whole = unpacked(data)
        for name, part in (("salt", secret.salt), ("transcript", secret.transcript)):
            found += [f"{place}: {name} as {dress}" for dress, text in dressed(part) if text in whole]
        if place not in other_rounds:
            texts = _HEX.sub(b"#", whole)
            found += [f"{place}: {name}" for name, pattern in cards(secret.hidden) if pattern.search(texts)]
    return found


def files(folder: Path) -> dict[str, bytes]:
    """Every file of a server, write-ahead logs included."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
