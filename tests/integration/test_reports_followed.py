"""Several servers over one PostgreSQL: devices at different ones hear of each other, and an operator's finals come once
each through the ends of servers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import grpc
import pytest

from rgs.node import server as node_server
from rgs.store.address import PostgresAddress
from rgs.v1 import history_pb2, play_pb2, report_pb2, table_pb2
from rgs.v1.history_pb2_grpc import HistoryServiceStub
from rgs.v1.report_pb2_grpc import ReportServiceStub
from tests.support.api.cluster import OPEN, Cluster, Table, cluster, exported, new_database, reason_of
from tests.support.service.harness import read_statement
from tests.support.store.postgres import QUICK, Server, one_server

pytestmark = pytest.mark.slow

STATED_S = 20.0
"""docs/scaling.md says half a second, without a busy machine and a test beside it."""
NUMBERS = count(1)


@pytest.fixture(scope="module")
def postgres() -> Iterator[Server]:
    with one_server(QUICK) as server:
        yield server


@pytest.fixture
def place(postgres: Server) -> PostgresAddress:
    """An empty database."""
    name = f"reports{next(NUMBERS)}"
    asyncio.run(new_database(postgres.url(), name))
    return PostgresAddress(postgres.url(name))


def watching(session_id: str) -> play_pb2.PlayRequest:
    return play_pb2.PlayRequest(watch_session=table_pb2.WatchSession(session_id=session_id))


async def heard(stream: Any, is_it: Any, within_s: float = STATED_S) -> play_pb2.SessionUpdate:
    """The update that is waited for."""
    async with asyncio.timeout(within_s):
        while True:
            response = await stream.read()
            assert response.WhichOneof("response") == "update", response
            update: play_pb2.SessionUpdate = response.update
            if is_it(update):
                return update


async def test_a_device_hears_what_was_done_at_another_process(tmp_path: Path, place: PostgresAddress) -> None:
    assert node_server.SESSIONS_SCAN_S == 0.5
    async with cluster(tmp_path / "home", place, 2) as harness:
        table = await Table([harness.channel(0), harness.channel(1)]).sit()
        streams = [play.Play() for play in table.plays]
        for stream in streams:
            await stream.write(watching(table.session.session_id))
            await heard(stream, lambda update: update.session.bought_minor == 50_000)
        await table.start(0)
        for stream in streams:
            await _hear_round(stream, table.round)
        ended = await table.act(1)
        while table.round.status == OPEN:
            for stream in streams:
                await _hear_round(stream, table.round)
            ended = await table.act(1)
        for stream in streams:
            seen = await heard(stream, lambda update: update.final == ended.final)
            assert seen.last_round == ended.round


async def _hear_round(stream: Any, round_: Any) -> None:
    def is_it(update: play_pb2.SessionUpdate) -> bool:
        seen = update.session.open_round
        return (seen.round_id, seen.round_version) == (round_.round_id, round_.round_version)

    assert (await heard(stream, is_it)).session.open_round == round_


# --- finals -----------------------------------------------------------------------------------------------------------


async def taken(channel: grpc.aio.Channel, wanted: int, **where: Any) -> list[Any]:
    """So many finals from a place on, following."""
    found: list[Any] = []
    call: Any = ReportServiceStub(channel).WatchFinals(report_pb2.WatchFinalsRequest(follow=True, **where))
    async with asyncio.timeout(30):
        async for response in call:
            found.append(response)
            if len(found) == wanted:
                break
    call.cancel()
    return found


async def play_rounds(table: Table, rounds: int, servers: list[int]) -> list[bytes]:
    """Rounds of the table, each call at the next of these servers; the finals."""
    finals, at = [], 0
    for _ in range(rounds):
        answer = await table.start(servers[at % len(servers)])
        while table.round is not None and table.round.status == OPEN:
            at += 1
            answer = await table.act(servers[at % len(servers)])
        finals.append(answer.final)
    return finals


async def test_every_final_comes_once_whoever_signed_it_and_whoever_ends(
    tmp_path: Path, place: PostgresAddress
) -> None:
    players, rounds = 4, 3
    async with cluster(tmp_path / "home", place, 3) as harness:
        channels = [harness.channel(number) for number in range(3)]
        tables = [await Table(channels, f"player-{number}").sit() for number in range(players)]
        played: list[bytes] = []
        for finals in await asyncio.gather(*(play_rounds(table, rounds, [0, 1, 2]) for table in tables)):
            played += finals
        first = await taken(channels[0], 5)
        await harness.servers[0].stop()  # whoever led the list may have been this one
        for finals in await asyncio.gather(*(play_rounds(table, rounds, [1, 2]) for table in tables)):
            played += finals
        rest = await taken(channels[1], len(played) - 5, resume_token=first[-1].resume_token)
        got = [*first, *rest]
        assert sorted(one.statement.envelope for one in got) == sorted(played)
        assert [one.final_no for one in got] == list(range(1, len(played) + 1))
        assert len({one.statement.instance for one in got}) == 3
        again = await taken(channels[2], len(played) - 7, first_no=8)
        assert again == got[7:]
        for one in got:
            body = read_statement(one.statement.envelope)
            assert (one.statement.kind, one.summary.round_id) == ("round_final", body["round_id"])
            assert str(one.summary.returned_minor) == body["returned_minor"]
            assert one.summary.player in one.statement.private.decode() or not one.statement.private
        links: dict[str, int] = {}
        for one in got:
            assert one.statement.link_no > links.get(one.statement.session_id, 0)
            links[one.statement.session_id] = one.statement.link_no
        listed = await _history(channels[1])
        assert sorted(one.summary.round_id for one in got) == sorted(listed)
        await harness.stop()
        bodies = await exported(harness.config, tmp_path)
        assert len([body for body in bodies if body["kind"] == "round_final"]) == len(played)


async def _history(channel: grpc.aio.Channel) -> list[str]:
    stub: Any = HistoryServiceStub(channel)
    found: list[str] = []
    for number in range(4):
        request = history_pb2.ListRoundsRequest(player=f"player-{number}", page_size=200)
        found += [line.round_id for line in (await stub.ListRounds(request)).rounds]
    return found


async def test_a_token_of_another_list_is_refused(tmp_path: Path, place: PostgresAddress) -> None:
    async with cluster(tmp_path / "home", place, 1) as harness:
        channel = harness.channel(0)
        table = await Table([channel]).sit()
        await play_rounds(table, 2, [0])
        first, second = await taken(channel, 2)
        stub: Any = ReportServiceStub(channel)

        async def refused(**where: Any) -> str:
            call = stub.WatchFinals(report_pb2.WatchFinalsRequest(**where))
            try:
                async for _ in call:
                    pass
            except grpc.aio.AioRpcError as error:
                return reason_of(error)
            return ""

        assert await refused(resume_token="x") == "INVALID_FIELD"  # noqa: S106
        assert await refused(resume_token=first.resume_token, first_no=1) == "INVALID_FIELD"
        assert await refused(first_no=-1) == "INVALID_FIELD"
        assert await refused(resume_token=second.resume_token) == ""
        await _by_hand(harness, "UPDATE finals SET mark = 'ff' || mark WHERE final_no = 2")
        assert await refused(resume_token=second.resume_token) == "INVALID_FIELD"
        assert await refused(resume_token=first.resume_token) == ""


async def _by_hand(harness: Cluster, text: str) -> None:
    import asyncpg  # noqa: PLC0415 - of one test

    assert isinstance(harness.config.store, PostgresAddress)
    connection = await asyncpg.connect(harness.config.store.url)
    await connection.execute(text)
    await connection.close()
