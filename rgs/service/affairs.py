"""The multi-step affairs of a session: open, purchase, end of participation, close (ARCHITECTURE 2.17).

Each has one `advance()`: live traffic and recovery call the same function. The intent is stored before the first
outward call; every outward call carries the affair's id as its transaction id, so that doing all steps again has the
effect of doing them once. An unanswered call leaves the affair pending: it is never read as a failure. Only a
definite refusal ends an affair without its effect.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, TypedDict

from rgs.clients.regulator import CentralSystem, ParticipationEnd, Purchase, SessionClose, SessionOpening
from rgs.clients.wallet import Wallet
from rgs.clock import Clock
from rgs.core.errors import NotFoundError, RgsError, SessionChangedError, UnavailableError
from rgs.core.rounds import rules_object
from rgs.core.sessions import Session, SessionStatus
from rgs.core.statements import SALT_BYTES, private_hash
from rgs.core.times import format_time
from rgs.service.books import Books
from rgs.service.callers import Encode, Reply
from rgs.service.instance import Instance
from rgs.store.changes import Affair, Answer, Change, Draft, SessionRaceError, StageReport
from rgs.store.interface import Store

REPORT_BATCH = 256
"""Stage reports sent in one call."""


class _Movement(TypedDict):
    """What a debit and its rollback are called with, the same over all retries."""

    operator: str
    player: str
    currency: str
    amount_minor: int
    transaction_id: str
    reference: str


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
    ) -> None:
        self._store = store
        self._instance = instance
        self._books = books
        self._clock = clock
        self._wallet = wallet
        self._central = central
        self._encode = encode
        self._steps: Mapping[str, Callable[[Affair, Session], Awaitable[Reply]]] = {
            "open": self._open,
            "purchase": self._purchase,
            "end": self._end,
            "close": self._close,
        }

    async def advance(self, affair: Affair) -> Reply:
        """Do what is left of the affair, under its session's lock. Raises what stopped it; unavailable means: again
        later. SessionChangedError: another process has brought it to its end.
        """
        session = await self._session(affair)
        return await self._steps[affair.kind](affair, session)

    async def give_up_opening(self, affair: Affair) -> None:
        """End the opening of a session before its first outward call: the same request was answered with another."""
        await self._fail_opening(affair, await self._session(affair))

    async def _session(self, affair: Affair) -> Session:
        """The session as it stands, with the affair under way: what ends the affair changes both in one commit."""
        session = await self._store.session(affair.session_id, fresh=True)
        if session is None:
            raise NotFoundError(f"no session {affair.session_id}", kind="session", session_id=affair.session_id)
        if session.pending_affair != affair.affair_id:
            raise _changed()
        return session

    # --- the four affairs -----------------------------------------------------------------------------------------

    async def _open(self, affair: Affair, session: Session) -> Reply:
        jurisdiction = self._books.jurisdictions[session.jurisdiction_id]
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
        except RgsError:
            await self._fail_opening(affair, session)
            raise
        opened = replace(
            session,
            status=SessionStatus.OPEN,
            regulator_session_id=granted.regulator_session_id,
            test_register=granted.test_register,
        )
        private = {
            "operator_reference": session.operator_reference,
            "player": session.player,
            "regulator": "test-register" if granted.test_register else "central-system",
            "regulator_session_id": granted.regulator_session_id,
        }
        body = {
            "currency": session.currency,
            "jurisdiction": rules_object(jurisdiction),
            "operator": session.operator,
            "ruleset": rules_object(self._books.rulesets[session.ruleset_id]),
            "test_register": granted.test_register,
            **({"limits": limits} if (limits := session.limits.body()) else {}),
        }
        return await self._done(affair, opened, "session_open", body, private)

    async def _purchase(self, affair: Affair, session: Session) -> Reply:
        # The first purchase's affair id is the participation's id: stable from the intent on.
        participation_id = session.participation_id or affair.affair_id
        movement = _Movement(
            operator=session.operator,
            player=session.player,
            currency=session.currency,
            amount_minor=affair.amount_minor,
            transaction_id=affair.affair_id,
            reference=participation_id,
        )
        try:
            receipt = await self._wallet.debit(**movement)
        except UnavailableError:
            raise
        except RgsError:
            await self._fail(affair, session)
            raise
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
        except RgsError:
            await self._wallet.rollback(**movement)
            await self._fail(affair, session)
            raise
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
        return await self._done(affair, bought, "purchase", body, private)

    async def _end(self, affair: Affair, session: Session) -> Reply:
        paid_out = session.balance_minor
        try:
            await self._report_stages_of(session)
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
        except RgsError:
            await self._fail(affair, session)
            raise
        # Owed to the player from here on: repeated until accepted, never cancelled.
        await self._wallet.credit(
            operator=session.operator,
            player=session.player,
            currency=session.currency,
            amount_minor=paid_out,
            transaction_id=affair.affair_id,
            reference=session.participation_id,
        )
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
            "wallet_transaction_id": affair.affair_id,
        }
        return await self._done(affair, replace(session, participation=money), "participation_end", body, private)

    async def _close(self, affair: Affair, session: Session) -> Reply:
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
        except RgsError:
            await self._fail(affair, session)
            raise
        closed = replace(session, status=SessionStatus.CLOSED, close_ms=self._time_of(session))
        return await self._done(
            affair, closed, "session_close", {"reason": "OPERATOR", "rounds": str(session.rounds)}, None
        )

    # --- stage reports --------------------------------------------------------------------------------------------

    async def report_stages(self) -> int:
        """Send the queued stage reports in order; how many were sent. Unavailable: they stay queued."""
        told = 0
        while sent := await self._send(await self._store.reports(REPORT_BATCH)):
            told += sent
        return told

    async def _report_stages_of(self, session: Session) -> None:
        while await self._send(await self._store.reports_of(session.session_id, REPORT_BATCH)):
            pass

    async def _send(self, queued: list[tuple[int, StageReport]]) -> int:
        if queued:
            transaction_id = self._instance.new_id(self._clock.now_ms())  # told stages are passed over, whatever the id
            await self._central.report_stages(transaction_id, [report for _, report in queued])
            await self._store.forget_reports([row_id for row_id, _ in queued])
        return len(queued)

    # --- ends -----------------------------------------------------------------------------------------------------

    async def _done(
        self, affair: Affair, session: Session, kind: str, body: dict[str, Any], block: dict[str, str] | None
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
            drafts=(Draft(kind, body, private),),
            answer=Answer(affair.party, affair.method, affair.request_id, affair.digest, encoded, now_ms),
            affair=replace(affair, status="done"),
        )
        (signed,) = await self._commit(change)
        return Reply(encoded, signed.envelope)

    async def _fail_opening(self, affair: Affair, session: Session) -> None:
        await self._fail(affair, replace(session, status=SessionStatus.CLOSED, close_ms=self._time_of(session)))

    async def _fail(self, affair: Affair, session: Session) -> None:
        """The affair ends without effect; the error is not stored, so that the operator may try again with a new
        request.
        """
        session = replace(session, version=session.version + 1, pending_affair="")
        await self._commit(Change(session=session, affair=replace(affair, status="failed")))

    async def _commit(self, change: Change) -> Any:
        try:
            return await self._store.commit(change)
        except SessionRaceError:
            raise _changed() from None

    def _time_of(self, session: Session) -> int:
        return max(self._clock.now_ms(), session.last_ms)


def _changed() -> SessionChangedError:
    return SessionChangedError("the session was changed by another request; read it again")
