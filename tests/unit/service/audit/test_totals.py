"""Running totals: every filter and page size gives what a scan of the finals gives, void rounds apart."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path

import pytest

from rgs.core.errors import InvalidFieldError
from rgs.core.statements import format_canonical
from rgs.core.times import parse_time
from rgs.service.audit.totals import Reports, totals_filter
from rgs.service.callers import Caller, Role
from rgs.store.interface import StatementRow, TotalsFilter, TotalsKey, TotalsRow
from tests.support.service.admins import void
from tests.support.service.harness import ServiceHarness
from tests.support.service.oracles import verify_books
from tests.support.service.player import Player

DAY_MS = 86_400_000
THERE = [("anna", "uth-solo", "op-1"), ("anna", "casino-holdem", "op-1"), ("bert", "uth-solo", "op-2")]


async def lived(harness: ServiceHarness) -> list[str]:
    """Three days of three players, a void round on each; the days."""
    for _ in range(3):
        for name, game, operator in THERE:
            player = Player(harness, game=game, name=name, caller=Caller(operator, Role.OPERATOR, "demo"))
            await player.sit()
            await player.play()
            await player.play(200)
            harness.clock.tick(1500)
            await player.start()
            await void(harness, player.round["round_id"])
            await player.leave()
        harness.clock.tick(DAY_MS)
    return sorted({row.key.day for row in await scan(harness, totals_filter("", "", operator=""))})


async def scan(harness: ServiceHarness, wanted: TotalsFilter) -> list[TotalsRow]:
    return [row async for rows in harness.services.reports.export_totals(wanted) for row in rows]


async def test_every_filter_and_page_size_gives_what_a_scan_gives(
    tmp_path: Path, harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    days = await lived(harness)
    assert len(days) == 3
    await harness.settle()
    verify_books(tmp_path)  # all the rows together are those of a scan of the finals
    everything = await scan(harness, totals_filter("", "", operator=""))
    assert len(everything) == 9
    assert [row.key for row in everything] == sorted((row.key for row in everything), key=_order)
    for row in everything:
        assert (row.rounds, row.void_rounds) == (2, 1)
        assert row.void_minor == (200 if row.key.game == "uth-solo" else 100)
    monkeypatch.setattr("rgs.service.audit.totals.EXPORT_ROWS", 2)
    for wanted in (
        totals_filter("", "", operator=""),
        totals_filter(days[1], "", operator=""),
        totals_filter("", days[1], operator=""),
        totals_filter(days[1], days[1], operator="", game="uth-solo"),
        totals_filter("", "", operator="op-1"),
        totals_filter(days[0], days[1], operator="op-1", game="casino-holdem"),
        totals_filter("", days[0], operator="op-1", player="anna"),
        totals_filter("", "", operator="op-2", player="bert", game="uth-solo"),
        totals_filter("", "", operator="op-2", player="anna"),
        totals_filter("2001-01-01", "2001-12-31", operator=""),
    ):
        expected = [row for row in everything if _matches(row, wanted)]
        assert await scan(harness, wanted) == expected
        for size in (1, 2, 100):
            found, token = await _pages(harness, wanted, size)
            assert (found, token) == (expected, "")


def _order(key: TotalsKey) -> tuple[str, ...]:
    return (key.day, key.operator, key.player, key.game, key.currency)


def _matches(row: TotalsRow, wanted: TotalsFilter) -> bool:
    key = row.key
    return (wanted.first_day or "0") <= key.day <= (wanted.last_day or "9999") and all(
        not requested or requested == result
        for requested, result in ((wanted.operator, key.operator), (wanted.player, key.player), (wanted.game, key.game))
    )


async def _pages(harness: ServiceHarness, wanted: TotalsFilter, size: int) -> tuple[list[TotalsRow], str]:
    found: list[TotalsRow] = []
    rows, token = await harness.services.reports.list_totals(wanted, size, "")
    while token:
        assert len(rows) == size
        found += rows
        rows, token = await harness.services.reports.list_totals(wanted, size, token)
    return [*found, *rows], token


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        (totals_filter("2026-13-01", "", operator=""), "first_day"),
        (totals_filter("", "yesterday", operator=""), "last_day"),
        (totals_filter("2026-02-02", "2026-02-01", operator=""), "last_day"),
        (totals_filter("", "", operator="", player="anna"), "operator"),
        (totals_filter("", "", operator="a b"), "operator"),
        (totals_filter("", "", operator="op-1", game="a b"), "game"),
    ],
)
async def test_totals_of_what_is_not(harness: ServiceHarness, wanted: TotalsFilter, field: str) -> None:
    with pytest.raises(InvalidFieldError) as caught:
        await harness.services.reports.list_totals(wanted, 10, "")
    assert caught.value.field == field
    with pytest.raises(InvalidFieldError):
        await scan(harness, wanted)


# --- events -----------------------------------------------------------------------------------------------------------

TIME = "2026-11-18T11:06:40.000Z"
NAMES = ("subject", "before", "after", "actor", "reason", "session_id", "round_id")


class Shown:
    """As much of a store as the pages ask: rows of events, and totals."""

    def __init__(self, *bodies: dict[str, str]) -> None:
        self.envelopes = [
            format_canonical(
                {
                    "payload": b64encode(format_canonical(body)).decode(),
                    "payloadType": "application/vnd.rgs.event.v1+json",
                    "signatures": [{"keyid": "0" * 64, "sig": b64encode(bytes(64)).decode()}],
                }
            )
            for body in bodies
        ]

    async def events(self, code: str, *, before: int, limit: int) -> list[StatementRow]:
        assert code in {"", "PARTY_BLOCKED"}
        rows = [
            StatementRow(number, "event", "i", number, "", 0, "", b"", envelope, b"")
            for number, envelope in enumerate(self.envelopes, 1)
        ]
        return [row for row in reversed(rows) if not before or row.id < before][:limit]

    async def totals(self, _wanted: TotalsFilter, *, after: TotalsKey, limit: int) -> list[TotalsRow]:
        keys = [TotalsKey(f"2026-11-{day:02d}", "op-1", "anna", "uth-solo", "EUR") for day in range(1, 5)]
        return [TotalsRow(key, 1, 2, 3, 0, 0) for key in keys if key.day > after.day][:limit]


def reports_of(*bodies: dict[str, str]) -> Reports:
    return Reports(Shown(*bodies))  # type: ignore[arg-type]


async def test_an_event_is_told_with_every_field_that_it_has_and_no_other() -> None:
    whole = {"code": "PARTY_BLOCKED", "kind": "event", "time": TIME, **{name: f"the {name}" for name in NAMES}}
    plain = {"code": "PARTY_BLOCKED", "kind": "event", "time": TIME}
    (second, first), token = await reports_of(whole, plain).list_events("PARTY_BLOCKED", 2, "")
    assert token == ""
    assert {name: getattr(first, name) for name in NAMES} == {name: f"the {name}" for name in NAMES}
    assert {name: getattr(second, name) for name in NAMES} == dict.fromkeys(NAMES, "")
    assert {(row.code, row.time_ms) for row in (first, second)} == {("PARTY_BLOCKED", parse_time(TIME))}


async def test_pages_of_events_and_totals_end_with_their_last_row() -> None:
    reports = reports_of(*({"code": "PARTY_BLOCKED", "time": TIME, "after": str(number)} for number in range(4)))
    for size, counts in ((1, [1, 1, 1, 1]), (2, [2, 2]), (3, [3, 1]), (4, [4]), (5, [4])):
        found: list[tuple[int, int]] = []
        events, lines = [""], [""]
        while len(found) < len(counts):
            rows, after = await reports.list_events("", size, events[-1])
            totals, behind = await reports.list_totals(totals_filter("", "", operator=""), size, lines[-1])
            found.append((len(rows), len(totals)))
            events.append(after)
            lines.append(behind)
        assert found == [(count, count) for count in counts]
        assert (events[-1], lines[-1]) == ("", "")
        assert all(events[1:-1])
        assert all(lines[1:-1])


async def test_a_code_that_is_none_is_named() -> None:
    with pytest.raises(InvalidFieldError) as error:
        await reports_of().list_events("no code", 5, "")
    assert error.value.field == "code"
