"""Half-year shards of the transparency log: their names, and the origin of their checkpoints (docs/formats.md, 16)."""

from __future__ import annotations

import re
from typing import Final

from rgs.core.errors import FormatError
from rgs.core.times import format_date

ORIGIN_MAX: Final = 120
"""Characters of an origin: a verifier key with it fits into an event."""
_HALF_YEAR: Final = re.compile(r"[1-9][0-9]{3}h[12]", re.ASCII)
_PREFIX: Final = re.compile(r"[a-z0-9][a-z0-9._-]*(/[a-z0-9][a-z0-9._-]*)*", re.ASCII)


def half_year(time_ms: int) -> str:
    """The half-year of a time in UTC, `2026h2`. Sorted as texts they are in order of time."""
    date = format_date(time_ms)
    return f"{date[:4]}h{1 if date[5:7] <= '06' else 2}"


def next_half_year(name: str) -> str:
    """The half-year after this one."""
    year, half = name.split("h")
    return f"{year}h2" if half == "1" else f"{int(year) + 1}h1"


def format_origin(prefix: str, name: str) -> str:
    """The origin of a shard. Inverse of `parse_origin`; FormatError for a malformed prefix or name."""
    origin = f"{prefix}/{name}"
    parse_origin(origin)
    return origin


def parse_origin(origin: str) -> tuple[str, str]:
    """Prefix and half-year of an origin; FormatError for any other text."""
    prefix, _, name = origin.rpartition("/")
    if _HALF_YEAR.fullmatch(name) is None or _PREFIX.fullmatch(prefix) is None or len(origin) > ORIGIN_MAX:
        limit = f"name/{{year}}h{{1 or 2}}, at most {ORIGIN_MAX} characters"
        raise FormatError(f"an origin is {limit}", field="origin", limit=limit, value=origin[:80])
    return prefix, name
