"""rgs.v1.PlayService over `rgs.service.play.play`: three unary methods, and the `Play` stream with the same three.

The stream answers requests one by one in their order. It reads the next request when the last answer has been written,
so that one stream holds at most one request. An error is an answer too, with the request id. The caller is admitted
again at every message: a caller that is no longer allowed gets the error as an answer, then the stream ends with it.

Between answers come notices about the sessions that the stream has played: what happened to a round without its player.
They wait in a bounded queue. A client that does not read loses the oldest, and finds the same facts in the view. Every
request gets its answer, and no notice is about a session of another operator.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, Final

import grpc
from google.protobuf.message import DecodeError

from rgs.api.auth import Context, certificate_of, verify_metadata
from rgs.api.calls import Calls, Methods, Unary, end_with
from rgs.api.mapping import ROUND_STATUSES, field_bytes, reply_bytes, round_message, tag_of
from rgs.api.parsing import parse_act, parse_message, parse_start_round
from rgs.api.quotas import RETRY_MS, OpenStream
from rgs.core.errors import InvalidFieldError
from rgs.service.callers import Caller
from rgs.service.play.notices import NOTICES_MAX, Notice, Notices
from rgs.service.play.play import Play
from rgs.v1 import play_pb2 as pb

SERVICE = pb.DESCRIPTOR.services_by_name["PlayService"].full_name
STREAM: Final = "Play"
STREAM_NAME: Final = f"{SERVICE}/{STREAM}"

_RESPONSE: Final = pb.PlayResponse.DESCRIPTOR
_REQUEST_ID: Final = tag_of(_RESPONSE, "request_id")
_METHODS: Final = {"start_round": "StartRound", "act": "Act", "get_round": "GetRound"}
"""The methods of the stream, by the field that carries them in both directions."""
SESSIONS_MAX: Final = 1_024
"""Sessions whose notices one stream gets: those that it played last."""


def play_methods(play: Play) -> Methods:
    """The unary methods of the service."""

    async def start_round(caller: Caller, message: pb.StartRoundRequest) -> bytes:
        return reply_bytes("StartRound", await play.start_round(caller, parse_start_round(message)))

    async def act(caller: Caller, message: pb.ActRequest) -> bytes:
        return reply_bytes("Act", await play.act(caller, parse_act(message)))

    async def get_round(caller: Caller, message: pb.GetRoundRequest) -> bytes:
        view, opening, final, session = await play.get_round(caller, message.session_id, message.round_id)
        response = pb.GetRoundResponse(
            round=round_message(view),
            opening=opening,
            final=final,
            regulator_session_id=session.regulator_session_id,
            regulator_participation_id=session.regulator_participation_id,
        )
        return response.SerializeToString()

    return {
        "StartRound": Unary(pb.StartRoundRequest, start_round),
        "Act": Unary(pb.ActRequest, act),
        "GetRound": Unary(pb.GetRoundRequest, get_round),
    }


class PlayStream:
    """The `Play` method, over the unary methods of the service."""

    def __init__(self, calls: Calls, methods: Methods, notices: Notices) -> None:
        self._calls = calls
        self._notices = notices
        self._routes: Mapping[str, tuple[str, Unary[Any], bytes]] = {
            field: (f"{SERVICE}/{method}", unary, tag_of(_RESPONSE, field))
            for field, method in _METHODS.items()
            if isinstance(unary := methods[method], Unary)
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
            listener = _Listener(self._calls, self._notices, certificate, context, stream)
            while True:
                stream.reads_s = self._calls.streams.now_s
                if (data := await self._calls.wait_for(context.read)) is grpc.aio.EOF:
                    break
                stream.reads_s = None
                if not await self._answer_one(data, certificate, context, listener):
                    await self._calls.wait_for(partial(asyncio.sleep, RETRY_MS / 1000))
                # Admit again: a caller whose request was refused is not read from any more.
                self._calls.admit(certificate, STREAM_NAME, context)
        except asyncio.CancelledError:
            if stream is None or stream.ending is None:
                raise  # the client is gone
            end_with(context, self._calls.status(stream.ending, STREAM_NAME, ""))
        except Exception as error:  # noqa: BLE001 - every error becomes a status
            end_with(context, self._calls.status(error, STREAM_NAME, ""))
        finally:
            if listener is not None:
                listener.close()

    async def _answer_one(self, data: bytes, certificate: bytes | None, context: Context, listener: _Listener) -> bool:
        """Answer one message. False if it was above the party's limits; then only its request id was read."""
        self._calls.begin()
        name, request_id, entered = STREAM_NAME, "", False
        stream = listener.stream
        try:
            try:
                stream.account.enter()
                entered = True
                request = parse_message(pb.PlayRequest, data)
                field = request.WhichOneof("request")
                if field is None:
                    raise InvalidFieldError("the request is empty", field="request", limit=" ".join(_METHODS))
                name, method, tag = self._routes[field]
                message = getattr(request, field)
                request_id = getattr(message, "request_id", "")
                caller = self._calls.admit(certificate, name, context)
                answer = field_bytes(tag, await self._calls.answer(name, method, caller, message))
                # Answered without an error, so the session is the caller's; nothing was awaited since.
                listener.hear(message.session_id)
                if request_id:
                    answer = field_bytes(_REQUEST_ID, request_id.encode()) + answer
            except Exception as error:  # noqa: BLE001 - every error becomes an answer
                request_id = request_id or _request_id_of(data)
                status = self._calls.status(error, name, request_id)
                answer = pb.PlayResponse(request_id=request_id, error=status).SerializeToString()
            async with listener.writing:
                stream.writes_s = self._calls.streams.now_s
                await context.write(answer)
                stream.writes_s = None
            return entered
        finally:
            if entered:
                stream.account.leave()
            self._calls.end()


@dataclass(eq=False, repr=False)
class _Listener:
    """Sends a stream the notices of the last SESSIONS_MAX sessions that it played.

    Its task starts with the first session. `writing` is held while a message is written: gRPC takes one at a time.
    """

    calls: Calls
    notices: Notices
    certificate: bytes | None
    context: Context
    stream: OpenStream

    _queue: asyncio.Queue[Notice] = field(default_factory=lambda: asyncio.Queue(NOTICES_MAX), init=False)
    _sessions: dict[str, None] = field(default_factory=dict, init=False)
    _task: asyncio.Task[None] | None = field(default=None, init=False)
    writing: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    def hear(self, session_id: str) -> None:
        """Send the notices of this session from now on; it is the one played last."""
        if session_id in self._sessions:
            del self._sessions[session_id]
        else:
            self.notices.listen(session_id, self._queue)
            if len(self._sessions) >= SESSIONS_MAX:
                oldest = next(iter(self._sessions))
                del self._sessions[oldest]
                self.notices.leave(oldest, self._queue)
        self._sessions[session_id] = None
        if self._task is None:
            self._task = asyncio.create_task(self._emit())

    def close(self) -> None:
        """Send no more notices."""
        for session_id in self._sessions:
            self.notices.leave(session_id, self._queue)
        self._sessions.clear()
        if self._task is not None:
            self._task.cancel()

    async def _emit(self) -> None:
        # A caller that is not admitted any more, a client that is gone, a server that stops: the stream itself ends.
        with contextlib.suppress(Exception):
            while True:
                notice = await self.calls.wait_for(self._queue.get)
                async with self.writing:
                    self.calls.admit(self.certificate, STREAM_NAME, self.context)
                    self.stream.writes_s = self.calls.streams.now_s
                    await self.context.write(_notice_bytes(notice))
                    self.stream.writes_s = None


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
