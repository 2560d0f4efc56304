"""The streams of rgs.v1.TableService over `rgs.service.tables.feed`: `Watch` for any number of tables and seats, with
play on it, and `WatchSeat` for one seat and its table.

On `Watch` requests are answered one by one in their order, as on `Play`: the caller is admitted at every message, an
error is an answer with the request id, and the next request is read when the last answer has been written. Between
answers come views of what is watched, from the stream's mailbox. A view of a seat is read when it is written. One lock
holds from reading for the client to writing: a view never comes behind a newer one of the same table.

Whoever does not read gets fewer views, never a longer queue, and is ended after the time of `stream_stall_s`. A table
or session of another operator looks as if it did not exist.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeVar

import grpc
from google.protobuf.message import DecodeError
from google.rpc.status_pb2 import Status

from rgs.api.access import OK
from rgs.api.auth import Context, certificate_of, verify_metadata
from rgs.api.calls import CANCELLED, WAIT_S, Calls, Duplex, Methods, ServerStream, Unary, Wait, end_with, reason_of
from rgs.api.mapping import field_bytes, tag_of
from rgs.api.parsing import parse_message
from rgs.api.quotas import RETRY_MS, OpenStream
from rgs.api.table_mapping import watched_seat
from rgs.core.errors import InvalidFieldError, NotFoundError, RgsError, UnavailableError
from rgs.core.ids import check_name, check_ulid
from rgs.core.sessions import SessionStatus
from rgs.service.callers import Caller
from rgs.service.tables.feed import Feed
from rgs.service.tables.mailbox import Mailbox, SeatMark, TableLost
from rgs.v1 import table_pb2 as pb

_RESPONSE: Final = pb.WatchResponse.DESCRIPTOR
_REQUEST_ID: Final = tag_of(_RESPONSE, "request_id")
_PLAYED: Final = {"join": "Join", "leave": "Leave", "place_bets": "PlaceBets", "decide": "Decide", "say": "Say"}
"""The methods of the stream, by the field that carries them in both directions."""
_Read = TypeVar("_Read")
_WATCHED: Final = ("watch_table", "leave_table", "watch_session", "leave_session")


def watch_methods(service: str, play: Mapping[str, Unary[Any]], feed: Feed) -> Methods:
    """The two streams; `play` are the unary methods of the same service."""
    routes = {
        field: _Route(f"{service}/{method}", play[method], tag_of(_RESPONSE, field))
        for field, method in _PLAYED.items()
    }
    return {
        "Watch": Duplex(lambda calls, name: _handler(calls, name, routes, feed)),
        "WatchSeat": ServerStream(pb.WatchSeatRequest, partial(_watch_seat, feed)),
    }


@dataclass(frozen=True, slots=True)
class _Route:
    """How a request of the stream is answered, and under which tag."""

    name: str
    method: Unary[Any]
    tag: bytes


# --- one seat ---------------------------------------------------------------------------------------------------------


async def _watch_seat(feed: Feed, caller: Caller, message: pb.WatchSeatRequest) -> AsyncIterator[bytes | Wait | None]:
    """The table, the seat, and each change of both, until the session is closed."""
    session_id = check_ulid(message.session_id, "session_id")
    with feed.mailbox(caller) as mailbox:
        session, seat = await feed.watch_session(mailbox, session_id)
        view = await feed.watch_table(mailbox, seat.table_id)
        if mailbox.given(view):
            mailbox.carry(view)
            yield feed.encode(view)
        yield watched_seat(seat)
        while session.session.status is not SessionStatus.CLOSED:
            parcel = mailbox.take()
            if parcel is None:
                yield mailbox.wait
            elif isinstance(parcel, bytes):
                yield parcel
            elif isinstance(parcel, TableLost):
                raise _lost(parcel)
            else:
                try:
                    session, seat = await feed.seat(caller, session_id)
                except UnavailableError:
                    mailbox.mark(session_id)
                    yield None
                else:
                    yield watched_seat(seat)


def _lost(parcel: TableLost) -> NotFoundError:
    return NotFoundError(f"no table {parcel.table_id}", kind="table", table=parcel.table_id)


# --- any number -------------------------------------------------------------------------------------------------------


def _handler(calls: Calls, name: str, routes: Mapping[str, _Route], feed: Feed) -> grpc.RpcMethodHandler[bytes, bytes]:
    async def behave(_requests: AsyncIterator[bytes], context: Context) -> None:
        certificate = certificate_of(context)
        stream: OpenStream | None = None
        watching: _Watching | None = None
        try:
            caller = calls.admit(certificate, name, context)
            verify_metadata(context)
            stream = calls.streams.open(calls.quotas.of(caller))
            with feed.mailbox(caller) as mailbox:
                watching = _Watching(calls, name, routes, feed, mailbox, certificate, context, stream)
                await watching.run()
        except asyncio.CancelledError:
            why = (stream.ending if stream else None) or (watching.failure if watching else None)
            if why is None:
                raise  # the client is gone
            end_with(context, calls.status(why, name, ""))
        except Exception as error:  # noqa: BLE001 - every error becomes a status
            end_with(context, calls.status(error, name, ""))

    return grpc.stream_stream_rpc_method_handler(behave)


@dataclass(eq=False, repr=False)
class _Watching:
    """One stream of `Watch`. It answers in the call's own task, and sends what is in the mailbox in another one."""

    calls: Calls
    name: str
    routes: Mapping[str, _Route]
    feed: Feed
    mailbox: Mailbox
    certificate: bytes | None
    context: Context
    stream: OpenStream

    failure: Exception | None = field(default=None, init=False)
    """Why sending has ended; the call's task was cancelled for it."""
    _writing: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    """Held from reading for the client to writing. gRPC takes one message at a time."""

    async def run(self) -> None:
        """Answer until the client has nothing more to send."""
        calls, stream = self.calls, self.stream
        sending = asyncio.create_task(self._send())
        try:
            while True:
                stream.reads_s = calls.streams.now_s
                if (data := await calls.wait_for(self.context.read)) is grpc.aio.EOF:
                    break
                stream.reads_s = None
                if not await self._answer_one(data):
                    await calls.wait_for(partial(asyncio.sleep, RETRY_MS / 1000))
                # Admit again: a caller whose request was refused is not read from any more.
                self._admit(self.name)
        finally:
            sending.cancel()

    def _admit(self, name: str) -> Caller:
        return self.calls.admit(self.certificate, name, self.context)

    async def _write(self, message: bytes) -> None:
        self.stream.writes_s = self.calls.streams.now_s
        await self.context.write(message)
        self.stream.writes_s = None
        if self.stream.reads_s is not None:
            self.stream.reads_s = self.calls.streams.now_s  # who reads is not idle

    # --- answers ------------------------------------------------------------------------------------------------------

    async def _answer_one(self, data: bytes) -> bool:
        """Answer one message. False if it was above the party's limits; then only its request id was read."""
        begun_s, ended = self.calls.begin(self.context), (self.name, CANCELLED)
        entered = False
        account = self.stream.account
        try:
            try:
                account.enter()
                entered = True
                request = parse_message(pb.WatchRequest, data)
            except Exception as error:  # noqa: BLE001 - every error becomes an answer
                ended = (self.name, reason_of(error))
                await self._refuse(error, self.name, _request_id_of(data))
            else:
                ended = await self._answer(request)
            return entered
        finally:
            if entered:
                account.leave()
            self.calls.end(*ended, begun_s)

    async def _answer(self, request: pb.WatchRequest) -> tuple[str, str]:
        """Answer a request; its method, and OK or why not."""
        field = request.WhichOneof("request") or ""
        route, message = self.routes.get(field), getattr(request, field or "watch_table")
        name, request_id = (self.name, "") if route is None else (route.name, message.request_id)
        try:
            caller = self._admit(name)
            if route is None:
                await self._subscribe(field, message)
                return name, OK
            answer = field_bytes(route.tag, await self.calls.answer(name, route.method, caller, message))
            if request_id:
                answer = field_bytes(_REQUEST_ID, request_id.encode()) + answer
        except Exception as error:  # noqa: BLE001 - every error becomes an answer
            await self._refuse(error, name, request_id)
            return name, reason_of(error)
        async with self._writing:
            await self._write(answer)
        return name, OK

    async def _refuse(self, error: Exception, name: str, request_id: str) -> None:
        status = self.calls.status(error, name, request_id)
        async with self._writing:
            await self._write(_error_bytes(status, request_id))

    async def _subscribe(self, field: str, message: Any) -> None:
        """Watch or leave a table or a seat. What is watched is sent as it stands now."""
        feed, mailbox = self.feed, self.mailbox
        match field:
            case "watch_table":
                table_id = check_name(message.table, "table")
                async with self._writing:
                    view = await _about(feed.watch_table(mailbox, table_id), table=table_id)
                    if mailbox.given(view) and view.version != message.after_version:
                        mailbox.carry(view)
                        await self._write(feed.encode(view))
            case "watch_session":
                session_id = check_ulid(message.session_id, "session_id")
                async with self._writing:
                    _, seat = await _about(feed.watch_session(mailbox, session_id), session_id=session_id)
                    await self._write(watched_seat(seat))
            case "leave_table":
                feed.leave_table(mailbox, message.table)
            case "leave_session":
                feed.leave_session(mailbox, message.session_id)
            case _:
                limit = " ".join([*_WATCHED, *_PLAYED])
                raise InvalidFieldError("the request is empty", field="request", limit=limit)

    # --- what comes by itself -----------------------------------------------------------------------------------------

    async def _send(self) -> None:
        """Send what comes into the mailbox. If that fails, the stream ends."""
        try:
            while True:
                try:
                    await self.calls.wait_for(self.mailbox.wait)
                except UnavailableError:
                    return  # the server drains: the call's own task ends the stream
                async with self._writing:
                    self._admit(self.name)
                    is_store_away = not await self._send_one()
                if is_store_away:
                    await asyncio.sleep(WAIT_S)
        except Exception as error:  # noqa: BLE001 - the call's task makes a status of it
            self.failure = error
            self.stream.task.cancel()

    async def _send_one(self) -> bool:
        """Send the next parcel. False if it could not be read now, and is kept."""
        parcel = self.mailbox.take()
        if isinstance(parcel, SeatMark):
            return await self._send_seat(parcel.session_id)
        if isinstance(parcel, TableLost):
            await self._write(_error_bytes(self.calls.status(_lost(parcel), self.name, ""), ""))
        elif parcel is not None:
            await self._write(parcel)
        return True

    async def _send_seat(self, session_id: str) -> bool:
        try:
            session, seat = await _about(self.feed.seat(self.mailbox.caller, session_id), session_id=session_id)
        except UnavailableError:
            self.mailbox.mark(session_id)
            return False
        except RgsError as error:
            self.feed.leave_session(self.mailbox, session_id)
            await self._write(_error_bytes(self.calls.status(error, self.name, ""), ""))
            return True
        await self._write(watched_seat(seat))
        if session.session.status is SessionStatus.CLOSED:
            self.feed.leave_session(self.mailbox, session_id)
        return True


async def _about(reading: Awaitable[_Read], **subject: str) -> _Read:
    """What is read. An error names the subject: the requests for views have no request id."""
    try:
        return await reading
    except RgsError as error:
        error.metadata.update(subject)
        raise


def _error_bytes(status: Status, request_id: str) -> bytes:
    return pb.WatchResponse(request_id=request_id, error=status).SerializeToString()


def _request_id_of(data: bytes) -> str:
    """The request id of a message that was refused, if it can be read: the error must name its request."""
    try:
        request = pb.WatchRequest.FromString(data)
    except DecodeError:
        return ""
    field = request.WhichOneof("request")
    return getattr(getattr(request, field), "request_id", "") if field else ""
