"""Players of the load: each an operator's session of its own, playing round after round, by unary calls or a stream.

A player sends its next call when the last one is answered. Refuses to go on after any refusal: a load that is refused
measures nothing.
"""

from __future__ import annotations

import uuid
from typing import Final

import grpc.aio

from bench.figures import BenchError
from bench.mix import ways_of
from rgs.v1 import common_pb2 as common
from rgs.v1 import play_pb2 as play
from rgs.v1 import session_pb2 as sessions
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


class Player:
    """One session and where its round stands."""

    def __init__(self, player_no: int, channel: grpc.aio.Channel) -> None:
        self._name = f"bench-{player_no}"
        self._ways = ways_of(player_no)
        self._sessions = SessionServiceStub(channel)
        self._play = PlayServiceStub(channel)
        self._stream: grpc.aio.StreamStreamCall[play.PlayRequest, play.PlayResponse] | None = None
        self._session_id = ""
        self._stage_no = 0
        self._round_id = ""
        self._round_version = 0
        self._left: list[common.Action.ValueType] = []
        """Decisions that the round in play still wants."""
        self._balance_minor = 0

    async def refill(self) -> None:
        """A new session where the money of the old one runs low; the old one stays as it is."""
        if self._balance_minor >= BALANCE_LEAST_MINOR:
            return
        opened = await self._sessions.OpenSession(
            sessions.OpenSessionRequest(
                request_id=_request_id(),
                game=GAME,
                player=self._name,
                currency="EUR",
                operator_reference=self._name,
            ),
            timeout=CALL_TIMEOUT_S,
        )
        self._session_id = opened.session.session_id
        bought = await self._sessions.BuyParticipation(
            sessions.BuyParticipationRequest(
                request_id=_request_id(),
                session_id=self._session_id,
                purchase_no=opened.session.next_purchase_no,
                amount_minor=PURCHASE_MINOR,
            ),
            timeout=CALL_TIMEOUT_S,
        )
        self._balance_minor = bought.session.balance_minor
        self._stage_no = bought.session.next_stage_no
        self._round_id, self._left = "", []

    async def finish(self) -> None:
        """Play the round in play to its end, give the balance back, close the session and the stream."""
        while self._left:
            await self.play_unary()
        await self._sessions.EndParticipation(
            sessions.EndParticipationRequest(request_id=_request_id(), session_id=self._session_id),
            timeout=CALL_TIMEOUT_S,
        )
        await self._sessions.CloseSession(
            sessions.CloseSessionRequest(request_id=_request_id(), session_id=self._session_id),
            timeout=CALL_TIMEOUT_S,
        )
        await self.hang_up()

    async def hang_up(self) -> None:
        """End the stream, if there is one."""
        if self._stream is not None:
            await self._stream.done_writing()
            self._stream = None

    async def play_unary(self) -> None:
        """The next call of the round, as a call of its own."""
        request = self._next()
        if isinstance(request, play.StartRoundRequest):
            self._take(await self._play.StartRound(request, timeout=CALL_TIMEOUT_S))
        else:
            self._take(await self._play.Act(request, timeout=CALL_TIMEOUT_S))

    async def play_streamed(self) -> None:
        """The next call of the round, as a message on the player's stream."""
        if self._stream is None:
            self._stream = self._play.Play()
        request = self._next()
        if isinstance(request, play.StartRoundRequest):
            message = play.PlayRequest(start_round=request)
        else:
            message = play.PlayRequest(act=request)
        await self._stream.write(message)
        answer = await self._stream.read()
        if not isinstance(answer, play.PlayResponse):
            raise BenchError(f"the stream ended: {await self._stream.code()} {await self._stream.details()}")
        match answer.WhichOneof("response"):
            case "start_round":
                self._take(answer.start_round)
            case "act":
                self._take(answer.act)
            case _:
                raise BenchError(f"refused: {answer.error.message}")

    def _next(self) -> Request:
        if not self._left:
            self._left = list(next(self._ways))
            return play.StartRoundRequest(
                request_id=_request_id(),
                session_id=self._session_id,
                stage_no=self._stage_no,
                bets=[common.Bet(bet="ante", amount_minor=ANTE_MINOR)],
            )
        return play.ActRequest(
            request_id=_request_id(),
            session_id=self._session_id,
            round_id=self._round_id,
            round_version=self._round_version,
            action=self._left[0],
        )

    def _take(self, answer: Response) -> None:
        if isinstance(answer, play.StartRoundResponse):
            self._round_id = answer.round.round_id
        else:
            del self._left[0]
        self._round_version = answer.round.round_version
        self._stage_no = answer.session.next_stage_no
        self._balance_minor = answer.session.balance_minor
        if not self._left and answer.round.status != common.ROUND_STATUS_SETTLED:
            raise BenchError("the last decision did not settle the round")


def _request_id() -> str:
    return str(uuid.uuid4())
