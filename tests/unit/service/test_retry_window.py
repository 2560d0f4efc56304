"""Stored answers live for their window, whatever the clocks say, and what comes later has no effect either."""

from __future__ import annotations

import pytest

from rgs.core.errors import IdempotencyConflictError, RetentionError
from rgs.service.admin.erasure import Erasure
from rgs.service.callers import Caller, Role
from rgs.service.idempotency import CUTS, HOUR_MS, KEY, POLL_MS, SLACK_MS, Answers
from rgs.store.changes import Change, MetaSet
from tests.support.clocks import ManualClock
from tests.support.service.guards import DAY_MS, UnsealedDeck, cleared, guard, poll
from tests.support.service.harness import ServiceHarness, read_reply
from tests.support.service.player import Player

WINDOW_H = 72


async def _seated(harness: ServiceHarness) -> Player:
    player = Player(harness)
    await player.sit()
    await player.start()
    return player


@pytest.mark.slow
async def test_a_jump_drops_no_answer_and_the_same_bytes_open_no_second_session(opened: UnsealedDeck) -> None:
    async with opened() as harness:
        answers = Answers(harness.store, harness.clock, WINDOW_H, "w")
        anna = await _seated(harness)
        harness.clock.tick(SLACK_MS)
        await answers.poll()
        opening, reply = anna.sent[0]
        harness.clock.jump(10 * DAY_MS)
        harness.clock.database_ahead_ms = 10 * DAY_MS
        for _ in range(5):
            assert await answers.poll() == 0
            assert await harness.send(opening) == reply
            await poll(harness)
            harness.clock.tick(POLL_MS)
        assert await cleared(harness) == "OPEN"
        for _ in range(WINDOW_H * 6 - 1):  # a whole window after the word that the clock is right
            harness.clock.tick(POLL_MS)
            assert await answers.poll() == 0
            assert await harness.store.answer(anna.caller.party, "OpenSession", opening.request_id) is not None
        await anna.finish_round()


# --- OpenSession has no number ----------------------------------------------------------------------------------------


async def test_a_request_opens_one_session_for_ever(opened: UnsealedDeck) -> None:
    async with opened() as harness:
        answers = Answers(harness.store, harness.clock, WINDOW_H, "w")
        anna = Player(harness)
        await anna.sit()
        opening, reply = anna.sent[0]
        await forgotten(harness, answers, opening.request_id)
        late = await harness.send(opening)
        assert late.envelope == reply.envelope
        assert read_reply(late)["session"]["session_id"] == anna.session_id
        assert read_reply(late)["session"]["balance_minor"] == anna.balance_minor, "as it is now"
        await anna.leave()
        assert read_reply(await harness.send(opening))["session"]["status"] == "closed"
        assert len(await harness.store.statements_of_session(anna.session_id, 0, 10)) == 4
        other = Player(harness, name="bert").opening()
        with pytest.raises(IdempotencyConflictError):
            await harness.send(type(opening)(opening.request_id, *[getattr(other, name) for name in FIELDS]))
        # The same id of another operator is another request.
        other_operator = Caller("op-2", Role.OPERATOR, "demo")
        theirs = read_reply(await harness.send(opening, other_operator))
        assert theirs["session"]["session_id"] != anna.session_id
        rows = await harness.store.sessions_of(anna.caller.party, "", open_only=False, before=0, limit=10)
        assert [session.session_id for _, session in rows] == [anna.session_id]


async def forgotten(harness: ServiceHarness, answers: Answers, request_id: str) -> None:
    """Time passes until the stored answer of an `OpenSession` has gone."""
    while await harness.store.answer("op-1", "OpenSession", request_id) is not None:
        await answers.poll()
        harness.clock.tick(HOUR_MS)


FIELDS = ("game", "player", "currency", "operator_reference")


async def test_who_is_erased_is_not_told_of_by_a_late_repeat(opened: UnsealedDeck) -> None:
    async with opened() as harness:
        answers = Answers(harness.store, harness.clock, 24, "w")
        anna = Player(harness)
        await anna.sit()
        await anna.leave()
        await harness.settle()
        await forgotten(harness, answers, anna.sent[0][0].request_id)
        harness.clock.tick(DAY_MS)
        erasure = Erasure(store=harness.store, clock=harness.clock, events=harness.services.events, retention_days=1)
        harness.clock.jump(10 * DAY_MS)
        with pytest.raises(RetentionError, match="not trusted"):
            await erasure.erase("op-1", "anna")
        harness.clock.jump(-10 * DAY_MS)
        await poll(harness)
        if guard(harness).closed:
            assert await cleared(harness) == "OPEN"
        await erasure.erase("op-1", "anna")
        with pytest.raises(IdempotencyConflictError):
            await harness.send(anna.sent[0][0])


# --- the cleaner ------------------------------------------------------------------------------------------------------


async def test_an_answer_lives_for_a_window_of_time_in_which_the_server_has_run(opened: UnsealedDeck) -> None:
    """That a wall clock was set while the machine was off nobody can see; but the server has not run for so long."""
    async with opened() as harness:
        anna = Player(harness)
        await anna.sit()
        harness.clock.tick(SLACK_MS)
        await Answers(harness.store, harness.clock, WINDOW_H, "w1").poll()
        clock = harness.clock
    clock = clock.again()
    clock.tick(10 * DAY_MS)  # or was it: it cannot be known
    clock.boot = "b2"
    opening, reply = anna.sent[0]
    async with opened(clock=clock) as harness:
        assert not guard(harness).closed
        answers = Answers(harness.store, harness.clock, WINDOW_H, "w2")
        ran_ms = 0
        while await harness.store.answer("op-1", "OpenSession", opening.request_id) is not None:
            assert await harness.send(opening) == reply
            await answers.poll()
            harness.clock.tick(HOUR_MS)
            ran_ms += HOUR_MS
        assert WINDOW_H * HOUR_MS <= ran_ms <= WINDOW_H * HOUR_MS * (CUTS + 25) // CUTS  # PostgreSQL: with its day
        _, result, *cuts = (await harness.store.meta(KEY)).split()
        assert int(result) >= WINDOW_H * HOUR_MS
        assert len(cuts) <= CUTS + 2


