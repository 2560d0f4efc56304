"""How the page looks and reads: languages, a phone's width, light and dark, accessibility, size, security policy."""

from __future__ import annotations

import gzip
import re
import sys
from typing import Any, Final

import pytest

from tests.web.between import Between
from tests.web.page_browser import DIST, RULES, SIZES, Visitor, visit
from tests.web.scenes import SCENES, Stage, set_up_tables

SCRIPT_BYTES_MAX: Final = 60_000
TRANSFER_BYTES_MAX: Final = 120_000
CODE: Final = re.compile(r"\b[A-Z]{2,}_[A-Z_0-9]{2,}\b")
LOOKS: Final = ("desktop", "desktop-dark-it", "desktop-de", "phone-dark", "phone-it", "phone-dark-de")
"""Each size with each scheme of colours and each language, each scheme with each language."""
SCREENS: Final = [("solo", look) for look in LOOKS] + [
    (scene, look) for look in ("phone-it", "desktop-dark") for scene in SCENES if scene not in ("solo", "verify")
]
"""The windows of every day in each look; tables, states that are rare and the platform's pages in two. A table that
has been looked at is in a round for a while: the next scene is another one's.
"""
TEXT: Final = """() => {
  const of = (node) => node.shadowRoot ? of(node.shadowRoot) :
    node.nodeType === Node.TEXT_NODE ? node.textContent :
    ["STYLE", "SCRIPT"].includes(node.nodeName) ? "" : [...node.childNodes].map(of).join(" ");
  return of(document.body);
}"""
GAMES: Final = """() => {
  const inside = (node, name) => [...node.shadowRoot.querySelectorAll(name)];
  const pages = [...document.querySelectorAll("rgs-page")];
  const games = pages.flatMap((page) => [...inside(page, "rgs-solo"),
    ...inside(page, "rgs-tables").flatMap((tables) => inside(tables, "rgs-table"))]);
  return games.filter((game) => game.offsetParent).map((game) => {
    const [felt, bar] = [inside(game, ".felt")[0], inside(game, ".bar")[0].getBoundingClientRect()];
    const strip = inside(game, "rgs-strip")[0].getBoundingClientRect();
    return {
      wide: felt.scrollWidth - felt.clientWidth,
      cut: felt.scrollHeight - felt.clientHeight,
      outside: strip.top < 0 || bar.bottom > innerHeight + 1 || strip.bottom > bar.top,
    };
  });
}"""
BEHIND: Final = dict.fromkeys(("proof", "history", "round", "rules", "limits", "settings"), 400)
"""These windows stand before a game whose result has its details open."""
MAY_SCROLL: Final = {"result-details": 400, **BEHIND, "menu": 400, "paused": 60, "other-device": 120}
"""Pixels by which a felt may scroll in screens with something above or on it that is not there otherwise."""
SLACK: Final = {"phone": 48, "desktop": 20}
"""Pixels by which any felt may scroll: the smallest phone is 360 x 740, and results at tables have a line more."""
ON_A_PHONE: Final = {"boxes": 100, "tables": 80}
"""By scene, on a phone of 360 x 740: seven boxes stand between the cards and the spots; tabs of tables stand above
them, and a result has names of hands that need two lines.
"""


