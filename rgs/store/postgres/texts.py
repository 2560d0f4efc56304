"""The SQL that only PostgreSQL is asked, and how the queries of `rgs.store.reads` read there.

Refuses to put anything into a text: what varies is a parameter.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from itertools import count
from typing import Final

from rgs.store import rows
from rgs.store.changes import (
    AllowListChanged,
    BalanceTold,
    CertificateOff,
    CertificateOn,
    DayAligned,
    LargeWin,
    LargeWinTold,
    LatchCleared,
    LatchSet,
    MetaSet,
    PartyOn,
    ReportsHeld,
    ReportsReleased,
    SwitchOff,
    SwitchOn,
    TokenDropped,
    TokenKept,
    VoidProposal,
    VoidProposalEnd,
)
from rgs.store.closing_out import CLOSE_OUT_SQL
from rgs.store.erasure import ERASE_SQL
from rgs.store.returns import RETURNS_SQL

_PLACEHOLDER: Final = re.compile(r"\?")
_HINT: Final = re.compile(r"INDEXED BY \w+ ?")


@cache
def postgres_text(query: str) -> str:
    """A query of the house as PostgreSQL reads it: numbered parameters, no hints of SQLite's."""
    numbers = count(1)
    plain = _HINT.sub("", query).replace("x''", "''::bytea")
    return _PLACEHOLDER.sub(lambda _: "$" + str(next(numbers)), plain)


def _file(name: str) -> str:
    return resources.files("rgs.store.postgres").joinpath(name).read_text(encoding="ascii")


