"""The configuration of a table, as versioned data of its operator: docs/tables.md has its rows and two examples.

It is read strictly, and hashed as rulesets are (`rgs.core.rulesets`): each round of the table names the hash. The
ruleset says how the game is played, the jurisdiction what the law allows; a configuration stays within both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from types import MappingProxyType
from typing import Any, Final

from rgs.core.errors import InvalidFieldError, RulesetError, TableConfigError
from rgs.core.games.types import Ruleset, StakeLimits, Timers
from rgs.core.ids import check_name
from rgs.core.jurisdictions import Jurisdiction
from rgs.core.money import parse_currency
from rgs.core.rulesets import CheckedRows, canonical_form, hash_of, parse_canonical_document, parse_document
from rgs.core.tables.hours import Hours, parse_hours
from rgs.core.tables.tree import SEATS_MAX

SHIPPED_TABLES: Final = ("uth-online", "uth-seven-box", "uth-lugano")
"""The configurations that are shipped: those of the demo."""

LANGUAGES: Final = ("it", "de", "en")
"""The languages in which every table has a name. It may have names in more."""

_MAX_VERSION: Final = 1_000_000
_MAX_NAME: Final = 60
_MIN_MS: Final = 1_000
_MAX_MS: Final = 600_000


@dataclass(frozen=True, slots=True)
class TableConfig:
    """One version of the configuration of one table.

    `names` are by language; `limits` by bet, within the ruleset's. `seats` 0 is any number up to `SEATS_MAX`.
    `early_close` is whether a decision window ends when nobody is undecided; `tables_beside` whether its players may
    play at other tables, too (T-4). The players of `operators` share the table.
    """

    id: str
    version: int
    names: Mapping[str, str] = field(hash=False)
    ruleset_id: str
    jurisdiction_id: str
    currency: str
    limits: Mapping[str, StakeLimits] = field(hash=False)
    seats: int
    timers: Timers
    early_close: bool
    tables_beside: bool
    operators: tuple[str, ...]
    chat: bool
    hours: Hours
    canonical: bytes = field(repr=False)
    sha256: str

    @property
    def seats_max(self) -> int:
        """The most seats of a round at this table."""
        return self.seats or SEATS_MAX


def parse_table_config(
    text: str, *, rulesets: Mapping[str, Ruleset], jurisdictions: Mapping[str, Jurisdiction]
) -> TableConfig:
    """Return the configuration of a TOML document; raise TableConfigError naming the row, its value and the limit.

    The ruleset and the jurisdiction that it names are looked up by their ids.
    """
    try:
        return _table_config(parse_document(text), rulesets, jurisdictions)
    except RulesetError as error:
        raise TableConfigError(error.message, field=error.field, **error.metadata) from error


def parse_canonical_table_config(
    canonical: bytes, *, rulesets: Mapping[str, Ruleset], jurisdictions: Mapping[str, Jurisdiction]
) -> TableConfig:
    """Return the configuration of a canonical form; raise FormatError for another form, and as above."""
    try:
        return _table_config(parse_canonical_document(canonical, "table"), rulesets, jurisdictions)
    except RulesetError as error:
        raise TableConfigError(error.message, field=error.field, **error.metadata) from error


def load_table_config(
    table_id: str, *, rulesets: Mapping[str, Ruleset], jurisdictions: Mapping[str, Jurisdiction]
) -> TableConfig:
    """Return a shipped configuration; raise TableConfigError for an id that is not in `SHIPPED_TABLES`."""
    if table_id not in SHIPPED_TABLES:
        raise TableConfigError(
            f"no table {table_id!r} is shipped; there are {', '.join(SHIPPED_TABLES)}", field="id", value=table_id
        )
    file = resources.files("rgs.core") / "table_data" / f"{table_id}.toml"
    return parse_table_config(file.read_text(encoding="utf-8"), rulesets=rulesets, jurisdictions=jurisdictions)


def _table_config(
    document: dict[str, Any], rulesets: Mapping[str, Ruleset], jurisdictions: Mapping[str, Jurisdiction]
) -> TableConfig:
    rows = CheckedRows(document)
    canonical = canonical_form(document)
    ruleset = rulesets[rows.choice("ruleset", rulesets)]
    if not ruleset.table_only:
        raise rows.refusal("ruleset", f"{ruleset.id} is played solo; name a ruleset with table_only")
    law = jurisdictions[rows.choice("jurisdiction", jurisdictions)]
    if not law.tables_max:
        raise rows.refusal("jurisdiction", f"{law.id} version {law.version} allows no tables (tables_max 0)")
    config = TableConfig(
        id=rows.identifier("id"),
        version=rows.number("version", 1, _MAX_VERSION),
        names=_names(rows.table("names")),
        ruleset_id=ruleset.id,
        jurisdiction_id=law.id,
        currency=rows.parsed("currency", parse_currency),
        limits=_limits(rows.table("limits"), ruleset),
        # A ruleset for any number of players has max_seats 0.
        seats=rows.number("seats", 1, ruleset.max_seats) if ruleset.max_seats else rows.number("seats", 0, SEATS_MAX),
        timers=_timers(rows.table("timers")),
        early_close=rows.flag("early_close"),
        tables_beside=rows.flag("tables_beside"),
        operators=_operators(rows),
        chat=rows.flag("chat"),
        hours=parse_hours(rows.table("hours")),
        canonical=canonical,
        sha256=hash_of(canonical),
    )
    rows.close()
    if config.currency not in law.currencies:
        raise rows.refusal("currency", f"{config.currency} is not one of {law.id}: {', '.join(law.currencies)}")
    if config.early_close and not law.early_close_allowed:
        raise rows.refusal("early_close", f"true, but {law.id} allows no window to end before its time")
    if config.timers.betting_ms < law.min_round_interval_ms:
        # Between two draws lies at least a whole betting window, also after a void.
        problem = f"is below {law.min_round_interval_ms}, the least time of {law.id} between rounds"
        raise rows.refusal("timers.betting_ms", f"{config.timers.betting_ms} {problem}")
    if config.tables_beside and law.tables_max == 1:
        raise rows.refusal("tables_beside", f"true, but {law.id} allows a player one table at once")
    return config


def _names(rows: CheckedRows) -> Mapping[str, str]:
    languages = (*LANGUAGES, *(name for name in rows.names if name not in LANGUAGES))
    names = {language: rows.text(language) for language in languages}
    for language, name in names.items():
        if len(language) != 2 or not language.isascii() or not language.islower():
            raise rows.refusal(language, "is not a language of two small letters (ISO 639-1)")
        if len(name) > _MAX_NAME:
            raise rows.refusal(language, f"has {len(name)} characters, more than {_MAX_NAME}")
        if not name.isprintable() or name != name.strip():
            raise rows.refusal(language, f"{name!r} has characters that do not print, or space at an end")
    return MappingProxyType(names)


def _limits(rows: CheckedRows, ruleset: Ruleset) -> Mapping[str, StakeLimits]:
    limits = {}
    for bet, widest in ruleset.limits.items():
        row = rows.table(bet)
        least = row.number("min_minor", widest.min_minor, widest.max_minor)
        most = row.number("max_minor", least, widest.max_minor)
        row.close()
        for key, limit_minor in (("min_minor", least), ("max_minor", most)):
            if limit_minor % ruleset.step_minor:
                raise row.refusal(key, f"{limit_minor} is not a multiple of step_minor {ruleset.step_minor}")
        limits[bet] = StakeLimits(least, most)
    rows.close()
    return MappingProxyType(limits)


def _timers(rows: CheckedRows) -> Timers:
    betting_ms = rows.number("betting_ms", _MIN_MS, _MAX_MS)
    timers = Timers(
        betting_ms=betting_ms,
        amber_ms=rows.number("amber_ms", 0, betting_ms - 1),
        decision_ms=rows.number("decision_ms", _MIN_MS, _MAX_MS),
        result_ms=rows.number("result_ms", _MIN_MS, _MAX_MS),
    )
    rows.close()
    return timers


def _operators(rows: CheckedRows) -> tuple[str, ...]:
    operators = rows.texts("operators")
    if not operators:
        raise rows.refusal("operators", "is empty; name at least one operator")
    for operator in operators:
        try:
            check_name(operator, "a name")
        except InvalidFieldError as error:
            raise rows.refusal("operators", f"{operator[:80]!r}: {error.message}") from error
        if operators.count(operator) > 1:
            raise rows.refusal("operators", f"names {operator} twice")
    return operators
