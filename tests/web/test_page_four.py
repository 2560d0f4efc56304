"""Four tables at once (T-4, F-12): 2 x 2 on a desktop, tabs on a phone, and no long task while all four play.

The tables are of the kind of uth-online, set up by the admin as any other: the development jurisdiction allows four at
once, and the project ships two that may stand beside each other.
"""

from __future__ import annotations

import json
import sys
from typing import Any, Final

import pytest

from tests.web.page_browser import PHONE, Visitor, until, visit

TABLES: Final = ("four-a", "four-b", "four-c", "four-d")
TIMERS: Final = {"betting_ms": 15_000, "amber_ms": 3_000, "decision_ms": 60_000, "result_ms": 25_000}
"""Time enough for one hand to play at four tables in turn, and to look at each result, on a busy machine."""
WIDE: Final = {"width": 1440, "height": 1000}
TRIES: Final = 3
"""A task is long by itself, and then each time; or the first round compiles a script, and then once."""
LONG_MS: Final = 50
"""From then on a task is long. It is time of the processor: what else runs on the machine is not the page's."""


@pytest.fixture(scope="module")
def tables(page_whole: Any) -> None:
    """Four tables more in the lobby."""
    for name in TABLES:
        page_whole.add_table(name, **TIMERS)


@pytest.fixture
def player(browser: Any, page_whole: Any, tables: None) -> Any:
    """A player on a desktop, in the lobby."""
    found = visit(browser, page_whole.origin, viewport=WIDE)
    found.sign_up("2000.00")
    yield found
    assert found.faults == []
    found.page.context.close()


def open_four(visitor: Visitor) -> None:
    """Sit at all four tables."""
    page = visitor.page
    visitor.sit(TABLES[0])
    for name in TABLES[1:]:
        page.click("[data-does=lobby]")
        page.click(f"rgs-dialog [data-table={name}] [data-does=beside]")
        front = page.locator("rgs-table.front")
        front.locator("rgs-buy input").fill("100.00")
        front.locator("[data-does=buy]").click()
        front.locator("[data-does=join]").click()
        front.locator("rgs-rack").wait_for()


def table(visitor: Visitor, index: int) -> Any:
    """The table of this place."""
    return visitor.page.locator("rgs-table").nth(index)


def longest_ms(trace: bytes) -> list[float]:
    """The five tasks of the page's main thread that took most of the processor, in ms."""
    events = json.loads(trace)["traceEvents"]
    of_pages = {
        (event["pid"], event["tid"])
        for event in events
        if event["name"] == "thread_name" and event["args"]["name"] == "CrRendererMain"
    }
    took = [
        event["tdur"] / 1_000
        for event in events
        if event["name"].endswith("RunTask") and "tdur" in event and (event["pid"], event["tid"]) in of_pages
    ]
    assert took, "the browser traced no task"
    return sorted(took, reverse=True)[:5]


def words(one: Any, spot: str) -> list[str]:
    """What stands on a spot, without the cents of whole amounts: among four tables the chips say the amount."""
    return str(one.locator(f"[data-spot={spot}]").inner_text()).replace(".00", "").replace("€", "").split()


def play_all(visitor: Visitor) -> None:
    """One round at each of the four tables, all at the same time, each with its own stake, to its proof."""
    for index in range(4):
        one = table(visitor, index)
        one.locator("[data-spot=ante]:not(:disabled)").wait_for()
        one.locator("[data-chip='100']").click()
        for _ in range(index + 1):
            one.locator("[data-spot=ante]").click()
    for index in range(4):
        table(visitor, index).locator("rgs-decide button:not(:disabled)").first.wait_for()
    for index in range(4):
        table(visitor, index).locator("[data-action=ACTION_PLAY_4X]").click()
    for index in range(4):
        one = table(visitor, index)
        one.locator("[data-proof=first_use]").wait_for(timeout=90_000)
        assert str(index + 1) in words(one, "ante")
        assert str(4 * (index + 1)) in words(one, "play")


@pytest.mark.timeout(600)
def test_four_tables_play_at_once_without_a_long_task(browser: Any, player: Visitor) -> None:
    page = player.page
    open_four(player)
    boxes = [table(player, index).bounding_box() for index in range(4)]
    rows, columns = ({round(one[side]) for one in boxes} for side in ("y", "x"))
    assert (len(rows), len(columns)) == (2, 2), boxes
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    seen: list[list[float]] = []
    for _ in range(TRIES):
        browser.start_tracing(page=page, categories=["-*", "toplevel"])
        play_all(player)
        seen.append(longest_ms(browser.stop_tracing()))
        if seen[-1][0] <= LONG_MS:
            break
    sys.stdout.write(f"longest tasks in ms of the processor, in each round of four: {seen}\n")
    assert seen[-1][0] <= LONG_MS, f"a task of more than {LONG_MS} ms in each of {TRIES} rounds: {seen}"
    before = [table(player, index).locator("dd[data-fact=balance]").inner_text() for index in range(4)]
    table(player, 1).locator("[data-does=leave]").click()
    until(page, "() => document.querySelector('rgs-page').store.tables.length === 3")
    after = [table(player, index).locator("dd[data-fact=balance]").inner_text() for index in range(3)]
    assert after == [before[0], before[2], before[3]], "leaving one table leaves the others as they are"


@pytest.mark.timeout(600)
def test_four_tables_are_tabs_on_a_phone(browser: Any, page_whole: Any, tables: None) -> None:
    visitor = visit(browser, page_whole.origin, viewport=PHONE, has_touch=True)
    visitor.sign_up("2000.00")
    page = visitor.page
    open_four(visitor)
    assert page.locator("[data-tab]").count() == 4
    for index, name in enumerate(TABLES):
        page.locator(f"[data-tab='{index}']").tap()
        front = page.locator("rgs-table.front")
        assert front.locator("h2").first.inner_text() == name
        assert [one.is_visible() for one in page.locator("rgs-table").all()] == [at == index for at in range(4)]
        front.locator("[data-spot=ante]:not(:disabled)").wait_for()
        front.locator("[data-chip='100']").tap()
        front.locator("[data-spot=ante]").tap()
        assert "1.00" in front.locator("[data-spot=ante]").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert visitor.faults == []
    page.context.close()
