"""What happens at a player's seat, read from WatchSeat in a thread, beside the keyboard.

What comes waits in a queue, and a byte in a pipe wakes whoever waits for keys. A stream that ends is opened again after
a pause; each view is whole, so nothing is lost.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, Final, Self

import grpc

from rgs.devkit.client import CallError, Client, refusal_of
from rgs.v1 import table_pb2 as pb

AGAIN_S: Final = 1.0
"""Before a stream that has ended is opened again."""
_DRAINED: Final = 4096

News = pb.WatchSeatResponse | CallError
"""What the server sent, or why the stream has ended; it is opened again."""


class SeatWatch:
    """Watches one session's seat and its table while the context is open."""

    def __init__(self, client: Client, session_id: str) -> None:
        self._client = client
        self._request = pb.WatchSeatRequest(session_id=session_id)
        self._news: SimpleQueue[News] = SimpleQueue()
        self._ended = threading.Event()
        self._call: Any = None
        self.wake, self._bell = os.pipe()
        """The file to wait at: there is something to read when there is news."""
        os.set_blocking(self.wake, False)
        os.set_blocking(self._bell, False)
        self._thread = threading.Thread(target=self._read, name="seat", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._call is not None:
            self._call.cancel()
        self._thread.join(AGAIN_S * 2)
        os.close(self.wake)
        os.close(self._bell)

    def news(self, timeout_s: float = 0.0) -> list[News]:
        """All that has come since the last call; waits for it up to the timeout."""
        found: list[News] = []
        with suppress(Empty):
            if timeout_s:
                found.append(self._news.get(timeout=timeout_s))
            while True:
                found.append(self._news.get_nowait())
        with suppress(BlockingIOError):
            os.read(self.wake, _DRAINED)
        return found

    def _read(self) -> None:
        while not self._ended.is_set():
            try:
                self._call = self._client.tables.WatchSeat(self._request)
                for response in self._call:
                    self._put(response)
            except grpc.RpcError as error:
                if not self._ended.is_set():
                    self._put(refusal_of(error))
            self._ended.wait(AGAIN_S)

    def _put(self, news: News) -> None:
        self._news.put(news)
        with suppress(OSError):  # full: it is awake already; closed: nobody waits any more
            os.write(self._bell, b"!")
