"""Traces: one id that follows a call from the operator, through the commit, to wallet and regulator (W3C Trace Context,
level 1; OpenTelemetry's span).

A process has one `Tracer`, or none: then nothing is done. A caller's `traceparent` is continued; a call without one
begins a trace. A span has ids, times, a name, a reason and the few attributes that its maker names: never an amount, a
card, a player or a nickname. Spans of a trace that its caller does not sample are not kept, but its id goes on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import IntEnum, unique
from typing import Final

TRACEPARENT: Final = "traceparent"
_TRACEPARENT: Final = re.compile(
    r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.ASCII | re.DOTALL
)
_SAMPLED: Final = 1


@unique
class SpanKind(IntEnum):
    """As OpenTelemetry numbers them."""

    INTERNAL = 1
    SERVER = 2
    CLIENT = 3


@dataclass(frozen=True, slots=True)
class TraceContext:
    """A trace and a span of it, in lowercase hex of 16 and 8 bytes."""

    trace_id: str
    span_id: str
    is_sampled: bool = True


def parse_traceparent(text: str) -> TraceContext | None:
    """The context in a `traceparent`; None for anything that the standard does not allow."""
    found = _TRACEPARENT.fullmatch(text)
    if found is None or found[1] == "ff" or (found[1] == "00" and found[5]):
        return None
    if not found[2].strip("0") or not found[3].strip("0"):
        return None
    return TraceContext(found[2], found[3], bool(int(found[4], 16) & _SAMPLED))


def format_traceparent(context: TraceContext) -> str:
    """The header of a context, version 00. Inverse of `parse_traceparent`."""
    return f"00-{context.trace_id}-{context.span_id}-{int(context.is_sampled):02x}"


@dataclass(slots=True)
class Span:
    """A span that is under way or has ended. Times are nanoseconds since 1970; `reason` is OK or why it failed."""

    context: TraceContext
    parent_id: str
    kind: SpanKind
    name: str
    start_ns: int
    begun_s: float
    end_ns: int = 0
    reason: str = ""
    attributes: dict[str, str] = field(default_factory=dict)
    around: Span | None = None
    """Of a message of a stream: the span of the stream."""
    links: tuple[TraceContext, ...] = ()
    """Spans, of other traces too, that this one has to do with and does not stand below."""
    serves: tuple[str, ...] = ()
    """The ids of the other traces for which this is done, too."""


CURRENT: Final[ContextVar[Span | None]] = ContextVar("rgs_span", default=None)
"""The span of the running task; tasks that it makes inherit it."""


def trace_id() -> str:
    """The id of the current trace; empty if nothing is traced."""
    span = CURRENT.get()
    return "" if span is None else span.context.trace_id


def current_traceparent() -> str:
    """The header with which the current trace is continued later; empty if nothing is traced."""
    span = CURRENT.get()
    return "" if span is None else format_traceparent(span.context)


class Tracer:
    """Makes spans. `first` are 24 random bytes, from which ids are counted; `now_ms` is the time, `now_s` a monotonic
    clock; `keep` takes each span that has ended, `bind` each trace id that begins and an empty one at its end.
    """

    def __init__(
        self,
        first: bytes,
        now_ms: Callable[[], int],
        now_s: Callable[[], float],
        keep: Callable[[Span], None],
        bind: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._trace_no = int.from_bytes(first[:16], "big")
        self._span_no = int.from_bytes(first[16:24], "big")
        self._now_ms = now_ms
        self._now_s = now_s
        self._keep = keep
        self._bind = bind

    def enter(self, traceparent: str) -> None:
        """Begin the span of a call that came with this header, empty if it had none, or of a message of a stream that
        has a span. `leave` ends it.
        """
        around = CURRENT.get()
        caller = parse_traceparent(traceparent) if around is None else around.context
        if caller is None:
            caller = self._new_trace()
        span = self._begin(caller, SpanKind.SERVER, "")
        span.around = around
        CURRENT.set(span)
        self._bind(caller.trace_id)

    def leave(self, name: str, reason: str) -> None:
        """End the span of the call under its name."""
        span = CURRENT.get()
        if span is not None:
            CURRENT.set(span.around)
            self._bind(trace_id())
            span.name = name
            self._end(span, reason)

    @contextmanager
    def inner(self, name: str, kind: SpanKind, attributes: Mapping[str, str] | None = None) -> Iterator[Span | None]:
        """A span below the current one; None if nothing is traced here. Whoever gets it sets its `reason`."""
        above = CURRENT.get()
        if above is None:
            yield None
            return
        span = self._begin(above.context, kind, name)
        span.attributes.update(attributes or {})
        try:
            yield span
        finally:
            self._end(span, span.reason or "FAILED")

    @contextmanager
    def resumed(self, traceparent: str, name: str) -> Iterator[None]:
        """A span of what an earlier call left to be done, below the header that was kept of it.

        Nothing is done within a traced call, nor without a header.
        """
        above = parse_traceparent(traceparent) if CURRENT.get() is None else None
        if above is None:
            yield
            return
        span = self._begin(above, SpanKind.INTERNAL, name)
        before = CURRENT.set(span)
        self._bind(above.trace_id)
        reason = "FAILED"
        try:
            yield
            reason = "OK"
        finally:
            CURRENT.reset(before)
            self._bind("")
            self._end(span, reason)

    @contextmanager
    def together(
        self, traceparents: Iterable[str], name: str, attributes: Mapping[str, str] | None = None
    ) -> Iterator[Span | None]:
        """What several earlier calls left to be done, done at once: a span below each header that was kept of them.

        One span is around it, which is yielded; whoever gets it sets its `reason`. It is the first of these if nothing
        is traced here and all headers are of one trace. Otherwise it is a further one, below the current span or of a
        trace of its own, and the others link to it. They are kept only if the reason was set: until then what they
        stand for is still to be done. None without a header.
        """
        above = [context for context in map(parse_traceparent, traceparents) if context is not None]
        if not above:
            yield None
            return
        spans = [self._begin(context, SpanKind.INTERNAL, name) for context in above]
        before, traces = CURRENT.get(), dict.fromkeys(context.trace_id for context in above)
        if before is None and len(traces) == 1:
            whole = spans.pop(0)
        else:
            own = self._new_trace(any(context.is_sampled for context in above)) if before is None else before.context
            whole = self._begin(own, SpanKind.INTERNAL, f"{name}, together")
            whole.serves = tuple(one for one in traces if one != own.trace_id)
        for span in (whole, *spans):
            span.attributes.update(attributes or {})
        restored = CURRENT.set(whole)
        self._bind(trace_id())
        try:
            yield whole
        finally:
            CURRENT.reset(restored)
            self._bind(trace_id())
            for span in spans if whole.reason else ():
                span.links = (whole.context,)
                self._end(span, whole.reason)
            self._end(whole, whole.reason or "FAILED")

    def _new_trace(self, is_sampled: bool = True) -> TraceContext:
        self._trace_no = (self._trace_no + 1) % (1 << 128) or 1
        return TraceContext(f"{self._trace_no:032x}", "", is_sampled)

    def _begin(self, above: TraceContext, kind: SpanKind, name: str) -> Span:
        self._span_no = (self._span_no + 1) % (1 << 64) or 1
        context = TraceContext(above.trace_id, f"{self._span_no:016x}", above.is_sampled)
        return Span(context, above.span_id, kind, name, self._now_ms() * 1_000_000, self._now_s())

    def _end(self, span: Span, reason: str) -> None:
        span.reason = reason
        span.end_ns = span.start_ns + round((self._now_s() - span.begun_s) * 1e9)
        if span.context.is_sampled:
            self._keep(span)
