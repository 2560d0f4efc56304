"""Every guard with its fault injected: what it stops, what goes on, what is signed of it, and that it recovers."""

from __future__ import annotations

import itertools
import uuid
from contextlib import closing
from pathlib import Path

import pytest

from rgs.core.errors import (
    GuardClosedError,
    NotFoundError,
    RegulatorUnavailableError,
    RgsError,
    RngUnavailableError,
)
from rgs.ports.regulator import SessionClose
from rgs.service.admin.health_monitor import (
    REGULATOR_FAILURES_MAX,
    REGULATOR_QUIET_MS,
    RULES_CLOSED_PERIOD_MS,
    UNREPORTED_MAX,
)
from rgs.service.admin.orders import Order, order_of
from rgs.service.availability import GUARDS, GuardState
from rgs.service.callers import Caller, Role
from rgs.store.changes import StoreError
from rgs.store.sqlite.store import connect
from rng import entropy as entropy_module
from rng import selftest
from rng.errors import EntropyError, SelfTestError
from tests.support.service.harness import ServiceHarness, open_harness, read_statement
from tests.support.service.oracles import stored_statements, verify_books
from tests.support.service.player import Player

ADMIN = Caller("admin-1", Role.ADMIN, "")
_ids = itertools.count(1)


def clearing(name: str) -> Order:
    return order_of(ADMIN, "ClearGuard", str(uuid.UUID(int=next(_ids))), name=name)


def guard(harness: ServiceHarness, name: str) -> GuardState:
    return harness.services.availability.guard(name)


def closed(harness: ServiceHarness) -> list[str]:
    return [state.name for state in harness.services.availability.guards() if state.closed]


def reported(folder: Path) -> list[tuple[str, str, str]]:
    """Code, subject and reason of the events, those of the generator's life at the start and end aside."""
    bodies = [read_statement(row.envelope) for row in stored_statements(folder) if row.kind == "event"]
    return [
        (body["code"], body.get("subject", ""), body.get("reason", ""))
        for body in bodies
        if body["code"] not in ("RNG_INSTANTIATED", "RNG_UNINSTANTIATED")
    ]


async def poll(harness: ServiceHarness) -> None:
    await harness.services.monitor.poll()


async def seated(harness: ServiceHarness) -> tuple[Player, Player]:
    """One player with a round in play, one who is about to start."""
    anna, bert = Player(harness), Player(harness, name="bert")
    for player in (anna, bert):
        await player.sit()
    await anna.start()
    return anna, bert


async def verify_only_new_rounds_stop(harness: ServiceHarness, name: str, anna: Player, bert: Player) -> None:
    """New rounds are refused naming the guard; the dealt round is settled, its participation paid out and closed."""
    assert closed(harness) == [name]
    with pytest.raises(GuardClosedError) as caught:
        await bert.start()
    assert caught.value.metadata["guard"] == name
    with pytest.raises(GuardClosedError):
        await Player(harness, name="carl").open()
    await anna.finish_round()
    await anna.leave()
    assert anna.session["status"] == "closed"


async def test_nothing_is_closed_and_nothing_told_while_all_is_sound(harness: ServiceHarness, tmp_path: Path) -> None:
    for _ in range(3):
        harness.clock.tick(1_000)
        await poll(harness)
    assert closed(harness) == []
    assert reported(tmp_path) == []
    assert {state.name for state in harness.services.availability.guards()} == set(GUARDS)


# --- the transparency log ---------------------------------------------------------------------------------------------


async def test_the_transparency_log(harness: ServiceHarness, tmp_path: Path) -> None:
    anna, bert = await seated(harness)
    harness.log = "STORE_BEHIND"
    await poll(harness)
    assert guard(harness, "log").code == "STORE_BEHIND"
    assert not guard(harness, "log").latched
    await verify_only_new_rounds_stop(harness, "log", anna, bert)
    # An admin's word does not make it agree.
    await harness.services.admin.clear_guard(clearing("log"), "log", "CHECKED")
    assert closed(harness) == ["log"]
    harness.log = ""
    await poll(harness)
    assert closed(harness) == []
    await bert.play()
    assert ("GUARD_CLOSED", "log", "STORE_BEHIND") in reported(tmp_path)
    assert reported(tmp_path)[-1] == ("GUARD_OPENED", "log", "STORE_BEHIND")


