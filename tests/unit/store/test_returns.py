"""The watch over returns on both databases: each round once, in the order of start, whoever dies or leads beside it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rgs.core.games.types import Seat
from rgs.core.returns.distributions import load_laws
from rgs.core.returns.figures import played
from rgs.core.returns.tally import ReturnTally, format_tally
from rgs.core.rulesets import parse_canonical_ruleset
from rgs.service.admin.monitoring import LATE_PERIOD_MS, PATIENCE_MS, Monitoring
from rgs.store.changes import Change, Draft, OvertakenError, Signed, StoreError
from rgs.store.interface import Store
from tests.support.clocks import ManualClock
from tests.support.service.harness import read_statement
from tests.support.service.monitored import UTH, as_people_do, favouring_dealer, final_of, opening_of, raising, seats
from tests.support.store.shelf import change_by_hand, open_shelf, ulid
from tests.unit.store.test_postgres import nodes

pytestmark = pytest.mark.usefixtures("either_store")


class Table:
    """Rounds that are started and ended in any order."""

    def __init__(self, store: Store, clock: ManualClock, dealt: Sequence[Seat], ruleset: Any = UTH) -> None:
        self.store, self.clock, self.dealt, self.ruleset = store, clock, dealt, ruleset

    async def start(self, *numbers: int) -> None:
        await self._sign(
            [
                Draft("round_opening", self.opening(number), round_id=ulid(number), seat_no=1)
                for number in numbers
            ]
        )  # fmt: skip

    async def end(self, *numbers: int, void: bool = False) -> None:
        await self._sign(
            [
                Draft("round_final", final_of(self.dealt[number], void=void), round_id=ulid(number), seat_no=1)
                for number in numbers
            ]
        )

    def opening(self, number: int) -> dict[str, Any]:
        return opening_of(self.dealt[number], self.clock.now_ms(), self.ruleset)

    def expected(self, numbers: Sequence[int]) -> ReturnTally:
        tally = ReturnTally()
        for number in numbers:
            tally.add(played(UTH, self.opening(number), final_of(self.dealt[number])), "XXX")
        return tally

    async def _sign(self, drafts: list[Draft]) -> None:
        await self.store.commit(Change(drafts=tuple(drafts)))


async def counted(watch: Monitoring) -> list[str]:
    """The tallies as they are kept."""
    while await watch.poll():
        pass
    return [format_tally(one.tally) for one in (await watch.measured())[0]]


async def alarms(store: Store) -> list[dict[str, Any]]:
    rows = await store.events("RETURN_OUT_OF_BAND", before=0, limit=100)
    return [read_statement(row.envelope) for row in rows]


async def test_rounds_are_counted_in_the_order_of_their_start(tmp_path: Path) -> None:
    clock = ManualClock()
    async with open_shelf(tmp_path) as store:
        table, watch = Table(store, clock, list(seats("order", 6))), Monitoring(store=store, clock=clock)
        await table.start(0, 1, 2)
        await table.end(2, 1)
        assert await counted(watch) == []  # the first is open: the others would be those that were quick
        await table.start(3)
        await table.end(0)
        assert await counted(watch) == [format_tally(table.expected([0, 1, 2]))]
        assert await watch.poll() == 0
        await table.end(3)
        assert await counted(Monitoring(store=store, clock=clock)) == [format_tally(table.expected([0, 1, 2, 3]))]


async def test_a_round_that_is_left_open_is_passed_over_and_counted_when_it_ends(tmp_path: Path) -> None:
    clock = ManualClock()
    async with open_shelf(tmp_path) as store:
        table, watch = Table(store, clock, list(seats("late", 4))), Monitoring(store=store, clock=clock)
        await table.start(0, 1)
        clock.tick(PATIENCE_MS - 1)
        await table.start(2)
        await table.end(1, 2)
        assert await counted(watch) == []
        clock.tick(1)
        assert await counted(watch) == [format_tally(table.expected([1, 2]))]
        assert (await watch.measured())[1] == 1
        await table.end(0, void=True)
        clock.tick(LATE_PERIOD_MS - 2)
        assert len(await counted(watch)) == 1
        assert (await watch.measured())[1] == 1  # not looked at every second
        clock.tick(1)
        await counted(watch)
        (found,), late = await watch.measured()
        assert (found.tally.life, late) == (table.expected([1, 2, 0]).life, 0)
        assert found.tally.voids == 1


async def test_nothing_is_counted_twice_though_commits_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process dies before its commit, and one behind it that has not heard of it: each begins from the store."""
    clock = ManualClock()
    async with open_shelf(tmp_path) as store:
        table = Table(store, clock, list(seats("crash", 30)))
        await table.start(*range(30))
        await table.end(*range(30))
        monkeypatch.setattr("rgs.service.admin.monitoring.BATCH", 7)
        monkeypatch.setattr("rgs.service.admin.monitoring.BATCHES_MAX", 1)  # a commit each
        genuine = store.commit
        commits = 0

        async def dies_before(_: Change) -> tuple[Signed, ...]:
            raise StoreError("planned")

        async def dies_behind(change: Change) -> tuple[Signed, ...]:
            await genuine(change)
            raise StoreError("planned")

        while True:
            for commit in (dies_before, dies_behind):
                monkeypatch.setattr(store, "commit", commit)
                try:
                    read = await Monitoring(store=store, clock=clock).poll()
                except StoreError:
                    commits += 1
                    continue
                monkeypatch.setattr(store, "commit", genuine)
                assert read == 0
                assert await counted(Monitoring(store=store, clock=clock)) == [format_tally(table.expected(range(30)))]
                assert commits > 10
                return


