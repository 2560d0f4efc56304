"""64 tasks at once, on one session and on many: one outcome, no draw lost, every book agrees."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from rgs.core.errors import RegulatorRefusedError, RgsError, UnavailableError
from rgs.service import callers
from rgs.service.callers import Reply, SessionLocks
from rgs.service.play.sessions import Sessions
from rgs.store.changes import Change
from rgs.store.writer import CommitOutcome
from tests.support.service.harness import ACCOUNT_MINOR, Request, ServiceHarness, open_harness
from tests.support.service.oracles import stored_statements, table, verify_books
from tests.support.service.player import Player

TASKS = 64


async def test_locks_that_somebody_holds_are_kept_however_many_sessions_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callers, "LOCKS_KEPT_MAX", 10)
    locks = SessionLocks()
    async with locks.of("held"):
        for number in range(100):
            async with locks.of(f"s-{number}"):
                assert locks.of(f"s-{number}").locked()
            assert len(locks._locks) <= 11
        assert locks.of("held").locked()
    assert not locks.of("held").locked()


def without_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The locks only spare lost races; what decides are the versions in the store."""
    monkeypatch.setattr(SessionLocks, "of", lambda _self, _session_id: asyncio.Lock())


def slow_store(harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every commit takes so long that all who read before it race for it."""
    apply = harness.store.apply

    def slowly(changes: list[Change]) -> Sequence[CommitOutcome]:
        time.sleep(0.1)
        return apply(changes)

    monkeypatch.setattr(harness.store.writer, "_apply", slowly)


async def outcomes(
    harness: ServiceHarness, requests: Sequence[Request]
) -> tuple[list[tuple[Request, Reply]], Counter[str]]:
    """The requests that were answered, and how often each refusal was given."""
    results = await asyncio.gather(*[harness.send(request) for request in requests], return_exceptions=True)
    replies: list[tuple[Request, Reply]] = []
    reasons: Counter[str] = Counter()
    for request, result in zip(requests, results, strict=True):
        if isinstance(result, Reply):
            replies.append((request, result))
        else:
            assert isinstance(result, RgsError), result
            reasons[result.reason] += 1
    return replies, reasons


async def one_answer(harness: ServiceHarness, player: Player, request: Request) -> None:
    """The same request many times at once, and the one answer that it has."""
    replies, reasons = await outcomes(harness, [request] * TASKS)
    assert not reasons
    assert len({(reply.body, reply.envelope) for _, reply in replies}) == 1
    player.take(*replies[0])


LOCKED = pytest.mark.parametrize("locked", [True, False])


@LOCKED
async def test_many_starts_of_one_stage_deal_one_round(
    tmp_path: Path, harness: ServiceHarness, anna: Player, monkeypatch: pytest.MonkeyPatch, locked: bool
) -> None:
    await anna.sit()
    if not locked:
        without_locks(monkeypatch)
        slow_store(harness, monkeypatch)
    replies, reasons = await outcomes(harness, [anna.starting() for _ in range(TASKS)])
    assert len(replies) == 1
    assert sum(reasons.values()) == TASKS - 1
    assert set(reasons) <= {"ROUND_OPEN", "SESSION_CHANGED"}
    anna.take(*replies[0])
    await anna.finish_round()
    await anna.leave()
    await harness.settle()
    summary = verify_books(tmp_path)
    assert summary.draws_in_rounds == 1
    assert (summary.draws_discarded > 0) is (not locked), "the lost races really happened"


@LOCKED
async def test_one_request_many_times_at_once_is_one_answer(
    tmp_path: Path, harness: ServiceHarness, anna: Player, monkeypatch: pytest.MonkeyPatch, locked: bool
) -> None:
    if not locked:
        without_locks(monkeypatch)
    await anna.sit()
    await one_answer(harness, anna, anna.starting())
    await one_answer(harness, anna, anna.decision("check"))
    await one_answer(harness, anna, anna.decision("play_2x"))
    assert anna.round["status"] == "settled"
    if locked:  # without, two attempts of one operation may race for its end, and one is told to read again
        await one_answer(harness, anna, anna.purchase(50))
        await one_answer(harness, anna, anna.ending())
        await one_answer(harness, anna, anna.closing())
    else:
        await anna.leave()
    await harness.settle()
    assert verify_books(tmp_path).rounds_verified == 1


@LOCKED
async def test_many_decisions_at_once_take_one(
    tmp_path: Path, harness: ServiceHarness, anna: Player, monkeypatch: pytest.MonkeyPatch, locked: bool
) -> None:
    await anna.sit()
    await anna.start()
    if not locked:
        without_locks(monkeypatch)
    actions = ("check", "play_3x", "play_4x")
    requests: list[Request] = [anna.decision(actions[number % 3]) for number in range(TASKS)]
    replies, reasons = await outcomes(harness, requests)
    assert len(replies) == 1
    assert set(reasons) <= {"ROUND_CHANGED", "ROUND_NOT_OPEN", "SESSION_CHANGED"}
    anna.take(*replies[0])
    assert len(anna.round["actions"]) == 1
    if anna.round["status"] == "open":
        await anna.finish_round()
    await anna.leave()
    await harness.settle()
    verify_books(tmp_path)


@LOCKED
async def test_purchases_at_once_take_the_money_once(
    tmp_path: Path, harness: ServiceHarness, anna: Player, monkeypatch: pytest.MonkeyPatch, locked: bool
) -> None:
    await anna.open()
    if not locked:
        without_locks(monkeypatch)
    replies, reasons = await outcomes(harness, [anna.purchase(100) for _ in range(TASKS)])
    assert len(replies) == 1
    assert set(reasons) <= {"NUMBER_NOT_EXPECTED", "SESSION_CHANGED", "OPERATION_PENDING"}
    assert await harness.balance() == ACCOUNT_MINOR - 100
    anna.take(*replies[0])
    await anna.leave()
    verify_books(tmp_path)


@pytest.mark.slow
async def test_many_players_live_at_once(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness:

        async def live(number: int) -> None:
            game = ("uth-solo", "casino-holdem")[number % 2]
            player = Player(harness, game=game, name=f"player-{number // 2}")
            await player.sit(2_000)
            for _ in range(2):
                await player.play(40)
                await harness.reporting.report_stages()
            await player.leave()

        await asyncio.gather(*map(live, range(TASKS)))
        await harness.settle()
        assert harness.store.writer.changes > 1.5 * harness.store.writer.groups, "commits were grouped"
    summary = verify_books(tmp_path)
    assert (summary.sessions, summary.rounds_verified) == (TASKS, 2 * TASKS)


async def test_callers_who_leave_change_nothing(tmp_path: Path, harness: ServiceHarness) -> None:
    """Half of the calls are cancelled at once; each retries with its request id."""
    players = [Player(harness, name=f"player-{number}") for number in range(16)]
    for player in players:
        await player.sit(2_000)

    async def live(player: Player) -> None:
        makes: list[Callable[[], Request]] = [player.starting, *[lambda: player.decision("check")] * 2]
        for make in makes:
            request = make()
            task = asyncio.ensure_future(harness.send(request))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await player.send(request)
        await player.finish_round()
        await player.leave()

    await asyncio.gather(*map(live, players))
    await harness.settle()
    summary = verify_books(tmp_path)
    assert summary.rounds_verified == 16
    assert harness.instance._in_flight == 0


# --- races that are certain -------------------------------------------------------------------------------------------


async def at_once(
    harness: ServiceHarness, requests: Sequence[Request]
) -> tuple[list[tuple[Request, Reply]], Counter[str]]:
    """As `outcomes`, but nothing is written before all have computed what they want to write."""
    gate = threading.Event()
    genuine = harness.store.writer._apply

    def held(changes: list[Change]) -> Sequence[CommitOutcome]:
        assert gate.wait(10)
        return genuine(changes)  # type: ignore[return-value]

    harness.store.writer._apply = held
    sending = asyncio.ensure_future(outcomes(harness, requests))
    await asyncio.sleep(0.03)
    harness.store.writer._apply = genuine
    gate.set()
    return await sending


async def test_of_two_purchases_computed_from_one_state_one_is_told_to_read_again(
    tmp_path: Path, harness: ServiceHarness, anna: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    await anna.open()
    without_locks(monkeypatch)
    replies, reasons = await at_once(harness, [anna.purchase(100), anna.purchase(100)])
    assert (len(replies), reasons) == (1, Counter({"SESSION_CHANGED": 1}))
    assert harness.wallet_script.count("debit") == 1
    anna.take(*replies[0])
    await anna.leave()
    verify_books(tmp_path)


async def test_one_purchase_twice_at_once_is_continued_not_begun_again(
    tmp_path: Path, harness: ServiceHarness, anna: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    await anna.open()
    without_locks(monkeypatch)
    request = anna.purchase(100)
    replies, reasons = await at_once(harness, [request] * 3)
    assert replies
    assert set(reasons) <= {"SESSION_CHANGED"}
    assert len({transaction for method, transaction in harness.wallet_script.calls if method == "debit"}) == 1
    await anna.send(request)
    await anna.leave()
    verify_books(tmp_path)


async def test_one_opening_twice_at_once_waits_for_the_first(
    tmp_path: Path, harness: ServiceHarness, anna: Player
) -> None:
    request = anna.opening()
    replies, reasons = await at_once(harness, [request] * 3)
    assert not reasons
    assert len({reply.body for _, reply in replies}) == 1
    anna.take(*replies[0])
    await anna.close()
    verify_books(tmp_path)


async def test_one_opening_twice_at_once_and_refused(harness: ServiceHarness, anna: Player) -> None:
    harness.regulator_script.plan("open_session", RegulatorRefusedError("no", rejection="PLANNED"))
    request = anna.opening()
    replies, reasons = await at_once(harness, [request] * 2)
    assert replies == []
    assert reasons == Counter({"REGULATOR_REFUSED": 2})
    assert harness.regulator_script.count("open_session") == 1
    await anna.open()


# --- the same opening twice at once -----------------------------------------------------------------------------------


@pytest.mark.parametrize("silent", [None, "before", "after"])
async def test_the_same_opening_many_times_at_once_is_one_session(
    tmp_path: Path, harness: ServiceHarness, anna: Player, silent: str | None
) -> None:
    request = anna.opening()
    if silent:
        harness.regulator_script.plan("open_session", silent)
        with pytest.raises(UnavailableError):
            await anna.send(request)
    replies = await asyncio.gather(*[harness.send(request) for _ in range(12)])
    assert len({(reply.body, reply.envelope) for reply in replies}) == 1
    # One that looked before another was done, and began after it, is given up.
    assert len(table(tmp_path, "SELECT * FROM sessions WHERE status <> 'closed'")) == 1
    assert [row.kind for row in stored_statements(tmp_path)].count("session_open") == 1


async def test_an_opening_that_was_done_between_two_looks_is_given_up(
    tmp_path: Path, harness: ServiceHarness, anna: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = anna.opening()
    first = await harness.send(request)
    harness.store._db.execute("UPDATE sessions SET operator_reference = ''")  # as when the player was erased
    genuine, polls = Sessions._opened_before, itertools.count()

    async def blind(self: Sessions, *requested: Any) -> Any:
        return await genuine(self, *requested) if next(polls) else None

    monkeypatch.setattr(Sessions, "_opened_before", blind)
    again = await harness.send(request)
    assert (again.body, again.envelope) == (first.body, first.envelope)
    assert sorted(table(tmp_path, "SELECT status FROM sessions")) == [("closed",), ("open",)]
    assert [row.kind for row in stored_statements(tmp_path)].count("session_open") == 1
    assert await harness.send(request) == again
