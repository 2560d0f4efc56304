"""Measures the cost of a long history: the same play in turns on two servers, one over an empty store and one over a
full one; and pages of lists at their beginning and deep inside.

`history_growth_*` is CPU per call of the full store over that of the empty one, `history_latency_growth_*` the same for
the median time of a call; 1 is the aim. `bench.filling` makes the full store and says what in it is synthetic; it is
not in the system's cache at first. Not measured: a store larger than the disk allows (the factor is printed), a store
filled call by call over months, and the history of the embedded wallet and test regulator.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from time import perf_counter, time
from typing import Final

from bench import filling
from bench.figures import BenchError, Figure, ratio
from bench.homes import make_home, serving
from bench.players import CALL_TIMEOUT_S
from bench.windows import Load, Played, Repeats, Window, measure, play_to_the_end
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
FULL: Final = "sqlite_history"

Page = Callable[[str], Awaitable[str]]
"""Requests the page at a token. Returns the token of the next page."""


async def run(folder: Path, wanted: int, repeats: int, pool: int, emit: Callable[[str], None]) -> list[Figure]:
    """All figures of the history; prints its size."""
    open_sessions = min(OPEN_SESSIONS, wanted // 2)
    (empty, full) = folder / "empty", folder / "full"
    make_home(empty)
    rounds = await _make_full(full, wanted, open_sessions, emit)
    print(
        f"{'history':20} {rounds} rounds (asked for: {wanted}; a factor of {GOAL_ROUNDS / rounds:.3g} below"
        f" {GOAL_ROUNDS}), {open_sessions} open sessions, {_store_of(full).stat().st_size / rounds:.0f} bytes a round",
        flush=True,
    )
    async with serving(empty) as empty_load, serving(full) as full_load:
        loads = {EMPTY: empty_load, FULL: full_load}
        figures = []
        for concurrency in (1, CONCURRENCY):
            repeated = await measure(loads, folder, concurrency, repeats, pool, emit)
            figures += growth(concurrency, repeated)
        emit("pages")
        listed = min(rounds // filling.HEAVY_SHARE, open_sessions)
        return [*figures, *await _pages(empty_load, full_load, min(DEEP_PAGE, listed // PAGE_SIZE), repeats)]


def _store_of(home: Path) -> Path:
    return home / "store" / "rgs.db"


async def _make_full(home: Path, wanted: int, open_sessions: int, emit: Callable[[str], None]) -> int:
    config, _ = make_home(home)
    if isinstance(config.store, PostgresAddress):
        raise BenchError("a history is made in SQLite only")
    async with serving(home) as load:
        await play_to_the_end(load, SEED_ROUNDS)
        await load.players(4)  # sessions that stay open, to copy
    rounds = filling.affordable(home, wanted)
    if not rounds:
        raise BenchError(f"the disk must keep {filling.FREE_BYTES_MIN} bytes free, and has fewer")
    filling.fill(config.store, rounds, open_sessions, int(time() * 1000), emit)
    return rounds


def growth(concurrency: int, repeats: Repeats) -> list[Figure]:
    """The full store over the empty one, repeat by repeat; also its CPU over the echo's."""
    echo_cpu_s = [window.cpu_per_call_s for window in repeats.echo]
    empty, full = repeats.played[EMPTY], repeats.played[FULL]
    figures = []
    for way in ("unary", "stream"):
        ours, theirs = _of(full, way), _of(empty, way)
        cpu_s = [window.cpu_per_call_s for window in ours]
        latency_s = [window.latency_s for window in ours]
        figures += [
            ratio(f"{way}_cpu_ratio_{concurrency}_{FULL}", cpu_s, echo_cpu_s),
            ratio(f"{way}_history_growth_{concurrency}_sqlite", cpu_s, [window.cpu_per_call_s for window in theirs]),
            ratio(f"{way}_history_latency_growth_{concurrency}_sqlite", latency_s, [one.latency_s for one in theirs]),
        ]
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
