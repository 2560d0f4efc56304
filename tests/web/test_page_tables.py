"""The page at tables: two players, two devices, boxes, several tables, chat, and a hidden document (F-8)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.web.page_browser import PASSWORD, Visitor, visit

HIDE = """() => {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


@pytest.fixture
def two(browser: Any, page_whole: Any) -> Any:
    """Two players in the lobby."""
    found = [visit(browser, page_whole.origin).sign_up() for _ in range(2)]
    yield found
    assert [visitor.faults for visitor in found] == [[], []]
    for visitor in found:
        visitor.page.context.close()


def cards(visitor: Visitor, where: str) -> list[str]:
    """The cards that are shown there, by their names."""
    return [str(each.get_attribute("aria-label")) for each in visitor.page.locator(f"rgs-table {where} .card").all()]


@pytest.mark.timeout(240)
def test_two_players_share_a_hand_and_each_proves_the_own_seat(two: list[Visitor]) -> None:
    first, second = two
    for visitor in two:
        visitor.sit("uth-online")
    first.bet("ante", 100)
    first.bet("trips", 100)
    first.page.wait_for_selector("[data-stated=yes]:has-text('placed')")
    second.bet("ante", 500)
    assert "green" in first.page.locator("rgs-light circle.left").first.get_attribute("class")
    for visitor in two:
        visitor.page.wait_for_selector("rgs-decide")
        assert "without a decision" in visitor.page.locator("rgs-decide .silence").inner_text()
    assert cards(first, ".own") == cards(second, ".own")
    first.page.click("[data-action=ACTION_PLAY_4X]")
    assert "have decided" in first.page.locator("rgs-table .waits").inner_text()
    for visitor in two:
        visitor.page.wait_for_selector("[data-result]", timeout=90_000)
    assert cards(first, ".dealer") == cards(second, ".dealer")
    assert "Play" in first.spot("play")
    for visitor in two:
        visitor.page.wait_for_selector("[data-does=proof]")
        visitor.page.wait_for_selector("[data-proof=first_use], [data-proof=unavailable]")
        state = visitor.page.locator("[data-does=proof]").get_attribute("data-proof")
        assert state == "first_use", visitor.page.locator("[data-does=proof]").inner_text()


@pytest.mark.timeout(240)
def test_a_second_device_takes_the_seat_and_the_first_one_is_told(browser: Any, two: list[Visitor]) -> None:
    first, _ = two
    first.sit("uth-online")
    device = visit(browser, first.origin)
    device.page.goto(first.origin)
    device.page.fill("input[name=name]", first.name)
    device.page.fill("input[name=password]", PASSWORD)
    device.page.click("[data-does=sign]")
    device.page.wait_for_selector("[data-state=other-device]")
    assert device.page.locator("[data-spot=ante]").is_disabled(), "a second device watches until it takes the seat"
    device.page.click("[data-state=other-device] button")
    device.page.wait_for_selector("rgs-rack")
    first.page.wait_for_selector("[data-state=other-device]")
    assert first.page.locator("[data-spot=ante]").is_disabled()
    first.page.click("[data-state=other-device] button")
    first.page.wait_for_selector("[data-state=other-device]", state="detached")
    device.page.wait_for_selector("[data-state=other-device]")
    assert device.faults == []
    device.page.context.close()


@pytest.mark.timeout(240)
def test_a_hidden_document_gives_open_bets_back(two: list[Visitor]) -> None:
    first, _ = two
    first.sit("uth-online")
    first.window(5_000)
    first.bet("ante", 100)
    first.page.wait_for_selector("[data-stated=yes]:has-text('placed')")
    first.page.evaluate(HIDE)
    first.page.wait_for_selector("[data-notice]")
    assert "hidden" in first.page.locator("[data-notice]").inner_text()
    first.page.wait_for_timeout(500)
    sessions = first.api("/api/me")
    assert sessions["name"] == first.name
    first.page.reload()
    first.page.wait_for_selector("rgs-table rgs-rack")
    assert first.minor("bet") == 0


@pytest.mark.timeout(240)
def test_boxes_and_a_second_table_beside(two: list[Visitor]) -> None:
    first, second = two
    first.sit("uth-online")
    first.page.click("[data-does=lobby]")
    assert first.page.locator("[data-table=uth-lugano] [data-does=beside]").count() == 0, "it allows none beside it"
    first.page.click("rgs-dialog [data-table=uth-seven-box] [data-does=beside]")
    front = first.page.locator("rgs-table.front")
    first.buy("50.00")
    front.locator("[data-does=box]").last.click()
    front.locator("[data-box].own").wait_for()
    box = front.locator("[data-box].own").get_attribute("data-box")
    assert first.page.locator("[data-tab]").count() == 2
    second.page.click("[data-table=uth-seven-box] [data-does=play]")
    second.buy("50.00")
    second.page.wait_for_selector(f"[data-box='{box}'] .who[title='{first.name[-12:]}']")
    assert second.page.locator(f"[data-box='{box}'] [data-does=box]").count() == 0, "the box is taken"
    front.locator("[data-does=leave]").click()
    first.page.wait_for_selector("[data-tab]", state="detached")
    assert first.page.locator("rgs-table").count() == 1, "leaving one table leaves the other"
    second.page.wait_for_selector(f"[data-box='{box}'] [data-does=box]")


@pytest.mark.timeout(240)
def test_chat_is_text_and_other_players_lines_can_be_hidden(two: list[Visitor]) -> None:
    first, second = two
    for visitor in two:
        visitor.sit("uth-online")
        visitor.page.click("[data-does=chat]")
    bad = "<img src=x onerror=alert(1)><b>hi</b>"
    first.page.fill("rgs-chat input", bad)
    first.page.keyboard.press("Enter")
    second.page.wait_for_selector("rgs-chat .lines p:has-text('<b>hi</b>')")
    assert second.page.locator("rgs-chat img, rgs-chat b").count() == 0
    second.page.click("[data-does=settings]")
    second.page.uncheck("rgs-settings [name=chat]")
    second.page.click("[data-does=apply]")
    second.page.click("[data-does=chat]")
    second.page.wait_for_selector("rgs-chat")
    assert bad not in second.page.locator("rgs-chat .lines").inner_text()
