"""Tables: what a seat's round costs, how late steps are, what a view costs that many watch, what a seat-round stores.

The services of one process over a SQLite store with its production settings, without gRPC: players, sessions and bets
are put into the store as rows, then the dealer takes the steps from red to the results. Its CPU is counted in Ed25519
signatures of the same run. Lateness is taken from the rows of tables that play under the real clock: how long after a
window's deadline its step was dated.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import quantiles
from typing import Any, Final

import structlog

from bench.figures import Figure, ratio
from bench.log import KEY, signing_cpu_s
from rgs.core.ledger import Participation
from rgs.core.sessions import Session, SessionStatus
from rgs.core.tables.config import TableConfig, load_table_config
from rgs.core.tables.machine import State, Step, Table, take
from rgs.core.tables.rows import TableRow
from rgs.core.tables.seating import Sitting
from rgs.node.clock import SystemClock
from rgs.node.tables import TableServices
from rgs.service.admin.orders import Orders
from rgs.service.availability import Availability
from rgs.service.callers import Caller, Role, SessionLocks
from rgs.service.game_catalog import GameCatalog
from rgs.service.instance import Instance
from rgs.service.sealing import Kek, Sealer
from rgs.service.tables.feed import Feed
from rgs.store.changes import Change
from rgs.store.sqlite.store import SqliteStore, create_store

PLAYERS: Final = (1, 100, 10_000)
QUICK_PLAYERS: Final = (1, 100, 1_000)
BOXES_TABLES: Final = 1_000
QUICK_BOXES_TABLES: Final = 100
WATCHERS: Final = 10_000
ANTE_MINOR: Final = 1_000
PAGE: Final = 256
LATE_S: Final = 5.0
"""How long the tables play whose lateness is measured."""
LOOK_S: Final = 0.1
"""The pause between two looks of the dealer, as in the server."""


class Clock(SystemClock):
    """The real clock, `ahead_ms` of itself: time that is let pass at once."""

    def __init__(self) -> None:
        self.ahead_ms = 0
        super().__init__(lambda: time.time_ns() // 1_000_000 + self.ahead_ms, self._running)

    def _running(self) -> int:
        return time.monotonic_ns() // 1_000_000 + self.ahead_ms


@dataclass(frozen=True, slots=True)
class Host:
    """The services of tables over a store."""

    store: SqliteStore
    clock: Clock
    games: GameCatalog
    tables: TableServices
    path: Path


async def run(folder: Path, repeats: int, *, quick: bool, emit: Callable[[str], None]) -> list[Figure]:
    """The figures of tables."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    try:
        figures: list[Figure] = []
        for players in QUICK_PLAYERS if quick else PLAYERS:
            figures += await _hand(folder, players, repeats, emit)
        figures += await _boxes(folder, QUICK_BOXES_TABLES if quick else BOXES_TABLES, repeats, emit)
        figures += await _lateness(folder, repeats, emit)
        figures += await _watching(folder, repeats, emit)
        return figures
    finally:
        structlog.reset_defaults()


# --- what is measured -------------------------------------------------------------------------------------------------


async def _hand(folder: Path, players: int, repeats: int, emit: Callable[[str], None]) -> list[Figure]:
    """A round of one hand for all, from red to the results."""
    whole, to_cards, stored, signing = [], [], [], []
    for repeat in range(repeats):
        emit(f"a hand of {players} players, repeat {repeat + 1} of {repeats}")
        async with _host(folder / f"hand-{players}-{repeat}") as host:
            config = _config(host, "uth-online", "bench-0")
            await _seat(host, config, players)
            before = _bytes(host.path)
            signing.append(signing_cpu_s())
            to_cards.append(await _cpu_until(host, config, State.DECIDING) / players)
            whole.append(to_cards[-1] + await _cpu_until(host, config, State.RESULT) / players)
            stored.append((_bytes(host.path) - before) / players)
    return [
        ratio(f"table_seat_round_cpu_{players}_ratio", whole, signing),
        ratio(f"table_red_to_card_cpu_{players}_ratio", to_cards, signing),
        Figure(f"table_seat_round_bytes_{players}", tuple(stored), "B"),
    ]


