"""Brings the statements of a table's round together: rules, deal, seats, cards. Returns and battery read them so.

Statements stand in the order of a log or export. A round is whole when its `table_final` and the finals of its opened
seats have come. Nothing is verified here: `certify replay` does that. Memory grows with open rounds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from certification.overlap import SeenRounds
from rgs.core.returns.figures import Pair
from rgs.core.tables.joined import joined_final, joined_opening

Body = Mapping[str, Any]
KINDS_OF_TABLES: Final = frozenset({"table_round", "table_deal", "seat_opening", "table_final", "seat_final"})
"""The kinds that `TableRounds.take` reads."""


@dataclass(slots=True)
class TableDeal:
    """A dealt round of a table. Seats are in the form of solo play."""

    name: str
    """Hash of the `table_deal`."""
    table_round: Body
    body: Body
    is_again: bool
    """Its deal came before, in a file with other seats of it."""
    final: Body | None = None
    openings: dict[str, Body] = field(default_factory=dict)
    """Seats without their final, by the hash of the opening."""
    seats: list[Pair] = field(default_factory=list)

    @property
    def has_ended(self) -> bool:
        """Whether the cards and all finals are there."""
        return self.final is not None and not self.openings


class TableRounds:
    """The rounds of tables that are open, and why seats could not be read."""

    def __init__(self, seen: SeenRounds, unread: Counter[str]) -> None:
        self._seen = seen
        self._unread = unread
        self._rounds: dict[str, Body] = {}
        self._deals: dict[str, TableDeal] = {}
        self._of_opening: dict[str, TableDeal] = {}

    def take(self, kind: str, name: str, body: Body) -> TableDeal | None:
        """Take a statement of KINDS_OF_TABLES by its hash; return the round that it begins or goes on with."""
        if kind == "table_round":
            self._rounds[name] = body
        elif kind == "table_deal":
            return self._deal(name, body)
        elif kind == "seat_opening":
            self._open(name, body)
        elif kind == "seat_final":
            return self._end(body)
        else:
            self._rounds.pop(body["table_round"], None)
            deal = self._deals.get(body.get("deal", ""))
            if deal is not None and deal.final is None:
                deal.final = body
                return self._ended(deal)
        return None

    def _deal(self, name: str, body: Body) -> TableDeal | None:
        table_round = self._rounds.get(body["deal"]["table_round"])
        if name in self._deals or table_round is None:
            return None
        is_again = self._seen.is_deal_again(name, body["deal"])
        self._deals[name] = TableDeal(name, table_round, body, is_again)
        return self._deals[name]

    def _open(self, name: str, body: Body) -> None:
        deal = self._deals.get(body["deal"])
        if deal is None or name in self._of_opening:
            return
        if not self._seen.is_seat_again(name, deal.body["deal"], int(body["seat"]["seat_no"])):
            deal.openings[name] = joined_opening(deal.table_round, deal.body, body)
            self._of_opening[name] = deal

    def _end(self, body: Body) -> TableDeal | None:
        deal = self._of_opening.pop(body["opening"], None)
        if deal is None:
            self._unread[self._seen.why_unopened(body["opening"])] += 1
            return None
        opening = deal.openings.pop(body["opening"])
        if deal.final is None:
            self._unread["seats without the table_final of their round"] += 1
            return None
        deal.seats.append((opening, joined_final(deal.final, body)))
        return self._ended(deal)

    def _ended(self, deal: TableDeal) -> TableDeal:
        if deal.has_ended:
            self._deals.pop(deal.name, None)
        return deal
