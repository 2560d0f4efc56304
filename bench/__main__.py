"""`make bench`: measure everything, print the table, write bench/results.json (not kept in the repository).

Figures of an incomplete run are not written. It works in a folder of its own and removes it at the end; a run that is
killed leaves it behind.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench import (
    draws,
    generators,
    history,
    idle,
    limits,
    log,
    machine,
    memory,
    observing,
    proofs,
    pushes,
    steady,
    tables,
    windows,
    workers,
)
from bench.database import CpuSeconds, database
from bench.figures import REPEATS_MIN, BenchError, Figure, format_results, format_table
from bench.homes import export_lines, make_home, serving
from rgs.store.address import PostgresAddress

RESULTS: Final = Path(__file__).with_name("results.json")
PARTS: Final = (
    *("counted", "draw", "replay", "log", "play", "observing", "tables", "history", "memory"),
    *("limits", "workers", "idle", "steady"),
)
QUICK_PARTS: Final = ("counted", "draw", "replay", "log", "play", "tables")
MEMORY_S: Final = 120
QUICK_MEMORY_S: Final = 20
DRAW_BLOCK_S: Final = 0.1
GENERATOR_DRAWS: Final = 2_000
REPLAY_ROUNDS: Final = 200
NOT_MEASURED: Final = """\
Ratios are ours over the yardstick of the same repeat, smaller is better; `commit_batch_*` is better larger. Figures of
another unit hold for this machine in this hour only. Not measured: a network, other hosts, whether the disk keeps what
it flushed, several nodes, a standby, an operator's own wallet, a regulator's own system, start-up. The load, and
PostgreSQL, run beside the server on the same processors."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The size of each measurement."""

    repeats: int
    pool: int
    concurrencies: Sequence[int]
    rounds: int
    stores: Sequence[str]
    memory_s: float
    steady_s: float
    pace: float
    callers: Sequence[int]
    window_s: float
    streams: int
    statements: int
    lags: int
    is_quick: bool


def main(argv: Sequence[str] | None = None) -> int:
    """Run; the exit status."""
    arguments = _parser().parse_args(argv)
    usual = QUICK_PARTS if arguments.quick else PARTS
    parts = arguments.only or usual
    plan = Plan(
        repeats=max(REPEATS_MIN, arguments.repeats or (REPEATS_MIN if arguments.quick else 7)),
        pool=max(1, arguments.pool or (2 if arguments.quick else 3)),
        concurrencies=windows.QUICK_CONCURRENCIES if arguments.quick else windows.CONCURRENCIES,
        rounds=arguments.rounds or (history.QUICK_ROUNDS if arguments.quick else history.ROUNDS),
        stores=arguments.stores or (windows.SQLITE, windows.POSTGRES),
        memory_s=arguments.seconds or (QUICK_MEMORY_S if arguments.quick else MEMORY_S),
        steady_s=arguments.seconds or steady.SECONDS,
        pace=arguments.pace,
        callers=arguments.callers or limits.CALLERS,
        window_s=arguments.window,
        streams=arguments.streams,
        statements=log.QUICK_STATEMENTS if arguments.quick else log.STATEMENTS,
        lags=log.QUICK_LAGS if arguments.quick else log.LAGS,
        is_quick=arguments.quick,
    )
    arguments.folder.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="bench-", dir=arguments.folder) as name:
        folder = Path(name)
        for what, value in machine.describe(folder):
            print(f"{what:20} {value}")
        print(f"{'repeats':20} {plan.repeats}, each of {plan.pool} windows of {windows.WINDOW_S:g} s", flush=True)
        try:
            counted = _counted(folder) if "counted" in parts else ""
            figures = _measure(parts, folder, plan)
        except BenchError as error:
            print(f"bench: {error}", file=sys.stderr)
            return 1
    print(f"\n{counted}\n{format_table(figures)}\n\n{NOT_MEASURED}")
    print(f"{time.monotonic() - begin:.0f} s in all.")
    if set(parts) >= set(usual):
        RESULTS.write_text(format_results(figures), encoding="ascii")
        print(f"Written to {RESULTS.parent.name}/{RESULTS.name}.")
    return 0


def _counted(folder: Path) -> str:
    """What a played call runs and writes, beside what the file says: a process of its own, because it counts itself."""
    command = [sys.executable, "-m", "bench.counted", "--folder", str(folder.resolve())]
    run = subprocess.run(command, check=False, capture_output=True, text=True, cwd=RESULTS.parent.parent)
    if run.returncode:
        raise BenchError(f"bench.counted ended with {run.returncode}: {run.stderr[-2000:]}")
    return run.stdout


