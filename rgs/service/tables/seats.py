"""Seats of players at tables: join, leave, place bets, decide (RULEBOOK T-1 to T-5, R-7; docs/tables.md).

A bet is a reservation of the whole bet in the session's participation. It is checked for all that a round needs, so
that nothing can fail at the deal. Each call is one commit, which holds only while the table stands where it was read,
and not after the window's end by the store's clock. A decision needs no card: the deck stays sealed.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Final

from rgs.core import games
from rgs.core.bet_limits import within
from rgs.core.clock import Clock
from rgs.core.errors import (
    AlreadyAtTableError,
    IllegalActionError,
    InsufficientBalanceError,
    InvalidFieldError,
    JoinLimitError,
    NotFoundError,
    NotSeatedError,
    PlayerBarredError,
    RegulatorUnavailableError,
    RgsError,
    RoundNotOpenError,
    SessionChangedError,
    TableChangedError,
    TableOnlyError,
)
from rgs.core.games.types import Ruleset
from rgs.core.games.types import Seat as DealtSeat
from rgs.core.ids import check_request_id, check_ulid
from rgs.core.jurisdictions import Jurisdiction
from rgs.core.rounds import Round, RoundStatus, TakenAction
from rgs.core.sessions import Session
from rgs.core.tables.config import TableConfig
from rgs.core.tables.machine import State
from rgs.core.tables.rows import TableRow
from rgs.core.tables.seating import (
    Places,
    Sitting,
    check_bets,
    choose_box,
    seat_in_play,
    verify_tables_at_once,
    with_defaults,
)
from rgs.core.tables.views import SeatView
from rgs.core.values import changed, check_range
from rgs.core.views import SessionView
from rgs.service.availability import Availability
from rgs.service.callers import Caller, Reply, SessionLocks, reply_of
from rgs.service.game_catalog import GameCatalog, owned_session
from rgs.service.play.settlement import taken_action
from rgs.service.tables.configs import TableConfigs
from rgs.service.tables.dealer import Dealer
from rgs.service.tables.requests import Decide, Join, Leave, PlaceBets
from rgs.service.tables.signals import Signals
from rgs.service.tables.views import TableViews
from rgs.store.changes import Answer, Change, RequestSeenError, SessionRaceError, TableGuard, TableMovedError
from rgs.store.interface import Store
from rgs.store.table_records import SittingEnded

TRIES_MAX: Final = 4
"""How often a call is tried while others move its session or its table."""
NICKNAME_MAX: Final = 20
JOINS_MAX: Final = 10
"""Times that a player may join and leave within `JOINS_PERIOD_MS`, at all tables of this process."""
JOINS_PERIOD_MS: Final = 60_000
JOINERS_MAX: Final = 100_000
"""Players whose joins are remembered."""

_NOT_NOW: Final = {
    State.SHUT: "it opens by its hours, or by an admin",
    State.IDLE: "no window is open: a bet without round_id begins one",
    State.BETTING: "bets are open, decisions follow",
    State.RESULT: "the results are shown: the next window opens after them",
}
"""What to do at a table that takes no such call now."""

TableEncode = Callable[[str, SessionView, SeatView], bytes]
"""(method, session, seat) -> the bytes of the response: what is stored is what is sent."""
_Request = Join | Leave | PlaceBets | Decide


@dataclass(frozen=True, slots=True)
class _Place:
    """A table as a call finds it, with the session's seat there."""

    session: Session
    row: TableRow
    config: TableConfig
    sitting: Sitting | None
    now_ms: int

    @property
    def seated(self) -> Sitting:
        """The seat. NotSeatedError."""
        if self.sitting is None or self.sitting.leaving:
            raise NotSeatedError(
                f"the session has no seat at table {self.row.table.table_id}: join first",
                session_id=self.session.session_id,
                table=self.row.table.table_id,
            )
        return self.sitting

    @property
    def guard(self) -> TableGuard:
        """The table stands where it was read, and its window has not ended."""
        return TableGuard(self.row.table.table_id, self.row.table.version, self.row.table.deadline_ms)


