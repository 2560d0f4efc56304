"""Handshakes that fail, at a server of its own: hundreds of them fill nothing, are counted, and hold up nobody."""

from __future__ import annotations

import json
import re
import socket
import ssl
from pathlib import Path

import pytest

from rgs.devkit.client import Client, ClientIdentity
from rgs.devkit.processes.server import ServerProcess
from rgs.node.clock import SystemClock
from rgs.node.config import load_config
from rgs.node.home import ensure_home
from rgs.v1.catalog_pb2 import ListGamesRequest
from rng.entropy import EntropySource

pytestmark = pytest.mark.slow

EACH = 250
PARTY = "demo-operator"


def without_certificate(port: int, ca: Path) -> None:
    """A TLS client that has none."""
    context = ssl.create_default_context(cafile=ca)
    context.set_alpn_protocols(["h2"])
    try:
        with (
            socket.create_connection(("127.0.0.1", port), timeout=20) as plain,
            context.wrap_socket(plain, server_hostname="localhost") as channel,
        ):
            channel.recv(1)
    except OSError:
        return


def in_plain_text(port: int) -> None:
    """A client that speaks no TLS."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as plain:
        plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
        try:
            plain.recv(100)
        except OSError:
            return


def test_failed_handshakes_are_bounded_and_counted_and_a_client_is_served(tmp_path: Path) -> None:
    home, output = tmp_path / "home", tmp_path / "output"
    ensure_home(home, None, EntropySource().read, SystemClock().now_ms(), None)
    config = load_config(home)
    with ServerProcess(home, output, PARTY) as server:
        server.await_serving()
        port = int(server.address.rpartition(":")[2])
        said = output.stat().st_size
        for _ in range(EACH):
            without_certificate(port, config.ca)
            in_plain_text(port)
        with Client(server.address, ClientIdentity.of_party(config, PARTY)) as client:
            assert client.call(client.catalog.ListGames, ListGamesRequest()).games
        assert output.stat().st_size - said < 4_096
        server.stop()
    log = [json.loads(line) for line in config.log.read_text("ascii").splitlines()]
    result = [line for line in log if line["event"] == "handshakes_failed"]
    assert sum(line["count"] for line in result) == 2 * EACH
    assert len(result) < 10
    reasons = " ".join(reason for line in result for reason in line["reasons"])
    assert re.search(r"PEER_DID_NOT_RETURN_A_CERTIFICATE \d+", reasons)
    assert not re.search(r"Handshake failed", output.read_text("utf-8"))
