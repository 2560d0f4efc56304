"""The import of a gap into the shared store, in one transaction (rgs.store.recovery).

The rows get numbers of their own, in the order of the log and above all others, so that exports keep the order of
every chain. A store in which an instance's lease still runs is refused, and so are rows that are there already.
"""

from __future__ import annotations

from typing import Any, Final

import asyncpg

from rgs.store.address import PostgresAddress
from rgs.store.changes import StoreError, StoreRefusedError
from rgs.store.interface import RECOVERING
from rgs.store.numbers import RowNumbers
from rgs.store.postgres import texts
from rgs.store.postgres.link import LOST, verify_durable
from rgs.store.postgres.schema import reach, verify_schema, verify_unheld
from rgs.store.recovery import MARK, Import, shared_rows
from rgs.store.rows import REPORTS, ROUNDS, SESSIONS, STATEMENTS

_FREE_SLOTS: Final = """
    SELECT n FROM generate_series(0, 4095) AS n
    WHERE NOT EXISTS (SELECT FROM instances WHERE alive = 1 AND slot = n) ORDER BY n LIMIT $1
"""
_INSERT_INSTANCE: Final = """
    INSERT INTO instances AS i (instance, node, boot_no, worker, alive, statement_no, draw_no, start_ms, end_ms, slot,
    last_id) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT (instance) DO UPDATE SET
    alive = least(i.alive, excluded.alive), statement_no = excluded.statement_no,
    draw_no = greatest(i.draw_no, excluded.draw_no), end_ms = excluded.end_ms, last_id = excluded.last_id
"""
_SET_LAST_ID: Final = "UPDATE sessions SET last_id = $1 WHERE session_id = $2"
_INSERT_SESSION: Final = texts.postgres_text(SESSIONS.insert_behind("id", "last_id", "reference_slot"))


async def import_gap(address: PostgresAddress, gap: Import) -> None:
    """Insert the whole gap and mark the store. StoreRefusedError: nothing has changed. StoreError: it may have."""
    link = await reach(address)
    run = link.connection
    try:
        await verify_durable(link)
        await verify_schema(link, address)
        async with run.transaction():
            await verify_unheld(link, address)
            await _insert(run, gap)
    except asyncpg.IntegrityConstraintViolationError as error:
        raise StoreRefusedError(
            f"the store has rows of its own where the log has others ({error.constraint_name}): nothing was imported",
            address=str(address),
        ) from None
    except LOST as error:
        raise StoreError(f"the store did not answer ({type(error).__name__}): run `rgs recover` again") from None
    finally:
        await link.close()


async def _insert(run: asyncpg.Connection[Any], gap: Import) -> None:
    ((slot, previous, now_ms),) = await run.fetch(texts.FREE_SLOT)
    alive = [name for name, one in gap.instances.items() if not one.end_ms]
    slots = dict(zip(alive, (row[0] for row in await run.fetch(_FREE_SLOTS, len(alive))), strict=False))
    if slot is None or len(slots) < len(alive):
        raise StoreRefusedError("as many instances are alive in the store as there are slots", limit=4096)
    numbers = RowNumbers(slot, now_ms, previous)
    sessions = [(numbers.take(), 0, None, *SESSIONS.row(one)) for one in gap.new_sessions.values()]
    await run.executemany(_INSERT_SESSION, sessions)
    rounds = [ROUNDS.row(one) for one in gap.new_rounds.values()]
    newest: dict[str, int] = {}
    for table, rows in ((ROUNDS, rounds), (STATEMENTS, gap.statements), (REPORTS, gap.report_rows())):
        numbered = [(numbers.take(), *row) for row in rows]
        await run.executemany(texts.postgres_text(table.insert_behind("id")), numbered)
        if table is STATEMENTS:
            newest = {row[5]: row[0] for row in numbered if row[5]}
    for text, rows in shared_rows(gap):
        await run.executemany(texts.postgres_text(text), rows)
    await run.executemany(_SET_LAST_ID, [(number, session_id) for session_id, number in newest.items()])
    await run.executemany(texts.INSERT_ARTIFACT, gap.artifacts)
    mark = numbers.take()
    instances = [(*row, slots.get(row[0], 0), mark) for row in gap.instance_rows()]
    await run.executemany(_INSERT_INSTANCE, instances)
    await run.execute(texts.postgres_text(MARK), RECOVERING)