@dataclass(kw_only=True, eq=False, repr=False)
class Seats:
    """The seats at the tables, for all players."""

    store: Store
    games: GameCatalog
    clock: Clock
    locks: SessionLocks
    availability: Availability
    configs: TableConfigs
    dealer: Dealer
    views: TableViews
    encode: TableEncode
    signals: Signals

    _joins: OrderedDict[tuple[str, str], deque[int]] = field(default_factory=OrderedDict, init=False)

    async def join(self, caller: Caller, request: Join) -> Reply:
        """Take a seat, or take it over from the player's other device (T-3)."""
        nickname = request.nickname
        if not 1 <= len(nickname) <= NICKNAME_MAX or not nickname.isprintable() or nickname != nickname.strip():
            raise InvalidFieldError(
                f"nickname: 1 to {NICKNAME_MAX} printable characters without space at the ends",
                field="nickname",
                limit=NICKNAME_MAX,
            )
        check_range(request.box, "box", 0, 1_000)
        reply = await self._run(caller, request, lambda place, digest: self._join(caller, place, request, digest))
        self.signals.seat(request.session_id)  # the device that had the seat is told
        return reply

    async def leave(self, caller: Caller, request: Leave) -> Reply:
        """Give the seat back. Before red its bets return, after it they stand (R-7)."""
        return await self._run(caller, request, lambda place, digest: self._leave(caller, place, request, digest))

    async def place_bets(self, caller: Caller, request: PlaceBets) -> Reply:
        """Reserve the whole bet in place of the one before; none takes it back."""
        if request.round_id:
            check_ulid(request.round_id, "round_id")
        return await self._run(caller, request, lambda place, digest: self._place(caller, place, request, digest))

    async def decide(self, caller: Caller, request: Decide) -> Reply:
        """Decide in the table's phase. If nobody is undecided any more, the window may end (early close)."""
        check_ulid(request.round_id, "round_id")
        reply = await self._run(caller, request, lambda place, digest: self._decide(caller, place, request, digest))
        session = await owned_session(self.store, caller, request.session_id, fresh=False)
        self.dealer.look(session.table_id)
        return reply

    # --- the calls ------------------------------------------------------------------------------------------------

    async def _run(self, caller: Caller, request: _Request, step: Callable[[_Place, bytes], Awaitable[Reply]]) -> Reply:
        """Do the step from the state as it is now, again while others move it. A repeat gets the stored answer."""
        check_request_id(request.request_id)
        digest, method = request.digest(caller.party), type(request).__name__
        async with self.locks.of(request.session_id):
            error: RgsError = SessionChangedError("the session was changed by another request; read it again")
            for _ in range(TRIES_MAX):
                answer = await self.store.answer(caller.party, method, request.request_id)
                if answer is not None:
                    return reply_of(answer, digest)
                try:
                    return await step(await self._found(caller, request.session_id), digest)
                except (SessionRaceError, RequestSeenError):
                    continue
                except TableMovedError as moved:
                    error = TableChangedError(f"{moved.message}: read the table and decide again", field="round_id")
            raise error

    async def _found(self, caller: Caller, session_id: str) -> _Place:
        session = await owned_session(self.store, caller, session_id)
        if not session.table_id:
            raise TableOnlyError(
                "the session plays solo: open one with a table to sit down", field="session_id", session_id=session_id
            )
        row, now_ms = await self.dealer.read(session.table_id)
        config = await self.configs.of(row.config)
        sitting = await self.store.sitting(session_id)
        return _Place(session, row, config, sitting, max(now_ms, session.last_ms))

    # --- join and leave -------------------------------------------------------------------------------------------

    async def _join(self, caller: Caller, place: _Place, request: Join, digest: bytes) -> Reply:
        session = place.session
        session.verify_open()
        self.availability.verify_enabled(session.operator, session.ruleset_id, session.player)
        sitting = place.sitting
        if sitting is None:
            self._verify_joins(session, place.now_ms)
            sitting = await self._new_sitting(place, request)
        else:
            if await self.store.is_barred(session.table_id, session.operator, session.player):
                raise PlayerBarredError("the player is barred from this table", field="player")
            sitting = replace(sitting.taken_over(), nickname=request.nickname, leaving=False)
        after = changed(session, version=session.version + 1, last_ms=place.now_ms)
        # Whoever is barred, and every box that is reserved meanwhile, moves the table on.
        guard = TableGuard(place.row.table.table_id, place.row.table.version)
        change = Change(session=after, sitting=sitting, guard=guard)
        if place.sitting is None and place.config.seats and not sitting.box:
            # Of two who want the last seat, the second finds the table moved. Boxes are unique by themselves.
            table = replace(place.row.table, version=place.row.table.version + 1)
            change.table = replace(place.row, table=table)
        return await self._commit(caller, request, digest, place, change)

    async def _new_sitting(self, place: _Place, request: Join) -> Sitting:
        session, row, config = place.session, place.row, place.config
        operator, player = session.operator, session.player
        held = await self.store.sittings_of_player(operator, player)
        other = next((one for one in held if one.table_id == row.table.table_id), None)
        if other is not None:
            raise AlreadyAtTableError(
                f"the player sits at this table with session {other.session_id}: use that one, or leave with it first",
                session_id=other.session_id,
                field="session_id",
            )
        law = self.games.jurisdictions[config.jurisdiction_id]
        are_beside = [(await self._config_of(one.table_id)).tables_beside for one in held]
        verify_tables_at_once(
            law.tables_max,
            len(held),
            is_beside_allowed=config.tables_beside,
            are_others_beside_allowed=all(are_beside),
        )
        taken = {one.place_no for one in held}
        is_running = bool({row.table.state, row.table.paused_from} & {State.BETTING, State.CLOSED})
        return Sitting(
            table_id=row.table.table_id,
            session_id=session.session_id,
            operator=operator,
            player=player,
            nickname=request.nickname,
            place_no=next(number for number in range(1, law.tables_max + 1) if number not in taken),
            box=await self._box(place, request.box),
            played_no=row.table.round_no + is_running,
        )

    async def _config_of(self, table_id: str) -> TableConfig:
        row, _ = await self.dealer.read(table_id)
        return await self.configs.of(row.config)

    async def _box(self, place: _Place, box: int) -> int:
        """The box that the player gets, 0 where there are none."""
        table_id, who = place.row.table.table_id, (place.session.operator, place.session.player)
        ruleset = self.games.rulesets[place.config.ruleset_id]
        taken: dict[int, tuple[str, str]] = {}
        seats = 0
        if ruleset.hole_cards != "shared":
            sitters = await self.store.boxes(table_id)
            seats = len(sitters)
            taken |= {one.box: (one.operator, one.player) for one in await self.store.reservations(table_id)}
            taken |= {one.box: (one.operator, one.player) for one in sitters}
        elif place.config.seats:
            seats = await self.store.count_sittings(table_id, place.config.seats)
        is_barred = await self.store.is_barred(table_id, *who)
        places = Places(
            seats_max=place.config.seats_max,
            boxes=0 if ruleset.hole_cards == "shared" else await self._boxes(place),
            seats=seats,
            taken=taken,
            barred=[who] if is_barred else (),
        )
        return choose_box(places, *who, box)

    async def _boxes(self, place: _Place) -> int:
        """The boxes that there are now, and will be when the table's next configuration comes into force."""
        if not place.row.next_config:
            return place.config.seats
        return min(place.config.seats, (await self.configs.of(place.row.next_config)).seats)

    def _verify_joins(self, session: Session, now_ms: int) -> None:
        """JoinLimitError for a player who joins and leaves too often."""
        who = (session.operator, session.player)
        times = self._joins.setdefault(who, deque())
        self._joins.move_to_end(who)
        if len(self._joins) > JOINERS_MAX:
            self._joins.popitem(last=False)
        while times and times[0] <= now_ms - JOINS_PERIOD_MS:
            times.popleft()
        if len(times) >= JOINS_MAX:
            wait_ms = times[0] + JOINS_PERIOD_MS - now_ms
            raise JoinLimitError(
                f"the player has joined {len(times)} times in {JOINS_PERIOD_MS} ms; the next time in {wait_ms} ms",
                value=len(times),
                limit=JOINS_MAX,
                retry_after_ms=wait_ms,
            )
        times.append(now_ms)

    async def _leave(self, caller: Caller, place: _Place, request: Leave, digest: bytes) -> Reply:
        session, sitting, table = place.session, place.seated, place.row.table
        sitting.verify_device(request.device_no)
        after = changed(session, version=session.version + 1, last_ms=place.now_ms)
        if not sitting.reserved_minor:
            change = Change(session=after, records=(SittingEnded(session.session_id),))
        elif State.BETTING in {table.state, table.paused_from}:
            change = Change(
                session=changed(after, reserved_minor=0),
                records=(SittingEnded(session.session_id, sitting.reserved_minor),),
                guard=place.guard,
            )
        else:  # the bets are cut: they stand, and the place is free once the seat is opened
            sitting = replace(sitting, leaving=True, version=sitting.version + 1)
            change = Change(session=after, sitting=sitting)
        return await self._commit(caller, request, digest, place, change, ended="LEFT")

    # --- bets -----------------------------------------------------------------------------------------------------

    async def _place(self, caller: Caller, place: _Place, request: PlaceBets, digest: bytes) -> Reply:
        session, sitting, table = place.session, place.seated, place.row.table
        sitting.verify_device(request.device_no)
        if table.state is State.IDLE and not request.round_id and request.bets:
            _verify_version(sitting, request.seat_version)
            await self._verify_may_bet(place)
            self._checked(place, request)  # before the window opens for everybody
            await self.dealer.begin(place.row, place.now_ms)
            place = await self._found(caller, session.session_id)
            session, sitting, table = place.session, place.seated, place.row.table
        if table.state is not State.BETTING or (request.round_id and request.round_id != table.round_id):
            raise _moved_on(place.row, request.round_id)
        _verify_version(sitting, request.seat_version)
        if request.bets:
            await self._verify_may_bet(place)
        bets = self._checked(place, request)
        seated = sitting.placed(bets)
        after = changed(
            session, version=session.version + 1, reserved_minor=seated.reserved_minor, last_ms=place.now_ms
        )
        change = Change(session=after, sitting=seated, guard=place.guard)
        return await self._commit(caller, request, digest, place, change)

    def _checked(self, place: _Place, request: PlaceBets) -> tuple[tuple[str, int], ...]:
        """The bets, within the table's limits and what the session covers without its present reservation."""
        ruleset = self.games.rulesets[place.config.ruleset_id]
        headroom = changed(place.session, reserved_minor=0).headroom
        return check_bets(ruleset, within(place.config.limits, place.session.bet_limits), request.bets, headroom)

    async def _verify_may_bet(self, place: _Place) -> None:
        """As before a round of solo play: participation, limits of time, guards, ids of the regulator."""
        session = place.session
        session.verify_may_bet()
        if session.operator not in place.config.operators:
            raise PlayerBarredError("the table is not open to the operator's players any more", field="session_id")
        self.availability.verify_may_start(session.operator, session.ruleset_id, session.player)
        self.games.verify_offered(session.ruleset_id, session.jurisdiction_id)
        law: Jurisdiction = self.games.jurisdictions[session.jurisdiction_id]
        session.verify_in_time(self.clock.passed_ms(session.last_ms), law.inactivity_ms)
        session.verify_duration(place.now_ms)
        has_ids = session.regulator_session_id and session.regulator_participation_id
        if law.regulator_ids_required and not has_ids:
            raise RegulatorUnavailableError(
                "the session has no ids of the regulator, so no bets are taken",
                session_id=session.session_id,
                jurisdiction=law.id,
            )

    # --- decisions ------------------------------------------------------------------------------------------------

    async def _decide(self, caller: Caller, place: _Place, request: Decide, digest: bytes) -> Reply:
        session, sitting, table = place.session, place.seated, place.row.table
        sitting.verify_device(request.device_no)
        if table.state is not State.DECIDING or request.round_id != table.round_id:
            raise _moved_on(place.row, request.round_id)
        if place.now_ms > table.deadline_ms:
            raise TableChangedError("the window has closed: the timer decides", field="round_id", table=table.table_id)
        row = await self.store.seat(session.session_id, request.round_id)
        if row is None:
            raise NotFoundError(f"the session has no seat in round {request.round_id}", kind="round", field="round_id")
        if row.version != request.round_version:
            raise TableChangedError(
                f"round_version {request.round_version} is not {row.version}, the present one",
                field="round_version",
                value=request.round_version,
                limit=row.version,
            )
        if row.status is not RoundStatus.OPEN:
            raise RoundNotOpenError(
                f"round {row.round_id} is {row.status.value}", round_id=row.round_id, status=row.status.value
            )
        ruleset = self.games.rulesets[row.ruleset_id]
        actions = self._with_defaults(ruleset, row, place)
        dealt = seat_in_play(ruleset, row.seat_no, row.bets, row.funds_minor, actions)
        if dealt.phase is not table.phase:
            raise IllegalActionError(
                f"the seat has decided in {table.phase}: it waits for the others",
                field="action",
                action=request.action,
                phase=table.phase,
                rule=ruleset.rules.decision_rule,
            )
        decided = _decided(session, dealt, request)
        # At the very end of the window: no later than it, whatever the session's last time is.
        time_ms = min(place.now_ms, table.deadline_ms)
        taken = taken_action(decided, time_ms, by="player", party=caller.party, digest=digest)
        after = changed(
            session,
            version=session.version + 1,
            participation=session.participation.stake(taken.amount_minor)
            if taken.amount_minor
            else session.participation,
            last_ms=time_ms,
        )
        round_ = changed(row, version=row.version + 1, actions=(*actions, taken), phase=decided.phase.value)
        change = Change(session=after, round=round_, guard=place.guard)
        return await self._commit(caller, request, digest, place, change)

    @staticmethod
    def _with_defaults(ruleset: Ruleset, row: Round, place: _Place) -> tuple[TakenAction, ...]:
        """The decisions so far, with those that the timer has taken meanwhile (T-2)."""
        dealt = seat_in_play(ruleset, row.seat_no, row.bets, row.funds_minor, row.actions)
        return with_defaults(dealt, row.actions, place.row.table.windows, row.round_id)

    # --- all ------------------------------------------------------------------------------------------------------

    async def _commit(
        self, caller: Caller, request: _Request, digest: bytes, place: _Place, change: Change, ended: str = ""
    ) -> Reply:
        """Commit with the answer."""
        after = change.session or place.session
        session = self.games.view(after, place.now_ms)
        round_view = None
        if change.round is not None:
            round_view = await self.views.own_round(place.row, change.round, after)
        seat = self.views.seat_of(after, change.sitting or place.seated, round_view, ended)
        method = type(request).__name__
        body = self.encode(method, session, seat)
        change.answer = Answer(caller.party, method, request.request_id, digest, body, place.now_ms)
        await self.store.commit(change)
        ruleset = self.games.rulesets[place.config.ruleset_id]
        if ruleset.hole_cards != "shared":  # the boxes look different
            self.signals.moved(place.row.table.table_id, place.row.table.version)
        return Reply(body, b"")


