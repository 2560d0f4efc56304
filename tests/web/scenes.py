"""Every screen of the page, played as a player would: for the pictures of docs/page and for what axe looks at.

A state that cannot be had in a moment (a pause, a void round, a reality check) is made as the tests make it: the same
frame is said to the page that the bridge would say.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final

from examples.operator import start
from tests.web.between import Between
from tests.web.page_browser import DIST, PASSWORD, Visitor, until, visit

LOCALES: Final = {"it": "it-IT", "de": "de-CH"}
MINUTES: Final = {"betting_ms": 12_000, "amber_ms": 5_000, "decision_ms": 60_000, "result_ms": 25_000}
"""Time enough for a picture."""
TABLES: Final = {"shared": "Ultimate Texas Hold'em, one slow table"} | {
    f"table-{number}": f"No. {number}, Ultimate Texas Hold'em" for number in (1, 2, 3, 4)
}
STILL: Final = """() => Promise.all(document.getAnimations()
  .filter((one) => one.effect?.getTiming().iterations !== Infinity).map((one) => one.finished))"""
PACE_MS: Final = 150
ROUND_MS: Final = 90_000
"""A round of a table, until the next one begins."""


class Stage:
    """The running whole and the browser. `sizes` are of the windows, by name; `show` gets each screen, at rest."""

    players = 0

    def __init__(
        self, browser: Any, whole: Any, sizes: dict[str, dict[str, int]], show: Callable[[Visitor, str], None]
    ) -> None:
        self.browser = browser
        self.whole = whole
        self._sizes = sizes
        self._show = show

    def visitor(self, look: str) -> Visitor:
        """A visitor of a look such as `phone`, `desktop-dark`, `phone-it`, `desktop-dark-de`."""
        size, *rest = look.split("-")
        [locale] = [LOCALES[one] for one in rest if one in LOCALES] or ["en-GB"]
        options = {"locale": locale, "color_scheme": "dark" if "dark" in rest else "light"}
        return visit(self.browser, self.whole.origin, viewport=self._sizes[size], timezone_id="Europe/Rome", **options)

    def nickname(self, name: str = "Picche") -> str:
        """A nickname that nobody has."""
        Stage.players += 1
        return f"{name} {Stage.players}"

    def shoot(self, visitor: Visitor, name: str) -> None:
        """Show one screen, at rest: a colour in the middle of a change is none that counts."""
        visitor.page.evaluate(STILL)
        visitor.page.wait_for_timeout(PACE_MS)
        self._show(visitor, name)

    def staff(self, look: str) -> Visitor:
        """Somebody of the staff, signed in to the back office."""
        found = self.visitor(look)
        page = found.page
        page.goto(f"{self.whole.origin}/office/")
        page.fill("input[name=name]", "staff")
        page.fill("input[name=password]", (self.whole.folder / "staff-password").read_text().strip())
        page.click("form[action='/office/sign-in'] button")
        page.wait_for_selector("nav")
        return found


def menu(visitor: Visitor, name: str) -> None:
    """A button of the head, which a phone has in a menu."""
    if not visitor.page.locator(f"[data-does={name}]").first.is_visible():
        visitor.page.click("[data-does=menu]")
    visitor.page.click(f"[data-does={name}]")


def close(visitor: Visitor) -> None:
    visitor.page.keyboard.press("Escape")
    visitor.page.wait_for_selector("rgs-dialog", state="detached")


def ended(visitor: Visitor) -> None:
    visitor.page.wait_for_selector("[data-result]")
    visitor.page.wait_for_selector("[data-does=proof][data-proof=first_use]")


# --- scenes: each is played in one look -------------------------------------------------------------------------------


def solo(stage: Stage, look: str) -> None:
    """From signing in to the proof of a round, and every window."""
    visitor = stage.visitor(look)
    page = visitor.page
    page.goto(visitor.origin)
    page.wait_for_selector("rgs-sign-in")
    stage.shoot(visitor, "sign-in")
    visitor.sign_up(nickname=stage.nickname())
    stage.shoot(visitor, "lobby")
    page.click("[data-game=uth-solo] [data-does=play]")
    page.wait_for_selector("rgs-buy")
    stage.shoot(visitor, "buy")
    visitor.buy("100.00")
    page.wait_for_selector("rgs-rack")
    visitor.bet("ante", 500)
    page.click("[data-chip='100']")
    stage.shoot(visitor, "betting")
    page.click("[data-spot=trips]")
    visitor.deal()
    stage.shoot(visitor, "decision")
    page.click("[data-action=ACTION_CHECK]")
    page.wait_for_selector("[data-action=ACTION_PLAY_2X]")
    stage.shoot(visitor, "decision-flop")
    visitor.decide_all("ACTION_PLAY_2X")
    ended(visitor)
    stage.shoot(visitor, "result")
    page.click("rgs-result summary")
    stage.shoot(visitor, "result-details")
    page.click("[data-does=proof]")
    page.wait_for_selector("rgs-proof [data-proof]")
    stage.shoot(visitor, "proof")
    close(visitor)
    menu(visitor, "history")
    page.wait_for_selector("[data-round]")
    stage.shoot(visitor, "history")
    page.locator("[data-round]").first.click()
    page.wait_for_selector("[data-record] [data-proof=first_use]")
    stage.shoot(visitor, "round")
    close(visitor)
    for name in ("rules", "limits", "settings"):
        menu(visitor, name)
        page.wait_for_timeout(400)
        stage.shoot(visitor, name)
        close(visitor)
    if page.locator(".menu").is_visible():
        page.click("[data-does=menu]")
        stage.shoot(visitor, "menu")
    for path, name in (("/cashier", "cashier"), ("/responsible-play", "responsible-play"), ("/help", "help")):
        page.goto(visitor.origin + path)
        stage.shoot(visitor, name)
    page.context.close()


def holdem(stage: Stage, look: str) -> None:
    """A round of Casino Hold'em."""
    visitor = stage.visitor(look)
    page = visitor.page
    visitor.sign_up(nickname=stage.nickname()).play("casino-holdem")
    visitor.bet("ante", 100)
    visitor.bet("aa", 100)
    stage.shoot(visitor, "holdem-betting")
    visitor.deal()
    stage.shoot(visitor, "holdem-decision")
    page.click("[data-action=ACTION_CALL]")
    ended(visitor)
    stage.shoot(visitor, "holdem-result")
    for _ in range(40):
        # A round whose AA was paid shows the five cards that it was paid for.
        if page.locator("[data-aside]").count():
            break
        page.click("[data-does=repeat]")
        page.wait_for_selector("rgs-decide")
        page.click("[data-action=ACTION_CALL]")
        ended(visitor)
    stage.shoot(visitor, "holdem-aa")
    page.context.close()


