"""Makes a backup: a folder named by its time, with the store, the settings and `backup.json`.

SQLite is copied online, PostgreSQL by `pg_basebackup` with the WAL that it needs. The folder appears whole or not at
all. What opens decks or signs (keys, KEK, private keys of certificates) is never in it, nor is the transparency log:
they are kept apart (docs/backup.md).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

from rgs.core.errors import RgsError
from rgs.core.times import format_time
from rgs.node import files
from rgs.node.config import CONFIG_FILE, Config
from rgs.node.stores import reading
from rgs.store.address import PostgresAddress
from rgs.store.sqlite.copying import copy_store

FORMAT: Final = "rgs/backup/v1"
MANIFEST: Final = "backup.json"
STORE: Final = "store"
SETTINGS: Final = "settings"
NAME: Final = re.compile(r"[0-9]{8}T[0-9]{6}\.[0-9]{3}Z")
_BLOCK: Final = 1 << 20
_URL: Final = re.compile(r"[a-z]+://(?:([^:@/?#]*)(?::([^@/?#]*))?@)?")
_FROM_URL: Final = {"passfile": "PGPASSFILE", "sslkey": "PGSSLKEY"}
"""Parts of a URL that `str` of its address leaves out -> the variable of libpq."""


class BackupError(RgsError, reason="BACKUP_FAILED"):
    """A backup could not be made, read or restored."""


@dataclass(frozen=True, slots=True)
class Backup:
    """A finished backup: its folder, and what `backup.json` says."""

    folder: Path
    kind: str
    """`sqlite` or `postgres`."""
    time: str
    store_epoch: str
    schema: str
    statements: Mapping[str, int]
    """Instance -> its last statement number when the backup was begun: it has at least these."""
    sums: Mapping[str, str]
    """File -> hex SHA-256. Those of a PostgreSQL store are in its own backup_manifest."""


async def make_backup(config: Config, to: Path, programs: Path | None, now_ms: int) -> Backup:
    """Copy store and settings into a new folder in `to`. BackupError, StoreRefusedError, StoreAwayError."""
    time = format_time(now_ms)
    name = re.sub(r"[-:]", "", time)
    _clear(to)
    with files.alone_in(to, "rgs backup"):
        building = to / f".{name}.unfinished"
        files.make_folder(building)
        try:
            async with reading(config.store) as reads:
                counters = {row.instance: row.statement_no for row in await reads.instances(alive_only=False)}
                epoch, schema = await reads.meta("store_epoch"), await reads.meta("schema")
            is_database = isinstance(config.store, PostgresAddress)
            if isinstance(config.store, PostgresAddress):
                copy_database(config.store, building / STORE, programs)
            else:
                files.make_folder(building / STORE)
                copy_store(config.store, building / STORE / "rgs.db")
            _copy_settings(config, building / SETTINGS)
            sums = {
                str(path.relative_to(building)): sha256_of(path)
                for path in sorted(building.rglob("*"))
                if path.is_file() and not (is_database and path.is_relative_to(building / STORE))
            }
            document = {
                "format": FORMAT,
                "kind": "postgres" if is_database else "sqlite",
                "time": time,
                "node": config.node,
                "store_epoch": epoch,
                "schema": schema,
                "statements": counters,
                "sha256": sums,
            }
            content = json.dumps(document, indent=1, sort_keys=True).encode("ascii") + b"\n"
            files.write_new(building / MANIFEST, content, files.SECRET_MODE)
            files.sync_tree(building)
            building.rename(to / name)
        finally:
            shutil.rmtree(building, ignore_errors=True)
        files.sync_folder(to)
    return read_backup(to / name)


def _clear(to: Path) -> None:
    """Make the folder, or remove what a killed run left in it. UnavailableError if another run is at work."""
    to.mkdir(mode=files.FOLDER_MODE, parents=True, exist_ok=True)
    with files.alone_in(to, "rgs backup"):
        for left in to.glob(".*.unfinished"):
            shutil.rmtree(left)


def _copy_settings(config: Config, folder: Path) -> None:
    """What is no secret but a password in the URL: the folder is its owner's only."""
    files.make_folder(folder)
    for path in (config.home / CONFIG_FILE, config.peers, config.log_policy, config.bundle, config.ca):
        if path is not None and path.is_file():
            files.write_new(folder / path.name, path.read_bytes(), files.SECRET_MODE)


