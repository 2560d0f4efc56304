"""Canonical JSON, the encoding of everything that is signed: each value has exactly one byte form.

Keys are sorted by code point. There is no white space, and all bytes are ASCII. Only strings, arrays, objects, true and
false occur: integers are decimal strings, bytes are lowercase hex. A document is accepted only if its parsed value
re-formats to the same bytes. This refuses repeated keys, white space, other escapes and other key orders.
"""

from __future__ import annotations

import hashlib
import json
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
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False, check_circular=False)


def format_canonical(value: Any) -> bytes:
    """The canonical bytes of `value` (dict, list, str or bool). Inverse of `parse_canonical`."""
    return _ENCODER.encode(value).encode("ascii")


def verify_length(what: str, data: bytes, limit: int) -> None:
    """FormatError for more bytes than the limit."""
    if len(data) > limit:
        raise FormatError(f"{what} of {len(data)} bytes is longer than {limit}", limit=limit, value=len(data))


def parse_canonical(data: bytes, *, limit: int = PAYLOAD_BYTES_MAX) -> Any:
    """The value of canonical `data`; FormatError names the first fault. Inverse of `format_canonical`."""
    verify_length("document", data, limit)
    try:
        value = _DECODER.decode(data.decode("ascii"))
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


@cache
def _prefix(domain: str) -> bytes:
    """There is a handful of domains, and a dozen digests a round."""
    return domain.encode("ascii") + b"\x00"
