"""What another process over the same store has done meanwhile: answered, never done twice."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from rgs.core.errors import RegulatorUnavailableError, SessionChangedError
from rgs.core.rounds import Round
from rgs.node import leases
from rgs.node.leases import Leases
from rgs.service.callers import Reply
from rgs.store.changes import Change, Operation, Signed, StoreError
from rgs.store.interface import InstanceRow
from rgs.store.opening import open_parties, open_store
from rgs.store.postgres import texts
from rgs.store.postgres.store import PostgresStore
from tests.support.service.harness import NODE_KEY, OPERATOR, open_harness, read_reply, read_statement
from tests.support.service.oracles import stored_statements, verify_books
from tests.support.service.player import Player
from tests.support.store.databases import fresh_database


async def test_an_operation_that_is_done_is_not_done_again(tmp_path: Path) -> None:
    """Whoever has read a purchase as pending before it was done finds the session without it."""
    async with open_harness(tmp_path) as harness:
        anna = Player(harness)
        await anna.open()
        request = anna.purchase(10_000)
        harness.regulator_script.plan("buy_participation", "before")
        with pytest.raises(RegulatorUnavailableError):
            await anna.send(request)
        operation = await harness.store.pending_operation(anna.session_id)
        assert operation is not None
        first = await anna.send(request)
        with pytest.raises(SessionChangedError):
            await harness.operations.advance(operation)
        assert anna.balance_minor == 10_000
        # Who asked for it gets the answer that it had elsewhere.
        assert await harness.sessions._advance(operation) == first
        await anna.leave()
        await harness.settle()
    verify_books(tmp_path)


async def test_an_opening_that_was_answered_meanwhile_opens_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same request at another process, from its first look to its answer, between our look and our intent."""
    async with open_harness(tmp_path) as harness:
        anna = Player(harness)
        request = anna.opening()
        begin = harness.sessions._begin
        answered: list[Reply | None] = []

        async def begin_late(session: object, operation: Operation, *token: str) -> bool:
            if not answered:
                answered.append(None)
                answered.append(await harness.sessions.open(OPERATOR, request))
            return await begin(session, operation, *token)  # type: ignore[arg-type]

        monkeypatch.setattr(harness.sessions, "_begin", begin_late)
        reply = await anna.send(request)
        assert reply == answered[1]
        assert [row.kind for row in stored_statements(tmp_path)].count("session_open") == 1
        sessions, _ = await harness.sessions.list(OPERATOR, "", open_only=False, page_size=10, page_token="")
        states = {view.session.session_id: view.session.status.value for view in sessions}
        assert states.pop(read_reply(reply)["session"]["session_id"]) == "open"
        assert states == {}  # the reference has been taken: not even the intent was stored
        await anna.buy()
        await anna.play()
        await anna.leave()
        await harness.settle()
    verify_books(tmp_path)


# --- leases -----------------------------------------------------------------------------------------------------------


def lost_in(folder: Path) -> list[str]:
    rows = [read_statement(row.envelope) for row in stored_statements(folder) if row.kind == "instance_lost"]
    return [row["lost"]["instance"] for row in rows]


