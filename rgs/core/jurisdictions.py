"""Jurisdictions: what a regulator demands of every session, as versioned data.

Each row of a file cites its clause, or says that it is our own choice. The clause ids are those of the requirements
matrix (IT-, ID-, GL-, UK-). Files are read and hashed as rulesets are (`rgs.core.rulesets`). A row without a source is
refused, and so is the test regulator or the development CA outside `demo`.

A file `<id>.toml` holds the newest version, `<id>.<version>.toml` an earlier one, which only the replay of old
sessions needs. A version from before tables has neither of the rows for them, and offers none.
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

EARLIER_VERSIONS: Final = (("it-adm", 1), ("gb-ukgc", 1), ("demo", 1))
"""Earlier versions that are shipped too: old sessions name them."""

DEMO: Final = "demo"
"""The one jurisdiction without real money."""

_MAX_VERSION: Final = 1_000_000
_MAX_AMOUNT_MINOR: Final = 10**12
_MAX_MS: Final = 86_400_000
_MAX_S: Final = 30 * 86_400
_MAX_ROUNDS: Final = 1_000_000
_MAX_TABLES: Final = 100
_TABLE_ROWS: Final = ("tables_max", "early_close_allowed")
_WHOLE: Final = 10_000


@dataclass(frozen=True, slots=True)
class Jurisdiction:
    """One version of one jurisdiction.

    `participation_cap_minor` is the most that all purchases of one participation may come to;
    `return_floor_basis_points` the least return of a game, in hundredths of a percent, 0 for none; `history_rounds` a
    guaranteed minimum, not a cap (R-5). `finish_after_s` is how long an interrupted round stays open before it is
    finished by the ruleset's default decisions. `tables_max` is at how many tables a player may be at once, 0 where
    there are no tables (T-4); `early_close_allowed` whether a table's decision window may end before its time, when
    everybody has decided.
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
    tables_max: int
    early_close_allowed: bool
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
    has_tables = any(key in document for key in _TABLE_ROWS)
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
        tables_max=rows.number("tables_max", 0, _MAX_TABLES) if has_tables else 0,
        early_close_allowed=rows.flag("early_close_allowed") if has_tables else False,
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


def load_jurisdiction(jurisdiction_id: str, version: int | None = None) -> Jurisdiction:
    """Return the newest version of the shipped jurisdiction, or one of `EARLIER_VERSIONS`; raise JurisdictionError."""
    if version is None and jurisdiction_id in SHIPPED_JURISDICTIONS:
        return _load(jurisdiction_id)
    if version is not None and (jurisdiction_id, version) in EARLIER_VERSIONS:
        return _load(f"{jurisdiction_id}.{version}")
    named = repr(jurisdiction_id) if version is None else f"{jurisdiction_id!r} version {version}"
    raise JurisdictionError(f"no jurisdiction {named} is shipped", field="jurisdiction", jurisdiction=jurisdiction_id)


@cache
def _load(name: str) -> Jurisdiction:
    file = resources.files("rgs.core") / "jurisdiction_data" / f"{name}.toml"
    jurisdiction = parse_jurisdiction(file.read_text(encoding="utf-8"))
    if name not in {jurisdiction.id, f"{jurisdiction.id}.{jurisdiction.version}"}:
        raise RulesetError(f"id: the file of {name} holds {jurisdiction.id} version {jurisdiction.version}", field="id")
    return jurisdiction
