"""Waiting for what another task or process does, and results of coroutines that never wait (a store on SQLite)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

_Result = TypeVar("_Result")


def at_once(awaited: Awaitable[_Result]) -> _Result:
    """The result; RuntimeError if it waits after all."""
    try:
        awaited.__await__().__next__()
    except StopIteration as done:
        result: _Result = done.value
        return result
    raise RuntimeError("it waits")


def all_at_once(stream: AsyncIterator[_Result]) -> list[_Result]:
    """The rows of a stream."""
    rows = []
    while True:
        try:
            rows.append(at_once(anext(stream)))
        except StopAsyncIteration:
            return rows


async def until(holds: Callable[[], object], limit_s: float = 60) -> None:
    """Return once it holds; TimeoutError if it does not in time. `holds` may be a coroutine function."""
    async with asyncio.timeout(limit_s):
        while True:
            found = holds()
            if await found if isinstance(found, Awaitable) else found:
                return
            await asyncio.sleep(0.005)
