"""Two devices of one player: each stream hears what the other did, and what unary calls did, in one server."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import grpc

from rgs.v1 import common_pb2, play_pb2, session_pb2, table_pb2
from tests.support.api.client import BOUGHT_MINOR, ApiClient, request_id
from tests.support.api.harness import reason_in, serving

CHECK, FOLD = common_pb2.ACTION_CHECK, common_pb2.ACTION_FOLD
SETTLED = common_pb2.ROUND_STATUS_SETTLED
QUIET_S = 0.3
"""So long nothing comes where nothing should. An update of this process comes at once."""


def watching(session_id: str) -> play_pb2.PlayRequest:
    return play_pb2.PlayRequest(watch_session=table_pb2.WatchSession(session_id=session_id))


def leaving(session_id: str) -> play_pb2.PlayRequest:
    return play_pb2.PlayRequest(leave_session=table_pb2.WatchSession(session_id=session_id))


async def next_of(stream: Any) -> Any:
    return await asyncio.wait_for(stream.read(), 10)


async def update_of(stream: Any) -> play_pb2.SessionUpdate:
    response = await next_of(stream)
    assert (response.WhichOneof("response"), response.request_id) == ("update", "")
    update: play_pb2.SessionUpdate = response.update
    return update


async def newest_of(stream: Any, is_it: Any) -> play_pb2.SessionUpdate:
    """The first update that is what is waited for; those before it are steps on the way."""
    while True:
        update = await update_of(stream)
        if is_it(update):
            return update


async def is_quiet(stream: Any) -> bool:
    """Nothing comes. The stream cannot be read any more afterwards."""
    try:
        await asyncio.wait_for(stream.read(), QUIET_S)
    except TimeoutError:
        return True
    return False


async def test_a_round_on_one_device_is_seen_on_the_other(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        player = await ApiClient(harness.channel()).seated()
        one, two = player.play.Play(), player.play.Play()
        await two.write(watching(player.session_id))  # it has not played yet
        seen = await update_of(two)
        assert seen.session == (await _get(player, seen.session)).session
        assert not seen.HasField("last_round")

        await one.write(play_pb2.PlayRequest(start_round=player.start_request()))
        started = (await next_of(one)).start_round
        player.seen(started)
        seen = await update_of(two)
        assert seen.session.open_round == started.round
        assert (seen.opening, seen.final) == (started.opening, b"")
        assert seen.session.balance_minor == started.session.balance_minor

        await one.write(play_pb2.PlayRequest(act=player.act_request(CHECK)))
        acted = (await next_of(one)).act
        player.seen(acted)
        assert (await update_of(two)).session.open_round == acted.round

        await two.write(play_pb2.PlayRequest(act=player.act_request(CHECK)))  # the other device decides
        acted = (await next_of(two)).act
        player.seen(acted)
        assert (await update_of(one)).session.open_round == acted.round  # it has played: it follows by itself

        ended = await player.act(FOLD)  # by a unary call: both hear of it
        for stream in (one, two):
            seen = await update_of(stream)
            assert not seen.session.HasField("open_round")
            assert (seen.last_round, seen.opening, seen.final) == (ended.round, started.opening, ended.final)
            assert seen.session == (await _get(player, seen.session)).session
        assert ended.round.status == SETTLED
        assert await is_quiet(one)
        assert await is_quiet(two)


async def _get(player: ApiClient, like: Any) -> Any:
    """The session, as at the moment of another view of it."""
    found = await player.sessions.GetSession(session_pb2.GetSessionRequest(session_id=player.session_id))
    found.session.elapsed_ms = like.elapsed_ms
    return found


async def test_money_and_the_end_are_heard_of(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        player = ApiClient(harness.channel())
        await player.open()
        stream = player.play.Play()
        await stream.write(watching(player.session_id))
        assert (await update_of(stream)).session.balance_minor == 0
        await player.buy()
        seen = await newest_of(stream, lambda update: update.session.balance_minor == BOUGHT_MINOR)
        assert seen.session.next_purchase_no == 2
        ids = {"session_id": player.session_id}
        await player.sessions.EndParticipation(session_pb2.EndParticipationRequest(request_id=request_id(), **ids))
        await newest_of(stream, lambda update: update.session.participation_ended)
        await player.sessions.CloseSession(session_pb2.CloseSessionRequest(request_id=request_id(), **ids))
        await newest_of(stream, lambda update: update.session.status == common_pb2.SESSION_STATUS_CLOSED)
        await stream.done_writing()
        assert await next_of(stream) is grpc.aio.EOF


async def test_who_plays_alone_hears_answers_only(tmp_path: Path) -> None:
    """A stream's own changes are no news for it, whatever it asks in between."""
    async with serving(tmp_path) as harness:
        player = await ApiClient(harness.channel()).seated()
        stream = player.play.Play()
        for _ in range(3):
            await stream.write(play_pb2.PlayRequest(start_round=player.start_request()))
            started = (await next_of(stream)).start_round
            player.seen(started)
            player.round_no = started.session.next_round_no
            for action in (CHECK, CHECK, FOLD):
                await stream.write(play_pb2.PlayRequest(act=player.act_request(action)))
                answer = await next_of(stream)
                assert answer.WhichOneof("response") == "act"
                player.seen(answer.act)
            named = {"session_id": player.session_id, "round_id": player.round_id}
            await stream.write(play_pb2.PlayRequest(get_round=play_pb2.GetRoundRequest(**named)))
            assert (await next_of(stream)).WhichOneof("response") == "get_round"
            await asyncio.sleep(1.2)  # the look at what other processes did has come round
        assert await is_quiet(stream)


