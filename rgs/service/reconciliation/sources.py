"""Reads the sources of a reconciliation: streamed, hashed as they are read, each refused row with line and reason.

Statements go through the replay of `rgs.core.replay`, the other sources through the strict readers of
`rgs.core.reconcile`. A wallet statement in our own layout without anything unusual goes straight into the store. Every
field of a row that the store loads has been checked. A missing or empty file, or a header that names a column twice, is
an error.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, tzinfo
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from rgs.core.errors import FormatError, InvalidFieldError, VerificationError
from rgs.core.reconcile.classes import BreakClass
from rgs.core.reconcile.extract import Extract
from rgs.core.reconcile.facts import Break
from rgs.core.reconcile.lines import Read, Record, RowRefusedError, csv_records, json_records
from rgs.core.reconcile.mapping import Mapping, parse_mapping
from rgs.core.reconcile.report import Input
from rgs.core.reconcile.rows import FieldReader, Row
from rgs.core.replay import KeyBook, Replay, Rulebook
from rgs.core.replay.checks import DEAL, SEATS
from rgs.core.statements.lines import LINE_BYTES_MAX
from rgs.core.times import parse_time
from rgs.store.reconciliation import BookComparison, ReconciliationStoreError

CHUNK: Final = 1 << 20
MAPPING_BYTES_MAX: Final = 1 << 16
PLAIN_HEADER: Final = (
    b"transaction_id,kind,player,currency,amount_minor,time,reference,status,balance_after_minor,operator,book\n"
)
_ODD: Final = (b'"', b"\r", b"\x00", b"\n\n", b"\\N")
_WINDOW: Final = 1 << 15
"""Half of the longest line: if every window of this size has a line feed, no line is longer than 64 KiB."""
_PLAIN_TYPES: Final = dict.fromkeys(PLAIN_HEADER.decode().strip().split(","), "VARCHAR") | {
    "amount_minor": "BIGINT",
    "balance_after_minor": "BIGINT",
}
RowReader = Callable[[Record, FieldReader], tuple[str, Row]]


class RowFiles:
    """The files of checked rows, one for each table, that the store loads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, BinaryIO] = {}
        self.counts: Counter[str] = Counter()

    def add(self, table: str, row: Row) -> None:
        """Add a row. Its fields hold neither tabs nor line feeds: they were checked to be printable."""
        if table not in self._files:
            self._files[table] = (self._folder / f"{table}.tsv").open("wb")
        self._files[table].write("\t".join(row).encode() + b"\n")
        self.counts[table] += 1

    def load_into(self, store: BookComparison) -> None:
        """Close the files, load each and remove it."""
        for table, file in sorted(self._files.items()):
            file.close()
            path = self._folder / f"{table}.tsv"
            store.load(table, path)
            path.unlink()
        self._files.clear()

    def close(self) -> None:
        for file in self._files.values():
            file.close()


Reject = tuple[str, int, str]
"""Source, line (0: none), reason."""


def _chunks(path: Path, digest: Any) -> Iterator[bytes]:
    with _opened(path) as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
            yield chunk


def _opened(path: Path) -> BinaryIO:
    try:
        if not path.is_file():
            raise InvalidFieldError(f"{path} is no file", field="path", value=path.name)
        return path.open("rb")
    except OSError as error:
        raise InvalidFieldError(f"{path}: {error.strerror}", field="path", value=path.name) from None


