"""One player of the demo: opens, buys, plays, ends and closes sessions as an operator's client would.

Every signed statement that arrives is kept as the bytes that arrived, for the comparison with the export
(`rgs.cli.demo_checks`). On the way it checks what a client can: numbers, balances, and that the commitment of a round
never changes. Refuses to go on after the first thing that is not as it should be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from rgs.cli.client import Client, Rounds, StreamRounds, UnaryRounds
from rgs.cli.strategy import SIDE_BET, decide, stakes
from rgs.core.errors import RgsError
from rgs.v1.common_pb2 import ACTION_FOLD, ROUND_STATUS_SETTLED, RoundView, SessionView
from rgs.v1.play_pb2 import ActRequest, StartRoundRequest
from rgs.v1.session_pb2 import (
    BuyParticipationRequest,
    CloseSessionRequest,
    EndParticipationRequest,
    OpenSessionRequest,
)

CURRENCY: Final = "EUR"
BUY_IN_MINOR: Final = 20_000
TOP_UP_MINOR: Final = 5_000
COMFORTABLE_ANTE_MINOR: Final = 500


class DemoError(RgsError):
    """Something is not as it should be; the message says what, `where` says where to look."""

    reason = "DEMO_FAILED"


@dataclass(frozen=True, slots=True)
class PlayedRound:
    """A round as the client saw its end, with the two statements as they arrived."""

    view: RoundView
    opening: bytes
    final: bytes

    @property
    def has_folded(self) -> bool:
        """Whether the player gave up."""
        return any(taken.action == ACTION_FOLD for taken in self.view.actions)

    @property
    def has_side_bet(self) -> bool:
        """Whether trips or aa was placed."""
        return any(bet.bet in SIDE_BET.values() for bet in self.view.bets)


@dataclass(slots=True)
class PlayedSession:
    """A session from open to close. `others` are its statements that belong to no round."""

    game: str
    player: str
    by_stream: bool
    view: SessionView
    rounds: list[PlayedRound] = field(default_factory=list)
    others: list[bytes] = field(default_factory=list)

    def verify_money(self) -> None:
        """DemoError unless bought - staked + returned = paid out, and the rounds come to what the session says."""
        view = self.view
        self.expect(
            view.bought_minor - view.staked_minor + view.returned_minor == view.paid_out_minor,
            f"bought {view.bought_minor} - staked {view.staked_minor} + returned {view.returned_minor}"
            f" is not the {view.paid_out_minor} paid out",
        )
        for name in ("staked_minor", "returned_minor"):
            summed, said = sum(getattr(round_.view, name) for round_ in self.rounds), getattr(view, name)
            self.expect(summed == said, f"{name} of the rounds comes to {summed}, the session says {said}")

    def expect(self, is_so: bool, otherwise: str) -> None:
        """DemoError naming the session unless it is so."""
        if not is_so:
            raise DemoError(f"session {self.view.session_id}: {otherwise}", session_id=self.view.session_id)


class DemoPlayer:
    """Plays one game under one pseudonym; half of the players use unary calls, half the stream."""

    def __init__(self, client: Client, game: str, player: str, *, by_stream: bool) -> None:
        self._client = client
        self._game = game
        self._player = player
        self._by_stream = by_stream

    def play(self, rounds: int, told: Callable[[], None]) -> list[PlayedSession]:
        """So many rounds, in one session as a rule; in a further one when a participation is used up."""
        sessions: list[PlayedSession] = []
        played = 0
        while played < rounds:
            session = self._open()
            sessions.append(session)
            way: Rounds = StreamRounds(self._client) if self._by_stream else UnaryRounds(self._client)
            try:
                while played < rounds and self._can_go_on(session):
                    self._play_round(session, way, played)
                    played += 1
                    told()
            finally:
                way.close()
            self._close(session)
        return sessions

    def _open(self) -> PlayedSession:
        request = OpenSessionRequest(
            request_id=self._client.request_id(),
            game=self._game,
            player=self._player,
            currency=CURRENCY,
            operator_reference=f"{self._player}.{self._game}",
        )
        answer = self._client.call(self._client.sessions.OpenSession, request)
        session = PlayedSession(self._game, self._player, self._by_stream, answer.session, others=[answer.statement])
        session.expect(bool(answer.session.regulator_session_id), "has no id of the regulator")
        self._buy(session, BUY_IN_MINOR)
        return session

    def _buy(self, session: PlayedSession, amount_minor: int) -> None:
        before = session.view
        request = BuyParticipationRequest(
            request_id=self._client.request_id(),
            session_id=before.session_id,
            purchase_no=before.next_purchase_no,
            amount_minor=amount_minor,
        )
        answer = self._client.call(self._client.sessions.BuyParticipation, request)
        session.view = answer.session
        session.others.append(answer.statement)
        session.expect(answer.session.balance_minor == before.balance_minor + amount_minor, "bought, balance is wrong")

    def _can_go_on(self, session: PlayedSession) -> bool:
        """Top up once when the balance gets low; whether an ante is possible that leaves every option open."""
        if session.view.largest_ante_minor < COMFORTABLE_ANTE_MINOR and session.view.next_purchase_no == 2:
            self._buy(session, TOP_UP_MINOR)
        return session.view.largest_ante_minor > 0

    def _play_round(self, session: PlayedSession, way: Rounds, number: int) -> None:
        before = session.view
        started = way.start_round(
            StartRoundRequest(
                request_id=self._client.request_id(),
                session_id=before.session_id,
                stage_no=before.next_stage_no,
                bets=stakes(self._game, number, before.largest_ante_minor),
            )
        )
        session.view, round_, final = started.session, started.round, b""
        session.expect(len(round_.commitment) == 32 and bool(started.opening), "a round began without its opening")
        while not final:
            session.expect(not round_.dealer_cards, "the dealer's cards were shown before the end")
            answer = way.act(
                ActRequest(
                    request_id=self._client.request_id(),
                    session_id=before.session_id,
                    round_id=round_.round_id,
                    round_version=round_.round_version,
                    action=decide(round_),
                )
            )
            session.expect(
                answer.round.round_id == round_.round_id and answer.round.commitment == round_.commitment,
                f"round {round_.round_id} changed its id or commitment",
            )
            session.view, round_, final = answer.session, answer.round, answer.final
        session.expect(round_.status == ROUND_STATUS_SETTLED, f"round {round_.round_id} ended without being settled")
        due_minor = before.balance_minor - round_.staked_minor + round_.returned_minor
        session.expect(
            session.view.balance_minor == due_minor,
            f"balance {session.view.balance_minor} after round {round_.round_id}, {due_minor} is due",
        )
        session.rounds.append(PlayedRound(round_, started.opening, final))

    def _close(self, session: PlayedSession) -> None:
        client, session_id = self._client, session.view.session_id
        end = EndParticipationRequest(request_id=client.request_id(), session_id=session_id)
        ended = client.call(client.sessions.EndParticipation, end)
        close = CloseSessionRequest(request_id=client.request_id(), session_id=session_id)
        closed = client.call(client.sessions.CloseSession, close)
        session.view = closed.session
        session.others += [ended.statement, closed.statement]
        session.verify_money()
