"""The writing half on PostgreSQL (ARCHITECTURE 2.18, durable before said): one connection a process, one transaction a
group.

The order: lock the rows of tables, then those of sessions, compare versions, assign numbers, sign, insert all of it by
one statement (what belongs to tables by others, where there is any), commit.
A commit is *unknown* when the connection broke, when the server warned that it gave up waiting for its standby, or when
no answer came for long. Then the connection is dropped, never cancelled, and the group is looked for by a write on the
instance's own row. The group wrote that row too. So the look waits while the lost transaction lives, and once the look
is committed, what it saw is as durable as itself. Only then are the numbers used again or counted as used, and nothing
is said of the commit before.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import astuple
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import asyncpg

from rgs.store.address import PostgresAddress
from rgs.store.changes import (
    Change,
    Draft,
    InstanceHandover,
    NewInstance,
    OvertakenError,
    RequestSeenError,
    SessionRaceError,
    Signed,
    StoreAwayError,
    StoreError,
    StoreRefusedError,
    SwitchOff,
    SwitchOn,
    TableMovedError,
)
from rgs.store.group import Group, Known, SigningIdentity, parted, tables_followed, tables_moved
from rgs.store.numbers import SLOTS, RowNumbers
from rgs.store.postgres import texts
from rgs.store.postgres.link import GAP_S, LOST, Link, connect, verify_durable
from rgs.store.postgres.schema import known_version, verify_schema
from rgs.store.rows import ONE_ROW, REFERENCE_INDEX, table_of, texts_of
from rgs.store.table_records import SittingEnded
from rgs.store.table_rows import TABLE_ROUNDS
from rgs.store.tables import Column
from rgs.store.writer import CommitOutcome

REACH_S: Final = 2.0
"""How long a group is tried again while no server takes writes: about as long as a promotion takes."""
ABANDON_S: Final = 10.0
"""After so long without an answer a connection counts as lost."""
LOCK_WAIT: Final = "SET LOCAL lock_timeout = '2s'"
_OF_TABLES: Final = {"tables", "table_rounds", "sittings", "table_configs"}
"""A key of these is taken, or a row of them has moved."""
_OF_DUTIES: Final = {"returns", "finals", "large_wins"}
_KEYS_OF_DUTIES: Final = {"returns_late", "finals"}
"""The process that leads a duty finds a row of the former as it was read, and the keys of the latter free."""
LEASE_FIRST_MS: Final = 60_000
"""The lease that an instance starts with."""


class OutageError(Exception):
    """The database did not commit. Callers get a StoreError."""


class LostError(Exception):
    """The connection was lost with nothing committed."""


class ShortError(Exception):
    """A statement changed fewer rows than the group has: the state that the group was computed from has changed."""


class Commits:
    """Applies groups of changes; one call of `apply` at a time."""

    def __init__(self, address: PostgresAddress, link: Link) -> None:
        self._address = address
        self._link: Link | None = link
        self._attempt = 0
        self._identity = SigningIdentity()
        self._slot = 0
        self._last_id = 0
        """The greatest row number of the instance that is durable."""
        self.large_win_minor = 0
        self.owed: list[Draft] = []
        """Discarded draws whose statement could not be committed yet: they come first in the next group."""
        self.forget: list[int] = []
        """Stage reports that the regulator has; they are deleted with the next group."""
        self._closed = False

    @property
    def instance(self) -> str:
        """The instance that the store signs as."""
        return self._identity.instance

    @property
    def draw_window(self) -> int:
        """Draws that may be in flight at once, as the durable statements of the instance say."""
        return self._identity.draw_window

    async def start(self, new: NewInstance) -> Signed:
        """Insert the instance's row, in a slot of its own, and its statement 1."""
        group = Group(SigningIdentity(new.instance, new.signer), 0)
        signed = group.start(new.start, new.node_signer)
        slots: list[int] = []

        async def insert(link: Link) -> None:
            await link.connection.execute(texts.LOCK_SLOTS)
            await verify_schema(link, self._address)  # a migration may have come since the store was opened
            ((slot, previous, now_ms),) = await link.connection.fetch(texts.FREE_SLOT)
            if slot is None:
                raise StoreAwayError("as many instances are alive in the store as there are slots", limit=SLOTS)
            before = await link.connection.fetchrow(texts.BOOT_BEFORE, new.node, new.worker)
            if before is not None and not before["alive"] and "previous_boot" not in new.start.body:
                raise StoreAwayError(f"{before['instance']} has ended while {new.instance} was starting: start again")
            await link.connection.execute(
                texts.INSERT_INSTANCE, *new.row, slot, previous, LEASE_FIRST_MS, known_version()
            )
            slots[:] = [slot, await self._write(link, group, RowNumbers(slot, now_ms, previous), [])]

        try:
            await self._transaction(insert)
        except OutageError as error:
            raise StoreError(str(error)) from None
        except asyncpg.PostgresError as error:
            raise StoreError(f"the instance could not be started ({type(error).__name__})") from None
        self._identity, (self._slot, self._last_id) = group.identity, slots
        return signed

    def owe(self, change: Change) -> None:
        """The change was never applied: its draw is accounted for with the next group."""
        if change.discard is not None:
            self.owed.append(change.discard)

    async def close(self) -> None:
        """Close the connection. A commit that is stuck on it is left to the database."""
        self._closed = True
        link, self._link = self._link, None
        if link is not None:
            await link.close()

    # --- groups ---------------------------------------------------------------------------------------------------

    async def apply(self, changes: list[Change]) -> Sequence[CommitOutcome]:
        """Commit the changes in one transaction. If that fails, each gets one of its own, so that none fails its
        neighbours. If the database does not answer, or did not commit, all fail.
        """
        # The one statement that writes a part sees none of its own rows.
        parts = list(parted(changes, is_session_once=True))
        if len(parts) > 1:
            return [outcome for part in parts for outcome in await self.apply(part)]
        try:
            return await self._apply(changes)
        except OutageError as error:
            self.owed.extend(change.discard for change in changes if change.discard is not None)
            return [StoreError(str(error)) for _ in changes]
        except Exception as error:  # noqa: BLE001 - whatever it was, it fails one change and leaves no draw unaccounted
            if len(changes) > 1:
                return [(await self.apply([change]))[0] for change in changes]
            (change,) = changes
            if change.discard is not None:
                self.owed.append(change.discard)
            return [_failure_of(change, error)]

    async def _apply(self, changes: list[Change]) -> list[CommitOutcome]:
        outcomes: list[CommitOutcome] = []
        last: list[Group] = []
        forgotten = list(self.forget)
        owed = list(self.owed)
        mark = 0

        async def write(link: Link) -> tuple[str, int]:
            nonlocal mark
            group = Group(self._identity, self.large_win_minor)
            # 1. Lock. The versions of tables and sessions; last, the database's clock.
            tables, newest = await _lock_tables(link, changes)
            ids = sorted({c.session.session_id for c in changes if c.session is not None and c.session.version > 1})
            *rows, clock = await _fetch(link, texts.LOCK_SESSIONS, ids)
            known = Known({row[0]: row[1] for row in rows}, tables, clock[3])
            previous = max(self._last_id, newest, *(row[2] for row in rows))
            for change in changes:
                previous = max(previous, await self._lock_ended(link, change))
            # 2. Numbers, signatures, rows.
            outcomes[:] = group.fill(changes, known, owed)
            # 3. Insert.
            numbers = RowNumbers(self._slot, clock[3], previous)
            mark = await self._write(link, group, numbers, forgotten)
            poll = (group.instance, mark)
            if changes and changes[0].handover is not None:
                group, mark = await self._hand_over(link, changes[0].handover, group, numbers)
            last[:] = [group]
            return poll

        # 4. Commit. The counters follow only a commit.
        await self._transaction(write)
        self._identity, self._last_id = last[0].identity, mark
        del self.owed[: len(owed)]
        del self.forget[: len(forgotten)]
        return outcomes

    async def _hand_over(
        self, link: Link, handover: InstanceHandover, ended: Group, numbers: RowNumbers
    ) -> tuple[Group, int]:
        await link.connection.execute(
            texts.INSERT_INSTANCE, *handover.row, self._slot, 0, LEASE_FIRST_MS, known_version()
        )
        begun = ended.turned(handover)
        return begun, await self._write(link, begun, numbers, [])

    async def _lock_ended(self, link: Link, change: Change) -> int:
        """Lock the row of another instance that this change ends; its last row number. StoreError unless its lease has
        lapsed and its numbers are those that the statement names.
        """
        if change.ends is None or change.ends[0] == self._identity.instance:
            return 0
        named = change.ends[0]
        rows = await _fetch(link, texts.LOCK_INSTANCE, named, self._identity.instance)
        lost = next((draft.body.get("lost") for draft in change.drafts if draft.kind == "instance_lost"), None)
        if not rows or not rows[0]["alive"] or not rows[0]["lapsed"]:
            raise StoreError(f"instance {named} cannot be ended: it has ended already, or its lease was renewed")
        found = (str(rows[0]["statement_no"]), str(rows[0]["draw_no"]))
        if lost is not None and found != (lost["last_statement_no"], lost["last_draw_no"]):
            raise StoreError(f"instance {named} has committed since its last numbers were read")
        last_id: int = rows[0]["last_id"]
        return last_id

    async def _write(self, link: Link, group: Group, numbers: RowNumbers, forgotten: list[int]) -> int:
        """Insert the rows of a group; the row number that its instance's row now stands at."""
        run = link.connection
        new_sessions = [(numbers.take(), *row) for row in group.new_sessions]
        new_rounds = [(numbers.take(), *row) for row in group.new_rounds]
        reports = [(numbers.take(), *row) for row in group.reports]
        statements = [(numbers.take(), *row) for row in group.statements]
        mark = numbers.take()
        # Sessions and tables get the highest number of this group, events included: what comes next has a higher one.
        if new_sessions:
            opened = [(*row, mark) for row in new_sessions]
            await run.execute(texts.OPEN_SESSIONS, *_columns(opened, texts.NEW_SESSIONS))
        for operation in group.operations:
            await run.execute(texts.INSERT_OPERATION, *operation)
        for day in group.day_rows():
            await run.execute(texts.INSERT_DAY, *day)
        await _move_tables(link, group, mark)
        tables: tuple[Sequence[tuple[Any, ...]], ...] = (
            [(*row, mark) for row in group.sessions], new_rounds, group.rounds, statements,
            group.privates, group.answers, reports, group.totals, group.day_totals_rows(),
        )  # fmt: skip
        arrays = [
            array for rows, columns in zip(tables, texts.COMMIT_ROWS, strict=True) for array in _columns(rows, columns)
        ]
        counters = (group.statement_no, group.draw_no, mark, group.instance, group.first_no)
        (counts,) = await _fetch(link, texts.COMMIT, *arrays, forgotten, *counters)
        for what, count, wanted in zip(
            ("sessions", "rounds", "instances"), counts, (len(group.sessions), len(group.rounds), 1), strict=True
        ):
            if count != wanted:
                raise ShortError(what)
        for record in group.records:
            for text in texts_of(record):
                status = await run.execute(texts.postgres_text(text), *astuple(record))
                if isinstance(record, ONE_ROW) and not status.endswith(" 1"):
                    raise ShortError(table_of(record))
            if isinstance(record, SittingEnded) and await _fetch(link, texts.IS_LEFT, record.session_id):
                raise ShortError("sittings")
        if any(isinstance(record, SwitchOff | SwitchOn) for record in group.records):
            await run.execute(texts.STATE_CHANGED, "switches")
        for artifact in group.artifacts:
            await run.execute(texts.INSERT_ARTIFACT, *artifact)
        for end in group.ends:
            if not (await run.execute(texts.END_INSTANCE, *end)).endswith(" 1"):
                raise ShortError("instances")
        return mark

    # --- one transaction ------------------------------------------------------------------------------------------

    async def _transaction(self, body: Callable[[Link], Awaitable[tuple[str, int] | None]]) -> None:
        """Run the body and commit. It is tried again on another connection while nothing was committed and the database
        does not answer.

        `body` returns the row that shows whether it was committed (instance, its `last_id`). OutageError: it was not.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + REACH_S
        while True:
            try:
                return await self._once(await self._connected(), body)
            except LostError:
                if self._closed or loop.time() >= deadline:
                    raise OutageError("the database takes no writes; nothing of it took effect") from None
            await asyncio.sleep(GAP_S)

    async def _once(self, link: Link, body: Callable[[Link], Awaitable[tuple[str, int] | None]]) -> None:
        watchdog = asyncio.get_running_loop().call_later(ABANDON_S, link.drop)
        try:
            try:
                await link.connection.execute("BEGIN")
                poll = await body(link)
            except asyncpg.DataError:
                await self._roll_back(link)
                raise
            except LOST:
                self._drop(link)
                raise LostError from None
            except BaseException:
                await self._roll_back(link)
                raise
            link.warned = False
            try:
                await link.connection.execute("COMMIT")
                is_known = not link.warned
            except Exception:  # noqa: BLE001 - whatever it was, it came too late to say that nothing was committed
                is_known = False
        finally:
            watchdog.cancel()
        if not is_known:
            self._drop(link)
            if poll is None or not await self._has_landed(*poll):
                raise OutageError("the database did not commit; nothing of it took effect")

    async def _has_landed(self, instance: str, mark: int) -> bool:
        """Look for a group by the row that it wrote, until the database answers; OutageError when the store closes."""
        gap_s = GAP_S
        while not self._closed:
            try:
                link = await self._connected()
            except LostError:
                link = None
            if link is not None:
                watchdog = asyncio.get_running_loop().call_later(ABANDON_S, link.drop)
                # Without an answer another connection is asked.
                try:
                    with contextlib.suppress(Exception):
                        await link.connection.execute("BEGIN")
                        await link.connection.execute(LOCK_WAIT)
                        found = await link.connection.fetchval(texts.READ_BACK, instance)
                        link.warned = False
                        await link.connection.execute("COMMIT")
                        if not link.warned:
                            return bool(found == mark)
                finally:
                    watchdog.cancel()
                self._drop(link)
            await asyncio.sleep(gap_s)
            gap_s = min(1.0, 2 * gap_s)
        raise OutageError("the store was closed before the database answered whether it committed")

    async def _connected(self) -> Link:
        if self._link is None or not self._link.is_open:
            try:
                link = await connect(self._address, self._attempt)
                try:
                    await verify_durable(link)
                except BaseException:
                    link.drop()
                    raise
            except (*LOST, StoreRefusedError):
                self._attempt += 1
                raise LostError from None
            self._link = link
        return self._link

    def _drop(self, link: Link) -> None:
        link.drop()
        self._link = None

    async def _roll_back(self, link: Link) -> None:
        try:
            await link.connection.execute("ROLLBACK")
        except Exception:  # noqa: BLE001 - a connection that is gone rolls back by itself
            self._drop(link)


async def _lock_tables(link: Link, changes: list[Change]) -> tuple[dict[str, int], int]:
    """Lock the rows of tables that the changes move or demand to stand; their versions, and the greatest row number of
    these tables and of those whose seats are opened or end. All groups lock in the order of the ids, so that two never
    wait for one another in a circle.
    """
    moved = tables_moved(changes)
    wanted = moved | {change.guard.table_id for change in changes if change.guard is not None}
    known: dict[str, int] = {}
    newest = 0
    for is_moved, ids in groupby(sorted(wanted), key=moved.__contains__):
        text = texts.LOCK_TABLES if is_moved else texts.HOLD_TABLES
        for table_id, version, last_id in await _fetch(link, text, list(ids)):
            known[table_id], newest = version, max(newest, last_id)
    followed = tables_followed(changes) - wanted
    if followed:
        newest = max(newest, (await _fetch(link, texts.FOLLOW_TABLES, sorted(followed)))[0][0])
    return known, newest


async def _move_tables(link: Link, group: Group, mark: int) -> None:
    """Write the rows of tables, their rounds and their seats, in the order of the keys."""
    for (table, more, insert, move), (new, moved) in zip(texts.VERSIONED_ROWS, group.versioned, strict=True):
        last = (mark,) * len(more)
        if new:
            await _fetch(link, insert, *_columns([(*row, *last) for row in new], (*table.columns, *more)))
        if moved:
            by_key = [(*row, *last) for row in sorted(moved, key=itemgetter(-1))]  # a changed row ends with its key
            if len(await _fetch(link, move, *_columns(by_key, (*table.moved, *more)))) != len(moved):
                raise ShortError(table.name)
        if table is TABLE_ROUNDS and group.seats_signed:
            round_ids, times_ms = zip(*sorted(group.seats_signed.items()), strict=True)
            await _fetch(link, texts.SEATS_SIGNED, round_ids, times_ms, mark)


def _columns(rows: Sequence[tuple[Any, ...]], columns: Sequence[Column]) -> Sequence[Sequence[Any]]:
    return list(zip(*rows, strict=True)) if rows else [()] * len(columns)


async def _fetch(link: Link, text: str, *values: Any) -> Sequence[Any]:
    """Through a statement that is prepared once a connection."""
    prepared = link.prepared.get(text)
    if prepared is None:
        prepared = link.prepared[text] = await link.connection.prepare(text)
    rows: Sequence[Any] = await prepared.fetch(*values)
    return rows


def _failure_of(change: Change, error: Exception) -> Exception:
    """The error of a change that failed by itself. Names of tables are ours and hold no value of a row."""
    if isinstance(error, asyncpg.UniqueViolationError):
        table = str(error.table_name)
        if change.answer is not None and table.startswith("answers"):
            return RequestSeenError("the request id was used before", request_id=change.answer.request_id)
        if table in _OF_TABLES:
            return TableMovedError("the table, or a seat of it, was changed by another request")
        if error.constraint_name == REFERENCE_INDEX:
            return SessionRaceError("another session of the operator was opened with this operator_reference")
        if table in {"operations", "rounds", "free_bets", "launches"}:
            return SessionRaceError("the session was changed by another request")
        if table in _KEYS_OF_DUTIES:
            return _overtaken()
    if isinstance(error, ShortError) and error.args[0] in _OF_DUTIES:
        return _overtaken()
    if isinstance(error, ShortError) and error.args[0] in _OF_TABLES:
        return TableMovedError("the table, or a seat of it, was changed by another request")
    if isinstance(error, ShortError) and error.args[0] in {"rounds", "free_bets", "launches"}:
        return SessionRaceError("the session was changed by another request")
    if isinstance(error, asyncpg.PostgresError | asyncpg.InterfaceError | ShortError):
        return StoreError(f"the store could not commit ({type(error).__name__}); nothing of it took effect")
    return error


def _overtaken() -> OvertakenError:
    return OvertakenError("another process has done this meanwhile; nothing of it took effect")