def read_mapping(path: Path | None) -> tuple[Mapping, tzinfo | None]:
    """The mapping of a file with its time zone, or our own layout. InvalidFieldError."""
    if path is None:
        return Mapping(), None
    with _opened(path) as file:
        content = file.read(MAPPING_BYTES_MAX + 1)
    if len(content) > MAPPING_BYTES_MAX:
        raise InvalidFieldError(
            f"{path} is longer than {MAPPING_BYTES_MAX} bytes", field="mapping", limit=MAPPING_BYTES_MAX
        )
    mapping = parse_mapping(content, path.name)
    if not mapping.zone:
        return mapping, None
    try:
        return mapping, ZoneInfo(mapping.zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidFieldError(f"time.zone {mapping.zone[:60]!r} is not known", field="time.zone") from None


# --- the statements -------------------------------------------------------------------------------------------------


class VerifiedExport:
    """Verifies an export: every statement goes through the replay; its facts become rows, its faults breaks.

    A statement that fails a check is one break, and counts for nothing else: rows that depend on it are not reported a
    second time.
    """

    def __init__(self, keys: KeyBook, rulebook: Rulebook, extract: Extract) -> None:
        self._replay = Replay(keys, rulebook)
        self._extract = extract
        self.summary = self._replay.summary

    def read(self, path: Path, rows: RowFiles, emit: Callable[[Break], None]) -> Input:
        """Read the file. `emit` gets each break as it is found."""
        digest = hashlib.sha256()
        number = 0
        with _opened(path) as file:
            for number, line in enumerate(_export_lines(file, digest), 1):
                if line is None:
                    failures = self._replay.refuse(f"cut off, or longer than {LINE_BYTES_MAX} bytes")
                else:
                    failures = self._replay.feed(line)
                statement = self._replay.statement
                if failures:
                    emit(self._failed(failures, f"line {number}"))
                if statement is not None:
                    for table, row in self._extract.take(statement, is_sound=not failures):
                        rows.add(table, row)
        if not number:
            raise InvalidFieldError(f"{path} is empty: there are no statements", field="statements", value=path.name)
        for failure in self._replay.finish():
            emit(self._failed([failure], "end of the export"))
        for table, row in self._extract.finish():
            rows.add(table, row)
        return Input("statements", path.name, digest.hexdigest(), number, 0)

    def _failed(self, failures: list[VerificationError], place: str) -> Break:
        said = failures[0].metadata
        kind, statement = BreakClass.CONTENT_DIFFERS, self._replay.statement
        if place.startswith("end"):
            is_of_seats = said["check"] == DEAL.label
        else:  # a table says at its end how many seats it dealt
            is_of_seats = statement is not None and (statement.kind.name, said["check"]) == ("table_final", SEATS.label)
        if is_of_seats:
            kind = BreakClass.SEAT_MISSING
        subject = next(
            (f"{name.removesuffix('_id')} {said[name]}" for name in ("statement", "round_id", "session_id", "instance")
             if name in said),
            place,
        )  # fmt: skip
        time_ms = parse_time(statement.body["time"]) if statement is not None else self._extract.newest_ms
        found = tuple((f"check {failure.metadata['check']}", failure.message) for failure in failures)
        return Break(kind, subject, found, time_ms, sources=("statements",))


def _export_lines(file: BinaryIO, digest: Any) -> Iterator[bytes | None]:
    """The lines of an export without line feeds; None for one that is cut off or too long. Memory is bounded."""
    while line := file.readline(LINE_BYTES_MAX + 1):
        digest.update(line)
        yield line[:-1] if line.endswith(b"\n") else None
        while not line.endswith(b"\n") and (line := file.readline(LINE_BYTES_MAX + 1)):
            digest.update(line)


# --- the others -----------------------------------------------------------------------------------------------------


class Outside:
    """Reads a file of another party into rows, or a plain wallet statement straight into the store."""

    def __init__(self, store: BookComparison, rows: RowFiles) -> None:
        self._store = store
        self._rows = rows
        self.rejects: list[Reject] = []

    def read(self, source: str, path: Path, mapping: Mapping, zone: tzinfo | None, read_row: RowReader) -> Input:
        """Read the file in the format that mapping or name say. InvalidFieldError."""
        form = mapping.format or _form_of(path)
        with _opened(path) as file:
            if not file.read(1):
                raise InvalidFieldError(f"{source} {path.name} is empty", field=source, value=path.name)
        if source == "wallet" and mapping.is_plain and (plain := self._plain(path, form)):
            return plain
        digest = hashlib.sha256()
        reader, rejected, taken = FieldReader(mapping, zone), 0, 0
        try:
            for number, found in self._records(path, form, mapping, digest):
                try:
                    if isinstance(found, RowRefusedError):
                        raise found
                    table, row = read_row(mapping.rename(found), reader)
                except RowRefusedError as error:
                    rejected += 1
                    self.rejects.append((source, number, error.message))
                else:
                    taken += 1
                    self._rows.add(table, row)
        except (FormatError, ReconciliationStoreError) as error:
            raise InvalidFieldError(f"{source} {path.name}: {error.message}", field=source, value=path.name) from None
        return Input(source, path.name, digest.hexdigest(), taken, rejected, mapping.sha256)

    def _records(self, path: Path, form: str, mapping: Mapping, digest: Any) -> Iterator[Read]:
        if form == "parquet":
            for chunk in _chunks(path, digest):
                del chunk  # the hash alone; duckdb reads the file itself
            for number, record in self._store.parquet_rows(path):
                yield number, _texts(record)
            return
        chunks = _chunks(path, digest)
        if form == "csv":
            yield from csv_records(chunks, encoding=mapping.encoding, delimiter=mapping.delimiter)
        else:
            yield from json_records(chunks, encoding=mapping.encoding)

    def _plain(self, path: Path, form: str) -> Input | None:
        """The fast way for a wallet statement in our own layout; None if something in it needs the strict reader."""
        if form == "jsonl":
            return None
        digest, lines = hashlib.sha256(), 0
        if form == "csv":
            tail = b"\n"
            for place, chunk in enumerate(_chunks(path, digest)):
                seen = tail + chunk if place else chunk
                if (not place and not chunk.startswith(PLAIN_HEADER)) or _is_doubtful(seen):
                    return None
                lines += chunk.count(b"\n")
                tail = seen[seen.rfind(b"\n") :]
            if lines < 1 or tail != b"\n":
                return None
        else:
            for _ in _chunks(path, digest):
                pass
            try:
                if self._store.parquet_columns(path) != _PLAIN_TYPES:
                    return None
            except ReconciliationStoreError:
                return None
        count = self._store.load_plain_wallet(path, is_parquet=form == "parquet")
        if count is None or (form == "csv" and count != lines - 1):
            return None
        return Input("wallet", path.name, digest.hexdigest(), count, 0)


def _is_doubtful(seen: bytes) -> bool:
    """Whether the strict reader is needed: quotes, non-ASCII bytes, blank lines, perhaps a long line."""
    return (
        not seen.isascii()
        or any(odd in seen for odd in _ODD)
        or any(seen.find(b"\n", at, at + _WINDOW) < 0 for at in range(0, len(seen) - _WINDOW, _WINDOW))
    )


def _form_of(path: Path) -> str:
    name = path.name.lower()
    if name.endswith(".parquet"):
        return "parquet"
    return "csv" if name.endswith((".csv", ".tsv", ".txt")) else "jsonl"


def _texts(record: dict[str, Any]) -> Record | RowRefusedError:
    """The values of a Parquet row as texts; a type that would need rounding is an error."""
    texts: Record = {}
    for name, value in record.items():
        if value is None:
            continue
        if isinstance(value, bool):
            texts[name] = "true" if value else "false"
        elif isinstance(value, str | int):
            texts[name] = str(value)
        elif isinstance(value, Decimal):
            texts[name] = format(value, "f")
        elif isinstance(value, datetime):
            texts[name] = value.isoformat()
        else:
            return RowRefusedError(f"{name[:40]} is a {type(value).__name__}: text, integer, decimal or time expected")
    return texts
