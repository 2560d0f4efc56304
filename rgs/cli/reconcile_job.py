"""`rgs reconcile job`: the process that the server starts for a reconciliation requested over gRPC.

It puts the inputs into the run's folder under fixed names, and they stay there: `rgs reconcile` over these files gives
the same report (docs/reconciliation.md, "Over gRPC"). It exports the sessions of one operator, as `rgs export
--session` would, in one pass over the store, or two where some are at tables. Memory grows by an id and a number for
each session of the operator.
The process runs at the lowest priority, so that play goes first. An error becomes the run's failed.json.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rgs import __version__
from rgs.adapters.embedded.books import regulator_lines
from rgs.cli.export import SELECTION, ExportPlan, ExportRefusedError, line_of, scope_lines
from rgs.cli.export_seats import SeatNumbers
from rgs.core.errors import RgsError
from rgs.core.statements import Signer, format_line, parse_canonical
from rgs.node.stores import reading
from rgs.service.reconciliation import files
from rgs.service.reconciliation.reconciliation import ReconcileRequest, Reconciliation
from rgs.service.reconciliation.reports import STATEMENTS
from rgs.service.reconciliation.runs import fail
from rgs.store.address import StoreAddress
from rgs.store.interface import StatementRow, StoreReads
from rgs.store.regulator import RegulatorStore

SESSIONS_AT_ONCE: Final = 1_000
KEYS, REGULATOR = "keys.json", "regulator.jsonl"


@dataclass(frozen=True, slots=True)
class JobInputs:
    """What the job works on. `regulator` is the file of the embedded test regulator."""

    store: StoreAddress
    regulator: Path
    bundle: bytes
    signer: Signer
    now_ms: int
    memory_mb: int
    archive: Path | None = None


def run_job(inputs: JobInputs, folder: Path) -> int:
    """Run what the folder's run.json asks for: 0 with a summary, 1 with a failure in the folder."""
    run = files.read_document(folder / files.RUN)
    if run is None:
        raise FileNotFoundError(folder / files.RUN)
    try:
        _run(inputs, folder, run["request"])
    except RgsError as error:
        fail(folder, error.reason, error.message)
        return 1
    return 0


def _run(job: JobInputs, folder: Path, requested: files.Document) -> None:
    operator: str = requested["operator"]
    inputs = folder / files.INPUTS
    inputs.mkdir()
    asyncio.run(_export(job, operator, inputs / STATEMENTS))
    (inputs / KEYS).write_bytes(job.bundle)
    own = folder.parent.parent
    if requested["embedded_regulator"]:
        regulator: Path | None = _export_regulator(job.regulator, operator, inputs / REGULATOR)
    else:
        regulator = _joined(own, requested["regulator"], inputs / REGULATOR)
    resolutions = None
    if (own / files.RESOLUTIONS).is_file():
        resolutions = inputs / files.RESOLUTIONS
        shutil.copyfile(own / files.RESOLUTIONS, resolutions)
    done = Reconciliation(version=__version__, signer=job.signer).run(
        ReconcileRequest(
            statements=inputs / STATEMENTS,
            keys=inputs / KEYS,
            out=folder / files.REPORT_FOLDER,
            root=requested["root"] or None,
            period=None if requested["period"] is None else (requested["period"][0], requested["period"][1]),
            cut_off_s=requested["cut_off_s"],
            operator=operator,
            memory_mb=job.memory_mb,
            allow_rejects=requested["allow_rejects"],
            resolutions=resolutions,
            wallet=_joined(own, requested["wallet"], inputs / "wallet.jsonl"),
            receipts=_joined(own, requested["receipts"], inputs / "receipts.jsonl"),
            regulator=regulator,
        )
    )
    summary: files.Document = {
        "open": done.open_breaks, "rejected": done.rejected, "resolved": done.resolved_breaks,
        "sha256": done.report_sha256, "signed": done.document["is_signed"], "verdict": done.verdict,
    }  # fmt: skip
    files.write_document(folder / files.SUMMARY, summary)


