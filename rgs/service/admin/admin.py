"""Orders of admins: switches, guards, malfunctions and voids. Each change is a signed event (ARCHITECTURE 2.19, 2.20:
new rounds stop, a void needs two admins; GLI-19 2.4.1).

A malfunction pauses a round. The round is resumed, or two different admins void it, never after settlement. Nothing
else stops a round that was dealt. Reasons are codes, never free text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import structlog

from rgs.core.clock import Clock
from rgs.core.errors import (
    InvalidFieldError,
    NotFoundError,
    RgsError,
    RoundNotOpenError,
    RoundNotPausedError,
    SecondAdminError,
    TableStateError,
)
from rgs.core.ids import check_name, check_reference, check_ulid
from rgs.core.rounds import DECK_UNRECOVERABLE, Round, RoundStatus, Void, staked_so_far
from rgs.core.rulesets import SHIPPED_RULESETS
from rgs.core.sessions import Session
from rgs.core.statements import parse_envelope
from rgs.core.times import parse_time
from rgs.service.admin.health_monitor import HealthMonitor
from rgs.service.admin.orders import Order, Orders
from rgs.service.availability import GUARDS, Availability, GuardState
from rgs.service.callers import Reply, SessionLocks
from rgs.service.events import EventCode, Events, event_draft
from rgs.service.play.decks import Decks
from rgs.service.play.notices import Notices, notice_of
from rgs.service.play.settlement import voided
from rgs.service.timekeeping import CLOCK_GUARD
from rgs.store.changes import Change, Record, StoreError, SwitchOff, SwitchOn, VoidProposal, VoidProposalEnd
from rgs.store.interface import Store

_CODE = re.compile(r"[A-Z][A-Z0-9_]{0,62}")
ROUNDS_MAX = 100
"""Rounds of one proposal or approval."""
ENABLED, DISABLED = "enabled", "disabled"
OPEN = "OPEN"
_DONE = {RoundStatus.OPEN.value.encode(): RoundStatus.OPEN, RoundStatus.VOID.value.encode(): RoundStatus.VOID}
"""Stored answer for a round of a list -> the round's status after the order."""


def check_code(text: str, field: str) -> None:
    """Raise InvalidFieldError naming the field unless the text is a code in UPPER_SNAKE."""
    if _CODE.fullmatch(text) is None:
        raise InvalidFieldError(
            f"{field} must be a code in UPPER_SNAKE, at most 63 characters", field=field, value=text[:80]
        )


@dataclass(frozen=True, slots=True)
class VoidResult:
    """The outcome for one round of a list: the event or final, or the reason of the refusal. Of a dry run the stakes
    that would come back, and the reason.
    """

    round_id: str
    status: RoundStatus | None
    envelope: bytes
    refusal: str
    staked_minor: int = 0
    currency: str = ""
    reason: str = ""


