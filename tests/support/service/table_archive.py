"""A night at a table whose players go home one after the other, and all that is said of it, to be archived."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import asyncpg

from rgs.cli import export
from rgs.cli.archive import move
from rgs.core.errors import NotFoundError
from rgs.node.config import CONFIG_FILE, Config, load_config
from rgs.service.callers import Role
from rgs.store.address import PostgresAddress
from rgs.store.interface import StoreReads
from rgs.store.opening import open_parties, open_store, opened_archive
from tests.support.clocks import ManualClock
from tests.support.service.floor import BEGIN_MS, CLOCK
from tests.support.service.harness import OPERATOR, ServiceHarness
from tests.support.service.places import sequence
from tests.support.service.player import Player
from tests.support.service.table_records import AUDITOR, OTHER, STRANGER, SharedEvening, make_home
from tests.support.service.tables import Sitter

LATER_MS = 600_000
KINDS = ("table_round", "table_deal", "table_final", "seat_opening", "seat_final")
PAGE = 3
"""Of lists: a round's statements come on several pages."""


@dataclass(frozen=True)
class Night:
    """Its home, and who played when. `sessions` are those at the table in the order in which they closed, each ten
    minutes after the one before; `solo` closed before all of them. The last one played the newest of `rounds`, alone.
    """

    config: Config
    database: PostgresAddress | None
    solo: str
    sessions: tuple[str, ...]
    closed_ms: tuple[int, ...]
    rounds: tuple[str, ...]
    operators: Mapping[str, str]

    def move(self, gone: int) -> Any:
        """Archive the sessions that were the first to close."""
        return move(self.config, self.closed_ms[gone - 1] + 1, self.closed_ms[-1] + LATER_MS)


class _Evening(SharedEvening):
    """A database's clock follows the test's at every look."""

    database: PostgresAddress | None = None

    async def look(self) -> None:
        if self.database is not None:
            await _execute(self.database, f"UPDATE test_clock SET ms = {self.harness.clock.database_ms()}")  # noqa: S608
        await super().look()


async def _execute(database: PostgresAddress, *texts: str) -> None:
    connection = await asyncpg.connect(database.url)
    try:
        for text in texts:
            await connection.execute(text)
    finally:
        await connection.close()


async def _over(store: Path, database: PostgresAddress | None, clock: ManualClock) -> ServiceHarness:
    if database is None:
        return ServiceHarness(store, clock=clock)
    return ServiceHarness(store, clock=clock, store=await open_store(database), parties=await open_parties(database))


async def a_night(home: Path, database: PostgresAddress | None = None, table_id: str = "uth-online") -> Night:
    """A solo player, and five players of two operators at a table: four rounds at which fewer and fewer play, and one
    of the last alone.
    """
    (home / "store").mkdir(parents=True)
    if database is not None:
        await _execute(database, *CLOCK)
    harness = await _over(home / "store", database, ManualClock(BEGIN_MS))
    closed, rounds = list[int](), list[str]()
    try:
        await harness.start()
        evening = _Evening(harness, table_id)
        evening.database = database
        await evening.gather()
        solo = Player(harness)
        await solo.sit()
        await solo.play()
        await solo.leave()
        await harness.settle()
        leaving = [evening.own[1], evening.others[0], evening.own[0], evening.others[1]]
        for number, sitter in enumerate(leaving):
            rounds.append(await evening.play(*leaving[number:]))
            closed.append(await _go_home(evening, sitter))
        (last,) = await evening.seated("player-9")
        rounds.append(await evening.play(last))
        closed.append(await _go_home(evening, last))
        await harness.services.finals_list.poll()
        while await harness.services.monitoring.poll():
            pass
        await sequence(harness, home / "translog")
        await harness.instance.end("DRAINED")
    finally:
        await harness.stop(ended=False)
    make_home(home)
    with (home / CONFIG_FILE).open("a", encoding="utf-8") as file:
        file.write('archive = "archive"\n' + ("" if database is None else f'store = "{database.url}"\n'))
    everybody = (*leaving, last)
    return Night(
        config=load_config(home),
        database=database,
        solo=solo.session_id,
        sessions=tuple(one.session_id for one in everybody),
        closed_ms=tuple(closed),
        rounds=tuple(rounds),
        operators={one.session_id: one.caller.party for one in everybody},
    )


async def _go_home(evening: SharedEvening, sitter: Sitter) -> int:
    """The player leaves and closes the session; when."""
    await sitter.look()
    await sitter.leave()
    evening.harness.clock.time_ms += LATER_MS
    await sitter.end()
    await evening.harness.settle()
    session = await evening.harness.store.session(sitter.session_id)
    assert session is not None
    return session.close_ms


