"""The one clock of a process, and whether its time is trusted (ARCHITECTURE 2.21: one clock; docs/node.md, *Trusted
time*).

`SystemClock` starts at the wall clock's time and counts UTC milliseconds with the monotonic clock. It follows a wall
clock that is steered. When the wall clock is set, time is not trusted any more: `now_ms` continues as before, and
`passed_ms`, which everything uses that ends, limits or drops by time, returns 0. Both compare the clocks at each call.
Time is trusted again only when the database's clock agrees with the wall clock (`hear`), or an admin accepts it
(`accept`). If that sets time back, `now_ms` stands still until the jump is signed (`let_go`), so that no statement is
dated before the one that explains the jump.

Every other file gets a clock, or a time, as a parameter.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Final

from rgs.core.clock import APART_MS

JUMP_MS: Final = 2_000
"""If the difference between two clocks changes by more, one of them was set."""
SLEW_PER_MILLE: Final = 1
"""How fast a clock may be steered without a jump; adjtimex allows half of it."""
ROUNDING_MS: Final = 1
"""The difference that rounding to milliseconds can make."""
READS_MAX: Final = 5
"""How often a jump is read again, in case the process was held between reading the two clocks."""

TIME_JUMP: Final = "TIME_JUMP"
"""The wall clock was set."""
CLOCKS_DIFFER: Final = "CLOCKS_DIFFER"
"""The database's clock differs."""
BEHIND_STORE: Final = "BEHIND_STORE"
"""At the start: the store holds times after the wall clock's."""
SET_WHILE_DOWN: Final = "SET_WHILE_DOWN"
"""At the start: the wall clock was set since the last run, within the same boot of the machine."""


def wall_ms() -> int:
    """The operating system's UTC clock, which can be set."""
    return time.time_ns() // 1_000_000


def monotonic_ms() -> int:
    """Milliseconds of a clock that cannot be set, from any zero. It also counts while the machine sleeps, if the
    system has such a clock.
    """
    return _read_ns(_MONOTONIC) // 1_000_000


_MONOTONIC: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_read_ns: Final = time.clock_gettime_ns


