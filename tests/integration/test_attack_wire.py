"""Accidents and attacks over mutual TLS: a recorded session said again in any order, crowds with duplicates and
conflicts, very late retries, a locked store, a clock that steps, certificates that end, streams that nobody reads.
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.rpc.status_pb2 import Status

from rgs.node.clock import SystemClock
from rgs.node.pki import fingerprint_of, issue_client
from rgs.service.admin.orders import Order, order_of
from rgs.service.callers import Caller, Role
from rgs.v1 import play_pb2, session_pb2
from tests.support.api.client import ApiClient, refused, request_id
from tests.support.api.harness import authority, channel_of, entropy, reason_in, status_in
from tests.support.api.wired import DAY_MS, Wire, certificate, till, wired
from tests.support.service.harness import read_statement
from tests.support.service.oracles import stored_statements, verify_books

SESSION, PLAY = "rgs.v1.SessionService/", "rgs.v1.PlayService/"
CLIENTS = 64
Sent = tuple[str, bytes, bytes]


class Recorder(ApiClient):
    """A player whose every call is kept: method, request, answer."""

    def __init__(self, wire: Wire, name: str = "anna") -> None:
        super().__init__(wire.channel(), name)
        self.wire, self.sent = wire, list[Sent]()

    async def say(self, method: str, request: Any, response: Any) -> Any:
        data = request.SerializeToString()
        answer = await self.wire.ask("op-1", method, request)
        self.sent.append((method, data, answer))
        return response.FromString(answer)

    async def sit(self) -> None:
        opened = await self.say(f"{SESSION}OpenSession", self.open_request(), session_pb2.OpenSessionResponse)
        self.session_id = opened.session.session_id
        await self.say(f"{SESSION}BuyParticipation", self.buy_request(), session_pb2.BuyParticipationResponse)

    async def deal(self) -> None:
        self.wire.harness.clock.tick(1_500)
        started = await self.say(f"{PLAY}StartRound", self.start_request(), play_pb2.StartRoundResponse)
        self.seen(started)
        self.round_no = started.session.next_round_no

    async def decide(self, *actions: Any) -> None:
        for action in actions:
            self.seen(await self.say(f"{PLAY}Act", self.act_request(action), play_pb2.ActResponse))

    async def leave(self) -> None:
        ending = session_pb2.EndParticipationRequest(request_id=request_id(), session_id=self.session_id)
        await self.say(f"{SESSION}EndParticipation", ending, session_pb2.EndParticipationResponse)
        closing_ = session_pb2.CloseSessionRequest(request_id=request_id(), session_id=self.session_id)
        await self.say(f"{SESSION}CloseSession", closing_, session_pb2.CloseSessionResponse)


async def recorded(wire: Wire) -> Recorder:
    anna = Recorder(wire)
    await anna.sit()
    for _ in range(2):
        await anna.deal()
        await anna.decide(1, 1, 7)
    await anna.leave()
    await wire.harness.settle()
    return anna


# --- the same again ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
async def test_a_recorded_session_in_random_order_has_no_effect(tmp_path: Path, seed: int) -> None:
    async with wired(tmp_path) as wire:
        anna = await recorded(wire)
        statements = len(stored_statements(tmp_path))
        with till(tmp_path) as books:
            before = books.money()
            again = anna.sent * 3
            random.Random(seed).shuffle(again)
            for method, data, answer in again:
                wire.harness.clock.tick(50)
                status, got = await wire.call("op-1", method, data)
                assert (status.code, got) == (0, [answer])
            # On a stream of one, all at once, and by another operator: nothing more.
            answers = await asyncio.gather(*[wire.call("op-1", method, data) for method, data, _ in again])
            assert [got for _, got in answers] == [[answer] for _, _, answer in again]
            for method, data, _ in anna.sent[1:]:
                status, _ = await wire.call("op-2", method, data)
                assert reason_in(status) == "NOT_FOUND"
            assert books.money() == before
        assert len(stored_statements(tmp_path)) == statements
    verify_books(tmp_path)


async def test_very_late_retries_fail_by_their_numbers(tmp_path: Path) -> None:
    """The stored answers are gone: nothing of the session is done a second time."""
    async with wired(tmp_path) as wire:
        anna = Recorder(wire)
        await anna.sit()
        await anna.deal()
        await anna.decide(1, 1, 7)
        with closing(sqlite3.connect(tmp_path / "rgs.db")) as connection:
            assert connection.execute("DELETE FROM answers").rowcount >= 5
            connection.commit()
        with till(tmp_path) as books:
            before = books.money()
            wire.harness.clock.tick(5_000)
            reasons = []
            for method, data, _ in anna.sent[1:]:
                status, _ = await wire.call("op-1", method, data)
                reasons.append(reason_in(status))
            assert books.money() == before
        assert reasons == ["NUMBER_NOT_EXPECTED"] * 2 + ["ROUND_CHANGED"] * 3
        await anna.leave()
        await wire.harness.settle()
    verify_books(tmp_path)


# --- crowds -----------------------------------------------------------------------------------------------------------


async def test_many_clients_on_one_session(tmp_path: Path) -> None:
    """Every start is sent twice; of all of them one is dealt, of all conflicting purchases one is made."""
    async with wired(tmp_path) as wire:
        anna = Recorder(wire)
        await anna.sit()
        wire.harness.clock.tick(1_500)
        channels = [channel_of(wire.endpoint.port, certificate("op-1")) for _ in range(CLIENTS)]
        players = [ApiClient(channel) for channel in channels]
        for player in players:
            player.session_id = anna.session_id

        async def outcome(call: Any) -> str | bytes:
            try:
                answer: bytes = (await call).SerializeToString()
                return answer
            except grpc.aio.AioRpcError as error:
                return reason_in(status_in(error))

        stakes = [player.start_request() for player in players]
        both = [outcome(player.play.StartRound(stake)) for player, stake in zip(players, stakes, strict=True)]
        both += [outcome(player.play.StartRound(stake)) for player, stake in zip(players[::-1], stakes, strict=True)]
        result = await asyncio.gather(*both)
        dealt = {answer for answer in result if isinstance(answer, bytes)}
        assert (len(dealt), [isinstance(answer, bytes) for answer in result].count(True)) == (1, 2)
        assert {answer for answer in result if isinstance(answer, str)} <= {
            "ROUND_OPEN",
            "STAGE_NUMBER",
            "SESSION_RACE",
        }
        anna.seen(play_pb2.StartRoundResponse.FromString(dealt.pop()))
        anna.round_no += 1
        await anna.decide(1, 1, 7)
        buys = [player.buy_request(purchase_no=2, amount_minor=1_000 + n) for n, player in enumerate(players)]
        result = await asyncio.gather(
            *[outcome(player.sessions.BuyParticipation(buy)) for player, buy in zip(players, buys, strict=True)]
        )
        assert [isinstance(answer, bytes) for answer in result].count(True) == 1
        await anna.leave()
        for channel in channels:
            await channel.close()
        await wire.harness.settle()
    summary = verify_books(tmp_path)
    assert (summary.sessions, summary.rounds_verified) == (1, 1)


async def test_many_clients_on_many_sessions_say_everything_twice(tmp_path: Path) -> None:
    async with wired(tmp_path) as wire:

        async def live(number: int) -> None:
            player = Recorder(wire, f"player-{number}")
            await player.sit()
            await player.deal()
            await player.decide(1, 1, 7)
            await player.leave()
            for method, data, answer in player.sent:
                assert await wire.call("op-1", method, data) == (Status(), [answer])
            method, data, _ = player.sent[2]
            other = play_pb2.StartRoundRequest.FromString(data)
            other.bets[0].amount_minor += 100
            status, _ = await wire.call("op-1", method, other.SerializeToString())
            assert reason_in(status) == "IDEMPOTENCY_CONFLICT"

        await asyncio.gather(*map(live, range(CLIENTS)))
        await wire.harness.settle()
    summary = verify_books(tmp_path)
    assert (summary.sessions, summary.rounds_verified) == (CLIENTS, CLIENTS)


# --- the store, the clock ---------------------------------------------------------------------------------------------


def is_closed(wire: Wire) -> bool:
    """Whether the store's guard is closed, and no other."""
    closed = [guard.name for guard in wire.harness.services.availability.guards() if guard.closed]
    assert closed in ([], ["store"])
    return bool(closed)


