"""Reports of reconciliations over gRPC: read them, resolve breaks (two admins), countersign (the operator).

The files of a run (`rgs.service.reconciliation.files`) are only added to. A resolution is a new entry in the operator's
chain of resolutions (`rgs.core.reconcile.resolutions`), which the next run reads. A countersignature is a further line
of report.jsonl. A proposal is a line of a file, too.

One person cannot resolve a break, and nobody one that the report does not name. Admins cannot read the signed
statements, because they carry private blocks.
"""

from __future__ import annotations

import asyncio
import csv
import fcntl
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from rgs.core.clock import Clock
from rgs.core.errors import FormatError, InvalidFieldError, NotFoundError, ReportNotDoneError, VerificationError
from rgs.core.ids import check_request_id
from rgs.core.reconcile.classes import BreakClass
from rgs.core.reconcile.resolutions import Resolution, format_entry, read_resolutions
from rgs.core.times import format_time
from rgs.service.callers import Caller, Role
from rgs.service.pages import check_page_size, format_page_token, parse_page_token
from rgs.service.reconciliation import files
from rgs.service.reconciliation.countersigning import COUNTERKEYS, add_countersignature
from rgs.service.reconciliation.files import Document, Shelf
from rgs.service.reconciliation.runs import DONE, state_of

STATEMENTS: Final = "statements.jsonl"
CHUNK: Final = 64 * 1024
FILES: Final = frozenset(
    {
        *(files.REPORT, files.PAGE, files.SIGNED, COUNTERKEYS, STATEMENTS, files.RESOLUTIONS, "keys.json"),
        *(files.BREAKS_CSV, files.TOTALS_CSV, files.PARTICIPATIONS_CSV, files.REJECTS_CSV),
        *("wallet.jsonl", "receipts.jsonl", "regulator.jsonl"),
    }
)
_FORMULA: Final = tuple("=+-@\t\r")


@dataclass(frozen=True, slots=True)
class Report:
    """A run as callers see it; `summary` and `failure` are empty where it has none."""

    report_id: str
    operator: str
    party: str
    time_ms: int
    state: str
    summary: Document
    failure: Document


@dataclass(frozen=True, slots=True)
class Settling:
    """How a break was settled, in an admin's words."""

    break_id: str
    reason: str
    evidence: str


