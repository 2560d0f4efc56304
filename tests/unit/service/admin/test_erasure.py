"""Erasing a player: nobody is left in the store, everything verifies, and the law goes first."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from rgs.core.errors import NotFoundError, RetentionError
from rgs.core.replay import KeyBook, Replay, Rulebook, Summary
from rgs.core.statements import ExportLine, format_line
from rgs.core.statements.canonical import parse_canonical
from rgs.service.admin.erasure import Erased, Erasure
from rgs.service.idempotency import SLACK_MS, Answers
from rgs.store.changes import StoreError, StoreRefusedError
from rgs.store.opening import overwrite_freed
from rgs.store.sqlite import copying
from rgs.store.sqlite.store import connect
from tests.support.service.harness import ServiceHarness, key_bundle, read_statement
from tests.support.service.oracles import verify_books
from tests.support.service.player import Player

DAY_MS = 86_400_000


def erasure(harness: ServiceHarness, retention_days: int = 10) -> Erasure:
    return Erasure(
        store=harness.store, clock=harness.clock, events=harness.services.events, retention_days=retention_days
    )


async def queued(session_id: str, limit: int) -> list[str]:
    """A stage report that waits."""
    return [session_id][:limit]


async def lived(harness: ServiceHarness, name: str) -> Player:
    player = Player(harness, name=name)
    await player.sit()
    await player.play()
    await player.leave()
    await harness.settle()
    return player


async def replayed(harness: ServiceHarness) -> Summary:
    """Everything of an ended server; AssertionError if a check fails."""
    replay = Replay(KeyBook(key_bundle()), Rulebook())
    failures = []
    async for row in harness.store.statements_in_order():
        private = parse_canonical(row.private) if row.private else None
        failures += replay.feed(format_line(ExportLine(row.envelope, private)))
    assert [*failures, *replay.finish()] == []
    return replay.summary


async def test_who_is_erased_is_nowhere_and_everything_verifies(tmp_path: Path) -> None:
    harness = ServiceHarness(tmp_path)
    await harness.start()
    anna, _ = await lived(harness, "anna-7f3a"), await lived(harness, "bert")
    harness.clock.tick(10 * DAY_MS)
    assert await erasure(harness).erase("op-1", "anna-7f3a") == Erased(1, 3)
    with pytest.raises(NotFoundError):
        await erasure(harness).erase("op-1", "anna-7f3a")
    rows = [row async for row in harness.store.statements_in_order()]
    assert all(not row.private for row in rows if row.session_id == anna.session_id)
    (event,) = [body for row in rows if (body := read_statement(row.envelope)).get("code") == "PLAYER_ERASED"]
    assert (event["subject"], event["after"]) == ("op-1", "1 sessions, 3 private blocks")
    verify_books(tmp_path)
    await harness.instance.end("DRAINED")
    summary = await replayed(harness)
    assert (summary.rounds_verified, summary.private_absent, summary.private_verified) == (2, 3, 3)
    await harness.stop(ended=False)
    with closing(sqlite3.connect(tmp_path / "rgs.db")) as db:
        db.execute("DELETE FROM answers")  # they go by themselves, with the window of retries
        dump = "\n".join(db.iterdump())
    assert "anna-7f3a" not in dump
    for erased in (anna.session["regulator_session_id"], anna.session["regulator_participation_id"]):
        assert erased not in dump
    assert "bert" in dump


def kept_in(folder: Path, words: tuple[str, ...]) -> set[str]:
    """Which words stand anywhere in the bytes of the store, its write-ahead log included."""
    held = b"".join(path.read_bytes() for path in folder.glob("rgs.db*"))
    return {word for word in words if word.encode() in held}


async def test_no_free_page_of_a_store_file_remembers_who_was_erased(tmp_path: Path) -> None:
    harness = ServiceHarness(tmp_path)
    await harness.start()
    anna, _ = await lived(harness, "anna-7f3a"), await lived(harness, "bert-91c0")
    words = ("anna-7f3a", anna.session["regulator_session_id"], anna.session["regulator_participation_id"])
    answers = Answers(harness.store, harness.clock, 24, "w")
    harness.clock.tick(SLACK_MS)
    assert not await answers.poll()
    harness.clock.tick(10 * DAY_MS)
    await erasure(harness).erase("op-1", "anna-7f3a")
    assert await answers.poll()
    await harness.stop()
    with closing(
        sqlite3.connect(tmp_path / "rgs.db", isolation_level=None)
    ) as db:  # some builds of SQLite wipe, not all
        db.execute("PRAGMA secure_delete = OFF")  # some builds of SQLite wipe what is deleted, not all
        db.executemany("INSERT INTO meta (key, value) VALUES (?, '')", [(word,) for word in words])
        db.executemany("DELETE FROM meta WHERE key = ?", [(word,) for word in words])
    assert kept_in(tmp_path, words) == set(words)
    assert overwrite_freed(tmp_path / "rgs.db")
    assert kept_in(tmp_path, (*words, "bert-91c0")) == {"bert-91c0"}


@pytest.mark.slow
async def test_a_store_that_cannot_be_written_anew_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    harness = ServiceHarness(tmp_path)
    await harness.start()
    with pytest.raises(StoreRefusedError, match="in use"):
        overwrite_freed(tmp_path / "rgs.db")
    await harness.stop()
    with closing(sqlite3.connect(tmp_path / "rgs.db")) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM sessions").fetchall()
        with pytest.raises(StoreError, match="being read"):
            overwrite_freed(tmp_path / "rgs.db")
    monkeypatch.setattr(copying, "connect", lambda path: connect(path, read_only=True))
    with pytest.raises(StoreError, match="cannot be written anew"):
        overwrite_freed(tmp_path / "rgs.db")


async def test_totals_go_on_and_are_nobodys(harness: ServiceHarness, tmp_path: Path) -> None:
    for name in ("anna", "bert"):
        await lived(harness, name)
    harness.clock.tick(10 * DAY_MS)
    with closing(sqlite3.connect(tmp_path / "rgs.db")) as db:
        query = "SELECT sum(rounds), sum(staked_minor), sum(returned_minor) FROM totals"
        before = db.execute(query).fetchall()
        for name in ("anna", "bert"):
            await erasure(harness).erase("op-1", name)
        assert db.execute(query).fetchall() == before
        assert db.execute("SELECT player, rounds FROM totals").fetchall() == [("", 2)]


async def test_the_law_goes_first(harness: ServiceHarness) -> None:
    player = await lived(harness, "anna")
    harness.clock.tick(10 * DAY_MS - 1)
    with pytest.raises(RetentionError, match=r"has to be kept until .* 10 days") as caught:
        await erasure(harness).erase("op-1", "anna")
    assert caught.value.metadata["session_id"] == player.session_id
    rows = [row async for row in harness.store.statements_in_order()]
    assert sum(bool(row.private) for row in rows) == 3
    assert not any(read_statement(row.envelope).get("code") == "PLAYER_ERASED" for row in rows)
    harness.clock.tick()
    await erasure(harness).erase("op-1", "anna")


async def test_an_open_session_and_a_report_on_its_way_are_not_erased(
    harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    await lived(harness, "anna")
    harness.clock.tick(10 * DAY_MS)
    again = Player(harness, name="anna")
    await again.sit()
    with pytest.raises(RetentionError, match="is not closed"):
        await erasure(harness, 0).erase("op-1", "anna")
    await again.play()
    await again.leave()
    await harness.settle()
    with monkeypatch.context() as patched:
        patched.setattr(harness.store, "reports_of", queued)
        with pytest.raises(RetentionError, match="still on its way"):
            await erasure(harness, 0).erase("op-1", "anna")
    assert (await erasure(harness, 0).erase("op-1", "anna")).sessions == 2


@pytest.mark.parametrize(("operator", "player"), [("op-1", "nobody"), ("op-2", "anna"), ("op-1", "")])
async def test_who_is_not_there_is_not_erased(harness: ServiceHarness, operator: str, player: str) -> None:
    await lived(harness, "anna")
    with pytest.raises(NotFoundError):
        await erasure(harness, 0).erase(operator, player)
