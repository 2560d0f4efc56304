"""Rounds funded bet by bet (docs/money.md): each stake is debited before it is played, each return credited after.

Steps of `Affairs.advance`, so that live play and recovery go the same way (ARCHITECTURE 2.17). The intent is stored
first, then the wallet is asked, then round and money leg are signed in one commit: no draw and no decision without its
money, and no money kept without its decision. A return is owed from the commit of its final on. Refuses to draw or to
decide while the wallet has not answered, and to let a credit stop the next round.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Awaitable
from dataclasses import replace
from typing import Any

from rgs.core.clock import Clock
from rgs.core.errors import (
    DisabledError,
    DurationLimitError,
    GuardClosedError,
    RgsError,
    RngUnavailableError,
    SessionChangedError,
    UnavailableError,
)
from rgs.core.games.types import Action
from rgs.core.sessions import Session
from rgs.core.statements import format_canonical
from rgs.core.values import changed
from rgs.ports.wallet import Leg, Receipt, TransactionStatus, Transfer
from rgs.service.callers import Reply
from rgs.service.instance import Instance
from rgs.service.money.movements import transfer_of
from rgs.service.play.affairs import Affairs
from rgs.service.play.play import Play, ToldError
from rgs.service.play.requests import Act, StartRound
from rgs.service.play.settlement import balance_told
from rgs.store.changes import Affair, AffairStage, Change, RequestSeenError, SessionRaceError
from rgs.store.interface import Store


class Seamless:
    """Begins the affairs of play, and takes them on."""

    def __init__(self, *, store: Store, instance: Instance, clock: Clock, affairs: Affairs, play: Play) -> None:
        self._store = store
        self._instance = instance
        self._clock = clock
        self._affairs = affairs
        self._play = play
        affairs.steps |= {"start": self._start, "act": self._act, "return": self._return}
        play.seamless = self

    async def resume(self, session: Session, party: str, request: StartRound | Act, digest: bytes) -> Reply | None:
        """Go on with what the request began before; None where it is new. AffairPendingError where another one has
        begun something.
        """
        known = await self._store.affair_of_request(party, type(request).__name__, request.request_id)
        if known is None:
            session.verify_no_affair()
            return None
        return await self._heard(session, party, request, self._affairs.resume(known, digest))

    async def fund(
        self, session: Session, party: str, request: StartRound | Act, digest: bytes, amount_minor: int
    ) -> Reply:
        """Take the money that the request needs, and do what it asks. ToldError carries what is told."""
        affair = self._intent(session, party, request, digest, amount_minor)
        begun = changed(session, version=session.version + 1, pending_affair=affair.affair_id)
        try:
            await self._store.commit(Change(session=begun, affair=affair))
        except RequestSeenError:
            raise SessionRaceError("the session was changed by another request") from None
        return await self._heard(session, party, request, self._affairs.advance(affair))

    async def _heard(self, session: Session, party: str, request: StartRound | Act, advance: Awaitable[Reply]) -> Reply:
        """What the affair comes to. An error that is its end, or that it is not at its end, is not looked at again."""
        try:
            reply = await advance
        except SessionRaceError:
            raise
        except SessionChangedError as error:  # another process has moved it: what it has come to is looked at again
            raise SessionRaceError(error.message) from None
        except RgsError as error:
            if await self._store.answer(party, type(request).__name__, request.request_id) is not None:
                raise
            raise ToldError(error) from None
        await self.pay(session.session_id)
        return reply

    async def pay(self, session_id: str) -> None:
        """Try at once what the session's last round returns; recovery goes on with what the wallet does not take."""
        affair = await self._store.owed_return(session_id)
        if affair is not None:
            with contextlib.suppress(RgsError):
                await self._affairs.advance(affair)

    # --- the steps ------------------------------------------------------------------------------------------------

    async def _start(self, affair: Affair, session: Session) -> Reply:
        """Debit of the opening bets first, then the draw."""
        detail = json.loads(affair.detail)
        bets = {bet: int(amount) for bet, amount in detail["bets"].items()}
        request = StartRound(affair.request_id, session.session_id, int(detail["stage_no"]), bets)
        transfer = _transfer(affair, session, Leg.BET, detail["round_id"])
        if affair.stage != AffairStage.UNDOING:
            try:
                self._play.verify_may_deal(session)
            except RgsError as refusal:
                raise await self._affairs.undone(affair, session, transfer, refusal) from None
        session = self._told(session, await self._affairs.paid(affair, session, transfer))
        try:
            self._play.verify_may_deal(session)  # the wallet may have taken its time
            return await self._play.deal_paid(session, request, affair, detail["round_id"])
        except (DisabledError, DurationLimitError, GuardClosedError, RngUnavailableError) as refusal:
            raise await self._affairs.undone(affair, session, transfer, refusal) from None

    async def _act(self, affair: Affair, session: Session) -> Reply:
        """Debit of the decision's cost first, then the decision, if the round still stands where it was taken."""
        detail = json.loads(affair.detail)
        request = Act(
            affair.request_id,
            session.session_id,
            detail["round_id"],
            int(detail["round_version"]),
            Action(detail["action"]),
        )
        transfer = _transfer(affair, session, Leg.BET, detail["round_id"])
        if affair.stage != AffairStage.UNDOING:
            try:
                await self._play.verify_decidable(session, request)
            except UnavailableError:
                raise
            except RgsError as refusal:  # it was ended by rule or void, or is paused: the money goes back
                raise await self._affairs.undone(affair, session, transfer, refusal) from None
        session = self._told(session, await self._affairs.paid(affair, session, transfer))
        return await self._play.decide_paid(session, request, affair)

    async def _return(self, affair: Affair, session: Session) -> Reply:
        """The credit of a round's return: owed until the wallet takes it, whatever becomes of the session."""
        round_id = json.loads(affair.detail)["round_id"]
        receipt = await self._affairs.movements.credit(_transfer(affair, session, Leg.RETURN, round_id))
        done = Change(affair=replace(affair, status="done"))
        if receipt.status is TransactionStatus.ACCEPTED:  # the balance of a repeat is that of then
            done.records = balance_told(self._told(session, receipt))
        await self._store.commit(done)
        return Reply(b"", b"")

    # --- inside ---------------------------------------------------------------------------------------------------

    def _told(self, session: Session, receipt: Receipt) -> Session:
        """With the balance that the wallet tells in its receipt. A debit is the session's newest movement."""
        if receipt.balance_after_minor is None:
            return session
        return session.told(receipt.balance_after_minor, max(self._clock.now_ms(), session.last_ms))

    def _intent(
        self, session: Session, party: str, request: StartRound | Act, digest: bytes, amount_minor: int
    ) -> Affair:
        now_ms = max(self._clock.now_ms(), session.last_ms)
        detail: dict[str, Any]
        if isinstance(request, StartRound):
            detail = {
                "bets": {bet: str(amount) for bet, amount in request.bets.items()},
                "round_id": self._instance.new_id(now_ms),
                "stage_no": str(request.stage_no),
            }
        else:
            detail = {
                "action": request.action.value,
                "round_id": request.round_id,
                "round_version": str(request.round_version),
            }
        return Affair(
            affair_id=self._instance.new_id(now_ms),
            session_id=session.session_id,
            kind="start" if isinstance(request, StartRound) else "act",
            status="pending",
            party=party,
            method=type(request).__name__,
            request_id=request.request_id,
            digest=digest,
            amount_minor=amount_minor,
            purchase_no=0,
            created_ms=now_ms,
            detail=format_canonical(detail).decode("ascii"),
        )


def _transfer(affair: Affair, session: Session, leg: Leg, round_id: str) -> Transfer:
    return transfer_of(affair, session, leg, affair.amount_minor, session.session_id, round_id)
