"""Tables over a `ServiceHarness`: an admin sets them up, players sit down, and the test lets time pass.

`Evening` is one table with its players. It moves the clock to what is due next, and looks as the dealer does.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from rgs.core.games.types import Action
from rgs.core.tables.config import TableConfig, load_table_config, parse_table_config
from rgs.core.tables.machine import State
from rgs.core.tables.rows import TableRow
from rgs.core.tables.views import TableView
from rgs.service.callers import Caller, Role
from rgs.service.game_catalog import GameCatalog
from rgs.service.play.requests import BuyParticipation, CloseSession, EndParticipation, OpenSession
from rgs.service.tables.requests import Decide, Join, Leave, PlaceBets
from tests.support.service.harness import (
    OPERATOR,
    ServiceHarness,
    new_reference,
    plain_table_encode,
    read_reply,
)

ALWAYS = {
    "zone": "Europe/Rome",
    "spans": [{"days": ["mon", "tue", "wed", "thu", "fri", "sat", "sun"], "opens": "00:00", "closes": "24:00"}],
}
"""Hours of a table that is always open."""
ADMIN = Caller("admin-1", Role.ADMIN, "")
SECOND_ADMIN = Caller("admin-2", Role.ADMIN, "")


def config_text(table_id: str, **rows: object) -> str:
    """The shipped configuration with other values; `operators` are the tests' unless they are given."""
    config = load_shipped(table_id)
    document = json.loads(config.canonical)
    return toml_of({**document, "operators": [OPERATOR.party], **rows})


def load_shipped(table_id: str) -> TableConfig:
    """A shipped configuration."""
    games = GameCatalog()
    return load_table_config(table_id, rulesets=games.rulesets, jurisdictions=games.jurisdictions)


def toml_of(document: dict[str, Any]) -> str:
    """A TOML document of plain values, tables of values and lists of tables."""
    plain = [f"{name} = {json.dumps(value)}" for name, value in document.items() if not isinstance(value, dict)]
    tables: list[str] = []
    for name, value in document.items():
        if isinstance(value, dict):
            tables += _toml_table(name, value)
    return "\n".join([*plain, *tables]) + "\n"


def _toml_table(path: str, rows: dict[str, Any]) -> Iterable[str]:
    yield f"[{path}]"
    for name, value in rows.items():
        if not isinstance(value, dict) and not (isinstance(value, list) and value and isinstance(value[0], dict)):
            yield f"{name} = {json.dumps(value)}"
    for name, value in rows.items():
        if isinstance(value, dict):
            yield from _toml_table(f"{path}.{name}", value)
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            for row in value:
                yield f"[[{path}.{name}]]"
                yield from (f"{key} = {json.dumps(one)}" for key, one in row.items())


