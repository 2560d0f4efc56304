"""`rgs archive`: whatever kills it, nothing is lost; what is damaged is refused, and no row is deleted for it."""

from __future__ import annotations

import asyncio
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from rgs.cli import archive
from rgs.cli.archive import DAY_MS, ArchiveRefusedError, Counted, move
from rgs.core.errors import InvalidFieldError, UnavailableError
from rgs.core.times import format_date
from rgs.node.clock import now_ms
from rgs.node.config import Config, load_config
from rgs.node.files import alone_in
from rgs.node.stores import reading
from rgs.store import rows
from rgs.store.archive import INDEX_FILE, STATEMENTS_FILE, UNDELETED, ArchiveDamagedError, part_names
from rgs.store.changes import StoreRefusedError
from rgs.store.opening import Drop
from rgs.store.rows import ERASE_SQL
from rgs.store.sqlite.store import connect
from rgs.store.tables import listed
from tests.support.api.archived import ROUNDS, counted, exported, play_and_close, replayed, until_read
from tests.support.api.client import ApiClient
from tests.support.api.harness import serving
from tests.support.process.commands import Cli

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def evening(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home that nobody serves, with three closed sessions in its store and log. Copies of it are worked with."""
    folder = tmp_path_factory.mktemp("evening")

    async def play() -> list[str]:
        async with serving(folder) as harness:
            rounds = [await play_and_close(ApiClient(harness.channel(), f"player-{number}")) for number in range(3)]
            await until_read(harness.config)
        return [one for session in rounds for one in session]

    (folder / "home" / "rounds.txt").write_text(" ".join(asyncio.run(play())), encoding="ascii")
    with (folder / "home" / "rgs.toml").open("a", encoding="utf-8") as file:
        file.write('\narchive = "archive"\n')
    return folder / "home"


@pytest.fixture
def config(evening: Path, tmp_path: Path) -> Config:
    shutil.copytree(evening, tmp_path / "home")
    return load_config(tmp_path / "home")


def moved(config: Config) -> Counted:
    return asyncio.run(move(config, now_ms() + 1000, now_ms()))


def archive_of(config: Config) -> Path:
    assert config.archive is not None
    return config.archive


def rounds_in(config: Config, where: str = "both") -> list[str]:
    """The rounds that are found by their ids: in the store, or there and in the archive."""

    async def read() -> list[str]:
        archive = config.archive if where == "both" and archive_of(config).is_dir() else None
        async with reading(config.store, archive) as reads:
            found = [await reads.round(one) for one in known_rounds(config)]
            return sorted(one.round_id for one in found if one is not None)

    return asyncio.run(read())


def known_rounds(config: Config) -> list[str]:
    return sorted((config.home / "rounds.txt").read_text("ascii").split())


KILLED_AT: dict[str, str] = {
    "while it writes": "archive.PartWriter.finish = lambda *_: kill()",
    "before the part has its name": "archive.sync_tree = lambda *_: kill()",
    "when the part has its name": "archive.sync_folder = lambda *_: kill()",
    "while it reads the part back": "archive.Part.verify = lambda *_: kill()",
    "inside the first transaction": "dropping.verify_dropped = lambda *_: kill()",
    "between two transactions": "dropping.drop = after(1, dropping.drop)",
    "when all is deleted": "archive.sync_folder = after(1, archive.sync_folder)",
}
"""What a child runs before it moves: it is killed where the name says."""
CHILD = """
import asyncio, os, signal, sys
from pathlib import Path
from rgs.cli import archive
from rgs.node.config import load_config
from rgs.store.sqlite import dropping

def kill():
    os.kill(os.getpid(), signal.SIGKILL)

def after(count, call):
    left = [count]
    def counted(*given):
        if not left[0]:
            kill()
        left[0] -= 1
        return call(*given)
    return counted

archive.DROPPED_AT_ONCE = 1
PATCH
asyncio.run(archive.move(load_config(Path(sys.argv[1])), *map(int, sys.argv[2:])))
"""


@pytest.mark.parametrize("moment", KILLED_AT)
def test_a_run_that_is_killed_loses_nothing_and_is_continued(config: Config, tmp_path: Path, moment: str) -> None:
    whole = exported(config, tmp_path / "before.jsonl")
    code = CHILD.replace("PATCH", KILLED_AT[moment])
    command = [sys.executable, "-c", code, str(config.home), str(now_ms() + 1000), str(now_ms())]
    child = subprocess.run(command, capture_output=True, check=False, cwd=ROOT)
    assert child.returncode == -signal.SIGKILL, child.stderr.decode()
    assert rounds_in(config) == known_rounds(config)
    assert exported(config, tmp_path / "killed.jsonl").splitlines()[1:] == whole.splitlines()[1:]

    moved(config)
    assert rounds_in(config, "store") == []
    assert rounds_in(config) == known_rounds(config)
    assert exported(config, tmp_path / "after.jsonl").splitlines()[1:] == whole.splitlines()[1:]
    assert [path.name for path in archive_of(config).iterdir()] == part_names(archive_of(config))
    (name,) = part_names(archive_of(config))
    assert not (archive_of(config) / name / UNDELETED).exists()
    assert replayed(config, archive_of(config) / name / STATEMENTS_FILE) == 0
    assert not [path for path in (archive_of(config), *archive_of(config).rglob("*")) if path.stat().st_mode & 0o077]


def flip_final(part: Path) -> None:
    flip(part, b"round-final")


def flip_close(part: Path) -> None:
    flip(part, b"session-close")


def flip(part: Path, kind: bytes) -> None:
    content = bytearray((part / STATEMENTS_FILE).read_bytes())
    at = content.rindex(b'"payload":"', 0, content.rindex(kind)) + 40
    content[at] = ord("A") if content[at] != ord("A") else ord("B")
    (part / STATEMENTS_FILE).write_bytes(content)


def cut(part: Path) -> None:
    content = (part / STATEMENTS_FILE).read_bytes()
    (part / STATEMENTS_FILE).write_bytes(content[: len(content) // 2])


def lower_stake(part: Path) -> None:
    with closing(sqlite3.connect(part / INDEX_FILE)) as db, db:
        db.execute("UPDATE rounds SET staked_minor = staked_minor - 1")


def drop_line(part: Path) -> None:
    with closing(sqlite3.connect(part / INDEX_FILE)) as db, db:
        db.execute("DELETE FROM lines WHERE id = (SELECT max(id) FROM lines)")


DAMAGES: dict[str, tuple[str, Callable[[Path], object]]] = {
    "a statement was changed": ("is not as it was written", flip_final),
    "a link that stays in the store was changed": ("is not as it was written", flip_close),
    "the statements were cut": ("is not as it was written", cut),
    "the statements are gone": ("No such file", lambda part: (part / STATEMENTS_FILE).unlink()),
    "the row of a round was changed": ("has been changed", lower_stake),
    "a line is gone from the index": ("not those that it was written with", drop_line),
    "the index is gone": ("is not an index", lambda part: (part / INDEX_FILE).unlink()),
    "the index is no database": ("is not an index", lambda part: (part / INDEX_FILE).write_text("x" * 5000)),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_part_is_refused_and_no_row_is_deleted_for_it(
    config: Config, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    words, plant = DAMAGES[damage]
    finish = archive.finish_part

    async def damaged(place: Path, drop: Drop) -> None:
        plant(place)
        await finish(place, drop)

    monkeypatch.setattr(archive, "finish_part", damaged)
    with pytest.raises(ArchiveDamagedError, match=words):
        moved(config)
    assert rounds_in(config, "store") == known_rounds(config)


@pytest.mark.parametrize("damage", ["a statement was changed", "the statements were cut", "the index is gone"])
def test_a_damaged_part_is_not_exported(config: Config, tmp_path: Path, damage: str) -> None:
    moved(config)
    (name,) = part_names(archive_of(config))
    DAMAGES[damage][1](archive_of(config) / name)
    with pytest.raises(ArchiveDamagedError, match=name):
        exported(config, tmp_path / "out.jsonl")
    assert not (tmp_path / "out.jsonl").exists()


def test_a_store_that_has_other_rows_than_the_part_keeps_them(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    finish = archive.finish_part

    async def fewer(place: Path, drop: Drop) -> None:
        with closing(sqlite3.connect(Path(str(config.store)))) as db, db:
            db.execute("DELETE FROM rounds WHERE id = (SELECT min(id) FROM rounds)")
        await finish(place, drop)

    monkeypatch.setattr(archive, "finish_part", fewer)
    with pytest.raises(StoreRefusedError, match="nothing was deleted"):
        moved(config)
    assert len(rounds_in(config, "store")) == len(known_rounds(config)) - 1


def test_what_the_log_has_not_published_stays(config: Config) -> None:
    shutil.rmtree(config.translog)
    with pytest.raises(ArchiveRefusedError, match="has not published statement"):
        moved(config)
    assert rounds_in(config, "store") == known_rounds(config)
    assert part_names(archive_of(config)) == []


def test_two_runs_at_once_are_refused(config: Config) -> None:
    archive_of(config).mkdir()
    with alone_in(archive_of(config), "rgs archive"), pytest.raises(UnavailableError, match="rgs archive"):
        moved(config)


def test_the_command_counts_and_refuses(config: Config, capsys: pytest.CaptureFixture[str]) -> None:
    cli = Cli(config.home, capsys)
    home = ("--home", str(config.home))
    files = {path: path.read_bytes() for path in config.home.rglob("*") if path.is_file()}
    tomorrow = format_date(now_ms() + DAY_MS)
    near = cli.refused("archive", "--before", tomorrow, *home)
    assert "archive_days" in near
    assert format_date(now_ms() - 90 * DAY_MS) in near
    assert "is not a date" in cli.refused("archive", "--before", "yesterday", *home)
    assert cli("archive", "--before", "2020-01-01", "--dry-run", *home) == "would move\t0 sessions\t0 rounds\n"
    found = asyncio.run(counted(config))
    assert (found.sessions, found.rounds) == (3, 3 * ROUNDS)
    changed = {path for path, content in files.items() if path.read_bytes() != content}
    assert not {path for path in changed if path.suffix not in {".db-shm", ".db-wal"}}
    assert not archive_of(config).exists()

    (config.home / "rgs.toml").write_text("")
    with pytest.raises(InvalidFieldError, match="archive is not set"):
        moved(load_config(config.home))
    assert "archive is not set" in cli.refused("archive", "--before", "2020-01-01", "--dry-run", *home)


def test_many_parts_are_read_as_one(config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = exported(config, tmp_path / "before.jsonl")
    monkeypatch.setattr(archive, "PART_ROUNDS", 1)
    monkeypatch.setattr("rgs.store.archive.OPEN_MAX", 1)
    monkeypatch.setattr("rgs.store.archive.PAGE", 2)
    assert moved(config).sessions == 3
    names = part_names(archive_of(config))
    assert [name.partition(".")[2] for name in names] == ["1", "2", "3"]
    assert rounds_in(config) == known_rounds(config)
    assert exported(config, tmp_path / "after.jsonl").splitlines()[1:] == whole.splitlines()[1:]
    parts = [archive_of(config) / name / STATEMENTS_FILE for name in names]
    assert [replayed(config, part) for part in parts] == [0, 0, 0]


INDEX_BEFORE_TABLES = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    """
    CREATE TABLE lines (
      id INTEGER PRIMARY KEY, kind TEXT NOT NULL, instance TEXT NOT NULL, statement_no INTEGER NOT NULL,
      session_id TEXT NOT NULL, link_no INTEGER NOT NULL, round_id TEXT NOT NULL, seat_no INTEGER NOT NULL,
      hash BLOB NOT NULL, at INTEGER NOT NULL, bytes INTEGER NOT NULL
    )
    """,
    "CREATE UNIQUE INDEX lines_by_number ON lines (instance, statement_no)",
    "CREATE UNIQUE INDEX lines_by_link ON lines (session_id, link_no)",
    "CREATE INDEX lines_by_round ON lines (round_id, id)",
    "CREATE INDEX lines_by_hash ON lines (hash)",
    f"""
    CREATE TABLE rounds (id INTEGER PRIMARY KEY, digest BLOB NOT NULL, {listed(rows.ROUNDS.columns)},
    UNIQUE (round_id), UNIQUE (session_id, round_no))
    """,
    "INSERT INTO lines SELECT * FROM now.lines",
    "INSERT INTO rounds SELECT * FROM now.rounds",
    "INSERT INTO meta SELECT key, json_remove(value, '$.table_round_count') FROM now.meta WHERE key = 'bounds'",
    "INSERT INTO meta VALUES ('format', 'rgs/archive/v1')",
)
"""How parts were written before they had rounds of tables."""


def as_before_tables(part: Path) -> None:
    new = part / INDEX_FILE
    with closing(sqlite3.connect(part / "old.db", isolation_level=None)) as db:
        db.execute("ATTACH ? AS now", (str(new),))
        for text in INDEX_BEFORE_TABLES:
            db.execute(text)
    (part / "old.db").replace(new)


def test_a_part_from_before_tables_is_read_and_its_rows_are_deleted(
    config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, finish = exported(config, tmp_path / "before.jsonl"), archive.finish_part

    async def older(place: Path, drop: Drop) -> None:
        as_before_tables(place)
        await finish(place, drop)

    monkeypatch.setattr(archive, "finish_part", older)
    assert moved(config).sessions == 3
    assert rounds_in(config, "store") == []
    assert rounds_in(config) == known_rounds(config)
    assert exported(config, tmp_path / "after.jsonl").splitlines()[1:] == whole.splitlines()[1:]
    (name,) = part_names(archive_of(config))
    assert not (archive_of(config) / name / UNDELETED).exists()

    async def read() -> None:
        async with reading(config.store, config.archive) as reads:
            for round_id in known_rounds(config):
                round_ = await reads.round(round_id)
                assert round_ is not None
                assert await reads.table_round(round_id) is None
                assert await reads.seat(round_.session_id, round_id) is None
                assert await reads.seats_of_round(round_id, 0, 9) == [round_]
                assert await reads.seats_of_operator(round_id, "demo-operator", 0, 9) == []
                opening, final = await reads.round_envelopes(round_id)
                for operator, found in (("demo-operator", [opening, final]), ("op-2", [])):
                    rows = await reads.statements_of_operator(round_id, operator, 0, 9)
                    assert [row.envelope for row in rows] == found

    asyncio.run(read())


def test_a_part_of_a_later_format_is_refused(config: Config) -> None:
    moved(config)
    (name,) = part_names(archive_of(config))
    with closing(sqlite3.connect(archive_of(config) / name / INDEX_FILE)) as db, db:
        db.execute("UPDATE meta SET value = 'rgs/archive/v3' WHERE key = 'format'")
    with pytest.raises(ArchiveDamagedError, match="is not an index of rgs/archive/v2"):
        rounds_in(config)


def test_a_store_from_before_the_move_beside_the_archive_has_nothing_twice(config: Config, tmp_path: Path) -> None:
    whole = exported(config, tmp_path / "before.jsonl")
    store = Path(str(config.store))
    held = store.read_bytes()
    moved(config)
    store.write_bytes(held)
    for suffix in ("-wal", "-shm"):
        store.with_name(store.name + suffix).unlink(missing_ok=True)
    assert exported(config, tmp_path / "restored.jsonl").splitlines()[1:] == whole.splitlines()[1:]
    assert moved(config).sessions == 3
    assert len(part_names(archive_of(config))) == 2
    assert rounds_in(config) == known_rounds(config)
    assert exported(config, tmp_path / "after.jsonl").splitlines()[1:] == whole.splitlines()[1:]


def test_a_backup_of_a_store_with_an_archive_passes_the_drill(
    config: Config, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    moved(config)
    cli = Cli(config.home, capsys)
    cli("backup", "make", "--home", str(config.home), "--to", str(tmp_path / "backups"))
    folders = ("--from", str(tmp_path / "backups"), "--scratch", str(tmp_path))
    said = cli("backup", "drill", "--home", str(config.home), *folders)
    assert f"{3 * ROUNDS} rounds verified, 0 failed, ANCHORED" in said


def test_an_erased_player_is_nowhere(config: Config) -> None:
    """Private blocks and the pseudonym stand in the store only: the record of the round goes on without them."""
    moved(config)
    store = Path(str(config.store))
    with closing(connect(store)) as db:
        for text in ERASE_SQL:
            db.execute(text, ("demo-operator", "player-1"))
        assert db.execute("SELECT count(*) FROM privates").fetchone()[0] > 0
        (session,) = db.execute("SELECT session_id FROM sessions WHERE player = ''").fetchone()

    async def read() -> tuple[set[str], list[bytes]]:
        async with reading(config.store, config.archive) as reads:
            rounds = await reads.rounds_of_session(session, before_no=100, limit=10)
            rows = await reads.statements_of_session(session, 0, 100)
            assert [row.link_no for row in rows] == list(range(1, len(rows) + 1))
            return {one.player for _, one in rounds}, [row.private for row in rows]

    assert asyncio.run(read()) == ({""}, [b""] * (4 + 2 * ROUNDS + 2))
