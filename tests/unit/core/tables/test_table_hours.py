"""Opening hours: over midnight, over both changes of the clock, in zones of both hemispheres."""

from __future__ import annotations

import re
import zoneinfo
from datetime import UTC, datetime, timedelta
from importlib import resources
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rgs.core.errors import FormatError, RulesetError
from rgs.core.rulesets import CheckedRows
from rgs.core.tables.hours import WEEKDAYS, Hours, Span, load_zone, parse_hours
from rgs.core.times import format_time, parse_time

ROME, SYDNEY = "Europe/Rome", "Australia/Sydney"
WEEK = list(WEEKDAYS)


def hours(zone: str, *spans: tuple[str | list[str], str, str]) -> Hours:
    rows = [
        {"days": days.split() if isinstance(days, str) else days, "opens": opens, "closes": closes}
        for days, opens, closes in spans
    ]
    return parse_hours(CheckedRows({"zone": zone, "spans": rows}, "hours."))


def at(text: str) -> int:
    """`2026-03-29 01:00` in UTC, as milliseconds."""
    return parse_time(f"{text.replace(' ', 'T')}:00.000Z")


def changes(table: Hours, begin: str, end: str) -> list[str]:
    """The changes between two times, in UTC; each is checked against `is_open` on both of its sides."""
    found, time_ms = [], at(begin)
    while (next_ms := table.next_change_ms(time_ms)) is not None and next_ms <= at(end):
        assert table.is_open(next_ms) != table.is_open(next_ms - 1)
        assert table.is_open(next_ms - 1) == table.is_open(time_ms)
        found.append(("opens " if table.is_open(next_ms) else "closes ") + format_time(next_ms)[5:16].replace("T", " "))
        time_ms = next_ms
    return found


# --- an ordinary week ---


def test_a_span_over_midnight_holds_its_first_moment_and_not_its_last() -> None:
    table = hours(ROME, ("fri", "18:00", "04:00"))
    opens, closes = at("2026-11-20 17:00"), at("2026-11-21 03:00")
    assert table.spans == (Span(4, 18 * 60, 28 * 60),)
    for time_ms, is_open in ((opens - 1, False), (opens, True), (closes - 1, True), (closes, False)):
        assert table.is_open(time_ms) is is_open
    assert table.next_change_ms(opens - 1) == opens
    assert table.next_change_ms(opens) == closes
    assert table.next_change_ms(closes) == at("2026-11-27 17:00")


def test_spans_that_touch_or_overlap_are_one() -> None:
    table = hours(ROME, ("mon", "10:00", "12:00"), ("mon", "12:00", "14:00"), ("mon", "11:00", "13:00"))
    assert changes(table, "2026-11-22 00:00", "2026-11-29 00:00") == ["opens 11-23 09:00", "closes 11-23 13:00"]
    inner = hours(ROME, ("mon", "10:00", "14:00"), ("mon", "11:00", "12:00"))
    assert changes(inner, "2026-11-22 00:00", "2026-11-29 00:00") == ["opens 11-23 09:00", "closes 11-23 13:00"]


def test_the_end_of_sunday_is_the_beginning_of_monday() -> None:
    table = hours(ROME, ("sun", "20:00", "24:00"), ("mon", "00:00", "01:00"))
    assert changes(table, "2026-11-21 00:00", "2026-11-28 00:00") == ["opens 11-22 19:00", "closes 11-23 00:00"]


@pytest.mark.parametrize("span", [("00:00", "24:00"), ("00:00", "00:00"), ("02:30", "02:30"), ("23:59", "23:59")])
@pytest.mark.parametrize("zone", [ROME, SYDNEY, "America/Havana", "Pacific/Apia"])
def test_a_day_long_span_on_every_day_is_always_open(zone: str, span: tuple[str, str]) -> None:
    table = hours(zone, (WEEK, *span))
    for day in range(400):
        time_ms = at("2011-10-01 12:34") + day * 86_400_000
        assert table.is_open(time_ms)
        assert day % 50 or table.next_change_ms(time_ms) is None


