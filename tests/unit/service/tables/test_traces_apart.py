"""What one caller sets off for everybody at a table is not in that caller's trace: steps of the table, views of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import structlog

from rgs.core.tables.machine import State
from rgs.core.tables.views import TableView
from rgs.node.traces import TRACE_ID
from rgs.observe.traces import CURRENT, Span, Tracer, trace_id
from rgs.service.callers import Caller
from tests.support.api.tables import OP1, OP2, TABLE, Hall, settle
from tests.support.service.harness import ServiceHarness
from tests.support.service.tables import Evening

CALLER = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"


def bind(found: str) -> None:
    structlog.contextvars.bind_contextvars(**{TRACE_ID: found})


@pytest.fixture
def spans() -> list[Span]:
    return []


@pytest.fixture
def tracer(spans: list[Span]) -> Iterator[Tracer]:
    before = CURRENT.set(None)
    yield Tracer(bytes(24), lambda: 5, lambda: 0.0, spans.append, bind)
    structlog.contextvars.clear_contextvars()
    CURRENT.reset(before)


def in_log() -> str:
    """The trace that a log line of this task would name."""
    return str(structlog.contextvars.get_contextvars().get(TRACE_ID, ""))


async def test_the_steps_of_a_table_are_in_nobodys_trace(
    harness: ServiceHarness, tracer: Tracer, spans: list[Span], monkeypatch: pytest.MonkeyPatch
) -> None:
    evening = await Evening(harness, "uth-online").open()
    (sitter,) = await evening.seated("player-1")
    await sitter.bet(ante=1_000)
    await evening.until(State.DECIDING)
    dealer, seen = harness.tables.dealer, list[str]()
    advance = dealer.advance

    async def advancing(table_id: str) -> None:
        seen.append(in_log())
        await advance(table_id)

    monkeypatch.setattr(dealer, "advance", advancing)
    before = (await evening.row()).table.version
    harness.store.tracer = tracer
    tracer.enter(CALLER)
    assert (trace_id(), in_log()) == ("a" * 32, "a" * 32)
    await sitter.decide("play_4x")  # the only seat has decided: the table looks whether its window may end
    tracer.leave("Decide", "OK")
    await dealer.poll()
    assert (await evening.row()).table.version > before
    assert seen == [""]
    # One commit is the decision's; those of the table's steps are in no span.
    assert [span.name for span in spans] == ["store commit", "Decide"]


async def test_the_view_that_all_watchers_get_is_read_in_nobodys_trace(tracer: Tracer) -> None:
    hall, seen = Hall(), list[tuple[str, str]]()
    read = hall.feed._table

    async def reading(caller: Caller, table_id: str) -> TableView:
        seen.append((trace_id(), in_log()))
        return await read(caller, table_id)

    hall.feed._table = reading
    with hall.feed.mailbox(OP1) as one, hall.feed.mailbox(OP2) as other:
        for mailbox in (one, other):
            await hall.feed.watch_table(mailbox, TABLE)
        seen.clear()
        tracer.enter(CALLER)
        hall.step()
        await settle()
        tracer.leave("Decide", "OK")
    assert seen == [("", "")] * 2
