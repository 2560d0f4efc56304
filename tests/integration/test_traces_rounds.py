"""A round of each kind followed by one id, from the operator's request to wallet and regulator: in the spans, on the
wire and in the log. A player who does the same beside it, under another id, is nowhere in it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from rgs.devkit.demo.tables import with_timers
from rgs.devkit.requests import Requests
from rgs.devkit.shipped_tables import shipped_table
from rgs.devkit.simulators.faults import FaultPlan
from rgs.devkit.simulators.serving import SimulatorServer
from rgs.node.logging import Log
from rgs.node.server import Server
from rgs.service.callers import Role
from rgs.service.regulator.reports import Reporting
from rgs.v1 import session_pb2
from rgs.v1 import table_pb2 as pb
from rgs.v1.common_pb2 import ACTION_PLAY_4X
from rgs.v1.table_pb2_grpc import TableAdminServiceStub, TableServiceStub
from tests.integration.test_money_outside import OPERATOR, Outside, until
from tests.integration.test_traces import spans_in
from tests.support.api.client import ApiClient, request_id
from tests.support.api.harness import manifest

TABLE = "uth-online"
TIMERS = {"betting_ms": 4_000, "amber_ms": 500, "decision_ms": 10_000, "result_ms": 1_000}
REQUESTS = Requests(request_id)


class Traced(ApiClient):
    """A player whose calls all carry one trace id."""

    def __init__(self, world: ApiClient, number: int) -> None:
        super().__init__(world.channel, f"player-{number}")
        self.trace_id = f"{number:x}" * 32
        self.tables: Any = TableServiceStub(self.channel)

    async def ask(self, method: Any, request: Any) -> Any:
        header = f"00-{self.trace_id}-{self.trace_id[:16]}-01"
        return await method(request, metadata=(("traceparent", header),))

    async def enter(self, **game: str) -> None:
        opened = await self.ask(self.sessions.OpenSession, self.open_request(**game))
        self.session_id = opened.session.session_id

    async def leave(self) -> None:
        ending = session_pb2.EndParticipationRequest(request_id=request_id(), session_id=self.session_id)
        await self.ask(self.sessions.EndParticipation, ending)

    async def play_round(self) -> None:
        self.seen(await self.ask(self.play.StartRound, self.start_request()))
        self.seen(await self.ask(self.play.Act, self.act_request(ACTION_PLAY_4X)))


@dataclass
class Followed:
    """What a server left behind: its spans, its log, and what its peers were sent."""

    heard: list[tuple[str, str]] = field(default_factory=list)
    """Method and trace id of each call that the wallet and the regulator have received."""
    stages: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Transaction id of each report that the regulator has received -> its stages, and its trace id."""
    spans: list[dict[str, Any]] = field(default_factory=list)
    lines: list[dict[str, Any]] = field(default_factory=list)

    def calls_to(self, trace_id: str, *methods: str) -> list[str]:
        """Which of these methods the peers were called by under the id: on the wire, in spans, in log lines alike."""
        on_wire = [method for method, trace in self.heard if trace == trace_id and method in methods]
        spans = [s["name"] for s in self.spans if s["traceId"] == trace_id and s["kind"] == 3 and s["name"] in methods]
        lines = [
            line["method"]
            for line in self.lines
            if line.get("trace_id") == trace_id and line["event"] == "peer_call" and line["method"] in methods
        ]
        assert on_wire == spans == lines
        return on_wire

    def reports_of(self, trace_id: str) -> list[tuple[str, bool]]:
        """The calls that made a report under the id, each with whether the report was sent under it. It was sent on the
        wire, in a span, and in a log line that leads from the id to it.
        """
        by_id, found = {span["spanId"]: span for span in self.spans}, []
        for report in [s for s in self.spans if s["traceId"] == trace_id and s["name"] == "report stage"]:
            transaction_id = attribute(report, "rgs.transaction_id")
            around = {report["spanId"], *(link["spanId"] for link in report.get("links", ()))}
            (sent,) = [span for span in self.spans if span["name"] == "ReportStages" and span["parentSpanId"] in around]
            (line,) = [one for one in self.lines if one.get("transaction_id") == transaction_id]
            assert attribute(sent, "rgs.transaction_id") == transaction_id
            assert self.stages[transaction_id][1] == sent["traceId"] == line["trace_id"]
            assert (line["event"], line["reason"], attribute(report, "rgs.reason")) == ("peer_call", "OK", "OK")
            assert trace_id in (line["trace_id"], *line.get("trace_ids", ()))
            made_by = by_id[by_id[report["parentSpanId"]]["parentSpanId"]]
            found.append((made_by["name"].rpartition("/")[2], sent["traceId"] == trace_id))
        return found

    def calls_by(self, trace_id: str) -> list[str]:
        """The methods that the operator has called under the id, in spans and in log lines alike."""
        spans = [s["name"].rpartition("/")[2] for s in self.spans if s["traceId"] == trace_id and s["kind"] == 2]
        lines = [
            line["method"].rpartition("/")[2]
            for line in self.lines
            if line.get("trace_id") == trace_id and line["event"] == "call"
        ]
        assert spans == lines
        return spans

    def rounds_of(self, trace_id: str) -> set[str]:
        """The rounds that log lines with the id name."""
        return {line["round_id"] for line in self.lines if line.get("trace_id") == trace_id and line.get("round_id")}

    def commits_of(self, trace_id: str) -> list[str]:
        """Below which method each commit under the id stands."""
        names = {span["spanId"]: span["name"].rpartition("/")[2] for span in self.spans}
        commits = [s for s in self.spans if s["traceId"] == trace_id and s["name"] == "store commit"]
        return [names[span["parentSpanId"]] for span in commits]