def _measure(parts: Sequence[str], folder: Path, plan: Plan) -> list[Figure]:
    figures: list[Figure] = []
    emit = _emitter()
    if "draw" in parts:
        emit("draws")
        figures += draws.measure(plan.repeats, block_s=DRAW_BLOCK_S * plan.pool)
        emit("draws of a generator process")
        figures += generators.measure(folder, plan.repeats, GENERATOR_DRAWS * plan.pool)
    if "replay" in parts:
        figures += _replay(folder / "replay", plan, emit)
    if "log" in parts:
        figures += asyncio.run(log.run(folder / "log", plan.repeats, plan.statements, plan.lags, emit))
    if "play" in parts:
        with database() as (address, database_s):
            figures += asyncio.run(_play(folder, plan, address, database_s, emit))
    if "observing" in parts:
        figures += observing.measure(folder / "observing", plan.repeats, emit)
    if "tables" in parts:
        figures += asyncio.run(tables.run(folder / "tables", plan.repeats, quick=plan.is_quick, emit=emit))
        shutil.rmtree(folder / "tables")
        figures += asyncio.run(pushes.run(folder / "pushes", plan.repeats, emit))
    if "history" in parts:
        figures += history.measure(folder / "history", plan.stores, plan.rounds, plan.repeats, plan.pool, emit)
    if "memory" in parts:
        figures += asyncio.run(memory.run(folder / "memory", plan.memory_s, emit))
    if "limits" in parts:
        figures += limits.measure(folder / "limits", plan.stores, plan.callers, plan.window_s, emit)
    if "workers" in parts:
        figures += workers.measure(folder / "workers", plan.repeats, plan.window_s, emit)
    if "idle" in parts:
        figures += asyncio.run(idle.run(folder / "idle", plan.streams, emit))
    if "steady" in parts:
        figures += steady.measure(folder / "steady", plan.stores, plan.steady_s, plan.pace, emit)
    emit("")
    return figures


def _replay(home: Path, plan: Plan, emit: Callable[[str], None]) -> list[Figure]:
    emit("rounds for the replay")
    config, root = make_home(home)
    asyncio.run(_play_to_the_end(home, rounds=REPLAY_ROUNDS * plan.pool))
    lines = export_lines(config)
    emit(f"replay of {len(lines)} statements")
    return proofs.measure(lines, config.bundle.read_bytes(), root, plan.repeats)


async def _play_to_the_end(home: Path, rounds: int) -> None:
    async with serving(home) as load:
        await windows.play_to_the_end(load, rounds)


async def _play(
    folder: Path, plan: Plan, address: PostgresAddress, database_s: CpuSeconds, emit: Callable[[str], None]
) -> list[Figure]:
    """Measure both stores under the same load, in turns."""
    home, other_home = folder / windows.SQLITE, folder / windows.POSTGRES
    make_home(home)
    make_home(other_home, address)
    figures: list[Figure] = []
    async with serving(home) as load, serving(other_home, database_s) as other_load:
        loads = {windows.SQLITE: load, windows.POSTGRES: other_load}
        for concurrency in plan.concurrencies:
            measured = await windows.measure(loads, home, concurrency, plan.repeats, plan.pool, emit)
            figures += windows.figures_of(concurrency, measured)
    return figures


def _emitter() -> Callable[[str], None]:
    """A function that shows a line of progress in a terminal."""
    if not sys.stderr.isatty():
        return lambda _text: None
    return lambda text: print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def _at_least(least: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"{value} is too small: at least {least}")
        return value

    return number


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure, as ratios within one run.")
    parser.add_argument(
        "--quick", action="store_true", default=os.environ.get("QUICK", "") not in {"", "0"}, help="under three minutes"
    )
    parser.add_argument("--repeats", type=int, help=f"at least {REPEATS_MIN}")
    parser.add_argument("--pool", type=int, help="windows that a repeat pools")
    parser.add_argument(
        "--rounds",
        type=_at_least(history.ROUNDS_MIN),
        help=f"of history (default {history.ROUNDS}; the goal is 10000000)",
    )
    parser.add_argument(
        "--seconds",
        type=_at_least(10),
        help=f"of the run that memory is read over (default {MEMORY_S}), and of the steady load ({steady.SECONDS})",
    )
    parser.add_argument(
        "--stores", action="append", choices=(windows.SQLITE, windows.POSTGRES),
        help="of history, limits and steady (default: both)",
    )  # fmt: skip
    parser.add_argument(
        "--pace", type=float, default=steady.PACE, help=f"calls a second of the steady load (default {steady.PACE:g})"
    )
    parser.add_argument(
        "--callers", type=_at_least(1), nargs="+", help=f"of limits (default {' '.join(map(str, limits.CALLERS))})"
    )
    parser.add_argument(
        "--window", type=_at_least(1), default=limits.WINDOW_S,
        help=f"seconds of each measurement of limits and workers (default {limits.WINDOW_S:g})",
    )  # fmt: skip
    parser.add_argument(
        "--streams", type=_at_least(idle.CHUNKS), default=idle.STREAMS, help=f"of idle (default {idle.STREAMS})"
    )
    parser.add_argument("--only", action="append", choices=PARTS, help="a part; nothing is written then")
    parser.add_argument(
        "--folder", type=Path, default=Path("var"), help="where the store is made: on a real disk (default: var)"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
