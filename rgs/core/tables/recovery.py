"""From the statements of a table to the state that they leave, for a restored store (docs/keys.md 5).

The log holds the rounds of a table, not its bets: a reservation is in no statement, and neither are those who sit
there. The deck of a round that the store has lost is lost, until its `table_final` shows it. The statements were
verified before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from rgs.core.games.types import Phase, Ruleset
from rgs.core.limits import headroom_of
from rgs.core.rounds import Round, RoundStatus
from rgs.core.sessions import Session
from rgs.core.statements import format_canonical
from rgs.core.tables.machine import State, Table, without_round
from rgs.core.tables.rows import TableRound, TableRow
from rgs.core.tables.seating import Sitting, after_actions, seat_in_play, with_defaults
from rgs.core.tables.tree import SeatTree
from rgs.core.tables.windows import Window, WindowEnd
from rgs.core.times import parse_time
from rgs.core.tlog.merkle import leaf_hash
from rgs.core.values import changed

Body = Mapping[str, Any]
IN_PLAY: Final = frozenset({State.FIXED, State.OPENING, State.DECIDING})
"""A round is fixed and has no end: after a recovery it can only be made void."""
_UNSIGNED: Final = frozenset({State.BETTING, State.CLOSED})


def state_of(table: Table) -> State:
    """Where the table stands, or stood when it was paused."""
    return table.paused_from or table.state


# --- the table --------------------------------------------------------------------------------------------------------


def advance_table(row: TableRow, kind: str, body: Body, hash_: bytes) -> TableRow:
    """The table after a `table_round`, a `table_deal` or a `table_final`."""
    time_ms = parse_time(body["time"])
    table = _stepped(replace(row.table, phase=None, deadline_ms=0, paused_from=None, malfunction=""), time_ms)
    row = replace(row, malfunction_code="", due_ms=table.step_ms)
    if kind == "table_round":
        table = replace(
            table,
            state=State.FIXED,
            opened_ms=parse_time(body["betting_open_time"]),
            round_no=int(body["table_round_no"]),
            round_id=body["round_id"],
            table_round=hash_.hex(),
            deal="",
            final="",
            windows=(),
        )
        next_config = "" if row.next_config == body["config"] else row.next_config
        closed_ms = parse_time(body["betting_close_time"])
        return replace(row, table=table, config=body["config"], next_config=next_config, closed_ms=closed_ms)
    if kind == "table_deal":
        return replace(row, table=replace(table, state=State.OPENING, deal=hash_.hex()))
    ended = State.VOIDING if body["status"] == RoundStatus.VOID else State.SETTLING
    windows = tuple(_window(window) for window in body["windows"])
    return replace(row, table=replace(table, state=ended, final=hash_.hex(), head=hash_.hex(), windows=windows))


def _window(body: Body) -> Window:
    open_ms, close_ms = parse_time(body["open_time"]), parse_time(body["close_time"])
    return Window(Phase(body["phase"]), open_ms, close_ms, WindowEnd(body["end"]))


def _stepped(table: Table, time_ms: int) -> Table:
    return replace(table, version=table.version + 1, step_ms=max(table.step_ms, time_ms))


def new_table(table_id: str, config: str, time_ms: int) -> TableRow:
    """A table as it is set up, with the hash of its configuration."""
    return TableRow(Table(table_id, version=1, step_ms=time_ms), config=config, due_ms=time_ms)


def after_event(row: TableRow, body: Body, hash_: bytes) -> TableRow:
    """The table after an event of it: shut, open, paused outside a round, or not any more."""
    code, time_ms = body["code"], parse_time(body["time"])
    match code:
        case "TABLE_SHUT" | "TABLE_OPENED":
            table = _stepped(row.table, time_ms)
            return replace(row, table=table, is_shut=code == "TABLE_SHUT", due_ms=table.step_ms)
        case "MALFUNCTION" if state_of(row.table) not in IN_PLAY:
            table = _without_round(row.table, time_ms)
            table = replace(table, state=State.PAUSED, paused_from=State.IDLE, malfunction=hash_.hex())
            return replace(row, table=table, due_ms=0, malfunction_code=body.get("reason", ""))
        case "ROUND_RESUMED" | "TABLE_RESUMED" | "BETS_CANCELLED" if state_of(row.table) not in IN_PLAY:
            return _idle(row, time_ms)
        case _:
            return row


def without_bets(row: TableRow) -> TableRow:
    """The table behind the gap: without bets of which nothing is signed it is idle, or still paused. Outside a round
    its newest configuration comes into force.
    """
    if row.next_config and row.table.state in {State.SHUT, State.IDLE}:
        table = _stepped(row.table, row.table.step_ms)
        return replace(row, table=table, config=row.next_config, next_config="", due_ms=table.step_ms)
    if state_of(row.table) not in _UNSIGNED:
        return row
    idle = _idle(row, row.table.step_ms)
    if row.table.state is not State.PAUSED:
        return idle
    paused = replace(idle.table, state=State.PAUSED, paused_from=State.IDLE, malfunction=row.table.malfunction)
    return replace(idle, table=paused, due_ms=0, malfunction_code=row.malfunction_code)


def _idle(row: TableRow, time_ms: int) -> TableRow:
    table = _without_round(row.table, time_ms)
    return replace(row, table=table, due_ms=table.step_ms, malfunction_code="")


def _without_round(table: Table, time_ms: int) -> Table:
    return replace(without_round(_stepped(table, time_ms)), state=State.IDLE, deadline_ms=0)


# --- its rounds -------------------------------------------------------------------------------------------------------


def fixed_round(body: Body, hash_: bytes) -> TableRound:
    """The round of a `table_round`. How many seats it has, and their padding, `table_seats` says."""
    return TableRound(
        round_id=body["round_id"],
        table_id=body["table"],
        table_round_no=int(body["table_round_no"]),
        game_code=body["game_code"],
        ruleset_id=body["ruleset"]["id"],
        jurisdiction_id=body["jurisdiction"]["id"],
        config=body["config"],
        seats=0,
        hands=int(body["hands"]),
        salt=b"",
        seats_root=bytes.fromhex(body["seats_root"]),
        betting_open_ms=parse_time(body["betting_open_time"]),
        betting_close_ms=parse_time(body["betting_close_time"]),
        table_round=hash_.hex(),
    )


def advance_round(round_: TableRound, kind: str, body: Body, hash_: bytes) -> TableRound:
    """The round after its `table_seats`, `table_deal` (without its deck, which is lost) or `table_final`."""
    if kind == "table_seats":
        return changed(round_, seats=int(body["seats"]), salt=bytes.fromhex(body["salt"]))
    time_ms = parse_time(body["time"])
    if kind == "table_deal":
        deal = body["deal"]
        return changed(
            round_,
            version=round_.version + 1,
            instance=deal["instance"],
            draw_no=int(deal["draw_no"]),
            core=format_canonical(deal),
            commitment=bytes.fromhex(body["commitment"]),
            deal=hash_.hex(),
            deal_ms=time_ms,
        )
    return changed(
        round_,
        version=round_.version + 1,
        sealed=b"",
        final=hash_.hex(),
        status=RoundStatus(body["status"]),
        end_ms=time_ms,
    )


# --- its seats --------------------------------------------------------------------------------------------------------


def opened_seat(body: Body, hash_: bytes, session: Session, round_: TableRound, ruleset: Ruleset) -> Round:
    """The seat of a `seat_opening`. `session` is as before it. The seat's path is not known yet."""
    seat = body["seat"]
    bets = tuple((bet["bet"], int(bet["amount_minor"])) for bet in seat["bets"])
    staked_minor = sum(amount for _, amount in bets)
    return Round(
        round_id=round_.round_id,
        session_id=session.session_id,
        operator=session.operator,
        player=session.player,
        ruleset_id=round_.ruleset_id,
        round_no=int(body["round_no"]),
        seat_no=int(seat["seat_no"]),
        game_code=round_.game_code,
        instance=round_.instance,
        draw_no=round_.draw_no,
        deal=b"",
        commitment=round_.commitment,
        bets=bets,
        balance_before_minor=int(body["balance_before_minor"]),
        start_ms=round_.betting_open_ms,
        opening_hash=hash_.hex(),
        funds_minor=headroom_of(session.limits, session.participation).minor - staked_minor,
        table_id=round_.table_id,
        phase=ruleset.rules.first_phase.value,
    )


