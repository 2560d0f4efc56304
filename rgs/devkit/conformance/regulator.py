"""The checks of a regulator's system or its gateway, over `rgs.regulator.v1` (docs/regulator.md).

Every check opens a session of its own, so that none depends on another. If the contract allows two answers, both pass.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from rgs.core.times import format_date
from rgs.devkit.conformance.kit import (
    CheckSkippedError,
    ConformanceCheck,
    checks,
    demand,
    demand_accepted,
    demand_reason,
)
from rgs.devkit.conformance.regulator_kit import (
    BOUGHT_MINOR,
    CAP_MINOR,
    FUTURE_MS,
    NOBODY,
    PARALLEL,
    STAKED_MINOR,
    RegulatorKit,
    RegulatorSeat,
    demand_id,
    timestamp,
)
from rgs.regulator.v1 import regulator_pb2 as pb

DAY_MS: Final = 86_400_000
LEFT_MINOR: Final = BOUGHT_MINOR - STAKED_MINOR

# --- sessions ---------------------------------------------------------------------------------------------------------


async def session_id(kit: RegulatorKit) -> None:
    """A session gets an id of 16 letters and digits."""
    demand_id(demand_accepted(await kit.send(kit.opening())).regulator_session_id)


async def session_repeat(kit: RegulatorKit) -> None:
    """A repeated opening gets the same id."""
    opening = kit.opening()
    ids = {demand_accepted(await kit.send(opening)).regulator_session_id for _ in range(3)}
    demand(len(ids) == 1, f"three times the same request got {len(ids)} ids")


async def session_parallel(kit: RegulatorKit) -> None:
    """The same opening at once gets one id."""
    opening = kit.opening()
    copies = [pb.OpenSessionRequest.FromString(opening.SerializeToString()) for _ in range(PARALLEL)]
    answers = await asyncio.gather(*(kit.send(copy) for copy in copies))
    ids = {demand_accepted(answered).regulator_session_id for answered in answers}
    demand(len(ids) == 1, f"{PARALLEL} times the same request at once got {len(ids)} ids")


async def session_conflict(kit: RegulatorKit) -> None:
    """An opening's transaction id with other data is a conflict."""
    opening = kit.opening()
    demand_accepted(await kit.send(opening))
    opening.reference = kit.new_id()
    demand_reason(await kit.send(opening), "TRANSACTION_CONFLICT")


async def session_reference(kit: RegulatorKit) -> None:
    """A reference stands for one session."""
    opening = kit.opening()
    demand_accepted(await kit.send(opening))
    demand_reason(await kit.send(kit.opening(reference=opening.reference)), "REFERENCE_USED")


async def session_close(kit: RegulatorKit) -> None:
    """A session closes once, and a repeat is answered."""
    closing = kit.closing(await kit.opened())
    for _ in range(2):
        demand_accepted(await kit.send(closing))
    demand_reason(await kit.send(kit.closing(closing.regulator_session_id)), "SESSION_CLOSED")


async def session_seated(kit: RegulatorKit) -> None:
    """A session with a seated player is not closed."""
    seat = await kit.seated()
    demand_reason(await kit.send(kit.closing(seat.session)), "SEATED")
    demand_accepted(await kit.send(kit.top_up(seat)))


async def session_closed(kit: RegulatorKit) -> None:
    """A closed session sells no participation."""
    session = await kit.opened()
    demand_accepted(await kit.send(kit.closing(session)))
    demand_reason(await kit.send(kit.purchase(session)), "SESSION_CLOSED")


async def session_unknown(kit: RegulatorKit) -> None:
    """An unknown session is refused."""
    demand_reason(await kit.send(kit.purchase(NOBODY)), "UNKNOWN_SESSION")
    demand_reason(await kit.send(kit.closing(NOBODY)), "UNKNOWN_SESSION")


# --- purchases --------------------------------------------------------------------------------------------------------


async def purchase_id(kit: RegulatorKit) -> None:
    """A first purchase gets an id of 16 letters and digits."""
    response = demand_accepted(await kit.send(kit.purchase(await kit.opened())))
    demand_id(response.regulator_participation_id)


