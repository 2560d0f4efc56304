"""Opening hours of a table: weekly spans in the local time of one time zone, right over both changes of the clock.

The zones are those of the locked package `tzdata`, read with `zoneinfo.ZoneInfo.from_file`. Plain `zoneinfo.ZoneInfo`
would take the machine's own files first, and two machines with files of different years could disagree.

**The two changes of the clock.** A local time that is skipped in spring is the moment of the change: with 02:00 set to
03:00, a span from 02:30 begins at 03:00, and a span from 02:15 to 02:45 is left out on that day. A local time that
comes twice in autumn is the first of the two: each span begins once and ends once.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from importlib import resources
from typing import Final
from zoneinfo import ZoneInfo

from rgs.core.errors import FormatError
from rgs.core.rulesets import CheckedRows

WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

_MINUTES_A_DAY: Final = 24 * 60
# The weekly pattern has a change within one week. A change of the clock can swallow one of them, so look further.
_DAYS_AHEAD: Final = 21


@dataclass(frozen=True, slots=True)
class Span:
    """One opening a week: its weekday (0 is Monday), and both ends in minutes after that day's local midnight.

    `closes` is more than `opens`, by 24 hours at most; beyond 1,440 it is on the next day.
    """

    weekday: int
    opens: int
    closes: int


@dataclass(frozen=True, slots=True)
class Hours:
    """When a table is open. `zone` is the zone's IANA name; spans may touch and overlap; without one it never opens.

    Times are milliseconds since 1970 in UTC. A span holds its first moment, and not its last.
    """

    zone: str
    spans: tuple[Span, ...]

    def is_open(self, time_ms: int) -> bool:
        """Whether the table is open at that time."""
        # Three days: a span may begin on the day before, and at a clock set back over midnight on the day after.
        return any(begin <= time_ms < end for begin, end in self._open_times(self._day_before(time_ms), 3))

    def next_change_ms(self, time_ms: int) -> int | None:
        """The first time after this one at which the table opens or closes; None if it is open always, or never."""
        first = self._day_before(time_ms)
        horizon = _moment_ms(self.zone, first + timedelta(_DAYS_AHEAD), 0)
        edges = (edge for times in self._open_times(first, _DAYS_AHEAD) for edge in times)
        return next((edge for edge in edges if time_ms < edge < horizon), None)

    def _day_before(self, time_ms: int) -> date:
        return datetime.fromtimestamp(time_ms // 1000, load_zone(self.zone)).date() - timedelta(1)

    def _open_times(self, first: date, days: int) -> list[tuple[int, int]]:
        """The times (begin, end) of the spans that begin on these days, in order; those that touch are one."""
        found = [
            (_moment_ms(self.zone, day, span.opens), _moment_ms(self.zone, day, span.closes))
            for day in (first + timedelta(number) for number in range(days))
            for span in self.spans
            if span.weekday == day.weekday()
        ]
        merged: list[tuple[int, int]] = []
        for begin, end in sorted(found):
            if merged and begin <= merged[-1][1]:
                merged[-1] = merged[-1][0], max(merged[-1][1], end)
            elif begin < end:
                merged.append((begin, end))
        return merged


def parse_hours(rows: CheckedRows) -> Hours:
    """Return the opening hours of the table `[hours]`; raise RulesetError naming the row."""
    zone = rows.parsed("zone", load_zone).key
    spans = tuple(span for row in rows.tables("spans") for span in _spans(row))
    rows.close()
    return Hours(zone, spans)


@cache
def load_zone(name: str) -> ZoneInfo:
    """Return the zone of the package `tzdata`; raise FormatError, which names an unknown one."""
    package = resources.files("tzdata")
    # The list keeps names such as "../x" away from the folder.
    if name not in (package / "zones").read_text(encoding="utf-8").splitlines():
        raise FormatError(f"{name[:80]!r} is not a time zone of the IANA database", field="zone", value=name[:80])
    with (package / "zoneinfo").joinpath(*name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


def _spans(row: CheckedRows) -> list[Span]:
    days = row.texts("days")
    if not days:
        raise row.refusal("days", f"is empty; name at least one of {', '.join(WEEKDAYS)}")
    for day in days:
        if day not in WEEKDAYS:
            raise row.refusal("days", f"{day[:20]!r} is not one of {', '.join(WEEKDAYS)}")
        if days.count(day) > 1:
            raise row.refusal("days", f"names {day} twice")
    opens, closes = row.parsed("opens", _minutes), row.parsed("closes", _minutes)
    if opens == _MINUTES_A_DAY:
        raise row.refusal(
            "opens", "'24:00' is the end of a day; a span that begins then opens at '00:00' of the next one"
        )
    row.close()
    return [Span(WEEKDAYS.index(day), opens, closes + _MINUTES_A_DAY * (closes <= opens)) for day in days]


def _minutes(text: str) -> int:
    """The minutes after midnight of a time of day."""
    hour, colon, minute = text.partition(":")
    if len(hour) == len(minute) == 2 and colon and (hour + minute).isascii() and (hour + minute).isdecimal():
        minutes = int(hour) * 60 + int(minute)
        if int(minute) < 60 and minutes <= _MINUTES_A_DAY:
            return minutes
    raise FormatError(f"{text[:20]!r} is not a time of day from '00:00' to '24:00'", value=text[:20])


def _moment_ms(zone: str, day: date, minutes: int) -> int:
    """The UTC milliseconds of a local time, by the rule in the head of this file."""
    info = load_zone(zone)
    local = datetime.combine(day, time(), UTC) + timedelta(minutes=minutes)
    # The local time by the clock before a change, and by the clock after it: both are the same on other days.
    by_old, by_new = (int((local - _offset(local.replace(tzinfo=info, fold=fold))).timestamp()) for fold in (0, 1))
    if by_old <= by_new:
        return by_old * 1000
    # Skipped: the change lies between the two, and the zone's offset is another from there on.
    seconds = range(by_new, by_old)
    old = _offset(datetime.fromtimestamp(by_new, info))
    change = bisect_left(seconds, x=True, key=lambda at: _offset(datetime.fromtimestamp(at, info)) != old)
    return (by_new + change) * 1000


def _offset(local: datetime) -> timedelta:
    return local.utcoffset() or timedelta()
