"""What the platform notes of views of a session that cross on their way."""

from __future__ import annotations

import sys
from typing import Any

import pytest

pytest.importorskip("aiohttp", reason="aiohttp not installed: run `make web-test`")

from examples.operator import start
from rgs.v1 import common_pb2

sys.path.append(str(start.HERE))
from operator_platform.sessions import Sessions  # type: ignore[import-not-found]


class Rows:
    """The rows of the day's figures."""

    def __init__(self) -> None:
        self.noted: list[tuple[int, int]] = []

    async def note_play(self, session_id: str, staked_minor: int, returned_minor: int, day: str) -> None:
        self.noted.append((staked_minor, returned_minor))


def view(version: int, returned_minor: int) -> common_pb2.SessionView:
    return common_pb2.SessionView(
        session_id="S", staked_minor=600, returned_minor=returned_minor, session_version=version
    )


async def test_an_answer_that_comes_behind_a_later_view_changes_nothing() -> None:
    none: Any = None
    rows = Rows()
    sessions = Sessions(none, rows)
    for version, returned_minor in ((4, 0), (6, 1_200), (5, 0)):
        await sessions.note(view(version, returned_minor))
    assert (await sessions.seen("S")).returned_minor == 1_200
    assert rows.noted == [(600, 0), (600, 1_200)]
    await sessions.note(view(0, 1_300))
    assert (await sessions.seen("S")).returned_minor == 1_300, "a server from before versions says none"
