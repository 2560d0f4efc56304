"""A player of the demo at a table: a session like any other, and a seat that the operator's bridge watches."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final

from rgs.core.statements import parse_envelope, parse_statement
from rgs.devkit.client import CallError
from rgs.devkit.demo.floor import Floor
from rgs.devkit.demo.player import DemoError, DemoPlayer, PlayedRound
from rgs.devkit.demo.strategy import decide, table_stakes
from rgs.v1 import table_pb2 as pb
from rgs.v1.audit_pb2 import ListStatementsRequest
from rgs.v1.common_pb2 import ROUND_STATUS_OPEN, Phase, RoundView

_PAGE: Final = 200
ANSWER_S: Final = 60.0
_TOO_LATE: Final = frozenset({"TABLE_CHANGED", "ILLEGAL_ACTION", "ROUND_NOT_OPEN"})
"""Why a bet or a decision is refused that comes after its window."""


@dataclass(eq=False, kw_only=True)
class TablePlayer(DemoPlayer):
    """`number` is the player's place at the table, from 0. `limits`: the least stake of each bet there."""

    floor: Floor
    number: int
    limits: dict[str, int]

    @property
    def session_id(self) -> str:
        return self.sessions[-1].view.session_id

    @property
    def seat(self) -> pb.SeatView:
        """The newest view of the seat."""
        return self.floor.seats[self.session_id]

    @property
    def ended(self) -> dict[str, RoundView]:
        """The ended rounds, by id."""
        return self.floor.rounds.get(self.session_id, {})

    def sit_down(self) -> None:
        """Open a session at the table, buy, take a seat, and have it watched."""
        self.make_ready()
        self.join()
        self.floor.stream.watch_session(self.session_id)

    def join(self) -> None:
        """Take a seat, or take it over from another device."""
        self._take(self.floor.stream.ask(self.client.requests.join(self.session_id, f"guest {self.number + 1}")))

    def stand_up(self) -> None:
        """Give the seat back."""
        self._take(self.floor.stream.ask(self.client.requests.leave_seat(self.seat)))

    # --- in a round ---------------------------------------------------------------------------------------------------

    def bet(self, round_id: str, number: int) -> Future[Any]:
        """Place the bets of this round of the evening."""
        bets = table_stakes(self.limits, number + self.number)
        return self.floor.stream.send(self.client.requests.place_bets(self.seat, round_id, bets))

    def decide(self) -> Future[Any]:
        """Decide as the strategy says."""
        return self.floor.stream.send(self.client.requests.decide(self.seat, decide(self.seat.round)))

    def may_decide(self, round_id: str, phase: Phase.ValueType) -> bool | None:
        """Whether the player has to decide in this phase of the round; None while the view of the seat is older."""
        round_ = self.seat.round
        if round_.round_id != round_id:
            return None
        if round_.status == ROUND_STATUS_OPEN and round_.phase != phase:
            return None
        return bool(round_.legal_actions)

    def is_in_time(self, answer: Future[Any]) -> bool:
        """Take the answer to a bet or decision. False if it came too late for its window. CallError."""
        try:
            self._take(answer.result(ANSWER_S))
        except TimeoutError:
            raise DemoError(f"{self.player} has no answer within {ANSWER_S:.0f} s") from None
        except CallError as error:
            if error.reason not in _TOO_LATE:
                raise
            return False
        return True

    def _take(self, answer: Any) -> None:
        self.sessions[-1].view = answer.session
        self.floor.take_answer(answer.seat)

    # --- afterwards ---------------------------------------------------------------------------------------------------

    def collect(self) -> None:
        """Read the signed statements of the session, and put those of each round to what was seen of it. DemoError."""
        session = self.sessions[-1]
        signed: dict[str, dict[str, bytes]] = {}
        others: list[bytes] = []
        request = ListStatementsRequest(session_id=self.session_id, page_size=_PAGE)
        for page in self.client.pages(self.client.audit.ListStatements, request):
            for statement in page.statements:
                kind, body = parse_statement(parse_envelope(statement.envelope))
                if kind.name in {"seat_opening", "seat_final"}:
                    signed.setdefault(body["round_id"], {})[kind.name] = statement.envelope
                else:
                    others.append(statement.envelope)
        session.expect(others == session.others, "its statements that belong to no round are not those received")
        session.expect(signed.keys() == self.ended.keys(), f"{len(signed)} rounds signed, {len(self.ended)} seen")
        session.expect(all(len(two) == 2 for two in signed.values()), "a round has no opening or no final")
        session.rounds = [
            PlayedRound(self.ended[round_id], two["seat_opening"], two["seat_final"])
            for round_id, two in signed.items()
        ]
        self.played = len(session.rounds)
