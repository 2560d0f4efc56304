"""How the page begins: with a used launch, with a platform that refuses; and the way back to the operator."""

from __future__ import annotations

from typing import Any

import pytest

from tests.web.between import Between
from tests.web.page_browser import PASSWORD, Visitor, visit

LAUNCH = """async (game) => {
  const body = JSON.stringify({ request_id: crypto.randomUUID(), game });
  const headers = { "Content-Type": "application/json" };
  return (await (await fetch("/api/launches", { method: "POST", headers, body })).json()).url;
}"""


@pytest.fixture
def visitor(browser: Any, page_whole: Any) -> Any:
    found = visit(browser, page_whole.origin)
    yield found
    assert found.faults == []
    found.page.context.close()


def again(visitor: Visitor) -> Visitor:
    """Another tab of the same browser."""
    found = Visitor(visitor.page.context.new_page(), visitor.origin, name=visitor.name)
    found.listen()
    return found


def test_a_used_launch_says_so_and_shows_the_lobby_to_who_is_signed_in(visitor: Visitor) -> None:
    visitor.sign_up()
    url = visitor.page.evaluate(LAUNCH, "uth-solo")
    first, second = again(visitor), again(visitor)
    first.page.goto(visitor.origin + url)
    first.page.wait_for_selector("rgs-solo")
    between = Between(second.page)
    second.page.goto(visitor.origin + url)
    second.page.wait_for_selector("rgs-lobby [data-game]")
    assert "opens nothing" in second.page.locator("[data-notice]").inner_text()
    assert second.page.locator("rgs-sign-in").count() == 0
    assert between.opened == 1
    assert "launch=" not in second.page.url
    # The lobby works, and knows the session that the first launch has opened.
    second.page.click("[data-game=uth-solo] [data-does=play]")
    second.page.wait_for_selector("rgs-solo")
    assert "redeem" in between.types()
    assert between.types().count("redeem") == 1, "the session that is open goes on; nothing else is launched"
    assert [first.faults, second.faults] == [[], []]


def test_a_launch_that_never_was_says_so_too(visitor: Visitor) -> None:
    visitor.sign_up(amount="")
    page = again(visitor).page
    page.goto(f"{visitor.origin}/play#launch={'A' * 43}")
    page.wait_for_selector("rgs-lobby [data-game]")
    assert "opens nothing" in page.locator("[data-notice]").inner_text()


def test_who_signs_in_with_a_used_launch_has_one_socket(browser: Any, visitor: Visitor) -> None:
    visitor.sign_up()
    url = visitor.page.evaluate(LAUNCH, "uth-solo")
    visitor.page.goto(visitor.origin + url)
    visitor.page.wait_for_selector("rgs-solo")
    other = visit(browser, visitor.origin)
    between = Between(other.page)
    other.page.goto(visitor.origin + url)
    other.page.fill("input[name=name]", visitor.name)
    other.page.fill("input[name=password]", PASSWORD)
    other.page.click("[data-does=sign]")
    other.page.wait_for_selector("rgs-lobby [data-game]")
    assert "opens nothing" in other.page.locator("[data-notice]").inner_text()
    assert between.opened == 1
    other.page.context.close()


def test_a_refusal_at_the_start_is_no_sign_in_form(visitor: Visitor) -> None:
    visitor.sign_up(amount="")
    between = Between(visitor.page)
    between.refused["sessions"] = "UNAVAILABLE"
    visitor.page.reload()
    visitor.page.wait_for_selector("rgs-lobby [data-game]")
    assert visitor.page.locator("rgs-sign-in").count() == 0
    assert visitor.page.locator("[data-notice]").count() == 1


def test_a_platform_that_does_not_answer_is_no_sign_in_form(visitor: Visitor) -> None:
    visitor.sign_up(amount="")
    busy = {"reason": "BUSY", "message": "too much waits", "metadata": {}}
    visitor.page.route("**/api/me", lambda route: route.fulfill(status=503, json=busy))
    visitor.page.reload()
    visitor.page.wait_for_selector("[data-state=ended]")
    assert "could not be opened" in visitor.page.locator("[data-state=ended]").inner_text()
    assert visitor.page.locator("rgs-sign-in").count() == 0
    visitor.page.unroute("**/api/me")
    visitor.page.click("[data-state=ended] button")
    visitor.page.wait_for_selector("rgs-lobby [data-game]")


def test_a_player_who_signs_out_sees_the_sign_in_form(visitor: Visitor) -> None:
    visitor.sign_up(amount="")
    visitor.page.click("[data-does=sign-out]")
    visitor.page.wait_for_selector("rgs-sign-in")
    visitor.page.wait_for_timeout(500)
    assert visitor.page.locator("[data-state=ended]").count() == 0, "its own end is no news to the page"
    visitor.page.reload()
    visitor.page.wait_for_selector("rgs-sign-in")


def test_the_page_leads_back_to_the_operator(visitor: Visitor) -> None:
    visitor.sign_up().play("uth-solo")
    back = visitor.page.locator("[data-does=return]")
    assert back.get_attribute("href") == f"{visitor.origin}/"
    assert back.get_attribute("rel") == "noopener"
    visitor.page.reload()
    visitor.page.wait_for_selector("rgs-lobby [data-game]")
    assert back.get_attribute("href") == f"{visitor.origin}/", "a session that is open says it, too"


def test_an_address_that_is_none_of_the_web_is_no_way_back(visitor: Visitor) -> None:
    between = Between(visitor.page)

    def lie(message: dict[str, Any]) -> None:
        found = message.get("value")
        if isinstance(found, dict) and "session" in found:
            found["session"]["return_url"] = "javascript:alert(1)"

    between.change = lie
    visitor.sign_up().play("uth-solo")
    assert visitor.page.locator("[data-does=return]").count() == 0
