"""Signals between the processes over one store: which one leads a duty, and that something changed.

They have a connection of their own. Advisory locks are held as long as it is open, and notices come over it. All of it
is best effort: a lead is lost with the connection, and a notice may be missed. A process that must not miss a change
also reads the counters (`Store.changes`).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final

from rgs.store.address import PostgresAddress
from rgs.store.changes import StoreRefusedError
from rgs.store.postgres.link import LOST, Link, connect

CHANNEL: Final = "rgs"
ASK_S: Final = 2.0
_LEAD: Final = "SELECT pg_try_advisory_lock(hashtext('rgs duty'), hashtext($1))"
_EMIT: Final = "SELECT pg_notify($1, $2)"
_LISTENING_GAP_S: Final = 1.0


class Side:
    """Leads, sends and listens. Every method returns, whatever the database does."""

    def __init__(self, address: PostgresAddress) -> None:
        self._address = address
        self._link: Link | None = None
        self._leads: set[str] = set()
        self._callback: Callable[[str], None] | None = None
        self._listening: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()
        self._attempt = 0

    async def lead(self, duty: str) -> bool:
        """Whether this process alone leads now. Ask again before each round of the duty."""
        async with self._lock:
            try:
                link = await self._connected()
                if duty in self._leads:
                    await link.connection.fetchval("SELECT 1", timeout=ASK_S)
                elif await link.connection.fetchval(_LEAD, duty, timeout=ASK_S):
                    self._leads.add(duty)
            except (*LOST, StoreRefusedError):
                self._lose()
            return duty in self._leads

    async def emit(self, payload: str) -> None:
        """Send it to every process that listens."""
        async with self._lock:
            try:
                await (await self._connected()).connection.fetchval(_EMIT, CHANNEL, payload, timeout=ASK_S)
            except (*LOST, StoreRefusedError):
                self._lose()

    async def listen(self, callback: Callable[[str], None]) -> None:
        """Call it with every payload from now on, over reconnections too."""
        self._callback = callback
        async with self._lock:
            with contextlib.suppress(*LOST, StoreRefusedError):
                await self._connected()
        self._listening = asyncio.create_task(self._keep_listening())

    async def close(self) -> None:
        if self._listening is not None:
            self._listening.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._listening
        self._lose()

    async def _keep_listening(self) -> None:
        while True:
            await asyncio.sleep(_LISTENING_GAP_S)
            if self._link is None or not self._link.is_open:
                async with self._lock:
                    with contextlib.suppress(*LOST, StoreRefusedError):
                        await self._connected()

    async def _connected(self) -> Link:
        if self._link is not None and self._link.is_open:
            return self._link
        self._lose()
        self._attempt += 1
        link = await connect(self._address, self._attempt)
        try:
            # Added at once: `listen` may be called later, on a connection that was opened for a lead.
            await link.connection.add_listener(CHANNEL, self._hear)
        except BaseException:
            link.drop()
            raise
        self._link = link
        return link

    def _hear(self, _connection: object, _pid: int, _channel: str, payload: object) -> None:
        if self._callback is not None:
            self._callback(str(payload))

    def _lose(self) -> None:
        self._leads.clear()
        if self._link is not None:
            self._link.drop()
            self._link = None