@asynccontextmanager
async def followed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, jurisdiction: str, funding: str
) -> AsyncIterator[tuple[Outside, Followed]]:
    """A server that traces, between an operator and its peers. What is `Followed` can be read once it has ended."""
    found, handler_of = Followed(), SimulatorServer._handler

    def listening(self: SimulatorServer, name: str, method: Any) -> Any:
        made: Any = handler_of(self, name, method)

        async def hear(request: Any, context: Any) -> Any:
            headers = [str(value) for key, value in context.invocation_metadata() if key == "traceparent"]
            found.heard.extend((name, header.split("-")[1]) for header in headers)
            if name == "ReportStages":
                found.stages[request.transaction_id] = (len(request.stages), "".join(headers).split("-")[1])
            return await made.unary_unary(request, context)

        return made._replace(unary_unary=hear)

    monkeypatch.setattr(SimulatorServer, "_handler", listening)
    world = Outside(folder, jurisdiction, funding, FaultPlan(), FaultPlan())
    config = replace(world.harness.config, traces=folder / "home/log/traces.jsonl")
    world.harness.config = config
    with Log(config.log, "info", world.harness.clock, people=None) as log:
        world.harness.server = Server(config, manifest(), clock=world.harness.clock, log=log)
        await world.start()
        try:
            yield world, found
        finally:
            await world.stop()
    assert config.traces is not None
    found.spans += spans_in(config.traces)
    found.lines += [json.loads(line) for line in config.log.read_text("ascii").splitlines()]


def attribute(span: dict[str, Any], name: str) -> str:
    (value,) = [one["value"]["stringValue"] for one in span["attributes"] if one["key"] == name]
    return str(value)


async def test_a_report_is_sent_under_the_id_of_the_call_that_made_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the call, by the process that leads the duty."""
    async with followed(tmp_path, monkeypatch, "it-adm", "participation") as (world, found):
        player = Traced(await world.player(), 1)
        await player.enter()
        await player.ask(player.sessions.BuyParticipation, player.buy_request())
        await player.play_round()

        async def is_reported() -> bool:
            return bool(found.stages)

        await until(is_reported)
    assert found.calls_to(player.trace_id, "ReportStages") == ["ReportStages"]
    assert found.reports_of(player.trace_id) == [("Act", True)]


async def test_reports_that_are_sent_together_are_each_in_the_trace_of_its_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request carries one id: here one of its own. The spans link to it, and its log line names the others."""
    send, may_send = Reporting.report_stages, asyncio.Event()

    async def later(self: Reporting) -> int:
        return await send(self) if may_send.is_set() else 0

    monkeypatch.setattr(Reporting, "report_stages", later)
    async with followed(tmp_path, monkeypatch, "it-adm", "participation") as (world, found):
        client = await world.player()
        players = [Traced(client, number) for number in (1, 2)]
        for player in players:
            await player.enter()
            await player.ask(player.sessions.BuyParticipation, player.buy_request())
            await player.play_round()
        may_send.set()

        async def is_reported() -> bool:
            return bool(found.stages)

        await until(is_reported)
    ((count, trace_id),) = found.stages.values()
    assert (count, trace_id in {player.trace_id for player in players}) == (2, False)
    for player in players:
        assert found.calls_to(player.trace_id, "ReportStages") == []
        assert found.reports_of(player.trace_id) == [("Act", False)]


