"""A session of solo play on one screen: from its opening, or from where it was left, until the player leaves.

The screen shows the server's last view; a client that has lost everything goes on from `GetSession`. Play stops as soon
as a statement of the session fails a check.
"""

from __future__ import annotations

from typing import Final

from rgs.devkit.client import CallError, OutcomeUnknownError
from rgs.devkit.terminal.history_screen import HistoryScreen
from rgs.devkit.terminal.proof import SessionProof
from rgs.devkit.terminal.screen import line
from rgs.devkit.terminal.session_screen import ANTE_MINOR, BUY_IN_MINOR, LeftError, SessionScreen
from rgs.v1.common_pb2 import ROUND_STATUS_OPEN, SESSION_STATUS_CLOSED, Action, RoundView
from rgs.v1.play_pb2 import GetRoundRequest
from rgs.v1.session_pb2 import GetSessionRequest

_BETWEEN: Final = ("bets", "top_up", "history", "statements", "rules", "leave")


class GameScreen(SessionScreen):
    """One session of solo play on one screen."""

    def resume(self, session_id: str) -> None:
        """Resume a session that was left open, with its round, and verify it from its first link. CallError."""
        self._refresh(session_id)
        self._proof = SessionProof(self._client, self._keys, session_id)
        self._verify(b"")

    def run(self) -> None:
        """Play until the player leaves. LeftError, InputEndedError, OutcomeUnknownError."""
        while self._session.status != SESSION_STATUS_CLOSED:
            if self.is_broken:
                self._draw()
                return
            try:
                self._turn()
            except OutcomeUnknownError:
                raise
            except CallError as error:
                self._prompt.note(line(f"✗ {self._screen.refusal(error)}", "yellow"))
                self._refresh(self._session.session_id)
        self._draw()

    def _turn(self) -> None:
        session = self._session
        if session.participation_ended:
            self._close()
        elif not session.participation_id:
            self._draw()
            self._buy(BUY_IN_MINOR)
        elif self._round is not None and self._round.status == ROUND_STATUS_OPEN:
            self._decide(self._round)
        else:
            self._between()

    # --- a round --------------------------------------------------------------------------------------------------

    def _between(self) -> None:
        session = self._session
        if not self._bets:
            ante_minor = min(ANTE_MINOR, session.largest_ante_minor) or ANTE_MINOR
            self._bets = {"ante": ante_minor}
        self._draw()
        self._prompt.say(*self._screen.limits_left(session), "")
        deal = self._words.choice("deal", bets=self._bets_text(self._bets))
        others = {name: self._words.choice(name) for name in _BETWEEN}
        self._prompt.say(str(deal), "   ".join(map(str, others.values())))
        match self._prompt.pick({"deal": deal, **others}, default="deal"):
            case "deal":
                self._deal()
            case "bets":
                self._ask_bets()
            case "top_up":
                self._buy(session.purchase_left_minor)
            case "leave":
                self._leave()
            case "history":
                HistoryScreen(self._client, self._prompt, self._keys, self._games, session.player).browse()
            case "statements":
                self._prompt.page(self._screen.links(self._proof.links))
            case _:
                self._prompt.page(self._screen.rules(self._game))

    def _deal(self) -> None:
        answer = self._send(self._client.play.StartRound, self._client.requests.start(self._session, self._bets))
        self._session, self._round = answer.session, answer.round
        self._verify(answer.opening)

    def _decide(self, round_: RoundView) -> None:
        self._draw()
        self._prompt.say("", *self._screen.decisions(round_, self._game.family, self._session.currency))
        actions = {Action.Name(legal.action): legal.action for legal in round_.legal_actions if legal.available}
        choices = {name: self._screen.action(self._game.family, action) for name, action in actions.items()}
        if round_.paused:
            choices["refresh"] = self._words.choice("refresh")
            self._prompt.say(str(choices["refresh"]))
        chosen = self._prompt.pick({**choices, "leave": self._words.choice("leave")})
        if chosen == "refresh":
            self._refresh(self._session.session_id)
            return
        if chosen == "leave":
            if self._prompt.choose("keep_round", "back", default="back") == "keep_round":
                raise LeftError
            return
        answer = self._send(self._client.play.Act, self._client.requests.act(self._session, round_, actions[chosen]))
        self._session, self._round = answer.session, answer.round
        if answer.final:
            self._verify(answer.final)

    # --- the screen ---------------------------------------------------------------------------------------------------

    def _refresh(self, session_id: str) -> None:
        session = self._client.call(self._client.sessions.GetSession, GetSessionRequest(session_id=session_id)).session
        if session.HasField("open_round"):
            self._round = session.open_round
        elif self._round is not None and self._round.status == ROUND_STATUS_OPEN:  # it has ended meanwhile
            ask = GetRoundRequest(session_id=session_id, round_id=self._round.round_id)
            self._round = self._client.call(self._client.play.GetRound, ask).round
            self._session = session
            self._verify(b"")
        self._session = session

    def _draw(self) -> None:
        self._prompt.clear()
        session, round_, game = self._session, self._round, self._game.family
        self._prompt.say(self._screen.header(session, round_))
        if round_ is not None:
            self._prompt.say(self._screen.felt(round_, game, session.currency))
            if round_.status != ROUND_STATUS_OPEN:
                self._prompt.say(self._screen.outcome(round_, game, session.currency))
        self._prompt.say_notes()
