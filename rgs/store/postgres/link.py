"""Connections to the database: how they are made, and which errors mean that one is lost.

Every connection looks for a server that takes writes, among all hosts that the URL names. During a promotion the caller
tries again. A server that reports commits before they are on a disk is refused (synchronous_commit off or local).
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import Any, Final

import asyncpg
from asyncpg.connect_utils import SessionAttribute

from rgs.store.address import PostgresAddress
from rgs.store.changes import StoreRefusedError

CONNECT_S: Final = 2.0
"""Longest wait for one connection."""
GAP_S: Final = 0.1
"""Between two tries to reach the database."""
_SETTINGS: Final = {
    "application_name": "rgs",
    # A prepared statement is planned once, for tables of any size: every query rides on an index.
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "jit": "off",
}
LOST: Final = (
    OSError,  # TimeoutError and ConnectionError too
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # no host takes writes
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,  # shut down, starting up
    asyncpg.ReadOnlySQLTransactionError,  # a primary that is one no more
    asyncpg.TooManyConnectionsError,
)
"""Errors of the connection, which say nothing about the statement."""


@dataclass(slots=True)
class Link:
    """A connection, and whether the server has warned on it since `warned` was last cleared."""

    connection: asyncpg.Connection[Any]
    warned: bool = False
    prepared: dict[str, Any] = field(default_factory=dict)

    def drop(self) -> None:
        """Drop the connection. The server gets no cancel and finishes what it is doing."""
        self.connection.terminate()

    async def close(self) -> None:
        """Close the connection in an orderly way, where the server still answers."""
        try:
            await self.connection.close(timeout=CONNECT_S)
        except LOST:
            self.drop()

    @property
    def is_open(self) -> bool:
        return not self.connection.is_closed()


async def connect(address: PostgresAddress, attempt: int = 0) -> Link:
    """A connection that takes writes; one of LOST, StoreRefusedError. Each further attempt begins at another host, so
    that a host that accepts and never answers does not block the next one.
    """
    try:
        connection = await asyncpg.connect(
            address.beginning_at(attempt),
            timeout=CONNECT_S,
            target_session_attrs=SessionAttribute.read_write,
            server_settings=_SETTINGS,
            max_cached_statement_lifetime=0,
        )
    except (asyncpg.InvalidAuthorizationSpecificationError, asyncpg.InvalidCatalogNameError) as error:
        raise StoreRefusedError(f"{address} refuses the login ({type(error).__name__})", address=str(address)) from None
    except (ValueError, asyncpg.ClientConfigurationError) as error:
        raise StoreRefusedError(
            f"{address} is not a valid address ({type(error).__name__})", address=str(address)
        ) from None
    link = Link(connection)

    def hear(_connection: object, message: asyncpg.PostgresLogMessage) -> None:
        if getattr(message, "severity_en", None) in {None, "WARNING"}:
            link.warned = True

    connection.add_log_listener(hear)
    return link


async def connect_anywhere(address: PostgresAddress) -> Link:
    """As `connect`, for a caller that does not come again: begins at each host once. One that begins at a host without
    power waits for it until its time is over.
    """
    others = max(1, len(address.hosts)) - 1
    for attempt in range(others):
        with contextlib.suppress(*LOST):
            return await connect(address, attempt)
    return await connect(address, others)


async def verify_durable(link: Link) -> None:
    """StoreRefusedError where a commit would be reported before it is on a disk."""
    level = await link.connection.fetchval("SHOW synchronous_commit")
    if level in {"off", "local"}:
        raise StoreRefusedError(
            f"the database has synchronous_commit = {level}: a commit must be durable before it is reported",
            field="synchronous_commit",
            limit="on, remote_write or remote_apply",
            value=level,
        )
