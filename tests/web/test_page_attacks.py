"""Attacks on a player through the browser: frames, stolen launches, replays, markup as a name, a lying server."""

from __future__ import annotations

import base64
import contextlib
import http.server
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.web.page_browser import DIST, STEP_MS, Visitor, until, visit, wait_for

EVIL: Final = ("<img src=x onerror=x", '"><svg onload=evil(', "{{7*7}}${evil()}<b>h", "javascript:evil()")
LAUNCH: Final = """async () => {
  const body = { request_id: crypto.randomUUID(), game: "uth-solo", currency: "EUR", language: "en", mode: "real" };
  const headers = { "Content-Type": "application/json" };
  return (await (await fetch("/api/launches", { method: "POST", headers, body: JSON.stringify(body) })).json()).url;
}"""
ELEMENTS: Final = """() => {
  const all = (root) => [...root.querySelectorAll("*")]
    .flatMap((one) => [one.localName, ...one.getAttributeNames(), ...(one.shadowRoot ? all(one.shadowRoot) : [])]);
  return all(document);
}"""


@pytest.fixture
def two(browser: Any, page_whole: Any) -> Any:
    """Two players who have not signed up."""
    found = [visit(browser, page_whole.origin) for _ in range(2)]
    yield found
    for visitor in found:
        visitor.page.context.close()


@contextlib.contextmanager
def other_site(html: str) -> Iterator[str]:
    """The address of another site, which serves this page."""

    class OnePage(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(html.encode())

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), OnePage)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("path", ["/", "/play", "/verify.html", "/cashier", "/office/"])
def test_no_other_site_can_frame_a_page(two: list[Visitor], path: str) -> None:
    """Clickjacking: the signed-in player's page does not load inside another site."""
    visitor = two[0].sign_up()
    page = visitor.page
    refusals: list[str] = []
    page.on("console", lambda message: refusals.append(message.text))
    with other_site(f'<iframe src="{visitor.origin}{path}" width="600" height="400"></iframe>') as address:
        page.goto(address)
        until(page, "() => document.querySelector('iframe').contentDocument === null")
        [frame] = page.main_frame.child_frames
        wait_for(page, lambda: frame.url.startswith("chrome-error://"))
        assert frame.locator("rgs-page, main, form").count() == 0
        wait_for(page, lambda: any("frame-ancestors" in text for text in refusals))


def test_a_stolen_launch_opens_nothing_for_another_player_and_stays_good_for_its_own(two: list[Visitor]) -> None:
    first, thief = (visitor.sign_up() for visitor in two)
    url = first.page.evaluate(LAUNCH)
    token = url.partition("=")[2]
    thief.page.goto("about:blank")
    thief.page.goto(f"{thief.origin}{url}")
    thief.page.wait_for_selector("[data-notice]")
    assert "launch" in thief.page.locator("[data-notice]").inner_text().lower()
    assert thief.page.locator("rgs-solo, rgs-buy").count() == 0
    assert token not in thief.page.url, "the token stands in no history"
    first.page.goto("about:blank")
    first.page.goto(f"{first.origin}{url}")
    first.page.wait_for_selector("rgs-buy")
    assert token not in first.page.url
    assert first.faults + thief.faults == []
    again = first.page.context.new_page()
    again.goto(f"{first.origin}{url}")
    again.wait_for_selector("[data-notice]")
    assert again.locator("rgs-buy").count() == 0, "a launch opens once"


