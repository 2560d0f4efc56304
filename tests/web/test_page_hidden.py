"""A hidden document takes open bets back (F-8), over a cut connection, too; and the page says only what is true."""

from __future__ import annotations

from typing import Any

import pytest

from tests.web.between import Between
from tests.web.page_browser import Visitor, until, visit

pytestmark = pytest.mark.timeout(300)
HIDE = """(hidden) => {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
  document.dispatchEvent(new Event("visibilitychange"));
}"""
TIMERS = {"betting_ms": 25_000, "amber_ms": 5_000, "decision_ms": 8_000, "result_ms": 3_000}
QUICK = {**TIMERS, "betting_ms": 9_000, "amber_ms": 3_000}
TABLES = {"hidden-slow": TIMERS, "hidden-beside": TIMERS, "hidden-quick": QUICK}
STORE = "document.querySelector('rgs-page').store"


@pytest.fixture(scope="module")
def tables(page_whole: Any) -> None:
    for name, timers in TABLES.items():
        page_whole.add_table(name, **timers)


@pytest.fixture
def visitor(browser: Any, page_whole: Any, tables: None) -> Any:
    found = visit(browser, page_whole.origin)
    yield found
    assert found.faults == []
    found.page.context.close()


def bet_at(visitor: Visitor, table: str) -> None:
    """A bet that the table has, in an open window."""
    visitor.sit(table)
    visitor.window(5_000)
    visitor.bet("ante", 100)
    visitor.page.wait_for_selector("[data-stated=yes]:has-text('placed')")


def antes(visitor: Visitor) -> list[str]:
    """The ante of the seat, as the game server has it now."""
    bets = visitor.page.evaluate(
        f"async () => {{ const {{ link, tables }} = {STORE};"
        ' return (await link.request("get", { session_id: tables[0].id })).seat.bets ?? []; }'
    )
    return [bet["amount_minor"] for bet in bets if bet["bet"] == "ante"]


def test_bets_are_taken_back_once_the_connection_is_back(visitor: Visitor) -> None:
    between = Between(visitor.page)
    visitor.sign_up()
    bet_at(visitor, "hidden-slow")
    assert antes(visitor) == ["100"]
    between.is_down = True
    between.cut()
    visitor.page.wait_for_selector("[data-link]")
    visitor.page.evaluate(HIDE, True)
    visitor.page.wait_for_timeout(700)
    assert visitor.page.evaluate(f"{STORE}.notice") == "", "nobody has taken anything back yet"
    between.is_down = False
    visitor.page.evaluate(HIDE, False)
    visitor.page.wait_for_selector("[data-notice]")
    assert "taken back and returned" in visitor.page.locator("[data-notice]").inner_text()
    assert antes(visitor) == []
    assert visitor.minor("bet") == 0


def test_a_refusal_of_the_game_server_is_not_the_end_of_it(visitor: Visitor) -> None:
    between = Between(visitor.page)
    visitor.sign_up()
    bet_at(visitor, "hidden-slow")
    between.refused["hidden"] = "UNAVAILABLE"
    visitor.page.evaluate(HIDE, True)
    visitor.page.wait_for_timeout(1500)
    assert visitor.page.evaluate(f"{STORE}.notice") == ""
    assert antes(visitor) == ["100"]
    between.refused.clear()
    visitor.page.wait_for_selector("[data-notice]")
    assert antes(visitor) == []


def test_bets_that_could_not_be_taken_back_in_time_stand_and_the_page_says_so(visitor: Visitor) -> None:
    between = Between(visitor.page)
    visitor.sign_up()
    bet_at(visitor, "hidden-quick")
    between.refused["hidden"] = "UNAVAILABLE"
    visitor.page.evaluate(HIDE, True)
    until(visitor.page, f"() => {STORE}.tables[0].open !== undefined")
    between.refused.clear()
    visitor.page.evaluate(HIDE, False)
    visitor.page.wait_for_selector("[data-notice]")
    assert "they stand" in visitor.page.locator("[data-notice]").inner_text()
    assert "taken back and returned" not in visitor.page.locator("[data-notice]").inner_text()


def test_a_table_behind_another_one_of_the_page_is_not_hidden(browser: Any, page_whole: Any, tables: None) -> None:
    visitor = visit(browser, page_whole.origin, viewport={"width": 400, "height": 800})
    visitor.sign_up()
    bet_at(visitor, "hidden-slow")
    page = visitor.page
    page.click("[data-does=lobby]")
    page.click("rgs-dialog [data-table=hidden-beside] [data-does=beside]")
    page.wait_for_selector("[data-tab='1'][aria-pressed=true]")
    assert not page.locator("rgs-table").first.is_visible(), "on a phone one table is shown at once"
    page.wait_for_timeout(500)
    assert antes(visitor) == ["100"]
    page.click("[data-tab='0']")
    assert visitor.minor("bet") == 200, "ante and blind"
    assert page.locator("[data-notice]").count() == 0
    assert visitor.faults == []
    page.context.close()


def test_sound_is_on_again_at_another_table(visitor: Visitor) -> None:
    visitor.sign_up()
    visitor.sit("hidden-slow")
    page = visitor.page
    sound = page.locator("[data-does=sound]")
    sound.click()
    assert sound.get_attribute("aria-pressed") == "false"
    page.click("[data-does=lobby]")
    page.click("rgs-dialog [data-table=hidden-beside] [data-does=play]")
    page.wait_for_selector("rgs-dialog", state="detached")
    until(page, f"() => {STORE}.current.tableId === 'hidden-beside'")
    assert sound.get_attribute("aria-pressed") == "true"


def test_sound_stays_off_where_the_profile_says_so(visitor: Visitor) -> None:
    visitor.sign_up()
    page = visitor.page
    page.click("[data-does=settings]")
    page.uncheck("rgs-settings [name=sound]")
    page.click("[data-does=apply]")
    until(page, f"() => {STORE}.settings.sound === false")
    page.reload()
    page.wait_for_selector("rgs-lobby [data-game]")
    visitor.sit("hidden-slow")
    assert page.locator("[data-does=sound]").get_attribute("aria-pressed") == "false"
