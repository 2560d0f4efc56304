"""Reports continue the traces of the calls that made them: one call to the regulator, a span for each report."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rgs.api.access import trace_field
from rgs.core.errors import UnavailableError
from rgs.observe.traces import CURRENT, Span, Tracer, current_traceparent
from rgs.ports.regulator import Rejection, refusal_of
from tests.support.service.harness import ServiceHarness
from tests.support.service.peers import ScriptedRegulator
from tests.support.service.player import Player

ONE, OTHER = "a" * 32, "b" * 32


@pytest.fixture
def spans(harness: ServiceHarness) -> Iterator[list[Span]]:
    """What is traced from here on, in the whole service."""
    found: list[Span] = []
    before = CURRENT.set(None)
    harness.store.tracer = Tracer(bytes(24), lambda: 5, lambda: 0.0, found.append)
    yield found
    CURRENT.reset(before)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """The header under which each report was sent, and the field of the log line beside it."""
    found: list[tuple[str, str]] = []
    genuine = ScriptedRegulator.report_stages

    async def report_stages(self: ScriptedRegulator, transaction_id: str, stages: object) -> object:
        found.append((current_traceparent(), trace_field()))
        return await genuine(self, transaction_id, stages)  # type: ignore[arg-type]

    monkeypatch.setattr(ScriptedRegulator, "report_stages", report_stages)
    return found


async def played(harness: ServiceHarness, name: str, *headers: str) -> Player:
    """A player with a round under each header; an empty one is not traced."""
    player, tracer = Player(harness, name=name), harness.store.tracer
    await player.sit()
    for header in headers:
        if tracer is not None and header:
            tracer.enter(header)
        await player.play()
        if tracer is not None and header:
            tracer.leave("Act", "OK")
    return player


def header(trace_id: str, flags: str = "01") -> str:
    return f"00-{trace_id}-{'c' * 16}-{flags}"


def reported(spans: list[Span]) -> list[Span]:
    return [span for span in spans if span.name.startswith("report stage")]


def commit_under(spans: list[Span], trace_id: str) -> str:
    """The id of the newest commit under the id: the one that queued the report."""
    return [one.context.span_id for one in spans if one.name == "store commit" and one.context.trace_id == trace_id][-1]


async def test_one_report_is_sent_in_the_trace_of_its_call(
    harness: ServiceHarness, spans: list[Span], sent: list[tuple[str, str]]
) -> None:
    await played(harness, "anna", header(ONE))
    harness.regulator_script.plan("report_stages", "before")
    with pytest.raises(UnavailableError):
        await harness.reporting.report_stages()
    assert await harness.reporting.report_stages() == 1
    silent, accepted = reported(spans)
    for span, reason, (traceparent, logged) in zip((silent, accepted), ("FAILED", "OK"), sent, strict=True):
        assert (span.name, span.reason, span.links) == ("report stage", reason, ())
        assert (span.context.trace_id, span.parent_id) == (ONE, commit_under(spans, ONE))
        assert traceparent == f"00-{ONE}-{span.context.span_id}-01"
        assert logged == f',"trace_id":"{ONE}"'
    assert [span.attributes["rgs.transaction_id"] for span in (silent, accepted)] == [
        transaction_id for method, transaction_id in harness.regulator_script.calls if method == "report_stages"
    ]
    assert CURRENT.get() is None


async def test_reports_of_several_calls_are_sent_in_a_trace_of_their_own_to_which_each_links(
    harness: ServiceHarness, spans: list[Span], sent: list[tuple[str, str]]
) -> None:
    await played(harness, "anna", header(ONE))
    await played(harness, "bert", header(OTHER), "")
    harness.regulator_script.plan("report_stages", "after")
    with pytest.raises(UnavailableError):
        await harness.reporting.report_stages()
    (silent,) = reported(spans)  # nobody knows what became of the reports: only the call itself has a span
    assert (silent.name, silent.reason) == ("report stage, together", "FAILED")
    assert await harness.reporting.report_stages() == 3
    _, *each, whole = reported(spans)
    assert (whole.name, whole.reason, whole.parent_id) == ("report stage, together", "OK", "")
    assert whole.context.trace_id not in {ONE, OTHER, silent.context.trace_id}
    assert [(span.name, span.context.trace_id, span.links) for span in each] == [
        ("report stage", trace_id, (whole.context,)) for trace_id in (ONE, OTHER)
    ]
    assert [span.parent_id for span in each] == [commit_under(spans, trace_id) for trace_id in (ONE, OTHER)]
    assert sent[-1] == (
        f"00-{whole.context.trace_id}-{whole.context.span_id}-01",
        f',"trace_id":"{whole.context.trace_id}","trace_ids":["{ONE}","{OTHER}"]',
    )


async def test_a_refusal_is_the_reason_of_the_span(harness: ServiceHarness, spans: list[Span]) -> None:
    await played(harness, "anna", header(ONE))
    await played(harness, "bert", header(OTHER))
    refusal = refusal_of(Rejection.STAGE_GAP, "no", index=0)
    harness.regulator_script.plan("report_stages", refusal, refusal)  # of both together, then of the first by itself
    assert await harness.reporting.report_stages() == 1
    assert [(span.context.trace_id, span.reason) for span in reported(spans) if span.name == "report stage"] == [
        (ONE, "STAGE_GAP"), (OTHER, "STAGE_GAP"), (ONE, "STAGE_GAP"), (OTHER, "OK"),
    ]  # fmt: skip


@pytest.mark.parametrize(("flags", "kept"), [(("00", "00"), []), (("00", "01"), [OTHER])])
async def test_what_its_caller_does_not_sample_is_not_kept_and_its_id_goes_on(
    harness: ServiceHarness, spans: list[Span], sent: list[tuple[str, str]], flags: tuple[str, str], kept: list[str]
) -> None:
    await played(harness, "anna", header(ONE, flags[0]))
    await played(harness, "bert", header(OTHER, flags[1]))
    assert await harness.reporting.report_stages() == 2
    assert [span.context.trace_id for span in reported(spans) if span.name == "report stage"] == kept
    assert len(reported(spans)) == 2 * len(kept)
    ((traceparent, logged),) = sent
    assert traceparent.endswith("-01" if kept else "-00")
    assert logged.endswith(f',"trace_ids":["{ONE}","{OTHER}"]')


async def test_a_call_that_sends_reports_first_has_them_in_its_own_trace(
    harness: ServiceHarness, spans: list[Span], sent: list[tuple[str, str]]
) -> None:
    anna = await played(harness, "anna", header(ONE))
    tracer = harness.store.tracer
    assert tracer is not None
    tracer.enter(header(OTHER))
    await anna.leave()
    tracer.leave("EndParticipation", "OK")
    each, whole = reported(spans)
    assert (each.context.trace_id, each.links) == (ONE, (whole.context,))
    assert (whole.context.trace_id, whole.name) == (OTHER, "report stage, together")
    assert sent[0] == (
        f"00-{OTHER}-{whole.context.span_id}-01", f',"trace_id":"{OTHER}","trace_ids":["{ONE}"]'
    )  # fmt: skip


async def test_nothing_is_kept_and_nothing_is_traced_without_traces(
    harness: ServiceHarness, sent: list[tuple[str, str]]
) -> None:
    await played(harness, "anna", header(ONE))
    assert [report.traceparent for _, report in await harness.store.reports(9)] == [None]
    assert await harness.reporting.report_stages() == 1
    assert sent == [("", "")]
