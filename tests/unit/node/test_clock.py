"""Trusted time: a wall clock that is set moves nothing; a witness or a person makes it right, and nothing else."""

from __future__ import annotations

import threading
import time

import pytest

from rgs.core.clock import APART_MS
from rgs.node.clock import (
    BEHIND_STORE,
    CLOCKS_DIFFER,
    JUMP_MS,
    READS_MAX,
    SET_WHILE_DOWN,
    TIME_JUMP,
    SystemClock,
    boot_id,
    monotonic_ms,
    wall_ms,
)

DAY_MS = 86_400_000
START_MS = 1_795_000_000_000


class Clocks:
    """A wall clock, a monotonic one, and a database's; `pass_` moves all."""

    def __init__(self, *, boot: str = "b1", up_ms: int = 77_000, ahead_ms: int = 0) -> None:
        self.wall_ms = START_MS + ahead_ms
        self.monotonic_ms = up_ms
        self.database_ms = START_MS
        self.clock = SystemClock(lambda: self.wall_ms, lambda: self.monotonic_ms, lambda: boot)

    def pass_(self, ms: int, wall_too_ms: int = 0, database_too_ms: int = 0) -> None:
        self.monotonic_ms += ms
        self.wall_ms += ms + wall_too_ms
        self.database_ms += ms + database_too_ms

    def hear(self, took_ms: int = 0) -> None:
        """The database's answer takes a while, and was given anywhere within it."""
        requested_ms = self.clock.running_ms()
        reported_ms = self.database_ms
        self.pass_(took_ms)
        self.clock.hear(reported_ms, requested_ms)


@pytest.mark.parametrize("jump_ms", [JUMP_MS + 1, -JUMP_MS - 1, 3_600_000, -DAY_MS, 10 * DAY_MS])
def test_a_jump_moves_no_time_and_is_never_believed_by_itself(jump_ms: int) -> None:
    clocks = Clocks()
    clocks.pass_(1_000)
    assert clocks.clock.is_trusted
    clocks.pass_(1_000, jump_ms)
    assert clocks.clock.now_ms() == START_MS + 2_000  # as it is asked: nobody has looked before
    assert (clocks.clock.against, clocks.clock.passed_ms(0)) == (TIME_JUMP, 0)
    assert (clocks.clock.take_jump(), clocks.clock.take_jump()) == (jump_ms, 0)
    for _ in range(1_000):
        clocks.pass_(10_000)
        assert clocks.clock.passed_ms(START_MS) == 0
    assert clocks.clock.now_ms() == START_MS + 2_000 + 10_000_000
    clocks.pass_(0, -jump_ms)  # nor when it is back
    assert (clocks.clock.against, clocks.clock.take_jump()) == (TIME_JUMP, -jump_ms)


@pytest.mark.parametrize("jump_ms", [JUMP_MS, -JUMP_MS])
def test_what_is_within_is_no_jump(jump_ms: int) -> None:
    clocks = Clocks()
    clocks.pass_(0, jump_ms)
    assert (clocks.clock.take_jump(), clocks.clock.is_trusted) == (0, True)


@pytest.mark.parametrize("sign", [1, -1])
def test_steps_that_are_small_each_do_not_add_up_unseen(sign: int) -> None:
    clocks = Clocks()
    seen = []
    for _ in range(10):
        clocks.pass_(1_000, sign * 500)
        seen.append(clocks.clock.is_trusted)
    assert seen[:4] == [True] * 4
    assert not seen[-1], "ten half seconds in ten seconds"
    assert abs(clocks.clock.now_ms() - START_MS - 10_000) < 20