@asynccontextmanager
async def served(night: Night) -> AsyncIterator[ServiceHarness]:
    """The services over the night's store and its archive. Nothing is signed."""
    harness = await _over(night.config.home / "store", night.database, ManualClock(BEGIN_MS + 144 * LATER_MS))
    try:
        await harness.services.load()
        with opened_archive(night.config.archive) as harness.store.archive:
            yield harness
    finally:
        await harness.stop(ended=False)


def flat(value: Any) -> Any:
    """A value with all that it is made of, to compare: also what no equality and no repr shows."""
    if is_dataclass(value) and not isinstance(value, type):
        return (type(value).__name__, *(flat(getattr(value, one.name)) for one in fields(value)))
    if isinstance(value, tuple | list):
        return [flat(one) for one in value]
    if isinstance(value, Mapping):
        return {key: flat(one) for key, one in value.items()}
    return value


async def everything(night: Night) -> dict[str, Any]:
    """All that is said of the night's rounds: to each party, to support staff, and to who reads the store."""
    said: dict[str, Any] = {}
    async with served(night) as harness:
        services = harness.services
        for caller in (OPERATOR, OTHER, STRANGER, AUDITOR):
            for round_ in night.rounds:
                said[f"{caller.party} record {round_}"] = await _records(services, caller, round_)
                listed = await _pages(services.audit, caller, round_id=round_)
                said[f"{caller.party} statements {round_}"] = listed
                for row in listed:
                    found = await services.audit.get_statement(caller, hash=row.hash, instance="", statement_no=0)
                    assert flat(found) == flat(row)
                for session in night.sessions:
                    for kind in KINDS:
                        name = f"{caller.party} {kind} of {session} in {round_}"
                        said[name] = await _or_reason(
                            services.audit.statement_of_seat(caller, round_id=round_, session_id=session, kind=kind)
                        )
            for session in night.sessions:
                if caller.role is Role.AUDITOR or night.operators[session] == caller.party:
                    said[f"{caller.party} links {session}"] = await _pages(services.audit, caller, session_id=session)
                    _, seat = await services.tables.views.seat(caller, session)
                    said[f"{caller.party} seat {session}"] = seat
            watched = services.finals.watch(caller, resume_token="", first_no=1, follow=False)
            if caller.role is Role.OPERATOR:
                said[f"{caller.party} finals"] = [one async for one in watched]
        for round_ in night.rounds:
            said |= await _rows(harness.store, night, round_)
        said["in order"] = [row async for row in harness.store.statements_in_order()]
    return {name: flat(value) for name, value in said.items()}


async def _records(services: Any, caller: Any, round_id: str) -> Any:
    named = {"player": "", "date": "", "game_code": ""}
    return await _or_reason(services.history.get_records(caller, round_id=round_id, **named))


async def _or_reason(answer: Any) -> Any:
    try:
        return await answer
    except NotFoundError as error:
        return error.reason


async def _pages(audit: Any, caller: Any, **named: str) -> list[Any]:
    wanted = {"session_id": "", "round_id": "", "instance": "", "first_no": 0, "last_no": 0, **named}
    found, token = list[Any](), ""
    while True:
        rows, token = await audit.list_statements(caller, **wanted, page_size=PAGE, page_token=token)
        found += rows
        if not token:
            return found


async def _rows(store: StoreReads, night: Night, round_id: str) -> dict[str, Any]:
    """What the store says of a round, page by page."""
    seats, after = list[Any](), 0
    while page := await store.seats_of_round(round_id, after, 2):
        assert len(page) <= 2
        seats, after = seats + page, page[-1].seat_no
    said: dict[str, Any] = {f"seats {round_id}": seats, f"table round {round_id}": await store.table_round(round_id)}
    said[f"round {round_id}"] = await store.round(round_id)
    for party in (OPERATOR.party, OTHER.party, STRANGER.party):
        said[f"seats of {party} {round_id}"] = await store.seats_of_operator(round_id, party, 0, 64)
        rows, after = list[Any](), 0
        while signed := await store.statements_of_operator(round_id, party, after, 1):
            rows, after = rows + signed, signed[-1].id
        said[f"statements of {party}'s seats {round_id}"] = rows
    for session in night.sessions:
        said[f"seat of {session} {round_id}"] = await store.seat(session, round_id)
        said[f"last seat of {session}"] = await store.last_seat(session)
        said[f"rounds of {session}"] = await store.rounds_of_session(session, before_no=1 << 60, limit=100)
    for seat in seats:
        said[f"envelopes {seat.seat_no} {round_id}"] = await store.round_envelopes(round_id, seat.seat_no)
    return said


async def exported(night: Night, out: Path, *sessions: str) -> list[bytes]:
    """The lines of an export of these sessions, or of everything, but for the scope, which has the time."""
    await export.export_to(night.config, ([], list(sessions)), str(out), private=True)
    return await asyncio.to_thread(_taken, out)


def _taken(out: Path) -> list[bytes]:
    lines = out.read_bytes().splitlines()
    out.unlink()
    return [line for line in lines if b"vnd.rgs.export-scope." not in line]
