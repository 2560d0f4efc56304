"""The seats of a table's round: opened after the draw, settled or void after its end, each as a change of its session.

They are done one by one, in groups of commits, by any process. What another process has done is left out.
"""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, TypeVar

from rgs.core.cards import FULL_DECK
from rgs.core.clock import Clock
from rgs.core.errors import NotFoundError
from rgs.core.games.dealing import deal_again
from rgs.core.games.settling import Showdown
from rgs.core.games.types import Ruleset, Seat
from rgs.core.limits import headroom_of
from rgs.core.rounds import Round, RoundStatus, TakenAction, staked_so_far
from rgs.core.sessions import Session
from rgs.core.statements import format_canonical, parse_envelope
from rgs.core.tables.bodies import (
    EndedSeat,
    RevealedDeal,
    SeatResult,
    box_seat_object,
    seat_final_body,
    seat_opening_body,
    seat_result,
    seat_void_body,
)
from rgs.core.tables.rows import TableRound, TableRow
from rgs.core.tables.seating import Sitting, after_actions, with_defaults
from rgs.core.tables.tree import SeatTree
from rgs.core.tables.windows import Window
from rgs.core.times import format_time
from rgs.core.tlog.merkle import leaf_hash
from rgs.core.values import changed
from rgs.service.game_catalog import GameCatalog
from rgs.service.play.settlement import seat_ended
from rgs.service.tables.decks import TableDecks
from rgs.store.changes import Change, Draft, Record, SessionRaceError, StoreError, TableMovedError
from rgs.store.interface import Store
from rgs.store.table_records import SittingEnded

PAGE: Final = 256
"""Seats that are read, and committed at once."""
TRIES_MAX: Final = 3
KNOWN_MAX: Final = 4_096
"""Results of seats that are kept while a round is settled."""

_Row = TypeVar("_Row", Sitting, Round)


def leaf_of(seat_no: int, sitting: Sitting) -> bytes:
    """The leaf hash of a seat: of the object that its `seat_opening` holds."""
    return leaf_hash(format_canonical(box_seat_object(seat_no, sitting.session_id, sitting.bets, sitting.box)))


