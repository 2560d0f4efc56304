"""The bench's arithmetic: ratios repeat by repeat, the shape of its file, the mix of play; a smoke of the draws."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import replace
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import pytest

from bench import __main__ as command
from bench import draws, filling, generators, history, log, memory
from bench.database import server_cpu_s
from bench.disk import fdatasync_s
from bench.figures import REPEATS_MIN, BenchError, Figure, format_results, format_table, ratio
from bench.floor import RESPONSE_BYTES, Floor
from bench.machine import describe, file_system_of
from bench.mix import CALLS_PER_ROUND, WAYS, ways_of
from bench.process import Reading
from bench.windows import CONCURRENCIES, QUICK_CONCURRENCIES, Played, Repeats, Window, figures_of, pooled
from rgs.tlog.sequencer import Sequencer
from rgs.v1 import common_pb2 as common
from tests.support.service.harness import open_harness
from tests.support.service.played import play_two_rounds

MOUNTS = """\
/dev/a / ext4 rw 0 0
tmpfs /run tmpfs rw 0 0
/dev/b /run/big xfs rw 0 0
tmpfs /runner tmpfs rw 0 0
"""


def window(*, calls: int, cpu_s: float, latency_s: float = 0.001, groups: int = 1, changes: int = 1) -> Window:
    return Window(calls, elapsed_s=2.0, cpu_s=cpu_s, latency_s=latency_s, groups=groups, changes=changes)


# --- figures ----------------------------------------------------------------------------------------------------------


def test_a_ratio_is_taken_within_each_repeat() -> None:
    # The machine becomes slower in the third repeat: the ratio of medians would be 2, that of the repeats is 3.
    figure = ratio("x", [3.0, 3.0, 30.0, 6.0, 3.0], [1.0, 1.0, 10.0, 2.0, 1.5])
    assert figure.values == (3.0, 3.0, 3.0, 3.0, 2.0)
    assert figure.entry() == {"median": 3.0, "min": 2.0, "max": 3.0, "unit": "ratio"}


def test_the_median_of_an_even_count_lies_between() -> None:
    assert Figure("x", (1.0, 2.0, 3.0, 4.0, 9.0, 9.0), "us").median == 3.5


def test_fewer_than_five_repeats_are_refused() -> None:
    with pytest.raises(BenchError, match=f"at least {REPEATS_MIN}"):
        Figure("x", (1.0, 2.0, 3.0, 4.0))


@pytest.mark.parametrize("yardstick", [[1.0, 1.0, 0.0, 1.0, 1.0], [1.0, 1.0, -0.1, 1.0, 1.0]])
def test_a_yardstick_that_measured_nothing_is_refused(yardstick: list[float]) -> None:
    with pytest.raises(BenchError, match="yardstick"):
        ratio("x", [1.0] * 5, yardstick)


def test_repeats_are_never_dropped() -> None:
    with pytest.raises(ValueError, match="shorter"):
        ratio("x", [1.0] * 6, [1.0] * 5)


def test_the_file_is_flat() -> None:
    figures = [Figure("a", (1.23456, 1.0, 2.0, 1.5, 1.1)), Figure("b", (1.0,) * 5, "us")]
    assert json.loads(format_results(figures)) == {
        "a": {"median": 1.235, "min": 1.0, "max": 2.0, "unit": "ratio"},
        "b": {"median": 1.0, "min": 1.0, "max": 1.0, "unit": "us"},
    }


def test_a_name_stands_once() -> None:
    with pytest.raises(BenchError, match="one name"):
        format_results([Figure("a", (1.0,) * 5), Figure("a", (2.0,) * 5)])


def test_the_table_has_a_row_a_figure() -> None:
    table = format_table([Figure("long_name", (1.0, 2.0, 3.0, 4.0, 5.0)), Figure("b", (10.0,) * 5, "us")])
    assert table.splitlines() == [
        "figure     median  min  max  unit",
        "long_name       3    1    5  ratio",
        "b              10   10   10  us",
    ]


# --- windows ----------------------------------------------------------------------------------------------------------


def test_cpu_is_per_call_and_over_the_echo_of_the_same_repeat() -> None:
    repeats = Repeats(
        echo=[window(calls=1000, cpu_s=0.1)] * 5,  # 100 us
        played={
            "sqlite": Played(
                unary=[window(calls=500, cpu_s=0.1, groups=20, changes=500)] * 5,  # 200 us
                stream=[window(calls=1000, cpu_s=0.12, groups=50, changes=1000)] * 5,  # 120 us
            )
        },
        fdatasync_s=[0.001] * 5,
    )
    medians = {figure.name: round(figure.median, 6) for figure in figures_of(64, repeats)}
    assert medians == {
        "echo_cpu_us_64": 100.0,
        "unary_cpu_ratio_64_sqlite": 2.0,
        "unary_round_cpu_ratio_64_sqlite": 6.14,
        "commit_batch_64_unary": 25.0,
        "unary_calls_per_s_64": 250.0,
        "stream_cpu_ratio_64_sqlite": 1.2,
        "stream_round_cpu_ratio_64_sqlite": 3.684,
        "commit_batch_64_stream": 20.0,
        "stream_calls_per_s_64": 500.0,
    }


def test_ours_is_also_over_the_sized_echo_and_the_floor_and_the_cpu_of_all_processes_stands_beside() -> None:
    played = replace(window(calls=1000, cpu_s=0.6), tree_cpu_s=0.7, database_cpu_s=0.1)
    some = Played(unary=[played] * 5, stream=[played] * 5)
    yardsticks = {
        (name, way): [window(calls=1000, cpu_s=cpu_s)] * 5
        for name, cpu_s in (("Sized", 0.1), ("Floor", 0.3))
        for way in ("unary", "stream")
    }
    repeats = Repeats(
        echo=[window(calls=1000, cpu_s=0.2)] * 5,
        played={"sqlite": some, "postgres": some},
        fdatasync_s=[0.001] * 5,
        yardsticks=yardsticks,
    )
    medians = {figure.name: round(figure.median, 6) for figure in figures_of(64, repeats)}
    assert (medians["sized_unary_cpu_ratio_64"], medians["floor_stream_cpu_ratio_64"]) == (0.5, 1.5)
    assert (medians["unary_cpu_over_sized_64_sqlite"], medians["stream_cpu_over_floor_64_sqlite"]) == (6.0, 2.0)
    assert medians["unary_all_cpu_ratio_64_postgres"] == 4.0
    assert "unary_cpu_over_floor_64_postgres" not in medians  # the floor is over SQLite


async def test_the_floor_commits_a_round_of_three_calls_with_two_signatures(tmp_path: Path) -> None:
    floor = await Floor.open(tmp_path / "floor.db")
    try:
        for _ in range(2):
            for number in (0, 1):
                for _ in range(3):
                    assert len(await floor.call(number.to_bytes(4, "big") + bytes(87))) == RESPONSE_BYTES
    finally:
        await floor.close()
    with closing(sqlite3.connect(tmp_path / "floor.db")) as db:
        (rounds,) = db.execute("SELECT count(*) FROM rounds WHERE status = 'settled'").fetchone()
        kinds = dict(db.execute("SELECT kind, count(*) FROM statements GROUP BY kind").fetchall())
        (answers,) = db.execute("SELECT count(*) FROM answers").fetchone()
        (reports,) = db.execute("SELECT count(*) FROM stage_reports").fetchone()
    assert (rounds, answers, reports) == (4, 12, 4)
    assert kinds == {"instance_start": 1, "round_opening": 4, "round_final": 4}


def test_latency_of_one_caller_is_over_echo_and_one_fdatasync() -> None:
    repeats = Repeats(
        echo=[window(calls=1, cpu_s=1.0, latency_s=0.0003)] * 5,
        played={
            "sqlite": Played(
                unary=[window(calls=1, cpu_s=1.0, latency_s=0.0012)] * 5,
                stream=[window(calls=1, cpu_s=1.0, latency_s=0.0006)] * 5,
            )
        },
        fdatasync_s=[0.0001] * 5,
    )
    medians = {figure.name: round(figure.median, 6) for figure in figures_of(1, repeats)}
    assert (medians["latency_ratio_1"], medians["stream_latency_ratio_1"], medians["fdatasync_us"]) == (3.0, 1.5, 100.0)


def test_pooled_windows_weigh_by_their_calls() -> None:
    busy = Window(calls=100, elapsed_s=0.5, cpu_s=0.3, latency_s=0.009, groups=10, changes=50)
    idle = Window(calls=900, elapsed_s=0.6, cpu_s=0.1, latency_s=0.001, groups=30, changes=150)
    both = pooled([busy, idle])
    assert (both.calls, both.groups, both.changes) == (1000, 40, 200)
    assert (both.elapsed_s, both.cpu_s, both.latency_s) == pytest.approx((1.1, 0.4, 0.005))
    assert both.cpu_per_call_s == pytest.approx(0.0004)
    assert both.batch == 5.0


@pytest.mark.parametrize("concurrencies", [CONCURRENCIES, QUICK_CONCURRENCIES])
def test_the_promised_names_are_there(concurrencies: tuple[int, ...]) -> None:
    some = [window(calls=1, cpu_s=1.0)] * 5
    played = {name: Played(some, some) for name in ("sqlite", "postgres")}
    repeats = Repeats(echo=some, played=played, fdatasync_s=[0.001] * 5)
    figures = [figure for concurrency in concurrencies for figure in figures_of(concurrency, repeats)]
    names = {figure.name for figure in figures}
    assert len(names) == len(figures)
    assert names >= {
        *(f"{way}_cpu_ratio_64_{store}" for way in ("unary", "stream") for store in ("sqlite", "postgres")),
        "commit_batch_64_unary",
        "commit_batch_64_stream",
        "latency_ratio_1",
    }
    assert not any("database_cpu" in name for name in names)


def test_the_databases_own_cpu_is_a_figure_beside_the_ratio() -> None:
    some = [window(calls=1000, cpu_s=0.1)] * 5
    busy = [Window(1000, 1.0, 0.2, 0.001, 1, 1, database_cpu_s=0.05)] * 5
    repeats = Repeats(echo=some, played={"postgres": Played(busy, busy)}, fdatasync_s=[0.001] * 5)
    medians = {figure.name: round(figure.median, 6) for figure in figures_of(64, repeats)}
    assert (medians["unary_cpu_ratio_64_postgres"], medians["unary_database_cpu_us_64_postgres"]) == (2.0, 50.0)


def test_the_cpu_of_a_server_is_that_of_all_its_processes(tmp_path: Path) -> None:
    (tmp_path / "7" / "task" / "7").mkdir(parents=True)
    (tmp_path / "7" / "task" / "7" / "children").write_text("8 9 ")  # 9 has just ended
    (tmp_path / "7" / "stat").write_text("7 (post gres) S 1 7 7 0 -1 0 0 0 0 0 100 20 3 4 20 0")
    (tmp_path / "8").mkdir()
    (tmp_path / "8" / "stat").write_text("8 (a) b) S 7 7 7 0 -1 0 0 0 0 0 1000 200 5 6 20 0")
    assert server_cpu_s(7, tmp_path) == (100 + 20 + 3 + 4 + 1000 + 200) / os.sysconf("SC_CLK_TCK")


def test_readings_subtract() -> None:
    assert Reading(2.5, 30, 400, 1) - Reading(0.5, 10, 100, 1) == Reading(2.0, 20, 300)


# --- history and memory -----------------------------------------------------------------------------------------------


def test_growth_is_full_over_empty_of_the_same_repeat() -> None:
    empty = [window(calls=1000, cpu_s=0.2, latency_s=0.01)] * 5
    full = [window(calls=1000, cpu_s=0.3, latency_s=0.04)] * 5
    echo = [window(calls=1000, cpu_s=0.1)] * 5
    played = {history.EMPTY: Played(empty, empty), history.FULL: Played(full, empty)}
    repeats = Repeats(echo=echo, played=played, fdatasync_s=[0.001] * 5)
    medians = {figure.name: round(figure.median, 6) for figure in history.growth("sqlite", 64, repeats)}
    assert medians == {
        "unary_cpu_ratio_64_sqlite_history": 3.0,
        "unary_history_growth_64_sqlite": 1.5,
        "unary_history_latency_growth_64_sqlite": 4.0,
        "stream_cpu_ratio_64_sqlite_history": 2.0,
        "stream_history_growth_64_sqlite": 1.0,
        "stream_history_latency_growth_64_sqlite": 1.0,
    }


def test_a_history_leaves_the_disk_its_space(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def affordable(free: int, rounds: int) -> int:
        monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
        return filling.affordable(tmp_path, rounds)

    assert affordable(10**12, 1000) == 1000
    assert affordable(filling.FREE_BYTES_MIN + filling.BYTES_A_ROUND * 10, 1000) == 10
    assert affordable(filling.FREE_BYTES_MIN - 1, 1000) == 0
    assert affordable(10**15, 10**9) * filling.BYTES_A_ROUND <= filling.STORE_BYTES_MAX


async def test_a_history_is_made_through_the_real_schema(tmp_path: Path) -> None:
    """Rows that the store's own reads take, the same indexes, and accounts that still add up."""
    async with open_harness(tmp_path) as harness:
        await play_two_rounds(harness)
    path = tmp_path / "rgs.db"
    with closing(sqlite3.connect(path)) as db:
        before = db.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()
    filling.fill(path, rounds=450, open_sessions=30, end_ms=1_800_000_000_000, emit=lambda _: None)
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall() == before
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert db.execute("SELECT count(*) FROM rounds WHERE player = ?", (filling.HEAVY_PLAYER,)).fetchone() == (250,)
        assert db.execute("SELECT sum(rounds) FROM totals").fetchone() == (452,)
        two = "SELECT count(*) FROM statements s JOIN rounds r USING (round_id) GROUP BY r.id HAVING count(*) <> 2"
        assert db.execute(two).fetchall() == []


