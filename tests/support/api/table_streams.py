"""What tests of `Watch` and `WatchSeat` share: requests, and reading what a stream sends."""

from __future__ import annotations

from typing import Any

import grpc

from rgs.api.quotas import OpenStream
from rgs.v1 import table_pb2 as pb
from tests.support.api.client import request_id
from tests.support.api.harness import reason_in
from tests.support.api.table_endpoint import Tabled
from tests.support.api.tables import TABLE, session_id

S = session_id(1)


def watch_table(table_id: str = TABLE, after_version: int = 0) -> pb.WatchRequest:
    return pb.WatchRequest(watch_table=pb.WatchTable(table=table_id, after_version=after_version))


def watch_session(nth: int = 1) -> pb.WatchRequest:
    return pb.WatchRequest(watch_session=pb.WatchSession(session_id=session_id(nth)))


def leave(nth: int = 1) -> pb.WatchRequest:
    """A call of play on the stream."""
    return pb.WatchRequest(leave=pb.LeaveRequest(request_id=request_id(), session_id=session_id(nth), device_no=1))


async def request(stream: Any, message: pb.WatchRequest) -> pb.WatchResponse:
    await stream.write(message)
    response: pb.WatchResponse = await stream.read()
    return response


async def read_out(stream: Any) -> list[pb.WatchResponse]:
    await stream.done_writing()
    responses = []
    while (response := await stream.read()) is not grpc.aio.EOF:
        responses.append(response)
    return responses


async def to_the_end(stream: Any) -> None:
    while await stream.read() is not grpc.aio.EOF:
        pass


def kind_of(response: pb.WatchResponse) -> str:
    return response.WhichOneof("response") or ""


def reason_of(response: pb.WatchResponse) -> str:
    assert kind_of(response) == "error"
    return reason_in(response.error)


def is_forgotten(served: Tabled) -> bool:
    feed = served.hall.feed
    return not feed._topics and not feed._listening


def open_stream(served: Tabled, party: str) -> OpenStream:
    """The one open stream of a party."""
    (held,) = (one for one in served.calls.streams._open if one.account._party == party)
    return held
