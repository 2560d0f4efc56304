"""Rounds dealt from a generator process: cancelled starts, an end in the middle, a handover. No draw is lost."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from rgs.core.errors import RngUnavailableError
from rgs.node.generator.client import ServedGenerator, begin_served
from rgs.service.callers import Reply
from rng.generator import Draw, Generator
from tests.support.process.generator import RNG_HASH, serving_thread
from tests.support.service.harness import NODE_KEY, ServiceHarness, read_statement
from tests.support.service.oracles import stored_statements, verify_books
from tests.support.service.player import Player


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[ServiceHarness]:
    """A harness whose instances draw from the process in this folder."""
    harness = ServiceHarness(folder)
    harness.instance.begin_generator = partial(begin_served, folder / "g.sock", RNG_HASH)
    await harness.start()
    try:
        yield harness
    except BaseException:
        await harness.stop(ended=False)
        raise
    await harness.stop()


async def until(condition: Callable[[], object]) -> None:
    """Look at every turn of the loop."""
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - every turn counts
            await asyncio.sleep(0)


async def crowd(harness: ServiceHarness, count: int) -> list[Player]:
    players = [Player(harness, name=f"player-{number}") for number in range(count)]
    for player in players:
        await player.sit()
    return players


def draw_numbers(folder: Path) -> list[int]:
    """The draw numbers in the order of their commits."""
    bodies = [read_statement(row.envelope) for row in stored_statements(folder)]
    deals = [body["deal"]["draw_no"] for body in bodies if body["kind"] == "round_opening"]
    return [int(number) for number in deals]


@pytest.mark.parametrize("ticks", range(6))
async def test_starts_that_are_cancelled_at_any_moment_lose_no_draw_and_change_no_order(
    tmp_path: Path, ticks: int
) -> None:
    with serving_thread(tmp_path / "g.sock") as reported:
        async with served(tmp_path) as harness:
            players = await crowd(harness, 30)
            starts = [asyncio.create_task(player.start()) for player in players]
            await until(lambda: harness.instance._in_flight)
            for _ in range(ticks):
                await asyncio.sleep(0)
            for start in starts[::2]:
                start.cancel()
            await asyncio.wait(starts)
            assert [start.cancelled() for start in starts[1::2]] == [False] * 15
            await until(lambda: not harness.instance._in_flight)
            for player in players[1::2]:
                await player.finish_round()
                await player.leave()
            await harness.settle()
    numbers = draw_numbers(tmp_path)
    assert numbers == sorted(numbers)
    summary = verify_books_of_open(tmp_path)
    assert summary == len(numbers) == reported[-1]["draws"]


def verify_books_of_open(folder: Path) -> int:
    """How many draws the record accounts for: all of the instance's, without a gap."""
    bodies = [read_statement(row.envelope) for row in stored_statements(folder)]
    (end,) = [int(body["last_draw_no"]) for body in bodies if body["kind"] == "instance_end"]
    numbers = draw_numbers(folder) + [int(body["draw_no"]) for body in bodies if body["kind"] == "discarded_draw"]
    assert sorted(numbers) == list(range(1, end + 1))
    return end


async def test_a_process_that_ends_among_many_starts_fails_those_that_wait_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    genuine, released = Generator.draw, threading.Event()

    def stands_still(self: Generator) -> Draw:
        draw = genuine(self)
        if draw.draw_no > 5:
            released.wait(20)
        return draw

    monkeypatch.setattr(Generator, "draw", stands_still)
    async with served_until_end(tmp_path) as (harness, players):
        starts = [asyncio.create_task(player.start()) for player in players]
        generator = harness.instance._generator
        assert isinstance(generator, ServedGenerator)
        await until(lambda: generator._draws >= 5)
        assert generator._transport is not None
        generator._transport.abort()  # as when the process is killed
        released.set()
        results = await asyncio.gather(*starts, return_exceptions=True)
        dealt = [player for player, result in zip(players, results, strict=True) if isinstance(result, Reply | dict)]
        failed = [result for result in results if isinstance(result, BaseException)]
        assert {type(error) for error in failed} == {RngUnavailableError}
        assert (len(dealt), len(failed), generator._draws) == (5, 11, 5)
        assert harness.instance._in_flight == 0
        assert harness.instance.failure == "GENERATOR_LOST"
        for player in dealt:  # what was dealt is played out
            await player.finish_round()
        for player in players:
            await player.leave()
        await harness.settle()
    assert verify_books(tmp_path).rounds_verified == len(dealt)


@asynccontextmanager
async def served_until_end(folder: Path) -> AsyncIterator[tuple[ServiceHarness, list[Player]]]:
    with serving_thread(folder / "g.sock"):
        async with served(folder) as harness:
            yield harness, await crowd(harness, 16)


async def test_a_handover_waits_for_draws_on_their_way_and_the_old_connection_is_closed(tmp_path: Path) -> None:
    with serving_thread(tmp_path / "g.sock") as reported:
        async with served(tmp_path) as harness:
            players = await crowd(harness, 12)
            starts = [asyncio.create_task(player.start()) for player in players]
            await until(lambda: harness.instance._in_flight)
            await harness.instance.hand_over(NODE_KEY, ())
            await asyncio.gather(*starts)
            for player in players:
                await player.finish_round()
                await player.leave()
            await harness.settle()
    assert verify_books(tmp_path).rounds_verified == 12
    ends = {line["instance"]: line["draws"] for line in reported if line["event"] == "generator_uninstantiated"}
    assert set(ends) == {"node-1-b1-w0", "node-1-b2-w0"}
    assert sum(ends.values()) == 12


async def test_a_handover_that_fails_leaves_no_generator_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving_thread(tmp_path / "g.sock") as reported:
        async with served(tmp_path) as harness:

            async def refused(_: object) -> None:
                raise RngUnavailableError("planned")

            with monkeypatch.context() as patched:
                patched.setattr(harness.store, "commit", refused)
                with pytest.raises(RngUnavailableError):
                    await harness.instance.hand_over(NODE_KEY, ())
            await until(lambda: any(line["event"] == "generator_uninstantiated" for line in reported))
            assert reported[-1]["instance"] == "node-1-b2-w0"
            (player,) = await crowd(harness, 1)
            await player.play()
            await player.leave()
            await harness.settle()
    assert verify_books(tmp_path).rounds_verified == 1
