"""The multi-step affairs of a session: open, purchase, end of participation, close (ARCHITECTURE 2.17).

Each has one `advance()`: live traffic and recovery call the same function. The intent is stored before the first
outward call; every outward call carries the affair's id as its transaction id, so that doing all steps again has the
effect of doing them once. An unanswered call leaves the affair pending: it is never read as a failure. Only a
definite refusal ends an affair without its effect.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Final

from rgs.core.clock import Clock
from rgs.core.errors import (
    NotFoundError,
    RegulatorUnavailableError,
    RgsError,
    RoundChangedError,
    SessionChangedError,
    UnavailableError,
    WalletUnavailableError,
)
from rgs.core.rounds import rules_object
from rgs.core.sessions import Session, SessionStatus
from rgs.core.statements import SALT_BYTES, private_hash
from rgs.core.times import format_date, format_time
from rgs.core.views import SessionView
from rgs.ports.regulator import CentralSystem, ParticipationEnd, Purchase, Rejection, SessionClose, SessionOpening
from rgs.ports.wallet import Leg, Receipt, Transfer, Wallet
from rgs.service.books import Books
from rgs.service.callers import Encode, Reply, verify_same_content
from rgs.service.instance import Instance
from rgs.service.money.movements import Movements, contradiction, gap_ms, is_standing, transaction_of, transfer_of
from rgs.service.money.refusals import format_refusal, given_up, refusal_of
from rgs.service.money.returning import Returning
from rgs.service.play.settlement import balance_told
from rgs.service.regulator.reports import Reporting
from rgs.store.changes import (
    Affair,
    AffairStage,
    Answer,
    Change,
    DayCount,
    Draft,
    Record,
    SessionRaceError,
    StoreError,
    TokenDropped,
)
from rgs.store.interface import Store

UNDO_AFTER_MS: Final = 300_000
"""A debit of an affair older than this, of which the wallet does not know, is rolled back: nobody waits for it."""
OWED: Final = frozenset({"end", "return"})
"""The kinds that pay the player: no refusal of the wallet ends them."""
BESIDE: Final = frozenset({"return"})
"""What a session does not wait for: it goes on beside."""


class Affairs:
    """Begins nothing by itself: `advance` takes a stored intent to its end, as far as the outside answers."""

    def __init__(
        self,
        *,
        store: Store,
        instance: Instance,
        books: Books,
        clock: Clock,
        wallet: Wallet,
        central: CentralSystem,
        encode: Encode,
        reporting: Reporting,
        returning: Returning,
    ) -> None:
        self._store = store
        self._instance = instance
        self._books = books
        self._clock = clock
        self.movements = Movements(wallet)
        self._central = central
        self._encode = encode
        self._reporting = reporting
        self.returning = returning
        self.report_stages = reporting.report_stages
        self.steps: dict[str, Callable[[Affair, Session], Awaitable[Reply]]] = {
            "open": self._open,
            "purchase": self._purchase,
            "end": self._end,
            "close": self._close,
        }

    async def advance(self, affair: Affair) -> Reply:
        """Do what is left of the affair, under its session's lock. Raises what stopped it; unavailable means: again
        later. SessionChangedError: another process has brought it to its end.
        """
        try:
            return await self.steps[affair.kind](affair, await self._session(affair))
        except StoreError:
            raise
        except SessionChangedError:
            stored = await self._store.affair(affair.affair_id)
            if stored is not None and stored.status == "undone":  # what the other process was told is told again
                raise refusal_of(stored) from None
            raise
        except RgsError as error:
            if isinstance(error, UnavailableError) or affair.kind in OWED:
                await self._note(affair.affair_id, error)
            raise

    def told(self, method: str, view: SessionView, envelope: bytes) -> Reply:
        """The reply to a request whose affair is done, with the session as it is now."""
        return Reply(self._encode(method, view, None), envelope)

    async def give_up_opening(self, affair: Affair) -> None:
        """End the opening of a session before its first outward call: the same request was answered with another."""
        await self._fail_opening(affair, await self._session(affair), None)

    async def _session(self, affair: Affair) -> Session:
        """The session as it stands, with the affair under way: what ends the affair changes both in one commit."""
        session = await self._store.session(affair.session_id, fresh=True)
        if session is None:
            raise NotFoundError(f"no session {affair.session_id}", kind="session", session_id=affair.session_id)
        if affair.kind in BESIDE:
            stored = await self._store.affair(affair.affair_id)
            is_pending = stored is not None and stored.status == "pending"
        else:
            is_pending = session.pending_affair == affair.affair_id
        if not is_pending:
            raise _changed()
        return session

    async def resume(self, affair: Affair, digest: bytes) -> Reply:
        """The answer to a request that began this affair before; the refusal that has ended it, if one has."""
        verify_same_content(affair.digest, digest, affair.request_id, affair.method)
        if affair.status == "undone":
            raise refusal_of(affair)
        return await self.advance(affair)

    async def _note(self, affair_id: str, error: RgsError) -> None:
        """Keep what is known after an attempt that did not bring the affair to its end, and when to try again."""
        affair = await self._store.affair(affair_id)
        if affair is None or affair.status != "pending":
            return
        stage = affair.stage
        if affair.kind == "purchase" and isinstance(error, RegulatorUnavailableError):
            stage = max(stage, AffairStage.PAID)  # the register is asked behind the debit, and may know of it now
        elif isinstance(error, WalletUnavailableError):
            stage = max(stage, AffairStage.UNKNOWN)
        attempts = affair.attempts + 1
        next_ms = self._clock.now_ms() + gap_ms(affair_id, attempts)
        noted = replace(affair, stage=stage, attempts=attempts, next_ms=next_ms, reason=error.reason)
        with contextlib.suppress(StoreError):  # it is pending all the same
            await self._store.commit(Change(affair=noted))

    # --- the four affairs -----------------------------------------------------------------------------------------

    async def _open(self, affair: Affair, session: Session) -> Reply:
        jurisdiction = self._books.jurisdictions[session.jurisdiction_id]
        if session.is_seamless:
            with contextlib.suppress(RgsError):  # it says what is offered, and is asked for only once
                session = session.told(await self.movements.balance(session), self._time_of(session))
            return await self._opened(affair, session, {}, {"funding": session.funding.value})
        try:
            granted = await self._central.open_session(
                SessionOpening(
                    transaction_id=affair.affair_id,
                    reference=session.session_id,
                    operator=session.operator,
                    jurisdiction=jurisdiction.id,
                    test_register_allowed=jurisdiction.test_register_allowed,
                    ruleset=session.ruleset_id,
                    currency=session.currency,
                    participation_cap_minor=jurisdiction.participation_cap_minor,
                    open_ms=affair.created_ms,
                )
            )
        except UnavailableError:
            raise
        except RgsError as refusal:
            await self._fail_opening(affair, session, refusal)
            raise
        opened = replace(
            session,
            status=SessionStatus.OPEN,
            regulator_session_id=granted.regulator_session_id,
            test_register=granted.test_register,
        )
        named = {
            "regulator": "test-register" if granted.test_register else "central-system",
            "regulator_session_id": granted.regulator_session_id,
        }
        return await self._opened(affair, opened, named, {})

    async def _opened(self, affair: Affair, session: Session, named: dict[str, str], more: dict[str, str]) -> Reply:
        """Sign the opening; `named` by the central system, which a seamless session has none of."""
        jurisdiction = self._books.jurisdictions[session.jurisdiction_id]
        opened = replace(session, status=SessionStatus.OPEN)
        private = {"operator_reference": session.operator_reference, "player": session.player, **named}
        body = {
            "currency": session.currency,
            "jurisdiction": rules_object(jurisdiction),
            "operator": session.operator,
            "ruleset": rules_object(self._books.rulesets[session.ruleset_id]),
            "test_register": session.test_register,
            **more,
            **({"limits": limits} if (limits := session.limits.body()) else {}),
        }
        return await self._done(affair, opened, "session_open", body, private)

    async def _purchase(self, affair: Affair, session: Session) -> Reply:
        # The first purchase's affair id is the participation's id: stable from the intent on.
        participation_id = session.participation_id or affair.affair_id
        transfer = transfer_of(affair, session, Leg.PURCHASE, affair.amount_minor, participation_id)
        receipt = await self.paid(affair, session, transfer)
        if affair.attempts and affair.stage < AffairStage.PAID:
            # From here on it goes forward, whoever else looks at it: the register may come to know of it.
            affair, session = await self.stage(affair, session, AffairStage.PAID)
        try:
            right = await self._central.buy_participation(
                Purchase(
                    transaction_id=affair.affair_id,
                    regulator_session_id=session.regulator_session_id,
                    reference=participation_id,
                    player=session.player,
                    purchase_no=affair.purchase_no,
                    amount_minor=affair.amount_minor,
                    purchase_ms=affair.created_ms,
                )
            )
        except UnavailableError:
            raise
        except RgsError as refusal:
            raise await self.undone(affair, session, transfer, refusal) from None
        money = session.participation.buy(affair.amount_minor, cap_minor=None)  # the cap was checked with the intent
        bought = replace(
            session,
            participation_id=participation_id,
            regulator_participation_id=right.regulator_participation_id,
            participation=money,
            purchase_no=affair.purchase_no,
        )
        body = {
            "amount_minor": str(affair.amount_minor),
            "balance_after_minor": str(money.balance_minor),
            "balance_before_minor": str(session.balance_minor),
            "bought_minor": str(money.bought_minor),
            "participation_id": participation_id,
            "purchase_no": str(affair.purchase_no),
        }
        private = {
            "regulator_participation_id": right.regulator_participation_id,
            "wallet_transaction_id": affair.affair_id,
            **({"operator_reference": receipt.wallet_reference} if receipt.wallet_reference else {}),
        }
        counted = self._day(affair, session, purchases=1, bought_minor=affair.amount_minor)
        return await self._done(affair, bought, "purchase", body, private, counted)

    async def _end(self, affair: Affair, session: Session) -> Reply:
        paid_out = session.balance_minor
        try:
            await self._reporting.report_stages_of(session)
            await self._central.end_participation(
                ParticipationEnd(
                    transaction_id=affair.affair_id,
                    regulator_session_id=session.regulator_session_id,
                    regulator_participation_id=session.regulator_participation_id,
                    final_balance_minor=paid_out,
                    rounds=session.rounds,
                    end_ms=affair.created_ms,
                )
            )
        except UnavailableError:
            raise
        except RgsError as refusal:
            # Over already: by an answer that was lost, for nobody else ends it. The player has his money to get.
            if refusal.metadata.get("rejection") != Rejection.ENDED_TWICE:
                await self._fail(affair, session, refusal)
                raise
        # Owed to the player from here on: repeated until accepted, never cancelled.
        await self.movements.credit(transfer_of(affair, session, Leg.PAYOUT, paid_out, session.participation_id))
        money = session.participation.end()
        body = {
            "bought_minor": str(money.bought_minor),
            "paid_out_minor": str(money.paid_out_minor),
            "participation_id": session.participation_id,
            "returned_minor": str(money.returned_minor),
            "rounds": str(session.rounds),
            "staked_minor": str(money.staked_minor),
        }
        private = {
            "regulator_participation_id": session.regulator_participation_id,
            "wallet_transaction_id": transaction_of(affair),
        }
        counted = self._day(affair, session, ends=1, final_balance_minor=paid_out)
        ended = replace(session, participation=money)
        return await self._done(affair, ended, "participation_end", body, private, counted)

    async def _close(self, affair: Affair, session: Session) -> Reply:
        if session.is_seamless:
            return await self._closed(affair, session)
        try:
            await self._central.close_session(
                SessionClose(
                    transaction_id=affair.affair_id,
                    regulator_session_id=session.regulator_session_id,
                    close_ms=affair.created_ms,
                )
            )
        except UnavailableError:
            raise
        except RgsError as refusal:
            if refusal.metadata.get("rejection") != Rejection.SESSION_CLOSED:  # as above: closed already, by us
                await self._fail(affair, session, refusal)
                raise
        return await self._closed(affair, session)

    async def _closed(self, affair: Affair, session: Session) -> Reply:
        closed = replace(session, status=SessionStatus.CLOSED, close_ms=self._time_of(session))
        return await self._done(
            affair, closed, "session_close", {"reason": "OPERATOR", "rounds": str(session.rounds)}, None
        )

    # --- money ----------------------------------------------------------------------------------------------------

    async def paid(self, affair: Affair, session: Session, transfer: Transfer) -> Receipt:
        """The debit of the affair, made now or before. UnavailableError: unknown. Another RgsError: the affair has
        ended without it.
        """
        if affair.stage == AffairStage.UNDOING:
            raise await self.undone(affair, session, transfer, None)
        is_old, is_paid = self._clock.passed_ms(affair.created_ms) >= UNDO_AFTER_MS, affair.stage == AffairStage.PAID
        if is_old or affair.stage != AffairStage.BEGUN:
            known = await self.movements.known(transfer)
            if known is not None and is_standing(known):
                return known
            if known is None and is_old and not is_paid:
                raise await self.undone(affair, session, transfer, WalletUnavailableError("the debit never arrived"))
        try:
            return await self.movements.debit(transfer, await self._token_of(session))
        except UnavailableError:
            raise
        except RgsError as refusal:
            if is_paid:  # it was taken, and the central system may know of it: no refusal of now undoes either
                raise contradiction(transfer, refusal) from None
            await self._fail(affair, session, refusal)
            raise

    async def _token_of(self, session: Session) -> str:
        """The operator's token of the session, empty where he has given none. TokenSealedError."""
        sealed = await self._store.session_token(session.session_id)
        return self._instance.sealer.unseal_token(session.session_id, sealed) if sealed else ""

    async def undone(self, affair: Affair, session: Session, transfer: Transfer, refusal: RgsError | None) -> RgsError:
        """Roll the debit back and end the affair; what its caller is told, now and for ever. Raises UnavailableError
        while the wallet does not answer. `refusal` is why; None where that was stored before.
        """
        # Whoever waits since the beginning is told why; who was told that it is unknown, that it was given up.
        is_first = not affair.attempts and affair.stage == AffairStage.BEGUN
        if affair.stage != AffairStage.UNDOING:
            # Durable before the first rollback leaves: from here on nothing else may be done with the debit.
            reason = refusal.reason if refusal is not None else affair.reason
            affair, session = await self.stage(replace(affair, reason=reason), session, AffairStage.UNDOING)
        await self.movements.rollback(transfer)
        if refusal is None or not is_first or isinstance(refusal, UnavailableError | RoundChangedError):
            refusal = given_up(affair)
        await self._fail(affair, session, refusal)
        return refusal

    async def stage(self, affair: Affair, session: Session, stage: AffairStage) -> tuple[Affair, Session]:
        """Affair and session behind a commit that no other process can have made otherwise."""
        affair, session = replace(affair, stage=stage), replace(session, version=session.version + 1)
        await self._commit(Change(session=session, affair=affair))
        return affair, session

    # --- ends -----------------------------------------------------------------------------------------------------

    async def _done(
        self,
        affair: Affair,
        session: Session,
        kind: str,
        body: dict[str, Any],
        block: dict[str, str] | None,
        counted: DayCount | None = None,
    ) -> Reply:
        """Commit the effect, its statement and its stored answer at once."""
        now_ms = self._time_of(session)
        session = replace(session, version=session.version + 1, pending_affair="", last_ms=now_ms)
        body["time"] = format_time(now_ms)
        private = None
        if block is not None:
            salt = self._instance.random_bytes(SALT_BYTES)
            private = {"block": block, "salt": salt.hex()}
            body["private"] = private_hash(salt, block).hex()
        encoded = self._encode(affair.method, self._books.view(session, now_ms), None)
        change = Change(
            session=session,
            records=(*_left_over(session), *(balance_told(session) if affair.kind == "open" else ())),
            drafts=(Draft(kind, body, private),),
            answer=Answer(affair.party, affair.method, affair.request_id, affair.digest, encoded, now_ms),
            affair=replace(affair, status="done"),
            counted=counted,
        )
        (signed,) = await self._commit(change)
        return Reply(encoded, signed.envelope)

    async def _fail_opening(self, affair: Affair, session: Session, refusal: RgsError | None) -> None:
        closed = replace(session, status=SessionStatus.CLOSED, close_ms=self._time_of(session))
        await self._fail(affair, closed, refusal)

    async def _fail(self, affair: Affair, session: Session, refusal: RgsError | None) -> None:
        """The affair has come to nothing; `refusal` is the answer of its request from this commit on. None: the request
        has another one.
        """
        session = replace(session, version=session.version + 1, pending_affair="")
        ended = replace(affair, status="failed")
        if refusal is not None:
            ended = replace(affair, status="undone", refusal=format_refusal(refusal))
        await self._commit(Change(session=session, affair=ended, records=_left_over(session)))

    async def _commit(self, change: Change) -> Any:
        try:
            return await self._store.commit(change)
        except SessionRaceError:
            raise _changed() from None

    def _day(self, affair: Affair, session: Session, **sums: int) -> DayCount:
        """What adds to the day of the affair, by the time that the central system is told."""
        return DayCount(session.operator, session.currency, format_date(affair.created_ms), **sums)

    def _time_of(self, session: Session) -> int:
        return max(self._clock.now_ms(), session.last_ms)


def _left_over(session: Session) -> tuple[Record, ...]:
    """What goes with a session that is closed."""
    return (TokenDropped(session.session_id),) if session.status is SessionStatus.CLOSED else ()


def _changed() -> SessionChangedError:
    return SessionChangedError("the session was changed by another request; read it again")
