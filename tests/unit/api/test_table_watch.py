"""`Watch` at the wire: views, seats and lines as they change, and play between them."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest

from rgs.api import table_watch
from rgs.api.quotas import PartyLimits
from rgs.core.errors import NotSeatedError
from rgs.core.tables.machine import State
from rgs.service.tables import feed as feed_module
from rgs.store.changes import StoreError
from rgs.v1 import table_pb2 as pb
from rgs.v1.common_pb2 import ACTION_CHECK
from tests.support.api.client import cards_in, refused, request_id
from tests.support.api.harness import info_in, reason_in, status_in
from tests.support.api.table_endpoint import PARTIES, WATCH, tabled
from tests.support.api.table_streams import (
    S,
    is_forgotten,
    kind_of,
    leave,
    read_out,
    reason_of,
    request,
    watch_session,
    watch_table,
)
from tests.support.api.tables import OP1, TABLE, chat_message, session_id, settle
from tests.support.waiting import until

# --- what is watched --------------------------------------------------------------------------------------------------


async def test_a_table_is_sent_as_it_stands_and_at_every_step() -> None:
    async with tabled() as served:
        stream = served.watch()
        first = await request(stream, watch_table())
        assert (first.request_id, first.table.version, first.table.boxes[0].nickname) == ("", 1, "seen by op1")
        for version in range(2, 20):
            served.hall.step()
            view = (await stream.read()).table
            assert (view.version, view.state) == (version, pb.TABLE_STATE_DECIDING)
        assert await read_out(stream) == []
        await until(lambda: is_forgotten(served))


async def test_a_view_that_the_client_has_is_not_sent_again() -> None:
    async with tabled() as served:
        served.hall.sit(1)
        stream = served.watch()
        await stream.write(watch_table(after_version=1))
        assert kind_of(await request(stream, leave())) == "leave"  # nothing came before it
        served.hall.step()
        assert (await stream.read()).table.version == 2
        assert (await request(stream, watch_table(after_version=1))).table.version == 2
        await read_out(stream)


async def test_a_seat_is_sent_as_it_stands_and_when_it_changes() -> None:
    async with tabled() as served:
        for nth in (1, 2):
            served.hall.sit(nth)
        stream = served.watch()
        assert (await request(stream, watch_session())).seat.session_id == S
        assert (await request(stream, watch_table())).table.version == 1
        assert (await stream.read()).seat.session_id == S  # what was before the table was watched is not known
        served.hall.sit(1, device_no=2, seat_version=2)
        served.hall.signals.seat(S)
        served.hall.signals.seat(session_id(2))  # nobody watches it
        seat = (await stream.read()).seat
        assert (seat.device_no, seat.seat_version) == (2, 2)
        served.hall.step()
        assert [kind_of(await stream.read()) for _ in range(2)] == ["table", "seat"]
        served.hall.step(State.SETTLING)
        served.hall.step(State.RESULT)
        seen = [await stream.read()]
        while kind_of(seen[-1]) == "table":
            seen.append(await stream.read())
        assert seen[-2].table.state == pb.TABLE_STATE_RESULT
        assert await read_out(stream) == []


async def test_who_leaves_hears_nothing_more() -> None:
    async with tabled() as served:
        served.hall.sit(1)
        stream = served.watch()
        await request(stream, watch_table())
        await request(stream, watch_session())
        await stream.write(pb.WatchRequest(leave_table=pb.WatchTable(table=TABLE)))
        assert kind_of(await request(stream, leave())) == "leave"
        served.hall.step()
        assert kind_of(await stream.read()) == "seat"
        await stream.write(pb.WatchRequest(leave_session=pb.WatchSession(session_id=S)))
        assert kind_of(await request(stream, leave())) == "leave"
        assert is_forgotten(served)
        served.hall.step()
        served.hall.signals.seat(S)
        assert await read_out(stream) == []


async def test_a_line_of_chat_names_the_player_to_his_operator_only() -> None:
    async with tabled() as served:
        own, other = served.watch(), served.watch("op2")
        for stream in (own, other):
            await request(stream, watch_table())
        served.hall.signals.said(chat_message(1))
        line, foreign = (await own.read()).line, (await other.read()).line
        assert (line.text, line.is_own, line.player) == ("line 1", True, "player-1")
        assert (foreign.text, foreign.is_own, foreign.player) == ("line 1", False, "")


async def test_a_table_or_session_of_another_operator_is_not_there() -> None:
    async with tabled() as served:
        served.hall.sit(1)
        served.hall.operators[TABLE] = {"op1"}
        stream = served.watch("op2")
        for message, key, value in (
            (watch_table(), "table", TABLE),
            (watch_table("nowhere"), "table", "nowhere"),
            (watch_session(1), "session_id", S),
            (watch_session(9), "session_id", session_id(9)),
        ):
            response = await request(stream, message)
            assert reason_of(response) == "NOT_FOUND"
            assert info_in(response.error).metadata[key] == value
        served.hall.step()
        served.hall.signals.seat(S)
        served.hall.signals.said(chat_message(1))
        await settle()
        assert await read_out(stream) == []
        assert is_forgotten(served)


async def test_a_table_that_is_taken_away_is_said_once() -> None:
    async with tabled() as served:
        stream = served.watch()
        await request(stream, watch_table())
        served.hall.operators[TABLE] = {"op2"}
        served.hall.step()
        response = await stream.read()
        assert (reason_of(response), info_in(response.error).metadata["table"]) == ("NOT_FOUND", TABLE)
        served.hall.step()
        assert await read_out(stream) == []


async def test_a_session_that_is_closed_or_gone_is_watched_no_more() -> None:
    async with tabled() as served:
        for nth in (1, 2):
            served.hall.sit(nth)
        stream = served.watch()
        for nth in (1, 2):
            await request(stream, watch_session(nth))
        served.hall.close(S)
        served.hall.signals.seat(S)
        assert (await stream.read()).seat.ended == "CLOSED"
        del served.hall.seats[session_id(2)]
        served.hall.signals.seat(session_id(2))
        assert reason_of(await stream.read()) == "NOT_FOUND"
        await until(lambda: is_forgotten(served))
        await read_out(stream)


async def test_a_seat_that_cannot_be_read_now_is_read_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_watch, "WAIT_S", 0.01)
    async with tabled() as served:
        served.hall.sit(1)
        stream = served.watch()
        await request(stream, watch_session())
        served.hall.failing = StoreError("away")
        served.hall.reads.clear()
        served.hall.signals.seat(S)
        await until(lambda: served.hall.reads["seat"] > 2)
        served.hall.failing = None
        assert (await stream.read()).seat.session_id == S
        assert await read_out(stream) == []


async def test_a_stream_watches_so_much_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_module, "TABLES_MAX", 1)
    monkeypatch.setattr(feed_module, "SESSIONS_MAX", 1)
    async with tabled() as served:
        for nth in (1, 2):
            served.hall.sit(nth)
        stream = served.watch()
        await request(stream, watch_session(1))
        refusals = [await request(stream, watch_session(2))]
        await request(stream, watch_table())
        await stream.read()  # the seat
        refusals.append(await request(stream, watch_table("other")))
        for response, field in zip(refusals, ("watch_session", "watch_table"), strict=True):
            assert reason_of(response) == "INVALID_FIELD"
            info = info_in(response.error)
            assert (info.metadata["field"], info.metadata["limit"], info.metadata["value"]) == (field, "1", "2")
        await read_out(stream)


# --- play on it -------------------------------------------------------------------------------------------------------


async def test_play_is_answered_in_order_with_views_between() -> None:
    async with tabled() as served:
        served.hall.sit(1)
        stream = served.watch()
        await request(stream, watch_table())
        sent = []
        for nth in range(60):
            message = leave()
            sent.append(message.leave.request_id)
            await stream.write(message)
            if nth % 3 == 0:
                served.hall.step(State.OPENING)
                await asyncio.sleep(0)
        responses = await read_out(stream)
        assert [one.request_id for one in responses if kind_of(one) == "leave"] == sent
        versions = [one.table.version for one in responses if kind_of(one) == "table"]
        assert versions == sorted(set(versions))
        assert len(responses) == len(sent) + len(versions)


async def test_every_call_of_play_has_its_answer() -> None:
    async with tabled() as served:
        served.hall.sit(1)
        stream = served.watch()
        named: dict[str, Any] = {"request_id": request_id(), "session_id": S}
        messages = [
            pb.WatchRequest(join=pb.JoinRequest(**named, nickname="Ada")),
            pb.WatchRequest(leave=pb.LeaveRequest(**named, device_no=1)),
            pb.WatchRequest(place_bets=pb.PlaceBetsRequest(**named, device_no=1, seat_version=1)),
            pb.WatchRequest(
                decide=pb.DecideRequest(**named, device_no=1, round_id=S, round_version=1, action=ACTION_CHECK)
            ),
            pb.WatchRequest(say=pb.SayRequest(**named, text="hello")),
        ]
        for message in messages:
            field = message.WhichOneof("request")
            response = await request(stream, message)
            assert (kind_of(response), response.request_id) == (field, named["request_id"])
            if field == "say":
                assert response.say.line.text == "line 1"
            else:
                assert getattr(response, str(field)).seat.session_id == S
        calls = [(method, caller) for method, caller, _ in served.doubles.calls]
        assert calls == [(method, OP1) for method in ("Join", "Leave", "PlaceBets", "Decide", "Say")]
        await read_out(stream)


async def test_an_error_is_an_answer_with_its_request_id() -> None:
    async with tabled() as served:
        served.hall.sit(1)
        stream = served.watch()
        served.doubles.refusal = NotSeatedError("join first")
        message = leave()
        response = await request(stream, message)
        assert (reason_of(response), response.request_id) == ("NOT_SEATED", message.leave.request_id)
        served.doubles.refusal = None
        wrong = pb.WatchRequest(say=pb.SayRequest(request_id="not a UUID", session_id=S, text="x"))
        response = await request(stream, wrong)
        assert (reason_of(response), response.request_id) == ("INVALID_FIELD", "not a UUID")
        unknown = leave().SerializeToString() + b"\xf8\x07\x01"
        response = await request(stream, unknown)  # type: ignore[arg-type]
        assert (reason_of(response), bool(response.request_id)) == ("UNKNOWN_FIELD", True)
        for nothing, reason in (
            (b"", "INVALID_FIELD"),
            (b"\xff", "INVALID_FIELD"),
            (watch_table("No Table").SerializeToString(), "INVALID_FIELD"),
            (pb.WatchRequest(watch_session=pb.WatchSession(session_id="x")).SerializeToString(), "INVALID_FIELD"),
        ):
            response = await request(stream, nothing)  # type: ignore[arg-type]
            assert (reason_of(response), response.request_id) == (reason, "")
        assert kind_of(await request(stream, leave())) == "leave"
        await read_out(stream)


async def test_a_party_above_its_messages_gets_that_as_an_answer() -> None:
    async with tabled(limits=PartyLimits(messages_per_s=2)) as served:
        served.hall.sit(1)
        stream = served.watch()
        responses = [await request(stream, leave()) for _ in range(4)]
        assert "PARTY_LIMIT" in [reason_of(one) for one in responses if kind_of(one) == "error"]
        assert all(one.request_id for one in responses)
        stream.cancel()


async def test_only_operators_and_only_so_many_streams() -> None:
    async with tabled(limits=PartyLimits(streams_max=1)) as served:
        for party in set(PARTIES) - {"op1", "op2"}:
            error = await refused(served.watch(party).read())
            assert error.code() is grpc.StatusCode.PERMISSION_DENIED
        stream = served.watch()
        await request(stream, watch_table())
        assert reason_in(status_in(await refused(served.watch().read()))) == "PARTY_LIMIT"
        assert (await request(served.watch("op2"), watch_table())).table.version == 1
        stream.cancel()


async def test_a_view_without_cards_sends_none() -> None:
    async with tabled() as served:
        stream = served.watch()
        assert list(cards_in(await request(stream, watch_table()))) == []
        served.hall.step(board=("Kc",))
        assert list(cards_in(await stream.read())) == ["Kc"]
        await read_out(stream)
    assert WATCH == "rgs.v1.TableService/Watch"
