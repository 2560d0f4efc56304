"""History for those who are no operator: they name whose player they look up; an operator sees its own only."""

from __future__ import annotations

import pytest

from rgs.core.errors import InvalidFieldError
from rgs.core.sessions import Session
from rgs.core.times import format_date
from rgs.service.callers import Caller, Role
from rgs.service.play.history import RoundsFilter
from tests.support.service.harness import OPERATOR, ServiceHarness
from tests.support.service.player import Player

AUDITOR, REGULATOR = Caller("auditor-1", Role.AUDITOR, ""), Caller("regulator-1", Role.REGULATOR, "")
OTHER = Caller("op-2", Role.OPERATOR, "demo")


@pytest.mark.parametrize("caller", [AUDITOR, REGULATOR], ids=["auditor", "regulator"])
async def test_they_find_what_the_operator_finds(harness: ServiceHarness, anna: Player, caller: Caller) -> None:
    await anna.sit()
    await anna.play()
    mine, _ = await harness.history.list_rounds(OPERATOR, RoundsFilter(anna.name), 0, "")
    theirs, _ = await harness.history.list_rounds(caller, RoundsFilter(anna.name, OPERATOR.party), 0, "")
    assert mine == theirs
    assert len(mine) == 1
    round_ = mine[0].round
    (record,) = await harness.history.get_records(
        caller,
        round_id="",
        player=anna.name,
        date=format_date(round_.start_ms),
        game_code=round_.game_code,
        operator=OPERATOR.party,
    )
    assert record.summary.round == round_


async def test_they_must_name_the_operator(harness: ServiceHarness) -> None:
    with pytest.raises(InvalidFieldError, match="operator"):
        await harness.history.list_rounds(AUDITOR, RoundsFilter("anna"), 0, "")


async def test_an_operator_asks_for_its_own_players_only(harness: ServiceHarness, anna: Player) -> None:
    await anna.sit()
    await anna.play()
    assert await harness.history.list_rounds(OTHER, RoundsFilter(anna.name), 0, "") == ((), "")
    with pytest.raises(InvalidFieldError, match="its own players only"):
        await harness.history.list_rounds(OTHER, RoundsFilter(anna.name, OPERATOR.party), 0, "")


LONG = "x" * 100


async def test_a_refusal_names_the_field_and_repeats_no_more_than_a_part_of_it(harness: ServiceHarness) -> None:
    history = harness.history

    async def refused(caller: Caller = OPERATOR, **requested: str) -> tuple[str | None, dict[str, str]]:
        record = {"round_id": "", "player": "anna", "date": "2026-11-21", "game_code": "#00:00:00", **requested}
        with pytest.raises(InvalidFieldError) as caught:
            await history.get_records(caller, **record)
        return caught.value.field, caught.value.metadata

    assert await refused(operator=LONG) == ("operator", {"limit": "op-1", "value": LONG[:80]})
    assert await refused(date=LONG) == ("date", {"value": LONG[:20]})
    assert await refused(game_code=LONG) == ("game_code", {"value": LONG[:20]})
    assert (await refused(player="no such name"))[0] == "player"
    assert (await refused(round_id="round-1"))[0] == "round_id"
    assert (await refused(AUDITOR, operator=""))[0] == "operator"
    with pytest.raises(InvalidFieldError) as named:
        await history.list_rounds(OPERATOR, RoundsFilter("no such name"), 0, "")
    assert named.value.field == "player"


async def test_a_page_reads_each_session_once(
    harness: ServiceHarness, anna: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    await anna.sit()
    for _ in range(3):
        await anna.play()
    read, session_of = [], harness.store.session

    async def session(session_id: str, *, fresh: bool = True) -> Session | None:
        read.append((session_id, fresh))
        return await session_of(session_id, fresh=fresh)

    monkeypatch.setattr(harness.store, "session", session)
    rounds, _ = await harness.history.list_rounds(OPERATOR, RoundsFilter(anna.name), 0, "")
    assert len(rounds) == 3
    assert read == [(anna.session_id, True)]