def states(stage: Stage, look: str) -> None:
    """What rarely happens. Pause, void round and reality check are said to the page, as a bridge would say them."""
    visitor = stage.visitor(look)
    page = visitor.page
    between = Between(page)
    visitor.sign_up(nickname=stage.nickname()).play("uth-solo")
    session = page.evaluate("document.querySelector('rgs-page').store.solo.id")
    visitor.bet("ante", 100)
    visitor.deal()
    round_ = page.evaluate("document.querySelector('rgs-page').store.solo.round")

    def say(**changed: Any) -> None:
        version = page.evaluate("document.querySelector('rgs-page').store.solo.round.round_version ?? '1'")
        value = {**round_, "legal_actions": [], "round_version": str(int(version) + 1), **changed}
        between.say(type="round", session_id=session, value=value)

    say(paused=True, malfunction_code="CLOCK_UNTRUSTED")
    page.wait_for_selector("[data-state=paused]")
    stage.shoot(visitor, "paused")
    session_view = page.evaluate("document.querySelector('rgs-page').store.solo.session")
    between.say(type="session", value={**session_view, "net_position_minor": "0", "balance_minor": "10000"})
    say(status="ROUND_STATUS_VOID", staked_minor="200", returned_minor="200")
    page.wait_for_selector("[data-result]")
    stage.shoot(visitor, "void")
    value = {"session_id": session, "elapsed_ms": "3600000", "net_position_minor": "-1250", "currency": "EUR"}
    between.say(type="reality_check", value={**value, "staked_minor": "8400", "returned_minor": "7150"})
    page.wait_for_selector("[data-reality]")
    stage.shoot(visitor, "reality-check")
    page.click("[data-does=go-on]")
    between.is_down = True
    between.cut()
    page.wait_for_selector("[data-link]")
    stage.shoot(visitor, "reconnecting")
    between.is_down = False
    page.wait_for_selector("[data-link]", state="detached")
    menu(visitor, "limits")
    page.click("[data-days='7']")
    page.click("[data-does=exclude]")
    page.wait_for_selector("[data-state=ended]")
    page.wait_for_selector("rgs-dialog", state="detached")
    stage.shoot(visitor, "ended")
    page.context.close()


def free_bet(stage: Stage, look: str) -> None:
    """A free bet in the lobby and on the felt; the back office that granted it."""
    visitor = stage.visitor(look)
    visitor.sign_up(nickname=stage.nickname())
    player = visitor.api("/api/me")["player"]
    staff = stage.staff("desktop")
    form = "form[action='/office/grant']"
    staff.page.goto(f"{stage.whole.origin}/office/free-bets?player={player}")
    staff.page.select_option(f"{form} [name=game]", "uth-solo")
    staff.page.select_option(f"{form} [name=currency]", "EUR")
    staff.page.fill(f"{form} [name=campaign]", "welcome")
    staff.page.fill(f"{form} [name=stake_minor]", "500")
    staff.page.click(f"{form} button")
    staff.page.wait_for_selector("text=welcome")
    visitor.page.wait_for_selector("[data-free-bet]")
    stage.shoot(visitor, "free-bet-lobby")
    visitor.play("uth-solo", "20.00")
    visitor.page.click("[data-does=free-bet]")
    visitor.bet("trips", 100)
    stage.shoot(visitor, "free-bet")
    visitor.page.context.close()
    staff.page.context.close()


