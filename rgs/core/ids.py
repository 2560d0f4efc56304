"""Ids: ULIDs made by the server, request ids made by clients, game codes shown to players, ids of the regulator.

Random bytes and times come in as parameters.
"""

from __future__ import annotations

import hashlib
import re

from rgs.core.errors import FormatError, InvalidFieldError
from rgs.core.times import format_time_of_day

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}", re.ASCII)
_REFERENCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,63}", re.ASCII)

ULID_RANDOM_BYTES = 10
REGULATOR_ID_CHARACTERS = 16
REGULATOR_ID_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def format_ulid(time_ms: int, random: bytes) -> str:
    """A ULID, 26 characters: 48 bits of milliseconds, then the 10 random bytes. Ids of one process sort by time."""
    if len(random) != ULID_RANDOM_BYTES or not 0 <= time_ms < 1 << 48:
        raise FormatError(f"a ULID takes 48 bits of time and {ULID_RANDOM_BYTES} random bytes", value=time_ms)
    number = (time_ms << 80) | int.from_bytes(random, "big")
    return "".join([_CROCKFORD[(number >> shift) & 31] for shift in range(125, -1, -5)])


def format_request_id(time_ms: int, random: bytes) -> str:
    """A UUID that sorts by its time (RFC 9562, version 7): 48 bits of milliseconds, then the 10 random bytes but for
    the 6 bits of version and variant.

    >>> format_request_id(1_645_557_742_000, bytes(10))
    '017f22e2-79b0-7000-8000-000000000000'
    """
    if len(random) != ULID_RANDOM_BYTES or not 0 <= time_ms < 1 << 48:
        raise FormatError(f"a request id takes 48 bits of time and {ULID_RANDOM_BYTES} random bytes", value=time_ms)
    digits = bytearray(time_ms.to_bytes(6, "big") + random)
    digits[6] = digits[6] & 0x0F | 0x70
    digits[8] = digits[8] & 0x3F | 0x80
    text = digits.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def derive_ulid(domain: str, of: str) -> str:
    """The id that follows from a domain and the ULID `of`: its time, then the first bytes of SHA-256(domain || 00 ||
    of). It can always be computed again (docs/money.md 3).
    """
    time_ms = ulid_time_ms(of)
    if time_ms is None:
        raise FormatError("an id is derived from a ULID only", value=of[:40])
    digest = hashlib.sha256(f"{domain}\0{of}".encode("ascii")).digest()
    return format_ulid(time_ms, digest[:ULID_RANDOM_BYTES])


def opening_id(session_id: str) -> str:
    """The operation that opens the session."""
    return derive_ulid("rgs/open/v1", session_id)


def payout_id(participation_id: str) -> str:
    """The transaction that pays a participation out."""
    return derive_ulid("rgs/payout/v1", participation_id)


def return_id(round_id: str) -> str:
    """The transaction that credits what a round returns, in seamless mode."""
    return derive_ulid("rgs/return/v1", round_id)


def ulid_time_ms(text: str) -> int | None:
    """The milliseconds in a ULID, None for any other text. Inverse of `format_ulid` in its time.

    >>> ulid_time_ms(format_ulid(1_500, bytes(10)))
    1500
    """
    if _ULID.fullmatch(text) is None:
        return None
    number = 0
    for character in text[:10]:
        number = number << 5 | _CROCKFORD.index(character)
    return number


def check_ulid(text: str, field: str) -> str:
    """`text` if it is a ULID; InvalidFieldError naming `field` otherwise."""
    if _ULID.fullmatch(text) is None:
        raise InvalidFieldError(f"{field} is not an id of this server (26 characters)", field=field, value=text[:40])
    return text


def check_request_id(text: str) -> str:
    """A UUID in its canonical lowercase form; InvalidFieldError otherwise."""
    if _UUID.fullmatch(text) is None:
        raise InvalidFieldError(
            "request_id is not a UUID in lowercase with hyphens", field="request_id", value=text[:40]
        )
    return text


def check_reference(text: str, field: str) -> str:
    """A pseudonym or reference of the operator: 1 to 64 letters, digits, dots, colons, underscores, hyphens."""
    return _check_text(_REFERENCE, text, field, "letters, digits, '.', '_', ':' or '-'")


def check_name(text: str, field: str) -> str:
    """A party, node or instance name: 1 to 64 lowercase letters, digits, dots, underscores, hyphens."""
    return _check_text(_NAME, text, field, "lowercase letters, digits, '.', '_' or '-'")


def _check_text(pattern: re.Pattern[str], text: str, field: str, characters: str) -> str:
    if pattern.fullmatch(text) is None:
        raise InvalidFieldError(
            f"{field} must be 1 to 64 {characters}, beginning with a letter or digit",
            field=field,
            limit=64,
            value=text[:80],
        )
    return text


def format_game_code(start_ms: int, nth: int) -> str:
    """RULEBOOK R-4: `#HH:MM:SS` of the UTC start; the `nth` start (from 1) in one second of one session gets `-nth`.

    >>> format_game_code(81_000_000, 3)
    '#22:30:00-3'
    """
    code = f"#{format_time_of_day(start_ms)}"
    return code if nth == 1 else f"{code}-{nth}"