async def _boxes(folder: Path, tables: int, repeats: int, emit: Callable[[str], None]) -> list[Figure]:
    """Rounds of many tables of seven boxes that end at once: CPU a seat-round, and seconds from red to the results."""
    cpu, seconds, signing = [], [], []
    for repeat in range(repeats):
        emit(f"{tables} tables of seven boxes, repeat {repeat + 1} of {repeats}")
        async with _host(folder / f"boxes-{repeat}") as host:
            configs = [_config(host, "uth-seven-box", f"bench-{number}") for number in range(tables)]
            for config in configs:
                await _seat(host, config, 7)
            signing.append(signing_cpu_s())
            begun, used = time.perf_counter(), time.process_time()
            left = [config.id for config in configs]
            while left:  # one table at a time is looked at: reading all is the bench's own work
                row, _ = await host.tables.dealer.read(left[-1])
                if row.table.round_no and not row.table.is_in_round:
                    left.pop()
                else:
                    await _pass(host)
                    await host.tables.dealer.poll()
            cpu.append((time.process_time() - used) / (7 * tables))
            seconds.append(time.perf_counter() - begun)
    return [
        ratio(f"table_boxes_{tables}_cpu_ratio", cpu, signing),
        Figure(f"table_boxes_{tables}_s", tuple(seconds), "s"),
    ]


async def _lateness(folder: Path, repeats: int, emit: Callable[[str], None]) -> list[Figure]:
    """How late windows end, in milliseconds: of one table alone, and of a hundred that play at once."""
    figures = []
    for name, tables in (("idle", 1), ("load", 100)):
        found: list[list[int]] = []
        for repeat in range(repeats):
            emit(f"lateness of {tables} tables, repeat {repeat + 1} of {repeats}")
            async with _host(folder / f"late-{name}-{repeat}") as host:
                configs = [_config(host, "uth-seven-box", f"bench-{number}", fast=True) for number in range(tables)]
                for config in configs:
                    await _seat(host, config, 7)
                found.append(await _late_ms(host))
        for part, of in (("p50", 50), ("p99", 99)):
            values = tuple(float(quantiles(one, n=100, method="inclusive")[of - 1]) for one in found)
            figures.append(Figure(f"table_late_{name}_{part}_ms", values, "ms"))
        figures.append(Figure(f"table_late_{name}_worst_ms", tuple(float(max(one)) for one in found), "ms"))
    return figures


async def _late_ms(host: Host) -> list[int]:
    """Play for a while under the real clock; by how much each window was ended late."""
    late: list[int] = []
    due: dict[str, int] = {}
    until = time.monotonic() + LATE_S
    while time.monotonic() < until:
        await host.tables.dealer.poll()
        for row in await _rows(host):
            table = row.table
            if due.get(table.table_id) and table.deadline_ms != due[table.table_id]:
                late.append(max(0, table.step_ms - due[table.table_id]))
            due[table.table_id] = table.deadline_ms
        await asyncio.sleep(LOOK_S)
    return late if len(late) > 1 else [*late, *late, 0, 0]


async def _watching(folder: Path, repeats: int, emit: Callable[[str], None]) -> list[Figure]:
    """CPU of a view for each of many watchers, up to the bytes in their mailboxes; gRPC's own part is not in it."""
    cpu = []
    for repeat in range(repeats):
        emit(f"{WATCHERS} watchers, repeat {repeat + 1} of {repeats}")
        async with _host(folder / f"watch-{repeat}") as host:
            config = _config(host, "uth-online", "bench-0")
            await _seat(host, config, 100)
            cpu.append(await _view_cpu(host, config))
    return [Figure("table_view_cpu_a_watcher_us", tuple(one * 1e6 for one in cpu), "us")]


async def _view_cpu(host: Host, config: TableConfig) -> float:
    caller = Caller(config.operators[0], Role.OPERATOR, config.jurisdiction_id)
    feed = Feed(
        signals=host.tables.signals,
        clock=host.clock,
        table=host.tables.views.table,
        seat=host.tables.views.seat,
        versions=host.store.table_versions,
        encode=lambda view: repr(view).encode(),
        encode_line=lambda line: repr(line).encode(),
    )
    opened: list[Any] = []
    try:
        for _ in range(WATCHERS):
            mailbox = feed.mailbox(caller)
            opened.append(mailbox)
            await feed.watch_table(mailbox.__enter__(), config.id)
        used, views = time.process_time(), 5
        for _ in range(views):
            host.tables.signals.moved(config.id, (await _rows(host))[0].table.version)
            for _ in range(20):
                await asyncio.sleep(0)
        return (time.process_time() - used) / views / WATCHERS
    finally:
        for mailbox in opened:
            mailbox.__exit__(None, None, None)


