"""The clock that a test sets by hand, and the real one that a test can move."""

from __future__ import annotations

from rgs.node.clock import SystemClock, monotonic_ms, wall_ms

NOW_MS = 1_795_000_000_000


class ManualClock(SystemClock):
    """The clock of the server over clocks that stand until the test moves them. `tick` lets time pass; `jump` sets the
    wall clock, which is `ahead_ms` of what it was; `set_back` is a jump back that somebody has vouched for.
    """

    def __init__(self, time_ms: int = NOW_MS) -> None:
        self._passed_ms = time_ms
        self.ahead_ms = 0
        self.database_ahead_ms = 0
        self.boot = ""
        super().__init__(lambda: self._passed_ms + self.ahead_ms, lambda: self._passed_ms, lambda: self.boot)

    def again(self) -> ManualClock:
        """The same clocks as a process finds them that begins now, on the same machine."""
        clock = ManualClock(self._passed_ms)
        clock.ahead_ms, clock.database_ahead_ms, clock.boot = self.ahead_ms, self.database_ahead_ms, self.boot
        super(ManualClock, clock).__init__(clock._wall_ms, clock._monotonic_ms, clock._boot_id)
        return clock

    def tick(self, milliseconds: int = 1) -> None:
        if milliseconds < 0:
            self.set_back(-milliseconds)
        else:
            self._passed_ms += milliseconds

    def jump(self, milliseconds: int) -> None:
        self.ahead_ms += milliseconds

    def set_back(self, milliseconds: int) -> None:
        self.jump(-milliseconds)
        self.accept()
        self.let_go()

    @property
    def time_ms(self) -> int:
        return self.now_ms()

    @time_ms.setter
    def time_ms(self, time_ms: int) -> None:
        self.tick(time_ms - self.now_ms())

    def database_ms(self) -> int:
        """What a database says whose clock is `database_ahead_ms` of what it was."""
        return self._passed_ms + self.database_ahead_ms


class ShiftedClock(SystemClock):
    """The real clocks, moved: `ahead_ms` is time that has passed beside, `jumped_ms` what the wall clock was set by.
    Certificates are judged by gRPC on the real one.
    """

    def __init__(self, jumped_ms: int = 0) -> None:
        self.ahead_ms, self.jumped_ms = 0, jumped_ms
        self._still: tuple[int, int] | None = None
        super().__init__(
            lambda: (self._still or (wall_ms(), 0))[0] + self.ahead_ms + self.jumped_ms,
            lambda: (self._still or (0, monotonic_ms()))[1] + self.ahead_ms,
        )

    def stand(self) -> None:
        """No time passes from now on."""
        self._still = (wall_ms(), monotonic_ms())
