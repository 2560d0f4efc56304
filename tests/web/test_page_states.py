"""What rarely happens: a pause, a void round, a reality check, an exclusion, a cut, the rules of Great Britain.

The game server is real; what it says is changed between the bridge and the page where the state cannot be had from it
in a moment.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.web.between import Between
from tests.web.page_browser import Visitor, until, visit


@pytest.fixture
def visitor(browser: Any, page_whole: Any) -> Any:
    found = visit(browser, page_whole.origin)
    yield found
    assert found.faults == []
    found.page.context.close()


def a_round(visitor: Visitor) -> None:
    """A solo round that waits for its first decision."""
    visitor.play("uth-solo")
    visitor.bet("ante", 100)
    visitor.deal()


def last_round(between: Between, visitor: Visitor) -> dict[str, Any]:
    """The view of the open round."""
    session = next(frame["session_id"] for frame in reversed(between.sent) if frame["type"] == "start")
    sessions = visitor.page.evaluate("document.querySelector('rgs-page').store.solo.round")
    return {"session_id": session, "round": sessions}


def test_a_paused_round_says_so_and_takes_no_decision(visitor: Visitor) -> None:
    between = Between(visitor.page)
    visitor.sign_up()
    a_round(visitor)
    shown = last_round(between, visitor)
    version = str(int(shown["round"].get("round_version", "1")) + 1)
    paused = {
        **shown["round"],
        "paused": True,
        "malfunction_code": "CARD_READER",
        "round_version": version,
        "legal_actions": [],
    }
    between.say(type="round", session_id=shown["session_id"], value=paused)
    visitor.page.wait_for_selector("[data-state=paused]")
    assert visitor.page.locator("[data-action]").count() == 0
    text = visitor.page.locator("[data-state=paused]").inner_text()
    assert "CARD_READER" not in text, "a code is no word for a player"
    texts = visitor.api("/api/catalog?language=en")["texts"]
    assert texts[""]["malfunctions"][""] in text, "the contract has a text for codes that it does not list"


def test_a_void_round_is_no_win_and_no_loss(visitor: Visitor) -> None:
    between = Between(visitor.page)
    visitor.sign_up()
    a_round(visitor)
    shown = last_round(between, visitor)
    void = {
        **shown["round"],
        "status": "ROUND_STATUS_VOID",
        "staked_minor": "200",
        "returned_minor": "200",
        "legal_actions": [],
    }
    between.say(type="round", session_id=shown["session_id"], value=void)
    visitor.page.wait_for_selector("[data-result]")
    assert "void" in visitor.page.locator("[data-result]").inner_text()
    assert visitor.page.locator("[data-result].won").count() == 0


@pytest.mark.parametrize(("returned", "won"), [("199", 0), ("200", 0), ("202", 1)])
def test_a_winners_notice_never_comes_for_a_return_below_the_stake(visitor: Visitor, returned: str, won: int) -> None:
    between = Between(visitor.page)
    visitor.sign_up()
    a_round(visitor)
    shown = last_round(between, visitor)
    ended = {
        **shown["round"],
        "status": "ROUND_STATUS_SETTLED",
        "outcome": "OUTCOME_PLAYER",
        "staked_minor": "200",
        "returned_minor": returned,
        "legal_actions": [],
    }
    between.say(type="round", session_id=shown["session_id"], value=ended)
    visitor.page.wait_for_selector("[data-result]")
    assert visitor.page.locator("[data-result].won").count() == won


def test_a_page_that_shows_another_return_than_was_signed_says_that_it_does_not_verify(visitor: Visitor) -> None:
    between = Between(visitor.page)

    def lie(message: dict[str, Any]) -> None:
        found = message.get("value")
        if isinstance(found, dict) and found.get("round", {}).get("status") == "ROUND_STATUS_SETTLED":
            found["round"]["returned_minor"] = "123456"

    between.change = lie
    visitor.sign_up()
    a_round(visitor)
    visitor.decide_all("ACTION_PLAY_4X")
    visitor.page.wait_for_selector("[data-does=proof][data-proof=failed]")
    visitor.page.click("[data-does=proof]")
    assert "123456" in visitor.page.locator("rgs-proof [data-proof]").inner_text()


def test_a_reality_check_stands_before_the_next_round(visitor: Visitor) -> None:
    between = Between(visitor.page)
    visitor.sign_up().play("uth-solo")
    session = visitor.page.evaluate("document.querySelector('rgs-page').store.solo.id")
    value = {"session_id": session, "elapsed_ms": "3600000", "net_position_minor": "-1250", "currency": "EUR"}
    between.say(type="reality_check", value=value)
    visitor.page.wait_for_selector("[data-reality]")
    text = visitor.page.locator("[data-reality]").inner_text()
    assert "1:00:00" in text
    assert "12.50" in text
    visitor.page.click("[data-does=go-on]")
    visitor.page.wait_for_selector("[data-reality]", state="detached")
    assert [frame["session_id"] for frame in between.sent if frame["type"] == "reality_check_seen"] == [session]


def test_an_exclusion_ends_the_page_at_once(visitor: Visitor) -> None:
    visitor.sign_up().play("uth-solo")
    page = visitor.page
    page.click("[data-does=limits]")
    page.click("[data-days='7']")
    page.click("[data-does=exclude]")
    page.wait_for_selector("[data-state=ended]", timeout=10_000)
    assert "excluded" in page.locator("[data-state=ended]").inner_text()


def test_a_lower_limit_holds_at_once_and_its_refusal_is_in_words(visitor: Visitor) -> None:
    visitor.sign_up()
    page = visitor.page
    page.click("[data-does=limits]")
    page.fill("rgs-limits [name=stake_minor]", "3.00")
    page.click("[data-does=save]")
    page.wait_for_selector("rgs-limits .warn")
    page.keyboard.press("Escape")
    visitor.play("uth-solo")
    visitor.bet("ante", 500)
    page.click("[data-does=deal]")
    page.wait_for_selector("[data-note]")
    assert "limit" in page.locator("[data-note]").inner_text().lower()
    assert page.locator("rgs-decide").count() == 0


def test_a_cut_is_shown_and_healed_and_nothing_is_asked_twice(visitor: Visitor) -> None:
    between = Between(visitor.page)
    visitor.sign_up()
    a_round(visitor)
    before = between.opened
    between.cut()
    until(visitor.page, "() => document.querySelector('rgs-page').store.linkState === 'open'")
    assert between.opened > before
    visitor.decide_all("ACTION_PLAY_4X")
    assert len(visitor.api("/api/rounds")["rounds"]) == 1


def test_the_rules_of_great_britain_switch_off_what_they_forbid(visitor: Visitor) -> None:
    def british(route: Any) -> None:
        answer = route.fetch()
        body = answer.json()
        body["jurisdiction"] = {"jurisdiction": {"id": "gb-ukgc"}, "languages": ["en"], "tables_max": 1}
        route.fulfill(response=answer, json=body)

    visitor.page.route("**/api/catalog*", british)
    visitor.sign_up()
    page = visitor.page
    assert page.locator("[data-does=demo]").count() == 0
    a_round(visitor)
    visitor.decide_all("ACTION_PLAY_4X")
    assert page.locator("[data-does=repeat]").count() == 0
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Space")
    assert page.locator("[data-result]").count() == 1, "space places nothing, and leaves the result where it is"
    assert page.evaluate("document.querySelector('rgs-page').store.solo.total") == 0
    page.click("[data-does=settings]")
    assert page.locator("rgs-settings [name=language] option").count() == 1