async def test_two_that_count_at_once_do_not_add_up_twice(opened: UnsealedDeck) -> None:
    async with opened() as harness:
        both = [Answers(harness.store, harness.clock, 24, who) for who in ("w1", "w2")]
        for _ in range(100):
            for one in both:
                await one.poll()
            harness.clock.tick(POLL_MS)
        assert int((await harness.store.meta(KEY)).split()[1]) <= 100 * POLL_MS


async def test_after_going_back_the_cleaner_does_not_wait_for_the_time_that_was(opened: UnsealedDeck) -> None:
    async with opened() as harness:
        answers = Answers(harness.store, harness.clock, 24, "w")
        await answers.poll()
        harness.clock.tick(POLL_MS)
        await answers.poll()
        harness.clock.set_back(10 * DAY_MS)
        requested: list[int] = []
        genuine = harness.store.forget_answers

        async def forget(now_ms: int, before_ms: int) -> int:
            requested.append(before_ms)
            return await genuine(now_ms, before_ms)

        harness.store.forget_answers = forget  # type: ignore[method-assign]
        anna = Player(harness)
        await anna.sit()
        for _ in range(3 * 24 * 6):
            harness.clock.tick(POLL_MS)
            await answers.poll()
        assert len(requested) == 3 * 24 * 6
        assert requested[-1] > 0
        assert await harness.store.answer("op-1", "OpenSession", anna.sent[0][0].request_id) is None


class Memory:
    """As much of a store as the cleaner asks: one text, and what it was told to forget."""

    def __init__(self, kept: str = "") -> None:
        self.kept = kept
        self.forgotten: list[tuple[int, int]] = []

    async def lead(self, _duty: str) -> bool:
        return True

    async def meta(self, key: str) -> str:
        assert key == KEY
        return self.kept

    async def commit(self, change: Change) -> None:
        (record,) = change.records
        assert isinstance(record, MetaSet)
        self.kept = record.value

    async def forget_answers(self, now_ms: int, before_ms: int) -> int:
        self.forgotten.append((now_ms, before_ms))
        return 0

    async def forget_launches(self, before_ms: int) -> int:
        assert before_ms == self.forgotten[-1][1]  # by the same cut
        return 0


async def counted(memory: Memory, clock: ManualClock, *, times: int = 1) -> str:
    answers = Answers(memory, clock, 24, "w")  # type: ignore[arg-type]
    for number in range(times):
        if number:
            clock.tick(POLL_MS)
        await answers.poll()
    return memory.kept


async def test_cuts_are_two_hours_apart_in_a_window_of_a_day() -> None:
    clock, memory = ManualClock(), Memory()
    start_ms = clock.now_ms()
    assert await counted(memory, clock, times=12) == f"w {11 * POLL_MS} 0:{start_ms}"
    memory.kept = ""
    start_ms = clock.now_ms()
    assert await counted(memory, clock, times=13) == (
        f"w {12 * POLL_MS} 0:{start_ms} {12 * POLL_MS}:{start_ms + 12 * POLL_MS}"
    )
    assert {before_ms for _, before_ms in memory.forgotten} == {0}


async def test_a_cut_of_this_very_moment_is_kept_and_one_of_the_future_is_not() -> None:
    clock = ManualClock()
    now_ms = clock.now_ms()
    assert await counted(Memory(f"v 5000 0:{now_ms}"), clock) == f"w 5000 0:{now_ms}"
    assert await counted(Memory(f"v 5000 0:{now_ms + 1}"), clock) == f"w 5000 5000:{now_ms}"


async def test_of_the_cuts_that_are_due_the_newest_counts_and_stays() -> None:
    clock = ManualClock()
    clock.tick(3 * DAY_MS)
    now_ms, hours = clock.now_ms(), 24 * HOUR_MS
    due = [f"{number}:{now_ms - hours - 10 + number}" for number in range(3)]
    memory = Memory(f"v {hours + 2} {due[0]} {due[1]} {due[2]} {hours}:{now_ms - 5}")
    assert await counted(memory, clock) == f"w {hours + 2} {due[2]} {hours}:{now_ms - 5}"
    assert memory.forgotten == [(now_ms, now_ms - hours - 8 - SLACK_MS)]
    memory = Memory(f"v {hours + 1} {due[0]} {due[1]} {due[2]} {hours}:{now_ms - 5}")
    assert await counted(memory, clock) == f"w {hours + 1} {due[1]} {due[2]} {hours}:{now_ms - 5}"
    assert memory.forgotten == [(now_ms, now_ms - hours - 9 - SLACK_MS)]


async def test_no_answer_is_older_than_1970() -> None:
    clock = ManualClock(25 * HOUR_MS)
    memory = Memory(f"v {25 * HOUR_MS} 0:{SLACK_MS - 1}")
    await counted(memory, clock)
    assert memory.forgotten == [(25 * HOUR_MS, 0)]
