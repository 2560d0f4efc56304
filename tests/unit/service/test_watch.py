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
from rgs.service.admin.orders import Order, order_of
from rgs.service.admin.watch import REGISTER_FAILURES_MAX, REGISTER_QUIET_MS, RULES_CLOSED_PERIOD_MS, UNTOLD_MAX
from rgs.service.callers import Caller, Role
from rgs.service.events import EventCode
from rgs.service.permits import GUARDS, GuardState
from rgs.store.changes import StoreError
from rgs.store.sqlite.store import connect
from rng import entropy as entropy_module
from rng import selftest
from rng.errors import EntropyError, SelfTestError
from tests.house import House, Player, open_house, read_statement
from tests.oracles import stored_statements, verify_books

ADMIN = Caller("admin-1", Role.ADMIN, "")
_ids = itertools.count(1)


def clearing(name: str) -> Order:
    return order_of(ADMIN, "ClearGuard", str(uuid.UUID(int=next(_ids))), name=name)


def guard(house: House, name: str) -> GuardState:
    return house.services.permits.guard(name)


def closed(house: House) -> list[str]:
    return [state.name for state in house.services.permits.guards() if state.closed]


def told(folder: Path) -> list[tuple[str, str, str]]:
    """Code, subject and reason of the events, those of the generator's life at the start and end aside."""
    bodies = [read_statement(row.envelope) for row in stored_statements(folder) if row.kind == "event"]
    return [
        (body["code"], body.get("subject", ""), body.get("reason", ""))
        for body in bodies
        if body["code"] not in ("RNG_INSTANTIATED", "RNG_UNINSTANTIATED")
    ]


async def look(house: House) -> None:
    await house.services.watch.look()


async def seated(house: House) -> tuple[Player, Player]:
    """One player with a round in play, one who is about to start."""
    anna, bert = Player(house), Player(house, name="bert")
    for player in (anna, bert):
        await player.sit()
    await anna.start()
    return anna, bert


async def verify_only_new_rounds_stop(house: House, name: str, anna: Player, bert: Player) -> None:
    """New rounds are refused naming the guard; the dealt round is settled, its participation paid out and closed."""
    assert closed(house) == [name]
    with pytest.raises(GuardClosedError) as caught:
        await bert.start()
    assert caught.value.metadata["guard"] == name
    with pytest.raises(GuardClosedError):
        await Player(house, name="carl").open()
    await anna.finish_round()
    await anna.leave()
    assert anna.session["status"] == "closed"


async def test_nothing_is_closed_and_nothing_told_while_all_is_sound(house: House, tmp_path: Path) -> None:
    for _ in range(3):
        house.clock.tick(1_000)
        await look(house)
    assert closed(house) == []
    assert told(tmp_path) == []
    assert {state.name for state in house.services.permits.guards()} == set(GUARDS)


# --- the transparency log ---------------------------------------------------------------------------------------------


async def test_the_transparency_log(house: House, tmp_path: Path) -> None:
    anna, bert = await seated(house)
    house.log = "STORE_BEHIND"
    await look(house)
    assert guard(house, "log").code == "STORE_BEHIND"
    assert not guard(house, "log").latched
    await verify_only_new_rounds_stop(house, "log", anna, bert)
    # An admin's word does not make it agree.
    await house.services.admin.clear_guard(clearing("log"), "log", "LOOKED_AT")
    assert closed(house) == ["log"]
    house.log = ""
    await look(house)
    assert closed(house) == []
    await bert.play()
    assert ("GUARD_CLOSED", "log", "STORE_BEHIND") in told(tmp_path)
    assert told(tmp_path)[-1] == ("GUARD_OPENED", "log", "STORE_BEHIND")


# --- the generator ----------------------------------------------------------------------------------------------------


def starve(monkeypatch: pytest.MonkeyPatch) -> None:
    def block() -> bytes:
        raise EntropyError("ENTROPY_UNAVAILABLE", "planned")

    monkeypatch.setattr(entropy_module, "_os_block", block)