def office(stage: Stage, look: str) -> None:
    """The back office: its start, one player, and one round."""
    visitor = stage.visitor("desktop").sign_up(nickname=stage.nickname()).play("uth-solo")
    visitor.bet("ante", 100)
    visitor.deal()
    visitor.decide_all("ACTION_PLAY_4X")
    ended(visitor)
    [line] = visitor.api("/api/rounds")["rounds"]
    staff = stage.staff(look)
    staff.page.goto(f"{stage.whole.origin}/office/")
    stage.shoot(staff, "office")
    player = visitor.api("/api/me")["player"]
    staff.page.goto(f"{stage.whole.origin}/office/players/{player}")
    stage.shoot(staff, "office-player")
    staff.page.goto(f"{stage.whole.origin}/office/rounds/{line['round_id']}?session_id={line['session_id']}")
    stage.shoot(staff, "office-round")
    for one in (visitor, staff):
        one.page.context.close()


def table(stage: Stage, look: str) -> None:
    """A table for all, with its chat; then the same seat on another device."""
    visitor = stage.visitor(look)
    page = visitor.page
    visitor.sign_up(nickname=stage.nickname()).sit("shared")
    visitor.bet("ante", 500)
    page.wait_for_selector("[data-stated=yes]")
    stage.shoot(visitor, "table-betting")
    page.wait_for_selector("rgs-decide button:not(:disabled)")
    stage.shoot(visitor, "table-decision")
    page.click("[data-does=chat]")
    page.fill("rgs-chat input", "Good evening")
    page.keyboard.press("Enter")
    page.wait_for_selector("rgs-chat .lines p:has-text('Good evening')")
    stage.shoot(visitor, "chat")
    page.keyboard.press("Escape")
    page.click("[data-action=ACTION_PLAY_4X]")
    ended(visitor)
    stage.shoot(visitor, "table-result")
    other = visit(stage.browser, stage.whole.origin)
    other.page.goto(other.origin)
    other.page.fill("input[name=name]", visitor.name)
    other.page.fill("input[name=password]", PASSWORD)
    other.page.click("[data-does=sign]")
    other.page.click("[data-state=other-device] button, [data-does=join]")
    page.wait_for_selector("[data-state=other-device]")
    stage.shoot(visitor, "other-device")
    for one in (visitor, other):
        one.page.context.close()


def boxes(stage: Stage, look: str) -> None:
    """Seven boxes, at the table whose felt is lettered in English; another player sits there, too."""
    neighbour = stage.nickname("Cuori")
    other = stage.visitor("desktop").sign_up(nickname=neighbour)
    visitor = stage.visitor(look)
    page = visitor.page
    visitor.sign_up(nickname=stage.nickname())
    for one in (other, visitor):
        one.page.click("[data-table=lugano] [data-does=play]")
        one.buy("200.00")
        one.page.wait_for_selector("[data-does=box]")
    other.page.locator("[data-does=box]").nth(1).click()
    other.page.wait_for_selector("rgs-rack")
    page.wait_for_selector(f"[data-box] .who[title='{neighbour}']")
    stage.shoot(visitor, "boxes")
    page.locator("[data-does=box]").nth(2).click()
    page.wait_for_selector("rgs-rack")
    for one in (other, visitor):
        one.bet("ante", 1000)
        one.bet("trips", 1000)
    page.wait_for_selector("[data-stated=yes]")
    stage.shoot(visitor, "boxes-betting")
    page.wait_for_selector("rgs-decide button:not(:disabled)")
    stage.shoot(visitor, "boxes-decision")
    for one in (other, visitor):
        one.page.click("[data-action=ACTION_PLAY_4X]")
    ended(visitor)
    stage.shoot(visitor, "boxes-result")
    for one in (visitor, other):
        one.page.locator("rgs-table [data-does=leave]").click()
        one.page.wait_for_selector("rgs-table", state="detached")
        one.page.context.close()


