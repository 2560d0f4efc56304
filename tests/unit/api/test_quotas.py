"""PartyLimits of a party: counted on a clock of the test, and at the wire, where others go on while one is refused."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import grpc
import pytest
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from structlog.testing import capture_logs

from rgs.api.quotas import HEALTH_CALLS_MAX, RETRY_MS, Account, PartyLimits, Quotas
from rgs.core.errors import PartyLimitError
from rgs.service.callers import Caller, Role
from rgs.v1 import play_pb2
from tests.support.api.client import refused
from tests.support.api.harness import channel_of, info_in, other_certificate, reason_in, small, status_in, versions
from tests.support.clocks import ManualClock
from tests.support.waiting import until
from tests.unit.api.test_calls import ACT, act

WATCH = "/grpc.health.v1.Health/Watch"
NOW_MS = 1_795_000_000_000


def account(**limits: int) -> tuple[Account, ManualClock]:
    clock = ManualClock(NOW_MS)
    return Account("op-1", PartyLimits(**limits), clock), clock


def taken(of: Account, times: int) -> int:
    """How many of so many calls are let in, each answered at once."""
    entered = 0
    for _ in range(times):
        try:
            of.enter()
        except PartyLimitError:
            continue
        of.leave()
        entered += 1
    return entered


def retry_of(reported: Status) -> int:
    retry = RetryInfo()
    assert [detail.Unpack(retry) for detail in reported.details].count(True) == 1
    return retry.retry_delay.ToMilliseconds()


# --- the count --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [1, 3, 7, 1_000, 10_000, 1_000_000])
def test_a_second_holds_its_messages_and_no_more(rate: int) -> None:
    one, clock = account(messages_per_s=rate)
    times = min(rate, 20_000)
    assert taken(one, times) == times
    if times == rate:
        assert taken(one, 100) == 0
        for _ in range(3):
            clock.tick(1_000)
            assert taken(one, rate + 100) == rate


def test_over_any_time_no_more_than_the_rate_and_one_burst() -> None:
    one, clock = account(messages_per_s=50)
    entered = 0
    for _ in range(500):  # ten seconds in steps of 20 ms, one message each: all of them fit
        clock.tick(20)
        entered += taken(one, 3)
    assert entered <= 50 * 10 + 50
    assert entered >= 50 * 10


def test_a_refusal_costs_nothing_and_says_when() -> None:
    one, clock = account(messages_per_s=2)
    assert taken(one, 2) == 2
    with pytest.raises(PartyLimitError) as caught:
        one.enter()
    error = caught.value
    assert (error.field, error.metadata["limit"], error.metadata["party"]) == ("party_messages_per_s", "2", "op-1")
    clock.tick(int(error.metadata["retry_after_ms"]))
    assert taken(one, 2) == 1
    assert one.calls == 0


@pytest.mark.parametrize("jump_ms", [-600_000, 600_000])
def test_a_wall_clock_that_is_set_neither_locks_the_party_out_nor_lets_it_in(jump_ms: int) -> None:
    one, clock = account(messages_per_s=5)
    assert taken(one, 6) == 5
    clock.jump(jump_ms)
    assert taken(one, 6) == 0
    clock.accept()
    assert taken(one, 6) == 0
    clock.tick(1_000)
    assert taken(one, 6) == 5


def test_calls_at_once() -> None:
    one, _ = account(calls_max=3)
    for _ in range(3):
        one.enter()
    with pytest.raises(PartyLimitError) as caught:
        one.enter()
    assert caught.value.field == "party_calls_max"
    assert {key: caught.value.metadata[key] for key in ("limit", "value", "retry_after_ms")} == {
        "limit": "3", "value": "4", "retry_after_ms": str(RETRY_MS),
    }  # fmt: skip
    one.leave()
    one.enter()


def test_a_party_in_another_role_is_another() -> None:
    quotas = Quotas(PartyLimits(), ManualClock(NOW_MS))
    operator, admin = Caller("x", Role.OPERATOR, "demo"), Caller("x", Role.ADMIN, "")
    assert quotas.of(operator) is quotas.of(Caller("x", Role.OPERATOR, "demo"))
    assert quotas.of(operator) is not quotas.of(admin)


def test_refusals_are_logged_by_their_number() -> None:
    quotas = Quotas(PartyLimits(messages_per_s=10), ManualClock(NOW_MS))
    one = quotas.of(Caller("op-1", Role.OPERATOR, "demo"))
    with capture_logs() as logs:
        assert taken(one, 5_010) == 10
        assert logs == []
        quotas.poll()
        quotas.poll()
    assert [(line["event"], line["party"], line["field"], line["refused"]) for line in logs] == [
        ("party_limit", "op-1", "party_messages_per_s", 5_000)
    ]


# --- at the wire ------------------------------------------------------------------------------------------------------


class Stuck:
    """A service in which the calls of op1 stay until they are let go; those of op2 are answered."""

    def __init__(self) -> None:
        self.inside = 0
        self.go = asyncio.Event()

    async def answer(self, caller: Caller, message: Any) -> bytes:
        if caller.party == "op1":
            self.inside += 1
            await self.go.wait()
        return await versions(caller, message)


async def test_the_calls_of_one_that_pile_up_leave_the_others_their_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """64 places, 16 of them one party's: it asks for 200, and 50 calls of the other pass meanwhile."""
    monkeypatch.setattr("rgs.api.endpoint.CALLS_MAX", 64)
    stuck = Stuck()
    async with small(Act=stuck.answer, limits=PartyLimits(calls_max=16)) as harness:
        other: Any = channel_of(harness.endpoint.port, other_certificate())
        reported: Counter[str] = Counter()

        async def noisy() -> None:
            try:
                await harness.unary(ACT)(b"")
                reported["answered"] += 1
            except grpc.aio.AioRpcError as error:
                status = status_in(error)
                info = info_in(status)
                field, limit = info.metadata["field"], info.metadata["limit"]
                reported[f"{error.code().name} {info.reason} {field} {limit} {retry_of(status)}"] += 1

        flood: list[asyncio.Task[None]] = []

        def is_settled() -> bool:
            return sum(reported.values()) + stuck.inside == len(flood)

        for _ in range(20):
            flood += [asyncio.create_task(noisy()) for _ in range(10)]
            await until(is_settled)
        assert sum(reported.values()) == 200 - 16
        for nth in range(50):
            data = play_pb2.ActRequest(round_version=nth).SerializeToString()
            answer = play_pb2.ActResponse.FromString(await other.unary_unary(ACT)(data, timeout=20))
            assert answer.round.round_version == nth
        assert stuck.inside == 16
        stuck.go.set()
        await asyncio.gather(*flood)
        assert await harness.unary(ACT)(b"")  # and its places are free again
        await other.close()
    assert reported == {"answered": 16, f"RESOURCE_EXHAUSTED PARTY_LIMIT party_calls_max 16 {RETRY_MS}": 184}


