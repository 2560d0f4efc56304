"""The writer: who is grouped with whom, who is told what, and that nothing is left behind at the end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from contextvars import ContextVar

import pytest

from rgs.store.changes import Change, Signed, StoreError, StoreUnknownError
from rgs.store.writer import QUIET_S, CommitOutcome, Writer


class Disk:
    """An `apply` that keeps the groups it got, and holds them while its gate is shut."""

    def __init__(self) -> None:
        self.groups: list[list[Change]] = []
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Event()
        self.failure: BaseException | None = None

    def apply(self, changes: list[Change]) -> Sequence[CommitOutcome]:
        self.entered.set()
        assert self.gate.wait(10)
        self.groups.append(changes)
        if self.failure is not None:
            raise self.failure
        return [
            StoreError("refused") if change.draw_no < 0 else (Signed("event", "i", change.draw_no, b"", b""),)
            for change in changes
        ]

    async def has_begun(self) -> None:
        assert await asyncio.to_thread(self.entered.wait, 10)

    def sizes(self) -> list[int]:
        return [len(group) for group in self.groups]


def numbered(*numbers: int) -> list[Change]:
    return [Change(draw_no=number) for number in numbers]


async def test_one_alone_is_committed_at_once() -> None:
    disk = Disk()
    writer = Writer(disk.apply)
    for number in range(3):
        (signed,) = await writer.commit(Change(draw_no=number))
        assert signed.statement_no == number
    assert disk.sizes() == [1, 1, 1]
    assert (writer.groups, writer.changes) == (3, 3)
    await writer.close()


async def test_a_group_that_landed_in_time_is_not_called_overdue_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rgs.store.writer.COMMIT_WAIT_S", 1.0)
    disk = Disk()
    writer = Writer(disk.apply)
    await writer.commit(Change(draw_no=1))
    await asyncio.sleep(1.5)
    assert not writer.is_stuck
    await writer.commit(Change(draw_no=2))
    await writer.close()


async def test_who_comes_while_a_group_is_written_makes_the_next() -> None:
    disk = Disk()
    writer = Writer(disk.apply)
    disk.gate.clear()
    tasks = [asyncio.ensure_future(writer.commit(change)) for change in numbered(0)]
    await disk.has_begun()
    tasks += [asyncio.ensure_future(writer.commit(change)) for change in numbered(*range(1, 41))]
    await asyncio.sleep(0)
    assert not any(task.done() for task in tasks), "nobody is told before the commit"
    disk.gate.set()
    answers = await asyncio.gather(*tasks)
    assert [signed.statement_no for (signed,) in answers] == list(range(41))
    assert disk.sizes() == [1, 40]
    assert [change.draw_no for change in disk.groups[1]] == list(range(1, 41)), "first come, first written"
    await writer.close()


async def test_under_load_a_change_waits_for_company_but_not_for_long() -> None:
    disk = Disk()
    writer = Writer(disk.apply)
    loop = asyncio.get_running_loop()
    await asyncio.gather(*map(writer.commit, numbered(*range(16))))
    before, began = writer.groups, loop.time()
    waited = [asyncio.ensure_future(writer.commit(change)) for change in numbered(1, 2)]
    await asyncio.gather(*waited)
    assert loop.time() - began >= QUIET_S / 2, "it lingered"
    assert writer.groups == before + 1, "and they went together"
    for _ in range(40):  # with the load gone, so is the wait
        await writer.commit(Change())
    assert writer._load < 2
    await writer.close()


async def test_everyone_is_told_his_own_outcome() -> None:
    disk = Disk()
    writer = Writer(disk.apply)
    results = await asyncio.gather(*map(writer.commit, numbered(1, -2, 3)), return_exceptions=True)
    assert [type(result) for result in results] == [tuple, StoreError, tuple]
    await writer.close()


async def test_a_group_that_breaks_is_told_to_all_and_the_writer_goes_on() -> None:
    disk = Disk()
    writer = Writer(disk.apply)
    disk.failure = RuntimeError("broken")
    results = await asyncio.gather(*map(writer.commit, numbered(1, 2, 3)), return_exceptions=True)
    assert [str(result) for result in results] == ["broken"] * 3
    disk.failure = None
    assert await writer.commit(Change(draw_no=4))
    await writer.close()


async def test_a_cancelled_caller_does_not_undo_the_commit() -> None:
    disk = Disk()
    writer = Writer(disk.apply)
    disk.gate.clear()
    first, second = (asyncio.ensure_future(writer.commit(change)) for change in numbered(1, 2))
    await disk.has_begun()
    first.cancel()
    second.cancel()
    await asyncio.gather(first, second, return_exceptions=True)
    third = asyncio.ensure_future(writer.commit(Change(draw_no=3)))
    disk.gate.set()
    assert await third
    await writer.close()
    assert sorted(change.draw_no for group in disk.groups for change in group) == [1, 2, 3]


async def test_close_commits_what_waits_and_then_refuses() -> None:
    disk = Disk()
    writer = Writer(disk.apply)
    disk.gate.clear()
    tasks = [asyncio.ensure_future(writer.commit(change)) for change in numbered(1)]
    await disk.has_begun()
    tasks += [asyncio.ensure_future(writer.commit(change)) for change in numbered(*range(2, 8))]
    closing = asyncio.ensure_future(writer.close())
    await asyncio.sleep(0.01)
    assert not closing.done()
    disk.gate.set()
    await closing
    assert len(await asyncio.gather(*tasks)) == 7
    assert sum(disk.sizes()) == 7
    for _ in range(2):
        with pytest.raises(StoreError, match="closed"):
            await asyncio.wait_for(writer.commit(Change()), 5)


async def test_close_does_not_wait_for_company() -> None:
    disk = Disk()
    writer = Writer(disk.apply)
    await asyncio.gather(*map(writer.commit, numbered(*range(32))))
    alone = asyncio.ensure_future(writer.commit(Change(draw_no=99)))
    await asyncio.sleep(0)
    assert not alone.done()
    await writer.close()
    assert await alone


# --- a commit that does not come to its end ---------------------------------------------------------------------------


async def test_nobody_waits_for_a_stuck_commit_and_it_goes_on_undisturbed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rgs.store.writer.COMMIT_WAIT_S", 0.05)
    released = asyncio.Event()
    applied: list[Change] = []
    refused: list[Change] = []

    async def apply(changes: list[Change]) -> Sequence[CommitOutcome]:
        await released.wait()
        applied.extend(changes)
        return [()] * len(changes)

    writer = Writer(apply, refused.append)
    first, behind, late, last = Change(draw_no=1), Change(draw_no=2), Change(draw_no=3), Change(draw_no=4)
    waiting = [asyncio.ensure_future(writer.commit(first))]
    await asyncio.sleep(0.01)
    waiting.append(asyncio.ensure_future(writer.commit(behind)))
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [StoreUnknownError, StoreError]
    assert (writer.is_stuck, writer.draws_unknown) == (True, 1)
    with pytest.raises(StoreError):
        await writer.commit(late)
    assert refused == [behind, late]
    released.set()
    await asyncio.sleep(0.01)
    assert (writer.is_stuck, writer.draws_unknown) == (False, 0)
    assert await writer.commit(last) == ()
    assert applied == [first, last]
    await writer.close()


async def test_a_writer_that_is_stuck_can_be_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rgs.store.writer.COMMIT_WAIT_S", 0.02)
    released = asyncio.Event()

    async def apply(changes: list[Change]) -> Sequence[CommitOutcome]:
        await released.wait()
        return [()] * len(changes)

    writer = Writer(apply)
    with pytest.raises(StoreUnknownError):
        await writer.commit(Change())
    await writer.close()
    with pytest.raises(StoreError, match="closed"):
        await writer.commit(Change())
    released.set()
    await asyncio.sleep(0.01)


CALLER: ContextVar[str] = ContextVar("caller", default="nobody")


async def test_a_commit_runs_in_the_name_of_no_caller() -> None:
    """A line logged within a commit would have the trace id of whichever call began the group, or the one before it."""
    seen: list[str] = []
    gate = asyncio.Event()

    async def apply(changes: list[Change]) -> Sequence[CommitOutcome]:
        seen.append(CALLER.get())
        await gate.wait()
        seen.append(CALLER.get())
        return [(Signed("event", "i", change.draw_no, b"", b""),) for change in changes]

    writer = Writer(apply)

    async def call(number: int) -> str:
        CALLER.set(f"caller-{number}")
        await writer.commit(Change(draw_no=number))
        return CALLER.get()

    first = asyncio.create_task(call(0))
    await asyncio.sleep(0)  # alone: committed at once
    waiting = [asyncio.create_task(call(number)) for number in (1, 2)]
    await asyncio.sleep(0)  # these are the next group, begun when the first has ended
    gate.set()
    assert await asyncio.gather(first, *waiting) == ["caller-0", "caller-1", "caller-2"]
    assert await asyncio.create_task(call(3)) == "caller-3"  # alone after a group: by the timer
    assert set(seen) == {"nobody"}
    assert writer.groups == 3
    await writer.close()
