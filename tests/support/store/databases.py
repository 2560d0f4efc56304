"""One PostgreSQL server for a whole test run, shared by its workers, and for each test that asks a new database with an
empty store.

The server is of the wheel, or the one that RGS_TEST_POSTGRES names by the URL of a database where databases may be
made. The first who asks starts it; the last process of the run that used it stops it. A test that cannot get one
fails, saying why: the README promises that nothing has to be prepared.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import shutil
import signal
import time
import uuid
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import IO, Any
from unittest.mock import patch

import asyncpg
import pytest

from rgs.store.address import PostgresAddress
from rgs.store.opening import create_store
from tests.support.ports import free_ports
from tests.support.store.postgres import QUICK, NoServerError, Server, give, temporary

SETTING = "RGS_TEST_POSTGRES"
STOP_POLLS = 100
CONNECT_S = 20.0
"""So long a connection may take: the shared server never goes, but a busy machine may keep it waiting."""
EPOCH = "01M7Q5CQG00000000000000000"
_AT_END: list[Callable[[], None]] = []


def leave() -> None:
    """This process of the run is at its end (`tests.conftest`)."""
    while _AT_END:
        _AT_END.pop()()


def _alone(work: Coroutine[Any, Any, Any]) -> Any:
    """In a loop of its own, also where one runs."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def _named(url: str, database: str) -> str:
    head, _, query = url.partition("?")
    return f"{head.rpartition('/')[0]}/{database}{'?' if query else ''}{query}"


async def _execute(url: str, *statements: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()


def _run_folder() -> Path:
    """The same for all workers of a run."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    folder = temporary() / f"rgs-run-{run[:12]}"
    folder.mkdir(exist_ok=True)
    return folder


@cache
def _server() -> tuple[str, str]:
    """(URL, name of the template database), or a failure."""
    if SETTING in os.environ:
        return os.environ[SETTING], _template(os.environ[SETTING])
    folder = _run_folder()
    with (folder / "lock").open("w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        state = folder / "server.json"
        if not state.exists():
            try:
                state.write_text(json.dumps(_start(folder)), encoding="ascii")
            except NoServerError as error:
                state.write_text(json.dumps({"missing": str(error)}), encoding="ascii")
        found = json.loads(state.read_text("ascii"))
        held = (folder / "users").open("a", encoding="ascii")
        fcntl.flock(held, fcntl.LOCK_SH)
        _AT_END.append(partial(_stop_last, folder, held))
    if "missing" in found:
        pytest.fail(f"no PostgreSQL here: {found['missing']}")
    return found["url"], found["template"]


def _start(folder: Path) -> dict[str, Any]:
    home = folder / "server"
    home.mkdir()
    give(home)
    folder.chmod(0o755)
    server = Server(home, QUICK)
    server.make()
    (server.port,) = free_ports(1)  # now: in the seconds until here another worker may have taken the one it had
    server.start()
    return {"url": server.url(), "template": _template(server.url()), "pid": server.leave()}


def _template(url: str) -> str:
    name = f"rgs_{uuid.uuid4().hex[:12]}"
    _alone(_execute(url, f"CREATE DATABASE {name}"))
    _alone(create_store(PostgresAddress(_named(url, name)), EPOCH))
    if SETTING in os.environ:
        _AT_END.append(lambda: _alone(_execute(url, f"DROP DATABASE {name}")))
    return name


def _stop_last(folder: Path, held: IO[str]) -> None:
    with held, suppress(BlockingIOError):
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)  # refused while another worker holds it
        pid = json.loads((folder / "server.json").read_text("ascii")).get("pid")
        if pid is not None:
            _stop(pid)
        shutil.rmtree(folder, ignore_errors=True)


def _stop(pid: int) -> None:
    """As whoever did not start it: ask, and look until it has gone."""
    with suppress(ProcessLookupError, ChildProcessError):
        os.kill(pid, signal.SIGINT)
        for _ in range(STOP_POLLS):
            time.sleep(0.05)
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
            os.kill(pid, 0)


@contextmanager
def fresh_database() -> Iterator[PostgresAddress]:
    """An empty store in a database of its own."""
    url, template = _server()
    name = f"rgs_{uuid.uuid4().hex[:12]}"
    _alone(_execute(url, f"CREATE DATABASE {name} TEMPLATE {template}"))
    try:
        with patch("rgs.store.postgres.link.CONNECT_S", CONNECT_S):
            yield PostgresAddress(_named(url, name))
    finally:
        if SETTING in os.environ:  # our own server goes with all that is in it, which is quicker
            _alone(_execute(url, f"DROP DATABASE {name} WITH (FORCE)"))


def copy_database(source: PostgresAddress, target: PostgresAddress) -> None:
    """`target` is what `source` is now, whatever it was: a backup, or one that is restored. Nobody may be connected."""
    url, _ = _server()
    old, new = (address.url.partition("?")[0].rpartition("/")[2] for address in (source, target))
    _alone(_execute(url, f"DROP DATABASE IF EXISTS {new} WITH (FORCE)", f"CREATE DATABASE {new} TEMPLATE {old}"))
