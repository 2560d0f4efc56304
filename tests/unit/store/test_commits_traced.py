"""A commit within a traced call is a span of it, with the reason that it ended for; without one nothing is done."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rgs.observe.traces import CURRENT, Span, SpanKind, Tracer
from rgs.store.changes import Change, Draft, SessionRaceError
from tests.support.store.shelf import open_shelf, opened, report, session, started, ulid

CALLER = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"


@pytest.fixture
def nothing_traced() -> Any:
    before = CURRENT.set(None)
    yield
    CURRENT.reset(before)


@pytest.mark.usefixtures("nothing_traced")
async def test_a_commit_is_a_span_that_tells_how_it_ended(tmp_path: Path) -> None:
    spans: list[Span] = []
    async with open_shelf(tmp_path) as store:
        store.tracer = Tracer(bytes(24), lambda: 5, lambda: 0.0, spans.append)
        await store.commit(opened(session(1)))
        assert spans == [], "nothing is traced here"
        store.tracer.enter(CALLER)
        made = await store.session(ulid(1))
        (signed,) = await store.commit(opened(session(2)))
        assert signed.hash
        with pytest.raises(SessionRaceError):
            await store.commit(Change(session=replace(made, version=9)))
    assert [(span.name, span.kind, span.reason) for span in spans] == [
        ("store commit", SpanKind.INTERNAL, "OK"),
        ("store commit", SpanKind.INTERNAL, SessionRaceError("x").reason),
    ]
    assert {span.context.trace_id for span in spans} == {"a" * 32}


@pytest.mark.usefixtures("nothing_traced")
async def test_a_refused_commit_outside_of_a_traced_call_is_refused_all_the_same(tmp_path: Path) -> None:
    async with open_shelf(tmp_path) as store:
        await store.commit(opened(session(1)))
        made = await store.session(ulid(1))
        store.tracer = Tracer(bytes(24), lambda: 5, lambda: 0.0, lambda _: None)
        with pytest.raises(SessionRaceError):
            await store.commit(Change(session=replace(made, version=9)))


@pytest.mark.usefixtures("either_store", "nothing_traced")
async def test_a_report_keeps_the_trace_of_the_commit_that_queued_it(tmp_path: Path) -> None:
    spans: list[Span] = []
    async with open_shelf(tmp_path) as store:
        await store.commit(opened(session(1)))

        async def queue(number: int, traceparent: str | None = None) -> None:
            made = await store.session(ulid(1))
            assert made is not None
            final = Draft("round_final", {"time": "then"})
            queued = replace(report(ulid(1), number), traceparent=traceparent)
            await store.commit(Change(replace(made, version=made.version + 1), drafts=(final,), report=queued))

        await queue(1)
        store.tracer = Tracer(bytes(24), lambda: 5, lambda: 0.0, spans.append)
        await queue(2)
        store.tracer.enter(CALLER)
        await queue(3)
        await queue(4, "that of a seat at a table")
        kept = [one.traceparent for _, one in await store.reports(9)]
    third = f"00-{'a' * 32}-{spans[0].context.span_id}-01"
    assert kept == [None, None, third, "that of a seat at a table"]


@pytest.mark.usefixtures("either_store", "nothing_traced")
async def test_a_seat_in_play_keeps_the_trace_of_its_last_decision(tmp_path: Path) -> None:
    spans: list[Span] = []
    async with open_shelf(tmp_path) as store:
        for number in (1, 2):
            await store.commit(opened(session(number)))
            made = await store.session(ulid(number))
            assert made is not None
            start = started(made, number)
            assert start.round is not None
            assert start.session is not None
            start.round = replace(start.round, round_id=ulid(9), seat_no=number, table_id="table-1")
            start.session = replace(start.session, open_round_id=ulid(9))
            await store.commit(start)
        store.tracer = Tracer(bytes(24), lambda: 5, lambda: 0.0, spans.append)
        assert await store.seat_traces(ulid(9)) == {}
        store.tracer.enter(CALLER)
        for _ in range(2):
            seated = await store.session(ulid(1))
            round_ = await store.seat(ulid(1), ulid(9))
            assert seated is not None
            assert round_ is not None
            decided = replace(round_, version=round_.version + 1)
            await store.commit(Change(session=replace(seated, version=seated.version + 1), round=decided))
        assert await store.seat_traces(ulid(9)) == {ulid(1): f"00-{'a' * 32}-{spans[-1].context.span_id}-01"}
