"""One SQLite file behind one thread: each piece of work is one transaction, durable before its result is seen.

A process that is killed at any moment leaves whole transactions only. All work of a file is done one after another, so
a check and the change that rests on it cannot be separated.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeVar

Result = TypeVar("Result")

BUSY_S: Final = 5.0


class WrongFileError(Exception):
    """The file is not one of this platform, or of another version of it."""


class Database:
    """A file with `schema`, recognised by `application_id` and `version`. Another file is refused unchanged."""

    def __init__(self, path: Path, application_id: int, version: int, schema: str) -> None:
        path.touch(mode=0o600)
        self._thread = ThreadPoolExecutor(1, path.stem)
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=BUSY_S)
        self._db.row_factory = sqlite3.Row
        try:
            self._prepare(path, application_id, version, schema)
        except BaseException:
            self._db.close()
            raise

    def _prepare(self, path: Path, application_id: int, version: int, schema: str) -> None:
        found = (self._number("PRAGMA application_id"), self._number("PRAGMA user_version"))
        if found == (0, 0) and self._number("SELECT count(*) FROM sqlite_master") == 0:
            header = "PRAGMA application_id = " + str(application_id) + "; PRAGMA user_version = " + str(version)
            self._db.executescript("BEGIN IMMEDIATE; " + schema + header + "; COMMIT")
        elif found != (application_id, version):
            raise WrongFileError(
                f"{path} is not a file of this platform: application {found[0]}, version {found[1]}; "
                f"expected {application_id}, {version}. Name another --home."
            )
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute("PRAGMA foreign_keys = ON")

    def _number(self, query: str) -> int:
        return int(self._db.execute(query).fetchone()[0])

    async def run(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """Do the work in one transaction. Its exception undoes it."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._transact, work)

    def run_now(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """As `run`, for a command that has no event loop."""
        return self._thread.submit(self._transact, work).result()

    def _transact(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            result = work(self._db)
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")
        return result

    async def read(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """Do work that only reads."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, self._db)

    def close(self) -> None:
        """Finish what has begun, and close the file."""
        self._thread.shutdown()
        self._db.close()
