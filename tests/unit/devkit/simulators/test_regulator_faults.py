"""The regulator's client and the misbehaving regulator: every fault, and what becomes of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rgs.adapters.embedded.regulator import DAY_MS
from rgs.core.errors import (
    AlreadySeatedError,
    IdempotencyConflictError,
    InvalidFieldError,
    JurisdictionError,
    ParticipationCapError,
    ParticipationEndedError,
    ParticipationOpenError,
    RegulatorRefusedError,
    RegulatorUnavailableError,
    RgsError,
)
from rgs.core.times import format_date
from rgs.devkit.simulators.faults import Fault, FaultPlan
from rgs.devkit.simulators.statements import regulator_statement
from rgs.ports.regulator import DayAlignment, ParticipationEnd, SessionClose
from rgs.regulator.v1 import regulator_pb2 as pb
from rgs.regulator.v1.regulator_pb2_grpc import RegulatorServiceStub
from tests.support.adapters.books import NOTHING, NOW_MS, modules, opening, purchase, stage, ulid
from tests.support.adapters.simulators import Running, always, at, running_regulator


async def seated(running: Running) -> tuple[str, str]:
    """A session with one participation of 500, by transactions 1 and 2."""
    session = (await running.client.open_session(opening(ulid(1)))).regulator_session_id
    right = await running.client.buy_participation(purchase(ulid(2), session))
    return session, right.regulator_participation_id


def end(session: str, participation: str, number: int, balance_minor: int = 470, rounds: int = 1) -> ParticipationEnd:
    return ParticipationEnd(ulid(number), session, participation, balance_minor, rounds, NOW_MS)


async def test_a_whole_life_is_told_once_however_often_it_is_sent(tmp_path: Path) -> None:
    async with running_regulator(tmp_path) as running:
        regulator = running.client
        session, participation = await seated(running)
        result = stage(session, participation, 1, 500)
        for _ in range(2):
            assert await seated(running) == (session, participation)
            assert (await regulator.report_stages(ulid(3), [result])).test_regulator
            await regulator.end_participation(end(session, participation, 4))
            await regulator.close_session(SessionClose(ulid(5), session, NOW_MS))
            await regulator.report_modules(modules(ulid(6)))
            await regulator.align_day(DayAlignment(ulid(7), "op", "EUR", format_date(NOW_MS - DAY_MS), NOTHING))
        rows = [json.loads(line) for line in regulator_statement(running.simulator.store).splitlines()]
        assert [row["kind"] for row in rows] == ["session", "purchase", "stage", "end", "close", "total"]
        assert {row.get("regulator_session_id", session) for row in rows} == {session}
        assert rows[1]["transaction_id"] == ulid(2)
        assert (rows[2]["final_hash"], rows[2]["stage_no"]) == (result.final_hash, "1")
        assert rows[5] == {
            "alignment_no": "1", "bought_minor": "0", "currency": "EUR", "date": format_date(NOW_MS - DAY_MS),
            "ends": "0", "kind": "total", "operator": "op", "paid_out_minor": "0", "purchases": "0",
            "returned_minor": "0", "rounds": "0", "staked_minor": "0",
        }  # fmt: skip
        stub: Any = RegulatorServiceStub(regulator.channel)
        held = await stub.GetParticipation(pb.GetParticipationRequest(regulator_participation_id=participation))
        assert (held.bought_minor, held.staked_minor, held.stages, held.ended) == (500, 30, 1, True)
        kept = await stub.GetSession(pb.GetSessionRequest(regulator_session_id=session))
        assert (kept.closed, kept.seated, kept.reference) == (True, 0, "session-1")


REFUSED: list[tuple[type[RgsError], str, Any]] = [
    (AlreadySeatedError, "ALREADY_SEATED", lambda c, s, p: c.buy_participation(purchase(ulid(8), s, reference="q"))),
    (ParticipationCapError, "ABOVE_MAXIMUM", lambda c, s, p: c.buy_participation(
        purchase(ulid(8), s, purchase_no=2, amount_minor=501))),
    (RegulatorRefusedError, "PURCHASE_GAP", lambda c, s, p: c.buy_participation(purchase(ulid(8), s, purchase_no=3))),
    (InvalidFieldError, "AMOUNT_NOT_POSITIVE", lambda c, s, p: c.buy_participation(
        purchase(ulid(8), s, amount_minor=0))),
    (RegulatorRefusedError, "STAGE_GAP", lambda c, s, p: c.report_stages(ulid(8), [stage(s, p, 2, 500)])),
    (RegulatorRefusedError, "BALANCE_MISMATCH", lambda c, s, p: c.end_participation(end(s, p, 8, 499, 0))),
    (ParticipationOpenError, "SEATED", lambda c, s, p: c.close_session(SessionClose(ulid(8), s, NOW_MS))),
    (IdempotencyConflictError, "TRANSACTION_CONFLICT", lambda c, s, p: c.close_session(
        SessionClose(ulid(2), s, NOW_MS))),
    (RegulatorRefusedError, "DATE_IN_FUTURE", lambda c, s, p: c.close_session(
        SessionClose(ulid(8), s, NOW_MS + 1001))),
    (RegulatorRefusedError, "UNKNOWN_SESSION", lambda c, s, p: c.close_session(
        SessionClose(ulid(8), "Z" * 16, NOW_MS))),
    (InvalidFieldError, "INVALID_FIELD", lambda c, s, p: c.report_modules(replace(modules(ulid(8)), modules=()))),
]  # fmt: skip


async def test_a_clock_a_second_ahead_is_taken(tmp_path: Path) -> None:
    """Two machines' clocks are never the same, nor are those of two processes after a while."""
    async with running_regulator(tmp_path) as running:
        session, participation = await seated(running)
        await running.client.end_participation(end(session, participation, 8, 500, 0))
        await running.client.close_session(SessionClose(ulid(9), session, NOW_MS + 1000))


