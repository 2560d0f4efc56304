"""A session at a table on one screen: what happens there comes by itself, beside the keyboard.

In a terminal each view of the server is drawn at once, the clock every second, and a key may be pressed at any time;
keys that were pressed before the table moved are discarded. With piped input a line is read once in each situation in
which the player can do something, and the choice may be to wait.

The screen keeps no state that matters: it shows the newest views of table and seat. Every statement that comes is
verified, and balance, cards and results are compared with what is signed.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from typing import Any, Final

from rich.console import RenderableType

from rgs.core.amounts import format_money
from rgs.core.errors import FormatError, VerificationError
from rgs.devkit.client import CallError, Client, OutcomeUnknownError
from rgs.devkit.terminal.history_screen import HistoryScreen
from rgs.devkit.terminal.i18n import Choice
from rgs.devkit.terminal.key_path import Keys
from rgs.devkit.terminal.prompt import TICK_S, Prompt
from rgs.devkit.terminal.proof import SessionProof
from rgs.devkit.terminal.screen import line
from rgs.devkit.terminal.seat_watch import SeatWatch
from rgs.devkit.terminal.session_screen import BUY_IN_MINOR, LeftError, SessionScreen
from rgs.devkit.terminal.table_screen import TableScreen, shown_round
from rgs.v1 import table_pb2 as pb
from rgs.v1.catalog_pb2 import Game
from rgs.v1.common_pb2 import ROUND_STATUS_OPEN, SESSION_STATUS_CLOSED, Action, SessionView

CHAT_SHOWN: Final = 3
NEWS_SHOWN: Final = 2
NICKNAME_MAX: Final = 20
_SYNC_TRIES: Final = 3
_ALWAYS: Final = ("message", "top_up", "history", "statements", "rules", "leave")
_IN_ROUND: Final = ("message", "statements", "rules", "leave")
_BEFORE_RED: Final = frozenset({pb.TABLE_STATE_IDLE, pb.TABLE_STATE_BETTING})
_ALIKE: Final = (
    _BEFORE_RED,
    frozenset({pb.TABLE_STATE_CLOSED, pb.TABLE_STATE_FIXED, pb.TABLE_STATE_OPENING}),
    frozenset({pb.TABLE_STATE_SETTLING, pb.TABLE_STATE_RESULT}),
)
"""States of the table that are one situation for a player."""
_KEPT, _COMMITMENT, _NEWS, _CHAT = range(4)
"""Which parts of the screen are left out first where it is not high enough: those with the highest number."""


class TableGame(SessionScreen):
    """One session at one table."""

    def __init__(
        self, client: Client, prompt: Prompt, keys: Keys, games: Mapping[str, Game], entry: pb.TableEntry
    ) -> None:
        super().__init__(client, prompt, keys, games, entry.game)
        self._entry = entry
        self._limits = {limit.bet: limit for limit in entry.limits}
        self._view = TableScreen(prompt.screen)
        self._table = pb.TableView()
        self._seat = pb.SeatView()
        self._device_no = 0
        self._ended = ""
        """Why the player sits no more."""
        self._synced: tuple[Any, ...] = ()
        self._seen_s = (0.0, 0.0)
        """When table and session were seen last, by our own clock."""
        self._chat: deque[pb.ChatLine] = deque(maxlen=CHAT_SHOWN)
        self._news: deque[RenderableType] = deque(maxlen=NEWS_SHOWN)
        self._situation: tuple[Any, ...] = ()
        self._bets = {limit.bet: limit.min_minor for limit in entry.limits if limit.bet in self._required}

    @property
    def _required(self) -> set[str]:
        return {limit.bet for limit in self._game.limits if limit.required}

    # --- begin and end ------------------------------------------------------------------------------------------------

    def resume(self, session_id: str) -> None:
        """Resume a session that was left open, and verify it from its first link. CallError."""
        self._proof = SessionProof(self._client, self._keys, session_id)
        self._refresh(session_id)
        self._verify(b"")

    def run(self) -> None:
        """Play until the player leaves. LeftError, InputEndedError, OutcomeUnknownError."""
        self._refresh(self._session.session_id)
        while not self.is_broken and not self._session.participation_id and self._is_open:
            self._prompt.clear()
            self._prompt.say(self._screen.header(self._shown_session(), None))
            self._prompt.say_notes()
            self._tried(lambda: self._buy(BUY_IN_MINOR))
        if self._is_open and self._session.participation_ended:
            self._close()
        if self._is_open and not self.is_broken:
            self._chat.extend(reversed(self._newest_lines()))
            self._sit()
            with SeatWatch(self._client, self._session.session_id) as watch:
                self._play(watch)
        self._prompt.clear()
        self._prompt.say(self._screen.header(self._shown_session(), None), *self._news)
        self._prompt.say_notes()

    @property
    def _is_open(self) -> bool:
        return self._session.status != SESSION_STATUS_CLOSED

    def _play(self, watch: SeatWatch) -> None:
        self._prompt.clear()
        is_new = self._is_new_situation()
        while self._is_open:
            self._verify_round()
            if self.is_broken:
                return
            menu = self._menu()
            if is_new or self._prompt.is_live:
                self._draw(menu)
            chosen = self._choose(menu, watch, is_new=is_new)
            has_acted = chosen not in {"", "wait"}
            if has_acted:
                self._tried(lambda: self._do(chosen))  # noqa: B023 - called at once
                self._prompt.clear()
            self._take_news(watch)
            is_new = self._is_new_situation() or has_acted

    def _tried(self, do: Any) -> None:
        """Do something; a refusal becomes a note, and the newest state is read."""
        try:
            do()
        except OutcomeUnknownError:
            raise
        except CallError as error:
            self._prompt.note(line(f"✗ {self._screen.refusal(error)}", "yellow"))
            self._seat.seat_version = 0  # whatever was known: what is read now counts
            self._refresh(self._session.session_id)

    # --- what can be done now -----------------------------------------------------------------------------------------

    def _menu(self) -> dict[str, Choice]:
        """The choices, the one for Enter first."""
        words, seat, table = self._words, self._seat, self._table
        menu: dict[str, Choice] = {}
        if self._is_replaced:
            return {"take_over": words.choice("take_over"), "leave": words.choice("leave")}
        if self._ended:
            return {"sit": words.choice("sit"), "history": words.choice("history"), "leave": words.choice("leave")}
        if table.state in _BEFORE_RED:
            if {bet.bet: bet.amount_minor for bet in seat.bets if bet.bet in self._limits} != self._bets:
                menu["place"] = words.choice("place", bets=self._bets_text(self._bets))
            if seat.bets:
                menu["take_back"] = words.choice("take_back")
            menu["bets"] = words.choice("bets")
        for legal in self._legal():
            if legal.available:
                menu[Action.Name(legal.action)] = self._screen.action(self._game.family, legal.action)
        menu |= {name: words.choice(name) for name in (_IN_ROUND if self._is_in_round else _ALWAYS)}
        if not self._entry.chat:
            del menu["message"]
        if not self._prompt.is_live:
            menu["wait"] = words.choice("wait")
        return menu

    @property
    def _is_replaced(self) -> bool:
        """Whether the player plays this seat on another device now (T-3)."""
        return self._seat.device_no > self._device_no > 0

    @property
    def _is_in_round(self) -> bool:
        """Whether bets of the player are cut or dealt, and not settled yet."""
        round_ = self._seat.round
        if round_.round_id == self._table.round_id and round_.status == ROUND_STATUS_OPEN:
            return True
        return bool(self._seat.bets) and self._table.state not in _BEFORE_RED

    def _legal(self) -> Any:
        is_now = self._table.state == pb.TABLE_STATE_DECIDING and self._seat.round.round_id == self._table.round_id
        return self._seat.round.legal_actions if is_now and self._seat.round.phase == self._table.phase else ()

    def _is_new_situation(self) -> bool:
        """Whether the player can do something else than before. Keys that were pressed before are discarded."""
        table, seat = self._table, self._seat
        is_dealt = seat.round.round_id == table.round_id
        is_playing = is_dealt and seat.round.status == ROUND_STATUS_OPEN
        is_older = seat.round.phase != table.phase if is_playing else bool(seat.bets) and not is_dealt
        if is_older and table.state == pb.TABLE_STATE_DECIDING:
            return False  # the view of the seat is on its way
        bets = tuple((bet.bet, bet.amount_minor) for bet in seat.bets)
        state = next((states for states in _ALIKE if table.state in states), table.state)
        what = (
            state,
            "" if table.state in _BEFORE_RED else table.round_id,
            table.phase,
            bets,
            bool(self._legal()),
            is_playing,
            self._is_replaced,
            self._ended,
        )
        if (is_new := what != self._situation) and self._prompt.is_live:
            self._prompt.forget_ahead()
        self._situation = what
        return is_new

    def _choose(self, menu: Mapping[str, Choice], watch: SeatWatch, *, is_new: bool) -> str:
        """In a terminal the choice of the next second, if any. Else a line, where there is something to decide."""
        first = next(iter(menu))
        has_first = first in {"place", "take_over", "sit"}
        if self._prompt.is_live:
            return self._prompt.listen(menu, first if has_first else "", watch.wake)
        can_wait_only = self._table.state != pb.TABLE_STATE_SHUT and not (has_first or "bets" in menu or self._legal())
        if not is_new or can_wait_only:
            return ""
        return self._prompt.pick(menu, default=first if has_first else "wait")

    # --- doing it -----------------------------------------------------------------------------------------------------

    def _do(self, chosen: str) -> None:
        match chosen:
            case "place":
                self._place(self._bets)
            case "take_back":
                self._place({})
            case "bets":
                for limit in self._entry.limits:
                    self._prompt.say(self._view.limits(limit, self._game.family, self._entry.currency))
                self._ask_bets()
            case "message":
                if text := self._prompt.ask(self._words("table.write"), "").strip():
                    request = self._client.requests.say(self._session.session_id, text)
                    self._take_line(self._send(self._client.tables.Say, request).line)
            case "take_over" | "sit":
                self._sit()
            case "top_up":
                self._buy(self._session.purchase_left_minor)
            case "leave":
                self._leave()
            case "history":
                player = self._session.player
                HistoryScreen(self._client, self._prompt, self._keys, self._games, player).browse()
            case "statements":
                self._prompt.page(self._screen.links(self._proof.links))
            case "rules":
                self._prompt.page(self._screen.rules(self._game))
            case action:
                self._decide(Action.Value(action))

    def _sit(self) -> None:
        """Take a seat, or take it over from another device. At boxes the player chooses one of the free ones."""
        box = self._seat.box
        if self._entry.boxes and not box:
            self._prompt.clear()
            self._prompt.say(self._screen.header(self._shown_session(), None))
            self._prompt.say_notes()
            self._prompt.say(self._view.boxes(self._table, 0), self._words("table.which_box"))
            free = [one.box for one in self._table.boxes if not one.nickname]
            choices = {str(number): Choice(str(number), self._words("table.box", box=number)) for number in free}
            choices["leave"] = self._words.choice("leave")
            self._prompt.say(self._view.menu(choices, (), self._game.family, self._entry.currency))
            chosen = self._prompt.pick(choices, default=next(iter(choices)))
            if chosen == "leave":
                raise LeftError
            box = int(chosen)
        nickname = self._session.player[:NICKNAME_MAX]
        request = self._client.requests.join(self._session.session_id, nickname, box)
        try:
            answer = self._send(self._client.tables.Join, request)
        except OutcomeUnknownError:
            raise
        except CallError as error:
            self._prompt.note(line(f"✗ {self._screen.refusal(error)}", "yellow"))
            self._ended = self._ended or "NOT_SEATED"
        else:
            self._ended, self._device_no = "", answer.seat.device_no
            answer.seat.round.CopyFrom(self._seat.round)
            self._seat = answer.seat
        self._refresh(self._session.session_id)

    def _place(self, bets: Mapping[str, int]) -> None:
        round_id = self._table.round_id if self._table.state == pb.TABLE_STATE_BETTING else ""
        request = self._client.requests.place_bets(self._seat, round_id, bets)
        answer = self._send(self._client.tables.PlaceBets, request)
        self._take_session(answer.session)
        self._take_seat(answer.seat)

    def _decide(self, action: Action.ValueType) -> None:
        answer = self._send(self._client.tables.Decide, self._client.requests.decide(self._seat, action))
        self._take_session(answer.session)
        self._take_seat(answer.seat)

    def _leave(self) -> None:
        """Offer to close the session. In a round: to give up the seat, with the bets in play (R-7)."""
        if self._is_replaced:
            raise LeftError
        if self._is_in_round:
            if self._prompt.choose("stand", "back", default="back") == "stand":
                self._send(self._client.tables.Leave, self._client.requests.leave_seat(self._seat))
                raise LeftError
            return
        back = format_money(self._session.balance_minor, self._session.currency)
        match self._prompt.choose("close", "keep", "back", default="back", amount=back):
            case "keep":
                raise LeftError
            case "close":
                if not self._ended:
                    self._send(self._client.tables.Leave, self._client.requests.leave_seat(self._seat))
                self._end()

    # --- what comes ---------------------------------------------------------------------------------------------------

    def _take_news(self, watch: SeatWatch) -> None:
        """Take all that has come. With piped input it waits a moment for it."""
        for news in watch.news(0.0 if self._prompt.is_live else TICK_S):
            if isinstance(news, CallError):
                text = self._words("table.lost_view", error=self._screen.refusal(news))
                self._prompt.note(line(f"✗ {text}", "yellow"))
                continue
            match news.WhichOneof("response"):
                case "table":
                    self._take_table(news.table)
                case "seat":
                    self._take_seat(news.seat)
                case "line":
                    self._take_line(news.line)

    def _take_table(self, table: pb.TableView) -> None:
        is_older = (table.version, table.time.ToNanoseconds()) < (self._table.version, self._table.time.ToNanoseconds())
        if table.table == self._entry.table and not is_older:
            self._table = table
            self._seen_s = (time.monotonic(), self._seen_s[1])
            self._verify_view()

    def _take_seat(self, seat: pb.SeatView) -> None:
        """An answer has no round where it did not change it; a view that was read before an answer is older."""
        known = self._seat
        if seat.ended and seat.ended != "LEFT":
            self._ended = seat.ended
        if seat.ended or seat.seat_version < known.seat_version or seat.device_no < known.device_no:
            return
        before = known.round
        if not seat.HasField("round"):
            seat.round.CopyFrom(before)
        elif (seat.round.round_no, seat.round.round_version) < (before.round_no, before.round_version):
            return
        self._seat = seat

    def _take_line(self, said: pb.ChatLine) -> None:
        """One's own line comes as an answer and by the stream."""
        if said.message_id not in [known.message_id for known in self._chat]:
            self._chat.append(said)

    def _take_session(self, session: SessionView) -> None:
        self._session = session
        self._seen_s = (self._seen_s[0], time.monotonic())

    def _refresh(self, session_id: str) -> None:
        """Read table, seat and session as they are. CallError."""
        request = pb.GetTableRequest(table=self._entry.table, session_id=session_id)
        answer = self._client.call(self._client.tables.GetTable, request)
        self._take_session(answer.session)
        self._take_table(answer.table)
        self._take_seat(answer.seat)

    def _newest_lines(self) -> list[pb.ChatLine]:
        request = pb.ListMessagesRequest(table=self._entry.table, page_size=CHAT_SHOWN)
        return list(self._client.call(self._client.tables.ListMessages, request).lines)

    # --- verifying ----------------------------------------------------------------------------------------------------

    def _verify_view(self) -> None:
        """Verify the statements of the table's newest view, and what it shows."""
        try:
            new = self._proof.take_view(self._table)
        except (VerificationError, FormatError) as error:
            self._break(error)
        except CallError as error:
            self._say_not_verified(error)
        else:
            if new:
                self._say_verified(new)

    def _verify_round(self) -> None:
        """Verify the seat's opening and final when its round has begun or ended, and compare the views with them.

        A view and the links may be of two moments. What differs still when both were read again is shown wrongly.
        """
        reached = (self._seat.round.round_id, self._seat.round.status)
        if reached == self._synced or not self._seat.round.round_id:
            return
        self._synced = reached
        try:
            for left in reversed(range(_SYNC_TRIES)):
                self._refresh(self._session.session_id)
                new = self._proof.follow()
                if new:
                    self._say_verified(new)
                try:
                    self._proof.verify_shown(self._session, self._seat.round)
                except VerificationError:
                    if not left:
                        raise
                else:
                    return
        except (VerificationError, FormatError) as error:
            self._break(error)
        except CallError as error:
            self._say_not_verified(error)

    # --- the screen ---------------------------------------------------------------------------------------------------

    def _draw(self, menu: Mapping[str, Choice]) -> None:
        table, game, currency = self._table, self._game.family, self._entry.currency
        round_ = shown_round(table, self._seat)
        notes = self._prompt.take_notes()
        self._news.extend(notes)
        parts: list[tuple[int, RenderableType]] = [
            (_KEPT, self._screen.header(self._shown_session(), round_)),
            (_KEPT, self._view.clock(table, round_, self._now_ms())),
        ]
        if round_.commitment or round_.hole_cards:
            parts.append((_KEPT, self._screen.cards(round_, game)))
            parts.append((_COMMITMENT, self._view.commitment(round_)))
        if table.boxes:
            parts.append((_KEPT, self._view.boxes(table, self._seat.box)))
        if round_.settlement or round_.status not in {ROUND_STATUS_OPEN, 0}:
            parts.append((_KEPT, self._view.outcome(round_, game, currency)))
        elif round_.bets:
            parts.append((_KEPT, self._screen.bets(round_, game, currency)))
        elif table.state in _BEFORE_RED or self._seat.bets:
            parts.append((_KEPT, self._view.own_bets(self._seat.bets, game, currency)))
        if round_.actions:
            parts.append((_NEWS, self._view.decisions(round_, game, currency)))
        parts += [(_CHAT, part) for part in self._view.chat(self._chat, game)]
        parts += [(_NEWS, part) for part in (self._news if self._prompt.is_live else notes)]
        if self._is_replaced:
            parts.append((_KEPT, line(self._words("table.other_device"), "bold yellow")))
        elif self._ended:
            parts.append((_KEPT, line(self._words.known(f"seat_end.{self._ended}", self._ended), "bold yellow")))
        parts.append((_KEPT, self._view.menu(menu, self._legal(), game, currency)))
        self._prompt.frame(parts)

    def _shown_session(self) -> SessionView:
        """The session with its time running on, under the name of the table."""
        shown = SessionView()
        shown.CopyFrom(self._session)
        shown.game_name = self._view.name(self._entry)
        if self._is_open:
            shown.elapsed_ms += int((time.monotonic() - self._seen_s[1]) * 1000)
        return shown

    def _now_ms(self) -> int:
        """The server's time now, as its last view said."""
        return self._table.time.ToMilliseconds() + int((time.monotonic() - self._seen_s[0]) * 1000)
