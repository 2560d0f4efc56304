"""How streams of tables end, who is ended and who is not; and `WatchSeat` from its first view to its last."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest

from rgs.api import table_watch
from rgs.core.tables.machine import State
from rgs.store.changes import StoreError
from rgs.v1 import table_pb2 as pb
from tests.support.api.client import refused
from tests.support.api.harness import reason_in, status_in
from tests.support.api.table_endpoint import tabled
from tests.support.api.table_streams import (
    S,
    is_forgotten,
    kind_of,
    open_stream,
    read_out,
    request,
    to_the_end,
    watch_session,
    watch_table,
)
from tests.support.api.tables import TABLE, chat_message, session_id
from tests.support.waiting import until

# --- how a stream ends ------------------------------------------------------------------------------------------------


async def test_a_client_that_vanishes_leaves_nothing_behind() -> None:
    async with tabled() as served:
        served.hall.sit(1)
        stream = served.watch()
        await request(stream, watch_table())
        await request(stream, watch_session())
        seat = served.tables().WatchSeat(pb.WatchSeatRequest(session_id=S))
        await seat.read()
        assert len(served.hall.feed._topics[TABLE]["op1"].mailboxes) == 2
        stream.cancel()
        seat.cancel()
        await until(lambda: is_forgotten(served))
        await until(lambda: not served.calls.streams._open)


async def test_what_a_stream_leaves_behind_does_not_wait_for_the_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody may hold the generator of a stream: it is closed all the same. And no task is left."""
    made: list[Any] = []
    original = table_watch._watch_seat

    def kept(*given: Any) -> Any:
        made.append(original(*given))
        return made[-1]

    def is_sending() -> bool:
        return any("_send" in repr(task.get_coro()) for task in asyncio.all_tasks())

    monkeypatch.setattr(table_watch, "_watch_seat", kept)
    async with tabled() as served:
        served.hall.sit(1)
        seat = served.tables().WatchSeat(pb.WatchSeatRequest(session_id=S))
        await seat.read()
        seat.cancel()
        await until(lambda: is_forgotten(served))
        stream = served.watch()
        await request(stream, watch_table())
        assert is_sending()
        await read_out(stream)
        await until(lambda: not served.calls.streams._open)
        assert not is_sending()
    assert len(made) == 1


async def test_a_caller_that_is_removed_gets_nothing_more_even_if_he_is_silent() -> None:
    async with tabled() as served:
        stream, other = served.watch(), served.watch("op2")
        for one in (stream, other):
            await request(one, watch_table())
        served.parties.rows = [row for row in served.parties.rows if row.party != "op1"]
        served.parties.count += 1
        await served.gate.refresh()
        served.hall.step()
        error = await refused(stream.read())
        assert error.code() is grpc.StatusCode.UNAUTHENTICATED
        assert (await other.read()).table.version == 2
        await until(lambda: "op1" not in served.hall.feed._topics[TABLE])


async def test_streams_end_when_the_server_drains() -> None:
    async with tabled() as served:
        served.hall.sit(1)
        stream = served.watch()
        await request(stream, watch_table())
        seat = served.tables().WatchSeat(pb.WatchSeatRequest(session_id=S))
        assert [kind_of(await seat.read()) for _ in range(2)] == ["table", "seat"]
        stopping = asyncio.create_task(served.endpoint.stop(5))
        for one in (stream, seat):
            error = await refused(to_the_end(one))
            assert (error.code(), reason_in(status_in(error))) == (grpc.StatusCode.UNAVAILABLE, "UNAVAILABLE")
        await asyncio.wait_for(stopping, 3)
        assert is_forgotten(served)


async def test_who_does_not_read_delays_nobody_gets_the_newest_and_is_ended() -> None:
    async with tabled() as served:
        slow, fast = served.watch(), served.watch("op2")
        for one in (slow, fast):
            await request(one, watch_table())
        held, lively = (open_stream(served, party) for party in ("op1", "op2"))
        steps = stuck = 0
        while stuck < 40:  # until the connection takes no more
            steps += 1
            served.hall.step(State.OPENING, commitment=bytes(60_000))
            assert (await fast.read()).table.version == steps + 1
            stuck = stuck + 1 if held.writes_s is not None else 0
        (mailbox,) = served.hall.feed._topics[TABLE]["op1"].mailboxes
        assert list(mailbox._ready) == [TABLE]  # the newest alone
        await until(lambda: lively.writes_s is None)
        served.calls.streams.poll(100.0)
        await until(lambda: held.ending is not None)
        assert (held.ending.reason, lively.ending) == ("STREAM_STALLED", None)  # type: ignore[union-attr]
        await until(lambda: "op1" not in served.hall.feed._topics[TABLE])
        served.hall.step()
        assert (await fast.read()).table.version == steps + 2
        slow.cancel()


