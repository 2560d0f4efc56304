"""The whole battery on one source, and the decision rule, which was written down before any run.

There are some thirty p-values, judged by Holm at the family level (1 %: "collectively at 99 %"). A p-value below 1e-8
fails at once. If Holm rejects without such a p-value, or a continuous p-value is above 1 - 1e-6 (too good), one repeat
follows, with four times as many fresh decks, and its verdict stands. Second level: replicates, and whether the p-values
of continuous statistics are uniform over them. A test with fewer decks than it needs has no p-value and is reported as
not applicable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np

from certification.engines import ALONE, EngineChoice, over
from certification.rtp.compiled import Longs
from certification.statistics.battery import raw
from certification.statistics.battery.counting import COUNTED, COUNTS, CountedTest
from certification.statistics.battery.decks import CHUNK, DeckChunk, DeckSource
from certification.statistics.battery.laws import Judged
from certification.statistics.battery.streams import STREAMED, DeckStreams, Lead, StreamTest, lead
from certification.statistics.families import holm, kolmogorov
from certification.statistics.progress import Reported, silent

FAMILY_LEVEL: Final = 0.01
DECISIVE: Final = 1e-8
TOO_GOOD: Final = 1 - 1e-6
REPEAT_FACTOR: Final = 4
DECKS_LEAST: Final = 260
"""Below, not even the place of each card can be tested, and nothing passes."""
REPLICATES_LEAST: Final = 20
"""Below, Kolmogorov's test has nothing to go by, and nothing passes."""


@dataclass(frozen=True, slots=True)
class BatteryResult:
    """One test of a run; `p` is None, and `reason` says why, where it is not applicable."""

    name: str
    clause: str
    p: float | None
    statistic: float | None
    law: str
    is_continuous: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """The results of one pass over fresh decks, and what Holm rejects among them."""

    source: str
    decks: int
    results: tuple[BatteryResult, ...]
    rejected: tuple[str, ...]
    decisive: tuple[str, ...]
    too_good: tuple[str, ...]
    placements: Longs | None = None
    """Position x card, 52 x 52, for a picture."""


@dataclass(frozen=True, slots=True)
class BatteryVerdict:
    """`word` is passed | failed | not applicable (too few decks); with a repeat, its run stands last and decides."""

    word: str
    alpha: float
    runs: tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class ChunkTally:
    """What one chunk adds: its number of decks, the counts of `COUNTS`, and what the streams keep."""

    decks: int
    counts: dict[str, Longs]
    lead: Lead


def tally(chunk: DeckChunk) -> ChunkTally:
    """Count a chunk."""
    counted = ((name, count(chunk)) for name, count in COUNTS.items())
    counts = {name: found for name, found in counted if found is not None}
    return ChunkTally(len(chunk.decks), counts, lead(chunk.decks))


def work(source: DeckSource, chunk: tuple[int, int]) -> ChunkTally:
    """Make a chunk, by its number and its decks, and count it, in whatever process."""
    return tally(source.chunk(*chunk))


class Totals:
    """Sums over chunks, in their order."""

    def __init__(self) -> None:
        self.decks = 0
        self.counts: dict[str, Longs] = {}
        self.streams = DeckStreams()

    def add(self, tally: ChunkTally) -> None:
        """Take in the next chunk."""
        self.decks += tally.decks
        for name, counts in tally.counts.items():
            self.counts[name] = self.counts.get(name, np.int64(0)) + counts
        self.streams.feed(tally.lead)

    def results(self, raw_output: bytes | None) -> Iterator[BatteryResult]:
        """Judge everything."""
        for test in COUNTED:
            counts = self.counts.get(test.counts)
            if counts is None:
                yield _result(test, "the source does not tell")
            else:
                yield _result(test, self._too_few(test), partial(test.judge, counts, self.decks))
        for stream in STREAMED:
            yield _result(stream, self._too_few(stream), partial(stream.judge, self.streams))
        for on_raw in raw.RAW:
            if raw_output is None:
                yield _result(on_raw, "no raw output to look at")
            else:
                yield _result(on_raw, "", partial(on_raw.judge, raw_output))

    def _too_few(self, test: CountedTest | StreamTest) -> str:
        return f"needs {test.least:,} decks, there are {self.decks:,}" if self.decks < test.least else ""


def _result(test: CountedTest | StreamTest, missing: str, judge: Callable[[], Judged] | None = None) -> BatteryResult:
    """Judge a test unless something is missing."""
    if missing or judge is None:
        return BatteryResult(test.name, test.clause, None, None, "", test.continuous, missing)
    judged = judge()
    return BatteryResult(test.name, test.clause, judged.p, float(judged.statistic), judged.law, test.continuous)


