"""What another process overtakes in its last moment is told so, or answered as it was there; it is never done twice."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rgs.core.errors import RngUnavailableError, SessionChangedError, WalletRefusedError
from rgs.core.sessions import Session
from rgs.service.callers import Reply
from rgs.store.changes import Change, Operation, RequestSeenError, SessionRaceError, Signed, StoreError
from tests.support.service.harness import NODE_KEY, ServiceHarness, open_harness
from tests.support.service.oracles import stored_statements, verify_books
from tests.support.service.player import Player
from tests.support.service.seamless import Better, debits, opened, verify_seamless


async def test_a_start_that_is_always_overtaken_gives_up_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_harness(tmp_path) as harness:
        anna = Player(harness)
        await anna.sit()
        commit, overtaken = harness.store.commit, 0

        async def late(change: Change) -> tuple[Signed, ...]:
            nonlocal overtaken
            if change.round is not None:
                session = await harness.store.session(anna.session_id, fresh=True)
                assert session is not None
                overtaken += 1
                await commit(Change(session=replace(session, version=session.version + 1)))
            return await commit(change)

        request = anna.starting()
        with monkeypatch.context() as patched:
            patched.setattr(harness.store, "commit", late)
            with pytest.raises(SessionChangedError, match="changed by another request; read it again"):
                await anna.send(request)
        assert overtaken == 3
        await anna.send(request)
        await anna.finish_round()
        await anna.leave()
        await harness.settle()
    assert [row.kind for row in stored_statements(tmp_path)].count("discarded_draw") == 3
    verify_books(tmp_path)


async def test_a_purchase_that_another_process_made_meanwhile_gets_its_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_harness(tmp_path) as harness:
        anna = Player(harness)
        await anna.open()
        begin, answers = harness.sessions._begin, list[Reply]()

        async def elsewhere(session: Session, operation: Operation) -> bool:
            assert await begin(session, operation)
            answers.append(await harness.operations.advance(operation))
            return False

        monkeypatch.setattr(harness.sessions, "_begin", elsewhere)
        assert [await anna.buy()] == answers
        assert anna.balance_minor == 10_000
        await anna.leave()
        await harness.settle()
    verify_books(tmp_path)


async def a_better(harness: ServiceHarness) -> Better:
    anna = Better(harness)
    await anna.open()
    return anna


async def test_a_stake_whose_request_another_process_has_begun_is_taken_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path) as harness:
        anna = await a_better(harness)
        commit, seen = harness.store.commit, list[str]()

        async def first(change: Change) -> tuple[Signed, ...]:
            if change.operation is not None and not seen:
                seen.append(change.operation.operation_id)
                raise RequestSeenError("the request id was used before")
            return await commit(change)

        monkeypatch.setattr(harness.store, "commit", first)
        await anna.start(100)
        assert len(seen) == await debits(harness) == 1
        taken = [row.transaction_id for row in harness.wallet_store.rows() if row.kind != "opening"]
        assert seen[0] not in taken, "an intent that was not stored takes no money"
        await anna.finish_round()
        await anna.close()
        await harness.settle()
    verify_seamless(tmp_path)


async def test_a_stake_that_another_process_brings_to_its_end_has_its_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path) as harness:
        anna = await a_better(harness)
        advance, answers = harness.operations.advance, list[Reply]()

        async def elsewhere(operation: Operation) -> Reply:
            answers.append(await advance(operation))
            raise SessionChangedError("the session was changed by another request; read it again")

        with monkeypatch.context() as patched:
            patched.setattr(harness.operations, "advance", elsewhere)
            reply: Any = await anna.start(100)
        assert reply == answers[0]
        assert await debits(harness) == 1
        await anna.finish_round()
        await anna.close()
        await harness.settle()
    verify_seamless(tmp_path)


async def test_a_decision_takes_no_money_while_its_round_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path) as harness:
        anna = await a_better(harness)
        await anna.start(100)
        before, read = await debits(harness), harness.store.round

        async def unreadable(round_id: str, *, fresh: bool = False) -> Any:
            if fresh:
                raise StoreError("the store is not answering")
            return await read(round_id, fresh=fresh)

        request = anna.decision("play_4x")
        with monkeypatch.context() as patched:
            patched.setattr(harness.store, "round", unreadable)
            with pytest.raises(StoreError):
                await anna.send(request)
            assert await debits(harness) == before
        await anna.send(request)
        assert await debits(harness) == before + 1
        await anna.close()
        await harness.settle()
    verify_seamless(tmp_path)


async def test_of_two_turns_at_once_one_begins_the_next_instance(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness:
        before = harness.instance.boot_no
        turns: list[Awaitable[None]] = [harness.instance.hand_over(NODE_KEY, ()) for _ in range(2)]
        outcomes = await asyncio.gather(*turns, return_exceptions=True)
        assert sorted(type(outcome).__name__ for outcome in outcomes) == ["NoneType", RngUnavailableError.__name__]
        assert harness.instance.boot_no == before + 1
        anna = Player(harness)
        await anna.sit()
        await anna.play()
        await anna.leave()
        await harness.settle()
    verify_books(tmp_path)


async def test_a_paid_stake_whose_round_loses_its_race_is_played_from_the_session_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path) as harness:
        anna = await a_better(harness)
        commit, lost = harness.store.commit, list[str]()

        async def race(change: Change) -> tuple[Signed, ...]:
            if change.round is not None and not lost:
                lost.append(change.round.round_id)
                raise SessionRaceError("the session was changed by another request")
            return await commit(change)

        with monkeypatch.context() as patched:
            patched.setattr(harness.store, "commit", race)
            await anna.start()
        assert (len(lost), anna.round["status"], await debits(harness)) == (1, "open", 1)


async def test_a_stake_that_fails_here_and_was_answered_elsewhere_gets_that_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path) as harness:
        anna = await a_better(harness)
        advance, answers = harness.operations.advance, list[Reply]()

        async def elsewhere(operation: Operation) -> Reply:
            answers.append(await advance(operation))
            raise WalletRefusedError("no", refusal="LIMIT_REACHED")

        with monkeypatch.context() as patched:
            patched.setattr(harness.operations, "advance", elsewhere)
            assert await anna.start() == answers[0]
        assert (anna.round["status"], await debits(harness)) == ("open", 1)
