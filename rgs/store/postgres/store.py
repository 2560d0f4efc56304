"""The main store on PostgreSQL: any number of processes over one database. Each has one connection that commits, a few
that read and one for signals.

Outcomes and errors are the same as on SQLite. What this process committed last is kept in memory as a first guess:
another process may have moved the session since, and every commit compares versions. While a commit is stuck, new
commits and reads fail at once; they work again by themselves when the database is back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Self

from rgs.store.address import PostgresAddress
from rgs.store.changes import Change, NewInstance, Signed, StoreError
from rgs.store.interface import INSTANCES, InstanceRow, Store
from rgs.store.postgres import texts
from rgs.store.postgres.commits import Commits
from rgs.store.postgres.link import Link, verify_durable
from rgs.store.postgres.reads import PostgresReads
from rgs.store.postgres.schema import reach, verify_schema
from rgs.store.postgres.side import Side
from rgs.store.writer import CommitOutcome, Writer

DAY_MS: Final = 86_400_000
FORGOTTEN_MAX: Final = 500
"""Lines of chat that one statement drops."""
PARTITION_DAYS: Final = 7
"""How many days of answers have their partitions made ahead; the first is yesterday."""


class PostgresStore(PostgresReads, Store):
    """The open store of one process, made by `open`."""

    def __init__(self, address: PostgresAddress, link: Link) -> None:
        PostgresReads.__init__(self, address)
        self._commits = Commits(address, link)
        self._side = Side(address)
        Store.__init__(self, Writer(self._commits.apply, self._commits.owe))

    @classmethod
    async def open(cls, address: PostgresAddress) -> Self:
        """StoreRefusedError unless there is a store of this schema, in a database that commits durably."""
        link = await reach(address)
        try:
            await verify_durable(link)
            beside_older = await verify_schema(link, address)
        except BaseException:
            link.drop()
            raise
        store = cls(address, link)
        store.beside_older = beside_older
        return store

    @property
    def large_win_minor(self) -> int:
        return self._commits.large_win_minor

    @large_win_minor.setter
    def large_win_minor(self, value: int) -> None:
        self._commits.large_win_minor = value

    @property
    def draws_owed(self) -> int:
        return len(self._commits.owed) + self.writer.draws_unknown

    @property
    def draw_window(self) -> int:
        return self._commits.draw_window

    async def start_instance(self, new: NewInstance) -> Signed:
        signed = await self._commits.start(new)
        await self.make_days(new.start_ms)
        return signed

    async def apply(self, changes: list[Change]) -> Sequence[CommitOutcome]:
        """Commit one group at once."""
        return await self._commits.apply(changes)

    async def forget_reports(self, row_ids: Sequence[int]) -> None:
        self._commits.forget.extend(row_ids)
        await self.writer.commit(Change())

    async def close(self) -> None:
        await self.writer.close()
        await self._commits.close()
        await self._side.close()
        await super().close()

    def _verify_answering(self) -> None:
        if self.writer.is_stuck:
            raise StoreError("the store is not answering")

    # --- answers --------------------------------------------------------------------------------------------------

    async def make_days(self, now_ms: int) -> int:
        """Make the partitions of the next days; how many were missing."""
        rows = await self.ask("SELECT make_partitions(?, ?)", max(0, now_ms - DAY_MS), PARTITION_DAYS)
        made: int = rows[0][0]
        return made

    async def forget_answers(self, now_ms: int, before_ms: int) -> int:
        reported_ms = await self.clock_ms()
        before_ms = min(before_ms, before_ms if reported_ms is None else reported_ms - (now_ms - before_ms))
        await self.make_days(max(now_ms, before_ms + DAY_MS))
        rows = await self.ask("SELECT drop_answers(?)", before_ms)
        gone: int = rows[0][0]
        return gone

    async def forget_chat(self, before_ms: int) -> int:
        return len(await self.ask(texts.FORGET_CHAT, before_ms, FORGOTTEN_MAX))

    async def forget_launches(self, before_ms: int) -> int:
        return len(await self.ask(texts.FORGET_LAUNCHES, before_ms, FORGOTTEN_MAX))

    # --- many processes -------------------------------------------------------------------------------------------

    async def renew_lease(self, instance: str, lease_ms: int) -> bool:
        return bool(await self.ask(texts.RENEW_LEASE, instance, lease_ms))

    async def lapsed_instances(self) -> list[InstanceRow]:
        return [INSTANCES.read(row) for row in await self.ask(texts.LAPSED, self._commits.instance)]

    async def lead(self, duty: str) -> bool:
        return await self._side.lead(duty)

    async def emit(self, payload: str) -> None:
        await self._side.emit(payload)

    async def listen(self, callback: Callable[[str], None]) -> None:
        await self._side.listen(callback)