def list_backups(folder: Path) -> list[Path]:
    """The finished backups in a folder, oldest first."""
    return sorted(path for path in folder.glob("*") if NAME.fullmatch(path.name) and (path / MANIFEST).is_file())


def drop_old(folder: Path, keep: int) -> list[Path]:
    """Remove all but the newest `keep` backups; those that were removed."""
    old = list_backups(folder)[:-keep]
    for path in old:
        gone = path.with_name(f".{path.name}.unfinished")  # never half a backup under its name
        path.rename(gone)
        shutil.rmtree(gone)
    return old


def read_backup(folder: Path) -> Backup:
    """What a backup says of itself. BackupError."""
    try:
        found: dict[str, Any] = json.loads((folder / MANIFEST).read_text("ascii"))
        if found["format"] != FORMAT or found["kind"] not in {"sqlite", "postgres"}:
            raise BackupError(f"{folder / MANIFEST} is not {FORMAT}", path=folder, limit=FORMAT)
        statements = {str(name): int(number) for name, number in found["statements"].items()}
        sums = {str(name): str(value) for name, value in found["sha256"].items()}
        kind, time, epoch, schema = (str(found[name]) for name in ("kind", "time", "store_epoch", "schema"))
        return Backup(folder, kind, time, epoch, schema, statements, sums)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BackupError(f"{folder} is not a backup: {type(error).__name__}", path=folder) from None


def verify_backup(backup: Backup, programs: Path | None) -> None:
    """BackupError where a file is missing, was added or has changed."""
    there = {str(path.relative_to(backup.folder)) for path in backup.folder.rglob("*") if path.is_file()}
    if backup.kind == "postgres":
        run(programs, "pg_verifybackup", "--exit-on-error", "--quiet", str(backup.folder / STORE))
        there = {name for name in there if not name.startswith(f"{STORE}/")}
    for name in sorted(there.symmetric_difference({*backup.sums, MANIFEST})):
        raise BackupError(f"{name} of {backup.folder.name} is missing or not listed", path=backup.folder, value=name)
    for name, value in backup.sums.items():
        if sha256_of(backup.folder / name) != value:
            raise BackupError(f"{name} of {backup.folder.name} has changed", path=backup.folder, value=name)


def sha256_of(path: Path) -> str:
    """Hex SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# --- the programs of PostgreSQL ---------------------------------------------------------------------------------------


def copy_database(address: PostgresAddress, folder: Path, programs: Path | None) -> None:
    """A base backup with the WAL that it needs to start. BackupError."""
    run(
        *(programs, "pg_basebackup", "--pgdata", str(folder), "--dbname", str(address)),
        *("--wal-method", "stream", "--checkpoint", "fast", "--manifest-checksums", "SHA256"),
        secrets=secrets_of(address),
    )


def secrets_of(address: PostgresAddress) -> dict[str, str]:
    """What `str` of the address leaves out, as variables of libpq: a command line can be read by everybody."""
    found = _URL.match(address.url)
    password = unquote(found[2]) if found is not None and found[2] else ""
    query = dict(parse_qsl(address.url.partition("?")[2]))
    variables = {name: query[key] for key, name in _FROM_URL.items() if key in query}
    password = query.get("password", password)
    return {**variables, **({"PGPASSWORD": password} if password else {})}


def run(programs: Path | None, program: str, *arguments: str, secrets: Mapping[str, str] | None = None) -> None:
    """Run a program of PostgreSQL. BackupError with its last line."""
    where = program_of(programs, program)
    environment = {**os.environ, **(secrets or {}), "LC_ALL": "C"}
    done = subprocess.run([where, *arguments], env=environment, capture_output=True, check=False)  # noqa: S603
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines() or [f"status {done.returncode}"]
        raise BackupError(f"{program} failed: {said[-1][:300]}", value=program)


def program_of(programs: Path | None, program: str) -> str:
    """The path of a program of PostgreSQL. BackupError."""
    where = shutil.which(program, path=None if programs is None else str(programs))
    if where is None:
        raise BackupError(f"there is no {program}: name PostgreSQL's folder of programs with --pg-bin", value=program)
    return where