def test_without_spans_a_table_never_opens() -> None:
    table = hours(ROME)
    assert not table.is_open(at("2026-11-23 12:00"))
    assert table.next_change_ms(at("2026-11-23 12:00")) is None


def test_the_first_day_of_1970_is_the_last_of_1969_in_the_west() -> None:
    assert hours("America/Havana", ("wed", "12:00", "13:00")).next_change_ms(0) == at("1970-01-07 17:00")


# --- the clock is set forward: Rome 2026-03-29 at 01:00 UTC, Sydney 2026-10-03 at 16:00 UTC; 02:00 becomes 03:00 ---


@pytest.mark.parametrize(
    ("opens", "closes", "expected"),
    [
        # Three hours long on that day.
        ("00:00", "04:00", ["opens 03-28 23:00", "closes 03-29 02:00"]),
        # 02:30 does not exist: both ends are the moment of the change then.
        ("02:30", "04:00", ["opens 03-29 01:00", "closes 03-29 02:00"]),
        ("01:00", "02:30", ["opens 03-29 00:00", "closes 03-29 01:00"]),
        ("02:00", "03:00", []),
        ("02:15", "02:45", []),
        ("03:00", "03:30", ["opens 03-29 01:00", "closes 03-29 01:30"]),
    ],
)
def test_a_skipped_local_time_is_the_moment_of_the_change(opens: str, closes: str, expected: list[str]) -> None:
    assert changes(hours(ROME, ("sun", opens, closes)), "2026-03-28 12:00", "2026-03-29 12:00") == expected


def test_a_span_that_one_sunday_swallows_opens_on_the_next() -> None:
    table = hours(ROME, ("sun", "02:15", "02:45"))
    assert table.next_change_ms(at("2026-03-23 12:00")) == at("2026-04-05 00:15")
    pause = hours(ROME, (WEEK[:-1], "00:00", "24:00"), ("sun", "00:00", "02:15"), ("sun", "02:45", "24:00"))
    assert changes(pause, "2026-03-23 12:00", "2026-04-05 12:00") == ["closes 04-05 00:15", "opens 04-05 00:45"]


def test_south_of_the_equator_the_clock_is_set_forward_in_october() -> None:
    table = hours(SYDNEY, ("sun", "02:30", "05:00"), ("sat", "23:00", "02:10"))
    assert changes(table, "2026-10-03 06:00", "2026-10-04 06:00") == ["opens 10-03 13:00", "closes 10-03 18:00"]
    assert changes(table, "2026-10-10 06:00", "2026-10-11 06:00") == [
        *("opens 10-10 12:00", "closes 10-10 15:10"),
        *("opens 10-10 15:30", "closes 10-10 18:00"),
    ]


def test_a_change_of_half_an_hour_is_found_to_the_second() -> None:
    table = hours("Australia/Lord_Howe", ("sun", "02:15", "03:00"))  # 02:00 becomes 02:30, at 15:30 UTC
    assert changes(table, "2026-10-03 06:00", "2026-10-04 06:00") == ["opens 10-03 15:30", "closes 10-03 16:00"]


def test_a_whole_day_that_a_zone_left_out_is_left_out() -> None:
    table = hours("Pacific/Apia", ("fri", "10:00", "12:00"), ("thu", "22:00", "02:00"))  # no 30 December 2011
    assert changes(table, "2011-12-29 12:00", "2012-01-05 00:00") == ["opens 12-30 08:00", "closes 12-30 10:00"]


# --- the clock is set back: Rome 2026-10-25 at 01:00 UTC, Sydney 2026-04-04 at 16:00 UTC; 03:00 becomes 02:00 ---


