"""What the page does with the devices around it: a second one, a camera, loudspeakers, a window that is moved."""

from __future__ import annotations

import sqlite3
from typing import Any, Final

import pytest

from tests.web.page_browser import PASSWORD, Visitor, until, visit
from tests.web.qr_codes import CAMERA

LISTEN: Final = """
  globalThis.heard = { tones: [], words: [] };
  const set = AudioParam.prototype.setValueAtTime;
  AudioParam.prototype.setValueAtTime = function (value, at) {
    heard.tones.push(value);
    return set.call(this, value, at);
  };
  SpeechSynthesis.prototype.speak = (words) => void heard.words.push([words.lang, words.volume, words.text]);
"""
"""Notes how loud each tone begins, and what the voice says."""
CHECK_MS: Final = 600_000
"""Of the demo jurisdiction."""


@pytest.fixture
def visitor(browser: Any, page_whole: Any) -> Any:
    """A visitor who has not signed up. Whatever the test does, no script of the page may fail."""
    found = visit(browser, page_whole.origin)
    yield found
    assert found.faults == []
    found.page.context.close()


def second_device(browser: Any, first: Visitor) -> Visitor:
    """The same player elsewhere, signed in."""
    device = visit(browser, first.origin)
    device.page.goto(first.origin)
    device.page.fill("input[name=name]", first.name)
    device.page.fill("input[name=password]", PASSWORD)
    device.page.click("[data-does=sign]")
    return device


def test_one_reality_check_on_two_devices_is_confirmed_on_one(browser: Any, page_whole: Any, visitor: Visitor) -> None:
    visitor.sign_up().sit("uth-online")
    session_id = visitor.page.evaluate("() => document.querySelector('rgs-page').store.tables[0].id")
    device = second_device(browser, visitor)
    device.page.wait_for_selector("rgs-table")
    assert visitor.page.locator("[data-reality]").count() == 0
    with sqlite3.connect(page_whole.folder / "platform/platform.db") as database:
        changed = database.execute(
            "UPDATE play_sessions SET checked_ms = ? WHERE session_id = ?", (-CHECK_MS, session_id)
        )
        assert changed.rowcount == 1, "the last check was one interval ago"
    for each in (visitor, device):
        each.page.reload()
        each.page.wait_for_selector(f"[data-reality='{session_id}']")
    device.page.locator("[data-reality] button").first.click()
    for each in (device, visitor):
        each.page.wait_for_selector("[data-reality]", state="detached")
    visitor.page.reload()
    visitor.page.wait_for_selector("rgs-table rgs-rack")
    assert visitor.page.locator("[data-reality]").count() == 0, "seen on one device is seen"
    assert device.faults == []
    device.page.context.close()


def open_proof(visitor: Visitor) -> None:
    """Play a round, and open its proof."""
    visitor.sign_up().play("uth-solo")
    visitor.bet("ante", 100)
    visitor.deal()
    visitor.decide_all("ACTION_PLAY_4X")
    visitor.page.wait_for_selector("[data-does=proof][data-proof=first_use]")
    visitor.page.click("[data-does=proof]")


def test_a_root_is_read_by_the_camera(visitor: Visitor, qr: Any) -> None:
    open_proof(visitor)
    page = visitor.page
    root = page.locator("rgs-proof input[name=root]").get_attribute("placeholder")
    assert root
    loaded = page.evaluate("performance.getEntriesByType('resource').length")
    page.click("rgs-proof [data-does=scan]")
    page.wait_for_selector("rgs-proof #scan")
    assert page.evaluate("performance.getEntriesByType('resource').length") > loaded, (
        "the reader comes when it is wanted"
    )
    page.click("rgs-proof #scan")
    page.wait_for_selector("rgs-proof #scan-says:has-text('type the root')")
    for text, state in ((root, "proved"), ("ab" * 32, "failed")):
        rows = qr(text, "raw")
        page.evaluate(CAMERA, [rows, len(rows)])
        page.click("rgs-proof #scan")
        page.wait_for_selector(f"rgs-proof [data-proof={state}]")
        assert page.input_value("rgs-proof input[name=root]") == text
        assert page.locator("rgs-proof video").is_hidden(), "the camera is off again"