@pytest.fixture(scope="module")
def tables(page_whole: Any) -> None:
    """The tables of the scenes."""
    set_up_tables(page_whole)


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("scene", "look"), SCREENS)
def test_every_screen_is_accessible_translated_and_no_wider_than_the_window(
    browser: Any, page_whole: Any, tables: None, scene: str, look: str
) -> None:
    """axe finds nothing, no code stands where words should, nothing is cut off, no script fails. Money, ids, felt and
    bar of a game are seen without scrolling (F-3).
    """
    from axe_playwright_python.sync_playwright import Axe  # noqa: PLC0415 - not where the browser is missing

    found: list[str] = []
    seen: list[str] = []

    def look_at(visitor: Visitor, screen: str) -> None:
        seen.append(screen)
        report = Axe().run(visitor.page, options={"runOnly": {"type": "tag", "values": list(RULES)}})
        for violation in report.response["violations"]:
            where = "; ".join(
                f"{node['target']} {node.get('failureSummary', '')[:300]}" for node in violation["nodes"][:3]
            )
            found.append(f"{screen}: {violation['id']}: {where}")
        wide = visitor.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        if wide > 0:
            found.append(f"{screen}: {wide} px wider than the window")
        for game in visitor.page.evaluate(GAMES):
            slack = SLACK[look.partition("-")[0]]
            may = MAY_SCROLL.get(screen, slack)
            if look.startswith("phone"):
                may = max(may, ON_A_PHONE.get(scene, 0))
            if game["wide"] > 0 or game["cut"] > may or game["outside"]:
                found.append(f"{screen}: a game is cut off: {game}")
        if not screen.startswith("office"):  # staff reads the codes of the contract there
            found.extend(f"{screen}: {code} is no word" for code in CODE.findall(visitor.page.evaluate(TEXT)))
        found.extend(f"{screen}: {fault}" for fault in visitor.faults)

    SCENES[scene](Stage(browser, page_whole, SIZES, look_at), look)
    assert seen, "the scene has shown nothing"
    assert not found, "\n".join(found)


def test_a_stake_in_play_is_no_loss_and_limits_stay_on_the_felt(browser: Any, page_whole: Any) -> None:
    visitor = visit(browser, page_whole.origin).sign_up().play("uth-solo")
    assert re.search(r"0\.1 . 1000", visitor.spot("ante"))
    visitor.bet("ante", 100)
    assert re.search(r"0\.1 . 1000", visitor.spot("ante")), "also with a bet on it (S4)"
    visitor.deal()
    assert (visitor.minor("bet"), visitor.minor("net")) == (200, 0)
    visitor.decide_all("ACTION_PLAY_4X")
    [line] = visitor.api("/api/rounds")["rounds"]
    net = int(line.get("returned_minor", 0)) - int(line["staked_minor"])
    assert visitor.minor("net") == abs(net)
    assert visitor.fact("net")[0] == ("+" if net > 0 else "\u2212" if net < 0 else "€")
    visitor.page.context.close()


def test_the_five_cards_that_aa_was_paid_for_are_shown(browser: Any, page_whole: Any) -> None:
    visitor = visit(browser, page_whole.origin)
    page = visitor.page
    between = Between(page)
    visitor.sign_up().play("casino-holdem")
    visitor.bet("ante", 100)
    visitor.bet("aa", 100)
    visitor.deal()
    play = "document.querySelector('rgs-page').store.solo"
    cards = ["As", "Ad", "7c", "5h", "2d"]
    won = {"stake_minor": "100", "result": "BET_RESULT_WIN"}
    ante = {**won, "bet": "ante", "returned_minor": "200", "row": "pair"}
    aside = {**won, "bet": "aa", "returned_minor": "800", "row": "pair:A", "cards": cards}
    value = page.evaluate(f"{play}.round") | {
        "status": "ROUND_STATUS_SETTLED",
        "settlement": [ante, aside],
        "legal_actions": [],
        "round_version": "9",
    }
    between.say(type="round", session_id=page.evaluate(f"{play}.id"), value=value)
    page.wait_for_selector("[data-aside]")
    assert page.locator("[data-aside] .card").count() == len(cards)
    assert "pair of aces" in page.locator("[data-aside]").inner_text()
    paid = [text.split() for text in page.locator("rgs-paytable td.paid").all_inner_texts()]
    assert sorted(paid) == [["1:1", "paid"], ["7:1", "paid"]], "both bets are marked in the paytable"
    page.context.close()


