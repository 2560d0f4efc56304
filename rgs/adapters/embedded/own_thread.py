"""A thread for the blocking calls of one embedded book. It runs one call at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from rgs.core.errors import UnavailableError

_Result = TypeVar("_Result")


class OwnThread:
    """One thread for the blocking calls of one store, in their order. The event loop never waits for the disk.

    A call that has begun runs to its end even if the task that awaits it is cancelled.
    """

    def __init__(self, name: str, unavailable: type[UnavailableError]) -> None:
        self._name = name
        self._unavailable = unavailable
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)

    async def run(self, call: Callable[[], _Result]) -> _Result:
        """Run the call; return its answer or raise its error. The unavailable error after `close`."""
        try:
            work = self._pool.submit(call)
        except RuntimeError:
            raise self._unavailable(f"the embedded {self._name} is closed") from None
        return await asyncio.wrap_future(work)

    async def close(self) -> None:
        """Run what was submitted and end the thread."""
        await asyncio.to_thread(self._pool.shutdown)
