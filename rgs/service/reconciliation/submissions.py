"""Submissions of operators for reconciliation: rows over gRPC become files that `rgs reconcile` reads
(docs/reconciliation.md).

The strict reader of its source checks each row before it is written as one canonical line of JSON: sorted keys, no
white space, every value a text, absent ones left out. A submission appears whole, with its SHA-256, or not at all. The
same request id with the same content is the same submission.

The first row that cannot be read ends the submission with an error that has its number; so do too many rows, a wrong
count at the end, and a second submission of one operator at the same time in this process.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import json
import os
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from rgs.core.clock import Clock
from rgs.core.errors import FormatError, InvalidFieldError, ReconciliationBusyError
from rgs.core.ids import check_name, check_request_id
from rgs.core.money import parse_currency
from rgs.core.reconcile.lines import Record, RowRefusedError
from rgs.core.reconcile.mapping import Mapping
from rgs.core.reconcile.rows import FieldReader, read_receipt, read_wallet
from rgs.core.times import parse_date
from rgs.service.callers import Caller, verify_same_content
from rgs.service.reconciliation.files import RETRY_MS, ROWS, SUBMISSION, Document, Shelf, entry_id, sync, write_document

DAY_MS: Final = 86_400_000
WALLET, RECEIPTS, REGULATOR = "wallet", "receipts", "regulator"
_METHODS: Final = {WALLET: "SubmitWalletStatement", RECEIPTS: "SubmitReceipts", REGULATOR: "SubmitRegulatorBook"}
_TIME_AT: Final = {WALLET: 5, RECEIPTS: 3}
"""The place of the time in a checked row."""
_PLAIN: Final = FieldReader(Mapping())


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a submission. `operator` is the caller, except for a regulator's."""

    request_id: str
    first_day: str
    last_day: str
    currency: str
    operator: str


@dataclass(frozen=True, slots=True)
class Submission:
    """A stored submission; `sha256` is that of its file."""

    submission_id: str
    source: str
    party: str
    header: Header
    rows: int
    sha256: str
    time_ms: int


def submission_of(entry: str, document: Document) -> Submission:
    """The submission of a stored document."""
    return Submission(**{**document, "submission_id": entry, "header": Header(**document["header"])})


class Submissions:
    """Takes and lists submissions."""

    def __init__(self, shelf: Shelf, clock: Clock, *, rows_max: int) -> None:
        self.shelf = shelf
        self.clock = clock
        self._rows_max = rows_max
        self._uploading: set[str] = set()

    async def begin(self, caller: Caller, source: str, header: Header) -> SubmissionUpload:
        """Take a submission. InvalidFieldError, ReconciliationBusyError, ReconciliationFullError."""
        first_ms, end_ms = _verify_header(source, header)
        if header.operator in self._uploading:
            raise ReconciliationBusyError(
                f"another submission of {header.operator} is under way: try again when it has ended",
                operator=header.operator,
                retry_after_ms=RETRY_MS,
            )
        self._uploading.add(header.operator)
        try:
            left = await asyncio.to_thread(self.shelf.verify_room, header.operator, "submissions")
            folder = self.shelf.of(header.operator) / "submissions" / entry_id(
                caller, _METHODS[source], header.request_id
            )  # fmt: skip
            days = (first_ms, end_ms)
            return SubmissionUpload(self, folder, (source, header, caller.party), days, (self._rows_max, left))
        except BaseException:
            self._uploading.discard(header.operator)
            raise

    async def page(self, operator: str, page_size: int, page_token: str) -> tuple[list[Submission], str]:
        """An operator's submissions, newest first, and the token of the next page."""
        found, token = await asyncio.to_thread(
            self.shelf.page, operator, "submissions", SUBMISSION, page_size, page_token
        )
        return [submission_of(entry, document) for entry, document in found], token

    def ended(self, operator: str) -> None:
        self._uploading.discard(operator)


