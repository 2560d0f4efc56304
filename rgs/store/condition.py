"""The condition of the database server, as it says itself: for metrics. A store that is a file has none.

A login that may not see other sessions (`GRANT pg_monitor TO …`) sees no standby and no transaction but its own:
`is_whole` says so, and those values are then 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rgs.store.queries import Queries

CONDITION: Final = (
    "SELECT pg_has_role('pg_read_all_stats', 'USAGE'), current_setting('synchronous_standby_names') <> '',"
    " (SELECT count(*) FROM pg_stat_replication),"
    " (SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND sync_state IN ('sync', 'quorum')),"
    " (SELECT coalesce(extract(epoch FROM max(replay_lag)), 0)::float8 FROM pg_stat_replication),"
    " (SELECT coalesce(extract(epoch FROM max(clock_timestamp() - xact_start)), 0)::float8 FROM pg_stat_activity"
    " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()),"
    " pg_database_size(current_database()),"
    " (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),"
    " current_setting('max_connections')::int, current_setting('archive_mode') <> 'off', failed_count,"
    " coalesce(last_failed_time > last_archived_time, last_failed_time IS NOT NULL) FROM pg_stat_archiver"
)


@dataclass(frozen=True, slots=True)
class Condition:
    """Times in seconds. The order is that of the query."""

    is_whole: bool
    waits_for_standby: bool
    """Whether a commit is reported only when a standby has it."""
    standbys: int
    standbys_sync: int
    replay_lag_s: float
    """Of the standby that is furthest behind."""
    oldest_transaction_s: float
    bytes: int
    connections: int
    connections_max: int
    archives: bool
    archive_failures: int
    """Since the server's counters began."""
    archive_failing: bool
    """Whether the newest attempt to archive failed."""


class ConditionReads(Queries):
    """The question, once for both databases."""

    async def condition(self) -> Condition | None:
        """The condition of the database server; None where the store is a file. StoreError."""
        return None