def ended_phase(seat: Round, ruleset: Ruleset) -> str:
    """The phase in which a seat stands after its decisions."""
    return seat_in_play(ruleset, seat.seat_no, seat.bets, seat.funds_minor, seat.actions).phase.value


class SeatEnd:
    """How a seat of a settled round ends by what is known of it: its own decisions, and the defaults behind them."""

    def __init__(self, seat: Round, ruleset: Ruleset, windows: Sequence[Window]) -> None:
        known = seat_in_play(ruleset, seat.seat_no, seat.bets, seat.funds_minor, seat.actions)
        self.actions = with_defaults(known, seat.actions, windows, seat.round_id)
        defaults = self.actions[len(seat.actions) :]
        self.is_silent = bool(defaults)
        """The ruleset decided: nothing known says that the player did."""
        self.seat = after_actions(known, defaults)
        self.is_undecided = self.seat.phase is not Phase.SHOWDOWN
        """A window ended because everybody had decided, and what this player had decided is not known."""


def leaf_of_seat(seat: Body) -> bytes:
    """The leaf hash of the seat of a `seat_opening`."""
    return leaf_hash(format_canonical(dict(seat)))


def numbered(round_: TableRound, leaves: Mapping[int, bytes], sittings: Sequence[Sitting]) -> list[Sitting]:
    """The seats behind the opened ones, with their numbers in the round: numbers follow from box and session. None are
    left out: there must be as many as are missing.
    """
    free = [number for number in range(1, round_.seats + 1) if number not in leaves]
    if len(free) != len(sittings):
        return []
    ordered = sorted(sittings, key=lambda one: (one.box, one.session_id))
    return [replace(one, seat_no=number) for number, one in zip(free, ordered, strict=True)]


def tree_of(round_: TableRound, leaves: Mapping[int, bytes]) -> SeatTree | None:
    """The tree over these seats, None unless they are all the seats under the round's root."""
    if len(leaves) != round_.seats or not leaves:
        return None
    tree = SeatTree([leaves[number] for number in sorted(leaves)], round_.salt)
    return tree if tree.root == round_.seats_root else None