def test_the_felt_of_lugano_is_lettered_in_english_and_no_other(browser: Any, page_whole: Any, tables: None) -> None:
    """F-13: the words of the felt; what is said beside it is in the player's language."""
    visitor = visit(browser, page_whole.origin, locale="it-IT").sign_up()
    page = visitor.page
    page.click("[data-table=lugano] [data-does=play]")
    page.wait_for_selector("rgs-paytable table[lang=en]")
    paytable = page.locator("rgs-paytable table").inner_text()
    assert "Royal flush" in paytable
    assert "Any other hand" in paytable
    assert "Saldo" in page.locator("rgs-strip .money").inner_text()
    page.click("[data-does=lobby]")
    page.click("rgs-dialog [data-table=shared] [data-does=play]")
    page.wait_for_selector("rgs-paytable table[lang=it]")
    assert "Scala reale" in page.locator("rgs-paytable table").inner_text()
    page.context.close()


def test_the_wait_for_a_higher_limit_is_said_in_whole_units(browser: Any, page_whole: Any) -> None:
    visitor = visit(browser, page_whole.origin).sign_up()
    visitor.page.click("[data-does=limits]")
    said = visitor.page.locator("rgs-limits form p").first
    visitor.page.wait_for_selector("text=/after [1-9]/")
    assert re.search(r"after [1-9]\d* (hour|minute|second)s?\.", said.inner_text()), said.inner_text()
    visitor.page.context.close()


def test_the_language_and_the_other_settings_follow_to_another_device(browser: Any, page_whole: Any) -> None:
    first = visit(browser, page_whole.origin).sign_up()
    page = first.page
    page.click("[data-does=settings]")
    page.select_option("rgs-settings [name=language]", "it")
    page.check("rgs-settings [name=four_colour]")
    page.click("[data-does=apply]")
    page.wait_for_selector("text=Cronologia")
    assert page.evaluate("document.documentElement.lang") == "it"
    second = visit(browser, page_whole.origin)
    second.page.goto(second.origin)
    second.page.fill("input[name=name]", first.name)
    second.page.fill("input[name=password]", "correct horse battery")
    second.page.click("[data-does=sign]")
    second.page.wait_for_selector("text=Cronologia")
    second.page.click("[data-does=settings]")
    assert second.page.is_checked("rgs-settings [name=four_colour]")
    assert first.faults + second.faults == []
    for visitor in (first, second):
        visitor.page.context.close()


def test_nothing_is_loaded_from_elsewhere_and_the_first_visit_is_small(browser: Any, page_whole: Any) -> None:
    visitor = visit(browser, page_whole.origin)
    page = visitor.page
    sizes: dict[str, int] = {}
    page.on("response", lambda got: sizes.__setitem__(got.url, int(got.headers.get("content-length") or 0)))
    page.goto(visitor.origin)
    page.wait_for_selector("rgs-sign-in")
    assert all(url.startswith(visitor.origin) for url in sizes)
    scripts = sum(size for url, size in sizes.items() if url.endswith(".js"))
    sys.stdout.write(
        f"first visit: {sum(sizes.values())} bytes, of these {scripts} of scripts, in {len(sizes)} answers" + "\n"
    )
    assert 0 < scripts <= SCRIPT_BYTES_MAX
    assert sum(sizes.values()) <= TRANSFER_BYTES_MAX
    page.context.close()


def test_all_scripts_of_a_language_together_with_the_verifier_stay_below_the_transfer() -> None:
    """What a visit can ever load: the page, one language, the worker."""
    if not (DIST / "index.html").is_file():
        pytest.skip("the page is not built: run `make page`")
    files = [path for path in (DIST / "assets").iterdir() if not re.match(r"(it|de)-", path.name)]
    size = sum(len(gzip.compress(path.read_bytes(), 9)) for path in files)
    sys.stdout.write(f"page, one language and worker: {size} bytes gzipped" + "\n")
    assert size <= TRANSFER_BYTES_MAX
