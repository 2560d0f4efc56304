"""What an admin is named of an order that is refused, and what is signed of one that is not, to the last field."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from rgs.core.errors import InvalidFieldError, NotFoundError, RgsError
from rgs.core.rounds import RoundStatus
from rgs.service.admin.admin import VoidResult
from rgs.service.admin.outbox import Outbox
from rgs.store.changes import OperationProgress
from rgs.store.outbox import OutboxRow
from tests.support.clocks import NOW_MS
from tests.support.service.admins import AdminOf
from tests.support.service.harness import ServiceHarness, read_statement
from tests.support.service.player import Player

LONG = "no code " * 20
NOBODY = "0" * 26
Act = Callable[[ServiceHarness, AdminOf], Awaitable[Any]]

OUT_OF_FORM: list[tuple[str, Act]] = [
    ("reason", lambda h, a: h.services.admin.set_switch(a.order("SetSwitch"), "play", "", enabled=False, reason=LONG)),
    ("reason", lambda h, a: h.services.admin.clear_guard(a.order("ClearGuard"), "log", LONG)),
    ("code", lambda _, a: a.pause(NOBODY, LONG)),
    ("reason", lambda _, a: a.resume(NOBODY, LONG)),
    ("reason", lambda _, a: a.propose(NOBODY, reason=LONG)),
    ("reason", lambda h, a: h.services.outbox.release_reports(a.order("ReleaseReports"), "stages", "s", LONG)),
]


@pytest.mark.parametrize(("field", "act"), OUT_OF_FORM, ids=range(len(OUT_OF_FORM)))
async def test_a_reason_that_is_no_code_is_refused_by_its_field(harness: ServiceHarness, field: str, act: Act) -> None:
    with pytest.raises(InvalidFieldError, match=f"^{field} must be a code in UPPER_SNAKE, at most 63") as refused:
        await act(harness, AdminOf(harness))
    assert (refused.value.field, refused.value.metadata) == (field, {"value": LONG[:80]})


NOT_THERE: list[tuple[Act, str, str | None, dict[str, str]]] = [
    (lambda h, a: h.services.admin.clear_guard(a.order("ClearGuard"), "w" * 50, "WHY"),
     f"unknown guard {'w' * 40}", "name", {"kind": "guard", "value": "w" * 40}),
    (lambda _, a: a.pause(NOBODY), f"no round {NOBODY}", "round_id", {"kind": "round", "round_id": NOBODY}),
    (lambda h, a: h.services.outbox.release_reports(a.order("ReleaseReports"), "k" * 30, "s" * 90, "WHY"),
     f"nothing is held of {'k' * 20} {'s' * 80}", "subject", {"kind": "report", "value": "s" * 80}),
    (lambda _, a: a.switch("table", "t" * 90), f"table {'t' * 80} cannot be switched", "scope", {"value": "t" * 80}),
    (lambda _, a: a.switch("operator", "A b"), "", "operator", {}),
    (lambda _, a: a.switch("player", "A b/anna"), "", "operator", {}),
    (lambda _, a: a.switch("player", "op-1/a b"), "", "player", {}),
    (lambda _, a: a.approve(*[NOBODY] * 2), "round_ids holds 1 to 100 different rounds, not 2", "round_ids",
     {"limit": "100", "value": "2"}),
    (lambda _, a: a.approve(*[f"{number:026d}" for number in range(101)]),
     "round_ids holds 1 to 100 different rounds, not 101", "round_ids", {"limit": "100", "value": "101"}),
    (lambda _, a: a.approve("x"), "", "round_ids", {}),
    (lambda _, a: a.resume("x"), "", "round_id", {}),
]  # fmt: skip


@pytest.mark.parametrize(("act", "message", "field", "facts"), NOT_THERE, ids=range(len(NOT_THERE)))
async def test_an_order_over_what_is_not_there_names_it(
    harness: ServiceHarness, act: Act, message: str, field: str | None, facts: dict[str, str]
) -> None:
    with pytest.raises(RgsError) as refused:
        await act(harness, AdminOf(harness))
    assert isinstance(refused.value, InvalidFieldError | NotFoundError)
    assert refused.value.field == field
    if message:
        assert (refused.value.message, refused.value.metadata) == (message, facts)


async def test_each_round_of_a_list_has_its_own_result(harness: ServiceHarness, anna: Player) -> None:
    one, two = AdminOf(harness), AdminOf(harness, "admin-2")
    await anna.sit()
    await anna.start()
    round_id = anna.round["round_id"]
    await one.pause(round_id)
    proposed = await one.propose(round_id, NOBODY)
    signed = read_statement(proposed[0].envelope)
    assert proposed == (
        VoidResult(round_id, RoundStatus.OPEN, proposed[0].envelope, ""),
        VoidResult(NOBODY, None, b"", "NOT_FOUND"),
    )
    named = ("code", "actor", "before", "after", "reason", "session_id", "round_id")
    assert [signed[name] for name in named] == [
        *("VOID_PROPOSED", "admin-1", "PAUSED", "VOID_PROPOSED", "DISPLAY_FAULT"),
        *(anna.session_id, round_id),
    ]
    resumed = read_statement((await one.resume(round_id)).envelope)
    assert [resumed[name] for name in named] == [
        *("ROUND_RESUMED", "admin-1", "PAUSED", "IN_PLAY", "DISPLAY_REPAIRED"),
        *(anna.session_id, round_id),
    ]
    assert await two.approve(round_id) == (VoidResult(round_id, None, b"", "ROUND_NOT_PAUSED"),)


# --- the outbox -------------------------------------------------------------------------------------------------------


class Clock:
    """A clock of two numbers."""

    def __init__(self) -> None:
        self.at_ms = 0

    def running_ms(self) -> int:
        return self.at_ms

    def now_ms(self) -> int:
        return NOW_MS


async def test_the_outbox_logs_its_size_what_is_unknown_and_its_age_from_the_first_minute_on() -> None:
    clock, rows = (
        Clock(),
        [
            OutboxRow("purchase", OperationProgress.UNKNOWN, 3, NOW_MS - 50),
            OutboxRow("credit", OperationProgress.BEGUN, 4, NOW_MS - 70),
        ],
    )

    async def outbox() -> list[OutboxRow]:
        return rows

    store, none = SimpleNamespace(outbox=outbox), SimpleNamespace()
    made: Any = {"store": store, "clock": clock, "events": none, "orders": none}
    watched = Outbox(**made, readings=lambda: ())
    with capture_logs() as logs:
        for at_ms in (0, 59_999, 60_000, 60_001, 119_999, 120_000):
            clock.at_ms = at_ms
            await watched.log()
        rows[:] = [OutboxRow("credit", OperationProgress.BEGUN, 1, NOW_MS)]
        clock.at_ms = 180_000
        await watched.log()
        rows[:] = [OutboxRow("credit", OperationProgress.BEGUN, 1, NOW_MS + 5)]  # stored before the clock was set back
        clock.at_ms = 240_000
        await watched.log()
        rows.clear()
        clock.at_ms = 300_000
        await watched.log()
    line = {"event": "outbox", "log_level": "info", "waiting": 1, "unknown": 0, "oldest_ms": 0}
    assert logs == [{**line, "waiting": 7, "unknown": 3, "oldest_ms": 70}] * 2 + [line] * 2
