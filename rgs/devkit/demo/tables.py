"""The tables of the demo: an admin sets them up, players fill them, and an evening is played at each.

At one all players share one hand; at the other all seven boxes are taken. Both are shipped configurations with short
timers. One Watch stream carries all players of a table, as an operator's bridge would.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Final, Self

from rgs.core.statements import parse_envelope, parse_line, parse_statement
from rgs.devkit.client import Client
from rgs.devkit.demo.evening import Admins, Evening
from rgs.devkit.demo.floor import Floor
from rgs.devkit.demo.player import DemoError, PlayedSession
from rgs.devkit.demo.table_player import TablePlayer
from rgs.devkit.shipped_tables import SHIPPED_TABLES, set_up, shipped_table

ONE_HAND, SEVEN_BOXES = SHIPPED_TABLES[:2]
BOXES: Final = 7
PLAYERS: Final = 100
PLAYERS_MAX: Final = 1_000
ADMIN: Final = "demo-admin"
SECOND_ADMIN: Final = "demo-admin-2"
TIMERS_MS: Final = {"betting_ms": 2_500, "amber_ms": 500, "decision_ms": 1_200, "result_ms": 1_000}
_AT_ONCE: Final = 24
"""Players who sit down or leave at the same time."""
_SHARED: Final = frozenset({"table_round", "table_deal", "table_final"})


def with_timers(text: str, timers_ms: Mapping[str, int]) -> str:
    """The configuration with other timers. DemoError if it does not have one of them."""
    for name, value in timers_ms.items():
        text, found = re.subn(rf"^{name} = \d+$", f"{name} = {value}", text, flags=re.MULTILINE)
        if found != 1:
            raise DemoError(f"the configuration has {found} rows {name}, expected is one")
    return text


class Tables:
    """Both tables with their players. `count` players share the hand."""

    def __init__(self, client: Client, admins: Admins, count: int, verify_running: Callable[[], None]) -> None:
        self._admins = admins
        self._running = ThreadPoolExecutor(2, thread_name_prefix="table")
        self._played: list[Future[None]] = []
        self.evenings: list[Evening] = []
        self.players: list[TablePlayer] = []
        for table, players, is_voided in ((ONE_HAND, count, False), (SEVEN_BOXES, BOXES, True)):
            limits, floor = self._set_up(table), Floor(client, verify_running)
            floor.stream.watch_table(table)
            sitting = [
                TablePlayer(
                    client,
                    table,
                    f"player-{table}-{number + 1}",
                    by_stream=True,
                    on_silence=verify_running,
                    table=table,
                    floor=floor,
                    number=number,
                    limits=limits,
                )
                for number in range(players)
            ]
            self.players += sitting
            self.evenings.append(Evening(floor, admins, table, sitting, is_voided=is_voided))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for evening in self.evenings:
            evening.floor.close()
        self._running.shutdown(wait=False, cancel_futures=True)

    # --- an evening ---------------------------------------------------------------------------------------------------

    def sit_down(self, reported: Callable[[], None]) -> None:
        """Have all players open, buy and take their seats. CallError, DemoError."""
        self._all(TablePlayer.sit_down, reported)

    def begin(self) -> None:
        """Play at both tables at once, beside everything else."""
        self._played = [self._running.submit(evening.play, lambda: None) for evening in self.evenings]

    def finish(self) -> None:
        """Wait until the last round has ended, and read what was signed in each session. CallError, DemoError."""
        for played in self._played:
            played.result()
        self._all(TablePlayer.collect)

    def leave(self) -> None:
        """Have all players close their sessions."""
        self._all(TablePlayer.leave)

    def counts(self) -> Counter[str]:
        """What happened at both tables."""
        return sum((evening.counts for evening in self.evenings), Counter[str]())

    @property
    def sessions(self) -> list[PlayedSession]:
        return [session for player in self.players for session in player.sessions]

    @property
    def shared(self) -> set[bytes]:
        """The statements that the seats of a round share, as they came with the tables' views."""
        return {envelope for evening in self.evenings for envelope in evening.floor.shared}

    def _all(self, do: Callable[[TablePlayer], object], reported: Callable[[], None] = lambda: None) -> None:
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="seat") as pool:
            for _ in pool.map(do, self.players):
                reported()

    def _set_up(self, table: str) -> dict[str, int]:
        """Have an admin configure the table. Returns the least stake of each bet."""
        config = with_timers(shipped_table(table), TIMERS_MS)
        (entry,) = set_up(self._admins.first, [config], "DEMO_SET_UP")
        return {limit.bet: limit.min_minor for limit in entry.limits}


def verify_shared(path: Path, shared: set[bytes]) -> int:
    """The export has exactly the statements that came with the tables' views. Returns their number. DemoError."""
    exported: set[bytes] = set()
    with path.open("rb") as file:
        for line in file:
            envelope = parse_line(line.removesuffix(b"\n")).envelope
            kind, _ = parse_statement(parse_envelope(envelope))
            if kind.name in _SHARED:
                exported.add(envelope)
    if exported != shared:
        raise DemoError(f"{len(exported)} statements of tables are exported, {len(shared)} came with the views")
    return len(exported)
