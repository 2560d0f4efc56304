"""`rgs log serve`: what is open, what is guarded, what is cached, and that no path leads out of a log."""

from __future__ import annotations

import contextlib
import gzip
import http.client
import shutil
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from rgs.node import log_server
from rgs.node.clock import wall_ms
from rgs.node.config import Config
from rgs.node.home import ensure_home
from rgs.node.log_server import EntryReaders, LogServer, tls_context
from tests.support.log.logs import make_entries, make_log

FOREVER = "max-age=31536000, immutable"
TIME_MS = wall_ms()


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Config:
    """A home with a log of 300 entries in its place."""
    folder = tmp_path_factory.mktemp("serve") / "home"
    number = iter(range(1, 1_000_000))
    home = ensure_home(folder, None, lambda count: next(number).to_bytes(count, "big"), TIME_MS)
    make_log(home.config.translog / "2026h2", make_entries(300))
    shutil.copy(home.config.translog / "2026h2" / "checkpoint", home.config.translog / "2026h2" / "checkpoint.cosigned")
    artifacts = home.config.translog / "2026h2" / "artifact"
    artifacts.mkdir()
    (artifacts / ("a" * 64)).write_bytes(b"the rules")
    (home.config.translog / "order.db").write_bytes(b"not for strangers")
    return home.config


@contextmanager
def serving(server: LogServer) -> Iterator[LogServer]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
def plain(config: Config) -> Iterator[LogServer]:
    with serving(LogServer(config.translog, "127.0.0.1:0", None, None)) as server:
        yield server


@pytest.fixture(scope="module")
def guarded(config: Config) -> Iterator[LogServer]:
    server = LogServer(config.translog, "127.0.0.1:0", tls_context(config), EntryReaders(config.store))
    with serving(server):
        yield server


def ask(
    server: LogServer, path: str, *, method: str = "GET", tls: ssl.SSLContext | None = None, accepted: str = ""
) -> tuple[int, dict[str, str], bytes]:
    if tls is None:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    else:
        connection = http.client.HTTPSConnection("localhost", server.port, timeout=20, context=tls)
    try:
        connection.putrequest(method, path, skip_accept_encoding=True)
        if accepted:
            connection.putheader("Accept-Encoding", accepted)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


def client(config: Config, party: str = "") -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(config.ca))
    if party:
        stem = config.tls / "clients" / party
        context.load_cert_chain(f"{stem}.pem", f"{stem}.key")
    return context


def test_the_files_of_a_log_and_how_long_they_may_be_kept(config: Config, plain: LogServer) -> None:
    for name, kind, cache in (
        ("checkpoint", "text/plain; charset=utf-8", "public, max-age=1"),
        ("checkpoint.cosigned", "text/plain; charset=utf-8", "public, max-age=1"),
        ("tile/0/000", "application/octet-stream", f"public, {FOREVER}"),
        ("tile/0/001.p/44", "application/octet-stream", f"public, {FOREVER}"),
        ("tile/1/000.p/1", "application/octet-stream", f"public, {FOREVER}"),
        ("tile/entries/000", "application/octet-stream", f"public, {FOREVER}"),
        ("tile/entries/001.p/44", "application/octet-stream", f"public, {FOREVER}"),
        ("artifact/" + "a" * 64, "application/octet-stream", f"public, {FOREVER}"),
    ):
        status, headers, content = ask(plain, f"/2026h2/{name}")
        assert (status, headers["Content-Type"], headers["Cache-Control"]) == (200, kind, cache)
        assert content == (config.translog / "2026h2" / name).read_bytes()
        result, of_head, body = ask(plain, f"/2026h2/{name}", method="HEAD")
        assert (result, body, int(of_head["Content-Length"])) == (200, b"", len(content))
        assert of_head["Cache-Control"] == cache


def test_what_is_not_there_yet_is_not_remembered_as_missing(plain: LogServer) -> None:
    for method in ("GET", "HEAD"):
        status, headers, _ = ask(plain, "/2026h2/tile/0/001.p/45", method=method)
        assert (status, headers["Cache-Control"]) == (404, "no-store")


def test_a_body_that_nobody_reads_is_not_taken_for_a_request(plain: LogServer) -> None:
    inner = b"GET /2026h2/tile/0/000 HTTP/1.1\r\n\r\n"
    with socket.create_connection(("127.0.0.1", plain.port), timeout=20) as connection:
        connection.sendall(b"GET /nothing HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(inner) + inner)
        answer = b""
        with contextlib.suppress(ConnectionError):
            while more := connection.recv(65_536):
                answer += more
    assert answer.count(b"HTTP/1.1 ") == 1
    assert answer.startswith(b"HTTP/1.1 404 ")


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/checkpoint",
        "/2026h2",
        "/2026h2/",
        "/2026h1/checkpoint",
        "/order.db",
        "/2026h2/../order.db",
        "/2026h2/..%2forder.db",
        "/2026h2/%2e%2e/order.db",
        "//order.db",
        "/2026h2//checkpoint",
        "2026h2/checkpoint",
        "/2026h2/checkpoint?x=1",
        "/2026h2/tile/0/00",
        "/2026h2/tile/00/000",
        "/2026h2/tile/0/000.p/256",
        "/2026h2/tile/0/002",
        "/2026h2/tile/0/000/x",
        "/2026h2/tile/entries",
        "/2026h2/artifact/" + "A" * 64,
        "/2026h2/artifact/../checkpoint",
        "/2026h2/.staging/new",
        "/../store/rgs.db",
        "/....//store/rgs.db",
        "/2026h2/tile/0/000\x00",
    ],
)
def test_nothing_else_is_served(plain: LogServer, path: str) -> None:
    with socket.create_connection(("127.0.0.1", plain.port), timeout=20) as connection:
        connection.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
        answer = b""
        while more := connection.recv(65_536):
            answer += more
    assert answer.split(b" ", 2)[1] in {b"404", b"400"}, answer[:80]
    assert b"strangers" not in answer


