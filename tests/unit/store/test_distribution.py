"""What one PostgreSQL can show of a store that is spread over several (docs/scaling.md, section 5): every unique index
holds the column of its table, every statement of an evening names it, or it stands in a list with the reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import asyncpg
import pytest

from rgs.core.errors import RgsError
from rgs.core.tables.machine import State
from rgs.store.address import PostgresAddress
from rgs.store.changes import Change, StoreError
from rgs.store.opening import open_parties, open_store
from rgs.store.postgres.link import connect
from rgs.store.postgres.texts import COMMIT, postgres_text
from tests.support.service.floor import Floor, opened
from tests.support.service.harness import open_harness
from tests.support.service.player import Player
from tests.support.service.seamless import FUNDINGS, Better
from tests.support.service.tables import Sitter
from tests.support.store import shelf
from tests.support.store.databases import fresh_database
from tests.support.store.distribution import (
    SPREAD,
    Lint,
    index_faults,
    key_faults,
    make_plain,
    nullable_columns,
    recorded,
    repeated,
    whole_tables,
)
from tests.support.store.shelf import open_shelf, operation, session

GUARDED: Final = {
    "rounds_by_round": "the version of the session, and at a table the seat number in the sitting",
    "rounds_by_draw": "the draw number in the instance's row, which each of its commits moves",
    "statements_by_session": "the version and the link number in the session's row",
    "statements_by_round": "the version of the session",
    "statements_in_order": "the slot in each row number; no two living instances have the same",
}
"""Unique indexes without the column, as plain ones: what keeps their rows apart then."""
NEEDED: Final = {
    "operations_pkey": "the upsert of an operation looks in it: the key would have to be (session_id, operation_id)",
    "operations_by_request": "two processes that are sent one OpenSession would begin two: it needs a table by party",
    "sessions_by_reference": "two sessions would have one reference: it needs a table by operator",
}
"""Those that nothing replaces: the schema must change before it can be distributed."""

ASKS_ALL: Final = {
    # play
    ("answer", "statements"): "the signed statement of a repeated request is of another place than its answer",
    ("round", "rounds"): "a round is found by its id; the process that dealt it has it in memory",
    ("round_envelopes", "statements"): "what is signed of a round is found by the round",
    ("operation_of_request", "operations"): "what a request has begun is found by the request",
    ("operation", "operations"): "before its next step an operation is read again by its id",
    ("opening_of_request", "operations"): "the same of OpenSession, which has no session yet",
    ("session_of_reference", "sessions"): "OpenSession looks whether the operator's reference is free",
    ("_write", "operations"): "the upsert looks in operations_pkey",
    # of tables: the dealer's steps, and what is shown of a round
    ("has_undecided", "rounds"): "the seats of a round belong to many sessions",
    ("has_unfinished", "rounds"): "the same",
    ("open_seats", "rounds"): "the same",
    ("statements_of_round", "statements"): "the same",
    ("statements_of_round", "privates"): "they lie with their statements",
    ("statement_of_hash", "statements"): "a statement is found by what another one names",
    ("statement_of_hash", "privates"): "they lie with their statements",
    # beside play
    ("_write", "stage_reports"): "reports that the regulator has are deleted by row number, with the next commit",
    ("reports", "stage_reports"): "the leader sends the oldest reports of all sessions",
    ("pending_operations", "operations"): "recovery looks for what is under way in all sessions",
    ("newest_envelope", "statements"): "once at a start: is the clock behind the newest statement?",
}
"""(function of the store, table): why it asks every place where rows of the table may lie."""


@asynccontextmanager
async def connected(address: PostgresAddress) -> AsyncIterator[asyncpg.Connection[Any]]:
    """With the settings of the store's connections."""
    link = await connect(address)
    try:
        yield link.connection
    finally:
        await link.close()


@pytest.fixture
async def database() -> AsyncIterator[asyncpg.Connection[Any]]:
    """A connection to a database that the migrations have made."""
    with fresh_database() as address:
        async with connected(address) as connection:
            yield connection


# --- the schema -------------------------------------------------------------------------------------------------------


async def test_every_table_has_a_place(database: asyncpg.Connection[Any]) -> None:
    await database.execute("SELECT make_partitions(0, 2)")
    assert set((await whole_tables(database)).values()) == set(SPREAD)


async def test_a_unique_index_holds_the_column_or_is_named(database: asyncpg.Connection[Any]) -> None:
    await database.execute("SELECT make_partitions(0, 2)")
    assert set(await index_faults(database)) == GUARDED.keys() | NEEDED.keys()
    assert await key_faults(database) == []
    assert await nullable_columns(database) == []