# --- the generator ----------------------------------------------------------------------------------------------------


def starve(monkeypatch: pytest.MonkeyPatch) -> None:
    def block() -> bytes:
        raise EntropyError("ENTROPY_UNAVAILABLE", "planned")

    monkeypatch.setattr(entropy_module, "_os_block", block)


async def test_the_generator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_harness(tmp_path) as harness:
        anna, bert = await seated(harness)
        with monkeypatch.context() as patched:
            starve(patched)
            with pytest.raises(RngUnavailableError):
                await bert.start()
            await poll(harness)
        failed, latched = ("RNG_FAILED", "node-1-b1-w0", "ENTROPY_UNAVAILABLE"), ("GUARD_CLOSED", "rng")
        assert reported(tmp_path) == [failed, (*latched, "ENTROPY_UNAVAILABLE")]
        assert guard(harness, "rng").latched
        assert [(row.guard, row.code) for row in await harness.store.latches("node-1")] == [
            ("rng", "ENTROPY_UNAVAILABLE")
        ]
        await anna.finish_round()
        # An admin clears it: the latch is gone, but this process's generator is dead.
        reply = await harness.services.admin.clear_guard(clearing("rng"), "rng", "INSPECTED")
        body = read_statement(reply.envelope)
        assert (body["code"], body["before"], body["after"]) == (
            "GUARD_CLEARED", "ENTROPY_UNAVAILABLE", "RESTART_NEEDED",
        )  # fmt: skip
        for _ in range(2):
            await poll(harness)
            assert guard(harness, "rng") == GuardState("rng", "RESTART_NEEDED", False, harness.clock.now_ms())
            with pytest.raises(GuardClosedError, match="RESTART_NEEDED"):
                await bert.start()
        assert await harness.store.latches("node-1") == []
    async with open_harness(tmp_path, clock=harness.clock) as second:
        assert closed(second) == []
        for player in (anna, bert):
            player.harness = second
            await player.play()
            await player.leave()
        await second.settle()
    assert verify_books(tmp_path).rounds_verified == 3


async def test_the_latch_outlives_the_process_until_an_admin_clears_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_harness(tmp_path) as harness:
        bert = Player(harness, name="bert")
        await bert.sit()
        with monkeypatch.context() as patched:
            starve(patched)
            with pytest.raises(RngUnavailableError):
                await bert.start()  # nobody has looked yet, and the latch is with RNG_FAILED all the same
    for _ in range(2):
        async with open_harness(tmp_path, clock=harness.clock) as again:
            await poll(again)
            assert guard(again, "rng").latched
            bert.harness = again
            with pytest.raises(GuardClosedError):
                await bert.start()
    async with open_harness(tmp_path, clock=harness.clock) as last:
        await last.services.admin.clear_guard(clearing("rng"), "rng", "REPLACED")
        await poll(last)
        assert closed(last) == []
        bert.harness = last
        await bert.play()
    assert [code for code, _, _ in reported(tmp_path)] == ["RNG_FAILED", "GUARD_CLEARED"]


async def test_a_generator_that_fails_unasked_is_seen(harness: ServiceHarness, tmp_path: Path) -> None:
    await harness.instance._generator.close()
    await poll(harness)
    assert reported(tmp_path) == [
        ("RNG_FAILED", "node-1-b1-w0", "GENERATOR_ENDED"), ("GUARD_CLOSED", "rng", "GENERATOR_ENDED"),
    ]  # fmt: skip


# --- its self-test ----------------------------------------------------------------------------------------------------


def break_self_test(patched: pytest.MonkeyPatch) -> None:
    def broken() -> tuple[str, ...]:
        raise SelfTestError("SHUFFLE_KNOWN_ANSWER", "planned")

    patched.setattr(selftest, "run", broken)