class ReconciliationReports:
    """The reports of one node."""

    def __init__(self, shelf: Shelf, clock: Clock) -> None:
        self._shelf = shelf
        self._clock = clock

    async def page(self, operator: str, page_size: int, page_token: str) -> tuple[list[Report], str]:
        """An operator's reports, newest first, and the token of the next page."""
        found, token = await asyncio.to_thread(self._shelf.page, operator, "reports", files.RUN, page_size, page_token)
        return [await asyncio.to_thread(self._report, operator, entry) for entry, _ in found], token

    async def report(self, operator: str, report_id: str) -> Report:
        """One report. NotFoundError."""
        return await asyncio.to_thread(self._report, operator, report_id)

    async def data(self, caller: Caller, operator: str, report_id: str, file: str) -> AsyncIterator[bytes]:
        """The bytes of a file of a report, in order. InvalidFieldError, NotFoundError, ReportNotDoneError."""
        allowed = FILES - {STATEMENTS} if caller.role is Role.ADMIN else FILES
        folder = await asyncio.to_thread(self._done, operator, report_id)
        path = await asyncio.to_thread(files.check_file, file, allowed, folder)
        with path.open("rb") as opened:
            while chunk := await asyncio.to_thread(opened.read, CHUNK):
                yield chunk

    async def breaks(
        self, operator: str, report_id: str, kind: str, page_size: int, page_token: str
    ) -> tuple[list[dict[str, str]], str]:
        """The rows of breaks.csv, owed players first, only those of a class where it is named; the next token."""
        size = check_page_size(page_size)
        (start,) = parse_page_token(page_token, 1)
        if kind and kind not in set(BreakClass):
            limit = ", ".join(BreakClass)
            raise InvalidFieldError(
                f"unknown break_class {kind[:40]}; known classes: {limit}",
                field="break_class",
                limit=limit,
                value=kind[:40],
            )
        folder = await asyncio.to_thread(self._done, operator, report_id)

        def read() -> tuple[list[dict[str, str]], str]:
            found: list[dict[str, str]] = []
            with (folder / files.REPORT_FOLDER / files.BREAKS_CSV).open("rb") as file:
                for at, row in break_rows(file, start):
                    if not kind or row["class"] == kind:
                        if len(found) == size:
                            return found, format_page_token(at)
                        found.append(row)
            return found, ""

        return await asyncio.to_thread(read)

    async def resolve(self, caller: Caller, request_id: str, operator: str, report_id: str, settling: Settling) -> int:
        """Propose, or confirm what another admin proposed in the same words; the entry's number, 0 for a proposal.

        A repeat changes nothing. InvalidFieldError, NotFoundError, ReportNotDoneError.
        """
        check_request_id(request_id)
        folder = await asyncio.to_thread(self._done, operator, report_id)
        return await asyncio.to_thread(self._resolve, caller.party, self._shelf.of(operator), folder, settling)

    async def countersign(
        self, caller: Caller, request_id: str, report_id: str, envelope: bytes, public_key: bytes
    ) -> int:
        """Add the operator's signature; how many there are. InvalidFieldError, NotFoundError, ReportNotDoneError."""
        check_request_id(request_id)
        folder = await asyncio.to_thread(self._done, caller.party, report_id)

        def add() -> int:
            with _locked(folder / ".countersigning"):
                return add_countersignature(folder / files.REPORT_FOLDER, envelope, public_key, caller.party)

        try:
            return await asyncio.to_thread(add)
        except (FormatError, VerificationError) as error:
            raise InvalidFieldError(f"envelope: {error.message}", field="envelope") from None

    # --- in a thread ---

    def _report(self, operator: str, report_id: str) -> Report:
        folder = self._shelf.entry(operator, "reports", report_id, "report_id")
        run = files.read_document(folder / files.RUN)
        if run is None:
            raise NotFoundError(f"there is no report {report_id}", kind="report", field="report_id", value=report_id)
        state = state_of(self._shelf, folder)
        summary, failure = (
            files.read_document(folder / files.SUMMARY) or {},
            files.read_document(folder / files.FAILED) or {},
        )
        return Report(report_id, operator, run["party"], run["time_ms"], state, summary, failure)

    def _done(self, operator: str, report_id: str) -> Path:
        report = self._report(operator, report_id)
        if report.state != DONE:
            raise ReportNotDoneError(
                f"report {report_id} is {report.state}", field="report_id", value=report_id, state=report.state
            )
        return self._shelf.of(operator) / "reports" / report_id

    def _resolve(self, party: str, own: Path, folder: Path, settling: Settling) -> int:
        with _locked(own / ".resolving"):
            lines = _lines(own / files.RESOLUTIONS)
            known, count, last = read_resolutions(lines)
            entered = known.get(settling.break_id)
            words = (settling.reason, settling.evidence)
            if (
                entered is not None
                and party in {entered.resolved_by, entered.approved_by}
                and (entered.reason, entered.evidence) == words
            ):
                said = [json.loads(line)["break_id"] for line in lines]
                return count - said[::-1].index(settling.break_id)
            proposals = [json.loads(line) for line in _lines(own / files.PROPOSALS)]
            proposed = next((row for row in reversed(proposals) if row["break_id"] == settling.break_id), None)
            by = party
            if proposed is not None and (proposed["reason"], proposed["evidence"]) == words:
                if proposed["by"] == party:
                    return 0
                by = proposed["by"]
            time = format_time(self._clock.now_ms())
            # A proposal is checked as the entry that it would become; the second admin is made up.
            resolution = Resolution(
                settling.break_id, settling.reason, settling.evidence, by, party if by != party else "nobody-yet", time
            )
            entry = format_entry(resolution, count + 1, last)
            with (folder / files.REPORT_FOLDER / files.BREAKS_CSV).open("rb") as file:
                if all(row["break_id"] != settling.break_id for _, row in break_rows(file)):
                    raise NotFoundError(
                        f"the report names no break {settling.break_id}", kind="break", field="break_id",
                        value=settling.break_id,
                    )  # fmt: skip
            if by != party:
                _append(own / files.RESOLUTIONS, entry)
                return count + 1
            row: dict[str, Any] = {
                "break_id": settling.break_id, "by": party, "evidence": settling.evidence, "reason": settling.reason,
                "time": time,
            }  # fmt: skip
            _append(own / files.PROPOSALS, json.dumps(row, sort_keys=True, separators=(",", ":")).encode("ascii"))
            return 0


def break_rows(file: BinaryIO, start: int = 0) -> Iterator[tuple[int, dict[str, str]]]:
    """(byte at which it begins, row) of breaks.csv from byte `start` on, 0 for the first row. InvalidFieldError."""
    at = 0

    def texts() -> Iterator[str]:
        nonlocal at
        for line in file:
            at += len(line)
            yield line.decode("utf-8")

    reader = csv.reader(texts())
    header = next(reader)
    if start:
        file.seek(start - 1)
        if start < at or file.read(1) != b"\n":
            raise InvalidFieldError("page_token was not made by this list", field="page_token", value=start)
        at = start
    while True:
        began = at
        row = next(reader, None)
        if row is None:
            return
        yield began, dict(zip(header, map(_plain, row), strict=True))


def _plain(cell: str) -> str:
    """The cell as it was before `escape_cell`."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(_FORMULA) else cell


def _lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines() if path.exists() else []


def _append(path: Path, line: bytes) -> None:
    files.write_whole(path, (path.read_bytes() if path.exists() else b"") + line + b"\n")


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
