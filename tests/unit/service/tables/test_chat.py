"""The chat of a table: who may write what and when, what others see of it, and where it never stands."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path
from unittest.mock import AsyncMock

import pytest
from structlog.testing import capture_logs

from rgs.core.errors import (
    ChatClosedError,
    IdempotencyConflictError,
    InvalidFieldError,
    NotFoundError,
    NotSeatedError,
)
from rgs.core.statements import parse_envelope
from rgs.core.tables.machine import State
from rgs.core.tables.views import ChatLine
from rgs.service.callers import Caller, Role
from rgs.service.tables import chat as chat_module
from rgs.service.tables.chat import KEPT_MS, line_of
from rgs.service.tables.requests import Say
from rgs.store.changes import Change
from rgs.store.table_records import ChatMessage
from tests.support.service.harness import OPERATOR, ServiceHarness
from tests.support.service.oracles import export_lines, stored_statements
from tests.support.service.tables import ADMIN, ALWAYS, Evening, Sitter, config_text

OTHER = Caller("op-2", Role.OPERATOR, "demo")


async def evening_of(harness: ServiceHarness, table_id: str = "uth-online", **rows: object) -> Evening:
    return await Evening(harness, table_id, hours=ALWAYS, **rows).open()


async def say(sitter: Sitter, text: str, request_id: str = "") -> ChatLine:
    harness = sitter.evening.harness
    request = Say(request_id or harness.request_id(), sitter.session_id, text)
    return await harness.tables.chat.say(sitter.caller, request)


async def lines(harness: ServiceHarness, caller: Caller = OPERATOR, table_id: str = "uth-online") -> list[str]:
    """The texts of the players, newest first; the dealer's lines are codes."""
    found, _ = await harness.tables.chat.list(caller, table_id, 200, "")
    return [line.text for line in found if not line.code]


# --- a line -----------------------------------------------------------------------------------------------------------


