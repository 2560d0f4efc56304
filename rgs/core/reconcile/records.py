"""The matching rules for everything else: rounds, receipts, sessions, participations, daily totals.

Each function takes what the sources say of one thing and yields its breaks. If a whole session is missing, that is one
break, and its rounds are passed over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rgs.core.amounts import format_money
from rgs.core.ids import ulid_time_ms
from rgs.core.reconcile.classes import BreakClass
from rgs.core.reconcile.facts import (
    Break,
    ReceiptRow,
    RegulatorEnd,
    RegulatorSessionRow,
    SeatFact,
    SessionFact,
    Stage,
)
from rgs.core.reconcile.matching import SHOWN_MAX, Terms
from rgs.core.times import format_time, parse_date

OPEN = "open"
_BOTH = ("statements", "regulator")
SourceTexts = tuple[tuple[str, str], ...]
"""Each source, and what it says."""


def match_round(seat: SeatFact | None, stages: Sequence[Stage], terms: Terms) -> Iterator[Break]:
    """Compare a seat with the regulator's stages of the same participation and number."""
    if seat is None:
        first = stages[0]
        if first.is_session_known and not terms.may_be_outside(first.time_ms):
            yield Break(
                BreakClass.MISSING_IN_RGS,
                f"participation {first.regulator_participation_id} stage {first.stage_no}",
                _said("nothing", _stage(first, first.currency)),
                first.time_ms,
                amount_minor=first.staked_minor,
                currency=first.currency,
                sources=("regulator",),
            )
        return
    if not seat.is_sound or not terms.is_due(seat.ended_ms or seat.opened_ms):
        return
    if seat.status == OPEN:
        if stages and not terms.may_be_outside(stages[0].time_ms):
            yield _of_seat(BreakClass.STATE_DIFFERS, seat, _said(OPEN, _stage(stages[0], seat.currency)))
    elif not stages:
        kind = BreakClass.TIMING if seat.ended_ms >= terms.regulator_until_ms else BreakClass.MISSING_AT_REGULATOR
        yield _of_seat(kind, seat, _said(_seat(seat), "nothing"))
    elif len(stages) > 1:
        found = _said(_seat(seat), f"{len(stages)} stages of this number")
        yield _of_seat(BreakClass.DUPLICATE, seat, found, ("regulator",))
    else:
        yield from _compare_stage(seat, stages[0], terms)


def _compare_stage(seat: SeatFact, stage: Stage, terms: Terms) -> Iterator[Break]:
    if stage.regulator_session_id != seat.regulator_session_id:
        found = _said(seat.regulator_session_id, stage.regulator_session_id)
        yield _of_seat(BreakClass.CONTENT_DIFFERS, seat, found)
    elif stage.time_ms < seat.ended_ms - terms.clock_limit_ms:  # it may be later: a report waits for an answer
        found = _said(f"ended {format_time(seat.ended_ms)}", format_time(stage.time_ms))
        yield _of_seat(BreakClass.TIME_DIFFERS, seat, found)
    if (stage.opening, stage.final) != (seat.opening, seat.final):
        hashes = tuple(
            (f"{source}: {name}", value)
            for name, ours, theirs in (("opening", seat.opening, stage.opening), ("final", seat.final, stage.final))
            if ours != theirs
            for source, value in _said(ours, theirs)
        )
        yield _of_seat(BreakClass.CONTENT_DIFFERS, seat, hashes)
    amounts = (seat.available_minor, seat.staked_minor, seat.returned_minor)
    if amounts != (stage.available_minor, stage.staked_minor, stage.returned_minor):
        yield _of_seat(BreakClass.AMOUNT_DIFFERS, seat, _said(_seat(seat), _stage(stage, seat.currency)))


def match_receipt(seat: SeatFact | None, receipts: Sequence[ReceiptRow], terms: Terms) -> Iterator[Break]:
    """Compare a seat with the operator's receipts of the same session and stage."""
    if seat is None:
        first = receipts[0]
        if not first.is_session_known and terms.is_cut:
            return
        if first.time_ms and terms.may_be_outside(first.time_ms):
            return
        found = (("statements", "nothing"), ("receipts", first.opening))
        yield Break(
            BreakClass.SEAT_MISSING,
            f"session {first.session_id} stage {first.stage_no}",
            found,
            first.time_ms or terms.as_of_ms,
            sources=("receipts",),
        )
        return
    if not seat.is_sound or not terms.is_due(seat.opened_ms):
        return
    if not receipts:
        kind = BreakClass.TIMING if seat.opened_ms >= terms.receipts_until_ms else BreakClass.SEAT_MISSING
        nothing = (("statements", seat.opening), ("receipts", "nothing"))
        yield _of_seat(kind, seat, nothing, ("statements", "receipts"))
    elif others := sorted({receipt.opening for receipt in receipts} - {seat.opening}):
        different = (("statements", seat.opening), *(("receipts", other) for other in others[:SHOWN_MAX]))
        yield _of_seat(BreakClass.CONTENT_DIFFERS, seat, different, ("statements", "receipts"))


