"""`rgs export`: writes the statements of the store, one a line, for an auditor (ARCHITECTURE 2.14, private blocks).

It first fixes the ranges: the statements 1 to n of each instance, as its row says at that moment; or the links 1 to n
of each chosen session, with the `instance_start` of every instance that signed one. Then it reads the ranges in commit
order and writes them; at most PAGE_ROWS rows are in memory at a time. It works while the server runs.

A partial export begins with `export_scope` lines, which the node key signs. It is partial if only some sessions or
instances were chosen, or if an instance has not ended, or if a session is open. The file then holds exactly the union
of the ranges in these lines (check 22 of the replay). A number that is missing in the store ends the export without a
file.

Of seats at tables a selection also holds `table_round`, `table_deal` and `table_final` of their rounds, and of finals
the openings that they answer. Its scope then names every statement number in the file. `table_seats`, which counts the
seats of all operators, is there only with its instance. In a partial export each `seat_opening` has its path beside it.
"""

from __future__ import annotations

import asyncio
import hashlib
import heapq
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final

import typer

from rgs.cli.export_seats import SeatNumbers, Span
from rgs.cli.options import HOME, HomeOption, note
from rgs.core.errors import NotFoundError, RgsError
from rgs.core.ids import check_name, check_ulid
from rgs.core.statements import (
    KINDS,
    ExportLine,
    Signer,
    format_canonical,
    format_line,
    leaf_hash,
    parse_canonical,
    seal_envelope,
)
from rgs.core.times import format_time
from rgs.node.clock import now_ms
from rgs.node.config import Config, open_home
from rgs.node.files import SECRET_MODE, FileRefusedError, sync_folder
from rgs.node.keyring import load_node_signer
from rgs.node.stores import reading
from rgs.service.table_statements import path_of
from rgs.store.interface import StatementRow, StoreReads

PAGE_ROWS: Final = 4096
"""Rows in memory at a time, over all ranges together."""
SCOPE_INSTANCES: Final = 100
SCOPE_SESSIONS: Final = 200
"""Ranges that one export_scope holds (`rgs.core.statements.kinds`)."""
SELECTION: Final = "SELECTION"
UNFINISHED: Final = "UNFINISHED"
"""Why an export is partial: a part was chosen, or an instance or a session had not ended."""
_LINK_MAX: Final = 1 << 62


class ExportRefusedError(RgsError, reason="EXPORT_REFUSED"):
    """Statements are missing in the store; nothing was exported."""


@dataclass(frozen=True, slots=True)
class ExportPlan:
    """What is exported: last statement number by instance, the links by session. `reason` is empty for everything.

    `starts` names further instances, of which only the `instance_start` is exported: they signed links of the sessions.
    `beside` are further statements that those of the ranges need (row number, instance, statement number), in commit
    order. With them the scope names the numbers `held` of each instance that is not exported by itself.
    """

    instances: dict[str, int]
    sessions: dict[str, Span]
    reason: str
    starts: tuple[str, ...] = ()
    beside: tuple[tuple[int, str, int], ...] = ()
    held: Mapping[str, Iterable[Span]] = field(default_factory=dict)


