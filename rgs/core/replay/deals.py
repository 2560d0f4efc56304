"""Rounds across their seats: one deal core and one draw for all of them, each seat opened once, and the count of
verified rounds.

A round is kept while one of its seats is open or outstanding. Of the others only the id stays (16 bytes), so that no id
is used twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from rgs.core.errors import VerificationError
from rgs.core.replay.checks import DEAL, TABLE_DEAL
from rgs.core.replay.identifiers import IdSet
from rgs.core.replay.reading import Statement
from rgs.core.replay.seats import OpenSeat
from rgs.core.tlog.merkle import root_of


@dataclass(slots=True)
class Deal:
    """One round being read. `unanswered` counts the opened seats whose final is still to come."""

    core: bytes
    draw: tuple[str, str]
    seats: int
    seats_root: str
    leaves: dict[int, bytes] = field(default_factory=dict)
    unanswered: int = 0
    is_left_open: bool = False


class Deals:
    """All rounds of a replay. A round is a deal, voids included."""

    def __init__(self) -> None:
        self.verified = 0
        self.left_open = 0
        """Rounds that end outside a cut export: neither verified nor failed."""
        self.failed: set[str] = set()
        """Ids of the rounds that a failed check named."""
        self.games: Counter[str] = Counter()
        self._deals: dict[str, Deal] = {}
        self._at_tables: set[str] = set()
        """Ids of the rounds that tables have dealt and not ended; their seats are kept by `Tables`."""
        self._ids = IdSet()

    def fail(self, round_id: str) -> None:
        """A check of this round failed: it no longer counts as verified."""
        if round_id not in self.failed:
            self.failed.add(round_id)
            if round_id not in self._deals and round_id not in self._at_tables and round_id in self._ids:
                self.verified -= 1

    def begin(self, statement: Statement, family: str) -> None:
        """A table has dealt a round; check 25: its id is new."""
        round_id = statement.round_id
        self.games[family] += 1
        is_new = self._ids.add(round_id)
        if not is_new:
            self.fail(round_id)  # before this one is open: the round that had the id counts no longer
        self._at_tables.add(round_id)
        if not is_new:
            raise statement.failure(TABLE_DEAL, "the round id was used before")

    def end(self, round_id: str, *, is_left_open: bool) -> None:
        """Count the round of a table, once: its seats have ended, or it ends outside a cut export."""
        if round_id in self._at_tables:
            self._at_tables.remove(round_id)
            self._count(round_id, is_left_open=is_left_open)

    def brings_draw(self, statement: Statement) -> bool:
        """Whether no earlier seat of the round has named this draw."""
        deal = statement.body["deal"]
        known = self._deals.get(deal["round_id"])
        return known is None or known.draw != (deal["instance"], deal["draw_no"])

    def join(self, statement: Statement, seat: OpenSeat) -> None:
        """Check 9 across seats: the opening is added to its round; the last seat proves the whole root."""
        body = statement.body
        known = self._deals.get(seat.round_id)
        is_new = True
        if known is None:
            draw = (body["deal"]["instance"], body["deal"]["draw_no"])
            known = Deal(seat.deal_core, draw, seat.seats, body["deal"]["seats_root"])
            is_new = self._ids.add(seat.round_id)
            if not is_new:
                self.fail(seat.round_id)  # before this one is open: the round that had the id counts no longer
            self._deals[seat.round_id] = known
            self.games[seat.ruleset.family if seat.ruleset else "unknown"] += 1
        known.unanswered += 1
        if not is_new:
            raise statement.failure(DEAL, "the round id was used before")
        if known.core != seat.deal_core:
            raise statement.failure(DEAL, "the deal core differs from that of the round's other seats")
        if seat.seat_no in known.leaves:
            raise statement.failure(DEAL, f"seat {seat.seat_no} of the round was opened before")
        known.leaves[seat.seat_no] = seat.leaf
        if known.seats == len(known.leaves) > 1:
            root = root_of([known.leaves[seat_no] for seat_no in sorted(known.leaves)])
            if root.hex() != known.seats_root:
                raise statement.failure(DEAL, "the seats of the round do not have the deal's seats_root")

    def answer(self, round_id: str) -> None:
        """A final was read for a seat of the round, right or wrong; with the last one the round is counted."""
        deal = self._deals[round_id]
        deal.unanswered -= 1
        if not deal.unanswered and len(deal.leaves) >= deal.seats:
            self._close(round_id)

    def leave_open(self, round_id: str) -> None:
        """The final of a seat of the round lies outside a cut export."""
        self._deals[round_id].is_left_open = True

    def state(self) -> dict[str, Any]:
        """What `restore` needs, for JSON. No round is left open before `finish`, unless a scope cuts the files."""
        return {
            "at_tables": sorted(self._at_tables),
            "deals": {round_id: _state_of(deal) for round_id, deal in self._deals.items()},
            "failed": sorted(self.failed),
            "games": self.games,
            "ids": self._ids.state(),
            "verified": self.verified,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state`."""
        self._at_tables = set(state["at_tables"])
        self._deals = {round_id: _deal_of(row) for round_id, row in state["deals"].items()}
        self.failed = set(state["failed"])
        self.games = Counter(state["games"])
        self._ids.restore(state["ids"])
        self.verified = state["verified"]

    def _close(self, round_id: str) -> None:
        self._count(round_id, is_left_open=self._deals.pop(round_id).is_left_open)

    def _count(self, round_id: str, *, is_left_open: bool) -> None:
        if round_id not in self.failed:
            self.left_open += is_left_open
            self.verified += not is_left_open

    def finish(self, *, is_whole: bool, goes_on: bool = False) -> Iterator[VerificationError]:
        """Count the remaining rounds. In whole files every seat of a deal is opened. In a log that goes on a seat may
        come later, but not after the others are settled: the openings of a round are one commit.
        """
        for round_id, deal in list(self._deals.items()):
            if is_whole or (goes_on and not deal.unanswered):
                self.fail(round_id)
                yield DEAL.failure(f"{deal.seats} seats were dealt, {len(deal.leaves)} opened", round_id=round_id)
            self._close(round_id)


def _state_of(deal: Deal) -> dict[str, Any]:
    leaves = {str(seat_no): leaf.hex() for seat_no, leaf in deal.leaves.items()}
    return {**asdict(deal), "core": deal.core.decode("ascii"), "leaves": leaves}


def _deal_of(state: Mapping[str, Any]) -> Deal:
    instance, draw_no = state["draw"]
    leaves = {int(seat_no): bytes.fromhex(leaf) for seat_no, leaf in state["leaves"].items()}
    return Deal(**{**state, "core": state["core"].encode("ascii"), "draw": (instance, draw_no), "leaves": leaves})