def match_overdue(seat: SeatFact, terms: Terms) -> Iterator[Break]:
    """Find a round that is open for longer than the jurisdiction allows."""
    if seat.is_sound and seat.status == OPEN and terms.as_of_ms > seat.due_ms and terms.is_due(seat.opened_ms):
        found = (("statements", f"opened {format_time(seat.opened_ms)}, due {format_time(seat.due_ms)}"),)
        yield _of_seat(BreakClass.OVERDUE_OPENING, seat, found, ("statements",))


def match_sessions(
    sessions: Sequence[SessionFact],
    known: Sequence[RegulatorSessionRow],
    ends: Sequence[RegulatorEnd],
    terms: Terms,
) -> Iterator[Break]:
    """Compare the sessions with one regulator id (several at a table only) with the regulator's session of that id and
    the ends of its participations.
    """
    if not sessions:
        opened_ms = known[0].opened_ms if known else 0
        if known and not terms.is_cut and not terms.may_be_outside(opened_ms):
            yield Break(
                BreakClass.LINK_MISSING,
                f"regulator session {known[0].regulator_session_id}",
                _said("nothing", f"opened {format_time(opened_ms)}"),
                opened_ms,
                operator=known[0].operator,
                currency=known[0].currency,
                sources=("regulator",),
            )
        return
    own = {session.regulator_participation_id for session in sessions}
    strays = [end for end in ends if end.regulator_participation_id not in own]
    references = {session.session_id for session in sessions}
    for place, session in enumerate(sessions):
        result = [end for end in ends if end.regulator_participation_id == session.regulator_participation_id]
        if not result and strays:
            result = [strays.pop(0)]
        if place == len(sessions) - 1 and not terms.is_cut:  # a session outside the files may have the same id
            result += strays
        yield from _match_session(session, known, result, references, terms)


def _match_session(
    session: SessionFact,
    known: Sequence[RegulatorSessionRow],
    ends: Sequence[RegulatorEnd],
    references: set[str],
    terms: Terms,
) -> Iterator[Break]:
    if not session.is_sound or not session.is_whole or not terms.is_due(session.opened_ms):
        return
    if not known:
        late = session.opened_ms >= terms.regulator_until_ms
        found = _said(f"opened {format_time(session.opened_ms)}", "nothing")
        yield _of_session(BreakClass.TIMING if late else BreakClass.LINK_MISSING, session, found)
        return
    first = known[0]
    if len(known) > 1:
        found = _said("one session", f"{len(known)} sessions of this id")
        yield _of_session(BreakClass.DUPLICATE, session, found)
    if first.currency != session.currency:
        yield _of_session(BreakClass.CURRENCY_DIFFERS, session, _said(session.currency, first.currency))
    if first.operator and first.operator != session.operator:
        found = _said(f"operator {session.operator}", f"operator {first.operator}")
        yield _of_session(BreakClass.OPERATOR_DIFFERS, session, found)
    if first.reference and first.reference not in references:
        found = _said(session.session_id, f"reference {first.reference}")
        yield _of_session(BreakClass.CONTENT_DIFFERS, session, found)
    if first.ruleset and first.ruleset != session.game:
        found = _said(f"ruleset {session.game}", f"ruleset {first.ruleset}")
        yield _of_session(BreakClass.CONTENT_DIFFERS, session, found)
    if first.test_regulator and not session.test_regulator:
        found = _said("a session in earnest", "of a test regulator")
        yield _of_session(BreakClass.CONTENT_DIFFERS, session, found)
    begun_ms = min(ulid_time_ms(session.session_id) or session.opened_ms, session.opened_ms)
    yield from _match_time(session, "open", first.opened_ms, (begun_ms, session.opened_ms), terms)
    yield from _match_end(session, first, ends, terms)


def _match_time(
    session: SessionFact, what: str, time_ms: int, between: tuple[int, int], terms: Terms
) -> Iterator[Break]:
    if not terms.may_be_dated(time_ms, *between):
        ours = f"{what} between {format_time(between[0])} and {format_time(between[1])}"
        yield _of_session(BreakClass.TIME_DIFFERS, session, _said(ours, format_time(time_ms)))


