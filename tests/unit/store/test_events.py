"""Pages of signed events, and the newest statement of all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rgs.store.changes import Change, Draft
from tests.support.store.shelf import open_shelf, opened, session

pytestmark = pytest.mark.usefixtures("either_store")


async def test_events_are_read_newest_first_below_a_row_and_by_their_code(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        newest: Any = None
        for number, code in enumerate(("A", "B", "A", "A")):
            await store.commit(opened(session(number + 1)))
            (newest,) = await store.commit(Change(drafts=(Draft("event", {"code": code, "time": str(number)}),)))
        every = await store.events("", before=0, limit=9)
        numbers = [row.statement_no for row in every]
        assert numbers == [9, 7, 5, 3], "the start, a session and an event in turn"
        assert every[0].envelope == newest.envelope == await store.newest_envelope()
        assert await store.events("", before=every[1].id, limit=9) == every[2:]
        assert await store.events("", before=0, limit=2) == every[:2]
        of_a = await store.events("A", before=0, limit=9)
        assert of_a == [every[0], every[1], every[3]]
        assert await store.events("A", before=every[1].id, limit=9) == [every[3]]
        assert await store.events("A", before=0, limit=1) == [every[0]]
        assert await store.events("C", before=0, limit=9) == []