def _joined(own: Path, entries: Sequence[str], out: Path) -> Path | None:
    """Write the rows of these submissions into one file; None if there are none. A book may end without a line feed."""
    if not entries:
        return None
    with out.open("wb") as file:
        for entry in entries:
            last = b""
            with (own / "submissions" / entry / files.ROWS).open("rb") as rows:
                while piece := rows.read(1 << 20):
                    file.write(piece)
                    last = piece
            if last and not last.endswith(b"\n"):
                file.write(b"\n")
    return out


def _export_regulator(path: Path, operator: str, out: Path) -> Path:
    with closing(RegulatorStore(path)) as store, out.open("wb") as file:
        entries = (parse_canonical(entry.body.encode("ascii")) for entry in store.entries())
        file.writelines(regulator_lines(of_operator(entries, operator)))
    return out


def of_operator(entries: Iterable[dict[str, Any]], operator: str) -> Iterator[dict[str, Any]]:
    """The entries of the test regulator's journal that concern this operator's sessions."""
    own: set[str] = set()
    for entry in entries:
        if entry["kind"] == "opening":
            if entry["request"]["operator"] == operator:
                own.add(entry["subject"])
                yield entry
        elif entry["request"].get("regulator_session_id") in own:
            yield entry


# --- the statements ---------------------------------------------------------------------------------------------------


async def _export(inputs: JobInputs, operator: str, out: Path) -> None:
    async with reading(inputs.store, inputs.archive) as reads:
        plan = await _plan(reads, operator)
        links = {session: last for session, (_, last) in plan.sessions.items()}
        beside = frozenset((instance, number) for _, instance, number in plan.beside)
        with out.open("wb") as file:
            for line in scope_lines(plan, inputs.signer, inputs.now_ms):
                file.write(format_line(line) + b"\n")
            async for row in selected(reads, links, beside):
                file.write(format_line(await line_of(reads, row, private=True, is_cut=True)) + b"\n")


async def _plan(reads: StoreReads, operator: str) -> ExportPlan:
    """The operator's sessions; where some are at tables, what all seats of their rounds share, but no `table_seats`."""
    links: dict[str, int] = {}
    before, is_at_tables = 0, False
    while rows := await reads.sessions_of(operator, "", open_only=False, before=before, limit=SESSIONS_AT_ONCE):
        links |= {session.session_id: session.link_no for _, session in rows if session.link_no}
        is_at_tables = is_at_tables or any(session.table_id for _, session in rows)
        before = rows[-1][0]
    numbers = SeatNumbers()
    if is_at_tables:
        async for row in selected(reads, links):
            if row.link_no:
                numbers.take(row)
    beside = await numbers.beside(reads, {})
    spans = {session: (1, last) for session, last in links.items()}
    return ExportPlan({}, spans, SELECTION, (), beside, numbers.held({}) if beside else {})


async def selected(
    reads: StoreReads, sessions: dict[str, int], beside: frozenset[tuple[str, int]] = frozenset()
) -> AsyncIterator[StatementRow]:
    """The links 1 to n of these sessions, and what else they need, `beside` them (instance, number), in commit
    order. The `instance_start` of an instance comes before the first of them that the instance signed.
    ExportRefusedError if the store lacks one.
    """
    starts: dict[str, StatementRow] = {}
    started: set[str] = set()
    missing = sum(sessions.values()) + len(beside)
    async for row in reads.statements_in_order():
        if not missing:
            break
        if row.kind == "instance_start":
            starts[row.instance] = row
        is_link = row.session_id and 0 < row.link_no <= sessions.get(row.session_id, 0)
        if is_link or (row.instance, row.statement_no) in beside:
            if row.instance not in started:
                started.add(row.instance)
                yield starts.pop(row.instance)
            yield row
            missing -= 1
    if missing:
        raise ExportRefusedError(f"the store lacks {missing} statements that its sessions promise", value=missing)