@dataclass(kw_only=True, eq=False, repr=False)
class Admin:
    """Mutating calls of admins. A repeated order gets its stored answer.

    `verify_admin` gives the time of the event that made a party an admin, and refuses one who is no longer an admin.
    """

    store: Store
    clock: Clock
    locks: SessionLocks
    decks: Decks
    notices: Notices
    availability: Availability
    events: Events
    orders: Orders
    monitor: HealthMonitor
    verify_admin: Callable[[str], Awaitable[int]]

    # --- switches -------------------------------------------------------------------------------------------------

    async def set_switch(
        self, order: Order, scope: str, subject: str, *, enabled: bool, reason: str, dry_run: bool = False
    ) -> Reply:
        """Disable or enable; the signed event. `subject` depends on the scope: empty, `operator`, `game` or
        `operator/player`. A dry run checks the order and changes nothing.
        """
        check_code(reason, "reason")
        _check_subject(scope, subject)
        if dry_run:
            return Reply(b"", b"")
        if (known := await self.orders.known(order)) is not None:
            return known
        standing = {(switch.scope, switch.subject) for switch in self.availability.switches()}
        before = DISABLED if (scope, subject) in standing else ENABLED
        now_ms = self.clock.now_ms()
        record: Record = (
            SwitchOn(scope, subject) if enabled else SwitchOff(scope, subject, reason, order.caller.party, now_ms)
        )
        signed = await self.events.emit(
            EventCode.SWITCH_CHANGED,
            actor=order.caller.party,
            subject=f"{scope} {subject}".strip(),
            before=before,
            after=ENABLED if enabled else DISABLED,
            reason=reason,
            records=(record,),
            answer=order.answer(now_ms),
        )
        self.availability.load_switches(await self.store.switches())
        return Reply(b"", signed.envelope)

    def switches(self) -> tuple[SwitchOff, ...]:
        return self.availability.switches()

    # --- guards ---------------------------------------------------------------------------------------------------

    def guards(self) -> tuple[GuardState, ...]:
        return self.availability.guards()

    async def clear_guard(self, order: Order, name: str, reason: str) -> Reply:
        """Clear a guard and its latch; the signed event. The guard opens if a check now finds no fault.

        A failed generator stays failed: its latch goes, but the guard opens with the next start only. A wall clock that
        was set is trusted because the admin says so. ClocksDifferError while the database's clock contradicts it:
        nothing is changed or signed then.
        """
        check_code(reason, "reason")
        if name not in GUARDS:
            raise NotFoundError(f"unknown guard {name[:40]}", kind="guard", field="name", value=name[:40])
        if (known := await self.orders.known(order)) is not None:
            return known
        code = await self.monitor.examine(name)
        if name == CLOCK_GUARD:
            self.monitor.verify_clock()
        signed = await self.events.emit(
            EventCode.GUARD_CLEARED,
            actor=order.caller.party,
            subject=name,
            before=self.availability.guard(name).code or OPEN,
            after=code or OPEN,
            reason=reason,
            records=self.monitor.clearing(name),
            answer=order.answer(self.clock.now_ms()),
        )
        await self.monitor.cleared(name, code)
        return Reply(b"", signed.envelope)

    # --- malfunctions and voids -----------------------------------------------------------------------------------

    async def report_malfunction(self, order: Order, round_id: str, code: str) -> Reply:
        """Log a malfunction of a round in play and pause it; the signed event."""
        check_code(code, "code")
        async with self.locks.of((await self._round(round_id)).session_id):
            if (known := await self.orders.known(order)) is not None:
                return known
            round_ = await self._open(round_id)
            if round_.malfunction:
                raise RoundNotPausedError(
                    f"round {round_id} is paused already: {round_.malfunction_code}",
                    round_id=round_id,
                    malfunction_code=round_.malfunction_code,
                )
            session = await self._session(round_)
            now_ms = max(self.clock.now_ms(), session.last_ms)
            change = pause(session, round_, code, now_ms, actor=order.caller.party)
            change.answer = order.answer(now_ms)
            (signed,) = await self.store.commit(change)
        self.notices.emit(notice_of(session, round_id, RoundStatus.OPEN, code))
        return Reply(b"", signed.envelope)

    async def resume_round(self, order: Order, round_id: str, reason: str) -> Reply:
        """End the pause of a malfunction: the round resumes where it stood; the signed event."""
        check_code(reason, "reason")
        async with self.locks.of((await self._round(round_id)).session_id):
            if (known := await self.orders.known(order)) is not None:
                return known
            round_ = self._paused(await self._open(round_id))
            session = await self._session(round_)
            now_ms = await self._now_ms(session, round_)
            draft = event_draft(
                EventCode.ROUND_RESUMED,
                now_ms,
                actor=order.caller.party,
                reason=reason,
                before="PAUSED",
                after="IN_PLAY",
                session_id=round_.session_id,
                round_id=round_id,
            )
            resumed = replace(round_, version=round_.version + 1, malfunction="", malfunction_code="")
            change = Change(
                session=replace(session, version=session.version + 1, last_ms=now_ms),
                round=resumed,
                drafts=(draft,),
                answer=order.answer(now_ms),
                records=(VoidProposalEnd(round_id),),
            )
            (signed,) = await self.store.commit(change)
        self.notices.emit(notice_of(session, round_id, RoundStatus.OPEN))
        return Reply(b"", signed.envelope)

    async def propose_void(
        self, order: Order, round_ids: Sequence[str], reason: str, *, dry_run: bool = False
    ) -> tuple[VoidResult, ...]:
        """The first of two steps, for each round by itself: a refusal of one does not stop the others."""
        check_code(reason, "reason")
        if dry_run:
            return await self._examine(order, round_ids, reason)
        return await self._each(order, round_ids, partial(self._propose, reason=reason))

    async def approve_void(
        self, order: Order, round_ids: Sequence[str], *, dry_run: bool = False
    ) -> tuple[VoidResult, ...]:
        """The second step, by another admin: the rounds are void, stakes return, and decks are revealed if possible."""
        if dry_run:
            return await self._examine(order, round_ids)
        return await self._each(order, round_ids, self._approve)

    async def _each(
        self, order: Order, round_ids: Sequence[str], do: Callable[[Order, Round], Awaitable[None]]
    ) -> tuple[VoidResult, ...]:
        """Do the step for each round under its session's lock, or take the stored answer of an earlier try."""
        _check_rounds(round_ids)
        await self.orders.begin(order)
        results = []
        for round_id in round_ids:
            item = order.item(round_id)
            try:
                async with self.locks.of((await self._round(round_id)).session_id):
                    if (known := await self.orders.known(item)) is None:
                        await do(item, self._paused(await self._open(round_id)))
                        known = await self.orders.known(item)
            except RgsError as error:
                results.append(VoidResult(round_id, None, b"", error.reason))
                continue
            if known is None:
                raise StoreError("a stored answer cannot be read back", round_id=round_id)
            results.append(VoidResult(round_id, _DONE[known.body], known.envelope, ""))
        return tuple(results)

    async def _examine(self, order: Order, round_ids: Sequence[str], reason: str = "") -> tuple[VoidResult, ...]:
        """What the step would come to, for each round: with a reason a proposal, without one an approval. Nothing is
        stored or signed.
        """
        _check_rounds(round_ids)
        results = []
        for round_id in round_ids:
            try:
                round_ = self._paused(await self._open(round_id))
                proposed = reason or (await self._proposal(order.caller.party, round_id)).reason
                self._verify_reason(round_, proposed)
                currency = (await self._session(round_)).currency
                staked_minor = staked_so_far(round_)
                results.append(VoidResult(round_id, RoundStatus.OPEN, b"", "", staked_minor, currency, proposed))
            except RgsError as error:
                results.append(VoidResult(round_id, None, b"", error.reason))
        return tuple(results)

    async def _propose(self, item: Order, round_: Round, reason: str) -> None:
        self._verify_reason(round_, reason)
        party, session = item.caller.party, await self._session(round_)
        now_ms = max(await self.verify_admin(party), await self._now_ms(session, round_))
        draft = event_draft(
            EventCode.VOID_PROPOSED,
            now_ms,
            actor=party,
            before="PAUSED",
            after="VOID_PROPOSED",
            reason=reason,
            session_id=round_.session_id,
            round_id=round_.round_id,
        )
        change = Change(
            session=replace(session, version=session.version + 1),
            drafts=(draft,),
            records=(VoidProposal(round_.round_id, reason, party, now_ms),),
            answer=item.answer(now_ms, RoundStatus.OPEN.value.encode()),
        )
        await self.store.commit(change)
        _log_void("void_proposed", round_, reason, party)

    def _verify_reason(self, round_: Round, reason: str) -> None:
        """InvalidFieldError unless DECK_UNRECOVERABLE is given exactly for a deck that cannot be opened."""
        can_open = self.decks.can_open(round_)
        if can_open == (reason == DECK_UNRECOVERABLE):
            raise InvalidFieldError(
                f"the deck of round {round_.round_id} can{'' if can_open else 'not'} be opened",
                field="reason",
                value=reason,
                round_id=round_.round_id,
            )

    async def _approve(self, item: Order, round_: Round) -> None:
        party, round_id = item.caller.party, round_.round_id
        proposal = await self._proposal(party, round_id)
        self._verify_reason(round_, proposal.reason)
        session = await self._session(round_)
        now_ms = max(await self.verify_admin(party), await self._now_ms(session, round_), proposal.time_ms)
        void = Void(proposal.reason, round_.malfunction, ((proposal.party, proposal.time_ms), (party, now_ms)))
        opened = None if proposal.reason == DECK_UNRECOVERABLE else self.decks.open(round_)
        change = voided(session, round_, void, opened, now_ms)
        change.records = (*change.records, VoidProposalEnd(round_id))
        change.answer = item.answer(now_ms, RoundStatus.VOID.value.encode())
        await self.store.commit(change)
        _log_void("round_void", round_, proposal.reason, party)
        self.notices.emit(notice_of(session, round_id, RoundStatus.VOID))

    async def _proposal(self, party: str, round_id: str) -> VoidProposal:
        """The proposal that this admin may approve."""
        proposal = await self.store.void_proposal(round_id)
        if proposal is None:
            raise NotFoundError(f"nobody proposed to void round {round_id}", kind="void", round_id=round_id)
        if proposal.party == party:
            raise SecondAdminError(
                f"{party} proposed the void; another admin approves it", party=party, round_id=round_id
            )
        return proposal

    # --- both -----------------------------------------------------------------------------------------------------

    async def _round(self, round_id: str) -> Round:
        """The round of solo play. TableStateError for one of a table: all its seats stand still or go on together."""
        round_ = await self.store.round(check_ulid(round_id, "round_id"), fresh=True)
        if round_ is None:
            raise NotFoundError(f"no round {round_id}", kind="round", field="round_id", round_id=round_id)
        if round_.table_id:
            raise TableStateError(
                f"round {round_id} is one of table {round_.table_id}: pause, resume or void it at the table",
                round_id=round_id,
                table=round_.table_id,
            )
        return round_

    async def _open(self, round_id: str) -> Round:
        round_ = await self._round(round_id)
        if round_.status is not RoundStatus.OPEN:
            raise RoundNotOpenError(
                f"round {round_id} is {round_.status.value}", round_id=round_id, status=round_.status.value
            )
        return round_

    def _paused(self, round_: Round) -> Round:
        if not round_.malfunction:
            raise RoundNotPausedError(f"round {round_.round_id} has no logged malfunction", round_id=round_.round_id)
        return round_

    async def _session(self, round_: Round) -> Session:
        session = await self.store.session(round_.session_id, fresh=True)
        if session is None:
            raise NotFoundError(f"no session {round_.session_id}", kind="session", session_id=round_.session_id)
        return session

    async def _now_ms(self, session: Session, round_: Round) -> int:
        """Now: not before the last step of the session, nor before the malfunction that pauses the round."""
        row = await self.store.statement_of_hash(bytes.fromhex(round_.malfunction))
        logged_ms = 0 if row is None else parse_time(json.loads(parse_envelope(row.envelope).payload)["time"])
        return max(self.clock.now_ms(), session.last_ms, logged_ms)


