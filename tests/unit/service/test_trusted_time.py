"""The clock moves nobody's money: a clock that is set, or wrong at the start, ends no round, drops no answer, limits
nobody and declares nobody lost, over both stores; and time is trusted again by a witness or a person only.
"""

from __future__ import annotations

from typing import Any

import pytest

from rgs.core.errors import (
    ClocksDifferError,
    GuardClosedError,
    SessionInactiveError,
    WalletUnavailableError,
)
from rgs.node.leases import LEASE_MS, Leases
from rgs.service.events import EventCode
from rgs.service.timekeeping import ASK_PERIOD_MS, KEEP_PERIOD_MS, SET_KEY
from tests.support.service.guards import DAY_MS, UnsealedDeck, cleared, guard, poll
from tests.support.service.harness import ServiceHarness, read_statement
from tests.support.service.player import Player

EVENT = EventCode.GUARD_CLEARED
FINISH_MS = 600_000
JUMPS = (10 * DAY_MS, -10 * DAY_MS)


async def finished(harness: ServiceHarness) -> int:
    return await harness.services.interruptions.finish_due()


async def seated(harness: ServiceHarness, name: str = "anna") -> Player:
    player = Player(harness, name=name)
    await player.sit()
    await player.start()
    return player


# --- the two attacks --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("polled", [False, True])
@pytest.mark.parametrize("jump_ms", JUMPS)
async def test_a_jump_folds_no_round(opened: UnsealedDeck, jump_ms: int, polled: bool) -> None:
    async with opened() as harness:
        anna = await seated(harness)
        start_ms = harness.clock.now_ms()
        harness.clock.jump(jump_ms)
        if polled:
            await poll(harness)
            assert (guard(harness).code, guard(harness).latched) == ("TIME_JUMP", True)
        for _ in range(30):  # nor does it because the server runs on
            assert await finished(harness) == 0
            harness.clock.tick(60_000)
            await poll(harness)
        assert guard(harness).closed
        await anna.finish_round()  # what was dealt is played out, at the time that it is
        round_ = await harness.store.round(anna.round["round_id"])
        assert round_ is not None
        assert round_.end_ms == start_ms + 30 * 60_000
        await anna.leave()
        await harness.settle()


# --- who makes it right -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("jump_ms", JUMPS)
async def test_an_admins_word_begins_all_periods_anew(opened: UnsealedDeck, jump_ms: int) -> None:
    async with opened() as harness:
        anna = await seated(harness)
        bert = Player(harness, name="bert")
        await bert.sit()
        harness.clock.jump(jump_ms)
        harness.clock.database_ahead_ms = jump_ms  # a database on the same machine
        await poll(harness)
        with pytest.raises(GuardClosedError):
            await bert.start()
        assert await cleared(harness) == "OPEN"
        assert not guard(harness).closed
        assert await harness.store.latches("node-1") == []
        await bert.start()
        await bert.finish_round()
        assert await finished(harness) == 0
        harness.clock.tick(FINISH_MS - 1)
        await poll(harness)
        assert await finished(harness) == 0
        harness.clock.tick(1)
        assert await finished(harness) == (1 if jump_ms > 0 else 0)  # one from the future waits for its time
        harness.clock.tick(10 * DAY_MS)
        assert await finished(harness) == (0 if jump_ms > 0 else 1)
        view, _ = await harness.sessions.get(anna.caller, anna.session_id)
        assert view.open_round is None


async def test_a_database_elsewhere_makes_it_right_and_no_running_on_does(opened: UnsealedDeck) -> None:
    async with opened() as harness:
        is_file = await harness.store.clock_ms() is None
        anna = await seated(harness)
        await poll(harness)
        harness.clock.jump(3_600_000)
        for _ in range(10):
            harness.clock.tick(1_000)
            await poll(harness)
        assert guard(harness).code == "TIME_JUMP"
        harness.clock.jump(-3_600_000)
        harness.clock.tick(1_000)
        await poll(harness)
        assert guard(harness).closed == is_file
        if is_file:
            assert await cleared(harness) == "OPEN"
        assert await harness.store.latches("node-1") == []
        await anna.finish_round()


async def test_no_word_of_an_admin_stands_against_the_database(opened: UnsealedDeck) -> None:
    async with opened() as harness:
        if await harness.store.clock_ms() is None:
            return
        await poll(harness)
        harness.clock.jump(3_600_000)
        await poll(harness)
        with pytest.raises(ClocksDifferError):
            await cleared(harness)
        assert guard(harness).closed
        harness.clock.jump(-3_600_000)
        harness.clock.database_ahead_ms = 3_600_000
        harness.clock.tick(ASK_PERIOD_MS)
        await poll(harness)
        assert guard(harness).closed
        harness.clock.database_ahead_ms = 0
        harness.clock.tick(1_000)
        await poll(harness)
        assert await cleared(harness) == "OPEN"


