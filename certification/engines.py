"""Where `verify_chunk` runs: in this process, in a pool of processes, or on a running cluster of Ray or Dask.

Results are the same everywhere and come in the order of the chunks. Only a few chunks are under way at a time. A
cluster is trusted: whoever runs it could let a bad signature pass. Its workers need the same version of this package,
because only the name of the function is sent. The extras `ray` and `dask` install the packages `ray` and `distributed`.
EngineError where the cluster does not answer, or a worker is lost or fails.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from certification.chunks import LogChunk, VerifiedChunk, verify_chunk
from certification.processes import HELD, ProcessLostError, in_order, pool

ENGINES: Final = ("process", "ray", "dask")
_HELD_MAX: Final = 128
TIMEOUT_S: Final = 60
"""How long a cluster may take to answer."""


class EngineError(Exception):
    """The engine does not answer or was lost. This says nothing about the log."""


@dataclass(frozen=True, slots=True)
class Engine:
    """`begin` hands a chunk over, `wait` returns what was found, `drop` cancels it.

    `is_here`: this process verifies, so its CPU time is that of the verification.
    """

    begin: Callable[[LogChunk], Any]
    wait: Callable[[Any], VerifiedChunk]
    drop: Callable[[Any], object]
    workers: int
    is_here: bool = False


def verified(chunks: Iterable[LogChunk], engine: Engine) -> Iterator[tuple[LogChunk, VerifiedChunk]]:
    """Each chunk and what was found, in order."""
    most = 1 if engine.is_here else min(engine.workers * HELD, _HELD_MAX)
    return in_order(chunks, engine.begin, engine.wait, engine.drop, most)


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
    def wait(answer: Future[VerifiedChunk]) -> VerifiedChunk:
        try:
            return answer.result()
        except ProcessLostError as error:
            raise EngineError(str(error)) from None

    with pool(verify_chunk, workers) as begin:
        yield Engine(begin, wait, lambda answer: answer.cancel(), workers)


@contextmanager
def _ray(cluster: str | None) -> Iterator[Engine]:
    ray = _library("ray")
    try:
        ray.init(address=cluster or "auto", log_to_driver=False, logging_level="ERROR")
    except Exception as error:  # noqa: BLE001 - whatever the library makes of an address
        raise EngineError(f"no Ray cluster at {cluster or 'auto'}: {_short(error)}") from None
    try:
        task = ray.remote(max_retries=2)(verify_chunk)

        def wait(answer: Any) -> VerifiedChunk:
            try:
                found: VerifiedChunk = ray.get(answer)
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

        def wait(answer: Any) -> VerifiedChunk:
            try:
                found: VerifiedChunk = answer.result()
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
