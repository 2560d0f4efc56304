"""`certify simulate`, `rng` and `rtp` with each engine: the same report to the last byte. Dask's is a real cluster of
two workers, processes of their own, on this machine.
"""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import json
from collections.abc import Iterator

import numpy as np
import pytest

from certification import simulate as simulation
from certification.__main__ import main
from certification.engines import ALONE, EngineChoice, EngineError, over, started
from certification.rtp import enumeration
from certification.rtp.certificate import Enumerated
from certification.rtp.command import DIRECTORY
from certification.rtp.enumeration import DealCounts, Game, count, decide, play, run_part
from certification.rtp.flops import FLOPS
from certification.statistics.battery import battery
from rgs.core.rulesets import load_ruleset

CLUSTERED = (
    pytest.mark.filterwarnings("default"),  # theirs are not ours to mend
    pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason="distributed is not installed"),
    pytest.mark.timeout(600),
)
RNG = ("rng", "--decks", "900", "--seed", "07")


@pytest.fixture(scope="module")
def dask() -> Iterator[str]:
    """The address of a cluster of two workers."""
    distributed = importlib.import_module("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        yield cluster.scheduler_address


@pytest.fixture(params=["process", pytest.param("dask", marks=CLUSTERED)])
def options(request: pytest.FixtureRequest) -> list[str]:
    """Those of two processes, then those of the cluster."""
    if request.param == "process":
        return ["--workers", "2"]
    return ["--engine", "dask", "--cluster", request.getfixturevalue("dask")]


ON_DASK = pytest.mark.parametrize("options", [pytest.param("dask", marks=CLUSTERED)], indirect=True)
"""`test_rtp_strategy` and `test_shuffle_battery` have the processes."""


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    assert main(arguments) == 0, capsys.readouterr()
    return capsys.readouterr().out


@ON_DASK
def test_simulated_rounds(
    options: list[str], casino: Enumerated, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulation, "Enumerated", lambda _: casino)
    monkeypatch.setattr(simulation, "_CHUNK", 70)
    command = ("simulate", "casino-holdem", "--rounds", "300", "--z", "30")
    alone = printed(capsys, *command, "--seed", "03", "--workers", "1")
    assert printed(capsys, *command, "--seed", "03", *options) == alone
    assert printed(capsys, *command, "--seed", "04", *options) != alone
    assert printed(capsys, *command, *options).startswith(
        "casino-holdem: 300 rounds, decks from the production generator on the workers of a Dask cluster\n"
    )


@ON_DASK
def test_the_battery(options: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(battery, "CHUNK", 300)
    alone = printed(capsys, *RNG, "--json", "--workers", "1")
    assert printed(capsys, *RNG, "--json", *options) == alone
    second = ("--replicates", "20", "--alpha", "0.001", "--json")
    assert printed(capsys, *RNG[:2], "300", *RNG[3:], *second, *options) == printed(
        capsys, *RNG[:2], "300", *RNG[3:], *second, "--workers", "1"
    )
    main(["rng", "--decks", "300", "--json", *options])
    (run, *_) = json.loads(capsys.readouterr().out)["runs"]
    assert run["source"] == "the production generator on the workers of a Dask cluster"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_certificate(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """What was committed when one process enumerated it."""
    committed = DIRECTORY / f"{load_ruleset('casino-holdem').sha256}.json"
    assert printed(capsys, "rtp", "casino-holdem", "--json", *options) == committed.read_text("ascii")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_parts_of_the_flops_add_up(uth: Enumerated, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both kinds of part, sums and slices, against the whole; and a part that is left out or comes twice is seen."""
    game = Game(load_ruleset("uth-solo"))
    with started(run_part, ALONE) as engine:
        best = play(game, uth.play.boards, engine)
        for name in ("preflop", "flop", "river", "five_strength", "holes"):
            assert np.array_equal(getattr(best, name), getattr(uth.play, name)), name
        for raise_ties in (False, True):
            assert same(count(best, raise_ties=raise_ties, engine=engine), count(best, raise_ties=raise_ties))
        assert not same(count(best, raise_ties=True), count(best)), "the test shows nothing of ties"
        for parts in (enumeration.PARTS[1:], (*enumeration.PARTS, enumeration.PARTS[0])):
            monkeypatch.setattr(enumeration, "PARTS", parts)
            assert not same(count(best, engine=engine), uth.counts)
    valued = enumeration.value(game, uth.play.boards)
    first, rest = decide(valued, 0, 1), decide(valued, 1, FLOPS)
    assert np.array_equal(first.holes + rest.holes, uth.play.holes)
    enumeration._held.clear()


def same(one: DealCounts, other: DealCounts) -> bool:
    tables = np.array_equal(one.final, other.final) and np.array_equal(one.five, other.five)
    return tables and one.indifferent_rivers == other.indifferent_rivers


def test_the_parts_are_all_flops() -> None:
    ends = [0, *(end for _, end in enumeration.PARTS)]
    assert list(enumeration.PARTS) == list(itertools.pairwise(ends))
    assert ends[-1] == FLOPS


@pytest.mark.parametrize("command", [("rng",), ("simulate", "casino-holdem"), ("rtp", "casino-holdem")])
def test_no_cluster_is_named(
    command: tuple[str, ...], casino: Enumerated, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulation, "Enumerated", lambda _: casino)
    monkeypatch.setattr("certification.engines._library", lambda *_: None)
    assert main([*command, "--engine", "dask"]) == 2
    assert capsys.readouterr().err == (
        f"certify {command[0]}: --engine dask needs --cluster ADDRESS, that of its scheduler, such as tcp://host:8786\n"
    )


@pytest.mark.parametrize("other", [("--programs",), ("--statements", "file")])
def test_what_runs_here_only_takes_no_engine(other: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["rng", *other, "--engine", "ray"])
    assert caught.value.code == 2
    assert "--engine ray has no part in --programs and --statements" in capsys.readouterr().err


def refused(value: int) -> int:
    """A function that can be named to another process."""
    raise ValueError(f"{value} is refused")


@pytest.mark.parametrize("name", [pytest.param("dask", marks=CLUSTERED)])
def test_what_a_worker_raises_ends_the_run(name: str, dask: str) -> None:
    with pytest.raises(EngineError, match="a worker of Dask failed: ValueError: 1 is refused"):
        list(over(refused, [1, 2, 3], EngineChoice(name, 1, dask)))
