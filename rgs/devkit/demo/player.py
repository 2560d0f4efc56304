"""One player of the demo: opens, buys, plays, ends and closes sessions as an operator's client does.

It keeps the bytes of every signed statement for the comparison with the export (`rgs.devkit.demo.checks`), and checks
balances and that a round keeps its commitment. It repeats a request without an answer under the same request id. The
first check that fails is a DemoError.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Final

import grpc

from rgs.core.errors import RgsError
from rgs.devkit.client import Client, OutcomeUnknownError, Request, Response, StreamRounds, UnaryRounds
from rgs.devkit.demo.strategy import SIDE_BET, decide, stakes
from rgs.v1.common_pb2 import ACTION_FOLD, ROUND_STATUS_SETTLED, RoundView, SessionView
from rgs.v1.session_pb2 import BuyParticipationRequest, EndParticipationRequest

CURRENCY: Final = "EUR"
BUY_IN_MINOR: Final = 20_000
TOP_UP_MINOR: Final = 5_000
COMFORTABLE_ANTE_MINOR: Final = 500
PATIENCE_S: Final = 120.0
"""A request is repeated for so long."""
PAUSE_S: Final = 0.15
"""Between two attempts. Shorter than the pause that the server asks for, to keep the demo short."""
WALLET_SILENT: Final = "WALLET_UNAVAILABLE"
"""The reason of a call that came as far as the wallet."""


class DemoError(RgsError, reason="DEMO_FAILED"):
    """A check of the demo has failed."""


def verify_figures(
    what: str, found: Mapping[str, Any], sessions: Sequence[PlayedSession], further: Mapping[str, Any]
) -> None:
    """DemoError naming the first figure that was found otherwise, or not at all: of those of the sessions that were
    played, and the further ones.
    """
    rounds = rounds_of(sessions)
    due = {
        "rounds_verified": rounds,
        "rounds_failed": 0,
        "rounds_open": 0,
        "sessions": len(sessions),
        "draws_in_rounds": rounds,
        "draws_exposed": 0,
        **further,
    }
    for name, value in due.items():
        if found.get(name) != value:
            raise DemoError(f"{what}: {name} is {found.get(name)}, expected is {value}")


def rounds_of(sessions: Sequence[PlayedSession]) -> int:
    """The number of rounds that were dealt: all seats of a table's round are one round."""
    at_tables = [session for session in sessions if session.view.table]
    solo = sum(len(session.rounds) for session in sessions) - sum(len(session.rounds) for session in at_tables)
    return solo + len({round_.view.round_id for session in at_tables for round_ in session.rounds})


@dataclass(frozen=True, slots=True)
class PlayedRound:
    """A round: its last view, and its two statements as they arrived."""

    view: RoundView
    opening: bytes
    final: bytes

    @property
    def has_folded(self) -> bool:
        """Whether the player folded."""
        return any(taken.action == ACTION_FOLD for taken in self.view.actions)

    @property
    def has_side_bet(self) -> bool:
        """Whether the side bet was placed."""
        return any(bet.bet in SIDE_BET.values() for bet in self.view.bets)


@dataclass(slots=True)
class PlayedSession:
    """A session. `others` are its statements that belong to no round."""

    game: str
    player: str
    view: SessionView
    rounds: list[PlayedRound] = field(default_factory=list)
    others: list[bytes] = field(default_factory=list)

    def verify_money(self) -> None:
        """DemoError unless bought - staked + returned = paid out, and the rounds sum up to the session's figures."""
        view = self.view
        self.expect(
            view.bought_minor - view.staked_minor + view.returned_minor == view.paid_out_minor,
            f"bought {view.bought_minor} - staked {view.staked_minor} + returned {view.returned_minor}"
            f" is not the {view.paid_out_minor} paid out",
        )
        for name in ("staked_minor", "returned_minor"):
            summed, said = sum(getattr(round_.view, name) for round_ in self.rounds), getattr(view, name)
            self.expect(summed == said, f"{name} of the rounds sums up to {summed}, the session has {said}")

    def expect(self, is_so: bool, otherwise: str) -> None:
        """DemoError naming the session unless it is so."""
        if not is_so:
            raise DemoError(f"session {self.view.session_id}: {otherwise}", session_id=self.view.session_id)