CLOCK: Final = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint"
COMMIT: Final = _file("commit.sql")
OPEN_SESSIONS: Final = _file("open.sql")
LOCK_SESSIONS: Final = """
    WITH locked AS (
      SELECT session_id, version, last_id FROM sessions WHERE session_id = ANY($1::text[])
      ORDER BY session_id FOR UPDATE
    )
    SELECT session_id, version, last_id, 0::bigint FROM locked
    UNION ALL SELECT '', 0, 0, (extract(epoch FROM clock_timestamp()) * 1000)::bigint
"""
"""The last row is the database's clock in milliseconds."""
LOCK_INSTANCE: Final = """
    SELECT alive, statement_no, draw_no, last_id, (
      lease_ms < (extract(epoch FROM clock_timestamp()) * 1000)::bigint
      OR (node, worker) IN (SELECT o.node, o.worker FROM instances o WHERE o.instance = $2)
    ) AS lapsed FROM instances WHERE instance = $1 FOR UPDATE
"""
"""Whether it has lapsed: its lease has run out, or the same worker of the same node has begun anew."""
END_INSTANCE: Final = "UPDATE instances SET alive = 0, end_ms = $1 WHERE instance = $2 AND alive = 1 RETURNING 1"
INSERT_INSTANCE: Final = """
    INSERT INTO instances (instance, node, boot_no, worker, alive, statement_no, draw_no, start_ms, slot, last_id,
    lease_ms) VALUES ($1, $2, $3, $4, 1, 0, 0, $5, $6, $7,
    (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $8)
"""
BOOT_BEFORE: Final = """
    SELECT instance, alive FROM instances WHERE node = $1 AND worker = $2 ORDER BY boot_no DESC LIMIT 1 FOR UPDATE
"""
LOCK_SLOTS: Final = "SELECT pg_advisory_xact_lock(hashtext('rgs slots'))"
FREE_SLOT: Final = """
    SELECT (SELECT min(n) FROM generate_series(0, 4095) AS n
    WHERE NOT EXISTS (SELECT FROM instances WHERE alive = 1 AND slot = n)),
    (SELECT COALESCE(max(last_id), 0) FROM instances),
    (extract(epoch FROM clock_timestamp()) * 1000)::bigint
"""
"""A slot, what its first number must stand behind, and the database's clock."""
INSERT_AFFAIR: Final = postgres_text(rows.INSERT_AFFAIR)
INSERT_DAY: Final = postgres_text(rows.INSERT_DAY)
INSERT_ARTIFACT: Final = "INSERT INTO artifacts (sha256, name, content) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"
READ_BACK: Final = """
    UPDATE instances SET alive = alive WHERE instance = $1 RETURNING last_id
"""
"""A write on the instance's row: it waits for whoever still holds the row, and once its commit is replicated, so is
all that it saw.
"""
RENEW_LEASE: Final = """
    UPDATE instances SET lease_ms = (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $2
    WHERE instance = $1 AND alive = 1 RETURNING 1
"""
LAPSED: Final = """
    SELECT instance, node, boot_no, worker, alive, statement_no, draw_no, start_ms FROM instances
    WHERE alive = 1 AND instance <> $1 AND (
      lease_ms < (extract(epoch FROM clock_timestamp()) * 1000)::bigint
      OR (node, worker) IN (SELECT node, worker FROM instances WHERE instance = $1)
    ) ORDER BY start_ms, instance
"""
STATE_CHANGED: Final = """
    INSERT INTO meta AS m (key, value) VALUES ($1, '1')
    ON CONFLICT (key) DO UPDATE SET value = (m.value::bigint + 1)::text
"""
RECORD_SQL: Final[dict[type, str]] = {
    VoidProposal: """
        INSERT INTO voids (round_id, reason, party, time_ms) VALUES ($1, $2, $3, $4)
        ON CONFLICT (round_id) DO UPDATE SET reason = excluded.reason, party = excluded.party,
        time_ms = excluded.time_ms
    """,
    VoidProposalEnd: "DELETE FROM voids WHERE round_id = $1",
    SwitchOff: """
        INSERT INTO switches (scope, subject, reason, party, time_ms) VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (scope, subject) DO UPDATE SET reason = excluded.reason, party = excluded.party,
        time_ms = excluded.time_ms
    """,
    SwitchOn: "DELETE FROM switches WHERE scope = $1 AND subject = $2",
    LatchSet: "INSERT INTO latches (node, guard, code, time_ms) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
    LatchCleared: "DELETE FROM latches WHERE node = $1 AND guard = $2",
    PartyOn: """
        INSERT INTO parties (party, role, jurisdiction, added_ms) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING
    """,
    CertificateOn: """
        INSERT INTO certificates (fingerprint, added_ms, party, last_ms)
        SELECT $1::text, $2::bigint, party, $6::bigint FROM parties
        WHERE party = $3 AND role = $4 AND jurisdiction = $5
    """,
    CertificateOff: """
        UPDATE certificates SET removed_ms = $1::bigint WHERE fingerprint = $2::text AND removed_ms IS NULL AND (
        NOT EXISTS (SELECT FROM parties p WHERE p.party = certificates.party AND p.role = 'admin')
        OR EXISTS (SELECT FROM certificates c JOIN parties p ON p.party = c.party
        WHERE p.role = 'admin' AND c.fingerprint <> $2 AND c.removed_ms IS NULL AND c.last_ms > $1))
    """,
    AllowListChanged: "UPDATE meta SET value = (value::bigint + 1)::text WHERE key = 'parties'",
    MetaSet: """
        INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value
    """,
    LargeWin: "INSERT INTO large_wins (round_id, session_id, won_minor, end_ms) VALUES ($1, $2, $3, $4)",
    LargeWinTold: "DELETE FROM large_wins WHERE round_id = $1",
    DayAligned: "UPDATE register_days SET aligned = $1 WHERE operator = $2 AND day = $3 AND currency = $4",
    ReportsHeld: """
        INSERT INTO held_reports (kind, subject, reason, since_ms) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING
    """,
    ReportsReleased: "DELETE FROM held_reports WHERE kind = $1 AND subject = $2",
    **{record: postgres_text(rows.RECORD_SQL[record]) for record in (TokenKept, TokenDropped, BalanceTold)},
    **{record: postgres_text(text) for record, text in (CLOSE_OUT_SQL | ERASE_SQL | RETURNS_SQL).items()},
}
"""How the records of admins are written; the fields of a record are its parameters, in order."""
