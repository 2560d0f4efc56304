"""What the tests of trusted time share: a harness over either store, its guard, and an admin who clears it."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from rgs.service.admin.orders import Order, order_of
from rgs.service.availability import GuardState
from rgs.service.callers import Caller, Role
from tests.support.service.harness import ServiceHarness, read_statement

ADMIN = Caller("admin-1", Role.ADMIN, "")
DAY_MS = 86_400_000
_ids = itertools.count(1)

UnsealedDeck = Callable[..., AbstractAsyncContextManager[ServiceHarness]]
"""Opens a harness over one store, again and again the same."""


def clearing() -> Order:
    return order_of(ADMIN, "ClearGuard", str(uuid.UUID(int=next(_ids))), name="clock")


async def cleared(harness: ServiceHarness) -> str:
    """What an admin's clearing of the guard has led to."""
    reply = await harness.services.admin.clear_guard(clearing(), "clock", "CLOCK_SET_RIGHT")
    return str(read_statement(reply.envelope)["after"])


def guard(harness: ServiceHarness) -> GuardState:
    return harness.services.availability.guard("clock")


async def poll(harness: ServiceHarness) -> None:
    await harness.services.monitor.poll()
    await harness.services.monitor.follow()