async def test_the_generator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_house(tmp_path) as house:
        anna, bert = await seated(house)
        with monkeypatch.context() as patched:
            starve(patched)
            with pytest.raises(RngUnavailableError):
                await bert.start()
            await look(house)
        failed, latched = ("RNG_FAILED", "node-1-b1-w0", "ENTROPY_UNAVAILABLE"), ("GUARD_CLOSED", "rng")
        assert told(tmp_path) == [failed, (*latched, "ENTROPY_UNAVAILABLE")]
        assert guard(house, "rng").latched
        assert [(row.guard, row.code) for row in await house.store.latches("node-1")] == [
            ("rng", "ENTROPY_UNAVAILABLE")
        ]
        await anna.finish_round()
        # An admin clears it: the latch is gone, but this process's generator is dead.
        reply = await house.services.admin.clear_guard(clearing("rng"), "rng", "INSPECTED")
        body = read_statement(reply.envelope)
        assert (body["code"], body["before"], body["after"]) == (
            "GUARD_CLEARED", "ENTROPY_UNAVAILABLE", "RESTART_NEEDED",
        )  # fmt: skip
        for _ in range(2):
            await look(house)
            assert guard(house, "rng") == GuardState("rng", "RESTART_NEEDED", False, house.clock.now_ms())
            with pytest.raises(GuardClosedError, match="RESTART_NEEDED"):
                await bert.start()
        assert await house.store.latches("node-1") == []
    async with open_house(tmp_path, clock=house.clock) as second:
        assert closed(second) == []
        for player in (anna, bert):
            player.house = second
            await player.play()
            await player.leave()
        await second.settle()
    assert verify_books(tmp_path).rounds_verified == 3


async def test_the_latch_outlives_the_process_until_an_admin_clears_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_house(tmp_path) as house:
        bert = Player(house, name="bert")
        await bert.sit()
        with monkeypatch.context() as patched:
            starve(patched)
            with pytest.raises(RngUnavailableError):
                await bert.start()  # nobody has looked yet, and the latch is with RNG_FAILED all the same
    for _ in range(2):
        async with open_house(tmp_path, clock=house.clock) as again:
            await look(again)
            assert guard(again, "rng").latched
            bert.house = again
            with pytest.raises(GuardClosedError):
                await bert.start()
    async with open_house(tmp_path, clock=house.clock) as last:
        await last.services.admin.clear_guard(clearing("rng"), "rng", "REPLACED")
        await look(last)
        assert closed(last) == []
        bert.house = last
        await bert.play()
    assert [code for code, _, _ in told(tmp_path)] == ["RNG_FAILED", "GUARD_CLEARED"]


async def test_a_generator_that_fails_unasked_is_seen(house: House, tmp_path: Path) -> None:
    house.instance._generator.close()
    await look(house)
    assert told(tmp_path) == [
        ("RNG_FAILED", "node-1-b1-w0", "GENERATOR_ENDED"), ("GUARD_CLOSED", "rng", "GENERATOR_ENDED"),
    ]  # fmt: skip


# --- its self-test ----------------------------------------------------------------------------------------------------


def break_self_test(patched: pytest.MonkeyPatch) -> None:
    def broken() -> tuple[str, ...]:
        raise SelfTestError("SHUFFLE_KNOWN_ANSWER", "planned")

    patched.setattr(selftest, "run", broken)


