"""The list of finals: each once, in one order without gaps, whatever processes commit at once, late or not at all."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from rgs.service.audit import finals as module
from rgs.service.audit.finals import FinalsList
from rgs.store.changes import Change, Draft, OvertakenError, StoreError, StoreUnknownError
from tests.support.store.shelf import open_shelf, opened, session, table, ulid
from tests.unit.store.test_postgres import nodes

OPERATORS = ("op-1", "op-2")
_FINALS = (
    "SELECT s.instance, s.statement_no, s.id, s.session_id, s.link_no, s.hash, o.operator FROM statements s"
    " JOIN sessions o ON o.session_id = s.session_id WHERE s.kind IN ('round_final', 'seat_final') ORDER BY s.id"
)
_LISTED = "SELECT operator, final_no, instance, statement_no, mark FROM finals ORDER BY operator, final_no"


async def final(store: Any, number: int, round_no: int, kind: str = "round_final") -> None:
    """The next link of the session is a final."""
    read = await store.session(ulid(number), fresh=True)
    round_id = ulid(100_000 + 1_000 * number + round_no)
    draft = Draft(kind, {"time": "then"}, round_id=round_id, seat_no=1)
    await store.commit(Change(replace(read, version=read.version + 1), drafts=(draft,)))


async def verify_list(folder: Path) -> None:
    """All finals that are committed are listed, each once, without a gap, the links of a session in order, and each
    mark is a hash over all before it.
    """
    finals = {(row[0], row[1]): row for row in await table(folder, _FINALS)}
    listed = await table(folder, _LISTED)
    assert sorted((row[2], row[3]) for row in listed) == sorted(finals)
    for operator in OPERATORS:
        mark, links = "", dict[str, int]()
        own = [row for row in listed if row[0] == operator]
        assert [row[1] for row in own] == list(range(1, len(own) + 1))
        for _, _, instance, statement_no, found in own:
            _, _, _, session_id, link_no, hash_, owner = finals[instance, statement_no]
            assert owner == operator
            assert link_no > links.get(session_id, 0), "the finals of a session come in the order of its links"
            links[session_id] = link_no
            mark = sha256(b"rgs/finals/v1\x00" + mark.encode() + bytes(hash_)).hexdigest()
            assert found == mark


@pytest.mark.usefixtures("either_store")
async def test_finals_of_both_kinds_are_listed_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BATCH", 3)
    async with open_shelf(tmp_path) as store:
        for number in (1, 2, 3):
            await store.commit(opened(session(number, operator=OPERATORS[number % 2])))
        for round_no in range(1, 6):
            await final(store, 1 + round_no % 3, round_no, ("round_final", "seat_final")[round_no % 2])
        finals = FinalsList(store)
        assert await finals.poll() == 5
        assert await finals.poll() == 0
        await final(store, 1, 6)
        assert await finals.poll() == 1
        found = await store.finals("op-1", 0, 9)
        assert [one.final_no for one in found] == list(range(1, len(found) + 1))
        assert await store.finals("op-1", len(found), 9) == []
        assert await store.newest_final("op-1") == (len(found), found[-1].mark)
        assert await store.final_mark("op-1", 1) == found[0].mark
        assert await store.final_mark("op-1", 99) == ""
        assert await store.newest_final("op-3") == (0, "")
    await verify_list(tmp_path)


@pytest.mark.usefixtures("postgres_store")
async def test_a_commit_that_is_seen_late_is_listed_behind_later_ones(tmp_path: Path) -> None:
    """Its row numbers are below those that are listed already: whoever reads on from the newest would never see it."""
    async with nodes(tmp_path, 3) as (slow, fast, leader):
        await fast.commit(opened(session(1)))
        await fast.commit(opened(session(2)))
        gate, written, genuine = asyncio.Event(), asyncio.Event(), slow._commits._write

        async def held(*arguments: Any) -> int:
            mark = await genuine(*arguments)
            written.set()
            await gate.wait()
            return mark

        slow._commits._write = held  # type: ignore[method-assign,assignment]
        late = asyncio.create_task(final(slow, 1, 1))
        await written.wait()
        finals = FinalsList(leader)
        for round_no in range(3):
            await final(fast, 2, round_no)
        assert await finals.poll() == 3
        gate.set()
        await late
        assert await finals.poll() == 1
        rows = await table(
            tmp_path,
            "SELECT f.final_no, s.id FROM finals f JOIN statements s ON s.instance = f.instance"
            " AND s.statement_no = f.statement_no ORDER BY f.final_no",
        )
        assert [number for number, _ in rows] == [1, 2, 3, 4]
        assert rows[3][1] < rows[0][1], "the late one has the lowest row number"
    await verify_list(tmp_path)


@pytest.mark.usefixtures("postgres_store")
async def test_many_writers_and_two_that_believe_they_lead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH", 7)
    rounds, writers = 12, 4
    async with nodes(tmp_path, writers + 2) as stores:
        for number in range(1, 2 * writers + 1):
            await stores[0].commit(opened(session(number, operator=OPERATORS[number % 2])))

        async def play(number: int) -> None:
            for round_no in range(rounds):  # each link by another process
                await final(stores[(number + round_no) % writers], number, round_no)
                await asyncio.sleep(0)

        async def list_on(store: Any) -> None:
            finals = FinalsList(store)
            while not done.is_set():
                try:
                    await finals.poll()
                except OvertakenError:
                    lost.append(store)  # the other one was first
                await asyncio.sleep(0)

        done, lost, failures = asyncio.Event(), list[Any](), list[StoreError]()
        for store in stores:
            store.on_failure = failures.append
        leaders = [asyncio.create_task(list_on(store)) for store in stores[writers:]]
        await asyncio.gather(*(play(number) for number in range(1, 2 * writers + 1)))
        done.set()
        await asyncio.gather(*leaders)
        assert lost, "they never met"
        assert failures == [], "the store is well: its guard stays open"
        monkeypatch.setattr(module, "BATCH", 512)
        await FinalsList(stores[-1]).poll()
    await verify_list(tmp_path)
    assert len(await table(tmp_path, _LISTED)) == rounds * 2 * writers


@pytest.mark.usefixtures("either_store")
async def test_nothing_is_listed_twice_or_left_out_when_commits_break(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit that took effect and said it had not, and one that had none: both are what a crash leaves."""
    monkeypatch.setattr(module, "BATCH", 4)
    seeded = random.Random(15)
    async with open_shelf(tmp_path) as store:
        await store.commit(opened(session(1)))
        genuine, broken = store.commit, 0
        for round_no in range(40):
            await final(store, 1, round_no)

        async def breaking(change: Change) -> Any:
            nonlocal broken
            fate = seeded.randrange(3)
            if fate == 0:
                broken += 1
                raise StoreError("before")
            signed = await genuine(change)
            if fate == 1:
                broken += 1
                raise StoreUnknownError("after")
            return signed

        monkeypatch.setattr(store, "commit", breaking)
        finals = FinalsList(store)
        for _ in range(200):
            try:
                if not await finals.poll():
                    break
            except StoreError:
                if seeded.randrange(2):
                    finals = FinalsList(store)  # another process takes over
        assert broken > 3
    await verify_list(tmp_path)
    assert len(await table(tmp_path, _LISTED)) == 40


