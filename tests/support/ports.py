"""Ports that a server of a test takes a while later, or again and again."""

from __future__ import annotations

import random
import socket
from contextlib import suppress

UNGIVEN = range(20_000, 32_000)
"""Below what the system picks from for others (ip_local_port_range, from 32768): nobody gets one of these by chance."""


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that are free now."""
    found: list[int] = []
    for port in random.sample(UNGIVEN, len(UNGIVEN)):
        if len(found) == count:
            break
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            found.append(port)
    return found