async def test_who_reads_is_not_idle_and_who_gets_nothing_is() -> None:
    async with tabled() as served:
        served.hall.tables["quiet"] = served.hall.tables[TABLE]
        reading, idle = served.watch(), served.watch("op2")
        for one, party in ((reading, "op1"), (idle, "op2")):
            await request(one, watch_table())
            held = open_stream(served, party)
            await until(lambda held=held: held.reads_s is not None)  # type: ignore[misc]
        await idle.write(pb.WatchRequest(leave_table=pb.WatchTable(table=TABLE)))
        await until(lambda: "op2" not in served.hall.feed._topics[TABLE])
        served.calls.streams.poll(3_000.0)
        served.hall.step()
        assert (await reading.read()).table.version == 2
        await until(lambda: any(stream.reads_s == 3_000.0 for stream in served.calls.streams._open))
        served.calls.streams.poll(3_600.0)
        assert reason_in(status_in(await refused(idle.read()))) == "STREAM_IDLE"
        served.hall.step()
        assert (await reading.read()).table.version == 3
        reading.cancel()


# --- one seat ---------------------------------------------------------------------------------------------------------


async def test_one_seat_from_its_table_to_the_close_of_its_session() -> None:
    async with tabled() as served:
        served.hall.sit(1)
        stream = served.tables().WatchSeat(pb.WatchSeatRequest(session_id=S))
        first, second = await stream.read(), await stream.read()
        assert (first.table.version, second.seat.session_id) == (1, S)
        assert kind_of(await stream.read()) == "seat"  # what was before the table was watched is not known
        served.hall.step()
        assert [kind_of(await stream.read()) for _ in range(2)] == ["table", "seat"]
        served.hall.signals.said(chat_message(1))
        assert (await stream.read()).line.text == "line 1"
        served.hall.close(S)
        served.hall.signals.seat(S)
        assert (await stream.read()).seat.ended == "CLOSED"
        assert await stream.read() is grpc.aio.EOF
        assert await stream.code() is grpc.StatusCode.OK
        assert is_forgotten(served)


async def test_a_seat_of_a_closed_session_is_shown_once() -> None:
    async with tabled() as served:
        served.hall.sit(1)
        served.hall.close(S)
        stream = served.tables().WatchSeat(pb.WatchSeatRequest(session_id=S))
        assert [kind_of(one) async for one in stream] == ["table", "seat"]


async def test_one_seat_that_is_not_the_callers_or_no_more_there() -> None:
    async with tabled() as served:
        served.hall.sit(1)
        for party, wanted, code in (
            ("op2", S, grpc.StatusCode.NOT_FOUND),
            ("op1", session_id(2), grpc.StatusCode.NOT_FOUND),
            ("op1", "x", grpc.StatusCode.INVALID_ARGUMENT),
            ("admin1", S, grpc.StatusCode.PERMISSION_DENIED),
        ):
            stream = served.tables(party).WatchSeat(pb.WatchSeatRequest(session_id=wanted))
            assert (await refused(stream.read())).code() is code
        stream = served.tables().WatchSeat(pb.WatchSeatRequest(session_id=S))
        for _ in range(3):
            await stream.read()
        served.hall.operators[TABLE] = {"op2"}
        served.hall.step()
        assert (await refused(stream.read())).code() is grpc.StatusCode.NOT_FOUND
        assert is_forgotten(served)


async def test_one_seat_waits_for_a_store_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rgs.api.calls.WAIT_S", 0.01)
    async with tabled() as served:
        served.hall.sit(1)
        stream = served.tables().WatchSeat(pb.WatchSeatRequest(session_id=S))
        for _ in range(3):
            await stream.read()
        served.hall.failing = StoreError("away")
        served.hall.reads.clear()
        served.hall.signals.seat(S)
        await until(lambda: served.hall.reads["seat"] > 2)
        served.hall.failing = None
        assert (await stream.read()).seat.session_id == S
        stream.cancel()
