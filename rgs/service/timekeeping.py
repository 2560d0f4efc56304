"""Compares this process's clock with the store, at the start and periodically (docs/node.md, *Trusted time*).

At the start the wall clock is compared with the newest time in the store, with the record of the last run on the same
boot of the machine, and with the database's clock if it has one; a latch that nobody has cleared counts, too. Later
only the database's clock is asked. The clock itself says whether time is trusted: ask it when time decides something.
"""

from __future__ import annotations

from typing import Final

from rgs.core.clock import TrustedClock
from rgs.core.statements import parse_envelope, parse_statement
from rgs.core.times import parse_time
from rgs.store.changes import Change, MetaSet, Record, StoreError
from rgs.store.interface import Store, StoreReads

CLOCK_GUARD: Final = "clock"
SET_KEY: Final = "clock_set"
"""Key of `meta`: when an admin last vouched for a wall clock. All periods start again then."""
ASK_PERIOD_MS: Final = 10_000
"""How often the database's clock is asked while time is trusted; every second while it is not."""
KEEP_PERIOD_MS: Final = 600_000
"""How often the record for the next run is stored."""


class Timekeeping:
    """The checks of one process. `node` names the machine: the record of a run is for the next run there."""

    def __init__(self, *, store: StoreReads, clock: TrustedClock, node: str) -> None:
        self._store = store
        self._clock = clock
        self._node = node
        self._key = f"clock {node}"
        self._ask_ms = self._keep_ms = 0

    async def begin(self) -> None:
        """Compare all clocks before anything is signed or decided. StoreError."""
        store, clock = self._store, self._clock
        await self.ask()
        kept = await store.meta(self._key)
        clock.verify_run(kept)
        set_ms = int(await store.meta(SET_KEY) or 0)
        clock.counts_from(set_ms)
        envelope = await store.newest_envelope()
        newest = [set_ms, int(kept.rpartition(" ")[2] or 0)]
        if envelope:
            _, body = parse_statement(parse_envelope(envelope))
            newest.append(parse_time(body["time"]))
        clock.verify_behind(max(newest))
        for latch in await store.latches(self._node):
            if latch.guard == CLOCK_GUARD:
                clock.distrust(latch.code)

    async def ask(self) -> None:
        """Ask the database for its time, if it has a clock of its own. StoreError."""
        requested_ms = self._clock.running_ms()
        reported_ms = await self._store.clock_ms()
        if reported_ms is not None:
            self._clock.hear(reported_ms, requested_ms)

    async def poll(self) -> None:
        """`ask` if it is time to. StoreError."""
        now_ms = self._clock.running_ms()
        if now_ms >= self._ask_ms or not self._clock.is_trusted:
            self._ask_ms = now_ms + ASK_PERIOD_MS
            await self.ask()

    async def is_trusted(self) -> bool:
        """Whether time is trusted after asking the database now. StoreError."""
        await self.ask()
        return self._clock.is_trusted

    async def keep(self, store: Store) -> None:
        """Store the record for the next run periodically, while time is trusted. StoreError."""
        now_ms = self._clock.running_ms()
        if now_ms >= self._keep_ms and self._clock.is_trusted:
            await store.commit(Change(records=(MetaSet(self._key, self._clock.run()),)))
            self._keep_ms = now_ms + KEEP_PERIOD_MS

    # --- an admin's word ------------------------------------------------------------------------------------------

    def vouched(self) -> tuple[Record, ...]:
        """The records to store when an admin vouches for the wall clock."""
        return () if self._clock.is_trusted else (MetaSet(SET_KEY, str(self._clock.wall_ms())),)

    async def accept(self) -> None:
        """Trust the wall clock after an admin has vouched for it, to any process of this node."""
        if not self._clock.is_trusted:
            self._clock.accept()
            self._keep_ms = 0
        try:
            self._clock.counts_from(int(await self._store.meta(SET_KEY) or 0))
        except StoreError:
            return  # the clock stays accepted
