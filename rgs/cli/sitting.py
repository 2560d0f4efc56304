"""One person at one game: a session from its opening, or from where it was left, until the person leaves.

Keeps no state of its own that matters: what is shown is the server's last view, and a client that lost everything goes
on from `GetSession`. Refuses to play on once a statement of the session has failed a check.
"""

from __future__ import annotations

from typing import Final, TypeVar

import grpc
from google.protobuf.message import Message
from rich.console import Console, RenderableType

from rgs.cli import screen
from rgs.cli.cards_art import format_amount, parse_amount, typed_amount
from rgs.cli.client import CallError, Client, OutcomeUnknownError
from rgs.cli.proof import CHECKED, Keys, SessionProof
from rgs.cli.terminal import Keyboard
from rgs.core.errors import FormatError, VerificationError
from rgs.v1.catalog_pb2 import Game
from rgs.v1.common_pb2 import ROUND_STATUS_OPEN, SESSION_STATUS_CLOSED, Bet, RoundView, SessionView
from rgs.v1.history_pb2 import ListRoundsRequest
from rgs.v1.play_pb2 import ActRequest, StartRoundRequest
from rgs.v1.session_pb2 import (
    BuyParticipationRequest,
    CloseSessionRequest,
    EndParticipationRequest,
    GetSessionRequest,
    OpenSessionRequest,
)

BUY_IN_MINOR: Final = 10_000
ANTE_MINOR: Final = 100
HISTORY_ROWS: Final = 12

Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response", bound=Message)


class LeftError(Exception):
    """The person has left without closing; everything stays at the server as it is."""


