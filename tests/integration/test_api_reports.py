"""Events and running totals, over the wire: pages, filters, a streaming export, and a full scan that agrees."""

from __future__ import annotations

import uuid
from collections import defaultdict
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rgs.core.times import format_date
from rgs.node.pki import fingerprint_of
from rgs.service.audit import totals as reports
from rgs.service.callers import Role
from rgs.store.sqlite.store import connect
from rgs.v1 import admin_pb2 as pb
from rgs.v1.admin_pb2_grpc import AdminServiceStub
from tests.integration.test_api_admin import GAME, admin_of, second_admin, switch
from tests.support.api.client import ApiClient, refused, request_id
from tests.support.api.harness import ApiHarness, info_in, serving, status_in
from tests.support.api.submitting import reason_of
from tests.support.service.harness import read_statement

DAY_MS = 86_400_000


async def test_events_come_newest_first_in_pages(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        admin, auditor = admin_of(harness), AdminServiceStub(harness.channel("demo-auditor"))
        for nth in range(5):
            await admin.SetSwitch(switch(GAME, enabled=bool(nth % 2), game="uth-solo"))
        seen, token = [], ""
        while True:
            request = pb.ListEventsRequest(code="SWITCH_CHANGED", page_size=2, page_token=token)
            page: Any = await auditor.ListEvents(request)
            seen += page.events
            token = page.next_page_token
            if not token:
                break
        assert [event.after for event in seen] == ["disabled", "enabled", "disabled", "enabled", "disabled"]
        for event in seen:
            body = read_statement(event.statement)
            assert (body["code"], body["actor"], body["subject"]) == (event.code, event.actor, event.subject)
        every = (await admin.ListEvents(pb.ListEventsRequest(page_size=200))).events
        # The log begins beside all this, and certificates are told, sooner or later.
        assert {event.code for event in every} - {"LOG_KEY_STARTED", "CERTIFICATE_ADDED"} == {
            "SWITCH_CHANGED",
            "RNG_INSTANTIATED",
        }
        for wrong in ({"code": "x"}, {"page_token": "x"}, {"page_size": 201}):
            request = pb.ListEventsRequest(**wrong)
            assert await reason_of(admin.ListEvents(request)) == "INVALID_FIELD"


def scan(path: Path) -> dict[tuple[str, ...], list[int]]:
    """The totals, from every round of the store."""
    found: dict[tuple[str, ...], list[int]] = defaultdict(lambda: [0, 0, 0, 0, 0])
    with closing(connect(path, read_only=True)) as connection:
        query = (
            "SELECT r.end_ms, r.operator, r.player, r.ruleset_id, s.currency, r.status, r.staked_minor,"
            " r.returned_minor"
            " FROM rounds r JOIN sessions s ON s.session_id = r.session_id WHERE r.status <> 'open'"
        )
        for end_ms, operator, player, game, currency, status, staked, returned in connection.execute(query):
            line = found[format_date(end_ms), operator, player, game, currency]
            if status == "void":
                line[3:] = [line[3] + 1, line[4] + staked]
            else:
                line[:3] = [line[0] + 1, line[1] + staked, line[2] + returned]
    return dict(found)


def lines(totals: Any) -> dict[tuple[str, ...], list[int]]:
    return {
        (row.day, row.operator, row.player, row.game, row.currency): [
            row.rounds, row.staked_minor, row.returned_minor, row.void_rounds, row.void_minor,
        ]
        for row in totals
    }  # fmt: skip


async def test_totals_are_those_of_a_full_scan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "EXPORT_ROWS", 2)
    harness = ApiHarness(tmp_path / "home")
    certificate, admin_2 = harness.issue(Role.OPERATOR, "other"), await second_admin(harness)
    await harness.allow(certificate, Role.OPERATOR, "other", "demo")
    async with serving(tmp_path) as harness:
        admin, second = admin_of(harness), admin_of(harness, admin_2)
        players = [
            ApiClient(harness.channel(who), name)
            for who, name in (("demo-operator", "b"), ("demo-operator", "a"), (certificate, "a"), (certificate, "c:1"))
        ]
        noon_ms = 3 * DAY_MS // 2 - harness.clock.now_ms() % DAY_MS
        for day in range(2):
            harness.clock.ahead_ms = noon_ms + day * DAY_MS
            await harness.until_serving()
            for player in players:
                player.round_no = 1
                await player.seated()
                for _ in range(day + 1):
                    await player.round_to_the_end()
        await players[0].start()
        report = pb.ReportMalfunctionRequest(request_id=request_id(), round_id=players[0].round_id, code="DOUBT")
        await admin.ReportMalfunction(report)
        ids = [players[0].round_id]
        await admin.ProposeVoid(pb.ProposeVoidRequest(request_id=request_id(), round_ids=ids, reason="DOUBT"))
        await second.ApproveVoid(pb.ApproveVoidRequest(request_id=request_id(), round_ids=ids))
        await players[1].start()  # still open: not in the totals

        expected = scan(Path(str(harness.config.store)))
        assert sorted(expected) == sorted(set(expected))
        assert (len(expected), sum(line[0] for line in expected.values())) == (8, 12)
        assert sum(line[3] for line in expected.values()) == 1
        regulator: Any = AdminServiceStub(harness.channel("demo-regulator"))

        async def listed(**wanted: Any) -> list[Any]:
            rows: list[Any] = []
            token = ""
            while True:
                page = await regulator.ListTotals(pb.ListTotalsRequest(page_size=3, page_token=token, **wanted))
                rows += page.totals
                token = page.next_page_token
                if not token:
                    return rows

        rows = await listed()
        assert lines(rows) == expected
        assert list(lines(rows)) == sorted(expected)
        days = sorted({key[0] for key in expected})
        filters: list[tuple[dict[str, str], Any]] = [
            ({"operator": "other"}, lambda key: key[1] == "other"),
            ({"operator": "other", "player": "c:1"}, lambda key: key[1:3] == ("other", "c:1")),
            ({"first_day": days[1]}, lambda key: key[0] == days[1]),
            ({"last_day": days[0]}, lambda key: key[0] == days[0]),
            ({"operator": "demo-operator", "first_day": days[1], "last_day": days[1]},
             lambda key: key[:2] == (days[1], "demo-operator")),
            ({"game": "uth-solo"}, lambda key: True),
            ({"game": "casino-holdem"}, lambda key: False),
            ({"operator": "nobody"}, lambda key: False),
        ]  # fmt: skip
        for wanted, keep in filters:
            assert lines(await listed(**wanted)) == {key: line for key, line in expected.items() if keep(key)}, wanted
        pieces = [piece async for piece in regulator.ExportTotals(pb.ExportTotalsRequest())]
        assert [len(piece.totals) for piece in pieces] == [2, 2, 2, 2]
        assert lines([row for piece in pieces for row in piece.totals]) == expected
        one = [piece async for piece in regulator.ExportTotals(pb.ExportTotalsRequest(operator="other"))]
        assert lines([row for piece in one for row in piece.totals]) == {
            key: line for key, line in expected.items() if key[1] == "other"
        }
        for wanted_wrong, field in (
            ({"first_day": "2026-02-30"}, "first_day"), ({"last_day": "x"}, "last_day"),
            ({"first_day": days[1], "last_day": days[0]}, "last_day"), ({"player": "a"}, "operator"),
            ({"operator": "Other"}, "operator"), ({"page_token": "x"}, "page_token"), ({"game": "\u00fc"}, "game"),
        ):  # fmt: skip
            request = pb.ListTotalsRequest(**wanted_wrong)  # type: ignore[arg-type]
            info = info_in(status_in(await refused(regulator.ListTotals(request))))
            assert (info.reason, info.metadata["field"]) == ("INVALID_FIELD", field)
        wrong = regulator.ExportTotals(pb.ExportTotalsRequest(first_day="x"))
        assert (await refused(wrong.read())).code().name == "INVALID_ARGUMENT"


