"""Notices between processes: carried once to everybody else, left out where the store does not take them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from rgs.core.rounds import RoundStatus
from rgs.service.play.notices import NOTICES_MAX, RELAY_MAX, Notice, Notices, Relay, format_notice, parse_notice
from rgs.store.changes import StoreError

NOTICE = Notice("session-1", "round-1", RoundStatus.OPEN, "CARDS_SHOWN", "N" * 16, "P" * 16)


class Store:
    """Hands every text to every relay, as a database does; `down` refuses."""

    def __init__(self) -> None:
        self.relays: list[Relay] = []
        self.down = False
        self.carried = 0

    async def send(self, text: str) -> None:
        if self.down:
            raise StoreError("no database")
        self.carried += 1
        for relay in self.relays:
            relay.take(text)


@contextlib.asynccontextmanager
async def processes(store: Store, count: int) -> AsyncIterator[list[Notices]]:
    found = [Notices() for _ in range(count)]
    store.relays = [Relay(notices, f"process-{number}", store.send) for number, notices in enumerate(found)]
    running = [asyncio.create_task(relay.run()) for relay in store.relays]
    yield found
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)


def listener(notices: Notices) -> asyncio.Queue[Notice]:
    queue: asyncio.Queue[Notice] = asyncio.Queue(NOTICES_MAX)
    notices.listen(NOTICE.session_id, queue)
    return queue


async def test_a_notice_reaches_every_process_once() -> None:
    async with processes(Store(), 3) as (first, second, third):
        queues = [listener(notices) for notices in (first, second, third)]
        second.emit(NOTICE)
        assert [await queue.get() for queue in queues] == [NOTICE] * 3
        await asyncio.sleep(0)
        assert all(queue.empty() for queue in queues)


async def test_a_notice_that_the_store_does_not_take_is_heard_here_and_the_next_one_everywhere() -> None:
    store = Store()
    async with processes(store, 2) as (first, second):
        here, there = listener(first), listener(second)
        store.down = True
        first.emit(NOTICE)
        assert await here.get() == NOTICE
        await asyncio.sleep(0.01)
        store.down = False
        later = Notice("session-1", "round-1", RoundStatus.VOID, "", "", "")
        first.emit(later)
        assert await there.get() == later
        assert there.empty()


async def test_the_oldest_are_left_out_where_too_many_wait() -> None:
    store, notices = Store(), Notices()
    relay = Relay(notices, "here", store.send)
    for _ in range(RELAY_MAX + 10):
        notices.emit(NOTICE)
    running = asyncio.create_task(relay.run())
    await asyncio.sleep(0.05)
    running.cancel()
    assert store.carried == RELAY_MAX


@pytest.mark.parametrize("notice", [NOTICE, Notice("", "", RoundStatus.VOID, "", "", "")])
def test_notices_are_written_and_read(notice: Notice) -> None:
    assert parse_notice(format_notice("here", notice)) == ("here", notice)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '["a","b","c","open"]', '["a","b","c","open","","",1]', '["a","b","c","lost","","",""]']
)
async def test_a_text_that_is_no_notice_is_passed_over(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_notice(text)
    notices = Notices()
    heard = listener(notices)
    with capture_logs() as logs:
        Relay(notices, "here", Store().send).take(text)
    assert heard.empty()
    assert logs == [{"event": "notice_not_understood", "log_level": "warning", "characters": len(text)}]


def test_a_listener_who_does_not_read_loses_the_oldest_and_one_who_left_hears_nothing() -> None:
    notices = Notices()
    first, second = listener(notices), listener(notices)
    sent = [replace(NOTICE, round_id=f"round-{number}") for number in range(NOTICES_MAX + 2)]
    for notice in sent:
        notices.hear(notice)
    notices.hear(replace(NOTICE, session_id="session-2"))
    assert [first.get_nowait() for _ in range(first.qsize())] == sent[2:]
    notices.leave(NOTICE.session_id, first)
    notices.hear(NOTICE)
    assert first.empty()
    assert [second.get_nowait() for _ in range(second.qsize())] == [*sent[3:], NOTICE]
    notices.leave(NOTICE.session_id, second)
    notices.leave(NOTICE.session_id, second)
    assert notices._listeners == {}


def test_what_a_process_has_sent_itself_it_does_not_hear_again() -> None:
    notices = Notices()
    heard = listener(notices)
    relay = Relay(notices, "here", Store().send)
    relay.take(format_notice("here", NOTICE))
    assert heard.empty()
    relay.take(format_notice("there", NOTICE))
    assert heard.get_nowait() == NOTICE
