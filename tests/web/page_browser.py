"""Chromium on the operator's page: how it is started, and what a player does there."""

from __future__ import annotations

import contextlib
import importlib.util
import re
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
DIST: Final = ROOT / "examples/operator/page/dist"
CHROMIUM: Final = shutil.which("chromium") or shutil.which("chromium-browser") or ""
FLAGS: Final = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
PASSWORD: Final = "correct horse battery"  # noqa: S105 - of accounts that live as long as a test
DESKTOP: Final = {"width": 1280, "height": 860}
PHONE: Final = {"width": 360, "height": 740}
SIZES: Final = {"desktop": DESKTOP, "phone": PHONE}
RULES: Final = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")
"""What axe looks at."""
STEP_MS: Final = 30_000
DEPOSIT: Final = """async (amount) => {
  const body = new URLSearchParams({ request_id: crypto.randomUUID(), amount });
  return (await fetch("/cashier", { method: "POST", body })).status;
}"""
WINDOW: Final = """(least) => {
  const { tables: [{ table }], clock } = document.querySelector("rgs-page").store;
  return table?.state === "TABLE_STATE_IDLE"
    || (table?.state === "TABLE_STATE_BETTING" && (clock.left(table.deadline) ?? 0) > least);
}"""
TABLES: Final = """() => JSON.stringify(document.querySelector("rgs-page").store.tables.map(
  ({ table, seat, takenOver, takingBack, bettingOpen }) => ({ table, seat, takenOver, takingBack, bettingOpen })))"""
_NUMBER: Final = re.compile(r"[\d.,]+")


def why_not() -> str:
    """Why the page cannot be tested here; empty where it can."""
    if importlib.util.find_spec("playwright") is None or importlib.util.find_spec("axe_playwright_python") is None:
        return "Playwright is not installed: run `make page-test`"
    if not CHROMIUM:
        return "no Chromium on this machine: install the package chromium"
    if not (DIST / "index.html").is_file():
        return "the page is not built: run `make page`"
    return ""


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """The browser, with a profile that is thrown away."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - not where the browser is missing

    with tempfile.TemporaryDirectory() as profile, sync_playwright() as driver:
        context = driver.chromium.launch_persistent_context(profile, executable_path=CHROMIUM, args=list(FLAGS))
        try:
            yield context.browser or context
        finally:
            context.close()


@dataclass
class Visitor:
    """One player in one browser of its own."""

    page: Any
    origin: str
    faults: list[str] = field(default_factory=list)
    name: str = ""

    def listen(self) -> None:
        """Keep what goes wrong in the page: errors of scripts, and what the content policy refused."""
        self.page.on("pageerror", lambda error: self.faults.append(f"script: {error}"))
        self.page.on("console", self._console)
        self.page.set_default_timeout(STEP_MS)

    def _console(self, message: Any) -> None:
        # A refusal of the API is shown to the player; the browser writes it here, too.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.faults.append(f"console: {message.text}")

    def sign_up(self, amount: str = "500.00", nickname: str = "") -> Visitor:
        """Sign up, pay in play money, and see the lobby."""
        page = self.page
        self.name = f"p-{uuid.uuid4().hex[:12]}"
        page.goto(self.origin)
        page.click("[data-does=other]")
        page.fill("input[name=name]", self.name)
        page.fill("input[name=password]", PASSWORD)
        page.fill("input[name=nickname]", nickname or self.name[-12:])
        page.click("[data-does=sign]")
        page.wait_for_selector("rgs-lobby [data-game]")
        if amount:
            page.evaluate(DEPOSIT, amount)
            page.reload()
            page.wait_for_selector("rgs-lobby [data-game]")
        return self

    def play(self, game: str, stake: str = "100.00") -> Visitor:
        """Open a game for one player and buy the right of participation."""
        self.page.click(f"[data-game={game}] [data-does=play]")
        self.buy(stake)
        self.page.wait_for_selector("rgs-rack")
        return self

    def buy(self, stake: str) -> None:
        """Buy the right of participation at what is open."""
        self.page.fill("rgs-buy input", stake)
        self.page.click("[data-does=buy]")

    def sit(self, table: str, stake: str = "100.00") -> Visitor:
        """Open a table, buy, and sit down."""
        self.page.click(f"[data-table={table}] [data-does=play]")
        self.buy(stake)
        self.page.click("[data-does=join]")
        self.page.wait_for_selector("rgs-rack")
        return self

    def window(self, left_ms: int = 3_000) -> None:
        """Wait until a bet at the table can come in time: it is idle, or so much of the window is left."""
        until(self.page, WINDOW, left_ms, 90)

    def bet(self, spot: str, chip: int) -> None:
        """One chip on a spot, by mouse."""
        try:
            self.page.click(f"[data-chip='{chip}']")
        except Exception as error:
            error.add_note(self.page.evaluate(TABLES))
            raise
        self.page.click(f"[data-spot={spot}]")

    def deal(self) -> None:
        """Deal, and wait for the first decision."""
        self.page.click("[data-does=deal]")
        self.page.wait_for_selector("rgs-decide")

    def decide_all(self, *wishes: str) -> None:
        """The first wish that is available at each decision, until the result is shown."""
        while True:
            self.page.wait_for_selector("rgs-decide button:not(:disabled), [data-result]")
            if self.page.locator("[data-result]").count():
                return
            for wish in wishes:
                option = self.page.locator(f"[data-action={wish}]:not(:disabled)")
                if option.count():
                    option.first.click()
                    break
            self.page.wait_for_timeout(50)

    def fact(self, name: str) -> str:
        """A fact of the line that is always shown, such as `balance`."""
        return str(self.page.locator(f"dd[data-fact={name}]").first.inner_text())

    def minor(self, name: str) -> int:
        """A fact that is an amount, in minor units."""
        found = _NUMBER.search(self.fact(name))
        assert found, self.fact(name)
        return int(found[0].replace(",", "").replace(".", ""))

    def spot(self, name: str) -> str:
        """What a spot shows."""
        return str(self.page.locator(f"[data-spot={name}]").inner_text())

    def api(self, path: str) -> Any:
        """An answer of the JSON API, as this player."""
        return self.page.evaluate("async (path) => (await fetch(path)).json()", path)


def until(page: Any, expression: str, argument: object = None, seconds: float = STEP_MS / 1000) -> None:
    """Wait until a JavaScript function is true; asked from outside, for the page's policy allows no eval in it."""
    last = time.monotonic() + seconds
    while not page.evaluate(expression, argument):
        assert time.monotonic() < last, f"not within {seconds} s: {expression}"
        page.wait_for_timeout(50)


def wait_for(page: Any, holds: Callable[[], bool], seconds: float = STEP_MS / 1000) -> None:
    """Wait until what the page reports makes this true."""
    last = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < last, f"not within {seconds} s"
        page.wait_for_timeout(50)


def visit(browser: Any, origin: str, **options: Any) -> Visitor:
    """A new visitor, in a browser context of its own."""
    options = {"viewport": DESKTOP, "locale": "en-GB", **options}
    visitor = Visitor(browser.new_context(**options).new_page(), origin)
    visitor.listen()
    return visitor
