"""Draw accounting and the set of ids, each against a plain model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgs.core.errors import VerificationError
from rgs.core.ids import format_ulid
from rgs.core.replay.draws import DrawAccount
from rgs.core.replay.identifiers import IdSet


@given(st.permutations(range(1, 13)), st.integers(0, 12))
def test_draws_in_any_order_leave_the_gaps_that_a_set_would(order: list[int], count: int) -> None:
    account, seen = DrawAccount(), set()
    for draw_no in order[:count]:
        account.use(draw_no, 3 * draw_no)
        seen.add(draw_no)
        below = set(range(1, max(seen) + 1))
        assert account.highest == max(seen)
        assert account.missing == len(below - seen)
        assert account.first_missing() == min(below - seen, default=max(seen) + 1)


@given(st.permutations(range(1, 9)), st.integers(1, 8))
def test_a_draw_counts_once(order: list[int], count: int) -> None:
    account = DrawAccount()
    for draw_no in order[:count]:
        account.use(draw_no, draw_no)
    for draw_no in order[:count]:
        with pytest.raises(VerificationError, match="twice"):
            account.use(draw_no, draw_no)


@given(
    st.lists(st.tuples(st.integers(1, 10), st.integers(1, 20)), min_size=1, max_size=10, unique_by=lambda draw: draw[0])
)
def test_reseed_counters_must_rise_between_their_neighbours(draws: list[tuple[int, int]]) -> None:
    account = DrawAccount()
    kept: dict[int, int] = {}
    for draw_no, reseed_counter in draws:
        below = max(((no, kept[no]) for no in kept if no < draw_no), default=(0, 0))[1]
        above = min(((no, kept[no]) for no in kept if no > draw_no), default=(0, reseed_counter + 1))[1]
        kept[draw_no] = reseed_counter
        if below < reseed_counter < above:
            account.use(draw_no, reseed_counter)
        else:
            with pytest.raises(VerificationError, match="does not rise"):
                account.use(draw_no, reseed_counter)
    assert account.missing == max(kept) - len(kept)


def test_a_gap_of_any_width_costs_the_same() -> None:
    account = DrawAccount()
    account.use(10**17, 10**17)
    assert (account.missing, account.first_missing()) == (10**17 - 1, 1)


ULIDS = st.builds(format_ulid, st.integers(0, 2**48 - 1), st.binary(min_size=10, max_size=10))


@given(st.lists(ULIDS, max_size=30), ULIDS)
def test_ids_are_kept_as_a_set_keeps_them(ulids: list[str], other: str) -> None:
    ids, model = IdSet(), set()
    for ulid in ulids:
        assert ids.add(ulid) == (ulid not in model)
        model.add(ulid)
    assert (other in ids) == (other in model)
    assert all(ulid in ids for ulid in ulids)


def test_ids_of_one_bucket_are_told_apart() -> None:
    ids = IdSet()
    same_end = [format_ulid(0, bytes([number, *bytes(9)])) for number in range(200)]
    assert all(ids.add(ulid) for ulid in same_end[::2])
    assert all((ulid in ids) == (number % 2 == 0) for number, ulid in enumerate(same_end))
