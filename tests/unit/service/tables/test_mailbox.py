"""A stream that waits is woken by whatever is put into its mailbox, and by nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from rgs.service.tables.mailbox import Mailbox
from tests.support.api.tables import OP1, TABLE, session_id, table_view


@pytest.mark.parametrize(
    "put",
    [
        lambda mailbox: mailbox.put(table_view(version=2), b"a view"),
        lambda mailbox: mailbox.put_line("line-1", b"a line"),
        lambda mailbox: mailbox.put_lost(TABLE),
        lambda mailbox: mailbox.mark(session_id(1)),
    ],
    ids=["view", "line", "lost", "mark"],
)
async def test_who_waits_is_woken(put: Callable[[Mailbox], None]) -> None:
    mailbox = Mailbox(OP1)
    assert mailbox.take() is None
    waiting = asyncio.create_task(mailbox.wait())
    await asyncio.sleep(0)
    assert not waiting.done()
    put(mailbox)
    await asyncio.wait_for(waiting, 5)
    assert mailbox.take() is not None
    assert mailbox.take() is None
    again = asyncio.create_task(mailbox.wait())
    await asyncio.sleep(0)
    assert not again.done(), "an empty mailbox wakes nobody"
    again.cancel()