async def purchase_repeat(kit: RegulatorKit) -> None:
    """A repeated purchase gets the same id."""
    seat = await kit.seated()
    again = demand_accepted(await kit.send(seat.purchase)).regulator_participation_id
    demand(again == seat.participation, f"the repeat got {again}, the first answer was {seat.participation}")


async def purchase_once(kit: RegulatorKit) -> None:
    """A repeated purchase buys nothing more."""
    seat = await kit.seated()
    await kit.send(seat.purchase)
    demand_accepted(await kit.send(kit.end(seat)))


async def purchase_conflict(kit: RegulatorKit) -> None:
    """A purchase's transaction id with other data is a conflict."""
    seat = await kit.seated()
    seat.purchase.amount_minor += 1
    demand_reason(await kit.send(seat.purchase), "TRANSACTION_CONFLICT")


async def purchase_top_up(kit: RegulatorKit) -> None:
    """A top-up keeps the participation's id."""
    seat = await kit.seated()
    result = demand_accepted(await kit.send(kit.top_up(seat))).regulator_participation_id
    demand(result == seat.participation, f"the top-up got {result}, the participation is {seat.participation}")


async def purchase_gap(kit: RegulatorKit) -> None:
    """Purchases are numbered without a gap."""
    seat = await kit.seated()
    demand_reason(await kit.send(kit.top_up(seat, purchase_no=3)), "PURCHASE_GAP")
    demand_reason(await kit.send(kit.top_up(seat, purchase_no=1)), "PURCHASE_GAP")


async def purchase_cap(kit: RegulatorKit) -> None:
    """All purchases together stay within the cap."""
    seat = await kit.seated()
    demand_reason(await kit.send(kit.top_up(seat, amount_minor=CAP_MINOR - BOUGHT_MINOR + 1)), "ABOVE_MAXIMUM")


async def purchase_not_positive(kit: RegulatorKit) -> None:
    """A purchase of 0 or less is refused."""
    session = await kit.opened()
    for amount_minor in (0, -1):
        demand_reason(await kit.send(kit.purchase(session, amount_minor=amount_minor)), "AMOUNT_NOT_POSITIVE")


async def seat_once(kit: RegulatorKit) -> None:
    """A player sits once in a session."""
    seat = await kit.seated()
    demand_reason(await kit.send(kit.purchase(seat.session)), "ALREADY_SEATED")


async def seat_ended(kit: RegulatorKit) -> None:
    """After the end there is no further purchase."""
    seat = await kit.seated()
    demand_accepted(await kit.send(kit.end(seat)))
    demand_reason(await kit.send(kit.purchase(seat.session)), "ALREADY_SEATED")
    demand_reason(await kit.send(kit.top_up(seat)), "PARTICIPATION_ENDED")


# --- stages -----------------------------------------------------------------------------------------------------------


async def played(kit: RegulatorKit) -> tuple[RegulatorSeat, pb.Stage]:
    """A seat, and its first stage, which is reported."""
    seat = await kit.seated()
    stage = kit.stage(seat, 1, BOUGHT_MINOR)
    demand_accepted(await kit.send(kit.report(stage)))
    return seat, stage


async def stages(kit: RegulatorKit) -> None:
    """Stages are taken, and the end agrees with them."""
    seat, _ = await played(kit)
    stages = [kit.stage(seat, 2, LEFT_MINOR, returned_minor=60), kit.stage(seat, 3, LEFT_MINOR + 30)]
    demand_accepted(await kit.send(kit.report(*stages)))
    demand_accepted(await kit.send(kit.end(seat, LEFT_MINOR, rounds=3)))


async def stage_repeat(kit: RegulatorKit) -> None:
    """A stage reported again with the same data is ignored."""
    seat, stage = await played(kit)
    demand_accepted(await kit.send(kit.report(stage)))
    demand_accepted(await kit.send(kit.report(stage, kit.stage(seat, 2, LEFT_MINOR))))