async def test_what_is_left_is_heard_of_no_more(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        player = await ApiClient(harness.channel()).seated()
        stream = player.play.Play()
        await stream.write(watching(player.session_id))
        await update_of(stream)
        await stream.write(leaving(player.session_id))
        await stream.write(leaving(player.session_id))  # twice does no harm
        named = {"session_id": player.session_id, "round_id": "01" + "A" * 24}
        await stream.write(play_pb2.PlayRequest(get_round=play_pb2.GetRoundRequest(**named)))
        assert (await next_of(stream)).WhichOneof("response") == "error"  # it has read what came before
        await player.start()
        assert await is_quiet(stream)


async def test_nobody_hears_of_a_session_that_is_not_the_callers(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        player = await ApiClient(harness.channel()).seated()
        stream = player.play.Play()
        for session_id, reason in (("01" + "A" * 24, "NOT_FOUND"), ("x", "INVALID_FIELD"), ("", "INVALID_FIELD")):
            await stream.write(watching(session_id))
            response = await next_of(stream)
            assert response.WhichOneof("response") == "error"
            assert reason_in(response.error) == reason
        await stream.write(watching(player.session_id))
        await update_of(stream)  # the stream goes on
        await stream.done_writing()
        assert await next_of(stream) is grpc.aio.EOF


async def test_a_slow_device_gets_fewer_and_the_newest(tmp_path: Path) -> None:
    """Whoever does not read keeps nobody waiting, and what is read at last is the session as it is."""
    async with serving(tmp_path) as harness:
        player = await ApiClient(harness.channel()).seated()
        slow = player.play.Play()
        await slow.write(watching(player.session_id))
        rounds = 12
        ended = [await player.round_to_the_end() for _ in range(rounds)][-1]
        seen = await newest_of(slow, lambda update: update.last_round.round_no == rounds)
        assert (seen.last_round, seen.final) == (ended.round, ended.final)
        assert await is_quiet(slow)


async def test_streams_that_decide_at_once_all_end_with_the_truth(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        player = await ApiClient(harness.channel()).seated()
        streams = [player.play.Play() for _ in range(3)]
        for stream in streams:
            await stream.write(watching(player.session_id))
            await update_of(stream)
        started = await player.start()
        request = player.act_request(CHECK)
        for stream in streams:  # three decisions, one of which counts
            own = play_pb2.ActRequest()
            own.CopyFrom(request)
            own.request_id = request_id()
            await stream.write(play_pb2.PlayRequest(act=own))
        newest = [await _last_version(stream) for stream in streams]
        assert set(newest) == {started.round.round_version + 1}


async def _last_version(stream: Any) -> int:
    """The round's version in the last message that comes."""
    version = 0
    while True:
        try:
            response = await asyncio.wait_for(stream.read(), 1.5)
        except TimeoutError:
            return version
        match response.WhichOneof("response"):
            case "act":
                version = response.act.round.round_version
            case "update":
                version = response.update.session.open_round.round_version
