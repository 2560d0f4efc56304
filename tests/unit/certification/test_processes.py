"""A function in processes of their own: what one process finds, in order; a killed one is told at any moment."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial

import pytest

from certification.processes import ProcessLostError, over


def power(exponent: int, value: int) -> int:
    """A function that can be named to another process."""
    if value == 13:
        raise ValueError(f"{value} is refused")
    if value == 66:
        os.kill(os.getpid(), 9)
    return int(value**exponent)


@pytest.mark.parametrize("workers", [0, 1, 2, 3])
def test_the_answers_come_in_the_order_of_the_values(workers: int) -> None:
    assert list(over(partial(power, 3), [*range(13)] * 3, workers)) == [value**3 for value in range(13)] * 3
    assert not multiprocessing.active_children()


def test_few_values_are_held() -> None:
    taken = 0

    def values() -> Iterator[int]:
        nonlocal taken
        for value in itertools.count():
            taken += 1
            yield value % 10

    with closing(over(partial(power, 2), values(), 2)) as answers:  # type: ignore[type-var]
        assert list(itertools.islice(answers, 30)) == [value % 10 * (value % 10) for value in range(30)]
    assert taken <= 36
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("workers", [1, 2])
def test_what_the_function_raises_is_raised_here(workers: int) -> None:
    with pytest.raises(ValueError, match="13 is refused") as caught:
        list(over(partial(power, 2), range(40), workers))
    if workers > 1:
        assert "in power" in caught.value.__notes__[0]
    assert not multiprocessing.active_children()


def killed(after_s: float) -> None:
    """The first process of the pool, so long after it was begun."""
    while not (begun := multiprocessing.active_children()):
        time.sleep(0.001)
    time.sleep(after_s)
    begun[0].kill()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("after_s", [0, 0.01, 0.02, 0.03, 0.3])
def test_a_process_that_is_killed_ends_it_at_any_moment(after_s: float) -> None:
    """Also while the next one is being started, and when its pipe is full of what it has found."""
    values = itertools.repeat(7)  # without end: only the loss of a process can end it
    killer = threading.Thread(target=killed, args=(after_s,))
    killer.start()
    with pytest.raises(ProcessLostError, match="a process of the pool was lost"):
        for _ in over(partial(power, 100_000), values, 2):
            pass
    killer.join()
    assert not multiprocessing.active_children()


def test_a_process_that_ends_itself_is_lost() -> None:
    with pytest.raises(ProcessLostError):
        list(over(partial(power, 1), [66], 2))