def test_the_growth_of_memory_is_a_slope_behind_the_warm_up() -> None:
    flat = [(1000.0 * number, 200 * memory.MIB if number >= memory.WARM_UP else 0) for number in range(memory.READINGS)]
    leaking = [(1000.0 * number, 1_000_000 * number) for number in range(memory.READINGS)]
    rss, growth = memory.figures_of(flat)
    assert (rss.median, min(rss.values), growth.median) == (200.0, 200.0, 0.0)
    assert memory.figures_of(leaking)[1].median == pytest.approx(1000.0)


def test_memory_without_play_is_refused() -> None:
    with pytest.raises(BenchError, match="nothing was played"):
        memory.slope([(1.0, 5), (1.0, 6)])


# --- the mix ----------------------------------------------------------------------------------------------------------


def test_a_round_is_3_07_calls() -> None:
    assert sum(WAYS.values()) == 100
    assert pytest.approx(3.07) == CALLS_PER_ROUND


def test_a_hundred_rounds_of_any_player_are_the_mix() -> None:
    ways = ways_of(7)
    first, second = list(islice(ways, 100)), list(islice(ways, 100))
    assert Counter(first) == WAYS
    assert first == second == list(islice(ways_of(7), 100)) != list(islice(ways_of(8), 100))


def test_the_mix_folds_at_the_river_only() -> None:
    for way in WAYS:
        assert common.ACTION_FOLD not in way[:2]
        assert set(way[:-1]) <= {common.ACTION_CHECK}
        assert way[-1] != common.ACTION_CHECK


