"""The test regulator: it stands in for a regulator's system if the jurisdiction allows it.

It implements the port `rgs.ports.regulator.Regulator` with its rejections, over a `RegulatorStore`
(docs/embedded-books.md describes the rows). The simulated regulator uses it too.

Nobody can take it for a regulator: it speaks no regulator's protocol, its ids only look like real ones (`M...` for
sessions, `N...` for participations), and every answer and entry is marked. A jurisdiction that does not allow a test
regulator gets no session from it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from rgs.adapters.embedded.own_thread import OwnThread
from rgs.core.errors import InvalidFieldError, RegulatorUnavailableError, RgsError
from rgs.core.ids import REGULATOR_ID_CHARACTERS, check_name, check_reference, check_ulid
from rgs.core.statements.canonical import digest, format_canonical
from rgs.core.times import format_time, parse_date
from rgs.ports.regulator import (
    DayAlignment,
    ModuleReport,
    ParticipationEnd,
    Purchase,
    RegulatorParticipation,
    RegulatorReceipt,
    RegulatorSession,
    Rejection,
    SessionClose,
    SessionOpening,
    StageReport,
    checked_fields,
    is_regulator_id,
    refusal_of,
    verify_test_regulator_allowed,
)
from rgs.store.regulator import ParticipationState, RegulatorStore, RegulatorTransaction, SessionState

STAGES_MAX: Final = 1000
"""Most stages of one report."""
MODULES_MAX: Final = 1000
"""Most modules of one report."""
DAY_MS: Final = 86_400_000
CALL_DOMAIN: Final = "rgs/test-regulator/call/v1"

_HASH: Final = re.compile(r"[0-9a-f]{64}")
_SHA1: Final = re.compile(r"([0-9a-f]{40})?")
_Request = Mapping[str, Any] | list[dict[str, str]]
_Enter = Callable[[RegulatorTransaction, int], str]


class EmbeddedRegulator:
    """The test regulator over a `RegulatorStore`.

    `new_id(prefix)` makes a 16-character id that begins with `prefix`, from the server's tested entropy. `now_ms` is
    the injected clock; the sender's clock may be ahead of it by `apart_ms`. A thread of its own writes to the disk and
    takes the messages one by one, in their order.
    """

    def __init__(
        self, store: RegulatorStore, new_id: Callable[[str], str], now_ms: Callable[[], int], apart_ms: int = 0
    ) -> None:
        self._store = store
        self._new_id = new_id
        self._now_ms = now_ms
        self._apart_ms = apart_ms
        self._thread = OwnThread("regulator", RegulatorUnavailableError)

    async def open_session(self, opening: SessionOpening) -> RegulatorSession:
        """As in `Regulator`; JurisdictionError unless the jurisdiction allows a test regulator."""
        verify_test_regulator_allowed(opening)
        request = _request(opening)
        issued = self._issue("M")

        def enter(book: RegulatorTransaction, latest_ms: int) -> str:
            _verify_not_in_future(opening.open_ms, latest_ms)
            if book.session_by_reference(opening.operator, opening.reference) is not None:
                raise refusal_of(Rejection.REFERENCE_USED, f"session {opening.reference} was opened before")
            book.append("opening", issued, 0, request)  # an id in use violates a key of the table: unavailable
            cap_minor = opening.participation_cap_minor
            book.add_session(SessionState(issued, opening.operator, opening.reference, cap_minor))
            return issued

        return RegulatorSession(await self._perform(opening.transaction_id, request, enter), test_regulator=True)

    async def buy_participation(self, purchase: Purchase, issued: str = "") -> RegulatorParticipation:
        """As in `Regulator`; this book answers with the id of its seat."""
        request = _request(purchase)
        issued = self._issue("N") if purchase.purchase_no == 1 else ""

        def enter(book: RegulatorTransaction, latest_ms: int) -> str:
            session = _open_session_of(book, purchase.regulator_session_id)
            _verify_not_in_future(purchase.purchase_ms, latest_ms)
            seat = _seat_of(book, purchase)
            expected = 1 if seat is None else seat.purchases + 1
            if purchase.purchase_no != expected:
                raise _unexpected(Rejection.PURCHASE_GAP, "purchase number", expected, purchase.purchase_no)
            bought_minor = purchase.amount_minor + (0 if seat is None else seat.bought_minor)
            if bought_minor > session.participation_cap_minor:
                raise _above(Rejection.ABOVE_MAXIMUM, "purchases", session.participation_cap_minor, bought_minor)
            if seat is not None:
                seat.purchases, seat.bought_minor = expected, bought_minor
                book.append("purchase", seat.regulator_participation_id, expected, request)
                book.save_participation(seat)
                return seat.regulator_participation_id
            names = (issued, purchase.regulator_session_id, purchase.reference, purchase.player)
            book.append("purchase", issued, 1, request)
            book.add_participation(ParticipationState(*names, purchases=1, stages=0, bought_minor=bought_minor))
            session.seated += 1
            book.save_session(session)
            return issued

        return RegulatorParticipation(await self._perform(purchase.transaction_id, request, enter), test_regulator=True)

    async def report_stages(self, transaction_id: str, stages: Sequence[StageReport]) -> RegulatorReceipt:
        """As in `Regulator`; at most `STAGES_MAX` at once."""
        batch = tuple(stages)
        if not 1 <= len(batch) <= STAGES_MAX:
            message = f"a report holds 1 to {STAGES_MAX} stages, not {len(batch)}"
            raise InvalidFieldError(message, field="stages", limit=STAGES_MAX, value=len(batch))
        requests = [(stage, _stage_request(stage)) for stage in batch]

        def enter(book: RegulatorTransaction, latest_ms: int) -> str:
            seats: dict[str, ParticipationState] = {}
            for index, (stage, request) in enumerate(requests):
                try:
                    _enter_stage(book, seats, stage, request, latest_ms)
                except RgsError as error:
                    error.metadata["index"] = str(index)
                    raise
            for seat in seats.values():
                book.save_participation(seat)
            return ""

        return await self._entered(transaction_id, [request for _, request in requests], enter)

    async def end_participation(self, end: ParticipationEnd) -> RegulatorReceipt:
        """As in `Regulator`."""
        request = _request(end)

        def enter(book: RegulatorTransaction, latest_ms: int) -> str:
            seat = book.participation(end.regulator_participation_id)
            session = book.session(end.regulator_session_id)
            if seat is None or session is None or seat.regulator_session_id != session.regulator_session_id:
                raise refusal_of(Rejection.UNKNOWN_PARTICIPATION, "no such participation in that session")
            if seat.ended:
                raise refusal_of(Rejection.ENDED_TWICE, "the participation has ended before")
            _verify_not_in_future(end.end_ms, latest_ms)
            if end.rounds != seat.stages:
                raise _unexpected(Rejection.ROUNDS_MISMATCH, "number of rounds", seat.stages, end.rounds)
            if end.final_balance_minor != seat.balance_minor:
                left_minor = seat.balance_minor
                raise _unexpected(Rejection.BALANCE_MISMATCH, "balance", left_minor, end.final_balance_minor)
            book.append("end", end.regulator_participation_id, 0, request)
            seat.ended = 1
            book.save_participation(seat)
            session.seated -= 1
            book.save_session(session)
            return ""

        return await self._entered(end.transaction_id, request, enter)

    async def close_session(self, close: SessionClose) -> RegulatorReceipt:
        """As in `Regulator`."""
        request = _request(close)

        def enter(book: RegulatorTransaction, latest_ms: int) -> str:
            session = _open_session_of(book, close.regulator_session_id)
            _verify_not_in_future(close.close_ms, latest_ms)
            if session.seated:
                message = f"{session.seated} participations have not ended"
                raise refusal_of(Rejection.SEATED, message, value=session.seated)
            book.append("closing", close.regulator_session_id, 0, request)
            session.closed = 1
            book.save_session(session)
            return ""

        return await self._entered(close.transaction_id, request, enter)

    async def align_day(self, alignment: DayAlignment) -> RegulatorReceipt:
        """As in `Regulator`. Each alignment of a day is an entry of its own; the last one stands."""
        totals = checked_fields(alignment.totals)
        request = {**_request(alignment), "totals": {name: str(value) for name, value in totals.items()}}
        operator, currency, day = alignment.operator, alignment.currency, alignment.day
        subject = f"{operator}:{currency}:{day}"

        def enter(book: RegulatorTransaction, latest_ms: int) -> str:
            _verify_not_in_future(parse_date(day) + DAY_MS, latest_ms)
            for (name, value), held in zip(totals.items(), book.day_totals(operator, currency, day), strict=True):
                if value != held:
                    raise _unexpected(Rejection.TOTALS_MISMATCH, name, held, value)
            book.append("alignment", subject, book.last_number(subject, "alignment") + 1, request)
            return ""

        return await self._entered(alignment.transaction_id, request, enter)

    async def report_modules(self, report: ModuleReport) -> RegulatorReceipt:
        """As in `Regulator`; at most `MODULES_MAX` at once."""
        names = [module.name for module in report.modules]
        if not 1 <= len(names) <= MODULES_MAX or len(set(names)) != len(names):
            message = f"a report holds 1 to {MODULES_MAX} modules, each once"
            raise InvalidFieldError(message, field="modules", limit=MODULES_MAX, value=len(names))
        for module in report.modules:
            if _HASH.fullmatch(module.sha256) is None or _SHA1.fullmatch(module.sha1) is None:
                raise InvalidFieldError(f"module {module.name[:80]}: a hash is malformed", field="modules")
        node = check_name(report.node, "node")
        modules = [
            {
                "name": check_reference(module.name, "modules"),
                "sha1": module.sha1,
                "sha256": module.sha256,
                "version": check_reference(module.version, "modules"),
            }
            for module in report.modules
        ]
        request = {"modules": modules, "node": node, "report_time": format_time(report.report_ms)}

        def enter(book: RegulatorTransaction, latest_ms: int) -> str:
            _verify_not_in_future(report.report_ms, latest_ms)
            book.append("modules", node, book.last_number(node, "modules") + 1, request)
            return ""

        return await self._entered(report.transaction_id, request, enter)

    async def close(self) -> None:
        """Let running calls end, then end the thread and close the store."""
        await self._thread.close()
        self._store.close()

    def _issue(self, prefix: str) -> str:
        issued = self._new_id(prefix)
        if not (is_regulator_id(issued) and issued.startswith(prefix)):
            raise RegulatorUnavailableError(f"no {REGULATOR_ID_CHARACTERS}-character id with {prefix} could be made")
        return issued

    async def _entered(self, transaction_id: str, request: _Request, enter: _Enter) -> RegulatorReceipt:
        await self._perform(transaction_id, request, enter)
        return RegulatorReceipt(transaction_id, test_regulator=True)

    async def _perform(self, transaction_id: str, request: _Request, enter: _Enter) -> str:
        """The answer to the first call of this transaction id, an earlier one or this."""
        check_ulid(transaction_id, "transaction_id")
        return await self._thread.run(partial(self._performed, transaction_id, request, enter))

    def _performed(self, transaction_id: str, request: _Request, enter: _Enter) -> str:
        request_digest = digest(CALL_DOMAIN, format_canonical(request))  # no two kinds of request have the same keys
        now_ms = self._now_ms()
        with self._store.transaction(transaction_id, now_ms) as book:
            earlier = book.call()
            if earlier is None:
                answer = enter(book, now_ms + self._apart_ms)
                book.keep_call(request_digest, answer)
                return answer
            if earlier[0] != request_digest:
                raise refusal_of(Rejection.TRANSACTION_CONFLICT, f"{transaction_id} was used with other data")
            return earlier[1]


# --- rules that several messages or stages share ---------------------------------------------------------------


def _open_session_of(book: RegulatorTransaction, regulator_session_id: str) -> SessionState:
    session = book.session(regulator_session_id)
    if session is None:
        raise refusal_of(Rejection.UNKNOWN_SESSION, f"there is no session {regulator_session_id}")
    if session.closed:
        raise refusal_of(Rejection.SESSION_CLOSED, f"session {regulator_session_id} is closed")
    return session


def _seat_of(book: RegulatorTransaction, purchase: Purchase) -> ParticipationState | None:
    """The running participation that the purchase adds to; None for the first purchase of a player without one."""
    seat = book.participation_by_reference(purchase.regulator_session_id, purchase.reference)
    if seat is None:
        if book.participation_of(purchase.regulator_session_id, purchase.player) is not None:
            raise refusal_of(Rejection.ALREADY_SEATED, f"{purchase.player} has or had a participation in the session")
    elif seat.player != purchase.player:
        raise refusal_of(Rejection.REFERENCE_USED, f"participation {purchase.reference} is another player's")
    elif seat.ended:
        raise refusal_of(Rejection.PARTICIPATION_ENDED, f"participation {purchase.reference} has ended")
    return seat


def _enter_stage(
    book: RegulatorTransaction,
    seats: dict[str, ParticipationState],
    stage: StageReport,
    request: dict[str, str],
    latest_ms: int,
) -> None:
    """Check one stage against its participation, which `seats` holds for the batch, and enter it."""
    participation_id = stage.regulator_participation_id
    seat = seats.get(participation_id) or book.participation(participation_id)
    if seat is None or seat.regulator_session_id != stage.regulator_session_id:
        raise refusal_of(Rejection.UNKNOWN_PARTICIPATION, "no such participation in that session")
    if stage.stage_no <= seat.stages:
        if book.request_of(participation_id, "stage", stage.stage_no) != request:
            raise refusal_of(Rejection.STAGE_CONFLICT, f"stage {stage.stage_no} was reported before with other data")
        return
    if seat.ended:
        raise refusal_of(Rejection.PARTICIPATION_ENDED, "the participation has ended")
    if stage.stage_no != seat.stages + 1:
        raise _unexpected(Rejection.STAGE_GAP, "stage number", seat.stages + 1, stage.stage_no)
    _verify_not_in_future(stage.end_ms, latest_ms)
    # IT-06 (amounts of the balance). What had been bought when the stage began: as for the stage before it, or some
    # purchases more. Later purchases may be entered already: they arrive at once, stages arrive in batches.
    counted_minor = stage.available_minor + seat.staked_minor - seat.returned_minor
    if counted_minor != seat.bought_minor and (
        counted_minor < seat.counted_minor or counted_minor not in book.purchase_totals(participation_id)
    ):
        raise _unexpected(Rejection.AVAILABLE_MISMATCH, "available", seat.balance_minor, stage.available_minor)
    if stage.staked_minor > seat.balance_minor:
        raise _above(Rejection.STAKE_NOT_COVERED, "stakes", seat.balance_minor, stage.staked_minor)
    book.append("stage", participation_id, stage.stage_no, request)
    seat.stages = stage.stage_no
    seat.counted_minor = counted_minor
    seat.staked_minor += stage.staked_minor
    seat.returned_minor += stage.returned_minor
    seats[participation_id] = seat


def _stage_request(stage: StageReport) -> dict[str, str]:
    if _HASH.fullmatch(stage.opening_hash) is None or _HASH.fullmatch(stage.final_hash) is None:
        raise InvalidFieldError(f"stage {stage.stage_no}: a hash is not 64 lowercase hex digits", field="stages")
    return _request(stage)


def _request(message: Any) -> dict[str, Any]:
    """The checked fields as the journal keeps them: numbers and times as texts."""
    request = {}
    for name, value in checked_fields(message).items():
        if name.endswith("_ms"):
            request[f"{name.removesuffix('_ms')}_time"] = format_time(value)
        elif name != "transaction_id":
            request[name] = str(value)
    return request


def _verify_not_in_future(time_ms: int, latest_ms: int) -> None:
    if time_ms > latest_ms:
        result, latest = format_time(time_ms), format_time(latest_ms)
        message = f"{result} is in the future; the regulator accepts times until {latest}"
        raise refusal_of(Rejection.DATE_IN_FUTURE, message, limit=latest, value=result)


def _unexpected(rejection: Rejection, what: str, expected: int, value: int) -> RgsError:
    return refusal_of(rejection, f"{what} is {value}; expected {expected}", limit=expected, value=value)


def _above(rejection: Rejection, what: str, limit: int, value: int) -> RgsError:
    return refusal_of(rejection, f"{what} of {value} exceed the limit {limit}", limit=limit, value=value)