class Exporter:
    """Selects and reads the statements of an export."""

    def __init__(self, reads: StoreReads) -> None:
        self._reads = reads

    async def plan(self, instances: Iterable[str], sessions: Iterable[str]) -> ExportPlan:
        """Fix the ranges; without a choice, those of everything. NotFoundError, ExportRefusedError."""
        rows = await self._reads.instances(alive_only=False)
        known = {row.instance: row.statement_no for row in rows}
        chosen, links = set(instances), dict.fromkeys(sessions, 0)
        if not chosen and not links:
            is_finished = not any(row.alive for row in rows) and not await self._reads.any_session_open()
            return ExportPlan(known, {}, "" if is_finished else UNFINISHED)
        for instance in chosen - known.keys():
            raise NotFoundError(f"there is no instance {instance}", kind="instance", field="instance", value=instance)
        numbers = SeatNumbers()
        ranges = {instance: known[instance] for instance in sorted(chosen)}
        for session in links:
            last = 0
            async for row in self._session(session, (1, _LINK_MAX), PAGE_ROWS):
                last = row.link_no
                numbers.take(row)
            if not last:
                raise NotFoundError(f"there is no session {session}", kind="session", field="session", value=session)
            links[session] = last
        for instance, last in ranges.items():
            async for row in self._instance(instance, last, PAGE_ROWS):
                numbers.follow(row)
        return await self._selection(numbers, ranges, {session: (1, last) for session, last in links.items()})

    async def plan_seat(self, round_id: str, session: str) -> ExportPlan:
        """Fix what shows one seat of a table: its opening and final, and what all seats of the round share.
        NotFoundError.
        """
        seat = await self._reads.seat(session, round_id)
        if seat is None:
            raise NotFoundError(f"session {session} has no seat in round {round_id}", kind="round", round_id=round_id)
        numbers, links = SeatNumbers(), list[int]()
        for envelope in await self._reads.round_envelopes(round_id, seat.seat_no):
            hash_ = leaf_hash(envelope)
            row = await self._reads.statement_of_hash(hash_, round_id=round_id) if envelope else None
            if row is not None:
                numbers.take(row)
                links.append(row.link_no)
        return await self._selection(numbers, {}, {session: (links[0], links[-1])})

    async def _selection(self, numbers: SeatNumbers, ranges: dict[str, int], sessions: dict[str, Span]) -> ExportPlan:
        beside = await numbers.beside(self._reads, ranges)
        starts = tuple(sorted(numbers.instances - ranges.keys()))
        return ExportPlan(ranges, sessions, SELECTION, starts, beside, numbers.held(ranges) if beside else {})

    def rows(self, plan: ExportPlan) -> AsyncIterator[StatementRow]:
        """The statements of the plan in commit order, each once. ExportRefusedError at the first gap."""
        return self._selected(plan) if plan.reason == SELECTION else self._all(plan.instances)

    async def _all(self, instances: dict[str, int]) -> AsyncIterator[StatementRow]:
        missing = sum(instances.values())
        seen = dict.fromkeys(instances, 0)
        # The statements of one instance come in the order of their numbers. Those after the plan are skipped.
        async for row in self._reads.statements_in_order():
            if not missing:
                break
            if row.statement_no <= instances.get(row.instance, 0):
                _verify_next(row.instance, seen[row.instance], row.statement_no)
                seen[row.instance] = row.statement_no
                yield row
                missing -= 1
        for instance, last in instances.items():
            _verify_last(instance, seen[instance], last)

    async def _selected(self, plan: ExportPlan) -> AsyncIterator[StatementRow]:
        page = max(1, PAGE_ROWS // (len(plan.instances) + len(plan.sessions) + len(plan.starts)))
        streams = [self._instance(instance, last, page) for instance, last in plan.instances.items()]
        streams += [self._instance(instance, 1, page) for instance in plan.starts]
        streams += [self._session(session, links, page) for session, links in plan.sessions.items()]
        streams += [self._beside(plan.beside)]
        before = 0
        async for row in _merge(streams):
            if row.id != before:  # a link of a chosen session may be a statement of a chosen instance
                before = row.id
                yield row

    async def _instance(self, instance: str, last: int, page: int) -> AsyncIterator[StatementRow]:
        seen = 0
        while seen < last:
            rows = await self._reads.statements_of_instance(instance, seen + 1, last, page)
            if not rows:
                _verify_last(instance, seen, last)
            for row in rows:
                _verify_next(instance, seen, row.statement_no)
                seen = row.statement_no
                yield row

    async def _beside(self, wanted: Iterable[tuple[int, str, int]]) -> AsyncIterator[StatementRow]:
        for _, instance, number in wanted:
            for row in await self._reads.statements_of_instance(instance, number, number, 1):
                yield row

    async def _session(self, session: str, links: Span, page: int) -> AsyncIterator[StatementRow]:
        first, last = links
        seen = first - 1
        while seen < last:
            rows = await self._reads.statements_of_session(session, seen, page)
            if not rows:
                return
            for row in rows:
                if row.link_no > last:
                    return
                _verify_next(session, seen, row.link_no)
                seen = row.link_no
                yield row


async def _merge(streams: list[AsyncIterator[StatementRow]]) -> AsyncIterator[StatementRow]:
    """The rows of all streams in commit order."""
    heap: list[tuple[int, int, StatementRow]] = []
    for at, stream in enumerate(streams):
        if (row := await anext(stream, None)) is not None:
            heapq.heappush(heap, (row.id, at, row))
    while heap:
        _, at, row = heap[0]
        yield row
        if (following := await anext(streams[at], None)) is not None:
            heapq.heapreplace(heap, (following.id, at, following))
        else:
            heapq.heappop(heap)


def scope_lines(plan: ExportPlan, signer: Signer, time_ms: int) -> Iterator[ExportLine]:
    """The `export_scope` statements of a plan; several if one cannot hold all its ranges."""
    spans: dict[str, Iterable[Span]] = {**plan.held, **{name: [(1, last)] for name, last in plan.instances.items()}}
    instances = (
        {"first": str(first), "instance": name, "last": str(last)}
        for name in sorted(spans)
        for first, last in spans[name]
    )
    sessions = (
        {"first": str(first), "last": str(last), "session_id": name}
        for name, (first, last) in sorted(plan.sessions.items())
    )
    kind = KINDS["export_scope"]
    while True:
        body: dict[str, Any] = {
            "instances": list(islice(instances, SCOPE_INSTANCES)),
            "kind": kind.name,
            "reason": plan.reason,
            "sessions": list(islice(sessions, SCOPE_SESSIONS)),
            "time": format_time(time_ms),
        }
        if not body["instances"] and not body["sessions"]:
            return
        yield ExportLine(seal_envelope(kind.payload_type, format_canonical(body), signer), None)


async def line_of(reads: StoreReads, row: StatementRow, *, private: bool, is_cut: bool) -> ExportLine:
    """The export line of a statement. The private block is null if it is erased or not wanted. ExportRefusedError
    where the files are cut and the store has no path for a seat.
    """
    block = parse_canonical(row.private) if private and row.private else None
    path = await path_of(reads, row) if is_cut else ()
    if is_cut and row.kind == "seat_opening" and not path:
        raise ExportRefusedError(
            f"round {row.round_id}: the store has no path for the seat of session {row.session_id}",
            subject=row.round_id,
        )
    return ExportLine(row.envelope, block, path)


def command(
    out: Annotated[str, typer.Option(help="A new file, or - for stdout.")] = "-",
    session: Annotated[
        list[str] | None, typer.Option(help="Only this session, by our session id (repeat for more).")
    ] = None,
    instance: Annotated[list[str] | None, typer.Option(help="Only this instance (repeat for more).")] = None,
    private: Annotated[bool, typer.Option(help="Include the private blocks that still exist.")] = True,
    home: HomeOption = HOME,
) -> int:
    """Write the signed statements, one a line, for an auditor's replay. Works while the server runs."""
    config = open_home(home)
    sessions = [check_ulid(text, "session") for text in session or ()]
    instances = [check_name(text, "instance") for text in instance or ()]
    asyncio.run(export_to(config, (instances, sessions), out, private=private))
    return 0


async def export_to(config: Config, chosen: tuple[list[str], list[str]], out: str, *, private: bool) -> None:
    """Write an export of the chosen instances and sessions, of everything where none is, to a file or `-` (stdout)."""
    async with reading(config.store, config.archive) as reads:
        with _output(out) as file, _progress() as show:
            await _write(reads, await Exporter(reads).plan(*chosen), config, file, show, private=private)


async def export_session(config: Config, session: str, file: BinaryIO, *, private: bool) -> None:
    """Write a partial export of one session. NotFoundError, ExportRefusedError."""
    async with reading(config.store, config.archive) as reads:
        await _write(reads, await Exporter(reads).plan([], [session]), config, file, _no_progress, private=private)


async def export_seat(config: Config, round_id: str, session: str, file: BinaryIO) -> None:
    """Write a partial export of one seat of a table's round, without private blocks. NotFoundError."""
    async with reading(config.store, config.archive) as reads:
        plan = await Exporter(reads).plan_seat(round_id, session)
        await _write(reads, plan, config, file, _no_progress, private=False)


async def _write(
    reads: StoreReads,
    plan: ExportPlan,
    config: Config,
    file: BinaryIO,
    show: Callable[[int, int | None], None],
    *,
    private: bool,
) -> None:
    digest, count = hashlib.sha256(), 0

    def write(line: ExportLine) -> None:
        data = format_line(line) + b"\n"
        digest.update(data)
        file.write(data)

    if plan.reason:
        for line in scope_lines(plan, load_node_signer(config, now_ms=now_ms()), now_ms()):
            write(line)
    total = None if plan.reason == SELECTION else sum(plan.instances.values())
    async for row in Exporter(reads).rows(plan):
        count += 1
        write(await line_of(reads, row, private=private, is_cut=bool(plan.reason)))
        show(count, total)
    file.flush()
    what = {"": "everything", SELECTION: "a selection", UNFINISHED: "everything so far"}[plan.reason]
    note(f"exported {count} statements ({what}), SHA-256 {digest.hexdigest()}")


@contextmanager
def _output(out: str) -> Iterator[BinaryIO]:
    """The output file. It appears whole under its name or not at all, and only its owner may read it."""
    if out == "-":
        yield sys.stdout.buffer
        return
    path = Path(out)
    if path.exists():
        raise FileRefusedError(f"{path} exists already and is not overwritten", path=path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, SECRET_MODE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(path)
        sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def _progress() -> Iterator[Callable[[int, int | None], None]]:
    """Shows a progress bar if stderr is a terminal."""
    if not sys.stderr.isatty():
        yield _no_progress
        return
    from rich.console import Console  # noqa: PLC0415 - a server does not load it
    from rich.progress import Progress  # noqa: PLC0415

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("exporting", total=None)
        yield lambda count, total: bar.update(task, completed=count, total=total)


def _no_progress(_count: int, _total: int | None) -> None: ...


def _verify_next(name: str, seen: int, number: int) -> None:
    if number != seen + 1:
        raise ExportRefusedError(f"{name}: after number {seen} the store holds {number}", subject=name, value=number)


def _verify_last(name: str, seen: int, last: int) -> None:
    if seen != last:
        raise ExportRefusedError(
            f"{name}: the store holds {seen} of {last} statements", subject=name, value=seen, limit=last
        )