@pytest.mark.parametrize(("error", "rejection", "act"), REFUSED, ids=[row[1] for row in REFUSED])
async def test_rejections_come_through(tmp_path: Path, error: type[RgsError], rejection: str, act: Any) -> None:
    async with running_regulator(tmp_path) as running:
        session, participation = await seated(running)
        entries = list(running.simulator.store.entries())
        with pytest.raises(error) as refused:
            await act(running.client, session, participation)
        assert refused.value.metadata["rejection"] == rejection
        assert list(running.simulator.store.entries()) == entries


async def test_a_rejection_keeps_its_numbers(tmp_path: Path) -> None:
    async with running_regulator(tmp_path) as running:
        session, participation = await seated(running)
        with pytest.raises(RegulatorRefusedError) as refused:
            await running.client.report_stages(ulid(8), [stage(session, participation, n, 500) for n in (1, 3)])
        assert refused.value.metadata == {"rejection": "STAGE_GAP", "limit": "2", "value": "3", "index": "1"}


@pytest.mark.parametrize(
    "plan",
    [
        at("BuyParticipation", 1, Fault.LOST_REPLY),
        at("BuyParticipation", 1, Fault.LOST_REQUEST),
        at("BuyParticipation", 1, Fault.RESTART),
        at("BuyParticipation", 1, Fault.ALIGNMENT_RUNNING),
        at("BuyParticipation", 1, Fault.REORDER),
    ],
    ids=str,
)
async def test_what_was_not_answered_is_settled_by_the_same_id(tmp_path: Path, plan: FaultPlan) -> None:
    async with running_regulator(tmp_path, plan) as running:
        with pytest.raises(RegulatorUnavailableError):
            await seated(running)
        session, _ = await seated(running)
        kinds = [entry.kind for entry in running.simulator.store.entries()]
        assert kinds == ["opening", "purchase"]
        with pytest.raises(ParticipationOpenError):
            await running.client.close_session(SessionClose(ulid(9), session, NOW_MS))


