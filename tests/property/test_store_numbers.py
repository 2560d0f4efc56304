"""Row numbers: unique over instances, and in order for each instance and each session, whatever the clocks say."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from rgs.store.interface import ROW_MAX
from rgs.store.numbers import EPOCH_MS, SLOTS, RowNumbers

CLOCKS = st.integers(EPOCH_MS - 10_000, EPOCH_MS + 10_000)
STEPS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), CLOCKS, st.integers(1, 5)), max_size=40)


@given(STEPS, st.lists(st.integers(0, SLOTS - 1), min_size=4, max_size=4, unique=True))
def test_numbers_are_unique_and_in_order(steps: list[tuple[int, int, int, int]], slots: list[int]) -> None:
    """Each step: an instance writes of a session, under any clock, some rows."""
    of_instance: defaultdict[int, list[int]] = defaultdict(lambda: [0])
    of_session: defaultdict[int, list[int]] = defaultdict(lambda: [0])
    everything: list[int] = []
    for instance, session, now_ms, rows in steps:
        numbers = RowNumbers(slots[instance], now_ms, max(of_instance[instance][-1], of_session[session][-1]))
        for _ in range(rows):
            number = numbers.take()
            of_instance[instance].append(number)
            of_session[session].append(number)
            everything.append(number)
    for order in (*of_instance.values(), *of_session.values()):
        assert order == sorted(set(order))
    assert len(everything) == len(set(everything))


@given(st.integers(0, SLOTS - 1), CLOCKS, st.integers(0, 1 << 40))
def test_a_slot_that_is_taken_again_goes_on_behind_its_last_number(slot: int, now_ms: int, previous: int) -> None:
    assert RowNumbers(slot, now_ms, previous).take() > previous


def test_the_numbers_last_for_a_generation() -> None:
    year_2059_ms = EPOCH_MS + 34 * 365 * 86_400_000
    assert RowNumbers(SLOTS - 1, year_2059_ms, 0).take() < ROW_MAX
