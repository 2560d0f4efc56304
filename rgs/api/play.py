"""rgs.v1.PlayService over `rgs.service.play.play`: three unary methods, and the `Play` stream with the same three.

The stream answers requests one by one in their order. It reads the next request when the last answer has been written,
so that one stream holds at most one request. An error is an answer too, with the request id. The caller is admitted
again at every message: a caller that is no longer allowed gets the error as an answer, then the stream ends with it.

Between answers come notices and updates of the sessions that the stream has played or watches. A notice says what
happened to a round without its player. Notices wait in a bounded queue; a client that does not read loses the oldest,
and finds the same facts in the view. An update is the whole session, read when it is sent, after somebody else has
changed it. Every request gets its answer, and nothing comes of a session of another operator.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, Final

import grpc
from google.protobuf.message import DecodeError

from rgs.api.access import OK
from rgs.api.auth import Context, certificate_of, verify_metadata
from rgs.api.calls import CANCELLED, WAIT_S, Calls, Duplex, Methods, Unary, end_with, reason_of
from rgs.api.mapping import ROUND_STATUSES, Encoder, field_bytes, reply_bytes, round_message, tag_of
from rgs.api.parsing import parse_act, parse_message, parse_start_round
from rgs.api.quotas import RETRY_MS, OpenStream
from rgs.core.errors import InvalidFieldError, RgsError, UnavailableError
from rgs.core.ids import check_ulid
from rgs.core.sessions import SessionStatus
from rgs.service.callers import Caller
from rgs.service.play.notices import NOTICES_MAX, Notice, Notices
from rgs.service.play.play import Play
from rgs.service.play.updates import Mailbox, Update, Updates
from rgs.v1 import play_pb2 as pb

SERVICE = pb.DESCRIPTOR.services_by_name["PlayService"].full_name
STREAM: Final = "Play"
STREAM_NAME: Final = f"{SERVICE}/{STREAM}"

_RESPONSE: Final = pb.PlayResponse.DESCRIPTOR
_REQUEST_ID: Final = tag_of(_RESPONSE, "request_id")
_METHODS: Final = {"start_round": "StartRound", "act": "Act", "get_round": "GetRound"}
"""The methods of the stream, by the field that carries them in both directions."""
_FOLLOWING: Final = ("watch_session", "leave_session")
_FIELDS: Final = (*_METHODS, *_FOLLOWING)


def play_methods(play: Play, notices: Notices, updates: Updates, encoder: Encoder) -> Methods:
    """The methods of the service: three unary ones, and the stream over them."""

    async def start_round(caller: Caller, message: pb.StartRoundRequest) -> bytes:
        return reply_bytes("StartRound", await play.start_round(caller, parse_start_round(message)))

    async def act(caller: Caller, message: pb.ActRequest) -> bytes:
        return reply_bytes("Act", await play.act(caller, parse_act(message)))

    async def get_round(caller: Caller, message: pb.GetRoundRequest) -> bytes:
        view, opening, final, session = await play.get_round(caller, message.session_id, message.round_id)
        updates.seen(session)
        response = pb.GetRoundResponse(
            round=round_message(view),
            opening=opening,
            final=final,
            regulator_session_id=session.regulator_session_id,
            regulator_participation_id=session.regulator_participation_id,
        )
        return response.SerializeToString()

    encode = partial(update_bytes, encoder)
    unary: dict[str, Unary[Any]] = {
        "StartRound": Unary(pb.StartRoundRequest, start_round),
        "Act": Unary(pb.ActRequest, act),
        "GetRound": Unary(pb.GetRoundRequest, get_round),
    }
    return {
        **unary,
        STREAM: Duplex(lambda calls, _: PlayStream(calls, unary, notices, updates, encode).method()),
    }


def update_bytes(encoder: Encoder, update: Update) -> bytes:
    """An update as a message of the stream."""
    last_round = update.last_round
    message = pb.SessionUpdate(
        session=encoder.session(update.session),
        opening=update.opening,
        last_round=None if last_round is None else round_message(last_round),
        final=update.final,
    )
    return pb.PlayResponse(update=message).SerializeToString()


class PlayStream:
    """The `Play` method, over the unary methods of the service."""

    def __init__(
        self,
        calls: Calls,
        methods: Mapping[str, Unary[Any]],
        notices: Notices,
        updates: Updates,
        encode: Callable[[Update], bytes],
    ) -> None:
        """`encode` makes the bytes of an update."""
        self._calls = calls
        self._notices = notices
        self._updates = updates
        self._encode = encode
        self._routes: Mapping[str, tuple[str, Unary[Any], bytes]] = {
            field: (f"{SERVICE}/{method}", methods[method], tag_of(_RESPONSE, field))
            for field, method in _METHODS.items()
        }

    def method(self) -> grpc.RpcMethodHandler[bytes, bytes]:
        """The handler for gRPC."""
        return grpc.stream_stream_rpc_method_handler(self._behave)

    async def _behave(self, _requests: AsyncIterator[bytes], context: Context) -> None:
        certificate = certificate_of(context)
        stream: OpenStream | None = None
        listener: _Listener | None = None
        try:
            caller = self._calls.admit(certificate, STREAM_NAME, context)
            verify_metadata(context)
            stream = self._calls.streams.open(self._calls.quotas.of(caller))
            with self._updates.mailbox(caller) as mailbox:
                listener = _Listener(
                    self._calls, self._notices, self._updates, self._encode, mailbox, certificate, context, stream
                )
                try:
                    await self._converse(certificate, context, listener)
                finally:
                    listener.close()
        except asyncio.CancelledError:
            why = (stream.ending if stream else None) or (listener.failure if listener else None)
            if why is None:
                raise  # the client is gone
            end_with(context, self._calls.status(why, STREAM_NAME, ""))
        except Exception as error:  # noqa: BLE001 - every error becomes a status
            end_with(context, self._calls.status(error, STREAM_NAME, ""))

    async def _converse(self, certificate: bytes | None, context: Context, listener: _Listener) -> None:
        """Answer until the client has nothing more to send."""
        stream = listener.stream
        while True:
            stream.reads_s = self._calls.streams.now_s
            if (data := await self._calls.wait_for(context.read)) is grpc.aio.EOF:
                return
            stream.reads_s = None
            if not await self._answer_one(data, certificate, context, listener):
                await self._calls.wait_for(partial(asyncio.sleep, RETRY_MS / 1000))
            # Admit again: a caller whose request was refused is not read from any more.
            self._calls.admit(certificate, STREAM_NAME, context)

    async def _answer_one(self, data: bytes, certificate: bytes | None, context: Context, listener: _Listener) -> bool:
        """Answer one message. False if it was above the party's limits; then only its request id was read."""
        begun_s, reason = self._calls.begin(context), CANCELLED
        name, request_id, session_id, entered = STREAM_NAME, "", "", False
        stream = listener.stream
        answer: bytes | None = None
        try:
            try:
                stream.account.enter()
                entered = True
                request = parse_message(pb.PlayRequest, data)
                field = request.WhichOneof("request")
                if field is None:
                    raise InvalidFieldError("the request is empty", field="request", limit=" ".join(_FIELDS))
                message = getattr(request, field)
                session_id = listener.answering = message.session_id
                if field in _FOLLOWING:
                    self._calls.admit(certificate, name, context)
                    await listener.follow(field, session_id)
                else:
                    name, method, tag = self._routes[field]
                    request_id = getattr(message, "request_id", "")
                    caller = self._calls.admit(certificate, name, context)
                    with self._updates.asking(listener.mailbox, session_id):
                        answer = field_bytes(tag, await self._calls.answer(name, method, caller, message))
                    # Answered without an error, so the session is the caller's; nothing was awaited since.
                    listener.hear(session_id)
                    if request_id:
                        answer = field_bytes(_REQUEST_ID, request_id.encode()) + answer
                reason = OK
            except Exception as error:  # noqa: BLE001 - every error becomes an answer
                reason = reason_of(error)
                request_id = request_id or _request_id_of(data)
                status = self._calls.status(error, name, request_id)
                answer = pb.PlayResponse(request_id=request_id, error=status).SerializeToString()
            if answer is not None:
                await listener.write(answer)
            if listener.is_overtaken and session_id in listener.mailbox.sessions:
                listener.mailbox.mark(session_id)  # the newest comes last
            return entered
        finally:
            listener.answering, listener.is_overtaken = "", False
            if entered:
                stream.account.leave()
            self._calls.end(name, reason, begun_s)


