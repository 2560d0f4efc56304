"""Cut exports of rounds that campaigns or bets one by one pay for: both verifiers accept whatever honest cut there is,
and what the lines show of a fault stays a fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path

import pytest

from tests.integration.test_table_rounds_twice import Verifiers
from tests.support.records.betting import bet_by_bet
from tests.support.records.cutting import Range, cut_session, kinds_of, sessions_of
from tests.support.records.factory import RecordFactory
from tests.support.records.granted import free_bets
from tests.support.seeded import turn

STORIES: dict[str, Callable[[], RecordFactory]] = {
    "free bets": free_bets,
    "free bets of Casino Hold'em": partial(free_bets, ruleset="casino-holdem"),
    "free bets with a hidden deck": partial(free_bets, reason="DECK_UNRECOVERABLE"),
    "bets one by one": bet_by_bet,
}
Cut = tuple[Range, ...]


@pytest.fixture
def verifiers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Verifiers:
    return Verifiers(tmp_path, capsys)


def all_cuts(most: int) -> Iterator[Cut]:
    """From each link to each later one; and without one, two or more links in a row, from each of the first four on."""
    for first in range(1, most + 1):
        for last in range(first, most + 1):
            yield ((first, last),)
    for first in range(1, 5):
        for last in range(first, most - 1):
            for again in range(last + 2, most + 1):
                yield (first, last), (again, most)


def lacks_an_opening(kinds: dict[int, str], ranges: Cut) -> bool:
    """Whether a final is held without its opening, which is a fault: the file does not show what the final answers."""
    held = {number for first, last in ranges for number in range(first, last + 1)}
    opening = 0
    for number, kind in kinds.items():
        opening = number if kind == "round_opening" else opening
        if kind == "round_final" and number in held and opening not in held:
            return True
    return False


def agree_on_cuts(verifiers: Verifiers, build: Callable[[], RecordFactory], first: int, step: int) -> int:
    """How many of the cuts have the opening of each final: each of them is accepted, and no other."""
    factory = build()
    ((session, most),) = sessions_of(factory)
    kinds = kinds_of(factory, session)
    whole = 0
    for ranges in islice(all_cuts(most), first, None, step):
        _, _, checks = verifiers.agree(factory, cut_session(factory, session, *ranges))
        if lacks_an_opening(kinds, ranges):
            assert "11 opening" in checks, ranges
        else:
            assert checks == set(), ranges
            whole += 1
    return whole


@pytest.mark.parametrize("story", STORIES)
def test_both_accept_an_honest_cut(story: str, verifiers: Verifiers, pytestconfig: pytest.Config) -> None:
    assert agree_on_cuts(verifiers, STORIES[story], turn(pytestconfig, 40), 40) > 5


@pytest.mark.slow_exhaustive
@pytest.mark.parametrize("story", STORIES)
def test_both_accept_every_honest_cut(story: str, verifiers: Verifiers) -> None:
    assert agree_on_cuts(verifiers, STORIES[story], 0, 1) > 300


def test_a_cut_that_begins_at_the_opening_holds_the_return(verifiers: Verifiers) -> None:
    """The link that says who paid is outside of the file, and the return is in it: for each paid round."""
    factory = free_bets()
    ((session, most),) = sessions_of(factory)
    kinds = kinds_of(factory, session)
    openings = [number for number, kind in kinds.items() if kind == "round_opening"]
    assert len(openings) == 5
    del openings[1]  # the player's own
    for number in openings:
        assert (kinds[number - 1], kinds[number + 2]) == ("free_bet", "free_bet")
        for last in (number + 2, most):
            status, line, checks = verifiers.agree(factory, cut_session(factory, session, (number, last)))
            assert (status, checks) == (0, set())
            assert line.endswith(" 0 failed, ANCHORED")
