"""Orders about places at tables: players are barred, boxes are reserved, lines of chat are erased. `TableAdmin` adds
the orders about tables themselves.

Each order is one commit with a signed event, which names no player's pseudonym: operator and table only. The rows
beside it hold who it is, and are erased with the player. An operator bars its own players; all else is the admins'.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Final

from rgs.core.clock import Clock
from rgs.core.errors import (
    BoxTakenError,
    InvalidFieldError,
    NotFoundError,
    PermissionDeniedError,
    TableChangedError,
)
from rgs.core.ids import check_name, check_reference, check_ulid
from rgs.core.sessions import Session
from rgs.core.tables.machine import State
from rgs.core.tables.rows import TableRow
from rgs.core.tables.seating import Sitting
from rgs.core.values import check_range
from rgs.service.admin.admin import check_code
from rgs.service.admin.orders import Order, Orders, order_of
from rgs.service.callers import Caller, Reply, Role
from rgs.service.events import EventCode, event_draft
from rgs.service.game_catalog import GameCatalog
from rgs.service.tables.chat import erased, no_table
from rgs.service.tables.configs import TableConfigs
from rgs.service.tables.dealer import Dealer
from rgs.service.tables.lobby import boxes_of, sees
from rgs.service.tables.seat_rounds import returned_bets
from rgs.service.tables.signals import Signals
from rgs.store.changes import Change, Record, RequestSeenError, SessionRaceError, TableGuard, TableMovedError
from rgs.store.interface import Store
from rgs.store.table_records import BarEnded, BoxReleased, BoxReserved, ChatErased, PlayerBarred, SittingEnded

TRIES_MAX: Final = 8
"""Times that an order is computed while others move the table."""


def admin_order(caller: Caller, method: str, request_id: str, **content: object) -> Order:
    """The order of an admin. PermissionDeniedError for other roles."""
    if caller.role is not Role.ADMIN:
        raise PermissionDeniedError(f"{method} is for admins, not for role {caller.role}", role=caller.role.value)
    return order_of(caller, method, request_id, **content)


@dataclass(kw_only=True, eq=False, repr=False)
class TableOrders:
    """Orders about the places at tables, and how orders about tables are committed."""

    store: Store
    clock: Clock
    games: GameCatalog
    configs: TableConfigs
    orders: Orders
    dealer: Dealer
    signals: Signals = field(default_factory=Signals)

    # --- barred players -------------------------------------------------------------------------------------------

    async def bar(
        self, caller: Caller, request_id: str, table_id: str, operator: str, player: str, *, barred: bool, reason: str
    ) -> bytes:
        """Bar a player from the table, or let the player back; the signed event.

        A barred player who sits there leaves: at once, with the bets of an open window returned. Bets that are cut
        stand, and the seat is free once they are played.
        """
        check_code(reason, "reason")
        check_reference(player, "player")
        operator = _operator_of(caller, operator)
        content = {"operator": operator, "player": player, "barred": barred}
        order = order_of(caller, "BarPlayer", request_id, table=table_id, reason=reason, **content)

        async def change() -> Change:
            row, now_ms = await self._seen(caller, table_id)
            if barred and operator not in (operators := (await self.configs.of(row.config)).operators):
                raise InvalidFieldError(
                    f"players of {operator} do not play at table {table_id}: its operators are {', '.join(operators)}",
                    field="operator",
                    value=operator,
                )
            if not barred and not await self.store.is_barred(table_id, operator, player):
                raise NotFoundError("the player is not barred from this table", kind="bar", field="player")
            made = await self._put_out(row, operator, player, now_ms) if barred else Change()
            event = event_draft(
                EventCode.PLAYER_BARRED if barred else EventCode.BAR_ENDED,
                now_ms,
                actor=caller.party,
                subject=f"{table_id} {operator}",
                reason=reason,
            )
            record: Record = (
                PlayerBarred(table_id, operator, player, reason, caller.party, now_ms)
                if barred
                else BarEnded(table_id, operator, player)
            )
            made.drafts, made.records = (event,), (*made.records, record)
            made.table = raised(row)  # a player who is about to sit down looks again
            return made

        return (await self.done(order, change)).envelope

    async def _put_out(self, row: TableRow, operator: str, player: str, now_ms: int) -> Change:
        """The player's seat at the table ends, if there is one."""
        table = row.table
        sitting = await self.store.sitting_of(table.table_id, operator, player)
        if sitting is None:
            return Change()
        leaving = replace(sitting, leaving=True)
        if not sitting.reserved_minor:
            ended = replace(leaving, version=sitting.version + 1)
            return Change(sitting=ended, records=(SittingEnded(sitting.session_id),))
        is_running = table.state is State.BETTING and now_ms < table.deadline_ms
        if is_running or (table.state is State.PAUSED and table.paused_from is State.BETTING):
            session = await self.session_of(sitting)
            made = returned_bets(leaving, session, max(now_ms, session.last_ms))
            made.guard = TableGuard(table.table_id, table.version, table.deadline_ms)
            return made
        return Change(sitting=replace(leaving, version=sitting.version + 1))

    # --- boxes ----------------------------------------------------------------------------------------------------

    async def reserve(
        self, caller: Caller, request_id: str, table_id: str, box: int, operator: str, player: str, reason: str
    ) -> bytes:
        """Hold a box for a player, or with both names empty for nobody any more; the signed event.

        BoxTakenError where another player sits there or has it reserved.
        """
        check_code(reason, "reason")
        if is_held := bool(operator or player):
            check_name(operator, "operator")
            check_reference(player, "player")
        content = {"box": box, "operator": operator, "player": player}
        order = admin_order(caller, "ReserveBox", request_id, table=table_id, reason=reason, **content)

        async def change() -> Change:
            row, now_ms = await self._seen(caller, table_id)
            config = await self.configs.of(row.config)
            boxes = boxes_of(config, self.games)
            if not boxes:
                raise InvalidFieldError(f"table {table_id} has no boxes", field="box", value=box, limit=0)
            check_range(box, "box", 1, boxes)
            reserved = {one.box: (one.operator, one.player) for one in await self.store.reservations(table_id)}
            record: Record = BoxReleased(table_id, box)
            if is_held:
                if operator not in config.operators:
                    raise InvalidFieldError(
                        f"players of {operator} do not play at table {table_id}", field="operator", value=operator
                    )
                sitting = {one.box: (one.operator, one.player) for one in await self.store.boxes(table_id)}
                if {sitting.get(box), reserved.get(box)} - {None, (operator, player)}:
                    raise BoxTakenError(f"box {box} is another player's, or reserved for one", field="box", value=box)
                lapses_after = self.games.rulesets[config.ruleset_id].reservation_lapses_after_rounds
                last_no = row.table.round_no + lapses_after if lapses_after else 0
                record = BoxReserved(table_id, box, operator, player, last_no)
            elif box not in reserved:
                raise NotFoundError(f"box {box} is reserved for nobody", kind="reservation", field="box", value=box)
            event = event_draft(
                EventCode.BOX_RESERVED if is_held else EventCode.BOX_RELEASED,
                now_ms,
                actor=caller.party,
                subject=f"{table_id} {operator}".strip(),
                after=str(box),
                reason=reason,
            )
            return Change(table=raised(row), drafts=(event,), records=(record,))

        return (await self.done(order, change)).envelope

    # --- chat -----------------------------------------------------------------------------------------------------

    async def erase_message(self, caller: Caller, request_id: str, message_id: str, reason: str) -> bytes:
        """Empty a line of chat; the signed event, which names the line and not what it said."""
        check_code(reason, "reason")
        check_ulid(message_id, "message_id")
        order = admin_order(caller, "EraseMessage", request_id, message_id=message_id, reason=reason)
        message = await self.store.chat_message(message_id)
        if message is None:
            raise NotFoundError(f"no line {message_id}", kind="message", field="message_id")

        async def change() -> Change:
            event = event_draft(
                EventCode.MESSAGE_ERASED,
                self.clock.now_ms(),
                actor=caller.party,
                subject=f"{message.table_id} {message_id}",
                reason=reason,
            )
            return Change(drafts=(event,), records=(ChatErased(message_id),))

        reply = await self.done(order, change)
        self.signals.said(erased(message))
        return reply.envelope

    # --- all ------------------------------------------------------------------------------------------------------

    async def done(
        self,
        order: Order,
        change_of: Callable[[], Awaitable[Change]],
        committed: Callable[[Reply], object] = lambda _: None,
    ) -> Reply:
        """The stored answer of an order, or that of its commit now; then `committed` gets it, too. TableChangedError if
        it never gets through.
        """
        for _ in range(TRIES_MAX):
            if (known := await self.orders.known(order)) is not None:
                return known
            try:
                change = await change_of()
                answer = change.answer = change.answer or order.answer(self.clock.now_ms())
                signed = await self.store.commit(change)
            except (TableMovedError, SessionRaceError, RequestSeenError):
                continue
            self.signals.committed(change)
            reply = Reply(answer.body, signed[-1].envelope)
            committed(reply)
            return reply
        raise TableChangedError("the table moves all the time: send the same request again", method=order.method)

    async def session_of(self, sitting: Sitting) -> Session:
        """The session that sits there."""
        session = await self.store.session(sitting.session_id)
        if session is None:
            raise NotFoundError(f"no session {sitting.session_id}", kind="session", session_id=sitting.session_id)
        return session

    async def _seen(self, caller: Caller, table_id: str) -> tuple[TableRow, int]:
        """The table and the time. NotFoundError, also for a table that the caller's players do not play at."""
        row, now_ms = await self.dealer.read(table_id)
        if not sees(caller, await self.configs.of(row.config)):
            raise no_table(table_id)
        return row, now_ms


def raised(row: TableRow) -> TableRow:
    """The row as it is, at its next version."""
    return replace(row, table=replace(row.table, version=row.table.version + 1))


def _operator_of(caller: Caller, operator: str) -> str:
    """Whose player is meant: an operator's own, and for an admin the one that is named."""
    if caller.role is Role.ADMIN:
        return check_name(operator, "operator")
    if caller.role is not Role.OPERATOR:
        raise PermissionDeniedError(
            f"BarPlayer is for admins and operators, not for role {caller.role}", role=caller.role.value
        )
    if operator not in ("", caller.party):
        raise InvalidFieldError(
            "an operator bars its own players only", field="operator", limit=caller.party, value=operator[:80]
        )
    return caller.party
