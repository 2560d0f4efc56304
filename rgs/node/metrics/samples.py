"""Samples: the values of one scrape, and their way from the processes of a node to the one that serves the port.

A document is JSON: {"process": [...], "store": [...]}, each a list of [name, label values, value]. The value of a
histogram is [counts by bound, sum]. Names, labels and bounds are those of the catalogue; anything else is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from rgs.core.errors import FormatError
from rgs.observe.catalogue import BY_NAME, Kind, Metric
from rgs.observe.histogram import Histogram

DOCUMENT_BYTES_MAX: Final = 64 * 1024 * 1024
READ_S: Final = 4.0
"""A store that takes longer to be read counts as down in this scrape."""
Value = float | tuple[tuple[int, ...], float]
"""A number, or the counts of a histogram by bound with their sum."""
Joined = Mapping[str, Sequence[tuple[tuple[str, ...], Value]]]
"""Name of a metric -> labels and value of each sample."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One value of a metric, with its labels besides `worker`."""

    metric: Metric
    labels: tuple[str, ...]
    value: Value


@dataclass(slots=True)
class Samples:
    """Samples that are being read. `add` and `count` raise KeyError for a name that the catalogue has not."""

    found: list[Sample] = field(default_factory=list)

    def add(self, name: str, value: float, *labels: str) -> None:
        """Add a number."""
        self.found.append(Sample(BY_NAME[name], labels, float(value)))

    def count(self, name: str, histogram: Histogram, *labels: str) -> None:
        """Add what a histogram has counted so far."""
        self.found.append(Sample(BY_NAME[name], labels, (tuple(histogram.counts), histogram.total)))


@dataclass(frozen=True, slots=True)
class Scraped:
    """What one process answered: its own samples, and those of the store if it was asked for them."""

    process: Sequence[Sample]
    store: Sequence[Sample] = ()


def format_document(scraped: Scraped) -> bytes:
    """The document of a process. Inverse of `parse_document`."""
    rows = {
        name: [[sample.metric.name, list(sample.labels), sample.value] for sample in samples]
        for name, samples in (("process", scraped.process), ("store", scraped.store))
    }
    return json.dumps(rows, separators=(",", ":")).encode("ascii")


def parse_document(data: bytes) -> Scraped:
    """What a process answered. FormatError for what the catalogue does not have."""
    try:
        rows = json.loads(data)
        return Scraped(*([_sample(row) for row in rows[name]] for name in ("process", "store")))
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise FormatError(f"a process answered no metrics: {type(error).__name__}") from None


def _sample(row: Any) -> Sample:
    name, labels, value = row
    metric = BY_NAME[name]
    if len(labels) != len(metric.labels) or not all(isinstance(label, str) for label in labels):
        raise ValueError(name)
    if metric.kind is not Kind.HISTOGRAM:
        return Sample(metric, tuple(labels), float(value))
    counts, total = value
    if len(counts) != len(metric.bounds) + 1:
        raise ValueError(name)
    return Sample(metric, tuple(labels), (tuple(map(int, counts)), float(total)))


def joined(scraped: Iterable[tuple[str, Scraped | None]]) -> dict[str, list[tuple[tuple[str, ...], Value]]]:
    """Metric -> (all labels, value) of several processes, by number: those of the store from the first that has any.

    None: the process did not answer.
    """
    found: dict[str, list[tuple[tuple[str, ...], Value]]] = {}
    store: Sequence[Sample] = ()
    for worker, answer in scraped:
        found.setdefault("rgs_worker_up", []).append(((worker,), float(answer is not None)))
        if answer is None:
            continue
        for sample in answer.process:
            found.setdefault(sample.metric.name, []).append(((worker, *sample.labels), sample.value))
        store = store or answer.store
    for sample in store:
        found.setdefault(sample.metric.name, []).append((sample.labels, sample.value))
    return found
