"""Open bets of a page that has gone are taken back: each seat is tried, and what failed is tried again."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("aiohttp", reason="aiohttp not installed: run `make web-test`")

from examples.operator import start
from rgs.v1 import table_pb2
from tests.web.whole import until

sys.path.append(str(start.HERE))
from operator_platform import bridge as bridge_module  # type: ignore[import-not-found]
from operator_platform.bridge import Bridge  # type: ignore[import-not-found]
from operator_platform.commands import Commands  # type: ignore[import-not-found]
from operator_platform.connections import Hub  # type: ignore[import-not-found]
from operator_platform.errors import PlatformError  # type: ignore[import-not-found]
from operator_platform.store.play import Seat  # type: ignore[import-not-found]

PLAYER = 7


class TakingBack:
    """Commands that fail so often before they take back."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.tried: list[str] = []

    async def take_back(self, account_id: int, name: str) -> None:
        assert account_id == PLAYER
        self.tried.append(name)
        if len(self.tried) <= self.failures:
            raise PlatformError("OUTCOME_UNKNOWN", "the game server does not answer", 503)


class Rows:
    """Seats of the platform's file."""

    def __init__(self, *seats: Seat) -> None:
        self.kept = list(seats)

    async def seats(self, connection: str = "") -> list[Seat]:
        return [seat for seat in self.kept if connection in ("", seat.connection)]

    async def drop_seat(self, session_id: str) -> None:
        self.kept = [seat for seat in self.kept if seat.session_id != session_id]


def seat(session: str, table: str = "T") -> Seat:
    return Seat(session, PLAYER, "page", table, 1)


@contextlib.asynccontextmanager
async def running(commands: TakingBack, hub: Hub, *seats: Seat) -> AsyncIterator[None]:
    """A bridge that sweeps, without a socket."""
    none: Any = None
    bridge = Bridge(none, hub, Rows(*seats), none, none, commands)
    task = asyncio.create_task(bridge.run())
    try:
        yield
    finally:
        task.cancel()


async def tried(commands: TakingBack, count: int) -> None:
    """Wait for so many tries, and for those that might follow."""

    async def are_there() -> bool:
        return len(commands.tried) >= count

    await until(are_there, 20)
    await asyncio.sleep(0.2)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A grace of a few sweeps, each of a hundredth of a second."""
    monkeypatch.setattr(bridge_module, "GRACE_S", 0.03)
    monkeypatch.setattr(bridge_module, "SWEEP_S", 0.01)


async def test_a_page_that_has_gone_is_tried_until_its_bets_are_back_and_then_no_more() -> None:
    commands, hub = TakingBack(failures=3), Hub()
    hub.connection(PLAYER, "page")
    async with running(commands, hub):
        await tried(commands, 4)
    assert commands.tried == ["page"] * 4


async def test_seats_of_a_process_before_this_one_are_tried_until_their_bets_are_back() -> None:
    commands = TakingBack(failures=2)
    async with running(commands, Hub(), seat("A")):
        await tried(commands, 3)
    assert commands.tried == ["page"] * 3


async def test_a_page_that_is_here_is_not_tried() -> None:
    commands, hub = TakingBack(failures=0), Hub()
    connection, _ = hub.connection(PLAYER, "page")
    connection.socket = SimpleNamespace()
    async with running(commands, hub, seat("A")):
        await asyncio.sleep(0.2)
    assert commands.tried == []


class Tables:
    """The game server's tables: one that fails, one that is paused, one that takes bets, one that is not there."""

    def __init__(self) -> None:
        self.taken_back: list[str] = []

    async def call(self, method: Any, request: Any) -> Any:
        return await method(request)

    @property
    def tables(self) -> Tables:
        return self

    async def GetTable(self, request: Any) -> Any:  # noqa: N802 - the contract's name
        if request.table == "fails":
            raise PlatformError("OUTCOME_UNKNOWN", "", 503)
        if request.table == "unknown":
            raise PlatformError("NOT_FOUND", "", 404)
        found = table_pb2.GetTableResponse()
        found.seat.device_no, found.seat.seat_version = 1, 5
        found.seat.bets.add(bet="ante", amount_minor=100)
        found.table.round_id = request.table
        found.table.state = table_pb2.TABLE_STATE_BETTING
        if request.table == "paused":
            found.table.state, found.table.paused_from = table_pb2.TABLE_STATE_PAUSED, table_pb2.TABLE_STATE_BETTING
        if request.table == "dealt":
            found.table.state = table_pb2.TABLE_STATE_DECIDING
        return found

    async def PlaceBets(self, request: Any) -> Any:  # noqa: N802 - the contract's name
        if request.round_id == "paused":
            raise PlatformError("TABLE_STATE", "", 409)
        assert not request.bets
        self.taken_back.append(request.round_id)
        return table_pb2.PlaceBetsResponse()


async def nothing(*_: Any) -> None:
    """What other parts do with a view."""


@pytest.mark.parametrize(
    ("tables", "reason"),
    [
        (("open", "dealt", "unknown"), ""),
        (("fails", "open"), "OUTCOME_UNKNOWN"),
        (("paused", "open"), "TABLE_STATE"),
    ],
)
async def test_each_seat_is_tried_and_a_failure_is_told(tables: tuple[str, ...], reason: str) -> None:
    rows, server = Rows(*(seat(f"session-{name}", name) for name in tables)), Tables()
    none: Any = None
    feeds = SimpleNamespace(report_session=lambda *_: None)
    commands = Commands(server, rows, SimpleNamespace(note=nothing), feeds, none, none, none, none, none)
    found = ""
    try:
        await commands.take_back(PLAYER, "page")
    except PlatformError as error:
        found = error.reason
    assert found == reason
    assert server.taken_back == ["open"]
    assert [one.table for one in rows.kept] == [name for name in tables if name != "unknown"]
