"""The store: reachable, of this schema, durable, not behind its log; and the clocks."""

from __future__ import annotations

import ctypes
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

from rgs.core.clock import APART_MS
from rgs.core.errors import FormatError, RgsError
from rgs.core.statements import parse_envelope, parse_statement
from rgs.core.times import format_time, parse_time
from rgs.node.clock import JUMP_MS, now_ms
from rgs.node.doctor.findings import Finding, Home, fine, found
from rgs.node.stores import reading
from rgs.store.address import PostgresAddress
from rgs.store.changes import StoreAwayError
from rgs.store.durability import Durability, read_durability
from rgs.store.interface import RECOVERING, StoreReads
from rgs.tlog.gap import verify_not_behind

STORE: Final = "store"
CLOCK: Final = "clock"
LOG: Final = "log"
CONNECTIONS_A_WORKER: Final = 7
"""docs/scaling.md, section 2."""
RESERVED_CONNECTIONS: Final = 5
"""For backups, a standby and a person."""
SAFE: Final = {
    "fsync": (("on",), "on"),
    "synchronous_commit": (("on", "remote_write", "remote_apply"), "on, remote_write or remote_apply"),
    "full_page_writes": (("on",), "on"),
    "zero_damaged_pages": (("off",), "off"),
    "ignore_checksum_failure": (("off",), "off"),
}
"""The values that a database may have, for programs and for people."""
STA_UNSYNC: Final = 0x40
"""adjtimex(2): nothing keeps the clock."""


async def check_store(home: Home) -> AsyncIterator[Finding]:
    """The store, its log and its clock."""
    where = home.config.store
    try:
        async with reading(where) as reads:
            for finding in [found_ async for found_ in _check_content(home, reads)]:
                yield finding
        if isinstance(where, PostgresAddress):
            for finding in check_durability(await read_durability(where), home.config.workers):
                yield finding
        else:
            for finding in _check_file(where):
                yield finding
    except StoreAwayError as error:
        yield found(STORE, "STORE_AWAY", error.message)
    except RgsError as error:
        yield found(STORE, "STORE_REFUSED", error.message)


async def _check_content(home: Home, reads: StoreReads) -> AsyncIterator[Finding]:
    if await reads.meta(RECOVERING):
        yield found(STORE, "STORE_RECOVERING", "a recovery of the store was begun and not finished")
    before_ms = now_ms()
    database_ms = await reads.clock_ms()
    wall_ms = now_ms()
    if database_ms is not None and not before_ms - APART_MS <= database_ms <= wall_ms + APART_MS:
        value = f"{database_ms - wall_ms} ms"
        yield found(
            CLOCK,
            "CLOCKS_DIFFER",
            "the database's clock differs from this machine's",
            value=value,
            limit=f"{APART_MS} ms",
        )
    elif database_ms is not None:
        yield fine(CLOCK, f"the database's clock agrees within {APART_MS} ms")
    newest_ms = newest_time(await reads.newest_envelope())
    if wall_ms < newest_ms - JUMP_MS:
        what = "this machine's clock is behind the newest statement of the store"
        yield found(CLOCK, "CLOCK_BEHIND_STORE", what, value=format_time(wall_ms), limit=format_time(newest_ms))
    try:
        await verify_not_behind(reads, home.config.translog)
    except (RgsError, OSError) as error:
        yield found(LOG, "LOG_REFUSED", str(error), value=home.config.translog)
    else:
        yield fine(LOG, "the store holds everything that the log has")


def newest_time(envelope: bytes) -> int:
    """The time of a statement in milliseconds; 0 for none."""
    if not envelope:
        return 0
    try:
        _, body = parse_statement(parse_envelope(envelope))
        return parse_time(body["time"])
    except (FormatError, KeyError):
        return 0


def _check_file(path: Path) -> Iterator[Finding]:
    yield found(STORE, "STORE_ON_ONE_DISK", "the store is one file on one disk", value=path)
    yield fine(STORE, f"{path.name} has this version's schema; the server commits with synchronous = FULL")


def check_durability(found_: Durability, workers: int) -> Iterator[Finding]:
    """The settings of a database server."""
    settings, problems = found_.settings, []
    for name, (values, limit) in SAFE.items():
        value = settings.get(name, "unknown")
        if value not in values:
            problems.append(found(STORE, "NOT_DURABLE", f"the database has {name} = {value}", value=value, limit=limit))
    if not settings.get("synchronous_standby_names"):
        what = "no standby has a commit before it is reported"
        problems.append(found(STORE, "NO_STANDBY", what, value="synchronous_standby_names = ''"))
    archives = settings.get("archive_command") not in {None, "", "(disabled)"} or settings.get("archive_library")
    if settings.get("archive_mode") not in {"on", "always"} or not archives:
        value = f"archive_mode = {settings.get('archive_mode')}"
        problems.append(
            found(STORE, "NOT_ARCHIVED", "the database keeps no archive of its changes", value=value, limit="on")
        )
    if settings.get("data_checksums") != "on":
        problems.append(
            found(STORE, "CHECKSUMS_OFF", "the database does not notice damaged pages", value="off", limit="on")
        )
    if not (found_.is_encrypted or found_.is_local):
        problems.append(found(STORE, "NOT_ENCRYPTED", "the connection to the database is not encrypted", limit="TLS"))
    needed = CONNECTIONS_A_WORKER * workers + found_.others + RESERVED_CONNECTIONS
    most = int(settings.get("max_connections", "0"))
    if most < needed:
        what = f"{workers} workers take {CONNECTIONS_A_WORKER} connections each"
        problems.append(found(STORE, "FEW_CONNECTIONS", what, value=most, limit=needed))
    yield from problems
    if not problems:
        yield fine(
            STORE,
            "the database is durable: fsync, synchronous_commit, full_page_writes, checksums, a standby, an archive",
        )


# --- the kernel's clock -----------------------------------------------------------------------------------------------


class _Timex(ctypes.Structure):
    """The head of `struct timex`; the rest is room."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        *((name, ctypes.c_long) for name in ("offset", "frequency", "error_most", "error_guess")),
        ("status", ctypes.c_int),
        ("rest", ctypes.c_byte * 256),
    )


def kernel_status() -> int | None:
    """The status bits of the kernel's clock (adjtimex, read only); None where the system has none."""
    read = _Timex()
    try:
        answer = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(read))
    except (OSError, AttributeError):
        return None
    return None if answer < 0 else int(read.status)


def check_clock(_home: Home) -> Iterator[Finding]:
    """Whether something keeps the machine's clock."""
    status = kernel_status()
    if status is not None and status & STA_UNSYNC:
        yield found(CLOCK, "CLOCK_NOT_KEPT", "the kernel says that its clock is not synchronised", value="STA_UNSYNC")
    elif status is not None:
        yield fine(CLOCK, "the kernel says that its clock is synchronised")
