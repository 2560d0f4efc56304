"""Starts reconciliations that are asked for over gRPC, each in a process of its own (docs/reconciliation.md).

The request names the run and is written first. The process exports the signed statements, puts the other files beside
them under fixed names, and runs `rgs.service.reconciliation.reconciliation` over them: `rgs reconcile` over the same
files gives the same report. A node runs one at a time: the process inherits a lock. A run that ends without a summary
is interrupted. The same request starts it again, and `Shelf.sweep` removes its files.

A run needs something to compare with. Submissions of another operator or kind are refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from rgs.core.clock import Clock
from rgs.core.errors import InvalidFieldError, NotFoundError
from rgs.core.times import TIME_MS_MAX
from rgs.service.admin.orders import order_of
from rgs.service.callers import Caller, verify_same_content
from rgs.service.reconciliation import files
from rgs.service.reconciliation.files import Document, Shelf
from rgs.service.reconciliation.submissions import RECEIPTS, REGULATOR, WALLET

METHOD: Final = "RunReconciliation"
SUBMISSIONS_MAX: Final = 400
"""Submissions of one kind in one run: more than a year of days."""
ENDED: Final = "RECONCILIATION_FAILED"
"""The reason if a process gave none. It is not the store's error code: the server itself has no duckdb."""
EXIT_S: Final = 5.0
"""How long a process that has written its result may take to end."""
CUT_OFF_S_MAX: Final = 366 * 86_400
RUNNING, DONE, FAILED_STATE, INTERRUPTED = "running", "done", "failed", "interrupted"
_HEX: Final = frozenset("0123456789abcdef")


class Job(Protocol):
    """A process that runs a reconciliation."""

    async def wait(self) -> int: ...
    def kill(self) -> None: ...


Begin = Callable[[Path, int, int], Awaitable[Job]]
"""(folder of the run, descriptor of the lock, which the process inherits, MB that it may take) -> the process."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What to compare: submissions by kind, and the fields of `ReconcileRequest` that a caller may set."""

    operator: str
    wallet: Sequence[str]
    receipts: Sequence[str]
    regulator: Sequence[str]
    embedded_regulator: bool
    root: str
    period: tuple[int, int] | None
    cut_off_s: int | None
    allow_rejects: bool


class ReconciliationRuns:
    """Starts runs, and ends them with the server."""

    def __init__(self, shelf: Shelf, clock: Clock, begin: Begin, *, memory_mb: int) -> None:
        self._shelf = shelf
        self._clock = clock
        self._begin = begin
        self._memory_mb = memory_mb
        self._jobs: dict[asyncio.Task[None], tuple[Job, Path]] = {}
        self._stopping = False

    async def start(self) -> None:
        """Remove unfinished files of processes that are gone."""
        await asyncio.to_thread(self._shelf.sweep)

    async def stop(self) -> None:
        """Kill the running process: only the request of its run stays."""
        self._stopping = True
        for job, _ in self._jobs.values():
            with contextlib.suppress(ProcessLookupError):
                job.kill()
        if self._jobs:
            await asyncio.wait(self._jobs)

    async def run(self, caller: Caller, request_id: str, request: RunRequest) -> str:
        """Start a run; the id of its report. InvalidFieldError, NotFoundError, ReconciliationBusyError and more."""
        order = order_of(caller, METHOD, request_id, **asdict(request))
        entry = files.entry_id(caller, METHOD, request_id)
        _verify(request)
        folder = self._shelf.of(request.operator) / "reports" / entry
        known = await asyncio.to_thread(files.read_document, folder / files.RUN)
        if known is not None:
            verify_same_content(bytes.fromhex(known["digest"]), order.digest, request_id, METHOD)
            if state_of(self._shelf, folder) != INTERRUPTED:
                return entry
        else:
            await asyncio.to_thread(self._verify_new, request)
        document: Document = {
            "digest": order.digest.hex(), "party": caller.party, "request": asdict(request), "request_id": request_id,
            "time_ms": self._clock.now_ms(),
        }  # fmt: skip
        await self._ended()
        lock = self._shelf.lock(entry)
        try:
            await asyncio.to_thread(_lay_out, folder, document)
            job = await self._begin(folder, lock, self._memory_mb)
        finally:
            os.close(lock)
        task = asyncio.create_task(self._follow(job, folder))
        self._jobs[task] = job, folder
        task.add_done_callback(self._jobs.pop)
        return entry

    async def _ended(self) -> None:
        """Wait for processes that have written their result: they hold the lock until they end."""
        over = [task for task, (_, folder) in self._jobs.items() if is_over(folder)]
        if over:
            await asyncio.wait(over, timeout=EXIT_S)

    def _verify_new(self, request: RunRequest) -> None:
        self._shelf.verify_room(request.operator, "reports")
        for source, entries in ((WALLET, request.wallet), (RECEIPTS, request.receipts), (REGULATOR, request.regulator)):
            for entry in entries:
                field = f"{source}_submission_ids"
                found = files.read_document(
                    self._shelf.entry(request.operator, "submissions", entry, field) / files.SUBMISSION
                )
                if found is None or found["source"] != source:
                    raise NotFoundError(
                        f"{entry} is no submission of {source}", kind="submission", field=field, value=entry
                    )

    async def _follow(self, job: Job, folder: Path) -> None:
        status = await job.wait()
        if not (self._stopping or is_over(folder)):
            result = f"the process ended with status {status}: memory, disk, or a signal"
            await asyncio.to_thread(fail, folder, ENDED, result)