@dataclass(eq=False)
class DemoPlayer:
    """Plays one game under one pseudonym, by unary calls or by the stream.

    `on_silence` is called before a request is repeated; it raises if that is pointless.
    """

    client: Client
    game: str
    player: str
    _: KW_ONLY
    by_stream: bool
    on_silence: Callable[[], None] = lambda: None
    table: str = ""
    """The table to play at; empty in solo play."""
    sessions: list[PlayedSession] = field(default_factory=list, init=False)
    played: int = field(default=0, init=False)
    repeats: int = field(default=0, init=False)
    """Requests sent again with the same request id."""
    _end: EndParticipationRequest | None = field(default=None, init=False)
    _purchase: BuyParticipationRequest | None = field(default=None, init=False)

    def play_to(self, rounds: int, reported: Callable[[], None]) -> None:
        """Play until so many rounds are played in all. A participation that is used up leads to a further session.

        The last session stays open.
        """
        while self.played < rounds:
            self.make_ready()
            self.play_on(rounds, reported)

    def make_ready(self) -> None:
        """Ensure a session whose participation covers a round."""
        if not self.sessions:
            self._open()
        self._settle_purchase()
        if not self._can_buy_on():
            self.leave()
            self._open()

    def play_on(self, rounds: int, reported: Callable[[], None]) -> None:
        """As `play_to`, but only with the money in the participation: no call of wallet or regulator."""
        session = self.sessions[-1]
        way = StreamRounds(self.client) if self.by_stream else UnaryRounds(self.client)
        try:
            while self.played < rounds and self._has_enough(session):
                self._play_round(session, way, self.played)
                self.played += 1
                reported()
        finally:
            way.close()

    def leave(self) -> None:
        """End the participation and close the session."""
        client, session = self.client, self.sessions[-1]
        self._settle_purchase()
        ended = self._ask(client.sessions.EndParticipation, self._end_request())
        self._end = None
        closed = self._ask(client.sessions.CloseSession, client.requests.close(session.view))
        session.view = closed.session
        session.others += [ended.statement, closed.statement]
        session.verify_money()

    # --- while the wallet does not answer ---------------------------------------------------------------------------

    def try_to_leave(self) -> None:
        """End the participation until the server answers that the wallet is silent; `leave` repeats the request."""
        self._until_silent(self.client.sessions.EndParticipation, self._end_request())

    def try_to_buy(self) -> None:
        """Buy until the server answers that the wallet is silent; `play_to` repeats the request."""
        self._purchase = self.client.requests.buy(self.sessions[-1].view, TOP_UP_MINOR)
        self._until_silent(self.client.sessions.BuyParticipation, self._purchase)

    def _until_silent(self, method: grpc.UnaryUnaryMultiCallable[Request, Response], request: Request) -> None:
        last = time.monotonic() + PATIENCE_S
        while True:
            try:
                self.client.call_once(method, request)
            except OutcomeUnknownError as error:
                if error.reason == WALLET_SILENT:
                    return
                self._pause(error, last)
            else:
                raise DemoError(f"{self.player} got an answer while the wallet was silent")

    # --- inside -----------------------------------------------------------------------------------------------------

    def _ask(self, method: grpc.UnaryUnaryMultiCallable[Request, Response], request: Request) -> Response:
        """Send a request, and repeat it for PATIENCE_S. CallError, OutcomeUnknownError."""
        last = time.monotonic() + PATIENCE_S
        while True:
            try:
                return self.client.call_once(method, request)
            except OutcomeUnknownError as error:
                self._pause(error, last)

    def _pause(self, error: OutcomeUnknownError, last: float) -> None:
        self.on_silence()
        if time.monotonic() > last:
            raise error
        self.repeats += 1
        time.sleep(PAUSE_S)

    def _open(self) -> None:
        reference = f"{self.player}.{self.game}.{len(self.sessions) + 1}"
        request = self.client.requests.open(self.game, self.player, CURRENCY, reference, self.table)
        answer = self._ask(self.client.sessions.OpenSession, request)
        session = PlayedSession(self.game, self.player, answer.session, others=[answer.statement])
        session.expect(bool(answer.session.regulator_session_id), "has no id of the regulator")
        self.sessions.append(session)
        self._buy(BUY_IN_MINOR)

    def _buy(self, amount_minor: int) -> None:
        self._purchase = self.client.requests.buy(self.sessions[-1].view, amount_minor)
        self._settle_purchase()

    def _settle_purchase(self) -> None:
        """Send the last purchase again if it has no answer yet."""
        if self._purchase is None:
            return
        session, request = self.sessions[-1], self._purchase
        due_minor = session.view.balance_minor + request.amount_minor
        answer = self._ask(self.client.sessions.BuyParticipation, request)
        self._purchase = None
        session.view = answer.session
        session.others.append(answer.statement)
        session.expect(answer.session.balance_minor == due_minor, "bought, balance is wrong")

    def _end_request(self) -> EndParticipationRequest:
        if self._end is None:
            self._end = self.client.requests.end(self.sessions[-1].view)
        return self._end

    def _can_buy_on(self) -> bool:
        """Top up once when the balance is low. Returns whether an ante is possible that leaves every option open."""
        session = self.sessions[-1]
        if session.view.largest_ante_minor < COMFORTABLE_ANTE_MINOR and session.view.next_purchase_no == 2:
            self._buy(TOP_UP_MINOR)
        return session.view.largest_ante_minor > 0

    @staticmethod
    def _has_enough(session: PlayedSession) -> bool:
        """Whether the next round is possible without a purchase."""
        topped_up = session.view.next_purchase_no > 2
        return session.view.largest_ante_minor >= (1 if topped_up else COMFORTABLE_ANTE_MINOR)

    def _play_round(self, session: PlayedSession, way: UnaryRounds, number: int) -> None:
        before, requests = session.view, self.client.requests
        started = way.start_round(requests.start(before, stakes(self.game, number, before.largest_ante_minor)))
        session.view, round_, final = started.session, started.round, b""
        session.expect(len(round_.commitment) == 32 and bool(started.opening), "a round began without its opening")
        while not final:
            session.expect(not round_.dealer_cards, "the dealer's cards were shown before the end")
            answer = way.act(requests.act(before, round_, decide(round_)))
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
