"""The requests of a player's session, made from the server's last view, each under a request id of its own.

For every client of ours: terminal, demo, bench and tests. To repeat a request is to send the same message again: it
keeps its request id and takes effect once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rgs.v1 import session_pb2
from rgs.v1 import table_pb2 as pb
from rgs.v1.common_pb2 import Action, Bet, RoundView, SessionView
from rgs.v1.play_pb2 import ActRequest, StartRoundRequest


class Requests:
    """`new_id` makes request ids (UUIDs)."""

    def __init__(self, new_id: Callable[[], str]) -> None:
        self._new_id = new_id

    def open(
        self, game: str, player: str, currency: str, operator_reference: str, table: str = ""
    ) -> session_pb2.OpenSessionRequest:
        return session_pb2.OpenSessionRequest(
            request_id=self._new_id(),
            game=game,
            player=player,
            currency=currency,
            operator_reference=operator_reference,
            table=table,
        )

    def buy(self, session: SessionView, amount_minor: int) -> session_pb2.BuyParticipationRequest:
        return session_pb2.BuyParticipationRequest(
            request_id=self._new_id(),
            session_id=session.session_id,
            purchase_no=session.next_purchase_no,
            amount_minor=amount_minor,
        )

    def start(self, session: SessionView, bets: Mapping[str, int]) -> StartRoundRequest:
        """`bets`: name of the bet -> its amount in minor units."""
        return StartRoundRequest(
            request_id=self._new_id(),
            session_id=session.session_id,
            round_no=session.next_round_no,
            bets=_bets(bets),
        )

    def act(self, session: SessionView, round_: RoundView, action: Action.ValueType) -> ActRequest:
        return ActRequest(
            request_id=self._new_id(),
            session_id=session.session_id,
            round_id=round_.round_id,
            round_version=round_.round_version,
            action=action,
        )

    def end(self, session: SessionView) -> session_pb2.EndParticipationRequest:
        return session_pb2.EndParticipationRequest(request_id=self._new_id(), session_id=session.session_id)

    def close(self, session: SessionView) -> session_pb2.CloseSessionRequest:
        return session_pb2.CloseSessionRequest(request_id=self._new_id(), session_id=session.session_id)

    # --- at a table ---------------------------------------------------------------------------------------------------

    def join(self, session_id: str, nickname: str, box: int = 0) -> pb.JoinRequest:
        """`box` 0: the one that is reserved for the player, else the lowest free one."""
        return pb.JoinRequest(request_id=self._new_id(), session_id=session_id, box=box, nickname=nickname)

    def leave_seat(self, seat: pb.SeatView) -> pb.LeaveRequest:
        return pb.LeaveRequest(request_id=self._new_id(), session_id=seat.session_id, device_no=seat.device_no)

    def place_bets(self, seat: pb.SeatView, round_id: str, bets: Mapping[str, int]) -> pb.PlaceBetsRequest:
        """`bets` is the whole bet; an empty one takes it back. An idle table has no `round_id`, and begins a window."""
        return pb.PlaceBetsRequest(
            request_id=self._new_id(),
            session_id=seat.session_id,
            device_no=seat.device_no,
            round_id=round_id,
            seat_version=seat.seat_version,
            bets=_bets(bets),
        )

    def decide(self, seat: pb.SeatView, action: Action.ValueType) -> pb.DecideRequest:
        return pb.DecideRequest(
            request_id=self._new_id(),
            session_id=seat.session_id,
            device_no=seat.device_no,
            round_id=seat.round.round_id,
            round_version=seat.round.round_version,
            action=action,
        )

    def say(self, session_id: str, text: str) -> pb.SayRequest:
        return pb.SayRequest(request_id=self._new_id(), session_id=session_id, text=text)


def _bets(bets: Mapping[str, int]) -> list[Bet]:
    return [Bet(bet=bet, amount_minor=amount_minor) for bet, amount_minor in bets.items()]
