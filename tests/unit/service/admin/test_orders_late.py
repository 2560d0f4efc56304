"""What docs/node.md says of admins' orders that are repeated: within the retry window nothing, later a new order."""

from __future__ import annotations

from rgs.core.statements import parse_envelope, parse_statement
from rgs.service.admin.orders import Order, order_of
from rgs.service.callers import Caller, Role
from rgs.service.idempotency import HOUR_MS, Answers
from tests.support.service.guards import ADMIN, DAY_MS, UnsealedDeck, clearing, guard, poll
from tests.support.service.harness import ServiceHarness, read_statement

WINDOW_H = 24
OTHER = Caller("admin-2", Role.ADMIN, "")


def switching(caller: Caller, number: int, *, enabled: bool) -> Order:
    request_id = f"00000000-0000-0000-0000-{number:012}"
    return order_of(caller, "SetSwitch", request_id, scope="game", subject="uth-solo", enabled=enabled, reason="OLD")


async def reported(harness: ServiceHarness, code: str) -> list[tuple[str, str, str]]:
    """(actor, before, after) of the events of this code, oldest first."""
    rows = await harness.store.events("", before=0, limit=50)
    bodies = [parse_statement(parse_envelope(row.envelope))[1] for row in rows]
    return [(body["actor"], body["before"], body["after"]) for body in bodies if body["code"] == code][::-1]


async def forgotten(harness: ServiceHarness, order: Order) -> None:
    """Time passes until the stored answer has gone."""
    answers = Answers(harness.store, harness.clock, WINDOW_H, "w")
    while await harness.store.answer(order.caller.party, order.method, order.request_id) is not None:
        await answers.poll()
        harness.clock.tick(HOUR_MS)


async def test_a_switch_that_is_set_late_again_undoes_what_others_ordered_since(opened: UnsealedDeck) -> None:
    async with opened() as harness:
        admin = harness.services.admin
        enable, disable = switching(ADMIN, 1, enabled=True), switching(OTHER, 2, enabled=False)
        first = await admin.set_switch(enable, "game", "uth-solo", enabled=True, reason="OLD")
        await admin.set_switch(disable, "game", "uth-solo", enabled=False, reason="OLD")
        repeated = await admin.set_switch(enable, "game", "uth-solo", enabled=True, reason="OLD")
        assert repeated.envelope == first.envelope
        assert [switch.subject for switch in admin.switches()] == ["uth-solo"], "within the window nothing happens"
        await forgotten(harness, enable)
        late = await admin.set_switch(enable, "game", "uth-solo", enabled=True, reason="OLD")
        assert late.envelope != first.envelope
        assert admin.switches() == (), "later it is an order as any other"
        assert await reported(harness, "SWITCH_CHANGED") == [
            ("admin-1", "enabled", "enabled"),
            ("admin-2", "enabled", "disabled"),
            ("admin-1", "disabled", "enabled"),
        ]


async def test_a_guard_that_is_cleared_late_again_is_cleared_of_what_has_closed_it_since(opened: UnsealedDeck) -> None:
    async with opened() as harness:
        admin, order = harness.services.admin, clearing()
        first = await admin.clear_guard(order, "clock", "CHECKED")
        await forgotten(harness, order)
        harness.clock.jump(10 * DAY_MS)
        harness.clock.database_ahead_ms += 10 * DAY_MS
        await poll(harness)
        assert guard(harness).closed
        late = await admin.clear_guard(order, "clock", "CHECKED")
        assert late.envelope != first.envelope
        assert not guard(harness).closed, "a clock that nobody has looked at is vouched for"
        assert (read_statement(late.envelope)["before"], read_statement(late.envelope)["after"]) == (
            "TIME_JUMP", "OPEN",
        )  # fmt: skip
        assert [actor for actor, _, _ in await reported(harness, "GUARD_CLEARED")] == ["admin-1"] * 2
