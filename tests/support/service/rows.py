"""Rows of a server's SQLite store as they stand on the disk."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

from rgs.store.sqlite.store import connect


def table(folder: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(connect(folder / "rgs.db", read_only=True)) as connection:
        return list(connection.execute(query))
