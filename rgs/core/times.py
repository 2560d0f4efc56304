"""Times as they stand in statements: UTC with milliseconds, `2026-11-21T22:30:00.123Z`. Elsewhere a time is an integer,
milliseconds since 1970.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache

from rgs.core.errors import FormatError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TIME_MS_MAX = 253_402_300_799_999
"""9999-12-31T23:59:59.999Z."""


def format_time(time_ms: int) -> str:
    """Milliseconds since 1970 as text. Inverse of `parse_time`."""
    if not 0 <= time_ms <= TIME_MS_MAX:
        raise FormatError(f"time {time_ms} ms is outside 0..{TIME_MS_MAX}", value=time_ms, limit=TIME_MS_MAX)
    seconds, milliseconds = divmod(time_ms, 1000)
    return f"{_format_second(seconds)}.{milliseconds:03d}Z"


@lru_cache(maxsize=256)  # the times of a moment share their second: this is on the path of every statement
def _format_second(seconds: int) -> str:
    return f"{_EPOCH + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%S}"


def parse_time(text: str) -> int:
    """Text as milliseconds since 1970; FormatError unless it is in its one form and a real time.

    >>> parse_time("1970-01-01T00:00:01.500Z")
    1500
    """
    try:
        moment = datetime.fromisoformat(text).replace(tzinfo=UTC)  # which takes other forms, too
        time_ms = (moment - _EPOCH) // timedelta(milliseconds=1)
        if format_time(time_ms) == text:
            return time_ms
    except (ValueError, FormatError):
        pass
    raise FormatError(f"{text[:40]} is not a UTC time with milliseconds", value=text[:40])


def format_date(time_ms: int) -> str:
    """The UTC date, `2026-11-21`."""
    return format_time(time_ms)[:10]


def format_time_of_day(time_ms: int) -> str:
    """The UTC time of day in whole seconds, `22:30:00`."""
    return format_time(time_ms)[11:19]


def parse_date(text: str) -> int:
    """Midnight UTC of `2026-11-21` as milliseconds since 1970; FormatError otherwise."""
    try:
        return parse_time(f"{text}T00:00:00.000Z")
    except FormatError:
        raise FormatError(f"{text[:20]} is not a date of the form 2026-11-21", value=text[:20]) from None
