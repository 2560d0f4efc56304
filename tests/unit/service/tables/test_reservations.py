"""The live check: the sessions hold for a table exactly what its seats have bet."""

from __future__ import annotations

import pytest

from rgs.core.tables.machine import State
from tests.support.service.harness import ServiceHarness
from tests.support.service.tables import Evening


async def test_sound_reservations_are_left_alone(harness: ServiceHarness) -> None:
    evening = await Evening(harness, "uth-online").open()
    for sitter in await evening.seated("player-1", "player-2"):
        await sitter.bet(ante=1_000)
    assert await harness.tables.reservations.poll() == 0
    assert await evening.state() is State.BETTING


async def test_a_difference_pauses_the_table(harness: ServiceHarness) -> None:
    """Somebody has written into the store: the session holds less than its seat has bet."""
    evening = await Evening(harness, "uth-online").open()
    (sitter,) = await evening.seated("player-1")
    await sitter.bet(ante=1_000)
    harness.store._db.execute("UPDATE sessions SET reserved_minor = 1 WHERE session_id = ?", (sitter.session_id,))
    assert await harness.tables.reservations.poll() == 1
    row = await evening.row()
    assert (row.table.state, row.malfunction_code) == (State.PAUSED, "RESERVATIONS_DIFFER")
    for passed_ms in (1, 60_000):
        harness.clock.tick(passed_ms)
        assert await harness.tables.reservations.poll() == 0  # it stands already


async def test_the_tables_are_looked_at_once_a_minute(harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    await Evening(harness, "uth-online").open()
    looked, breaks = list[int](), harness.store.reserved_breaks

    async def counted(table_id: str, after: str, limit: int) -> list[tuple[str, int, int]]:
        looked.append(harness.clock.running_ms() - began_ms)
        return await breaks(table_id, after, limit)

    monkeypatch.setattr(harness.store, "reserved_breaks", counted)
    began_ms = harness.clock.running_ms()
    for passed_ms in (0, 59_999, 1, 59_999, 1):
        harness.clock.tick(passed_ms)
        await harness.tables.reservations.poll()
    assert looked == [0, 60_000, 120_000]