def test_a_replayed_frame_closes_the_socket_and_has_no_effect(two: list[Visitor]) -> None:
    visitor = two[0]
    page = visitor.page
    sent: list[str] = []
    servers: list[Any] = []
    closed: list[int] = []

    def proxy(socket: Any) -> None:
        server = socket.connect_to_server()
        servers.append(server)

        def to_server(text: str) -> None:
            sent.append(text)
            server.send(text)

        def gone(code: int | None, reason: str | None) -> None:
            closed.append(code or 0)
            socket.close(code=code, reason=reason)

        socket.on_message(to_server)
        server.on_close(gone)

    page.route_web_socket(re.compile("/ws"), proxy)
    visitor.sign_up().play("uth-solo")
    visitor.bet("ante", 100)
    visitor.deal()
    [start] = [text for text in sent if json.loads(text)["type"] == "start"]
    before = len(servers)
    closed.clear()
    servers[-1].send(start)
    for _ in range(STEP_MS // 20):
        if len(servers) > before:
            break
        page.wait_for_timeout(20)
    until(page, "() => document.querySelector('rgs-page').store.linkState === 'open'")
    assert closed == [4002]
    assert len(servers) == before + 1
    visitor.decide_all("ACTION_PLAY_4X")
    assert len(visitor.api("/api/rounds")["rounds"]) == 1
    assert visitor.faults == []


@pytest.mark.parametrize("nickname", EVIL)
def test_a_nickname_is_text_wherever_others_see_it(two: list[Visitor], nickname: str) -> None:
    """At a box, in the chat, and on the own page."""
    first, second = two
    for visitor in two:
        visitor.page.add_init_script("globalThis.evil = () => { globalThis.ran = true; }")
    mark = f"{nickname}{id(two) % 100}"[-20:]
    first.sign_up(nickname=mark)
    second.sign_up()
    for visitor in two:
        visitor.page.click("[data-table=uth-seven-box] [data-does=play]")
        visitor.buy("50.00")
    first.page.locator("[data-does=box]").first.click()
    first.page.wait_for_selector("rgs-rack")
    second.page.locator("rgs-boxes .who", has_text=mark).wait_for()
    first.page.click("[data-does=chat]")
    first.page.fill("rgs-chat input", f"{mark} says")
    first.page.keyboard.press("Enter")
    second.page.locator("rgs-table [data-does=chat]").click()
    second.page.locator("rgs-chat .lines p", has_text=f"{mark} says").wait_for()
    for visitor in two:
        assert visitor.page.evaluate("globalThis.ran") is None
        found = visitor.page.evaluate(ELEMENTS)
        assert "rgs-boxes" in found
        assert {"img", "b", "iframe", "onerror", "onload"}.isdisjoint(found)
        assert visitor.faults == []


def test_a_server_that_alters_the_final_is_caught_by_the_page_and_by_verify_html(
    browser: Any, two: list[Visitor], tmp_path: Path
) -> None:
    """The player has the receipt from the liar, too: what was signed does not fit it, wherever it is opened."""
    visitor = two[0]
    page = visitor.page

    def lie(route: Any) -> None:
        answer = route.fetch()
        receipt = answer.json()
        if answer.status == 200 and "final" in receipt["record"]:
            envelope = json.loads(base64.b64decode(receipt["record"]["final"]))
            body = json.loads(base64.b64decode(envelope["payload"]))
            body["returned_minor"] = "0"
            for bet in body["settlement"]:
                bet.update(returned_minor="0", result="lost")
            text = json.dumps(body, sort_keys=True, separators=(",", ":"))
            envelope["payload"] = base64.b64encode(text.encode()).decode()
            whole = json.dumps(envelope, separators=(",", ":"))
            receipt["record"]["final"] = base64.b64encode(whole.encode()).decode()
        route.fulfill(response=answer, json=receipt)

    page.context.route("**/api/receipts/**", lie)
    visitor.sign_up().play("uth-solo")
    visitor.bet("ante", 100)
    visitor.deal()
    visitor.decide_all("ACTION_PLAY_4X")
    page.wait_for_selector("[data-does=proof][data-proof=failed]")
    [line] = visitor.api("/api/rounds")["rounds"]
    file = tmp_path / "receipt.json"
    file.write_text(json.dumps(visitor.api(f"/api/receipts/{line['round_id']}?session_id={line['session_id']}")))
    elsewhere = browser.new_context(offline=True, locale="en-GB").new_page()
    elsewhere.goto((DIST / "verify.html").as_uri())
    elsewhere.set_input_files("#file", file)
    elsewhere.wait_for_selector("[data-verdict=failed]")
    assert "does NOT verify" in elsewhere.inner_text("#result")
    elsewhere.context.close()
