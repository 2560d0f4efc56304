"""Samples as Prometheus reads them, by `prometheus_client`: text, or OpenMetrics where the scrape asks for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import CollectorRegistry

from rgs.node.metrics.samples import Joined, Value
from rgs.observe.catalogue import METRICS, Kind, Metric


class _Samples:
    """The samples of one scrape, as a collector."""

    def __init__(self, found: Joined) -> None:
        self._found = found

    def collect(self) -> Iterator[Family]:
        """Every metric that has samples, in the order of the catalogue."""
        for metric in METRICS:
            if rows := self._found.get(metric.name):
                yield _family(metric, rows)


def format_metrics(found: Joined, accept: str) -> tuple[str, bytes]:
    """Content type and body for a scrape with this `Accept` header."""
    registry = CollectorRegistry()
    registry.register(_Samples(found))
    encode, content_type = choose_encoder(accept)
    return content_type, encode(registry)


def _family(metric: Metric, rows: Sequence[tuple[tuple[str, ...], Value]]) -> Family:
    match metric.kind:
        case Kind.HISTOGRAM:
            histogram = HistogramMetricFamily(metric.name, metric.help, labels=metric.all_labels)
            bounds = [*map(str, map(float, metric.bounds)), "+Inf"]
            for labels, value in rows:
                if isinstance(value, tuple):
                    histogram.add_metric(labels, list(zip(bounds, accumulate(value[0]), strict=True)), value[1])
            return histogram
        case Kind.COUNTER:
            counter = CounterMetricFamily(metric.name, metric.help, labels=metric.all_labels)
            for labels, value in rows:
                if not isinstance(value, tuple):
                    counter.add_metric(labels, value)
            return counter
        case _:
            gauge = GaugeMetricFamily(metric.name, metric.help, labels=metric.all_labels)
            for labels, value in rows:
                if not isinstance(value, tuple):
                    gauge.add_metric(labels, value)
            return gauge
