"""When the writer commits what waits, over a loop whose time the test sets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from rgs.store.changes import Change
from rgs.store.writer import LINGER_S, QUIET_S, Writer


class Loop:
    """A loop that runs nothing, and keeps what is to be called later."""

    def __init__(self) -> None:
        self.time_s = 100.0
        self.later: list[tuple[float, Callable[..., object]]] = []

    def time(self) -> float:
        return self.time_s

    def call_later(
        self, delay_s: float, call: Callable[..., object], *_: object, **__: object
    ) -> asyncio.TimerHandle | None:
        self.later.append((delay_s, call))
        return None

    def run_in_executor(self, *_: object) -> asyncio.Future[Any]:
        return asyncio.get_running_loop().create_future()


def waiting(writer: Writer, count: int) -> None:
    """So many changes wait under a load that expects more."""
    writer._load = 99.0
    writer._waiting = [(Change(), asyncio.get_running_loop().create_future()) for _ in range(count)]


async def test_a_group_waits_until_nothing_has_come_for_a_while() -> None:
    loop: Any = Loop()
    writer = Writer(lambda _: [])
    waiting(writer, 1)
    writer._consider(loop)
    assert loop.later == [(QUIET_S, writer._timed_out)]
    loop.time_s += QUIET_S / 2
    waiting(writer, 2)
    writer._timer = asyncio.get_running_loop().call_later(60, lambda: None)
    writer._consider(loop)
    writer._timer.cancel()
    loop.time_s += QUIET_S / 2
    writer._timed_out(loop)
    assert loop.later[1:] == [(pytest.approx(QUIET_S / 2), writer._timed_out)], "the second one came in between"
    assert writer.groups == 0
    loop.time_s += max(QUIET_S, LINGER_S)
    writer._timed_out(loop)
    assert (writer.groups, writer.changes, writer._waiting) == (1, 2, [])
    writer.thread.shutdown()


@pytest.mark.parametrize(("count", "committing"), [(0, 0), (1, 1), (0, 1)])
async def test_nothing_is_begun_for_nobody_nor_beside_another_group(count: int, committing: int) -> None:
    loop: Any = Loop()
    loop.time_s += 60
    writer = Writer(lambda _: [])
    waiting(writer, count)
    writer._committing = committing
    writer._timed_out(loop)
    writer._consider(loop)
    assert (writer.groups, loop.later) == (0, [])
    assert len(writer._waiting) == count
    writer.thread.shutdown()