async def test_of_two_that_lead_at_once_one_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, failures = ManualClock(), list[StoreError]()
    async with open_shelf(tmp_path) as store:
        store.on_failure = failures.append
        table = Table(store, clock, list(seats("two", 8)))
        one, other = (Monitoring(store=store, clock=clock) for _ in range(2))
        for numbers, late in (((0, 1, 2), False), ((3, 4), False), ((5,), True)):
            await table.start(*numbers)
            if late:
                clock.tick(PATIENCE_MS)
                await one.poll()
            await table.end(*numbers)
            genuine = store.commit

            async def overtaken(change: Change, genuine: Any = genuine) -> tuple[Signed, ...]:
                monkeypatch.setattr(store, "commit", genuine)
                await other.poll()
                signed: tuple[Signed, ...] = await genuine(change)
                return signed

            if late:
                clock.tick(LATE_PERIOD_MS)
            monkeypatch.setattr(store, "commit", overtaken)
            with pytest.raises(OvertakenError):
                await one.poll()
        assert await counted(one) == [format_tally(table.expected([0, 1, 2, 3, 4, 5]))]
    assert failures == [], "the store is well: its guard stays open"


async def test_of_two_that_pass_over_the_same_round_at_once_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing else is in their commits, not even a tally."""
    clock, failures = ManualClock(), list[StoreError]()
    async with open_shelf(tmp_path) as store:
        store.on_failure = failures.append
        table = Table(store, clock, list(seats("passed", 1)))
        one, other = (Monitoring(store=store, clock=clock) for _ in range(2))
        await counted(one)
        await table.start(0)
        clock.tick(PATIENCE_MS)
        genuine = store.commit

        async def overtaken(change: Change) -> tuple[Signed, ...]:
            monkeypatch.setattr(store, "commit", genuine)
            await other.poll()
            signed: tuple[Signed, ...] = await genuine(change)
            return signed

        monkeypatch.setattr(store, "commit", overtaken)
        with pytest.raises(OvertakenError):
            await one.poll()
        assert (await one.measured())[1] == 1
    assert failures == []


@pytest.mark.parametrize("either_store", ["postgres"], indirect=True)
async def test_a_lead_that_moves_in_the_middle_of_a_look_closes_no_guard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection that holds the lead breaks; the next process looks at once, and commits before the first."""
    clock, failures = ManualClock(), list[StoreError]()
    async with nodes(tmp_path, 2) as (old, new):
        for store in (old, new):
            store.on_failure = failures.append
        table = Table(old, clock, list(seats("moved", 3)))
        await table.start(0, 1, 2)
        await table.end(0, 1, 2)
        assert await old.lead("returns")
        assert not await new.lead("returns")
        genuine = old.commit

        async def is_slow(change: Change) -> tuple[Signed, ...]:
            monkeypatch.setattr(old, "commit", genuine)
            old._side._lose()
            while not await new.lead("returns"):  # noqa: ASYNC110 - the server sets no event
                await asyncio.sleep(0.01)
            await Monitoring(store=new, clock=clock).poll()
            signed: tuple[Signed, ...] = await genuine(change)
            return signed

        monkeypatch.setattr(old, "commit", is_slow)
        with pytest.raises(OvertakenError):
            await Monitoring(store=old, clock=clock).poll()
        assert not await old.lead("returns")
        assert await counted(Monitoring(store=new, clock=clock)) == [format_tally(table.expected([0, 1, 2]))]
    assert failures == []