def test_a_camera_is_off_once_the_proof_is_closed(visitor: Visitor, qr: Any) -> None:
    open_proof(visitor)
    page = visitor.page
    page.click("rgs-proof [data-does=scan]")
    rows = qr("https://example.org/", "raw")
    page.evaluate(CAMERA, [rows, len(rows)])
    page.evaluate("""() => {
      const get = navigator.mediaDevices.getUserMedia;
      navigator.mediaDevices.getUserMedia = async () => (globalThis.seen = await get());
    }""")
    page.click("rgs-proof #scan")
    page.wait_for_selector("rgs-proof #scan-says:has-text('example.org')")
    page.keyboard.press("Escape")
    page.wait_for_selector("rgs-proof", state="detached")
    until(page, "() => seen.getTracks().every((track) => track.readyState === 'ended')")


def settings(visitor: Visitor, **values: Any) -> None:
    """Change settings by hand."""
    page = visitor.page
    page.click("[data-does=settings]")
    for name, value in values.items():
        field = page.locator(f"rgs-settings [name={name}]")
        if isinstance(value, bool):
            field.set_checked(value)
        else:
            field.fill(str(value))
    page.click("[data-does=apply]")
    page.wait_for_selector("rgs-settings", state="detached")
    page.evaluate("() => { heard.tones.length = heard.words.length = 0; }")


def test_voice_and_sounds_are_switched_apart_each_with_its_volume(visitor: Visitor) -> None:
    page = visitor.page
    page.add_init_script(LISTEN)
    visitor.sign_up().play("uth-solo")
    visitor.bet("ante", 100)
    settings(visitor, game_volume=100)
    page.click("[data-spot=ante]")
    until(page, "() => heard.tones.length > 0")
    full = page.evaluate("() => heard.tones[0]")
    settings(visitor, game_volume=50, voice_volume=25)
    page.click("[data-spot=ante]")
    until(page, "() => heard.tones.length > 0")
    assert page.evaluate("() => heard.tones[0]") == pytest.approx(full / 2)
    visitor.deal()
    until(page, "() => heard.words.length > 0")
    language, volume, _ = page.evaluate("() => heard.words[0]")
    assert (language, volume) == ("en", 0.25)
    settings(visitor, voice=False)
    visitor.decide_all("ACTION_PLAY_4X")
    until(page, "() => heard.tones.length > 0")
    assert page.evaluate("() => heard.words.length") == 0, "the voice is off, the sounds are not"
    settings(visitor, voice=True, effects=False)
    visitor.bet("ante", 100)
    visitor.deal()
    until(page, "() => heard.words.length > 0")
    assert page.evaluate("() => heard.tones.length") == 0, "the sounds are off, the voice is not"


def test_the_chat_is_moved_resized_and_closed(visitor: Visitor) -> None:
    visitor.sign_up().sit("uth-online")
    page = visitor.page
    page.click("[data-does=chat]")
    chat = page.locator("rgs-chat")
    before = chat.bounding_box()
    handle = page.locator("rgs-chat .handle").bounding_box()
    page.mouse.move(handle["x"] + 10, handle["y"] + 10)
    page.mouse.down()
    page.mouse.move(handle["x"] - 90, handle["y"] - 50, steps=4)
    page.mouse.up()
    moved = chat.bounding_box()
    assert (moved["x"], moved["y"]) == pytest.approx((before["x"] - 100, before["y"] - 60), abs=1)
    page.mouse.move(5, 5)
    assert chat.bounding_box() == moved, "let go is let go"
    page.locator("rgs-chat .handle").focus()
    page.keyboard.press("ArrowLeft")
    assert chat.bounding_box()["x"] < moved["x"], "keys move it, too"
    at = page.locator("rgs-chat .window").bounding_box()
    corner = (at["x"] + at["width"] - 4, at["y"] + at["height"] - 4)
    page.mouse.move(*corner)
    page.mouse.down()
    page.mouse.move(corner[0] - 40, corner[1] - 60, steps=4)
    page.mouse.up()
    resized = page.locator("rgs-chat .window").bounding_box()
    assert (resized["width"], resized["height"]) == pytest.approx((at["width"] - 40, at["height"] - 60), abs=2)
    for _ in range(80):
        page.locator("rgs-chat .handle").press("ArrowUp")
    assert chat.bounding_box()["y"] == 0, "it stays in the window"
    page.fill("rgs-chat input", "hello by the arrow")
    page.click("rgs-chat [data-does=send]")
    page.wait_for_selector("rgs-chat .lines .own:has-text('hello by the arrow')")
    page.click("rgs-chat [data-does=close]")
    page.wait_for_selector("rgs-chat", state="detached")
