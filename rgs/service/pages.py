"""Pages of lists: sizes and opaque tokens (AIP-158). A token holds the position behind the page's last row."""

from __future__ import annotations

import base64
import re

from rgs.core.errors import InvalidFieldError
from rgs.core.values import check_range

PAGE_SIZE_DEFAULT = 50
PAGE_SIZE_MAX = 200
_PREFIX = "p1"
_KEY_PREFIX = "k1"
_KEY_PART = re.compile(r"[A-Za-z0-9._:-]{1,96}", re.ASCII)
_POSITION_MAX = 1 << 62
"""Row numbers, times and statement numbers stay below it, so that they fit the 64 bits of the store."""


def check_page_size(page_size: int) -> int:
    """The number of rows of a page, 1 to PAGE_SIZE_MAX, 0 for the default; InvalidFieldError for any other."""
    return check_range(page_size, "page_size", 1, PAGE_SIZE_MAX) if page_size else PAGE_SIZE_DEFAULT


def verify_alone(field: str, **others: object) -> None:
    """InvalidFieldError if a filter that names one thing stands beside another one."""
    beside = [name for name, value in others.items() if value]
    if beside:
        raise InvalidFieldError(
            f"{beside[0]} stands beside {field}, which needs no other filter: leave {beside[0]} out",
            field=beside[0],
            limit=field,
            value=str(others[beside[0]])[:80],
        )


def format_page_token(*position: int) -> str:
    """The token of a position. Inverse of `parse_page_token`."""
    return encode_token(".".join([_PREFIX, *map(str, position)]))


def parse_page_token(token: str, length: int) -> tuple[int, ...]:
    """The position of a token, zeros for an empty one; InvalidFieldError for any other text."""
    if not token:
        return (0,) * length
    try:
        _, *numbers = decode_token(token).split(".")
        position = tuple(map(int, numbers))
    except ValueError:
        raise _not_ours(token) from None
    is_whole = len(position) == length and format_page_token(*position) == token
    if not (is_whole and all(0 < number <= _POSITION_MAX for number in position)):
        raise _not_ours(token)
    return position


def format_key_token(*parts: str) -> str:
    """The token of a position that is a key of names. Inverse of `parse_key_token`."""
    return encode_token("/".join([_KEY_PREFIX, *parts]))


def parse_key_token(token: str, length: int) -> tuple[str, ...]:
    """The key of a token, empty names for an empty one; InvalidFieldError for any other text."""
    if not token:
        return ("",) * length
    try:
        _, *parts = decode_token(token).split("/")
    except ValueError:
        raise _not_ours(token) from None
    is_whole = len(parts) == length and format_key_token(*parts) == token
    if not (is_whole and all(_KEY_PART.fullmatch(part) for part in parts)):
        raise _not_ours(token)
    return tuple(parts)


def encode_token(text: str) -> str:
    """ASCII text as an opaque token: base64 for URLs without padding."""
    return base64.urlsafe_b64encode(text.encode("ascii")).decode("ascii").rstrip("=")


def decode_token(token: str) -> str:
    """The text of a token; ValueError. Other tokens may give the same text: encode it again and compare."""
    return base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode("ascii")


def _not_ours(token: str) -> InvalidFieldError:
    return InvalidFieldError("page_token was not made by this list", field="page_token", value=token[:40])
