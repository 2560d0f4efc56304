"""Rows of tables for tests of the store: a table, who sits there, rounds and their seats."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rgs.core.games.types import Phase
from rgs.core.rounds import Round
from rgs.core.sessions import Session
from rgs.core.tables.machine import State, Table
from rgs.core.tables.rows import TableRound, TableRow
from rgs.core.tables.seating import Sitting
from rgs.core.tables.windows import Window, WindowEnd
from rgs.store.changes import Change, Draft, TableGuard
from tests.support.store.shelf import NAME, session, ulid

TABLE = "sala-grande"
BETS = (("ante", 100), ("blind", 100), ("trips", 20))
RESERVED = 220
WINDOWS = (
    Window(Phase.PREFLOP, 2000, 3000, WindowEnd.TIME),
    Window(Phase.FLOP, 3000, 3500, WindowEnd.DECIDED),
)


def table_row(version: int = 1, table_id: str = TABLE, **fields: Any) -> TableRow:
    """A table at a version. `fields` are those of the row, or of its table."""
    of_row = {name: fields.pop(name) for name in [*fields] if name in TableRow.__dataclass_fields__}
    made = Table(**{"table_id": table_id, "state": State.BETTING, "version": version, "step_ms": 1000, **fields})
    return replace(TableRow(made, config="c0" * 32), **of_row)


def at_table(number: int, table_id: str = TABLE, **fields: Any) -> Session:
    """A new session of a player of its own, to play at the table."""
    return session(number, **{"player": f"player-{number}", "table_id": table_id, **fields})


def sitting(number: int, table_id: str = TABLE, **fields: Any) -> Sitting:
    """The seat of `at_table(number)`."""
    made = Sitting(table_id, ulid(number), "op-1", f"player-{number}", f"Nick {number}")
    return replace(made, **fields)


def seated(number: int, *, bets: bool = False, **fields: Any) -> Change:
    """A new session with its seat; with `bets`, these are reserved."""
    reserved = {"bets": BETS, "reserved_minor": RESERVED} if bets else {}
    table_id = fields.get("table_id", TABLE)
    made = at_table(number, table_id, reserved_minor=RESERVED if bets else 0)
    return Change(session=made, sitting=sitting(number, **{**reserved, **fields}))


def guarded(version: int, until_ms: int = 0, table_id: str = TABLE, **change: Any) -> Change:
    """A change that holds while the table stands at this version."""
    return Change(guard=TableGuard(table_id, version, until_ms), **change)


def table_round(number: int, table_id: str = TABLE, **fields: Any) -> TableRound:
    """A round of the table, before its draw."""
    made = TableRound(
        round_id=ulid(30_000 + number),
        table_id=table_id,
        table_round_no=number,
        game_code="#12:00:00",
        ruleset_id="uth-online",
        jurisdiction_id="demo",
        config="c0" * 32,
        seats=3,
        hands=1,
        salt=b"s" * 32,
        seats_root=b"r" * 32,
        betting_open_ms=1000,
        betting_close_ms=2000,
    )
    return replace(made, **fields)


def seat_round(number: int, seat_no: int, round_: TableRound, **fields: Any) -> Round:
    """The seat of `at_table(number)` in a round of its table."""
    made = Round(
        round_id=round_.round_id,
        session_id=ulid(number),
        operator="op-1",
        player=f"player-{number}",
        ruleset_id=round_.ruleset_id,
        round_no=1,
        seat_no=seat_no,
        game_code=round_.game_code,
        instance=NAME,
        draw_no=round_.table_round_no,
        deal=b"",
        commitment=b"",
        bets=BETS,
        balance_before_minor=1000,
        start_ms=2000,
        table_id=round_.table_id,
        phase=Phase.PREFLOP.value,
        path=b"p" * 64,
    )
    return replace(made, **fields)


def seat_opened(made: Session, round_: Round) -> Change:
    """The session's seat in a round, with its opening."""
    draft = Draft("seat_opening", {"time": "then"}, round_id=round_.round_id, seat_no=round_.seat_no)
    return Change(session=made, round=round_, drafts=(draft,))
