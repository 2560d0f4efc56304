"""Four servers over one store: whoever is asked answers alike, one of two wins, and nothing is lost or done twice."""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import grpc
import pytest

from rgs.node import leases
from rgs.node.leases import Leases
from rgs.service.instance import Instance
from rgs.store.address import PostgresAddress
from rgs.v1 import admin_pb2, play_pb2, session_pb2
from rgs.v1.admin_pb2_grpc import AdminServiceStub
from tests.support.api.client import health, no_update, request_id
from tests.support.api.cluster import (
    OPEN,
    Cluster,
    Table,
    cluster,
    exported,
    kinds,
    new_database,
    outcome,
    reason_of,
    together,
)
from tests.support.api.harness import status_in
from tests.support.service.harness import read_statement
from tests.support.store.postgres import QUICK, Server, one_server
from tests.support.waiting import until

pytestmark = pytest.mark.slow

SERVERS = 4
PLAY = "rgs.v1.PlayService"
NUMBERS = count(1)
RETRIABLE = {"SESSION_CHANGED", "REQUEST_SEEN"}


@pytest.fixture(scope="module")
def postgres() -> Iterator[Server]:
    with one_server(QUICK) as server:
        yield server


@pytest.fixture
def place(postgres: Server) -> PostgresAddress:
    """An empty database."""
    name = f"nodes{next(NUMBERS)}"
    asyncio.run(new_database(postgres.url(), name))
    return PostgresAddress(postgres.url(name))


async def ended(harness: Cluster, folder: Path) -> list[dict[str, Any]]:
    """Stop all servers, export everything, replay it; the statements' bodies."""
    await harness.stop()
    return await exported(harness.config, folder)


# --- one after the other ----------------------------------------------------------------------------------------------


async def test_whole_rounds_from_server_to_server(tmp_path: Path, place: PostgresAddress) -> None:
    """Every call goes to the next one, so that each finds what it knew of the session moved by others."""
    async with cluster(tmp_path / "home", place, SERVERS) as harness:
        table = await Table([harness.channel(number) for number in range(SERVERS)]).sit()
        at, finals = 0, []
        for _ in range(5):
            at += 1
            answer = await table.start(at % SERVERS)
            while table.round.status == OPEN:
                at += 1
                reported = await table.get(at % SERVERS)
                at += 1
                assert reported.session.open_round.round_version == table.round.round_version
                answer = await table.act(at % SERVERS)
            finals.append(read_statement(answer.final))
            message = play_pb2.GetRoundRequest(session_id=table.session.session_id, round_id=finals[-1]["round_id"])
            for number, play in enumerate(table.plays):
                assert (await play.GetRound(message)).round == answer.round
                assert (await table.get(number)).session.balance_minor == answer.session.balance_minor
                assert table.round is None
        assert len({final["instance"] for final in finals}) > 1
        await table.leave(2)
        for number in range(SERVERS):
            assert await outcome(table.plays[number].StartRound(table.starting())) == "SESSION_CLOSED"
        bodies = await ended(harness, tmp_path)
        assert kinds(bodies)["round_final"] == 5


# --- at once ----------------------------------------------------------------------------------------------------------


