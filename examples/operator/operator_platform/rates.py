"""Rate limits in memory: a bucket for each name, which fills again with time."""

from __future__ import annotations

import ipaddress
import time
from typing import Final

from .errors import PlatformError

BUCKETS_MAX: Final = 20_000


def network_of(address: str) -> str:
    """What an address counts as: of IPv6 the first 64 bits, which one customer has to choose from."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, 64), strict=False))


class RateLimit:
    """At most `burst` at once, and `per_minute` over time, for each key."""

    def __init__(self, name: str, burst: int, per_minute: float) -> None:
        self._name = name
        self._burst = burst
        self._per_s = per_minute / 60
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, key: str) -> None:
        """PlatformError with the time to wait, if there were too many."""
        now = time.monotonic()
        left, since = self._buckets.pop(key, (float(self._burst), now))
        left = min(float(self._burst), left + (now - since) * self._per_s)
        if len(self._buckets) >= BUCKETS_MAX:
            self._buckets.pop(next(iter(self._buckets)))
        if left < 1:
            self._buckets[key] = (left, now)
            wait_ms = round((1 - left) / self._per_s * 1000)
            message = f"too many requests ({self._name}); wait {wait_ms} ms"
            raise PlatformError("RATE_LIMIT", message, 429, {"limit": self._name, "retry_after_ms": wait_ms})
        self._buckets[key] = (left - 1, now)
