"""The sequencer brings committed statements of the main store into the log, in order (ARCHITECTURE 2.15).

Each round: read in one query how far every instance has come; give the next statements their indices, durable before
anything follows from them; write their files; sign; publish. A round that was cut short is finished first. Each
instance is followed by its own counter, so no statement is missed, whichever commits first. Between instances the row
numbers decide, which keep the order of every session. The statements of the key bundle come before all others.

One process leads: the store says which, and it holds the lock on the log's folder. The others stand by. Where log,
databases and store contradict each other nothing is signed, and `code` says why. No game waits for the log. With `seal`
the private blocks of logged statements are kept sealed beside the log, never in it.
"""

from __future__ import annotations

import asyncio
import fcntl
import heapq
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, aclosing
from dataclasses import dataclass
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Final, TypeVar

import structlog

from rgs.core.clock import Clock
from rgs.core.ids import opening_id
from rgs.core.recovery import with_request
from rgs.core.shards import format_origin, half_year, parse_origin
from rgs.core.statements.envelope import Signer, parse_envelope
from rgs.core.statements.kinds import parse_statement
from rgs.core.tlog.checkpoints import parse_checkpoint
from rgs.core.tlog.note import ED25519, Note, format_vkey, note_key
from rgs.core.tlog.tiles import TILE_WIDTH
from rgs.store.checkpoints import Checkpoints
from rgs.store.interface import InstanceRow, StatementRow, Store
from rgs.store.privates import PRIVATES_FILE, SealedPrivate, SealedPrivates
from rgs.store.sequence import LogOrder, LogShard
from rgs.tlog.directory import LogDirectory, LogRefusedError
from rgs.tlog.keybundle import bundle_name, bundle_rows, is_bundle, verify_bundle, verify_holds
from rgs.tlog.shard import ShardWriter, keep_cosigned

DUTY: Final = "log"
BATCH: Final = 256
"""Most statements that one checkpoint adds."""
BATCHES_MAX: Final = 32
"""Rounds before the store is asked again which process leads."""
FULL_POLL_MS: Final = 5_000
"""How often ended instances are read, too: one may have started and ended between two readings."""
REPORTED_MS: Final = 60_000
"""How often the process logs how far the transparency log has come."""
RETRY_MS: Final = 5_000
"""Between two tries to open a log that was refused."""
STAND_BY_MS: Final = 1_000
"""How often a process that stands by checks the leader's progress."""
ORDER_FILE: Final = "order.db"
CHECKPOINTS_FILE: Final = "checkpoints.db"
CHECKPOINT_KNOWN: Final = "CHECKPOINT_KNOWN"
"""The code of the events that name the newest cosigned checkpoint."""
LOG_BEHIND: Final = "LOG_BEHIND"
"""Code where statements have waited for the log longer than they may."""

_T = TypeVar("_T")


class _Open:
    """What the leader holds: the folder's lock, the databases, the shard that grows."""

    def __init__(self, folder: Path, held: ExitStack) -> None:
        self.held = held
        self.folder = folder
        self.checkpoints = Checkpoints(folder / CHECKPOINTS_FILE)
        held.callback(self.checkpoints.close)
        self.order = LogOrder(folder / ORDER_FILE)
        held.callback(self.order.close)
        self.privates = SealedPrivates(folder / PRIVATES_FILE)
        held.callback(self.privates.close)
        self.shard: LogShard
        self.writer: ShardWriter

    def enter(self, shard: LogShard, signer: Signer) -> None:
        """Continue with a shard; LogRefusedError."""
        directory = LogDirectory(shard_folder(self.folder, shard.origin))
        self.shard, self.writer = shard, ShardWriter.open(directory, self.checkpoints, shard.origin, signer)
        if self.order.count(shard.number) < self.writer.size:
            raise LogRefusedError(
                "ORDER_BEHIND",
                f"{self.writer.size} entries of {shard.origin} are signed, {ORDER_FILE} has fewer: it was restored"
                " from a backup",
                path=self.folder,
            )


