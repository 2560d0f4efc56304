"""Runs a pure function over many values in processes. Answers come in order, and only a few values are held at a time.

Each process has its own pipe, and only the thread that asks it holds the other end. So a killed process closes its pipe
at once. The standard library's executor shares pipes among processes: a process that starts while another is killed
can be overlooked there and keep them open for ever. ProcessLostError where a process dies.
"""

from __future__ import annotations

import multiprocessing
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any, Final, TypeVar

HELD: Final = 2
"""Values that each process has before it."""

_A = TypeVar("_A")
_B = TypeVar("_B")
_P = TypeVar("_P")
"""The promise of an answer."""


class ProcessLostError(ChildProcessError):
    """A process was killed, perhaps because it used too much memory: its answer is missing."""


def over(work: Callable[[_A], _B], values: Iterable[_A], workers: int) -> Iterator[_B]:
    """`work` of each value, in order; in this process if `workers` is 1. ProcessLostError, and what it raises."""
    if workers <= 1:
        yield from map(work, values)
        return
    with pool(work, workers) as begin:
        for _, found in in_order(values, begin, Future.result, Future.cancel, workers * HELD + 1):
            yield found


def in_order(
    values: Iterable[_A],
    begin: Callable[[_A], _P],
    wait: Callable[[_P], _B],
    drop: Callable[[_P], object],
    most: int,
) -> Iterator[tuple[_A, _B]]:
    """Each value and its answer, in order; at most `most` values are under way. What is not waited for is dropped."""
    running: deque[tuple[_A, _P]] = deque()
    try:
        for value in values:
            running.append((value, begin(value)))
            if len(running) >= most:
                first, promised = running.popleft()
                yield first, wait(promised)
        while running:
            first, promised = running.popleft()
            yield first, wait(promised)
    finally:
        for _, promised in running:
            drop(promised)


@contextmanager
def pool(work: Callable[[_A], _B], workers: int) -> Iterator[Callable[[_A], Future[_B]]]:
    """A function from a value to its future answer. `work` is sent to each process once, with its data."""
    spawn = multiprocessing.get_context("spawn")
    idle: SimpleQueue[Connection] = SimpleQueue()
    processes = []

    def ask(value: _A) -> _B:
        end = idle.get()
        try:
            end.send(value)
            error, answer = end.recv()
        except (EOFError, OSError):
            raise ProcessLostError("a process of the pool was lost") from None
        finally:
            idle.put(end)
        if error is not None:
            raise error
        found: _B = answer
        return found

    with ExitStack() as ends, ThreadPoolExecutor(workers) as threads:
        try:
            for _ in range(workers):
                ours, theirs = spawn.Pipe()
                idle.put(ends.enter_context(ours))
                with theirs:
                    process = spawn.Process(target=_answer, args=(work, theirs), daemon=True)
                    process.start()
                processes.append(process)
            yield lambda value: threads.submit(ask, value)
        finally:
            for process in processes:
                process.kill()  # and no thread waits for it any more
                process.join()


def _answer(work: Callable[[Any], object], end: Connection) -> None:
    """The loop of a process of the pool, until its pipe closes."""
    with suppress(EOFError, OSError, KeyboardInterrupt):
        while True:
            value = end.recv()
            try:
                reported: tuple[Exception | None, object] = None, work(value)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is raised where the answer is waited for
                error.add_note(traceback.format_exc())
                reported = error, None
            end.send(reported)
