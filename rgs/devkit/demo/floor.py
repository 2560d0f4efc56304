"""A table of the demo as an operator's bridge sees it: one Watch stream for the table and all its players.

It keeps the newest views of table and seats, each ended round of a seat, and the statements that the seats of a round
share. `wait_for` waits until the views show something.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

from rgs.devkit.client import Client
from rgs.devkit.demo.player import DemoError
from rgs.devkit.table_stream import TableStream
from rgs.v1 import table_pb2 as pb
from rgs.v1.common_pb2 import ROUND_STATUS_OPEN, RoundView

PATIENCE_S: Final = 60.0
"""How long the demo waits for a table to move on."""
_LOOK_S: Final = 0.5


class Floor:
    """Everything that is watched. `verify_running` raises if a process of the demo has ended."""

    def __init__(self, client: Client, verify_running: Callable[[], None]) -> None:
        self._verify_running = verify_running
        self._changed = threading.Condition()
        self.tables: dict[str, pb.TableView] = {}
        self.seats: dict[str, pb.SeatView] = {}
        """By session."""
        self.rounds: dict[str, dict[str, RoundView]] = {}
        """The ended rounds of each session, by round."""
        self.shared: set[bytes] = set()
        """Envelopes of `table_round`, `table_deal` and `table_final`."""
        self.stream = TableStream(client, table=self._take_table, seat=self._take_seat)

    def close(self) -> None:
        """End the stream."""
        self.stream.close()

    def wait_for(self, what: str, is_so: Callable[[], Any], patience_s: float = PATIENCE_S) -> None:
        """Wait until it is so. DemoError, naming what was waited for, if it takes too long or the stream has ended."""
        waited_s = 0.0
        with self._changed:
            while not is_so():
                if not self._changed.wait(_LOOK_S):
                    waited_s += _LOOK_S
                    self._verify_running()
                    if self.stream.failure is not None:
                        raise DemoError(f"tables: {what} is not seen: {self.stream.failure}")
                    if waited_s > patience_s:
                        raise DemoError(f"tables: {what} is not seen within {patience_s:.0f} s")

    def take_answer(self, seat: pb.SeatView) -> None:
        """Keep the seat of an answer, unless a newer view of it has come already."""
        with self._changed:
            known = self.seats.get(seat.session_id)
            is_older = known is not None and (seat.device_no, seat.seat_version) < (known.device_no, known.seat_version)
            if known is None or known.ended or not is_older:
                self._keep(seat)

    def _take_seat(self, seat: pb.SeatView) -> None:
        """A view on the stream is never older than what came before it."""
        with self._changed:
            self._keep(seat)

    def _keep(self, seat: pb.SeatView) -> None:
        """An answer has no round where it changed none: the one that is known stays."""
        if not seat.HasField("round") and seat.session_id in self.seats:
            seat.round.CopyFrom(self.seats[seat.session_id].round)
        self.seats[seat.session_id] = seat
        if seat.round.round_id and seat.round.status != ROUND_STATUS_OPEN:
            self.rounds.setdefault(seat.session_id, {})[seat.round.round_id] = seat.round
        self._changed.notify_all()

    def _take_table(self, table: pb.TableView) -> None:
        with self._changed:
            known = self.tables.get(table.table)
            if known is None or table.version >= known.version:
                self.tables[table.table] = table
            self.shared |= {one for one in (table.table_round, table.table_deal, table.table_final) if one}
            self._changed.notify_all()
