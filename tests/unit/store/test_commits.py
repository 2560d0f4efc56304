"""What one commit does, and that one bad change fails alone: the same on both databases."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from rgs.core.errors import FormatError
from rgs.core.statements import LINK_ZERO, leaf_hash, parse_envelope, verify_signature
from rgs.store.changes import (
    Change,
    Draft,
    RequestSeenError,
    SessionRaceError,
    Signed,
    StoreError,
)
from tests.support.store.shelf import (
    INSTANCE_KEY,
    NAME,
    NODE_KEY,
    answer,
    applied,
    change_by_hand,
    dealt,
    discarded,
    open_shelf,
    opened,
    operation,
    report,
    session,
    start_instance,
    started,
    stored,
    table,
    ulid,
)

pytestmark = pytest.mark.usefixtures("either_store")


async def numbers(folder: Path) -> list[int]:
    return [row.statement_no for row in await stored(folder)]


async def kinds(folder: Path) -> list[str]:
    return [row.kind for row in await stored(folder)]


# --- one change -------------------------------------------------------------------------------------------------------


async def test_an_instance_begins_with_statement_one_under_the_node_key(tmp_path: Path) -> None:
    async with open_shelf(tmp_path, started=False) as store:
        with pytest.raises(StoreError, match="before its instance"):
            await store.commit(opened(session(1)))
        signed = await start_instance(store)
        envelope = parse_envelope(signed.envelope)
        verify_signature(envelope, NODE_KEY.public_key)
        assert json.loads(envelope.payload) == {
            "instance": NAME,
            "kind": "instance_start",
            "statement_no": "1",
            "draws_in_flight_max": "8",
            "time": "then",
        }
        with pytest.raises((sqlite3.IntegrityError, StoreError)):
            await start_instance(store)
        assert await store.session(ulid(1)) is None
        (row,) = await store.instances(alive_only=True)
        assert (row.instance, row.statement_no, row.draw_no, row.alive) == (NAME, 1, 0, True)
        assert await store.previous_boot("node-1", 0) == row
        assert await store.previous_boot("node-1", 1) is None


async def test_a_change_is_numbered_linked_signed_and_stored_at_once(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        (first,) = await store.commit(opened(session(1)))
        read = await store.session(ulid(1))
        assert read is not None
        assert (read.link_no, read.link_hash) == (1, first.hash.hex())
        change = started(read, 1)
        (second,) = await store.commit(change)
        for signed, number in ((first, 2), (second, 3)):
            verify_signature(parse_envelope(signed.envelope), INSTANCE_KEY.public_key)
            assert (signed.instance, signed.statement_no) == (NAME, number)
            assert signed.hash == leaf_hash(signed.envelope)
        bodies = [json.loads(parse_envelope(signed.envelope).payload) for signed in (first, second)]
        assert [(body["link_no"], body["previous"]) for body in bodies] == [("1", LINK_ZERO), ("2", first.hash.hex())]
        assert bodies[1]["session_id"] == ulid(1)
        assert change.session is not None
        assert await store.session(ulid(1)) == replace(change.session, link_no=2, link_hash=second.hash.hex())
        assert change.round is not None
        assert await store.round(change.round.round_id) == replace(change.round, opening_hash=second.hash.hex())
        assert change.answer is not None
        stored = await store.answer("op-1", "StartRound", "request-1")
        assert stored == replace(change.answer, envelope=second.envelope)
        (row,) = await store.instances(alive_only=True)
        assert (row.statement_no, row.draw_no) == (3, 1)


async def test_an_answer_belongs_to_party_and_method(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        await store.commit(Change(answer=answer(1)))
        await store.commit(Change(answer=answer(1, party="op-2")))
        await store.commit(Change(answer=answer(1, method="StartRound")))
        assert await store.answer("op-1", "Act", "request-2") is None
        assert await store.answer("op-3", "Act", "request-1") is None
        found = await store.answer("op-2", "Act", "request-1")
        assert found is not None
        assert (found.party, found.envelope) == ("op-2", b"")


async def test_a_private_block_stands_beside_and_can_be_erased(tmp_path: Path) -> None:
    private = {"block": {"player": "anna"}, "salt": "00" * 32}
    async with open_shelf(tmp_path) as store:
        await store.commit(Change(session=session(1), drafts=(Draft("session_open", {"time": "then"}, private),)))
        (row,) = await store.statements_of_session(ulid(1), 0, 10)
        assert json.loads(row.private) == private
        assert b"anna" not in parse_envelope(row.envelope).payload
        await change_by_hand(tmp_path, "DELETE FROM privates")
        assert await store.statements_of_session(ulid(1), 0, 10) == [replace(row, private=b"")]


async def test_an_artifact_is_kept_once(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        for _ in range(2):
            draft = Draft("artifact", {"time": "then"})
            await store.commit(Change(drafts=(draft,), artifact=("ab" * 32, "rulesets/x", b"content")))
    assert await table(tmp_path, "SELECT * FROM artifacts") == [("ab" * 32, "rulesets/x", b"content")]
    assert await kinds(tmp_path) == ["instance_start", "artifact", "artifact"]


async def test_a_report_gets_the_hash_of_its_final_and_is_forgotten_when_told(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        made = session(1)
        await store.commit(opened(made))
        signed: list[Signed] = []
        for round_no in (1, 2):
            read = await store.session(ulid(1))
            assert read is not None
            final = Draft("round_final", {"time": "then"}, round_id=ulid(round_no), seat_no=1)
            change = Change(replace(read, version=read.version + 1), drafts=(final,), report=report(ulid(1), round_no))
            signed += await store.commit(change)
        queued = await store.reports(10)
        assert [reported for _, reported in queued] == [
            replace(report(ulid(1), number), final_hash=one.hash.hex()) for number, one in enumerate(signed, start=1)
        ]
        assert await store.reports(1) == queued[:1]
        assert await store.reports_of(ulid(1), 10) == queued
        assert await store.reports_of(ulid(2), 10) == []
        await store.forget_reports([queued[0][0]])
        assert await store.reports(10) == queued[1:]


async def test_an_operation_is_pending_until_it_is_done(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        pending = operation(1, ulid(1))
        await store.commit(Change(session=session(1), operation=pending))
        assert await store.pending_operation(ulid(1)) == pending
        assert await store.operation_of_request("op-1", "BuyParticipation", "request-1") == pending
        assert await store.operation_of_request("op-2", "BuyParticipation", "request-1") is None
        assert await store.pending_operations(10) == [pending]
        await store.commit(Change(session=session(1, version=2), operation=replace(pending, status="done")))
        assert await store.pending_operation(ulid(1)) is None
        assert await store.operation_of_request("op-1", "BuyParticipation", "request-1") is None
        assert await store.pending_operations(10) == []
        assert await table(tmp_path, "SELECT operation_id, status FROM operations") == [(pending.operation_id, "done")]


async def test_a_session_has_one_operation_at_a_time(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        await store.commit(Change(session=session(1), operation=operation(1, ulid(1))))
        with pytest.raises(SessionRaceError):
            await store.commit(Change(session=session(1, version=2), operation=operation(2, ulid(1))))
        with pytest.raises(SessionRaceError):  # the same request began an operation in another session
            await store.commit(
                Change(session=session(2), operation=replace(operation(3, ulid(2)), request_id="request-1"))
            )
        assert await store.pending_operations(10) == [operation(1, ulid(1))]
        assert await store.session(ulid(2)) is None


# --- races and duplicates ---------------------------------------------------------------------------------------------


async def test_a_lost_race_accounts_for_its_draw(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        await store.commit(opened(session(1)))
        read = await store.session(ulid(1))
        assert read is not None
        results = await applied(store, [started(read, 1), started(read, 2)])
        assert isinstance(results[1], SessionRaceError)
        assert isinstance(results[0], tuple)
        with pytest.raises(SessionRaceError):
            await store.commit(started(read, 3))
        (row,) = await store.instances(alive_only=True)
        assert row.draw_no == 3
        assert await store.round(dealt(read, 2).round_id) is None
        assert await store.answer("op-1", "StartRound", "request-2") is None
    assert (await kinds(tmp_path))[2:] == ["round_opening", "discarded_draw", "discarded_draw"]
    assert await numbers(tmp_path) == [1, 2, 3, 4, 5]


async def test_of_two_changes_of_one_session_in_a_group_the_first_stands(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        await store.commit(opened(session(1)))
        moved = [Change(session=session(1, version=2, player=f"player-{n}"), answer=answer(n)) for n in (1, 2)]
        results = await applied(store, moved)
        assert [type(result) for result in results] == [tuple, SessionRaceError]
        assert [await store.answer("op-1", "Act", f"request-{n}") is None for n in (1, 2)] == [False, True]


async def test_a_version_from_the_future_loses_too(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        await store.commit(opened(session(1)))
        for version in (1, 3, 9):
            error = StoreError if version == 1 else SessionRaceError  # version 1: the id is taken
            with pytest.raises(error):
                await store.commit(Change(session=session(1, version=version, operator_reference=f"other-{version}")))
        with pytest.raises(SessionRaceError):
            await store.commit(Change(session=session(2, version=2)))
    assert await table(tmp_path, "SELECT session_id, version FROM sessions") == [(ulid(1), 1)]


async def test_a_round_moves_by_one_version(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        await store.commit(opened(session(1)))
        read = await store.session(ulid(1))
        assert read is not None
        change = started(read, 1)
        await store.commit(change)
        assert change.round is not None
        for version in (3, 2):
            read = await store.session(ulid(1))
            assert read is not None
            moved = Change(replace(read, version=read.version + 1), replace(change.round, version=version))
            if version == 3:
                with pytest.raises(SessionRaceError):
                    await store.commit(moved)
            else:
                await store.commit(moved)
    assert await table(tmp_path, "SELECT version FROM rounds") == [(2,)]


async def test_a_used_request_id_fails_alone(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        await store.commit(Change(answer=answer(7, method="StartRound")))
        for number in range(1, 6):
            await store.commit(opened(session(number)))
        changes = []
        for number in range(1, 6):
            read = await store.session(ulid(number))
            assert read is not None
            changes.append(started(read, number))
        changes[2].answer = answer(7, method="StartRound")
        results = await applied(store, changes)
        assert [type(result) for result in results] == [tuple, tuple, RequestSeenError, tuple, tuple]
        assert await store.round(dealt(session(3), 3).round_id) is None
        (row,) = await store.instances(alive_only=True)
        assert (row.draw_no, row.statement_no) == (5, 11)
    assert await numbers(tmp_path) == list(range(1, 12))
    assert (await kinds(tmp_path))[6:] == [
        "round_opening",
        "round_opening",
        "discarded_draw",
        "round_opening",
        "round_opening",
    ]


BAD: dict[str, tuple[Change, type[Exception] | tuple[type[Exception], ...]]] = {
    "too long to sign": (Change(drafts=(Draft("event", {"text": "x" * 40_000}),), discard=discarded(1)), FormatError),
    "unknown kind": (Change(drafts=(Draft("gossip", {}),), discard=discarded(1)), KeyError),
    "no JSON": (Change(drafts=(Draft("event", {"text": object()}),), discard=discarded(1)), TypeError),
    "beyond 64 bits": (Change(session=session(9, last_ms=1 << 63), discard=discarded(1)), (OverflowError, StoreError)),
    "no time": (Change(session=session(9, open_ms=None), discard=discarded(1)), StoreError),
}


@pytest.mark.parametrize("name", BAD)
async def test_one_bad_change_cannot_fail_its_neighbours(tmp_path: Path, name: str) -> None:
    bad, error = BAD[name]
    async with open_shelf(tmp_path) as store:
        changes = [opened(session(1)), bad, opened(session(2))]
        results = await applied(store, changes)
        assert [isinstance(result, tuple) for result in results] == [True, False, True]
        assert isinstance(results[1], error)
        (row,) = await store.instances(alive_only=True)
        assert (row.draw_no, row.statement_no) == (1, 4)
    assert sorted((await kinds(tmp_path))[1:]) == ["discarded_draw", "session_open", "session_open"]
    assert await numbers(tmp_path) == [1, 2, 3, 4]


# --- instances that are no more ---------------------------------------------------------------------------------------


async def test_an_instance_ends_once(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        await start_instance(store, "node-1-b2-w0", boot_no=2)
        lost = Change(drafts=(Draft("instance_lost", {"time": "then"}),), ends=(NAME, 5000))
        await store.commit(lost)
        with pytest.raises(StoreError):
            await store.commit(lost)
        assert [row.instance for row in await store.instances(alive_only=True)] == ["node-1-b2-w0"]
        assert [row.instance for row in await store.instances(alive_only=False)] == [NAME, "node-1-b2-w0"]
        ended = Change(drafts=(Draft("instance_end", {"time": "then"}),), ends=("node-1-b2-w0", 6000))
        await store.commit(ended)
    assert await table(tmp_path, "SELECT instance, alive, end_ms, statement_no FROM instances ORDER BY instance") == [
        (NAME, 0, 5000, 1),
        ("node-1-b2-w0", 0, 6000, 3),
    ]


DEAD = {
    "with a statement": opened(session(2)),
    "without a statement": Change(session=session(1, version=2), answer=answer(1)),
    "with a draw": started(session(1), 1),
}


@pytest.mark.parametrize("name", DEAD)
async def test_a_dead_instance_commits_nothing(tmp_path: Path, name: str) -> None:
    async with open_shelf(tmp_path) as store:
        await store.commit(opened(session(1)))
        before = await table(tmp_path, "SELECT * FROM sessions")
        await change_by_hand(tmp_path, "UPDATE instances SET alive = 0")
        with pytest.raises(StoreError):
            await store.commit(DEAD[name])
        assert await table(tmp_path, "SELECT * FROM sessions") == before
        assert await table(tmp_path, "SELECT * FROM answers") == []
    assert await kinds(tmp_path) == ["instance_start", "session_open"]