async def test_an_export_stops_where_its_reader_is_not_let_in_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports, "EXPORT_ROWS", 1)
    async with serving(tmp_path) as harness:
        for name in ("a", "b", "c"):
            player = await ApiClient(harness.channel(), name).seated()
            await player.round_to_the_end()
        genuine = harness.server.services.reports._store.totals
        fingerprint = fingerprint_of(harness.certificate("demo-auditor").certificate)

        async def after_the_first(wanted: Any, *, after: Any, limit: int) -> Any:
            if after.day:
                remove = pb.RemoveCertificateRequest(
                    request_id=str(uuid.UUID(int=77)), fingerprint=fingerprint, reason="LEFT"
                )
                await admin_of(harness).RemoveCertificate(remove)
            return await genuine(wanted, after=after, limit=limit)

        monkeypatch.setattr(harness.server.services.reports._store, "totals", after_the_first)
        auditor: Any = AdminServiceStub(harness.channel("demo-auditor"))
        export = auditor.ExportTotals(pb.ExportTotalsRequest())
        assert len((await export.read()).totals) == 1
        error = await refused(export.read())
        assert error.code().name == "UNAUTHENTICATED"


async def test_measured_returns_are_there_for_those_who_look_after_the_server(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        player = await ApiClient(harness.channel()).seated()
        for _ in range(3):
            await player.round_to_the_end()
        regulator: Any = AdminServiceStub(harness.channel("demo-regulator"))
        answer = pb.GetReturnsResponse()
        while not answer.rulesets or answer.rulesets[0].rounds < 3:  # told by the duty in the background
            answer = await regulator.GetReturns(pb.GetReturnsRequest())
        (ruleset,) = answer.rulesets
        assert (ruleset.ruleset_id, ruleset.rounds, ruleset.void_rounds, answer.passed_over) == ("uth-solo", 3, 0, 0)
        figures = {(figure.name, figure.series): figure for figure in ruleset.figures}
        showdown, main = figures["showdown", "life"], figures["main", "block"]
        assert (showdown.exact, showdown.rounds, showdown.alarming) == ("0.000000", 3, False)
        assert float(showdown.low) <= float(showdown.measured) <= float(showdown.high)
        assert (main.exact, main.low) == ("-0.021850", "")
        assert float(main.evidence) < float(main.limit)
        assert (figures["cards", "life"].exact, figures["cards", "life"].measured) == ("", "")
        ante = next(bet for bet in ruleset.bets if bet.bet == "ante")
        assert (ante.currency, ante.staked_minor > 0) == ("EUR", True)
