"""The steps of a dossier in order, full or quick, and the sample size of each.

The quick plan takes the same steps with smaller samples. It derives the returns of one ruleset of each game and reads
the others as they were committed. It is for continuous integration, and its pages say so. InvalidFieldError for sizes
that no step works with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from certification.dossier import chance, games, software
from certification.dossier.clauses import load_map, named_tests
from certification.dossier.work import ALL, CHANCE, GAMES, DossierStep
from certification.mutants import RESULT
from rgs.core.errors import InvalidFieldError
from rgs.core.rulesets import SHIPPED_RULESETS

ALPHA: Final = 0.01
Z: Final = 4.5
DECKS_LEAST: Final = 260
_SEED_BYTES: Final = 64


@dataclass(frozen=True)
class DossierPlan:
    """Sizes. `derived` are the rulesets whose returns are derived anew, `simulated` those that are played.

    `workers`: processes, 0 as many as there are cores. `seed`: hex; chance comes from it instead of the production
    generator, so that a run can be repeated.
    """

    name: str
    decks: tuple[int, ...]
    replicates: int
    replicate_decks: int
    defects: str
    sequences: int
    entropy_bytes: int
    derived: tuple[str, ...]
    simulated: tuple[str, ...]
    rounds: int
    megabytes: int
    tests: tuple[str, ...]
    workers: int = 0
    grids: bool = True
    seed: str = ""

    def __post_init__(self) -> None:
        if min(self.decks) < DECKS_LEAST:
            raise InvalidFieldError(f"decks must be at least {DECKS_LEAST}", field="decks", limit=DECKS_LEAST)
        if len(self.seed) > 2 * _SEED_BYTES or len(self.seed) % 2 or set(self.seed) - set("0123456789abcdef"):
            raise InvalidFieldError(f"seed must be at most {_SEED_BYTES} bytes in lowercase hex", field="seed")


def full_plan(decks: int = 10_000_000, rounds: int = 10_000_000, seed: str = "") -> DossierPlan:
    """What a release needs: hours."""
    return DossierPlan(
        name="full",
        decks=tuple(sorted({min(size, decks) for size in (100_000, 1_000_000, decks)})),
        replicates=200,
        replicate_decks=2_000,
        defects="all",
        sequences=1_000,
        entropy_bytes=16 << 20,
        derived=SHIPPED_RULESETS,
        simulated=("uth-lugano", "uth-solo", "casino-holdem"),
        rounds=rounds,
        megabytes=100,
        tests=tuple(named_tests(load_map())),
        seed=seed,
    )


def quick_plan(seed: str = "") -> DossierPlan:
    """The same with small samples: about a minute on two cores that have nothing else to do."""
    return DossierPlan(
        name="quick",
        decks=(100_000,),  # the fewest at which every test of the battery is applicable
        replicates=30,
        replicate_decks=1_000,
        defects="usual",
        sequences=60,
        entropy_bytes=1 << 20,
        derived=("uth-solo", "casino-holdem"),
        simulated=("uth-solo", "casino-holdem"),
        rounds=10_000,
        megabytes=0,
        tests=tuple(named_tests(load_map())),
        grids=False,
        seed=seed,
    )


def steps_of(plan: DossierPlan) -> list[DossierStep]:
    """The steps in the order in which they run."""

    def step(name: str, title: str, run: Any, reads: Sequence[str] = (), **parameters: Any) -> DossierStep:
        return DossierStep(name, title, run, parameters, reads)

    seeded: Mapping[str, Any] = {"seed": plan.seed, "alpha": ALPHA, "workers": plan.workers}
    return [
        step("manifest", "Software manifest", software.run_manifest, ALL),
        step("sbom", "Bill of materials", software.run_sbom, ("requirements", "certification/dossier/sbom.py")),
        step("mutants", "Mutation testing", software.run_mutants, (RESULT, "rng", "rgs/core", "tests")),
        step("selftest", "Self-test of the generator", chance.run_selftest, ("rng", CHANCE[-1])),
        step("kat", "Known answers", chance.run_known_answers, ("rng", "tests/vectors/drbg", CHANCE[-1])),
        step("health", "Health tests of the entropy", chance.run_health, ("rng", CHANCE[-1]), bytes=plan.entropy_bytes),
        step(
            "tests",
            "Tests of the clauses",
            software.run_tests,
            ALL,
            tests=list(plan.tests),
            workers=plan.workers,
        ),
        step("vectors", "Recorded rounds", games.run_vectors, GAMES, rulesets=list(SHIPPED_RULESETS)),
        *(
            step(
                f"returns-{name}",
                f"Exact returns of {name}",
                games.run_returns,
                GAMES,
                ruleset=name,
                derive=name in plan.derived,
                grid=plan.grids,
            )
            for name in SHIPPED_RULESETS
        ),
        step("defects", "Planted defects", chance.run_defects, CHANCE, which=plan.defects, workers=plan.workers),
        step(
            "replicates",
            "Uniformity of p-values",
            chance.run_replicates,
            CHANCE,
            replicates=plan.replicates,
            decks=plan.replicate_decks,
            **seeded,
        ),
        step("sp800-22", "NIST SP 800-22", chance.run_sp800_22, CHANCE, sequences=plan.sequences, **seeded),
        step("programs", "Batteries of others", chance.run_programs, CHANCE, megabytes=plan.megabytes),
        *(
            step(
                f"battery-{decks}",
                f"Shuffle battery, {decks:,} decks",
                chance.run_battery,
                CHANCE,
                decks=decks,
                **seeded,
            )
            for decks in plan.decks
        ),
        *(
            step(
                f"simulation-{name}",
                f"Simulation of {name}",
                games.run_simulation,
                GAMES,
                ruleset=name,
                rounds=plan.rounds,
                seed=plan.seed,
                z=Z,
                workers=plan.workers,
            )
            for name in plan.simulated
        ),
    ]