async def test_the_same_request_everywhere_at_once_has_one_effect_and_one_answer(
    tmp_path: Path, place: PostgresAddress
) -> None:
    async with cluster(tmp_path / "home", place, SERVERS) as harness:
        channels = [harness.channel(number) for number in range(SERVERS)]
        opening = session_pb2.OpenSessionRequest(
            request_id=request_id(), game="uth-solo", player="player-1", currency="EUR", operator_reference=request_id()
        )
        table = Table(channels)

        async def everywhere(method: str, stubs: list[Any], message: Any) -> Any:
            """The one answer of all servers; whoever had no answer yet is asked again, as a client does."""
            answers = await together(*(getattr(stub, method)(message) for stub in stubs))
            again = [reason for reason in answers if isinstance(reason, str)]
            assert set(again) <= RETRIABLE, again
            answers = [answer for answer in answers if not isinstance(answer, str)]
            answers += [await getattr(stub, method)(message) for stub in stubs]
            assert all(answer == answers[0] for answer in answers)
            return answers[0]

        table.session = (await everywhere("OpenSession", table.sessions, opening)).session
        table.session = (await everywhere("BuyParticipation", table.sessions, table.purchase(50_000))).session
        assert table.session.balance_minor == 50_000
        for _ in range(3):
            table.take(await everywhere("StartRound", table.plays, table.starting()))
            while table.round.status == OPEN:
                table.take(await everywhere("Act", table.plays, table.acting()))
        session_id = table.session.session_id
        end = session_pb2.EndParticipationRequest(request_id=request_id(), session_id=session_id)
        await everywhere("EndParticipation", table.sessions, end)
        close = session_pb2.CloseSessionRequest(request_id=request_id(), session_id=session_id)
        await everywhere("CloseSession", table.sessions, close)
        found = kinds(await ended(harness, tmp_path))
        once = ("session_open", "purchase", "participation_end", "session_close")
        assert {kind: found[kind] for kind in once} == dict.fromkeys(once, 1)
        assert (found["round_opening"], found["round_final"]) == (3, 3)


async def test_of_several_who_act_at_once_one_wins_and_the_others_see_the_round_as_it_is(
    tmp_path: Path, place: PostgresAddress
) -> None:
    async with cluster(tmp_path / "home", place, SERVERS) as harness:
        table = await Table([harness.channel(number) for number in range(SERVERS)]).sit()
        discarded = 0
        for _ in range(4):
            starts = await asyncio.gather(*(refused_or(play.StartRound(table.starting())) for play in table.plays))
            won = [answer for answer in starts if not isinstance(answer, grpc.aio.AioRpcError)]
            assert len(won) == 1
            lost = {reason_of(error) for error in starts if isinstance(error, grpc.aio.AioRpcError)}
            assert lost <= {"SESSION_CHANGED", "ROUND_OPEN", "NUMBER_NOT_EXPECTED"}, lost
            table.take(won[0])
            while table.round.status == OPEN:
                version = table.round.round_version
                acts = await asyncio.gather(*(refused_or(play.Act(table.acting())) for play in table.plays))
                won = [answer for answer in acts if not isinstance(answer, grpc.aio.AioRpcError)]
                assert len(won) == 1
                for error in acts:
                    if isinstance(error, grpc.aio.AioRpcError):
                        assert (error.code(), reason_of(error)) == (grpc.StatusCode.ABORTED, "ROUND_CHANGED")
                        seen = view_in(error)
                        assert seen.round == won[0].round
                        assert seen.round.round_version > version or seen.round.status != OPEN
                table.take(won[0])
        await table.leave(0)
        bodies = await ended(harness, tmp_path)
        discarded = kinds(bodies)["discarded_draw"]
        assert kinds(bodies)["round_final"] == 4
        assert discarded >= 1, "no two of them drew for the same stage: the test shows nothing"


async def refused_or(call: Any) -> Any:
    """The answer, or the error."""
    try:
        return await call
    except grpc.aio.AioRpcError as error:
        return error


def view_in(error: grpc.aio.AioRpcError) -> play_pb2.ActResponse:
    """The fresh view that comes with ROUND_CHANGED."""
    view = play_pb2.ActResponse()
    assert any(detail.Unpack(view) for detail in status_in(error).details)
    return view


