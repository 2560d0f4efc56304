"""A commit within a traced call is a span of it, with the reason that it ended for; without one nothing is done."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rgs.observe.traces import CURRENT, Span, SpanKind, Tracer
from rgs.store.changes import Change, SessionRaceError
from tests.support.store.shelf import open_shelf, opened, session, ulid

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
