"""Two rulesets enumerated once a process, one of each game, and the strategies that a module looks at."""

from __future__ import annotations

import pytest

from certification.rtp.certificate import Enumerated
from certification.rtp.strategy import Strategy
from rgs.core.rulesets import load_ruleset


class Strategies(dict[tuple[str, bool], Strategy]):
    """Each is made when it is asked for: another process may have the tests that ask."""

    def __missing__(self, key: tuple[str, bool]) -> Strategy:
        ruleset_id, with_side_bet = key
        self[key] = Strategy(load_ruleset(ruleset_id), with_side_bet=with_side_bet)
        return self[key]


@pytest.fixture(scope="session")
def uth() -> Enumerated:
    return Enumerated(load_ruleset("uth-solo"))


@pytest.fixture(scope="session")
def casino() -> Enumerated:
    return Enumerated(load_ruleset("casino-holdem"))


@pytest.fixture(scope="module")  # 300 MB each: not kept for other modules
def strategies() -> dict[tuple[str, bool], Strategy]:
    """By ruleset, and whether the side bet is part of the play."""
    return Strategies()