@pytest.mark.parametrize(
    ("opens", "closes", "expected"),
    [
        ("00:00", "04:00", ["opens 10-24 22:00", "closes 10-25 03:00"]),
        # 02:30 comes twice, at 00:30 and at 01:30 UTC: the first one counts for both ends.
        ("02:30", "04:00", ["opens 10-25 00:30", "closes 10-25 03:00"]),
        ("01:00", "02:30", ["opens 10-24 23:00", "closes 10-25 00:30"]),
        ("02:15", "02:45", ["opens 10-25 00:15", "closes 10-25 00:45"]),
        ("03:00", "03:30", ["opens 10-25 02:00", "closes 10-25 02:30"]),
    ],
)
def test_a_local_time_that_comes_twice_is_the_first(opens: str, closes: str, expected: list[str]) -> None:
    assert changes(hours(ROME, ("sun", opens, closes)), "2026-10-24 12:00", "2026-10-25 12:00") == expected


def test_south_of_the_equator_the_clock_is_set_back_in_april() -> None:
    table = hours(SYDNEY, ("sun", "02:30", "05:00"), ("sat", "23:00", "02:10"))
    assert changes(table, "2026-04-04 06:00", "2026-04-05 06:00") == [
        *("opens 04-04 12:00", "closes 04-04 15:10"),
        *("opens 04-04 15:30", "closes 04-04 19:00"),
    ]


def test_a_clock_that_is_set_back_over_midnight_finds_the_span_of_the_day_after() -> None:
    # 00:01 on Sunday became 23:01 on Saturday, at 02:31 UTC.
    table = hours("America/St_Johns", ("sun", "00:00", "01:00"))
    assert changes(table, "2010-11-06 12:00", "2010-11-07 12:00") == ["opens 11-07 02:30", "closes 11-07 04:30"]


# --- against a plain reading of the clock on the wall ---

ZONES = (ROME, SYDNEY, "Australia/Lord_Howe", "America/Havana", "Africa/Casablanca", "UTC")
TIMES = st.integers(0, 1439)
SPANS = st.lists(st.tuples(st.integers(0, 6), TIMES, TIMES), min_size=1, max_size=4)


@given(st.sampled_from(ZONES), SPANS, st.integers(at("2024-01-01 00:00"), at("2034-01-01 00:00")))
def test_away_from_changes_of_the_clock_the_wall_decides(
    zone: str, spans: list[tuple[int, int, int]], time_ms: int
) -> None:
    table = Hours(zone, tuple(Span(day, opens, closes + 1440 * (closes <= opens)) for day, opens, closes in spans))
    wall = datetime.fromtimestamp(time_ms / 1000, UTC).astimezone(load_zone(zone))
    offsets = {(wall.astimezone(UTC) + timedelta(h)).astimezone(wall.tzinfo).utcoffset() for h in range(-2, 3)}
    assume(len(offsets) == 1)
    minute = wall.weekday() * 1440 + wall.hour * 60 + wall.minute
    expected = any(
        span.weekday * 1440 + span.opens <= now < span.weekday * 1440 + span.closes
        for span in table.spans
        for now in (minute, minute + 7 * 1440)
    )
    assert table.is_open(time_ms) is expected


