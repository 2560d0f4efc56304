"""What the store keeps in memory is what is on the disk, is bounded, and could do no harm if it were not."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from rgs.core.rounds import Round
from rgs.core.sessions import Session
from rgs.core.views import RoundChangedError
from rgs.store.changes import BalanceReported, Change, RequestSeenError, SessionRaceError, StoreError
from rgs.store.interface import Store, StoreReads
from tests.support.service.harness import open_harness
from tests.support.service.oracles import verify_books
from tests.support.service.player import Player
from tests.support.store.shelf import answer, dealt, open_shelf, opened, session, started, ulid


async def both(store: Store, number: int) -> tuple[Session, Round | None]:
    """The session and its round in play, the same from memory and from the disk."""
    remembered = await store.session(ulid(number), fresh=False)
    assert remembered is not None
    assert remembered == await StoreReads.session(store, ulid(number))
    assert await store.sessions_by_id([ulid(number)], fresh=False) == {ulid(number): remembered}
    if not remembered.open_round_id:
        return remembered, None
    round_ = await store.round(remembered.open_round_id, fresh=False)
    assert round_ == await StoreReads.round(store, remembered.open_round_id)
    return remembered, round_


@pytest.mark.usefixtures("either_store")
async def test_what_is_remembered_is_what_was_committed(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        await store.commit(opened(session(1)))
        made, _ = await both(store, 1)
        await store.commit(started(made, 1))
        playing, round_ = await both(store, 1)
        assert round_ is not None
        assert playing.link_no == 2
        moved = replace(round_, version=2)
        await store.commit(Change(replace(playing, version=3), moved, answer=answer(9)))
        assert (await both(store, 1))[1] == moved
        # Nothing of a change that failed is remembered, and what it began from is read again.
        with pytest.raises(RequestSeenError):
            await store.commit(Change(replace(playing, version=4, player="bert"), answer=answer(9)))
        assert (await both(store, 1))[0].player == "anna"
        with pytest.raises(SessionRaceError):
            await store.commit(Change(replace(playing, version=2, player="bert")))
        assert (await both(store, 1))[0].version == 3


@pytest.mark.usefixtures("either_store")
async def test_a_cancelled_caller_leaves_no_old_copy_behind(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        await store.commit(opened(session(1)))
        made, _ = await both(store, 1)
        task = asyncio.ensure_future(store.commit(started(made, 1)))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await store.commit(opened(session(2)))  # behind it
        assert (await both(store, 1))[0].open_round_id == dealt(made, 1).round_id


@pytest.mark.usefixtures("either_store")
async def test_memory_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rgs.store.memory.FRESH_MAX", 3)
    async with open_shelf(tmp_path) as store:
        for number in range(1, 9):
            await store.commit(opened(session(number)))
            await store.commit(started((await both(store, number))[0], number))
            assert len(store._memory._fresh) <= 3
            assert len(store._memory._session_of) <= 3
        for number in range(1, 9):
            await both(store, number)


async def test_an_old_copy_does_no_harm(tmp_path: Path) -> None:
    """Planted: memory holds the session and the round as they were one decision ago."""
    async with open_harness(tmp_path) as harness:
        anna = Player(harness)
        await anna.sit()
        await anna.start()
        store = harness.store
        old = dict(store._memory._fresh), dict(store._memory._session_of)
        await anna.act("check")
        store._memory._fresh, store._memory._session_of = old
        decision = replace(anna.decision("check"), round_version=1)  # as a client that sees the old copy
        with pytest.raises(RoundChangedError) as moved:
            await harness.send(decision)
        assert moved.value.round is not None
        assert moved.value.round.round_version == 2, "an error from an old copy is looked at again"
        await anna.send(anna.decision("check"))
        await anna.finish_round()
        await anna.leave()
        await harness.settle()
    verify_books(tmp_path)


async def test_the_oracle_sees_an_old_copy(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        await store.commit(opened(session(1)))
        old = dict(store._memory._fresh)
        made, _ = await both(store, 1)
        await store.commit(started(made, 1))
        store._memory._fresh = old
        with pytest.raises(AssertionError):
            await both(store, 1)


async def test_a_balance_is_kept_with_a_session_that_is_remembered_and_harms_no_other(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        await store.commit(opened(session(1)))
        for number in (1, 2):  # of the second one nothing is known
            await store.commit(Change(records=(BalanceReported(700, 300, 1_500, ulid(number)),)))
        remembered, _ = await both(store, 1)
        kept = remembered.wallet_balance_minor, remembered.wallet_credited_minor, remembered.wallet_balance_ms
        assert kept == (700, 300, 1_500)
        assert await store.session(ulid(2), fresh=False) is None


async def test_nothing_is_told_from_memory_while_a_commit_is_stuck(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stuck() -> None:
        raise StoreError("planned")

    async with open_shelf(tmp_path) as store:
        await store.commit(opened(session(1)))
        made, _ = await both(store, 1)
        await store.commit(started(made, 1))
        playing, round_ = await both(store, 1)
        assert round_ is not None
        monkeypatch.setattr(store, "_verify_answering", stuck)
        for read in (store.session(playing.session_id, fresh=False), store.round(round_.round_id, fresh=False)):
            with pytest.raises(StoreError, match="planned"):
                await read
        assert await store.session(playing.session_id) == playing
        assert await store.round(round_.round_id) == round_


async def test_a_session_in_memory_is_not_told_while_the_store_is_stuck(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stuck() -> None:
        raise StoreError("a commit is stuck")

    async with open_shelf(tmp_path) as store:
        await store.commit(opened(session(1)))
        with monkeypatch.context() as patched:
            patched.setattr(store, "_verify_answering", stuck)
            with pytest.raises(StoreError, match="a commit is stuck"):
                await store.session(ulid(1), fresh=False)
            assert (await store.session(ulid(1))).version == 1
