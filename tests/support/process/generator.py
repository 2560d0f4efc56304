"""Generator processes for tests: the real one in a thread or in a process, and one that answers as a test wants."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

from rgs.node.generator.serving import GeneratorServer, listening_at
from rgs.node.generator.wire import LENGTH_BYTES, format_begun, framed, length_of

RNG_HASH = b"h" * 32
Reported = list[dict[str, Any]]


@contextlib.contextmanager
def serving_thread(path: Path, *, user: int | None = None, rng_hash: bytes = RNG_HASH) -> Iterator[Reported]:
    """The real server in a thread of this process. Yields what it reports."""
    reported: Reported = []

    def report(event: str, **facts: object) -> None:
        reported.append({"event": event, **facts})

    with listening_at(path, for_others=False) as listener:
        server = GeneratorServer(listener, os.geteuid() if user is None else user, rng_hash, report)

        def run() -> None:
            with contextlib.suppress(OSError):  # the end of the listener is how it is stopped
                server.run()

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield reported
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


Answers = Callable[[bytes, int], list[bytes] | None]
"""Makes the answers to a request and its number (HELLO is number 0) in their frames; None closes the connection."""


@contextlib.asynccontextmanager
async def lying(path: Path, answers: Answers) -> AsyncIterator[list[bytes]]:
    """A generator process that answers as a test wants. Yields the requests that have come."""
    requests: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError), contextlib.closing(writer):
            number = 0
            while True:
                request = await reader.readexactly(length_of(await reader.readexactly(LENGTH_BYTES)))
                requests.append(request)
                found = [framed(format_begun(RNG_HASH))] if number == 0 else answers(request, number)
                if found is None:
                    return
                writer.writelines(found)
                number += 1

    server = await asyncio.start_unix_server(serve, path)
    async with server:
        yield requests


def started(path: Path, *options: str, **more: Any) -> subprocess.Popen[str]:
    """`rgs generator serve` as a process of its own, when it listens. Its standard output stays to be read."""
    command = [sys.executable, "-m", "rgs", "generator", "serve", "--socket", str(path), *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
    deadline = time.monotonic() + 90
    while not answers_at(path):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return process


def answers_at(path: Path) -> bool:
    """Whether somebody accepts connections there."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True