class SubmissionUpload:
    """A submission that is being written: `add` rows, then `finish`; `close` in any case."""

    def __init__(
        self,
        home: Submissions,
        folder: Path,
        what: tuple[str, Header, str],
        days: tuple[int, int],
        limits: tuple[int, int],
    ) -> None:
        self._home, self._folder, self._days = home, folder, days
        self._source, self._header, self._party = what
        self._rows_max, self._bytes_left = limits
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._new = folder.with_name(f".{folder.name}.{os.getpid()}")
        shutil.rmtree(self._new, ignore_errors=True)
        self._new.mkdir(mode=0o700)
        self._file = (self._new / ROWS).open("wb")
        fcntl.flock(self._file, fcntl.LOCK_EX)  # `Shelf.sweep` leaves a locked file alone
        self._digest = hashlib.sha256()
        self._rows = 0
        self._ends_in_line = False

    async def add(self, records: list[Record]) -> None:
        """Check and write rows. InvalidFieldError with the number of the row."""
        await asyncio.to_thread(self._add, records)

    async def add_data(self, data: bytes) -> None:
        """Write a piece of a file of lines. InvalidFieldError."""
        await asyncio.to_thread(self._write, data, data.count(b"\n"))
        self._ends_in_line = not data.endswith(b"\n")

    async def finish(self, total_rows: int) -> Submission:
        """Put the submission in place. InvalidFieldError, IdempotencyConflictError."""
        rows = self._rows + self._ends_in_line
        if total_rows != rows:
            raise InvalidFieldError(
                f"total_rows is {total_rows}, but {rows} rows came", field="total_rows", limit=rows, value=total_rows
            )
        return await asyncio.to_thread(self._finish, rows)

    def close(self) -> None:
        """Remove what was not finished."""
        self._file.close()
        shutil.rmtree(self._new, ignore_errors=True)
        self._home.ended(self._header.operator)

    def _add(self, records: list[Record]) -> None:
        self._write(
            b"".join(map(self._line, records, range(self._rows + 1, self._rows + len(records) + 1))), len(records)
        )

    def _line(self, record: Record, number: int) -> bytes:
        try:
            if self._source == WALLET:
                record = {**record, "currency": self._header.currency, "operator": self._header.operator}
                row = read_wallet(record, _PLAIN)[1]
            else:
                _PLAIN.text(record, "round_id", "")
                row = read_receipt(record, _PLAIN)[1]
        except RowRefusedError as error:
            raise InvalidFieldError(f"row {number}: {error.message}", field="rows", row=number) from None
        first_ms, end_ms = self._days
        if "time" in record and not first_ms <= int(row[_TIME_AT[self._source]]) < end_ms:
            days = f"{self._header.first_day} to {self._header.last_day}"
            raise InvalidFieldError(
                f"row {number}: time {record['time']} is outside of {days}", field="rows", limit=days, row=number
            )
        result = {name: value for name, value in record.items() if value}
        return json.dumps(result, sort_keys=True, separators=(",", ":")).encode("ascii") + b"\n"

    def _write(self, data: bytes, rows: int) -> None:
        self._rows += rows
        if self._rows > self._rows_max:
            raise InvalidFieldError(
                f"more than {self._rows_max} rows", field="rows", limit=self._rows_max, value=self._rows
            )
        self._bytes_left -= len(data)
        if self._bytes_left < 0:
            raise self._home.shelf.full(self._header.operator)
        self._digest.update(data)
        self._file.write(data)

    def _finish(self, rows: int) -> Submission:
        document: dict[str, Any] = {
            "header": asdict(self._header), "party": self._party, "rows": rows, "sha256": self._digest.hexdigest(),
            "source": self._source, "time_ms": self._home.clock.now_ms(),
        }  # fmt: skip
        self._file.flush()
        os.fsync(self._file.fileno())
        write_document(self._new / SUBMISSION, document)
        try:
            self._new.rename(self._folder)
        except OSError:  # it is there already
            return self._same_as(submission_of(self._folder.name, document))
        sync(self._folder.parent)
        return submission_of(self._folder.name, document)

    def _same_as(self, again: Submission) -> Submission:
        stored = submission_of(self._folder.name, json.loads((self._folder / SUBMISSION).read_text("ascii")))
        kept, new = (stored.header, stored.sha256), (again.header, again.sha256)
        verify_same_content(kept, new, again.header.request_id, _METHODS[self._source])
        return stored


def _verify_header(source: str, header: Header) -> tuple[int, int]:
    """The first millisecond of the days, and the first one after them. InvalidFieldError."""
    check_request_id(header.request_id)
    check_name(header.operator, "operator")
    days = []
    for field in ("first_day", "last_day"):
        text: str = getattr(header, field)
        try:
            days.append(parse_date(text))
        except FormatError:
            raise InvalidFieldError(f"{field} must be a day YYYY-MM-DD", field=field, value=text[:40]) from None
    if days[1] < days[0]:
        raise InvalidFieldError(
            f"last_day {header.last_day} is before first_day", field="last_day", limit=header.first_day,
            value=header.last_day,
        )  # fmt: skip
    if source != WALLET and header.currency:
        raise InvalidFieldError("only a wallet statement has a currency", field="currency", value=header.currency[:40])
    if source == WALLET:
        try:
            parse_currency(header.currency)
        except FormatError:
            limit = "three capital letters"
            raise InvalidFieldError(
                f"currency is not {limit}", field="currency", limit=limit, value=header.currency[:40]
            ) from None
    return days[0], days[1] + DAY_MS
