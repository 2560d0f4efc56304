"""The reads of the shared store: the queries of `rgs.store.interface`, over a few connections that are kept open.

A read whose connection is lost is tried again for about as long as a promotion takes. A read that takes too long is
given up; a commit never is.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, ClassVar, Final

import asyncpg

from rgs.store.address import PostgresAddress
from rgs.store.changes import StoreError
from rgs.store.condition import CONDITION, Condition
from rgs.store.interface import StoreReads
from rgs.store.postgres.link import GAP_S, LOST, Link, connect, connect_anywhere
from rgs.store.postgres.texts import CLOCK, CLOCK_SQL, postgres_text

READERS: Final = 4
"""Connections for reads of one process."""
READ_S: Final = 2.0
"""Longest wait for one answer, and for a server that answers."""
STREAM_ROWS: Final = 512
"""Rows of a stream in memory at a time."""


class PostgresReads(StoreReads):
    """Queries over at most `READERS` connections."""

    _clock_sql: ClassVar[str] = CLOCK_SQL

    def __init__(self, address: PostgresAddress) -> None:
        self._address = address
        self._idle: list[Link] = []
        self._free = asyncio.Semaphore(READERS)
        self._attempt = 0

    def _verify_answering(self) -> None:
        """StoreError while a query could get no answer."""

    async def _rows(self, query: str, *values: Any) -> Sequence[Any]:
        return await self.ask(query, *values)

    async def clock_ms(self) -> int | None:
        ((reported_ms,),) = await self.ask(CLOCK)
        return int(reported_ms)

    async def condition(self) -> Condition | None:
        ((*values,),) = await self.ask(CONDITION)
        return Condition(*values)

    async def ask(self, query: str, *values: Any) -> Sequence[Any]:
        """The rows of a query; StoreError if no server answers in time."""
        text = postgres_text(query)
        self._verify_answering()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + READ_S
        try:
            async with asyncio.timeout(2 * READ_S), self._free:
                while True:
                    link = None
                    try:
                        link = await self._take()
                        rows: Sequence[Any] = await link.connection.fetch(text, *values, timeout=READ_S)
                    except (asyncpg.DataError, *LOST) as error:
                        if link is not None:
                            link.drop()
                        if isinstance(error, asyncpg.DataError):
                            raise
                        if loop.time() >= deadline:
                            raise StoreError("the store does not answer") from None
                    except BaseException:
                        if link is not None:
                            link.drop()
                        raise
                    else:
                        self._idle.append(link)
                        return rows
                    await asyncio.sleep(GAP_S)
        except TimeoutError:
            raise StoreError("the store does not answer") from None

    async def _stream(self, query: str, *values: Any) -> AsyncIterator[Any]:
        try:
            link = await connect_anywhere(self._address)
        except LOST as error:
            raise StoreError(f"the store does not answer ({type(error).__name__})") from None
        try:
            async with link.connection.transaction(isolation="repeatable_read", readonly=True):
                async for row in link.connection.cursor(postgres_text(query), *values, prefetch=STREAM_ROWS):
                    yield row
        except LOST as error:
            raise StoreError(f"the connection to the store was lost ({type(error).__name__})") from None
        finally:
            await link.close()

    async def _take(self) -> Link:
        while self._idle:
            link = self._idle.pop()
            if link.is_open:
                return link
        self._attempt += 1
        return await connect(self._address, self._attempt)

    async def close(self) -> None:
        while self._idle:
            await self._idle.pop().close()
