"""What a peer's channel is asked for, and an answer without any metadata."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from google.rpc.status_pb2 import Status

from rgs.adapters.grpc.peer import Peer, PeerContract, PeerSettings
from rgs.core.errors import WalletUnavailableError
from tests.support.api.harness import authority, operator_certificate


def peer(**other: Any) -> Peer:
    own = operator_certificate()
    settings = PeerSettings("localhost:1", authority().certificate_pem, own.certificate_pem, own.key_pem, **other)
    return Peer("wallet", settings, PeerContract("d", {}, WalletUnavailableError), now_ms=lambda: 0)


async def options_of(monkeypatch: pytest.MonkeyPatch, **other: Any) -> dict[str, Any]:
    requested: list[Any] = []
    secure_channel = grpc.aio.secure_channel

    def made(target: str, credentials: grpc.ChannelCredentials, options: Any) -> grpc.aio.Channel:
        requested.extend(options)
        return secure_channel(target, credentials, options=options)

    monkeypatch.setattr(grpc.aio, "secure_channel", made)
    await peer(**other).close()
    assert len(dict(requested)) == len(requested), "each once"
    return dict(requested)


async def test_grpc_repeats_nothing_by_itself_and_asks_nobody_how_to(monkeypatch: pytest.MonkeyPatch) -> None:
    options = await options_of(monkeypatch)
    assert options["grpc.enable_retries"] == 0
    assert options["grpc.service_config_disable_resolution"]
    assert options["grpc.use_local_subchannel_pool"] == 1, "a channel of its own for each peer"
    assert options["grpc.max_receive_message_length"] == 1_048_576


async def test_a_peer_that_comes_back_is_found_within_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """By default gRPC would let two minutes go by between two attempts, and notice a dead connection never."""
    options = await options_of(monkeypatch)
    assert options["grpc.initial_reconnect_backoff_ms"] <= 200
    assert options["grpc.min_reconnect_backoff_ms"] == 100
    assert options["grpc.max_reconnect_backoff_ms"] == 2_000
    assert options["grpc.keepalive_time_ms"] == 30_000
    assert options["grpc.keepalive_timeout_ms"] == options["grpc.http2.ping_timeout_ms"] == 5_000


async def test_the_name_of_the_certificate_is_asked_for_only_where_it_is_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = "grpc.ssl_target_name_override"
    assert name not in await options_of(monkeypatch)
    assert (await options_of(monkeypatch, server_name="wallet.example"))[name] == "wallet.example"


async def test_an_error_without_metadata_is_unknown() -> None:
    requested = peer()

    async def fails(_request: Any, timeout: float) -> Any:  # noqa: ASYNC109 - as gRPC names it
        none: Any = None  # gRPC's types allow it
        raise grpc.aio.AioRpcError(grpc.StatusCode.FAILED_PRECONDITION, none, none)

    with pytest.raises(WalletUnavailableError) as unknown:
        await requested.call(fails, "Debit", Status(), lambda _: "")
    assert unknown.value.metadata == {"code": "FAILED_PRECONDITION"}
    await requested.close()