def shard_folder(folder: Path, origin: str) -> Path:
    """Where the shard lies: the folder to be served."""
    return folder / parse_origin(origin)[1]


@dataclass(kw_only=True, eq=False, repr=False)
class Sequencer:
    """One process's part in the log. `work` is called again and again; `code` and `lag_ms` show its state."""

    store: Store
    clock: Clock
    folder: Path
    prefix: str
    """The origin without its half-year."""
    signer: Signer
    delay_ms: int
    """How long a statement may wait."""
    keys: Callable[[], Sequence[bytes]] = tuple
    """Gives the statements of the key bundle in service, verified."""
    seal: Callable[[bytes, bytes], bytes] | None = None
    """Makes of a statement's hash and its private block what is kept beside the log (docs/keys.md 5): without it none
    is kept.
    """

    def __post_init__(self) -> None:
        self._keys_seen: Sequence[bytes] = ()
        """The key bundle as it was last compared with the log."""
        self._open: _Open | None = None
        self._thread = ThreadPoolExecutor(1, "log")
        self._refusal: LogRefusedError | None = None
        self._accusation: LogRefusedError | None = None
        self._refused_ms = 0
        self._counters: dict[str, int] = {}
        self._alive: frozenset[str] = frozenset()
        self._polled_ms = self._watched_ms = -FULL_POLL_MS
        self._owed: dict[str, int] = {}
        self._owed_since_ms = 0
        self._worst_lag_ms = 0
        self._reported_ms = self.clock.running_ms()
        self.on_published: Callable[[bytes], None] = lambda _: None
        """Called with each signed checkpoint once it is public. When this process begins to lead, it is called with the
        last one of the shard before and with the newest.
        """

    # --- how it goes ----------------------------------------------------------------------------------------------

    @property
    def leads(self) -> bool:
        """Whether this process writes the log now."""
        return self._open is not None

    @property
    def vkey(self) -> str:
        """The verifier key of the shard that grows; empty while this process does not lead."""
        return "" if self._open is None else self.vkey_of(self._open.shard.origin)

    def vkey_of(self, origin: str) -> str:
        """This log key under the name of a shard."""
        return format_vkey(note_key(origin, ED25519, self.signer))

    @property
    def lag_ms(self) -> int:
        """How long the oldest statement that is not in the log has been known here, at least."""
        return self.clock.running_ms() - self._owed_since_ms if self._owed else 0

    @property
    def code(self) -> str:
        """Why no new rounds should begin, a code; empty while the log is sound."""
        against = self._accusation or self._refusal
        if against is not None:
            return against.code
        return LOG_BEHIND if self.lag_ms > self.delay_ms else ""

    # --- the work -------------------------------------------------------------------------------------------------

    async def work(self) -> None:
        """Bring waiting statements into the log, if this process leads. LogRefusedError, StoreError, OSError: the next
        call tries again.
        """
        if not await self.store.lead(DUTY):
            await self._let_go()
            await self._stand_by()
            return
        if self._accusation is not None:
            raise self._accusation.with_traceback(None)
        if self._refusal is not None and self.clock.running_ms() - self._refused_ms < RETRY_MS:
            raise self._refusal
        try:
            opened = self._open or await self._take_over()
            if opened is None:
                return
            for _ in range(BATCHES_MAX):
                if not await self._batch(opened):
                    break
        except BaseException as error:
            # It is not known what has been written: begin again from the durable state.
            if isinstance(error, LogRefusedError):
                self._refusal, self._refused_ms = error, self.clock.running_ms()
            await asyncio.shield(self._let_go())
            raise
        self._refusal = None

    async def finish(self) -> None:
        """Try to bring in what is left before the process ends."""
        try:
            self._polled_ms = self.clock.running_ms() - FULL_POLL_MS
            await self.work()
        except Exception as error:  # noqa: BLE001 - whatever it was, the next start goes on from here
            structlog.get_logger().warning("log_not_finished", exc_info=error)

    async def close(self) -> None:
        """Finish, and let go."""
        try:
            await self.finish()
        finally:
            await self._let_go()
            self._thread.shutdown()

    async def cosign(self, note: Note, *, has_quorum: bool) -> bool:
        """Keep a checkpoint with its witnesses' lines, and publish it with them if it is still the last of its shard.
        False where this process no longer writes the log. LogRefusedError, StoreError, OSError.
        """
        origin = parse_checkpoint(note.text).origin

        def add(opened: _Open) -> bool:
            if self._open is not opened:
                return False
            if opened.shard.origin == origin:
                opened.writer.cosign(note, has_quorum=has_quorum)
            elif (last := opened.checkpoints.newest(origin)) is not None:  # of the shard before
                directory = LogDirectory(shard_folder(self.folder, origin))
                keep_cosigned(directory, opened.checkpoints, last, note, has_quorum=has_quorum)
            return True

        return self._open is not None and await self._run(add, self._open)

    def accuse(self, error: LogRefusedError) -> None:
        """Sign nothing more in this process: this log key has signed another history."""
        self._accusation = error

    async def _batch(self, opened: _Open) -> bool:
        """Finish what has its index, or give the next statements theirs. Whether there is more to do at once."""
        shard, size = opened.shard, opened.writer.size
        count = await self._run(opened.order.count, shard.number)
        if count == size:
            name = half_year(self.clock.now_ms())
            if name > parse_origin(shard.origin)[1] and self.clock.is_trusted:
                await self._run(self._next_shard, opened, format_origin(self.prefix, name))
                return True
            positions = await self._run(opened.order.positions)
            await self._poll()
            await self._check_keys()  # after it: the key of an instance that was seen is there by now
            self._progress(positions, size)
            rows = await self._gather(positions)
            if not rows:
                return False
            await self._run(opened.order.assign, shard.number, size, [(row.instance, row.statement_no) for row in rows])
        else:
            statements = await self._run(opened.order.statements, shard.number, size, min(count, size + BATCH))
            rows = await self._fetch([one for one in statements if one[0]])
        # The first entry of a shard that follows another one is its own.
        entries = [] if size or not shard.first else [shard.first]
        entries += [row.envelope for row in rows]
        artifacts = [await self._artifact(row) for row in rows if row.kind == "artifact"]
        await self._run(opened.privates.add, await self._sealed(rows))
        await self._run(opened.writer.write, entries, artifacts)
        await self._run(opened.writer.sign)
        await self._run(opened.writer.publish)
        self.on_published(opened.writer.newest.note)
        # What came meanwhile waits for the next call: otherwise each statement would get a checkpoint of its own.
        return count > size or len(rows) == BATCH

    async def _sealed(self, rows: Sequence[StatementRow]) -> list[SealedPrivate]:
        """The private blocks of the rows, sealed; that of an opening with the request that opened the session."""
        found: list[SealedPrivate] = []
        for row in rows:
            if self.seal is None or not row.private:
                continue
            kept = row.private
            if row.kind == "session_open":
                operation = await self.store.operation(opening_id(row.session_id))
                if operation is not None and operation.digest:
                    kept = with_request(kept, operation.digest, operation.method, operation.party, operation.request_id)
            found.append(SealedPrivate(row.instance, row.statement_no, row.session_id, self.seal(row.hash, kept)))
        return found

    def _next_shard(self, opened: _Open, origin: str) -> None:
        """Begin the next shard with the last checkpoint of this one."""
        shard = LogShard(opened.shard.number + 1, origin, opened.writer.newest.note)
        opened.order.open_shard(shard)
        opened.enter(shard, self.signer)

    # --- what the store has ---------------------------------------------------------------------------------------

    async def _poll(self) -> None:
        """Read how far every instance has come, at one moment: so nothing that a statement builds on is missing."""
        now_ms = self.clock.running_ms()
        alive = await self.store.instances(alive_only=True)
        names = frozenset(row.instance for row in alive)
        if names != self._alive or now_ms - self._polled_ms >= FULL_POLL_MS:
            alive = await self.store.instances(alive_only=False)
            self._polled_ms = now_ms
            self._counters = {}
        self._alive = names
        self._counters |= counters_of(alive)

    async def _gather(self, positions: dict[str, int]) -> list[StatementRow]:
        """The next statements of all that are committed, in the order of their row numbers."""
        counters = {bundle_name(self._keys_seen): len(self._keys_seen)} | self._counters
        behind = {name: last for name, last in counters.items() if last > positions.get(name, 0)}
        if not behind:
            return []
        page = max(1, 2 * BATCH // len(behind))
        heads: list[tuple[int, int, StatementRow]] = []
        streams = [self._statements(name, positions.get(name, 0), last, page) for name, last in behind.items()]
        rows: list[StatementRow] = []
        for nth, stream in enumerate(streams):
            await _push(heads, nth, stream)
        while heads and len(rows) < BATCH:
            _, nth, row = heapq.heappop(heads)
            rows.append(row)
            await _push(heads, nth, streams[nth])
        for stream in streams:
            await stream.aclose()
        return rows

    async def _statements(self, instance: str, after: int, last: int, page: int) -> AsyncGenerator[StatementRow]:
        while after < last:
            rows = await self._page(instance, after + 1, last, page)
            for row in rows:
                yield row
            if not rows or rows[-1].statement_no != after + len(rows):
                raise LogRefusedError("STORE_GAP", f"statement {after + 1} of {instance}, or one behind it, is missing")
            after += len(rows)

    async def _page(self, instance: str, first_no: int, last_no: int, limit: int) -> list[StatementRow]:
        if not is_bundle(instance):
            return await self.store.statements_of_instance(instance, first_no, last_no, limit)
        statements = self.keys()
        verify_holds(statements, instance, last_no)
        return bundle_rows(statements, first_no, min(last_no, first_no + limit - 1))

    async def _check_keys(self) -> None:
        """Compare a key bundle that is new here with what the log has of it."""
        statements = self.keys()
        if statements != self._keys_seen:
            await self._run(verify_bundle, statements, self.folder, self.folder / ORDER_FILE)
            self._keys_seen = statements

    async def _fetch(self, statements: Sequence[tuple[str, int]]) -> list[StatementRow]:
        """The rows of statements that have their index, in this order."""
        found: dict[tuple[str, int], StatementRow] = {}
        for instance, of_it in groupby(sorted(statements), key=lambda one: one[0]):
            numbers = [number for _, number in of_it]
            async with aclosing(self._statements(instance, numbers[0] - 1, numbers[-1], BATCH)) as rows:
                async for row in rows:
                    found[instance, row.statement_no] = row
        return [found[one] for one in statements]

    async def _artifact(self, row: StatementRow) -> tuple[str, bytes]:
        _, body = parse_statement(parse_envelope(row.envelope))
        content = await self.store.artifact(body["sha256"])
        if content is None or sha256(content).hexdigest() != body["sha256"]:
            raise LogRefusedError(
                "ARTIFACT_MISSING", f"the store does not hold the artifact {body['name']} {body['sha256']}"
            )
        return body["sha256"], content

    # --- lag ------------------------------------------------------------------------------------------------------

    def _progress(self, positions: dict[str, int], size: int) -> None:
        """Check whether all statements that were waited for are in the log. If so, the next ones are waited for."""
        now_ms = self.clock.running_ms()
        self._worst_lag_ms = max(self._worst_lag_ms, self.lag_ms)
        if all(last <= positions.get(name, 0) for name, last in self._owed.items()):
            self._owed = {name: last for name, last in self._counters.items() if last > positions.get(name, 0)}
            self._owed_since_ms = now_ms
        if now_ms - self._reported_ms >= REPORTED_MS:
            structlog.get_logger().info("log_grown", size=size, lag_ms=self._worst_lag_ms)
            self._reported_ms, self._worst_lag_ms = now_ms, 0

    async def _stand_by(self) -> None:
        """Another process leads: check its progress."""
        now_ms = self.clock.running_ms()
        if now_ms - self._watched_ms >= STAND_BY_MS:
            self._watched_ms = now_ms
            positions = await self._run(positions_in, self.folder)
            await self._poll()
            self._progress(positions, 0)
        self._refusal = None

    # --- leading --------------------------------------------------------------------------------------------------

    async def _take_over(self) -> _Open | None:
        """Open the log as it was left; None if another process still has it open."""
        self._open = opened = await self._run(self._begin)
        if opened is not None:
            self._keys_seen = ()
            await self._verify_store(opened)
            self._polled_ms = self.clock.running_ms() - FULL_POLL_MS
            structlog.get_logger().debug("log_led", origin=opened.shard.origin, size=opened.writer.size, vkey=self.vkey)
            for note in (opened.shard.first, opened.writer.newest.note if opened.writer.size else b""):
                if note:
                    self.on_published(note)
        return opened

    def _begin(self) -> _Open | None:
        self.folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        with ExitStack() as held:
            lock = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
            held.callback(os.close, lock)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return None
            opened = _Open(self.folder, held)
            shard = opened.order.shard()
            if shard is None:
                shard = LogShard(1, format_origin(self.prefix, half_year(self.clock.now_ms())), b"")
                if opened.checkpoints.newest(shard.origin) is not None:
                    raise LogRefusedError("ORDER_LOST", f"there is a log {shard.origin}, and no {ORDER_FILE} of it")
                opened.order.open_shard(shard)
            if parse_origin(shard.origin)[0] != self.prefix:
                raise LogRefusedError(
                    "ORIGIN_DIFFERS", f"{self.folder} is the log {shard.origin}, not one of {self.prefix}"
                )
            opened.enter(shard, self.signer)
            opened.held = held.pop_all()
            return opened

    async def _verify_store(self, opened: _Open) -> None:
        """LogRefusedError where the store lacks statements of the log, or the log lacks what the store knows of it: a
        backup was restored.
        """
        positions = await self._run(opened.order.positions)
        counters = counters_of(await self.store.instances(alive_only=False))
        for name, last in positions.items():
            if counters.get(name, 0) < last and not is_bundle(name):
                raise LogRefusedError(
                    "STORE_BEHIND",
                    f"the log has {last} statements of {name}, the store {counters.get(name, 0)}: a backup of the store"
                    " was restored",
                )
        size = opened.writer.size
        first = max(0, size - TILE_WIDTH)
        statements = await self._run(opened.order.statements, opened.shard.number, first, size)
        leaves = dict(zip(statements, await self._run(opened.writer.last_leaves), strict=True))
        for row in await self._fetch([one for one in statements if one[0] and not is_bundle(one[0])]):
            if row.hash != leaves[row.instance, row.statement_no]:
                raise LogRefusedError(
                    "STORE_DIFFERS",
                    f"statement {row.statement_no} of {row.instance} is another one in the log: a backup of the store"
                    " was restored and used",
                )

        # What a witness has seen of this log, by the newest event.
        for row in await self.store.events(CHECKPOINT_KNOWN, before=0, limit=1):
            _, body = parse_statement(parse_envelope(row.envelope))
            seen, root = body["after"].split(" ")
            if body["subject"] == opened.shard.origin:
                await self._run(opened.writer.verify_seen, int(seen), bytes.fromhex(root))

    async def _let_go(self) -> None:
        opened, self._open = self._open, None
        if opened is not None:
            await self._run(opened.held.close)

    async def _run(self, work: Callable[..., _T], *values: object) -> _T:
        """On the log's own thread, one thing at a time."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *values)


def counters_of(rows: Sequence[InstanceRow]) -> dict[str, int]:
    """The last statement number of each instance."""
    return {row.instance: row.statement_no for row in rows}


async def _push(heads: list[tuple[int, int, StatementRow]], nth: int, stream: AsyncIterator[StatementRow]) -> None:
    if (row := await anext(stream, None)) is not None:
        heapq.heappush(heads, (row.id, nth, row))


def positions_in(folder: Path) -> dict[str, int]:
    """How far the log has come, from the leader's database."""
    if not (folder / ORDER_FILE).exists():
        return {}
    order = LogOrder(folder / ORDER_FILE)
    try:
        return order.positions()
    finally:
        order.close()