async def test_one_session_hammered_through_all_of_them(tmp_path: Path, place: PostgresAddress) -> None:
    """Four clients of one player who know nothing of each other: retries, duplicates, late copies, at any server."""
    seed = int.from_bytes(os.urandom(4))
    async with cluster(tmp_path / "home", place, SERVERS) as harness:
        channels = [harness.channel(number) for number in range(SERVERS)]
        owner = await Table(channels).sit()
        reported: Counter[str] = Counter()
        answers: dict[str, Any] = {}

        async def client(number: int) -> None:
            chance = random.Random(seed + number)
            table = Table(channels)
            table.session = owner.session
            sent: list[tuple[str, Any]] = []
            for _ in range(25):
                await table.get(chance.randrange(SERVERS))
                if table.round is None:
                    request: Any = ("StartRound", table.starting())
                else:
                    choices = [choice.action for choice in table.round.legal_actions if choice.available]
                    request = ("Act", table.acting(chance.choice(choices)))
                sent.append(request)
                if chance.random() < 0.2:
                    request = chance.choice(sent)  # a late copy of an earlier one
                method, message = request
                servers = chance.sample(range(SERVERS), chance.choice([1, 1, 2, 3]))
                for found in await together(*(getattr(table.plays[server], method)(message) for server in servers)):
                    reported[found if isinstance(found, str) else "OK"] += 1
                    if not isinstance(found, str):
                        before = answers.setdefault(message.request_id, found)
                        assert before == found, (seed, "two answers for one request")

        await asyncio.gather(*(client(number) for number in range(4)))
        allowed = {"OK", "ROUND_CHANGED", "ROUND_NOT_OPEN", "ROUND_OPEN", "NUMBER_NOT_EXPECTED", *RETRIABLE}
        assert set(reported) <= allowed, (seed, reported)
        assert reported["OK"] > 4, (seed, reported)  # of each turn one client has what it wants, whoever it is
        await owner.get(1)
        while owner.round is not None and owner.round.status == OPEN:
            await owner.act(2)
        money = owner.session
        assert money.balance_minor == money.bought_minor - money.staked_minor + money.returned_minor
        await owner.leave(3)
        bodies = await ended(harness, tmp_path)
        starts = sum(1 for answer in answers.values() if isinstance(answer, play_pb2.StartRoundResponse))
        assert kinds(bodies)["round_opening"] == kinds(bodies)["round_final"] == starts, seed


# --- what one is told, all know ---------------------------------------------------------------------------------------


