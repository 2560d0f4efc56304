"""The metrics of several workers behind one port: each answers on a socket in the home, the supervisor asks them all.

The sockets lie in the folder `metrics` of the home, which only its owner may enter. A worker that does not answer in
time counts as down in this scrape; the others are served all the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Final

from rgs.core.errors import FormatError
from rgs.node.files import FOLDER_MODE
from rgs.node.metrics.samples import (
    DOCUMENT_BYTES_MAX,
    READ_S,
    Joined,
    Scraped,
    format_document,
    joined,
    parse_document,
)

FOLDER: Final = "metrics"
PROCESS, STORE = b"process\n", b"store\n"
SCRAPE_S: Final = 8.0
"""How long a scrape takes at most: Prometheus waits for 10 s unless it is told otherwise."""
PROCESS_S: Final = 3.0
"""How long a worker may take to read what it holds in memory."""
STORE_S: Final = READ_S + 0.5
"""How long it may take to read the store, and to say so if it cannot."""

Read = Callable[[bool], Awaitable[Scraped]]
"""Reads the samples of a process; `True`: those of the store instead."""


@contextlib.asynccontextmanager
async def answering(home: Path, worker: int, read: Read) -> AsyncIterator[None]:
    """Answer the supervisor within the context."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(SCRAPE_S):
                requested = await reader.readline()
                writer.write(format_document(await read(requested == STORE)))
                await writer.drain()
        except (OSError, ValueError, TimeoutError):
            pass  # the supervisor is gone
        finally:
            writer.close()

    folder = home / FOLDER
    folder.mkdir(mode=FOLDER_MODE, exist_ok=True)
    folder.chmod(FOLDER_MODE)
    with _address(folder, worker) as address:
        (folder / _name(worker)).unlink(missing_ok=True)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listening.bind(address)
    server = await asyncio.start_unix_server(answer, sock=listening)
    try:
        yield
    finally:
        server.close()


async def scrape_workers(home: Path, workers: int) -> Joined:
    """The samples of all workers; those of the store from the first that can read them. It takes SCRAPE_S at most."""
    numbers, now_s = range(workers), asyncio.get_running_loop().time
    end_s = now_s() + SCRAPE_S
    answers = await asyncio.gather(*(_ask(home, number, PROCESS, PROCESS_S) for number in numbers))
    store: Scraped | None = None
    for number in numbers:
        left_s = min(STORE_S, end_s - now_s())
        if left_s > 0 and answers[number] is not None and (store := await _ask(home, number, STORE, left_s)):
            break
    found = [(str(number), answers[number]) for number in numbers]
    whole = joined(found)
    for name, rows in joined([("", store)] if store is not None else []).items():
        if name != "rgs_worker_up":
            whole[name] = rows
    return whole


async def _ask(home: Path, worker: int, what: bytes, limit_s: float) -> Scraped | None:
    """What a worker answers; None if it does not, or not in time."""
    try:
        async with asyncio.timeout(limit_s):
            with _address(home / FOLDER, worker) as address:
                reader, writer = await asyncio.open_unix_connection(address, limit=DOCUMENT_BYTES_MAX)
            try:
                writer.write(what)
                return parse_document(await reader.read(-1))
            finally:
                writer.close()
    except (OSError, FormatError, TimeoutError):
        return None


@contextlib.contextmanager
def _address(folder: Path, worker: int) -> Iterator[str]:
    """A path of the socket that is short whatever the home's is: the system allows 107 bytes."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{_name(worker)}"
    finally:
        os.close(descriptor)


def _name(worker: int) -> str:
    return f"worker-{worker}.sock"
