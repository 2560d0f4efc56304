"""The folder in which a node keeps the submissions of operators for reconciliation, and the reports.

    run.lock                             held while a reconciliation runs, with its report's id in it
    <operator>/submissions/<id>/         rows.jsonl, and submission.json, which says what they are
    <operator>/reports/<id>/             run.json (what was asked), inputs/, report/, then summary.json or failed.json
    <operator>/resolutions.jsonl         how breaks were settled; proposals.jsonl beside it

An id is a hash of the caller and the request id, so that the same request finds what it made. Files and folders under
these names are whole; `sweep` removes what a dead process has left unfinished. Only the server's user may read the
folder (mode 0700). An operator has at most STORED_MAX submissions and reports each, and at most `stored_mb` in all.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from rgs.core.errors import InvalidFieldError, NotFoundError, ReconciliationBusyError, ReconciliationFullError
from rgs.core.ids import check_name
from rgs.service.callers import Caller, Role
from rgs.service.pages import check_page_size, format_key_token, parse_key_token

STORED_MAX: Final = 2_000
RETRY_MS: Final = 10_000
"""When to try again while another submission or run is under way."""
MEGABYTE: Final = 1 << 20
RUN, SUMMARY, FAILED, INPUTS, REPORT_FOLDER = "run.json", "summary.json", "failed.json", "inputs", "report"
# The files of a report.
REPORT: Final = "report.json"
PAGE: Final = "report.html"
SIGNED: Final = "report.jsonl"
BREAKS_CSV: Final = "breaks.csv"
TOTALS_CSV: Final = "totals.csv"
PARTICIPATIONS_CSV: Final = "participations.csv"
REJECTS_CSV: Final = "rejects.csv"
REPORT_NAME: Final = "reconciliation/report.json"
# Those of what was submitted and settled.
ROWS, SUBMISSION = "rows.jsonl", "submission.json"
RESOLUTIONS, PROPOSALS = "resolutions.jsonl", "proposals.jsonl"
_LOCK: Final = "run.lock"
_ID: Final = re.compile(r"[0-9a-f]{32}", re.ASCII)
Document = dict[str, Any]


def entry_id(caller: Caller, method: str, request_id: str) -> str:
    """The id of the submission or report that this request makes."""
    return hashlib.sha256(f"{caller.role.value}/{caller.party}/{method}/{request_id}".encode()).hexdigest()[:32]


def operator_of(caller: Caller, operator: str) -> str:
    """The operator that a request is about: the caller, or for other roles the given one. InvalidFieldError,
    NotFoundError.
    """
    if caller.role is not Role.OPERATOR:
        return check_name(operator, "operator")
    if operator not in {"", caller.party}:
        raise NotFoundError("there is no such operator", kind="operator", field="operator", value=operator[:80])
    return caller.party


def write_document(path: Path, document: Document) -> None:
    """Put a document in place, whole and durable."""
    write_whole(path, json.dumps(document, sort_keys=True).encode("ascii"))


def write_whole(path: Path, content: bytes) -> None:
    """Put a file in place, whole and durable: a crash leaves the old one or the new one."""
    new = path.with_name(f".{path.name}.new")
    with new.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    sync(path.parent)


def sha256_of(path: Path) -> str:
    """Hex SHA-256 of a file. OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_document(path: Path) -> Document | None:
    """A document; None if there is no file."""
    try:
        found: Document = json.loads(path.read_text("ascii"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found


def sync(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Shelf:
    """The folder of one node."""

    def __init__(self, folder: Path, *, stored_mb: int = 20_000) -> None:
        self._folder = folder
        self._stored_mb = stored_mb
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def of(self, operator: str) -> Path:
        return self._folder / operator

    def entry(self, operator: str, shelf: str, entry: str, field: str) -> Path:
        """The folder of a submission or report. NotFoundError, for a malformed id too."""
        path = self.of(operator) / shelf / entry
        if _ID.fullmatch(entry) is None or not path.is_dir():
            raise NotFoundError(f"there is no {field} {entry[:40]}", kind=field, field=field, value=entry[:40])
        return path

    def verify_room(self, operator: str, shelf: str) -> int:
        """How many bytes the operator has left. ReconciliationFullError."""
        own = self.of(operator)
        with contextlib.suppress(FileNotFoundError):
            if sum(1 for _ in (own / shelf).iterdir()) >= STORED_MAX:
                raise ReconciliationFullError(
                    f"{operator} has {STORED_MAX} {shelf}, the limit: the operator of the RGS has to move some away",
                    field=shelf, limit=STORED_MAX,
                )  # fmt: skip
        left = self._stored_mb * MEGABYTE
        for folder, _, names in os.walk(own):
            for name in names:
                with contextlib.suppress(FileNotFoundError):
                    left -= (Path(folder) / name).stat().st_size
        if left <= 0:
            raise self.full(operator)
        return left

    def full(self, operator: str) -> ReconciliationFullError:
        """The error for an operator whose files take too much room."""
        return ReconciliationFullError(
            f"the files of {operator} take {self._stored_mb} MB: the operator of the RGS has to move some away",
            field="reconciliation_stored_mb", limit=self._stored_mb,
        )  # fmt: skip

    def page(
        self, operator: str, shelf: str, name: str, page_size: int, page_token: str
    ) -> tuple[list[tuple[str, Document]], str]:
        """(id, document) of an operator's submissions or reports, newest first, and the token of the next page."""
        size = check_page_size(page_size)
        before = parse_key_token(page_token, 2)
        found: list[tuple[tuple[str, str], Document]] = []
        with contextlib.suppress(FileNotFoundError):
            found = [
                ((f"{document['time_ms']:015d}", path.name), document)
                for path in (self.of(operator) / shelf).iterdir()
                if _ID.fullmatch(path.name) and (document := read_document(path / name)) is not None
            ]
        found.sort(key=lambda row: row[0], reverse=True)
        rows = [row for row in found if not page_token or row[0] < before]
        token = format_key_token(*rows[size - 1][0]) if len(rows) > size else ""
        return [(key[1], document) for key, document in rows[:size]], token

    # --- the one run at a time ---

    def lock(self, entry: str) -> int:
        """Take the lock for this report; its descriptor, which the process of the run inherits.

        ReconciliationBusyError.
        """
        descriptor = os.open(self._folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise ReconciliationBusyError(
                "this node runs another reconciliation: try again when it has ended", retry_after_ms=RETRY_MS
            ) from None
        os.pwrite(descriptor, entry.encode("ascii"), 0)
        return descriptor

    def running(self) -> str:
        """The id of the report that is being made; empty if there is none."""
        try:
            descriptor = os.open(self._folder / _LOCK, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return ""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return os.pread(descriptor, 32, 0).decode("ascii")
        finally:
            os.close(descriptor)
        return ""

    def sweep(self) -> None:
        """Remove unfinished submissions and runs of processes that are gone."""
        running = self.running()
        for path in self._folder.glob("*/submissions/.*"):
            with contextlib.suppress(FileNotFoundError, BlockingIOError), held(path / ROWS):
                shutil.rmtree(path, ignore_errors=True)
        for path in self._folder.glob("*/reports/*"):
            if path.name != running and not ((path / SUMMARY).exists() or (path / FAILED).exists()):
                clear_run(path)


def clear_run(folder: Path) -> None:
    """Remove all files of a run but its request."""
    for path in folder.iterdir():
        if path.name != RUN:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


@contextlib.contextmanager
def held(path: Path) -> Iterator[int]:
    """Lock an existing file. FileNotFoundError, BlockingIOError."""
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield descriptor
    finally:
        os.close(descriptor)


def check_file(name: str, allowed: frozenset[str], folder: Path) -> Path:
    """The path of a file of a report. InvalidFieldError for an unknown name, NotFoundError if the report lacks it."""
    if name not in allowed:
        limit = ", ".join(sorted(allowed))
        raise InvalidFieldError(
            f"unknown file {name[:40]}; known files: {limit}", field="file", limit=limit, value=name[:40]
        )
    for path in (folder / REPORT_FOLDER / name, folder / INPUTS / name):
        if path.is_file():
            return path
    raise NotFoundError(f"the report has no {name}", kind="file", field="file", value=name)
