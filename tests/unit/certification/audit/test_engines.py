"""The engines of `certify log`: each finds what one process finds, in order, with few chunks under way; those of
clusters on a real local one, where their library is installed.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import multiprocessing
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from certification import auditing, engines
from certification.chunks import Found, LogChunk, VerifiedChunk, named_keys, verify_chunk
from certification.engines import Engine, EngineChoice, EngineError, answered, started
from tests.support.clusters import CLUSTERS, cluster, clustered
from tests.support.records.audited import Case, a_round, entries_of
from tests.support.records.factory import RecordFactory


@pytest.fixture
def case(tmp_path: Path) -> Case:
    factory = RecordFactory("engines")
    worker = factory.start("node-1-b1-w0")
    player = factory.open(worker)
    factory.buy(worker, player, 50_000)
    for _ in range(12):
        a_round(factory, worker, player)
    case = Case(tmp_path, factory)
    case.publish()
    return case


def chunks_of(case: Case) -> list[LogChunk]:
    entries = entries_of(case.factory)
    keys = named_keys(entries)
    return [LogChunk(tuple(entries[at : at + 7]), keys) for at in range(0, len(entries), 7)]


def found_by(case: Case, name: str, workers: int, cluster: str | None) -> list[tuple[Found, ...]]:
    with started(verify_chunk, EngineChoice(name, workers, cluster)) as engine:
        return [found.found for _, found in answered(chunks_of(case), engine)]


def test_many_processes_find_what_one_finds(case: Case) -> None:
    alone = found_by(case, "process", 1, None)
    assert [one[0] for found in alone for one in found] == [bytes.fromhex(one) for one in case.factory.hashes]
    # Node keys are not among those that the entries name. Whatever is signed here is in its form.
    assert {(is_signed, formed) for found in alone for _, _, is_signed, formed in found} == {
        (True, True),
        (False, False),
    }
    assert found_by(case, "process", 2, None) == alone


def test_few_chunks_are_under_way_and_come_in_order(case: Case) -> None:
    made = chunks_of(case) * 40
    underway: set[int] = set()
    most, dropped, number = 0, 0, itertools.count()

    def begin(chunk: LogChunk) -> tuple[int, LogChunk]:
        nonlocal most
        begun = next(number), chunk
        underway.add(begun[0])
        most = max(most, len(underway))
        return begun

    def wait(begun: tuple[int, LogChunk]) -> VerifiedChunk:
        underway.remove(begun[0])
        return verify_chunk(begun[1])

    def drop(begun: tuple[int, LogChunk]) -> None:
        nonlocal dropped
        dropped += 1

    engine: Engine[LogChunk, VerifiedChunk] = Engine(begin, wait, drop, 3)
    assert [chunk for chunk, _ in answered(iter(made), engine)] == made
    assert (most, dropped) == (6, 0)
    assert max_underway(Engine(begin, wait, drop, 10_000), made) <= 128
    before = dropped
    with contextlib.closing(answered(iter(made), engine)) as some:  # type: ignore[type-var]
        next(some)
    assert dropped - before == 5  # what was under way when the reader stopped is wanted no more


def max_underway(engine: Engine[LogChunk, VerifiedChunk], made: list[LogChunk]) -> int:
    begun = 0

    def counted() -> Iterator[LogChunk]:
        nonlocal begun
        for chunk in made:
            begun += 1
            yield chunk

    next(answered(counted(), engine))
    return begun


def test_a_process_that_is_killed_ends_the_run(case: Case) -> None:
    chunks = itertools.repeat(chunks_of(case)[0])  # without end: only the loss of a process can end it
    with started(verify_chunk, EngineChoice("process", 2)) as engine:
        found = answered(chunks, engine)
        next(found)
        multiprocessing.active_children()[0].kill()
        with pytest.raises(EngineError, match="a process of the pool was lost"):
            deque(found, maxlen=0)
    assert not multiprocessing.active_children()


def test_a_run_that_has_lost_a_process_says_nothing(
    case: Case, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def lost(*_: object) -> NoReturn:
        raise EngineError("a process of the pool was lost")

    monkeypatch.setattr(auditing, "answered", lost)
    assert case.audit() == 2
    assert "certify log: a process of the pool was lost" in capsys.readouterr().err
    assert not case.state.exists()


@pytest.mark.parametrize(("name", "module"), [("ray", "ray"), ("dask", "distributed")])
def test_an_extra_that_is_not_installed_is_named(
    case: Case, name: str, module: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = importlib.import_module

    def without(requested: str) -> object:
        if requested == module:
            raise ImportError(requested)
        return real(requested)

    monkeypatch.setattr(importlib, "import_module", without)
    assert case.audit("--engine", name, "--cluster", "127.0.0.1:1") == 2
    assert f"--engine {name} needs the package {module.partition('.')[0]}, which is not here" in capsys.readouterr().err
    assert not case.state.exists()


# --- real clusters ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CLUSTERS)
def test_a_cluster_finds_what_one_process_finds(case: Case, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert case.audit() == 0
    alone = {**case.report, "speed": None}
    with cluster(name) as address:
        assert found_by(case, name, 1, address) == found_by(case, "process", 1, None)
        case.state.unlink()
        assert case.audit("--engine", name, "--cluster", address) == 0
        assert {**case.report, "speed": None} == alone
        # A lie is found there, too: the signature of entry 9 is another's.
        entries = entries_of(case.factory)
        entries[9] = entries[9].replace(entries[9][-90:-80], entries[8][-90:-80])
        case.state.unlink()
        for path in sorted(case.log.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        case.publish(entries)
        assert case.audit("--engine", name, "--cluster", address) == 1
        assert "3 key" in case.checks


@pytest.mark.parametrize("name", [pytest.param("dask", marks=clustered("dask"))])
def test_no_cluster_at_the_address(
    case: Case, name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray's own patience with an address where nothing answers is minutes."""
    monkeypatch.setattr(engines, "TIMEOUT_S", 2)
    assert case.audit("--engine", name, "--cluster", "127.0.0.1:1") == 2
    assert "no Dask cluster at 127.0.0.1:1" in capsys.readouterr().err
    assert case.audit("--engine", name) == 2
    assert "needs --cluster ADDRESS" in capsys.readouterr().err