async def test_nobody_declares_its_own_successor_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a turn is committed the store may show the next instance before this process knows itself as it."""
    async with open_harness(tmp_path) as harness:
        own = await harness.store.instances(alive_only=True)
        assert [row.instance for row in own] == [harness.instance.name]

        async def lapsed() -> list[InstanceRow]:
            return [*own, replace(own[0], instance="node-1-b2-w0", boot_no=2)]

        monkeypatch.setattr(harness.store, "lapsed_instances", lapsed)
        assert await harness.instance.report_lost() == 0
        assert lost_in(tmp_path) == []


async def test_whoever_was_cut_off_declares_nobody_lost_for_one_lease(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_harness(tmp_path) as harness:
        reported: list[int] = []

        async def report_lost() -> int:
            reported.append(harness.clock.now_ms())
            return 0

        async def no_answer(_instance: str, _lease_ms: int) -> bool:
            raise StoreError("no database")

        monkeypatch.setattr(harness.instance, "report_lost", report_lost)
        lease = Leases(
            store=harness.store,
            clock=harness.clock,
            instance=harness.instance,
            is_trusted=harness.services.time.is_trusted,
        )
        for _ in range(2):
            await lease.poll()
            assert reported == []
            harness.clock.tick(leases.LEASE_MS)
            await lease.renew()
            await lease.poll()
            assert reported == [harness.clock.now_ms()]
            reported.clear()
            with monkeypatch.context() as patched:
                patched.setattr(harness.store, "renew_lease", no_answer)
                with pytest.raises(StoreError):
                    await lease.renew()
        assert not lease.lost.is_set()


async def test_an_instance_that_was_ended_by_others_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_harness(tmp_path) as harness:
        lease = Leases(
            store=harness.store,
            clock=harness.clock,
            instance=harness.instance,
            is_trusted=harness.services.time.is_trusted,
        )

        async def ended(_instance: str, _lease_ms: int) -> bool:
            return False

        await lease.renew()
        assert not lease.lost.is_set()
        monkeypatch.setattr(harness.store, "renew_lease", ended)
        await lease.renew()
        assert lease.lost.is_set()


@pytest.mark.parametrize("taken", [True, False])
async def test_a_renewal_that_a_turn_overtakes_loses_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: bool
) -> None:
    """The store answers for the instance that was asked for, which the turn has ended meanwhile; the process knows of
    the turn already, or (not `taken`) has not heard of its commit yet.
    """
    with fresh_database() as address:
        given: dict[str, Any] = {"store": await open_store(address), "parties": await open_parties(address)}
        async with open_harness(tmp_path, **given) as harness:
            store = cast(PostgresStore, harness.store)
            ask, commit = store.ask, store.commit
            requested, answerable, committed, heard = (asyncio.Event() for _ in range(4))

            async def late(text: str, *values: object) -> Sequence[Any]:
                if text == texts.RENEW_LEASE:
                    requested.set()
                    await answerable.wait()
                return await ask(text, *values)

            async def slow(change: Change) -> tuple[Signed, ...]:
                signed = await commit(change)
                committed.set()
                await heard.wait()
                return signed

            monkeypatch.setattr(store, "ask", late)
            monkeypatch.setattr(store, "commit", slow)
            lease = Leases(
                store=store,
                clock=harness.clock,
                instance=harness.instance,
                is_trusted=harness.services.time.is_trusted,
            )
            renewal = asyncio.create_task(lease.renew())
            await requested.wait()
            turn = asyncio.create_task(harness.instance.hand_over(NODE_KEY, ()))
            await committed.wait()
            if taken:
                heard.set()
                await turn
            answerable.set()
            await asyncio.sleep(0.1)
            heard.set()
            await asyncio.gather(renewal, turn)
            assert not lease.lost.is_set()
            assert harness.instance.name == "node-1-b2-w0"
            await lease.renew()
            assert not lease.lost.is_set(), "the successor is asked for"


# --- reads ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", ["check", "play_4x"])
async def test_a_session_is_not_told_with_another_state_of_its_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    """A decision at another process falls between the two reads."""
    async with open_harness(tmp_path) as harness:
        anna = Player(harness)
        await anna.sit()
        await anna.start()
        read = harness.store.round
        moves = [anna.decision(action)]

        async def read_late(round_id: str, *, fresh: bool = True) -> Round | None:
            if moves:
                await anna.send(moves.pop())
            return await read(round_id, fresh=fresh)

        monkeypatch.setattr(harness.store, "round", read_late)
        reported, _ = await harness.sessions.get(OPERATOR, anna.session_id)
        assert not moves
        again, _ = await harness.sessions.get(OPERATOR, anna.session_id)
        assert reported == again
