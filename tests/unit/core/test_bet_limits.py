"""Limits on bets: never wider than what they lie in, never off the step, each bet once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgs.core import games
from rgs.core.bet_limits import (
    BetLimits,
    bet_limits_body,
    joined,
    parse_bet_limits,
    verify_bet_limits,
    within,
)
from rgs.core.errors import InvalidFieldError, StakeAboveMaximumError, StakeBelowMinimumError
from rgs.core.games.types import Ruleset, StakeLimits
from rgs.core.rulesets import SHIPPED_RULESETS, load_ruleset

UTH = load_ruleset("uth-solo")
RULESETS = [load_ruleset(name) for name in SHIPPED_RULESETS]


def verify(found: BetLimits) -> None:
    verify_bet_limits(found, UTH.limits, UTH.step_minor, whose=UTH.id)


def limits(**bets: tuple[int, int]) -> BetLimits:
    """These limits, in the order in which they are given."""
    return tuple((bet, StakeLimits(*pair)) for bet, pair in bets.items())


@st.composite
def limits_of(draw: st.DrawFn, ruleset: Ruleset = UTH) -> BetLimits:
    """Limits that are right for the ruleset, of some of its bets."""
    found = []
    for bet, widest in sorted(ruleset.limits.items()):
        if draw(st.booleans()):
            steps = st.integers(widest.min_minor // ruleset.step_minor, widest.max_minor // ruleset.step_minor)
            least, most = sorted((draw(steps), draw(steps)))
            found.append((bet, StakeLimits(least * ruleset.step_minor, most * ruleset.step_minor)))
    return tuple(found)


@given(limits_of())
def test_what_is_signed_is_read_again(kept: BetLimits) -> None:
    verify(kept)
    assert parse_bet_limits(bet_limits_body(kept)) == kept
    assert joined(UTH, kept) == kept


@given(limits_of(), limits_of())
def test_of_two_limits_the_narrower_holds(first: BetLimits, second: BetLimits) -> None:
    both = within(within(UTH.limits, first), second)
    assert both == within(UTH.limits, joined(UTH, first, second))
    for bet, one in both.items():
        given_for_it = [dict(each)[bet] for each in (first, second) if bet in dict(each)]
        for wider in (UTH.limits[bet], *given_for_it):
            assert wider.min_minor <= one.min_minor
            assert one.max_minor <= wider.max_minor


@given(st.sampled_from(RULESETS).flatmap(lambda ruleset: st.tuples(st.just(ruleset), limits_of(ruleset))), st.data())
def test_a_bet_within_them_is_paid_without_rounding(found: tuple[Ruleset, BetLimits], data: st.DataObject) -> None:
    ruleset, kept = found
    narrow = within(ruleset.limits, kept)
    one, step = narrow["ante"], ruleset.step_minor
    ante = data.draw(st.integers(one.min_minor // step, one.max_minor // step)) * step
    assert games.check_stakes(ruleset, {"ante": ante}, limits=narrow)
    with pytest.raises(StakeBelowMinimumError):
        games.check_stakes(ruleset, {"ante": one.min_minor - step}, limits=narrow)
    with pytest.raises(StakeAboveMaximumError):
        games.check_stakes(ruleset, {"ante": one.max_minor + step}, limits=narrow)


def test_without_limits_the_widest_are_the_very_same() -> None:
    assert within(UTH.limits, ()) is UTH.limits
    assert joined(UTH, (("aa", StakeLimits(10, 20)),)) == ()  # a bet of another game


@pytest.mark.parametrize(
    ("given_limits", "field", "message"),
    [
        (limits(aa=(10, 20)), "", "'aa' is not a bet that the player places; uth-solo has ante, trips"),
        (limits(trips=(10, 20), ante=(10, 20)), "", "trips, ante is not each bet once"),
        (limits(ante=(10, 20)) * 2, "", "ante, ante is not each bet once"),
        (limits(ante=(8, 20)), ".ante.min_minor", "8 is outside 10..100000, the limits of uth-solo"),
        (limits(ante=(10, 100_002)), ".ante.max_minor", "100002 is outside 10..100000"),
        (limits(ante=(11, 20)), ".ante.min_minor", "11 is not a multiple of 2, the step of uth-solo"),
        (limits(ante=(10, 21)), ".ante.max_minor", "21 is not a multiple of 2"),
        (limits(ante=(20, 10)), ".ante.min_minor", "the least bet 20 is above the most, 10"),
    ],
)
def test_what_is_refused(given_limits: BetLimits, field: str, message: str) -> None:
    with pytest.raises(InvalidFieldError) as caught:
        verify(given_limits)
    assert caught.value.field == f"bet_limits{field}"
    assert message in caught.value.message