async def test_no_restart_makes_it_trusted(opened: UnsealedDeck) -> None:
    async with opened() as harness:
        clock = harness.clock
        anna = await seated(harness)
        clock.jump(10 * DAY_MS)
        clock.database_ahead_ms = 10 * DAY_MS
        await poll(harness)
    for _ in range(2):
        async with opened(clock=clock.again()) as harness:
            assert guard(harness).code == "TIME_JUMP"
            harness.clock.tick(FINISH_MS)
            await poll(harness)
            assert await finished(harness) == 0
            clock = harness.clock
    async with opened(clock=clock.again()) as harness:
        assert await cleared(harness) == "OPEN"
        clock = harness.clock
    # Nor do the periods end because another process begins, which has seen nothing of it.
    async with opened(clock=clock.again()) as harness:
        assert not guard(harness).closed
        assert await finished(harness) == 0
        harness.clock.tick(FINISH_MS)
        assert await finished(harness) == 1
        anna.harness = harness
        await anna.leave()
        await harness.settle()


@pytest.mark.parametrize(("jump_ms", "boot", "code"), [
    (10 * DAY_MS, "b1", "SET_WHILE_DOWN"), (-10 * DAY_MS, "b1", "BEHIND_STORE"), (-60_000, "b2", "BEHIND_STORE"),
])  # fmt: skip
async def test_a_clock_that_was_set_while_the_server_was_down(
    opened: UnsealedDeck, jump_ms: int, boot: str, code: str
) -> None:
    async with opened() as harness:
        clock = harness.clock
        clock.boot = "b1"
        clock.tick(11 * DAY_MS)  # the node key is older than any of the jumps
        anna = await seated(harness)
        await poll(harness)
    clock.jump(jump_ms)
    clock.database_ahead_ms += jump_ms
    clock.boot = boot
    async with opened(clock=clock.again()) as harness:
        reported = guard(harness).code
        assert reported == ("SET_WHILE_DOWN" if boot == "b1" else code)
        with pytest.raises(GuardClosedError):
            await Player(harness, name="bert").open()
        assert await finished(harness) == 0
        await poll(harness)
        events = [read_statement(row.envelope) for row in await harness.store.events("", before=0, limit=20)]
        assert ("GUARD_CLOSED", reported) in [(event["code"], event.get("reason")) for event in events]
        assert await cleared(harness) == "OPEN"
        anna.harness = harness
        await anna.finish_round()


async def test_a_database_that_differs_at_the_start_gives_the_time_and_not_the_trust(opened: UnsealedDeck) -> None:
    async with opened() as harness:
        clock, is_file = harness.clock, await harness.store.clock_ms() is None
    if is_file:
        return
    clock.boot = ""
    clock.jump(-3_600_000)
    async with opened(clock=clock.again()) as harness:
        assert guard(harness).code == "CLOCKS_DIFFER"
        assert harness.clock.now_ms() == harness.clock.database_ms()
        harness.clock.jump(3_600_000)
        harness.clock.tick(1_000)
        await poll(harness)
        assert not guard(harness).closed


async def test_what_one_process_of_a_node_was_told_the_others_follow(opened: UnsealedDeck) -> None:
    """Two processes of one node see the jump, each by itself; an admin's word reaches one of them."""
    async with opened() as harness:
        watch, other = harness.services.monitor, harness.services.monitor
        harness.clock.jump(10 * DAY_MS)
        harness.clock.database_ahead_ms = 10 * DAY_MS
        await poll(harness)
        assert guard(harness).latched
        await other.follow()
        assert guard(harness).closed, "a latch that stands is not cleared"
        # The other one's clearing: a commit that this process finds.
        records = (*harness.services.monitor.clearing("clock"),)
        await harness.services.events.emit(EVENT, actor="admin-1", subject="clock", records=records)
        assert guard(harness).closed
        await watch.follow()
        assert not guard(harness).closed
        assert harness.clock.is_trusted
        assert harness.clock.now_ms() == harness.clock.wall_ms()
        assert harness.clock.counted_from(0) == int(await harness.store.meta(SET_KEY))


