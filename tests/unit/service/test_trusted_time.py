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
from tests.house import House, Player, read_statement
from tests.unit.service.clocks import DAY_MS, Opened, cleared, guard, look

EVENT = EventCode.GUARD_CLEARED
FINISH_MS = 600_000
JUMPS = (10 * DAY_MS, -10 * DAY_MS)


async def finished(house: House) -> int:
    return await house.services.interruptions.finish_due()


async def seated(house: House, name: str = "anna") -> Player:
    player = Player(house, name=name)
    await player.sit()
    await player.start()
    return player


# --- the two attacks --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("looked", [False, True])
@pytest.mark.parametrize("jump_ms", JUMPS)
async def test_a_jump_folds_no_round(opened: Opened, jump_ms: int, looked: bool) -> None:
    async with opened() as house:
        anna = await seated(house)
        start_ms = house.clock.now_ms()
        house.clock.jump(jump_ms)
        if looked:
            await look(house)
            assert (guard(house).code, guard(house).latched) == ("TIME_JUMP", True)
        for _ in range(30):  # nor does it because the house runs on
            assert await finished(house) == 0
            house.clock.tick(60_000)
            await look(house)
        assert guard(house).closed
        await anna.finish_round()  # what was dealt is played out, at the time that it is
        round_ = await house.store.round(anna.round["round_id"])
        assert round_ is not None
        assert round_.end_ms == start_ms + 30 * 60_000
        await anna.leave()
        await house.settle()


# --- who makes it right -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("jump_ms", JUMPS)
async def test_an_admins_word_begins_all_periods_anew(opened: Opened, jump_ms: int) -> None:
    async with opened() as house:
        anna = await seated(house)
        bert = Player(house, name="bert")
        await bert.sit()
        house.clock.jump(jump_ms)
        house.clock.database_ahead_ms = jump_ms  # a database on the same machine
        await look(house)
        with pytest.raises(GuardClosedError):
            await bert.start()
        assert await cleared(house) == "OPEN"
        assert not guard(house).closed
        assert await house.store.latches("node-1") == []
        await bert.start()
        await bert.finish_round()
        assert await finished(house) == 0
        house.clock.tick(FINISH_MS - 1)
        await look(house)
        assert await finished(house) == 0
        house.clock.tick(1)
        assert await finished(house) == (1 if jump_ms > 0 else 0)  # one from the future waits for its time
        house.clock.tick(10 * DAY_MS)
        assert await finished(house) == (0 if jump_ms > 0 else 1)
        view, _ = await house.sessions.get(anna.caller, anna.session_id)
        assert view.open_round is None


async def test_a_database_elsewhere_makes_it_right_and_no_running_on_does(opened: Opened) -> None:
    async with opened() as house:
        is_file = await house.store.clock_ms() is None
        anna = await seated(house)
        await look(house)
        house.clock.jump(3_600_000)
        for _ in range(10):
            house.clock.tick(1_000)
            await look(house)
        assert guard(house).code == "TIME_JUMP"
        house.clock.jump(-3_600_000)
        house.clock.tick(1_000)
        await look(house)
        assert guard(house).closed == is_file
        if is_file:
            assert await cleared(house) == "OPEN"
        assert await house.store.latches("node-1") == []
        await anna.finish_round()


async def test_no_word_of_an_admin_stands_against_the_database(opened: Opened) -> None:
    async with opened() as house:
        if await house.store.clock_ms() is None:
            return
        await look(house)
        house.clock.jump(3_600_000)
        await look(house)
        with pytest.raises(ClocksDifferError):
            await cleared(house)
        assert guard(house).closed
        house.clock.jump(-3_600_000)
        house.clock.database_ahead_ms = 3_600_000
        house.clock.tick(ASK_PERIOD_MS)
        await look(house)
        assert guard(house).closed
        house.clock.database_ahead_ms = 0
        house.clock.tick(1_000)
        await look(house)
        assert await cleared(house) == "OPEN"


