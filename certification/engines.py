"""Where `verify_chunk` runs: in this process, in a pool of processes, or on a cluster that is there already, of Ray or
of Dask. What is found is the same, and comes in the order of the chunks; few chunks are under way at any time.

A cluster is taken at its word: who runs it could have a bad signature pass as good. Its workers need this package
installed, of the same version: the function is named to them, not sent. Refuses to start a cluster, and to go on where
a worker is lost or cannot verify; what `ray` and `dask` need are extras, the packages `ray` and `distributed`.
"""

from __future__ import annotations

import importlib
import multiprocessing
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any, Final

from certification.chunks import Chunk, Verified, verify_chunk

ENGINES: Final = ("process", "ray", "dask")
_HELD: Final = 2
"""Chunks that each worker has before it; what waits is bounded by that."""
_HELD_MAX: Final = 128
TIMEOUT_S: Final = 60
"""How long a cluster may take to answer at all."""


class EngineError(Exception):
    """The engine is not there, or was lost on the way: nothing is said of the log."""


@dataclass(frozen=True, slots=True)
class Engine:
    """`begin` gives a chunk away, `wait` has what was found of it, `drop` wants it no more.

    `is_here`: it is this process that verifies, and its CPU time is that of the verification.
    """

    begin: Callable[[Chunk], Any]
    wait: Callable[[Any], Verified]
    drop: Callable[[Any], object]
    workers: int
    is_here: bool = False


def verified(chunks: Iterable[Chunk], engine: Engine) -> Iterator[tuple[Chunk, Verified]]:
    """Each chunk and what was found, in order."""
    running: deque[tuple[Chunk, Any]] = deque()
    most = 1 if engine.is_here else min(engine.workers * _HELD, _HELD_MAX)
    try:
        for chunk in chunks:
            running.append((chunk, engine.begin(chunk)))
            if len(running) >= most:
                first, answer = running.popleft()
                yield first, engine.wait(answer)
        while running:
            first, answer = running.popleft()
            yield first, engine.wait(answer)
    finally:
        for _, answer in running:
            engine.drop(answer)


@contextmanager
def started(name: str, workers: int, cluster: str | None) -> Iterator[Engine]:
    """The engine of a command line: `workers` are those of the pool, `cluster` is the address of Ray or Dask.
    EngineError.
    """
    match name:
        case "ray":
            opened = _ray(cluster)
        case "dask":
            opened = _dask(cluster)
        case _ if workers > 1:
            opened = _pool(workers)
        case _:
            opened = _alone()
    with opened as engine:
        yield engine


@contextmanager
def _alone() -> Iterator[Engine]:
    yield Engine(lambda chunk: chunk, verify_chunk, lambda _: None, 1, is_here=True)


@contextmanager
def _pool(workers: int) -> Iterator[Engine]:
    """Each process has a pipe of its own, whose other end nobody holds but the thread that asks it: where a process is
    killed, at whatever moment, that pipe is at its end. The executor of the standard library shares its pipes among
    the processes: one that is started while another is killed is overlooked there, and keeps them open for ever.
    """
    spawn = multiprocessing.get_context("spawn")
    idle: SimpleQueue[Connection] = SimpleQueue()
    processes = []

    def ask(chunk: Chunk) -> Verified:
        end = idle.get()
        try:
            end.send(chunk)
            found: Verified = end.recv()
        finally:
            idle.put(end)
        return found

    def wait(answer: Future[Verified]) -> Verified:
        try:
            return answer.result()
        except (EOFError, OSError):
            raise EngineError("a process of the pool was lost") from None

    with ExitStack() as ends, ThreadPoolExecutor(workers) as threads:
        try:
            for _ in range(workers):
                ours, theirs = spawn.Pipe()
                idle.put(ends.enter_context(ours))
                with theirs:
                    process = spawn.Process(target=_answer, args=(theirs,), daemon=True)
                    process.start()
                processes.append(process)
            yield Engine(lambda chunk: threads.submit(ask, chunk), wait, lambda answer: answer.cancel(), workers)
        finally:
            for process in processes:
                process.kill()  # and no thread waits for it any more
                process.join()


def _answer(end: Connection) -> None:
    """What a process of the pool does, as long as there is somebody to ask it."""
    with suppress(EOFError, OSError, KeyboardInterrupt):
        while True:
            end.send(verify_chunk(end.recv()))


@contextmanager
def _ray(cluster: str | None) -> Iterator[Engine]:
    ray = _library("ray")
    try:
        ray.init(address=cluster or "auto", log_to_driver=False, logging_level="ERROR")
    except Exception as error:  # noqa: BLE001 - whatever the library makes of an address
        raise EngineError(f"no Ray cluster at {cluster or 'auto'}: {_short(error)}") from None
    try:
        task = ray.remote(max_retries=2)(verify_chunk)

        def wait(answer: Any) -> Verified:
            try:
                found: Verified = ray.get(answer)
            except ray.exceptions.RayError as error:
                raise EngineError(f"a worker of Ray failed: {_short(error)}") from None
            return found

        yield Engine(task.remote, wait, ray.cancel, max(1, int(ray.cluster_resources().get("CPU", 1))))
    finally:
        ray.shutdown()


@contextmanager
def _dask(cluster: str | None) -> Iterator[Engine]:
    distributed = _library("distributed", "dask")
    if cluster is None:
        raise EngineError("--engine dask needs --cluster ADDRESS, that of its scheduler, such as tcp://host:8786")
    try:
        client = distributed.Client(cluster, timeout=TIMEOUT_S, set_as_default=False)
    except Exception as error:  # noqa: BLE001 - whatever the library makes of an address
        raise EngineError(f"no Dask cluster at {cluster}: {_short(error)}") from None
    with client:

        def wait(answer: Any) -> Verified:
            try:
                found: Verified = answer.result()
            except Exception as error:  # noqa: BLE001 - what the worker raised, or that it is gone
                raise EngineError(f"a worker of Dask failed: {_short(error)}") from None
            answer.release()
            return found

        threads = sum(client.nthreads().values())
        if not threads:
            raise EngineError(f"the Dask cluster at {cluster} has no worker")
        yield Engine(
            lambda chunk: client.submit(verify_chunk, chunk, pure=False), wait, lambda answer: answer.cancel(), threads
        )


def _library(module: str, extra: str = "") -> Any:
    name, package = extra or module, module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ImportError:
        raise EngineError(f"--engine {name} needs the package {package}, which is not here") from None


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]