async def test_a_latch_on_its_way_to_the_store_is_not_one_that_was_cleared(opened: UnsealedDeck) -> None:
    async with opened() as harness:
        harness.clock.jump(10 * DAY_MS)
        assert harness.services.monitor._close_clock()
        for _ in range(3):  # before the store has it
            await harness.services.monitor.follow()
            assert guard(harness).closed
        await poll(harness)
        assert guard(harness).closed


# --- what else time decides -------------------------------------------------------------------------------------------


async def test_nothing_else_is_decided_by_a_time_that_is_not_trusted(
    opened: UnsealedDeck, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened() as harness:
        anna = Player(harness)
        await anna.sit()
        harness.wallet_script.plan("debit", "before", "before")
        purchase = anna.purchase(1_000)
        with pytest.raises(WalletUnavailableError):
            await harness.send(purchase)
        harness.clock.jump(10 * DAY_MS)
        with pytest.raises(WalletUnavailableError):
            await harness.send(purchase)
        operation = await harness.store.operation_of_request("op-1", "BuyParticipation", purchase.request_id)
        assert operation is not None
        assert operation.status == "pending"  # nobody has waited for five minutes
        harness.clock.tick(2 * 600_000)
        anna.take(purchase, await harness.send(purchase))  # nor rolled it back: it is made now
        assert await harness.services.reporting.align_days() == 0
        aligned: list[Any] = []

        async def days(*values: Any) -> list[Any]:
            aligned.append(values)
            return []

        monkeypatch.setattr(harness.store, "days_to_align", days)
        await harness.services.reporting.align_days()
        assert aligned == []
        harness.clock.tick(harness.books.jurisdictions["demo"].inactivity_ms + 1)
        await anna.buy(100)  # no inactivity
        harness.clock.accept()
        harness.clock.tick(harness.books.jurisdictions["demo"].inactivity_ms + 1)
        with pytest.raises(SessionInactiveError):
            await anna.buy(100)


async def test_nobody_is_declared_lost_by_a_clock(opened: UnsealedDeck, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened() as harness:
        reported: list[int] = []

        async def report_lost(**_: Any) -> int:
            reported.append(1)
            return 0

        monkeypatch.setattr(harness.instance, "report_lost", report_lost)
        lease = Leases(
            store=harness.store,
            clock=harness.clock,
            instance=harness.instance,
            is_trusted=harness.services.time.is_trusted,
        )
        harness.clock.jump(LEASE_MS)
        await lease.poll()
        assert reported == []  # nor is it the time for which every renewal was answered
        harness.clock.jump(-LEASE_MS)
        harness.clock.accept()
        harness.clock.tick(LEASE_MS)
        harness.clock.database_ahead_ms = 3_600_000
        await lease.poll()
        is_file = await harness.store.clock_ms() is None
        assert bool(reported) == is_file  # every lease has run out at once, by the database's clock
        harness.clock.database_ahead_ms = 0
        await lease.poll()
        assert reported


async def test_what_is_to_be_tried_again_does_not_wait_for_a_time_that_a_clock_was_set_back_from(
    opened: UnsealedDeck,
) -> None:
    async with opened() as harness:
        anna = Player(harness)
        await anna.sit()
        harness.wallet_script.plan("credit", *["before"] * 5)
        with pytest.raises(WalletUnavailableError):
            await anna.end()
        for _ in range(4):
            harness.clock.tick(10_000)
            await harness.sessions.recover()
        harness.clock.set_back(10 * DAY_MS)
        assert await harness.sessions.recover() == 1
        session = await harness.store.session(anna.session_id)
        assert session is not None
        assert session.participation.ended
        assert (await harness.wallet.get_balance(operator="op-1", player="anna", currency="EUR")).balance_minor


async def test_what_a_run_leaves_is_kept_now_and_then(opened: UnsealedDeck) -> None:
    async with opened() as harness:
        await poll(harness)
        first = await harness.store.meta("clock node-1")
        harness.clock.tick(KEEP_PERIOD_MS - 1)
        await poll(harness)
        assert await harness.store.meta("clock node-1") == first
        harness.clock.tick(1)
        await poll(harness)
        assert await harness.store.meta("clock node-1") != first
        second = await harness.store.meta("clock node-1")
        harness.clock.jump(10 * DAY_MS)
        harness.clock.tick(KEEP_PERIOD_MS)
        await poll(harness)
        assert await harness.store.meta("clock node-1") == second, "of a time that is not trusted nothing is kept"
        assert (await harness.store.sessions_of("op-1", "", open_only=False, before=0, limit=1)) == []
