"""The multi-step operations of a session: open, purchase, end of participation, close (ARCHITECTURE 2.17).

Live traffic and recovery call the same `advance()`. The intent is stored before the first call to another system. Every
such call carries the operation's id as its transaction id, so all steps can be repeated and have one effect. A call
without an answer leaves the operation pending. Only a definite refusal ends an operation without its effect.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
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
"""Age of an operation from which a debit that the wallet does not know is rolled back: nobody waits for it."""
OWED: Final = frozenset({"end", "return"})
"""The kinds that pay the player. No refusal of the wallet ends them."""
BESIDE: Final = frozenset({"return"})
"""The kinds that a session does not wait for."""


@dataclass(kw_only=True, eq=False, repr=False)
class Affairs:
    """Advances stored operations. Others store the intents."""

    store: Store
    instance: Instance
    books: Books
    clock: Clock
    wallet: Wallet
    central: CentralSystem
    encode: Encode
    reporting: Reporting
    returning: Returning

    def __post_init__(self) -> None:
        self.movements = Movements(self.wallet)
        self.steps: dict[str, Callable[[Affair, Session], Awaitable[Reply]]] = {
            "open": self._open,
            "purchase": self._purchase,
            "end": self._end,
            "close": self._close,
        }

    async def advance(self, affair: Affair) -> Reply:
        """Do the remaining steps of an operation, under its session's lock.

        UnavailableError: try again later. SessionChangedError: another process has ended it. Another RgsError: it has
        ended without its effect, or, if it pays the player, it stays owed.
        """
        try:
            return await self.steps[affair.kind](affair, await self._session(affair))
        except StoreError:
            raise
        except SessionChangedError:
            stored = await self.store.affair(affair.affair_id)
            if stored is not None and stored.status == "undone":  # with the error that the other process got
                raise refusal_of(stored) from None
            raise
        except RgsError as error:
            if isinstance(error, UnavailableError) or affair.kind in OWED:
                await self._note(affair.affair_id, error)
            raise

    async def give_up_opening(self, affair: Affair) -> None:
        """End the opening of a session before its first outward call: the request has opened another session."""
        await self._fail_opening(affair, await self._session(affair), None)

    async def _session(self, affair: Affair) -> Session:
        """The stored session; SessionChangedError if the operation is no longer pending in it."""
        session = await self.store.session(affair.session_id, fresh=True)
        if session is None:
            raise NotFoundError(f"no session {affair.session_id}", kind="session", session_id=affair.session_id)
        if affair.kind in BESIDE:
            stored = await self.store.affair(affair.affair_id)
            is_pending = stored is not None and stored.status == "pending"
        else:
            is_pending = session.pending_affair == affair.affair_id
        if not is_pending:
            raise _changed()
        return session

    async def resume(self, affair: Affair, digest: bytes) -> Reply:
        """The answer to a repeat of the request that began this operation; raises the refusal that has ended it."""
        verify_same_content(affair.digest, digest, affair.request_id, affair.method)
        if affair.status == "undone":
            raise refusal_of(affair)
        return await self.advance(affair)

    async def _note(self, affair_id: str, error: RgsError) -> None:
        """Store the reason of a failed attempt, and when to try again."""
        affair = await self.store.affair(affair_id)
        if affair is None or affair.status != "pending":
            return
        stage = affair.stage
        if affair.kind == "purchase" and isinstance(error, RegulatorUnavailableError):
            stage = max(stage, AffairStage.PAID)  # the regulator is asked after the debit, and may know the purchase
        elif isinstance(error, WalletUnavailableError):
            stage = max(stage, AffairStage.UNKNOWN)
        attempts = affair.attempts + 1
        next_ms = self.clock.now_ms() + gap_ms(affair_id, attempts)
        noted = replace(affair, stage=stage, attempts=attempts, next_ms=next_ms, reason=error.reason)
        with contextlib.suppress(StoreError):  # it stays pending either way
            await self.store.commit(Change(affair=noted))

    # --- the four operations -----------------------------------------------------------------------------------------

    async def _open(self, affair: Affair, session: Session) -> Reply:
        jurisdiction = self.books.jurisdictions[session.jurisdiction_id]
        if session.is_seamless:
            with contextlib.suppress(RgsError):  # it only decides what is offered; it is read once
                session = session.told(await self.movements.balance(session), self._time_of(session))
            return await self._opened(affair, session, {}, {"funding": session.funding.value})
        try:
            granted = await self.central.open_session(
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
        """Sign the opening. `named` is what the regulator issued; it is empty in seamless mode."""
        jurisdiction = self.books.jurisdictions[session.jurisdiction_id]
        opened = replace(session, status=SessionStatus.OPEN)
        private = {"operator_reference": session.operator_reference, "player": session.player, **named}
        body = {
            "currency": session.currency,
            "jurisdiction": rules_object(jurisdiction),
            "operator": session.operator,
            "ruleset": rules_object(self.books.rulesets[session.ruleset_id]),
            "test_register": session.test_register,
            **more,
            **({"limits": limits} if (limits := session.limits.body()) else {}),
        }
        return await self._done(affair, opened, "session_open", body, private)

    async def _purchase(self, affair: Affair, session: Session) -> Reply:
        # The id of the first purchase's operation is the participation's id: stable from the intent on.
        participation_id = session.participation_id or affair.affair_id
        transfer = transfer_of(affair, session, Leg.PURCHASE, affair.amount_minor, participation_id)
        receipt = await self.paid(affair, session, transfer)
        if affair.attempts and affair.stage < AffairStage.PAID:
            # From here on no process may undo it: the regulator may learn of the purchase.
            affair, session = await self.stage(affair, session, AffairStage.PAID)
        try:
            right = await self.central.buy_participation(
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
            await self.reporting.report_stages_of(session)
            await self.central.end_participation(
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
            # ENDED_TWICE: our own earlier call ended it and its answer was lost. The player still gets the money.
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
        try:
            if not session.is_seamless:
                await self.central.close_session(
                    SessionClose(
                        transaction_id=affair.affair_id,
                        regulator_session_id=session.regulator_session_id,
                        close_ms=affair.created_ms,
                    )
                )
        except UnavailableError:
            raise
        except RgsError as refusal:
            if refusal.metadata.get("rejection") != Rejection.SESSION_CLOSED:  # as above: our earlier call closed it
                await self._fail(affair, session, refusal)
                raise
        closed = replace(session, status=SessionStatus.CLOSED, close_ms=self._time_of(session))
        body = {"reason": "OPERATOR", "rounds": str(session.rounds)}
        return await self._done(affair, closed, "session_close", body, None)

    # --- money ----------------------------------------------------------------------------------------------------

    async def paid(self, affair: Affair, session: Session, transfer: Transfer) -> Receipt:
        """The receipt of the operation's debit, made now or before.

        UnavailableError: the outcome is unknown. Another RgsError: the operation has ended without the debit.
        """
        if affair.stage == AffairStage.UNDOING:
            raise await self.undone(affair, session, transfer, None)
        is_old, is_paid = self.clock.passed_ms(affair.created_ms) >= UNDO_AFTER_MS, affair.stage == AffairStage.PAID
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
            if is_paid:  # the money was taken, and the regulator may know of it: a refusal now undoes neither
                raise contradiction(transfer, refusal) from None
            await self._fail(affair, session, refusal)
            raise

    async def _token_of(self, session: Session) -> str:
        """The operator's token of the session, empty if it gave none; TokenSealedError if it cannot be unsealed."""
        sealed = await self.store.session_token(session.session_id)
        return self.instance.sealer.unseal_token(session.session_id, sealed) if sealed else ""

    async def undone(self, affair: Affair, session: Session, transfer: Transfer, refusal: RgsError | None) -> RgsError:
        """Roll the debit back and end the operation; return the error that its request gets from now on.

        `refusal` is the reason; None if it was stored before. Raises UnavailableError while the wallet does not answer.
        """
        # A caller that still waits gets the reason. One that was told "unknown" gets TRANSACTION_ROLLED_BACK.
        is_first = not affair.attempts and affair.stage == AffairStage.BEGUN
        if affair.stage != AffairStage.UNDOING:
            # Committed before the first rollback is sent: from here on the debit may only be undone.
            reason = refusal.reason if refusal is not None else affair.reason
            affair, session = await self.stage(replace(affair, reason=reason), session, AffairStage.UNDOING)
        await self.movements.rollback(transfer)
        if refusal is None or not is_first or isinstance(refusal, UnavailableError | RoundChangedError):
            refusal = given_up(affair)
        await self._fail(affair, session, refusal)
        return refusal

    async def stage(self, affair: Affair, session: Session, stage: AffairStage) -> tuple[Affair, Session]:
        """Commit a new stage; return operation and session after it."""
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
        """Commit the effect, its statement and its stored answer together."""
        now_ms = self._time_of(session)
        session = replace(session, version=session.version + 1, pending_affair="", last_ms=now_ms)
        body["time"] = format_time(now_ms)
        private = None
        if block is not None:
            salt = self.instance.random_bytes(SALT_BYTES)
            private = {"block": block, "salt": salt.hex()}
            body["private"] = private_hash(salt, block).hex()
        encoded = self.encode(affair.method, self.books.view(session, now_ms), None)
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
        """End the operation without effect. `refusal` answers its request from now on; None: it has another answer."""
        session = replace(session, version=session.version + 1, pending_affair="")
        ended = replace(affair, status="failed")
        if refusal is not None:
            ended = replace(affair, status="undone", refusal=format_refusal(refusal))
        await self._commit(Change(session=session, affair=ended, records=_left_over(session)))

    async def _commit(self, change: Change) -> Any:
        try:
            return await self.store.commit(change)
        except SessionRaceError:
            raise _changed() from None

    def _day(self, affair: Affair, session: Session, **sums: int) -> DayCount:
        """What is added to the day's totals, by the time that the regulator gets."""
        return DayCount(session.operator, session.currency, format_date(affair.created_ms), **sums)

    def _time_of(self, session: Session) -> int:
        return max(self.clock.now_ms(), session.last_ms)


def _left_over(session: Session) -> tuple[Record, ...]:
    """Records that go with a session: a closed one loses its token."""
    return (TokenDropped(session.session_id),) if session.status is SessionStatus.CLOSED else ()


def _changed() -> SessionChangedError:
    return SessionChangedError("the session was changed by another request; read it again")
