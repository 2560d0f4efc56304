"""Outward calls: the operator's wallet and the regulator's central system, each a seam with an embedded default.

Here stands what both embedded defaults need: a thread that waits for the disk, and the bounds of an amount. Refuses to
run two messages of one client at the same time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from rgs.core.errors import UnavailableError
from rgs.core.values import check_range

AMOUNT_MINOR_MAX: Final = 10**18 - 1
"""Largest amount of a message: the 18 digits that an integer of a statement holds."""

_Result = TypeVar("_Result")


def check_amount(amount_minor: int, field: str, least: int) -> int:
    """The amount if it is a whole number from `least` to AMOUNT_MINOR_MAX; InvalidFieldError naming `field` if not."""
    return check_range(amount_minor, field, least, AMOUNT_MINOR_MAX)


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
