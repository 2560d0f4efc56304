"""What strangers cause is counted, and reported once a minute."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from rgs.service.events import EventCode
from rgs.store.changes import StoreError
from rgs.store.sqlite.store import connect
from tests.support.service.harness import ServiceHarness, read_statement
from tests.support.service.oracles import stored_statements


async def test_what_is_counted_is_told_once_a_minute_and_not_lost(harness: ServiceHarness, tmp_path: Path) -> None:
    events, clock = harness.services.events, harness.clock

    def count() -> None:
        events.count(EventCode.AUTHENTICATION_FAILED, "CERTIFICATE_NOT_ALLOWED")

    count()
    await events.flush()
    for _ in range(500):
        count()
        clock.tick(100)
        await events.flush()
    clock.tick(10_000)
    harness.store._db.execute("PRAGMA busy_timeout = 1")
    with closing(connect(tmp_path / "rgs.db")) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError):
            await events.flush()
        other.execute("ROLLBACK")
    await events.flush(everything=True)
    bodies = [read_statement(row.envelope) for row in stored_statements(tmp_path) if row.kind == "event"]
    counts = [body["after"] for body in bodies if body["code"] == "AUTHENTICATION_FAILED"]
    assert counts == ["1", "500"]