async def test_a_round_of_one_player(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with followed(tmp_path, monkeypatch, "it-adm", "participation") as (world, found):
        client = await world.player()
        one, other = Traced(client, 1), Traced(client, 2)
        for player in (one, other):
            await player.enter()
            await player.ask(player.sessions.BuyParticipation, player.buy_request())
        await asyncio.gather(one.play_round(), other.play_round())
        for player in (one, other):
            await player.leave()
    for player in (one, other):
        assert found.calls_by(player.trace_id) == [
            "OpenSession", "BuyParticipation", "StartRound", "Act", "EndParticipation",
        ]  # fmt: skip
        assert found.calls_to(player.trace_id, "Debit", "Credit") == ["Debit", "Credit"]
        assert found.rounds_of(player.trace_id) == {player.round_id}
        assert {"StartRound", "Act"} <= set(found.commits_of(player.trace_id))
        assert [made_by for made_by, _ in found.reports_of(player.trace_id)] == ["Act"]


async def test_a_round_that_is_paid_bet_by_bet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with followed(tmp_path, monkeypatch, "gb-ukgc", "seamless") as (world, found):
        client = await world.player()
        one, other = Traced(client, 1), Traced(client, 2)
        for player in (one, other):
            await player.enter(currency="GBP")
        await asyncio.gather(one.play_round(), other.play_round())
    for player in (one, other):
        assert found.calls_by(player.trace_id) == ["OpenSession", "StartRound", "Act"]
        # the ante, the raise, and what the round returned
        assert found.calls_to(player.trace_id, "Debit", "Credit") == ["Debit", "Debit", "Credit"]
        assert found.rounds_of(player.trace_id) == {player.round_id}
    assert found.stages == {}, "no such round is reported to a regulator"


class Seated(Traced):
    """A player at a table."""

    seat: pb.SeatView

    async def sit(self) -> None:
        await self.enter(game=TABLE, table=TABLE)
        await self.ask(self.sessions.BuyParticipation, self.buy_request())
        self.seat = (await self.ask(self.tables.Join, REQUESTS.join(self.session_id, self.player))).seat

    async def view(self) -> pb.TableView:
        """Read under no id of the player's own."""
        found = await self.tables.GetTable(pb.GetTableRequest(table=TABLE, session_id=self.session_id))
        self.seat = found.seat
        table: pb.TableView = found.table
        return table

    async def until(self, *states: int) -> None:
        async def is_reached() -> bool:
            return (await self.view()).state in states

        await until(is_reached)

    async def bet(self) -> None:
        view = await self.view()
        round_id = view.round_id if view.state == pb.TABLE_STATE_BETTING else ""
        placing = REQUESTS.place_bets(self.seat, round_id, {"ante": 500})
        self.seat = (await self.ask(self.tables.PlaceBets, placing)).seat

    async def decide(self) -> None:
        self.round_id = (await self.view()).round_id
        await self.ask(self.tables.Decide, REQUESTS.decide(self.seat, ACTION_PLAY_4X))


async def play_at_table(players: Sequence[Seated]) -> None:
    for player in players:
        await player.sit()
    for player in players:
        await player.bet()
    await players[0].until(pb.TABLE_STATE_DECIDING)
    for player in players:
        await player.decide()
    await players[0].until(pb.TABLE_STATE_IDLE)
    for player in players:
        await player.view()
        await player.ask(player.tables.Leave, REQUESTS.leave_seat(player.seat))
        await player.leave()


async def test_a_round_at_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its steps are for all who sit there, and in nobody's trace. The report of a seat is in that of its player."""
    async with followed(tmp_path, monkeypatch, "it-adm", "participation") as (world, found):
        certificate = world.harness.issue(Role.ADMIN, "admin-1")
        await world.harness.allow(certificate, Role.ADMIN, "admin-1")
        client = await world.player()
        text = with_timers(shipped_table(TABLE), TIMERS)
        text = text.replace('"demo"', '"it-adm"').replace("demo-operator", OPERATOR)
        admin: Any = TableAdminServiceStub(world.harness.channel(certificate))
        await admin.ConfigureTable(pb.ConfigureTableRequest(request_id=request_id(), config=text, reason="NEW_TABLE"))
        players = [Seated(client, number) for number in (1, 2)]
        await play_at_table(players)
    (round_id,) = {player.round_id for player in players}
    for player in players:
        calls = found.calls_by(player.trace_id)
        assert calls == [
            "OpenSession", "BuyParticipation", "Join", "PlaceBets", "Decide", "Leave", "EndParticipation",
        ]  # fmt: skip
        assert found.calls_to(player.trace_id, "Debit", "Credit") == ["Debit", "Credit"]
        assert found.rounds_of(player.trace_id) == {round_id}
        commits = found.commits_of(player.trace_id)
        assert "PlaceBets" in commits
        assert commits.count("Decide") == 1, "the end of the window, the cards and the settlement are the table's"
        assert [made_by for made_by, _ in found.reports_of(player.trace_id)] == ["Decide"]
