"""A pause, a void and a killed game server at a table, and a platform that starts again under a page that is open."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.web.between import Between
from tests.web.page_browser import Visitor, until, visit

pytestmark = pytest.mark.timeout(300)
TABLE = "trouble"
QUIET = "quiet"
"""Where nobody sits but the player of one test."""
TIMERS = {"betting_ms": 5_000, "amber_ms": 2_000, "decision_ms": 30_000, "result_ms": 4_000}
ADMINS = ("demo-admin", "second-admin")
STORE = "document.querySelector('rgs-page').store"
OPEN = f"() => {STORE}.linkState === 'open'"


@pytest.fixture(scope="module")
def mortal(page_needs: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Game server, wallet and platform that may be killed, with a table and a second admin."""
    from tests.web.whole import Whole  # noqa: PLC0415 - needs the packages of the platform

    with Whole(tmp_path_factory.mktemp("trouble")) as started:
        for name in (TABLE, QUIET):
            started.add_table(name, **TIMERS)
        added = ("--role", "admin", "--party", ADMINS[1], "--issue", "--home", str(started.server_home))
        found = started.rgs("party", "add", *added)
        assert found.returncode == 0, found.stderr
        yield started


@pytest.fixture
def visitor(browser: Any, mortal: Any) -> Any:
    found = visit(browser, mortal.origin)
    yield found
    # The browser itself writes that the platform could not be reached.
    assert [fault for fault in found.faults if "WebSocket connection to" not in fault] == []
    found.page.context.close()


def order(mortal: Any, admin: str, *words: str) -> str:
    """An order of an admin at the table; what it prints."""
    at = ("--home", str(mortal.server_home), "--server", mortal.server_address, "--party", admin)
    found = mortal.rgs("tables", words[0], TABLE, *words[1:], *at)
    assert found.returncode == 0, found.stderr
    return str(found.stdout)


def in_round(visitor: Visitor) -> str:
    """A round at the table that waits for the first decision; its id."""
    visitor.sign_up().sit(TABLE)
    visitor.page.locator("[data-spot=ante]:not(:disabled)").wait_for()
    visitor.window(2_000)
    visitor.bet("ante", 100)
    visitor.page.wait_for_selector("rgs-decide")
    return str(visitor.page.evaluate(f"{STORE}.tables[0].table.round_id"))


def test_a_pause_at_a_table_is_shown_in_words_and_a_void_returns_the_stakes(mortal: Any, visitor: Visitor) -> None:
    round_id = in_round(visitor)
    page = visitor.page
    order(mortal, ADMINS[0], "pause", "--malfunction", "CARD_READER")
    page.wait_for_selector("rgs-table [data-state=paused]")
    text = page.locator("rgs-table [data-state=paused]").inner_text()
    texts = visitor.api("/api/catalog?language=en")["texts"]
    assert texts[""]["malfunctions"][""] in text, "the code is one that the contract does not list"
    assert "CARD_READER" not in text
    assert page.locator("rgs-table [data-action]").count() == 0, "no decision is taken meanwhile"
    assert "proposed" in order(mortal, ADMINS[0], "void", "--round", round_id, "--reason", "CARD_READER")
    assert page.locator("rgs-table [data-state=void]").count() == 0, "one admin makes nothing void"
    assert "is void" in order(mortal, ADMINS[1], "void", "--round", round_id, "--reason", "CARD_READER")
    page.wait_for_selector("rgs-table [data-state=void]")
    assert "void" in page.locator("[data-result]").inner_text()
    assert page.locator("[data-result].won").count() == 0
    until(page, f"() => {STORE}.tables[0].balance === 10000n")
    page.wait_for_selector("[data-proof=first_use]", timeout=60_000)
    page.wait_for_selector("rgs-table rgs-rack", timeout=60_000)


def test_a_paused_table_goes_on_with_a_whole_window(mortal: Any, visitor: Visitor) -> None:
    in_round(visitor)
    page = visitor.page
    order(mortal, ADMINS[0], "pause", "--malfunction", "DECK")
    page.wait_for_selector("rgs-table [data-state=paused]")
    order(mortal, ADMINS[0], "resume", "--reason", "REPAIRED")
    page.wait_for_selector("rgs-table rgs-decide")
    assert page.locator("rgs-table [data-state=paused]").count() == 0
    page.click("[data-action=ACTION_PLAY_4X]")
    page.wait_for_selector("[data-result]", timeout=90_000)