@pytest.mark.parametrize("ppm", [500, -500])
def test_a_clock_that_is_steered_is_followed(ppm: int) -> None:
    clocks = Clocks()
    for _ in range(10_000):  # a hundred thousand seconds: fifty seconds of steering
        clocks.pass_(10_000, 10_000 * ppm // 1_000_000)
        assert clocks.clock.is_trusted
    assert abs(clocks.clock.now_ms() - clocks.wall_ms) <= 1


def test_a_wall_clock_that_stands_is_no_clock() -> None:
    clocks = Clocks()
    for _ in range(5):
        clocks.pass_(1_000, -1_000)
    assert clocks.clock.against == TIME_JUMP
    assert abs(clocks.clock.now_ms() - START_MS - 5_000) < 10


def test_time_never_goes_back_while_it_is_steered_back() -> None:
    clocks, last_ms = Clocks(), 0
    clocks.pass_(0, -JUMP_MS)
    for _ in range(5_000):
        assert clocks.clock.now_ms() >= last_ms
        last_ms = clocks.clock.now_ms()
        clocks.pass_(1)


def test_a_process_that_was_held_between_two_reads_has_seen_no_jump() -> None:
    held = [0, 60_000, *[60_000] * 20]
    wall = iter([START_MS, START_MS + 60_000 + 60_000, *[START_MS + 60_000] * 20])
    clock = SystemClock(lambda: next(wall), lambda: held.pop(0), lambda: "")
    assert clock.now_ms() == START_MS + 60_000
    assert clock.is_trusted
    assert READS_MAX > 1


# --- a person's word --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("jump_ms", [10 * DAY_MS, -10 * DAY_MS])
def test_a_persons_word_takes_the_wall_clock_and_begins_all_periods_anew(jump_ms: int) -> None:
    clocks = Clocks()
    before_ms = clocks.clock.now_ms()
    clocks.pass_(600_000, jump_ms)
    assert clocks.clock.against == TIME_JUMP
    clocks.clock.accept()
    assert clocks.clock.is_trusted
    assert clocks.clock.is_held == (jump_ms < 0)
    if jump_ms < 0:  # nothing is dated earlier before the jump has been signed
        assert clocks.clock.now_ms() == START_MS + 600_000
    clocks.clock.let_go()
    assert not clocks.clock.is_held
    assert clocks.clock.now_ms() == clocks.wall_ms == START_MS + 600_000 + jump_ms
    assert clocks.clock.passed_ms(before_ms) == 0, "ten days are no ten days because a clock says so"
    clocks.pass_(60_000)
    assert clocks.clock.passed_ms(before_ms) == (60_000 if jump_ms > 0 else 0)
    set_ms = START_MS + 600_000 + jump_ms
    assert clocks.clock.counted_from(0) == set_ms
    clocks.clock.counts_from(7)
    assert clocks.clock.counted_from(0) == 7


def test_what_has_passed_is_counted_from_then_and_never_below_nothing() -> None:
    clocks = Clocks()
    clocks.pass_(5_000)
    assert [clocks.clock.passed_ms(START_MS + ms) for ms in (0, 1, 5_000, 5_001, DAY_MS)] == [5_000, 4_999, 0, 0, 0]


# --- the database -----------------------------------------------------------------------------------------------------


def test_a_database_elsewhere_vouches_for_a_wall_clock_that_is_right_again() -> None:
    clocks = Clocks()
    clocks.hear()
    clocks.pass_(10_000, 3_600_000)
    clocks.hear()
    assert (clocks.clock.against, clocks.clock.differs) == (TIME_JUMP, CLOCKS_DIFFER)
    clocks.pass_(10_000, -3_600_000)
    assert clocks.clock.against == TIME_JUMP
    clocks.hear(took_ms=3_000)
    assert (clocks.clock.against, clocks.clock.differs) == ("", "")
    assert clocks.clock.now_ms() == clocks.wall_ms
    assert clocks.clock.counted_from(0) == 0  # no time was moved: no period begins anew


@pytest.mark.parametrize("jump_ms", [10 * DAY_MS, -10 * DAY_MS])
def test_a_database_on_the_same_machine_jumps_with_us_and_is_no_witness(jump_ms: int) -> None:
    clocks = Clocks()
    clocks.hear()
    clocks.pass_(10_000, jump_ms, jump_ms)
    for _ in range(100):
        clocks.hear()
        clocks.pass_(10_000)
        assert clocks.clock.against == TIME_JUMP
    clocks.clock.accept()
    clocks.hear()
    assert clocks.clock.is_trusted
    clocks.pass_(10_000, 3_600_000)  # from then on it is one again
    clocks.hear()
    clocks.pass_(10_000, -3_600_000)
    clocks.hear()
    assert clocks.clock.is_trusted


def test_small_steps_of_both_do_not_make_a_witness() -> None:
    clocks = Clocks()
    clocks.hear()
    for _ in range(20):
        clocks.pass_(10_000, 1_500, 1_500)
        clocks.hear()
    assert clocks.clock.against == TIME_JUMP
    assert abs(clocks.clock.now_ms() - START_MS - 200_000) < JUMP_MS


def test_a_database_that_was_heard_only_after_the_jump_is_no_witness() -> None:
    clocks = Clocks()
    clocks.pass_(10_000, DAY_MS, DAY_MS)
    assert not clocks.clock.is_trusted
    clocks.hear()
    assert clocks.clock.against == TIME_JUMP


@pytest.mark.parametrize("apart_ms", [APART_MS + 2, -APART_MS - 2, DAY_MS])
def test_a_database_that_says_otherwise_stops_what_time_decides_until_it_agrees(apart_ms: int) -> None:
    clocks = Clocks()
    clocks.hear()
    clocks.pass_(10_000, 0, apart_ms)
    clocks.hear()
    assert (clocks.clock.against, clocks.clock.passed_ms(0)) == (CLOCKS_DIFFER, 0)
    assert clocks.clock.now_ms() == START_MS + 10_000
    clocks.pass_(10_000, 0, -apart_ms)
    clocks.hear()
    assert clocks.clock.is_trusted


@pytest.mark.parametrize("ahead_ms", [3_600_000, -3_600_000])
def test_at_the_start_the_time_of_the_database_is_written_down_and_not_trusted(ahead_ms: int) -> None:
    clocks = Clocks(ahead_ms=ahead_ms)
    clocks.hear()
    assert (clocks.clock.against, clocks.clock.now_ms()) == (CLOCKS_DIFFER, START_MS)
    clocks.pass_(10_000, -ahead_ms)  # the machine's clock is set right
    clocks.hear()
    assert (clocks.clock.against, clocks.clock.now_ms()) == ("", START_MS + 10_000)


def test_a_slow_answer_is_no_difference() -> None:
    clocks = Clocks()
    for took_ms in (0, 30_000, 0, 60_000):
        clocks.hear(took_ms)
        assert clocks.clock.is_trusted


# --- from one run to the next -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("boot", "jump_ms", "code"), [
    ("b1", 0, ""), ("b1", JUMP_MS, ""), ("b1", 10 * DAY_MS, SET_WHILE_DOWN), ("b1", -10_000, SET_WHILE_DOWN),
    ("b2", 10 * DAY_MS, ""),  # nobody can see it: docs/node.md says so
    ("", 10 * DAY_MS, ""),
])  # fmt: skip
def test_a_clock_that_was_set_while_the_process_was_down(boot: str, jump_ms: int, code: str) -> None:
    first = Clocks()
    first.pass_(5_000)
    kept = first.clock.run()
    later = Clocks(boot=boot, up_ms=first.monotonic_ms + DAY_MS, ahead_ms=5_000 + DAY_MS + jump_ms)
    later.clock.verify_run(kept)
    assert later.clock.against == code
    later.clock.verify_run("")
    if code:
        later.database_ms = later.wall_ms
        for _ in range(3):
            later.hear()
            later.pass_(10_000)
        assert later.clock.against == code, "no database vouches for what was before it was heard"


def test_the_first_that_speaks_against_it_is_named() -> None:
    clocks = Clocks()
    clocks.clock.distrust(BEHIND_STORE)
    clocks.clock.distrust(SET_WHILE_DOWN)
    assert clocks.clock.against == BEHIND_STORE


# --- the real clocks --------------------------------------------------------------------------------------------------


def test_the_real_clocks_agree_and_go_on() -> None:
    clock, before = SystemClock(), monotonic_ms()
    time.sleep(0.01)
    assert 5 <= monotonic_ms() - before < 60_000
    assert abs(clock.now_ms() - wall_ms()) < 60_000
    assert abs(time.time() * 1000 - wall_ms()) < 60_000
    assert clock.is_trusted
    assert boot_id() == boot_id()


def test_threads_may_ask_at_once() -> None:
    clock = SystemClock()
    reported: list[list[int]] = []

    def ask() -> None:
        reported.append([clock.now_ms() for _ in range(2_000)])

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(reported) == 4
    assert all(times == sorted(times) for times in reported)
    assert clock.is_trusted
