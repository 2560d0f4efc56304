"""Stakes: which bets may open a round, what finishing it can cost, and the ante that leaves every option open.

U-10 and C-8: limits and step of the table. The system places the blind, always equal to the ante (section 2). A round
starts only if its cheapest finish is covered (ARCHITECTURE 2.4). Errors name field, stake, limit and rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from rgs.core.errors import (
    InvalidFieldError,
    StakeAboveMaximumError,
    StakeBelowMinimumError,
    StakeStepError,
    UnknownBetError,
)
from rgs.core.games.types import FamilyRules, Phase, Ruleset, StakeLimits
from rgs.core.money import verify_amount


def check_stakes(
    ruleset: Ruleset,
    bets: Mapping[str, int],
    *,
    enforce_limits: bool = True,
    limits: Mapping[str, StakeLimits] | None = None,
) -> tuple[tuple[str, int], ...]:
    """Return all opening bets as (bet, minor units) in canonical order, from those that the player places.

    `limits` are those of a table, within the ruleset's. `enforce_limits=False` leaves out limits and step, for settling
    recorded rounds of other tables. Raises UnknownBetError, InvalidFieldError, StakeBelowMinimumError,
    StakeAboveMaximumError or StakeStepError.
    """
    rules = ruleset.rules
    _verify_known(rules, bets)
    if "ante" not in bets:
        raise InvalidFieldError("bets.ante: a round needs an ante", field="bets.ante", rule=rules.stake_rule)
    for bet, stake_minor in bets.items():
        verify_amount(stake_minor, f"bets.{bet}", rule=rules.stake_rule)
        if enforce_limits:
            _verify_limits(ruleset, (limits or ruleset.limits)[bet], bet, stake_minor)
        elif stake_minor == 0:
            raise InvalidFieldError(
                f"bets.{bet}: a bet that is not placed is left out", field=f"bets.{bet}", rule=rules.stake_rule
            )
    placed = dict.fromkeys(_system_bets(rules), bets["ante"]) | dict(bets)
    return tuple((bet, placed[bet]) for bet in rules.opening_bets if bet in placed)


def cheapest_finish(ruleset: Ruleset, bets: Mapping[str, int]) -> int:
    """Return the least that the decisions still to come can cost, in minor units: 0, giving up is free (U-11)."""
    return min(_finishes(ruleset.rules, ruleset.rules.first_phase)) * bets["ante"]


def dearest_finish(ruleset: Ruleset, bets: Mapping[str, int]) -> int:
    """Return the most that the decisions still to come can cost, in minor units."""
    return max(_finishes(ruleset.rules, ruleset.rules.first_phase)) * bets["ante"]


def largest_ante(ruleset: Ruleset, balance_minor: int, side_bets: Mapping[str, int]) -> int:
    """Return the largest ante, within limits and on the step, with which the balance covers every option.

    0 if the balance does not even cover the minimum so. The side bets must be placeable; raises as `check_stakes` does.
    """
    rules = ruleset.rules
    verify_amount(balance_minor, "balance_minor")
    limits = ruleset.limits["ante"]
    if side_bets:
        check_stakes(ruleset, {**side_bets, "ante": limits.min_minor})
    antes = dearest_round(rules)
    covered_minor = (balance_minor - sum(side_bets.values())) // antes
    ante_minor = min(covered_minor, limits.max_minor)
    ante_minor -= ante_minor % ruleset.step_minor
    return ante_minor if ante_minor >= limits.min_minor else 0


@cache
def dearest_round(rules: FamilyRules) -> int:
    """Return what the main bets of a round can cost at most, in antes."""
    return 1 + len(_system_bets(rules)) + max(_finishes(rules, rules.first_phase))


@cache
def _system_bets(rules: FamilyRules) -> tuple[str, ...]:
    return tuple(bet for bet in rules.opening_bets if bet not in rules.placed_bets)


@cache  # of the few games and phases that there are
def _finishes(rules: FamilyRules, phase: Phase) -> frozenset[int]:
    """Return what each way from this phase to the showdown costs, in antes."""
    if phase is Phase.SHOWDOWN:
        return frozenset({0})
    return frozenset(
        rules.multiples.get(action, 0) + rest
        for action, following in rules.transitions[phase].items()
        for rest in _finishes(rules, following)
    )


def _verify_known(rules: FamilyRules, bets: Mapping[str, int]) -> None:
    for bet in bets:
        if bet not in rules.placed_bets:
            raise UnknownBetError(
                f"bets.{bet}: the player places {' and '.join(rules.placed_bets)}",
                field=f"bets.{bet}",
                bet=bet,
                rule=rules.stake_rule,
            )


def _verify_limits(ruleset: Ruleset, limits: StakeLimits, bet: str, stake_minor: int) -> None:
    field = f"bets.{bet}"
    for is_broken, error, problem, limit in (
        (stake_minor < limits.min_minor, StakeBelowMinimumError, "below the minimum", limits.min_minor),
        (stake_minor > limits.max_minor, StakeAboveMaximumError, "above the maximum", limits.max_minor),
        (stake_minor % ruleset.step_minor, StakeStepError, "not a multiple of", ruleset.step_minor),
    ):
        if is_broken:
            raise error(
                f"{field}: {stake_minor} is {problem} {limit}",
                field=field,
                bet=bet,
                value=stake_minor,
                limit=limit,
                rule=ruleset.rules.stake_rule,
            )
