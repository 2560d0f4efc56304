"""Sessions: open, get, buy, end the participation, close, list (ARCHITECTURE 2.2-2.4, 2.16, 2.17; RULEBOOK section 5).

Each mutating call stores an intent (`Operation`) with its request id and digest, then advances it. A repeat of the
request continues the operation or gets the stored answer. A session has one operation at a time. Currencies
other than the jurisdiction's are refused, and so is a table of another currency.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from rgs.core.clock import Clock
from rgs.core.errors import (
    NotFoundError,
    OperationPendingError,
    ReferenceUsedError,
    RgsError,
    SessionChangedError,
)
from rgs.core.ids import check_reference, check_request_id, opening_id
from rgs.core.rounds import Round
from rgs.core.sessions import Mode, Session, SessionStatus
from rgs.core.values import check_range
from rgs.core.views import PendingOperation, SessionView
from rgs.ports.amounts import AMOUNT_MINOR_MAX
from rgs.service.availability import Availability
from rgs.service.callers import Caller, Reply, Role, SessionLocks, reply_of, verify_same_content
from rgs.service.game_catalog import GameCatalog, moved, owned_session
from rgs.service.instance import Instance
from rgs.service.money.transfers import AHEAD_MS, payout_detail, report_next_attempt
from rgs.service.pages import PAGE_SIZE_MAX, check_page_size, format_page_token, parse_page_token, verify_alone
from rgs.service.play.interruptions import Interruptions
from rgs.service.play.launches import Launches
from rgs.service.play.opening_rules import OpeningRules
from rgs.service.play.operations import Operations
from rgs.service.play.play import Play
from rgs.service.play.requests import (
    BuyParticipation,
    CloseSession,
    EndParticipation,
    OpenSession,
    SessionRequest,
    intent_of,
)
from rgs.store.changes import Change, Operation, RequestSeenError, SessionRaceError, TokenKept
from rgs.store.interface import Store
from rgs.store.launches import LaunchRedeemed


@dataclass(frozen=True, slots=True)
class OpenRound:
    """A round in play: how long it has been idle, and when it will be finished by rule (0: it is paused)."""

    round: Round
    session: Session
    idle_ms: int
    finish_ms: int


@dataclass(kw_only=True, eq=False, repr=False)
class Sessions:
    """The sessions of all operators on this node."""

    store: Store
    instance: Instance
    games: GameCatalog
    clock: Clock
    locks: SessionLocks
    operations: Operations
    play: Play
    availability: Availability
    interruptions: Interruptions
    opening_rules: OpeningRules
    launches: Launches
    open_account: Callable[[str, str, str], Awaitable[None]] | None = None
    """Opens an account of the embedded wallet for (operator, player, currency). For the demo jurisdiction only."""

    # --- mutating calls -------------------------------------------------------------------------------------------

    async def open(self, caller: Caller, request: OpenSession) -> Reply:
        """Open a session: get the regulator's id, then sign `session_open`."""
        check_request_id(request.request_id)
        digest = request.digest(caller.party)
        known = await self._opened_before(caller, request, digest)
        if known is not None:
            return known
        redeemed: LaunchRedeemed | None = None
        if request.launch_token:
            request, redeemed = await self.launches.resolve(caller, request)
        bet_limits = await self.opening_rules.verify(caller, request)
        check_reference(request.operator_reference, "operator_reference")
        if await self.store.session_of_reference(caller.party, request.operator_reference):
            if redeemed is not None:
                await self.launches.resolve(caller, request)  # another request may have redeemed it
            return await self._opened_elsewhere(caller, request, digest)
        now_ms = self.clock.now_ms()
        session = Session(
            session_id=self.instance.new_id(now_ms),
            operator=caller.party,
            player=check_reference(request.player, "player"),
            operator_reference=request.operator_reference,
            ruleset_id=request.game,
            jurisdiction_id=caller.jurisdiction,
            currency=request.currency,
            status=SessionStatus.PENDING,
            open_ms=now_ms,
            last_ms=now_ms,
            version=1,
            limits=request.limits,
            funding=self.opening_rules.funding_of(caller, request),
            table_id=request.table,
            mode=request.mode or Mode.REAL,
            bet_limits=bet_limits,
            language=request.language,
            return_url=request.return_url,
        )
        is_test = self.games.jurisdictions[caller.jurisdiction].test_regulator_allowed
        if self.open_account is not None and is_test and not session.is_demo:
            await self.open_account(caller.party, request.player, request.currency)
        operation = intent_of(request, session.session_id, opening_id(session.session_id), caller.party, digest, now_ms)
        async with self.locks.of(session.session_id):
            intent = replace(session, pending_operation=operation.operation_id)
            if await self._begin(intent, operation, request.session_token, redeemed):
                if await self.store.opening_of_request(caller.party, request.request_id) is None:
                    return await self._advance(operation)
                await self.operations.give_up_opening(operation)  # another process completed it between our two reads
        if request.launch_token and await self._opened_before(caller, request, digest) is None:
            await self.launches.resolve(caller, request)  # another request may have redeemed it
        return await self._opened_elsewhere(caller, request, digest)

    async def buy(self, caller: Caller, request: BuyParticipation) -> Reply:
        """Buy the right of participation or top it up: wallet, regulator, then the signed `purchase`."""

        def prepare(session: Session) -> None:
            session.verify_may_buy(request.purchase_no)
            self.availability.verify_enabled(session.operator, session.ruleset_id, session.player)
            jurisdiction = self.games.jurisdictions[session.jurisdiction_id]
            session.verify_in_time(self.clock.passed_ms(session.last_ms), jurisdiction.inactivity_ms)
            session.participation.buy(request.amount_minor, cap_minor=jurisdiction.cap_minor(session.currency))

        check_range(request.amount_minor, "amount_minor", 1, AMOUNT_MINOR_MAX)
        return await self._run(caller, request, prepare)

    async def end_participation(self, caller: Caller, request: EndParticipation) -> Reply:
        """Send the queued reports to the regulator, pay out the balance, sign `participation_end`."""
        return await self._run(caller, request, Session.verify_may_end)

    async def close(self, caller: Caller, request: CloseSession) -> Reply:
        """Close the session at the regulator, sign `session_close`."""
        return await self._run(caller, request, Session.verify_may_close)

    async def recover(self, min_age_ms: int = 0) -> int:
        """Continue pending operations, oldest first; return how many were completed.

        An unexpected exception of one does not stop the others: the first is raised after the last operation.
        Operations younger than `min_age_ms` are left to the call that began them.
        """
        finished, now_ms = 0, self.clock.now_ms()
        self.operations.returning.begin()
        broken: Exception | None = None
        page = await self.store.pending_operations(PAGE_SIZE_MAX)
        while page:
            for listed in page:
                # A time further ahead than AHEAD_MS was written before the clock was set back.
                if now_ms - min_age_ms < listed.created_ms <= now_ms + AHEAD_MS:
                    continue
                if not self.operations.returning.is_due(listed, now_ms):
                    continue
                async with self.locks.of(listed.session_id):
                    operation = await self.store.operation(listed.operation_id)
                    if operation is None or operation.status != "pending":  # done meanwhile
                        continue
                    try:
                        await self.operations.advance(operation)
                    except RgsError:
                        continue
                    except Exception as error:  # noqa: BLE001 - raised below
                        broken = broken or error
                        continue
                    finished += 1
            page = await self.store.pending_operations(PAGE_SIZE_MAX, page[-1].operation_id)
        if broken is not None:
            raise broken
        return finished

    # --- reads ----------------------------------------------------------------------------------------------------

    async def get(self, caller: Caller, session_id: str) -> tuple[SessionView, bytes]:
        """The whole session with its round in play, and that round's signed opening (empty if there is none)."""
        while True:
            session = await owned_session(self.store, caller, session_id)
            open_round, opening = await self.play.open_round_of(session)
            if not session.open_round_id or not await moved(self.store, session):
                break
        view = self.games.view(session, self.clock.now_ms(), open_round)
        operation = await self.store.pending_operation(session_id) if session.pending_operation else None
        if operation is not None:
            pending = PendingOperation(
                operation.kind,
                operation.progress,
                operation.request_id,
                operation.amount_minor,
                operation.created_ms,
                operation.attempts,
                operation.reason,
            )
            view = replace(view, pending=pending)
        return view, opening

    async def list(
        self,
        caller: Caller,
        player: str,
        open_only: bool,
        page_size: int,
        page_token: str,
        operator_reference: str = "",
    ) -> tuple[tuple[SessionView, ...], str]:
        """A page of an operator's sessions, newest first, and the token of the next page (empty at the end)."""
        limit = check_page_size(page_size)
        (before,) = parse_page_token(page_token, 1)
        if operator_reference:
            check_reference(operator_reference, "operator_reference")
            verify_alone("operator_reference", player=player, open_only=open_only)
            rows = await self.store.sessions_with(caller.party, operator_reference, before=before, limit=limit + 1)
        else:
            if player:
                check_reference(player, "player")
            rows = await self.store.sessions_of(
                caller.party, player, open_only=open_only, before=before, limit=limit + 1
            )
        now_ms = self.clock.now_ms()
        views = tuple(self.games.view(session, now_ms) for _, session in rows[:limit])
        return views, format_page_token(rows[limit - 1][0]) if len(rows) > limit else ""

    async def list_open_rounds(
        self, caller: Caller, page_size: int, page_token: str
    ) -> tuple[tuple[OpenRound, ...], str]:
        """A page of the rounds in play, oldest first: an operator's own; for other parties those of all operators."""
        limit = check_page_size(page_size)
        (after,) = parse_page_token(page_token, 1)
        operator = caller.party if caller.role is Role.OPERATOR else ""
        rows = await self.store.open_rounds(operator, after=after, limit=limit + 1)
        now_ms = self.clock.now_ms()
        found = []
        for _, round_ in rows[:limit]:
            session = await self.store.session(round_.session_id, fresh=True)
            if session is None:
                raise NotFoundError(f"no session {round_.session_id}", kind="session", session_id=round_.session_id)
            finish_ms = 0 if round_.malfunction else self.interruptions.finish_ms(session)
            idle_ms = max(0, now_ms - self.clock.counted_from(session.last_ms))
            found.append(OpenRound(round_, session, idle_ms, finish_ms))
        return tuple(found), format_page_token(rows[limit - 1][0]) if len(rows) > limit else ""

    # --- both -----------------------------------------------------------------------------------------------------

    async def _opened_elsewhere(self, caller: Caller, request: OpenSession, digest: bytes) -> Reply:
        """The answer of the same request, if that was first. ReferenceUsedError if another session of the operator has
        the reference.
        """
        known = await self._opened_before(caller, request, digest)
        if known is not None:
            return known
        session_id = await self.store.session_of_reference(caller.party, request.operator_reference)
        if session_id:
            raise ReferenceUsedError(
                f"operator_reference {request.operator_reference} is that of session {session_id}: go on with it, or"
                " open a session with another reference",
                field="operator_reference",
                value=request.operator_reference,
                session_id=session_id,
            )
        raise SessionChangedError("the session was changed by another request; read it again")

    async def _run(self, caller: Caller, request: SessionRequest, prepare: Callable[[Session], None]) -> Reply:
        """Begin and advance an operation of a session. `prepare` raises the error that forbids it now."""
        check_request_id(request.request_id)
        digest = request.digest(caller.party)
        async with self.locks.of(request.session_id):
            while True:
                session = await owned_session(self.store, caller, request.session_id)
                known = await self._known(caller, request, digest)
                if known is not None:
                    return known
                try:
                    prepare(session)
                    break
                except RgsError as error:
                    if not await moved(self.store, session):  # else the error is about an old state
                        if isinstance(error, OperationPendingError):
                            await report_next_attempt(self.store, error, self.clock.now_ms())
                        raise
            now_ms = max(self.clock.now_ms(), session.last_ms)
            operation = intent_of(
                request, request.session_id, self.instance.new_id(now_ms), caller.party, digest, now_ms
            )
            if isinstance(request, BuyParticipation):
                operation = replace(operation, amount_minor=request.amount_minor, purchase_no=request.purchase_no)
            elif isinstance(request, EndParticipation):
                detail = payout_detail(session.participation_id)
                operation = replace(operation, amount_minor=session.balance_minor, detail=detail)
            intent = replace(session, version=session.version + 1, pending_operation=operation.operation_id)
            if await self._begin(intent, operation):
                return await self._advance(operation)
            known = await self._known(caller, request, digest)
            if known is None:
                raise SessionChangedError("the session was changed by another request; read it again")
            return known

    async def _opened_before(self, caller: Caller, request: OpenSession, digest: bytes) -> Reply | None:
        """As `_known`, under the lock of the session that the request began: one opening may come twice at once."""
        operation = await self.store.operation_of_request(caller.party, "OpenSession", request.request_id)
        if operation is None:
            known = await self._known(caller, request, digest)
            return known or await self._opened_long_ago(caller, request, digest)
        async with self.locks.of(operation.session_id):
            return await self._known(caller, request, digest)

    async def _opened_long_ago(self, caller: Caller, request: OpenSession, digest: bytes) -> Reply | None:
        """The session that this request opened, as it is now, and its signed opening. The request id stays with the
        session after the stored answer has been deleted.
        """
        operation = await self.store.opening_of_request(caller.party, request.request_id)
        if operation is None:
            return None
        verify_same_content(operation.digest, digest, request.request_id, operation.method)
        view, _ = await self.get(caller, operation.session_id)
        (opening,) = await self.store.statements_of_session(operation.session_id, 0, 1)
        return Reply(self.operations.encode(operation.method, view, None), opening.envelope)

    async def _known(self, caller: Caller, request: OpenSession | SessionRequest, digest: bytes) -> Reply | None:
        """The stored answer of a repeated request, or that of its continued operation; None for a new request."""
        # In this order: the second read finds an operation that another process ends between the two.
        method = type(request).__name__
        operation = await self.store.operation_of_request(caller.party, method, request.request_id)
        answer = await self.store.answer(caller.party, method, request.request_id)
        if answer is not None:
            return reply_of(answer, digest)
        if operation is None:
            return None
        return await self._advance(operation, digest)

    async def _advance(self, operation: Operation, digest: bytes = b"") -> Reply:
        """As `Operations.resume`. If another process has ended the operation meanwhile: the answer that it stored."""
        try:
            return await self.operations.resume(operation, digest or operation.digest)
        except SessionChangedError:
            answer = await self.store.answer(operation.party, operation.method, operation.request_id)
            if answer is None:
                raise
            return reply_of(answer, operation.digest)

    async def _begin(
        self, session: Session, operation: Operation, token: str = "", redeemed: LaunchRedeemed | None = None
    ) -> bool:
        """Store the intent, with the operator's token and the launch if there are any; False if another request was
        first.
        """
        change = Change(session=session, operation=operation)
        if token:
            change.records = (
                TokenKept(session.session_id, self.instance.sealer.seal_token(session.session_id, token)),
            )
        if redeemed is not None:
            change.records = (*change.records, replace(redeemed, session_id=session.session_id))
        try:
            await self.store.commit(change)
        except (SessionRaceError, RequestSeenError):
            return False
        return True