async def test_switches_latches_and_the_allow_list_reach_every_server(
    tmp_path: Path, place: PostgresAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rgs.node.server.BACKGROUND_S", 0.1)
    async with cluster(tmp_path / "home", place, 2) as harness:
        table = await Table([harness.channel(number) for number in range(2)]).sit()
        admins: list[Any] = [AdminServiceStub(harness.channel(number, "demo-admin")) for number in range(2)]

        def switch(*, enabled: bool) -> admin_pb2.SetSwitchRequest:
            what: Any = {"scope": admin_pb2.SWITCH_SCOPE_GAME, "game": "uth-solo", "reason": "TEST"}
            return admin_pb2.SetSwitchRequest(request_id=request_id(), enabled=enabled, **what)

        await admins[0].SetSwitch(switch(enabled=False))
        assert await outcome(table.plays[0].StartRound(table.starting())) == "DISABLED"
        await until(harness.servers[1].services.availability.switches)
        assert await outcome(table.plays[1].StartRound(table.starting())) == "DISABLED"
        await admins[1].SetSwitch(switch(enabled=True))
        await until(lambda: not harness.servers[0].services.availability.switches())
        await table.start(0)

        # A guard that one worker latches is the node's: all its workers know, and whoever is told clears it for all.
        harness.servers[0]._instance._failure = "PLANTED"  # type: ignore[union-attr]
        await harness.servers[0]._instance.report_failure()  # type: ignore[union-attr]
        await until(lambda: harness.servers[1].services.availability.guard("rng").latched)
        assert await outcome(table.plays[1].StartRound(table.starting())) == "ROUND_OPEN"
        await admins[1].ClearGuard(admin_pb2.ClearGuardRequest(request_id=request_id(), name="rng", reason="TEST"))
        await until(lambda: not harness.servers[0].services.availability.guard("rng").latched)

        listed = await admins[0].ListCertificates(admin_pb2.ListCertificatesRequest())
        (row,) = [row for row in listed.certificates if row.party == "demo-operator"]
        request = admin_pb2.RemoveCertificateRequest(
            request_id=request_id(), fingerprint=row.fingerprint, reason="TEST"
        )
        await admins[0].RemoveCertificate(request)

        async def is_refused() -> bool:
            return bool(await outcome(table.plays[1].Act(table.acting())) == "CERTIFICATE_NOT_ALLOWED")

        await until(is_refused)


async def test_a_stream_hears_what_happens_at_another_server(tmp_path: Path, place: PostgresAddress) -> None:
    async with cluster(tmp_path / "home", place, 2) as harness:
        table = await Table([harness.channel(number) for number in range(2)]).sit()
        admin: Any = AdminServiceStub(harness.channel(0, "demo-admin"))
        stream = table.plays[1].Play()
        await stream.write(play_pb2.PlayRequest(start_round=table.starting()))
        table.take((await stream.read()).start_round)
        await admin.ReportMalfunction(
            admin_pb2.ReportMalfunctionRequest(
                request_id=request_id(), round_id=table.round.round_id, code="CARDS_SHOWN"
            )
        )
        async with asyncio.timeout(10):
            notice = (await no_update(stream)).notice
        assert (notice.round_id, notice.paused) == (table.round.round_id, True)
        await stream.write(play_pb2.PlayRequest(act=table.acting()))
        answer = await no_update(stream)
        assert answer.WhichOneof("response") == "error", "the notice came once, and the round is paused here too"


# --- who is lost ------------------------------------------------------------------------------------------------------


async def test_who_does_not_renew_its_lease_is_lost_and_plays_no_more(
    tmp_path: Path, place: PostgresAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rgs.node.server.BACKGROUND_S", 0.1)
    monkeypatch.setattr(leases, "LEASE_MS", 3_000)
    renew = Leases.renew
    asleep: set[str] = set()

    async def renew_awake(self: Leases) -> None:
        if self.instance.name not in asleep:
            await renew(self)

    monkeypatch.setattr(Leases, "renew", renew_awake)
    async with cluster(tmp_path / "home", place, 3) as harness:
        table = await Table([harness.channel(number) for number in range(3)]).sit()
        await table.start(1)
        sleeper = harness.servers[1]
        asleep.add(sleeper.instance)
        await until(lambda: lost_row(harness, sleeper.instance))
        # It does not know yet. What it tries comes to nothing, and it begins nothing more.
        assert await outcome(table.plays[1].Act(table.acting())) == "STORE_UNAVAILABLE"
        other = Table([harness.channel(1)], "player-2")
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await other.sit()
        assert refused.value.code() == grpc.StatusCode.UNAVAILABLE
        # The round that it dealt goes on elsewhere.
        await table.get(2)
        while table.round.status == OPEN:
            await table.act(2)
        asleep.clear()
        await until(sleeper.lost.is_set)
        await until(lambda: not sleeper.services.availability.serving)
        channel = harness.channel(1)
        for service in ("", PLAY):
            assert await health(channel, service) == b"\x08\x02"
        await harness.restart(1)
        await table.start(0)
        bodies = await ended(harness, tmp_path)
        lost = [body["lost"] for body in bodies if body["kind"] == "instance_lost"]
        assert [row["instance"] for row in lost] == ["node1-b1-w1"], "once, and nobody else"
        assert "node1-b2-w1" in {body.get("instance") for body in bodies}


async def lost_row(harness: Cluster, instance: str) -> bool:
    store = harness.servers[0].services.history.store
    return instance not in {row.instance for row in await store.instances(alive_only=True)}


async def test_a_worker_takes_its_dead_predecessor_over_at_once_and_no_other(
    tmp_path: Path, place: PostgresAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with cluster(tmp_path / "home", place, 3) as harness:
        table = await Table([harness.channel(number) for number in range(3)]).sit()
        await table.start(1)
        monkeypatch.setattr(Instance, "end", nothing)  # as if it were killed: not a word at the end
        await harness.servers[1].stop()
        monkeypatch.undo()
        await harness.restart(1)
        assert harness.servers[1].instance == "node1-b2-w1"
        while table.round.status == OPEN:
            await table.act(0)
        bodies = await ended(harness, tmp_path)
        assert [body["lost"]["instance"] for body in bodies if body["kind"] == "instance_lost"] == ["node1-b1-w1"]
        assert kinds(bodies)["instance_end"] == 3


async def nothing(*_: Any) -> None:
    pass