@dataclass(eq=False, repr=False)
class _Listener:
    """Sends a stream what comes unrequested: notices and updates of the sessions that it follows.

    Its tasks start with the first session. `_writing` is held from reading for the client to writing: gRPC takes one
    message at a time, and no update comes behind a newer one.
    """

    calls: Calls
    notices: Notices
    updates: Updates
    encode: Callable[[Update], bytes]
    mailbox: Mailbox
    certificate: bytes | None
    context: Context
    stream: OpenStream

    answering: str = field(default="", init=False)
    """The session of the request that is being answered."""
    is_overtaken: bool = field(default=False, init=False)
    """Whether an update of that session was sent meanwhile: the answer may be older."""
    failure: Exception | None = field(default=None, init=False)
    """Why updates have ended; the call's task was cancelled for it."""
    _queue: asyncio.Queue[Notice] = field(default_factory=lambda: asyncio.Queue(NOTICES_MAX), init=False)
    _tasks: list[asyncio.Task[None]] = field(default_factory=list, init=False)
    _writing: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    def hear(self, session_id: str) -> None:
        """Follow a session that was played just now."""
        is_new = session_id not in self.mailbox.sessions
        dropped = self.updates.played(self.mailbox, session_id)
        if dropped:
            self.notices.leave(dropped, self._queue)
        if is_new and session_id in self.mailbox.sessions:
            self._begin(session_id)

    async def follow(self, field: str, session_id: str) -> None:
        """Follow a session, and send it as it stands; or leave it. An error names the session."""
        check_ulid(session_id, "session_id")
        if field == "leave_session":
            self._leave(session_id)
            return
        is_new = session_id not in self.mailbox.sessions
        async with self._writing:
            try:
                update = await self.updates.watch(self.mailbox, session_id)
            except RgsError as error:
                error.metadata.setdefault("session_id", session_id)
                raise
            if is_new:
                self._begin(session_id)
            await self._write(self.encode(update))

    async def write(self, answer: bytes) -> None:
        """Send an answer."""
        async with self._writing:
            await self._write(answer)

    def close(self) -> None:
        """Send no more."""
        for session_id in self.mailbox.sessions:
            self.notices.leave(session_id, self._queue)
        for task in self._tasks:
            task.cancel()

    def _begin(self, session_id: str) -> None:
        self.notices.listen(session_id, self._queue)
        if not self._tasks:
            self._tasks += [asyncio.create_task(self._send_notices()), asyncio.create_task(self._send_updates())]

    async def _write(self, message: bytes) -> None:
        self.stream.writes_s = self.calls.streams.now_s
        await self.context.write(message)
        self.stream.writes_s = None
        if self.stream.reads_s is not None:
            self.stream.reads_s = self.calls.streams.now_s  # who reads is not idle

    async def _send_notices(self) -> None:
        # A caller that is not admitted any more, a client that is gone, a server that stops: the stream itself ends.
        with contextlib.suppress(Exception):
            while True:
                notice = await self.calls.wait_for(self._queue.get)
                async with self._writing:
                    self.calls.admit(self.certificate, STREAM_NAME, self.context)
                    await self._write(_notice_bytes(notice))

    async def _send_updates(self) -> None:
        """Send what comes into the mailbox. If that fails, the stream ends."""
        try:
            while True:
                try:
                    await self.calls.wait_for(self.mailbox.wait)
                except UnavailableError:
                    return  # the server drains: the call's own task ends the stream
                async with self._writing:
                    self.calls.admit(self.certificate, STREAM_NAME, self.context)
                    is_store_away = not await self._send_update()
                if is_store_away:
                    await asyncio.sleep(WAIT_S)
        except Exception as error:  # noqa: BLE001 - the call's task makes a status of it
            self.failure = error
            self.stream.task.cancel()

    async def _send_update(self) -> bool:
        """Send the session that waits longest. False if it could not be read now, and waits on."""
        session_id = self.mailbox.take()
        if not session_id:
            return True
        try:
            update = await self.updates.read(self.mailbox, session_id)
        except UnavailableError:
            self.mailbox.mark(session_id)
            return False
        except RgsError as error:
            self._leave(session_id)
            error.metadata.setdefault("session_id", session_id)
            await self._write(pb.PlayResponse(error=self.calls.status(error, STREAM_NAME, "")).SerializeToString())
            return True
        self.is_overtaken |= session_id == self.answering
        await self._write(self.encode(update))
        if update.session.session.status is SessionStatus.CLOSED:
            self._leave(session_id)
        return True

    def _leave(self, session_id: str) -> None:
        self.updates.leave(self.mailbox, session_id)
        self.notices.leave(session_id, self._queue)


def _notice_bytes(notice: Notice) -> bytes:
    message = pb.RoundNotice(
        **{**asdict(notice), "status": ROUND_STATUSES[notice.status]}, paused=bool(notice.malfunction_code)
    )
    return pb.PlayResponse(notice=message).SerializeToString()


def _request_id_of(data: bytes) -> str:
    """The request id of a message that was refused, if it can be read: the error must name its request."""
    try:
        request = pb.PlayRequest.FromString(data)
    except DecodeError:
        return ""
    field = request.WhichOneof("request")
    return getattr(getattr(request, field), "request_id", "") if field else ""
