"""Health at the wire: per service and as a whole, checked and watched, and its last word when the server drains."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2 as pb

from rgs.api import catalog, play
from tests.support.api.harness import Small, info_in, small, status_in

SERVING, NOT_SERVING, UNKNOWN = (
    pb.HealthCheckResponse.SERVING,
    pb.HealthCheckResponse.NOT_SERVING,
    pb.HealthCheckResponse.SERVICE_UNKNOWN,
)
NAMES = ["", catalog.SERVICE, play.SERVICE]


def check(harness: Small, service: str) -> Any:
    method = harness.channel.unary_unary(
        "/grpc.health.v1.Health/Check", pb.HealthCheckRequest.SerializeToString, pb.HealthCheckResponse.FromString
    )
    return method(pb.HealthCheckRequest(service=service))


def watch(harness: Small, service: str) -> Any:
    method = harness.channel.unary_stream(
        "/grpc.health.v1.Health/Watch",
        pb.HealthCheckRequest.SerializeToString,
        pb.HealthCheckResponse.FromString,
    )
    return method(pb.HealthCheckRequest(service=service))


async def test_methods_bear_the_names_of_the_standard() -> None:
    async with small() as harness:
        assert set(harness.endpoint.health.handlers()) <= set(pb.DESCRIPTOR.services_by_name["Health"].methods_by_name)


async def test_each_service_is_checked_for_itself() -> None:
    async with small() as harness:
        assert [(await check(harness, name)).status for name in NAMES] == [SERVING] * 3
        harness.endpoint.health.set_serving(play.SERVICE, serving=False)
        assert [(await check(harness, name)).status for name in NAMES] == [SERVING, SERVING, NOT_SERVING]
        harness.endpoint.health.set_serving(play.SERVICE, serving=True)
        assert (await check(harness, play.SERVICE)).status == SERVING


async def test_a_service_that_is_not_there() -> None:
    async with small() as harness:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await check(harness, "rgs.v1.PokerService")
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND
        call = watch(harness, "rgs.v1.PokerService")
        assert (await call.read()).status == UNKNOWN
        call.cancel()


async def test_a_watcher_hears_every_change_and_nothing_else() -> None:
    async with small() as harness:
        play_call, whole_call = watch(harness, play.SERVICE), watch(harness, "")
        assert (await play_call.read()).status == SERVING
        assert (await whole_call.read()).status == SERVING
        for serving in (True, False, False, True):
            harness.endpoint.health.set_serving(play.SERVICE, serving=serving)
            await asyncio.sleep(0.02)
        assert [(await play_call.read()).status for _ in range(2)] == [NOT_SERVING, SERVING]
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(whole_call.read(), 0.1)
        play_call.cancel()


async def test_a_draining_server_tells_its_watchers_first_and_does_not_wait_for_them() -> None:
    async with small() as harness:
        calls = [watch(harness, name) for name in NAMES]
        for call in calls:
            assert (await call.read()).status == SERVING
        await asyncio.wait_for(harness.endpoint.stop(30), 5)
        for call in calls:
            assert (await call.read()).status == NOT_SERVING
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await call.read()
            assert info_in(status_in(caught.value)).reason == "UNAVAILABLE"
        harness.endpoint.health.set_serving(play.SERVICE, serving=True)
        assert not any(harness.endpoint.health._serving.values())