@pytest.mark.usefixtures("either_store")
async def test_the_list_waits_where_a_statement_is_missing(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        await store.commit(opened(session(1)))
        await final(store, 1, 1)
        await final(store, 1, 2)
        reads = store.statements_to_list

        async def with_a_gap(*arguments: Any) -> Any:
            return [row for row in await reads(*arguments) if row.statement_no != 3]

        store.statements_to_list = with_a_gap
        with pytest.raises(StoreError, match="is missing"):
            await FinalsList(store).poll()
        store.statements_to_list = reads
        assert await FinalsList(store).poll() == 2
    await verify_list(tmp_path)


@pytest.mark.usefixtures("postgres_store")
async def test_more_instances_than_one_commit_looks_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of those that wait bounds what the others may list: no session is turned round."""
    monkeypatch.setattr(module, "INSTANCES_MAX", 2)
    monkeypatch.setattr(module, "BATCH", 4)
    async with nodes(tmp_path, 5) as stores:
        await stores[0].commit(opened(session(1)))
        for round_no in range(15):
            await final(stores[round_no % 5], 1, round_no)
        finals = FinalsList(stores[0])
        while await finals.poll():
            pass
    await verify_list(tmp_path)
    numbers = await table(tmp_path, "SELECT final_no FROM finals")
    assert len(numbers) == 15