def fail(folder: Path, reason: str, message: str) -> None:
    """Mark the run as failed: only its request and the reason are kept. Paths of this host are left out."""
    files.clear_run(folder)
    files.write_document(folder / files.FAILED, {"message": message.replace(f"{folder}{os.sep}", ""), "reason": reason})


def is_over(folder: Path) -> bool:
    """Whether the run has a result."""
    return (folder / files.SUMMARY).exists() or (folder / files.FAILED).exists()


def state_of(shelf: Shelf, folder: Path) -> str:
    """The state of a run."""
    if (folder / files.SUMMARY).exists():
        return DONE
    if (folder / files.FAILED).exists():
        return FAILED_STATE
    return RUNNING if shelf.running() == folder.name else INTERRUPTED


def _lay_out(folder: Path, document: Document) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    files.clear_run(folder)
    files.write_document(folder / files.RUN, document)


def _verify(request: RunRequest) -> None:
    named: dict[str, Any] = {WALLET: request.wallet, RECEIPTS: request.receipts, REGULATOR: request.regulator}
    for source, entries in named.items():
        field = f"{source}_submission_ids"
        if len(entries) > SUBMISSIONS_MAX or len(set(entries)) != len(entries):
            limit = f"at most {SUBMISSIONS_MAX}, each once"
            raise InvalidFieldError(f"{field} must be {limit}", field=field, limit=limit, value=len(entries))
    if request.embedded_regulator and request.regulator:
        raise InvalidFieldError("the regulator's book is submitted or embedded, not both", field="embedded_regulator")
    if not (any(named.values()) or request.embedded_regulator):
        raise InvalidFieldError(
            "nothing to compare with: name submissions, or the book of the embedded regulator", field="wallet_submission_ids"
        )
    if request.root and (len(request.root) != 64 or set(request.root) - _HEX):
        raise InvalidFieldError("root must be 64 lowercase hex digits", field="root", limit=64, value=request.root[:80])
    if request.period is not None and not 0 <= request.period[0] < request.period[1] <= TIME_MS_MAX:
        raise InvalidFieldError("the period is not whole, or ends before it begins", field="period_end_time")
    if request.cut_off_s is not None and not 0 <= request.cut_off_s <= CUT_OFF_S_MAX:
        raise InvalidFieldError(
            f"cut_off_s must be 0 to {CUT_OFF_S_MAX}", field="cut_off_s", limit=CUT_OFF_S_MAX, value=request.cut_off_s
        )
