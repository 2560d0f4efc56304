"""Limits on bets inside the ruleset's: those of an operator, of a player, of a session.

They never widen what the ruleset allows, and they lie on its step, so that nothing is ever rounded. A session signs the
ones that hold for it (`session_open` version 2).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rgs.core.errors import InvalidFieldError
from rgs.core.games.types import Ruleset, StakeLimits

BetLimits = tuple[tuple[str, StakeLimits], ...]
"""Limits by bet, in the order of the names of the bets, each bet once. A bet without limits has the ruleset's."""


def bet_limits_body(limits: BetLimits) -> list[dict[str, str]]:
    """The limits as statements hold them."""
    return [{"bet": bet, "max_minor": str(one.max_minor), "min_minor": str(one.min_minor)} for bet, one in limits]


def parse_bet_limits(rows: Iterable[Mapping[str, Any]]) -> BetLimits:
    """The limits of a statement. Inverse of `bet_limits_body`."""
    return tuple((row["bet"], StakeLimits(int(row["min_minor"]), int(row["max_minor"]))) for row in rows)


def within(widest: Mapping[str, StakeLimits], limits: BetLimits) -> Mapping[str, StakeLimits]:
    """The limits that hold for each bet of `widest`: where both speak of a bet, the narrower ones."""
    if not limits:
        return widest
    narrow = dict(limits)
    return {bet: _narrower(one, narrow[bet]) if bet in narrow else one for bet, one in widest.items()}


def joined(ruleset: Ruleset, *limits: BetLimits) -> BetLimits:
    """The limits that hold where several do: for each bet the narrowest. Bets that the ruleset lacks are left out."""
    found: dict[str, StakeLimits] = {}
    for bet, one in (pair for each in limits for pair in each if pair[0] in ruleset.limits):
        found[bet] = _narrower(found[bet], one) if bet in found else one
    return tuple(sorted(found.items()))


def verify_bet_limits(
    limits: BetLimits, widest: Mapping[str, StakeLimits], step_minor: int, *, whose: str, field: str = "bet_limits"
) -> None:
    """InvalidFieldError unless each bet stands there once, in order, inside `widest` and on the step.

    `whose` says in the error whose limits `widest` are.
    """
    names = [bet for bet, _ in limits]
    if names != sorted(set(names)):
        raise InvalidFieldError(
            f"{field}: {', '.join(names)} is not each bet once in the order of the names", field=field, value=len(names)
        )
    for bet, one in limits:
        if bet not in widest:
            raise InvalidFieldError(
                f"{field}: {bet[:16]!r} is not a bet that the player places; {whose} has {', '.join(sorted(widest))}",
                field=field,
                value=bet[:16],
                limit=", ".join(sorted(widest)),
            )
        most = widest[bet]
        for name, value in (("min_minor", one.min_minor), ("max_minor", one.max_minor)):
            where = f"{field}.{bet}.{name}"
            if not most.min_minor <= value <= most.max_minor:
                raise InvalidFieldError(
                    f"{where}: {value} is outside {most.min_minor}..{most.max_minor}, the limits of {whose}",
                    field=where,
                    value=value,
                    limit=f"{most.min_minor}..{most.max_minor}",
                )
            if value % step_minor:
                raise InvalidFieldError(
                    f"{where}: {value} is not a multiple of {step_minor}, the step of {whose}",
                    field=where,
                    value=value,
                    limit=step_minor,
                )
        if one.min_minor > one.max_minor:
            raise InvalidFieldError(
                f"{field}.{bet}: the least bet {one.min_minor} is above the most, {one.max_minor}",
                field=f"{field}.{bet}.min_minor",
                value=one.min_minor,
                limit=one.max_minor,
            )


def _narrower(one: StakeLimits, other: StakeLimits) -> StakeLimits:
    return StakeLimits(max(one.min_minor, other.min_minor), min(one.max_minor, other.max_minor))
