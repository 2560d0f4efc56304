"""Where work runs: in this process, in a pool of processes, or on a running cluster of Ray or Dask.

Work is a pure function of one value. Answers are the same everywhere and come in the order of the values. Only a few
values are under way at a time. A cluster is trusted: whoever runs it could change an answer, let a bad signature pass,
or read what is sent. Its workers need the same version of this package and of its libraries, because a function is
sent by its name. The extras `ray` and `dask` install the packages `ray` and `distributed`. EngineError where the
cluster does not answer, or a worker is lost or fails.
"""

from __future__ import annotations

import argparse
import importlib
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from certification.processes import HELD, ProcessLostError, in_order, pool
from certification.replay import whole_number

ENGINES: Final = ("process", "ray", "dask")
_HELD_MAX: Final = 128
TIMEOUT_S: Final = 60
"""How long a cluster may take to answer."""

_A = TypeVar("_A")
_B = TypeVar("_B")


class EngineError(ConnectionError):
    """The engine does not answer or was lost. This says nothing about what it was to work on."""


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """The engine of a command line: `workers` are the pool's processes, `cluster` is the address of Ray or Dask."""

    name: str = "process"
    workers: int = 1
    cluster: str | None = None

    @property
    def place(self) -> str:
        """Where chance of this engine comes from, for a report; empty: from this machine."""
        return "" if self.name == "process" else f"on the workers of a {self.name.capitalize()} cluster"


ALONE: Final = EngineChoice()
"""In this process."""


def add_engine_options(parser: argparse.ArgumentParser, what: str, *, workers: int | None = None) -> None:
    """`--engine`, `--workers` and `--cluster`. `what` runs there; without `workers` there are as many as cores."""
    parser.add_argument("--engine", choices=ENGINES, default="process", help=f"where {what}")
    parser.add_argument(
        "--workers",
        type=whole_number(1),
        default=workers or os.cpu_count() or 1,
        metavar="N",
        help="processes (1: this one alone)",
    )
    parser.add_argument("--cluster", metavar="ADDRESS", help="of the Ray or Dask cluster that is there already")


def engine_of(options: argparse.Namespace) -> EngineChoice:
    """What the options say."""
    return EngineChoice(options.engine, options.workers, options.cluster)


@dataclass(frozen=True, slots=True)
class Engine(Generic[_A, _B]):
    """`begin` hands a value over, `wait` returns the answer, `drop` cancels it.

    `is_here`: this process works, so its CPU time is that of the work.
    """

    begin: Callable[[_A], Any]
    wait: Callable[[Any], _B]
    drop: Callable[[Any], object]
    workers: int
    is_here: bool = False


def answered(values: Iterable[_A], engine: Engine[_A, _B]) -> Iterator[tuple[_A, _B]]:
    """Each value and its answer, in order."""
    most = 1 if engine.is_here else min(engine.workers * HELD, _HELD_MAX)
    return in_order(values, engine.begin, engine.wait, engine.drop, most)


def over(work: Callable[[_A], _B], values: Iterable[_A], choice: EngineChoice) -> Iterator[_B]:
    """The answers alone, by an engine that is started for them. EngineError, and on this machine what `work` raises."""
    with started(work, choice) as engine:
        for _, answer in answered(values, engine):
            yield answer


@contextmanager
def started(work: Callable[[_A], _B], choice: EngineChoice) -> Iterator[Engine[_A, _B]]:
    """The engine, for this function. It is sent to each worker once, with its data. EngineError."""
    match choice.name:
        case "ray":
            opened = _ray(work, choice.cluster)
        case "dask":
            opened = _dask(work, choice.cluster)
        case _ if choice.workers > 1:
            opened = _pool(work, choice.workers)
        case _:
            opened = _alone(work)
    with opened as engine:
        yield engine


@contextmanager
def _alone(work: Callable[[_A], _B]) -> Iterator[Engine[_A, _B]]:
    yield Engine(lambda value: value, work, lambda _: None, 1, is_here=True)


@contextmanager
def _pool(work: Callable[[_A], _B], workers: int) -> Iterator[Engine[_A, _B]]:
    def wait(answer: Future[_B]) -> _B:
        try:
            return answer.result()
        except ProcessLostError as error:
            raise EngineError(str(error)) from None

    with pool(work, workers) as begin:
        yield Engine(begin, wait, lambda answer: answer.cancel(), workers)


def _apply(work: Callable[[_A], _B], value: _A) -> _B:
    return work(value)


@contextmanager
def _ray(work: Callable[[_A], _B], cluster: str | None) -> Iterator[Engine[_A, _B]]:
    ray = _library("ray")
    try:
        ray.init(address=cluster or "auto", log_to_driver=False, logging_level="ERROR")
    except Exception as error:  # noqa: BLE001 - whatever the library makes of an address
        raise EngineError(f"no Ray cluster at {cluster or 'auto'}: {_short(error)}") from None
    try:
        task = ray.remote(max_retries=2)(_apply)
        sent = ray.put(work)

        def wait(answer: Any) -> _B:
            try:
                found: _B = ray.get(answer)
            except ray.exceptions.RayError as error:
                raised = getattr(error, "cause", None) or error  # without colours and frames
                raise EngineError(f"a worker of Ray failed: {_short(raised)}") from None
            return found

        workers = max(1, int(ray.cluster_resources().get("CPU", 1)))
        yield Engine(lambda value: task.remote(sent, value), wait, ray.cancel, workers)
    finally:
        ray.shutdown()


@contextmanager
def _dask(work: Callable[[_A], _B], cluster: str | None) -> Iterator[Engine[_A, _B]]:
    distributed = _library("distributed", "dask")
    if cluster is None:
        raise EngineError("--engine dask needs --cluster ADDRESS, that of its scheduler, such as tcp://host:8786")
    try:
        client = distributed.Client(cluster, timeout=TIMEOUT_S, set_as_default=False)
    except Exception as error:  # noqa: BLE001 - whatever the library makes of an address
        raise EngineError(f"no Dask cluster at {cluster}: {_short(error)}") from None
    with client:

        def wait(answer: Any) -> _B:
            try:
                found: _B = answer.result()
            except Exception as error:  # noqa: BLE001 - what the worker raised, or that it is gone
                raise EngineError(f"a worker of Dask failed: {_short(error)}") from None
            answer.release()
            return found

        threads = sum(client.nthreads().values())
        if not threads:
            raise EngineError(f"the Dask cluster at {cluster} has no worker")
        sent = client.scatter(work, broadcast=True)
        yield Engine(
            lambda value: client.submit(_apply, sent, value, pure=False), wait, lambda answer: answer.cancel(), threads
        )


def _library(module: str, extra: str = "") -> Any:
    name, package = extra or module, module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ImportError:
        raise EngineError(f"--engine {name} needs the package {package}, which is not here") from None


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]
