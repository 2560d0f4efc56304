"""What watches a node: the port of its metrics, the file of its traces, and the age of the newest backup; and whether
the archive of ended rounds can be read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from rgs.core.errors import RgsError
from rgs.core.times import format_time, parse_time
from rgs.node.backups.making import list_backups, read_backup
from rgs.node.disks import nearest
from rgs.node.doctor.findings import Finding, Home, fine, found
from rgs.node.metrics.endpoint import read_token, tls_of
from rgs.store.archive import ArchiveDamagedError, Part, part_names

WATCHING: Final = "watching"
BACKUP_OLD_MS: Final = 26 * 3_600_000
"""A day, and two hours for a backup that takes longer."""


def check_watching(home: Home) -> Iterator[Finding]:
    """Metrics, traces and backups."""
    yield from _check_metrics(home)
    traces = home.config.traces
    if traces is not None and not os.access(nearest(traces.parent), os.W_OK | os.X_OK):
        yield found(WATCHING, "NOT_WRITABLE", f"this user cannot write traces to {traces}", value=f"uid {os.getuid()}")
    if home.backups is not None:
        yield from _check_backups(home)
    if home.config.archive is not None:
        yield from _check_archive(home.config.archive)


def _check_metrics(home: Home) -> Iterator[Finding]:
    config = home.config
    if not config.metrics_listen:
        yield found(WATCHING, "NO_METRICS", "no metrics are served: nobody is called when a guard closes")
        return
    try:
        read_token(config)
        tls_of(config)
    except RgsError as error:
        yield found(WATCHING, "METRICS_REFUSED", error.message, value=config.metrics_listen)
    else:
        yield fine(WATCHING, f"metrics are served at {config.metrics_listen}")


def _check_archive(folder: Path) -> Iterator[Finding]:
    if not folder.is_dir():
        yield found(
            WATCHING, "ARCHIVE_UNREADABLE", f"there is no folder {folder}: no archived round is found", value=folder
        )
        return
    rounds = 0
    try:
        for name in part_names(folder):
            with closing(Part(folder / name)) as part:
                rounds += part.bounds.round_count
    except ArchiveDamagedError as error:
        yield found(WATCHING, "ARCHIVE_UNREADABLE", error.message, value=folder)
    else:
        yield fine(WATCHING, f"the archive has {rounds} rounds")


def _check_backups(home: Home) -> Iterator[Finding]:
    folder = home.backups
    assert folder is not None  # noqa: S101 - the caller has looked
    limit = f"{BACKUP_OLD_MS // 3_600_000} h"
    backups = list_backups(folder)
    if not backups:
        yield found(WATCHING, "BACKUP_OLD", f"there is no backup in {folder}", value="none", limit=limit)
        return
    try:
        time_ms = parse_time(read_backup(backups[-1]).time)
    except RgsError as error:
        yield found(WATCHING, "BACKUP_OLD", error.message, value=backups[-1], limit=limit)
        return
    age = f"{(home.now_ms - time_ms) // 3_600_000} h"
    if home.now_ms - time_ms > BACKUP_OLD_MS:
        what = f"the newest backup in {folder} is of {format_time(time_ms)}"
        yield found(WATCHING, "BACKUP_OLD", what, value=age, limit=limit)
    else:
        yield fine(WATCHING, f"the newest backup is {age} old")
