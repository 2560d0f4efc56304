"""`rgs archive`: moves ended rounds out of the store into files that `certify replay` reads (docs/retention.md).

It writes a part, makes it durable, reads all of it back, and only then deletes the rows, some hundred rounds in a
transaction. A run that was killed is continued by the next one. Beside servers over PostgreSQL; over a store file while
no server holds it. A dry run counts, and changes nothing.

Refused: a date nearer than `archive_days`, time that is not trusted, a store that is being recovered, a session of
which a link is missing, and statements that the log has not published.
"""

from __future__ import annotations

import asyncio
import shutil
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final

import typer

from rgs.cli.export import SELECTION, ExportPlan, scope_lines
from rgs.cli.options import HOME, HomeOption
from rgs.core.clock import TrustedClock
from rgs.core.errors import FormatError, InvalidFieldError, RgsError
from rgs.core.ids import ULID_RANDOM_BYTES, format_ulid
from rgs.core.statements import Signer
from rgs.core.times import format_date, parse_date
from rgs.node.clock import SystemClock, now_ms
from rgs.node.config import Config, open_home
from rgs.node.files import SECRET_MODE, alone_in, make_folder, sync_folder, sync_tree
from rgs.node.keyring import load_node_signer
from rgs.node.stores import reading
from rgs.service.table_statements import counted_seats, shared_statements
from rgs.service.timekeeping import Timekeeping
from rgs.store.archive import OF_ALL_SEATS, UNDELETED, Bounds, Part, part_names
from rgs.store.archiving import NO_ROUNDS, STAYS, Gone, PartWriter, SessionToArchive
from rgs.store.interface import RECOVERING, StoreReads
from rgs.store.opening import Drop, dropping
from rgs.store.sequence import read_place
from rgs.tlog.published import published_shard
from rgs.tlog.sequencer import ORDER_FILE

DAY_MS: Final = 86_400_000
PAGE: Final = 200
"""Sessions that are asked about, and statements or rounds that are read, at once."""
PART_ROUNDS: Final = 5_000_000
"""A part gets no further session when it has so many."""
DROPPED_AT_ONCE: Final = 500
"""A transaction deletes no further session when it has so many."""


class ArchiveRefusedError(RgsError, reason="ARCHIVE_REFUSED"):
    """Nothing more was moved; what was moved before stays moved."""


@dataclass(slots=True)
class Counted:
    """What a run has moved or would move, and what stays, by its reason in STAYS."""

    sessions: int = 0
    rounds: int = 0
    stays: Counter[str] = field(default_factory=Counter)
    stay_rounds: Counter[str] = field(default_factory=Counter)

    def take(self, found: SessionToArchive) -> bool:
        """Whether the session may be moved."""
        if found.why == "":
            self.sessions += 1
            self.rounds += found.rounds
        elif found.why != NO_ROUNDS:
            self.stays[found.why] += 1
            self.stay_rounds[found.why] += found.rounds
        return found.why == ""


def command(
    before: Annotated[str, typer.Option(help="Move rounds of sessions closed before this UTC day, as 2026-11-21.")],
    home: HomeOption = HOME,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would move and what stays; move nothing.")
    ] = False,
) -> int:
    """Move ended rounds out of the store into files that `certify` reads and the server still finds."""
    config = open_home(home)
    before_ms = _before_ms(config, before, now_ms())
    counted = asyncio.run(_run(config, before_ms, dry_run=dry_run))
    print(f"{'would move' if dry_run else 'moved'}\t{counted.sessions} sessions\t{counted.rounds} rounds")
    for why, what in STAYS.items():
        if counted.stays[why]:
            print(f"stays: {what}\t{counted.stays[why]} sessions\t{counted.stay_rounds[why]} rounds")
    return 0


def _before_ms(config: Config, before: str, time_ms: int) -> int:
    """The date in milliseconds. InvalidFieldError where it is nearer than `archive_days`."""
    latest = format_date(time_ms - config.archive_days * DAY_MS)
    try:
        before_ms = parse_date(before)
    except FormatError as error:
        raise InvalidFieldError(f"--before: {error.message}", field="before", value=before[:20]) from None
    if before > latest:
        raise InvalidFieldError(
            f"--before {before} is too near: sessions stay in the store for {config.archive_days} days after their"
            f" close (`archive_days`): give {latest} or earlier",
            field="before",
            limit=latest,
            value=before,
        )
    return before_ms


