"""Bets that the wallet pays (docs/money.md): in a session funded bet by bet each stake is debited before it is played
and each return credited after. A free bet is debited from the operator's campaign in the same way.

Its steps run in `Operations.advance`, for live play and recovery alike (ARCHITECTURE 2.17). The intent is stored first,
then the wallet is called, then round and transfer are signed in one commit. So there is no draw and no decision without
its money, and no money without its decision. A credit is owed from the commit of its final on; the next round does not
wait for it.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Awaitable
from dataclasses import dataclass, replace
from typing import Any

from rgs.core.clock import Clock
from rgs.core.errors import (
    DisabledError,
    DurationLimitError,
    FreeBetRefusedError,
    GuardClosedError,
    RgsError,
    RngUnavailableError,
    SessionChangedError,
    UnavailableError,
)
from rgs.core.free_bets import Grant
from rgs.core.games.types import Action
from rgs.core.sessions import Session
from rgs.core.statements import format_canonical
from rgs.core.values import changed
from rgs.ports.wallet import Receipt, TransactionStatus, Transfer, TransferPurpose
from rgs.service.callers import Reply
from rgs.service.instance import Instance
from rgs.service.money.transfers import transfer_of
from rgs.service.play.operations import Operations
from rgs.service.play.play import Play, RequestRefusedError
from rgs.service.play.requests import Act, StartRound, free_bet_of, intent_of
from rgs.service.play.settlement import balance_reported
from rgs.store.changes import Change, Operation, OperationProgress, RequestSeenError, SessionRaceError
from rgs.store.free_bets import GrantUsed
from rgs.store.interface import Store


@dataclass(kw_only=True, eq=False, repr=False)
class Seamless:
    """Begins and advances the operations of play in seamless mode."""

    store: Store
    instance: Instance
    clock: Clock
    operations: Operations
    play: Play

    def __post_init__(self) -> None:
        self.operations.steps |= {"start": self._start, "act": self._act, "credit": self._return}
        self.play.seamless = self

    async def resume(self, session: Session, party: str, request: StartRound | Act, digest: bytes) -> Reply | None:
        """Continue what this request began before; None if it is new. OperationPendingError if
        another one is pending.
        """
        known = await self.store.operation_of_request(party, type(request).__name__, request.request_id)
        if known is None:
            session.verify_no_operation()
            return None
        return await self._heard(session, party, request, self.operations.resume(known, digest))

    async def fund(
        self,
        session: Session,
        party: str,
        request: StartRound | Act,
        digest: bytes,
        amount_minor: int,
        grant: Grant | None = None,
    ) -> Reply:
        """Debit what the request costs, and do it. RequestRefusedError carries an error that is final for this call.

        With a grant it is debited from the campaign, and the grant is used from the intent on.
        """
        operation = self._intent(session, party, request, digest, amount_minor, grant)
        begun = changed(session, version=session.version + 1, pending_operation=operation.operation_id)
        used = () if grant is None else (GrantUsed(_round_of(operation), grant.grant_id),)
        try:
            await self.store.commit(Change(session=begun, operation=operation, records=used))
        except RequestSeenError:
            raise SessionRaceError("the session was changed by another request") from None
        return await self._heard(session, party, request, self.operations.advance(operation))

    async def _heard(self, session: Session, party: str, request: StartRound | Act, advance: Awaitable[Reply]) -> Reply:
        """The operation's reply. Its errors become RequestRefusedError, so that the step is not tried again."""
        try:
            reply = await advance
        except SessionRaceError:
            raise
        except SessionChangedError as error:  # another process has moved it: read its state again
            raise SessionRaceError(error.message) from None
        except RgsError as error:
            if await self.store.answer(party, type(request).__name__, request.request_id) is not None:
                raise
            raise RequestRefusedError(error) from None
        await self.pay(session.session_id)
        return reply

    async def pay(self, session_id: str) -> None:
        """Try to credit what the session's last round returns. Recovery repeats what the wallet does not accept."""
        operation = await self.store.round_credit(session_id)
        if operation is not None:
            with contextlib.suppress(RgsError):
                await self.operations.advance(operation)

    # --- the steps ------------------------------------------------------------------------------------------------

    async def _start(self, operation: Operation, session: Session) -> Reply:
        detail = json.loads(operation.detail)
        bets = {bet: int(amount) for bet, amount in detail["bets"].items()}
        free_bet = free_bet_of(operation)
        request = StartRound(operation.request_id, session.session_id, int(detail["round_no"]), bets, free_bet)
        purpose = TransferPurpose.FREE_BET if free_bet else TransferPurpose.BET
        transfer = _transfer(operation, session, purpose, detail["round_id"])
        if operation.progress != OperationProgress.UNDOING:
            try:
                self.play.verify_may_deal(session)
            except RgsError as refusal:
                raise await self.operations.undone(operation, session, transfer, refusal) from None
        session = self._reported(session, await self.operations.paid(operation, session, transfer))
        try:
            self.play.verify_may_deal(session)  # the wallet may have been slow
            return await self.play.deal_paid(session, request, operation, detail["round_id"])
        except (
            DisabledError, DurationLimitError, FreeBetRefusedError, GuardClosedError, RngUnavailableError
        ) as refusal:  # fmt: skip
            raise await self.operations.undone(operation, session, transfer, refusal) from None

    async def _act(self, operation: Operation, session: Session) -> Reply:
        """Debit the decision's cost, then take the decision, if the round is still at its version."""
        detail = json.loads(operation.detail)
        request = Act(
            operation.request_id,
            session.session_id,
            detail["round_id"],
            int(detail["round_version"]),
            Action(detail["action"]),
        )
        transfer = _transfer(operation, session, TransferPurpose.BET, detail["round_id"])
        if operation.progress != OperationProgress.UNDOING:
            try:
                await self.play.verify_decidable(session, request)
            except UnavailableError:
                raise
            except RgsError as refusal:  # the round has ended or is paused: the money goes back
                raise await self.operations.undone(operation, session, transfer, refusal) from None
        session = self._reported(session, await self.operations.paid(operation, session, transfer))
        return await self.play.decide_paid(session, request, operation)

    async def _return(self, operation: Operation, session: Session) -> Reply:
        """Credit what a round returns, or give back to its campaign: owed until the wallet accepts it, also after the
        session is closed.
        """
        is_free = bool(free_bet_of(operation))
        purpose = TransferPurpose.FREE_BET_RETURN if is_free else TransferPurpose.RETURN
        receipt = await self.operations.transfers.credit(_transfer(operation, session, purpose, _round_of(operation)))
        done = Change(operation=replace(operation, status="done"))
        if receipt.status is TransactionStatus.ACCEPTED and not is_free:  # a repeat carries the first answer's balance
            done.records = balance_reported(self._reported(session, receipt))
        await self.store.commit(done)
        return Reply(b"", b"")

    # --- inside ---------------------------------------------------------------------------------------------------

    def _reported(self, session: Session, receipt: Receipt) -> Session:
        if receipt.balance_after_minor is None or not session.is_seamless:
            return session
        return session.reported(receipt.balance_after_minor, max(self.clock.now_ms(), session.last_ms))

    def _intent(
        self,
        session: Session,
        party: str,
        request: StartRound | Act,
        digest: bytes,
        amount_minor: int,
        grant: Grant | None,
    ) -> Operation:
        now_ms = max(self.clock.now_ms(), session.last_ms)
        detail: dict[str, Any]
        if isinstance(request, StartRound):
            detail = {
                "bets": {bet: str(amount) for bet, amount in request.bets.items()},
                "round_id": self.instance.new_id(now_ms),
                "round_no": str(request.round_no),
                **({} if grant is None else {"expires_ms": str(grant.expires_ms), "free_bet": grant.reference}),
            }
        else:
            detail = {
                "action": request.action.value,
                "round_id": request.round_id,
                "round_version": str(request.round_version),
            }
        operation_id = self.instance.new_id(now_ms)
        operation = intent_of(request, session.session_id, operation_id, party, digest, now_ms, amount_minor)
        return replace(operation, detail=format_canonical(detail).decode("ascii"))


def _transfer(operation: Operation, session: Session, purpose: TransferPurpose, round_id: str) -> Transfer:
    transfer = transfer_of(operation, session, purpose, operation.amount_minor, session.session_id, round_id)
    return replace(transfer, free_bet=free_bet_of(operation))


def _round_of(operation: Operation) -> str:
    return str(json.loads(operation.detail)["round_id"])
