"""Rounds of one table by two instances, each way that a round can end: what the tests of the offline tools share."""

from __future__ import annotations

from dataclasses import dataclass

from tests.support.records.factory import Lie, RecordFactory
from tests.support.records.parts import SessionRecord, Worker
from tests.support.records.tables import TableRecord

STAKES = {"ante": 100, "trips": 20}
SETTLED, VOIDS = 2, 3
"""Rounds of a day: settled; and void, before the draw, with the deck shown, with the deck never shown."""


@dataclass
class TableDay:
    """A factory after a day at one table."""

    factory: RecordFactory
    table: TableRecord
    players: list[SessionRecord]
    workers: tuple[Worker, Worker]

    @property
    def stakes(self) -> list[tuple[SessionRecord, dict[str, int]]]:
        return [(player, STAKES) for player in self.players]

    def end(self) -> None:
        """Every session and instance ends: the files are whole."""
        for player in self.players:
            self.factory.end_participation(self.workers[1], player)
            self.factory.close(self.workers[1], player)
        for worker in self.workers:
            self.factory.end(worker)


def seated(ruleset: str = "uth-online", players: int = 3, *, seed: str = "table", lie: Lie | None = None) -> TableDay:
    """Players at a table who have bought, before the first round."""
    factory = RecordFactory(seed, lie=lie, law_version=2)
    workers = factory.start("rgs-1"), factory.start("rgs-2", "node-2")
    table = TableRecord(factory, "table-1", ruleset)
    seats = [factory.open(workers[0], ruleset, table="table-1") for _ in range(players)]
    for player in seats:
        factory.buy(workers[0], player, 50_000)
    return TableDay(factory, table, seats, workers)


def table_day(ruleset: str = "uth-online", *, seed: str = "table", has_ended: bool = True) -> TableDay:
    """Two settled rounds, then one void of each sort."""
    day = seated(ruleset, seed=seed)
    table, (one, other) = day.table, day.workers
    table.play(one, day.stakes, {"preflop": {1: "play_4x"}, "flop": {2: "play_2x"}})
    table.play(other, day.stakes, {"preflop": {1: "check"}, "river": {2: "play_1x"}})
    table.fix(one, day.stakes)
    table.make_void(other)
    for reason in ("MALFUNCTION", "DECK_UNRECOVERABLE"):
        table.fix(one, day.stakes)
        table.deal(one)
        table.open_seats(other)
        table.window("preflop", {})
        table.make_void(other, reason)
        table.end_seats(one)
    if has_ended:
        day.end()
    return day
