"""The lobby: the games for one player, and the tables, as they are now. The person picks one by its number.

Where no table is set up, and the home has the key of the development admin, the lobby offers to set up the tables that
the project ships. A home for real money has no such key.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final

from rich.text import Text

from rgs.devkit.client import Client
from rgs.devkit.terminal.i18n import Choice
from rgs.devkit.terminal.prompt import Prompt
from rgs.devkit.terminal.screen import line
from rgs.devkit.terminal.table_screen import TableScreen
from rgs.v1 import table_pb2 as pb
from rgs.v1.catalog_pb2 import Game

ROWS: Final = 9
"""Games and tables on each page: a digit is the key of each."""
_PAGE: Final = 200
_LOOKS, _LOOK_S = 20, 0.2

Chosen = Game | pb.TableEntry


class Lobby:
    """`games`: the catalog by ruleset id. `set_up` has the shipped tables set up; None if nobody here may do that."""

    def __init__(
        self, client: Client, prompt: Prompt, games: Mapping[str, Game], set_up: Callable[[], None] | None = None
    ) -> None:
        self._client = client
        self._prompt = prompt
        self._games = games
        self._set_up = set_up
        self._view = TableScreen(prompt.screen)

    def tables(self) -> dict[str, pb.TableEntry]:
        """The tables at which the operator's players may play, by id. CallError."""
        pages = self._client.pages(self._client.tables.ListTables, pb.ListTablesRequest(page_size=_PAGE))
        return {entry.table: entry for page in pages for entry in page.tables}

    def choose(self) -> Chosen:
        """Show games and tables until one is chosen. CallError, InputEndedError."""
        first = 0
        while True:
            solo = [game for game in self._games.values() if not game.table_only]
            tables = self.tables()
            entries: list[Chosen] = [*solo, *tables.values()]
            shown = entries[first : first + ROWS]
            self._prompt.clear()
            self._show(shown)
            rows = {str(number): Choice(str(number), "") for number in range(1, len(shown) + 1)}
            if not tables:
                self._prompt.say("", line(self._prompt.words("lobby.no_tables"), "dim"))
            may_set_up = not tables and self._set_up is not None
            names = (
                ["set_up"] * may_set_up
                + ["more"] * (first + ROWS < len(entries))
                + ["first"] * bool(first)
                + ["refresh"]
            )
            others = {name: self._prompt.words.choice(name) for name in names}
            self._prompt.say("", *map(str, others.values()))
            match self._prompt.pick({**rows, **others}, default="1"):
                case "more":
                    first += ROWS
                case "first":
                    first = 0
                case "refresh":
                    pass
                case "set_up" if self._set_up is not None:
                    self._set_up()
                    self._await_opening()
                case number:
                    return shown[int(number) - 1]

    def _await_opening(self) -> None:
        """A new table opens by its hours when the dealer has looked at it: within a second or two."""
        for _ in range(_LOOKS):
            if any(entry.state != pb.TABLE_STATE_SHUT for entry in self.tables().values()):
                return
            time.sleep(_LOOK_S)

    def _show(self, shown: list[Chosen]) -> None:
        words, heading = self._prompt.words, ""
        for number, one in enumerate(shown, 1):
            is_table = isinstance(one, pb.TableEntry)
            above = words("lobby.tables") if is_table else words("lobby.solo")
            if above != heading:
                self._prompt.say(*([""] if heading else []), line(above, "dim"))
                heading = above
            if isinstance(one, pb.TableEntry):
                self._prompt.say(line(f"[{number}] {self._view.name(one)} ({one.table})"))
                self._prompt.say(*self._view.entry(one, self._games.get(one.game)))
            else:
                self._prompt.say(Text(f"  [{number}] {one.name} ({one.ruleset.id})"))
