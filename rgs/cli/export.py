"""`rgs export`: the statements of the store as lines for an auditor, beside a running server (ARCHITECTURE 2.14).

What is exported is fixed first, as ranges: of each instance the statements 1 to n as its row says at one moment, or of
each chosen session the links 1 to n, with statement 1 (`instance_start`) of every instance that signed one. Then the
ranges are read in commit order and written as they come; at no time are there more than PAGE_ROWS rows in memory.

Unless everything is exported, every instance has ended and every session is closed, the file begins with `export_scope`
lines signed by the node key: it holds exactly the union of their ranges, and the `instance_start` of every instance in
it (check 22 of the replay). Refuses to leave a gap: a number that is missing in the store ends the export without a
file.
"""

from __future__ import annotations

import asyncio
import hashlib
import heapq
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final

import typer

from rgs.cli.options import HOME, HomeOption, note
from rgs.core.errors import NotFoundError, RgsError
from rgs.core.ids import check_name, check_ulid
from rgs.core.statements import (
    KINDS,
    ExportLine,
    Signer,
    format_canonical,
    format_line,
    parse_canonical,
    seal_envelope,
)
from rgs.core.times import format_time
from rgs.node.clock import now_ms
from rgs.node.config import Config
from rgs.node.files import SECRET_MODE, FileRefusedError, sync_folder
from rgs.node.home import open_home
from rgs.node.keyring import load_node_signer
from rgs.store.interface import StatementRow, StoreReads
from rgs.store.opening import open_reads

PAGE_ROWS: Final = 4096
"""Rows in memory at a time, over all ranges together."""
SCOPE_INSTANCES: Final = 100
SCOPE_SESSIONS: Final = 200
"""Ranges that one export_scope holds (`rgs.core.statements.kinds`)."""
SELECTION: Final = "SELECTION"
UNFINISHED: Final = "UNFINISHED"
"""Why an export is not everything: it was asked for a part, or an instance or session had not ended."""


class ExportError(RgsError):
    """The store does not hold what its own rows promise; nothing was exported."""

    reason = "EXPORT_REFUSED"


@dataclass(frozen=True, slots=True)
class Plan:
    """What is exported: last statement number by instance, last link by session; `reason` is empty for everything.

    `starts`: other instances, which signed links of these sessions, and of which the start alone is wanted.
    """

    instances: dict[str, int]
    sessions: dict[str, int]
    reason: str
    starts: tuple[str, ...] = ()


