"""Who is alive: the lease of this process's instance, and the lapsed ones of others (ARCHITECTURE 2.8).

An instance is alive while its row in the store says so; every commit checks that. The lease says only when others may
end it: it is renewed every second, by the database's clock. Whoever leads the duty `lost` signs `instance_lost` for
instances whose lease has run out; the row's last numbers are compared in the same transaction, so that nobody is lost
twice or with a wrong number. Refuses to declare anybody lost before its own lease has been renewed without a failure
for as long as a lease lasts: after the database was away, all renew before one looks.
"""

from __future__ import annotations

import asyncio

import structlog

from rgs.clock import Clock
from rgs.service.instance import Instance
from rgs.store.interface import Store

LEASE_MS = 15_000
LOST_DUTY = "lost"
INSTANCE_LOST = "INSTANCE_LOST"
"""Why a process whose instance was declared lost begins no round."""


class Leases:
    """Renews and looks; each to be called once a second."""

    def __init__(self, *, store: Store, clock: Clock, instance: Instance) -> None:
        self._store = store
        self._clock = clock
        self._instance = instance
        self._steady_ms = clock.now_ms()
        """Since when every renewal was answered."""
        self.lost = asyncio.Event()
        """This instance was declared lost: nothing can be committed in its name any more."""

    async def renew(self) -> None:
        """Go on living for a lease. StoreError: the store does not answer, and the old lease runs on."""
        try:
            is_alive = await self._store.renew_lease(LEASE_MS)
        except BaseException:
            self._steady_ms = self._clock.now_ms()
            raise
        if not is_alive and not self.lost.is_set():
            structlog.get_logger().error("instance_lost", instance=self._instance.name)
            self.lost.set()

    async def look(self) -> int:
        """Sign for the instances whose lease has run out; how many were. For the leader of LOST_DUTY."""
        if self._clock.now_ms() - self._steady_ms < LEASE_MS:
            return 0
        return await self._instance.tell_lost()
