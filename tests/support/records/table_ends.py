"""Lies about how windows and rounds of tables end, each a story of its own."""

from __future__ import annotations

from dataclasses import replace

from rgs.core.tables.bodies import table_final_body
from rgs.core.tables.windows import WindowEnd
from tests.support.records.factory import RecordFactory
from tests.support.records.table_stories import Story, begun


def paused_for_long(one: Story) -> None:
    """A window that a pause ended long after its time."""
    one.dealt()
    one.table.window("preflop", {}, end=WindowEnd.PAUSED)
    one.factory.clock_ms += 40_000
    one.table.windows[-1] = replace(one.table.windows[-1], close_ms=one.factory.clock_ms)
    one.settle()


def open_while_paused(one: Story) -> None:
    """A window that closes after the malfunction that makes the round void."""
    one.dealt()
    one.table.window("preflop", {1: "play_4x", 2: "play_4x", 3: "play_4x"})
    one.table.windows[-1] = replace(one.table.windows[-1], close_ms=one.factory.clock_ms + 2_500)
    one.table.make_void(one.one)
    one.table.end_seats(one.one)


def undecided_in_a_void(one: Story) -> None:
    """A window ran out, and a seat of the void round has no decision in it."""
    one.dealt()
    silent = one.table.seats[1]
    before = silent.seat
    one.table.window("preflop", {1: "play_4x"})
    silent.seat, silent.actions = before, []
    one.table.make_void(one.one)
    one.table.end_seats(one.one)


def ended_late(one: Story) -> None:
    """The end of a round stands behind the beginning of the next one."""
    one.dealt()
    one.shown()
    table = one.table
    late = table_final_body(table.table_round, table.deal_hash, table.round_id, table.windows, table.revealed)
    seats, revealed = table.seats, table.revealed
    table.fix(one.one, one.stakes)
    table.make_void(one.one)
    named = one.factory.numbered(one.one, "table_final", late)
    table.seats, table.revealed, table.final, table.void, table.round_id = (
        seats,
        revealed,
        named,
        None,
        late["round_id"],
    )
    table.end_seats(one.one)


def ended_late_in_cut_files() -> RecordFactory:
    """The story, for a cut export."""
    one = begun()
    ended_late(one)
    return one.end()
