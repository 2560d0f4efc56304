"""Reconciliation over files with duckdb: it has a memory limit and can reach the named folders and files only.

It joins rows by id and leaves those that differ to `rgs.core.reconcile`; it adds up totals and orders the report. No
extension is installed or loaded, and the settings are locked. The memory limit is three quarters of what the caller
allows: the rest is the overhead of Python and duckdb. Every result has an order, so that the same rows give the same
report in whatever order they came. Every value in SQL is bound. The caller removes the folder.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import duckdb

from rgs.core.errors import RgsError
from rgs.core.reconcile import facts
from rgs.core.reconcile.matching import Terms
from rgs.store import reconciliation_sql as sql

THREADS: Final = 2
MEMORY_MB_MIN: Final = 256
ROWS_AT_ONCE: Final = 2048
ROWS_OF_ONE_KEY: Final = 1000
"""Rows that are kept of one id: more of them are a duplicate already, and would only take memory."""
Key = Any
KeyedRows = tuple[Key, list[list[Any]]]


class ReconciliationStoreError(RgsError, reason="RECONCILIATION_FAILED"):
    """duckdb could not finish: memory, disk, or a file that changed while it was read."""


@dataclass(frozen=True, slots=True)
class RowCounts:
    """Rows of each table, in the order of the query that counts them."""

    transfers: int
    seats: int
    sessions: int
    wallet: int
    receipts: int
    r_sessions: int
    r_purchases: int
    r_stages: int
    r_ends: int
    embedded_wallet: int
    test_sessions: int


class BookComparison:
    """One comparison: load every source, then read what does not agree. `folder` exists and is empty."""

    def __init__(self, folder: Path, *, memory_mb: int, files: Sequence[Path] = ()) -> None:
        """`files` are what may be read beside `folder`. Raises ReconciliationStoreError."""
        config: dict[str, str | bool | int | float | list[str]] = {
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "memory_limit": f"{memory_mb * 3 // 4}MB",
            "threads": str(THREADS),
            "temp_directory": str(folder / "spill"),
            "preserve_insertion_order": "false",
        }
        self._db = duckdb.connect(":memory:", config=config)
        self._run(sql.FOLDERS, [[str(folder)]])
        self._run(sql.FILES, [[str(path) for path in files]])
        for statement in (*sql.LIMITS, *sql.TABLES):
            self._run(statement)

    def close(self) -> None:
        """Let go of the files."""
        self._db.close()

    def _run(self, statement: str, values: Any = None) -> duckdb.DuckDBPyConnection:
        try:
            return self._db.execute(statement, values)
        except duckdb.Error as error:
            raise ReconciliationStoreError(f"duckdb: {str(error).splitlines()[0][:300]}") from error

    # --- loading ---

    def load(self, table: str, path: Path) -> None:
        """Take in a file of rows that `rgs.core.reconcile` has checked: tab-separated, without quotes."""
        self._run(sql.LOAD[table], [str(path)])

    def load_plain_wallet(self, path: Path, *, is_parquet: bool) -> int | None:
        """Take in a wallet statement in our own layout as it stands; its number of rows.

        None where a row is doubtful, and then nothing was taken: the strict reader says which, and why.
        """
        try:
            self._db.execute(sql.PLAIN_PARQUET if is_parquet else sql.PLAIN_CSV, [str(path)])
            (doubtful,) = self._one(sql.PLAIN_DOUBTFUL)
        except duckdb.Error:
            doubtful = True
        if doubtful:
            self._run(sql.PLAIN_DROP)
            return None
        (count,) = self._one(sql.PLAIN_COUNT)
        for statement in sql.PLAIN_TAKE:
            self._run(statement)
        return int(count)

    def load_transfers(self, path: Path) -> None:
        """Take in the extract of transfers that an earlier verifying pass wrote (`write_transfers`)."""
        self._run(sql.ATTACH_TRANSFERS[0])
        self._run(sql.ATTACH_TRANSFERS[1], [str(path)])

    def write_transfers(self, path: Path) -> None:
        """The extract of transfers as Parquet."""
        self._run(sql.TRANSFERS_OUT, [str(path)])

    def parquet_rows(self, path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
        """(row number from 1, values by column) of a Parquet file, in its order. Raises ReconciliationStoreError."""
        found = self._run(sql.PARQUET_ROWS, [str(path)])
        names = [column[0] for column in found.description or ()]
        for row in self._rows(found):
            record = dict(zip(names, row, strict=True))
            yield record.pop("file_row_number") + 1, record

    def parquet_columns(self, path: Path) -> dict[str, str]:
        """Types by column of a Parquet file. Raises ReconciliationStoreError where it is none."""
        return dict(self._run(sql.PARQUET_SCHEMA, [str(path)]).fetchall())

    def _rows(self, found: duckdb.DuckDBPyConnection) -> Iterator[Any]:
        while rows := self._fetch(found):
            yield from rows

    @staticmethod
    def _fetch(found: duckdb.DuckDBPyConnection) -> list[Any]:
        try:
            return found.fetchmany(ROWS_AT_ONCE)
        except duckdb.Error as error:
            raise ReconciliationStoreError(f"duckdb: {str(error).splitlines()[0][:300]}") from error

    def _one(self, statement: str, values: Any = None) -> Any:
        return self._run(statement, values).fetchone()

    # --- joining ---

    def keep_operator(self, operator: str) -> None:
        """Remove the rows of the wallet and the regulator that name another operator."""
        for statement in sql.ONE_OPERATOR:
            self._run(statement, [operator])
        for statement in sql.WITHOUT_OTHERS:
            self._run(statement)

    def name_nameless(self, terms: Terms) -> set[str]:
        """Give transfers and sessions without their private block the ids under which wallet and regulator know the
        same participation or session. Returns those that stay without: hashes of transfers, which are set aside, and
        ids of sessions.
        """
        if not self._one(sql.HAS_NAMELESS)[0]:
            return set()
        if terms.wallet:
            for exactly in (True, False):
                self._run(sql.NAME_TRANSFERS, {"exactly": exactly})
        for statement in (*sql.NAME_SESSIONS, sql.NAME_PURCHASES):
            self._run(statement)
        left = {statement or session for statement, session in self._run(sql.STILL_NAMELESS).fetchall()}
        self._run(sql.SET_ASIDE if terms.wallet else sql.STAND_IN)
        return left

    def join(self, terms: Terms) -> None:
        """Find the ids whose rows differ. Call once, after everything is loaded."""
        period = {"from_ms": terms.from_ms, "to_ms": terms.to_ms}
        clocks = {"clock_limit_ms": terms.clock_limit_ms}
        result = {"is_regulator": terms.regulator}
        self._run(sql.UNKNOWN_SESSIONS, result)
        if terms.wallet:
            self._run(sql.MONEY_JOIN, period | clocks)
            self._run(sql.MONEY_TAKE)
            joined, transfers, rows = self._one(sql.MONEY_COUNTS)
            if not joined == transfers == rows:  # some id is there twice on a side and still agrees: look for it
                self._run(sql.MONEY_REPEATED)
        else:
            self._run(sql.TRANSFERS_ALL)
        self._run(sql.TICKETS, result)
        if terms.regulator:
            self._run(sql.TICKETS_TAKE, clocks)
            self._run(sql.ROUNDS_TAKE, clocks)
        if terms.receipts:
            self._run(sql.RECEIPTS_OF_PLAY_MONEY)
            self._run(sql.RECEIPTS_TAKE)
        self._run(sql.PARTICIPATIONS, period)

    def money(self) -> Iterator[tuple[str, list[facts.SignedTransfer], list[facts.WalletRow], list[facts.Ticket]]]:
        """The facts of each transaction id whose rows differ, in order of the ids."""
        for key, (transfers, rows, tickets) in self._grouped(
            sql.SELECT_TRANSFERS, sql.SELECT_WALLET, sql.SELECT_TICKETS
        ):
            yield (
                key,
                [facts.SignedTransfer(*row) for row in transfers],
                [facts.WalletRow(*row) for row in rows],
                [facts.Ticket(*row) for row in tickets],
            )

    def accounts(self) -> Iterator[Iterator[tuple[facts.WalletRow, bool]]]:
        """The rows of each account whose balances do not follow from each other, in order of time, each with whether
        its transaction id is among those that differ.
        """
        if self._one(sql.REPORTS_BALANCES)[0]:
            self._run(sql.ACCOUNTS)
            for _, rows in groupby(self._stream(0, sql.SELECT_ACCOUNTS), key=itemgetter(0)):
                yield ((facts.WalletRow(*fields[:-1]), bool(fields[-1])) for _, _, fields in rows)

    def unknown_sessions(self) -> set[str]:
        """Regulator's ids of sessions in the record that the regulator does not have."""
        return {row[0] for row in self._run(sql.SELECT_UNKNOWN).fetchall()}

    def rounds(self) -> Iterator[tuple[list[facts.SeatFact], list[facts.Stage]]]:
        """Seats and stages of each participation and number that do not agree."""
        for _, (seats, stages) in self._grouped(sql.SELECT_ROUND_SEATS, sql.SELECT_STAGES):
            yield [facts.SeatFact(*row) for row in seats], [facts.Stage(*row) for row in stages]

    def receipts(self) -> Iterator[tuple[list[facts.SeatFact], list[facts.ReceiptRow]]]:
        """Seats and receipts of each session and stage that do not agree."""
        for _, (seats, receipts) in self._grouped(sql.SELECT_OPENED_SEATS, sql.SELECT_RECEIPTS):
            yield [facts.SeatFact(*row) for row in seats], [facts.ReceiptRow(*row) for row in receipts]

    def open_seats(self) -> Iterator[facts.SeatFact]:
        """Openings without a final."""
        for row in self._rows(self._run(sql.SELECT_OPEN_SEATS)):
            yield facts.SeatFact(*row)

    def sessions(
        self,
    ) -> Iterator[tuple[list[facts.SessionFact], list[facts.RegulatorSessionRow], list[facts.RegulatorEnd]]]:
        """What both sides say of every session, by the regulator's id."""
        streams = (sql.SELECT_SESSIONS, sql.SELECT_REGULATOR_SESSIONS, sql.SELECT_REGULATOR_ENDS)
        for _, (ours, known, ends) in self._grouped(*streams):
            yield (
                [facts.SessionFact(*row) for row in ours],
                [facts.RegulatorSessionRow(*row) for row in known],
                [facts.RegulatorEnd(*row) for row in ends],
            )

    def ended(self) -> Iterator[facts.SessionFact]:
        """The sessions whose participation has ended."""
        for row in self._rows(self._run(sql.SELECT_ENDED)):
            yield facts.SessionFact(*row)

    def _grouped(self, *queries: str) -> Iterator[KeyedRows]:
        """Ordered results, each of (key, fields…), merged by key: for each key a list of rows a query."""
        streams = [self._stream(place, query) for place, query in enumerate(queries)]
        for key, rows in groupby(heapq.merge(*streams, key=itemgetter(0)), key=itemgetter(0)):
            sides: list[list[Any]] = [[] for _ in queries]
            for _, place, fields in rows:
                if len(sides[place]) < ROWS_OF_ONE_KEY:
                    sides[place].append(fields)
            yield key, sides

    def _stream(self, place: int, query: str) -> Iterator[tuple[Key, int, tuple[Any, ...]]]:
        cursor = self._db.cursor()
        try:
            cursor.execute(query)
            while rows := self._fetch(cursor):
                for row in rows:
                    yield row[0], place, row[1:]
        except duckdb.Error as error:
            raise ReconciliationStoreError(f"duckdb: {str(error).splitlines()[0][:300]}") from error
        finally:
            cursor.close()

    # --- sums and the report's order ---

    def totals(self, terms: Terms) -> list[tuple[Any, ...]]:
        """(day, operator, currency, game, source, rounds, bought, paid out, staked, returned), ordered. `day` counts
        from 1970-01-01 UTC.
        """
        period = {"from_ms": terms.from_ms, "to_ms": terms.to_ms}
        return self._run(sql.TOTALS, period).fetchall()

    def declared(self) -> list[tuple[Any, ...]]:
        """The daily totals of the regulator: (date, operator, currency, rounds, bought, staked, returned, paid out)."""
        return self._run(sql.DECLARED).fetchall()

    def counts(self) -> RowCounts:
        """How many rows there are of each kind."""
        return RowCounts(*self._one(sql.COUNTS))

    def identity(self) -> tuple[int, ...]:
        """(ended, holds in the record, told by the wallet, holds there, told by the regulator, holds there)."""
        return tuple(self._one(sql.IDENTITY))

    def write_participations(self, path: Path) -> None:
        """Every participation with its sums in each source, as CSV."""
        self._run(sql.PARTICIPATIONS_OUT, [str(path)])

    def breaks(self) -> Iterator[tuple[str, bool]]:
        """(document, stood in the earlier report) of every break loaded, in the order of the report."""
        for document, is_known in self._rows(self._run(sql.SELECT_BREAKS)):
            yield document, bool(is_known)

    def gone(self) -> list[tuple[str, str, str]]:
        """(class, subject, id) of the earlier report's breaks that are no more."""
        return self._run(sql.SELECT_GONE).fetchall()