def _match_end(
    session: SessionFact, known: RegulatorSessionRow, ends: Sequence[RegulatorEnd], terms: Terms
) -> Iterator[Break]:
    """Participation and session must have ended on both sides, with the same balance and number of rounds."""
    result = [end for end in ends if session.ended_ms or not terms.may_be_outside(end.time_ms)]
    closed = known.closes and (session.closed_ms or not terms.may_be_outside(known.closed_ms))
    ours, theirs = _state(session.ended_ms, session.closed_ms), _state(len(result), closed)
    if ours != theirs:
        newest = max(session.ended_ms, session.closed_ms)
        late = len(ours) > len(theirs) and newest >= terms.regulator_until_ms
        found = _said(" ".join(ours) or OPEN, " ".join(theirs) or OPEN)
        yield _of_session(BreakClass.TIMING if late else BreakClass.STATE_DIFFERS, session, found)
    elif closed and session.closed_ms:
        after_ms = session.ended_ms or session.opened_ms
        yield from _match_time(session, "closed", known.closed_ms, (after_ms, session.closed_ms), terms)
    if len(result) > 1:
        found = _said("one end", f"{len(result)} ends of this participation")
        yield _of_session(BreakClass.DUPLICATE, session, found, ("regulator",))
    elif result and session.ended_ms:
        end, own = result[0], session.regulator_participation_id
        if own and end.regulator_participation_id != own:
            found = _said(f"participation {own}", end.regulator_participation_id)
            yield _of_session(BreakClass.CONTENT_DIFFERS, session, found)
        if end.final_balance_minor != session.paid_out_minor:
            paid = format_money(session.paid_out_minor, session.currency)
            found = _said(f"paid out {paid}", format_money(end.final_balance_minor, session.currency))
            amount = abs(end.final_balance_minor - session.paid_out_minor)
            yield _of_session(BreakClass.AMOUNT_DIFFERS, session, found, amount_minor=amount)
        if end.rounds != session.rounds:
            found = _said(f"{session.rounds} rounds", f"{end.rounds} rounds")
            yield _of_session(BreakClass.STATE_DIFFERS, session, found)
        yield from _match_time(session, "ended", end.time_ms, (session.ending_ms, session.ended_ms), terms)


def match_identity(session: SessionFact) -> Iterator[Break]:
    """Check bought - staked + returned = paid out, if the participation has ended and is whole in the record."""
    if not session.is_sound or not session.is_whole or not session.ended_ms:
        return
    left = session.bought_minor - session.staked_minor + session.returned_minor
    if left != session.paid_out_minor:
        bought, staked, returned, due, paid = (
            format_money(amount, session.currency)
            for amount in (
                session.bought_minor, session.staked_minor, session.returned_minor, left, session.paid_out_minor
            )
        )  # fmt: skip
        found = (("statements", f"{bought} - {staked} + {returned} = {due}, paid out {paid}"),)
        amount = abs(left - session.paid_out_minor)
        yield _of_session(BreakClass.AMOUNT_DIFFERS, session, found, ("statements",), amount_minor=amount)


def match_total(
    date: str, operator: str, currency: str, declared: dict[str, int], listed: dict[str, int], ours: dict[str, int]
) -> Iterator[Break]:
    """Check a day's totals of the regulator. A total is a break if it agrees neither with the record nor with `listed`,
    the sum of the regulator's own rows: differences of these are breaks of their own.
    """
    for name, value in sorted(declared.items()):
        if value not in (ours.get(name, 0), listed.get(name, 0)):
            yield Break(
                BreakClass.AMOUNT_DIFFERS,
                f"total {name} of {date} {operator} {currency}",
                tuple(
                    (source, str(said) if name == "rounds" else format_money(said, currency))
                    for source, said in (
                        ("statements", ours.get(name, 0)),
                        ("regulator", value),
                        ("regulator's own rows", listed.get(name, 0)),
                    )
                ),
                parse_date(date),
                amount_minor=0 if name == "rounds" else abs(value - ours.get(name, 0)),
                operator=operator,
                currency=currency,
                sources=("regulator",),
            )


def _state(ended: object, closed: object) -> tuple[str, ...]:
    return (*(("ended",) if ended else ()), *(("closed",) if closed else ()))


def _seat(seat: SeatFact) -> str:
    return _amounts((seat.available_minor, seat.staked_minor, seat.returned_minor), seat.currency)


def _stage(stage: Stage, currency: str) -> str:
    return _amounts((stage.available_minor, stage.staked_minor, stage.returned_minor), currency)


def _amounts(amounts: tuple[int, int, int], currency: str) -> str:
    named = zip(("available", "staked", "returned"), amounts, strict=True)
    return ", ".join(f"{name} {format_money(amount, currency)}" for name, amount in named)


def _said(ours: str, theirs: str) -> SourceTexts:
    return (("statements", ours), ("regulator", theirs))


def _of_seat(kind: BreakClass, seat: SeatFact, found: SourceTexts, sources: tuple[str, ...] = _BOTH) -> Break:
    return Break(
        kind,
        seat.subject,
        found,
        seat.ended_ms or seat.opened_ms,
        amount_minor=seat.staked_minor,
        operator=seat.operator,
        player=seat.player,
        currency=seat.currency,
        game=seat.game,
        sources=sources,
    )


def _of_session(
    kind: BreakClass,
    session: SessionFact,
    found: SourceTexts,
    sources: tuple[str, ...] = _BOTH,
    *,
    amount_minor: int = 0,
) -> Break:
    return Break(
        kind,
        f"session {session.session_id}",
        found,
        session.closed_ms or session.ended_ms or session.opened_ms,
        amount_minor=amount_minor,
        operator=session.operator,
        player=session.player,
        currency=session.currency,
        game=session.game,
        sources=sources,
    )
