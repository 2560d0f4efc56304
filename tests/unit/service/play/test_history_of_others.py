"""History for those who are no operator: they name whose player they look up; an operator sees its own only."""

from __future__ import annotations

import pytest

from rgs.core.errors import InvalidFieldError
from rgs.core.times import format_date
from rgs.service.callers import Caller, Role
from tests.support.service.harness import OPERATOR, ServiceHarness
from tests.support.service.player import Player

AUDITOR, REGULATOR = Caller("auditor-1", Role.AUDITOR, ""), Caller("regulator-1", Role.REGULATOR, "")
OTHER = Caller("op-2", Role.OPERATOR, "demo")


@pytest.mark.parametrize("caller", [AUDITOR, REGULATOR], ids=["auditor", "regulator"])
async def test_they_find_what_the_operator_finds(harness: ServiceHarness, anna: Player, caller: Caller) -> None:
    await anna.sit()
    await anna.play()
    mine, _ = await harness.history.list_rounds(OPERATOR, anna.name, 0, "")
    theirs, _ = await harness.history.list_rounds(caller, anna.name, 0, "", OPERATOR.party)
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
        await harness.history.list_rounds(AUDITOR, "anna", 0, "")


async def test_an_operator_asks_for_its_own_players_only(harness: ServiceHarness, anna: Player) -> None:
    await anna.sit()
    await anna.play()
    assert await harness.history.list_rounds(OTHER, anna.name, 0, "") == ((), "")
    with pytest.raises(InvalidFieldError, match="its own players only"):
        await harness.history.list_rounds(OTHER, anna.name, 0, "", OPERATOR.party)
