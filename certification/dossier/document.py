"""The dossier as one document of plain values: verdict, steps, clauses with their results, what is not covered.

Pure over the results. The verdict is `failed` if a step or clause failed, `passed` if everything ran and passed, else
`incomplete`: nothing failed, but not everything ran.
"""

from __future__ import annotations

import platform
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from certification.dossier.clauses import WORDS, load_map, result_of
from certification.dossier.plan import DossierPlan
from certification.dossier.work import Done, version_of
from rgs.core.times import format_time
from rng import __version__ as rng_version

FORMAT: Final = "rgs/dossier/v1"

_NOT_COVERED: Final = Path(__file__).with_name("not_covered.toml")
"""What the dossier does not show, and why."""


def document_of(plan: DossierPlan, done: Sequence[Done], time_ms: int) -> dict[str, Any]:
    """The document. `time_ms`: when it was made."""
    steps = {step.step.name: str(step.result["verdict"]) for step in done}
    tests = {
        name: row["word"]
        for row_of in done
        if row_of.step.name == "tests"
        for name, row in row_of.result["tests"].items()
    }
    chapters: list[dict[str, Any]] = [
        {
            "title": chapter.title,
            "clauses": [
                {
                    **asdict(clause),
                    "result": result_of(clause, tests, steps),
                    "tests": [{"name": name, "word": tests.get(name, "not run")} for name in clause.tests],
                }
                for clause in chapter.clauses
            ],
        }
        for chapter in load_map()
    ]
    counted = Counter(row["result"] for chapter in chapters for row in chapter["clauses"])
    words = Counter(steps.values())
    failed = bool(words["failed"] or counted["failed"])
    whole = set(words) <= {"passed"} and not counted["not run"]
    return {
        "format": FORMAT,
        "made": format_time(time_ms),
        "plan": asdict(plan),
        "software": {
            "rgs": version_of("rgs"),
            "rng": rng_version,
            "python": platform.python_version(),
            **{name: version_of(name) for name in ("numpy", "scipy", "numba", "cryptography")},
        },
        "verdict": "failed" if failed else "passed" if whole else "incomplete",
        "steps": [
            {
                "name": step.step.name,
                "title": step.step.title,
                "verdict": step.result["verdict"],
                "reported": step.result["reported"],
                "inputs_sha256": step.inputs,
                "made": step.made,
            }
            for step in done
        ],
        "counts": {
            "clauses": {word: counted[word] for word in WORDS},
            "steps": {word: words[word] for word in ("passed", "failed", "not run", "not applicable")},
        },
        "clauses": chapters,
        "not_covered": not_covered(),
    }


def not_covered() -> list[dict[str, str]]:
    """What is not covered, `what` and `why` of each."""
    rows: list[dict[str, str]] = tomllib.loads(_NOT_COVERED.read_text(encoding="utf-8"))["not_covered"]
    return rows
