"""Instance leases: renews that of this process, and declares lost what others let expire (ARCHITECTURE 2.8).

An instance is alive while its row in the store says so; every commit checks that. The lease only says when others may
end it. It is renewed every second, by the database's clock. The process that leads the duty `lost` signs
`instance_lost` for instances with an expired lease. It compares the row's last numbers in the same transaction, so that
no instance is lost twice or with a wrong number.

A process declares nobody lost before it has renewed its own lease without a failure for the length of a lease: after
the database was away, all processes renew first. It also declares nobody lost while time is not trusted: if the
database's clock was set, every lease expires at once.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from rgs.core.clock import Clock
from rgs.core.times import format_time
from rgs.service.instance import Instance
from rgs.store.changes import StoreError
from rgs.store.interface import Store

LEASE_MS = 15_000
LOST_DUTY = "lost"
RESTART = "this process ends, start it again"
KEEP = "this process ends. Keep one server on a store and end the other; never delete the lock file of a used store"


@dataclass(kw_only=True, eq=False, repr=False)
class Leases:
    """The lease of one instance. `renew` and `poll` are to be called once a second."""

    store: Store
    clock: Clock
    instance: Instance
    is_trusted: Callable[[], Awaitable[bool]]
    """Compares the database's time, by which leases expire, with ours."""

    def __post_init__(self) -> None:
        self._steady_ms = self.clock.running_ms()
        """Since when every renewal has succeeded, by the monotonic clock."""
        self.renewed_ms = self._steady_ms
        """When it was last renewed, by the monotonic clock."""
        self.lost = asyncio.Event()
        """Set when this instance was declared lost: nothing can be committed in its name any more."""
        self.why = ""
        """The explanation for people."""

    async def renew(self) -> None:
        """Extend the lease. StoreError if the store does not answer; the old lease continues.

        If a key change has ended the instance meanwhile, its successor has a lease of its own.
        """
        requested = self.instance.name
        try:
            is_alive = await self.store.renew_lease(requested, LEASE_MS)
        except BaseException:
            self._steady_ms = self.clock.running_ms()
            raise
        if is_alive:
            self.renewed_ms = self.clock.running_ms()
            return
        await self.instance.handed_over()  # the store may show the change before this process knows of it
        if self.instance.name == requested and not self.lost.is_set():
            await self._log_lost(requested)
            self.lost.set()

    async def _log_lost(self, instance: str) -> None:
        """Log which instance has taken the place of this one, if the store answers."""
        successor = None
        with contextlib.suppress(StoreError):
            successor = await self.instance.successor()
        if successor is None:
            by = since = ""
            self.why = f"instance {instance} was declared lost because its lease had expired: {RESTART}"
        else:
            by, since = successor.instance, format_time(successor.start_ms)
            self.why = f"instance {instance} was declared lost: {by} has taken its place since {since}; {KEEP}"
        structlog.get_logger().error("instance_lost", instance=instance, taken_by=by, since=since, why=self.why)

    async def poll(self) -> int:
        """Sign `instance_lost` for expired leases; returns how many. To be called by the leader of LOST_DUTY."""
        if self.clock.running_ms() - self._steady_ms < LEASE_MS or not await self.is_trusted():
            return 0
        return await self.instance.report_lost()
