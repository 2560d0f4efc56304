"""Who is alive: the lease of this process's instance, and the lapsed ones of others (ARCHITECTURE 2.8).

An instance is alive while its row in the store says so; every commit checks that. The lease says only when others may
end it: it is renewed every second, by the database's clock. Whoever leads the duty `lost` signs `instance_lost` for
instances whose lease has run out; the row's last numbers are compared in the same transaction, so that nobody is lost
twice or with a wrong number. Refuses to declare anybody lost before its own lease has been renewed without a failure
for as long as a lease lasts: after the database was away, all renew before one looks; and while time is not trusted: a
database whose clock was set has every lease run out at once.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import structlog

from rgs.core.clock import Clock
from rgs.core.times import format_time
from rgs.service.instance import Instance
from rgs.store.changes import StoreError
from rgs.store.interface import Store

LEASE_MS = 15_000
LOST_DUTY = "lost"
RESTART = "this process ends, start it again"
KEEP = "this process ends. Keep one server on a store and end the other; never delete the lock file of a store in use"


class Leases:
    """Renews and looks; each to be called once a second."""

    def __init__(
        self, *, store: Store, clock: Clock, instance: Instance, is_trusted: Callable[[], Awaitable[bool]]
    ) -> None:
        """`is_trusted` asks the database for its time, by which leases run out, and compares it with ours."""
        self._store = store
        self._clock = clock
        self._instance = instance
        self._is_trusted = is_trusted
        self._steady_ms = clock.running_ms()
        """Since when every renewal was answered, by the clock that nobody sets."""
        self.lost = asyncio.Event()
        """This instance was declared lost: nothing can be committed in its name any more."""
        self.why = ""
        """What there is to say of it to people."""

    async def renew(self) -> None:
        """Go on living for a lease. StoreError: the store does not answer, and the old lease runs on.

        An answer is about the instance that was asked for: where a turn has ended that one meanwhile, its successor
        has a lease of its own.
        """
        asked = self._instance.name
        try:
            is_alive = await self._store.renew_lease(asked, LEASE_MS)
        except BaseException:
            self._steady_ms = self._clock.running_ms()
            raise
        if is_alive:
            return
        await self._instance.turned()  # the store may show the turn before this process knows of it
        if self._instance.name == asked and not self.lost.is_set():
            await self._tell(asked)
            self.lost.set()

    async def _tell(self, instance: str) -> None:
        """Say who goes on in the place of this instance, as far as the store answers."""
        successor = None
        with contextlib.suppress(StoreError):
            successor = await self._instance.successor()
        if successor is None:
            by = since = ""
            self.why = f"instance {instance} was declared lost, its lease had run out: {RESTART}"
        else:
            by, since = successor.instance, format_time(successor.start_ms)
            self.why = f"instance {instance} was declared lost: {by} has its place in the store since {since}; {KEEP}"
        structlog.get_logger().error("instance_lost", instance=instance, taken_by=by, since=since, why=self.why)

    async def look(self) -> int:
        """Sign for the instances whose lease has run out; how many were. For the leader of LOST_DUTY."""
        if self._clock.running_ms() - self._steady_ms < LEASE_MS or not await self._is_trusted():
            return 0
        return await self._instance.tell_lost()
