"""How a query is asked of whichever database lies below: rows, and rows as the values of their table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, TypeVar

from rgs.store.tables import Table

_Kind = TypeVar("_Kind")


class Queries(ABC):
    """The base of all reads; a database adds `_rows`."""

    @abstractmethod
    async def _rows(self, query: str, *values: Any) -> Sequence[Any]:
        """All rows of an answer."""

    async def _row(self, query: str, *values: Any) -> Any:
        rows = await self._rows(query, *values)
        return rows[0] if rows else None

    async def _found(self, table: Table[_Kind], rest: str, *values: Any) -> list[_Kind]:
        """The rows of a table that the rest of its SELECT finds."""
        return [table.read(row) for row in await self._rows(table.select + rest, *values)]

    async def _first(self, table: Table[_Kind], rest: str, *values: Any) -> _Kind | None:
        """The first of them, None if there is none."""
        row = await self._row(table.select + rest, *values)
        return None if row is None else table.read(row)

    async def _numbered(self, table: Table[_Kind], rest: str, *values: Any) -> list[tuple[int, _Kind]]:
        """The rows of a numbered table, each behind its row number."""
        return [(row[-1], table.read(row)) for row in await self._rows(table.select + rest, *values)]
