"""Coroutines that never wait, as those of a store on SQLite: their results without a loop, or inside of one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
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
