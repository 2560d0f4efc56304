"""Measures the cost of a long history: the same play in turns on two servers, one over an empty store and one over a
full one; and pages of lists at their beginning and deep inside.

`history_growth_*` is CPU per call of the full store over that of the empty one, `history_latency_growth_*` the same for
the median time of a call, `history_database_growth_*` for the CPU of PostgreSQL; 1 is the aim. `bench.filling` and
`bench.filling_postgres` make the full store and say what in it is synthetic; it is not in the system's cache at first.
Over PostgreSQL each of the two stores has a server of its own, with the same settings.

Not measured: a store larger than the disk allows (the factor is printed), a store filled call by call over months, and
the history of the embedded wallet and test regulator.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from time import perf_counter, time
from typing import Final

from bench import filling, filling_postgres, windows
from bench.database import CpuSeconds, database, database_to_fill
from bench.figures import BenchError, Figure, ratio
from bench.homes import make_home, serving
from bench.players import CALL_TIMEOUT_S
from bench.windows import POSTGRES, SQLITE, Load, Played, Repeats, Window, play_to_the_end
from rgs.store.address import PostgresAddress
from rgs.v1 import history_pb2 as history
from rgs.v1 import session_pb2 as sessions
from rgs.v1.history_pb2_grpc import HistoryServiceStub
from rgs.v1.session_pb2_grpc import SessionServiceStub

ROUNDS: Final = 300_000
"""The default: what a full run has time for."""
GOAL_ROUNDS: Final = 10_000_000
ROUNDS_MIN: Final = 1_000
QUICK_ROUNDS: Final = 20_000
OPEN_SESSIONS: Final = 100_000
SEED_ROUNDS: Final = 300
"""Played, then multiplied."""
CONCURRENCY: Final = 64
PAGE_SIZE: Final = 10
WALK_SIZE: Final = 200
DEEP_PAGE: Final = 10_000
"""Or the last page, if there are fewer."""
CALLS_PER_BLOCK: Final = 40
EMPTY: Final = "empty"
FULL: Final = "full"

Page = Callable[[str], Awaitable[str]]
"""Requests the page at a token. Returns the token of the next page."""


def measure(
    folder: Path, stores: Sequence[str], wanted: int, repeats: int, pool: int, emit: Callable[[str], None]
) -> list[Figure]:
    """All figures of the history over these stores, one after the other; prints its size."""
    figures: list[Figure] = []
    for store in stores:
        parts = _over_postgres if store == POSTGRES else _over_sqlite
        figures += parts(folder / store, wanted, repeats, pool, emit)
        shutil.rmtree(folder / store)
    return figures


def _over_sqlite(folder: Path, wanted: int, repeats: int, pool: int, emit: Callable[[str], None]) -> list[Figure]:
    empty, full = folder / EMPTY, folder / FULL
    make_home(empty)
    config, _ = make_home(full)
    if isinstance(config.store, PostgresAddress):
        raise BenchError("the store of this home is no file")
    asyncio.run(_play_seeds(full))
    rounds, open_sessions = _sizes(full, wanted)
    begin = perf_counter()
    filling.fill(config.store, rounds, open_sessions, int(time() * 1000), emit)
    _say(SQLITE, wanted, rounds, open_sessions, perf_counter() - begin, config.store.stat().st_size)
    return asyncio.run(_compare(SQLITE, _Home(empty), _Home(full), open_sessions, rounds, repeats, pool, emit))


def _over_postgres(folder: Path, wanted: int, repeats: int, pool: int, emit: Callable[[str], None]) -> list[Figure]:
    empty, full = folder / EMPTY, folder / FULL
    with database() as (address, cpu_s), database_to_fill(filling_postgres.FILLING) as filled:
        make_home(empty, address)
        make_home(full, filled.address)
        asyncio.run(_play_seeds(full))
        rounds, open_sessions = _sizes(filled.folder or full, wanted)
        begin = perf_counter()
        asyncio.run(filling_postgres.fill(filled.address, rounds, open_sessions, int(time() * 1000), emit))
        emit("filling: to the disk")
        filled.settle()
        taken_s = perf_counter() - begin
        _say(POSTGRES, wanted, rounds, open_sessions, taken_s, asyncio.run(filling_postgres.bytes_of(filled.address)))
        homes = _Home(empty, cpu_s), _Home(full, filled.cpu_s)
        return asyncio.run(_compare(POSTGRES, *homes, open_sessions, rounds, repeats, pool, emit))


@dataclass(frozen=True, slots=True)
class _Home:
    folder: Path
    database_s: CpuSeconds = lambda: 0.0


def _sizes(folder: Path, wanted: int) -> tuple[int, int]:
    """Rounds and open sessions that the disk takes."""
    rounds = filling.affordable(folder, wanted)
    if not rounds:
        raise BenchError(f"the disk must keep {filling.FREE_BYTES_MIN} bytes free, and has fewer")
    return rounds, min(OPEN_SESSIONS, wanted // 2)


def _say(store: str, wanted: int, rounds: int, open_sessions: int, taken_s: float, size: int) -> None:
    print(
        f"{'history, ' + store:20} {rounds} rounds (asked for: {wanted}; a factor of {GOAL_ROUNDS / rounds:.3g} below"
        f" {GOAL_ROUNDS}), {open_sessions} open sessions, {size / rounds:.0f} bytes a round, filled in {taken_s:.0f} s:"
        f" {rounds / taken_s:.0f} rounds/s",
        flush=True,
    )


async def _play_seeds(home: Path) -> None:
    """Rounds to copy, closed sessions, and open ones."""
    async with serving(home) as load:
        await play_to_the_end(load, SEED_ROUNDS)
        await load.players(4)


async def _compare(
    store: str, empty: _Home, full: _Home, open_sessions: int, rounds: int, repeats: int, pool: int,
    emit: Callable[[str], None],
) -> list[Figure]:  # fmt: skip
    async with (
        serving(empty.folder, empty.database_s) as empty_load,
        serving(full.folder, full.database_s) as full_load,
    ):
        loads = {EMPTY: empty_load, FULL: full_load}
        figures = []
        for concurrency in (1, CONCURRENCY):
            repeated = await windows.measure(
                loads, empty.folder, concurrency, repeats, pool, emit, with_yardsticks=False
            )
            figures += growth(store, concurrency, repeated)
        emit("pages")
        listed = min(rounds // filling.HEAVY_SHARE, open_sessions)
        pages = await _pages(empty_load, full_load, min(DEEP_PAGE, listed // PAGE_SIZE), repeats)
        return [*figures, *(replace(one, name=one.name + windows.suffix(store)) for one in pages)]


def growth(store: str, concurrency: int, repeats: Repeats) -> list[Figure]:
    """The full store over the empty one, repeat by repeat; also its CPU over the echo's."""
    echo_cpu_s = [window.cpu_per_call_s for window in repeats.echo]
    empty, full = repeats.played[EMPTY], repeats.played[FULL]
    figures = []
    for way in ("unary", "stream"):
        ours, theirs = _of(full, way), _of(empty, way)
        cpu_s = [window.cpu_per_call_s for window in ours]
        latency_s = [window.latency_s for window in ours]
        figures += [
            ratio(f"{way}_cpu_ratio_{concurrency}_{store}_history", cpu_s, echo_cpu_s),
            ratio(f"{way}_history_growth_{concurrency}_{store}", cpu_s, [window.cpu_per_call_s for window in theirs]),
            ratio(f"{way}_history_latency_growth_{concurrency}_{store}", latency_s, [one.latency_s for one in theirs]),
        ]
        database_s = [(one.database_cpu_s / one.calls, other.database_cpu_s / other.calls) for one, other in
                      zip(ours, theirs, strict=True)]  # fmt: skip
        if all(min(pair) > 0 for pair in database_s):
            name = f"{way}_history_database_growth_{concurrency}_{store}"
            figures.append(ratio(name, *zip(*database_s, strict=True)))
            taken_us = tuple(one * 1e6 for one, _ in database_s)
            figures.append(Figure(f"{way}_database_cpu_us_{concurrency}_{store}_history", taken_us, "us"))
    return figures