async def test_a_locked_store_closes_its_guard_and_opens_again(tmp_path: Path) -> None:
    async with wired(tmp_path) as wire:
        anna, bert = Recorder(wire), Recorder(wire, "bert")
        for player in (anna, bert):
            await player.sit()
        await anna.deal()
        wire.harness.store._db.execute("PRAGMA busy_timeout = 20")
        act, start = anna.act_request(1), bert.start_request()
        with closing(sqlite3.connect(tmp_path / "rgs.db", isolation_level=None)) as connection, till(tmp_path) as books:
            connection.execute("BEGIN IMMEDIATE")
            before = books.money()
            wire.harness.clock.tick(1_500)
            for call in (anna.play.Act(act), bert.play.StartRound(start)):
                error = await refused(call)
                assert error.code() is grpc.StatusCode.UNAVAILABLE, error
            assert is_closed(wire)
            assert books.money() == before
            connection.execute("ROLLBACK")
        # Before the next look: what was dealt goes on, nothing new begins.
        answer = await anna.say(f"{PLAY}Act", act, play_pb2.ActResponse)
        anna.seen(answer)
        error = await refused(bert.play.StartRound(bert.start_request()))
        assert reason_in(status_in(error)) == "GUARD_CLOSED"
        await wire.tick()
        assert not is_closed(wire)
        started = await bert.say(f"{PLAY}StartRound", start, play_pb2.StartRoundResponse)
        bert.seen(started)
        await anna.decide(1, 7)
        await bert.decide(1, 1, 7)
        for player in (anna, bert):
            await player.leave()
        await wire.harness.settle()
    assert verify_books(tmp_path).rounds_verified == 2


