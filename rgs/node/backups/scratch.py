"""A restored store in a scratch folder: a copy of the file, or a PostgreSQL of its own that nobody else can reach.

The database listens on a socket in the scratch folder only. It archives nothing, replicates to nobody, and ends with
the block. With an archive it recovers to the newest change there.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rgs.node.backups.making import STORE, Backup, BackupError, program_of
from rgs.node.files import FOLDER_MODE, SECRET_MODE
from rgs.store.address import PostgresAddress, StoreAddress
from rgs.store.sqlite.copying import verify_file

START_S: Final = 600
"""So long the restored database may replay its WAL."""
STOP_S: Final = 30.0
_HBA: Final = "local all all trust\n"


@contextlib.contextmanager
def restored(
    backup: Backup, scratch: Path, address: StoreAddress, programs: Path | None, archive: Path | None
) -> Iterator[StoreAddress]:
    """The backup's store in the scratch folder, to be read and changed. `address` is that of the real one: user and
    database have the same names. BackupError.
    """
    if backup.kind == "sqlite":
        target = scratch / STORE / "rgs.db"
        target.parent.mkdir(mode=FOLDER_MODE)
        shutil.copyfile(backup.folder / STORE / "rgs.db", target)
        target.chmod(SECRET_MODE)
        verify_file(target)
        yield target
        return
    if not isinstance(address, PostgresAddress):
        raise BackupError("this is a backup of a PostgreSQL store, and the home has a store file", value=backup.kind)
    data = scratch / STORE
    shutil.copytree(backup.folder / STORE, data)
    data.chmod(FOLDER_MODE)
    with _serving(data, scratch, programs, archive):
        user, database = _names(address)
        yield PostgresAddress(f"postgresql://{user}@/{database}?host={scratch}")


@contextlib.contextmanager
def _serving(data: Path, scratch: Path, programs: Path | None, archive: Path | None) -> Iterator[None]:
    for name in ("standby.signal", "postgresql.auto.conf"):
        (data / name).unlink(missing_ok=True)
    # Debian's own clusters (pg_createcluster) have it in /etc, so a copy has none, and PostgreSQL needs one.
    (data / "postgresql.conf").touch()
    (scratch / "hba.conf").write_text(_HBA, "ascii")
    settings = {
        "listen_addresses": "",
        "unix_socket_directories": str(scratch),
        "hba_file": str(scratch / "hba.conf"),
        "archive_mode": "off",
        "synchronous_standby_names": "",
        "ssl": "off",
        "primary_conninfo": "",
        "logging_collector": "off",
        "shared_buffers": "32MB",
        "port": "5432",
        "max_wal_senders": "0",
        "hot_standby": "off",
        "primary_slot_name": "",
    }
    if archive is not None:
        quoted = str(archive.resolve()).replace("%", "%%").replace("'", "'\\''")
        settings["restore_command"] = f"cp '{quoted}'/%f %p"
        (data / "recovery.signal").touch()
    options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    with (scratch / "postgres.log").open("wb") as log:
        process = subprocess.Popen(  # noqa: S603 - PostgreSQL's own program
            [program_of(programs, "postgres"), "-D", str(data), *options],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env={**os.environ, "LC_ALL": "C", "TZ": "UTC"},
        )
    try:
        _await(process, scratch, programs)
        yield
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _await(process: subprocess.Popen[bytes], scratch: Path, programs: Path | None) -> None:
    """Wait until the database takes connections. BackupError with the last line of its log."""
    ready = [program_of(programs, "pg_isready"), "-q", "-h", str(scratch), "-p", "5432", "-t", "1"]
    for _ in range(START_S * 5):
        if process.poll() is not None:
            break
        if subprocess.run(ready, check=False, capture_output=True).returncode == 0:  # noqa: S603
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.2)
    said = (scratch / "postgres.log").read_text("utf-8", "replace").strip().splitlines() or ["nothing"]
    raise BackupError(f"the restored database does not start: {said[-1][:300]}", value=str(scratch))


def _names(address: PostgresAddress) -> tuple[str, str]:
    """User and database of a URL, as they stand in it."""
    text = str(address).partition("://")[2].partition("?")[0]
    place, _, database = text.partition("/")
    user = place.rpartition("@")[0]
    return user or "rgs", database or user or "rgs"