def _of(played: Played, way: str) -> list[Window]:
    return played.unary if way == "unary" else played.stream


# --- lists ------------------------------------------------------------------------------------------------------------


async def _pages(empty: Load, full: Load, deep_page: int, repeats: int) -> list[Figure]:
    rounds, some_sessions = _rounds_page(full), _sessions_page(full)
    rows = (deep_page - 1) * PAGE_SIZE
    deep_rounds = await _token_behind(rows, _rounds_page(full, WALK_SIZE), rounds)
    deep_sessions = await _token_behind(rows, _sessions_page(full, WALK_SIZE), some_sessions)
    blocks: dict[str, tuple[Page, str]] = {
        "page_1": (rounds, ""),
        "page_deep": (rounds, deep_rounds),
        "sessions_1": (some_sessions, ""),
        "sessions_deep": (some_sessions, deep_sessions),
        "open_full": (_open_rounds_page(full), ""),
        "open_empty": (_open_rounds_page(empty), ""),
        "player_full": (_players_open_sessions(full), ""),
        "player_empty": (_players_open_sessions(empty), ""),
    }
    taken_s: dict[str, list[float]] = {name: [] for name in blocks}
    for turn in range(repeats + 1):
        for name, (page, token) in blocks.items():
            block_s = await _block_s(page, token)
            if turn:  # the first is not counted
                taken_s[name].append(block_s)
    return [
        ratio(f"page_{deep_page}_over_page_1", taken_s["page_deep"], taken_s["page_1"]),
        ratio(f"open_sessions_page_{deep_page}_over_page_1", taken_s["sessions_deep"], taken_s["sessions_1"]),
        ratio("open_rounds_history_growth", taken_s["open_full"], taken_s["open_empty"]),
        ratio("players_open_sessions_history_growth", taken_s["player_full"], taken_s["player_empty"]),
        Figure("page_1_us", tuple(seconds * 1e6 for seconds in taken_s["page_1"]), "us"),
    ]


