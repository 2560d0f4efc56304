"""The long runs of the bench: a history, shares of the processors, loads without a pause and at a pace."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import asyncpg
import pytest

from bench import filling, filling_postgres, limits, saturation, steady, workers
from bench.figures import BenchError
from bench.mix import CALLS_PER_ROUND
from bench.saturation import Saturated, quantile, saturate
from bench.shares import Look, Shares, Taken, below, first_full, flushes_of, process_of, shares, threads_of
from rgs.store.opening import open_parties, open_store
from tests.support.service.harness import ServiceHarness, open_harness
from tests.support.service.played import play_two_rounds
from tests.support.store.databases import fresh_database

END_MS = 1_795_000_000_000
"""Before the harness plays."""
SCHEMA = """
    SELECT 'index', indexrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index
    WHERE indrelid::regclass::text !~ '^pg_'
    UNION ALL SELECT 'key', conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE contype IN ('p', 'u', 'c')
    UNION ALL SELECT 'column', attrelid::regclass::text || '.' || attname, attstorage::text FROM pg_attribute
    WHERE attrelid::regclass::text !~ '^(pg_|information_schema)' AND attnum > 0 AND NOT attisdropped
    ORDER BY 1, 2
"""


# --- a history --------------------------------------------------------------------------------------------------------


async def unread(harness: ServiceHarness) -> set[str]:
    """The instances whose statements the watch over returns would read, and the log would take."""
    instances = await harness.store.instances(alive_only=False)
    found = {name for name, _ in await harness.store.unread_instances(100)}
    return found | {row.instance for row in instances if row.statement_no and not row.alive}


async def test_nothing_takes_a_history_in_a_file_for_new(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness:
        await play_two_rounds(harness)
    filling.fill(tmp_path / "rgs.db", rounds=450, open_sessions=30, end_ms=END_MS, emit=lambda _: None)
    async with open_harness(tmp_path) as harness:
        assert filling.INSTANCE not in await unread(harness)


async def test_a_history_is_made_in_postgres_through_the_real_schema(tmp_path: Path) -> None:
    """The same indexes, keys and columns as before, rows that the store's own reads take, totals that add up."""
    with fresh_database() as address:
        opened: dict[str, Any] = {"store": await open_store(address), "parties": await open_parties(address)}
        async with open_harness(tmp_path, **opened) as harness:
            await play_two_rounds(harness)
        connection = await asyncpg.connect(address.url)
        try:
            before = await connection.fetch(SCHEMA)
            await filling_postgres.fill(address, 450, 30, END_MS, lambda _: None)
            assert await connection.fetch(SCHEMA) == before
            value = connection.fetchval
            assert await value("SELECT count(*) FROM rounds WHERE player = $1", filling.HEAVY_PLAYER) == 250
            assert await value("SELECT sum(rounds) FROM totals") == 452
            assert await value("SELECT count(*) FROM sessions WHERE status = 'open'") == 31
            two = "SELECT count(*) FROM (SELECT round_id FROM statements s JOIN rounds r USING (round_id) GROUP BY 1"
            assert await value(f"{two} HAVING count(*) = 2) AS whole") == 452
            assert await value("SELECT count(*) FROM statements WHERE envelope IS NULL OR length(envelope) < 500") < 20
            assert await value("SELECT max(last_id) FROM instances") >= await value("SELECT max(id) FROM sessions"), (
                "no row number lies behind those that the server will make"
            )
        finally:
            await connection.close()
        store = await open_store(address)
        try:
            assert filling.INSTANCE not in {name for name, _ in await store.unread_instances(100)}
        finally:
            await store.close()


# --- shares of the processors -----------------------------------------------------------------------------------------


def at(time_s: float, loop_s: float, *, waited_s: float = 0.0, database: Mapping[int, Taken] | None = None) -> Look:
    threads = {11: Taken(loop_s, waited_s), 12: Taken(0.1 * time_s), 13: Taken(0.2 * time_s)}
    return Look(time_s, threads, {}, database or {}, idle_s=time_s / 2, flushes=int(100 * time_s), flush_s=time_s / 4)


