"""One session on one screen: from its opening, or from where it was left, until the player leaves.

The screen shows the server's last view; a client that has lost everything goes on from `GetSession`. Play stops as soon
as a statement of the session fails a check.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import grpc
from google.protobuf.message import Message

from rgs.core.amounts import format_money, parse_money, typed_money
from rgs.core.errors import FormatError, VerificationError
from rgs.devkit.client import CallError, Client, OutcomeUnknownError
from rgs.devkit.terminal.history_screen import HistoryScreen
from rgs.devkit.terminal.prompt import Prompt
from rgs.devkit.terminal.proof import Keys, SessionProof
from rgs.devkit.terminal.screen import line
from rgs.v1.catalog_pb2 import Game
from rgs.v1.common_pb2 import ROUND_STATUS_OPEN, SESSION_STATUS_CLOSED, Action, RoundView, SessionView
from rgs.v1.play_pb2 import GetRoundRequest
from rgs.v1.session_pb2 import GetSessionRequest

BUY_IN_MINOR: Final = 10_000
ANTE_MINOR: Final = 100
_BETWEEN: Final = ("bets", "top_up", "history", "statements", "rules", "leave")

Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response", bound=Message)


class LeftError(Exception):
    """The player has left without closing the session; it stays open at the server."""


class GameScreen:
    """One session on one screen."""

    def __init__(self, client: Client, prompt: Prompt, keys: Keys, games: Mapping[str, Game], ruleset: str) -> None:
        """`games`: the catalog by ruleset id. `ruleset`: the one to play."""
        self._client = client
        self._prompt = prompt
        self._screen = prompt.screen
        self._words = prompt.words
        self._keys = keys
        self._games = games
        self._game = games[ruleset]
        self._session = SessionView()
        self._round: RoundView | None = None
        self._proof = SessionProof(client, keys, "")  # of no session yet
        self._bets: dict[str, int] = {}
        self.is_broken = False
        """Whether a statement has failed a check."""

    # --- begin and end --------------------------------------------------------------------------------------------

    def open(self, player: str) -> None:
        """Open a new session. CallError."""
        request = self._client.requests.open(self._game.ruleset.id, player, self._game.currency, f"play.{player}")
        answer = self._send(self._client.sessions.OpenSession, request)
        self._session = answer.session
        self._proof = SessionProof(self._client, self._keys, answer.session.session_id)
        self._verify(answer.statement)

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

    # --- the participation ----------------------------------------------------------------------------------------

    def _buy(self, default_minor: int) -> None:
        session = self._session
        most = format_money(session.purchase_left_minor, session.currency)
        default = typed_money(min(default_minor, session.purchase_left_minor), session.currency)
        self._prompt.say(self._words("say.buy", amount=most))
        answer = self._prompt.ask(self._words("say.how_much"), default)
        if answer.lower() == self._words("say.leave_word"):
            self._leave()
            return
        amount_minor = self._amount(answer)
        if amount_minor is None:
            return
        self._change(self._client.sessions.BuyParticipation, self._client.requests.buy(session, amount_minor))

    def _leave(self) -> None:
        """Offer to return the balance and close the session. LeftError if it is to stay open."""
        session = self._session
        back = format_money(session.balance_minor, session.currency)
        match self._prompt.choose("close", "keep", "back", default="back", amount=back):
            case "keep":
                raise LeftError
            case "back":
                return
        if session.participation_id:
            self._change(self._client.sessions.EndParticipation, self._client.requests.end(session))
        if not self.is_broken:
            self._close()

    def _close(self) -> None:
        self._change(self._client.sessions.CloseSession, self._client.requests.close(self._session))
        view = self._session
        bought, staked, returned, back = (
            format_money(amount, view.currency)
            for amount in (view.bought_minor, view.staked_minor, view.returned_minor, view.paid_out_minor)
        )
        result = self._words("say.closed", bought=bought, staked=staked, returned=returned, back=back)
        self._prompt.note(line(f"  {result}"))

    # --- a round --------------------------------------------------------------------------------------------------

    def _between(self) -> None:
        session = self._session
        if not self._bets:
            ante_minor = min(ANTE_MINOR, session.largest_ante_minor) or ANTE_MINOR
            self._bets = {"ante": ante_minor}
        self._draw()
        placed = ", ".join(
            f"{self._words.bet(self._game.family, bet)} {format_money(amount, session.currency)}"
            for bet, amount in self._bets.items()
        )
        self._prompt.say(*self._screen.limits_left(session), "")
        deal = self._words.choice("deal", bets=placed)
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

    def _ask_bets(self) -> None:
        session, bets = self._session, {}
        for limit in self._game.limits:
            hint = ""
            if limit.required:
                largest = format_money(session.largest_ante_minor, session.currency)
                hint = " " + self._words("say.up_to", amount=largest)
            default = typed_money(self._bets.get(limit.bet, 0), session.currency)
            answer = self._prompt.ask(f"{self._words.bet(self._game.family, limit.bet)}{hint}", default)
            amount_minor = self._amount(answer)
            if amount_minor is None:
                return
            if amount_minor:
                bets[limit.bet] = amount_minor
        self._bets = bets

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

    # --- calling and verifying ----------------------------------------------------------------------------------------

    def _send(self, method: grpc.UnaryUnaryMultiCallable[Request, Response], request: Request) -> Response:
        """Send the request. While there is no answer, the player decides whether to send the same request again."""
        while True:
            try:
                return self._client.call(method, request)
            except OutcomeUnknownError as error:
                result = self._words("say.no_answer", error=self._screen.refusal(error))
                self._prompt.say(line(result, "yellow"), self._words("say.may_have_happened"))
                if self._prompt.choose("again", "give_up") == "give_up":
                    raise LeftError from None

    def _change(self, method: grpc.UnaryUnaryMultiCallable[Any, Any], request: Message) -> None:
        """Send a change of the session, take its new state, and verify the statement of the change."""
        answer = self._send(method, request)
        self._session = answer.session
        self._verify(answer.statement)

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

    def _verify(self, envelope: bytes) -> None:
        """Verify the next link, or all links if there is no envelope; then compare the views with them."""
        try:
            if envelope:
                self._proof.take(envelope)
            else:
                self._proof.catch_up()
            self._proof.verify_shown(self._session, self._round)
        except (VerificationError, FormatError) as error:
            self.is_broken = True
            self._prompt.note(*self._screen.broken(error.metadata.get("check", "form"), error.message))
        except CallError as error:
            result = self._words("proof.not_verified", error=self._screen.refusal(error))
            self._prompt.note(line(f"✗ {result}", "yellow"))
        else:
            links = self._proof.links
            is_final = links[-1].kind.name == "round_final"
            shown = links[-2:] if is_final else links[-1:]
            self._prompt.note(self._screen.verified(shown, anchored=self._keys.anchored))
            if is_final:
                style = "green" if self._keys.anchored else "yellow"
                self._prompt.note(line(f"  {self._words('proof.computed')}", style))

    # --- the screen -----------------------------------------------------------------------------------------------

    def _amount(self, answer: str) -> int | None:
        """Minor units of the text that was typed; None, with a note, if it is not an amount."""
        amount_minor = parse_money(answer, self._session.currency)
        if amount_minor is None:
            self._prompt.note(line(f"✗ {self._words('say.no_amount', text=answer)}", "yellow"))
        return amount_minor

    def _draw(self) -> None:
        self._prompt.clear()
        session, round_, game = self._session, self._round, self._game.family
        self._prompt.say(self._screen.header(session, round_))
        if round_ is not None:
            self._prompt.say(self._screen.felt(round_, game, session.currency))
            if round_.status != ROUND_STATUS_OPEN:
                self._prompt.say(self._screen.outcome(round_, game, session.currency))
        self._prompt.say_notes()