def tables(stage: Stage, look: str) -> None:
    """Two tables side by side, then four."""
    visitor = stage.visitor(look)
    page = visitor.page
    visitor.sign_up("2000.00", nickname=stage.nickname()).sit("table-1")
    for number in (2, 3, 4):
        page.click("[data-does=lobby]")
        page.click(f"rgs-dialog [data-table=table-{number}] [data-does=beside]")
        front = page.locator("rgs-table.front")
        front.locator("rgs-buy input").fill("100.00")
        front.locator("[data-does=buy]").click()
        front.locator("[data-does=join]").click()
        front.locator("rgs-rack").wait_for()
        if number in (2, 4):
            play(page, number)
            stage.shoot(visitor, f"{'two' if number == 2 else 'four'}-tables")
            for index in range(number):
                one = at(page, index)
                one.locator("[data-action=ACTION_PLAY_4X]").click()
            for index in range(number):
                at(page, index).locator("[data-result]").wait_for(timeout=ROUND_MS)
            stage.shoot(visitor, f"{'two' if number == 2 else 'four'}-tables-result")
    page.context.close()


def at(page: Any, index: int) -> Any:
    """The table of this place; a phone shows it by its tab."""
    tab = page.locator(f"[data-tab='{index}']")
    if tab.is_visible():
        tab.click()
    return page.locator("rgs-table").nth(index)


def play(page: Any, number: int) -> None:
    """Bets at the first tables, until all of them ask for a decision."""
    for index in range(number):
        one = at(page, index)
        one.locator("[data-spot=ante]:not(:disabled)").wait_for(timeout=ROUND_MS)
        one.locator("[data-chip='100']").click()
        for _ in range(index + 1):
            one.locator("[data-spot=ante]").click()
    for index in range(number):
        at(page, index).locator("rgs-decide button:not(:disabled)").first.wait_for(timeout=ROUND_MS)


def verify(stage: Stage, look: str) -> None:
    """verify.html from the disk, with the receipt of a round; then with one in which an amount was changed."""
    visitor = stage.visitor(look).sign_up().play("uth-solo")
    visitor.bet("ante", 100)
    visitor.deal()
    visitor.decide_all("ACTION_PLAY_4X")
    ended(visitor)
    [line] = visitor.api("/api/rounds")["rounds"]
    path = f"/api/receipts/{line['round_id']}?session_id={line['session_id']}"
    until(visitor.page, "async (path) => 'final' in (await (await fetch(path)).json()).log_proofs", path)
    receipt = visitor.api(path)
    visitor.page.goto((DIST / "verify.html").as_uri())
    stage.shoot(visitor, "verify-start")
    broken = json.loads(json.dumps(receipt))
    final = broken["record"]["final"]
    broken["record"]["final"] = f"{final[:-8]}{'AAAA' if final[-8:-4] != 'AAAA' else 'BBBB'}{final[-4:]}"
    for name, content in (("verify", receipt), ("verify-failed", broken)):
        file = {"name": "receipt.json", "mimeType": "application/json", "buffer": json.dumps(content).encode()}
        visitor.page.set_input_files("#file", files=[file])
        visitor.page.wait_for_selector("[data-verdict]" if name == "verify" else "[data-verdict=failed], .warned")
        visitor.page.wait_for_timeout(500)
        visitor.page.locator("#result").scroll_into_view_if_needed()
        visitor.page.evaluate("document.getElementById('file').scrollIntoView()")
        stage.shoot(visitor, name)
    visitor.page.context.close()


Scene = Callable[[Stage, str], None]
AT_TABLES: Final = ("table", "boxes", "tables")
"""The scenes that need the tables of `set_up_tables`."""
SCENES: Final[dict[str, Scene]] = {
    "solo": solo,
    "holdem": holdem,
    "states": states,
    "free-bet": free_bet,
    "office": office,
    "table": table,
    "boxes": boxes,
    "tables": tables,
    "verify": verify,
}


def set_up_tables(whole: Any) -> None:
    """Tables with time enough for a picture, and that of Lugano at all hours."""
    shipped = (start.TABLES / "uth-online.toml").read_text("utf-8")
    always = shipped.partition("[hours]")[2]
    lugano = (start.TABLES / "uth-lugano.toml").read_text("utf-8").partition("[hours]")[0]
    configs = [_config(shipped, name, title, MINUTES) for name, title in TABLES.items()]
    configs.append(
        _config(f"{lugano}[hours]{always}", "lugano", "Ultimate Texas Hold'em, Lugano at all hours", MINUTES)
    )
    for config in configs:
        start.set_up_table(whole.server_home, whole.server_address, config)


def _config(config: str, name: str, title: str, timers_ms: dict[str, int]) -> str:
    config = re.sub(r"^id = .*", f'id = "{name}"', config, flags=re.MULTILINE)
    config = re.sub(r"^(it|de|en) = .*", rf'\1 = "{title}"', config, flags=re.MULTILINE)
    for timer, value in timers_ms.items():
        config = re.sub(rf"^{timer} = .*", f"{timer} = {value}", config, flags=re.MULTILINE)
    return config