def _decided(session: Session, seat: DealtSeat, request: Decide) -> DealtSeat:
    """The seat after the action. If the session's limits forbid it, the error is theirs, not the balance's."""
    try:
        return games.apply(seat, request.action)
    except InsufficientBalanceError as error:
        session.headroom.verify_covers(int(error.metadata["value"]), "action", seat.ruleset.rules.funds_rule)
        raise


def _verify_version(sitting: Sitting, seat_version: int) -> None:
    if seat_version != sitting.version:
        raise TableChangedError(
            f"seat_version {seat_version} is not {sitting.version}, the present one",
            field="seat_version",
            value=seat_version,
            limit=sitting.version,
        )


def _moved_on(row: TableRow, named: str) -> TableChangedError:
    """The table takes no such call now; what it is at, and what to do."""
    table = row.table
    what = _NOT_NOW.get(table.state, "a round is being played: watch it, and bet when the next window opens")
    if table.state is State.PAUSED:
        what = f"it is paused ({row.malfunction_code}), and every clock stands: wait until it goes on"
    elif named and named != table.round_id:
        what = f"its round is {table.round_id or 'not begun'}: read the table and decide again"
    return TableChangedError(
        f"table {table.table_id} is {table.state}: {what}",
        field="round_id",
        value=named,
        table=table.table_id,
        state=table.state.value,
    )
