"""What admins do to tables: set them up, open and shut them, pause, resume, cancel, make a round void (docs/tables.md).

Each order is one commit with a signed event, and a repeated one gets its stored answer. An order that was computed from
a table or a seat that has moved since is computed again. A void takes two different admins and a logged malfunction, as
in solo play (ARCHITECTURE 2.20). Reasons are codes, never free text. `rgs.service.tables.places` has who may sit where.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial

import structlog

from rgs.core.errors import (
    InvalidFieldError,
    NotFoundError,
    RoundNotPausedError,
    SecondAdminError,
    TableConfigError,
    TableStateError,
)
from rgs.core.ids import check_ulid
from rgs.core.rounds import DECK_UNRECOVERABLE, RoundStatus, Void
from rgs.core.tables.config import TableConfig, parse_table_config
from rgs.core.tables.machine import State, Step, Table, take
from rgs.core.tables.rows import TableRow
from rgs.core.tables.seating import Sitting
from rgs.core.tables.views import TableEntry
from rgs.core.times import format_time
from rgs.service.admin.admin import check_code
from rgs.service.admin.orders import Order
from rgs.service.callers import Caller, Reply
from rgs.service.events import EventCode, event_draft
from rgs.service.sealing import DeckSealedError
from rgs.service.tables.dealer import due_at
from rgs.service.tables.lobby import Lobby, boxes_of
from rgs.service.tables.places import TableOrders, admin_order, raised
from rgs.service.tables.rounds import TableRounds
from rgs.service.tables.seat_rounds import PAGE, returned_bets
from rgs.service.tables.stakes import Stakes, stakes_of
from rgs.store.changes import Change, Draft, SessionRaceError, TableGuard, VoidProposal, VoidProposalEnd
from rgs.store.table_records import TableConfigKept

_VOID = RoundStatus.VOID.value.encode()
"""Stored answer of the call that made a round void; a proposal has an empty one."""
_WITHOUT_ROUND = (State.SHUT, State.IDLE)


@dataclass(kw_only=True, eq=False, repr=False)
class TableAdmin(TableOrders):
    """Orders about tables. `verify_admin` is that of `rgs.service.admin.admin.Admin`."""

    rounds: TableRounds
    lobby: Lobby
    verify_admin: Callable[[str], Awaitable[int]]

    # --- configuration, opening -----------------------------------------------------------------------------------

    async def configure(self, caller: Caller, request_id: str, config: str, reason: str) -> tuple[TableEntry, bytes]:
        """A new table, or the next version of its configuration; the table, and the signed event.

        The version comes into force when no round is running. TableConfigError, GameNotOfferedError.
        """
        check_code(reason, "reason")
        parsed = parse_table_config(config, rulesets=self.games.rulesets, jurisdictions=self.games.jurisdictions)
        self.games.verify_offered(parsed.ruleset_id, parsed.jurisdiction_id)
        order = admin_order(caller, "ConfigureTable", request_id, config=parsed.sha256, reason=reason)
        reply = await self.done(order, partial(self._configured, order, parsed, reason))
        await self.dealer.advance(parsed.id)  # a new table opens at once if its hours say so
        row, _ = await self.dealer.read(parsed.id)
        return await self.lobby.entry(row), reply.envelope

    async def _configured(self, order: Order, config: TableConfig, reason: str) -> Change:
        found = await self.store.table(config.id)
        now_ms = self.clock.now_ms()
        if found is None:
            before, after = "", TableRow(Table(config.id, version=1), config=config.sha256, due_ms=now_ms)
        else:
            row, now_ms = await self.dealer.read(config.id)
            before = row.next_config or row.config
            await self._verify_next(row, await self.configs.of(before), config)
            after = raised(row)
            if row.table.state in _WITHOUT_ROUND and not await self.store.has_bets(config.id):
                after = replace(after, config=config.sha256, next_config="")
                after = replace(after, due_ms=due_at(after, config, now_ms))
            else:
                after = replace(after, next_config=config.sha256)
        name = f"tables/{config.id}"
        content = {"bytes": str(len(config.canonical)), "name": name, "sha256": config.sha256}
        event = event_draft(
            EventCode.TABLE_CONFIGURED,
            now_ms,
            actor=order.caller.party,
            subject=config.id,
            before=before,
            after=config.sha256,
            reason=reason,
        )
        return Change(
            table=after,
            drafts=(Draft("artifact", {**content, "time": format_time(now_ms)}), event),
            artifact=(config.sha256, name, config.canonical),
            records=(TableConfigKept(config.sha256, config.id, config.version, config.canonical),),
        )

    async def _verify_next(self, row: TableRow, newest: TableConfig, config: TableConfig) -> None:
        """TableConfigError for a version that is not higher, a row that never changes, or fewer boxes than are held."""
        if config.version <= newest.version:
            raise _refusal(config, "version", config.version, f"is not above {newest.version}, the newest one")
        for name, value, kept in (
            ("ruleset", config.ruleset_id, newest.ruleset_id),
            ("jurisdiction", config.jurisdiction_id, newest.jurisdiction_id),
            ("currency", config.currency, newest.currency),
        ):
            if value != kept:
                raise _refusal(config, name, value, f"is not {kept}, and a table keeps it: set up another table")
        if boxes_of(config, self.games):
            table_id = row.table.table_id
            held = [one.box for one in await self.store.boxes(table_id)]
            highest = max(held + [one.box for one in await self.store.reservations(table_id)], default=0)
            if highest > config.seats:
                raise _refusal(config, "seats", config.seats, f"is below {highest}, a box that somebody holds")

    async def set_open(self, caller: Caller, request_id: str, table_id: str, *, is_open: bool, reason: str) -> bytes:
        """Let the table follow its hours, or keep it shut after its running round; the signed event."""
        check_code(reason, "reason")
        order = admin_order(caller, "SetTableOpen", request_id, table=table_id, open=is_open, reason=reason)

        async def change() -> Change:
            row, now_ms = await self.dealer.read(table_id)
            after = replace(raised(row), is_shut=not is_open)
            after = replace(after, due_ms=due_at(after, await self.configs.of(row.config), now_ms))
            event = event_draft(
                EventCode.TABLE_OPENED if is_open else EventCode.TABLE_SHUT,
                now_ms,
                actor=caller.party,
                subject=table_id,
                reason=reason,
            )
            return Change(table=after, drafts=(event,))

        return (await self.done(order, change)).envelope

    # --- malfunctions ---------------------------------------------------------------------------------------------

    async def pause(self, caller: Caller, request_id: str, table_id: str, malfunction_code: str) -> bytes:
        """Log a malfunction: every clock of the table stands. The signed event. TableStateError."""
        check_code(malfunction_code, "malfunction_code")
        order = admin_order(caller, "PauseTable", request_id, table=table_id, malfunction_code=malfunction_code)

        async def change() -> Change:
            row, now_ms = await self.dealer.read(table_id)
            config = await self.configs.of(row.config)
            return self.dealer.pause_change(row, config, malfunction_code, now_ms, actor=caller.party)

        return (await self.done(order, change)).envelope

    async def resume(self, caller: Caller, request_id: str, table_id: str, reason: str) -> bytes:
        """End the pause: the table goes on where it was, with a whole window. The signed event. TableStateError."""
        check_code(reason, "reason")
        order = admin_order(caller, "ResumeTable", request_id, table=table_id, reason=reason)

        async def change() -> Change:
            row, now_ms = await self.dealer.read(table_id)
            if row.table.is_in_round and row.malfunction_code == EventCode.STORE_RECOVERED:
                raise TableStateError(
                    f"table {table_id}: the store was recovered, and what its players decided is lost; the round can"
                    " only be made void",
                    table=table_id,
                    state=row.table.state.value,
                    step=Step.RESUME.value,
                )
            config, round_id = await self.configs.of(row.config), row.table.round_id
            resumed = take(row.table, Step.RESUME, self.games.clockwork(config), now_ms)
            after = replace(row, table=resumed, malfunction_code="")
            event = event_draft(
                EventCode.ROUND_RESUMED if round_id else EventCode.TABLE_RESUMED,
                now_ms,
                actor=caller.party,
                subject=table_id,
                before="PAUSED",
                after=resumed.state.value.upper(),
                reason=reason,
                round_id=round_id,
            )
            return Change(
                table=replace(after, due_ms=due_at(after, config, now_ms)),
                drafts=(event,),
                records=(
                    *((VoidProposalEnd(round_id),) if round_id else ()),
                    *self.dealer.lines(config, Step.RESUME, now_ms),
                ),
            )

        return (await self.done(order, change)).envelope

    async def cancel(self, caller: Caller, request_id: str, table_id: str, reason: str) -> bytes:
        """Give up a pause from before FIX, or from the results: all bets return, the table is idle. The signed event.
        TableStateError.

        The table stays paused until the last bet is back. So if this process dies, no bet is left at an idle table:
        the order is given again.
        """
        check_code(reason, "reason")
        order = admin_order(caller, "CancelBets", request_id, table=table_id, reason=reason)

        async def change() -> Change:
            row, now_ms = await self.dealer.read(table_id)
            config = await self.configs.of(row.next_config or row.config)
            if row.table.state is not State.PAUSED:
                raise TableStateError(
                    f"table {table_id} is {row.table.state}: bets are given back at a paused table, so pause it first",
                    table=table_id,
                    state=row.table.state.value,
                    step=Step.CANCEL.value,
                )
            idle = take(row.table, Step.CANCEL, self.games.clockwork(config), now_ms)
            await self._return_bets(row, now_ms)
            after = replace(row, table=idle, config=config.sha256, next_config="", malfunction_code="")
            event = event_draft(
                EventCode.BETS_CANCELLED,
                now_ms,
                actor=caller.party,
                subject=table_id,
                before="PAUSED",
                after=idle.state.value.upper(),
                reason=reason,
                round_id=row.table.round_id,
            )
            return Change(
                table=replace(after, due_ms=due_at(after, config, now_ms)),
                drafts=(event,),
                records=self.dealer.lines(config, Step.CANCEL, now_ms),
            )

        return (await self.done(order, change)).envelope

    async def _return_bets(self, row: TableRow, now_ms: int) -> None:
        """Give back every bet of a paused table, cut or not. TableMovedError if the table does not stay as it is."""
        table_id = row.table.table_id
        guard = TableGuard(table_id, row.table.version)

        async def returned(sitting: Sitting) -> None:
            session = await self.session_of(sitting)
            change = returned_bets(sitting, session, max(now_ms, session.last_ms))
            change.guard = guard
            try:
                await self.store.commit(change)
            except SessionRaceError:
                return  # the next page has it again
            self.signals.seat(sitting.session_id)

        while page := await self.store.cut_sittings(table_id, (-1, ""), PAGE):
            outcomes = await asyncio.gather(*map(returned, page), return_exceptions=True)
            for outcome in outcomes:
                if outcome is not None:
                    raise outcome

    # --- voids ----------------------------------------------------------------------------------------------------

    async def void(
        self, caller: Caller, request_id: str, table_id: str, round_id: str, reason: str, *, dry_run: bool = False
    ) -> tuple[bool, bytes]:
        """The first admin's call proposes, another one's approves: then the paused round is void.

        Returns whether it is, and the event of the proposal or the `table_final`. A dry run verifies the same and
        changes nothing; `stakes` then says what would come back.

        The dealer then gives every stake back. TableStateError before FIX, and after the last window.
        """
        check_code(reason, "reason")
        check_ulid(round_id, "round_id")
        order = admin_order(caller, "VoidTableRound", request_id, table=table_id, round_id=round_id, reason=reason)
        if dry_run:
            return (await self._voided(order, table_id, round_id, reason, dry_run=True)).answer is not None, b""

        def log(reply: Reply) -> None:
            event = "round_void" if reply.body == _VOID else "void_proposed"
            warn = structlog.get_logger().warning
            warn(event, round_id=round_id, table=table_id, reason=reason, admin=caller.party)

        reply = await self.done(order, partial(self._voided, order, table_id, round_id, reason), log)
        return reply.body == _VOID, reply.envelope

    async def stakes(self, table_id: str, round_id: str) -> Stakes:
        """What a void of the paused round gives back now."""
        row, _ = await self._paused(table_id, round_id)
        config, round_ = await self.configs.of(row.config), await self.rounds.decks.round_of(round_id)
        return await stakes_of(self.store, round_, config.currency)

    async def _voided(
        self, order: Order, table_id: str, round_id: str, reason: str, *, dry_run: bool = False
    ) -> Change:
        row, now_ms = await self._paused(table_id, round_id)
        await self._verify_reason(row, reason)
        party, proposal = order.caller.party, await self.store.void_proposal(round_id)
        if not dry_run:  # it signs what is not signed yet of the allow-list
            now_ms = max(now_ms, await self.verify_admin(party))
        if proposal is None or (proposal.party == party and proposal.reason != reason):
            return self._proposed(row, party, reason, now_ms)
        if proposal.party == party:
            raise SecondAdminError(
                f"{party} proposed the void; another admin approves it", party=party, round_id=round_id
            )
        if proposal.reason != reason:
            raise InvalidFieldError(
                f"{proposal.party} proposed the void for {proposal.reason}: approve that, or let {proposal.party}"
                " propose it anew",
                field="reason",
                limit=proposal.reason,
                value=reason,
            )
        now_ms = max(now_ms, proposal.time_ms)
        if dry_run:  # `void_change` signs the openings that are missing
            return Change(answer=order.answer(now_ms, _VOID))
        void = Void(reason, row.table.malfunction, ((proposal.party, proposal.time_ms), (party, now_ms)))
        change = await self.rounds.void_change(row, void, now_ms, is_lost=reason == DECK_UNRECOVERABLE)
        lines = self.dealer.lines(await self.configs.of(row.config), Step.VOID, now_ms)
        change.records = (*change.records, VoidProposalEnd(round_id), *lines)
        change.answer = order.answer(now_ms, _VOID)
        return change

    def _proposed(self, row: TableRow, party: str, reason: str, now_ms: int) -> Change:
        table = row.table
        event = event_draft(
            EventCode.VOID_PROPOSED,
            now_ms,
            actor=party,
            subject=table.table_id,
            before="PAUSED",
            after="VOID_PROPOSED",
            reason=reason,
            round_id=table.round_id,
        )
        return Change(
            guard=TableGuard(table.table_id, table.version),
            drafts=(event,),
            records=(VoidProposal(table.round_id, reason, party, now_ms),),
        )

    async def _paused(self, table_id: str, round_id: str) -> tuple[TableRow, int]:
        """The table, paused in this round where it can be made void, and the time."""
        row, now_ms = await self.dealer.read(table_id)
        if row.table.round_id != round_id:
            raise NotFoundError(
                f"round {round_id} is not the running one of table {table_id}",
                kind="round",
                field="round_id",
                round_id=round_id,
            )
        if row.table.state is not State.PAUSED:
            raise RoundNotPausedError(
                f"table {table_id} is {row.table.state}: a void needs a logged malfunction, which pauses the table",
                round_id=round_id,
            )
        take(row.table, Step.VOID, self.games.clockwork(await self.configs.of(row.config)), now_ms)
        return row, now_ms

    async def _verify_reason(self, row: TableRow, reason: str) -> None:
        """InvalidFieldError unless DECK_UNRECOVERABLE is given exactly for a deck that cannot be opened."""
        round_id = row.table.round_id
        round_ = await self.rounds.decks.round_of(round_id)
        is_lost = False
        if round_.deal:
            try:
                self.rounds.decks.open(round_)
            except DeckSealedError:
                is_lost = True
        if is_lost != (reason == DECK_UNRECOVERABLE):
            what = "its deck cannot be opened" if is_lost else "its deck can be opened, or is not drawn yet"
            raise InvalidFieldError(f"round {round_id}: {what}", field="reason", value=reason, round_id=round_id)


def _refusal(config: TableConfig, name: str, value: object, problem: str) -> TableConfigError:
    return TableConfigError(f"{name}: {value} {problem}", field=name, value=value, table=config.id)