def boot_id() -> str:
    """The id of this boot of the machine; empty if the system has none."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    return ""


class _Beside:
    """A clock compared with the monotonic one: follows their difference at the speed of steering, and reports steps."""

    def __init__(self, low_ms: float, high_ms: float, seen_ms: int) -> None:
        self.difference_ms = (low_ms + high_ms) / 2
        self.seen_ms = seen_ms

    def moved(self, low_ms: float, high_ms: float, now_ms: int) -> float:
        """By how much the clock was set; 0 if it was not. It is now ahead by between `low_ms` and `high_ms`."""
        ahead_ms = self.difference_ms
        away_ms = max(low_ms, min(high_ms, ahead_ms)) - ahead_ms
        steered_ms = max(0, now_ms - self.seen_ms) * SLEW_PER_MILLE / 1000
        self.seen_ms = max(self.seen_ms, now_ms)
        if abs(away_ms) > JUMP_MS:
            self.difference_ms = (low_ms + high_ms) / 2
            return away_ms
        # Follow only what steering can explain, so that small steps cannot add up unseen.
        self.difference_ms += max(-steered_ms, min(steered_ms, away_ms))
        return 0.0


class SystemClock:
    """The operating system's UTC clock as far as it is trusted; the module docstring says how."""

    def __init__(
        self,
        wall_ms: Callable[[], int] = wall_ms,
        monotonic_ms: Callable[[], int] = monotonic_ms,
        boot_id: Callable[[], str] = boot_id,
    ) -> None:
        self._wall_ms = wall_ms
        self._monotonic_ms = monotonic_ms
        self._boot_id = boot_id
        self._lock = Lock()
        self._wall = self._beside()
        self._difference_ms = self._wall.difference_ms
        """By how much trusted time is ahead of the monotonic clock."""
        self._against = ""
        self._unseen_from_ms: int | None = None
        """When the wall clock was last right, if it was set since; by the monotonic clock."""
        self._jump_ms = 0
        self._held_ms = 0
        """The time at which `now_ms` stands still after a jump back, until the jump is signed."""
        self._set_ms = 0
        self._database: _Beside | None = None
        self._heard_from_ms = 0
        """Since when the database's clock was not set; by the monotonic clock."""
        self._differs = False
        self._apart_ms = 0

    # --- for everybody --------------------------------------------------------------------------------------------

    def now_ms(self) -> int:
        """Trusted time; after a jump the time as it would be without the jump."""
        now_ms = self._monotonic_ms()
        ahead_ms = self._wall_ms() - now_ms
        if -ROUNDING_MS <= ahead_ms - self._wall.difference_ms <= ROUNDING_MS:  # nearly always
            self._wall.seen_ms = now_ms
        else:
            now_ms = self._compare(now_ms, ahead_ms)
        time_ms = int(now_ms + self._difference_ms)
        return max(self._held_ms, time_ms) if self._held_ms else time_ms

    def running_ms(self) -> int:
        return self._monotonic_ms()

    def passed_ms(self, since_ms: int) -> int:
        now_ms = self._time_ms()
        return 0 if self._against else max(0, now_ms - self.counted_from(since_ms))

    @property
    def is_trusted(self) -> bool:
        return not self.against

    def counted_from(self, since_ms: int) -> int:
        return max(since_ms, self._set_ms)

    # --- trust ----------------------------------------------------------------------------------------------------

    @property
    def against(self) -> str:
        """Why time is not trusted now, a code; empty if it is."""
        self._poll()
        return self._against

    def take_jump(self) -> int:
        """The last jump that was not taken yet, in milliseconds; 0 if there was none."""
        self._poll()
        jump_ms, self._jump_ms = self._jump_ms, 0
        return jump_ms

    @property
    def is_held(self) -> bool:
        """Whether `now_ms` stands still, because a jump back is not signed yet."""
        return self._held_ms - self._time_ms() > JUMP_MS

    def let_go(self) -> None:
        """Let `now_ms` run again: the TIME_JUMP is signed."""
        self._held_ms = 0

    def distrust(self, code: str) -> None:
        """Distrust the wall clock for another reason. Only an admin can make it trusted again."""
        self._against = self._against or code
        self._unseen_from_ms = -1

    def accept(self) -> None:
        """An admin accepts the wall clock: its time counts from now on, and all periods start again."""
        self._take_wall()
        self._set_ms = self._time_ms()

    def counts_from(self, set_ms: int) -> None:
        """Take over from the store when an admin last accepted the wall clock."""
        self._set_ms = set_ms

    def wall_ms(self) -> int:
        """The operating system's time as it is."""
        return self._wall_ms()

    # --- the database as a witness --------------------------------------------------------------------------------

    @property
    def differs(self) -> str:
        """A code if the database's clock differed from the wall clock when it was last heard; else empty."""
        return CLOCKS_DIFFER if self._differs else ""

    @property
    def apart_ms(self) -> int:
        """By how much the database's clock was ahead of the wall clock when it was last heard."""
        return self._apart_ms

    def hear(self, database_ms: int, requested_ms: int) -> None:
        """Compare with the database's clock, which was asked at `asked_ms` of the monotonic clock and answers now.

        It makes time trusted again if it agrees with the wall clock, and was not set itself since before the wall clock
        was. (A database on the same machine jumps together with it.) If the wall clock differs at the first call, the
        database's time is taken, so that this process writes the same times as others.
        """
        now_ms = self._poll()
        low_ms, high_ms = database_ms - now_ms, database_ms - requested_ms
        is_first = self._database is None
        if self._database is None:
            self._database, self._heard_from_ms = _Beside(low_ms, high_ms, now_ms), requested_ms
        elif self._database.moved(low_ms, high_ms, now_ms):
            self._heard_from_ms = now_ms + 1  # after the look that may have seen the wall clock jump with it
        self._differs = _apart(self._wall.difference_ms, low_ms, high_ms)
        self._apart_ms = round((low_ms + high_ms) / 2 - self._wall.difference_ms)
        if _apart(self._difference_ms, low_ms, high_ms):
            self._against = self._against or CLOCKS_DIFFER
            if is_first:
                self._difference_ms = self._database.difference_ms
        if self._against and not self._differs:
            unseen_ms = self._unseen_from_ms
            if unseen_ms is None or self._heard_from_ms <= unseen_ms:
                moved_ms = self._wall.difference_ms - self._difference_ms
                self._take_wall()
                if abs(moved_ms) > APART_MS:
                    self._set_ms = self._time_ms()

    # --- from one run to the next ---------------------------------------------------------------------------------

    def run(self) -> str:
        """Boot, monotonic clock and trusted time, for `verify_run` of the next run on this machine."""
        now_ms = self._poll()
        return f"{self._boot_id()} {now_ms} {int(now_ms + self._difference_ms)}"

    def verify_run(self, kept: str) -> None:
        """Distrust the wall clock if it was set since the run that left `kept`, within the same boot."""
        boot, _, times = kept.partition(" ")
        now_ms = self._poll()
        if not boot or boot != self._boot_id():
            return
        then_ms, time_ms = map(int, times.split())
        then = _Beside(time_ms - then_ms, time_ms - then_ms, then_ms)
        if then.moved(self._wall.difference_ms, self._wall.difference_ms, now_ms):
            self.distrust(SET_WHILE_DOWN)

    def verify_behind(self, newest_ms: int) -> None:
        """Distrust the wall clock if its time is before `newest_ms`, the newest time in the store."""
        if self.now_ms() < newest_ms - JUMP_MS:
            self.distrust(BEHIND_STORE)

    # --- the wall clock -------------------------------------------------------------------------------------------

    def _poll(self) -> int:
        """Compare the clocks; returns the time of the monotonic one."""
        return self._compare(*self._read())

    def _compare(self, now_ms: int, ahead_ms: int) -> int:
        """The same, with the clocks as they were read just now."""
        if abs(ahead_ms - self._wall.difference_ms) <= ROUNDING_MS:
            self._wall.seen_ms = now_ms
            return now_ms
        with self._lock:
            for _ in range(READS_MAX):
                if abs(ahead_ms - self._wall.difference_ms) <= JUMP_MS:
                    break
                now_ms, ahead_ms = self._read()
            seen_ms = self._wall.seen_ms
            if moved_ms := self._wall.moved(ahead_ms, ahead_ms, now_ms):
                self._jump_ms = round(moved_ms)
                self._against = self._against or TIME_JUMP
                if self._unseen_from_ms is None:
                    self._unseen_from_ms = seen_ms
            elif not self._against:
                self._difference_ms = self._wall.difference_ms
            return now_ms

    def _time_ms(self) -> int:
        return int(self._poll() + self._difference_ms)

    def _take_wall(self) -> None:
        before_ms = self.now_ms()
        with self._lock:
            self._wall = self._beside()
            moved_ms = round(self._wall.difference_ms - self._difference_ms)
            self._difference_ms = self._wall.difference_ms
            self._against, self._unseen_from_ms = "", None
        if moved_ms < 0:
            self._held_ms = before_ms
            if moved_ms < -JUMP_MS:  # time catches up with a smaller jump before it can be signed
                self._jump_ms = moved_ms

    def _beside(self) -> _Beside:
        now_ms, ahead_ms = self._read()
        return _Beside(ahead_ms, ahead_ms, now_ms)

    def _read(self) -> tuple[int, int]:
        """(monotonic clock, how far the wall clock is ahead of it), in milliseconds."""
        now_ms = self._monotonic_ms()
        return now_ms, self._wall_ms() - now_ms


def _apart(difference_ms: float, low_ms: float, high_ms: float) -> bool:
    return not low_ms - APART_MS <= difference_ms <= high_ms + APART_MS


def now_ms() -> int:
    """Milliseconds since 1970."""
    return SystemClock().now_ms()