async def test_the_daily_self_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_house(tmp_path) as house:
        anna, bert = await seated(house)
        with monkeypatch.context() as patched:
            break_self_test(patched)
            await look(house)
            assert closed(house) == []  # a day has not passed
            house.clock.tick(86_400_000)
            await look(house)
        assert closed(house) == ["rng", "self_test"]  # a failed self-test ends the generator
        with pytest.raises(GuardClosedError):
            await bert.start()
        await anna.finish_round()
        assert told(tmp_path) == [
            ("RNG_FAILED", "node-1-b1-w0", "SHUFFLE_KNOWN_ANSWER"),
            ("GUARD_CLOSED", "self_test", "SELF_TEST_FAILED"),
            ("GUARD_CLOSED", "rng", "SHUFFLE_KNOWN_ANSWER"),
        ]
        reply = await house.services.admin.clear_guard(clearing("self_test"), "self_test", "LOOKED_AT")
        assert read_statement(reply.envelope)["after"] == "RESTART_NEEDED"
    async with open_house(tmp_path, clock=house.clock) as second:
        assert closed(second) == ["rng"]


async def test_the_self_test_is_run_again_when_an_admin_clears_its_guard(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = []

    def run() -> tuple[str, ...]:
        runs.append(1)
        return ()

    monkeypatch.setattr(selftest, "run", run)
    reply = await house.services.admin.clear_guard(clearing("self_test"), "self_test", "AUDIT")
    assert (len(runs), read_statement(reply.envelope)["after"]) == (1, "OPEN")
    assert house.instance.healthy


# --- the certified files ----------------------------------------------------------------------------------------------


async def test_the_rules(house: House, tmp_path: Path) -> None:
    anna, bert = await seated(house)
    house.software = "SOFTWARE_CHANGED"
    await look(house)
    assert closed(house) == []  # ten minutes have not passed
    house.clock.tick(600_000)
    await look(house)
    await verify_only_new_rounds_stop(house, "rules", anna, bert)
    # An admin's word changes no file.
    reply = await house.services.admin.clear_guard(clearing("rules"), "rules", "LOOKED_AT")
    assert read_statement(reply.envelope)["after"] == "SOFTWARE_CHANGED"
    assert closed(house) == ["rules"]
    house.software = ""
    house.clock.tick(RULES_CLOSED_PERIOD_MS)
    await look(house)
    assert closed(house) == []
    await bert.start()
    assert told(tmp_path) == [
        ("GUARD_CLOSED", "rules", "SOFTWARE_CHANGED"),
        ("GUARD_CLEARED", "rules", "LOOKED_AT"),
        ("GUARD_OPENED", "rules", "SOFTWARE_CHANGED"),
    ]


async def test_what_the_server_runs_on_is_looked_at_once_a_day(house: House, tmp_path: Path) -> None:
    house.surroundings = "SURROUNDINGS_CHANGED"
    for _ in range(3):
        house.clock.tick(600_000)  # the certified files alone
        await look(house)
    assert closed(house) == []
    house.clock.tick(86_400_000 - 3 * 600_000)
    await look(house)
    assert closed(house) == ["rules"]
    house.clock.tick(RULES_CLOSED_PERIOD_MS)
    await look(house)
    assert closed(house) == ["rules"], "sound certified files open nothing that something else has closed"
    house.surroundings = ""
    house.clock.tick(RULES_CLOSED_PERIOD_MS)
    await look(house)
    assert closed(house) == []
    assert told(tmp_path) == [
        ("GUARD_CLOSED", "rules", "SURROUNDINGS_CHANGED"),
        ("GUARD_OPENED", "rules", "SURROUNDINGS_CHANGED"),
    ]


async def test_what_the_server_runs_on_is_looked_at_on_demand(house: House) -> None:
    house.surroundings = "SURROUNDINGS_CHANGED"
    reply = await house.services.admin.clear_guard(clearing("rules"), "rules", "CHECKED")
    assert read_statement(reply.envelope)["after"] == "SURROUNDINGS_CHANGED"
    assert closed(house) == ["rules"]


async def test_the_rules_are_looked_at_again_when_an_admin_clears_their_guard(house: House) -> None:
    house.software = "SOFTWARE_UNREADABLE"
    house.clock.tick(600_000)
    await look(house)
    house.software = ""
    reply = await house.services.admin.clear_guard(clearing("rules"), "rules", "MOUNTED_AGAIN")
    assert read_statement(reply.envelope)["after"] == "OPEN"
    assert closed(house) == []


# --- the clock --------------------------------------------------------------------------------------------------------


async def test_the_clock(house: House, tmp_path: Path) -> None:
    anna, bert = await seated(house)
    house.clock.jump(-3_600_000)
    await look(house)
    await verify_only_new_rounds_stop(house, "clock", anna, bert)
    for _ in range(60):
        house.clock.tick(60_000)
        await look(house)
    assert closed(house) == ["clock"]  # it runs evenly, which says nothing
    house.clock.jump(3_600_000)
    await look(house)  # a second jump while it is closed is counted
    assert [(latch.guard, latch.code) for latch in await house.store.latches("node-1")] == [("clock", "TIME_JUMP")]
    await house.services.admin.clear_guard(clearing("clock"), "clock", "TIME_SERVER_MENDED")
    assert (closed(house), await house.store.latches("node-1")) == ([], [])
    await bert.start()
    assert told(tmp_path) == [
        ("GUARD_CLOSED", "clock", "TIME_JUMP"), ("TIME_JUMP", "clock", ""),
        ("GUARD_CLEARED", "clock", "TIME_SERVER_MENDED"),
    ]  # fmt: skip
    jump = [read_statement(row.envelope) for row in stored_statements(tmp_path)]
    assert [body["after"] for body in jump if body.get("code") == "TIME_JUMP"] == ["-3600000 ms"]
    await house.services.events.flush(everything=True)
    assert told(tmp_path)[-1] == ("TIME_JUMP", "", "TIME_JUMP")


async def test_times_in_statements_do_not_go_back_within_a_session(house: House, tmp_path: Path) -> None:
    anna, _ = await seated(house)
    house.clock.tick(-3_600_000)
    await anna.finish_round()
    times = [
        body["time"]
        for body in (read_statement(row.envelope) for row in stored_statements(tmp_path))
        if body.get("session_id") == anna.session_id
    ]
    assert len(times) == 4
    assert times == sorted(times)


# --- the register -----------------------------------------------------------------------------------------------------


async def test_the_register(house: House, tmp_path: Path) -> None:
    anna, bert = await seated(house)
    house.central_script.is_down = True
    for number in range(REGISTER_FAILURES_MAX):
        assert closed(house) == []
        with pytest.raises(RegulatorUnavailableError):
            await Player(house, name=f"carl-{number}").open()
        await look(house)
    assert closed(house) == ["register"]
    assert house.services.permits.serving  # rounds of sessions that have their ids
    await bert.play()
    await anna.finish_round()
    house.central_script.is_down = False
    await house.settle()
    await look(house)
    assert closed(house) == []
    assert told(tmp_path) == [("GUARD_CLOSED", "register", "UNANSWERED"), ("GUARD_OPENED", "register", "UNANSWERED")]


async def test_a_register_that_refuses_is_not_down(house: House) -> None:
    central = house.services.watch._central
    central.failures = REGISTER_FAILURES_MAX - 1
    with pytest.raises(RgsError) as caught:
        await central.close_session(SessionClose("0" * 26, "M" + "0" * 15, house.clock.now_ms()))
    assert not isinstance(caught.value, RegulatorUnavailableError)
    assert central.failures == 0


async def test_a_register_that_nobody_asks_any_more_is_believed_again(house: House) -> None:
    central = house.services.watch._central
    central.failures, central.failed_ms = REGISTER_FAILURES_MAX, house.clock.now_ms()
    await look(house)
    house.clock.tick(REGISTER_QUIET_MS)
    await look(house)
    assert closed(house) == ["register"]
    house.clock.tick(1)
    await look(house)
    await look(house)
    assert closed(house) == []


# --- the store --------------------------------------------------------------------------------------------------------


async def test_the_store(house: House, tmp_path: Path) -> None:
    anna, bert = await seated(house)
    house.store._db.execute("PRAGMA busy_timeout = 5")
    with closing(connect(tmp_path / "rgs.db")) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError):
            await bert.start()
        assert closed(house) == ["store"]  # at once, not with the next look
        drawn = house.store.draws_owed
        for _ in range(3):
            with pytest.raises(GuardClosedError):
                await bert.start()
            await look(house)
        assert (closed(house), house.store.draws_owed) == (["store"], drawn), "no draw is spent on a store that is down"
        other.execute("ROLLBACK")
    await look(house)
    assert closed(house) == []
    assert told(tmp_path) == [("GUARD_CLOSED", "store", "COMMIT_FAILED"), ("GUARD_OPENED", "store", "COMMIT_FAILED")]
    await bert.play()
    await anna.finish_round()
    await anna.leave()
    await bert.leave()
    await house.settle()
    verify_books(tmp_path)


