"""The multi-step operations of a session: open, purchase, end of participation, close (ARCHITECTURE 2.17).

Live traffic and recovery call the same `advance()`. The intent is stored before the first call to another system. Every
such call carries the operation's id as its transaction id, so all steps can be repeated and have one effect. A call
without an answer leaves the operation pending. Only a definite refusal ends an operation without its effect.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from rgs.core.bet_limits import bet_limits_body
from rgs.core.clock import Clock
from rgs.core.errors import (
    NotFoundError,
    RegulatorUnavailableError,
    RgsError,
    SessionChangedError,
    UnavailableError,
    WalletUnavailableError,
)
from rgs.core.rounds import rules_object
from rgs.core.sessions import PLAY_MONEY, Session, SessionStatus
from rgs.core.statements import SALT_BYTES, private_hash
from rgs.core.times import format_date, format_time
from rgs.core.views import RoundChangedError
from rgs.ports.regulator import ParticipationEnd, Purchase, Regulator, Rejection, SessionClose, SessionOpening
from rgs.ports.wallet import Receipt, Transfer, TransferPurpose, Wallet
from rgs.service.callers import Encode, Reply, verify_same_content
from rgs.service.game_catalog import GameCatalog
from rgs.service.instance import Instance
from rgs.service.money.refusals import format_refusal, given_up, refusal_of
from rgs.service.money.returning import Returning
from rgs.service.money.transfers import Transfers, contradiction, gap_ms, is_standing, transaction_of, transfer_of
from rgs.service.play.requests import free_bet_of
from rgs.service.play.settlement import balance_reported
from rgs.service.regulator.reports import Reporting
from rgs.store.changes import (
    Answer,
    Change,
    DayCount,
    Draft,
    Operation,
    OperationProgress,
    Record,
    ReferenceFreed,
    SessionRaceError,
    StoreError,
    TokenDropped,
)
from rgs.store.free_bets import GrantReopened
from rgs.store.interface import Store
from rgs.store.table_records import SittingEnded

UNDO_AFTER_MS: Final = 300_000
"""Age of an operation from which a debit that the wallet does not know is rolled back: nobody waits for it."""
OWED: Final = frozenset({"end", "credit"})
"""The kinds that pay the player. No refusal of the wallet ends them."""
BESIDE: Final = frozenset({"credit"})
"""The kinds that a session does not wait for."""


@dataclass(kw_only=True, eq=False, repr=False)
class Operations:
    """Advances stored operations. Others store the intents."""

    store: Store
    instance: Instance
    games: GameCatalog
    clock: Clock
    wallet: Wallet
    regulator: Regulator
    encode: Encode
    reporting: Reporting
    returning: Returning
    left_table: Callable[[str], None] = lambda _: None
    """Called with a session that has closed and so left its table."""

    def __post_init__(self) -> None:
        self.transfers = Transfers(self.wallet)
        self.steps: dict[str, Callable[[Operation, Session], Awaitable[Reply]]] = {
            "open": self._open,
            "purchase": self._purchase,
            "end": self._end,
            "close": self._close,
        }

    async def advance(self, operation: Operation) -> Reply:
        """Do the remaining steps of an operation, under its session's lock.

        UnavailableError: try again later. SessionChangedError: another process has ended it. Another RgsError: it has
        ended without its effect, or, if it pays the player, it stays owed.
        """
        try:
            with self._traced(operation):
                return await self.steps[operation.kind](operation, await self._session(operation))
        except StoreError:
            raise
        except SessionChangedError:
            stored = await self.store.operation(operation.operation_id)
            if stored is not None and stored.status == "undone":  # with the error that the other process got
                raise refusal_of(stored) from None
            raise
        except RgsError as error:
            if isinstance(error, UnavailableError) or operation.kind in OWED:
                await self._note(operation.operation_id, error)
            raise

    def _traced(self, operation: Operation) -> contextlib.AbstractContextManager[None]:
        """What recovery does belongs to the trace of the call that began the operation."""
        if self.store.tracer is None:
            return contextlib.nullcontext()
        return self.store.tracer.resumed(operation.traceparent, f"recover {operation.kind}")

    async def give_up_opening(self, operation: Operation) -> None:
        """End the opening of a session before its first outward call: the request has opened another session."""
        await self._fail_opening(operation, await self._session(operation), None)

    async def _session(self, operation: Operation) -> Session:
        """The stored session; SessionChangedError if the operation is no longer pending in it."""
        session = await self.store.session(operation.session_id, fresh=True)
        if session is None:
            raise NotFoundError(f"no session {operation.session_id}", kind="session", session_id=operation.session_id)
        if operation.kind in BESIDE:
            stored = await self.store.operation(operation.operation_id)
            is_pending = stored is not None and stored.status == "pending"
        else:
            is_pending = session.pending_operation == operation.operation_id
        if not is_pending:
            raise _changed()
        return session

    async def resume(self, operation: Operation, digest: bytes) -> Reply:
        """The answer to a repeat of the request that began this operation; raises the refusal that has ended it."""
        verify_same_content(operation.digest, digest, operation.request_id, operation.method)
        if operation.status == "undone":
            raise refusal_of(operation)
        return await self.advance(operation)

    async def _note(self, operation_id: str, error: RgsError) -> None:
        """Store the reason of a failed attempt, and when to try again. The store changes no ended operation."""
        operation = await self.store.operation(operation_id)
        if operation is None:
            return
        progress = operation.progress
        if operation.kind == "purchase" and isinstance(error, RegulatorUnavailableError):
            # The regulator is asked after the debit, and may know the purchase.
            progress = max(progress, OperationProgress.PAID)
        elif isinstance(error, WalletUnavailableError):
            progress = max(progress, OperationProgress.UNKNOWN)
        attempts = operation.attempts + 1
        next_ms = self.clock.now_ms() + gap_ms(operation_id, attempts)
        noted = replace(operation, progress=progress, attempts=attempts, next_ms=next_ms, reason=error.reason)
        with contextlib.suppress(StoreError):  # it stays pending either way
            await self.store.commit(Change(operation=noted))

    # --- the four operations -----------------------------------------------------------------------------------------

    async def _open(self, operation: Operation, session: Session) -> Reply:
        jurisdiction = self.games.jurisdictions[session.jurisdiction_id]
        if session.is_demo:
            return await self._opened(operation, session, {}, {"mode": session.mode.value})
        if session.is_seamless:
            with contextlib.suppress(RgsError):  # it only decides what is offered; it is read once
                session = session.reported(await self.transfers.balance(session), self._time_of(session))
            return await self._opened(operation, session, {}, {"funding": session.funding.value})
        try:
            granted = await self.regulator.open_session(
                SessionOpening(
                    transaction_id=operation.operation_id,
                    reference=session.session_id,
                    operator=session.operator,
                    jurisdiction=jurisdiction.id,
                    test_regulator_allowed=jurisdiction.test_regulator_allowed,
                    ruleset=session.ruleset_id,
                    currency=session.currency,
                    participation_cap_minor=jurisdiction.cap_minor(session.currency),
                    open_ms=operation.created_ms,
                )
            )
        except UnavailableError:
            raise
        except RgsError as refusal:
            await self._fail_opening(operation, session, refusal)
            raise
        opened = replace(
            session,
            status=SessionStatus.OPEN,
            regulator_session_id=granted.regulator_session_id,
            test_regulator=granted.test_regulator,
        )
        named = {
            "regulator": "test-regulator" if granted.test_regulator else "regulator",
            "regulator_session_id": granted.regulator_session_id,
        }
        return await self._opened(operation, opened, named, {})

    async def _opened(
        self, operation: Operation, session: Session, named: dict[str, str], more: dict[str, str]
    ) -> Reply:
        """Sign the opening. `named` is what the regulator issued; it is empty in seamless mode and with play money."""
        jurisdiction = self.games.jurisdictions[session.jurisdiction_id]
        opened = replace(session, status=SessionStatus.OPEN)
        private = {"operator_reference": session.operator_reference, "player": session.player, **named}
        body = {
            "currency": session.currency,
            "jurisdiction": rules_object(jurisdiction),
            "operator": session.operator,
            "ruleset": rules_object(self.games.rulesets[session.ruleset_id]),
            "test_regulator": session.test_regulator,
            **more,
            **({"table": session.table_id} if session.table_id else {}),
            **({"limits": limits} if (limits := session.limits.body()) else {}),
            **({"bet_limits": bet_limits_body(session.bet_limits)} if session.bet_limits else {}),
        }
        return await self._done(operation, opened, "session_open", body, private)

    async def _purchase(self, operation: Operation, session: Session) -> Reply:
        # The id of the first purchase's operation is the participation's id: stable from the intent on.
        participation_id = session.participation_id or operation.operation_id
        if session.is_demo:
            return await self._bought(operation, session, participation_id, {"reason": PLAY_MONEY})
        transfer = transfer_of(operation, session, TransferPurpose.PURCHASE, operation.amount_minor, participation_id)
        receipt = await self.paid(operation, session, transfer)
        if operation.attempts and operation.progress < OperationProgress.PAID:
            # From here on no process may undo it: the regulator may learn of the purchase.
            operation, session = await self.progress(operation, session, OperationProgress.PAID)
        try:
            right = await self.regulator.buy_participation(
                Purchase(
                    transaction_id=operation.operation_id,
                    regulator_session_id=session.regulator_session_id,
                    reference=participation_id,
                    player=session.player,
                    purchase_no=operation.purchase_no,
                    amount_minor=operation.amount_minor,
                    purchase_ms=operation.created_ms,
                ),
                session.regulator_participation_id,
            )
        except UnavailableError:
            raise
        except RgsError as refusal:
            raise await self.undone(operation, session, transfer, refusal) from None
        private = {
            "regulator_participation_id": right.regulator_participation_id,
            "wallet_transaction_id": operation.operation_id,
            **({"operator_reference": receipt.wallet_reference} if receipt.wallet_reference else {}),
        }
        counted = self._day(operation, session, purchases=1, bought_minor=operation.amount_minor)
        return await self._bought(operation, session, participation_id, private, counted)

    async def _bought(
        self,
        operation: Operation,
        session: Session,
        participation_id: str,
        private: dict[str, str],
        counted: DayCount | None = None,
    ) -> Reply:
        """Sign the purchase: money has moved and the regulator knows, or neither is due, because it is play money."""
        money = session.participation.buy(operation.amount_minor, cap_minor=None)  # the cap was checked with the intent
        bought = replace(
            session,
            participation_id=participation_id,
            regulator_participation_id=private.get("regulator_participation_id", ""),
            participation=money,
            purchase_no=operation.purchase_no,
        )
        body = {
            "amount_minor": str(operation.amount_minor),
            "balance_after_minor": str(money.balance_minor),
            "balance_before_minor": str(session.balance_minor),
            "bought_minor": str(money.bought_minor),
            "participation_id": participation_id,
            "purchase_no": str(operation.purchase_no),
        }
        return await self._done(operation, bought, "purchase", body, private, counted)

    async def _end(self, operation: Operation, session: Session) -> Reply:
        paid_out = session.balance_minor
        if session.is_demo:
            return await self._ended(operation, session, {"reason": PLAY_MONEY})
        try:
            await self.reporting.report_stages_of(session)
            await self.regulator.end_participation(
                ParticipationEnd(
                    transaction_id=operation.operation_id,
                    regulator_session_id=session.regulator_session_id,
                    regulator_participation_id=session.regulator_participation_id,
                    final_balance_minor=paid_out,
                    rounds=session.rounds,
                    end_ms=operation.created_ms,
                )
            )
        except UnavailableError:
            raise
        except RgsError as refusal:
            # ENDED_TWICE: our own earlier call ended it and its answer was lost. The player still gets the money.
            if refusal.metadata.get("rejection") != Rejection.ENDED_TWICE:
                await self._fail(operation, session, refusal)
                raise
        # Owed to the player from here on: repeated until accepted, never cancelled.
        await self.transfers.credit(
            transfer_of(operation, session, TransferPurpose.PAYOUT, paid_out, session.participation_id)
        )
        private = {
            "regulator_participation_id": session.regulator_participation_id,
            "wallet_transaction_id": transaction_of(operation),
        }
        counted = self._day(operation, session, ends=1, final_balance_minor=paid_out)
        return await self._ended(operation, session, private, counted)

    async def _ended(
        self, operation: Operation, session: Session, private: dict[str, str], counted: DayCount | None = None
    ) -> Reply:
        """Sign the end of the participation. Play money that is left is gone."""
        money = session.participation.end()
        body = {
            "bought_minor": str(money.bought_minor),
            "paid_out_minor": str(money.paid_out_minor),
            "participation_id": session.participation_id,
            "returned_minor": str(money.returned_minor),
            "rounds": str(session.rounds),
            "staked_minor": str(money.staked_minor),
        }
        ended = replace(session, participation=money)
        return await self._done(operation, ended, "participation_end", body, private, counted)

    async def _close(self, operation: Operation, session: Session) -> Reply:
        try:
            if not (session.is_seamless or session.is_demo):
                await self.regulator.close_session(
                    SessionClose(
                        transaction_id=operation.operation_id,
                        regulator_session_id=session.regulator_session_id,
                        close_ms=operation.created_ms,
                    )
                )
        except UnavailableError:
            raise
        except RgsError as refusal:
            if refusal.metadata.get("rejection") != Rejection.SESSION_CLOSED:  # as above: our earlier call closed it
                await self._fail(operation, session, refusal)
                raise
        closed = replace(session, status=SessionStatus.CLOSED, close_ms=self._time_of(session))
        body = {"reason": "OPERATOR", "rounds": str(session.rounds)}
        reply = await self._done(operation, closed, "session_close", body, None)
        if session.table_id:
            self.left_table(session.session_id)
        return reply

    # --- money ----------------------------------------------------------------------------------------------------

    async def paid(self, operation: Operation, session: Session, transfer: Transfer) -> Receipt:
        """The receipt of the operation's debit, made now or before.

        UnavailableError: the outcome is unknown. Another RgsError: the operation has ended without the debit.
        """
        if operation.progress == OperationProgress.UNDOING:
            raise await self.undone(operation, session, transfer, None)
        is_old = self.clock.passed_ms(operation.created_ms) >= UNDO_AFTER_MS
        is_paid = operation.progress == OperationProgress.PAID
        if is_old or operation.progress != OperationProgress.BEGUN:
            known = await self.transfers.known(transfer)
            if known is not None and is_standing(known):
                return known
            if known is None and is_old and not is_paid:
                raise await self.undone(operation, session, transfer, WalletUnavailableError("the debit never arrived"))
        try:
            return await self.transfers.debit(transfer, await self._token_of(session))
        except UnavailableError:
            raise
        except RgsError as refusal:
            if is_paid:  # the money was taken, and the regulator may know of it: a refusal now undoes neither
                raise contradiction(transfer, refusal) from None
            await self._fail(operation, session, refusal)
            raise

    async def _token_of(self, session: Session) -> str:
        """The operator's token of the session, empty if it gave none; TokenSealedError if it cannot be unsealed."""
        sealed = await self.store.session_token(session.session_id)
        return self.instance.sealer.unseal_token(session.session_id, sealed) if sealed else ""

    async def undone(
        self, operation: Operation, session: Session, transfer: Transfer, refusal: RgsError | None
    ) -> RgsError:
        """Roll the debit back and end the operation; return the error that its request gets from now on.

        `refusal` is the reason; None if it was stored before. Raises UnavailableError while the wallet does not answer.
        """
        # A caller that still waits gets the reason. One that was told "unknown" gets TRANSACTION_ROLLED_BACK.
        is_first = not operation.attempts and operation.progress == OperationProgress.BEGUN
        if operation.progress != OperationProgress.UNDOING:
            # Committed before the first rollback is sent: from here on the debit may only be undone.
            reason = refusal.reason if refusal is not None else operation.reason
            operation, session = await self.progress(
                replace(operation, reason=reason), session, OperationProgress.UNDOING
            )
        await self.transfers.rollback(transfer)
        if refusal is None or not is_first or isinstance(refusal, UnavailableError | RoundChangedError):
            refusal = given_up(operation)
        await self._fail(operation, session, refusal)
        return refusal

    async def progress(
        self, operation: Operation, session: Session, progress: OperationProgress
    ) -> tuple[Operation, Session]:
        """Commit a new progress; return operation and session after it."""
        operation, session = replace(operation, progress=progress), replace(session, version=session.version + 1)
        await self._commit(Change(session=session, operation=operation))
        return operation, session

    # --- ends -----------------------------------------------------------------------------------------------------

    async def _done(
        self,
        operation: Operation,
        session: Session,
        kind: str,
        body: dict[str, Any],
        block: dict[str, str] | None,
        counted: DayCount | None = None,
    ) -> Reply:
        now_ms = self._time_of(session)
        session = replace(session, version=session.version + 1, pending_operation="", last_ms=now_ms)
        body["time"] = format_time(now_ms)
        private = None
        if block is not None:
            salt = self.instance.random_bytes(SALT_BYTES)
            private = {"block": block, "salt": salt.hex()}
            body["private"] = private_hash(salt, block).hex()
        encoded = self.encode(operation.method, self.games.view(session, now_ms), None)
        change = Change(
            session=session,
            records=(*_left_over(session), *(balance_reported(session) if operation.kind == "open" else ())),
            drafts=(Draft(kind, body, private),),
            answer=Answer(operation.party, operation.method, operation.request_id, operation.digest, encoded, now_ms),
            operation=replace(operation, status="done"),
            counted=counted,
        )
        (signed,) = await self._commit(change)
        return Reply(encoded, signed.envelope)

    async def _fail_opening(self, operation: Operation, session: Session, refusal: RgsError | None) -> None:
        closed = replace(session, status=SessionStatus.CLOSED, close_ms=self._time_of(session))
        await self._fail(operation, closed, refusal, (ReferenceFreed(session.session_id),))

    async def _fail(
        self, operation: Operation, session: Session, refusal: RgsError | None, more: tuple[Record, ...] = ()
    ) -> None:
        """End the operation without effect. `refusal` answers its request from now on; None: it has another answer."""
        session = replace(session, version=session.version + 1, pending_operation="")
        ended = replace(operation, status="failed")
        if refusal is not None:
            ended = replace(operation, status="undone", refusal=format_refusal(refusal))
        records = (*_left_over(session), *_reopened(operation), *more)
        await self._commit(Change(session=session, operation=ended, records=records))

    async def _commit(self, change: Change) -> Any:
        try:
            return await self.store.commit(change)
        except SessionRaceError:
            raise _changed() from None

    def _day(self, operation: Operation, session: Session, **sums: int) -> DayCount:
        """What is added to the day's totals, by the time that the regulator gets."""
        return DayCount(session.operator, session.currency, format_date(operation.created_ms), **sums)

    def _time_of(self, session: Session) -> int:
        return max(self.clock.now_ms(), session.last_ms)


def _left_over(session: Session) -> tuple[Record, ...]:
    """Records that go with a session: a closed one loses its token, and its seat at a table."""
    if session.status is not SessionStatus.CLOSED:
        return ()
    seat = (SittingEnded(session.session_id),) if session.table_id else ()
    return (TokenDropped(session.session_id), *seat)


def _reopened(operation: Operation) -> tuple[Record, ...]:
    """The free bet of a start that has come to nothing can be played again."""
    if not free_bet_of(operation):
        return ()
    return (GrantReopened(free_bet_of(operation).partition(":")[2], json.loads(operation.detail)["round_id"]),)


def _changed() -> SessionChangedError:
    return SessionChangedError("the session was changed by another request; read it again")
