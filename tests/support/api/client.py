"""An operator's side of the whole server, for tests: stubs, request ids that count up, and a session ready to play."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from rgs.v1 import play_pb2, session_pb2
from rgs.v1.audit_pb2_grpc import AuditServiceStub
from rgs.v1.catalog_pb2_grpc import CatalogServiceStub
from rgs.v1.common_pb2 import Bet
from rgs.v1.history_pb2_grpc import HistoryServiceStub
from rgs.v1.play_pb2_grpc import PlayServiceStub
from rgs.v1.session_pb2_grpc import SessionServiceStub

ANTE_MINOR = 100
BOUGHT_MINOR = 50_000
_numbers = itertools.count(1)


def request_id() -> str:
    return str(uuid.UUID(int=next(_numbers)))


class ApiClient:
    """One player at one operator. The last view of session and round is kept, as a client would."""

    def __init__(self, channel: grpc.aio.Channel, player: str = "player-1") -> None:
        self.channel = channel
        self.player = player
        # The stubs take both kinds of channel; their types know one.
        self.sessions: Any = SessionServiceStub(channel)
        self.play: Any = PlayServiceStub(channel)
        self.history: Any = HistoryServiceStub(channel)
        self.audit: Any = AuditServiceStub(channel)
        self.catalog: Any = CatalogServiceStub(channel)
        self.session_id = ""
        self.round_no = 1
        self.round_id = ""
        self.round_version = 0

    # --- requests -----------------------------------------------------------------------------------------------------

    def open_request(self, **changes: Any) -> session_pb2.OpenSessionRequest:
        given = {"game": "uth-solo", "player": self.player, "currency": "EUR"}
        named = {"request_id": request_id(), "operator_reference": f"ref-{next(_numbers)}"}
        return session_pb2.OpenSessionRequest(**{**named, **given, **changes})

    def buy_request(self, **changes: Any) -> session_pb2.BuyParticipationRequest:
        given = {"session_id": self.session_id, "purchase_no": 1, "amount_minor": BOUGHT_MINOR}
        return session_pb2.BuyParticipationRequest(**{"request_id": request_id(), **given, **changes})

    def start_request(self, **changes: Any) -> play_pb2.StartRoundRequest:
        given = {"session_id": self.session_id, "round_no": self.round_no}
        bets = [Bet(bet="ante", amount_minor=ANTE_MINOR)]
        return play_pb2.StartRoundRequest(**{"request_id": request_id(), "bets": bets, **given, **changes})

    def act_request(self, action: Any, **changes: Any) -> play_pb2.ActRequest:
        given = {"session_id": self.session_id, "round_id": self.round_id, "round_version": self.round_version}
        return play_pb2.ActRequest(**{"request_id": request_id(), "action": action, **given, **changes})

    # --- steps --------------------------------------------------------------------------------------------------------

    async def open(self) -> Any:
        response = await self.sessions.OpenSession(self.open_request())
        self.session_id = response.session.session_id
        return response

    async def buy(self) -> Any:
        return await self.sessions.BuyParticipation(self.buy_request())

    async def start(self) -> Any:
        response = await self.play.StartRound(self.start_request())
        self.seen(response)
        self.round_no = response.session.next_round_no
        return response

    async def act(self, action: Any) -> Any:
        response = await self.play.Act(self.act_request(action))
        self.seen(response)
        return response

    async def seated(self) -> ApiClient:
        """With a session and money."""
        await self.open()
        await self.buy()
        return self

    async def round_to_the_end(self) -> Any:
        """Start, look at every card, give up: two checks and a fold."""
        await self.start()
        for action in (1, 1):
            await self.act(action)
        return await self.act(7)

    def seen(self, response: Any) -> None:
        self.round_id, self.round_version = response.round.round_id, response.round.round_version


async def no_update(stream: Any) -> Any:
    """What comes next on a Play stream besides updates: an answer, a notice, the end."""
    while (response := await stream.read()) is not grpc.aio.EOF and response.WhichOneof("response") == "update":
        pass
    return response


async def health(channel: grpc.aio.Channel, service: str) -> bytes:
    """The answer of grpc.health.v1 Check, written by hand."""
    check: Any = channel.unary_unary("/grpc.health.v1.Health/Check")
    reported: bytes = await check(b"\x0a" + bytes([len(service)]) + service.encode())
    return reported


async def refused(call: Any) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return caught.value


def cards_in(message: Any) -> Iterator[str]:
    """Every text of two characters in a message: cards, wherever they stand."""
    for field, value in message.ListFields():
        for item in value if field.is_repeated else [value]:
            if hasattr(item, "ListFields"):
                yield from cards_in(item)
            elif isinstance(item, str) and len(item) == 2:
                yield item
