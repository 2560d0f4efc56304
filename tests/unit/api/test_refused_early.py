"""What is refused before a request is read: headers without end, and certificates, in the handshake or behind it."""

from __future__ import annotations

from typing import Any

import grpc
import pytest

from rgs.api.auth import METADATA_BYTES_MAX, METADATA_ENTRIES_MAX
from rgs.node.clock import SystemClock
from rgs.node.pki import Issued, issue_client, make_development_ca
from rgs.service.callers import Role
from tests.support.api.client import refused
from tests.support.api.harness import Small, authority, channel_of, entropy, info_in, small, status_in

ACT, STREAM = "/rgs.v1.PlayService/Act", "/rgs.v1.PlayService/Play"
DAY_MS = 86_400_000


def headers(count: int, size: int) -> list[tuple[str, str]]:
    return [(f"x-{nth:04d}", "v" * (size - 6)) for nth in range(count)]


async def ended(harness: Small, path: str, sent: list[tuple[str, str]]) -> grpc.aio.AioRpcError:
    channel: Any = harness.channel
    if path == STREAM:
        return await refused(channel.stream_stream(path)(iter([b""]), metadata=sent).read())
    return await refused(channel.unary_unary(path)(b"", metadata=sent))


async def test_a_dozen_headers_are_nothing_special() -> None:
    async with small() as harness:
        for sent in (headers(40, 20), headers(1, METADATA_BYTES_MAX - 500)):
            assert await harness.unary(ACT)(b"", metadata=sent) == b""


@pytest.mark.parametrize("path", [ACT, STREAM])
@pytest.mark.parametrize(
    ("count", "size", "limit"),
    [(200, 20, METADATA_ENTRIES_MAX), (500, 20, METADATA_ENTRIES_MAX), (1, 20_000, METADATA_BYTES_MAX)],
)
async def test_too_many_headers_are_told_with_the_limit(path: str, count: int, size: int, limit: int) -> None:
    async with small() as harness:
        for _ in range(3):  # gRPC's own soft limit refuses at random
            error = await ended(harness, path, headers(count, size))
            info = info_in(status_in(error))
            assert (error.code().name, info.reason) == ("INVALID_ARGUMENT", "INVALID_FIELD")
            assert (info.metadata["field"], info.metadata["limit"]) == ("metadata", str(limit))
            assert f"at most {limit} are allowed" in str(error.details())


async def test_headers_beyond_all_measure_are_grpcs_to_refuse_and_the_connection_goes_on() -> None:
    async with small() as harness:
        error = await refused(harness.unary(ACT)(b"", metadata=headers(3_000, 20)))
        assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert not error.trailing_metadata()
        assert await harness.unary(ACT)(b"") == b""


# --- certificates -----------------------------------------------------------------------------------------------------


def issued(ca: Issued, ago_days: int = 0) -> Issued:
    return issue_client(ca, Role.OPERATOR, "op1", entropy().read, SystemClock().now_ms() - ago_days * DAY_MS)


def other_authority() -> Issued:
    return make_development_ca(entropy().read, SystemClock().now_ms())


SHAKEN_OFF: dict[str, Any] = {
    "no certificate": lambda: None,
    "of another authority": lambda: issued(other_authority()),
    "ended": lambda: issued(authority(), ago_days=400),
    "not begun": lambda: issued(authority(), ago_days=-40),
}


@pytest.mark.parametrize("made", SHAKEN_OFF.values(), ids=SHAKEN_OFF)
async def test_a_certificate_that_tls_refuses_is_told_no_reason(made: Any) -> None:
    async with small() as harness, channel_of(harness.endpoint.port, made()) as channel:
        act: Any = channel.unary_unary(ACT)
        error = await refused(act(b"", timeout=10))
        assert error.code() is grpc.StatusCode.UNAVAILABLE
        assert not error.trailing_metadata()


async def test_a_certificate_that_tls_takes_is_told_why_it_is_not_allowed() -> None:
    async with small() as harness:
        async with channel_of(harness.endpoint.port, issued(authority())) as channel:
            act: Any = channel.unary_unary(ACT)
            error = await refused(act(b"", timeout=10))
        assert info_in(status_in(error)).reason == "CERTIFICATE_NOT_ALLOWED"
        assert await harness.unary(ACT)(b"") == b""
        harness.clock.ahead_ms = 400 * DAY_MS  # it ends while its connection is open
        error = await refused(harness.unary(ACT)(b""))
        assert info_in(status_in(error)).reason == "CERTIFICATE_NOT_ALLOWED"
        harness.clock.ahead_ms = 0
        harness.parties.rows, harness.parties.count = [], 1  # or it is removed
        await harness.gate.poll()
        error = await refused(harness.unary(ACT)(b""))
        assert info_in(status_in(error)).reason == "CERTIFICATE_NOT_ALLOWED"