def test_shares_are_what_was_taken_over_the_time_between_the_looks() -> None:
    before, after = at(10.0, 3.0), at(14.0, 5.0, waited_s=1.0, database={21: Taken(0.4), 22: Taken(0.8)})
    taken = shares(before, after, {11: "the server's loop"})
    assert taken.parts["the server's loop"] == Taken(0.5, 0.25)
    assert taken.parts["the server's busiest other thread"].cpu_s == pytest.approx(0.2)
    assert taken.parts["the busiest process of the database"].cpu_s == pytest.approx(0.2)
    assert [taken.server, taken.database] == pytest.approx([0.8, 0.3])
    assert (taken.flushes_per_s, taken.flushing) == (100, 0.25)


def of(idle: float = 0.5, flushing: float = 0.1, server: float = 0.8, **parts: Taken) -> Shares:
    return Shares(parts, server=server, load=1, database=1, idle=idle, flushes_per_s=1, flushing=flushing)


def test_the_part_that_is_full_first_is_named() -> None:
    found = first_full(of(loop=Taken(0.95), load=Taken(0.4)))
    assert found == "First full is loop with 95% of its time, then load with 40%."


def test_a_part_that_waits_for_a_processor_is_full_too() -> None:
    assert first_full(of(loop=Taken(0.5, 0.45), load=Taken(0.6))).startswith("First full is loop with 95%")


def test_the_disk_is_a_part() -> None:
    assert first_full(of(loop=Taken(0.5), flushing=0.97)).startswith("First full is the disk (flushes) with 97%")


def test_a_machine_may_be_full_without_a_part_that_is() -> None:
    found = first_full(of(idle=0.01, loop=Taken(0.6), load=Taken(0.5)))
    assert found.startswith("No part is full by itself, but all processors of the machine are; nearest is loop")
    assert first_full(of(idle=0.4, loop=Taken(0.6))).startswith("No part is full: calls wait for each other")


def test_threads_that_share_one_python_are_full_together() -> None:
    found = first_full(of(idle=0.4, server=0.96, loop=Taken(0.7), writer=Taken(0.2)))
    assert found.startswith("First full is Python in the server: its threads together run for 96% of the time")


def test_the_processes_below_are_found_by_name() -> None:
    with closing(_Sleeper()) as child:
        assert child.pid in below(_own())
        assert child.pid not in below(_own(), "postgres")
        assert threads_of(child.pid).keys() == {child.pid}
        assert process_of(child.pid).cpu_s > 0
    assert process_of(child.pid) == Taken()


def test_flushes_are_counted_or_zero(tmp_path: Path) -> None:
    count, seconds = flushes_of(tmp_path)
    assert count >= 0 <= seconds
    assert flushes_of(Path("/proc")) == (0, 0.0)


class _Sleeper:
    """A process that waits for its input."""

    def __init__(self) -> None:
        command = [sys.executable, "-S", "-c", "print('there', flush=True); input()"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        self._process.stdout.readline()

    @property
    def pid(self) -> int:
        return self._process.pid

    def close(self) -> None:
        self._process.communicate(b"\n")


def _own() -> int:
    return int(Path("/proc/self").resolve().name)


# --- loads ------------------------------------------------------------------------------------------------------------


def test_a_quantile_is_a_value_that_was_measured() -> None:
    values = [float(number) for number in range(1, 101)]
    assert [quantile(values, share) for share in (0.5, 0.99, 0.999, 1.0)] == [50, 99, 100, 100]
    assert (quantile([], 0.99), quantile([7.0], 0.5)) == (0, 7)


async def test_only_calls_that_end_while_it_is_measured_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saturation, "WARM_S", 0.05)
    looks: list[float] = []

    async def step() -> None:
        await asyncio.sleep(0.01)

    def look() -> int:
        looks.append(time.perf_counter())
        return len(looks)

    found = await saturate([step, step], 0.2, look)
    assert (found.before, found.after) == (1, 2)
    assert found.elapsed_s == pytest.approx(looks[1] - looks[0], abs=0.05)
    assert 2 <= len(found.calls) <= 2 * (found.elapsed_s / 0.01 + 1)
    assert all(0 <= end <= found.elapsed_s and latency >= 0.009 for end, latency in found.calls)
    assert found.rounds_per_s == pytest.approx(len(found.calls) / CALLS_PER_ROUND / found.elapsed_s)


