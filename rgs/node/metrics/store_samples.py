"""The samples that are the same for all processes of a node: what the store, the log's folder and the files say.

They are read at most once in KEEP_MS. The totals of past days do not change, so each is read once a day; the totals of
today and yesterday at every scrape. The evidence of returns takes many logarithms and is read every RETURNS_MS.

Files are read in a thread, one reading at a time: a folder that hangs (NFS) stops neither the process nor the scrape.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from rgs.core.clock import Clock
from rgs.core.errors import RgsError
from rgs.core.times import format_date
from rgs.node.expiries import DAY_MS, Expiries
from rgs.node.metrics.samples import READ_S, Sample, Samples
from rgs.service.admin.monitoring import Measured
from rgs.service.callers import Role
from rgs.store.counts import GameTotals
from rgs.store.interface import Parties, Store

KEEP_MS: Final = 1_000
RETURNS_MS: Final = 60_000
FIRST_DAY, LAST_DAY = "0001-01-01", "9999-12-31"
CREDITS: Final = frozenset({"end", "credit"})
HELD, STAGES = "held", "stages"
UNREADABLE: Final = (OSError, RgsError)
"""What reading a file may raise: its sample is left out, the others are served."""
Sums = dict[tuple[str, str], list[int]]


@dataclass(kw_only=True, eq=False, repr=False)
class StoreSamples:
    """Reads them. `returns` gives what is measured, `entries` the entries of the log's newest shard, `witnesses` for
    how many seconds each has not cosigned at a running time and a time, `key_ms` when the node's key was signed,
    `disks` the room of each folder. The last four read files and are called in a thread; they may raise UNREADABLE.
    """

    store: Store
    parties: Parties
    clock: Clock
    expiries: Expiries
    returns: Callable[[], Awaitable[tuple[list[Measured], int]]]
    entries: Callable[[], int]
    witnesses: Callable[[int, int], dict[str, float]]
    key_ms: Callable[[], int]
    disks: Callable[[], dict[str, int]]

    _kept: list[Sample] = field(default_factory=list, init=False)
    _kept_ms: int | None = field(default=None, init=False)
    _past: Sums = field(default_factory=dict, init=False)
    _past_day: str = field(default="", init=False)
    """The first day that `_past` does not hold."""
    _returns: list[Measured] = field(default_factory=list, init=False)
    _returns_ms: int | None = field(default=None, init=False)
    _reading: asyncio.Task[list[Sample]] | None = field(default=None, init=False)
    """The reading of the files, which may have outlasted its scrape."""

    async def read(self) -> list[Sample]:
        """All samples of the store and the files; of the store only `rgs_store_up` 0 if it does not answer, of the
        files none if they are not read in the same time.
        """
        running_ms = self.clock.running_ms()
        if self._kept_ms is None or running_ms - self._kept_ms >= KEEP_MS:
            end_s = asyncio.get_running_loop().time() + READ_S
            if self._reading is None or self._reading.done():
                self._reading = asyncio.create_task(asyncio.to_thread(self._of_files, running_ms, self.clock.now_ms()))
            found = Samples()
            try:
                async with asyncio.timeout_at(end_s):
                    await self._read(found)
            except (RgsError, TimeoutError):
                found = Samples()
                found.add("rgs_store_up", 0)
            else:
                found.add("rgs_store_up", 1)
                found.add("rgs_store_read_seconds", (self.clock.running_ms() - running_ms) / 1000)
            self._read_certificates(found)
            found.found += await self._files_read(self._reading, end_s)
            self._kept, self._kept_ms = found.found, running_ms
        return self._kept

    async def _read(self, found: Samples) -> None:
        now_ms = self.clock.now_ms()
        for (game, currency), sums in sorted((await self._totals(now_ms)).items()):
            for name, value in zip(
                ("rounds", "staked_minor", "returned_minor", "void_rounds", "void_minor"), sums, strict=True
            ):
                found.add(f"rgs_{name}_total", value, game, currency)
        for row in await self.store.count_open_rounds():
            found.add("rgs_rounds_open", row.count, row.game)
            found.add("rgs_round_open_oldest_seconds", _age_s(now_ms, row.oldest_ms), row.game)
        found.add("rgs_sessions_open", await self.store.count_open_sessions())
        await self._read_outbox(found, now_ms)
        found.add("rgs_instances_alive", len(await self.store.instances(alive_only=True)))
        found.add("rgs_instances_lapsed", len(await self.store.lapsed_instances()))
        await self._read_returns(found)
        for state, count in (await self.store.count_tables()).items():
            found.add("rgs_tables", count, state)
        due_ms = await self.store.oldest_due_ms()
        found.add("rgs_table_overdue_seconds", _age_s(await self.store.clock_ms() or now_ms, due_ms))
        await self._read_database(found)
        ends_ms: dict[tuple[str, str], int] = {}
        for one in await self.expiries.allowed():  # while one is renewed, both are allowed: the later end counts
            ends_ms[one.role, one.party] = max(ends_ms.get((one.role, one.party), 0), one.last_ms or 0)
        for (role, party), last_ms in ends_ms.items():
            found.add("rgs_party_certificate_days_left", (last_ms - now_ms) / DAY_MS, role, party)

    async def _totals(self, now_ms: int) -> Sums:
        """The sums of all days, by game and currency."""
        yesterday = format_date(now_ms - DAY_MS)
        operators = sorted({row.party for row in await self.parties.all() if row.role == Role.OPERATOR})
        if self._past_day != yesterday:
            past: Sums = {}
            for operator in operators:
                _add(past, await self.store.game_totals(operator, FIRST_DAY, yesterday))
            self._past, self._past_day = past, yesterday
        sums = {key: list(values) for key, values in self._past.items()}
        for operator in operators:
            _add(sums, await self.store.game_totals(operator, yesterday, LAST_DAY))
        return sums

    async def _read_database(self, found: Samples) -> None:
        condition = await self.store.condition()
        if condition is None:
            return
        if condition.is_whole:
            found.add("rgs_database_waits_for_standby", condition.waits_for_standby)
            found.add("rgs_database_standbys", condition.standbys)
            found.add("rgs_database_standbys_sync", condition.standbys_sync)
            found.add("rgs_database_replay_lag_seconds", condition.replay_lag_s)
            found.add("rgs_database_oldest_transaction_seconds", condition.oldest_transaction_s)
        found.add("rgs_database_bytes", condition.bytes)
        found.add("rgs_database_connections", condition.connections)
        found.add("rgs_database_connections_max", condition.connections_max)
        found.add("rgs_database_archives", condition.archives)
        found.add("rgs_database_archive_failures_total", condition.archive_failures)
        found.add("rgs_database_archive_failing", condition.archive_failing)

    async def _read_outbox(self, found: Samples, now_ms: int) -> None:
        waiting: dict[str, tuple[int, int]] = {}
        for row in await self.store.outbox():
            count, oldest_ms = waiting.get(row.kind, (0, row.oldest_ms))
            waiting[row.kind] = (count + row.count, min(oldest_ms, row.oldest_ms))
        held, held_ms = waiting.pop(HELD, (0, 0))
        found.add("rgs_reports_held", held)
        found.add("rgs_report_held_oldest_seconds", _age_s(now_ms, held_ms))
        credits_ = [waiting[kind] for kind in CREDITS if kind in waiting]
        found.add("rgs_credits_owed", sum(count for count, _ in credits_))
        found.add("rgs_credit_owed_oldest_seconds", max((_age_s(now_ms, ms) for _, ms in credits_), default=0))
        for kind in ("open", "purchase", "start", "act", "end", "close", "credit", STAGES):
            count, oldest_ms = waiting.get(kind, (0, 0))
            found.add("rgs_outbox_waiting", count, kind)
            found.add("rgs_outbox_oldest_seconds", _age_s(now_ms, oldest_ms), kind)

    async def _read_returns(self, found: Samples) -> None:
        running_ms = self.clock.running_ms()
        if self._returns_ms is None or running_ms - self._returns_ms >= RETURNS_MS:
            self._returns, _ = await self.returns()
            self._returns_ms = running_ms
        alarms: dict[tuple[str, str, str], bool] = {}
        rounds: dict[str, int] = {}
        for one in self._returns:  # versions of a ruleset are one game here
            rounds[one.ruleset_id] = rounds.get(one.ruleset_id, 0) + one.tally.life.rounds
            for reading in one.readings:
                key = (one.ruleset_id, reading.figure, reading.series)
                alarms[key] = alarms.get(key, False) or reading.is_alarming
        for game, count in rounds.items():
            found.add("rgs_return_rounds", count, game)
        for key, is_alarming in alarms.items():
            found.add("rgs_return_alarm", is_alarming, *key)

    def _read_certificates(self, found: Samples) -> None:
        now_ms = self.clock.now_ms()
        for name, last_ms in self.expiries.ends_ms.items():
            found.add("rgs_certificate_days_left", (last_ms - now_ms) / DAY_MS, name)

    async def _files_read(self, reading: asyncio.Task[list[Sample]], end_s: float) -> list[Sample]:
        """What the reading has found; nothing if it still goes on at this time of the loop."""
        left_s = max(0.0, end_s - asyncio.get_running_loop().time())
        done, _ = await asyncio.wait([reading], timeout=left_s)
        return reading.result() if done else []

    def _of_files(self, running_ms: int, now_ms: int) -> list[Sample]:
        found = Samples()
        with contextlib.suppress(*UNREADABLE):
            found.add("rgs_log_entries", self.entries())
        with contextlib.suppress(*UNREADABLE):
            for witness, age_s in self.witnesses(running_ms, now_ms).items():
                found.add("rgs_witness_age_seconds", age_s, witness)
        with contextlib.suppress(*UNREADABLE):
            for folder, free in self.disks().items():
                found.add("rgs_disk_free_bytes", free, folder)
        with contextlib.suppress(*UNREADABLE):  # a key that is not in force is the guard `keys`, not a failed scrape
            found.add("rgs_node_key_days", (now_ms - self.key_ms()) / DAY_MS)
        return found.found


def _add(sums: Sums, rows: Iterable[GameTotals]) -> None:
    for row in rows:
        values = (row.rounds, row.staked_minor, row.returned_minor, row.void_rounds, row.void_minor)
        before = sums.get((row.game, row.currency), [0] * len(values))
        sums[row.game, row.currency] = [one + more for one, more in zip(before, values, strict=True)]


def _age_s(now_ms: int, since_ms: int) -> float:
    """The age in seconds of something since a time; 0 for time 0, which is none."""
    return max(0, now_ms - since_ms) / 1000 if since_ms else 0.0