async def test_the_daily_self_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_harness(tmp_path) as harness:
        anna, bert = await seated(harness)
        with monkeypatch.context() as patched:
            break_self_test(patched)
            await poll(harness)
            assert closed(harness) == []  # a day has not passed
            harness.clock.tick(86_400_000)
            await poll(harness)
        assert closed(harness) == ["rng", "self_test"]  # a failed self-test ends the generator
        with pytest.raises(GuardClosedError):
            await bert.start()
        await anna.finish_round()
        assert reported(tmp_path) == [
            ("RNG_FAILED", "node-1-b1-w0", "SHUFFLE_KNOWN_ANSWER"),
            ("GUARD_CLOSED", "self_test", "SELF_TEST_FAILED"),
            ("GUARD_CLOSED", "rng", "SHUFFLE_KNOWN_ANSWER"),
        ]
        reply = await harness.services.admin.clear_guard(clearing("self_test"), "self_test", "CHECKED")
        assert read_statement(reply.envelope)["after"] == "RESTART_NEEDED"
    async with open_harness(tmp_path, clock=harness.clock) as second:
        assert closed(second) == ["rng"]


async def test_the_self_test_is_run_again_when_an_admin_clears_its_guard(
    harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = []

    def run() -> tuple[str, ...]:
        runs.append(1)
        return ()

    monkeypatch.setattr(selftest, "run", run)
    reply = await harness.services.admin.clear_guard(clearing("self_test"), "self_test", "AUDIT")
    assert (len(runs), read_statement(reply.envelope)["after"]) == (1, "OPEN")
    assert not harness.instance.failure


# --- the certified files ----------------------------------------------------------------------------------------------


async def test_the_rules(harness: ServiceHarness, tmp_path: Path) -> None:
    anna, bert = await seated(harness)
    harness.software = "SOFTWARE_CHANGED"
    await poll(harness)
    assert closed(harness) == []  # ten minutes have not passed
    harness.clock.tick(600_000)
    await poll(harness)
    await verify_only_new_rounds_stop(harness, "rules", anna, bert)
    # An admin's word changes no file.
    reply = await harness.services.admin.clear_guard(clearing("rules"), "rules", "CHECKED")
    assert read_statement(reply.envelope)["after"] == "SOFTWARE_CHANGED"
    assert closed(harness) == ["rules"]
    harness.software = ""
    harness.clock.tick(RULES_CLOSED_PERIOD_MS)
    await poll(harness)
    assert closed(harness) == []
    await bert.start()
    assert reported(tmp_path) == [
        ("GUARD_CLOSED", "rules", "SOFTWARE_CHANGED"),
        ("GUARD_CLEARED", "rules", "CHECKED"),
        ("GUARD_OPENED", "rules", "SOFTWARE_CHANGED"),
    ]


async def test_what_the_server_runs_on_is_looked_at_once_a_day(harness: ServiceHarness, tmp_path: Path) -> None:
    harness.surroundings = "SURROUNDINGS_CHANGED"
    for _ in range(3):
        harness.clock.tick(600_000)  # the certified files alone
        await poll(harness)
    assert closed(harness) == []
    harness.clock.tick(86_400_000 - 3 * 600_000)
    await poll(harness)
    assert closed(harness) == ["rules"]
    harness.clock.tick(RULES_CLOSED_PERIOD_MS)
    await poll(harness)
    assert closed(harness) == ["rules"], "sound certified files open nothing that something else has closed"
    harness.surroundings = ""
    harness.clock.tick(RULES_CLOSED_PERIOD_MS)
    await poll(harness)
    assert closed(harness) == []
    assert reported(tmp_path) == [
        ("GUARD_CLOSED", "rules", "SURROUNDINGS_CHANGED"),
        ("GUARD_OPENED", "rules", "SURROUNDINGS_CHANGED"),
    ]


async def test_what_the_server_runs_on_is_looked_at_on_demand(harness: ServiceHarness) -> None:
    harness.surroundings = "SURROUNDINGS_CHANGED"
    reply = await harness.services.admin.clear_guard(clearing("rules"), "rules", "CHECKED")
    assert read_statement(reply.envelope)["after"] == "SURROUNDINGS_CHANGED"
    assert closed(harness) == ["rules"]


async def test_the_rules_are_looked_at_again_when_an_admin_clears_their_guard(harness: ServiceHarness) -> None:
    harness.software = "SOFTWARE_UNREADABLE"
    harness.clock.tick(600_000)
    await poll(harness)
    harness.software = ""
    reply = await harness.services.admin.clear_guard(clearing("rules"), "rules", "MOUNTED_AGAIN")
    assert read_statement(reply.envelope)["after"] == "OPEN"
    assert closed(harness) == []


# --- the clock --------------------------------------------------------------------------------------------------------


async def test_the_clock(harness: ServiceHarness, tmp_path: Path) -> None:
    anna, bert = await seated(harness)
    harness.clock.jump(-3_600_000)
    await poll(harness)
    await verify_only_new_rounds_stop(harness, "clock", anna, bert)
    for _ in range(60):
        harness.clock.tick(60_000)
        await poll(harness)
    assert closed(harness) == ["clock"]  # it runs evenly, which says nothing
    harness.clock.jump(3_600_000)
    await poll(harness)  # a second jump while it is closed is counted
    assert [(latch.guard, latch.code) for latch in await harness.store.latches("node-1")] == [("clock", "TIME_JUMP")]
    await harness.services.admin.clear_guard(clearing("clock"), "clock", "TIME_SERVER_MENDED")
    assert (closed(harness), await harness.store.latches("node-1")) == ([], [])
    await bert.start()
    assert reported(tmp_path) == [
        ("GUARD_CLOSED", "clock", "TIME_JUMP"), ("TIME_JUMP", "clock", ""),
        ("GUARD_CLEARED", "clock", "TIME_SERVER_MENDED"),
    ]  # fmt: skip
    jump = [read_statement(row.envelope) for row in stored_statements(tmp_path)]
    assert [body["after"] for body in jump if body.get("code") == "TIME_JUMP"] == ["-3600000 ms"]
    await harness.services.events.flush(everything=True)
    assert reported(tmp_path)[-1] == ("TIME_JUMP", "", "TIME_JUMP")


async def test_times_in_statements_do_not_go_back_within_a_session(harness: ServiceHarness, tmp_path: Path) -> None:
    anna, _ = await seated(harness)
    harness.clock.tick(-3_600_000)
    await anna.finish_round()
    times = [
        body["time"]
        for body in (read_statement(row.envelope) for row in stored_statements(tmp_path))
        if body.get("session_id") == anna.session_id
    ]
    assert len(times) == 4
    assert times == sorted(times)


# --- the regulator
# -----------------------------------------------------------------------------------------------------


async def test_the_regulator(harness: ServiceHarness, tmp_path: Path) -> None:
    anna, bert = await seated(harness)
    harness.regulator_script.is_down = True
    for number in range(REGULATOR_FAILURES_MAX):
        assert closed(harness) == []
        with pytest.raises(RegulatorUnavailableError):
            await Player(harness, name=f"carl-{number}").open()
        await poll(harness)
    assert closed(harness) == ["regulator"]
    assert harness.services.availability.serving  # rounds of sessions that have their ids
    await bert.play()
    await anna.finish_round()
    harness.regulator_script.is_down = False
    await harness.settle()
    await poll(harness)
    assert closed(harness) == []
    assert reported(tmp_path) == [
        ("GUARD_CLOSED", "regulator", "UNANSWERED"),
        ("GUARD_OPENED", "regulator", "UNANSWERED"),
    ]


async def test_a_regulator_that_refuses_is_not_down(harness: ServiceHarness) -> None:
    regulator = harness.services.monitor.regulator
    regulator.failures = REGULATOR_FAILURES_MAX - 1
    with pytest.raises(RgsError) as caught:
        await regulator.close_session(SessionClose("0" * 26, "M" + "0" * 15, harness.clock.now_ms()))
    assert not isinstance(caught.value, RegulatorUnavailableError)
    assert regulator.failures == 0


async def test_a_regulator_that_nobody_asks_any_more_is_believed_again(harness: ServiceHarness) -> None:
    regulator = harness.services.monitor.regulator
    regulator.failures, regulator.failed_ms = REGULATOR_FAILURES_MAX, harness.clock.now_ms()
    await poll(harness)
    harness.clock.tick(REGULATOR_QUIET_MS)
    await poll(harness)
    assert closed(harness) == ["regulator"]
    harness.clock.tick(1)
    await poll(harness)
    await poll(harness)
    assert closed(harness) == []


# --- the store --------------------------------------------------------------------------------------------------------


async def test_the_store(harness: ServiceHarness, tmp_path: Path) -> None:
    anna, bert = await seated(harness)
    harness.store._db.execute("PRAGMA busy_timeout = 5")
    with closing(connect(tmp_path / "rgs.db")) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError):
            await bert.start()
        assert closed(harness) == ["store"]  # at once, not with the next look
        drawn = harness.store.draws_owed
        for _ in range(3):
            with pytest.raises(GuardClosedError):
                await bert.start()
            await poll(harness)
        assert (closed(harness), harness.store.draws_owed) == (["store"], drawn), "no draw is spent: the store is down"
        other.execute("ROLLBACK")
    await poll(harness)
    assert closed(harness) == []
    assert reported(tmp_path) == [
        ("GUARD_CLOSED", "store", "COMMIT_FAILED"),
        ("GUARD_OPENED", "store", "COMMIT_FAILED"),
    ]
    await bert.play()
    await anna.finish_round()
    await anna.leave()
    await bert.leave()
    await harness.settle()
    verify_books(tmp_path)


