"""The line about what waits outside: a warning where it grows or is old, else information; how much is unknown."""

from __future__ import annotations

from typing import Any

import pytest
from structlog.testing import capture_logs

from rgs.store.changes import OperationProgress
from rgs.store.outbox import OutboxRow
from tests.support.service.harness import ServiceHarness

SENT, UNKNOWN = OperationProgress.BEGUN, OperationProgress.UNKNOWN


async def logged(harness: ServiceHarness, *rows: tuple[int, int], old_ms: int = 0) -> list[Any]:
    """The line a minute later, with so many that are sent and so many that are unknown; the oldest is so old."""
    harness.clock.tick(60_000)
    begun_ms = harness.clock.now_ms() - old_ms
    found = [OutboxRow("purchase", progress, count, begun_ms) for progress, count in rows]

    async def outbox() -> list[OutboxRow]:
        return found

    harness.store.outbox = outbox  # type: ignore[method-assign]
    with capture_logs() as lines:
        await harness.services.outbox.log()
        await harness.services.outbox.log()
    return [(line["log_level"], line["waiting"], line["unknown"], line["oldest_ms"]) for line in lines]


async def test_growing_is_a_warning_and_the_same_or_less_is_not(harness: ServiceHarness) -> None:
    assert await logged(harness) == []
    assert await logged(harness, (SENT, 2), (UNKNOWN, 1)) == [("info", 3, 1, 0)], "the first that there are"
    assert await logged(harness, (SENT, 1), (UNKNOWN, 2)) == [("info", 3, 2, 0)]
    assert await logged(harness, (SENT, 4)) == [("warning", 4, 0, 0)]
    assert await logged(harness, (UNKNOWN, 3)) == [("info", 3, 3, 0)]
    assert await logged(harness) == []
    assert await logged(harness, (SENT, 1)) == [("info", 1, 0, 0)]


async def test_five_minutes_are_a_warning(harness: ServiceHarness) -> None:
    assert await logged(harness, (SENT, 1), old_ms=299_999) == [("info", 1, 0, 299_999)]
    assert await logged(harness, (SENT, 1), old_ms=300_000) == [("warning", 1, 0, 300_000)]
    assert await logged(harness, (SENT, 1), old_ms=-5) == [("info", 1, 0, 0)], "clocks differ"


def test_nobody_gives_the_counts_from_outside(harness: ServiceHarness) -> None:
    outbox = harness.services.outbox
    parts: dict[str, Any] = {name: getattr(outbox, name) for name in ("store", "clock", "events", "orders", "readings")}
    made = type(outbox)(**parts)
    assert (made._logged_ms, made._logged_waiting) == (0, 0)
    for name in ("_logged_ms", "_logged_waiting"):
        with pytest.raises(TypeError):
            type(outbox)(**{**parts, name: 1})
