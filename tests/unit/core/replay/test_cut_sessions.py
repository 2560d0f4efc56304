"""Cut files that begin behind the link that says who paid, or whose missing links are transfers: what the lines do not
show is taken as given, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from tests.support.records.betting import Bettor, bet_by_bet
from tests.support.records.cutting import Range, held
from tests.support.records.factory import RecordFactory
from tests.support.records.granted import free_bets
from tests.support.records.lies import add, lie_at, put
from tests.support.records.replaying import Verdict, replay_file

HIDDEN = partial(free_bets, reason="DECK_UNRECOVERABLE")


def judged(build: Callable[..., RecordFactory], *ranges: Range) -> Verdict:
    factory = build()
    return replay_file(held(*ranges)(factory), factory.keys())


@pytest.mark.parametrize(
    ("build", "ranges", "verified"),
    [
        (free_bets, [(4, 0)], 5),
        (free_bets, [(4, 6)], 1),
        (free_bets, [(6, 8)], 1),
        (free_bets, [(1, 6), (10, 12)], 2),
        (free_bets, [(1, 4), (10, 0)], 3),
        (free_bets, [(1, 4), (9, 0)], 3),
        (HIDDEN, [(10, 12)], 1),
        (bet_by_bet, [(3, 0)], 4),
        (bet_by_bet, [(3, 3), (5, 0)], 4),
        (bet_by_bet, [(1, 3), (5, 0)], 4),
        (bet_by_bet, [(1, 2), (6, 0)], 3),
        (bet_by_bet, [(1, 3), (6, 0)], 3),
        (bet_by_bet, [(1, 3), (7, 0)], 3),
    ],
)
def test_an_honest_cut_is_accepted(build: Callable[..., RecordFactory], ranges: list[Range], verified: int) -> None:
    verdict = judged(build, *ranges)
    assert verdict.checks == []
    assert verdict.rounds[0] == verified


@pytest.mark.parametrize("build", [free_bets, HIDDEN])
@pytest.mark.parametrize("final", [5, 11])
def test_a_final_whose_opening_is_missing_is_the_only_fault_of_a_round(
    build: Callable[..., RecordFactory], final: int
) -> None:
    """Its return is judged by the final where that shows what came back, and else taken as given."""
    verdict = judged(build, (final, 0))
    assert verdict.checks == ["11 opening"]


def test_a_return_of_which_a_final_without_its_opening_shows_another_amount() -> None:
    build = partial(free_bets, lie_at("free_bet", 2, add("amount_minor", by=1)))
    assert judged(build, (5, 6)).checks == ["11 opening", "18 balance"]
    hidden = partial(HIDDEN, lie_at("free_bet", 4, put("amount_minor", value="39")))
    assert judged(hidden, (11, 12)).checks == ["11 opening"]
    assert judged(hidden, (10, 12)).checks == ["18 balance"]


def test_a_return_behind_missing_links_is_of_no_round_before_them() -> None:
    """The round of the opening before the gap was not shown to be paid for; its final lies in the gap."""
    assert judged(free_bets, (1, 4), (6, 6)).checks == []
    assert judged(free_bets, (7, 8), (12, 12)).checks == []


def test_a_final_behind_missing_links_of_its_own_round_was_not_paid_for_by_a_free_bet() -> None:
    """Missing there are transfers, and no free bet pays in such a session."""
    assert (
        "7 session" in judged(partial(free_bets, lie_at("round_final", 1, add("link_no", by=1))), (4, 4), (6, 6)).checks
    )


def without_a_final() -> RecordFactory:
    """A round of links 2 to 5, two debits within it, and behind them the opening of the next one."""
    factory = RecordFactory("bets-11")
    one = factory.start("rgs-1")
    player = factory.open(one, jurisdiction="gb-ukgc", seamless=True)
    bettor = Bettor(factory, one, player, ())
    for ante in (100, 50):
        round_id = factory.ulid()
        bettor.transfer("debit", 2 * ante, round_id)
        factory.deal(one, [player], {"ante": ante}, round_id=round_id)
        bettor.transfer("debit", ante, round_id)
        bettor.transfer("debit", ante, round_id)
    return factory


@pytest.mark.parametrize(
    ("ranges", "is_fault"),
    [
        ([(3, 7)], True),
        ([(1, 3), (5, 7)], True),
        ([(1, 3), (6, 7)], False),
        ([(1, 5), (7, 7)], False),
        ([(1, 4), (6, 6)], False),
    ],
)
def test_an_opening_without_a_final_is_a_fault_where_no_link_behind_it_is_missing(
    ranges: list[Range], is_fault: bool
) -> None:
    """A debit for the round shows that it is open still, whatever is missing before the debit."""
    assert ("11 opening" in judged(without_a_final, *ranges).checks) == is_fault


def test_debits_that_are_not_missing_are_still_compared() -> None:
    build = partial(bet_by_bet, lie_at("transfer", 2, add("amount_minor", by=1)))
    assert judged(build, (3, 5)).checks == ["18 balance"]
    assert judged(build, (1, 5)).checks == ["18 balance"]