async def test_what_the_store_could_not_take_is_told_when_it_can(
    harness: ServiceHarness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A generator that dies while the store is locked: the latch and both guards are signed afterwards."""
    harness.store._db.execute("PRAGMA busy_timeout = 5")
    with closing(connect(tmp_path / "rgs.db")) as other:
        other.execute("BEGIN IMMEDIATE")
        await harness.instance._generator.close()
        await poll(harness)
        assert closed(harness) == ["rng", "store"]
        assert reported(tmp_path) == []
        other.execute("ROLLBACK")
    await poll(harness)
    assert closed(harness) == ["rng"]
    assert [code for code, _, _ in reported(tmp_path)] == ["RNG_FAILED", "GUARD_CLOSED", "GUARD_CLOSED", "GUARD_OPENED"]
    assert len(await harness.store.latches("node-1")) == 1


async def test_what_waits_for_the_store_is_bounded(harness: ServiceHarness, tmp_path: Path) -> None:
    harness.store._db.execute("PRAGMA busy_timeout = 1")
    watch = harness.services.monitor
    with closing(connect(tmp_path / "rgs.db")) as other:
        other.execute("BEGIN IMMEDIATE")
        for _ in range(UNREPORTED_MAX):
            watch._close("clock", "TIME_JUMP")
            watch._open("clock")
        await poll(harness)
        assert len(watch._unreported) == 256
        other.execute("ROLLBACK")
    await poll(harness)
    assert watch._unreported == []
    assert len(reported(tmp_path)) == UNREPORTED_MAX + 1


# --- admins -----------------------------------------------------------------------------------------------------------


async def test_a_guard_that_is_looked_after_elsewhere_is_not_opened_by_a_word(harness: ServiceHarness) -> None:
    harness.services.availability.close_guard("keys", "KEY_ENDED", harness.clock.now_ms())
    reply = await harness.services.admin.clear_guard(clearing("keys"), "keys", "TRUST_ME")
    assert read_statement(reply.envelope)["after"] == "KEY_ENDED"
    assert closed(harness) == ["keys"]


async def test_a_guard_that_is_none(harness: ServiceHarness) -> None:
    with pytest.raises(NotFoundError):
        await harness.services.admin.clear_guard(clearing("walls"), "walls", "WHY")
