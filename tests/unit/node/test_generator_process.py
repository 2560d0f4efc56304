"""The generator process and its client: the same draws, and no answer that is not exactly the one that is due."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from rgs.core.errors import InvalidFieldError
from rgs.node.generator import client
from rgs.node.generator.client import ServedGenerator, begin_served
from rgs.node.generator.serving import CONNECTIONS_MAX, SocketTakenError, listening_at
from rgs.node.generator.wire import (
    DRAW,
    PASSED,
    SELFTEST,
    format_drawn,
    format_ended,
    format_hello,
    format_refused,
    framed,
)
from rng.entropy import EntropySource
from rng.errors import EntropyError, GeneratorFailedError, RngError, SelfTestError
from rng.generator import Draw, Generator, LifeEvent
from rng.shuffle import transcript_to_deck
from tests.support.process.generator import RNG_HASH, Reported, answers_at, lying, serving_thread
from tests.support.waiting import until
from tests.unit.test_imports_counted import imported

NAME = "node-1-b1-w0"


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[tuple[ServedGenerator, Reported]]:
    with serving_thread(tmp_path / "g.sock") as reported:
        generator = await begin_served(tmp_path / "g.sock", RNG_HASH, NAME)
        yield generator, reported
        await generator.close()


# --- as the embedded one ----------------------------------------------------------------------------------------------


async def test_draws_are_numbered_reseeded_and_shuffled_as_in_one_process(
    served: tuple[ServedGenerator, Reported],
) -> None:
    generator, _ = served
    embedded = Generator("other")
    for number in range(1, 51):
        draw, own = await generator.draw(), embedded.draw()
        assert (draw.instance, draw.draw_no, draw.reseed_counter) == (NAME, own.draw_no, own.reseed_counter)
        assert (draw.draw_no, draw.rejected) == (number, len(draw.transcript) - 51)
        assert sorted(transcript_to_deck(draw.transcript)) == list(range(52))
    assert generator.events() == (LifeEvent("instantiated", NAME, 0, "POWER_UP"),)
    await generator.selftest()
    assert generator.failure == ""
    ended = await generator.close()
    assert ended == LifeEvent("uninstantiated", NAME, 50, "CLOSED") == await generator.close()
    assert generator.failure == "GENERATOR_ENDED"
    assert generator.events()[1:] == (ended,)
    for call in (generator.draw, generator.selftest):
        with pytest.raises(GeneratorFailedError, match="CLOSED"):
            await call()


async def test_who_asks_first_goes_on_first_whoever_is_cancelled(served: tuple[ServedGenerator, Reported]) -> None:
    """A hundred at once, every third cancelled while its draw is made: it still has its draw, in its turn, and the
    cancellation comes at its next wait.
    """
    generator, _ = served
    order: list[int] = []
    cancelled: list[int] = []

    async def one() -> None:
        draw = await generator.draw()
        order.append(draw.draw_no)  # here the commit is handed to the store, before any wait
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            cancelled.append(draw.draw_no)
            raise

    tasks = [asyncio.create_task(one()) for _ in range(100)]
    await asyncio.sleep(0)
    for task in tasks[::3]:
        task.cancel()
    await asyncio.wait(tasks)
    assert order == list(range(1, 101))
    assert sorted(cancelled) == list(range(1, 101, 3))
    assert [task.cancelled() for task in tasks] == [number % 3 == 0 for number in range(100)]


async def test_who_is_cancelled_as_the_answers_come_does_not_overtake(tmp_path: Path) -> None:
    """The cancelled ones are woken first; each waits all the same for who asked before."""
    async with lying(tmp_path / "g.sock", lambda *_: []) as requests:
        generator = await begin_served(tmp_path / "g.sock", RNG_HASH, NAME)
        order: list[int] = []

        async def one() -> None:
            order.append((await generator.draw()).draw_no)

        tasks = [asyncio.create_task(one()) for _ in range(6)]
        await until(lambda: len(requests) == 7)
        for task in tasks[1::2]:
            task.cancel()
        generator.data_received(b"".join(framed(format_drawn(honest(number))) for number in range(1, 7)))
        await asyncio.wait(tasks)
        assert order == [1, 2, 3, 4, 5, 6]
        generator._fail("GENERATOR_LOST")


async def test_a_limit_of_time_around_a_draw_works_as_ever(
    served: tuple[ServedGenerator, Reported], monkeypatch: pytest.MonkeyPatch
) -> None:
    generator, _ = served
    made = Generator.draw

    def slow(self: Generator) -> Draw:
        time.sleep(0.2)
        return made(self)

    monkeypatch.setattr(Generator, "draw", slow)
    found: list[Draw] = []

    async def draw_and_wait() -> None:
        async with asyncio.timeout(0.05):
            found.append(await generator.draw())
            await asyncio.sleep(1)

    with pytest.raises(TimeoutError):
        await draw_and_wait()
    assert [draw.draw_no for draw in found] == [1]
    assert (await generator.draw()).draw_no == 2


async def test_each_connection_has_a_generator_of_its_own(tmp_path: Path) -> None:
    with serving_thread(tmp_path / "g.sock") as reported:
        workers = [await begin_served(tmp_path / "g.sock", RNG_HASH, f"node-1-b1-w{number}") for number in range(8)]
        draws = await asyncio.gather(*[worker.draw() for worker in workers for _ in range(5)])
        assert [draw.draw_no for draw in draws] == [1, 2, 3, 4, 5] * 8
        assert [draw.instance for draw in draws] == [f"node-1-b1-w{number}" for number in range(8) for _ in range(5)]
        assert len({draw.transcript for draw in draws}) == 40
        with pytest.raises(RngError) as caught:  # nobody draws twice under one name
            await begin_served(tmp_path / "g.sock", RNG_HASH, "node-1-b1-w3")
        assert caught.value.reason == "INSTANCE_IN_USE"
        await workers[3].close()
        await until(lambda: any(line["event"] == "generator_uninstantiated" for line in reported))
        again = await begin_served(tmp_path / "g.sock", RNG_HASH, "node-1-b1-w3")
        assert (await again.draw()).draw_no == 1
        for worker in (*workers, again):
            await worker.close()
    ends = [line for line in reported if line["event"] == "generator_uninstantiated"]
    assert sorted(line["draws"] for line in ends) == [1] + [5] * 8


async def test_a_failed_health_test_in_the_process_is_the_failure_that_the_server_reports(
    served: tuple[ServedGenerator, Reported], monkeypatch: pytest.MonkeyPatch
) -> None:
    generator, reported = served
    await generator.draw()
    monkeypatch.setattr(
        EntropySource, "_tested_block", lambda _: (_ for _ in ()).throw(EntropyError("SAME_BLOCK", "planned"))
    )
    draws = [asyncio.create_task(generator.draw()) for _ in range(3)]
    await asyncio.wait(draws)
    assert [str(draw.exception()) for draw in draws] == [f"SAME_BLOCK: {NAME} draws no more"] * 3
    assert generator.failure == "SAME_BLOCK"
    assert await generator.close() == LifeEvent("failed", NAME, 1, "SAME_BLOCK")
    await until(lambda: reported[-1]["event"] == "generator_failed")
    assert reported[-1] == {"event": "generator_failed", "instance": NAME, "reason": "SAME_BLOCK", "draws": 1}


async def test_a_failed_self_test_ends_it_at_both_sides(
    served: tuple[ServedGenerator, Reported], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def wrong() -> None:
        raise SelfTestError("KNOWN_ANSWER", "planned")

    generator, _ = served
    monkeypatch.setattr("rng.selftest.run", wrong)
    with pytest.raises(GeneratorFailedError, match="KNOWN_ANSWER"):
        await generator.selftest()
    assert generator.failure == "KNOWN_ANSWER"
    with pytest.raises(RngError) as caught:
        await begin_served(tmp_path / "g.sock", RNG_HASH, "another")
    assert caught.value.reason == "KNOWN_ANSWER"


# --- who may draw -----------------------------------------------------------------------------------------------------


async def test_another_user_gets_no_generator(tmp_path: Path) -> None:
    with serving_thread(tmp_path / "g.sock", user=os.geteuid() + 1) as reported:
        with pytest.raises(RngError) as caught:
            await begin_served(tmp_path / "g.sock", RNG_HASH, NAME)
        assert caught.value.reason == "ANOTHER_USER"
        await until(lambda: reported)
    assert reported == [{"event": "connection_refused", "code": "ANOTHER_USER"}]


async def test_other_software_than_the_servers_is_refused(tmp_path: Path) -> None:
    with serving_thread(tmp_path / "g.sock", rng_hash=b"o" * 32), pytest.raises(RngError) as caught:
        await begin_served(tmp_path / "g.sock", RNG_HASH, NAME)
    assert caught.value.reason == "GENERATOR_DIFFERS"
    assert "start both from one version" in caught.value.detail


async def test_where_nobody_serves_there_is_no_generator(tmp_path: Path) -> None:
    for path in (tmp_path / "none.sock", tmp_path / ("x" * 200)):
        with pytest.raises(RngError) as caught:
            await begin_served(path, RNG_HASH, NAME)
        assert caught.value.reason == "GENERATOR_UNREACHABLE"
        assert str(path) in caught.value.detail


@pytest.mark.parametrize(("for_others", "mode"), [(False, 0o600), (True, 0o660)])
def test_the_socket_is_its_owners_or_its_groups_and_is_removed(tmp_path: Path, for_others: bool, mode: int) -> None:
    path = tmp_path / "g.sock"
    with listening_at(path, for_others=for_others):
        assert stat.S_IMODE(path.stat().st_mode) == mode
        with pytest.raises(SocketTakenError, match="another process serves"), listening_at(path, for_others=False):
            pass
        assert answers_at(path)
    assert not path.exists()
    with socket.socket(socket.AF_UNIX) as left:  # as a killed process leaves it
        left.bind(str(path))
    with listening_at(path, for_others=False):
        assert answers_at(path)
    path.write_text("a file")
    with pytest.raises(SocketTakenError, match="is no socket"), listening_at(path, for_others=False):
        pass
    assert path.read_text() == "a file"
    with pytest.raises(InvalidFieldError), listening_at(tmp_path / ("x" * 108), for_others=False):
        pass


async def test_who_sends_nonsense_is_cut_off_and_the_others_are_served(
    served: tuple[ServedGenerator, Reported], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rgs.node.generator.serving.HELLO_S", 0.2)
    generator, reported = served
    hello = framed(format_hello("other"))
    for sent in (
        b"\x00\x00", b"\xff\xff", framed(DRAW), framed(b"H\x02\x04node"), hello + framed(b"X"),
        hello + framed(hello), hello + framed(DRAW + b"5"), hello[:4],
    ):  # fmt: skip
        before = len([line for line in reported if line["event"] == "connection_broken"])
        reader, writer = await asyncio.open_unix_connection(tmp_path / "g.sock")
        writer.write(sent)
        async with asyncio.timeout(20):
            await reader.read()  # to its end: the process has closed it
        writer.close()
        await until(lambda: len([1 for line in reported if line["event"] == "connection_broken"]) > before)  # noqa: B023
        await generator.draw()


async def test_connections_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert CONNECTIONS_MAX > 2 * 256
    monkeypatch.setattr("rgs.node.generator.serving.CONNECTIONS_MAX", 2)
    with serving_thread(tmp_path / "g.sock"):
        two = [await begin_served(tmp_path / "g.sock", RNG_HASH, f"one-{number}") for number in range(2)]
        with pytest.raises(RngError) as caught:
            await begin_served(tmp_path / "g.sock", RNG_HASH, "one-3")
        assert caught.value.reason == "TOO_MANY_CONNECTIONS"
        for generator in two:
            await generator.draw()
            await generator.close()


# --- a process that lies ----------------------------------------------------------------------------------------------


def honest(number: int) -> Draw:
    draw = DRAWS.draw()
    return Draw(NAME, number, number, draw.transcript, draw.rejected)


DRAWS = Generator("honest")
FIRST = honest(1)


def changed(**fields: Any) -> Callable[[bytes, int], list[bytes]]:
    """Honest at first, then a draw of which these fields are not as they should be."""

    def answers(_: bytes, number: int) -> list[bytes]:
        draw = honest(number)
        if number < 3:
            return [framed(format_drawn(draw))]
        values = {name: fields.get(name, getattr(draw, name)) for name in draw.__slots__}
        return [framed(format_drawn(Draw(**values)))]

    return answers


def instead(*answers: bytes) -> Callable[[bytes, int], list[bytes]]:
    return lambda _, number: [framed(format_drawn(honest(number)))] if number < 3 else list(answers)


LIES: dict[str, tuple[Callable[[bytes, int], list[bytes] | None], str]] = {
    "constant bytes": (changed(transcript=bytes(51)), "REPETITION_COUNT"),
    "two values from the first draw on": (
        lambda _, number: [framed(format_drawn(Draw(NAME, number, number, b"\x00\x01" * 25 + b"\x00", 0)))],
        "ADAPTIVE_PROPORTION",
    ),
    "the same draw again": (
        lambda _, number: [framed(format_drawn(Draw(NAME, number, number, FIRST.transcript, FIRST.rejected)))],
        "SAME_BLOCK",
    ),
    "a byte too few": (changed(transcript=FIRST.transcript[:-1]), "GENERATOR_WRONG"),
    "a byte too many": (changed(transcript=FIRST.transcript + b"\x05"), "GENERATOR_WRONG"),
    "no bytes": (changed(transcript=b""), "GENERATOR_WRONG"),
    "a number again": (changed(draw_no=2, reseed_counter=2), "GENERATOR_WRONG"),
    "a number skipped": (changed(draw_no=4, reseed_counter=4), "GENERATOR_WRONG"),
    "a number again, after the reseeds that are due": (changed(draw_no=2), "GENERATOR_WRONG"),
    "a reseed too few": (changed(reseed_counter=2), "GENERATOR_WRONG"),
    "a reseed too many": (changed(reseed_counter=4), "GENERATOR_WRONG"),
    "another instance": (changed(instance="node-1-b1-w1"), "GENERATOR_WRONG"),
    "another answer": (instead(framed(PASSED)), "GENERATOR_WRONG"),
    "an end that nobody asked for": (
        instead(framed(format_ended(LifeEvent("uninstantiated", NAME, 2, "CLOSED")))), "GENERATOR_WRONG",
    ),
    "a refusal after the beginning": (instead(framed(format_refused("ANOTHER_USER"))), "GENERATOR_WRONG"),
    "no length": (instead(b"\x00\x00"), "GENERATOR_WRONG"),
    "a length beyond measure": (instead(b"\xff\xff" + bytes(300)), "GENERATOR_WRONG"),
    "nothing, and it goes": (lambda _, number: None if number == 3 else instead()(b"", number), "GENERATOR_LOST"),
    "half an answer, and no more": (instead(framed(format_drawn(FIRST))[:30]), "GENERATOR_LATE"),
    "nothing": (instead(), "GENERATOR_LATE"),
}  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
async def test_a_lie_ends_the_generator_and_is_never_dealt(
    tmp_path: Path, lie: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers, reason = LIES[lie]
    monkeypatch.setattr(client, "ANSWER_S", 1.0 if reason == "GENERATOR_LATE" else 30.0)
    async with lying(tmp_path / "g.sock", answers) as requests:
        generator = await begin_served(tmp_path / "g.sock", RNG_HASH, NAME)
        dealt: list[Draw] = []

        async def deal() -> None:
            while len(dealt) < 10:
                dealt.append(await generator.draw())

        with pytest.raises(GeneratorFailedError) as caught:
            await deal()
        assert caught.value.reason == reason
        assert [draw.draw_no for draw in dealt] == list(range(1, len(dealt) + 1))
        assert len(dealt) == {"ADAPTIVE_PROPORTION": 0, "SAME_BLOCK": 1}.get(reason, 2)
        assert generator.failure == reason
        before = len(requests)
        for call in (generator.draw, generator.selftest):
            with pytest.raises(GeneratorFailedError, match=reason):
                await call()
        assert await generator.close() == LifeEvent("failed", NAME, len(dealt), reason)
        await asyncio.sleep(0.01)
        assert len(requests) == before, "nothing more is asked for"


async def test_an_answer_to_nothing_ends_it(tmp_path: Path) -> None:
    async with lying(tmp_path / "g.sock", lambda _, number: [framed(format_drawn(honest(number)))] * 2):
        generator = await begin_served(tmp_path / "g.sock", RNG_HASH, NAME)
        await generator.draw()
        await until(lambda: generator.failure)
        assert generator.failure == "GENERATOR_WRONG"


async def test_an_end_after_another_number_of_draws_is_a_failure(tmp_path: Path) -> None:
    """The process has drawn more than it gave out: somebody else was given the rest."""
    ended = framed(format_ended(LifeEvent("uninstantiated", NAME, 5, "CLOSED")))
    async with lying(
        tmp_path / "g.sock",
        lambda request, number: [framed(format_drawn(honest(number))) if request == DRAW else ended],
    ):
        generator = await begin_served(tmp_path / "g.sock", RNG_HASH, NAME)
        await generator.draw()
        assert await generator.close() == LifeEvent("failed", NAME, 1, "GENERATOR_WRONG")


@pytest.mark.parametrize("answer", [PASSED + b"x", format_drawn(FIRST)], ids=["longer", "a draw"])
async def test_a_self_test_with_another_answer_is_a_failure(tmp_path: Path, answer: bytes) -> None:
    async with lying(tmp_path / "g.sock", lambda request, _: [framed(answer)] if request == SELFTEST else None):
        generator = await begin_served(tmp_path / "g.sock", RNG_HASH, NAME)
        with pytest.raises(GeneratorFailedError, match="GENERATOR_WRONG"):
            await generator.selftest()


async def test_answers_in_pieces_and_many_in_one_piece_are_the_same(tmp_path: Path) -> None:
    def answers(_: bytes, number: int) -> list[bytes]:
        whole = framed(format_drawn(honest(number)))
        return [whole[at : at + 7] for at in range(0, len(whole), 7)]

    async with lying(tmp_path / "g.sock", answers):
        generator = await begin_served(tmp_path / "g.sock", RNG_HASH, NAME)
        assert [draw.draw_no for draw in await asyncio.gather(*[generator.draw() for _ in range(20)])] == list(
            range(1, 21)
        )
        generator._fail("GENERATOR_LOST")


async def test_no_byte_of_a_draw_is_in_a_report_a_repr_or_an_error(
    served: tuple[ServedGenerator, Reported], caplog: pytest.LogCaptureFixture
) -> None:
    generator, reported = served
    draws = [await generator.draw() for _ in range(20)]
    await generator.close()
    with pytest.raises(GeneratorFailedError) as caught:
        await generator.draw()
    await until(lambda: reported[-1]["event"] == "generator_uninstantiated")
    said = repr((reported, generator, draws, caught.value, caplog.text))
    for draw in draws:
        for form in (draw.transcript[:6].hex(), repr(draw.transcript[:6]), repr(list(draw.transcript[:6]))):
            assert form not in said
    assert {name for line in reported for name in line} == {"event", "instance", "reason", "draws"}


def test_the_process_imports_the_standard_library_and_a_few_of_our_modules() -> None:
    """What is in the process with the generator: no library, no store, no network protocol."""
    modules = imported("import rgs.cli, rgs.cli.generator")
    assert {name.partition(".")[0] for name in modules} == {"rgs", "rng"}
    allowed = ("rgs.cli", "rgs.core.errors", "rgs.core.tlog.errors", "rgs.integrity", "rgs.node.generator")
    packages = {"rgs", "rgs.core", "rgs.core.tlog", "rgs.node", "rgs.node.parts"}
    others = [name for name in modules if name.startswith("rgs") and name not in packages]
    assert [name for name in others if not name.startswith(allowed)] == []
    assert len(modules) < 40
