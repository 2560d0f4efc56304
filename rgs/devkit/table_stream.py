"""One Watch stream: what happens at any number of tables and seats, with play on it, as an operator's bridge uses it.

A thread reads the stream. Answers go to whoever sent the request, by their request id; views of tables, views of seats
and lines of chat go to the callbacks, in that thread. When the stream ends, each request without an answer fails with
OutcomeUnknownError, and may be sent again, with the same message, on another stream.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, Final

import grpc

from rgs.devkit.client import TIMEOUT_S, CallError, Client, error_of, made_here, refusal_of
from rgs.v1 import table_pb2 as pb

_FIELDS: Final = {
    pb.JoinRequest: "join",
    pb.LeaveRequest: "leave",
    pb.PlaceBetsRequest: "place_bets",
    pb.DecideRequest: "decide",
    pb.SayRequest: "say",
}
"""The field of the stream's messages by the type of the request; the answer has the same one."""


class TableStream:
    """A stream that is open until `close`. `ask` may be called by any thread."""

    def __init__(
        self,
        client: Client,
        *,
        table: Callable[[pb.TableView], None],
        seat: Callable[[pb.SeatView], None],
        line: Callable[[pb.ChatLine], None] = lambda _: None,
    ) -> None:
        self._table, self._seat, self._line = table, seat, line
        self._requests: SimpleQueue[pb.WatchRequest | None] = SimpleQueue()
        self._waiting: dict[str, Future[Any]] = {}
        self._lock = threading.Lock()
        self.failure: CallError | None = None
        """Why the stream has ended, or the server's last refusal to show something."""
        self._call = client.tables.Watch(iter(self._requests.get, None))
        self._reader = threading.Thread(target=self._read, args=(self._call,), name="watch", daemon=True)
        self._reader.start()

    def close(self) -> None:
        """End the stream."""
        self._requests.put(None)
        self._call.cancel()
        self._reader.join(TIMEOUT_S)

    # --- asking -------------------------------------------------------------------------------------------------------

    def watch_table(self, table: str) -> None:
        """Have the table's views and lines from now on."""
        self._requests.put(pb.WatchRequest(watch_table=pb.WatchTable(table=table)))

    def watch_session(self, session_id: str) -> None:
        """Have the views of the session's seat from now on."""
        self._requests.put(pb.WatchRequest(watch_session=pb.WatchSession(session_id=session_id)))

    def send(self, request: Any) -> Future[Any]:
        """Send a request of play; its answer, or CallError, comes in the future."""
        answer: Future[Any] = Future()
        with self._lock:
            if not self._reader.is_alive():
                answer.set_exception(self.failure or _ended())
                return answer
            self._waiting[request.request_id] = answer
        self._requests.put(pb.WatchRequest(**{_FIELDS[type(request)]: request}))
        return answer

    def ask(self, request: Any) -> Any:
        """Send a request of play and wait for its answer. CallError, OutcomeUnknownError."""
        try:
            return self.send(request).result(TIMEOUT_S)
        except TimeoutError:
            raise made_here(grpc.StatusCode.DEADLINE_EXCEEDED, "no answer on the stream") from None

    # --- reading ------------------------------------------------------------------------------------------------------

    def _read(self, responses: Iterator[pb.WatchResponse]) -> None:
        try:
            for response in responses:
                self._take(response)
        except grpc.RpcError as error:
            self.failure = refusal_of(error)
        finally:
            with self._lock:
                waiting, self._waiting = self._waiting, {}
            for answer in waiting.values():
                answer.set_exception(_ended())

    def _take(self, response: pb.WatchResponse) -> None:
        match response.WhichOneof("response"):
            case "table":
                self._table(response.table)
            case "seat":
                self._seat(response.seat)
            case "line":
                self._line(response.line)
            case str(field):
                self._answer(response, field)

    def _answer(self, response: pb.WatchResponse, field: str) -> None:
        """To whoever sent the request. An error without a request is about what is watched."""
        with self._lock:
            waiting = self._waiting.pop(response.request_id, None)
        if field != "error":
            if waiting is not None:
                waiting.set_result(getattr(response, field))
            return
        error = error_of(response.error)
        if waiting is None:
            self.failure = error
        else:
            waiting.set_exception(error)


def _ended() -> CallError:
    return made_here(grpc.StatusCode.UNAVAILABLE, "the stream has ended")
