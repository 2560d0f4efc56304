"""The SQL of an erasure, on both databases: one player's rows, and nobody else's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rgs.store.changes import Change, Draft, PlayerErased, SwitchOff, TokenKept
from tests.support.store.shelf import open_shelf, operation, session, table, ulid

PRIVATE = {"block": {"player": "x"}, "salt": "00" * 32}


@pytest.mark.usefixtures("either_store")
async def test_one_player_is_erased_and_no_other(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        for number, player in ((1, "anna"), (2, "bert")):
            made = replace(session(number), player=player)
            opened = (Draft("session_open", {"time": "then"}, private=PRIVATE),)
            kept = (TokenKept(made.session_id, b"sealed"),)
            await store.commit(Change(session=made, drafts=opened, records=kept))
            for nth, status in ((10, "undone"), (20, "pending")):
                requested = operation(nth + number, made.session_id, status)
                await store.commit(Change(operation=replace(requested, detail="wanted", refusal="refused")))
        gone = SwitchOff("player", "op-1/anna", "X", "admin-1", 1)
        stays = SwitchOff("player", "op-1/bert", "X", "admin-1", 1)
        await store.commit(Change(drafts=(Draft("event", {"code": "X"}),), records=(gone, stays)))
        await store.commit(Change(drafts=(Draft("event", {"code": "X"}),), records=(PlayerErased("op-1", "anna"),)))
    rows = await table(tmp_path, "SELECT session_id, player, operator_reference FROM sessions ORDER BY session_id")
    assert [(row[0], row[1], bool(row[2])) for row in rows] == [(ulid(1), "", False), (ulid(2), "bert", True)]
    query = "SELECT session_id, status, detail, refusal, digest FROM operations ORDER BY operation_id"
    assert await table(tmp_path, query) == [
        (ulid(1), "undone", "", "", b""),
        (ulid(2), "undone", "wanted", "refused", bytes(32)),
        (ulid(1), "pending", "wanted", "refused", bytes(32)),  # the service erases nobody whose operation is pending
        (ulid(2), "pending", "wanted", "refused", bytes(32)),
    ]
    assert await table(tmp_path, "SELECT subject FROM switches") == [("op-1/bert",)]
    assert await table(tmp_path, "SELECT count(*) FROM privates") == [(1,)]
    assert await table(tmp_path, "SELECT session_id FROM session_tokens") == [(ulid(2),)]