# --- the machine ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("folder", "kind"),
    [("/home/x", "ext4"), ("/run/x", "tmpfs (in memory: fdatasync costs nothing here)"), ("/run/big/x", "xfs")],
)
def test_the_nearest_mount_point_holds_a_folder(folder: str, kind: str) -> None:
    assert file_system_of(Path(folder), MOUNTS) == kind


def test_the_machine_is_described_without_its_paths(tmp_path: Path) -> None:
    result = dict(describe(tmp_path))
    assert {"processor", "system", "Python", "libraries", "store's file system"} <= result.keys()
    assert not any(str(tmp_path) in value for value in result.values())


def test_the_disk_is_probed_and_left_as_it_was(tmp_path: Path) -> None:
    assert fdatasync_s(tmp_path, count=3) > 0
    assert list(tmp_path.iterdir()) == []


# --- a smoke ----------------------------------------------------------------------------------------------------------


def test_draws_are_measured() -> None:
    figures = {figure.name: figure for figure in draws.measure(repeats=5, block_s=0.05)}
    assert figures["deal_draw_ratio"].unit == "ratio"
    assert all(value > 0 for figure in figures.values() for value in figure.values)


def test_a_generator_process_is_measured_beside_the_embedded_one(tmp_path: Path) -> None:
    figures = {figure.name: figure for figure in generators.measure(tmp_path, REPEATS_MIN, 64)}
    assert {name for name in figures if not name.endswith(("_us_1", "_us_32"))} == {
        f"deal_process_{what}_ratio_{callers}" for what in ("time", "server_cpu", "all_cpu") for callers in (1, 32)
    }
    assert all(value > 0 for figure in figures.values() for value in figure.values)