async def _run(config: Config, before_ms: int, *, dry_run: bool) -> Counted:
    clock: TrustedClock = SystemClock()
    async with reading(config.store) as reads:
        await Timekeeping(store=reads, clock=clock, node=config.node).begin()
        if not clock.is_trusted:
            raise ArchiveRefusedError("time is not trusted: let an admin clear the guard clock at the running server")
        if dry_run:
            _folder_of(config)
            await _verify_not_recovering(reads)
            counted = Counted()
            async for _ in due_sessions(reads, before_ms, counted):
                pass
            return counted
    return await move(config, before_ms, clock.now_ms())


def _folder_of(config: Config) -> Path:
    """The folder of the archive. InvalidFieldError where there is none."""
    if config.archive is None:
        raise InvalidFieldError("archive is not set in rgs.toml: the server would not find the rounds", field="archive")
    return config.archive


async def _verify_not_recovering(reads: StoreReads) -> None:
    if await reads.meta(RECOVERING):
        raise ArchiveRefusedError("a recovery of the store is under way: finish it with `rgs recover`")


async def move(config: Config, before_ms: int, time_ms: int) -> Counted:
    """Move the rounds of sessions that were closed before a time into the folder of the archive."""
    folder = _folder_of(config)
    if not folder.is_dir():
        make_folder(folder)
    signer = load_node_signer(config, now_ms=time_ms)
    with alone_in(folder, "rgs archive"):
        async with reading(config.store) as reads, dropping(config.store) as drop:
            await _verify_not_recovering(reads)
            for unfinished in folder.glob(".*.new"):
                shutil.rmtree(unfinished)
            for name in part_names(folder):
                if (folder / name / UNDELETED).exists():
                    await finish_part(folder / name, drop)
                    print(f"{name}\tan earlier run had written it: its rows are deleted now", flush=True)
            counted = Counted()
            async for sessions in _parts(reads, before_ms, counted):
                name = _next_name(folder, sessions[0].open_ms)
                bounds = await write_part(reads, config, folder / name, sessions, signer, time_ms)
                await finish_part(folder / name, drop)
                print(f"{name}\t{bounds.session_count} sessions\t{bounds.round_count} rounds", flush=True)
    return counted


async def due_sessions(reads: StoreReads, before_ms: int, counted: Counted) -> AsyncIterator[SessionToArchive]:
    """The sessions whose rounds may be moved, oldest first."""
    after, end = "", format_ulid(before_ms, bytes(ULID_RANDOM_BYTES))
    horizon = await reads.archive_horizon()
    while found := await reads.sessions_to_archive(horizon, after, end, before_ms, PAGE):
        after = found[-1].session_id
        for session in found:
            if counted.take(session):
                yield session


async def _parts(reads: StoreReads, before_ms: int, counted: Counted) -> AsyncIterator[list[SessionToArchive]]:
    """The same by the day on which they were opened, up to PART_ROUNDS; those at tables apart from solo play."""
    parts: dict[bool, list[SessionToArchive]] = {False: [], True: []}
    rounds = {False: 0, True: 0}
    async for session in due_sessions(reads, before_ms, counted):
        is_seated = bool(session.table_id)
        part = parts[is_seated]
        is_other_day = part and session.open_ms // DAY_MS != part[0].open_ms // DAY_MS
        if is_other_day or rounds[is_seated] >= PART_ROUNDS:
            yield part
            part, rounds[is_seated] = [], 0
            parts[is_seated] = part
        part.append(session)
        rounds[is_seated] += session.rounds
    for part in filter(None, parts.values()):
        yield part


def _next_name(folder: Path, open_ms: int) -> str:
    day = format_date(open_ms)
    taken = [int(name.partition(".")[2]) for name in part_names(folder) if name.startswith(day)]
    return f"{day}.{max(taken, default=0) + 1}"


