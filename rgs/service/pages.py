"""Pages of lists: sizes and opaque tokens (AIP-158). A token holds the position behind the page's last row."""

from __future__ import annotations

import base64
import binascii
import re

from rgs.core.errors import InvalidFieldError
from rgs.core.values import check_range

PAGE_SIZE_DEFAULT = 50
PAGE_SIZE_MAX = 200
_PREFIX = "p1"
_KEY_PREFIX = "k1"
_KEY_PART = re.compile(r"[A-Za-z0-9._:-]{1,96}", re.ASCII)
_POSITION_MAX = 1 << 62
"""Row numbers, times and statement numbers stay below it, and so inside the 64 bits of the store."""


def check_page_size(page_size: int) -> int:
    """The number of rows of a page, 1 to PAGE_SIZE_MAX, 0 for the default; InvalidFieldError for any other."""
    return check_range(page_size, "page_size", 1, PAGE_SIZE_MAX) if page_size else PAGE_SIZE_DEFAULT


def format_page_token(*position: int) -> str:
    """The token of a position. Inverse of `parse_page_token`."""
    text = ".".join([_PREFIX, *map(str, position)])
    return base64.urlsafe_b64encode(text.encode("ascii")).decode("ascii").rstrip("=")


def parse_page_token(token: str, length: int) -> tuple[int, ...]:
    """The position of a token, zeros for an empty one; InvalidFieldError for anything else."""
    if not token:
        return (0,) * length
    try:
        text = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode("ascii")
        prefix, *numbers = text.split(".")
        position = tuple(int(number) for number in numbers)
        if (
            prefix == _PREFIX
            and len(position) == length
            and format_page_token(*position) == token
            and min(position) > 0
            and max(position) <= _POSITION_MAX
        ):
            return position
    except (ValueError, binascii.Error):
        pass
    raise InvalidFieldError("page_token was not made by this list", field="page_token", value=token[:40])


def format_key_token(*parts: str) -> str:
    """The token of a position that is a key of names. Inverse of `parse_key_token`."""
    return base64.urlsafe_b64encode("/".join([_KEY_PREFIX, *parts]).encode("ascii")).decode("ascii").rstrip("=")


def parse_key_token(token: str, length: int) -> tuple[str, ...]:
    """The key of a token, empty names for an empty one; InvalidFieldError for anything else."""
    if not token:
        return ("",) * length
    try:
        text = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode("ascii")
        prefix, *parts = text.split("/")
        if (
            prefix == _KEY_PREFIX
            and len(parts) == length
            and all(_KEY_PART.fullmatch(part) for part in parts)
            and format_key_token(*parts) == token
        ):
            return tuple(parts)
    except (ValueError, binascii.Error):
        pass
    raise InvalidFieldError("page_token was not made by this list", field="page_token", value=token[:40])