def _order(method: str) -> Order:
    return order_of(Caller("admin-1", Role.ADMIN, ""), method, request_id())


async def test_a_clock_that_steps_back_and_forth(tmp_path: Path) -> None:
    """The times of a session's statements never run backwards, whatever the clock does between two calls."""
    steps = (-600_000, 1_200_000, -1, -900_000, 1_000_000, 500_000)
    async with wired(tmp_path) as wire:
        anna = Recorder(wire)
        await anna.sit()
        admin = wire.harness.services.admin
        for number, step in enumerate(steps):
            wire.harness.clock.tick(step)
            status, got = await wire.call("op-1", f"{PLAY}StartRound", anna.start_request().SerializeToString())
            if status.code:  # the round before began later, as the clock says now
                assert reason_in(status) == "TOO_EARLY", (number, status)
                continue
            started = play_pb2.StartRoundResponse.FromString(got[0])
            anna.seen(started)
            anna.round_no += 1
            wire.harness.clock.tick(-step // 2)
            await anna.decide(1, 1)
            wire.harness.clock.tick(5_000)
            await admin.report_malfunction(_order("ReportMalfunction"), anna.round_id, "STUCK")
            wire.harness.clock.tick(-4_000)
            await admin.resume_round(_order("ResumeRound"), anna.round_id, "MENDED")
            anna.round_version += 2
            wire.harness.clock.tick(step)
            await anna.decide(7)
        wire.harness.clock.tick(100_000_000)
        await anna.leave()
        await wire.harness.settle()
    bodies = [read_statement(row.envelope) for row in stored_statements(tmp_path)]
    result = [body["time"] for body in bodies if anna.session_id in (body.get("session_id"), body.get("session"))]
    codes = [body["code"] for body in bodies if body["kind"] == "event"]
    assert codes.count("MALFUNCTION") == codes.count("ROUND_RESUMED") >= 2
    assert len(result) >= 10
    assert result == sorted(result)
    verify_books(tmp_path)


# --- certificates and streams -----------------------------------------------------------------------------------------


async def test_an_expired_certificate_is_refused_in_the_handshake(tmp_path: Path) -> None:
    async with wired(tmp_path) as wire:
        long_ago = SystemClock().now_ms() - 400 * DAY_MS
        issuer = authority()
        expired = issue_client(issuer, Role.OPERATOR, "op-1", entropy().read, long_ago)
        channel: Any = channel_of(wire.endpoint.port, expired)
        error = await refused(channel.unary_unary("/rgs.v1.CatalogService/ListGames")(b"", timeout=5))
        assert error.code() is grpc.StatusCode.UNAVAILABLE
        await channel.close()


@pytest.mark.parametrize("how", ["expired", "denied"])
async def test_who_ends_on_an_open_stream_is_cut_at_the_next_message(tmp_path: Path, how: str) -> None:
    async with wired(tmp_path) as wire:
        anna = Recorder(wire)
        await anna.sit()
        await anna.deal()
        stream = anna.play.Play()
        get = play_pb2.GetRoundRequest(session_id=anna.session_id, round_id=anna.round_id)
        await stream.write(play_pb2.PlayRequest(get_round=get))
        assert (await stream.read()).WhichOneof("response") == "get_round"
        fingerprint = fingerprint_of(certificate("op-1").certificate)
        if how == "expired":
            wire.harness.clock.tick(366 * DAY_MS)
        else:
            await wire.harness.parties.remove(fingerprint, wire.harness.clock.now_ms())
            await wire.gate.refresh()
        before = len(stored_statements(tmp_path))
        await stream.write(play_pb2.PlayRequest(act=anna.act_request(1)))
        answer = await stream.read()
        assert reason_in(answer.error) in ("CERTIFICATE_NOT_ALLOWED", "UNAUTHENTICATED")
        assert (await refused(stream.read())).code() is grpc.StatusCode.UNAUTHENTICATED
        assert len(stored_statements(tmp_path)) == before


async def test_streams_that_are_never_read_hold_up_nobody(tmp_path: Path) -> None:
    """Thousands of requests written and no answer read: the server holds one of each stream, and others play on."""
    async with wired(tmp_path) as wire:
        anna, bert = Recorder(wire), Recorder(wire, "bert")
        for player in (anna, bert):
            await player.sit()
        await anna.deal()
        get = play_pb2.PlayRequest(
            get_round=play_pb2.GetRoundRequest(session_id=anna.session_id, round_id=anna.round_id)
        )
        answered = peak = 0
        get_round = wire.harness.services.play.get_round

        async def count(*arguments: Any) -> Any:
            nonlocal answered, peak
            answered, peak = answered + 1, max(peak, wire.calls.under_way)
            return await get_round(*arguments)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(type(wire.harness.services.play), "get_round", lambda _, *arguments: count(*arguments))
            channels = [channel_of(wire.endpoint.port, certificate("op-1")) for _ in range(8)]
            streams = [ApiClient(channel).play.Play() for channel in channels]

            async def flood(stream: Any) -> None:
                for _ in range(2_000):
                    await stream.write(get)

            floods = [asyncio.create_task(flood(stream)) for stream in streams]
            await asyncio.wait(floods, timeout=3)
            before = answered
            await bert.deal()
            await bert.decide(1, 1, 7)
            await asyncio.sleep(0.2)
            assert before >= len(streams)
            assert peak <= len(streams) + 1  # each stream holds one request, however many were written
            for task in floods:
                task.cancel()
            for stream in streams:
                stream.cancel()
            await asyncio.gather(*floods, return_exceptions=True)
            for channel in channels:
                await channel.close()
        await anna.decide(1, 1, 7)
        for player in (anna, bert):
            await player.leave()
        await wire.harness.settle()
    assert verify_books(tmp_path).rounds_verified == 2