async def _block_s(page: Page, token: str) -> float:
    times = []
    for _ in range(CALLS_PER_BLOCK):
        begin = perf_counter()
        await page(token)
        times.append(perf_counter() - begin)
    return median(times)


async def _token_behind(rows: int, walk: Page, page: Page) -> str:
    """The token after so many rows: in long steps first, then page by page."""
    token = ""
    steps, left = divmod(rows, WALK_SIZE)
    for ask in [walk] * steps + [page] * (left // PAGE_SIZE):
        token = await ask(token)
        if not token:
            raise BenchError(f"a list has fewer than {rows} rows")
    return token


def _rounds_page(load: Load, page_size: int = PAGE_SIZE) -> Page:
    stub = HistoryServiceStub(load.channel())

    async def page(token: str) -> str:
        request = history.ListRoundsRequest(player=filling.HEAVY_PLAYER, page_size=page_size, page_token=token)
        return (await stub.ListRounds(request, timeout=CALL_TIMEOUT_S)).next_page_token

    return page


def _sessions_page(load: Load, page_size: int = PAGE_SIZE, player: str = "") -> Page:
    stub = SessionServiceStub(load.channel())

    async def page(token: str) -> str:
        request = sessions.ListSessionsRequest(open_only=True, player=player, page_size=page_size, page_token=token)
        return (await stub.ListSessions(request, timeout=CALL_TIMEOUT_S)).next_page_token

    return page


def _players_open_sessions(load: Load) -> Page:
    """The open sessions of the player with the most sessions, all of which are closed."""
    return _sessions_page(load, player=filling.HEAVY_PLAYER)


def _open_rounds_page(load: Load) -> Page:
    stub = SessionServiceStub(load.channel())

    async def page(token: str) -> str:
        request = sessions.ListOpenRoundsRequest(page_size=PAGE_SIZE, page_token=token)
        return (await stub.ListOpenRounds(request, timeout=CALL_TIMEOUT_S)).next_page_token

    return page
