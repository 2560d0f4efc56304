"""One element alone in a page of somebody else, as the page's README says: by the entry whose name stays."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import pytest

from tests.web.page_browser import DIST, until, visit

README: Final = (Path(__file__).parents[2] / "examples/operator/page/README.md").read_text("utf-8")
(PIECE,) = re.findall(r"^```js\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
(POLICY,) = re.findall(r"^```text\n(default-src .*?)^```$", README, re.MULTILINE | re.DOTALL)
FOREIGN: Final = b"""<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Somebody else</title></head>
<body><h1>Our casino</h1><script type="module" src="/theirs.js"></script></body></html>"""
ROWS: Final = """() => [...document.querySelector("rgs-paytable").shadowRoot.querySelector("table").rows].map((row) =>
  [...row.cells].map((cell) => cell.innerText))"""


class Theirs(SimpleHTTPRequestHandler):
    """The server of somebody else: the built page's files, their own page, and a catalog that they have kept."""

    requested: list[str]
    own: dict[str, bytes]

    def do_GET(self) -> None:
        self.requested.append(self.path)
        if (content := self.own.get(self.path)) is None:
            super().do_GET()
            return
        kind = {"html": "text/html", "js": "text/javascript", "json": "application/json"}[self.path.rpartition(".")[2]]
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def end_headers(self) -> None:
        self.send_header("Content-Security-Policy", " ".join(POLICY.split()))
        super().end_headers()

    def log_message(self, *_arguments: object) -> None:
        """Nothing is printed."""


@pytest.fixture
def theirs(browser: Any, page_whole: Any) -> Iterator[tuple[str, Any]]:
    catalog = visit(browser, page_whole.origin).sign_up(amount="").api("/api/catalog")
    Theirs.requested = []
    Theirs.own = {
        "/index-of-theirs.html": FOREIGN,
        "/theirs.js": PIECE.encode(),
        "/catalog.json": json.dumps(catalog).encode(),
    }
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Theirs, directory=str(DIST))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}", catalog
        server.shutdown()
        thread.join()


def test_a_paytable_stands_alone_in_a_page_of_somebody_else(browser: Any, theirs: tuple[str, Any]) -> None:
    origin, catalog = theirs
    visitor = visit(browser, origin)
    visitor.page.goto(f"{origin}/index-of-theirs.html")
    until(visitor.page, "() => document.querySelector('rgs-paytable')?.shadowRoot?.querySelector('table') != null")
    (game,) = [one for one in catalog["games"] if one["ruleset"]["id"] == "uth-solo"]
    head, *rows = visitor.page.evaluate(ROWS)
    assert [text.lower() for text in head[1:]] == [table["bet"] for table in game["paytables"]]
    assert len(head) >= 3, "a row for each hand, a column for each bet"
    for column, table in enumerate(game["paytables"], 1):
        paid = [row["pays"] for row in table["rows"] if row["pays"] not in ("lost", "push")]
        assert [row[column] for row in rows[: len(paid)]] == paid
    assert rows[0][0] == "Royal flush"
    assert visitor.faults == []
    files = {path for path in Theirs.requested if not path.startswith("/assets/") and path != "/favicon.ico"}
    assert files == {"/elements.js", *Theirs.own}, "nothing of a platform is requested"
