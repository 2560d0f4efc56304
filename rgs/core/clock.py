"""The types of a clock (ARCHITECTURE 2.21: one injected clock). The clock itself is in `rgs.node.clock`."""

from __future__ import annotations

from typing import Final, Protocol

APART_MS: Final = 5_000
"""So far the database's clock and ours may be apart: two machines that are both kept right."""


class Clock(Protocol):
    """What the house asks of its clock. Times are milliseconds since 1970-01-01T00:00:00Z."""

    def now_ms(self) -> int:
        """The time to write down."""

    def running_ms(self) -> int:
        """Milliseconds of a clock that nobody sets, for pauses; its zero means nothing."""

    def passed_ms(self, since_ms: int) -> int:
        """How long ago that was, for what ends, limits or drops by time: 0 while time is not trusted, and never more
        than since the clock was set.
        """

    @property
    def is_trusted(self) -> bool:
        """Whether anything may be decided by time now."""

    def counted_from(self, since_ms: int) -> int:
        """From when a period is counted that began then: an admin's word begins all of them anew."""


class TrustedClock(Clock, Protocol):
    """What those ask of it who watch over its trust; `SystemClock` says how each works."""

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
    def hear(self, database_ms: int, asked_ms: int) -> None: ...
    def verify_run(self, kept: str) -> None: ...
    def verify_behind(self, newest_ms: int) -> None: ...
    def distrust(self, code: str) -> None: ...
    def accept(self) -> None: ...
    def counts_from(self, set_ms: int) -> None: ...
    def run(self) -> str: ...
