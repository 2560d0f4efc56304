"""Players of the load: each an operator's session of its own, playing round after round, by unary calls or a stream.

A player sends its next call when the last one is answered. Any refusal ends the measurement.
"""

from __future__ import annotations

import uuid
from secrets import token_bytes
from typing import Final

import grpc.aio

from bench.figures import BenchError
from bench.mix import ways_of
from rgs.core.ids import ULID_RANDOM_BYTES, format_request_id
from rgs.devkit.requests import Requests
from rgs.node.clock import wall_ms
from rgs.v1 import common_pb2 as common
from rgs.v1 import play_pb2 as play
from rgs.v1.play_pb2_grpc import PlayServiceStub
from rgs.v1.session_pb2_grpc import SessionServiceStub

GAME: Final = "uth-solo"
PURCHASE_MINOR: Final = 100_000
"""All that the demo jurisdiction allows in one participation."""
ANTE_MINOR: Final = 10
BALANCE_LEAST_MINOR: Final = 20_000
"""Below this a player opens a new session, before the next window."""
CALL_TIMEOUT_S: Final = 30.0
Request = play.StartRoundRequest | play.ActRequest
Response = play.StartRoundResponse | play.ActResponse


def new_request_id() -> str:
    """A UUID that sorts by its time, as operators are told to make them."""
    return format_request_id(wall_ms(), token_bytes(ULID_RANDOM_BYTES))


REQUESTS: Final = Requests(new_request_id)


class Player:
    """One session and where its round stands."""

    def __init__(self, player_no: int, channel: grpc.aio.Channel, requests: Requests = REQUESTS) -> None:
        self._requests = requests
        self._name = f"bench-{player_no}"
        self._ways = ways_of(player_no)
        self._sessions = SessionServiceStub(channel)
        self._play = PlayServiceStub(channel)
        self._stream: grpc.aio.StreamStreamCall[play.PlayRequest, play.PlayResponse] | None = None
        self._session = common.SessionView()
        self._round = common.RoundView()
        self._left: list[common.Action.ValueType] = []
        """Decisions that the round in play still wants."""

    async def refill(self) -> None:
        """Open a new session if the money of the old one runs low; the old one stays as it is."""
        if self._session.balance_minor >= BALANCE_LEAST_MINOR:
            return
        request = self._requests.open(GAME, self._name, "EUR", str(uuid.uuid4()))
        opened = await self._sessions.OpenSession(request, timeout=CALL_TIMEOUT_S)
        purchase = self._requests.buy(opened.session, PURCHASE_MINOR)
        self._session = (await self._sessions.BuyParticipation(purchase, timeout=CALL_TIMEOUT_S)).session
        self._left = []

    async def finish(self) -> None:
        """Play the round in play to its end, give the balance back, close the session and the stream."""
        while self._left:
            await self.play_unary()
        await self._sessions.EndParticipation(self._requests.end(self._session), timeout=CALL_TIMEOUT_S)
        await self._sessions.CloseSession(self._requests.close(self._session), timeout=CALL_TIMEOUT_S)
        await self.hang_up()

    async def hang_up(self) -> None:
        """End the stream, if there is one."""
        if self._stream is not None:
            await self._stream.done_writing()
            self._stream = None

    async def play_unary(self) -> None:
        """The next call of the round, as a call of its own."""
        request = self.next_request()
        if isinstance(request, play.StartRoundRequest):
            self.take(await self._play.StartRound(request, timeout=CALL_TIMEOUT_S))
        else:
            self.take(await self._play.Act(request, timeout=CALL_TIMEOUT_S))

    async def play_streamed(self) -> None:
        """The next call of the round, as a message on the player's stream."""
        if self._stream is None:
            self._stream = self._play.Play()
        request = self.next_request()
        if isinstance(request, play.StartRoundRequest):
            message = play.PlayRequest(start_round=request)
        else:
            message = play.PlayRequest(act=request)
        await self._stream.write(message)
        answer = await self._stream.read()
        while isinstance(answer, play.PlayResponse) and answer.HasField("update"):
            answer = await self._stream.read()
        if not isinstance(answer, play.PlayResponse):
            raise BenchError(f"the stream ended: {await self._stream.code()} {await self._stream.details()}")
        match answer.WhichOneof("response"):
            case "start_round":
                self.take(answer.start_round)
            case "act":
                self.take(answer.act)
            case _:
                raise BenchError(f"refused: {answer.error.message}")

    def next_request(self) -> Request:
        """The next call of the round, or the start of the next one. Its answer is to be taken."""
        if not self._left:
            self._left = list(next(self._ways))
            return self._requests.start(self._session, {"ante": ANTE_MINOR})
        return self._requests.act(self._session, self._round, self._left[0])

    def take(self, answer: Response) -> None:
        """Take the answer of the last request."""
        if isinstance(answer, play.ActResponse):
            del self._left[0]
        self._session, self._round = answer.session, answer.round
        if not self._left and answer.round.status != common.ROUND_STATUS_SETTLED:
            raise BenchError("the last decision did not settle the round")
