"""What a lookup shows where more than one would do: the first seat, the caller's seat, the newest state, free bets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rgs.core.errors import NotFoundError
from rgs.core.tables.machine import State
from rgs.service.callers import Caller, Role
from rgs.service.support import lookup as module
from rgs.service.support.lookup import MatchKind, Wanted
from tests.support.service.guests import Guest
from tests.support.service.harness import OPERATOR, ServiceHarness, open_harness
from tests.support.service.oracles import stored_statements
from tests.support.service.player import Player
from tests.support.service.tables import ALWAYS, Evening

MINE = Caller("helpdesk-1", Role.SUPPORT, "", OPERATOR.party)
OTHERS = Caller("helpdesk-2", Role.SUPPORT, "", "op-2")


async def test_a_round_of_a_table_is_found_by_its_first_seat_and_explained_for_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_harness(tmp_path) as harness:
        evening = await Evening(harness, "uth-online", hours=ALWAYS).open()
        sitters = await evening.seated("player-0", "player-1", "player-2")
        for sitter in sitters:
            await sitter.bet(ante=1_000)
        await evening.until(State.DECIDING)
        rows = [row for row in stored_statements(harness.folder) if row.kind == "seat_opening"]
        round_id, support = rows[0].round_id, harness.services.support
        seats = await harness.store.seats_of_round(round_id, 0, 9)
        assert [seat.seat_no for seat in seats] == [1, 2, 3]
        (found,), _ = await support.find(MINE, Wanted(round_id), 0, "")
        assert (found.kind, found.session_id) == (MatchKind.ROUND_ID, seats[0].session_id)
        assert (await support.explain(MINE, round_id, "")).summary.round == seats[0]
        monkeypatch.setattr(module, "SEATS_MAX", 1)
        for seat in seats:
            explained = await support.explain(MINE, round_id, seat.session_id)
            assert explained.summary.round == seat
            assert explained.session_ids == (seats[0].session_id,)
            with pytest.raises(NotFoundError):
                await support.explain(OTHERS, round_id, seat.session_id)
        with pytest.raises(NotFoundError):
            await support.explain(MINE, round_id, round_id)


async def test_the_campaign_s_transfers_are_told_by_their_direction(harness: ServiceHarness) -> None:
    anna = Guest(harness)
    await anna.sit()
    (grant,) = await anna.grant(1)
    await anna.play_free(grant.grant_id)
    seen, _ = await harness.services.support.session(MINE, anna.session_id, 0, "")
    assert [one.kind for one in seen.transfers] == ["purchase", "free_bet_debit", "free_bet_credit"]
    rounds, _ = await harness.services.support.rounds(
        MINE, session_id=anna.session_id, operator="", player="", page_size=0, page_token=""
    )
    assert {one.round_id for one in seen.transfers[1:]} == {rounds[0].round.round_id}
    assert all(one.transaction_id for one in seen.transfers)


async def test_sessions_are_read_afresh_and_a_missing_one_is_not_found(
    harness: ServiceHarness, anna: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    await anna.sit()
    await anna.play()
    support, genuine, kept = harness.services.support, harness.store.session, list[bool]()
    (round_,) = [one for _, one in await harness.store.rounds_of_session(anna.session_id, before_no=9, limit=9)]
    of_player: dict[str, Any] = {"session_id": "", "operator": "", "player": "anna", "page_size": 0, "page_token": ""}

    async def session(session_id: str, *, fresh: bool = True) -> Any:
        kept.append(fresh)
        return await genuine(session_id, fresh=fresh)

    monkeypatch.setattr(harness.store, "session", session)
    await support.explain(MINE, round_.round_id, "")
    await support.rounds(MINE, **of_player)
    await support.session(MINE, anna.session_id, 0, "")
    assert kept == [True] * 3

    async def gone(_session_id: str, *, fresh: bool = True) -> None:
        assert fresh

    monkeypatch.setattr(harness.store, "session", gone)
    with pytest.raises(NotFoundError, match=f"no session {anna.session_id}"):
        await support.rounds(MINE, **of_player)