async def test_no_restart_makes_it_trusted(opened: Opened) -> None:
    async with opened() as house:
        clock = house.clock
        anna = await seated(house)
        clock.jump(10 * DAY_MS)
        clock.database_ahead_ms = 10 * DAY_MS
        await look(house)
    for _ in range(2):
        async with opened(clock=clock.again()) as house:
            assert guard(house).code == "TIME_JUMP"
            house.clock.tick(FINISH_MS)
            await look(house)
            assert await finished(house) == 0
            clock = house.clock
    async with opened(clock=clock.again()) as house:
        assert await cleared(house) == "OPEN"
        clock = house.clock
    # Nor do the periods end because another process begins, which has seen nothing of it.
    async with opened(clock=clock.again()) as house:
        assert not guard(house).closed
        assert await finished(house) == 0
        house.clock.tick(FINISH_MS)
        assert await finished(house) == 1
        anna.house = house
        await anna.leave()
        await house.settle()


@pytest.mark.parametrize(("jump_ms", "boot", "code"), [
    (10 * DAY_MS, "b1", "SET_WHILE_DOWN"), (-10 * DAY_MS, "b1", "BEHIND_STORE"), (-60_000, "b2", "BEHIND_STORE"),
])  # fmt: skip
async def test_a_clock_that_was_set_while_the_house_was_down(
    opened: Opened, jump_ms: int, boot: str, code: str
) -> None:
    async with opened() as house:
        clock = house.clock
        clock.boot = "b1"
        clock.tick(11 * DAY_MS)  # the node key is older than any of the jumps
        anna = await seated(house)
        await look(house)
    clock.jump(jump_ms)
    clock.database_ahead_ms += jump_ms
    clock.boot = boot
    async with opened(clock=clock.again()) as house:
        told = guard(house).code
        assert told == ("SET_WHILE_DOWN" if boot == "b1" else code)
        with pytest.raises(GuardClosedError):
            await Player(house, name="bert").open()
        assert await finished(house) == 0
        await look(house)
        events = [read_statement(row.envelope) for row in await house.store.events("", before=0, limit=20)]
        assert ("GUARD_CLOSED", told) in [(event["code"], event.get("reason")) for event in events]
        assert await cleared(house) == "OPEN"
        anna.house = house
        await anna.finish_round()


async def test_a_database_that_differs_at_the_start_gives_the_time_and_not_the_trust(opened: Opened) -> None:
    async with opened() as house:
        clock, is_file = house.clock, await house.store.clock_ms() is None
    if is_file:
        return
    clock.boot = ""
    clock.jump(-3_600_000)
    async with opened(clock=clock.again()) as house:
        assert guard(house).code == "CLOCKS_DIFFER"
        assert house.clock.now_ms() == house.clock.database_ms()
        house.clock.jump(3_600_000)
        house.clock.tick(1_000)
        await look(house)
        assert not guard(house).closed


async def test_what_one_process_of_a_node_was_told_the_others_follow(opened: Opened) -> None:
    """Two processes of one node see the jump, each by itself; an admin's word reaches one of them."""
    async with opened() as house:
        watch, other = house.services.watch, house.services.watch
        house.clock.jump(10 * DAY_MS)
        house.clock.database_ahead_ms = 10 * DAY_MS
        await look(house)
        assert guard(house).latched
        await other.follow()
        assert guard(house).closed, "a latch that stands is not cleared"
        # The other one's clearing: a commit that this process finds.
        records = (*house.services.watch.clearing("clock"),)
        await house.services.events.tell(EVENT, actor="admin-1", subject="clock", records=records)
        assert guard(house).closed
        await watch.follow()
        assert not guard(house).closed
        assert house.clock.is_trusted
        assert house.clock.now_ms() == house.clock.wall_ms()
        assert house.clock.counted_from(0) == int(await house.store.meta(SET_KEY))


async def test_a_latch_on_its_way_to_the_store_is_not_one_that_was_cleared(opened: Opened) -> None:
    async with opened() as house:
        house.clock.jump(10 * DAY_MS)
        assert house.services.watch._close_clock()
        for _ in range(3):  # before the store has it
            await house.services.watch.follow()
            assert guard(house).closed
        await look(house)
        assert guard(house).closed