class Sitter:
    """A player's client at a table: it knows the last answer."""

    def __init__(self, evening: Evening, name: str, caller: Caller = OPERATOR) -> None:
        self.evening, self.name, self.caller = evening, name, caller
        self.session_id = ""
        self.seat: dict[str, Any] = {}
        self.session: dict[str, Any] = {}

    async def open(self, bought_minor: int = 100_000) -> None:
        """Open a session at the table, and buy."""
        harness, evening = self.evening.harness, self.evening
        opening = OpenSession(
            harness.request_id(), evening.config.ruleset_id, self.name, "EUR", new_reference(), table=evening.config.id
        )
        answer = read_reply(await harness.send(opening, self.caller))
        self.session_id = answer["session"]["session_id"]
        if bought_minor:
            await self.buy(bought_minor)

    async def buy(self, amount_minor: int, purchase_no: int = 1) -> None:
        harness = self.evening.harness
        await harness.send(
            BuyParticipation(harness.request_id(), self.session_id, purchase_no, amount_minor), self.caller
        )

    async def sit(self, box: int = 0, bought_minor: int = 100_000) -> Sitter:
        """Open, buy and join."""
        await self.open(bought_minor)
        await self.join(box)
        return self

    async def join(self, box: int = 0) -> None:
        await self._send("join", self.joining(box, self.name[:20]))

    def joining(self, box: int, nickname: str) -> Join:
        """The request to sit down."""
        return Join(self._id(), self.session_id, box, nickname)

    async def leave(self) -> None:
        await self._send("leave", Leave(self._id(), self.session_id, self.seat["device_no"]))

    async def bet(self, round_id: str = "", **bets: int) -> None:
        """State the whole bet."""
        request = PlaceBets(
            self._id(), self.session_id, self.seat["device_no"], round_id, self.seat["seat_version"], bets
        )
        await self._send("place_bets", request)

    async def decide(self, action: str) -> None:
        """Decide in the table's phase, from the view that the player has now."""
        await self.look()
        round_ = self.seat["round"]
        request = Decide(
            self._id(),
            self.session_id,
            self.seat["device_no"],
            round_["round_id"],
            round_["round_version"],
            Action(action),
        )
        await self._send("decide", request)
        await self.evening.harness.tables.dealer.stop()  # the look that follows, at the end of the window perhaps

    async def look(self) -> None:
        """Read the seat as it is."""
        session, seat = await self.evening.harness.tables.views.seat(self.caller, self.session_id)
        self._take(json.loads(plain_table_encode("GetTable", session, seat)))

    async def end(self) -> None:
        """End the participation and close the session."""
        harness = self.evening.harness
        await harness.send(EndParticipation(harness.request_id(), self.session_id), self.caller)
        await harness.send(CloseSession(harness.request_id(), self.session_id), self.caller)

    @property
    def legal(self) -> list[str]:
        """The actions that the player may take now."""
        return [action for action, _, available in self.seat["round"]["legal_actions"] if available]

    def _id(self) -> str:
        return self.evening.harness.request_id()

    async def _send(self, method: str, request: object) -> None:
        seats = self.evening.harness.tables.seats
        self._take(read_reply(await getattr(seats, method)(self.caller, request)))

    def _take(self, document: dict[str, Any]) -> None:
        self.seat, self.session = document["seat"], document["session"]


class Evening:
    """One table of a harness, from its configuration on."""

    def __init__(self, harness: ServiceHarness, table_id: str, **rows: object) -> None:
        self.harness = harness
        self.text = config_text(table_id, **rows)
        games = harness.books
        self.config = parse_table_config(self.text, rulesets=games.rulesets, jurisdictions=games.jurisdictions)

    async def open(self) -> Evening:
        """Set the table up; it is open by its hours."""
        await self.harness.let_in(ADMIN.party, SECOND_ADMIN.party)
        await self.harness.tables.admin.configure(ADMIN, self.harness.request_id(), self.text, "NEW_TABLE")
        await self.look()
        return self

    async def seated(self, *names: str, caller: Caller = OPERATOR) -> list[Sitter]:
        """Players who have bought and sit."""
        return [await Sitter(self, name, caller).sit() for name in names]

    async def row(self) -> TableRow:
        found = await self.harness.store.table(self.config.id)
        assert found is not None
        return found[0]

    async def state(self) -> State:
        return (await self.row()).table.state

    async def view(self, caller: Caller = OPERATOR) -> TableView:
        return await self.harness.tables.views.table(caller, self.config.id)

    async def look(self) -> None:
        """Let the dealer look at the table, and take what is due."""
        await self.harness.tables.dealer.advance(self.config.id)

    async def pass_time(self) -> None:
        """Let time pass until the table is due, and look."""
        due_ms = (await self.row()).due_ms
        self.harness.clock.time_ms = max(due_ms, self.harness.clock.time_ms)
        await self.look()

    async def until(self, *states: State, most: int = 12) -> State:
        """Let time pass until the table stands in one of these states."""
        for _ in range(most + 1):
            state = await self.state()
            if state in states:
                return state
            await self.pass_time()
        raise AssertionError(f"the table stands at {await self.state()}, not at {', '.join(states)}")