# --- a host, and players in it ---------------------------------------------------------------------------------------


@asynccontextmanager
async def _host(folder: Path) -> AsyncIterator[Host]:
    folder.mkdir(parents=True)  # noqa: ASYNC240 - nothing else runs
    path = folder / "rgs.db"
    create_store(path, "0" * 26)
    store, clock, games = SqliteStore(path), Clock(), GameCatalog()
    instance = Instance(store=store, clock=clock, sealer=Sealer(Kek(1, {1: bytes(32)})), node="bench")
    await instance.start(KEY, manifest_sha256="0" * 64, software_version="bench", artifacts=())
    tables = TableServices(
        store=store,
        instance=instance,
        games=games,
        clock=clock,
        locks=SessionLocks(),
        availability=Availability(),
        orders=Orders(store=store, clock=clock),
        verify_admin=_nobody,
        encode=lambda *_: b"",
    )
    try:
        yield Host(store, clock, games, tables, path)
    finally:
        await tables.dealer.stop()
        await store.close()


async def _nobody(_: str) -> int:
    return 0


def _config(host: Host, shipped: str, table_id: str, *, fast: bool = False) -> TableConfig:
    """A shipped configuration under another id, always open."""
    config = load_table_config(shipped, rulesets=host.games.rulesets, jurisdictions=host.games.jurisdictions)
    timers = replace(config.timers, betting_ms=1_000, amber_ms=0, decision_ms=1_000, result_ms=1_000)
    return replace(config, id=table_id, timers=timers if fast else config.timers)


async def _seat(host: Host, config: TableConfig, players: int) -> None:
    """A table in its betting window, and players with reserved bets."""
    now_ms = host.clock.now_ms()
    table = Table(config.id, State.IDLE, version=0)
    round_id = host.tables.rounds.instance.new_id(now_ms)
    table = take(table, Step.BEGIN, host.games.clockwork(config), now_ms, round_id=round_id)
    host.tables.configs.keep(config)
    await host.store.commit(Change(table=TableRow(table, config.sha256, due_ms=table.deadline_ms)))
    for first in range(0, players, PAGE):
        numbers = range(first, min(players, first + PAGE))
        await asyncio.gather(*(_bet(host, config, number, now_ms) for number in numbers))


async def _bet(host: Host, config: TableConfig, number: int, now_ms: int) -> None:
    session = Session(
        session_id=host.tables.rounds.instance.new_id(now_ms),
        operator=config.operators[0],
        player=f"{config.id}-{number}",
        operator_reference=f"{config.id}-{number}",
        ruleset_id=config.ruleset_id,
        jurisdiction_id=config.jurisdiction_id,
        currency=config.currency,
        status=SessionStatus.OPEN,
        open_ms=now_ms,
        last_ms=now_ms,
        version=1,
        participation=Participation(bought_minor=100 * ANTE_MINOR),
        table_id=config.id,
        reserved_minor=2 * ANTE_MINOR,
    )
    ruleset = host.games.rulesets[config.ruleset_id]
    sitting = Sitting(
        table_id=config.id,
        session_id=session.session_id,
        operator=session.operator,
        player=session.player,
        nickname="bench",
        box=0 if ruleset.hole_cards == "shared" else number + 1,
        bets=(("ante", ANTE_MINOR), ("blind", ANTE_MINOR)),
        reserved_minor=2 * ANTE_MINOR,
    )
    await host.store.commit(Change(session=session, sitting=sitting))


async def _rows(host: Host) -> list[TableRow]:
    return await host.store.tables("", 10_000)


async def _pass(host: Host) -> None:
    """Let time pass until the next table is due."""
    due_ms = min((row.due_ms for row in await _rows(host) if row.due_ms), default=0)
    host.clock.ahead_ms += max(0, due_ms - host.clock.now_ms())


async def _cpu_until(host: Host, config: TableConfig, state: State) -> float:
    """CPU seconds of this process until the table stands there; windows pass at once."""
    used = time.process_time()
    while (await _rows(host))[0].table.state is not state:
        await _pass(host)
        await host.tables.dealer.advance(config.id)
    return time.process_time() - used


def _bytes(path: Path) -> int:
    """What the store takes on the disk, its write-ahead log aside."""
    return path.stat().st_size + sum(other.stat().st_size for other in path.parent.glob("rgs.db-wal"))
