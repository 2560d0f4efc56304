"""One round followed by one id, from the request through the commit to wallet and regulator: in spans, in the log and
on the wire. Nothing in them says who plays, what is dealt or what it costs.
"""

from __future__ import annotations

import base64
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from rgs.devkit.simulators.faults import Fault, FaultPlan, Planned
from rgs.devkit.simulators.serving import SimulatorServer
from rgs.node.logging import Log
from rgs.node.server import Server
from rgs.v1 import play_pb2, session_pb2
from tests.integration.test_money_outside import Outside, until
from tests.support.api.client import ApiClient, refused, request_id
from tests.support.api.harness import manifest, serving

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
HEADER = (("traceparent", f"00-{TRACE}-{PARENT}-01"),)
PLAYER = "player-whom-no-span-names"


def spans_in(path: Path) -> list[dict[str, Any]]:
    """All spans, read as a collector reads them, where ids are bytes and no field is unknown."""
    found = []
    for line in path.read_text("ascii").splitlines():
        request = json.loads(line)
        strict = json.loads(
            re.sub(r'"(traceId|spanId|parentSpanId)":"(\w+)"', lambda hit: f'"{hit[1]}":"{_base64(hit[2])}"', line)
        )
        ParseDict(strict, ExportTraceServiceRequest())
        for resource in request["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                found += scope["spans"]
    return found


def _base64(text: str) -> str:
    return base64.b64encode(bytes.fromhex(text)).decode()


async def test_one_id_from_the_request_to_the_wallet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[tuple[str, str]] = []
    handler_of = SimulatorServer._handler

    def listening(self: SimulatorServer, name: str, method: Any) -> Any:
        made: Any = handler_of(self, name, method)

        async def hear(request: Any, context: Any) -> Any:
            heard.extend((name, value) for key, value in context.invocation_metadata() if key == "traceparent")
            return await made.unary_unary(request, context)

        return made._replace(unary_unary=hear)

    monkeypatch.setattr(SimulatorServer, "_handler", listening)
    world = Outside(tmp_path, "it-adm", "participation", FaultPlan(), FaultPlan())
    traces = tmp_path / "home/log/traces.jsonl"
    config = world.harness.config
    monkeypatch.setattr(world.harness, "config", replace(config, traces=traces))
    with Log(config.log, "info", world.harness.clock, people=None) as log:
        world.harness.server = Server(world.harness.config, manifest(), clock=world.harness.clock, log=log)
        await world.start()
        try:
            client = await world.player()
            player = ApiClient(client.channel, PLAYER)
            opened = await player.sessions.OpenSession(player.open_request(), metadata=HEADER)
            player.session_id = opened.session.session_id
            await player.sessions.BuyParticipation(player.buy_request(), metadata=HEADER)
            player.seen(await player.play.StartRound(player.start_request(), metadata=HEADER))
            for action in (1, 1, 7):
                player.seen(await player.play.Act(player.act_request(action), metadata=HEADER))
            ending = session_pb2.EndParticipationRequest(request_id=request_id(), session_id=player.session_id)
            await player.sessions.EndParticipation(ending, metadata=HEADER)
        finally:
            await world.stop()
    spans = [span for span in spans_in(traces) if span["traceId"] == TRACE]
    by_id = {span["spanId"]: span for span in spans}
    assert len(by_id) == len(spans)

    def way(span: dict[str, Any]) -> list[str]:
        above = by_id.get(span["parentSpanId"])
        return [*(way(above) if above else [span["parentSpanId"]]), span["name"]]

    ways = {" ".join(way(span)) for span in spans}
    buying = f"{PARENT} rgs.v1.SessionService/BuyParticipation"
    assert {f"{buying} store commit", f"{buying} Debit", f"{buying} BuyParticipation"} <= ways
    assert f"{PARENT} rgs.v1.PlayService/Act store commit" in ways
    assert f"{PARENT} rgs.v1.SessionService/EndParticipation Credit" in ways
    assert all(int(span["endTimeUnixNano"]) >= int(span["startTimeUnixNano"]) > 0 for span in spans)
    # on the wire: each peer got the span that called it
    calls = {(span["name"], f"00-{TRACE}-{span['spanId']}-01") for span in spans if span["kind"] == 3}
    assert {name for name, _ in calls} >= {"OpenSession", "Debit", "BuyParticipation", "EndParticipation", "Credit"}
    assert calls <= set(heard)
    # in the log: the calls of the operator and those to the peers, under the same id, and the round beside it
    lines = [json.loads(line) for line in config.log.read_text("ascii").splitlines()]
    ours = [line for line in lines if line.get("trace_id") == TRACE]
    assert {line["event"] for line in ours} >= {"call", "peer_call"}
    assert player.round_id in {line.get("round_id") for line in ours}
    debit = next(line for line in ours if line["event"] == "peer_call" and line["method"] == "Debit")
    assert (debit["reason"], debit["peer"]) == ("OK", "wallet of op-real")
    assert len(debit["transaction_id"]) == len(debit["attempt_id"]) == 26
    peer_calls = [line for line in lines if line["event"] == "peer_call"]
    assert len([line for line in peer_calls if line["method"] == "Debit"]) == 1  # one line a call
    # what neither may hold
    for text in (traces.read_text("ascii"), config.log.read_text("ascii")):
        for secret in (PLAYER, opened.session.regulator_session_id, "hole_cards", "salt", '"As"'):
            assert secret not in text


@pytest.mark.parametrize(
    "headers",
    [
        (),
        (("traceparent", "rubbish"),),
        (("traceparent", f"00-{'0' * 32}-{PARENT}-01"),),
        (("traceparent", f"ff-{TRACE}-{PARENT}-01"),),
    ],
)
async def test_a_call_without_a_good_header_begins_a_trace(tmp_path: Path, headers: Any) -> None:
    traces = tmp_path / "traces.jsonl"
    async with serving(tmp_path, traces=traces) as harness:
        player = ApiClient(harness.channel())
        await player.sessions.OpenSession(player.open_request(), metadata=headers)
        await player.sessions.OpenSession(player.open_request(), metadata=headers)
        await harness.stop()
    servers = [span for span in spans_in(traces) if span["kind"] == 2]
    assert [span["name"] for span in servers] == ["rgs.v1.SessionService/OpenSession"] * 2
    assert len({span["traceId"] for span in servers} | {TRACE}) == 3
    assert not any("parentSpanId" in span for span in servers)


async def test_what_is_not_sampled_is_not_kept(tmp_path: Path) -> None:
    traces = tmp_path / "traces.jsonl"
    async with serving(tmp_path, traces=traces) as harness:
        player = ApiClient(harness.channel())
        header = (("traceparent", f"00-{TRACE}-{PARENT}-00"),)
        await player.sessions.OpenSession(player.open_request(), metadata=header)
        error = await refused(player.sessions.OpenSession(player.open_request(game="no-such-game"), metadata=HEADER))
        assert error.code() is not grpc.StatusCode.OK
        await harness.stop()
    spans = spans_in(traces)
    assert [(span["name"], span["status"]["code"], span["parentSpanId"]) for span in spans] == [
        ("rgs.v1.SessionService/OpenSession", 2, PARENT)
    ]


async def test_messages_of_a_stream_are_in_its_trace(tmp_path: Path) -> None:
    traces = tmp_path / "traces.jsonl"
    async with serving(tmp_path, traces=traces) as harness:
        player = await ApiClient(harness.channel()).seated()
        stream = player.play.Play(metadata=HEADER)
        await stream.write(play_pb2.PlayRequest(start_round=player.start_request()))
        await stream.read()
        await stream.done_writing()
        while await stream.read() is not grpc.aio.EOF:
            pass
        await harness.stop()
    spans = {span["name"]: span for span in spans_in(traces) if span["traceId"] == TRACE}
    inner = spans["rgs.v1.PlayService/StartRound"]
    assert inner["parentSpanId"] == PARENT
    assert spans["store commit"]["parentSpanId"] == inner["spanId"]


@pytest.mark.timeout(120)
async def test_recovery_continues_the_trace_of_the_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reply to a debit is lost, and the player does not come back: the server asks again, in the same trace."""
    lost = FaultPlan((Planned(Fault.LOST_REPLY, "Debit", 1),))
    world = Outside(tmp_path, "it-adm", "participation", lost, FaultPlan())
    traces = tmp_path / "home/log/traces.jsonl"
    config = replace(world.harness.config, traces=traces)
    monkeypatch.setattr(world.harness, "config", config)
    with Log(config.log, "info", world.harness.clock, people=None) as log:
        world.harness.server = Server(config, manifest(), clock=world.harness.clock, log=log)
        await world.start()
        try:
            client = await world.player()
            player = ApiClient(client.channel, PLAYER)
            player.session_id = (await player.sessions.OpenSession(player.open_request())).session.session_id
            request = player.buy_request()
            error = await refused(player.sessions.BuyParticipation(request, metadata=HEADER))
            assert error.code() is grpc.StatusCode.UNAVAILABLE

            async def bought() -> bool:
                view = await player.sessions.GetSession(session_pb2.GetSessionRequest(session_id=player.session_id))
                return bool(view.session.participation_id)

            await until(bought, polls=600)
        finally:
            await world.stop()
    spans = [span for span in spans_in(traces) if span["traceId"] == TRACE]
    (recovered,) = [span for span in spans if span["name"] == "recover purchase" and span["status"]["code"] != 2]
    (call,) = [span for span in spans if span["name"].endswith("/BuyParticipation") and span["kind"] == 2]
    assert recovered["parentSpanId"] == call["spanId"]
    below = {span["name"] for span in spans if span["parentSpanId"] == recovered["spanId"]}
    assert {"GetTransaction", "BuyParticipation", "store commit"} <= below
    lines = [json.loads(line) for line in config.log.read_text("ascii").splitlines()]
    named = {line["trace_id"] for line in lines if line["event"] == "peer_call" and line["method"] == "GetTransaction"}
    assert named == {TRACE}
