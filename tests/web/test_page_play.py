"""The page as one player uses it: rounds by mouse and by keyboard, refusals, history, the way back after a break."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.web.page_browser import Visitor, until, visit

UTH = ("ACTION_CHECK", "ACTION_PLAY_1X", "ACTION_FOLD")


@pytest.fixture
def visitor(browser: Any, page_whole: Any) -> Any:
    """A visitor who has not signed up. Whatever the test does, no script of the page may fail."""
    found = visit(browser, page_whole.origin)
    yield found
    assert found.faults == []
    found.page.context.close()


def test_a_round_by_mouse_is_played_and_proved(visitor: Visitor) -> None:
    visitor.sign_up().play("uth-solo")
    page = visitor.page
    visitor.bet("ante", 100)
    page.click("[data-spot=ante]")
    page.click("[data-does=double]")
    assert "4.00" in visitor.spot("ante")
    assert "4.00" in visitor.spot("blind")
    page.click("[data-spot=ante]", button="right")
    assert "3.00" in visitor.spot("ante")
    page.click("[data-does=undo]")
    page.click("[data-does=undo]")
    assert "2.00" in visitor.spot("ante")
    assert page.locator("[data-spot=trips].blinks").count() == 1, "a side bet can be placed: its spot blinks"
    page.click("[data-spot=trips]")
    assert visitor.minor("balance") == 10_000 - 500
    visitor.deal()
    assert visitor.minor("bet") == 500
    assert page.locator("rgs-solo .own .card").count() == 2
    assert re.fullmatch(r"#\d\d:\d\d:\d\d(-\d+)?", visitor.fact("code"))
    visitor.decide_all(*UTH)
    page.wait_for_selector("[data-does=proof][data-proof=first_use]")
    session = visitor.api("/api/rounds")["rounds"][0]
    staked, returned = int(session["staked_minor"]), int(session.get("returned_minor", 0))
    assert visitor.minor("balance") == 10_000 - staked + returned
    assert page.locator(".hand.dealer .named").inner_text().count(":") == 1, "the dealer's hand is named"
    assert page.locator(".hand.own .named").inner_text().count(":") == 1, "the player's hand is named"
    page.click("[data-does=proof]")
    assert page.locator("[data-warning]").count() == 1, "the first root seen is nobody's word"
    root = visitor.api("/api/keys")["root_fingerprint"] or page.locator("rgs-proof input").get_attribute("placeholder")
    page.fill("rgs-proof input", root)
    page.click("[data-does=pin]")
    page.wait_for_selector("rgs-proof [data-proof=proved]")
    assert page.locator("[data-warning]").count() == 0
    page.fill("rgs-proof input", "0" * 64)
    page.click("[data-does=pin]")
    page.wait_for_selector("rgs-proof [data-proof=failed]")


def test_a_round_by_keyboard_alone(visitor: Visitor) -> None:
    visitor.sign_up()
    page = visitor.page

    def to(selector: str) -> None:
        for _ in range(80):
            if page.evaluate(
                """(selector) => {
                  let at = document.activeElement;
                  while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
                  return at?.matches(selector) ?? false;
                }""",
                selector,
            ):
                return
            page.keyboard.press("Tab")
        raise AssertionError(f"Tab does not reach {selector}")

    to("[data-game=uth-solo] [data-does=play]")
    page.keyboard.press("Enter")
    page.wait_for_selector("rgs-buy input")
    to("#amount")
    page.keyboard.press("Control+a")
    page.keyboard.type("50")
    page.keyboard.press("Enter")
    page.wait_for_selector("rgs-rack")
    page.keyboard.press("3")
    to("[data-spot=ante]")
    page.keyboard.press("Enter")
    page.keyboard.press("2")
    page.keyboard.press("Enter")
    assert "1.50" in visitor.spot("ante")
    page.keyboard.press("Control+z")
    assert "1.00" in visitor.spot("ante")
    page.keyboard.press("-")
    assert "0.50" in visitor.spot("ante"), "minus takes a chip of the chosen value away"
    page.keyboard.down("Delete")
    page.wait_for_timeout(3200)
    page.keyboard.up("Delete")
    assert "0.50" not in visitor.spot("ante"), "Delete held for 3 s clears all bets"
    page.keyboard.press("Delete")
    assert "0.50" in visitor.spot("ante"), "and a Delete takes the clearing back"
    to("[data-does=deal]")
    page.keyboard.press("Enter")
    page.wait_for_selector("rgs-decide")
    while page.locator("rgs-decide").count():
        action = "ACTION_CHECK" if page.locator("[data-action=ACTION_CHECK]").count() else "ACTION_FOLD"
        to(f"[data-action={action}]")
        page.keyboard.press("Enter")
        until(page, "() => !document.querySelector('rgs-page').store.solo.busy")
    assert page.locator("[data-result]").count() == 1
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Space")
    assert "0.50" in visitor.spot("ante"), "space repeats the last bets"
    page.keyboard.press("Space")
    assert "1.00" in visitor.spot("ante"), "and doubles them"
    page.keyboard.press("Escape")
    page.wait_for_selector("rgs-dialog rgs-lobby")
    page.keyboard.press("Escape")
    page.wait_for_selector("rgs-dialog", state="detached")


def test_a_refusal_names_the_number_and_offers_what_is_possible(visitor: Visitor) -> None:
    visitor.sign_up().play("uth-solo", "7.50")
    page = visitor.page
    note = page.locator("[data-note]")
    page.click("[data-spot=trips]")
    assert "Ante" in note.inner_text(), "a side bet needs an ante"
    visitor.bet("ante", 500)
    assert "3.74" in note.inner_text(), "the number that the balance covers"
    page.click("[data-does=remedy]")
    assert "3.74" in visitor.spot("ante")
    assert page.locator("[data-chip='100']").is_disabled(), "a chip that the balance does not cover is not live"
    page.click("[data-does=double]")
    assert "14.96" in note.inner_text(), "what doubling would cost in all"


def test_the_limit_fills_up_with_a_message(visitor: Visitor) -> None:
    visitor.sign_up("5000.00").play("uth-solo", "1000.00")
    page = visitor.page
    visitor.bet("ante", 10)
    for _ in range(3):
        visitor.bet("trips", 5000)
    assert "100.00" in visitor.spot("trips")
    assert "100.00" in page.locator("[data-note]").inner_text()


def test_casino_holdem_has_its_own_words_and_buttons(visitor: Visitor) -> None:
    visitor.sign_up().play("casino-holdem")
    page = visitor.page
    visitor.bet("ante", 100)
    visitor.bet("aa", 100)
    page.click("[data-does=clear]")
    assert visitor.minor("bet") == 0
    page.click("[data-does=undo]")
    visitor.deal()
    assert page.locator("rgs-decide button").count() == 2
    visitor.decide_all("ACTION_CALL")
    first = visitor.fact("code")
    page.click("[data-does=repeat]")
    page.wait_for_selector("rgs-decide")
    assert visitor.fact("code") != first, "repeat deals at once"
    visitor.decide_all("ACTION_FOLD")
    page.click("[data-does=new]")
    assert page.locator("[data-result]").count() == 0


def test_the_history_finds_a_round_and_shows_it_whole(visitor: Visitor) -> None:
    visitor.sign_up().play("uth-solo")
    page = visitor.page
    for _ in range(2):
        visitor.bet("ante", 100)
        visitor.deal()
        visitor.decide_all(*UTH)
    code = visitor.fact("code")
    cards = [each.get_attribute("aria-label") for each in page.locator("rgs-solo .own .card").all()]
    page.click("[data-does=history]")
    page.wait_for_selector("[data-round]")
    assert page.locator("[data-round]").count() == 2
    assert code in page.locator("[data-round]").first.inner_text(), "the last that ended stands first"
    page.locator("[data-round]").first.click()
    page.wait_for_selector("[data-record]")
    assert [each.get_attribute("aria-label") for each in page.locator("rgs-history .own .card").all()] == cards
    page.wait_for_selector("rgs-history [data-proof=first_use]")


def test_a_reload_in_mid_round_goes_on_where_it_was(visitor: Visitor) -> None:
    visitor.sign_up().play("uth-solo")
    page = visitor.page
    visitor.bet("ante", 100)
    visitor.deal()
    code = visitor.fact("code")
    page.reload()
    page.wait_for_selector("rgs-decide")
    assert visitor.fact("code") == code
    visitor.decide_all(*UTH)


@pytest.mark.parametrize("moment", ["opening", "ACTION_CHECK"])
def test_a_cut_between_an_order_and_its_answer_loses_and_doubles_nothing(visitor: Visitor, moment: str) -> None:
    """The network is cut behind the deal or behind a decision; the same request goes out again under its id."""
    page = visitor.page
    orders: list[str] = []
    cut = {"armed": False, "done": False}

    def proxy(socket: Any) -> None:
        server = socket.connect_to_server()

        def to_page(text: Any) -> None:
            if cut["armed"] and not cut["done"] and '"type":"answer"' in text and f'"{moment}"' in text:
                cut["done"] = True
                socket.close(code=1001)
                server.close()
                return
            socket.send(text)

        def to_server(text: Any) -> None:
            if '"type":"start"' in text or '"type":"act"' in text:
                orders.append(str(json.loads(text)["id"]))
            server.send(text)

        server.on_message(to_page)
        socket.on_message(to_server)

    page.route_web_socket(re.compile("/ws"), proxy)
    visitor.sign_up().play("uth-solo")
    visitor.bet("ante", 100)
    cut["armed"] = moment == "opening"
    visitor.deal()
    cut["armed"] = True
    visitor.decide_all(*UTH)
    assert cut["done"]
    repeated = [one for one in set(orders) if orders.count(one) > 1]
    assert len(repeated) == 1, "the order without an answer went out again, under its id, and no other did"
    [round_] = visitor.api("/api/rounds")["rounds"]
    assert visitor.minor("balance") == 10_000 - int(round_["staked_minor"]) + int(round_.get("returned_minor", 0))


SLOW_TURNS = """() => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(".card { animation-duration: 60s !important }");
  const { shadowRoot } = document.querySelector("rgs-page").shadowRoot.querySelector("rgs-solo");
  shadowRoot.adoptedStyleSheets = [...shadowRoot.adoptedStyleSheets, sheet];
}"""
TURNING = """() => document.querySelector("rgs-page").shadowRoot.querySelector("rgs-solo").shadowRoot.getAnimations()
  .filter((one) => one.animationName === "turn" && one.playState === "running").length"""


@pytest.mark.parametrize("allowed", [True, False])
def test_a_click_cuts_the_turning_of_cards_short_where_that_is_allowed(visitor: Visitor, allowed: bool) -> None:
    page = visitor.page

    def law(route: Any) -> None:
        answer = route.fetch()
        body = answer.json()
        assert body["jurisdiction"]["skip_animations_allowed"] is True
        if not allowed:
            del body["jurisdiction"]["skip_animations_allowed"]
        route.fulfill(response=answer, json=body)

    page.route("**/api/catalog*", law)
    visitor.sign_up().play("uth-solo")
    page.evaluate(SLOW_TURNS)
    visitor.bet("ante", 100)
    visitor.deal()
    assert page.evaluate(TURNING) >= 2, "the two cards of the player are turning"
    page.locator("rgs-solo .cloth").click(position={"x": 3, "y": 3})
    assert (page.evaluate(TURNING) == 0) is allowed
