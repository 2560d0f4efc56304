"""Where a log is read from: a folder, an address; servers that lie, break off or never end."""

from __future__ import annotations

import functools
import gzip
import http.server
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import pytest

from certification.sources import Folder, SourceError, Web
from certification.tree import Tree
from rgs.core.tlog.merkle import root_of
from tests.support.records.audited import Case, a_round
from tests.support.records.factory import RecordFactory


@pytest.fixture
def case(tmp_path: Path) -> Case:
    factory = RecordFactory("sources")
    worker = factory.start("node-1-b1-w0")
    player = factory.open(worker)
    factory.buy(worker, player, 50_000)
    a_round(factory, worker, player)
    case = Case(tmp_path, factory)
    case.publish()
    return case


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/checkpoint")
            self.end_headers()
        else:
            super().do_GET()


@contextmanager
def served(handler: Callable[..., http.server.BaseHTTPRequestHandler]) -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_log_over_http(case: Case) -> None:
    with served(functools.partial(_Quiet, directory=str(case.log))) as url:
        assert case.audit(log=f"{url}/") == 0
        source = Web(url)
        assert source.read("nothing", 10) is None
        for path in ("checkpoint", "moved"):
            with pytest.raises(SourceError):
                source.read(path, 10)


HASHES = b"".join(sha256(bytes([number])).digest() for number in range(256))


class _Coded(_Quiet):
    """Answers in gzip, asked or not; and what its path says is done to it."""

    def do_GET(self) -> None:
        harms: dict[str, Callable[[bytes], bytes]] = {
            "cut": lambda packed: packed[:-1],
            "more": lambda packed: packed + b"x",
            "flip": lambda packed: packed[:-8] + bytes([packed[-8] ^ 1]) + packed[-7:],
        }
        harm = self.path.strip("/")
        if harm == "hashes":
            content = HASHES
        else:
            content = b"0" * 1_000 if harm in {*harms, "br", "long"} else (Path(self.directory) / harm).read_bytes()
        packed = harms.get(harm, bytes)(gzip.compress(content))
        self.send_response(200)
        self.send_header("Content-Encoding", "br" if harm == "br" else "gzip")
        self.send_header("Content-Length", str(len(packed)))
        self.end_headers()
        self.wfile.write(packed)


def test_a_log_that_comes_compressed(case: Case) -> None:
    with served(functools.partial(_Coded, directory=str(case.log))) as url:
        assert case.audit(log=url) == 0
        source = Web(url)
        assert source.read("long", 1_000) == b"0" * 1_000
        assert source.read("hashes", len(HASHES)) == HASHES, "longer than it was"
        for path in ("cut", "more", "flip", "br"):
            with pytest.raises(SourceError):
                source.read(path, 1_000)
        with pytest.raises(SourceError, match="longer than 999 bytes"):
            source.read("long", 999)


class _Broken(http.server.BaseHTTPRequestHandler):
    """A server, or somebody on the way to it, that does not bring its answers to an end."""

    folder = Path()

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        data = (self.folder / self.path.split("/", 2)[2]).read_bytes()
        match self.path.split("/")[1]:
            case "cut":
                self.send_response(200)
                self.send_header("Content-Length", str(len(data)))
                data = data[: len(data) // 2]
            case "part":
                self.send_response(206)
                self.send_header("Content-Length", str(len(data)))
            case "chunks":
                self.send_response(200)
                self.send_header("Transfer-Encoding", "chunked")
                data = b"fff\r\nx"
            case "named":
                self.wfile.write(b"HTTP/\x1b[31m 200\r\n\r\n")
                return
            case _:  # its length is told by its end
                self.send_response(200)
        self.end_headers()
        self.wfile.write(data)


def test_an_answer_that_breaks_off_accuses_nobody(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    _Broken.folder = case.log
    with served(_Broken) as url:
        assert case.audit(log=f"{url}/whole") == 0
        for fault in ("cut", "part", "chunks", "named"):
            assert case.audit(log=f"{url}/{fault}") == 2, fault
        assert "\x1b" not in capsys.readouterr().err
        ticks = iter(range(0, 1_000, 100))
        with pytest.raises(SourceError, match="and no end"):
            Web(f"{url}/whole", file_s=50, clock=lambda: next(ticks)).read("checkpoint", 10_000)


def test_a_folder_that_cannot_be_read(case: Case) -> None:
    source = Folder(case.log)
    assert source.read("checkpoint/x", 10) is None
    with pytest.raises(SourceError):
        source.read("tile", 10)
    with pytest.raises(ValueError, match="edge"):
        Tree(3, [[bytes(32)]])
    assert root_of([]) == Tree().root()