async def test_a_line_is_kept_reported_and_listed(harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    evening = await evening_of(harness)
    one, two = await evening.seated("player-1", "player-2")
    heard: list[ChatMessage] = []
    monkeypatch.setattr(harness.tables.chat, "said", heard.append)
    line = await say(one, "  Buona sera a tutti, schönen Abend!  ")
    assert (line.text, line.nickname, line.player) == ("Buona sera a tutti, schönen Abend!", "player-1", "player-1")
    assert (line.table_id, line.time_ms, line.code) == ("uth-online", harness.clock.now_ms(), "")
    kept = await harness.store.chat_message(line.message_id)
    assert kept is not None
    assert heard == [kept]
    assert (kept.operator, kept.player, kept.text) == ("op-1", "player-1", line.text)
    harness.clock.tick()
    await say(two, "Ciao")
    assert await lines(harness) == ["Ciao", line.text]


async def test_a_repeated_request_is_one_line(harness: ServiceHarness) -> None:
    evening = await evening_of(harness)
    (one,) = await evening.seated("player-1")
    request_id = harness.request_id()
    line = await say(one, "Ciao", request_id)
    assert await say(one, "Ciao", request_id) == line
    assert await lines(harness) == ["Ciao"]
    with pytest.raises(IdempotencyConflictError):
        await say(one, "Addio", request_id)
    await harness.tables.admin.erase_message(ADMIN, harness.request_id(), line.message_id, "RUDE")
    again = await say(one, "Ciao", request_id)
    assert (again.message_id, again.text, again.nickname) == (line.message_id, "", "")


@pytest.mark.parametrize(
    ("text", "is_good"),
    [
        ("", False),
        ("   ", False),
        ("a", True),
        ("é" * 200, True),
        (" " + "x" * 200 + " ", True),
        ("x" * 201, False),
        ("two\nlines", False),
        ("\x1b[2J", False),
        ("turned \u202e over", False),
        ("no\u0000thing", False),
        ("a\u00a0b", False),
        ("\N{GRINNING FACE}", True),
    ],
)
async def test_a_text_has_1_to_200_printing_characters(harness: ServiceHarness, text: str, is_good: bool) -> None:
    evening = await evening_of(harness)
    (one,) = await evening.seated("player-1")
    if is_good:
        assert (await say(one, text)).text == text.strip()
        return
    with pytest.raises(InvalidFieldError) as caught:
        await say(one, text)
    assert caught.value.field == "text"
    assert not text.strip() or text not in str(caught.value) + str(caught.value.metadata)
    assert await lines(harness) == []


async def test_only_who_sits_there_writes(harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    evening = await evening_of(harness)
    one = Sitter(evening, "player-1")
    await one.open()
    with pytest.raises(NotSeatedError):
        await say(one, "Ciao")
    await one.join()
    with pytest.raises(NotFoundError):  # it is no session of this operator
        await harness.tables.chat.say(OTHER, Say(harness.request_id(), one.session_id, "Ciao"))
    await say(one, "Ciao")
    harness.clock.tick(60_000)
    sitting = await harness.store.sitting(one.session_id)
    assert sitting is not None
    with monkeypatch.context() as patched:  # barred, or gone while a round goes on: the seat ends with the round
        patched.setattr(harness.store, "sitting", AsyncMock(return_value=replace(sitting, leaving=True)))
        with pytest.raises(NotSeatedError):
            await say(one, "Addio")
    await one.leave()
    harness.clock.tick(60_000)
    with pytest.raises(NotSeatedError):
        await say(one, "Addio")
    assert await lines(harness) == ["Ciao"]


# --- when -------------------------------------------------------------------------------------------------------------


async def test_a_table_may_have_no_chat(harness: ServiceHarness) -> None:
    evening = await evening_of(harness, chat=False)
    (one,) = await evening.seated("player-1")
    with pytest.raises(ChatClosedError):
        await say(one, "Ciao")


@pytest.mark.parametrize(("crowd", "pause_ms"), [(2, 2_000), (1, 10_000)])
async def test_a_player_writes_once_in_a_while(
    harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch, crowd: int, pause_ms: int
) -> None:
    """Two players sit there: more than `crowd`, or not."""
    monkeypatch.setattr(chat_module, "CROWD", crowd)
    evening = await evening_of(harness)
    one, two = await evening.seated("player-1", "player-2")
    await say(two, "mine")
    harness.clock.tick()
    await say(one, "first")
    for passed_ms, wait_ms in ((0, pause_ms), (1, pause_ms - 1), (pause_ms - 2, 1)):
        harness.clock.tick(passed_ms)
        with pytest.raises(ChatClosedError) as caught:
            await say(one, "second")
        assert caught.value.metadata["retry_after_ms"] == str(wait_ms)
    harness.clock.tick(1)
    await say(one, "second")
    assert await lines(harness) == ["second", "first", "mine"]


async def test_a_clock_that_is_set_back_silences_nobody(harness: ServiceHarness) -> None:
    evening = await evening_of(harness)
    (one,) = await evening.seated("player-1")
    await say(one, "first")
    harness.clock.set_back(3_600_000)
    await say(one, "second")


@pytest.mark.parametrize(("table_id", "is_secret"), [("uth-online", False), ("uth-seven-box", True)])
async def test_where_cards_are_secret_nobody_writes_until_the_result(
    harness: ServiceHarness,
    table_id: str,
    is_secret: bool,
) -> None:
    evening = await evening_of(harness, table_id)
    (one,) = await evening.seated("player-1")
    for _ in range(2):  # idle, betting
        harness.clock.tick(2_000)
        await say(one, "open")
        if await evening.state() is State.IDLE:
            await one.bet(ante=1_000)
    assert await evening.state() is State.BETTING
    written = 2

    async def verify() -> None:
        nonlocal written
        harness.clock.tick(2_000)
        if is_secret:
            with pytest.raises(ChatClosedError) as caught:
                await say(one, "I have aces")
            assert "retry_after_ms" not in caught.value.metadata
        else:
            await say(one, "I have aces")
            written += 1

    await evening.until(State.DECIDING)
    await verify()
    await harness.tables.admin.pause(ADMIN, harness.request_id(), table_id, "INSPECTION")
    await verify()
    await harness.tables.admin.resume(ADMIN, harness.request_id(), table_id, "INSPECTED")
    await evening.until(State.RESULT)
    await say(one, "result")
    assert len(await lines(harness, table_id=table_id)) == written + 1


async def test_a_line_that_was_checked_before_the_cut_is_not_written_after_it(
    harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    evening = await evening_of(harness, "uth-seven-box")
    (one,) = await evening.seated("player-1")
    await one.bet(ante=1_000)
    commit = harness.store.commit

    async def after_the_deal(change: Change) -> object:
        if any(isinstance(record, ChatMessage) for record in change.records):
            monkeypatch.setattr(harness.store, "commit", commit)
            await evening.until(State.DECIDING)
        return await commit(change)

    monkeypatch.setattr(harness.store, "commit", after_the_deal)
    with pytest.raises(ChatClosedError):
        await say(one, "I have aces")
    assert await lines(harness, table_id="uth-seven-box") == []


# --- who sees what ----------------------------------------------------------------------------------------------------


async def test_no_other_operator_learns_who_wrote(harness: ServiceHarness) -> None:
    evening = await evening_of(harness, operators=["op-1", "op-2"])
    (one,) = await evening.seated("player-1")
    await harness.tables.chat.say(OPERATOR, Say(harness.request_id(), one.session_id, "Ciao"))
    chat = harness.tables.chat
    for caller, player in (
        (OPERATOR, "player-1"),
        (OTHER, ""),
        (ADMIN, "player-1"),
        (Caller("op-1", Role.AUDITOR, ""), ""),
    ):
        ((line,), _) = await chat.list(caller, "uth-online", 0, "")
        assert (line.text, line.player) == ("Ciao", player)
    dealers = chat.dealer_line("uth-online", "BETS_OPEN", 7)
    assert line_of(Caller("", Role.OPERATOR, ""), dealers).player == ""


async def test_a_list_is_for_those_whose_players_play_there(harness: ServiceHarness) -> None:
    await evening_of(harness)
    chat = harness.tables.chat
    for caller, table_id in ((OTHER, "uth-online"), (OPERATOR, "other")):
        with pytest.raises(NotFoundError) as caught:
            await chat.list(caller, table_id, 0, "")
        assert (caught.value.metadata["kind"], caught.value.field) == ("table", "table")
    assert await chat.list(ADMIN, "uth-online", 0, "") == ((), "")


async def test_pages_go_back_in_time(harness: ServiceHarness) -> None:
    evening = await evening_of(harness)
    (one,) = await evening.seated("player-1")
    for number in range(5):
        await say(one, f"line {number}")
        harness.clock.tick(2_000)
    chat, token, found = harness.tables.chat, "", []
    for size in (2, 2, 1):
        page, token = await chat.list(OPERATOR, "uth-online", 2, token)
        assert len(page) == size
        found += [line.text for line in page]
    assert (found, token) == ([f"line {number}" for number in (4, 3, 2, 1, 0)], "")


async def test_the_dealer_writes_codes(harness: ServiceHarness) -> None:
    await evening_of(harness)
    message = harness.tables.chat.dealer_line("uth-online", "BETS_OPEN", 1_795_000_000_123)
    assert (message.code, message.text, message.nickname, message.operator, message.player) == (
        *("BETS_OPEN", "", "", "", ""),
    )
    await harness.store.commit(Change(records=(message,)))
    ((line,), _) = await harness.tables.chat.list(OPERATOR, "uth-online", 0, "")
    assert (line.code, line.time_ms, line.message_id) == ("BETS_OPEN", 1_795_000_000_123, message.message_id)


async def test_an_erased_line_says_nothing_more(harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    evening = await evening_of(harness)
    (one,) = await evening.seated("player-1")
    line = await say(one, "rude words")
    heard: list[ChatMessage] = []
    monkeypatch.setattr(harness.tables.signals, "said", heard.append)
    envelope = await harness.tables.admin.erase_message(ADMIN, harness.request_id(), line.message_id, "RUDE")
    event = envelope.decode("ascii")
    assert "rude words" not in event
    ((left,), _) = await harness.tables.chat.list(OPERATOR, "uth-online", 0, "")
    assert (left.message_id, left.text, left.nickname) == (line.message_id, "", "")
    (message,) = heard
    assert (message.message_id, message.text, message.nickname) == (line.message_id, "", "")
    with pytest.raises(NotFoundError) as caught:
        await harness.tables.admin.erase_message(ADMIN, harness.request_id(), "0" * 26, "RUDE")
    assert caught.value.metadata["kind"] == "message"


async def test_a_chat_stands_in_no_statement_and_no_log_line(
    tmp_path: Path, harness: ServiceHarness, caplog: pytest.LogCaptureFixture
) -> None:
    evening = await evening_of(harness)
    (one,) = await evening.seated("player-1")
    caplog.set_level(logging.DEBUG)
    with capture_logs() as logged:
        line = await say(one, "xyzzy the words")
        await harness.tables.admin.erase_message(ADMIN, harness.request_id(), line.message_id, "RUDE")
        harness.clock.tick(2_000)
        await say(one, "xyzzy again")
        with pytest.raises(ChatClosedError) as caught:
            await say(one, "xyzzy too fast")
    statements = stored_statements(tmp_path)
    payloads = b"".join(parse_envelope(row.envelope).payload + row.private for row in statements).decode("ascii")
    exported = b"".join(export_lines(tmp_path)).decode("ascii")
    assert line.message_id in payloads, "the erasure is signed"
    for text in (payloads, exported, json.dumps(logged, default=str), caplog.text, str(caught.value)):
        assert "xyzzy" not in text
    answers = await harness.store._rows("SELECT body FROM answers WHERE method = 'Say'")
    assert len(answers) == 2
    assert not any(b"xyzzy" in row[0] for row in answers)


# --- forgotten --------------------------------------------------------------------------------------------------------


async def test_lines_go_after_30_days_of_trusted_time(harness: ServiceHarness) -> None:
    evening = await evening_of(harness)
    (one,) = await evening.seated("player-1")
    chat = harness.tables.chat
    await say(one, "old")
    harness.clock.tick(60_000)
    await say(one, "young")
    harness.clock.tick(KEPT_MS - 60_000)
    assert await chat.forget() == 0, "30 days are not over"
    harness.clock.tick(600_000)
    harness.clock.distrust("TIME_JUMP")
    assert await chat.forget() == 0
    harness.clock.accept()
    assert await lines(harness) == ["young", "old"]
    harness.clock.tick(600_000)
    await chat.forget()
    assert await lines(harness) == []


async def test_one_process_drops_lines(harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    evening = await evening_of(harness)
    (one,) = await evening.seated("player-1")
    await say(one, "old")
    harness.clock.tick(KEPT_MS + 1)
    duties = []

    async def lead(duty: str) -> bool:
        duties.append(duty)
        return len(duties) > 1

    monkeypatch.setattr(harness.store, "lead", lead)
    assert await harness.tables.chat.forget() == 0
    assert await harness.tables.chat.forget() == 1
    assert await harness.tables.chat.forget() == 0
    assert await harness.tables.chat.forget() == 0, "nothing was left: it looks again later"
    assert duties == ["chat"] * 3


async def test_only_what_is_old_goes(harness: ServiceHarness) -> None:
    evening = await evening_of(harness)
    (one,) = await evening.seated("player-1")
    await say(one, "old")
    harness.clock.tick(60_000)
    await say(one, "young")
    harness.clock.tick(KEPT_MS - 60_000 + 1)
    assert await harness.tables.chat.forget() == 1
    assert await lines(harness) == ["young"]
    text = config_text("uth-online", hours=ALWAYS, version=2, chat=False)
    await harness.tables.admin.configure(ADMIN, harness.request_id(), text, "NO_CHAT")
    harness.clock.tick(60_000)
    with pytest.raises(ChatClosedError):
        await say(one, "more")
