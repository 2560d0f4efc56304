"""`rgs backup`: a copy made under a running server is restored, brought up to the log and replayed; what is wrong with
a copy is found. The database with an archive is in `tests/e2e/test_production.py`.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from rgs.node.backups.making import BackupError, read_backup, secrets_of, sha256_of, verify_backup
from rgs.store.address import PostgresAddress
from rgs.store.opening import create_store
from tests.support.process.commands import Cli
from tests.support.process.commands import secrets_of as secrets_in
from tests.support.process.served import Served, serving
from tests.support.store.databases import EPOCH
from tests.support.store.postgres import Server, programs

CLIENT = Path(__file__).parents[2] / "examples" / "minimal_client.py"


def play(served: Served) -> None:
    subprocess.run(
        [sys.executable, str(CLIENT), served.address, *map(str, served.identity), "2"],
        check=True, capture_output=True, timeout=60, cwd=CLIENT.parents[1], env={**os.environ, "PYTHONPATH": "."},
    )  # fmt: skip


def rgs(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rgs", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@dataclass
class Evening:
    """A home whose server was copied between two sessions; nobody serves it now."""

    home: Path
    backups: Path

    @property
    def backup(self) -> Path:
        (one,) = self.backups.iterdir()
        return one

    def copy(self, folder: Path) -> Evening:
        for name in ("home", "backups"):
            shutil.copytree(getattr(self, name), folder / name)
        return Evening(folder / "home", folder / "backups")


@pytest.fixture(scope="module")
def evening(tmp_path_factory: pytest.TempPathFactory) -> Evening:
    folder = tmp_path_factory.mktemp("backup")
    with serving(folder) as served:
        play(served)
        made = rgs("backup", "make", "--home", served.home, "--to", folder / "backups")
        assert made.returncode == 0, made.stderr
        play(served)
    return Evening(folder / "home", folder / "backups")


pytestmark = pytest.mark.slow  # real servers


def test_the_drill_restores_recovers_and_replays(evening: Evening, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in evening.home.rglob("*") if path.is_file()}
    done = rgs("backup", "drill", "--home", evening.home, "--from", evening.backups, "--scratch", tmp_path)
    assert done.returncode == 0, done.stderr
    steps = dict(line.split("\t", 1) for line in done.stdout.splitlines())
    assert list(steps) == ["backup", "verified", "restored", "gap", "recovered", "replay", "drill"]
    assert "2 round_final" in steps["gap"]
    assert "2 round_opening" in steps["gap"]
    assert steps["drill"].startswith("passed in ")
    assert list(tmp_path.iterdir()) == [], "the scratch folder is removed"
    assert {path: path.read_bytes() for path in before} == before
    assert not [secret for secret in secrets_in(evening.home) if secret in done.stdout + done.stderr]


def test_a_backup_holds_no_key_and_is_its_owners_only(evening: Evening) -> None:
    files = [path for path in evening.backup.rglob("*") if path.is_file()]
    assert {path.suffix for path in files} == {".db", ".toml", ".json", ".pem"}
    assert all(path.stat().st_mode & 0o077 == 0 for path in [*files, evening.backup])
    content = b"".join(path.read_bytes() for path in files)
    assert not [secret for secret in secrets_in(evening.home) if secret.encode() in content]
    assert sum(read_backup(evening.backup).statements.values()) > 10


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def relist(one: Evening, **changes: object) -> None:
    path = one.backup / "backup.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def promise(one: Evening) -> None:
    relist(one, statements={name: number + 1000 for name, number in read_backup(one.backup).statements.items()})


def break_log(one: Evening) -> None:
    entries = [path for path in (one.home / "translog").glob("*/tile/entries/**/*") if path.is_file()]
    assert entries
    for path in entries:
        flip(path)


def no_shards(one: Evening) -> None:
    shutil.rmtree(one.home / "translog")
    (one.home / "translog").mkdir()


def other_keys(one: Evening) -> None:
    shutil.rmtree(one.home / "keys")
    done = rgs("init", "--home", one.home.with_name("other"))
    assert done.returncode == 0
    shutil.copytree(one.home.with_name("other") / "keys", one.home / "keys")


def forge(one: Evening) -> None:
    """Swap the envelopes of two finals, and list the file as it is then."""
    path = one.backup / "store" / "rgs.db"
    with closing(sqlite3.connect(path)) as db, db:
        ids = [row[0] for row in db.execute("SELECT id FROM statements WHERE kind = 'round_final' ORDER BY id LIMIT 2")]
        envelopes = [db.execute("SELECT envelope FROM statements WHERE id = ?", (one_,)).fetchone()[0] for one_ in ids]
        for id_, envelope in zip(ids, reversed(envelopes), strict=True):
            db.execute("UPDATE statements SET envelope = ? WHERE id = ?", (envelope, id_))
    relist(one, sha256={**read_backup(one.backup).sums, "store/rgs.db": sha256_of(path)})


PLANTS: dict[str, tuple[str, Callable[[Evening], object]]] = {
    "a changed store": ("has changed", lambda one: flip(one.backup / "store" / "rgs.db")),
    "a file that was added": ("missing or not listed", lambda one: (one.backup / "more").write_text("x")),
    "a file that is gone": ("missing or not listed", lambda one: (one.backup / "settings" / "rgs.toml").unlink()),
    "no list of files": ("there is no backup", lambda one: (one.backup / "backup.json").unlink()),
    "half a list": ("is not a backup", lambda one: (one.backup / "backup.json").write_text('{"format": ')),
    "a count that the store has not": ("statements of", promise),
    "another epoch": ("epoch", lambda one: relist(one, store_epoch="01M7Q5CQG00000000000000009")),
    "a log that was changed": ("", break_log),
    "no log": ("there is no folder", lambda one: shutil.rmtree(one.home / "translog")),
    "an empty folder of the log": ("there is no log in", no_shards),
    "another key bundle": ("", other_keys),
    "a store that the list approves, and replay does not": ("replay", forge),
}


@pytest.mark.parametrize("name", PLANTS)
def test_the_drill_finds(name: str, evening: Evening, tmp_path: Path) -> None:
    planted, (why, plant) = evening.copy(tmp_path / "planted"), PLANTS[name]
    plant(planted)
    (tmp_path / "scratch").mkdir()
    done = rgs("backup", "drill", "--home", planted.home, "--from", planted.backups, "--scratch", tmp_path / "scratch")
    assert done.returncode == 1, (done.stdout, done.stderr)
    assert why in done.stderr
    assert "passed" not in done.stdout
    assert "Traceback" not in done.stderr
    assert list((tmp_path / "scratch").iterdir()) == []


def test_a_killed_backup_leaves_no_backup_and_old_ones_go(
    evening: Evening, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    one, cli = evening.copy(tmp_path), Cli(evening.home, capfd)
    (one.backups / ".20261123T000000.000Z.unfinished" / "store").mkdir(parents=True)
    first = one.backups / "20200101T000000.000Z"
    shutil.copytree(evening.backup, first)
    cli("backup", "make", "--home", str(one.home), "--to", str(one.backups), "--keep", "2")
    left = sorted(path.name for path in one.backups.iterdir())
    assert len(left) == 2
    assert first.name not in left
    assert len(cli("backup", "list", "--from", str(one.backups)).splitlines()) == 2


async def test_a_database_is_copied_whole(server: Server, evening: Evening, tmp_path: Path) -> None:
    """As root only the copy: PostgreSQL does not run as root, so the drill is in `tests/e2e/test_production.py`."""
    one, address = evening.copy(tmp_path), PostgresAddress(server.url())
    await create_store(address, EPOCH)
    with (one.home / "rgs.toml").open("a") as file:
        file.write(f'store = "{address.url}"\n')
    done = rgs("backup", "make", "--home", one.home, "--to", tmp_path / "pg", "--pg-bin", programs())
    assert done.returncode == 0, done.stderr
    (folder,) = (tmp_path / "pg").iterdir()
    backup = read_backup(folder)
    assert (backup.kind, backup.store_epoch) == ("postgres", EPOCH)
    verify_backup(backup, programs())
    flip(next(path for path in (folder / "store" / "base").rglob("*") if path.is_file() and path.stat().st_size))
    with pytest.raises(BackupError, match="pg_verifybackup failed"):
        verify_backup(backup, programs())
    refused = rgs("backup", "make", "--home", one.home, "--to", tmp_path / "pg2", "--pg-bin", tmp_path)
    assert "there is no pg_basebackup" in refused.stderr
    assert list((tmp_path / "pg2").iterdir()) == []


def test_no_secret_of_the_url_is_on_a_command_line() -> None:
    address = PostgresAddress("postgresql://rgs:p%40ss@db/rgs?passfile=/p&sslkey=/k")
    assert secrets_of(address) == {"PGPASSWORD": "p@ss", "PGPASSFILE": "/p", "PGSSLKEY": "/k"}
    assert str(address) == "postgresql://rgs@db/rgs"
    assert secrets_of(PostgresAddress("postgresql://rgs@db/rgs")) == {}
