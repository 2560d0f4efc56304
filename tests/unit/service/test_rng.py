"""The generator's failure, draws that no round uses, and the bound of draws in flight."""

from __future__ import annotations

import asyncio
import uuid
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rgs.core.errors import GuardClosedError, RgsError, RngUnavailableError
from rgs.observe.traces import CURRENT, Span, SpanKind, TraceContext
from rgs.service.admin.orders import Order, order_of
from rgs.service.callers import Caller, Reply, Role
from rgs.service.instance import FIRST_WINDOW
from rgs.service.play.play import Play
from rgs.store.changes import Change, Signed, StoreError, StoreUnknownError
from rgs.store.sqlite.store import connect
from rng import entropy as entropy_module
from rng.errors import EntropyError
from rng.generator import Draw
from tests.support.service.harness import NODE_KEY, ServiceHarness, open_harness, plain_encode, read_statement
from tests.support.service.oracles import replay, stored_statements, verify_books
from tests.support.service.player import Player


def events(folder: Path) -> list[tuple[str, str]]:
    bodies = [read_statement(row.envelope) for row in stored_statements(folder) if row.kind == "event"]
    return [(body["code"], body["reason"]) for body in bodies if body["code"].startswith("RNG_")]


def starve(monkeypatch: pytest.MonkeyPatch, after_blocks: int) -> None:
    """The operating system gives no entropy after this many further blocks of 64 bytes."""
    genuine = entropy_module._os_block
    left = [after_blocks]

    def block() -> bytes:
        if not left[0]:
            raise EntropyError("ENTROPY_UNAVAILABLE", "planned")
        left[0] -= 1
        return genuine()

    monkeypatch.setattr(entropy_module, "_os_block", block)


def clearing(name: str) -> Order:
    return order_of(Caller("admin-1", Role.ADMIN, ""), "ClearGuard", str(uuid.UUID(int=1)), name=name)


def is_healthy(harness: ServiceHarness) -> bool:
    return not harness.instance.failure


# A start reads the round's id, the salt and the reseed of the draw, in this order.
@pytest.mark.parametrize("after_blocks", [0, 1, 2])
async def test_a_failed_generator_stops_new_rounds_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after_blocks: int
) -> None:
    async with open_harness(tmp_path) as harness:
        anna, bert, carl = (Player(harness, name=name) for name in ("anna", "bert", "carl"))
        for player in (anna, bert, carl):
            await player.sit()
        await anna.play()
        await bert.start()
        assert is_healthy(harness)
        starve(monkeypatch, after_blocks)
        for _ in range(3):
            with pytest.raises(RngUnavailableError):
                await anna.start()
        with pytest.raises(RngUnavailableError):
            await carl.start()
        assert not is_healthy(harness)
        assert events(tmp_path) == [("RNG_INSTANTIATED", "POWER_UP"), ("RNG_FAILED", "ENTROPY_UNAVAILABLE")]
        # The round already dealt is played out and settled.
        final = await bert.finish_round()
        assert read_statement(final.envelope)["status"] == "settled"
        view, _ = await harness.sessions.get(bert.caller, bert.session_id)
        assert view.open_round is None
        # What was answered before is answered still.
        for request, reply in anna.sent:
            assert await harness.send(request) == reply
    monkeypatch.undo()
    async with open_harness(tmp_path, clock=harness.clock) as second:
        for player in (anna, bert, carl):
            player.harness = second
            with pytest.raises(GuardClosedError):  # latched over the restart
                await player.start()
        await second.services.admin.clear_guard(clearing("rng"), "rng", "INSPECTED")
        for player in (anna, bert, carl):
            await player.play()
            await player.leave()
        await second.settle()
    summary = verify_books(tmp_path)
    assert (summary.rounds_verified, summary.draws_discarded) == (5, 0)


async def test_a_failure_to_tell_the_failure_is_made_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_harness(tmp_path) as harness:
        anna = Player(harness)
        await anna.sit()
        starve(monkeypatch, 2)
        harness.store._db.execute("PRAGMA busy_timeout = 10")
        with closing(connect(tmp_path / "rgs.db")) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreError):
                await anna.start()
        assert ("RNG_FAILED", "ENTROPY_UNAVAILABLE") not in events(tmp_path)
        for _ in range(2):
            await harness.services.monitor.poll()
            with pytest.raises(GuardClosedError):
                await anna.start()
        assert events(tmp_path).count(("RNG_FAILED", "ENTROPY_UNAVAILABLE")) == 1


