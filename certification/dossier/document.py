"""The dossier as one document of plain values: verdict, steps, clauses with their results, what is not covered.

Pure over the results. The verdict is `failed` if a step or clause failed, `passed` if everything ran and passed, else
`incomplete`: nothing failed, and not everything ran. Refuses to round any of these up.
"""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib import metadata
from typing import Any, Final

from certification.dossier.clauses import WORDS, load_map, result_of
from certification.dossier.plan import Plan
from certification.dossier.work import Done
from rgs.core.times import format_time
from rng import __version__ as rng_version

FORMAT: Final = "rgs/dossier/v1"

NOT_COVERED: Final = (
    ("Nobody outside the house has certified any of this.", "The dossier is what a laboratory re-runs and reads; it is no certificate."),
    (
        "Which software really runs on a host.",
        "Manifest and self-check find careless and clumsy changes. A host that lies about itself is not found from within; an image or disk "
        "compared from outside is what counts.",
    ),
    (
        "Unpredictability and entropy.",
        "No statistic shows them. They rest on the construction (Hash_DRBG), on SHA-512, and on the operating system's source, whose noise nobody here "
        "can see. No module is validated under FIPS 140, SP 800-90B or AIS 20/31.",
    ),
    (
        "Biases smaller than the samples show.",
        "The chapter on planted defects lists what no affordable sample catches, with the source rule that guards against each.",
    ),
    (
        "The real central system of any regulator.",
        "The protocol is served by an embedded register and a simulator. The adapter to a real one is not written, and nothing was tested against one.",
    ),
    (
        "Clauses that are not in the map.",
        "The map holds clauses that public sources quote. The full texts of GLI-11, GLI-19 and of ADM's rules were not available: a laboratory checks "
        "it against them, and adds what is missing.",
    ),
    (
        "Front ends.",
        "What a player sees, how fast a round is shown, how limits are entered: the operator's. The server gives the figures.",
    ),
    (
        "Return of real play.",
        "Exact returns are those of best play. What real players lose depends on how they play; `certify rng --statements` tests recorded rounds, and "
        "there are none in this dossier.",
    ),
    (
        "Network security, physical security, staff, information security management.",
        "Penetration tests and ISO/IEC 27001 are audits of an organisation, not of this software.",
    ),
    (
        "The rest of the test suite.",
        "Only the tests that the clause map names were run here. `make check` runs all of them.",
    ),
)
"""What the dossier does not show, and why."""


def document_of(plan: Plan, done: Sequence[Done], time_ms: int) -> dict[str, Any]:
    """The document. `time_ms`: when it was made."""
    steps = {step.step.name: str(step.result["verdict"]) for step in done}
    tests = {name: row["word"] for row_of in done if row_of.step.name == "tests" for name, row in row_of.result["tests"].items()}
    chapters = [
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
    counted = Counter(clause["result"] for chapter in chapters for clause in chapter["clauses"])
    words = Counter(steps.values())
    failed = bool(words["failed"] or counted["failed"])
    whole = set(words) <= {"passed"} and not counted["not run"]
    return {
        "format": FORMAT,
        "made": format_time(time_ms),
        "plan": asdict(plan),
        "software": {
            "rgs": _version("rgs"),
            "rng": rng_version,
            "python": platform.python_version(),
            **{name: _version(name) for name in ("numpy", "scipy", "numba", "cryptography")},
        },
        "verdict": "failed" if failed else "passed" if whole else "incomplete",
        "steps": [
            {
                "name": step.step.name,
                "title": step.step.title,
                "verdict": step.result["verdict"],
                "told": step.result["told"],
                "inputs_sha256": step.inputs,
            }
            for step in done
        ],
        "counts": {
            "clauses": {word: counted[word] for word in WORDS},
            "steps": {word: words[word] for word in ("passed", "failed", "not run", "not applicable")},
        },
        "clauses": chapters,
        "not_covered": [{"what": what, "why": why} for what, why in NOT_COVERED],
    }


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "absent"