class Sitting:
    """One session on one screen."""

    def __init__(self, client: Client, console: Console, keyboard: Keyboard, keys: Keys, game: Game) -> None:
        self._client = client
        self._console = console
        self._keyboard = keyboard
        self._keys = keys
        self._game = game
        self._plain = not console.encoding.lower().startswith("utf")
        self._session = SessionView()
        self._round: RoundView | None = None
        self._proof = SessionProof(client, keys, "")  # of no session yet
        self._bets: dict[str, int] = {}
        self._notes: list[RenderableType] = []
        self.is_broken = False
        """A statement has failed a check."""

    # --- begin and end --------------------------------------------------------------------------------------------

    def open(self, player: str) -> None:
        """A new session. CallError."""
        request = OpenSessionRequest(
            request_id=self._client.request_id(),
            game=self._game.ruleset.id,
            player=player,
            currency=self._game.currency,
            operator_reference=f"play.{player}",
        )
        answer = self._send(self._client.sessions.OpenSession, request)
        self._session = answer.session
        self._proof = SessionProof(self._client, self._keys, answer.session.session_id)
        self._verify(answer.statement)

    def resume(self, session_id: str) -> None:
        """A session that was left open, its round with it, verified from its first link. CallError."""
        self._refresh(session_id)
        self._proof = SessionProof(self._client, self._keys, session_id)
        self._verify(b"")

    def run(self) -> None:
        """Play until the person leaves. LeftError, InputEndedError, OutcomeUnknownError."""
        while self._session.status != SESSION_STATUS_CLOSED:
            if self.is_broken:
                self._draw()
                return
            try:
                self._turn()
            except OutcomeUnknownError:
                raise
            except CallError as error:
                self._note(f"✗ {error}", "yellow")
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
        most = format_amount(session.purchase_left_minor, session.currency)
        default = typed_amount(min(default_minor, session.purchase_left_minor), session.currency)
        self._say(f"Buy the right of participation: your stake at this table, at most {most}. q leaves.")
        answer = self._keyboard.line("  How much?", default)
        if answer.lower() == "q":
            self._leave()
            return
        amount_minor = parse_amount(answer, session.currency)
        if amount_minor is None:
            self._note(f"✗ {answer} is no amount", "yellow")
            return
        request = BuyParticipationRequest(
            request_id=self._client.request_id(),
            session_id=session.session_id,
            purchase_no=session.next_purchase_no,
            amount_minor=amount_minor,
        )
        bought = self._send(self._client.sessions.BuyParticipation, request)
        self._session = bought.session
        self._verify(bought.statement)

    def _leave(self) -> None:
        """Offer to give the balance back and close; LeftError if the session is to stay open."""
        session = self._session
        back = format_amount(session.balance_minor, session.currency)
        self._say(f"[y] close: {back} goes back to the wallet   [l] leave it open   [b] back")
        key = self._keyboard.key("ylb", "b")
        if key == "l":
            raise LeftError
        if key == "b":
            return
        if session.participation_id:
            end = EndParticipationRequest(request_id=self._client.request_id(), session_id=session.session_id)
            ended = self._send(self._client.sessions.EndParticipation, end)
            self._session = ended.session
            self._verify(ended.statement)
        if not self.is_broken:
            self._close()

    def _close(self) -> None:
        request = CloseSessionRequest(request_id=self._client.request_id(), session_id=self._session.session_id)
        closed = self._send(self._client.sessions.CloseSession, request)
        view = self._session = closed.session
        self._verify(closed.statement)
        bought, staked, returned, back = (
            format_amount(amount, view.currency)
            for amount in (view.bought_minor, view.staked_minor, view.returned_minor, view.paid_out_minor)
        )
        self._note(f"  Closed. Bought {bought}, staked {staked}, returned {returned}; back to the wallet {back}.", "")

    # --- a round --------------------------------------------------------------------------------------------------

    def _between(self) -> None:
        session = self._session
        if not self._bets:
            ante_minor = min(ANTE_MINOR, session.largest_ante_minor) or ANTE_MINOR
            self._bets = {"ante": ante_minor}
        self._draw()
        placed = ", ".join(f"{bet} {format_amount(amount, session.currency)}" for bet, amount in self._bets.items())
        self._say("", f"[d] deal: {placed}")
        self._say("[b] bets   [t] top up   [h] history   [s] statements   [r] rules   [q] leave")
        match self._keyboard.key("dbtqhsr", "d"):
            case "d":
                self._deal()
            case "b":
                self._ask_bets()
            case "t":
                self._buy(session.purchase_left_minor)
            case "q":
                self._leave()
            case "h":
                request = ListRoundsRequest(player=session.player, page_size=HISTORY_ROWS)
                self._page(screen.history(self._client.call(self._client.history.ListRounds, request).rounds))
            case "s":
                self._page(screen.links(self._proof.links))
            case _:
                self._page(screen.rules(self._game))

    def _ask_bets(self) -> None:
        session, bets = self._session, {}
        for limit in self._game.limits:
            hint = ""
            if limit.required:
                largest = format_amount(session.largest_ante_minor, session.currency)
                hint = f" (up to {largest} leaves every option open)"
            answer = self._keyboard.line(
                f"  {limit.bet}{hint}", typed_amount(self._bets.get(limit.bet, 0), session.currency)
            )
            amount_minor = parse_amount(answer, session.currency)
            if amount_minor is None:
                self._note(f"✗ {answer} is no amount", "yellow")
                return
            if amount_minor:
                bets[limit.bet] = amount_minor
        self._bets = bets

    def _deal(self) -> None:
        session = self._session
        request = StartRoundRequest(
            request_id=self._client.request_id(),
            session_id=session.session_id,
            stage_no=session.next_stage_no,
            bets=[Bet(bet=bet, amount_minor=amount) for bet, amount in self._bets.items()],
        )
        answer = self._send(self._client.play.StartRound, request)
        self._session, self._round = answer.session, answer.round
        self._verify(answer.opening)

    def _decide(self, round_: RoundView) -> None:
        self._draw()
        self._say("", *screen.decisions(round_, self._session.currency))
        actions = {screen.key_of(legal.action): legal.action for legal in round_.legal_actions if legal.available}
        key = self._keyboard.key("".join([*actions, "q"]))
        if key == "q":
            self._say("[l] leave the round open, to go on with it later   [b] back")
            if self._keyboard.key("lb", "b") == "l":
                raise LeftError
            return
        request = ActRequest(
            request_id=self._client.request_id(),
            session_id=self._session.session_id,
            round_id=round_.round_id,
            round_version=round_.round_version,
            action=actions[key],
        )
        answer = self._send(self._client.play.Act, request)
        self._session, self._round = answer.session, answer.round
        if answer.final:
            self._verify(answer.final)

    # --- asking and verifying ---------------------------------------------------------------------------------------

    def _send(self, method: grpc.UnaryUnaryMultiCallable[Request, Response], request: Request) -> Response:
        """Ask; while there is no answer, the person says whether the very same request is sent again."""
        while True:
            try:
                return self._client.call(method, request)
            except OutcomeUnknownError as error:
                self._say(screen.line(f"No answer: {error}", "yellow"))
                self._say("It may have happened. [a] ask again (the same request)   [l] leave")
                if self._keyboard.key("al") == "l":
                    raise LeftError from None

    def _refresh(self, session_id: str) -> None:
        session = self._client.call(self._client.sessions.GetSession, GetSessionRequest(session_id=session_id)).session
        if session.HasField("open_round"):
            self._round = session.open_round
        elif self._round is not None and self._round.status == ROUND_STATUS_OPEN:
            self._round = None
        self._session = session

    def _verify(self, envelope: bytes) -> None:
        """Verify the next link, or all of them where no envelope is given, and what was shown with it."""
        try:
            if envelope:
                self._proof.take(envelope)
            else:
                self._proof.catch_up()
            self._proof.verify_shown(self._session, self._round)
        except (VerificationError, FormatError) as error:
            self.is_broken = True
            check = error.metadata.get("check", "form")
            self._note(f"✗ DOES NOT VERIFY, check {check}: {error.message}", "bold red")
            self._note("  Do not play on. The statements stay at the server; an auditor can see them.", "red")
        except CallError as error:
            self._note(f"✗ not verified: {error}", "yellow")
        else:
            links = self._proof.links
            is_final = links[-1].kind.name == "round_final"
            shown = links[-2:] if is_final else links[-1:]
            self._notes.append(screen.verified(shown, anchored=self._keys.anchored))
            if is_final:
                self._note(f"  computed again: {CHECKED}", "green" if self._keys.anchored else "yellow")

    # --- the screen -----------------------------------------------------------------------------------------------

    def _note(self, text: str, style: str) -> None:
        self._notes.append(screen.line(text, style))

    def _say(self, *parts: RenderableType) -> None:
        for part in parts:
            self._console.print(screen.line(part) if isinstance(part, str) else part)

    def _page(self, content: RenderableType) -> None:
        if self._console.is_terminal:
            self._console.clear()
        self._say(content, "", "[b] back")
        self._keyboard.key("b", "b")

    def _draw(self) -> None:
        if self._console.is_terminal:
            self._console.clear()
        session, round_ = self._session, self._round
        self._say(screen.header(session, round_))
        if round_ is not None:
            self._say(screen.felt(round_, session.currency, plain=self._plain))
            if round_.status != ROUND_STATUS_OPEN:
                self._say(screen.outcome(round_, session.currency))
        self._say(*self._notes)
        self._notes = []