@given(st.sampled_from(ZONES), SPANS, st.integers(at("2024-01-01 00:00"), at("2034-01-01 00:00")))
def test_between_two_changes_nothing_changes(zone: str, spans: list[tuple[int, int, int]], time_ms: int) -> None:
    table = Hours(zone, tuple(Span(day, opens, closes + 1440 * (closes <= opens)) for day, opens, closes in spans))
    found = [time_ms]
    while len(found) < 5 and (next_ms := table.next_change_ms(found[-1])) is not None:
        found.append(next_ms)
    for before, after in pairwise(found):
        assert before < after
        assert table.is_open(after) != table.is_open(after - 1)
        for part in range(8):
            assert table.is_open(before + (after - before) * part // 8) == table.is_open(before)


# --- zones ---


def test_a_zone_is_that_of_the_locked_package_and_not_the_machine_s(tmp_path: Path) -> None:
    (tmp_path / "Europe").mkdir()
    utc = (resources.files("tzdata") / "zoneinfo" / "UTC").read_bytes()
    (tmp_path / "Europe" / "Rome").write_bytes(utc)  # as on a machine with other data
    summer = datetime(2026, 7, 1)  # noqa: DTZ001 - the zone is put in below
    load_zone.cache_clear()
    zoneinfo.reset_tzpath(to=[tmp_path])
    try:
        zone, machine = load_zone(ROME), zoneinfo.ZoneInfo.no_cache(ROME)
    finally:
        zoneinfo.reset_tzpath()
    assert summer.replace(tzinfo=machine).utcoffset() == timedelta(0)
    assert summer.replace(tzinfo=zone).utcoffset() == timedelta(hours=2)
    assert load_zone(ROME) is zone


def test_every_listed_zone_can_be_read() -> None:
    names = (resources.files("tzdata") / "zones").read_text("utf-8").split()
    assert len(names) > 500
    for name in names:
        assert load_zone(name).key == name


@pytest.mark.parametrize("name", ["Europe/Lugano", "europe/rome", "../zones", "Europe", "Europe/", "x" * 100])
def test_an_unknown_zone_is_named(name: str) -> None:
    with pytest.raises(FormatError, match=re.escape(repr(name[:80]))) as caught:
        load_zone(name)
    assert caught.value.metadata == {"value": name[:80]}
    with pytest.raises(RulesetError, match=r"hours\.zone: .* is not a time zone of the IANA database"):
        hours(name)


def test_the_zone_is_read_as_the_package_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """A started server compares what `importlib.resources` gives it: no path of a file is opened here."""
    names: list[str] = []
    found = resources.files("tzdata")
    monkeypatch.setattr(resources, "files", lambda name: (names.append(name), found)[1])  # type: ignore[func-returns-value]
    load_zone.cache_clear()
    load_zone(SYDNEY)
    assert names == ["tzdata"]


# --- what is refused ---


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"spans": []}, "hours.zone: is missing"),
        ({"zone": "", "spans": []}, "hours.zone: is empty"),
        ({"zone": ROME}, "hours.spans: is missing"),
        ({"zone": ROME, "spans": [], "closed": []}, "hours.closed: is not known"),
        ({"days": []}, "hours.spans[0].days: is empty; name at least one of mon, tue, wed, thu, fri, sat, sun"),
        ({"days": ["mon", "Tue"]}, "hours.spans[0].days: 'Tue' is not one of mon, tue"),
        ({"days": ["mon", "tue", "mon"]}, "hours.spans[0].days: names mon twice"),
        ({"days": "mon"}, "hours.spans[0].days: is of kind str, not list"),
        ({"opens": "24:00"}, "hours.spans[0].opens: '24:00' is the end of a day"),
        ({"opens": "7:00"}, "hours.spans[0].opens: '7:00' is not a time of day from '00:00' to '24:00'"),
        ({"opens": "0700"}, "hours.spans[0].opens: '0700' is not"),
        ({"opens": "07.00"}, "hours.spans[0].opens: '07.00' is not"),
        ({"opens": "ab:00"}, "hours.spans[0].opens: 'ab:00' is not"),
        ({"opens": "²³:00"}, "hours.spans[0].opens: '²³:00' is not"),
        (
            {"opens": "\N{ARABIC-INDIC DIGIT ZERO}7:00"},
            "hours.spans[0].opens: '\N{ARABIC-INDIC DIGIT ZERO}7:00' is not",
        ),
        ({"opens": "07:60"}, "hours.spans[0].opens: '07:60' is not"),
        ({"opens": "07:000"}, "hours.spans[0].opens: '07:000' is not"),
        ({"closes": "24:01"}, "hours.spans[0].closes: '24:01' is not"),
        ({"closes": "25:00"}, "hours.spans[0].closes: '25:00' is not"),
        ({"closes": "-1:00"}, "hours.spans[0].closes: '-1:00' is not"),
        ({"note": "late"}, "hours.spans[0].note: is not known"),
    ],
)
def test_what_is_refused(rows: dict[str, object], message: str) -> None:
    span = {"days": ["mon"], "opens": "10:00", "closes": "12:00"}
    document = rows if {"zone", "spans"} & set(rows) else {"zone": ROME, "spans": [span | rows]}
    with pytest.raises(RulesetError, match=re.escape(message)) as caught:
        parse_hours(CheckedRows(document, "hours."))
    assert caught.value.field == message.partition(": ")[0]
