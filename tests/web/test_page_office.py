"""The back office in a browser: a round as its player saw it, and a verdict that this browser has computed."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Callable
from typing import Any, Final

import pytest

from tests.web.page_browser import Visitor, visit

CARDS: Final = "() => [...document.querySelectorAll('[data-card]')].map((card) => card.dataset.card)"


@pytest.fixture
def played(browser: Any, page_whole: Any) -> Any:
    """A round that has ended, as the player's API has it."""
    visitor = visit(browser, page_whole.origin).sign_up().play("uth-solo")
    visitor.bet("ante", 100)
    visitor.deal()
    visitor.decide_all("ACTION_PLAY_4X")
    (one,) = visitor.api("/api/rounds")["rounds"]
    yield visitor.api(f"/api/rounds/{one['round_id']}?session_id={one['session_id']}")
    visitor.page.context.close()


@pytest.fixture
def staff(browser: Any, page_whole: Any) -> Any:
    """Staff who are signed in."""
    found = visit(browser, page_whole.origin)
    found.page.goto(f"{page_whole.origin}/office/")
    found.page.fill("input[name=name]", "staff")
    found.page.fill("input[name=password]", (page_whole.folder / "staff-password").read_text().strip())
    found.page.click("button")
    found.page.wait_for_selector("input[name=q]")
    yield found
    found.page.context.close()


def find(staff: Visitor, played: dict[str, Any]) -> None:
    """Find the round as staff does: by its id, and one click."""
    staff.page.fill("input[name=q]", played["summary"]["round_id"])
    staff.page.click("button:has-text('Find')")
    staff.page.click("main table a")
    staff.page.wait_for_selector("#proof [data-verdict]")


def verdict(staff: Visitor) -> str:
    return str(staff.page.locator("#proof [data-verdict]").get_attribute("data-verdict"))


def test_staff_sees_the_round_and_the_verdict_of_this_browser(staff: Visitor, played: dict[str, Any]) -> None:
    find(staff, played)
    page, view = staff.page, played["round"]
    assert page.evaluate(CARDS) == [*view["hole_cards"], *view["board"], *view["dealer_cards"]]
    red = page.locator("[data-card$=h], [data-card$=d]")
    if red.count():
        assert red.first.evaluate("(card) => getComputedStyle(card).color") == "rgb(179, 18, 29)"
    bets = page.locator("h2:has-text('Bets') + table").inner_text()
    for bet in view["settlement"]:
        assert bet["bet"] in bets
    assert verdict(staff) == "passed"
    said = page.locator("#proof").inner_text()
    assert "The keys lead to the root that this platform was set up with." in said
    assert page.locator("#proof details[data-step=settlement]").count() == 1
    assert staff.faults == []


def another_final(receipt: dict[str, Any]) -> None:
    """One more unit comes back than was signed."""
    outer = json.loads(base64.b64decode(receipt["record"]["final"]))
    payload = json.loads(base64.b64decode(outer["payload"]))
    payload["returned_minor"] = str(int(payload["returned_minor"]) + 1)
    text = json.dumps(payload, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    outer["payload"] = base64.b64encode(text.encode()).decode()
    receipt["record"]["final"] = base64.b64encode(json.dumps(outer).encode()).decode()


def without_the_final(receipt: dict[str, Any]) -> None:
    """The end is not there."""
    del receipt["record"]["final"]
    receipt["log_proofs"].pop("final", None)


@pytest.mark.parametrize(("change", "expected"), [(another_final, "failed"), (without_the_final, "open")])
def test_a_receipt_that_was_changed_gets_no_good_verdict(
    staff: Visitor, played: dict[str, Any], change: Callable[[dict[str, Any]], None], expected: str
) -> None:
    def altered(route: Any) -> None:
        receipt = route.fetch().json()
        change(receipt)
        route.fulfill(json=receipt)

    staff.page.route("**/office/receipts/*", altered)
    find(staff, played)
    assert verdict(staff) == expected


@pytest.mark.parametrize("what", ["the root", "the return"])
def test_a_page_that_shows_something_else_than_was_signed_says_so(
    staff: Visitor, played: dict[str, Any], what: str
) -> None:
    returned = played["round"].get("returned_minor", "0")

    def altered(route: Any) -> None:
        answer = route.fetch()
        text = answer.text()
        if what == "the root":
            before = text.partition('data-root="')[2].partition('"')[0]
            text = text.replace(before, "0" * 64)
        else:
            shown = html.unescape(text.partition('data-shown="')[2].partition('"')[0])
            view = {**json.loads(shown), "returned_minor": str(int(returned) + 1)}
            text = text.replace(html.escape(shown), html.escape(json.dumps(view)))
        route.fulfill(response=answer, body=text)

    staff.page.route("**/office/rounds/*", altered)
    find(staff, played)
    assert verdict(staff) == "failed"
    if what == "the return":
        assert f"the page showed {int(returned) + 1}, {returned} is signed" in staff.page.inner_text("#proof")
