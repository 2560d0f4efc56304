"""The participation account: three accounts that sum to zero whatever happens, a balance never below zero, one end."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgs.core.errors import InsufficientBalanceError, ParticipationCapError, ParticipationEndedError
from rgs.core.ledger import PARTICIPATION_MINOR_MAX, Participation

AMOUNTS = st.integers(0, 10**9)
MOVES = st.lists(st.tuples(st.sampled_from(["buy", "stake", "give_back"]), AMOUNTS), max_size=40)


def moved(account: Participation, move: str, amount_minor: int) -> Participation:
    if move == "buy":
        return account.buy(amount_minor, cap_minor=None)
    return account.stake(amount_minor) if move == "stake" else account.give_back(amount_minor)


@given(MOVES)
def test_the_accounts_conserve(moves: list[tuple[str, int]]) -> None:
    account = Participation()
    bought = staked = returned = 0
    for move, amount_minor in moves:
        before = account
        try:
            account = moved(account, move, amount_minor)
        except InsufficientBalanceError:
            assert move == "stake"
            assert amount_minor > before.balance_minor
            assert account is before
            continue
        bought += amount_minor * (move == "buy")
        staked += amount_minor * (move == "stake")
        returned += amount_minor * (move == "give_back")
        accounts = account.accounts()
        assert sum(accounts.values()) == 0
        assert accounts == {"wallet": -bought, "participation": bought - staked + returned, "bank": staked - returned}
        assert account.balance_minor == bought - staked + returned >= 0
        assert account.net_position_minor == returned - staked
    ended = account.end()
    assert (ended.balance_minor, ended.paid_out_minor, ended.ended) == (0, bought - staked + returned, True)
    assert sum(ended.accounts().values()) == 0
    assert ended.accounts() == {"wallet": returned - staked, "participation": 0, "bank": staked - returned}


def test_the_oracle_sees_money_that_comes_from_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        Participation, "give_back", lambda self, amount: replace(self, returned_minor=self.returned_minor + amount + 1)
    )
    with pytest.raises(AssertionError):
        test_the_accounts_conserve.hypothesis.inner_test([("give_back", 5)])  # type: ignore[attr-defined]


def test_all_purchases_together_stay_within_the_cap() -> None:
    account = Participation().buy(600, cap_minor=1000)
    assert account.buy(400, cap_minor=1000).balance_minor == 1000
    with pytest.raises(ParticipationCapError) as caught:
        account.buy(401, cap_minor=1000)
    assert (caught.value.field, caught.value.metadata) == (
        "amount_minor",
        {"limit": "1000", "value": "401", "bought_minor": "600"},
    )


def test_staked_money_does_not_make_room_under_the_cap() -> None:
    account = Participation().buy(1000, cap_minor=1000).stake(1000)
    with pytest.raises(ParticipationCapError):
        account.buy(1, cap_minor=1000)


def test_no_participation_is_larger_than_64_bits_can_carry() -> None:
    account = Participation().buy(PARTICIPATION_MINOR_MAX, cap_minor=None)
    with pytest.raises(ParticipationCapError) as caught:
        account.buy(1, cap_minor=None)
    assert caught.value.metadata == {"limit": str(PARTICIPATION_MINOR_MAX), "value": "1"}


def test_a_stake_takes_no_more_than_there_is() -> None:
    account = Participation().buy(100, cap_minor=None)
    assert account.stake(100).balance_minor == 0
    with pytest.raises(InsufficientBalanceError) as caught:
        account.stake(101)
    assert caught.value.metadata == {"limit": "100", "value": "101"}


@pytest.mark.parametrize("move", ["buy", "stake", "give_back", "end"])
def test_nothing_moves_after_the_end(move: str) -> None:
    ended = Participation().buy(100, cap_minor=None).end()
    with pytest.raises(ParticipationEndedError):
        ended.end() if move == "end" else moved(ended, move, 0)
