"""A thread that waits for the disk, one for each embedded book.

Refuses to run two messages of one book at the same time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from rgs.core.errors import UnavailableError

_Result = TypeVar("_Result")


class OwnThread:
    """One thread for the blocking calls of one store: the event loop never waits for the disk, calls keep their order.

    A call that was begun runs to its end even if the task that awaits it is cancelled: it may have happened.
    """

    def __init__(self, name: str, unavailable: type[UnavailableError]) -> None:
        self._name = name
        self._unavailable = unavailable
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)

    async def run(self, call: Callable[[], _Result]) -> _Result:
        """The call's answer or error; the unavailable error after `close`."""
        try:
            work = self._pool.submit(call)
        except RuntimeError:
            raise self._unavailable(f"the embedded {self._name} is closed") from None
        return await asyncio.wrap_future(work)

    async def close(self) -> None:
        """Finish what was submitted and end the thread."""
        await asyncio.to_thread(self._pool.shutdown)
