"""What the links of a session at a table leave of it, when a restored store is brought up to its log."""

from __future__ import annotations

import base64
import json
from typing import Any

from rgs.core.recovery import advance_session, session_of
from rgs.core.sessions import Session
from tests.support.records.table_day import table_day


def test_the_links_of_a_seat_move_the_session() -> None:
    day = table_day()
    player = day.players[0]
    session: Session | None = None
    seen: list[tuple[str, int, int, str]] = []
    for line in day.factory.lines:
        payload = json.loads(line)["envelope"]["payload"]
        body: dict[str, Any] = json.loads(base64.b64decode(payload))
        if body.get("session_id") != player.session_id or "link_no" not in body:
            continue
        session = advance_session(session or session_of(body, {}), body["kind"], body, {}, bytes(32))
        if body["kind"] in {"seat_opening", "seat_final"}:
            assert session.balance_minor == int(body["balance_after_minor"])
            seen.append((body["kind"], session.round_no, session.rounds, session.open_round_id))
            assert session.open_round_id == (body["round_id"] if body["kind"] == "seat_opening" else "")
    assert session is not None
    assert [(kind, round_no, rounds) for kind, round_no, rounds, _ in seen] == [
        (kind, number, number - (kind == "seat_opening"))
        for number in range(1, player.round_no + 1)
        for kind in ("seat_opening", "seat_final")
    ]
    assert (session.participation.staked_minor, session.participation.returned_minor) == (
        player.staked,
        player.returned,
    )
