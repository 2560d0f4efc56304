"""Work in the background: rounds until the stop, failures told once, the last round finished or cut at the limit."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from structlog.testing import capture_logs

from rgs.core.errors import RgsError, UnavailableError
from rgs.node.background import Background


class BackgroundHarness:
    def __init__(self, opened: contextlib.AsyncExitStack, patience_s: float) -> None:
        self.faults: list[str] = []
        self.stopping = asyncio.Event()
        self.background = Background(opened, self.stopping, 0.001, patience_s, self.faults.append)


@contextlib.asynccontextmanager
async def harness(patience_s: float = 5) -> AsyncIterator[BackgroundHarness]:
    async with contextlib.AsyncExitStack() as opened:
        yield BackgroundHarness(opened, patience_s)


class Rounds:
    """Work that fails as it is told to, and says when it has been done so many times."""

    def __init__(self, *failures: Exception | None) -> None:
        self.failures = list(failures)
        self.done = 0
        self.begun = asyncio.Event()

    async def work(self) -> None:
        self.done += 1
        self.begun.set()
        failure = self.failures.pop(0) if self.failures else None
        if failure is not None:
            raise failure

    async def until(self, count: int) -> None:
        async with asyncio.timeout(10):
            while self.done < count:
                self.begun.clear()
                await self.begun.wait()


async def test_a_failure_is_told_when_it_changes_and_a_fault_of_ours_is_counted_each_time() -> None:
    away: RgsError = UnavailableError("away")
    rounds = Rounds(away, away, OSError("x"), OSError("y"), None, OSError("z"))
    async with harness() as one:
        with capture_logs() as logs:
            one.background.run("work", rounds.work)
            await rounds.until(8)
            one.stopping.set()
    result = [(line["event"], line["work"], type(line["exc_info"])) for line in logs]
    assert result == [("background_work_failed", "work", kind) for kind in (UnavailableError, OSError, OSError)]
    assert one.faults == ["BACKGROUND"] * 3


async def test_work_ends_with_the_stop_unless_it_goes_on_to_the_end() -> None:
    short, long = Rounds(), Rounds()
    async with asyncio.timeout(10), harness(patience_s=3600) as one:
        one.background.run("long", long.work, to_the_end=True)
        one.background.run("short", short.work)
        await short.until(1)
        one.stopping.set()
        await asyncio.sleep(0.02)
        ended, before = short.done, long.done
        await long.until(before + 3)
        assert short.done == ended
    ended = long.done
    await asyncio.sleep(0.02)
    assert long.done == ended


async def test_a_round_at_work_is_finished_and_cut_short_only_when_patience_ends() -> None:
    ended: list[str] = []
    begun = asyncio.Event()

    async def quick() -> None:
        await asyncio.sleep(0.05)
        ended.append("quick")

    async def stuck() -> None:
        begun.set()
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append("stuck")

    async with harness(patience_s=1.0) as one:
        one.background.run("stuck", stuck)
        one.background.run("quick", quick, 3600)
        await begun.wait()
        one.stopping.set()
    assert ended == ["quick", "stuck"]


async def test_a_pause_of_its_own_holds() -> None:
    rounds = Rounds()
    async with harness() as one:
        one.background.run("work", rounds.work, 3600)
        await rounds.until(1)
        await asyncio.sleep(0.05)
        assert rounds.done == 1
        one.stopping.set()