def pause(session: Session, round_: Round, code: str, now_ms: int, *, actor: str = "") -> Change:
    """Log a malfunction and pause the round, as one change."""
    draft = event_draft(
        EventCode.MALFUNCTION,
        now_ms,
        actor=actor,
        reason=code,
        before="IN_PLAY",
        after="PAUSED",
        session_id=round_.session_id,
        round_id=round_.round_id,
    )
    return Change(
        session=replace(session, version=session.version + 1),
        round=replace(round_, version=round_.version + 1, malfunction_code=code),
        drafts=(draft,),
        pauses=True,
    )


def _check_rounds(round_ids: Sequence[str]) -> None:
    if not 1 <= len(round_ids) <= ROUNDS_MAX or len(set(round_ids)) != len(round_ids):
        raise InvalidFieldError(
            f"round_ids holds 1 to {ROUNDS_MAX} different rounds, not {len(round_ids)}",
            field="round_ids",
            limit=ROUNDS_MAX,
            value=len(round_ids),
        )
    for round_id in round_ids:
        check_ulid(round_id, "round_ids")


def _check_subject(scope: str, subject: str) -> None:
    operator, _, player = subject.partition("/")
    match scope:
        case "play" if not subject:
            return
        case "operator":
            check_name(subject, "operator")
        case "game" if subject in SHIPPED_RULESETS:
            return
        case "player":
            check_name(operator, "operator")
            check_reference(player, "player")
        case _:
            raise InvalidFieldError(f"{scope} {subject[:80]} cannot be switched", field="scope", value=subject[:80])


def _log_void(event: str, round_: Round, reason: str, admin: str) -> None:
    warn = structlog.get_logger().warning
    warn(event, round_id=round_.round_id, session_id=round_.session_id, reason=reason, admin=admin)