async def test_who_floods_gets_his_rate_and_the_other_is_served_between() -> None:
    """Never more than so many answers to the flood between a call of the other party and its answer; of those the
    service has worked for its rate only.
    """
    worked: Counter[str] = Counter()

    async def answer(caller: Caller, message: Any) -> bytes:
        worked[caller.party] += 1
        return await versions(caller, message)

    at_once = 50
    async with small(Act=answer, limits=PartyLimits(messages_per_s=20)) as harness:
        harness.clock.stand()  # no time passes: one burst is all
        other: Any = channel_of(harness.endpoint.port, other_certificate())
        await other.channel_ready()
        reported, stop, reasons = 0, False, set[str]()

        async def noisy() -> None:
            nonlocal reported
            while not stop:
                try:
                    await harness.unary(ACT)(b"")
                except grpc.aio.AioRpcError as error:
                    reasons.add(reason_in(status_in(error)))
                reported += 1

        flood = [asyncio.create_task(noisy()) for _ in range(at_once)]
        await until(lambda: reported > 2 * at_once)
        waits = []
        for nth in range(20):
            before = reported
            data = play_pb2.ActRequest(round_version=nth).SerializeToString()
            assert await other.unary_unary(ACT)(data, timeout=20)
            waits.append(reported - before)
        stop = True
        await asyncio.gather(*flood)
        await other.close()
    assert reasons == {"PARTY_LIMIT"}
    assert worked == {"op1": 20, "op2": 20}
    assert max(waits) <= 4 * at_once, waits


# --- streams ----------------------------------------------------------------------------------------------------------