async def write_part(
    reads: StoreReads,
    config: Config,
    place: Path,
    sessions: Sequence[SessionToArchive],
    signer: Signer,
    time_ms: int,
) -> Bounds:
    """Write a part that appears whole, durable and marked as not deleted from the store. ArchiveRefusedError."""
    temporary = place.with_name(f".{place.name}.new")
    make_folder(temporary)
    with closing(PartWriter(temporary)) as writer:
        newest: dict[str, int] = {}
        for session in sessions:
            await _write_session(reads, writer, session, newest)
        if sessions[0].table_id:
            await _write_shared(reads, writer, newest)
        held = writer.held() if sessions[0].table_id else {}
        for instance, number in newest.items():
            _verify_published(config, instance, number)
            for start in await reads.statements_of_instance(instance, 1, 1, 1):
                writer.add(start)
        spans = {session.session_id: (1, session.link_no) for session in sessions}
        bounds = writer.finish(scope_lines(ExportPlan({}, spans, SELECTION, held=held), signer, time_ms))
    (temporary / UNDELETED).touch(mode=SECRET_MODE)
    sync_tree(temporary)
    temporary.rename(place)
    sync_folder(place.parent)
    return bounds


async def _write_session(
    reads: StoreReads, writer: PartWriter, session: SessionToArchive, newest: dict[str, int]
) -> None:
    name, link_no = session.session_id, 0
    while rows := await reads.statements_of_session(name, link_no, PAGE):
        for row in rows:
            link_no += 1
            if row.link_no != link_no:
                raise ArchiveRefusedError(f"link {link_no} of session {name} is missing in the store", session_id=name)
            newest[row.instance] = max(newest.get(row.instance, 0), row.statement_no)
            writer.add(row)
    before_no, count = session.rounds + 1, 0
    while rounds := await reads.rounds_of_session(name, before_no=before_no, limit=PAGE):
        for number, round_ in rounds:
            writer.add_round(number, round_)
        before_no, count = rounds[-1][1].round_no, count + len(rounds)
    if (link_no, count) != (session.link_no, session.rounds):
        why = f"session {name} has {session.link_no} links and {session.rounds} rounds, the store {link_no} and {count}"
        raise ArchiveRefusedError(why, session_id=name)


async def _write_shared(reads: StoreReads, writer: PartWriter, newest: dict[str, int]) -> None:
    """What the seats of each round share: `certify` needs it beside them, and it leaves the store with the last one."""
    after = ""
    while page := writer.seated_rounds(after, PAGE):
        for round_id, seats in page:
            round_ = await reads.table_round(round_id)
            rows = [] if round_ is None else await shared_statements(reads, round_)
            counted = await counted_seats(reads, rows[0]) if rows else []
            if round_ is None or {row.kind for row in (*rows, *counted)} != {*OF_ALL_SEATS}:
                why = f"the store has not all that the seats of round {round_id} share: nothing of it is moved"
                raise ArchiveRefusedError(why, round_id=round_id)
            if not await reads.has_more_seats(round_id, seats):
                writer.add_table_round(round_)
                rows += counted
            for row in rows:
                newest[row.instance] = max(newest.get(row.instance, 0), row.statement_no)
                writer.add(row)
        after = page[-1][0]


def _verify_published(config: Config, instance: str, number: int) -> None:
    """ArchiveRefusedError unless the log has published the statement, and with it all before it of its instance."""
    place = read_place(config.translog / ORDER_FILE, instance, number)
    if place is None or place[1] >= published_shard(config.translog, place[0]).size:
        raise ArchiveRefusedError(
            f"the log in {config.translog} has not published statement {number} of {instance}: nothing of it is moved",
            path=config.translog,
        )


async def finish_part(place: Path, drop: Drop) -> None:
    """Read a part back, and delete its rows from the store. ArchiveDamagedError, StoreRefusedError."""
    with closing(Part(place)) as part:
        part.verify()
        await _drop(drop, (Gone(*counts) for counts in part.session_counts()))
        await _drop(drop, (Gone(name, len(hashes), 1, hashes) for name, hashes in part.shared_hashes()))
    (place / UNDELETED).unlink()
    sync_folder(place)


async def _drop(drop: Drop, gone: Iterable[Gone]) -> None:
    """Delete some hundred rounds in a transaction."""
    batch: list[Gone] = []
    rounds = 0
    for one in gone:
        batch.append(one)
        rounds += one.rounds
        if rounds >= DROPPED_AT_ONCE:
            await drop(batch)
            batch, rounds = [], 0
    if batch:
        await drop(batch)
