"""Play: start a round, decide, read a round. Each round has one seat (ARCHITECTURE 2.1-2.7, 2.16, 2.18).

A start fixes round, seat and stakes, then draws, then commits once. A decision unseals the deck, replays the recorded
decisions, adds its own and commits once. Every reply is the stored answer. A late retry is refused by its round number
or round version, even after its stored answer has been deleted.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

from rgs.core import games
from rgs.core.bet_limits import within
from rgs.core.clock import Clock
from rgs.core.errors import (
    InsufficientBalanceError,
    NotFoundError,
    OperationPendingError,
    RegulatorUnavailableError,
    RgsError,
    RngUnavailableError,
    RoundNotOpenError,
    RoundPausedError,
    SessionChangedError,
    TableOnlyError,
    TooEarlyError,
)
from rgs.core.free_bets import Grant, granted_minor
from rgs.core.games.types import Action, Phase, Seat
from rgs.core.ids import check_request_id, check_ulid, format_game_code
from rgs.core.rounds import (
    Round,
    RoundStatus,
    UnsealedDeck,
    deal_core,
    opening_body,
    seat_object,
    seat_of,
)
from rgs.core.sessions import Session
from rgs.core.statements import (
    SALT_BYTES,
    commitment_of,
    first_actions_hash,
    format_canonical,
)
from rgs.core.times import format_time
from rgs.core.values import changed
from rgs.core.views import RoundChangedError, RoundView, round_view
from rgs.service.availability import Availability
from rgs.service.callers import Caller, Encode, Reply, SessionLocks, reply_of
from rgs.service.game_catalog import GameCatalog, moved, owned_session
from rgs.service.instance import Instance
from rgs.service.money.transfers import report_next_attempt
from rgs.service.play.decks import Decks
from rgs.service.play.free_bets import playable_grant, verify_not_expired
from rgs.service.play.requests import Act, StartRound, free_bet_of
from rgs.service.play.settlement import after_decisions, balance_reported, debit_drafts, settled, taken_action
from rgs.store.changes import Answer, Change, Draft, Operation, SessionRaceError
from rgs.store.interface import Store
from rng.generator import Draw
from rng.shuffle import PROCEDURE, transcript_to_deck

SEAT_NO = 1
TRIES_MAX = 3
"""How often a step is tried while other processes move its session."""


@dataclass(frozen=True, slots=True)
class RequestContext:
    """The sender and digest of a request, and the operation that has debited its cost, if there is one."""

    party: str
    digest: bytes
    operation: Operation | None = None


class RequestRefusedError(Exception):
    """Carries an error that the caller gets without a second try of the step. It never leaves `Play`."""

    def __init__(self, error: RgsError) -> None:
        super().__init__(error.message)
        self.error = error


class BetFunding(Protocol):
    """How play has bets paid for by the wallet: those of a session that is funded bet by bet, and free bets
    (`rgs.service.play.seamless`).
    """

    async def resume(self, session: Session, party: str, request: StartRound | Act, digest: bytes) -> Reply | None: ...
    async def fund(
        self,
        session: Session,
        party: str,
        request: StartRound | Act,
        digest: bytes,
        amount_minor: int,
        grant: Grant | None = None,
    ) -> Reply: ...
    async def pay(self, session_id: str) -> None: ...


@dataclass(kw_only=True, eq=False, repr=False)
class Play:
    """The play of all sessions of this node."""

    store: Store
    instance: Instance
    games: GameCatalog
    clock: Clock
    locks: SessionLocks
    encode: Encode
    availability: Availability
    decks: Decks
    seamless: BetFunding = field(init=False)
    """For bets that the wallet pays."""

    async def start_round(self, caller: Caller, request: StartRound) -> Reply:
        """Stake and deal. An error changes nothing, except that it may account for an unused draw."""
        check_request_id(request.request_id)
        digest = request.digest(caller.party)
        try:
            return await self._settle_on(
                caller, request, digest, lambda session, _: self._start(caller, session, request, digest)
            )
        except RngUnavailableError:
            await self.instance.report_failure()
            raise

    async def act(self, caller: Caller, request: Act) -> Reply:
        """Decide. The last decision settles the round in the same commit."""
        check_request_id(request.request_id)
        check_ulid(request.round_id, "round_id")
        digest = request.digest(caller.party)
        return await self._settle_on(
            caller,
            request,
            digest,
            lambda session, fresh: self._act(caller.party, session, request, digest, fresh=fresh),
        )

    async def get_round(
        self, caller: Caller, session_id: str, round_id: str
    ) -> tuple[RoundView, bytes, bytes, Session]:
        """(view, opening, final or empty, session) of a round of the session."""
        while True:
            session = await owned_session(self.store, caller, session_id)
            round_ = await self.store.round(check_ulid(round_id, "round_id"), fresh=True)
            if session.table_id:
                raise TableOnlyError(
                    f"the session plays at table {session.table_id}: read its round with GetTable, or from the history",
                    session_id=session.session_id,
                )
            if round_ is None or round_.session_id != session.session_id:
                raise _no_round(round_id)
            opening, final = await self.store.round_envelopes(round_id)
            if round_.status is RoundStatus.OPEN and await moved(self.store, session):
                continue
            return self.decks.view(round_, final, session.offer), opening, final, session

    async def open_round_of(self, session: Session) -> tuple[RoundView | None, bytes]:
        """(view, opening) of the session's round in play; (None, empty) if there is none."""
        if not session.open_round_id or session.table_id:  # a seat is seen with its table
            return None, b""
        round_ = await self.store.round(session.open_round_id, fresh=True)
        if round_ is None:
            raise _no_round(session.open_round_id)
        if round_.status is not RoundStatus.OPEN:  # another process has ended it since the session was read
            return None, b""
        opening, _ = await self.store.round_envelopes(round_.round_id)
        return self.decks.view(round_, b"", session.offer), opening

    # --- start ----------------------------------------------------------------------------------------------------

    async def _start(self, caller: Caller, session: Session, request: StartRound, digest: bytes) -> Reply:
        now_ms = max(self.clock.now_ms(), session.last_ms)
        if session.is_seamless or request.free_bet:  # resume earlier work first, whatever forbids a new round
            known = await self.seamless.resume(session, caller.party, request, digest)
            if known is not None:
                return known
        self._verify_may_start(session, request.round_no, now_ms)
        ruleset = self.games.rulesets[session.ruleset_id]
        bets = games.check_stakes(ruleset, request.bets, limits=within(ruleset.limits, session.bet_limits))
        staked = sum([amount for _, amount in bets])
        due = staked + games.cheapest_finish(ruleset, request.bets)
        if request.free_bet:
            grant = await playable_grant(self.store, self.games, session, request, now_ms)
            granted = granted_minor(bets)
            session.headroom.verify_covers(due - granted, "bets", "U-11")
            return await self.seamless.fund(session, caller.party, request, digest, granted, grant)
        session.headroom.verify_covers(due, "bets", "U-11")
        if session.is_seamless:
            return await self.seamless.fund(session, caller.party, request, digest, staked)
        return await self._deal(
            session, request, bets, RequestContext(caller.party, digest), self.instance.new_id(now_ms)
        )

    async def deal_paid(self, session: Session, request: StartRound, operation: Operation, round_id: str) -> Reply:
        """Deal the round whose opening bets the operation has debited; the same commit ends the operation."""
        ruleset = self.games.rulesets[session.ruleset_id]
        bets = games.check_stakes(ruleset, request.bets, limits=within(ruleset.limits, session.bet_limits))
        return await self._deal(
            session, request, bets, RequestContext(operation.party, operation.digest, operation), round_id
        )

    def verify_may_deal(self, session: Session) -> None:
        """Check again, just before the draw, what may forbid a round: switches, guards, the session's duration."""
        now_ms = max(self.clock.now_ms(), session.last_ms)
        self.availability.verify_may_start(session.operator, session.ruleset_id, session.player)
        session.verify_duration(now_ms)

    async def _deal(
        self,
        session: Session,
        request: StartRound,
        bets: tuple[tuple[str, int], ...],
        context: RequestContext,
        round_id: str,
    ) -> Reply:
        await self.instance.ready()  # the last wait before the draw is committed
        now_ms = max(self.clock.now_ms(), session.last_ms)
        verify_not_expired(context.operation, now_ms)
        salt = self.instance.random_bytes(SALT_BYTES)
        draw = await self.instance.draw()
        try:
            try:
                change, body = self._started(context, session, request, bets, round_id, salt, draw, now_ms)
            except BaseException:  # whatever the error: account for the draw
                account = discarded_draw(draw, round_id, now_ms)
                await self.store.commit(Change(drafts=(account,), draw_no=draw.draw_no, discard=account))
                raise
            signed = await self.store.commit(change)
        finally:
            self.instance.draw_done()
        return Reply(body, signed[-1].envelope)

    def _started(
        self,
        context: RequestContext,
        session: Session,
        request: StartRound,
        bets: tuple[tuple[str, int], ...],
        round_id: str,
        salt: bytes,
        draw: Draw,
        now_ms: int,
    ) -> tuple[Change, bytes]:
        """(the whole start as one change, its answer). All that precedes the draw is fixed by now."""
        ruleset = self.games.rulesets[session.ruleset_id]
        staked = sum([amount for _, amount in bets])
        operation = context.operation
        free_bet = "" if operation is None else free_bet_of(operation)
        granted = granted_minor(bets) if free_bet else 0
        own = staked - granted
        code_count = session.code_count + 1 if session.last_start_ms // 1000 == now_ms // 1000 else 1
        seat_body = seat_object(SEAT_NO, session.session_id, bets)
        deal = deal_core(
            round_id=round_id,
            game_code=format_game_code(now_ms, code_count),
            ruleset=ruleset,
            shuffle=PROCEDURE,
            instance=draw.instance,
            draw_no=draw.draw_no,
            reseed_counter=draw.reseed_counter,
            seats=[seat_body],
            start_ms=now_ms,
        )
        core = format_canonical(deal)
        commitment = commitment_of(core, salt, draw.transcript)
        round_ = Round(
            round_id=round_id,
            session_id=session.session_id,
            operator=session.operator,
            player=session.player,
            ruleset_id=ruleset.id,
            round_no=request.round_no,
            seat_no=SEAT_NO,
            game_code=deal["game_code"],
            instance=draw.instance,
            draw_no=draw.draw_no,
            deal=core,
            commitment=commitment,
            bets=bets,
            balance_before_minor=session.balance_minor + granted if operation is None or granted else staked,
            start_ms=now_ms,
            sealed=self.instance.sealer.seal(draw.instance, draw.draw_no, core, salt, draw.transcript),
            funds_minor=session.headroom.minor - own,
            free_bet=free_bet,
        )
        after = changed(
            session,
            version=session.version + 1,
            participation=session.participation.bet(staked)
            if operation is not None and not granted
            else session.participation.stake(own),
            pending_operation="",
            round_no=request.round_no,
            open_round_id=round_id,
            last_start_ms=now_ms,
            code_count=code_count,
            last_ms=now_ms,
        )
        seat = seat_of(round_, ruleset, transcript_to_deck(draw.transcript))
        seen = self.games.view(after, now_ms)
        view = round_view(round_, seat, actions_hash=first_actions_hash(commitment), headroom=seen.headroom)
        body = self.encode("StartRound", seen, view)
        opening = {**opening_body(round_, deal, seat_body), "time": format_time(now_ms)}
        change = Change(
            session=after,
            round=round_,
            drafts=(
                *debit_drafts(operation, round_id, now_ms),
                Draft("round_opening", opening, round_id=round_id, seat_no=SEAT_NO),
            ),
            answer=Answer(context.party, "StartRound", request.request_id, context.digest, body, now_ms),
            operation=None if operation is None else replace(operation, status="done"),
            records=() if operation is None else balance_reported(after),
            draw_no=draw.draw_no,
            discard=discarded_draw(draw, round_id, now_ms),
        )
        return change, body

    def _verify_may_start(self, session: Session, round_no: int, now_ms: int) -> None:
        session.verify_may_start(round_no)
        self.availability.verify_may_start(session.operator, session.ruleset_id, session.player)
        self.games.verify_offered(session.ruleset_id, session.jurisdiction_id)
        jurisdiction = self.games.jurisdictions[session.jurisdiction_id]
        session.verify_in_time(self.clock.passed_ms(session.last_ms), jurisdiction.inactivity_ms)
        session.verify_duration(now_ms)
        is_required = jurisdiction.regulator_ids_required and not session.is_demo
        if is_required and not (session.regulator_session_id and session.regulator_participation_id):
            raise RegulatorUnavailableError(
                "the session has no ids of the regulator, so no round may start",
                session_id=session.session_id,
                jurisdiction=jurisdiction.id,
            )
        wait_ms = session.last_start_ms + jurisdiction.min_round_interval_ms - now_ms
        if session.last_start_ms and wait_ms > 0:
            raise TooEarlyError(
                f"the next round may start in {wait_ms} ms",
                retry_after_ms=wait_ms,
                limit=jurisdiction.min_round_interval_ms,
            )

    # --- act ------------------------------------------------------------------------------------------------------

    async def _act(self, party: str, session: Session, request: Act, digest: bytes, *, fresh: bool) -> Reply:
        is_seamless = session.is_seamless
        if is_seamless:  # resume earlier work first, whatever the state of the round
            known = await self.seamless.resume(session, party, request, digest)
            if known is not None:
                return known
        round_, unsealed, decided = await self._decision(session, request, fresh=fresh)
        cost_minor = decided.actions[-1].amount_minor
        if is_seamless and cost_minor:
            return await self.seamless.fund(session, party, request, digest, cost_minor)
        reply = await self._decide(session, round_, request, unsealed, decided, RequestContext(party, digest))
        if is_seamless or round_.free_bet:
            await self.seamless.pay(session.session_id)
        return reply

    async def decide_paid(self, session: Session, request: Act, operation: Operation) -> Reply:
        """Take the decision whose cost the operation has debited; the same commit ends the operation."""
        round_, unsealed, decided = await self._decision(session, request, fresh=True)
        context = RequestContext(operation.party, operation.digest, operation)
        return await self._decide(session, round_, request, unsealed, decided, context)

    async def verify_decidable(self, session: Session, request: Act) -> None:
        """Raise the error that forbids the decision now, if there is one."""
        await self._decision(session, request, fresh=True)

    async def _decision(self, session: Session, request: Act, *, fresh: bool) -> tuple[Round, UnsealedDeck, Seat]:
        """(round, its deck and seat, the seat after the decision)."""
        round_ = await self.store.round(request.round_id, fresh=fresh)
        if round_ is None or round_.session_id != session.session_id:
            raise _no_round(request.round_id)
        if round_.malfunction:
            raise RoundPausedError(
                f"round {round_.round_id} is paused: {round_.malfunction_code} is being investigated",
                round_id=round_.round_id,
                malfunction_code=round_.malfunction_code,
            )
        if round_.version != request.round_version:
            now_ms = max(self.clock.now_ms(), session.last_ms)
            raise await self._moved(session, round_, request.round_version, now_ms)
        if round_.status is not RoundStatus.OPEN:
            raise RoundNotOpenError(
                f"round {round_.round_id} is {round_.status.value}",
                round_id=round_.round_id,
                status=round_.status.value,
            )
        unsealed = self.decks.open(round_)
        return round_, unsealed, self._decided(session, unsealed.seat, request.action)

    async def _decide(
        self,
        session: Session,
        round_: Round,
        request: Act,
        unsealed: UnsealedDeck,
        decided: Seat,
        context: RequestContext,
    ) -> Reply:
        now_ms = max(self.clock.now_ms(), session.last_ms)
        operation = context.operation
        taken = taken_action(decided, now_ms, by="player", party=context.party, digest=context.digest)
        round_, session = after_decisions(round_, session, (taken,), now_ms)
        running = round_.actions_hash()
        if operation is not None:
            session = changed(session, pending_operation="")
        if decided.phase is not Phase.SHOWDOWN:
            seen = self.games.view(session, now_ms)
            view = round_view(round_, decided, actions_hash=running, headroom=seen.headroom)
            change = Change(session=session, round=round_, main=None)
        else:
            change, session, view = settled(session, round_, unsealed, decided, running, now_ms)
            seen = self.games.view(session, now_ms)
        body = self.encode("Act", seen, view)
        change.drafts = (*debit_drafts(operation, round_.round_id, now_ms), *change.drafts)
        if operation is not None:
            change.operation, change.records = replace(operation, status="done"), balance_reported(session)
        change.answer = Answer(context.party, "Act", request.request_id, context.digest, body, now_ms)
        signed = await self.store.commit(change)
        return Reply(body, b"" if change.main is None else signed[change.main].envelope)

    async def _moved(self, session: Session, round_: Round, version: int, now_ms: int) -> RoundChangedError:
        """ROUND_CHANGED with the present view, also of a round that has ended."""
        _, final = await self.store.round_envelopes(round_.round_id)
        return RoundChangedError(
            f"round_version {version} is not {round_.version}, the present one",
            session=self.games.view(session, now_ms),
            round_=self.decks.view(round_, final, session.offer),
            field="round_version",
            value=version,
            limit=round_.version,
        )

    def _decided(self, session: Session, seat: Seat, action: Action) -> Seat:
        """The seat after the action. If the session's limits forbid it, the error is theirs, not the balance's."""
        try:
            return games.apply(seat, action)
        except InsufficientBalanceError as error:
            session.headroom.verify_covers(int(error.metadata["value"]), "action", seat.ruleset.rules.funds_rule)
            raise

    # --- both -----------------------------------------------------------------------------------------------------

    async def _settle_on(
        self,
        caller: Caller,
        request: StartRound | Act,
        digest: bytes,
        step: Callable[[Session, bool], Awaitable[Reply]],
    ) -> Reply:
        """Do the step, under the session's lock, from the session as this process knows it.

        If it fails and another process has moved the session meanwhile, the step is done again from the stored session.
        A repeat of a request that was answered gets its answer, whatever the error.
        """
        async with self.locks.of(request.session_id):
            session = await owned_session(self.store, caller, request.session_id, fresh=False)
            fresh = False
            for _ in range(TRIES_MAX):
                try:
                    return await step(session, fresh)
                except RequestRefusedError as final:
                    raise final.error from None
                except RgsError as error:
                    answer = await self.store.answer(caller.party, type(request).__name__, request.request_id)
                    if answer is not None:
                        return reply_of(answer, digest)
                    stands, fresh = await owned_session(self.store, caller, request.session_id), True
                    if stands.version == session.version and not isinstance(error, SessionRaceError):
                        if isinstance(error, OperationPendingError):
                            await report_next_attempt(self.store, error, self.clock.now_ms())
                        raise
                    session = stands
        raise SessionChangedError("the session was changed by another request; read it again")


def discarded_draw(draw: Draw, round_id: str, now_ms: int) -> Draft:
    """The account of a draw that no round uses."""
    return Draft(
        "discarded_draw",
        {
            "draw_no": str(draw.draw_no),
            "reason": "NOT_COMMITTED",
            "reseed_counter": str(draw.reseed_counter),
            "round_id": round_id,
            "time": format_time(now_ms),
            "transcript": draw.transcript.hex(),
        },
    )


def _no_round(round_id: str) -> NotFoundError:
    return NotFoundError(f"no round {round_id} in this session", kind="round", field="round_id", round_id=round_id)
