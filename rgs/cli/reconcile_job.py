"""A reconciliation asked for over the wire, as a process of its own: `rgs reconcile job`, begun by the server.

What is compared is laid into the run's folder under fixed names, and stays there: `rgs reconcile` over these files
gives the same report (docs/reconciliation.md, "Over gRPC"). Of the statements it takes the sessions of one operator, as
`rgs export --session` would, in one pass over the store; memory grows with the number of the operator's sessions, by
an id and a number each. It runs at the lowest priority: who plays goes first.

Refuses nothing by itself; every refusal of what it calls becomes the run's failed.json.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rgs import __version__
from rgs.adapters.embedded.books import register_lines
from rgs.cli.export import SELECTION, ExportError, Plan, line_of, scope_lines
from rgs.core.errors import RgsError
from rgs.core.statements import Signer, format_line, parse_canonical
from rgs.service.reconciliation.files import (
    INPUTS,
    REPORT_FOLDER,
    RESOLUTIONS,
    ROWS,
    RUN,
    SUMMARY,
    Document,
    read_document,
    write_document,
)
from rgs.service.reconciliation.reconciliation import ReconcileRequest, Reconciliation
from rgs.service.reconciliation.reports import STATEMENTS
from rgs.service.reconciliation.runs import fail
from rgs.store.interface import StatementRow, StoreReads
from rgs.store.register import RegisterStore

SESSIONS_AT_ONCE: Final = 1_000
KEYS, REGULATOR = "keys.json", "regulator.jsonl"


@dataclass(frozen=True, slots=True)
class Ground:
    """What the job works on; `open_reads` opens the store, `register` is the embedded one's file."""

    open_reads: Callable[[], Awaitable[StoreReads]]
    register: Path
    bundle: bytes
    signer: Signer
    now_ms: int
    memory_mb: int


def run_job(ground: Ground, folder: Path) -> int:
    """Run what the folder's run.json asks for: 0 with a summary, 1 with a failure in the folder."""
    run = read_document(folder / RUN)
    if run is None:
        raise FileNotFoundError(folder / RUN)
    try:
        _run(ground, folder, run["request"])
    except RgsError as error:
        fail(folder, error.reason, error.message)
        return 1
    return 0


def _run(ground: Ground, folder: Path, asked: Document) -> None:
    operator: str = asked["operator"]
    inputs = folder / INPUTS
    inputs.mkdir()
    asyncio.run(_export(ground, operator, inputs / STATEMENTS))
    (inputs / KEYS).write_bytes(ground.bundle)
    own = folder.parent.parent
    regulator = _joined(own, asked["register"], inputs / REGULATOR)
    if asked["embedded_register"]:
        regulator = _export_register(ground.register, operator, inputs / REGULATOR)
    resolutions = None
    if (own / RESOLUTIONS).is_file():
        resolutions = inputs / RESOLUTIONS
        shutil.copyfile(own / RESOLUTIONS, resolutions)
    done = Reconciliation(version=__version__, signer=ground.signer).run(
        ReconcileRequest(
            statements=inputs / STATEMENTS,
            keys=inputs / KEYS,
            out=folder / REPORT_FOLDER,
            root=asked["root"] or None,
            period=None if asked["period"] is None else (asked["period"][0], asked["period"][1]),
            cut_off_s=asked["cut_off_s"],
            operator=operator,
            memory_mb=ground.memory_mb,
            allow_rejects=asked["allow_rejects"],
            resolutions=resolutions,
            wallet=_joined(own, asked["wallet"], inputs / "wallet.jsonl"),
            receipts=_joined(own, asked["receipts"], inputs / "receipts.jsonl"),
            regulator=regulator,
        )
    )
    summary: Document = {
        "open": done.open_breaks, "rejected": done.rejected, "resolved": done.resolved_breaks,
        "sha256": done.report_sha256, "signed": done.document["is_signed"], "verdict": done.verdict,
    }  # fmt: skip
    write_document(folder / SUMMARY, summary)


def _joined(own: Path, entries: Sequence[str], out: Path) -> Path | None:
    """Submissions one behind the other; None where there are none."""
    if not entries:
        return None
    with out.open("wb") as file:
        for entry in entries:
            with (own / "submissions" / entry / ROWS).open("rb") as rows:
                shutil.copyfileobj(rows, file, 1 << 20)
    return out


def _export_register(path: Path, operator: str, out: Path) -> Path:
    store = RegisterStore(path)
    try:
        with out.open("wb") as file:
            entries = (parse_canonical(entry.body.encode("ascii")) for entry in store.entries())
            file.writelines(register_lines(of_operator(entries, operator)))
    finally:
        store.close()
    return out


def of_operator(entries: Iterable[dict[str, Any]], operator: str) -> Iterator[dict[str, Any]]:
    """The entries of the register's journal that are about this operator's sessions."""
    own: set[str] = set()
    for entry in entries:
        if entry["kind"] == "opening":
            if entry["request"]["operator"] == operator:
                own.add(entry["subject"])
                yield entry
        elif entry["request"].get("regulator_session_id") in own:
            yield entry


# --- the statements ---------------------------------------------------------------------------------------------------


async def _export(ground: Ground, operator: str, out: Path) -> None:
    reads = await ground.open_reads()
    try:
        sessions = await _sessions(reads, operator)
        with out.open("wb") as file:
            for line in scope_lines(Plan({}, sessions, SELECTION), ground.signer, ground.now_ms):
                file.write(format_line(line) + b"\n")
            async for row in selected(reads, sessions):
                file.write(format_line(line_of(row, private=True)) + b"\n")
    finally:
        await reads.close()


async def _sessions(reads: StoreReads, operator: str) -> dict[str, int]:
    """The operator's sessions, each with the number of its last link."""
    found: dict[str, int] = {}
    before = 0
    while rows := await reads.sessions_of(operator, "", open_only=False, before=before, limit=SESSIONS_AT_ONCE):
        found |= {session.session_id: session.link_no for _, session in rows if session.link_no}
        before = rows[-1][0]
    return found


async def selected(reads: StoreReads, sessions: dict[str, int]) -> AsyncIterator[StatementRow]:
    """The links 1 to n of these sessions in commit order, before its first the start of each instance that signed them.

    ExportError where the store does not hold them all.
    """
    starts: dict[str, StatementRow] = {}
    told: set[str] = set()
    missing = sum(sessions.values())
    async for row in reads.statements_in_order():
        if not missing:
            break
        if row.kind == "instance_start":
            starts[row.instance] = row
        if row.session_id and 0 < row.link_no <= sessions.get(row.session_id, 0):
            if row.instance not in told:
                told.add(row.instance)
                yield starts.pop(row.instance)
            yield row
            missing -= 1
    if missing:
        raise ExportError(f"the store lacks {missing} statements that its sessions promise", value=missing)