def stage_refused(name: str, says: str, reason: str, **changed: Any) -> ConformanceCheck[RegulatorKit]:
    """The check that a second stage with these values is refused."""

    async def tried(kit: RegulatorKit) -> None:
        seat, _ = await played(kit)
        values: dict[str, Any] = {"stage_no": 2, "available_minor": LEFT_MINOR, **changed}
        demand_reason(await kit.send(kit.report(kit.stage(seat, **values))), reason)

    return ConformanceCheck(name, says, tried)


async def stage_conflict(kit: RegulatorKit) -> None:
    """A stage reported again with other data is a conflict."""
    seat, stage = await played(kit)
    other = kit.stage(seat, 1, BOUGHT_MINOR, opening_hash="0" * 64, end_time=stage.end_time)
    demand_reason(await kit.send(kit.report(other)), "STAGE_CONFLICT")


async def stage_unknown(kit: RegulatorKit) -> None:
    """A stage of an unknown participation is refused."""
    seat = await kit.seated()
    stage = kit.stage(seat, 1, BOUGHT_MINOR, regulator_participation_id=NOBODY)
    demand_reason(await kit.send(kit.report(stage)), "UNKNOWN_PARTICIPATION")


async def stage_batch(kit: RegulatorKit) -> None:
    """A report is entered whole or not at all."""
    seat = await kit.seated()
    bad = kit.report(kit.stage(seat, 1, BOUGHT_MINOR), kit.stage(seat, 3, LEFT_MINOR))
    demand_reason(await kit.send(bad), "STAGE_GAP")
    demand_accepted(await kit.send(kit.end(seat)))


async def stage_none(kit: RegulatorKit) -> None:
    """A report without stages is refused."""
    demand_reason(await kit.send(kit.report()), "INVALID_FIELD")


# --- ends -------------------------------------------------------------------------------------------------------------


async def end_repeat(kit: RegulatorKit) -> None:
    """A repeated end is answered as the first."""
    end = kit.end(await kit.seated())
    for _ in range(2):
        demand_accepted(await kit.send(end))


async def end_once(kit: RegulatorKit) -> None:
    """A participation ends once."""
    seat = await kit.seated()
    demand_accepted(await kit.send(kit.end(seat)))
    demand_reason(await kit.send(kit.end(seat)), "ENDED_TWICE")


async def end_balance(kit: RegulatorKit) -> None:
    """The final balance is bought - staked + returned."""
    seat = await kit.seated()
    for balance_minor in (BOUGHT_MINOR - 1, BOUGHT_MINOR + 1):
        demand_reason(await kit.send(kit.end(seat, balance_minor)), "BALANCE_MISMATCH")


async def end_rounds(kit: RegulatorKit) -> None:
    """The end counts the stages."""
    demand_reason(await kit.send(kit.end(await kit.seated(), rounds=1)), "ROUNDS_MISMATCH")


async def end_unknown(kit: RegulatorKit) -> None:
    """The end of an unknown participation is refused."""
    seat = await kit.seated()
    demand_reason(await kit.send(kit.end(seat, regulator_participation_id=NOBODY)), "UNKNOWN_PARTICIPATION")


# --- times, daily duties, reading back --------------------------------------------------------------------------------


async def dates(kit: RegulatorKit) -> None:
    """No time lies in the future."""
    later = timestamp(kit.now_ms() + FUTURE_MS)
    demand_reason(await kit.send(kit.opening(open_time=later)), "DATE_IN_FUTURE")
    seat = await kit.seated()
    demand_reason(await kit.send(kit.top_up(seat, purchase_time=later)), "DATE_IN_FUTURE")
    demand_reason(await kit.send(kit.report(kit.stage(seat, 1, BOUGHT_MINOR, end_time=later))), "DATE_IN_FUTURE")
    demand_reason(await kit.send(kit.end(seat, end_time=later)), "DATE_IN_FUTURE")


