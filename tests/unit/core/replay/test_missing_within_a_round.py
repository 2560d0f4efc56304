"""A gap between an opening and its final hides debits of bets only where bets are debited one by one."""

from __future__ import annotations

from typing import Any

from tests.support.records.cutting import held
from tests.support.records.granted import free_bets
from tests.support.records.lies import add, lie_at
from tests.support.records.replaying import replay_file


def _later_and_richer(body: dict[str, Any]) -> None:
    """The final claims to stand one link later, and more money before it."""
    add("link_no", by=1)(body)
    add("balance_before_minor", by=5)(body)
    add("balance_after_minor", by=5)(body)


def test_no_gap_explains_money_that_a_participation_does_not_have() -> None:
    factory = free_bets(lie_at("round_final", 1, _later_and_richer))
    verdict = replay_file(held((1, 4), (6, 6))(factory), factory.keys())
    assert "balance 10205 before, opening and transfers come to 10200" in [one.message for one in verdict.failures]
