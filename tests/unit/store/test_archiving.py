"""Which sessions may leave the store, on both databases; what a deletion takes, and how it finds it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from rgs.core.rounds import RoundStatus
from rgs.store.address import PostgresAddress
from rgs.store.archive import FORMAT, INDEX_SCHEMA
from rgs.store.archiving import (
    DROP_ROUNDS,
    DROP_SHARED,
    DROP_STATEMENTS,
    DROP_TABLE_ROUND,
    DUE,
    FIRST_UNREAD,
    HAS_DECK,
    HAS_MORE_SEATS,
    HAS_TABLE_DECK,
    NEWEST,
    NO_ROUNDS,
    PLAYED_ONE_OF,
    STAYS,
    Gone,
)
from rgs.store.changes import Change, Draft, StoreRefusedError
from rgs.store.opening import dropping
from rgs.store.postgres.link import connect as connect_postgres
from rgs.store.postgres.texts import postgres_text
from rgs.store.sqlite.store import connect
from tests.support.store.shelf import address_of, change_by_hand, dealt, open_shelf, opened, session, table, ulid
from tests.support.store.table_rows import table_round, table_row

CLOSED_MS = 5_000
SESSION, ROUND = ulid(1), ulid(10_001)
CLOSE = "UPDATE sessions SET status = 'closed', close_ms = $BEFORE WHERE session_id = '$SESSION'"
READ = (
    "INSERT INTO finals_read (instance, statement_no, before_no) SELECT instance, statement_no, 0 FROM instances",
    "INSERT INTO returns_read (instance, statement_no, before_no) SELECT instance, statement_no, 0 FROM instances",
)
OPERATION = (
    "INSERT INTO operations (operation_id, session_id, kind, status, party, method, request_id, digest, amount_minor,"
    " purchase_no, created_ms, detail, progress, attempts, next_ms, reason) VALUES"
    " ('o', '$SESSION', 'KIND', 'pending', 'op-1', 'm', 'r', '', 0, 0, 1, '', 0, 0, 0, '')"
)
PLANTED = {
    "open": ("open", "UPDATE sessions SET status = 'open' WHERE session_id = '$SESSION'"),
    "a round in play": ("open", "UPDATE sessions SET open_round_id = 'r' WHERE session_id = '$SESSION'"),
    "closed on that moment": ("young", "UPDATE sessions SET close_ms = $CLOSED WHERE session_id = '$SESSION'"),
    "a pending end": ("operation", OPERATION.replace("KIND", "end")),
    "a credit that is owed": ("operation", OPERATION.replace("KIND", "credit")),
    "an operation in its row": (
        "operation",
        "UPDATE sessions SET pending_operation = 'o' WHERE session_id = '$SESSION'",
    ),
    "a held report": (
        "report",
        "INSERT INTO held_reports (kind, subject, reason, since_ms) VALUES ('stages', '$SESSION', 'r', 1)",
    ),
    "a deck that was never revealed": (
        "deck",
        "UPDATE rounds SET status = 'void', sealed = 's' WHERE round_id = '$ROUND'",
    ),
    "a round that has not ended": ("deck", "UPDATE rounds SET status = 'open' WHERE round_id = '$ROUND'"),
    "a large win": (
        "large_win",
        "INSERT INTO large_wins (round_id, session_id, won_minor, end_ms) VALUES ('$ROUND', '$SESSION', 1, 1)",
    ),
    "a final that is not listed": ("unread", "UPDATE finals_read SET statement_no = 3"),
    "no list of finals": ("unread", "DELETE FROM finals_read"),
    "a round that is not counted": ("unread", "UPDATE returns_read SET statement_no = 3"),
    "a round that was passed over": ("unread", "INSERT INTO returns_late (round_id) VALUES ('$ROUND')"),
    "the newest statement": ("newest", "UPDATE instances SET statement_no = 4"),
    "no rounds": (NO_ROUNDS, "DELETE FROM rounds WHERE round_id = '$ROUND'"),
}
"""Why the session stays, and what makes it so."""
PLANTED_AT_TABLE = {
    "its round is the newest": ("table", "UPDATE tables SET round_id = '$ROUND' WHERE table_id = 't'"),
    "its table has not ended the round": ("deck", "UPDATE table_rounds SET status = 'open' WHERE round_id = '$ROUND'"),
    "its table has not revealed the deck": ("deck", "UPDATE table_rounds SET sealed = 's' WHERE round_id = '$ROUND'"),
    "what its seats share is the newest statement": (
        "newest",
        "UPDATE statements SET session_id = '', link_no = 0, seat_no = 0, round_id = '$ROUND' WHERE statement_no = 5",
    ),
}


async def by_hand(folder: Path, text: str) -> None:
    for name, value in {"$SESSION": SESSION, "$ROUND": ROUND, "$CLOSED": CLOSED_MS, "$BEFORE": CLOSED_MS - 1}.items():
        text = text.replace(name, str(value))
    await change_by_hand(folder, text)


async def play(store: Any) -> None:
    """A session with one settled round: statements 2 to 4 of the instance; and another session behind it."""
    await store.commit(opened(session(1)))
    made = await store.session(SESSION)
    round_ = dealt(made, 1)
    at = replace(made, version=2, round_no=1, open_round_id=round_.round_id)
    opening = Draft("round_opening", {"draw_no": "1", "time": "then"}, round_id=round_.round_id, seat_no=1)
    await store.commit(Change(session=at, round=round_, drafts=(opening,), draw_no=1))
    ended = replace(round_, version=2, status=RoundStatus.SETTLED, sealed=b"", end_ms=3000)
    final = Draft("round_final", {"time": "then"}, round_id=round_.round_id, seat_no=1)
    at = replace(await store.session(SESSION), version=3, open_round_id="", rounds=1)
    await store.commit(Change(session=at, round=ended, drafts=(final,)))
    await store.commit(opened(session(2)))
    await store.commit(Change(table_round=table_round(1, "t", round_id=ROUND, status=RoundStatus.SETTLED)))
    await store.commit(Change(table=table_row(1, "t", round_id=ulid(7))))


@pytest.fixture
async def played(either_store: str, tmp_path: Path) -> Path:
    """A store at rest in which the first session may be archived."""
    async with open_shelf(tmp_path) as store:
        await play(store)
    for text in (CLOSE, *READ):
        await by_hand(tmp_path, text)
    return tmp_path


@pytest.fixture
async def seated(played: Path) -> Path:
    """The same at a table, which has played one round more."""
    await by_hand(played, "UPDATE sessions SET table_id = 't' WHERE session_id = '$SESSION'")
    await by_hand(played, "UPDATE rounds SET table_id = 't' WHERE round_id = '$ROUND'")
    return played


async def why(folder: Path) -> str:
    async with open_shelf(folder, started=False) as store:
        found = await store.sessions_to_archive(await store.archive_horizon(), "", ulid(2), CLOSED_MS, 10)
        assert [(one.session_id, one.open_ms, one.rounds, one.link_no) for one in found] == [(SESSION, 1001, 1, 3)]
        return str(found[0].why)


async def test_a_session_may_go_when_nothing_holds_it(played: Path) -> None:
    assert await why(played) == ""
    async with open_shelf(played, started=False) as store:
        horizon = await store.archive_horizon()
        for (after, before, limit), expected in {
            ("", ulid(9), 10): [SESSION, ulid(2)],
            (SESSION, ulid(2), 10): [],
            ("", ulid(9), 1): [SESSION],
        }.items():
            found = await store.sessions_to_archive(horizon, after, before, CLOSED_MS, limit)
            assert [one.session_id for one in found] == expected


@pytest.mark.parametrize("planted", PLANTED)
async def test_each_reason_keeps_a_session(played: Path, planted: str) -> None:
    reason, text = PLANTED[planted]
    await by_hand(played, text)
    assert await why(played) == reason


@pytest.mark.parametrize("planted", PLANTED_AT_TABLE)
async def test_each_reason_keeps_a_session_at_a_table(seated: Path, planted: str) -> None:
    reason, text = PLANTED_AT_TABLE[planted]
    assert await why(seated) == ""
    await by_hand(seated, text)
    assert await why(seated) == reason


def test_the_index_of_a_format_stays_as_it_is() -> None:
    """Parts are kept for years. The columns of rounds are among those of their index: a change of them needs a new
    format, and a reader that still takes this one.
    """
    known = {"rgs/archive/v2": "2f262b19bf8815a30c92dce13e1a92c1dad5257e281ea49f764c8e0ce9e3e718"}
    assert sha256("\n".join(INDEX_SCHEMA).encode("ascii")).hexdigest() == known[FORMAT]


def test_every_reason_is_planted() -> None:
    planted = {reason for reason, _ in (PLANTED | PLANTED_AT_TABLE).values()}
    assert planted == {*STAYS, NO_ROUNDS}


async def test_a_deletion_takes_what_belongs_to_rounds_and_nothing_else(played: Path) -> None:
    rest = "SELECT count(*) FROM statements WHERE kind NOT IN ('round_opening', 'round_final')"
    before = await table(played, rest)
    async with dropping(address_of(played)) as drop:
        for wrong in ((SESSION, 1, 1), (SESSION, 2, 0), (SESSION, 3, 1)):
            with pytest.raises(StoreRefusedError, match="nothing was deleted"):
                await drop([Gone(ulid(2), 0, 0), Gone(*wrong)])
        assert await table(played, "SELECT count(*) FROM rounds") == [(1,)]
        await drop([Gone(SESSION, 2, 1)])
        await drop([Gone(SESSION, 2, 1)])
    assert await table(played, "SELECT count(*) FROM rounds") == [(0,)]
    assert (
        await table(played, "SELECT kind FROM statements WHERE session_id <> '' ORDER BY id") == [("session_open",)] * 2
    )
    assert await table(played, rest) == before
    assert await why(played) == NO_ROUNDS


async def test_every_query_rides_on_an_index(played: Path) -> None:
    where = address_of(played)
    queries: dict[str, tuple[Any, ...]] = {
        DUE: (1, 1, 1, "", "", 1), FIRST_UNREAD: (), NEWEST: (), HAS_DECK: ("",), HAS_TABLE_DECK: ("",),
        PLAYED_ONE_OF: ("", "[]"), HAS_MORE_SEATS: ("", 1), DROP_STATEMENTS: ("",), DROP_ROUNDS: ("",),
        DROP_SHARED: (b"",), DROP_TABLE_ROUND: ("",),
    }  # fmt: skip
    if isinstance(where, PostgresAddress):
        link = await connect_postgres(where)
        try:
            for query, values in queries.items():
                plan = await link.connection.fetch("EXPLAIN " + postgres_text(query), *values)
                steps = [row[0] for row in plan]
                small = ("instances", "held_reports", "large_wins", "finals_read", "returns_read", "returns_late")
                assert not [one for one in steps if "Seq Scan" in one and not any(name in one for name in small)]
        finally:
            await link.close()
        return
    with closing(connect(where)) as db:
        for query, values in queries.items():
            steps = [row[3] for row in db.execute("EXPLAIN QUERY PLAN " + query, values)]
            scanned = {one.split()[1] for one in steps if one.startswith("SCAN")}
            assert scanned <= {"i", "w", "unread", "CONSTANT", "json_each"}, "instances, and tables of what waits"
