"""Notices on the `Play` stream, at the wire: who hears what, between the answers and never instead of them."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import grpc
import pytest

from rgs.core.errors import RoundNotOpenError
from rgs.core.rounds import RoundStatus
from rgs.service.callers import Caller
from rgs.service.play import updates
from rgs.service.play.notices import NOTICES_MAX, Notice, Notices
from rgs.v1 import common_pb2, play_pb2
from tests.support.api.harness import Small, reason_in, small, versions
from tests.support.api.views import SESSION_ID

OTHER = "01" + "T" * 24


def round_id(nth: int) -> str:
    return f"01{nth:024d}"


def act(nth: int, session_id: str = SESSION_ID) -> play_pb2.PlayRequest:
    return play_pb2.PlayRequest(act=play_pb2.ActRequest(request_id=f"r{nth}", session_id=session_id, round_version=nth))


def notice(nth: int, session_id: str = SESSION_ID, status: RoundStatus = RoundStatus.OPEN, code: str = "") -> Notice:
    return Notice(session_id, round_id(nth), status, code, "N" * 16, "P" * 16)


async def refusing(_caller: Caller, _message: Any) -> bytes:
    raise RoundNotOpenError("no")


def reported(response: play_pb2.PlayResponse) -> int:
    """The number of an answer, or minus that of a notice."""
    if response.WhichOneof("response") == "notice":
        return -int(response.notice.round_id[2:])
    return response.act.round.round_version


async def rest(stream: Any) -> list[play_pb2.PlayResponse]:
    """What comes until the end."""
    responses = []
    while (response := await stream.read()) is not grpc.aio.EOF:
        responses.append(response)
    return responses


async def played(harness: Small, *session_ids: str) -> Any:
    """A stream that has played these sessions, their answers read."""
    stream = harness.stream()
    for session_id in session_ids or (SESSION_ID,):
        await stream.write(act(1, session_id))
        assert reported(await stream.read()) == 1
    return stream


async def test_what_a_notice_says() -> None:
    async with small(Act=versions) as harness:
        stream = await played(harness)
        harness.notices.emit(notice(7, code="CARDS_SHOWN"))
        harness.notices.emit(notice(7, status=RoundStatus.VOID))
        first, second = await stream.read(), await stream.read()
        await stream.done_writing()
    assert first == play_pb2.PlayResponse(
        notice=play_pb2.RoundNotice(
            session_id=SESSION_ID,
            round_id=round_id(7),
            status=common_pb2.ROUND_STATUS_OPEN,
            paused=True,
            malfunction_code="CARDS_SHOWN",
            regulator_session_id="N" * 16,
            regulator_participation_id="P" * 16,
        )
    )
    assert (second.notice.status, second.notice.paused) == (3, False)


async def test_only_sessions_that_were_played_are_heard_of() -> None:
    async with small(Act=versions, StartRound=refusing) as harness:
        stream = harness.stream()
        await stream.write(
            play_pb2.PlayRequest(start_round=play_pb2.StartRoundRequest(request_id="r", session_id=OTHER))
        )
        assert (await stream.read()).WhichOneof("response") == "error"  # a session that is not the caller's
        await stream.write(act(1))
        assert reported(await stream.read()) == 1
        harness.notices.emit(notice(1, OTHER))
        harness.notices.emit(notice(2))
        assert reported(await stream.read()) == -2
        await stream.done_writing()


async def test_answers_keep_their_order_with_notices_between() -> None:
    async with small(Act=versions) as harness:
        stream = await played(harness)

        async def disturb() -> None:
            for nth in range(1, 200):
                harness.notices.emit(notice(nth))
                await asyncio.sleep(0.001)

        disturbing = asyncio.create_task(disturb())
        for nth in range(1, 201):
            await stream.write(act(nth))
        await disturbing
        await stream.done_writing()
        seen = [reported(response) for response in await rest(stream)]
    assert [nth for nth in seen if nth > 0] == list(range(1, 201))
    notices = [-nth for nth in seen if nth < 0]
    assert notices == sorted(notices)
    assert notices, "some came in between"


async def test_who_does_not_read_loses_the_oldest_notices_and_no_answer() -> None:
    async with small(Act=versions) as harness:
        stream = await played(harness)
        for nth in range(1, NOTICES_MAX + 11):  # all before the stream's own task can run
            harness.notices.emit(notice(nth))
        await stream.write(act(2))
        seen = [reported(await stream.read()) for _ in range(NOTICES_MAX + 1)]
        await stream.done_writing()
    assert 2 in seen
    notices = [-nth for nth in seen if nth < 0]
    assert notices == list(range(11, NOTICES_MAX + 11))


async def test_a_stream_hears_of_the_sessions_that_it_played_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(updates, "SESSIONS_MAX", 2)
    ids = [f"01{letter * 24}" for letter in "ABC"]
    async with small(Act=versions) as harness:
        stream = await played(harness, ids[0], ids[1], ids[0], ids[2])  # the second is the one of longest ago
        for nth, session_id in enumerate(ids, 1):
            harness.notices.emit(notice(nth, session_id))
        assert [reported(await stream.read()) for _ in range(2)] == [-1, -3]
        await stream.done_writing()


async def test_nothing_is_left_of_a_stream_that_has_ended() -> None:
    async with small(Act=versions) as harness:
        for cancelled in (False, True):
            stream = await played(harness)
            assert _listeners(harness.notices)
            if cancelled:
                stream.cancel()
            else:
                await stream.done_writing()
                assert await rest(stream) == []
            for _ in range(200):
                if not _listeners(harness.notices):
                    break
                await asyncio.sleep(0.01)
            assert not _listeners(harness.notices)
        names = {task.get_coro().__qualname__ for task in asyncio.all_tasks()}  # type: ignore[union-attr]
        assert "_Listener._tell" not in names


async def test_who_is_not_let_in_any_more_hears_nothing() -> None:
    async with small(Act=versions) as harness:
        stream = await played(harness)
        harness.parties.rows, harness.parties.count = [], 1
        await harness.gate.poll()
        harness.notices.emit(notice(1))
        await asyncio.sleep(0.05)
        reported = []
        # The server may have ended it by itself before this is written, or read.
        with contextlib.suppress(asyncio.InvalidStateError, grpc.aio.AioRpcError):
            await stream.write(act(2))
            while (message := await stream.read()) is not grpc.aio.EOF:
                reported.append(reason_in(message.error))
        assert set(reported) <= {"CERTIFICATE_NOT_ALLOWED"}
        assert (await stream.code()).name == "UNAUTHENTICATED"


async def test_a_server_that_stops_ends_streams_that_listen() -> None:
    async with small(Act=versions) as harness:
        stream = await played(harness)
        await asyncio.wait_for(harness.endpoint.stop(5), 2)
        assert (await stream.code()).name == "UNAVAILABLE"


def _listeners(notices: Notices) -> dict[str, Any]:
    return dict(notices._listeners)
