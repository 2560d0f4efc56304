"""Grouped commits: many callers, one writer (ARCHITECTURE 2.18, durable before said).

A change is committed at once when no other is likely to come, else together with its neighbours. A group is closed when
as many wait as were under way lately, at most `GROUP_MAX`; or when none came for `QUIET_S`; and never later than
`LINGER_S` after its first. No caller is answered before the commit. None waits longer than `COMMIT_WAIT_S` either: the
commit goes on, its callers get StoreUnknownError, and other changes are refused at once until it has ended. `apply`
does the work, in the writer's own thread or as a coroutine. It is done for no caller: what it logs has no trace id.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context
from typing import Any

from rgs.observe.histogram import LATENCY_S, SIZES, Histogram
from rgs.store.changes import Change, Signed, StoreError, StoreUnknownError

GROUP_MAX = 32
"""Changes that make a group full."""
LINGER_S = 0.005
"""Longest wait of a change for company, in seconds (ARCHITECTURE 2.18: 2 to 5 ms)."""
QUIET_S = 0.002
"""The wait ends after so long without another change, in seconds."""
COMMIT_WAIT_S = 6.0
"""Longest wait of a caller for the commit of its group, in seconds: a little longer than SQLite waits for a lock."""
_LOAD_DECAY = 0.9
_TIMER_SLACK_S = 0.0003

CommitOutcome = tuple[Signed, ...] | Exception
Apply = Callable[[list[Change]], Sequence[CommitOutcome]]
ApplyAsync = Callable[[list[Change]], Coroutine[Any, Any, Sequence[CommitOutcome]]]


class Writer:
    """One per store and process. `commit` returns after the commit, or raises the error that `apply` gave for it."""

    def __init__(self, apply: Apply | ApplyAsync, refused: Callable[[Change], None] = lambda _: None) -> None:
        """`refused` is called with every change that never came to `apply`."""
        self._apply = apply
        self._refused = refused
        self._is_async = inspect.iscoroutinefunction(apply)
        self._context = Context()
        """Without what callers have in theirs: timers and tasks would take the one of the call that began a group."""
        self.thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="store-writer")
        """The writer's. Other work that writes now and then uses it too."""
        self._waiting: list[tuple[Change, asyncio.Future[tuple[Signed, ...]]]] = []
        self._committing = 0
        self._load = 1.0
        self._timer: asyncio.TimerHandle | None = None
        self._first_s = self._last_s = 0.0
        """When the first and the last of the waiting changes came."""
        self._overdue: asyncio.TimerHandle | None = None
        self._group: list[tuple[Change, asyncio.Future[tuple[Signed, ...]]]] = []
        """What is being committed."""
        self.is_stuck = False
        """Whether the commit of a group takes longer than any caller waits."""
        self._closing = False
        self._closed = False
        self.groups = 0
        self.changes = 0
        self.group_sizes = Histogram(SIZES)
        self.group_times = Histogram(LATENCY_S)
        """Of the groups that have ended: their changes, and the seconds that their commits took."""
        self._begun_s = 0.0

    async def commit(self, change: Change) -> tuple[Signed, ...]:
        """Durable when this returns. A cancelled caller does not undo the commit. StoreError after `close`, and while
        the writer is stuck; StoreUnknownError if it becomes so.
        """
        if self._closed:
            raise StoreError("the store is closed")
        if self.is_stuck:
            self._refused(change)
            raise StoreError("the store is not answering; nothing of it took effect")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[tuple[Signed, ...]] = loop.create_future()
        self._waiting.append((change, future))
        self._load = max(self._load, float(len(self._waiting) + self._committing))
        self._consider(loop)
        return await future

    async def close(self) -> None:
        """Commit what waits, then stop the thread. A group that is stuck is not waited for."""
        self._closing = True
        loop = asyncio.get_running_loop()
        while (self._waiting or self._committing) and not (self.is_stuck and self._is_async):
            self._consider(loop)
            await asyncio.sleep(0.001)
        self._closed = True
        self.thread.shutdown(wait=True)

    def _consider(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._committing or not self._waiting:
            return
        waiting = len(self._waiting)
        self._last_s = loop.time()
        if self._closing or waiting >= min(GROUP_MAX, int(self._load)):
            self._dispatch(loop)
        elif self._timer is None:
            self._first_s = self._last_s
            self._timer = loop.call_later(QUIET_S, self._timed_out, loop, context=self._context)

    def _timed_out(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        if not self._waiting or self._committing:
            return
        left_s = min(self._last_s + QUIET_S, self._first_s + LINGER_S) - loop.time()
        if left_s > _TIMER_SLACK_S:
            self._timer = loop.call_later(left_s, self._timed_out, loop, context=self._context)
        else:
            self._dispatch(loop)

    def _dispatch(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        group, self._waiting = self._waiting, []
        self._committing = len(group)
        self.groups += 1
        self.changes += len(group)
        self._group = group
        self._begun_s = loop.time()
        self._overdue = loop.call_later(COMMIT_WAIT_S, self._give_up, context=self._context)
        changes = [change for change, _ in group]
        job: asyncio.Future[Sequence[CommitOutcome]]
        if self._is_async:
            job = loop.create_task(self._apply(changes), context=self._context)  # type: ignore[arg-type]
        else:
            job = loop.run_in_executor(self.thread, self._apply, changes)  # type: ignore[arg-type]
        job.add_done_callback(lambda done: self._finish(loop, group, done), context=self._context)

    def _give_up(self) -> None:
        """Answer those who wait; the group itself goes on."""
        self.is_stuck = True
        for _, future in self._group:
            if not future.done():
                future.set_exception(
                    StoreUnknownError("the store did not answer in time: send the same request id again")
                )
        waiting, self._waiting = self._waiting, []
        for change, future in waiting:
            self._refused(change)
            if not future.done():
                future.set_exception(StoreError("the store is not answering; nothing of it took effect"))

    @property
    def draws_unknown(self) -> int:
        """Draws in a group that is stuck: no caller waits for it, and its outcome is not known."""
        return sum(1 for change, _ in self._group if change.draw_no) if self.is_stuck else 0

    def _finish(
        self,
        loop: asyncio.AbstractEventLoop,
        group: list[tuple[Change, asyncio.Future[tuple[Signed, ...]]]],
        done: asyncio.Future[Sequence[CommitOutcome]],
    ) -> None:
        self._committing = 0
        self._group, self.is_stuck = [], False
        self.group_sizes.observe(len(group))
        self.group_times.observe(loop.time() - self._begun_s)
        if self._overdue is not None:
            self._overdue.cancel()
        # Changes that came while this group was committed belong to the same load.
        self._load = max(1.0, self._load * _LOAD_DECAY, float(len(group)))
        failure = done.exception()
        outcomes: Sequence[CommitOutcome] = [failure] * len(group) if isinstance(failure, Exception) else done.result()
        for (_, future), outcome in zip(group, outcomes, strict=True):
            if future.done():  # its caller has gone; the effect stays
                continue
            if isinstance(outcome, Exception):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)
        self._consider(loop)
