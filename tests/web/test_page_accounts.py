"""The page of a player with free bets, and of one with accounts in several currencies."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.web.page_browser import DIST, Visitor, until, visit

PAY_IN = """async ([amount, currency]) => {
  const body = new URLSearchParams({ request_id: crypto.randomUUID(), amount, currency });
  return (await fetch("/cashier", { method: "POST", body })).status;
}"""
TO_THE_END = ("ACTION_CHECK", "ACTION_FOLD")


@pytest.fixture
def visitor(browser: Any, page_whole: Any) -> Any:
    """A visitor who has signed up. Whatever the test does, no script of the page may fail."""
    found = visit(browser, page_whole.origin).sign_up()
    yield found
    assert found.faults == []
    found.page.context.close()


def grant(browser: Any, whole: Any, player: str, stake_minor: int, count: int = 1, currency: str = "EUR") -> str:
    """Grant free bets in the back office, as staff does. Returns the campaign."""
    campaign = f"welcome-{uuid.uuid4().hex[:6]}"
    page = browser.new_context().new_page()
    page.goto(f"{whole.origin}/office/")
    page.fill("input[name=name]", "staff")
    page.fill("input[name=password]", (whole.folder / "staff-password").read_text().strip())
    page.click("form[action='/office/sign-in'] button")
    page.goto(f"{whole.origin}/office/free-bets?player={player}")
    form = "form[action='/office/grant']"
    page.select_option(f"{form} [name=game]", "uth-solo")
    page.select_option(f"{form} [name=currency]", currency)
    page.fill(f"{form} [name=campaign]", campaign)
    page.fill(f"{form} [name=stake_minor]", str(stake_minor))
    page.fill(f"{form} [name=count]", str(count))
    page.click(f"{form} button")
    page.wait_for_selector(f"text={campaign}")
    page.context.close()
    return campaign


def free_bets(visitor: Visitor) -> list[dict[str, Any]]:
    return list(visitor.api("/api/free-bets")["free_bets"])


def test_a_free_bet_is_shown_played_and_verified(
    browser: Any, page_whole: Any, visitor: Visitor, tmp_path: Path
) -> None:
    page = visitor.page
    grant(browser, page_whole, visitor.api("/api/me")["player"], 500, count=2)
    page.wait_for_selector("[data-game=uth-solo] [data-free-bet]")
    assert page.locator("[data-free-bet]").count() == 2, "the lobby shows both, without a reload"
    assert "5.00" in page.locator("[data-free-bet]").first.inner_text()
    visitor.play("uth-solo", "20.00")
    page.click("[data-does=free-bet]")
    assert "5.00" in visitor.spot("ante")
    assert "5.00" in visitor.spot("blind")
    assert (visitor.minor("balance"), visitor.minor("bet")) == (2_000, 0), "the campaign pays"
    # Without the free bet its ante is no bet of the player's, and nothing brings it back.
    page.click("[data-spot=ante]", button="right")
    assert page.locator("[data-does=deal]").is_disabled()
    assert page.locator("[data-does=undo]").is_disabled()
    page.click("[data-does=free-bet]")
    page.click("[data-does=free-bet]")
    assert page.locator("[data-does=deal]").is_disabled(), "the same button takes it back"
    page.click("[data-does=free-bet]")
    page.click("[data-does=double]")
    assert "5.00" in visitor.spot("ante"), "the ante stays what was granted"
    visitor.bet("trips", 100)
    assert (visitor.minor("balance"), visitor.minor("bet")) == (1_900, 100)
    visitor.deal()
    assert visitor.minor("balance") == 1_900
    visitor.decide_all(*TO_THE_END)
    page.wait_for_selector("[data-does=proof][data-proof=first_use]")
    [line] = visitor.api("/api/rounds")["rounds"]
    path = f"/api/receipts/{line['round_id']}?session_id={line['session_id']}"
    until(page, "async (path) => (await (await fetch(path)).json()).record.free_bets?.length === 2", path)
    receipt = visitor.api(path)
    round_ = receipt["record"]["round"]
    assert (round_["granted_minor"], len(receipt["record"]["free_bets"])) == ("1000", 2)
    own = int(round_.get("returned_minor", 0)) - int(round_.get("reclaimed_minor", 0))
    assert visitor.minor("balance") == 1_900 + own
    assert len(free_bets(visitor)) == 1
    assert page.locator("[data-does=free-bet]").count() == 1
    page.click("rgs-result summary")
    assert "10.00" in page.locator("rgs-result [data-granted]").inner_text()
    # In the page, and at home.
    page.click("[data-does=proof]")
    page.wait_for_selector("rgs-proof [data-step=free_bet][data-step-verdict=ok]", state="attached")
    page.locator("rgs-proof details summary").first.click()
    page.locator("rgs-proof [data-step=log] summary").click()
    assert "whom to trust" in page.locator("rgs-proof [data-step=log]").inner_text()
    page.keyboard.press("Escape")
    file = tmp_path / "receipt.json"
    file.write_text(json.dumps(receipt))
    home = browser.new_context(offline=True, locale="en-GB").new_page()
    home.goto((DIST / "verify.html").as_uri())
    home.set_input_files("#file", file)
    home.wait_for_selector("[data-verdict=passed]")
    assert home.locator("[data-step=free_bet] summary").inner_text().startswith("✓")
    home.context.close()


def test_a_free_bet_that_is_taken_back_leaves_the_felt(browser: Any, page_whole: Any, visitor: Visitor) -> None:
    page = visitor.page
    grant(browser, page_whole, visitor.api("/api/me")["player"], 300)
    visitor.play("uth-solo", "20.00")
    page.click("[data-does=free-bet]")
    [one] = free_bets(visitor)
    staff = browser.new_context().new_page()
    staff.goto(f"{page_whole.origin}/office/")
    staff.fill("input[name=name]", "staff")
    staff.fill("input[name=password]", (page_whole.folder / "staff-password").read_text().strip())
    staff.click("form[action='/office/sign-in'] button")
    staff.goto(f"{page_whole.origin}/office/free-bets?player={one['player']}")
    staff.click("form[action='/office/take-back'] button")
    page.wait_for_selector("[data-does=free-bet]", state="detached")
    assert page.locator("[data-does=deal]").is_disabled()
    assert "3.00" not in visitor.spot("ante")
    staff.context.close()


def test_the_player_chooses_the_account_to_play_from(visitor: Visitor) -> None:
    page = visitor.page
    assert page.locator("rgs-lobby select[name=currency]").count() == 0, "one account: there is nothing to choose"
    assert page.evaluate(PAY_IN, ["80.50", "CHF"]) in (200, 303)
    assert page.evaluate(PAY_IN, ["7000", "JPY"]) in (200, 303)
    page.wait_for_selector("rgs-lobby select[name=currency] option:nth-child(3)", state="attached")
    options = page.locator("rgs-lobby select[name=currency] option").all_inner_texts()
    assert [one.split()[0] for one in options] == ["EUR", "CHF", "JPY"]
    assert "80.50" in options[1]
    assert "7,000" in options[2], "a yen has no decimal places"
    page.select_option("rgs-lobby select[name=currency]", "CHF")
    assert "CHF" in page.locator("[data-game=uth-solo] .muted").inner_text()
    visitor.play("uth-solo", "30.00")
    assert "CHF" in visitor.fact("balance")
    visitor.bet("ante", 100)
    visitor.deal()
    visitor.decide_all(*TO_THE_END)
    amounts = {one["currency"]: one["amount_minor"] for one in visitor.api("/api/me")["balances"]}
    assert amounts == {"EUR": "50000", "CHF": "5050", "JPY": "7000"}
    # Limits of the account that was chosen.
    page.click("[data-does=limits]")
    assert "CHF" in page.locator("rgs-limits p").first.inner_text()
    page.fill("rgs-limits [name=stake_minor]", "9")
    page.click("rgs-limits [data-does=save]")
    page.wait_for_selector("rgs-limits .warn")
    assert visitor.api("/api/limits?currency=CHF")["limits"]["stake_minor"] == "900"
    assert visitor.api("/api/limits")["limits"] == {}
    page.keyboard.press("Escape")
    # The game in another currency is another session; the one in CHF goes on where it was.
    page.click("[data-does=lobby]")
    page.wait_for_selector("rgs-dialog rgs-lobby select[name=currency]")
    page.select_option("rgs-dialog rgs-lobby select[name=currency]", "EUR")
    page.click("rgs-dialog [data-game=uth-solo] [data-does=play]")
    visitor.buy("10.00")
    page.wait_for_selector("rgs-rack")
    assert visitor.minor("balance") == 1_000
    assert "€" in visitor.fact("balance")
