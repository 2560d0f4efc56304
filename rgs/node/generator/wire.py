"""What server and generator process say to each other over their local socket.

One connection is one generator, for one instance. A message is two bytes of length (big-endian, 1 to MESSAGE_MAX), one
byte of kind, and its fields. Each request gets one answer, in the order of the requests:

    HELLO     version, instance                      BEGUN     version, SHA-256 of the files of `rng`
    DRAW                                             DRAWN     draw number, reseed counter, instance, transcript
    SELFTEST                                         PASSED
    CLOSE                                            ENDED     draws made, kind, reason

ENDED also answers a request after a failure, and is the last message then. REFUSED answers a HELLO that begins nothing,
with a code. Numbers have eight bytes, texts are ASCII with one byte of length before them. Anything else is a
`WireError`, which names lengths and kinds and never content.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

from rgs.integrity.manifest import Manifest
from rng.generator import DRAW_REQUEST_BYTES, DRAW_REQUESTS_MAX, Draw, LifeEvent
from rng.shuffle import DECK_SIZE

VERSION: Final = 1
LENGTH_BYTES: Final = 2
MESSAGE_MAX: Final = 2_048
"""More than a draw of DRAW_REQUESTS_MAX requests, which is the longest message."""

HELLO, DRAW, SELFTEST, CLOSE = b"H", b"D", b"S", b"C"
BEGUN, DRAWN, PASSED, ENDED, REFUSED = b"b", b"d", b"p", b"e", b"r"

_NUMBER_BYTES: Final = 8
_HASH_BYTES: Final = 32
_CODE: Final = re.compile(r"[A-Z][A-Z0-9_]{0,63}", re.ASCII)
_INSTANCE: Final = re.compile(r"[!-~]{1,128}", re.ASCII)


class WireError(Exception):
    """A message that is not exactly in its form."""


def rng_sha256(manifest: Manifest) -> bytes:
    """One hash over the files of `rng`: server and generator process must run the same ones."""
    lines = [f"{entry.sha256}  {entry.path}\n" for entry in manifest.entries if entry.path.startswith("rng/")]
    return hashlib.sha256("".join(lines).encode("ascii")).digest()


# --- messages -----------------------------------------------------------------------------------------------------


def framed(message: bytes) -> bytes:
    """The message with its length before it."""
    return len(message).to_bytes(LENGTH_BYTES, "big") + message


def length_of(head: bytes) -> int:
    """The length that the first two bytes announce. WireError."""
    length = int.from_bytes(head, "big")
    if not 1 <= length <= MESSAGE_MAX:
        raise WireError(f"a message of {length} bytes, 1 to {MESSAGE_MAX} are allowed")
    return length


def format_hello(instance: str) -> bytes:
    """The first request of a connection."""
    return HELLO + bytes([VERSION]) + _text(instance)


def format_begun(rng_hash: bytes) -> bytes:
    """The answer to HELLO."""
    return BEGUN + bytes([VERSION]) + rng_hash


def format_drawn(draw: Draw) -> bytes:
    """The answer to DRAW."""
    numbers = (draw.draw_no.to_bytes(_NUMBER_BYTES, "big"), draw.reseed_counter.to_bytes(_NUMBER_BYTES, "big"))
    return b"".join((DRAWN, *numbers, _text(draw.instance), draw.transcript))


def format_ended(event: LifeEvent) -> bytes:
    """The answer to CLOSE, and to whatever comes after a failure."""
    return ENDED + event.draws.to_bytes(_NUMBER_BYTES, "big") + _text(event.kind) + _text(event.reason)


def format_refused(code: str) -> bytes:
    """The answer to a HELLO that begins nothing."""
    return REFUSED + _text(code)


def parse_hello(message: bytes) -> str:
    """The instance that HELLO names. WireError."""
    fields = _Fields(message, HELLO)
    fields.verify_version()
    return fields.text(_INSTANCE, last=True)


def parse_begun(message: bytes) -> bytes:
    """The hash that BEGUN names. WireError."""
    fields = _Fields(message, BEGUN)
    fields.verify_version()
    return fields.take(_HASH_BYTES, last=True)


def parse_drawn(message: bytes) -> Draw:
    """The draw. WireError. Whether the transcript is one of a shuffle is not looked at here."""
    fields = _Fields(message, DRAWN)
    draw_no, reseeds = fields.number(), fields.number()
    instance, transcript = fields.text(_INSTANCE), fields.rest()
    most = DRAW_REQUEST_BYTES * DRAW_REQUESTS_MAX
    if not DECK_SIZE - 1 <= len(transcript) <= most:
        raise WireError(f"a transcript of {len(transcript)} bytes, {DECK_SIZE - 1} to {most} are possible")
    return Draw(instance, draw_no, reseeds, transcript, len(transcript) - (DECK_SIZE - 1))


def parse_ended(message: bytes, instance: str) -> LifeEvent:
    """How the generator of `instance` ended. WireError."""
    fields = _Fields(message, ENDED)
    draws, kind = fields.number(), fields.text(re.compile("failed|uninstantiated"))
    return LifeEvent(kind, instance, draws, fields.text(_CODE, last=True))


def parse_refused(message: bytes) -> str:
    """The code of a refusal. WireError."""
    return _Fields(message, REFUSED).text(_CODE, last=True)


def _text(text: str) -> bytes:
    return bytes([len(text)]) + text.encode("ascii")


class _Fields:
    """Reads the fields of one message, each within its bounds. WireError."""

    def __init__(self, message: bytes, kind: bytes) -> None:
        if message[:1] != kind:
            raise WireError(f"a message of kind {message[:1].hex()} where {kind.hex()} was due")
        self._message = message
        self._at = 1

    def take(self, count: int, *, last: bool = False) -> bytes:
        end = self._at + count
        if len(self._message) < end or (last and len(self._message) != end):
            raise WireError(f"a message of {len(self._message)} bytes that its fields do not fill")
        found = self._message[self._at : end]
        self._at = end
        return found

    def rest(self) -> bytes:
        return self.take(len(self._message) - self._at)

    def number(self) -> int:
        return int.from_bytes(self.take(_NUMBER_BYTES), "big")

    def text(self, form: re.Pattern[str], *, last: bool = False) -> str:
        text = self.take(self.take(1)[0], last=last).decode("latin-1")
        if form.fullmatch(text) is None:
            raise WireError(f"a text of {len(text)} characters that is not in its form")
        return text

    def verify_version(self) -> None:
        version = self.take(1)[0]
        if version != VERSION:
            raise WireError(f"version {version} of this wire, {VERSION} is known")
