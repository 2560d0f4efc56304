"""Writes spans to a file, in the form that OpenTelemetry's collectors read: OTLP as JSON, one request a line.

A file and no connection: a measured server imports only what its lock pins, and opens no connection that its settings
do not name. The collector beside it (`otlpjsonfile` receiver) sends the lines on. Spans are written once a second;
those of the last second are lost if the process is killed. Above SPANS_MAX in a second the rest is counted and dropped.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final

import structlog

from rgs.core.clock import Clock
from rgs.observe.traces import Span, Tracer
from rng.entropy import EntropySource

SPANS_MAX: Final = 10_000
TRACE_ID: Final = "trace_id"
_OK: Final = "OK"
_STATUS_OK, _STATUS_ERROR = 1, 2


class TraceFile:
    """The file (mode 0600, appended to), and the spans that wait for the next `flush`."""

    def __init__(self, path: Path, resource: dict[str, str]) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._resource = {"attributes": _attributes(resource)}
        self._spans: list[Span] = []
        self._dropped = 0

    def keep(self, span: Span) -> None:
        """Take a span that has ended."""
        if len(self._spans) < SPANS_MAX:
            self._spans.append(span)
        else:
            self._dropped += 1

    def flush(self) -> None:
        """Write the spans since the last time as one line. A disk that is full loses them, and never stops the game."""
        spans, self._spans = self._spans, []
        dropped, self._dropped = self._dropped, 0
        if dropped:
            structlog.get_logger().warning("spans_dropped", count=dropped, limit=SPANS_MAX)
        if not spans:
            return
        scope = {"scope": {"name": "rgs"}, "spans": [format_span(span) for span in spans]}
        request = {"resourceSpans": [{"resource": self._resource, "scopeSpans": [scope]}]}
        try:
            os.write(self._file, json.dumps(request, separators=(",", ":")).encode("ascii") + b"\n")
        except OSError as error:
            structlog.get_logger().warning("spans_not_written", count=len(spans), exc_info=error)

    def close(self) -> None:
        """Write what waits, and close."""
        self.flush()
        os.close(self._file)


def make_tracer(file: TraceFile, clock: Clock) -> Tracer:
    """The tracer of a process: its spans go to the file, its trace ids into every line of the technical log."""

    def bind(trace_id: str) -> None:
        if trace_id:
            structlog.contextvars.bind_contextvars(**{TRACE_ID: trace_id})
        else:
            structlog.contextvars.unbind_contextvars(TRACE_ID)

    return Tracer(EntropySource().read(24), clock.now_ms, lambda: clock.running_ms() / 1000, file.keep, bind)


def format_span(span: Span) -> dict[str, Any]:
    """A span as OTLP's JSON has it: ids in hex, times as decimal strings."""
    found: dict[str, Any] = {
        "traceId": span.context.trace_id,
        "spanId": span.context.span_id,
        "name": span.name,
        "kind": int(span.kind),
        "startTimeUnixNano": str(span.start_ns),
        "endTimeUnixNano": str(span.end_ns),
        "attributes": _attributes({**span.attributes, "rgs.reason": span.reason}),
        "status": {"code": _STATUS_OK if span.reason == _OK else _STATUS_ERROR},
    }
    if span.links:
        found["links"] = [{"traceId": one.trace_id, "spanId": one.span_id} for one in span.links]
    return {**found, "parentSpanId": span.parent_id} if span.parent_id else found


def _attributes(values: dict[str, str]) -> list[dict[str, Any]]:
    return [{"key": key, "value": {"stringValue": value}} for key, value in values.items()]
