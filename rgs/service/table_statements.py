"""What stands beside the seats of a table's round: the statements that all seats share, and a seat's path to their root
(docs/formats.md, 4 and 10).

An operator whose players may play at the table gets `table_round`, `table_deal` and `table_final`. `table_seats` says
how many play at all operators together; only those who read everything get it.
"""

from __future__ import annotations

import json
from typing import Final

from rgs.core.tables.rows import TableRound
from rgs.core.tables.tree import path_nodes
from rgs.store.interface import StatementRow, StoreReads

SHARED_KINDS: Final = ("table_round", "table_deal", "table_final")
"""In the order in which they are signed."""
_HASH = bytes.fromhex


async def shared_statements(reads: StoreReads, round_: TableRound) -> list[StatementRow]:
    """`table_round`, `table_deal` and `table_final`, as far as they are signed."""
    named = (round_.table_round, round_.deal, round_.final)
    found = [await reads.statement_of_hash(_HASH(name), round_id=round_.round_id) for name in named if name]
    return [row for row in found if row is not None]


async def counted_seats(reads: StoreReads, fixed: StatementRow) -> list[StatementRow]:
    """The `table_seats` of a `table_round`: the statement behind it, signed in the same commit."""
    after = fixed.statement_no + 1
    rows = await reads.statements_of_instance(fixed.instance, after, after, 1)
    return [row for row in rows if (row.kind, row.round_id) == ("table_seats", fixed.round_id)]


async def path_of(reads: StoreReads, row: StatementRow) -> tuple[bytes, ...]:
    """The path of a `seat_opening` to the root over the seats, its sibling first; of other kinds empty."""
    seat = await reads.seat(row.session_id, row.round_id) if row.kind == "seat_opening" else None
    return () if seat is None else path_nodes(seat.path)


async def is_offered_to(reads: StoreReads, operator: str, round_id: str) -> bool:
    """Whether the operator's players could play in a table's round, by the configuration of the round."""
    round_ = await reads.table_round(round_id)
    canonical = await reads.artifact(round_.config) if round_ is not None else None
    return canonical is not None and operator in json.loads(canonical)["operators"]
