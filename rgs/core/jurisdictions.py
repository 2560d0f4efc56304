"""Jurisdictions: what a regulator demands of every session, as versioned data.

Each row of a file cites its clause, or says that it is our own choice. The clause ids are those of the requirements
matrix (IT-, ID-, GL-, UK-). Files are read and hashed as rulesets are (`rgs.core.rulesets`). A row without a source is
refused, and so is the test regulator or the development CA outside `TEST_JURISDICTIONS`.

A file `<id>.toml` holds the newest version, `<id>.<version>.toml` an earlier one, which only the replay of old
sessions needs. A version from before tables has neither of the rows for them, and offers none. A version from before
launches has one currency and none of the rows in `_LAUNCH_ROWS`; it allows nothing that they allow.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Final

from rgs.core.errors import JurisdictionError, RulesetError
from rgs.core.money import parse_currency
from rgs.core.rulesets import CheckedRows, canonical_form, hash_of, parse_document

SHIPPED_JURISDICTIONS: Final = ("it-adm", "gb-ukgc", "demo", "demo-seamless")

EARLIER_VERSIONS: Final = (
    ("it-adm", 1),
    ("it-adm", 2),
    ("gb-ukgc", 1),
    ("gb-ukgc", 2),
    ("demo", 1),
    ("demo", 2),
)
"""Earlier versions that are shipped too: old sessions name them."""

DEMO: Final = "demo"
"""The jurisdiction of a new home."""

TEST_JURISDICTIONS: Final = (DEMO, "demo-seamless")
"""The jurisdictions without real money: only they may allow the test regulator and the development CA."""

_MAX_VERSION: Final = 1_000_000
_MAX_AMOUNT_MINOR: Final = 10**12
_MAX_MS: Final = 86_400_000
_MAX_S: Final = 30 * 86_400
_MAX_ROUNDS: Final = 1_000_000
_MAX_TABLES: Final = 100
_MAX_CURRENCIES: Final = 200
_LANGUAGE: Final = re.compile(r"[a-z]{2}")
_TABLE_ROWS: Final = ("tables_max", "early_close_allowed")
_LAUNCH_ROWS: Final = (
    "currencies",
    "languages",
    "reality_check_ms",
    "limit_raise_delay_s",
    "free_bets_allowed",
    "demo_allowed",
    "repeat_allowed",
    "skip_animations_allowed",
)
_WHOLE: Final = 10_000


@dataclass(frozen=True, slots=True)
class Jurisdiction:
    """One version of one jurisdiction.

    `currencies` holds, for each currency that is allowed, the most that all purchases of one participation may come to.
    `return_floor_basis_points` the least return of a game, in hundredths of a percent, 0 for none; `history_rounds` a
    guaranteed minimum, not a cap (R-5). `finish_after_s` is how long an interrupted round stays open before it is
    finished by the ruleset's default decisions. `tables_max` is at how many tables a player may be at once, 0 where
    there are no tables (T-4); `early_close_allowed` whether a table's decision window may end before its time, when
    everybody has decided.

    The rest is for whoever shows the game. `languages` are those it may be shown in; after each `reality_check_ms` the
    player is told how long he has played and what he has lost, 0 for never. A limit that a player raises takes effect
    after `limit_raise_delay_s`, one that he lowers at once. `free_bets_allowed` is whether the operator may grant
    stakes, `demo_allowed` whether there is play money beside real money, `repeat_allowed` whether one key may place the
    last bets again, `skip_animations_allowed` whether the showing of a result may be cut short.
    """

    id: str
    version: int
    currencies: Mapping[str, int] = field(hash=False)
    return_floor_basis_points: int
    regulator_ids_required: bool
    min_round_interval_ms: int
    inactivity_ms: int
    finish_after_s: int
    history_rounds: int
    tables_max: int
    early_close_allowed: bool
    languages: tuple[str, ...]
    reality_check_ms: int
    limit_raise_delay_s: int
    free_bets_allowed: bool
    demo_allowed: bool
    repeat_allowed: bool
    skip_animations_allowed: bool
    test_regulator_allowed: bool
    development_ca_allowed: bool
    sources: Mapping[str, str] = field(repr=False, hash=False)
    canonical: bytes = field(repr=False)
    sha256: str

    def cap_minor(self, currency: str) -> int:
        """The most that all purchases of one participation may come to; 0 in a currency that is not allowed."""
        return self.currencies.get(currency, 0)

    def verify_currency(self, currency: str) -> None:
        """JurisdictionError for a currency that is not allowed."""
        if currency not in self.currencies:
            allowed = ", ".join(self.currencies)
            raise JurisdictionError(
                f"currency: {currency[:8]!r} is not one of {self.id}, which allows {allowed}",
                field="currency",
                value=currency[:8],
                limit=allowed,
            )


def parse_jurisdiction(text: str) -> Jurisdiction:
    """Return the jurisdiction of a TOML document; raise RulesetError naming the row."""
    document = parse_document(text)
    rows = CheckedRows(document)
    canonical = canonical_form(document)
    has_tables = any(key in document for key in _TABLE_ROWS)
    has_launch = any(key in document for key in _LAUNCH_ROWS)
    jurisdiction = Jurisdiction(
        id=rows.identifier("id"),
        version=rows.number("version", 1, _MAX_VERSION),
        currencies=_currencies(rows) if has_launch else MappingProxyType(dict([_currency(rows)])),
        return_floor_basis_points=rows.number("return_floor_basis_points", 0, _WHOLE),
        regulator_ids_required=rows.flag("regulator_ids_required"),
        min_round_interval_ms=rows.number("min_round_interval_ms", 0, _MAX_MS),
        inactivity_ms=rows.number("inactivity_ms", 1, _MAX_MS),
        finish_after_s=rows.number("finish_after_s", 1, _MAX_S),
        history_rounds=rows.number("history_rounds", 1, _MAX_ROUNDS),
        tables_max=rows.number("tables_max", 0, _MAX_TABLES) if has_tables else 0,
        early_close_allowed=rows.flag("early_close_allowed") if has_tables else False,
        languages=_languages(rows) if has_launch else (),
        reality_check_ms=rows.number("reality_check_ms", 0, _MAX_MS) if has_launch else 0,
        limit_raise_delay_s=rows.number("limit_raise_delay_s", 0, _MAX_S) if has_launch else 0,
        free_bets_allowed=rows.flag("free_bets_allowed") if has_launch else False,
        demo_allowed=rows.flag("demo_allowed") if has_launch else False,
        repeat_allowed=rows.flag("repeat_allowed") if has_launch else False,
        skip_animations_allowed=rows.flag("skip_animations_allowed") if has_launch else False,
        test_regulator_allowed=rows.flag("test_regulator_allowed"),
        development_ca_allowed=rows.flag("development_ca_allowed"),
        sources=rows.sources(),
        canonical=canonical,
        sha256=hash_of(canonical),
    )
    if jurisdiction.id not in TEST_JURISDICTIONS:
        for key in ("test_regulator_allowed", "development_ca_allowed"):
            if getattr(jurisdiction, key):
                raise rows.refusal(key, f"only {' and '.join(TEST_JURISDICTIONS)} may allow it")
    return jurisdiction


def _currency(rows: CheckedRows) -> tuple[str, int]:
    """One currency with its cap."""
    return rows.parsed("currency", parse_currency), rows.number("participation_cap_minor", 1, _MAX_AMOUNT_MINOR)


def _currencies(rows: CheckedRows) -> Mapping[str, int]:
    """The currencies in the order of the file, each once."""
    tables = rows.tables("currencies")
    if not 1 <= len(tables) <= _MAX_CURRENCIES:
        raise rows.refusal("currencies", f"there are {len(tables)}, not 1 to {_MAX_CURRENCIES}")
    caps: dict[str, int] = {}
    for table in tables:
        currency, cap_minor = _currency(table)
        if currency in caps:
            raise table.refusal("currency", f"{currency} stands there twice")
        caps[currency] = cap_minor
        table.close()
    return MappingProxyType(caps)


def _languages(rows: CheckedRows) -> tuple[str, ...]:
    """The languages in the order of the file, each once."""
    languages = rows.texts("languages")
    if not languages:
        raise rows.refusal("languages", "is empty")
    for number, language in enumerate(languages):
        if not _LANGUAGE.fullmatch(language) or language in languages[:number]:
            raise rows.refusal("languages", f"{language!r} is not a code of two small letters, or stands there twice")
    return languages


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