async def test_ids_fail_with_the_source(harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    starve(monkeypatch, 0)
    with pytest.raises(RngUnavailableError):
        harness.instance.new_id(harness.clock.now_ms())
    with pytest.raises(RngUnavailableError):
        harness.instance.new_regulator_id("M")
    monkeypatch.undo()


def test_ids_of_the_test_regulator_are_spread_over_the_alphabet(harness: ServiceHarness) -> None:
    made = [harness.instance.new_regulator_id("M") for _ in range(200)]
    assert len(set(made)) == 200
    assert {len(one) for one in made} == {16}
    assert {one[0] for one in made} == {"M"}
    assert len(set("".join(one[1:] for one in made))) == 36


# --- draws in flight --------------------------------------------------------------------------------------------------


async def test_draws_in_flight_are_bounded(tmp_path: Path) -> None:
    async with open_harness(tmp_path, draws_in_flight_max=3) as harness:
        players = [Player(harness, name=f"player-{number}") for number in range(8)]
        for player in players:
            await player.sit()
        results = await asyncio.gather(*[player.start() for player in players], return_exceptions=True)
        refused = [result for result in results if isinstance(result, BaseException)]
        assert len(refused) == 5
        assert {type(result) for result in refused} == {RngUnavailableError}
        assert not harness.instance.failure
        assert events(tmp_path) == [("RNG_INSTANTIATED", "POWER_UP")], "the limit is no failure of the generator"
        for player in players:
            if not player.round:
                await player.start()
            await player.finish_round()
            await player.leave()
        await harness.settle()
    assert verify_books(tmp_path).rounds_verified == 8


def windows(folder: Path) -> list[tuple[str, int]]:
    """(instance, draws in flight that it may have from there on), as stored."""
    kinds = ("instance_start", "draw_window")
    bodies = [read_statement(row.envelope) for row in stored_statements(folder) if row.kind in kinds]
    return [(body["instance"], int(body["draws_in_flight_max"])) for body in bodies]


async def crowd(harness: ServiceHarness, count: int) -> list[Player]:
    players = [Player(harness, name=f"player-{number}") for number in range(count)]
    for player in players:
        await player.sit()
    return players


async def go_home(harness: ServiceHarness, players: list[Player]) -> None:
    for player in players:
        if not player.round:
            await player.start()
        await player.finish_round()
        await player.leave()
    await harness.settle()


async def until_growing(harness: ServiceHarness) -> None:
    async with asyncio.timeout(10):
        while True:
            if harness.instance._growing is not None:
                return
            await asyncio.sleep(0)


async def test_a_quiet_process_never_widens_its_window(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness:
        players = await crowd(harness, 12)
        before = harness.store.writer.changes
        await asyncio.gather(*[player.start() for player in players])
        assert harness.store.writer.changes == before + 12, "a round start is one change, and nothing comes with it"
        await go_home(harness, players)
    assert windows(tmp_path) == [("node-1-b1-w0", FIRST_WINDOW)]
    assert verify_books(tmp_path).rounds_verified == 12


async def test_under_load_the_window_grows_before_the_draws_that_need_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forty starts at once: all wait for the growth, none fails, and what is durable at each draw covers it."""
    async with open_harness(tmp_path, draws_in_flight_max=100) as harness:
        players = await crowd(harness, 40)
        draw, seen = harness.instance.draw, []

        async def watched() -> Draw:
            drawn = await draw()
            seen.append((harness.instance._in_flight, windows(tmp_path)[-1][1]))
            return drawn

        monkeypatch.setattr(harness.instance, "draw", watched)
        await asyncio.gather(*[player.start() for player in players])
        assert len(seen) == 40
        assert all(in_flight <= window for in_flight, window in seen), seen
        assert max(in_flight for in_flight, _ in seen) > FIRST_WINDOW
        await go_home(harness, players)
    reported = [window for _, window in windows(tmp_path)]
    assert reported in ([16, 32], [16, 32, 64]), reported
    assert verify_books(tmp_path).rounds_verified == 40


async def test_the_window_grows_to_its_setting_and_no_further(tmp_path: Path) -> None:
    async with open_harness(tmp_path, draws_in_flight_max=20) as harness:
        players = await crowd(harness, 40)
        results = await asyncio.gather(*[player.start() for player in players], return_exceptions=True)
        refused = [result for result in results if isinstance(result, BaseException)]
        assert {type(result) for result in refused} <= {RngUnavailableError}
        assert all("the limit is 20" in str(result) for result in refused)
        await go_home(harness, players)
    assert windows(tmp_path) == [("node-1-b1-w0", 16), ("node-1-b1-w0", 20)]
    assert verify_books(tmp_path).rounds_verified == 40


async def test_a_growth_that_is_not_committed_lets_nobody_draw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_harness(tmp_path) as harness:
        harness.store.on_failure = lambda _: None
        players = await crowd(harness, 30)
        commit, failing = harness.store.commit, [True]

        async def broken(change: Change) -> tuple[Signed, ...]:
            if change.drafts and change.drafts[0].kind == "draw_window" and failing[0]:
                raise StoreError("the disk is full")
            return await commit(change)

        monkeypatch.setattr(harness.store, "commit", broken)
        results = await asyncio.gather(*[player.start() for player in players], return_exceptions=True)
        assert [type(result) for result in results[:FIRST_WINDOW]] == [Reply] * FIRST_WINDOW
        assert [type(result) for result in results[FIRST_WINDOW:]] == [StoreError] * (30 - FIRST_WINDOW)
        assert harness.instance._last_draw_no == FIRST_WINDOW
        failing[0] = False
        await go_home(harness, players)
    assert verify_books(tmp_path).rounds_verified == 30


async def test_a_growth_of_which_nobody_has_heard_yet_is_not_drawn_upon_and_not_asked_for_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store does not tell in time whether it committed; it had. What it holds is the window, whoever waits."""
    async with open_harness(tmp_path) as harness:
        players = await crowd(harness, 30)
        commit = harness.store.commit

        async def unreported(change: Change) -> tuple[Signed, ...]:
            signed = await commit(change)
            if change.drafts and change.drafts[0].kind == "draw_window":
                raise StoreUnknownError("not told in time")
            return signed

        monkeypatch.setattr(harness.store, "commit", unreported)
        await asyncio.gather(*[player.start() for player in players], return_exceptions=True)
        assert harness.store.draw_window == 32
        await asyncio.gather(*[player.start() for player in players if not player.round])
        await go_home(harness, players)
    assert windows(tmp_path) == [("node-1-b1-w0", 16), ("node-1-b1-w0", 32)]
    assert verify_books(tmp_path).rounds_verified == 30


async def test_whoever_gives_up_leaves_the_growth_to_the_others(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness:
        players = await crowd(harness, 20)
        starts = [asyncio.create_task(player.start()) for player in players]
        await until_growing(harness)
        starts[FIRST_WINDOW].cancel()
        results = await asyncio.gather(*starts, return_exceptions=True)
        assert [type(result) for result in results].count(Reply) == 19
        await go_home(harness, players)
    assert windows(tmp_path)[-1] == ("node-1-b1-w0", 32)
    assert verify_books(tmp_path).rounds_verified == 20


async def test_the_next_instance_begins_with_a_small_window_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A turn comes while the window grows: it waits for it, and the starts wait for the turn."""
    async with open_harness(tmp_path) as harness:
        players = await crowd(harness, 20)
        starts = [asyncio.create_task(player.start()) for player in players]
        await until_growing(harness)
        commit, spans = harness.store.commit, []

        async def watched(change: Change) -> tuple[Signed, ...]:
            if change.handover is not None:
                spans.append(CURRENT.get())
            return await commit(change)

        monkeypatch.setattr(harness.store, "commit", watched)
        CURRENT.set(Span(TraceContext("a" * 32, "b" * 16), "", SpanKind.SERVER, "", 0, 0.0))
        await harness.instance.hand_over(NODE_KEY, ())
        assert spans == [None], "it is done in the name of no call"
        await asyncio.gather(*starts)
        await go_home(harness, players)
    assert windows(tmp_path) == [("node-1-b1-w0", 16), ("node-1-b1-w0", 32), ("node-1-b2-w0", 16)]
    assert verify_books(tmp_path).rounds_verified == 20


async def test_an_instance_goes_on_if_the_generator_of_the_next_one_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_harness(tmp_path) as harness:
        with monkeypatch.context() as patched:
            starve(patched, 0)
            with pytest.raises(RngUnavailableError, match="the generator of the next instance did not start"):
                await harness.instance.hand_over(NODE_KEY, ())
        assert harness.instance.name == "node-1-b1-w0"
        anna = Player(harness)
        await anna.sit()
        await anna.play()
        await anna.leave()
        await harness.settle()
    assert verify_books(tmp_path).rounds_verified == 1


async def test_the_limit_does_not_hide_a_later_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_harness(tmp_path, draws_in_flight_max=1) as harness:
        anna, bert = Player(harness, name="anna"), Player(harness, name="bert")
        await anna.sit()
        await bert.sit()
        results = await asyncio.gather(anna.start(), bert.start(), return_exceptions=True)
        assert sorted(type(result).__name__ for result in results) == ["Reply", "RngUnavailableError"]
        starve(monkeypatch, 2)
        loser = anna if not anna.round else bert
        with pytest.raises(RngUnavailableError):
            await loser.start()
        assert events(tmp_path)[1:] == [("RNG_FAILED", "ENTROPY_UNAVAILABLE")]


async def test_draws_that_cannot_be_accounted_for_yet_are_in_flight(tmp_path: Path) -> None:
    """The store is locked: every try costs a draw, until the bound that instance_start promised is reached."""
    async with open_harness(tmp_path, draws_in_flight_max=4) as harness:
        anna = Player(harness)
        await anna.sit()
        harness.store._db.execute("PRAGMA busy_timeout = 5")
        harness.store.on_failure = lambda _: None  # its guard would spare the draws
        errors = []
        with closing(connect(tmp_path / "rgs.db")) as other:
            other.execute("BEGIN IMMEDIATE")
            for _ in range(7):
                with pytest.raises(RgsError) as caught:
                    await anna.start()
                errors.append(type(caught.value).__name__)
            other.execute("ROLLBACK")
        assert errors == ["StoreError"] * 4 + ["RngUnavailableError"] * 3
        assert harness.store.draws_owed == 4
        # The next commit of anything brings them along, and rounds start again.
        await anna.buy(100)
        assert harness.store.draws_owed == 0
        await anna.play()
        await anna.leave()
        await harness.settle()
    summary = verify_books(tmp_path)
    assert (summary.draws_discarded, summary.draws_in_rounds) == (4, 1)


async def test_a_start_that_breaks_after_its_draw_accounts_for_it(tmp_path: Path) -> None:
    """Whatever it is that breaks: here the answer cannot be written."""

    def broken(method: str, *views: Any) -> bytes:
        if method == "StartRound":
            raise ZeroDivisionError("planned")
        return plain_encode(method, *views)

    async with open_harness(tmp_path, encode=broken) as harness:
        anna = Player(harness)
        await anna.sit()
        with pytest.raises(ZeroDivisionError):
            await anna.start()
        harness.store._db.execute("PRAGMA busy_timeout = 5")
        with closing(connect(tmp_path / "rgs.db")) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises((StoreError, ZeroDivisionError)):
                await anna.start()
            other.execute("ROLLBACK")
        assert harness.store.draws_owed == 1
        assert harness.instance._in_flight == 0
        await anna.leave()
    summary = verify_books(tmp_path)
    assert (summary.draws_discarded, summary.draws_in_rounds) == (2, 0)


async def test_the_oracle_sees_a_draw_that_was_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: no account of a draw whose start broke."""
    genuine = Play._started

    def broken(self: Play, *values: Any) -> Any:
        if broken.left:  # type: ignore[attr-defined]
            broken.left -= 1  # type: ignore[attr-defined]
            raise ZeroDivisionError("planned")
        return genuine(self, *values)

    broken.left = 1  # type: ignore[attr-defined]
    async with open_harness(tmp_path) as harness:
        anna = Player(harness)
        await anna.sit()
        monkeypatch.setattr(Play, "_started", broken)
        commit = harness.store.commit

        async def careless(change: Any) -> Any:
            if change.drafts and change.drafts[0].kind == "discarded_draw":
                return ()
            return await commit(change)

        monkeypatch.setattr(harness.store, "commit", careless)
        with pytest.raises(ZeroDivisionError):
            await anna.start()
        await anna.play()
        await anna.leave()
        await harness.settle()
    with pytest.raises(AssertionError):
        replay(tmp_path)


async def test_an_instance_goes_on_counting_its_boots(tmp_path: Path) -> None:
    names = []
    for _ in range(3):
        async with open_harness(tmp_path, ended=False) as harness:
            names.append(harness.instance.name)
    assert names == ["node-1-b1-w0", "node-1-b2-w0", "node-1-b3-w0"]
    lost = [read_statement(row.envelope) for row in stored_statements(tmp_path) if row.kind == "instance_lost"]
    assert [body["lost"]["instance"] for body in lost] == names[:2]
    starts = [read_statement(row.envelope) for row in stored_statements(tmp_path) if row.kind == "instance_start"]
    assert "previous_boot" not in starts[0]
    # Each boot signs its start, an artifact and an event, and the second also that the first was lost.
    assert [start["previous_boot"] for start in starts[1:]] == [
        {"instance": names[0], "last_draw_no": "0", "last_statement_no": "3"},
        {"instance": names[1], "last_draw_no": "0", "last_statement_no": "4"},
    ]
    assert replay(tmp_path).instances == 3
