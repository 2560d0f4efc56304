"""The dossier as one page for screen and print: no script, nothing loaded but the pictures beside it.

It shows only what the document and the results hold. The template engine escapes every value.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from fractions import Fraction
from typing import Any, Final

from jinja2 import Template

from certification.dossier.sbom import LOCKS
from certification.dossier.software import property_of
from certification.pages import template
from certification.rtp.returns import format_decimal

_SURVIVORS_SHOWN: Final = 500
_LEAST: Final = 1e-300
_CHAPTERS: Final = (
    ("system", "What the system is"),
    ("clauses", "Clause map"),
    ("generator", "The random number generator"),
    ("known-answers", "Known answers and self-test"),
    ("health", "Health tests of the entropy"),
    ("battery", "The shuffle battery"),
    ("sp800-22", "NIST SP 800-22"),
    ("programs", "Batteries of others"),
    ("defects", "Planted defects"),
    ("returns", "Exact returns"),
    ("simulation", "Simulation and recorded rounds"),
    ("manifest", "Software manifest"),
    ("mutants", "Mutation testing"),
    ("sbom", "What the software is made of"),
    ("not-covered", "What is not covered"),
    ("again", "How this was made, and how to check it"),
    ("words", "Words"),
)


def _template() -> Template:
    return template(
        __file__,
        "dossier.html.j2",
        number=lambda value: f"{value:,}",
        p=_p,
        percent=lambda text, places=4: f"{format_decimal(100 * Fraction(text), places)} %",
        decimal=lambda text, places=6: format_decimal(Fraction(text), places),
        slug=lambda word: str(word).replace(" ", "-"),
    )


def render_page(
    document: Mapping[str, Any], results: Mapping[str, Mapping[str, Any]], figures: AbstractSet[str]
) -> str:
    """The page. `figures` are the names of the pictures in `figures/`."""
    named = {row["name"]: row for row in document["steps"]}
    return _template().render(
        dossier=document,
        results=results,
        step=named,
        figures=figures,
        chapters=[(place, *chapter) for place, chapter in enumerate(_CHAPTERS, 1)],
        batteries=[name for name in named if name.startswith("battery-")],
        returns=[name for name in named if name.startswith("returns-")],
        simulations=[name for name in named if name.startswith("simulation-")],
        components=_components(results["sbom"]),
        survivors_shown=_SURVIVORS_SHOWN,
    )


def _p(value: float | None) -> str:
    """A p-value as people read it."""
    if value is None:
        return "-"
    if value < _LEAST:
        return "< 1e-300"
    return f"{value:.4f}" if value >= 0.001 else f"{value:.1e}"


def _components(result: Mapping[str, Any]) -> list[tuple[str, list[dict[str, str]]]]:
    """The packages of each lock: name, version, licence, whether it is installed here."""
    rows: dict[str, list[dict[str, str]]] = {scope: [] for scope, _ in LOCKS}
    for part in result.get("document", {}).get("components", ()):
        licences = [
            row.get("expression") or row["license"].get("id") or row["license"]["name"]
            for row in part.get("licenses", ())
        ]
        rows[property_of(part, "rgs:lock")].append(
            {
                "name": part["name"],
                "version": part["version"],
                "licence": ", ".join(licences) or "unknown",
                "installed": property_of(part, "rgs:installed"),
                "files": str(sum(row["name"] == "rgs:accepted-file-sha256" for row in part["properties"])),
            }
        )
    return list(rows.items())