async def test_of_two_that_count_different_rounds_at_once_none_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One counts new rounds, the other a late one: they have nothing in common but the tally."""
    clock = ManualClock()
    async with open_shelf(tmp_path) as store:
        table = Table(store, clock, list(seats("apart", 3)))
        one, other = (Monitoring(store=store, clock=clock) for _ in range(2))
        await table.start(0, 1)
        await table.end(1)
        clock.tick(PATIENCE_MS)
        await counted(one)
        await table.end(0)
        await table.start(2)
        await table.end(2)
        genuine = store.commit

        async def overtaken(change: Change) -> tuple[Signed, ...]:
            monkeypatch.setattr(store, "commit", genuine)
            await other._read_late()
            signed: tuple[Signed, ...] = await genuine(change)
            return signed

        monkeypatch.setattr(store, "commit", overtaken)
        with pytest.raises(StoreError):
            await one.poll()
        assert await counted(one) == [format_tally(table.expected([0, 1, 2]))]


async def test_an_alarm_is_signed_once_with_what_it_counts(tmp_path: Path) -> None:
    clock = ManualClock()
    async with open_shelf(tmp_path) as store:
        rigged = list(seats("rigged", 1_200, raising, favouring_dealer(0.3)))
        table = Table(store, clock, rigged)
        for first in range(0, 1_200, 100):
            await table.start(*range(first, first + 100))
            await table.end(*range(first, first + 100))
        await counted(Monitoring(store=store, clock=clock))
        result = await alarms(store)
        by_subject = Counter(one["subject"] for one in result)
        assert set(by_subject.values()) == {1}
        assert {"uth-solo showdown life", "uth-solo showdown block"} <= set(by_subject)
        (life,) = [one for one in result if one["subject"] == "uth-solo showdown life"]
        assert (life["reason"], life["before"]) == ("BELOW", "exact 0.000000")
        assert life["after"].startswith("measured -0.")
        assert "band -0." in life["after"]
        # Play goes on, unless the operator has set it otherwise.
        assert await store.switches() == []


async def test_where_the_operator_says_so_an_alarm_disables_the_game(tmp_path: Path) -> None:
    clock = ManualClock()
    async with open_shelf(tmp_path) as store:
        table = Table(store, clock, list(seats("rigged", 900, raising, favouring_dealer(0.4))))
        await table.start(*range(900))
        await table.end(*range(900))
        await counted(Monitoring(store=store, clock=clock, alarm_stops=True))
        (off,) = await store.switches()
        assert (off.scope, off.subject, off.reason, off.party) == ("game", "uth-solo", "RETURN_OUT_OF_BAND", "rgs")
        events = [read_statement(row.envelope) for row in await store.events("SWITCH_CHANGED", before=0, limit=9)]
        assert [(event["subject"], event["before"], event["after"]) for event in events] == [
            ("game uth-solo", "enabled", "disabled")
        ]


async def test_hands_that_no_deck_gives_alarm_without_a_band(tmp_path: Path) -> None:
    clock = ManualClock()
    async with open_shelf(tmp_path) as store:
        table = Table(store, clock, list(seats("odd", 2)))
        await table.start(0)
        await table.end(0)
        await counted(Monitoring(store=store, clock=clock))
        wrong = """UPDATE returns SET tally = replace(tally, '"showdown":{', '"showdown":{"x":1,')"""
        await change_by_hand(tmp_path, wrong)
        await table.start(1)
        await table.end(1)
        await counted(Monitoring(store=store, clock=clock))
        result = await alarms(store)
        assert [(one["reason"], one["subject"]) for one in result] == [
            ("FREQUENCIES", "uth-solo showdown block"),
            ("FREQUENCIES", "uth-solo showdown life"),
        ]
        assert all(one["after"].startswith("3 rounds, no fair deal gives this") for one in result)


async def test_fair_rounds_whose_quick_ones_are_the_good_ones_do_not_alarm(tmp_path: Path) -> None:
    """Thousands begin at once. Who holds a good hand raises at once; the others think. Counted as they end, such rounds
    are all luck: the same rounds counted in the order of their start are what they are, fair.
    """
    clock = ManualClock()
    dealt = as_people_do("quick", 2_500)
    quick = [number for number, seat in enumerate(dealt) if len(seat.actions) == 1]
    slow = [number for number, seat in enumerate(dealt) if len(seat.actions) > 1]
    assert 500 < len(quick) < 700
    async with open_shelf(tmp_path) as store:
        table, watch = Table(store, clock, dealt), Monitoring(store=store, clock=clock)
        await table.start(*range(2_500))
        await table.end(*quick)
        laws = load_laws(UTH)
        assert laws is not None
        as_they_end = table.expected(quick)
        assert {alarm.figure for alarm in as_they_end.alarms(laws)} >= {"showdown", "cards"}
        await counted(watch)
        assert await alarms(store) == []
        await table.end(*slow)
        (text,) = await counted(watch)
        assert text == format_tally(table.expected(range(2_500)))
        assert await alarms(store) == []


async def test_a_ruleset_without_certificate_is_counted_and_not_judged(tmp_path: Path) -> None:
    clock = ManualClock()
    async with open_shelf(tmp_path) as store:
        other = parse_canonical_ruleset(UTH.canonical.replace(b"100000", b"99000"))
        sha256 = other.sha256
        table = Table(store, clock, list(seats("other", 3)), other)
        await table.start(0)
        await table.end(0)
        await counted(Monitoring(store=store, clock=clock))
        assert (await Monitoring(store=store, clock=clock).measured())[0] == []  # nobody knows its rules
        await store.commit(Change(artifact=(sha256, "rulesets/uth-solo", other.canonical)))
        await table.start(1)
        await table.end(1)
        await counted(Monitoring(store=store, clock=clock))
        (found,), _ = await Monitoring(store=store, clock=clock).measured()
        assert (found.ruleset_sha256, found.tally.life.rounds, found.readings) == (sha256, 1, ())
