"""Whoever waits for a commit hears of it within the test, refused or not: nobody is left waiting."""

from __future__ import annotations

import asyncio

import pytest

from rgs.store.changes import StoreError
from rgs.store.writer import Writer
from tests.unit.store.test_writer import Disk, numbered

FOREVER_S = 20
"""As long as no waiter waits who is told at all."""


async def test_all_of_a_group_are_told_and_counted() -> None:
    disk = Disk()
    writer = Writer(disk.apply)
    disk.gate.clear()
    tasks = [asyncio.create_task(writer.commit(change)) for change in numbered(1, 2, -1, 4)]
    await disk.has_begun()
    disk.gate.set()
    async with asyncio.timeout(FOREVER_S):
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [isinstance(outcome, StoreError) for outcome in outcomes] == [False, False, True, False]
    disk.failure = StoreError("the disk is gone")
    async with asyncio.timeout(FOREVER_S):
        with pytest.raises(StoreError, match="the disk is gone"):
            await writer.commit(numbered(5)[0])
        await writer.close()
    assert sum(writer.group_sizes.counts) == sum(writer.group_times.counts) == writer.groups == len(disk.groups)
    assert writer.group_sizes.total == writer.changes == 5
    assert writer.group_times.total > 0
