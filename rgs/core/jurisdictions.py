"""Jurisdictions: what a regulator demands of every session, as versioned data.

Each row of a file cites its clause, or says that it is our own choice. The clause ids are those of the requirements
matrix (IT-, ID-, GL-, UK-). Files are read and hashed as rulesets are (`rgs.core.rulesets`). A row without a source is
refused, and so is the test regulator or the development CA outside `demo`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Final

from rgs.core.errors import JurisdictionError, RulesetError
from rgs.core.money import parse_currency
from rgs.core.rulesets import CheckedRows, canonical_form, hash_of, parse_document

SHIPPED_JURISDICTIONS: Final = ("it-adm", "gb-ukgc", "demo")

DEMO: Final = "demo"
"""The one jurisdiction without real money."""

_MAX_VERSION: Final = 1_000_000
_MAX_AMOUNT_MINOR: Final = 10**12
_MAX_MS: Final = 86_400_000
_MAX_S: Final = 30 * 86_400
_MAX_ROUNDS: Final = 1_000_000
_WHOLE: Final = 10_000


@dataclass(frozen=True, slots=True)
class Jurisdiction:
    """One version of one jurisdiction.

    `participation_cap_minor` is the most that all purchases of one participation may come to;
    `return_floor_basis_points` the least return of a game, in hundredths of a percent, 0 for none; `history_rounds` a
    guaranteed minimum, not a cap (R-5). `finish_after_s` is how long an interrupted round stays open before it is
    finished by the ruleset's default decisions.
    """

    id: str
    version: int
    currency: str
    participation_cap_minor: int
    return_floor_basis_points: int
    regulator_ids_required: bool
    min_round_interval_ms: int
    inactivity_ms: int
    finish_after_s: int
    history_rounds: int
    test_regulator_allowed: bool
    development_ca_allowed: bool
    sources: Mapping[str, str] = field(repr=False, hash=False)
    canonical: bytes = field(repr=False)
    sha256: str


def parse_jurisdiction(text: str) -> Jurisdiction:
    """Return the jurisdiction of a TOML document; raise RulesetError naming the row."""
    document = parse_document(text)
    rows = CheckedRows(document)
    canonical = canonical_form(document)
    jurisdiction = Jurisdiction(
        id=rows.identifier("id"),
        version=rows.number("version", 1, _MAX_VERSION),
        currency=rows.parsed("currency", parse_currency),
        participation_cap_minor=rows.number("participation_cap_minor", 1, _MAX_AMOUNT_MINOR),
        return_floor_basis_points=rows.number("return_floor_basis_points", 0, _WHOLE),
        regulator_ids_required=rows.flag("regulator_ids_required"),
        min_round_interval_ms=rows.number("min_round_interval_ms", 0, _MAX_MS),
        inactivity_ms=rows.number("inactivity_ms", 1, _MAX_MS),
        finish_after_s=rows.number("finish_after_s", 1, _MAX_S),
        history_rounds=rows.number("history_rounds", 1, _MAX_ROUNDS),
        test_regulator_allowed=rows.flag("test_regulator_allowed"),
        development_ca_allowed=rows.flag("development_ca_allowed"),
        sources=rows.sources(),
        canonical=canonical,
        sha256=hash_of(canonical),
    )
    if jurisdiction.id != DEMO:
        for key in ("test_regulator_allowed", "development_ca_allowed"):
            if getattr(jurisdiction, key):
                raise rows.refusal(key, f"only {DEMO} may allow it")
    return jurisdiction


def load_jurisdiction(jurisdiction_id: str) -> Jurisdiction:
    """Return the shipped jurisdiction of this id; raise JurisdictionError."""
    if jurisdiction_id not in SHIPPED_JURISDICTIONS:
        raise JurisdictionError(
            f"no jurisdiction {jurisdiction_id!r} is shipped", field="jurisdiction", jurisdiction=jurisdiction_id
        )
    return _load(jurisdiction_id)


@cache
def _load(jurisdiction_id: str) -> Jurisdiction:
    file = resources.files("rgs.core") / "jurisdiction_data" / f"{jurisdiction_id}.toml"
    jurisdiction = parse_jurisdiction(file.read_text(encoding="utf-8"))
    if jurisdiction.id != jurisdiction_id:
        raise RulesetError(f"id: the file of {jurisdiction_id} holds {jurisdiction.id}", field="id")
    return jurisdiction
