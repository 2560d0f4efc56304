"""Tables as admins find them: set up and always open, with bets in the first window, or with bets that are cut."""

from __future__ import annotations

from rgs.core.tables.machine import State, Step
from tests.support.service.harness import ServiceHarness
from tests.support.service.tables import ADMIN, ALWAYS, SECOND_ADMIN, Evening, Sitter


async def evening_of(harness: ServiceHarness, table_id: str = "uth-online", **rows: object) -> Evening:
    return await Evening(harness, table_id, hours=ALWAYS, **rows).open()


async def close_bets(evening: Evening) -> None:
    """The window has run out, and the bets are cut: nothing more."""
    row, dealer = await evening.row(), evening.harness.tables.dealer
    evening.harness.clock.time_ms = row.due_ms
    config = await evening.harness.tables.configs.of(row.config)
    await dealer._take(row, config, Step.CLOSE, row.due_ms, "")
    assert await evening.state() is State.CLOSED


async def betting(harness: ServiceHarness, *names: str, table_id: str = "uth-online") -> tuple[Evening, list[Sitter]]:
    """A table whose players have bet in the first window."""
    await harness.let_in(ADMIN.party, SECOND_ADMIN.party)
    evening = await evening_of(harness, table_id)
    sitters = await evening.seated(*names)
    for sitter in sitters:
        await sitter.bet(ante=1_000)
    assert await evening.state() is State.BETTING
    return evening, sitters