async def test_streams_above_the_limit_are_refused_and_the_other_party_opens_its_own() -> None:
    async with small(Act=versions, limits=PartyLimits(streams_max=5)) as harness:
        streams = [harness.stream() for _ in range(5)]
        for stream in streams:
            await stream.write(act(1))
            assert (await stream.read()).act.round.round_version == 1
        for _ in range(3):
            error = await refused(harness.stream().read())
            status = status_in(error)
            info = info_in(status)
            assert (error.code(), info.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "PARTY_LIMIT")
            assert (info.metadata["field"], info.metadata["limit"], info.metadata["value"]) == (
                "party_streams_max", "5", "6",
            )  # fmt: skip
            assert retry_of(status) > RETRY_MS
        channel = channel_of(harness.endpoint.port, other_certificate())
        harness.channel, mine = channel, harness.channel
        other = harness.stream()
        await other.write(act(7))
        assert (await other.read()).act.round.round_version == 7
        await other.done_writing()
        # A stream that ends gives its place back, and so does one whose client has gone.
        harness.channel = mine
        await streams[0].done_writing()
        assert await streams[0].read() is grpc.aio.EOF
        streams[1].cancel()
        one = harness.calls.quotas.of(Caller("op1", Role.OPERATOR, "demo"))
        await until(lambda: one.streams == 3)
        again = harness.stream()
        await again.write(act(2))
        assert (await again.read()).act.round.round_version == 2
        for stream in (*streams, again):
            stream.cancel()
        await until(lambda: one.streams == 0)
        await channel.close()


async def test_a_flood_on_streams_is_refused_in_band_and_slowed_down() -> None:
    """Eight streams ask as fast as they are read; the other party's stream gets all its answers meanwhile, and between
    two of them each flooding stream is refused a few times only, for it is not read from until it may come again.
    """
    worked: Counter[str] = Counter()

    async def answer(caller: Caller, message: Any) -> bytes:
        worked[caller.party] += 1
        return await versions(caller, message)

    async with small(Act=answer, limits=PartyLimits(messages_per_s=40)) as harness:
        harness.clock.stand()
        refusals = 0
        streams = [harness.stream() for _ in range(8)]

        async def write(stream: Any) -> None:
            for nth in range(100_000):
                await stream.write(act(nth))

        async def read(stream: Any) -> None:
            nonlocal refusals
            async for reported in stream:
                if reported.WhichOneof("response") == "error":
                    assert reason_in(reported.error) == "PARTY_LIMIT"
                    assert reported.request_id
                    assert reported.error.code == grpc.StatusCode.RESOURCE_EXHAUSTED.value[0]
                    assert retry_of(reported.error) >= RETRY_MS
                    refusals += 1

        flood = [asyncio.create_task(part(stream)) for stream in streams for part in (write, read)]
        await until(lambda: refusals >= 8)
        harness.channel, mine = channel_of(harness.endpoint.port, other_certificate()), harness.channel
        other = harness.stream()
        before = refusals
        for nth in range(40):
            await other.write(act(nth))
            assert (await other.read()).act.round.round_version == nth
        passed = refusals - before
        await other.done_writing()
        for task in flood:
            task.cancel()
        for stream in streams:
            stream.cancel()
        await asyncio.gather(*flood, return_exceptions=True)
        await harness.channel.close()
        harness.channel = mine
        await asyncio.wait_for(harness.calls.finished(), 20)
    assert worked == {"op1": 40, "op2": 40}
    assert passed <= 8 * 40, passed


async def test_watches_of_one_certificate_are_bounded() -> None:
    async with small() as harness:
        mine: Any = harness.channel

        def watch() -> Any:
            return mine.unary_stream(WATCH)(b"")

        watches: list[Any] = [watch() for _ in range(HEALTH_CALLS_MAX)]
        for one in watches:
            await one.read()
        error = await refused(watch().read())
        assert (error.code(), reason_in(status_in(error))) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "PARTY_LIMIT")
        channel: Any = channel_of(harness.endpoint.port, other_certificate())
        other = channel.unary_stream(WATCH)(b"")
        assert await other.read()
        watches.pop().cancel()
        held = harness.calls.quotas._watchers
        await until(lambda: HEALTH_CALLS_MAX - 1 in [health.calls for health in held.values()])
        again: Any = watch()
        assert await again.read()
        for one in (*watches, other, again):
            one.cancel()
        await until(lambda: not any(health.calls for health in held.values()))
        await channel.close()
