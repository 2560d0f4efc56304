"""The game server or the platform is killed in mid-round, in front of a player: the round goes on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.web.page_browser import Visitor, until, visit

pytestmark = pytest.mark.timeout(300)
UTH = ("ACTION_CHECK", "ACTION_PLAY_1X", "ACTION_FOLD")


@pytest.fixture(scope="module")
def mortal(page_needs: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Game server, wallet and platform that may be killed."""
    from tests.web.whole import Whole  # noqa: PLC0415 - needs the packages of the platform

    with Whole(tmp_path_factory.mktemp("killed-page")) as started:
        yield started


@pytest.fixture
def visitor(browser: Any, mortal: Any) -> Any:
    found = visit(browser, mortal.origin)
    found.sign_up().play("uth-solo")
    found.bet("ante", 100)
    found.deal()
    yield found
    # The browser itself writes that the platform could not be reached.
    assert [fault for fault in found.faults if "WebSocket connection to" not in fault] == []
    found.page.context.close()


def finish(visitor: Visitor, code: str) -> None:
    """Play the round to its end: once, proved, and the money adds up."""
    visitor.decide_all(*UTH)
    assert visitor.fact("code") == code, "the same round"
    visitor.page.wait_for_selector("[data-proof=first_use]", timeout=60_000)
    [round_] = visitor.api("/api/rounds")["rounds"]
    assert visitor.minor("balance") == 10_000 - int(round_["staked_minor"]) + int(round_.get("returned_minor", 0))


def test_the_game_server_is_killed_between_deal_and_decision(mortal: Any, visitor: Visitor) -> None:
    code = visitor.fact("code")
    cards = visitor.page.locator("rgs-solo .own .card").first.get_attribute("aria-label")
    mortal.kill_server()
    visitor.page.click("[data-action=ACTION_CHECK]")
    visitor.page.wait_for_selector("[data-note]", timeout=60_000)
    mortal.restart_server()
    assert visitor.page.locator("rgs-solo .own .card").first.get_attribute("aria-label") == cards
    finish(visitor, code)


def test_the_platform_is_killed_between_deal_and_decision(mortal: Any, visitor: Visitor) -> None:
    code = visitor.fact("code")
    mortal.kill_platform()
    visitor.page.wait_for_selector("[data-link]")
    visitor.page.click("[data-action=ACTION_CHECK]")
    mortal.restart_platform()
    until(visitor.page, "() => document.querySelector('rgs-page').store.linkState === 'open'", seconds=60)
    finish(visitor, code)
