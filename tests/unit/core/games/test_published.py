"""Published returns are shown as published, and are no part of a ruleset (RULEBOOK section 4, U-12, C-9)."""

from __future__ import annotations

import dataclasses

import pytest

from rgs.core.errors import RulesetError
from rgs.core.games.published import LABEL, parse_published_returns, published_returns
from rgs.core.rulesets import SHIPPED_RULESETS

ROW = """
[[published]]
ruleset = "uth-solo"
bet = "trips"
per = "initial stake"
basis_points = 9650
source = "S2"
"""


def figures(ruleset_id: str) -> list[tuple[str, str, int]]:
    return [(row.bet, row.per, row.basis_points) for row in published_returns(ruleset_id)]


def test_what_the_documents_publish() -> None:
    uth = [("main", "initial stake", 9782), ("main", "total stake", 9947), ("trips", "initial stake", 9650)]
    assert {ruleset_id: figures(ruleset_id) for ruleset_id in SHIPPED_RULESETS} == {
        "uth-online": uth,
        "uth-solo": uth,
        "uth-seven-box": [],  # S1 and S3 print none
        "uth-lugano": [],
        "casino-holdem": [("main", "initial stake", 9784), ("aa", "initial stake", 9374)],
    }
    assert LABEL == "published"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("uth-solo", "uth-other"),
        ("initial stake", "bet"),
        ("9650", "10001"),
        ("9650", "-1"),
        ("9650", "96.5"),
        ("source", "origin"),
        ('source = "S2"', 'source = "S2"\ncolour = 1'),
        ("[[published]]", "colour = 1\n[[published]]"),
        ("[[published]]", "[published]"),
    ],
)
def test_what_is_refused(old: str, new: str) -> None:
    assert len(parse_published_returns(ROW)) == 1
    with pytest.raises(RulesetError):
        parse_published_returns(ROW.replace(old, new))


@pytest.mark.parametrize("basis_points", [0, 10_000])
def test_nothing_and_everything_are_returns(basis_points: int) -> None:
    (row,) = parse_published_returns(ROW.replace("9650", str(basis_points)))
    assert row.basis_points == basis_points


def test_a_published_figure_is_not_changed_any_more() -> None:
    (row,) = parse_published_returns(ROW)
    with pytest.raises(dataclasses.FrozenInstanceError):
        row.basis_points = 10_000  # type: ignore[misc]
