"""Draw accounting and the set of ids, each against a plain model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgs.core.errors import VerificationError
from rgs.core.ids import format_ulid
from rgs.core.replay.draws import DrawAccount
from rgs.core.replay.identifiers import IdSet
from rng.drbg import HashDrbg
from rng.errors import GeneratorFailedError, RngError
from rng.generator import Generator


@given(st.permutations(range(1, 13)), st.integers(0, 12))
def test_draws_in_any_order_leave_the_gaps_that_a_set_would(order: list[int], count: int) -> None:
    account, seen = DrawAccount(), set()
    for draw_no in order[:count]:
        account.use(draw_no, draw_no)
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
    st.lists(st.tuples(st.integers(1, 10), st.integers(1, 12)), min_size=1, max_size=10, unique_by=lambda draw: draw[0])
)
def test_the_reseed_counter_is_what_the_certified_unit_gives(draws: list[tuple[int, int]]) -> None:
    account = DrawAccount()
    for draw_no, reseed_counter in draws:
        if reseed_counter == draw_no:
            account.use(draw_no, reseed_counter)
        else:
            with pytest.raises(VerificationError, match=f"the certified unit gives {draw_no}"):
                account.use(draw_no, reseed_counter)
    highest = max(draw_no for draw_no, _ in draws)
    assert (account.highest, account.missing) == (highest, highest - len(draws))


def test_the_certified_unit_gives_the_draw_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """One reseed before each draw; one that fails, before or behind its reseed, is the last."""
    generator = Generator("rgs-1")
    assert [(draw.draw_no, draw.reseed_counter) for draw in (generator.draw() for _ in range(50))] == [
        (number, number) for number in range(1, 51)
    ]

    def fail(*_: object) -> bytes:
        raise RngError("X", "planted")

    monkeypatch.setattr(HashDrbg, "generate", fail)
    for _ in range(2):
        with pytest.raises(GeneratorFailedError):
            generator.draw()
        monkeypatch.undo()


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


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), st.text(max_size=3)), max_size=30))
def test_ids_of_any_form_are_kept_apart_by_what_they_are_ids_of(named: list[tuple[str, str]]) -> None:
    ids, model = IdSet(), set()
    for one in named:
        assert ids.add_text(*one) == (one not in model)
        model.add(one)