def totals_of(
    source: DeckSource, decks: int, *, first: int = 0, engine: EngineChoice = ALONE, reported: Reported = silent
) -> Totals:
    """Count so many fresh decks, chunk by chunk from number `first`, wherever the engine works. EngineError."""
    totals = Totals()
    chunks = [(first + place, min(CHUNK, decks - start)) for place, start in enumerate(range(0, decks, CHUNK))]
    for found in _tallies(source, chunks, engine):
        totals.add(found)
        reported("decks", totals.decks, decks)
    return totals


def _tallies(source: DeckSource, chunks: list[tuple[int, int]], engine: EngineChoice) -> Iterator[ChunkTally]:
    return over(partial(work, source), chunks, replace(engine, workers=min(engine.workers, len(chunks))))


def run_once(
    source: DeckSource,
    decks: int,
    alpha: float = FAMILY_LEVEL,
    *,
    first: int = 0,
    engine: EngineChoice = ALONE,
    reported: Reported = silent,
    with_raw: bool = True,
) -> Run:
    """Run every test once. Raises ValueError for fewer than two decks."""
    if decks < 2:
        raise ValueError(f"{decks} decks are too few, at least 2")
    totals = totals_of(source, decks, first=first, engine=engine, reported=reported)
    results = tuple(totals.results(source.raw(raw.RAW_BYTES, first) if with_raw else None))
    run = judged(source.reported, decks, results, alpha)
    return replace(run, placements=totals.counts["placements"].reshape(52, 52))


def judged(source: str, decks: int, results: tuple[BatteryResult, ...], alpha: float) -> Run:
    """Apply the decision rule to the results of one pass."""
    p_values = {result.name: result.p for result in results if result.p is not None}
    return Run(
        source,
        decks,
        results,
        tuple(holm(p_values, alpha)),
        tuple(name for name, p in p_values.items() if p < DECISIVE),
        tuple(r.name for r in results if r.is_continuous and r.p is not None and r.p > TOO_GOOD),
    )


def run_battery(
    source: DeckSource,
    decks: int,
    alpha: float = FAMILY_LEVEL,
    *,
    engine: EngineChoice = ALONE,
    reported: Reported = silent,
    can_repeat: bool = True,
) -> BatteryVerdict:
    """Run, and repeat once on fresh decks if the rule says so. `can_repeat` false for decks that were recorded."""
    run = run_once(source, decks, alpha, engine=engine, reported=reported)
    if run.decisive:
        return BatteryVerdict("failed", alpha, (run,))
    if not run.rejected and not run.too_good:
        return BatteryVerdict("passed" if decks >= DECKS_LEAST else "not applicable", alpha, (run,))
    if not can_repeat:
        return BatteryVerdict("failed", alpha, (run,))
    first = -(-decks // CHUNK)
    again = run_once(source, REPEAT_FACTOR * decks, alpha, first=first, engine=engine, reported=reported)
    word = "failed" if again.decisive or again.rejected or again.too_good else "passed"
    return BatteryVerdict(word, alpha, (run, again))


@dataclass(frozen=True, slots=True)
class SecondLevel:
    """The p-values of each continuous test over replicates, Kolmogorov's p-value of each, and what Holm rejects.

    `word` is passed | failed | not applicable: too few replicates, or too few decks in each for any test; `missing`
    says why a test was not judged. It counts for no verdict.
    """

    word: str
    replicates: int
    decks: int
    p_values: dict[str, tuple[float, ...]]
    kolmogorov: dict[str, float]
    rejected: tuple[str, ...]
    missing: dict[str, str]


def replicate(
    source: DeckSource,
    replicates: int,
    decks: int,
    alpha: float = FAMILY_LEVEL,
    *,
    engine: EngineChoice = ALONE,
    reported: Reported = silent,
) -> SecondLevel:
    """Run the tests on so many independent samples and hold their p-values against the uniform law.

    A sample is one chunk; raises ValueError for more decks than a chunk has.
    """
    if not 2 <= decks <= CHUNK:
        raise ValueError(f"a replicate has 2 to {CHUNK:,} decks, not {decks:,}")
    found: dict[str, list[float]] = {}
    missing: dict[str, str] = {}
    for done, counted in enumerate(_tallies(source, [(number, decks) for number in range(replicates)], engine), 1):
        totals = Totals()
        totals.add(counted)
        for result in totals.results(None):
            if result.is_continuous and result.p is not None:
                found.setdefault(result.name, []).append(result.p)
            elif result.is_continuous:
                missing[result.name] = result.reason
        reported("replicates", done, replicates)
    uniform = {name: kolmogorov(p_values) for name, p_values in found.items()}
    rejected = tuple(holm(uniform, alpha))
    is_applicable = bool(found) and replicates >= REPLICATES_LEAST
    return SecondLevel(
        ("failed" if rejected else "passed") if is_applicable else "not applicable",
        replicates,
        decks,
        {name: tuple(p_values) for name, p_values in found.items()},
        uniform,
        rejected,
        missing,
    )
