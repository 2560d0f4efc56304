"""The values of the rules: none can be changed once it is made, and what they say of themselves is short."""

from __future__ import annotations

import dataclasses
from dataclasses import FrozenInstanceError

import pytest

from rgs.core import games
from rgs.core.games.types import Pay, SeatStakes
from rgs.core.jurisdictions import load_jurisdiction
from rgs.core.money import Odds
from rgs.core.rulesets import load_ruleset

SOLO = load_ruleset("uth-solo")
STAKES = SeatStakes(1, {"ante": 100}, 10_000)
VALUES = (
    Odds(1),
    SOLO.limits["ante"],
    SOLO.timers,
    SOLO.rules,
    STAKES,
    games.deal(SOLO, list(range(52)), [STAKES])[0],
)


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_no_field_of_a_value_can_be_set(value: object) -> None:
    assert dataclasses.is_dataclass(value)
    for field in dataclasses.fields(value):
        with pytest.raises(FrozenInstanceError):
            setattr(value, field.name, getattr(value, field.name))


def test_how_a_bet_is_settled_is_told_in_these_words() -> None:
    assert [pay.value for pay in Pay] == ["lost", "push", "even", "table"]


def test_a_jurisdiction_does_not_recite_its_file() -> None:
    jurisdiction = load_jurisdiction("it-adm")
    result = repr(jurisdiction)
    assert "it-adm" in result
    assert "sources" not in result
    assert "canonical" not in result