def _alignment(kit: RegulatorKit, time_ms: int, **totals: int) -> pb.AlignDayRequest:
    return pb.AlignDayRequest(
        transaction_id=kit.new_id(),
        operator=f"nobody-{kit.new_id().lower()}",  # an operator without sessions: its days are empty
        currency=kit.currency,
        day=format_date(time_ms),
        totals=pb.DayTotals(**totals),
    )


async def day_aligned(kit: RegulatorKit) -> None:
    """A day's totals must match the reports."""
    alignment = _alignment(kit, kit.now_ms() - 2 * DAY_MS)
    for _ in range(2):
        demand_accepted(await kit.send(alignment))
    wrong = _alignment(kit, kit.now_ms() - 2 * DAY_MS, stages=1, staked_minor=STAKED_MINOR)
    demand_reason(await kit.send(wrong), "TOTALS_MISMATCH")


async def day_over(kit: RegulatorKit) -> None:
    """A day is aligned when it is over."""
    demand_reason(await kit.send(_alignment(kit, kit.now_ms() + DAY_MS)), "DATE_IN_FUTURE")


async def modules(kit: RegulatorKit) -> None:
    """Hashes of modules are taken, and a repeat is answered."""
    report = kit.modules()
    for _ in range(2):
        demand_accepted(await kit.send(report))


async def modules_malformed(kit: RegulatorKit) -> None:
    """Malformed hashes of modules are refused."""
    for modules in ([], [pb.Module(name="rng", version="1", sha256="short")]):
        demand_reason(await kit.send(kit.modules(modules=modules)), "INVALID_FIELD")


async def fields_malformed(kit: RegulatorKit) -> None:
    """Malformed or missing fields are refused."""
    for wrong in ({"transaction_id": ""}, {"reference": ""}, {"currency": "eur"}, {"participation_cap_minor": 0}):
        demand_reason(await kit.send(kit.opening(**wrong)), "INVALID_FIELD")


async def read_back(kit: RegulatorKit) -> None:
    """Session and participation can be read back."""
    seat, _ = await played(kit)
    session = await kit.send(pb.GetSessionRequest(regulator_session_id=seat.session))
    if "UNIMPLEMENTED" in session.reason:
        raise CheckSkippedError("the system does not offer reading back")
    result = demand_accepted(session)
    demand(
        (result.seated, result.closed) == (1, False),
        f"seated {result.seated}, closed {result.closed}; it is 1 and open",
    )
    held = demand_accepted(await kit.send(pb.GetParticipationRequest(regulator_participation_id=seat.participation)))
    found = (held.purchases, held.stages, held.bought_minor, held.staked_minor, held.returned_minor, held.ended)
    due = (1, 1, BOUGHT_MINOR, STAKED_MINOR, 0, False)
    demand(found == due, f"purchases, stages, bought, staked, returned, ended are {found}, not {due}")


CHECKS: Final[tuple[ConformanceCheck[RegulatorKit], ...]] = (
    *checks(session_id, session_repeat, session_parallel, session_conflict, session_reference),
    *checks(session_close, session_seated, session_closed, session_unknown),
    *checks(purchase_id, purchase_repeat, purchase_once, purchase_conflict, purchase_top_up),
    *checks(purchase_gap, purchase_cap, purchase_not_positive, seat_once, seat_ended),
    *checks(stages, stage_repeat, stage_conflict),
    stage_refused("stage_gap", "Stages are numbered without a gap", "STAGE_GAP", stage_no=3),
    stage_refused(
        "stage_available",
        "The balance before a stage follows from what came before it",
        "AVAILABLE_MISMATCH",
        available_minor=LEFT_MINOR + 1,
    ),
    stage_refused(
        "stage_covered",
        "No stage stakes more than is left",
        "STAKE_NOT_COVERED",
        staked_minor=LEFT_MINOR + 1,
    ),
    *checks(stage_unknown, stage_batch, stage_none),
    *checks(end_repeat, end_once, end_balance, end_rounds, end_unknown),
    *checks(dates, day_aligned, day_over, modules, modules_malformed, fields_malformed, read_back),
)
