"""What the links of a session come to, to the unit: with free bets and without, stopped anywhere or begun late."""

from __future__ import annotations

import pytest

from tests.support.records.betting import bet_by_bet
from tests.support.records.cutting import held
from tests.support.records.factory import RecordFactory
from tests.support.records.granted import Guest, free_bets
from tests.support.records.lies import add, lie_at
from tests.support.records.replaying import RULEBOOK, replay_file, replay_lines
from tests.unit.core.replay.test_stopped import replayed


@pytest.mark.parametrize("reason", ["MALFUNCTION", "DECK_UNRECOVERABLE"])
def test_what_went_back_to_the_campaign_is_not_the_player_s(reason: str) -> None:
    factory = free_bets(reason=reason)
    verdict = replay_lines(factory)
    assert (verdict.checks, verdict.rounds[0]) == ([], 5)
    lies = [
        lie_at("participation_end", 1, add(name, by=by))
        for name in ("returned_minor", "staked_minor")
        for by in (1, -1)
    ]
    for lie in lies:
        assert "18 balance" in replay_lines(free_bets(lie, reason=reason)).checks


def test_a_free_bet_that_is_won_is_paid_out_without_its_stake() -> None:
    """Round by round until one has returned more than was granted, one less."""
    reclaimed = 0
    for seed in range(12):
        factory = RecordFactory(f"won-{seed}", law_version=None)
        one = factory.start("rgs-1")
        player = factory.open(one, jurisdiction="demo")
        factory.buy(one, player, 50_000)
        guest = Guest(factory, one, player)
        for ante in (100, 40, 20):
            guest.play(ante, ["play_4x"])
            factory.play(one, player, {"ante": 30}, ["play_4x"])
        reclaimed += player.reclaimed
        factory.end_participation(one, player)
        factory.close(one, player)
        factory.end(one)
        verdict = replay_lines(factory)
        assert ([failure.message for failure in verdict.failures], verdict.rounds[0]) == ([], 6)
    assert reclaimed > 0


@pytest.mark.parametrize("build", [free_bets, bet_by_bet])
def test_a_replay_that_is_stopped_between_a_debit_and_its_return_says_the_same(build: type[RecordFactory]) -> None:
    factory = build()
    lines, keys = factory.lines, factory.keys()
    stopped = replayed(lines, keys, is_stopped=True)
    assert stopped == replayed(lines, keys, is_stopped=False)
    assert stopped[0] == []


def test_the_whole_cap_may_be_bought_and_not_a_unit_more() -> None:
    cap = RULEBOOK.jurisdictions["it-adm"].cap_minor("EUR") if hasattr(RULEBOOK, "jurisdictions") else 100_000
    for amounts, checks in (((cap,), []), ((cap - 7, 7), []), ((cap - 7, 8), ["8 rules"])):
        factory = RecordFactory("cap")
        one = factory.start("rgs-1")
        player = factory.open(one, jurisdiction="it-adm")
        for amount in amounts:
            factory.buy(one, player, amount)
        factory.end_participation(one, player)
        factory.close(one, player)
        factory.end(one)
        assert replay_lines(factory).checks == checks, amounts


@pytest.mark.parametrize("first", range(1, 14))
def test_bets_may_begin_with_any_link(first: int) -> None:
    """Whatever it is: a debit before a round, its opening, one within it, its final or what goes back."""
    factory = bet_by_bet()
    verdict = replay_file(held((first, 0))(factory), factory.keys())
    within = {"7 session"} if first in (4, 13) else set()  # the debit's own round begins outside of the file
    assert set(verdict.checks) <= {"11 opening"} | within