@pytest.mark.parametrize(
    ("planted", "index", "key", "nullable"),
    [
        ("CREATE UNIQUE INDEX planted ON totals (player, day)", {"planted"}, [], []),
        ("CREATE UNIQUE INDEX planted ON totals (player) INCLUDE (operator)", {"planted"}, [], []),
        ("CREATE UNIQUE INDEX planted ON totals (operator, player)", set(), [], []),
        ("CREATE UNIQUE INDEX planted ON answers_other (request_id)", {"planted"}, [], []),
        (
            ("ALTER TABLE rounds ADD CONSTRAINT planted FOREIGN KEY (session_id) REFERENCES sessions (session_id),"
            " ADD CONSTRAINT across FOREIGN KEY (instance) REFERENCES instances (instance)"),
            set(), ["across"], [],
        ),
        ("ALTER TABLE privates DROP CONSTRAINT privates_pkey; ALTER TABLE privates ALTER instance DROP NOT NULL", set(),
         [], ["privates"]),
    ],
)  # fmt: skip
async def test_a_planted_fault_of_the_schema_is_found(
    database: asyncpg.Connection[Any], planted: str, index: set[str], key: list[str], nullable: list[str]
) -> None:
    await database.execute(planted)
    assert set(await index_faults(database)) - GUARDED.keys() - NEEDED.keys() == index
    assert await key_faults(database) == key
    assert await nullable_columns(database) == nullable


# --- without them -----------------------------------------------------------------------------------------------------


async def test_an_evening_without_the_guarded_indexes(tmp_path: Path) -> None:
    """As plain indexes. Two processes are sent everything at once: nothing gets a second row, and all of it replays."""
    with fresh_database() as address:
        async with connected(address) as connection:
            unique = [await make_plain(connection, name) for name in GUARDED]
        async with opened(address, tmp_path, 2) as floor:
            players = [Player(harness, name=f"player-{number}") for number, harness in enumerate(floor.processes)]
            for player in players:
                await player.sit()
            for _ in range(3):
                for harness in floor.processes:
                    harness.clock.tick(1_500)
                await asyncio.gather(*(doubled(floor, player) for player in players))
            await a_table(floor, "uth-online")
            assert [player.session["next_round_no"] for player in players] == [4, 4]
            assert await floor.verified()
        async with connected(address) as connection:
            for definition in unique:
                assert await repeated(connection, definition) == [], definition


async def doubled(floor: Floor, player: Player) -> None:
    """A round. Two processes are sent every request at once, and one that competes with it."""
    await at_both(floor, player, player.starting(), player.starting())
    while player.round["status"] == "open":
        free = "check" if player.round["phase"] != "river" else "play_1x"
        await at_both(floor, player, player.decision(free), player.decision("fold" if free != "check" else "play_4x"))


async def at_both(floor: Floor, player: Player, *requests: Any) -> None:
    calls = [(request, harness.send(request)) for request in requests for harness in floor.processes]
    found = await asyncio.gather(*(call for _, call in calls), return_exceptions=True)
    for (request, _), reply in zip(calls, found, strict=True):
        if isinstance(reply, BaseException):
            assert isinstance(reply, RgsError), reply
        else:
            player.take(request, reply)
    assert not all(isinstance(reply, BaseException) for reply in found), found


@pytest.mark.usefixtures("postgres_store")
async def test_what_nothing_replaces(tmp_path: Path) -> None:
    """Without the needed indexes two sessions have one reference, and two operations are of one request."""
    where = shelf.address_of(tmp_path)
    assert isinstance(where, PostgresAddress)
    async with connected(where) as connection, open_shelf(tmp_path) as store:
        unique = [await make_plain(connection, name) for name in ("sessions_by_reference", "operations_by_request")]
        for number in (1, 2):
            begun = replace(operation(number, shelf.ulid(number)), request_id="request")
            await store.commit(Change(session=session(number, operator_reference="visit"), operation=begun))
        for definition in unique:
            assert len(await repeated(connection, definition)) == 1, definition
        await make_plain(connection, "operations_pkey")
        with pytest.raises(StoreError):
            await store.commit(Change(session=session(3), operation=operation(3, shelf.ulid(3))))


