"""The one encoding of everything that is signed: strict JSON with exactly one byte form per value.

Keys sorted by code point, no white space, ASCII only, strings / arrays / objects / true / false and nothing else:
integers travel as decimal strings, bytes as lowercase hex, there are no floats and no null. A document is accepted
only if its parsed value re-formats to the identical bytes, which refuses duplicate keys, surplus white space, other
escapes and other key orders without naming them one by one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import cache
from typing import Any, NoReturn

from rgs.core.errors import FormatError

PAYLOAD_BYTES_MAX = 32 * 1024
"""Largest payload that is signed or read, in bytes (an entry of the transparency log holds at most 65,535 bytes in
base64).
"""


def _refuse_number(text: str) -> NoReturn:
    raise FormatError(f"a number ({text[:32]}) stands where only strings may stand", value=text[:32])


_DECODER = json.JSONDecoder(parse_float=_refuse_number, parse_int=_refuse_number, parse_constant=_refuse_number)


_CHUNKS: Callable[[Any, int], tuple[str, ...]] = json.encoder.c_make_encoder(  # type: ignore[attr-defined]
    None, json.JSONEncoder().default, json.encoder.encode_basestring_ascii, None, ":", ",", True, False, False
)
"""What `json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)` makes anew for every document."""


def format_canonical(value: Any) -> bytes:
    """The bytes of `value` (dict, list, str, bool). The inverse of `parse_canonical`."""
    return "".join(_CHUNKS(value, 0)).encode("ascii")


def parse_canonical(data: bytes, *, limit: int = PAYLOAD_BYTES_MAX) -> Any:
    """The value of canonical `data`; FormatError names the first fault. Inverse of `format_canonical`."""
    if len(data) > limit:
        raise FormatError(f"document of {len(data)} bytes is longer than {limit}", limit=limit, value=len(data))
    try:
        value = _DECODER.decode(data.decode("ascii"))
    except FormatError:
        raise
    except (ValueError, RecursionError) as error:
        raise FormatError(f"not JSON: {type(error).__name__}") from None
    try:
        again = format_canonical(value)
        if b"null" in data and _holds_null(value):
            raise FormatError("null stands where only strings, lists, objects, true and false may stand")
    except RecursionError:  # pragma: no cover - the decoder's own limit is met first
        raise FormatError("not JSON: nested too deeply") from None
    if again != data:
        raise FormatError("not in canonical form (key order, white space, escapes or a repeated key)")
    return value


def _holds_null(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_holds_null, value.values()))
    if isinstance(value, list):
        return any(map(_holds_null, value))
    return value is None


def digest(domain: str, *parts: bytes) -> bytes:
    """SHA-256 over `domain` (ASCII), a zero byte and the parts, 32 bytes. The zero byte keeps domains apart."""
    return hashlib.sha256(b"".join((_prefix(domain), *parts))).digest()


@cache  # of the few domains that there are
def _prefix(domain: str) -> bytes:
    return domain.encode("ascii") + b"\x00"
