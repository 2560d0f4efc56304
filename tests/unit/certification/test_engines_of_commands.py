"""`certify simulate`, `rng` and `rtp` with each engine: the same report to the last byte. Clusters are real ones of
two workers, processes of their own, on this machine.
"""

from __future__ import annotations

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
from tests.support.clusters import CLUSTERS, cluster

RNG = ("rng", "--decks", "900", "--seed", "07")


@pytest.fixture(scope="module", params=CLUSTERS)
def on_cluster(request: pytest.FixtureRequest) -> Iterator[list[str]]:
    """The options of a cluster of two workers."""
    with cluster(request.param) as address:
        yield ["--engine", request.param, "--cluster", address]


def place(options: list[str]) -> str:
    """How a report names the cluster of these options."""
    return f"on the workers of a {options[1].capitalize()} cluster"


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    assert main(arguments) == 0, capsys.readouterr()
    return capsys.readouterr().out


def test_simulated_rounds(
    on_cluster: list[str], casino: Enumerated, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulation, "Enumerated", lambda _: casino)
    monkeypatch.setattr(simulation, "_CHUNK", 70)
    command = ("simulate", "casino-holdem", "--rounds", "300", "--z", "30")
    alone = printed(capsys, *command, "--seed", "03", "--workers", "1")
    assert printed(capsys, *command, "--seed", "03", *on_cluster) == alone
    assert printed(capsys, *command, "--seed", "04", *on_cluster) != alone
    assert printed(capsys, *command, *on_cluster).startswith(
        f"casino-holdem: 300 rounds, decks from the production generator {place(on_cluster)}\n"
    )


def test_the_battery(
    on_cluster: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(battery, "CHUNK", 300)
    alone = printed(capsys, *RNG, "--json", "--workers", "1")
    assert printed(capsys, *RNG, "--json", *on_cluster) == alone
    second = ("--replicates", "20", "--alpha", "0.001", "--json")
    assert printed(capsys, *RNG[:2], "300", *RNG[3:], *second, *on_cluster) == printed(
        capsys, *RNG[:2], "300", *RNG[3:], *second, "--workers", "1"
    )
    main(["rng", "--decks", "300", "--json", *on_cluster])
    (run, *_) = json.loads(capsys.readouterr().out)["runs"]
    assert run["source"] == f"the production generator {place(on_cluster)}"


def committed() -> str:
    """The certificate that one process enumerated."""
    return (DIRECTORY / f"{load_ruleset('casino-holdem').sha256}.json").read_text("ascii")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_certificate_of_a_cluster(on_cluster: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "rtp", "casino-holdem", "--json", *on_cluster) == committed()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_certificate_of_two_processes(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "rtp", "casino-holdem", "--json", "--workers", "2") == committed()


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


def test_what_a_worker_raises_ends_the_run(on_cluster: list[str]) -> None:
    name, address = on_cluster[1], on_cluster[3]
    with pytest.raises(EngineError, match=rf"a worker of {name.capitalize()} failed: ValueError: 1 is refused"):
        list(over(refused, [1, 2, 3], EngineChoice(name, 1, address)))