@dataclass(kw_only=True, eq=False, repr=False)
class SeatRounds:
    """The seats of the rounds of this node's tables."""

    store: Store
    games: GameCatalog
    clock: Clock
    decks: TableDecks

    async def open(self, row: TableRow) -> None:
        """Sign the `seat_opening` of every seat of the deal that has none yet."""
        round_ = await self.decks.round_of(row.table.round_id)
        ruleset = self.games.rulesets[round_.ruleset_id]
        tree = await self._tree(round_)
        now_ms = await self._now(row)

        def opened(sitting: Sitting, session: Session) -> Change:
            path = b"".join(tree.path(sitting.seat_no))
            return _opening(round_, ruleset, sitting, session, path, max(now_ms, session.last_ms))

        async def current(sitting: Sitting) -> Sitting | None:
            now = await self.store.sitting(sitting.session_id)
            return now if now is not None and now.seat_no == sitting.seat_no else None

        seat_no = 0
        while page := await self.store.fixed_sittings(round_.table_id, seat_no, PAGE):
            seat_no = page[-1].seat_no
            await self._each(page, opened, current)

    async def _tree(self, round_: TableRound) -> SeatTree:
        """The tree over all seats, with those that are opened already. StoreError if its root is not the signed one."""
        seats: dict[int, bytes] = {}
        seat_no = 0  # first those to be opened: one that another process opens meanwhile is found in both places
        while sittings := await self.store.fixed_sittings(round_.table_id, seat_no, PAGE):
            seat_no = sittings[-1].seat_no
            seats.update((one.seat_no, leaf_of(one.seat_no, one)) for one in sittings)
        after_id = 0
        while page := await self.store.statements_of_round(round_.round_id, after_id, PAGE):
            after_id = page[-1].id
            for statement in page:
                if statement.kind == "seat_opening":
                    seat = json.loads(parse_envelope(statement.envelope).payload)["seat"]
                    seats[int(seat["seat_no"])] = leaf_hash(format_canonical(seat))
        tree = SeatTree([seats[number] for number in sorted(seats)], round_.salt)
        if len(seats) != round_.seats or not hmac.compare_digest(tree.root, round_.seats_root):
            raise StoreError(
                f"round {round_.round_id}: the {len(seats)} seats in the store are not the {round_.seats} under its"
                " root: pause the table and examine the store",
                round_id=round_.round_id,
            )
        return tree

    async def finish(self, row: TableRow) -> None:
        """Sign the `seat_final` of every seat that has none; of a round void before the draw, return the bets."""
        round_ = await self.decks.round_of(row.table.round_id)
        if not round_.deal:
            await self.return_bets(row)
            return
        end = _SeatEnd(
            round_=round_,
            windows=row.table.windows,
            ruleset=self.games.rulesets[round_.ruleset_id],
            revealed=await self.decks.of_ended(round_),
            now_ms=await self._now(row),
        )
        traces = {} if self.store.tracer is None else await self.store.seat_traces(round_.round_id)

        def ended(seat: Round, session: Session) -> Change:
            if session.open_round_id != seat.round_id:
                raise SessionRaceError("another process has ended the seat")
            change = end.change(seat, session)
            if change.report is not None and seat.session_id in traces:
                change.report = replace(change.report, traceparent=traces[seat.session_id])
            return change

        async def current(seat: Round) -> Round | None:
            now = await self.store.seat(seat.session_id, seat.round_id)
            return now if now is not None and now.status is RoundStatus.OPEN else None

        seat_no = 0
        while page := await self.store.open_seats(round_.round_id, seat_no, PAGE):
            seat_no = page[-1].seat_no
            await self._each(page, ended, current)

    async def return_bets(self, row: TableRow) -> None:
        """Give back every reservation of the table, cut or not. The table is in a state that accepts no bets."""
        now_ms = await self._now(row)

        def returned(sitting: Sitting, session: Session) -> Change:
            played = replace(sitting, played_no=row.table.round_no)  # who had bet is not one who missed the round
            return returned_bets(played, session, max(now_ms, session.last_ms))

        async def current(sitting: Sitting) -> Sitting | None:
            now = await self.store.sitting(sitting.session_id)
            return now if now is not None and now.reserved_minor else None

        after = (-1, "")
        while page := await self.store.cut_sittings(row.table.table_id, after, PAGE):
            after = (page[-1].box, page[-1].session_id)
            await self._each(page, returned, current)

    async def _now(self, row: TableRow) -> int:
        """The store's time, no earlier than the table's last step."""
        now_ms = await self.store.clock_ms()
        return max(self.clock.now_ms() if now_ms is None else now_ms, row.table.step_ms)

    async def _each(
        self,
        page: Sequence[_Row],
        change_of: Callable[[_Row, Session], Change],
        current: Callable[[_Row], Awaitable[_Row | None]],
    ) -> None:
        """Commit a change for each row of a page, all at once. The first error is raised after the last commit."""
        sessions = await self.store.sessions_by_id([one.session_id for one in page], fresh=False)
        works = (self._one(one, sessions.get(one.session_id), change_of, current) for one in page)
        outcomes = await asyncio.gather(*works, return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome

    async def _one(
        self,
        one: _Row,
        session: Session | None,
        change_of: Callable[[_Row, Session], Change],
        current: Callable[[_Row], Awaitable[_Row | None]],
    ) -> None:
        """Try a few times while others move the session. What is left then is done at the next look at the table."""
        for attempt in range(TRIES_MAX):
            if attempt:
                session = await self.store.session(one.session_id)
            if session is None:
                raise NotFoundError(f"no session {one.session_id}", kind="session", session_id=one.session_id)
            try:
                await self.store.commit(change_of(one, session))
            except (SessionRaceError, TableMovedError):
                now = await current(one)
                if now is None:  # another process has done it
                    return
                one = now
            else:
                return


def returned_bets(sitting: Sitting, session: Session, now_ms: int) -> Change:
    """The reservation goes back, and with it the seat of a player who has left meanwhile."""
    after = replace(sitting.placed(()), seat_no=0)
    return Change(
        session=changed(session, version=session.version + 1, reserved_minor=0, last_ms=now_ms),
        sitting=after,
        records=_left(after),
    )


def _left(sitting: Sitting) -> tuple[Record, ...]:
    return (SittingEnded(sitting.session_id),) if sitting.leaving else ()


def _opening(
    round_: TableRound, ruleset: Ruleset, sitting: Sitting, session: Session, path: bytes, now_ms: int
) -> Change:
    """The reserved bets leave the balance, and the session's chain gets its `seat_opening`."""
    seat = box_seat_object(sitting.seat_no, sitting.session_id, sitting.bets, sitting.box)
    body = seat_opening_body(round_.deal, round_.round_id, session.round_no + 1, seat, session.balance_minor)
    staked_minor = sitting.reserved_minor
    after = changed(
        session,
        reserved_minor=0,
        version=session.version + 1,
        participation=session.participation.stake(staked_minor),
        round_no=session.round_no + 1,
        open_round_id=round_.round_id,
        last_start_ms=now_ms,
        last_ms=now_ms,
    )
    opened = Round(
        round_id=round_.round_id,
        session_id=session.session_id,
        operator=session.operator,
        player=session.player,
        ruleset_id=ruleset.id,
        round_no=after.round_no,
        seat_no=sitting.seat_no,
        game_code=round_.game_code,
        instance=round_.instance,
        draw_no=round_.draw_no,
        deal=b"",
        commitment=round_.commitment,
        bets=sitting.bets,
        balance_before_minor=session.balance_minor,
        start_ms=round_.betting_open_ms,
        funds_minor=headroom_of(session.limits, session.participation).minor - staked_minor,
        table_id=round_.table_id,
        phase=ruleset.rules.first_phase.value,
        path=path,
    )
    seated = sitting.opened(round_.table_round_no)
    draft = Draft(
        "seat_opening", {**body, "time": format_time(now_ms)}, round_id=round_.round_id, seat_no=sitting.seat_no
    )
    return Change(session=after, round=opened, drafts=(draft,), sitting=seated, records=_left(seated))


class _Played(NamedTuple):
    """A seat at its end: the default decisions behind its own, and its result unless the round is void."""

    defaults: tuple[TakenAction, ...]
    seat: Seat
    result: SeatResult | None


@dataclass(kw_only=True, slots=True)
class _SeatEnd:
    """How the seats of one round end. Seats that share a hand share what it is worth."""

    round_: TableRound
    windows: tuple[Window, ...]
    ruleset: Ruleset
    revealed: RevealedDeal | None = field(repr=False)
    now_ms: int
    _showdowns: dict[int, Showdown] = field(default_factory=dict, init=False, repr=False)
    _known: dict[Any, _Played] = field(default_factory=dict, init=False, repr=False)

    def change(self, row: Round, session: Session) -> Change:
        """The end of a seat: settled, or void with what would have been."""
        now_ms = max(self.now_ms, session.last_ms)
        played = self._played(row)
        actions, seat = (*row.actions, *played.defaults), played.seat
        ended = EndedSeat(
            opening=row.opening_hash,
            table_final=self.round_.final,
            round_id=row.round_id,
            round_no=row.round_no,
            seat_no=row.seat_no,
            balance_before_minor=row.balance_before_minor,
            actions=actions,
        )
        body: dict[str, Any]
        if self.round_.status is RoundStatus.VOID:
            revealed = self.revealed
            hands = None if revealed is None else self._showdown(revealed, row.seat_no)
            staked_minor = returned_minor = staked_so_far(row)
            body = seat_void_body(ended, seat.bets, None if hands is None else seat, hands)
        elif played.result is None:
            raise StoreError(f"round {row.round_id} is settled without a deck", round_id=row.round_id)
        else:
            body, settlement = seat_final_body(ended, played.result), played.result.settlement
            staked_minor, returned_minor = settlement.staked_minor, settlement.returned_minor
        done = changed(
            row,
            version=row.version + 1,
            status=self.round_.status,
            actions=actions,
            phase=seat.phase.value,
            end_ms=now_ms,
            staked_minor=staked_minor,
            returned_minor=returned_minor,
        )
        return seat_ended(session, done, body)

    def _played(self, row: Round) -> _Played:
        """The end of the seat's play. Seats of a shared hand with the same bets and decisions are computed once."""
        if self.round_.hands > 1:
            return self._play(row)
        key = (row.bets, tuple((one.phase, one.action, one.amount_minor) for one in row.actions))
        played = self._known.get(key)
        if played is None:
            if len(self._known) >= KNOWN_MAX:
                self._known.clear()
            played = self._known[key] = self._play(row)
        return played

    def _play(self, row: Round) -> _Played:
        revealed = self.revealed
        deck = FULL_DECK if revealed is None else revealed.deck
        seat = deal_again(self.ruleset, deck, row.seat_no, row.bets, row.funds_minor, hands=self.round_.hands)
        seat = after_actions(seat, row.actions)
        defaults = with_defaults(seat, row.actions, self.windows, row.round_id)[len(row.actions) :]
        seat = after_actions(seat, defaults)
        if revealed is None or self.round_.status is not RoundStatus.SETTLED:
            return _Played(defaults, seat, None)
        return _Played(defaults, seat, seat_result(seat, self._showdown(revealed, row.seat_no)))

    def _showdown(self, revealed: RevealedDeal, seat_no: int) -> Showdown:
        hand_no = seat_no if self.round_.hands > 1 else 1
        if hand_no not in self._showdowns:
            self._showdowns[hand_no] = revealed.showdown_of(hand_no)
        return self._showdowns[hand_no]
