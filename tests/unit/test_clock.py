"""The clock that never goes backwards by itself, and the watch that sees the wall clock being set."""

from __future__ import annotations

import time

import pytest

from rgs.clock import AGREED_MS, JUMP_MS, ClockWatch, SystemClock, monotonic_ms


class Clocks:
    """A wall clock and a monotonic one; `pass_` moves both."""

    def __init__(self) -> None:
        self.wall_ms = 1_795_000_000_000
        self.monotonic_ms = 77_000
        self.watch = ClockWatch(lambda: self.wall_ms, lambda: self.monotonic_ms)

    def pass_(self, ms: int, wall_too_ms: int = 0) -> int:
        """The jump that the watch sees after this time, in which the wall clock has gone by so much more."""
        self.monotonic_ms += ms
        self.wall_ms += ms + wall_too_ms
        return self.watch.look()


@pytest.mark.parametrize("jump_ms", [JUMP_MS + 1, -JUMP_MS - 1, 3_600_000, -86_400_000])
def test_a_jump_either_way_is_seen_and_believed_after_a_while(jump_ms: int) -> None:
    clocks = Clocks()
    assert (clocks.pass_(1_000), clocks.watch.agrees) == (0, True)
    assert (clocks.pass_(1_000, jump_ms), clocks.watch.agrees) == (jump_ms, False)
    for _ in range(AGREED_MS // 1_000 - 1):
        assert (clocks.pass_(1_000), clocks.watch.agrees) == (0, False)
    assert (clocks.pass_(1_000), clocks.watch.agrees) == (0, True)


@pytest.mark.parametrize("jump_ms", [JUMP_MS, -JUMP_MS])
def test_what_is_within_is_no_jump(jump_ms: int) -> None:
    clocks = Clocks()
    assert (clocks.pass_(0, jump_ms), clocks.watch.agrees) == (0, True)


def test_another_jump_begins_the_while_anew() -> None:
    clocks = Clocks()
    clocks.pass_(1_000, 10_000)
    clocks.pass_(AGREED_MS - 1)
    assert clocks.pass_(1, -10_000) == -10_000
    assert (clocks.pass_(AGREED_MS - 1), clocks.watch.agrees) == (0, False)
    assert (clocks.pass_(1), clocks.watch.agrees) == (0, True)


@pytest.mark.parametrize("sign", [1, -1])
def test_steps_that_are_small_each_do_not_add_up_unseen(sign: int) -> None:
    clocks = Clocks()
    seen = [clocks.pass_(1_000, sign * 500) for _ in range(10)]
    assert [jump for jump in seen if jump], "ten half seconds in ten seconds"
    assert seen[:4] == [0, 0, 0, 0]


@pytest.mark.parametrize("ppm", [500, -500])
def test_a_clock_that_is_steered_never_jumps(ppm: int) -> None:
    clocks = Clocks()
    for _ in range(10_000):  # ten thousand seconds: five seconds of steering
        assert clocks.pass_(10_000, 10_000 * ppm // 1_000_000) == 0
    assert clocks.watch.agrees


def test_the_clock_stands_where_time_steps_back_until_it_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SystemClock()
    told = [2_000_000_000, 1_000_000_000, 1_000_000_000, 1_000_000_000, 3_000_000_000]
    monkeypatch.setattr(time, "time_ns", lambda: told.pop(0))
    assert (clock.now_ms(), clock.now_ms()) == (2_000, 2_000)
    clock.follow()
    assert (clock.now_ms(), clock.now_ms()) == (1_000, 3_000)


def test_the_monotonic_clock_goes_on() -> None:
    before = monotonic_ms()
    time.sleep(0.01)
    assert 5 <= monotonic_ms() - before < 60_000