# --- what else time decides -------------------------------------------------------------------------------------------


async def test_nothing_else_is_decided_by_a_time_that_is_not_trusted(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened() as house:
        anna = Player(house)
        await anna.sit()
        house.wallet_script.plan("debit", "before", "before")
        purchase = anna.purchase(1_000)
        with pytest.raises(WalletUnavailableError):
            await house.send(purchase)
        house.clock.jump(10 * DAY_MS)
        with pytest.raises(WalletUnavailableError):
            await house.send(purchase)
        affair = await house.store.affair_of_request("op-1", "BuyParticipation", purchase.request_id)
        assert affair is not None
        assert affair.status == "pending"  # nobody has waited for five minutes
        house.clock.tick(2 * 600_000)
        anna.take(purchase, await house.send(purchase))  # nor rolled it back: it is made now
        assert await house.services.reporting.align_days() == 0
        aligned: list[Any] = []

        async def days(*values: Any) -> list[Any]:
            aligned.append(values)
            return []

        monkeypatch.setattr(house.store, "days_to_align", days)
        await house.services.reporting.align_days()
        assert aligned == []
        house.clock.tick(house.books.jurisdictions["demo"].inactivity_ms + 1)
        await anna.buy(100)  # no inactivity
        house.clock.accept()
        house.clock.tick(house.books.jurisdictions["demo"].inactivity_ms + 1)
        with pytest.raises(SessionInactiveError):
            await anna.buy(100)


async def test_nobody_is_declared_lost_by_a_clock(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened() as house:
        told: list[int] = []

        async def tell_lost(**_: Any) -> int:
            told.append(1)
            return 0

        monkeypatch.setattr(house.instance, "tell_lost", tell_lost)
        lease = Leases(
            store=house.store, clock=house.clock, instance=house.instance, is_trusted=house.services.time.is_trusted
        )
        house.clock.jump(LEASE_MS)
        await lease.look()
        assert told == []  # nor is it the time for which every renewal was answered
        house.clock.jump(-LEASE_MS)
        house.clock.accept()
        house.clock.tick(LEASE_MS)
        house.clock.database_ahead_ms = 3_600_000
        await lease.look()
        is_file = await house.store.clock_ms() is None
        assert bool(told) == is_file  # every lease has run out at once, by the database's clock
        house.clock.database_ahead_ms = 0
        await lease.look()
        assert told


async def test_what_is_to_be_tried_again_does_not_wait_for_a_time_that_a_clock_was_set_back_from(
    opened: Opened,
) -> None:
    async with opened() as house:
        anna = Player(house)
        await anna.sit()
        house.wallet_script.plan("credit", *["before"] * 5)
        with pytest.raises(WalletUnavailableError):
            await anna.end()
        for _ in range(4):
            house.clock.tick(10_000)
            await house.sessions.recover()
        house.clock.set_back(10 * DAY_MS)
        assert await house.sessions.recover() == 1
        session = await house.store.session(anna.session_id)
        assert session is not None
        assert session.participation.ended
        assert (await house.wallet.get_balance(operator="op-1", player="anna", currency="EUR")).balance_minor


async def test_what_a_run_leaves_is_kept_now_and_then(opened: Opened) -> None:
    async with opened() as house:
        await look(house)
        first = await house.store.meta("clock node-1")
        house.clock.tick(KEEP_PERIOD_MS - 1)
        await look(house)
        assert await house.store.meta("clock node-1") == first
        house.clock.tick(1)
        await look(house)
        assert await house.store.meta("clock node-1") != first
        second = await house.store.meta("clock node-1")
        house.clock.jump(10 * DAY_MS)
        house.clock.tick(KEEP_PERIOD_MS)
        await look(house)
        assert await house.store.meta("clock node-1") == second, "of a time that is not trusted nothing is kept"
        assert (await house.store.sessions_of("op-1", "", open_only=False, before=0, limit=1)) == []
