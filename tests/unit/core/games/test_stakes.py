"""Limits, step and exposure (RULEBOOK U-10, C-8; ARCHITECTURE 2.4)."""

from __future__ import annotations

import pytest

from rgs.core import games
from rgs.core.errors import (
    InvalidFieldError,
    RgsError,
    StakeAboveMaximumError,
    StakeBelowMinimumError,
    StakeStepError,
    UnknownBetError,
)
from rgs.core.rulesets import load_ruleset

UTH = load_ruleset("uth-online")
CASINO = load_ruleset("casino-holdem")


def test_the_opening_bets() -> None:
    check = games.check_stakes
    assert check(UTH, {"ante": 100}) == (("ante", 100), ("blind", 100))
    assert check(UTH, {"trips": 50, "ante": 100}) == (("ante", 100), ("blind", 100), ("trips", 50))
    assert check(UTH, {"ante": 10}) == (("ante", 10), ("blind", 10))
    assert check(UTH, {"ante": 100_000, "trips": 10_000})[0] == ("ante", 100_000)
    check = games.check_stakes
    assert check(CASINO, {"aa": 50, "ante": 101}) == (("ante", 101), ("aa", 50))


@pytest.mark.parametrize(
    ("bets", "error", "field", "limit"),
    [
        ({"ante": 8}, StakeBelowMinimumError, "bets.ante", "10"),
        ({"ante": 0}, StakeBelowMinimumError, "bets.ante", "10"),
        ({"ante": 100_002}, StakeAboveMaximumError, "bets.ante", "100000"),
        ({"ante": 101}, StakeStepError, "bets.ante", "2"),
        ({"ante": 100, "trips": 8}, StakeBelowMinimumError, "bets.trips", "10"),
        ({"ante": 100, "trips": 10_002}, StakeAboveMaximumError, "bets.trips", "10000"),
        ({"ante": 100, "trips": 11}, StakeStepError, "bets.trips", "2"),
    ],
)
def test_limits_are_named(bets: dict[str, int], error: type[RgsError], field: str, limit: str) -> None:
    with pytest.raises(error) as caught:
        games.check_stakes(UTH, bets)
    bet = field.removeprefix("bets.")
    assert caught.value.field == field
    assert caught.value.metadata == {
        "bet": bet,
        "value": str(bets[bet]),
        "limit": limit,
        "rule": "U-10",
    }
    assert limit in caught.value.message


@pytest.mark.parametrize("bet", ["blind", "play", "aa", "call", "", "Ante"])
def test_bets_that_the_player_does_not_place(bet: str) -> None:
    with pytest.raises(UnknownBetError) as caught:
        games.check_stakes(UTH, {"ante": 100, bet: 100})
    assert (caught.value.field, caught.value.metadata["rule"]) == (f"bets.{bet}", "U-10")


@pytest.mark.parametrize(
    ("bets", "field"),
    [
        ({}, "bets.ante"),
        ({"trips": 100}, "bets.ante"),  # trips only beside an ante
        ({"ante": -100}, "bets.ante"),
        ({"ante": True}, "bets.ante"),
        ({"ante": 100.0}, "bets.ante"),
        ({"ante": 100, "trips": "10"}, "bets.trips"),
    ],
)
@pytest.mark.parametrize("enforce_limits", [True, False])
def test_stakes_that_are_none(bets: dict[str, int], field: str, enforce_limits: bool) -> None:
    with pytest.raises(InvalidFieldError) as caught:
        games.check_stakes(UTH, bets, enforce_limits=enforce_limits)
    assert (caught.value.field, caught.value.metadata["rule"]) == (field, "U-10")


def test_without_limits() -> None:
    check = games.check_stakes
    assert check(UTH, {"ante": 3, "trips": 1}, enforce_limits=False) == (("ante", 3), ("blind", 3), ("trips", 1))
    with pytest.raises(InvalidFieldError, match="left out"):
        check(UTH, {"ante": 3, "trips": 0}, enforce_limits=False)


def test_errors_of_casino_holdem_name_its_rule() -> None:
    with pytest.raises(StakeBelowMinimumError) as caught:
        games.check_stakes(CASINO, {"ante": 9})
    assert caught.value.metadata["rule"] == "C-8"


def test_exposure() -> None:
    assert games.cheapest_finish(UTH, {"ante": 100, "trips": 50}) == 0
    assert games.dearest_finish(UTH, {"ante": 100, "trips": 50}) == 400
    assert games.cheapest_finish(CASINO, {"ante": 100}) == 0
    assert games.dearest_finish(CASINO, {"ante": 100}) == 200


@pytest.mark.parametrize(
    ("balance_minor", "side_bets", "ante"),
    [
        (0, {}, 0),
        (59, {}, 0),
        (60, {}, 10),
        (71, {}, 10),
        (72, {}, 12),
        (100, {"trips": 40}, 10),
        (99, {"trips": 40}, 0),
        (30, {"trips": 40}, 0),
        (100_000, {}, 16_666),
        (10**9, {}, 100_000),
    ],
)
def test_the_largest_ante_leaves_every_option_open(balance_minor: int, side_bets: dict[str, int], ante: int) -> None:
    """Ante, blind and four antes of play: six antes and the side bets."""
    assert games.largest_ante(UTH, balance_minor, side_bets) == ante


def test_the_largest_ante_of_casino_holdem_is_a_third() -> None:
    assert games.largest_ante(CASINO, 1_000, {}) == 333
    assert games.largest_ante(CASINO, 1_000, {"aa": 100}) == 300


def test_the_largest_ante_of_what_may_not_be() -> None:
    with pytest.raises(UnknownBetError):
        games.largest_ante(UTH, 1_000, {"aa": 10})
    with pytest.raises(StakeStepError):
        games.largest_ante(UTH, 1_000, {"trips": 11})
    with pytest.raises(InvalidFieldError):
        games.largest_ante(UTH, -1, {})