async def test_an_alignment_that_runs_says_when_to_come_again_and_is_no_silence(tmp_path: Path) -> None:
    async with running_regulator(tmp_path, always(Fault.ALIGNMENT_RUNNING)) as running:
        with pytest.raises(RegulatorUnavailableError) as later:
            await running.client.open_session(opening(ulid(1)))
        assert later.value.metadata == {"rejection": "ALIGNMENT_RUNNING", "retry_after_ms": "500"}
        assert running.client.reading().unknown == 0


async def test_an_id_that_is_none_is_unknown_and_told_of(tmp_path: Path) -> None:
    async with running_regulator(tmp_path, always(Fault.WRONG_ID)) as running:
        with pytest.raises(RegulatorUnavailableError):
            await running.client.open_session(opening(ulid(1)))
        assert running.contradictions == [("regulator", "OpenSession", ulid(1), "regulator_session_id")]


async def test_a_test_regulator_is_refused_where_none_is_allowed_and_a_real_one_is_not(tmp_path: Path) -> None:
    real = replace(opening(ulid(1)), test_regulator_allowed=False, jurisdiction="it-adm")
    async with running_regulator(tmp_path) as running:
        with pytest.raises(JurisdictionError):
            await running.client.open_session(real)
    async with running_regulator(tmp_path, counts=True) as running:
        assert not (await running.client.open_session(real)).test_regulator


BROKEN: list[tuple[Fault, type[RgsError], Any]] = [
    (Fault.NO_CAP, ParticipationCapError, lambda c, s, p: c.buy_participation(
        purchase(ulid(8), s, purchase_no=2, amount_minor=501))),
    (Fault.CLOSES_SEATED, ParticipationOpenError, lambda c, s, p: c.close_session(SessionClose(ulid(8), s, NOW_MS))),
    (Fault.FUTURE_DATES, RegulatorRefusedError, lambda c, s, p: c.end_participation(
        replace(end(s, p, 8, 500, 0), end_ms=NOW_MS + 1001))),
    (Fault.CONFLICTING_RETRY, IdempotencyConflictError, lambda c, s, p: c.buy_participation(purchase(ulid(2), s))),
]  # fmt: skip


@pytest.mark.parametrize(("fault", "error", "act"), BROKEN, ids=[row[0] for row in BROKEN])
@pytest.mark.parametrize("broken", [False, True])
async def test_lies_of_the_books(tmp_path: Path, fault: Fault, error: type[RgsError], act: Any, broken: bool) -> None:
    plan = always(fault) if broken else FaultPlan()
    async with running_regulator(tmp_path, plan) as running:
        session, participation = await seated(running)
        if broken is (fault is Fault.CONFLICTING_RETRY):
            with pytest.raises(error):
                await act(running.client, session, participation)
        else:
            await act(running.client, session, participation)


async def test_ends_twice_and_changed_hash(tmp_path: Path) -> None:
    async with running_regulator(tmp_path, always(Fault.ENDS_TWICE, Fault.CHANGED_HASH)) as running:
        session, participation = await seated(running)
        result = stage(session, participation, 1, 500)
        await running.client.report_stages(ulid(3), [result])
        for number in (4, 5):
            await running.client.end_participation(end(session, participation, number))
        entry = next(entry for entry in running.simulator.store.entries() if entry.kind == "stage")
        assert json.loads(entry.body)["request"]["final_hash"] == result.final_hash[::-1]
    (tmp_path / "second").mkdir()
    async with running_regulator(tmp_path / "second") as running:
        session, participation = await seated(running)
        await running.client.end_participation(end(session, participation, 4, 500, 0))
        with pytest.raises(ParticipationEndedError):
            await running.client.end_participation(end(session, participation, 5, 500, 0))