def test_other_methods_are_refused(plain: LogServer) -> None:
    assert ask(plain, "/2026h2/checkpoint", method="POST")[0] == 501
    assert ask(plain, "/2026h2/checkpoint", method="DELETE")[0] == 501


def test_one_log_by_itself_is_served_at_the_root(config: Config) -> None:
    with serving(LogServer(config.translog / "2026h2", "127.0.0.1:0", None, None)) as server:
        assert ask(server, "/checkpoint")[0] == 200
        assert ask(server, "/2026h2/checkpoint")[0] == 404


def test_with_tls_the_entries_are_for_auditors(config: Config, guarded: LogServer) -> None:
    nobody = client(config)
    for name in ("checkpoint", "tile/0/000", "artifact/" + "a" * 64):
        assert ask(guarded, f"/2026h2/{name}", tls=nobody)[0] == 200
    assert ask(guarded, "/2026h2/tile/entries/000", tls=nobody)[0] == 403
    for party, status in (("operator", 403), ("auditor", 200), ("regulator", 200), ("lab", 200), ("admin", 200)):
        found, headers, _ = ask(guarded, "/2026h2/tile/entries/000", tls=client(config, f"demo-{party}"))
        assert found == status
        assert headers["Cache-Control"] == (f"private, {FOREVER}" if status == 200 else "no-store")
        assert ask(guarded, "/2026h2/tile/entries/000", method="HEAD", tls=client(config, f"demo-{party}"))[0] == status


@pytest.mark.parametrize("is_idle", [False, True], ids=["asks byte by byte", "asks again byte by byte"])
def test_places_are_not_held_by_who_never_comes_to_an_end(
    config: Config, monkeypatch: pytest.MonkeyPatch, *, is_idle: bool
) -> None:
    monkeypatch.setattr(log_server, "TIMEOUT_S", 0.5)
    first = b"GET /2026h2/checkpoint HTTP/1.1\r\n\r\n" if is_idle else b""
    stopped = threading.Event()
    with serving(LogServer(config.translog, "127.0.0.1:0", None, None)) as server, contextlib.ExitStack() as open_:
        slow = [
            open_.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            for _ in range(log_server.CONNECTIONS_MAX)
        ]
        for one in slow:
            one.sendall(first + b"GET /2026h2/checkpoint HTTP/1.1\r\nX: ")

        def drip() -> None:
            while not stopped.wait(0.1):
                for one in slow:
                    with contextlib.suppress(OSError):
                        one.sendall(b"x")

        dripping = threading.Thread(target=drip)
        dripping.start()
        try:
            assert ask(server, "/2026h2/checkpoint")[0] == 200
        finally:
            stopped.set()
            dripping.join()


def test_bundles_are_compressed_for_who_takes_that(config: Config, plain: LogServer) -> None:
    path = "/2026h2/tile/entries/000"
    whole = (config.translog / path[1:]).read_bytes()
    for accepted in ("gzip", "identity, GZIP;q=0.5", "br;q=1.0, gzip; q=1.0"):
        status, headers, content = ask(plain, path, accepted=accepted)
        assert (status, headers["Content-Encoding"], headers["Vary"]) == (200, "gzip", "Accept-Encoding")
        assert len(content) < len(whole) / 2
        assert gzip.decompress(content) == whole
        assert ask(plain, path, method="HEAD", accepted=accepted)[1]["Content-Length"] == str(len(content))
    for accepted in ("", "identity", "gzip;q=0", "gzip; q=0.000", "x-gzip"):
        _, headers, content = ask(plain, path, accepted=accepted)
        assert (headers.get("Content-Encoding"), headers["Vary"], content) == (None, "Accept-Encoding", whole)
    assert "Content-Encoding" not in ask(plain, "/2026h2/tile/0/000", accepted="gzip")[1]  # hashes do not shrink


def test_a_client_that_says_nothing_keeps_nobody_waiting(config: Config, guarded: LogServer) -> None:
    with socket.create_connection(("127.0.0.1", guarded.port)), socket.create_connection(("127.0.0.1", guarded.port)):
        assert ask(guarded, "/2026h2/checkpoint", tls=client(config))[0] == 200
