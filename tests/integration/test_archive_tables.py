"""`rgs archive` of seats at tables: they go with their sessions, one after the other, and what they share goes with the
last. All that is said of them stays the same to the byte, over both stores.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from certification import dispute, replay
from rgs.cli import archive
from rgs.cli.archive import ArchiveRefusedError
from rgs.cli.dispute import command as dispute_export
from rgs.cli.receipt import command as receipt
from rgs.core.statements import parse_line
from rgs.node.config import load_config
from rgs.node.stores import reading
from rgs.store.address import PostgresAddress
from rgs.store.archive import (
    INDEX_FILE,
    OF_ALL_SEATS,
    STATEMENTS_FILE,
    UNDELETED,
    ArchiveDamagedError,
    Part,
    part_names,
)
from rgs.store.changes import StoreRefusedError
from rgs.store.rows import ERASE_SQL
from rgs.store.sqlite.store import connect
from tests.integration.test_archive_faults import CHILD, ROOT
from tests.support.service.harness import OPERATOR, ROOT_KEY
from tests.support.service.table_archive import LATER_MS, Night, a_night, everything, exported, served
from tests.support.service.table_records import OTHER, STRANGER, kind_and_body
from tests.verifier import independent_verifier

VERIFIERS = (replay.main, independent_verifier.main)
SEATS = ("seat_opening", "seat_final")


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Night:
    return asyncio.run(a_night(tmp_path_factory.mktemp("ended") / "home"))


@pytest.fixture
def night(ended: Night, tmp_path: Path) -> Night:
    """A copy of a night whose store is a file."""
    home = shutil.copytree(ended.config.home, tmp_path / "home")
    return replace(ended, config=load_config(home))


def archive_of(night: Night) -> Path:
    assert night.config.archive is not None
    return night.config.archive


def verified(night: Night, part: str, capsys: pytest.CaptureFixture[str]) -> str:
    """The last line of both verifiers, which must be the same, on a part."""
    path = archive_of(night) / part / STATEMENTS_FILE
    arguments = [str(path), "--keys", str(night.config.bundle), "--root", ROOT_KEY.keyid]
    capsys.readouterr()
    said = [(main(arguments), capsys.readouterr().out.splitlines()[-1]) for main in VERIFIERS]
    assert said[0] == said[1]
    assert said[0][0] == 0
    return said[0][1]


def shared_in(part: Path) -> int:
    """How many statements that seats share have left the store for a part."""
    with closing(Part(part)) as opened:
        return len(opened.places("WHERE link_no = 0"))


async def in_store(night: Night) -> tuple[dict[str, int], set[str]]:
    """What of rounds is left in the store: statements by kind, and the rounds of tables."""
    kinds = Counter[str]()
    rounds = set()
    async with reading(night.config.store) as reads:
        async for row in reads.statements_in_order():
            if row.kind.startswith(("round_", "seat_", "table_")):
                kinds[row.kind] += 1
        for round_id in night.rounds:
            if await reads.table_round(round_id) is not None:
                rounds.add(round_id)
    return dict(kinds), rounds


async def test_seats_go_one_after_the_other_and_what_they_share_goes_with_the_last(
    tmp_path: Path, either_database: PostgresAddress | None, capsys: pytest.CaptureFixture[str]
) -> None:
    night = await a_night(tmp_path / "home", either_database)
    before = await everything(night)
    whole = await exported(night, tmp_path / "out.jsonl")
    cuts = [await exported(night, tmp_path / "out.jsonl", session) for session in night.sessions]
    seats, rounds = 4 + 3 + 2 + 1, set(night.rounds)
    for gone in (1, 2, 3, 4):
        moved = await night.move(gone)
        # The n-th who goes home has played n rounds. All four rounds have a seat of the last of them.
        assert (moved.sessions, moved.rounds) == ((2, 2) if gone == 1 else (1, gone))
        assert await everything(night) == before
        assert await exported(night, tmp_path / "out.jsonl") == whole
        for session, cut in zip(night.sessions, cuts, strict=True):
            assert await exported(night, tmp_path / "out.jsonl", session) == cut
        kinds, left = await in_store(night)
        seats -= gone
        assert [kinds.get(kind, 0) for kind in SEATS] == [seats + 1] * 2
        assert left == (rounds if gone < 4 else {night.rounds[-1]}), "what a seat in the store needs is there"
        assert [kinds.get(kind, 0) for kind in OF_ALL_SEATS] == [len(left)] * 4
    names = part_names(archive_of(night))
    assert [shared_in(archive_of(night) / name) for name in names] == [0, 0, 0, 0, 4 * 4], (
        "once, in the last one's part"
    )
    assert [await asyncio.to_thread(verified, night, name, capsys) for name in names] == [
        f"{count} rounds verified, 0 failed, ANCHORED" for count in (1, 1, 2, 3, 4)
    ]
    last = await night.move(5)
    assert (last.sessions, dict(last.stays)) == (0, {"table": 1}), "a table is continued from its newest round"


async def test_all_that_is_due_goes_at_once(
    tmp_path: Path, either_database: PostgresAddress | None, capsys: pytest.CaptureFixture[str]
) -> None:
    night = await a_night(tmp_path / "home", either_database, "uth-seven-box")
    before, whole = await everything(night), await exported(night, tmp_path / "out.jsonl")
    moved = await night.move(5)
    assert (moved.sessions, moved.rounds, dict(moved.stays)) == (5, 11, {"table": 1})
    solo, table = part_names(archive_of(night))
    assert await asyncio.to_thread(verified, night, solo, capsys) == "1 rounds verified, 0 failed, ANCHORED"
    assert await asyncio.to_thread(verified, night, table, capsys) == "4 rounds verified, 0 failed, ANCHORED"
    assert await everything(night) == before
    assert await exported(night, tmp_path / "out.jsonl") == whole


def seats_in(records: Any) -> set[str]:
    """The sessions of records of a round, as `everything` says them."""
    return set() if records == "NOT_FOUND" else {one[1][1][2] for one in records}


async def test_a_seat_is_shown_to_its_own_operator_alone(night: Night) -> None:
    await night.move(5)
    said = await everything(night)
    for round_ in night.rounds:
        played = {session for session in night.sessions if said[f"seat of {session} {round_}"] is not None}
        for party in (OPERATOR.party, OTHER.party, STRANGER.party):
            own = {session for session in played if night.operators[session] == party}
            text = repr(said[f"{party} record {round_}"]) + repr(said[f"{party} statements {round_}"])
            assert {session for session in night.sessions if session in text} == own
            for session in played:
                for kind in SEATS:
                    shown = said[f"{party} {kind} of {session} in {round_}"]
                    assert (shown == "NOT_FOUND") is (session not in own)
    async with served(night) as harness:
        support = harness.services.support
        for party in ("", OPERATOR.party, OTHER.party, STRANGER.party):
            seats = await support._seats(party, night.rounds[0])
            assert {one.session_id for one in seats} == {
                one for one in night.sessions[:4] if party in ("", night.operators[one])
            }


async def test_every_read_of_a_part_rides_on_an_index(night: Night, monkeypatch: pytest.MonkeyPatch) -> None:
    await night.move(5)
    ask, plans = Part._ask, dict[str, list[str]]()

    def explained(part: Part, query: str, *values: Any) -> list[Any]:
        # Without the values: SQLite looks at them, and rides on an index that holds for these alone.
        steps = ask(part, "EXPLAIN QUERY PLAN " + query, *[None] * len(values))
        plans.setdefault(query, [step[3] for step in steps])
        return ask(part, query, *values)

    monkeypatch.setattr(Part, "_ask", explained)
    await everything(night)
    assert len(plans) >= 10
    scanned = {query: steps for query, steps in plans.items() if any(one.startswith("SCAN") for one in steps)}
    assert not scanned
    of_seat = [steps for query, steps in plans.items() if "seat_no = ?" in query]
    assert of_seat == [["SEARCH s USING INDEX lines_by_seat (round_id=? AND seat_no=?)"]], "not by all other seats"


async def test_a_part_holds_no_pseudonym_no_salt_of_a_private_block_and_no_deck(night: Night) -> None:
    secret = [f"player-{number}" for number in range(10)]
    async with reading(night.config.store) as reads:
        async for row in reads.statements_in_order():
            if row.private:
                document = json.loads(row.private)
                secret += [document["salt"], *(text for text in document["block"].values() if len(text) > 12)]
    assert len(secret) > 20
    await night.move(5)
    for name in part_names(archive_of(night)):
        lines = (archive_of(night) / name / STATEMENTS_FILE).read_bytes()
        assert all(parse_line(line).private is None for line in lines.splitlines())
        content = lines + (archive_of(night) / name / INDEX_FILE).read_bytes()
        assert not [text for text in secret if text.encode() in content]
        with closing(Part(archive_of(night) / name)) as part:
            assert all(not round_.sealed and not round_.player for _, round_ in part.rounds(""))
            assert all(not round_.sealed for round_ in part.table_rounds(""))


def handed_out(night: Night, folder: Path) -> dict[str, Any]:
    """What `rgs receipt` and `rgs dispute-export` write of each seat, but for the scopes, which have the time."""
    folder.mkdir()
    for round_id, session in itertools.product(night.rounds[:2], night.sessions[1:4]):
        for opening in (False, True):
            receipt(round_id, home=night.config.home, opening=opening, session=session, output=folder)
        dispute_export(round_id, folder / f"{round_id}-{session}.zip", home=night.config.home, session=session)
    found: dict[str, Any] = {}
    for path in sorted(folder.iterdir()):
        files = dispute.read_zip(path) if path.suffix == ".zip" else {"": path.read_bytes()}
        for name, content in files.items():
            found[f"{path.name} {name}"] = [
                line for line in content.splitlines() if b"vnd.rgs.export-scope." not in line
            ]
    return found


def test_receipts_and_disputes_are_what_they_were(night: Night, tmp_path: Path) -> None:
    before = handed_out(night, tmp_path / "before")
    asyncio.run(night.move(2))
    assert handed_out(night, tmp_path / "two_gone") == before
    asyncio.run(night.move(5))
    assert handed_out(night, tmp_path / "all_gone") == before
    assert len(before) > 80


# --- it loses nothing -------------------------------------------------------------------------------------------------

KILLED_AT = {
    "while it writes what seats share": "archive.PartWriter.held = lambda *_: kill()",
    "while it writes": "archive.PartWriter.finish = lambda *_, **__: kill()",
    "when the part has its name": "archive.sync_folder = after(2, archive.sync_folder)",
    "while it reads the part back": "archive.Part.shared_hashes = lambda *_: kill()",
    "inside a transaction of a seat": "dropping.verify_dropped = after(2, dropping.verify_dropped)",
    "between two seats": "dropping.drop = after(3, dropping.drop)",
    "between the seats and what they share": "dropping.drop = after(5, dropping.drop)",
    "inside a transaction of what they share": "dropping.verify_dropped = after(6, dropping.verify_dropped)",
    "between two rounds": "dropping.drop = after(7, dropping.drop)",
    "when all is deleted": "archive.sync_folder = after(3, archive.sync_folder)",
}
"""What a child runs before it moves one solo session, four at the table, and what the seats of four rounds share."""


KILLED_OVER_POSTGRES = (
    "between two seats",
    "between the seats and what they share",
    "inside a transaction of what they share",
)


@pytest.mark.parametrize(
    ("either_database", "moment"),
    [*(("sqlite", moment) for moment in KILLED_AT), *(("postgres", moment) for moment in KILLED_OVER_POSTGRES)],
    indirect=["either_database"],
)
async def test_a_run_that_is_killed_loses_nothing_and_is_continued(
    tmp_path: Path, either_database: PostgresAddress | None, ended: Night, moment: str
) -> None:
    if either_database is None:
        night = replace(ended, config=load_config(shutil.copytree(ended.config.home, tmp_path / "home")))
    else:
        night = await a_night(tmp_path / "home", either_database)
    before, whole = await everything(night), await exported(night, tmp_path / "out.jsonl")
    times = (str(night.closed_ms[-1] + 1), str(night.closed_ms[-1] + LATER_MS))
    code = CHILD.replace("PATCH", KILLED_AT[moment])
    if either_database is not None:
        code = code.replace("rgs.store.sqlite import dropping", "rgs.store.postgres import dropping")
    command = [sys.executable, "-c", code, str(night.config.home), *times]
    child = await asyncio.to_thread(subprocess.run, command, capture_output=True, check=False, cwd=ROOT)
    assert child.returncode == -signal.SIGKILL, child.stderr.decode()
    assert await everything(night) == before
    assert await exported(night, tmp_path / "out.jsonl") == whole

    await night.move(5)
    assert await everything(night) == before
    assert await exported(night, tmp_path / "out.jsonl") == whole
    kinds, left = await in_store(night)
    assert (kinds, left) == (dict.fromkeys((*OF_ALL_SEATS, *SEATS), 1), {night.rounds[-1]})
    names = part_names(archive_of(night))
    assert [path.name for path in sorted(archive_of(night).iterdir())] == names
    assert len(names) == 2
    assert not [name for name in names if (archive_of(night) / name / UNDELETED).exists()]


async def test_a_store_from_before_the_move_beside_the_archive_has_nothing_twice(night: Night, tmp_path: Path) -> None:
    before, whole = await everything(night), await exported(night, tmp_path / "out.jsonl")
    store = night.config.home / "store"
    shutil.copytree(store, tmp_path / "held")
    await night.move(2)
    await night.move(5)
    shutil.rmtree(store)
    shutil.copytree(tmp_path / "held", store)
    assert await everything(night) == before
    assert await exported(night, tmp_path / "out.jsonl") == whole
    assert (await night.move(5)).sessions == 5
    assert await everything(night) == before
    assert await exported(night, tmp_path / "out.jsonl") == whole


# --- what is damaged is refused ---------------------------------------------------------------------------------------


def change(part: Path, text: str) -> None:
    with closing(sqlite3.connect(part / INDEX_FILE)) as db, db:
        assert db.execute(text).rowcount > 0


def flip_shared(part: Path) -> None:
    content = bytearray((part / STATEMENTS_FILE).read_bytes())
    at = content.rindex(b'"payload":"', 0, content.rindex(b"table-final")) + 40
    content[at] = ord("A") if content[at] != ord("A") else ord("B")
    (part / STATEMENTS_FILE).write_bytes(content)


DAMAGES: dict[str, tuple[str, Callable[[Path], object]]] = {
    "the path of a seat": ("row .* has been changed", lambda part: change(part, "UPDATE rounds SET path = x'00'")),
    "whose seat it is": ("row .* has been changed", lambda part: change(part, "UPDATE rounds SET operator = 'op-3'")),
    "the row of a table's round": (
        "table round .* has been changed",
        lambda part: change(part, "UPDATE table_rounds SET hands = hands + 1"),
    ),
    "what seats share is gone from the index": (
        "not all that the seats of round",
        lambda part: change(part, "DELETE FROM lines WHERE kind = 'table_seats'"),
    ),
    "a round is gone from the index": (
        "not those that it was written with",
        lambda part: change(part, "DELETE FROM table_rounds WHERE round_id = (SELECT max(round_id) FROM table_rounds)"),
    ),
    "a seat is gone from the index": (
        "not those that it was written with",
        lambda part: change(part, "DELETE FROM rounds WHERE seat_no = 2"),
    ),
    "a statement that seats share": ("another statement|is not as it was written", flip_shared),
}


@pytest.mark.parametrize("damage", DAMAGES)
async def test_nothing_is_deleted_for_a_damaged_part(
    night: Night, tmp_path: Path, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    words, harm = DAMAGES[damage]
    whole, finish = await exported(night, tmp_path / "out.jsonl"), archive.finish_part

    async def damaged(place: Path, drop: Any) -> None:
        if place.name.endswith(".2"):
            harm(place)
        await finish(place, drop)

    monkeypatch.setattr(archive, "finish_part", damaged)
    with pytest.raises(ArchiveDamagedError, match=words):
        await night.move(5)
    shutil.rmtree(archive_of(night) / part_names(archive_of(night))[1])
    assert await exported(night, tmp_path / "out.jsonl") == whole


@pytest.mark.parametrize("damage", ["the path of a seat", "whose seat it is", "the row of a table's round"])
async def test_a_changed_row_is_served_to_nobody(night: Night, damage: str) -> None:
    await night.move(5)
    DAMAGES[damage][1](archive_of(night) / part_names(archive_of(night))[1])
    with pytest.raises(ArchiveDamagedError, match=DAMAGES[damage][0]):
        await everything(night)


async def test_a_changed_statement_that_seats_share_is_served_to_nobody(night: Night) -> None:
    await night.move(5)
    flip_shared(archive_of(night) / part_names(archive_of(night))[1])
    with pytest.raises(ArchiveDamagedError, match="has at byte"):
        await everything(night)


async def test_what_seats_share_stays_while_a_seat_is_there(night: Night, monkeypatch: pytest.MonkeyPatch) -> None:
    async def none(*_: Any) -> bool:
        return False

    monkeypatch.setattr("rgs.store.archiving.ArchivingReads.has_more_seats", none)
    with pytest.raises(StoreRefusedError, match="what the seats share of round"):
        await night.move(1)
    monkeypatch.undo()
    kinds, left = await in_store(night)
    assert left == {*night.rounds}
    assert [kinds[kind] for kind in OF_ALL_SEATS] == [5] * 4


async def test_a_round_without_what_its_seats_share_is_not_moved(night: Night) -> None:
    with closing(sqlite3.connect(Path(str(night.config.store)))) as db, db:
        db.execute("DELETE FROM statements WHERE kind = 'table_seats'")
    with pytest.raises(ArchiveRefusedError, match="has not all that the seats of round"):
        await night.move(5)
    kinds, _ = await in_store(night)
    assert [kinds[kind] for kind in SEATS] == [11] * 2


async def test_an_erased_player_of_a_table_is_nowhere(night: Night) -> None:
    await night.move(5)
    with closing(connect(Path(str(night.config.store)))) as db:
        for text in ERASE_SQL:
            db.execute(text, (OPERATOR.party, "player-1"))
    async with reading(night.config.store, night.config.archive) as reads:
        seats = await reads.seats_of_round(night.rounds[0], 0, 64)
    assert sorted(one.player for one in seats) == ["", "player-1", "player-2", "player-3"]


def test_the_statements_of_a_part_name_no_seat_that_is_not_in_it(night: Night) -> None:
    asyncio.run(night.move(1))
    _, table = part_names(archive_of(night))
    content = (archive_of(night) / table / STATEMENTS_FILE).read_bytes()
    assert [one for one in night.sessions if one.encode() in content] == []
    bodies = [kind_and_body(parse_line(line).envelope) for line in content.splitlines()]
    named = {str(body["session_id"]) for _, body in bodies if "session_id" in body}
    assert named == {night.sessions[0]}
    assert "table_seats" not in {kind for kind, _ in bodies}, "it goes with the last seat"