def test_the_game_server_is_killed_in_mid_round_at_a_table(mortal: Any, visitor: Visitor) -> None:
    round_id = in_round(visitor)
    page = visitor.page
    cards = page.locator("rgs-table .own .card").first.get_attribute("aria-label")
    mortal.kill_server()
    mortal.restart_server()
    until(page, f"() => {STORE}.tables[0].table.round_id === '{round_id}'")
    page.wait_for_selector("rgs-table rgs-decide", timeout=60_000)
    assert page.locator("rgs-table .own .card").first.get_attribute("aria-label") == cards
    until(page, f"async () => {{ await {STORE}.tables[0].refresh(); return !!{STORE}.tables[0].open?.legal_actions; }}")
    page.click("[data-action=ACTION_PLAY_4X]")
    page.wait_for_selector("[data-result]", timeout=90_000)
    page.wait_for_selector("[data-proof=first_use]", timeout=60_000)
    [round_] = visitor.api("/api/rounds")["rounds"]
    assert visitor.minor("balance") == 10_000 - int(round_["staked_minor"]) + int(round_.get("returned_minor", 0))


def test_a_lobby_that_is_open_lives_on_when_the_platform_starts_again(
    browser: Any, mortal: Any, visitor: Visitor
) -> None:
    between = Between(visitor.page)
    restarts: list[int] = []
    between.change = lambda message: restarts.append(len(between.sent)) if message["type"] == "restart" else None
    visitor.sign_up(amount="")
    entry = visitor.page.locator(f"[data-table={QUIET}]")
    assert "nobody sits there" in entry.inner_text()
    mortal.restart_platform()
    until(visitor.page, OPEN, seconds=60)
    last = time.monotonic() + 30
    while not (restarts and "lobby" in between.types()[restarts[-1] :]):
        assert time.monotonic() < last, "the platform has lost what it knew of this page, and says so"
        visitor.page.wait_for_timeout(50)
    other = visit(browser, mortal.origin)
    other.sign_up().sit(QUIET)
    visitor.page.wait_for_selector(f"[data-table={QUIET}]:has-text('1+ players')")
    other.page.click("rgs-table [data-does=leave]")
    visitor.page.wait_for_selector(f"[data-table={QUIET}]:has-text('nobody sits there')")
    other.page.context.close()


def test_the_screen_stays_when_the_platform_starts_again(mortal: Any, visitor: Visitor) -> None:
    visitor.sign_up().sit(TABLE)
    page = visitor.page
    page.click("[data-does=lobby]")
    page.click("rgs-dialog [data-game=uth-solo] [data-does=play]")
    page.wait_for_selector("rgs-solo rgs-buy")
    before = page.evaluate(f"{STORE}.link.seq")
    mortal.restart_platform()
    until(page, OPEN, seconds=60)
    until(page, f"() => {STORE}.link.seq > {before} + 3")
    page.wait_for_timeout(1000)  # whole views have come by then
    assert page.evaluate(f"{STORE}.screen") == "solo"
    assert page.locator("rgs-solo rgs-buy").count() == 1
    # "Switch to this table" takes the place of the others, from this screen, too.
    page.click("[data-does=lobby]")
    page.click("rgs-dialog [data-table=uth-seven-box] [data-does=play]")
    until(
        page,
        f"() => {STORE}.screen === 'tables' && {STORE}.tables.map((each) => each.tableId).join() === 'uth-seven-box'",
    )
    # A game that gave way for another one goes on where it was: nothing new is opened.
    first = page.evaluate(f"{STORE}.solo.id")
    seen = []
    for game in ("uth-solo", "casino-holdem", "uth-solo"):
        page.click("[data-does=lobby]")
        page.click(f"rgs-dialog [data-game={game}] [data-does=play]")
        until(page, f"() => {STORE}.screen === 'solo' && {STORE}.solo.game.ruleset.id === '{game}'")
        page.wait_for_selector("rgs-dialog", state="detached")
        seen.append(page.evaluate(f"{STORE}.solo.id"))
    assert seen[0] == seen[2] == first != seen[1]


def test_checks_of_two_sessions_stand_one_behind_the_other(visitor: Visitor) -> None:
    between = Between(visitor.page)
    visitor.sign_up().sit(TABLE)
    page = visitor.page
    page.click("[data-does=lobby]")
    page.click("rgs-dialog [data-game=uth-solo] [data-does=play]")
    page.wait_for_selector("rgs-solo")
    table, solo = page.evaluate(f"[{STORE}.tables[0].id, {STORE}.solo.id]")
    for session, net in ((table, "-500"), (solo, "700")):
        value = {"session_id": session, "elapsed_ms": "3600000", "net_position_minor": net, "currency": "EUR"}
        between.say(type="reality_check", value=value)
    page.wait_for_selector(f"[data-reality='{table}']")
    text = page.locator("[data-reality]").inner_text()
    assert TABLE in text
    assert "5.00" in text
    page.click("[data-does=go-on]")
    page.wait_for_selector(f"[data-reality='{solo}']")
    assert "7.00" in page.locator("[data-reality]").inner_text()
    between.say(type="reality_check_seen", value={"session_id": solo})
    page.wait_for_selector("[data-reality]", state="detached")
    assert [frame["session_id"] for frame in between.sent if frame["type"] == "reality_check_seen"] == [table]
