"""How durable a database is, as it says itself: for `rgs doctor`, which changes nothing.

What a store file needs (WAL, synchronous = FULL) the server sets on every connection of its own. A database server
decides for itself: its settings are read here (docs/store.md, *What durable means*).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rgs.store.address import PostgresAddress
from rgs.store.postgres.link import LOST
from rgs.store.postgres.schema import reach

_NAMES: Final = (
    *("fsync", "synchronous_commit", "full_page_writes", "synchronous_standby_names", "archive_mode"),
    *(
        "archive_command",
        "archive_library",
        "data_checksums",
        "max_connections",
        "zero_damaged_pages",
        "ignore_checksum_failure",
    ),
)
_SETTINGS: Final = "SELECT name, setting FROM pg_settings WHERE name = ANY($1)"
_SSL: Final = "SELECT coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false)"
_IS_LOCAL: Final = "SELECT coalesce(inet_server_addr() <<= '127.0.0.0/8' OR inet_server_addr() = '::1', true)"
_OTHERS: Final = (
    "SELECT count(*) FROM pg_stat_activity WHERE application_name <> 'rgs' AND backend_type = 'client backend'"
)


@dataclass(frozen=True, slots=True)
class Durability:
    """The settings of a database server, and how this connection reached it."""

    settings: dict[str, str]
    is_encrypted: bool
    is_local: bool
    """Whether the server is on this machine."""
    others: int = 0
    """Connections of other programs."""


async def read_durability(where: PostgresAddress) -> Durability:
    """What the database says. StoreAwayError, StoreRefusedError."""
    link = await reach(where)
    try:
        rows = await link.connection.fetch(_SETTINGS, list(_NAMES))
        return Durability(
            {str(name): str(value or "") for name, value in rows},
            bool(await link.connection.fetchval(_SSL)),
            bool(await link.connection.fetchval(_IS_LOCAL)),
            int(await link.connection.fetchval(_OTHERS)),
        )
    except LOST:
        await link.close()
        raise
    finally:
        await link.close()
