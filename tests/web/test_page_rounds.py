"""What a page says of a round's proof before anybody has confirmed its root, and how it counts a pace."""

from __future__ import annotations

from typing import Any

import pytest

from tests.web.between import Between
from tests.web.page_browser import Visitor, visit

ROOT = "rgs-proof [data-step=root]"
WORDS = {
    "en": ("operator stated", "nobody has confirmed", "is the pinned one", "one seat"),
    "it": ("l'operatore ha dichiarato", "nessuno l'ha confermata", "quella fissata", "un solo posto"),
    "de": ("der Anbieter", "niemand hat ihn bestätigt", "der festgehaltene", "einen Platz"),
}
RENDERS = """async () => {
  const store = document.querySelector("rgs-page").store;
  const rack = customElements.get("rgs-rack").prototype;
  const render = rack.render;
  let renders = 0;
  rack.render = function () {
    renders += 1;
    return render.call(this);
  };
  for (let event = 0; event < 20; event += 1) {
    store.emit();
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  renders = 0;
  await new Promise((resolve) => setTimeout(resolve, 1500));
  rack.render = render;
  return renders;
}"""


@pytest.fixture
def visitor(browser: Any, page_whole: Any) -> Any:
    found = visit(browser, page_whole.origin)
    yield found
    assert found.faults == []
    found.page.context.close()


@pytest.mark.parametrize("language", list(WORDS))
def test_a_root_that_nobody_has_confirmed_is_not_called_pinned(visitor: Visitor, language: str) -> None:
    stated, unconfirmed, pinned, alone = WORDS[language]
    visitor.sign_up()
    page = visitor.page
    page.click("[data-does=settings]")
    page.select_option("rgs-settings [name=language]", language)
    page.click("[data-does=apply]")
    page.wait_for_selector(f"html[lang={language}]", state="attached")
    page.reload()
    page.wait_for_selector("rgs-lobby [data-game]")
    visitor.play("uth-solo")
    visitor.bet("ante", 100)
    visitor.deal()
    visitor.decide_all("ACTION_PLAY_4X")
    page.click("[data-does=proof][data-proof=first_use]")
    page.wait_for_selector(f"{ROOT}[data-step-verdict=unpinned]", state="attached")
    text = str(page.locator(f"{ROOT} summary").text_content())
    assert "✓" not in text
    assert stated in text
    assert unconfirmed in text
    assert pinned not in text
    assert alone in str(page.locator("rgs-proof [data-step=path] summary").text_content())
    page.fill("rgs-proof input", visitor.api("/api/keys")["root_fingerprint"])
    page.click("[data-does=pin]")
    page.wait_for_selector(f"{ROOT}[data-step-verdict=ok]", state="attached")
    text = str(page.locator(f"{ROOT} summary").text_content())
    assert "✓" in text
    assert pinned in text
    page.fill("rgs-proof input", "0" * 64)
    page.click("[data-does=pin]")
    page.wait_for_selector("rgs-proof [data-proof=failed]")


def test_a_pace_is_counted_by_one_timer(visitor: Visitor) -> None:
    between = Between(visitor.page)
    visitor.sign_up().play("uth-solo")
    page = visitor.page
    time = page.evaluate("new Date(Date.now() + 60_000).toISOString()")
    session = page.evaluate("document.querySelector('rgs-page').store.solo.session")
    between.say(type="session", value={**session, "next_start_time": time})
    page.wait_for_selector(".deal:disabled:has-text('Next round in')")
    assert page.evaluate(RENDERS) <= 8, "four times a second, whatever has happened meanwhile"
    soon = page.evaluate("new Date(Date.now() + 1500).toISOString()")
    between.say(type="session", value={**session, "next_start_time": soon})
    page.wait_for_selector("[data-does=deal]")