async def test_what_the_store_could_not_take_is_told_when_it_can(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A generator that dies while the store is locked: the latch and both guards are signed afterwards."""
    house.store._db.execute("PRAGMA busy_timeout = 5")
    with closing(connect(tmp_path / "rgs.db")) as other:
        other.execute("BEGIN IMMEDIATE")
        house.instance._generator.close()
        await look(house)
        assert closed(house) == ["rng", "store"]
        assert told(tmp_path) == []
        other.execute("ROLLBACK")
    await look(house)
    assert closed(house) == ["rng"]
    assert [code for code, _, _ in told(tmp_path)] == ["RNG_FAILED", "GUARD_CLOSED", "GUARD_CLOSED", "GUARD_OPENED"]
    assert len(await house.store.latches("node-1")) == 1


async def test_what_waits_for_the_store_is_bounded(house: House, tmp_path: Path) -> None:
    house.store._db.execute("PRAGMA busy_timeout = 1")
    watch = house.services.watch
    with closing(connect(tmp_path / "rgs.db")) as other:
        other.execute("BEGIN IMMEDIATE")
        for _ in range(UNTOLD_MAX):
            watch._close("clock", "TIME_JUMP")
            watch._open("clock")
        await look(house)
        assert len(watch._untold) == UNTOLD_MAX
        other.execute("ROLLBACK")
    await look(house)
    assert watch._untold == []
    assert len(told(tmp_path)) == UNTOLD_MAX + 1


# --- admins -----------------------------------------------------------------------------------------------------------


async def test_a_guard_that_is_looked_after_elsewhere_is_not_opened_by_a_word(house: House) -> None:
    house.services.permits.close_guard("keys", "KEY_ENDED", house.clock.now_ms())
    reply = await house.services.admin.clear_guard(clearing("keys"), "keys", "TRUST_ME")
    assert read_statement(reply.envelope)["after"] == "KEY_ENDED"
    assert closed(house) == ["keys"]


async def test_a_guard_that_is_none(house: House) -> None:
    with pytest.raises(NotFoundError):
        await house.services.admin.clear_guard(clearing("walls"), "walls", "WHY")


# --- what strangers cause ---------------------------------------------------------------------------------------------


async def test_what_is_counted_is_told_once_a_minute_and_not_lost(house: House, tmp_path: Path) -> None:
    events, clock = house.services.events, house.clock

    def count() -> None:
        events.count(EventCode.AUTHENTICATION_FAILED, "CERTIFICATE_NOT_ALLOWED")

    count()
    await events.flush()
    for _ in range(500):
        count()
        clock.tick(100)
        await events.flush()
    clock.tick(10_000)
    house.store._db.execute("PRAGMA busy_timeout = 1")
    with closing(connect(tmp_path / "rgs.db")) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError):
            await events.flush()
        other.execute("ROLLBACK")
    await events.flush(everything=True)
    bodies = [read_statement(row.envelope) for row in stored_statements(tmp_path) if row.kind == "event"]
    counts = [body["after"] for body in bodies if body["code"] == "AUTHENTICATION_FAILED"]
    assert counts == ["1", "500"]