# --- the log ----------------------------------------------------------------------------------------------------------


async def test_the_log_s_figures_are_of_statements_that_are_in_it(tmp_path: Path) -> None:
    figures = {figure.name: figure for figure in await log.run(tmp_path, REPEATS_MIN, 20, 5, lambda _: None)}
    assert all(len(figure.values) == REPEATS_MIN and min(figure.values) > 0 for figure in figures.values())
    assert {figure.unit for name, figure in figures.items() if name.endswith("_ratio")} == {"ratio"}
    assert {name for name in figures if not name.endswith("_ratio")} == {
        "log_cpu_us",
        "log_statements_per_s",
        "log_lag_us",
    }


async def test_a_log_that_does_not_grow_has_no_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def idle(_self: object) -> None:
        pass

    monkeypatch.setattr(Sequencer, "work", idle)
    with pytest.raises(BenchError, match="stands at 0 of 4 entries"):
        await log.backlog(tmp_path, 3)


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [0, 1])
def test_the_counted_figures_stand_beside_the_timed_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], status: int
) -> None:
    assert "counted" in command.PARTS
    assert "counted" in command.QUICK_PARTS
    assert not {"history", "memory", "limits", "workers", "idle", "steady"} & set(command.QUICK_PARTS)
    ended = SimpleNamespace(returncode=status, stdout="bytes_written 1 1\n", stderr="it was refused")
    monkeypatch.setattr("subprocess.run", lambda *_, **__: ended)
    assert command.main(["--only", "counted", "--folder", str(tmp_path)]) == status
    shown = capsys.readouterr()
    assert ("bytes_written 1 1" in shown.out, "it was refused" in shown.err) == (status == 0, status == 1)
