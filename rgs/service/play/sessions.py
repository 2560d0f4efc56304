"""Sessions: open, get, buy, end the participation, close, list (ARCHITECTURE 2.2-2.4, 2.16, 2.17; RULEBOOK section 5).

Each mutating call stores an intent (`Affair`) with its request id and digest, then advances it. A repeat of the
request continues the affair or gives the stored answer. Refuses table games, currencies that are not the
jurisdiction's, and a second affair beside one that is under way.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Protocol

from rgs.core.clock import Clock
from rgs.core.errors import (
    AffairPendingError,
    JurisdictionError,
    NotFoundError,
    RgsError,
    SessionChangedError,
    TableOnlyError,
    UnknownRulesetError,
)
from rgs.core.ids import check_reference, check_request_id, opening_id
from rgs.core.rounds import Round
from rgs.core.sessions import Funding, Session, SessionStatus
from rgs.core.values import check_range
from rgs.core.views import PendingAffair, SessionView
from rgs.ports.amounts import AMOUNT_MINOR_MAX
from rgs.service.books import Books, moved, owned_session
from rgs.service.callers import Caller, Reply, Role, SessionLocks, reply_of, verify_same_content
from rgs.service.instance import Instance
from rgs.service.money.movements import AHEAD_MS, payout_detail, tell_next_attempt
from rgs.service.pages import PAGE_SIZE_MAX, check_page_size, format_page_token, parse_page_token
from rgs.service.permits import Permits
from rgs.service.play.affairs import Affairs
from rgs.service.play.interruptions import Interruptions, idle_since
from rgs.service.play.play import Play
from rgs.service.play.requests import BuyParticipation, CloseSession, EndParticipation, OpenSession
from rgs.store.changes import Affair, Change, RequestSeenError, SessionRaceError, TokenKept
from rgs.store.interface import Store


class _Request(Protocol):
    @property
    def request_id(self) -> str: ...

    def digest(self, party: str) -> bytes: ...


@dataclass(frozen=True, slots=True)
class OpenRound:
    """A round in play: how long nothing has happened, and when it will be finished by rule (0: it is paused)."""

    round: Round
    session: Session
    idle_ms: int
    finish_ms: int


Prepare = Callable[[Session], None]
"""Raises what forbids the affair now."""


class Sessions:
    """The sessions of all operators on this node."""

    def __init__(
        self,
        *,
        store: Store,
        instance: Instance,
        books: Books,
        clock: Clock,
        locks: SessionLocks,
        affairs: Affairs,
        play: Play,
        permits: Permits,
        interruptions: Interruptions,
        open_account: Callable[[str, str, str], Awaitable[None]] | None = None,
    ) -> None:
        self._store = store
        self._instance = instance
        self._books = books
        self._clock = clock
        self._locks = locks
        self._affairs = affairs
        self._play = play
        self._permits = permits
        self._interruptions = interruptions
        self._open_account = open_account
        """(operator, player, currency): the embedded wallet's account, in the demo jurisdiction only."""

    # --- mutating calls -------------------------------------------------------------------------------------------

    async def open(self, caller: Caller, request: OpenSession) -> Reply:
        """A session with the regulator's id, signed as `session_open`."""
        check_request_id(request.request_id)
        digest = request.digest(caller.party)
        known = await self._opened_before(caller, request.request_id, digest)
        if known is not None:
            return known
        request.limits.verify()
        self._verify_may_open(caller, request)
        self._permits.verify_may_start(caller.party, request.game, request.player)
        now_ms = self._clock.now_ms()
        session = Session(
            session_id=self._instance.new_id(now_ms),
            operator=caller.party,
            player=check_reference(request.player, "player"),
            operator_reference=check_reference(request.operator_reference, "operator_reference"),
            ruleset_id=request.game,
            jurisdiction_id=caller.jurisdiction,
            currency=request.currency,
            status=SessionStatus.PENDING,
            open_ms=now_ms,
            last_ms=now_ms,
            version=1,
            limits=request.limits,
            funding=self._books.fundings.get(caller.party, Funding.PARTICIPATION),
        )
        if self._open_account is not None and self._books.jurisdictions[caller.jurisdiction].test_register_allowed:
            await self._open_account(caller.party, request.player, request.currency)
        affair = self._affair("open", caller, session.session_id, "OpenSession", request.request_id, digest, now_ms)
        async with self._locks.of(session.session_id):
            if await self._begin(replace(session, pending_affair=affair.affair_id), affair, request.session_token):
                if await self._store.opening_of_request(caller.party, request.request_id) is None:
                    return await self._advance(affair)
                await self._affairs.give_up_opening(affair)  # another process was done with it between our two looks
        known = await self._opened_before(caller, request.request_id, digest)
        if known is None:
            raise SessionChangedError("the session was changed by another request; read it again")
        return known

    async def buy(self, caller: Caller, request: BuyParticipation) -> Reply:
        """Buy the right of participation or top it up: wallet, regulator, then the signed `purchase`."""

        def prepare(session: Session) -> None:
            session.verify_may_buy(request.purchase_no)
            self._permits.verify_enabled(session.operator, session.ruleset_id, session.player)
            jurisdiction = self._books.jurisdictions[session.jurisdiction_id]
            session.verify_in_time(self._clock.passed_ms(session.last_ms), jurisdiction.inactivity_ms)
            session.participation.buy(request.amount_minor, cap_minor=jurisdiction.participation_cap_minor)

        check_range(request.amount_minor, "amount_minor", 1, AMOUNT_MINOR_MAX)
        return await self._run(
            "purchase", "BuyParticipation", caller, request, request.session_id, prepare,
            amount_minor=request.amount_minor, purchase_no=request.purchase_no,
        )  # fmt: skip

    async def end_participation(self, caller: Caller, request: EndParticipation) -> Reply:
        """Report what is owed to the regulator, pay the balance out, sign `participation_end`."""
        return await self._run("end", "EndParticipation", caller, request, request.session_id, Session.verify_may_end)

    async def close(self, caller: Caller, request: CloseSession) -> Reply:
        """Close at the regulator, sign `session_close`."""
        return await self._run("close", "CloseSession", caller, request, request.session_id, Session.verify_may_close)

    async def recover(self, min_age_ms: int = 0) -> int:
        """Continue affairs that are under way, oldest first; how many came to their end. One that breaks holds up no
        other: what broke first is raised after the last. Younger ones than `min_age_ms` are left to whoever began them.
        """
        finished, now_ms = 0, self._clock.now_ms()
        self._affairs.returning.begin()
        broken: Exception | None = None
        page = await self._store.pending_affairs(PAGE_SIZE_MAX)
        while page:
            for listed in page:
                # A time that is further ahead is from before the clock was set back.
                if now_ms - min_age_ms < listed.created_ms <= now_ms + AHEAD_MS:
                    continue
                if not self._affairs.returning.is_due(listed, now_ms):
                    continue
                async with self._locks.of(listed.session_id):
                    affair = await self._store.affair(listed.affair_id)
                    if affair is None or affair.status != "pending":  # done meanwhile
                        continue
                    try:
                        await self._affairs.advance(affair)
                    except RgsError:
                        continue
                    except Exception as error:  # noqa: BLE001 - raised below
                        broken = broken or error
                        continue
                    finished += 1
            page = await self._store.pending_affairs(PAGE_SIZE_MAX, page[-1].affair_id)
        if broken is not None:
            raise broken
        return finished

    # --- reads ----------------------------------------------------------------------------------------------------

    async def get(self, caller: Caller, session_id: str) -> tuple[SessionView, bytes]:
        """(the whole session with the round in play, that round's signed opening or nothing)."""
        while True:
            session = await owned_session(self._store, caller, session_id)
            open_round, opening = await self._play.open_round_of(session)
            if not session.open_round_id or not await moved(self._store, session):
                break
        view = self._books.view(session, self._clock.now_ms(), open_round)
        affair = await self._store.pending_affair(session_id) if session.pending_affair else None
        if affair is not None:
            pending = PendingAffair(
                affair.kind, affair.stage, affair.request_id, affair.amount_minor, affair.created_ms, affair.attempts,
                affair.reason,
            )  # fmt: skip
            view = replace(view, pending=pending)
        return view, opening

    async def list(
        self, caller: Caller, player: str, open_only: bool, page_size: int, page_token: str
    ) -> tuple[tuple[SessionView, ...], str]:
        """An operator's sessions, newest first, and the token of the next page (empty at the end)."""
        limit = check_page_size(page_size)
        if player:
            check_reference(player, "player")
        (before,) = parse_page_token(page_token, 1)
        rows = await self._store.sessions_of(caller.party, player, open_only=open_only, before=before, limit=limit + 1)
        now_ms = self._clock.now_ms()
        views = tuple(self._books.view(session, now_ms) for _, session in rows[:limit])
        return views, format_page_token(rows[limit - 1][0]) if len(rows) > limit else ""

    async def list_open_rounds(
        self, caller: Caller, page_size: int, page_token: str
    ) -> tuple[tuple[OpenRound, ...], str]:
        """Rounds in play with their age, oldest first: an operator's own, those of all for other parties."""
        limit = check_page_size(page_size)
        (after,) = parse_page_token(page_token, 1)
        operator = caller.party if caller.role is Role.OPERATOR else ""
        rows = await self._store.open_rounds(operator, after=after, limit=limit + 1)
        now_ms = self._clock.now_ms()
        found = []
        for _, round_ in rows[:limit]:
            session = await self._store.session(round_.session_id, fresh=True)
            if session is None:
                raise NotFoundError(f"no session {round_.session_id}", kind="session", session_id=round_.session_id)
            finish_ms = 0 if round_.malfunction else self._interruptions.finish_ms(session)
            idle_ms = max(0, now_ms - self._clock.counted_from(idle_since(session)))
            found.append(OpenRound(round_, session, idle_ms, finish_ms))
        return tuple(found), format_page_token(rows[limit - 1][0]) if len(rows) > limit else ""

    # --- both -----------------------------------------------------------------------------------------------------

    def _verify_may_open(self, caller: Caller, request: OpenSession) -> None:
        ruleset = self._books.rulesets.get(request.game)
        if ruleset is None:
            raise UnknownRulesetError(f"no game {request.game[:40]}", field="game", value=request.game[:40])
        if ruleset.table_only:
            raise TableOnlyError(f"{ruleset.id} is played at tables", field="game", value=ruleset.id)
        jurisdiction = self._books.jurisdictions.get(caller.jurisdiction)
        if jurisdiction is None:
            raise JurisdictionError(
                f"operator {caller.party} has no jurisdiction", operator=caller.party, jurisdiction=caller.jurisdiction
            )
        self._books.verify_offered(ruleset.id, jurisdiction.id)
        if jurisdiction.regulator_ids_required and self._books.fundings.get(caller.party) is Funding.SEAMLESS:
            raise JurisdictionError(
                f"jurisdiction {jurisdiction.id} requires a participation, {caller.party} is funded bet by bet",
                field="jurisdiction",
                operator=caller.party,
                jurisdiction=jurisdiction.id,
            )
        if request.currency != jurisdiction.currency:
            raise JurisdictionError(
                f"currency {request.currency[:8]} is not {jurisdiction.currency}, the currency of {jurisdiction.id}",
                field="currency",
                value=request.currency[:8],
                limit=jurisdiction.currency,
            )

    async def _run(
        self,
        kind: str,
        method: str,
        caller: Caller,
        request: _Request,
        session_id: str,
        prepare: Prepare,
        *,
        amount_minor: int = 0,
        purchase_no: int = 0,
    ) -> Reply:
        check_request_id(request.request_id)
        digest = request.digest(caller.party)
        async with self._locks.of(session_id):
            while True:
                session = await owned_session(self._store, caller, session_id)
                known = await self._known(caller, method, request.request_id, digest)
                if known is not None:
                    return known
                try:
                    prepare(session)
                    break
                except RgsError as error:
                    if not await moved(self._store, session):  # else it says something of what is past
                        if isinstance(error, AffairPendingError):
                            await tell_next_attempt(self._store, error, self._clock.now_ms())
                        raise
            now_ms = max(self._clock.now_ms(), session.last_ms)
            affair = self._affair(
                kind, caller, session_id, method, request.request_id, digest, now_ms,
                session.balance_minor if kind == "end" else amount_minor, purchase_no,
                payout_detail(session.participation_id) if kind == "end" else "",
            )  # fmt: skip
            intent = replace(session, version=session.version + 1, pending_affair=affair.affair_id)
            if await self._begin(intent, affair):
                return await self._advance(affair)
            known = await self._known(caller, method, request.request_id, digest)
            if known is None:
                raise SessionChangedError("the session was changed by another request; read it again")
            return known

    async def _opened_before(self, caller: Caller, request_id: str, digest: bytes) -> Reply | None:
        """As `_known`, under the lock of the session that the request began: one opening may come twice at once."""
        affair = await self._store.affair_of_request(caller.party, "OpenSession", request_id)
        if affair is None:
            known = await self._known(caller, "OpenSession", request_id, digest)
            return known or await self._opened_long_ago(caller, request_id, digest)
        async with self._locks.of(affair.session_id):
            return await self._known(caller, "OpenSession", request_id, digest)

    async def _opened_long_ago(self, caller: Caller, request_id: str, digest: bytes) -> Reply | None:
        """The session that this request has opened, as it is now, and its signed opening: the request id stays with the
        session when its stored answer has gone.
        """
        affair = await self._store.opening_of_request(caller.party, request_id)
        if affair is None:
            return None
        verify_same_content(affair.digest, digest, request_id, affair.method)
        view, _ = await self.get(caller, affair.session_id)
        (opening,) = await self._store.statements_of_session(affair.session_id, 0, 1)
        return self._affairs.told(affair.method, view, opening.envelope)

    async def _known(self, caller: Caller, method: str, request_id: str, digest: bytes) -> Reply | None:
        """The stored answer, or the continued affair, of a request that came before; None for a new one."""
        # In this order: one that another process ends between the two looks is found by the second.
        affair = await self._store.affair_of_request(caller.party, method, request_id)
        answer = await self._store.answer(caller.party, method, request_id)
        if answer is not None:
            return reply_of(answer, digest)
        if affair is None:
            return None
        return await self._advance(affair, digest)

    async def _advance(self, affair: Affair, digest: bytes = b"") -> Reply:
        """As `Affairs.resume`; where another process has brought it to its end meanwhile, the answer that it gave."""
        try:
            return await self._affairs.resume(affair, digest or affair.digest)
        except SessionChangedError:
            answer = await self._store.answer(affair.party, affair.method, affair.request_id)
            if answer is None:
                raise
            return reply_of(answer, affair.digest)

    async def _begin(self, session: Session, affair: Affair, token: str = "") -> bool:
        """Store the intent, an opening's with the operator's token; False if another request was first."""
        change = Change(session=session, affair=affair)
        if token:
            change.records = (
                TokenKept(session.session_id, self._instance.sealer.seal_token(session.session_id, token)),
            )
        try:
            await self._store.commit(change)
        except (SessionRaceError, RequestSeenError):
            return False
        return True

    def _affair(
        self,
        kind: str,
        caller: Caller,
        session_id: str,
        method: str,
        request_id: str,
        digest: bytes,
        now_ms: int,
        amount_minor: int = 0,
        purchase_no: int = 0,
        detail: str = "",
    ) -> Affair:
        return Affair(
            affair_id=opening_id(session_id) if kind == "open" else self._instance.new_id(now_ms),
            session_id=session_id,
            kind=kind,
            status="pending",
            party=caller.party,
            method=method,
            request_id=request_id,
            digest=digest,
            amount_minor=amount_minor,
            purchase_no=purchase_no,
            created_ms=now_ms,
            detail=detail,
        )