def ended(*calls: tuple[float, float], counts: Any = None) -> Saturated[Any]:
    return Saturated(calls, 5.0, *(counts or (None, None)))


def test_slices_divide_the_time_evenly() -> None:
    assert ended((0.1, 1.0), (0.9, 2.0), (1.0, 3.0), (5.0, 4.0)).slices() == [[1.0, 2.0], [3.0], [], [], [4.0]]


def test_the_end_is_the_least_number_of_callers_that_plays_nearly_the_most() -> None:
    found = {
        count: (ended(*[(1.0, 0.1)] * calls), of(loop=Taken(count / 100)))
        for count, calls in ((1, 100), (64, 970), (95, 1_000), (128, 990))
    }
    sentence = limits._sentence(cast(Any, found))
    assert sentence.startswith(f"{970 / CALLS_PER_ROUND / 5:.0f} rounds/s from 64 callers on. No part is full")


async def test_latency_is_counted_from_the_planned_time() -> None:
    """One slow call makes those late that were planned behind it, although each of them is quick."""
    taken_s = iter([0.3, *[0.0] * 9])

    async def call() -> None:
        await asyncio.sleep(next(taken_s))

    async def refill() -> None:
        return None

    player = cast(Any, SimpleNamespace(play_streamed=call, refill=refill))
    slices: list[list[float]] = [[] for _ in range(10)]
    planned = steady._planned(0, seconds=1.0, pace=10.0)
    await steady._play(player, planned, time.perf_counter(), 1.0, slices)
    assert [len(one) for one in slices] == [1] * 10
    (first,), (second,), (third,) = slices[:3]
    assert first >= 0.29
    assert second >= 0.19
    assert third >= 0.09


def test_players_share_the_pace() -> None:
    times = sorted(time_s for number in range(steady.PLAYERS) for time_s in steady._planned(number, 10.0, 2.0))
    assert len(times) == steady.PLAYERS * 20
    gaps = {round(later - earlier, 9) for earlier, later in pairwise(times)}
    assert gaps == {round(1 / 2.0 / steady.PLAYERS, 9)}


def test_the_growth_of_latency_is_the_last_part_over_the_first() -> None:
    count = steady.PARTS * steady.SLICES
    slices = [[0.001] if number < steady.SLICES else [0.1] for number in range(count - steady.SLICES)]
    slices += [[0.003]] * steady.SLICES
    medians = {figure.name: round(figure.median, 6) for figure in steady.figures_of("postgres", slices)}
    assert medians == {
        "steady_p99_first_ms_postgres": 1.0, "steady_p99_last_ms_postgres": 3.0, "steady_p99_growth_postgres": 3.0
    }  # fmt: skip
    with pytest.raises(BenchError, match="slice without a call"):
        steady.figures_of("sqlite", [[], *slices[1:]])


def test_two_workers_over_one() -> None:
    def some(calls: int, *server_s: float) -> list[Saturated[Any]]:
        before = workers.Counts(dict.fromkeys(range(len(server_s)), 1.0), 2.0, 0.0)
        after = workers.Counts({number: 1.0 + used for number, used in enumerate(server_s)}, 3.0, 0.0)
        return [ended(*[(1.0, 0.1)] * calls, counts=(before, after))] * 5

    found = workers.figures_of({1: some(1000, 4.0), 2: some(1500, 3.0, 5.0)})
    medians = {figure.name: round(figure.median, 6) for figure in found}
    assert medians["workers_1_server_cpu_us"] == 4000
    assert medians["workers_2_database_cpu_us"] == round(1e6 / 1500, 6)
    assert medians["workers_2_over_1_rounds"] == 1.5
    assert medians["workers_2_over_1_all_cpu"] == round((9 / 1500) / (5 / 1000), 6)
