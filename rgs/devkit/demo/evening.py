"""An evening at one table of the demo: three rounds, and in each of them something goes wrong.

1. One player does not bet. Another one bets, and then says nothing more; a third one leaves after red. Their bets
   stand, and the timer decides.
2. One player bets and leaves before red: the bets return. Another one goes on from another device, and the first device
   is refused.
3. An admin pauses the table in the middle of the decisions. It is resumed, or two admins make the round void.

All others decide by the demo's strategy. A bet or decision that comes too late for its window is counted; any other
refusal is an error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Final, NamedTuple

from rgs.devkit.client import CallError, Client
from rgs.devkit.demo.floor import Floor
from rgs.devkit.demo.player import DemoError
from rgs.devkit.demo.table_player import TablePlayer
from rgs.v1 import table_pb2 as pb
from rgs.v1.common_pb2 import DECIDED_BY_TIMER, ROUND_STATUS_VOID

ROUNDS: Final = 3
ABSENT, SILENT, LATE_LEAVER, EARLY_LEAVER, TWO_DEVICES = range(5)
"""The players of whom the docstring speaks, by their place in the list."""
PLAYERS_MIN: Final = 5
MALFUNCTION: Final = "DEMO_MALFUNCTION"
_ENDED: Final = frozenset({pb.TABLE_STATE_SETTLING, pb.TABLE_STATE_VOIDING, pb.TABLE_STATE_RESULT})
_IDLE, _BETTING, _DECIDING = pb.TABLE_STATE_IDLE, pb.TABLE_STATE_BETTING, pb.TABLE_STATE_DECIDING


class Admins(NamedTuple):
    """Two admins: it takes both to make a round void."""

    first: Client
    second: Client


@dataclass(eq=False)
class Evening:
    """One table and its players. `is_voided` says whether the third round is made void, instead of being resumed."""

    floor: Floor
    admins: Admins
    table: str
    players: Sequence[TablePlayer]
    _: KW_ONLY
    is_voided: bool
    counts: Counter[str] = field(default_factory=Counter, init=False)
    _round_id: str = field(default="", init=False)

    def play(self, reported: Callable[[], None]) -> None:
        """Play all rounds, then give all seats back. CallError, DemoError."""
        for number in range(ROUNDS):
            playing = self._bet(number)
            self._decide(number, playing)
            self._end(playing)
            reported()
        for player in self.players:
            player.stand_up()

    # --- a round ------------------------------------------------------------------------------------------------------

    def _bet(self, number: int) -> list[TablePlayer]:
        """Have all players bet in the next betting window. Returns those who are in the round."""
        before = self._view.round_id
        self._wait("bets", lambda: self._is(_IDLE) or (self._is(_BETTING) and self._view.round_id != before))
        betting = [player for player in self.players if (number, player.number) != (0, ABSENT)]
        sent = []
        if self._is(_IDLE):  # the first bet opens the window
            sent.append((betting[0], betting.pop(0).bet("", number)))
            self._wait("the betting window", lambda: self._is(_BETTING))
        self._round_id = self._view.round_id
        sent += [(player, player.bet(self._round_id, number)) for player in betting]
        playing = self._in_time(sent)
        if number == 1:
            self._leave_before_red(self.players[EARLY_LEAVER])
            self._change_device(self.players[TWO_DEVICES])
        return [player for player in playing if (number, player.number) != (1, EARLY_LEAVER)]

    def _decide(self, number: int, playing: Sequence[TablePlayer]) -> None:
        """Have each player decide in each window, once the view of the seat shows it."""
        self._wait("the cards", lambda: self._is(_DECIDING) and self._view.round_id == self._round_id)
        if number == 0:
            self._await_turns(playing)
            self._leave_after_red(self.players[LATE_LEAVER])
        if number == 2:
            self._interrupt()
        deciding = [player for player in playing if (number, player.number) not in {(0, SILENT), (0, LATE_LEAVER)}]
        while self._is_running:
            window = self._view.version
            if self._is(_DECIDING):
                self._await_turns(deciding)
                phase = self._view.phase
                turns = [player for player in deciding if player.may_decide(self._round_id, phase)]
                self._in_time([(player, player.decide()) for player in turns])
            self._wait("the next step", lambda: self._view.version != window)  # noqa: B023 - called at once

    def _await_turns(self, players: Sequence[TablePlayer]) -> None:
        """Wait until the views of all seats show the table's window, or it is over."""
        window, phase = self._view.version, self._view.phase

        def is_so() -> bool:
            return self._view.version != window or all(
                player.may_decide(self._round_id, phase) is not None for player in players
            )

        self._wait("the views of all seats", is_so)

    def _end(self, playing: Sequence[TablePlayer]) -> None:
        """Wait for the end of every seat, and compare what all of them show."""
        self._wait("the end of all seats", lambda: all(self._round_id in player.ended for player in playing))
        rounds = [player.ended[self._round_id] for player in playing]
        if len({(one.commitment, *one.board, *one.dealer_cards) for one in rounds}) != 1:
            raise DemoError(f"{self.table}: the seats of round {self._round_id} show different cards")
        self.counts["rounds"] += 1
        self.counts["seats"] += len(rounds)
        self.counts["void"] += rounds[0].status == ROUND_STATUS_VOID
        self.counts["automatic"] += sum(action.by == DECIDED_BY_TIMER for one in rounds for action in one.actions)

    def _in_time(self, sent: Iterable[tuple[TablePlayer, Future[Any]]]) -> list[TablePlayer]:
        """The players whose bets or decisions came within the window; the others are counted."""
        answered = [(player, player.is_in_time(answer)) for player, answer in sent]
        self.counts["late"] += sum(not is_in_time for _, is_in_time in answered)
        return [player for player, is_in_time in answered if is_in_time]

    # --- what goes wrong ----------------------------------------------------------------------------------------------

    def _leave_before_red(self, player: TablePlayer) -> None:
        """R-7 (leaving): before red the bets are returned. The player comes back for the next round."""
        player.stand_up()
        session = player.sessions[-1]
        session.expect(not session.view.reserved_minor, "left before red, and its bets were not returned")
        self.counts["left before red"] += 1
        player.join()

    def _leave_after_red(self, player: TablePlayer) -> None:
        """R-7 (leaving): after red the bets stand. The player comes back for the next round."""
        player.stand_up()
        self.counts["left after red"] += 1
        player.join()

    def _change_device(self, player: TablePlayer) -> None:
        """T-3 (devices): the second device takes the seat over, the first one is refused."""
        first = player.client.requests.place_bets(player.seat, self._round_id, {})
        player.join()
        try:
            self.floor.stream.ask(first)
        except CallError as error:
            if error.reason != "DEVICE_REPLACED":
                raise
            self.counts["devices replaced"] += 1
        else:
            raise DemoError(f"{self.table}: a device that was replaced could take back the bets")

    def _interrupt(self) -> None:
        """R-6 (malfunction): every clock stands. Then there is a whole new window, or two admins void the round."""
        first = self.admins.first
        first.call(
            first.table_admin.PauseTable,
            pb.PauseTableRequest(request_id=first.request_id(), table=self.table, malfunction_code=MALFUNCTION),
        )
        self._wait("the pause", lambda: self._is(pb.TABLE_STATE_PAUSED))
        self.counts["pauses"] += 1
        if not self.is_voided:
            resume = pb.ResumeTableRequest(request_id=first.request_id(), table=self.table, reason="DEMO_REPAIRED")
            first.call(first.table_admin.ResumeTable, resume)
            self._wait("the end of the pause", lambda: not self._is(pb.TABLE_STATE_PAUSED))
            return
        for admin in self.admins:
            order = pb.VoidTableRoundRequest(
                request_id=admin.request_id(), table=self.table, round_id=self._round_id, reason="DEMO_VOID"
            )
            is_void = admin.call(admin.table_admin.VoidTableRound, order).approved
            if is_void == (admin is first):
                raise DemoError(f"{self.table}: one admin alone made a round void, or two could not")

    # --- views --------------------------------------------------------------------------------------------------------

    @property
    def _view(self) -> pb.TableView:
        return self.floor.tables.get(self.table, pb.TableView())

    def _is(self, state: pb.TableState.ValueType) -> bool:
        return self._view.state == state

    @property
    def _is_running(self) -> bool:
        """Whether the round has not ended yet."""
        return self._view.round_id == self._round_id and self._view.state not in _ENDED

    def _wait(self, what: str, is_so: Callable[[], bool]) -> None:
        self.floor.wait_for(f"{self.table}: {what}", is_so)
