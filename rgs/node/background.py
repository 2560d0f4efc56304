"""Background work of a server, repeated from its start to its stop. Running work is awaited, up to a time limit."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from rgs.core.errors import RgsError
from rgs.store.interface import Store

Work = Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Background:
    """The background work of one server."""

    opened: contextlib.AsyncExitStack
    """When this is closed, the work ends, the newest first."""
    stopping: asyncio.Event
    """Set when the server begins to stop."""
    pause_s: float
    patience_s: float
    note_fault: Callable[[str], None]
    """Called for every failure that is not an `RgsError`."""

    def run(self, name: str, work: Work, pause_s: float | None = None, *, to_the_end: bool = False) -> None:
        """Do the work now and after each pause, until the server stops. `to_the_end`: until the calls under way have
        been answered.
        """
        ended = asyncio.Event() if to_the_end else self.stopping
        task = asyncio.create_task(self._repeat(name, work, pause_s or self.pause_s, ended))
        self.opened.push_async_callback(_finished, task, self.patience_s)
        self.opened.callback(ended.set)

    async def _repeat(self, name: str, work: Work, pause_s: float, ended: asyncio.Event) -> None:
        failure = ""
        while not ended.is_set():
            try:
                await work()
                failure = ""
            except Exception as error:  # noqa: BLE001 - the work is tried again; a new reason is logged
                reason = error.reason if isinstance(error, RgsError) else type(error).__name__
                if not isinstance(error, RgsError):
                    self.note_fault("BACKGROUND")
                if reason != failure:
                    structlog.get_logger().warning("background_work_failed", work=name, exc_info=error)
                failure = reason
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), pause_s)


async def lead(store: Store, duty: str, work: Work) -> None:
    """Do work that one process does for all over the store, if this process leads the duty."""
    if await store.lead(duty):
        await work()


async def _finished(task: asyncio.Task[None], patience_s: float) -> None:
    """Wait for the task; cancel it after `patience_s`. Its operation continues at the next start."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(task, patience_s)
