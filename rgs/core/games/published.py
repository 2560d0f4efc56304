"""Returns that the source documents publish (RULEBOOK U-12, C-9), for the catalog to show until a certificate exists.

They are labelled as published, because nobody here has derived them. They stand outside the rulesets and their hashes
(RULEBOOK section 4). S1 and S3 publish none, so `uth-seven-box` and `uth-lugano` have none.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final

from rgs.core.rulesets import SHIPPED_RULESETS, CheckedRows, parse_document

LABEL: Final = "published"

_WHOLE: Final = 10_000


@dataclass(frozen=True, slots=True)
class PublishedReturn:
    """A return in hundredths of a percent, of a bet ("main": all but the side bet), per initial or total stake."""

    ruleset_id: str
    bet: str
    per: str
    basis_points: int
    source: str


def parse_published_returns(text: str) -> tuple[PublishedReturn, ...]:
    """Return the rows of a TOML document; raise RulesetError naming the row."""
    document = CheckedRows(parse_document(text))
    published = []
    for rows in document.tables("published"):
        published.append(
            PublishedReturn(
                ruleset_id=rows.choice("ruleset", SHIPPED_RULESETS),
                bet=rows.text("bet"),
                per=rows.choice("per", ("initial stake", "total stake")),
                basis_points=rows.number("basis_points", 0, _WHOLE),
                source=rows.text("source"),
            )
        )
        rows.close()
    document.close()
    return tuple(published)


def published_returns(ruleset_id: str) -> tuple[PublishedReturn, ...]:
    """Return what is published for the ruleset; empty if nothing is."""
    return tuple(row for row in _load() if row.ruleset_id == ruleset_id)


@cache
def _load() -> tuple[PublishedReturn, ...]:
    return parse_published_returns(
        (resources.files("rgs.core.games") / "published_returns.toml").read_text(encoding="utf-8")
    )
