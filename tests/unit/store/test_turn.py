"""One instance turns into the next within the store: at its place among the changes, whole or not at all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rgs.core.statements import Ed25519Signer, parse_envelope, verify_signature
from rgs.store.changes import Change, Draft, InstanceHandover, StoreError
from rgs.store.interface import Store
from tests.support.store.shelf import INSTANCE_KEY, NAME, NODE_KEY, applied, open_shelf, opened, session
from tests.unit.store.test_failures import with_sessions

pytestmark = pytest.mark.usefixtures("either_store")

NEXT_KEY, NEXT = Ed25519Signer.from_seed(b"j" * 32), "node-1-b2-w0"


def turning(**changes: Any) -> Change:
    turn = InstanceHandover(
        instance=NEXT,
        node="node-1",
        boot_no=2,
        worker=0,
        start_ms=2000,
        start=Draft("instance_start", {"draws_in_flight_max": "8", "time": "then"}),
        node_signer=NODE_KEY,
        signer=NEXT_KEY,
        last_draw_no=0,
        drafts=(Draft("event", {"code": "KEYS_CHANGED"}),),
        artifacts=(),
    )
    end = Draft("instance_end", {"last_draw_no": "0"})
    return Change(drafts=(end,), ends=(NAME, 2000), handover=replace(turn, **changes))


async def signed_by(store: Store) -> list[tuple[str, int, str, str]]:
    """Instance, number, kind and signer of every statement; the signature is verified."""
    names = {NODE_KEY.keyid: "node", INSTANCE_KEY.keyid: NAME, NEXT_KEY.keyid: NEXT}
    keys = {signer.keyid: signer.public_key for signer in (NODE_KEY, INSTANCE_KEY, NEXT_KEY)}
    found = []
    async for row in store.statements_in_order():
        envelope = parse_envelope(row.envelope)
        verify_signature(envelope, keys[envelope.keyid])
        found.append((row.instance, row.statement_no, row.kind, names[envelope.keyid]))
    return found


async def test_a_turn_in_a_group_keeps_the_order_of_the_changes(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        outcomes = await applied(store, [opened(session(1)), turning(), opened(session(2)), opened(session(3))])
        assert [outcome[0].instance for outcome in outcomes if not isinstance(outcome, Exception)] == [
            *(NAME, NAME, NEXT, NEXT)
        ]
        assert await signed_by(store) == [
            (NAME, 1, "instance_start", "node"),
            (NAME, 2, "session_open", NAME),
            (NAME, 3, "instance_end", NAME),
            (NEXT, 1, "instance_start", "node"),
            (NEXT, 2, "event", NEXT),
            (NEXT, 3, "session_open", NEXT),
            (NEXT, 4, "session_open", NEXT),
        ]
        rows = [(row.instance, row.alive, row.statement_no) for row in await store.instances(alive_only=False)]
        assert rows == [(NAME, False, 3), (NEXT, True, 4)]
        (start,) = await store.statements_of_instance(NEXT, 1, 1, 1)
        assert b'"previous_boot":{"instance":"node-1-b1-w0","last_draw_no":"0","last_statement_no":"3"}' in (
            parse_envelope(start.envelope).payload
        )


async def test_no_instance_ends_with_a_draw_that_is_not_accounted_for(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        outcomes = await applied(store, [opened(session(1)), turning(last_draw_no=1), opened(session(2))])
        assert isinstance(outcomes[1], StoreError)
        assert [row[:3] for row in await signed_by(store)] == [
            (NAME, 1, "instance_start"),
            (NAME, 2, "session_open"),
            (NAME, 3, "session_open"),
        ]


async def test_a_turn_to_a_name_that_is_taken_changes_nothing(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        assert isinstance((await applied(store, [turning(instance=NAME)]))[0], StoreError)
        assert not isinstance((await applied(store, [opened(session(1))]))[0], Exception)
        assert [row[:2] for row in await signed_by(store)] == [(NAME, 1), (NAME, 2)]


async def test_a_draw_of_the_instance_before_is_neither_signed_nor_accounted_for_by_the_next(tmp_path: Path) -> None:
    """Planted: a round start that reaches the writer behind the turn."""
    async with open_shelf(tmp_path) as store:
        (late,) = await with_sessions(store, 1)
        assert late.round is not None
        assert late.round.instance == NAME
        turned, refused = await applied(store, [turning(), late])
        assert not isinstance(turned, Exception)
        assert isinstance(refused, StoreError)
        assert (await applied(store, [opened(session(2))]))[0][0].instance == NEXT
        assert "discarded_draw" not in [row[2] for row in await signed_by(store)]
        assert "round_opening" not in [row[2] for row in await signed_by(store)]
