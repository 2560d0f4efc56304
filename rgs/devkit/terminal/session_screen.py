"""A player's session on a screen, whatever is played in it: opened or resumed, bought for, closed, and each statement
verified.

While there is no answer to a request, the player decides whether the same request is sent again. A statement that fails
a check ends the play: `is_broken`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import grpc
from google.protobuf.message import Message

from rgs.core.amounts import format_money, parse_money, typed_money
from rgs.core.errors import FormatError, RgsError, VerificationError
from rgs.core.replay.reading import Statement
from rgs.devkit.client import CallError, Client, OutcomeUnknownError
from rgs.devkit.terminal.key_path import Keys
from rgs.devkit.terminal.prompt import Prompt
from rgs.devkit.terminal.proof import SessionProof
from rgs.devkit.terminal.screen import line
from rgs.v1.catalog_pb2 import Game
from rgs.v1.common_pb2 import RoundView, SessionView

BUY_IN_MINOR: Final = 10_000
ANTE_MINOR: Final = 100

Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response", bound=Message)


class LeftError(Exception):
    """The player has left without closing the session; it stays open at the server."""


class SessionScreen:
    """One session, and the proof of its statements."""

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

    # --- begin and end ------------------------------------------------------------------------------------------------

    def open(self, player: str, table: str = "") -> None:
        """Open a new session. CallError."""
        game = self._game
        reference = f"play.{self._client.request_id()}"
        request = self._client.requests.open(game.ruleset.id, player, game.currency, reference, table)
        answer = self._send(self._client.sessions.OpenSession, request)
        self._session = answer.session
        self._proof = SessionProof(self._client, self._keys, answer.session.session_id)
        self._verify(answer.statement)

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
        self._end()

    def _end(self) -> None:
        """End the participation, and close the session."""
        session = self._session
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

    # --- bets ---------------------------------------------------------------------------------------------------------

    def _ask_bets(self) -> None:
        """Ask for the amount of each bet that the player places."""
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

    def _amount(self, answer: str) -> int | None:
        """Minor units of the text that was typed; None, with a note, if it is not an amount."""
        amount_minor = parse_money(answer, self._session.currency)
        if amount_minor is None:
            self._prompt.note(line(f"✗ {self._words('say.no_amount', text=answer)}", "yellow"))
        return amount_minor

    def _bets_text(self, bets: Mapping[str, int]) -> str:
        """`ante 1.00 EUR, trips 1.00 EUR`."""
        return ", ".join(
            f"{self._words.bet(self._game.family, bet)} {format_money(amount, self._session.currency)}"
            for bet, amount in bets.items()
        )

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

    def _verify(self, envelope: bytes) -> None:
        """Verify the next link, or all links if there is no envelope; then compare the views with them."""
        try:
            if envelope:
                self._proof.take(envelope)
            else:
                self._proof.catch_up()
            self._proof.verify_shown(self._session, self._round)
        except (VerificationError, FormatError) as error:
            self._break(error)
        except CallError as error:
            self._say_not_verified(error)
        else:
            links = self._proof.links
            is_final = links[-1].kind.name == "round_final"
            self._say_verified(links[-2:] if is_final else links[-1:])
            if is_final:
                style = "green" if self._keys.anchored else "yellow"
                self._prompt.note(line(f"  {self._words('proof.computed')}", style))

    def _break(self, error: RgsError) -> None:
        """Play no more: a statement, or what was shown, does not verify."""
        self.is_broken = True
        self._prompt.note(*self._screen.broken(error.metadata.get("check", "form"), error.message))

    def _say_not_verified(self, error: CallError) -> None:
        result = self._words("proof.not_verified", error=self._screen.refusal(error))
        self._prompt.note(line(f"✗ {result}", "yellow"))

    def _say_verified(self, statements: list[Statement]) -> None:
        self._prompt.note(self._screen.verified(statements, anchored=self._keys.anchored))
