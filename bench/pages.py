"""Which tables and indexes a played call writes pages of: `python -m bench.pages`.

The play of `bench.counted`, with each page that a commit appends to SQLite's write-ahead log counted for the table or
index that owns it. A commit writes a page whole, however little of it has changed, so these figures show where the
bytes of a call go. A page goes into its place in the file later, once, however often it was written by then: that is
about half as much again, and not in these figures.

The format of the log: SQLite's documentation, "Database File Format", section 4. The owners come from SQLite's virtual
table `dbstat`, which some builds do not have.
"""

from __future__ import annotations

import argparse
import sqlite3
import sys
import tempfile
from collections import Counter as Tally
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, Final

from bench import counted
from bench.counted import PLAYERS, RUNS, WAVES, Counter, _Part
from rgs.store.sqlite.store import connect

_HEADER: Final = 32
_FRAME: Final = 24
_MAGIC: Final = b"\x37\x7f\x06"


class LogPages:
    """Reads the frames that were appended to a write-ahead log since it was read last."""

    def __init__(self, store: Path) -> None:
        self._path = store.with_name(store.name + "-wal")
        self._salt, self._at = b"", _HEADER
        self.frames: Tally[int] = Tally()
        """How often each page was written."""
        self.page_size = 0

    def read(self, *, is_counted: bool) -> None:
        """Go on to the end of the log. It begins anew when all of it is in the file."""
        with self._path.open("rb") as log:
            header = log.read(_HEADER)
            if not header.startswith(_MAGIC):
                raise ValueError(f"{self._path} is no write-ahead log")
            self.page_size = int.from_bytes(header[8:12], "big")
            if header[16:24] != self._salt:
                self._salt, self._at = header[16:24], _HEADER
            log.seek(self._at)
            while (frame := log.read(_FRAME))[8:16] == self._salt and len(frame) == _FRAME:
                log.seek(self.page_size, 1)
                self._at += _FRAME + self.page_size
                if is_counted:
                    self.frames[int.from_bytes(frame[:4], "big")] += 1


class PageCounter(Counter):
    """Counts pages and no calls."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        where = self._store._db.execute("PRAGMA database_list").fetchone()[2]  # noqa: SLF001
        self._log_pages = LogPages(Path(where))

    @asynccontextmanager
    async def _counted(self, part: _Part) -> AsyncIterator[None]:
        yield
        self._log_pages.read(is_counted=any(part is one for one in self.parts.values()))

    def pages(self) -> LogPages:
        """What was written in the parts that count."""
        return self._log_pages


def owners(store: Path) -> dict[int, str]:
    """The table or index of each page of a store."""
    with closing(connect(store, read_only=True)) as connection:
        try:
            rows = connection.execute("SELECT pageno, name FROM dbstat").fetchall()
        except sqlite3.OperationalError:
            raise SystemExit("bench.pages: this build of SQLite has no `dbstat` (SQLITE_ENABLE_DBSTAT_VTAB)") from None
    return dict(rows)


def lines(written: LogPages, owned: dict[int, str]) -> list[str]:
    """A line for each table and index, most pages first: pages and bytes of the log a call."""
    calls = 2 * PLAYERS * WAVES * RUNS
    size = written.page_size + _FRAME
    by_owner: Tally[str] = Tally()
    for page, times in written.frames.items():
        by_owner[owned.get(page, "other pages")] += times
    total = by_owner.total()
    found = [f"{'a call':32} {'pages':>7} {'bytes':>7}", f"{'all':32} {total / calls:7.2f} {total * size / calls:7.0f}"]
    return found + [f"{name:32} {n / calls:7.2f} {n * size / calls:7.0f}" for name, n in by_owner.most_common()]


def main() -> int:
    """Print the lines; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.pages", description="Whose pages a played call writes.")
    parser.add_argument("--folder", type=Path, default=Path("var"), help="where the store is made")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="pages-", dir=arguments.folder) as folder:
        home = Path(folder) / "home"
        counter = counted.measure(home, PageCounter)
        print("\n".join(lines(counter.pages(), owners(home / "store" / "rgs.db"))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
