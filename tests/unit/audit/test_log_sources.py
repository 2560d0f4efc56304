"""Where a log is read from: a folder, an address; servers that lie, break off or never end."""

from __future__ import annotations

import functools
import http.server
import threading
from pathlib import Path

import pytest

from certification.sources import Folder, SourceError, Web
from certification.tree import Tree
from rgs.core.merkle import root_of
from tests.audited import Case, a_round
from tests.factory import House


@pytest.fixture
def case(tmp_path: Path) -> Case:
    house = House("sources")
    worker = house.start("node-1-b1-w0")
    player = house.open(worker)
    house.buy(worker, player, 50_000)
    a_round(house, worker, player)
    case = Case(tmp_path, house)
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


def test_a_log_over_http(case: Case) -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(case.log)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        url = f"http://127.0.0.1:{server.server_address[1]}"
        assert case.audit(log=f"{url}/") == 0
        source = Web(url)
        assert source.read("nothing", 10) is None
        for path in ("checkpoint", "moved"):
            with pytest.raises(SourceError):
                source.read(path, 10)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


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
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Broken)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        url = f"http://127.0.0.1:{server.server_address[1]}"
        assert case.audit(log=f"{url}/whole") == 0
        for fault in ("cut", "part", "chunks", "named"):
            assert case.audit(log=f"{url}/{fault}") == 2, fault
        assert "\x1b" not in capsys.readouterr().err
        ticks = iter(range(0, 1_000, 100))
        with pytest.raises(SourceError, match="and no end"):
            Web(f"{url}/whole", file_s=50, clock=lambda: next(ticks)).read("checkpoint", 10_000)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_folder_that_cannot_be_read(case: Case) -> None:
    source = Folder(case.log)
    assert source.read("checkpoint/x", 10) is None
    with pytest.raises(SourceError):
        source.read("tile", 10)
    with pytest.raises(ValueError, match="edge"):
        Tree(3, [[bytes(32)]])
    assert root_of([]) == Tree().root()
