"""The types of a clock (ARCHITECTURE 2.21: one injected clock). The clock itself is in `rgs.node.clock`."""

from __future__ import annotations

from typing import Final, Protocol

APART_MS: Final = 5_000
"""The most that the database's clock and ours may differ, if both machines are kept right."""


class Clock(Protocol):
    """The server's clock. Times are milliseconds since 1970-01-01T00:00:00Z."""

    def now_ms(self) -> int:
        """The time to write down."""

    def running_ms(self) -> int:
        """Milliseconds of a clock that nobody sets, for pauses; its zero means nothing."""

    def passed_ms(self, since_ms: int) -> int:
        """How long ago that was, for everything that time ends or limits: 0 while time is not trusted, and never more
        than since the clock was set.
        """

    @property
    def is_trusted(self) -> bool:
        """Whether anything may be decided by time now."""

    def counted_from(self, since_ms: int) -> int:
        """From when a period that began then is counted: an admin who sets the clock restarts all periods."""


class TrustedClock(Clock, Protocol):
    """A clock whose trust is monitored; `SystemClock` says how each method works."""

    @property
    def against(self) -> str: ...
    @property
    def differs(self) -> str: ...
    @property
    def apart_ms(self) -> int: ...
    @property
    def is_held(self) -> bool: ...
    def let_go(self) -> None: ...
    def take_jump(self) -> int: ...
    def wall_ms(self) -> int: ...
    def hear(self, database_ms: int, requested_ms: int) -> None: ...
    def verify_run(self, kept: str) -> None: ...
    def verify_behind(self, newest_ms: int) -> None: ...
    def distrust(self, code: str) -> None: ...
    def accept(self) -> None: ...
    def counts_from(self, set_ms: int) -> None: ...
    def run(self) -> str: ...
