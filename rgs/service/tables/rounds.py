"""The rounds of tables: what is fixed before the draw, drawn, revealed or made void, each as the change that commits it
(docs/tables.md; ARCHITECTURE 2.22).

Everything is computed from rows, so any process goes on where another one stopped.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

from rgs.core.ids import format_game_code
from rgs.core.rounds import RoundStatus, Void
from rgs.core.statements import SALT_BYTES, commitment_of, format_canonical
from rgs.core.tables.bodies import (
    RoundPlace,
    RoundRules,
    table_deal_body,
    table_deal_object,
    table_final_body,
    table_round_body,
    table_seats_body,
)
from rgs.core.tables.config import TableConfig
from rgs.core.tables.machine import Step, take
from rgs.core.tables.rows import TableRound, TableRow
from rgs.core.tables.seating import Sitting
from rgs.core.tables.tree import SeatTree
from rgs.core.times import format_time
from rgs.core.values import changed
from rgs.service.game_catalog import GameCatalog
from rgs.service.instance import Instance
from rgs.service.play.play import discarded_draw
from rgs.service.tables.configs import TableConfigs
from rgs.service.tables.decks import TableDecks
from rgs.service.tables.seat_rounds import PAGE, SeatRounds, leaf_of
from rgs.store.changes import Change, Draft
from rgs.store.interface import Store
from rgs.store.table_records import SeatsFixed
from rng.generator import Draw
from rng.shuffle import PROCEDURE


@dataclass(kw_only=True, eq=False, repr=False)
class TableRounds:
    """The rounds of the tables of this node."""

    store: Store
    instance: Instance
    games: GameCatalog
    configs: TableConfigs
    decks: TableDecks
    seats: SeatRounds

    async def fix_change(self, row: TableRow, now_ms: int) -> Change:
        """FIX: the cut bets get their numbers and their root; `table_round` and `table_seats` are signed."""
        table, config = row.table, await self.configs.of(row.config)
        ruleset = self.games.rulesets[config.ruleset_id]
        leaves = [leaf_of(seat_no, sitting) async for seat_no, sitting in self._cut(table.table_id)]
        salt = self.instance.random_bytes(SALT_BYTES)
        tree = SeatTree(leaves, salt)
        round_ = TableRound(
            round_id=table.round_id,
            table_id=table.table_id,
            table_round_no=table.round_no + 1,
            game_code=format_game_code(table.opened_ms, 1),
            ruleset_id=ruleset.id,
            jurisdiction_id=config.jurisdiction_id,
            config=row.config,
            seats=len(leaves),
            hands=1 if ruleset.hole_cards == "shared" else len(leaves),
            salt=salt,
            seats_root=tree.root,
            betting_open_ms=table.opened_ms,
            betting_close_ms=row.closed_ms,
        )
        fixed = table_round_body(
            self._rules(row, config),
            RoundPlace(round_.round_id, round_.game_code, round_.table_round_no, table.head),
            betting=(round_.betting_open_ms, round_.betting_close_ms),
            hands=round_.hands,
            leaves=tree.leaves,
            seats_root=tree.root,
        )
        counted = table_seats_body("", round_.round_id, round_.seats, salt)  # the store names the table_round in it
        return Change(
            table=self.step(row, config, Step.FIX, now_ms),
            table_round=round_,
            drafts=tuple(
                Draft(kind, {**body, "time": format_time(now_ms)}, round_id=round_.round_id)
                for kind, body in (("table_round", fixed), ("table_seats", counted))
            ),
            records=(SeatsFixed(table.table_id),),
        )

    def _rules(self, row: TableRow, config: TableConfig) -> RoundRules:
        return RoundRules(
            table=row.table.table_id,
            config=row.config,
            ruleset=self.games.rulesets[config.ruleset_id],
            jurisdiction=self.games.jurisdictions[config.jurisdiction_id],
            limits=tuple(sorted(config.limits.items())),
            betting_ms=config.timers.betting_ms,
            decision_ms=config.timers.decision_ms,
            early_close=config.early_close,
        )

    async def _cut(self, table_id: str) -> AsyncIterator[tuple[int, Sitting]]:
        """The cut bets with the numbers that `SeatsFixed` gives them."""
        after, seat_no = (-1, ""), 0
        while page := await self.store.cut_sittings(table_id, after, PAGE):
            for sitting in page:
                seat_no += 1
                yield seat_no, sitting
            after = (page[-1].box, page[-1].session_id)

    async def deal(self, row: TableRow, now_ms: int) -> None:
        """DEAL: one draw, and the signed `table_deal`. Whatever fails, the draw is accounted for.

        RngUnavailableError: nothing was drawn.
        """
        round_, config = await self.decks.round_of(row.table.round_id), await self.configs.of(row.config)
        await self.instance.ready()  # the last wait before the draw is committed
        salt = self.instance.random_bytes(SALT_BYTES)
        draw = await self.instance.draw()
        account = discarded_draw(draw, round_.round_id, now_ms)
        try:
            try:
                change = self._dealt(row, round_, config, draw, salt, now_ms)
            except BaseException:  # whatever the error: account for the draw
                await self.store.commit(Change(drafts=(account,), draw_no=draw.draw_no, discard=account))
                raise
            change.discard = account
            await self.store.commit(change)
        finally:
            self.instance.draw_done()

    def _dealt(
        self, row: TableRow, round_: TableRound, config: TableConfig, draw: Draw, salt: bytes, now_ms: int
    ) -> Change:
        deal = table_deal_object(
            round_.table_round,
            instance=draw.instance,
            draw_no=draw.draw_no,
            reseed_counter=draw.reseed_counter,
            shuffle=PROCEDURE,
        )
        core = format_canonical(deal)
        commitment = commitment_of(core, salt, draw.transcript)
        dealt = changed(
            round_,
            version=round_.version + 1,
            instance=draw.instance,
            draw_no=draw.draw_no,
            core=core,
            commitment=commitment,
            sealed=self.instance.sealer.seal(draw.instance, draw.draw_no, core, salt, draw.transcript),
            deal_ms=now_ms,
        )
        body = {**table_deal_body(deal, round_.round_id, commitment), "time": format_time(now_ms)}
        return Change(
            table=self.step(row, config, Step.DEAL, now_ms),
            table_round=dealt,
            drafts=(Draft("table_deal", body, round_id=round_.round_id),),
            draw_no=draw.draw_no,
        )

    async def reveal_change(self, row: TableRow, now_ms: int) -> Change:
        """REVEAL: `table_final` shows the deck and all windows."""
        round_ = await self.decks.round_of(row.table.round_id)
        after = self.step(row, await self.configs.of(row.config), Step.REVEAL, now_ms)
        windows, revealed = after.table.windows, self.decks.open(round_)
        body = table_final_body(round_.table_round, round_.deal, round_.round_id, windows, revealed)
        return self._ending(after, round_, body, RoundStatus.SETTLED, now_ms)

    async def void_change(self, row: TableRow, void: Void, now_ms: int, *, is_lost: bool = False) -> Change:
        """VOID: `table_final` says why, and shows the deck, unless there is none or it `is_lost`.

        Every seat of the deal gets its opening before. TableStateError where the table is not paused in a round.
        """
        table = row.table
        round_ = await self.decks.round_of(table.round_id)
        if round_.deal:
            if await self.store.has_unopened(table.table_id):
                await self.seats.open(row)
            now_ms = max(now_ms, await self.store.newest_seat_ms(table.round_id))
        unopened = int(bool(round_.deal) and await self.store.has_unopened(table.table_id))
        after = self.step(row, await self.configs.of(row.config), Step.VOID, now_ms, unopened=unopened)
        revealed = self.decks.open(round_) if round_.deal and not is_lost else None
        windows = after.table.windows
        body = table_final_body(round_.table_round, round_.deal, round_.round_id, windows, revealed, void)
        return self._ending(replace(after, malfunction_code=""), round_, body, RoundStatus.VOID, now_ms)

    def _ending(
        self, after: TableRow, round_: TableRound, body: dict[str, Any], status: RoundStatus, now_ms: int
    ) -> Change:
        return Change(
            table=after,
            table_round=changed(round_, version=round_.version + 1, status=status, end_ms=now_ms),
            drafts=(Draft("table_final", {**body, "time": format_time(now_ms)}, round_id=round_.round_id),),
        )

    def step(self, row: TableRow, config: TableConfig, step: Step, now_ms: int, *, unopened: int = 0) -> TableRow:
        """The table after a step that another one follows at once. TableStateError."""
        table = take(row.table, step, self.games.clockwork(config), now_ms, unopened=unopened)
        return replace(row, table=table, due_ms=table.step_ms)