# --- the statements ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "unrouted"),
    [
        ("SELECT player FROM rounds WHERE session_id = $1", set()),
        ("SELECT player FROM rounds WHERE session_id = 'one'", set()),
        ("SELECT player FROM rounds WHERE round_id = $1", {"rounds"}),
        ("SELECT player FROM rounds WHERE session_id > $1", {"rounds"}),
        ("SELECT player FROM rounds WHERE session_id <> $1 AND round_id = $2", {"rounds"}),
        ("SELECT player FROM rounds WHERE session_id = $1 OR round_id = $2", {"rounds"}),
        ("SELECT player FROM rounds WHERE NOT (session_id = $1)", {"rounds"}),
        ("SELECT body FROM answers WHERE party = $1 AND request_id = $2", set()),
        ("SELECT body FROM answers WHERE request_id = $1", {"answers"}),
        ("DELETE FROM stage_reports WHERE session_id = ANY($1::text[])", set()),
        ("DELETE FROM stage_reports WHERE id = ANY($1::bigint[])", {"stage_reports"}),
        (("UPDATE sessions AS s SET version = n.version FROM unnest($1::text[], $2::bigint[])"
         " AS n (session_id, version) WHERE s.session_id = n.session_id"), set()),
        (("UPDATE rounds AS r SET version = n.version FROM unnest($1::text[], $2::bigint[]) AS n (round_id, version)"
         " WHERE r.round_id = n.round_id"), {"rounds"}),
        ("SELECT 1 FROM sessions s JOIN rounds r ON r.session_id = s.session_id WHERE s.session_id = $1", set()),
        ("SELECT 1 FROM sessions s JOIN rounds r ON r.session_id = s.session_id WHERE s.operator = $1",
         {"sessions", "rounds"}),
        ("SELECT 1 FROM statements s JOIN sessions o ON o.session_id = s.session_id WHERE s.instance = $1",
         {"sessions"}),
        ("SELECT 1 FROM answers a JOIN statements s ON s.instance = a.instance WHERE a.party = $1", {"statements"}),
        ("SELECT 1 FROM sittings p JOIN sessions s ON s.session_id = p.session_id WHERE p.table_id = $1", set()),
        (("SELECT (SELECT count(*) FROM rounds r WHERE r.session_id = s.session_id) FROM sessions s"
         " WHERE s.session_id = $1"), set()),
        ("SELECT 1 FROM switches WHERE scope = $1", set()),
        (("INSERT INTO totals VALUES ($1, $2, $3, $4, $5, 1, 1, 1, 1, 1)"
         " ON CONFLICT (operator, day, player, game, currency) DO NOTHING"), set()),
        ("WITH gone AS (DELETE FROM rounds WHERE round_id = $1 RETURNING 1) SELECT count(*) FROM gone", {"rounds"}),
    ],
)  # fmt: skip
async def test_the_lint_sees_what_a_statement_names(
    database: asyncpg.Connection[Any], text: str, unrouted: set[str]
) -> None:
    assert await Lint(database, await whole_tables(database)).unrouted(text) == unrouted


async def test_an_evening_asks_no_other_place_than_it_names(tmp_path: Path) -> None:
    """Two processes over one database, solo and at tables, from participations and bet by bet, with repeats."""
    with fresh_database() as address:
        with recorded() as requested:
            await bet_by_bet(address, tmp_path)
            async with opened(address, tmp_path, 2) as floor:
                await solo(floor)
                for table in ("uth-online", "uth-seven-box"):
                    await a_table(floor, table)
        texts = {(one.function, postgres_text(one.text)) for one in requested}
        assert ("_write", COMMIT) in texts
        found: dict[tuple[str, str], str] = {}
        async with connected(address) as connection:
            lint = Lint(connection, await whole_tables(connection))
            for function, text in sorted(texts):
                if text.split(maxsplit=1)[0] in {"SELECT", "INSERT", "UPDATE", "DELETE", "WITH"}:
                    found |= {(function, table): text for table in await lint.unrouted(text)}
        assert found.keys() - ASKS_ALL.keys() == set(), {key: found[key] for key in found if key not in ASKS_ALL}
        assert ASKS_ALL.keys() - found.keys() == set(), "named, but not any more in what runs"


async def bet_by_bet(address: PostgresAddress, folder: Path) -> None:
    stores: dict[str, Any] = {"store": await open_store(address), "parties": await open_parties(address)}
    async with open_harness(folder, fundings=FUNDINGS, **stores) as harness:
        better = Better(harness)
        await better.open()
        await better.play()
        await better.close()
        await harness.settle()


async def solo(floor: Floor) -> None:
    """Each call of a round at the other process, and again at both."""
    anna = Player(floor.processes[0])
    await anna.open()
    for request in (anna.sent[0][0], anna.purchase(10_000)):
        for harness in floor.processes:
            anna.take(request, await harness.send(request))
    for _ in range(2):
        await anna.start()
        anna.harness.clock.tick(1_500)
        while anna.round["status"] == "open":
            anna.harness = floor.processes[anna.harness is floor.processes[0]]
            request = anna.decision("fold" if anna.round["phase"] == "river" else "check")
            for harness in floor.processes:
                anna.take(request, await harness.send(request))
    for harness in floor.processes:
        harness.clock.tick(10_000)  # their clocks differ, and the regulator takes nothing from the future
    await anna.leave()
    for harness in floor.processes:
        await harness.settle()


async def a_table(floor: Floor, table: str) -> None:
    """A round with three seats; both processes take each step at once."""
    await floor.set_up(table)
    sitters = [Sitter(floor.at(table, number % 2), f"{table}-{number}") for number in range(3)]
    for sitter in sitters:
        await sitter.open()
        await sitter.join()
        await sitter.bet(ante=1_000)
    await floor.until(table, State.DECIDING, look=lambda: floor.everywhere(table))
    await sitters[0].decide("check")
    await sitters[1].decide("play_4x")
    await floor.until(table, State.RESULT, look=lambda: floor.everywhere(table))
    for sitter in sitters:
        await sitter.look()
        await sitter.leave()
        await sitter.end()
    for harness in floor.processes:
        await harness.settle()