class Exporter:
    """One export over a reader of its own."""

    def __init__(self, reads: StoreReads) -> None:
        self._reads = reads

    async def plan(self, instances: Iterable[str], sessions: Iterable[str]) -> Plan:
        """Fix the ranges; without a choice those of everything. NotFoundError, ExportError."""
        rows = await self._reads.instances(alive_only=False)
        known = {row.instance: row.statement_no for row in rows}
        chosen, links = set(instances), dict.fromkeys(sessions, 0)
        if not chosen and not links:
            is_finished = not any(row.alive for row in rows) and not await self._reads.any_session_open()
            return Plan(known, {}, "" if is_finished else UNFINISHED)
        for instance in chosen - known.keys():
            raise NotFoundError(f"there is no instance {instance}", kind="instance", field="instance", value=instance)
        signed: set[str] = set()
        for session in list(links):
            last = 0
            async for row in self._session(session, 1 << 62, PAGE_ROWS):
                last = row.link_no
                signed.add(row.instance)
            if not last:
                raise NotFoundError(f"there is no session {session}", kind="session", field="session", value=session)
            links[session] = last
        ranges = {instance: known[instance] for instance in sorted(chosen)}
        return Plan(ranges, links, SELECTION, tuple(sorted(signed - chosen)))

    def rows(self, plan: Plan) -> AsyncIterator[StatementRow]:
        """The statements of the plan in commit order, each once. ExportError at the first gap."""
        return self._selected(plan) if plan.reason == SELECTION else self._all(plan.instances)

    async def _all(self, instances: dict[str, int]) -> AsyncIterator[StatementRow]:
        missing = sum(instances.values())
        seen = dict.fromkeys(instances, 0)
        # Statements of one instance stand in the order of their numbers; later ones than planned are passed over.
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

    async def _selected(self, plan: Plan) -> AsyncIterator[StatementRow]:
        page = max(1, PAGE_ROWS // (len(plan.instances) + len(plan.sessions) + len(plan.starts)))
        streams = [self._instance(instance, last, page) for instance, last in plan.instances.items()]
        streams += [self._instance(instance, 1, page) for instance in plan.starts]
        streams += [self._session(session, last, page) for session, last in plan.sessions.items()]
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

    async def _session(self, session: str, last: int, page: int) -> AsyncIterator[StatementRow]:
        seen = 0
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
    """The rows of all streams in commit order, one of each in memory besides its page."""
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


def scope_lines(plan: Plan, signer: Signer, time_ms: int) -> Iterator[ExportLine]:
    """The `export_scope` statements of a plan, as many as its ranges need."""
    instances = [{"first": "1", "instance": name, "last": str(last)} for name, last in sorted(plan.instances.items())]
    sessions = [{"first": "1", "last": str(last), "session_id": name} for name, last in sorted(plan.sessions.items())]
    kind = KINDS["export_scope"]
    while instances or sessions:
        body: dict[str, Any] = {
            "instances": instances[:SCOPE_INSTANCES],
            "kind": kind.name,
            "reason": plan.reason,
            "sessions": sessions[:SCOPE_SESSIONS],
            "time": format_time(time_ms),
        }
        del instances[:SCOPE_INSTANCES], sessions[:SCOPE_SESSIONS]
        yield ExportLine(seal_envelope(kind.payload_type, format_canonical(body), signer), None)


def line_of(row: StatementRow, *, private: bool) -> ExportLine:
    """The export line of a statement; its private block is null where it is erased, or not wanted."""
    return ExportLine(row.envelope, parse_canonical(row.private) if private and row.private else None)


def command(
    out: Annotated[str, typer.Option(help="A new file, or - for stdout.")] = "-",
    session: Annotated[
        list[str] | None, typer.Option(help="Only this session of ours (repeat for more): all its statements.")
    ] = None,
    instance: Annotated[list[str] | None, typer.Option(help="Only this instance (repeat for more).")] = None,
    private: Annotated[bool, typer.Option(help="With the private blocks, where they still exist.")] = True,
    home: HomeOption = HOME,
) -> int:
    """Write the signed statements, one a line, for an auditor's replay. Works while the server runs."""
    config = open_home(home)
    sessions = [check_ulid(text, "session") for text in session or ()]
    instances = [check_name(text, "instance") for text in instance or ()]
    asyncio.run(_export(config, (instances, sessions), out, private=private))
    return 0


async def _export(config: Config, chosen: tuple[list[str], list[str]], out: str, *, private: bool) -> None:
    reads = await open_reads(config.store)
    try:
        with _output(out) as file, _progress() as told:
            await _write(Exporter(reads), config, chosen, file, told, private=private)
    finally:
        await reads.close()


async def export_session(config: Config, session: str, file: BinaryIO, *, private: bool) -> None:
    """One session's statements as a cut export. NotFoundError, ExportError."""
    reads = await open_reads(config.store)
    try:
        await _write(Exporter(reads), config, ([], [session]), file, lambda _count, _total: None, private=private)
    finally:
        await reads.close()


async def _write(
    exporter: Exporter,
    config: Config,
    chosen: tuple[list[str], list[str]],
    file: BinaryIO,
    told: Callable[[int, int | None], None],
    *,
    private: bool,
) -> None:
    plan = await exporter.plan(*chosen)
    digest, count = hashlib.sha256(), 0

    def write(line: ExportLine) -> None:
        data = format_line(line) + b"\n"
        digest.update(data)
        file.write(data)

    if plan.reason:
        for line in scope_lines(plan, load_node_signer(config, now_ms=now_ms()), now_ms()):
            write(line)
    total = None if plan.reason == SELECTION else sum(plan.instances.values())
    async for row in exporter.rows(plan):
        count += 1
        write(line_of(row, private=private))
        told(count, total)
    file.flush()
    what = {"": "everything", SELECTION: "a selection", UNFINISHED: "everything so far"}[plan.reason]
    note(f"exported {count} statements ({what}), SHA-256 {digest.hexdigest()}")


@contextmanager
def _output(out: str) -> Iterator[BinaryIO]:
    """Where the lines go. A file appears whole under its name, or not at all; only its owner may read it."""
    if out == "-":
        yield sys.stdout.buffer
        return
    path = Path(out)
    if path.exists():
        raise FileRefusedError(f"{path} is there already and is not overwritten", path=path)
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
    """Tells people how far it is, if stderr is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _count, _total: None
        return
    from rich.console import Console  # noqa: PLC0415 - as a server never does
    from rich.progress import Progress  # noqa: PLC0415

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("exporting", total=None)
        yield lambda count, total: bar.update(task, completed=count, total=total)


def _verify_next(name: str, seen: int, number: int) -> None:
    if number != seen + 1:
        raise ExportError(f"{name}: after number {seen} the store holds {number}", subject=name, value=number)


def _verify_last(name: str, seen: int, last: int) -> None:
    if seen != last:
        raise ExportError(f"{name}: the store holds {seen} of {last} statements", subject=name, value=seen, limit=last)
