"""Floors and paytables, and what a paytable may not be."""

from __future__ import annotations

import dataclasses

import pytest

from rgs.core.cards import parse_cards
from rgs.core.errors import FormatError, RulesetError
from rgs.core.games.paytables import format_floor, parse_floor, parse_paytable
from rgs.core.hands import Category, evaluate
from rgs.core.money import format_odds

FULL = {category.text: "push" for category in Category}


@pytest.mark.parametrize(
    ("floor", "meets", "misses"),
    [
        ("pair", "2s 2d 3h 4c 6d", "As Kd Qh Jc 9d"),
        ("pair:4", "4s 4d 2h 3c 5d", "3s 3d Ah Kc Qd"),
        ("pair:A", "As Ad 2h 3c 4d", "Ks Kd Ah Qc Jd"),
        ("pair:4", "2s 2d 3h 3c 4d", "3s 3d 4h 5c 7d"),
        ("high_card:A", "As 2d 3h 4c 6d", "Ks Qd Jh Tc 8d"),
        ("royal_flush", "As Ks Qs Js Ts", "Ks Qs Js Ts 9s"),
    ],
)
def test_floors(floor: str, meets: str, misses: str) -> None:
    parsed = parse_floor(floor)
    assert format_floor(parsed) == floor
    assert parsed.is_met_by(evaluate(parse_cards(meets.split())))
    assert not parsed.is_met_by(evaluate(parse_cards(misses.split())))


@pytest.mark.parametrize(
    "text", ["", "pairs", "pair:", "pair:1", "pair:2", "pair:AA", "royal_flush:A", "pair:4:5", ":4"]
)
def test_other_texts_are_no_floors(text: str) -> None:
    with pytest.raises(FormatError):
        parse_floor(text)


def test_the_first_row_met_pays() -> None:
    rows = {"pair": "lost", "high_card": "lost", "pair:A": "push", "quads": "7:1"}
    rows |= {"straight_flush": "7:1", "royal_flush": "8:1"}
    paytable = parse_paytable("aa", FULL | rows)
    paid = {
        "As Ks Qs Js Ts": "8:1",
        "9s 9d 9h 9c As": "7:1",
        "As Ad 2h 3c 4d": "push",
        "Ks Kd 2h 3c 4d": "lost",
        "As Kd 2h 3c 5d": "lost",
        "2s 2d 3h 3c 5d": "push",
    }
    assert {text: format_odds(paytable.odds_for(evaluate(parse_cards(text.split())))) for text in paid} == paid


@pytest.mark.parametrize("missing", [category.text for category in Category])
def test_a_hole_is_refused(missing: str) -> None:
    rows = {name: odds for name, odds in FULL.items() if name != missing}
    with pytest.raises(RulesetError, match=f"trips.{missing}: the paytable has a hole"):
        parse_paytable("trips", rows)


@pytest.mark.parametrize("row", [{"pair": "lost", "high_card": "push"}, {"quads": "1:1"}, {"pair:A": "1:1"}])
def test_a_better_hand_may_not_get_less(row: dict[str, str]) -> None:
    with pytest.raises(RulesetError, match="less than"):
        parse_paytable("trips", FULL | row)


@pytest.mark.parametrize("row", [{"pears": "1:1"}, {"pair": "6:4"}, {"pair": ""}, {"pair:2": "push"}])
def test_a_row_that_cannot_be_read_is_named(row: dict[str, str]) -> None:
    with pytest.raises(RulesetError) as caught:
        parse_paytable("trips", FULL | row)
    assert caught.value.field == f"trips.{next(iter(row))}"


def test_a_paytable_is_not_changed_any_more() -> None:
    paytable = parse_paytable("trips", FULL)
    with pytest.raises(dataclasses.FrozenInstanceError):
        paytable.rows = ()  # type: ignore[misc]
