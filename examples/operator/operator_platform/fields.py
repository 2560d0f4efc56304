"""Strict reading of what a page sends: each error names the field, its limit and its value."""

from __future__ import annotations

import json
import re
import unicodedata
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final

from .errors import PlatformError, invalid

AMOUNT_MAX: Final = 10**18 - 1
LANGUAGE: Final = re.compile(r"[a-z]{2}")
SHOWN_MAX: Final = 80


def parse_object(text: str | bytes, limit: int) -> dict[str, Any]:
    """A JSON object of at most `limit` bytes."""
    size = len(text.encode()) if isinstance(text, str) else len(text)
    if size > limit:
        raise PlatformError("TOO_LARGE", f"the message has {size} bytes, at most {limit}", 413, {"limit": limit})
    try:
        found = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
        json.dumps(found, ensure_ascii=False).encode()  # half of a surrogate pair would go no further
    except (ValueError, RecursionError):
        raise invalid("body", "the message is no JSON: UTF-8, each name once, no NaN, no half of a pair") from None
    if not isinstance(found, dict):
        raise invalid("body", "the message is no JSON object")
    return found


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose names differ: who reads the last of two must not meet who reads the first."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice")
    return found


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


def check_known(body: Mapping[str, Any], *names: str) -> None:
    """Refuse fields that nobody reads."""
    for name in body:
        if name not in names:
            raise invalid(str(name)[:SHOWN_MAX], f"the field is not known; known are {', '.join(names)}")


def text(body: Mapping[str, Any], name: str, least: int, most: int, default: str | None = None) -> str:
    """Text of printing characters, without spaces around it."""
    found = body.get(name, default)
    if not isinstance(found, str):
        raise invalid(name, f"{name} must be text")
    if not least <= len(found) <= most:
        raise invalid(name, f"{name} has {len(found)} characters, {least} to {most} are allowed", limit=most)
    if found != found.strip() or any(unicodedata.category(one)[0] == "C" for one in found):
        raise invalid(name, f"{name} may not have control characters or spaces around it")
    return found


def number(body: Mapping[str, Any], name: str, least: int, most: int, default: int | None = None) -> int:
    """A whole number; decimal text is read too, as int64 values of the contract are text."""
    found = body.get(name, default)
    if isinstance(found, str) and re.fullmatch(r"-?[0-9]{1,19}", found):
        found = int(found)
    if type(found) is not int or not least <= found <= most:
        raise invalid(
            name, f"{name} must be a whole number from {least} to {most}", limit=most, value=str(found)[:SHOWN_MAX]
        )
    return found


def request_id(body: Mapping[str, Any], name: str = "request_id") -> str:
    """A UUID in lowercase with hyphens."""
    found = body.get(name)
    try:
        if isinstance(found, str) and str(uuid.UUID(found)) == found:
            return found
    except ValueError:
        pass
    raise invalid(name, f"{name} must be a UUID in lowercase", value=str(found)[:SHOWN_MAX])


def new_request_id() -> str:
    """A new request id, for a form."""
    return str(uuid.uuid4())


def language(body: Mapping[str, Any], name: str = "language", default: str | None = None) -> str:
    """Two small letters."""
    found = text(body, name, 2, 2, default)
    if not LANGUAGE.fullmatch(found):
        raise invalid(name, f"{name} must be two small letters", value=found)
    return found


def one_of(body: Mapping[str, Any], name: str, known: Sequence[str], default: str = "") -> str:
    """One of the known values; the default, or else the first of them, where none is named."""
    if name not in body:
        return default or known[0]
    found = body[name]
    if found not in known:
        raise invalid(name, f"{name} must be one of {', '.join(known)}", limit=", ".join(known), value=str(found)[:80])
    return str(found)
