"""The clause map: which function answers a clause, which test shows it, and the result in this run.

The map is data (`*.toml` beside; README.md says what the keys mean). A clause's result comes from the tests and steps
that ran, and from nothing else: without any evidence a clause is not run, never met. FormatError for a row with a key
too many or too few, and for a covered clause that names nothing that shows it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rgs.core.errors import FormatError

FOLDER: Final = Path(__file__).parent
FILES: Final = ("gli-generator", "gli-platform", "adm", "ukgc", "nist")
EVIDENCE: Final = ("primary", "quoted", "memory")
COVERS: Final = ("whole", "part", "none")
UNKNOWN: Final = "unknown"


@dataclass(frozen=True, slots=True)
class Clause:
    """One row: see README.md."""

    standard: str
    clause: str
    evidence: str
    demand: str
    functions: tuple[str, ...]
    tests: tuple[str, ...]
    steps: tuple[str, ...]
    covers: str
    open: str


@dataclass(frozen=True, slots=True)
class Chapter:
    """The clauses of one body of rules."""

    title: str
    clauses: tuple[Clause, ...]


def load_map() -> tuple[Chapter, ...]:
    """The whole map; FormatError naming file and clause."""
    return tuple(parse_chapter((FOLDER / f"{name}.toml").read_text(encoding="utf-8")) for name in FILES)


def parse_chapter(text: str) -> Chapter:
    """The clauses of one file."""
    document = tomllib.loads(text)
    if set(document) != {"title", "clause"}:
        raise FormatError("a file of clauses has a title and clauses", field="clauses")
    return Chapter(document["title"], tuple(_clause(row) for row in document["clause"]))


def _clause(row: Mapping[str, Any]) -> Clause:
    name = f"{row.get('standard')} {row.get('clause')}"
    if set(row) != set(Clause.__slots__):
        raise FormatError(f"{name}: the keys are {', '.join(Clause.__slots__)}", field="clauses")
    values: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
    clause = Clause(**values)
    if clause.evidence not in EVIDENCE or clause.covers not in COVERS or not clause.clause or not clause.demand:
        raise FormatError(f"{name}: evidence, covers, clause or demand is unknown", field="clauses")
    if (clause.covers == "none") == bool(clause.tests or clause.steps):
        raise FormatError(
            f"{name}: what is covered names what shows it, what is not covered names nothing", field="clauses"
        )
    if clause.covers != "whole" and not clause.open:
        raise FormatError(f"{name}: what is open is said", field="clauses")
    return clause


def named_tests(chapters: Sequence[Chapter]) -> list[str]:
    """Every test of the map, once."""
    return sorted({test for chapter in chapters for clause in chapter.clauses for test in clause.tests})


WORDS: Final = ("shown", "shown in part", "failed", "not run", "not covered")


def result_of(clause: Clause, tests: Mapping[str, str], steps: Mapping[str, str]) -> str:
    """The result of a clause: `tests` and `steps` give the word of each by its name, nothing for what did not run.

    One failure fails the clause. What did not run, or could not be applied, leaves the clause not run.
    """
    if clause.covers == "none":
        return "not covered"
    words = [tests.get(name, "not run") for name in clause.tests]
    words += [word for name in clause.steps for word in _of_step(name, steps)]
    if "failed" in words:
        return "failed"
    if set(words) != {"passed"}:
        return "not run"
    return "shown" if clause.covers == "whole" else "shown in part"


def _of_step(name: str, steps: Mapping[str, str]) -> Iterator[str]:
    """The words of a step, or of all its parts (`battery` is `battery-100000` and the rest)."""
    found = [word for step, word in steps.items() if step == name or step.startswith(f"{name}-")]
    yield from found or ["not run"]
