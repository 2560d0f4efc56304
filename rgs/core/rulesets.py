"""Rulesets: what a table or a solo game plays by, as versioned data (RULEBOOK 4), and the strict reader of such data.

A ruleset is a TOML document. Its **canonical form** is the JSON of the parsed document: keys sorted, no white space,
ASCII, and only texts, integers, booleans, lists and tables. Its hash is the SHA-256 of that form; every round names it.
The canonical form alone gives the ruleset back, so that an old round is replayed by the rules it was played by.

Errors name the row: an unknown or missing key, a value of the wrong kind or out of bounds, a paytable with a hole or
one that pays a better hand less, odds that could round on the stake step, limits off the step, a default decision that
costs money, a table that would wait for ever, a row without its source. Published returns stand elsewhere
(`rgs.core.games.published`).
"""

from __future__ import annotations

import copyreg
import hashlib
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any, Final, Self, TypeVar

from rgs.core.cards import DECK_SIZE
from rgs.core.errors import FormatError, RulesetError, UnknownRulesetError
from rgs.core.games import FAMILIES
from rgs.core.games.dealing import cards_needed, parse_deal_procedure
from rgs.core.games.paytables import Paytable, format_floor, parse_floor, parse_paytable
from rgs.core.games.types import Action, FamilyRules, Phase, Ruleset, StakeLimits, Timers
from rgs.core.money import MAX_STAKE_MINOR, format_odds

__all__ = [
    "SHIPPED_RULESETS",
    "CheckedRows",
    "Ruleset",
    "canonical_form",
    "hash_of",
    "load_ruleset",
    "parse_canonical_document",
    "parse_canonical_ruleset",
    "parse_document",
    "parse_ruleset",
]

SHIPPED_RULESETS: Final = ("uth-online", "uth-seven-box", "uth-lugano", "uth-solo", "casino-holdem")

_Value = TypeVar("_Value")
_ID: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_MAX_ID: Final = 40
_MAX_DOCUMENT: Final = 65_536
_MAX_VERSION: Final = 1_000_000
_MAX_SEATS: Final = 1_000
_MAX_MS: Final = 86_400_000


# --- the strict reader; jurisdictions are read by it as well ---


def canonical_form(document: Mapping[str, Any]) -> bytes:
    """Return the canonical form of a parsed document (see above); raise RulesetError if it has none."""
    try:
        text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise RulesetError(f"the document has no canonical form: {error}") from error
    return text.encode("ascii")


def hash_of(canonical: bytes) -> str:
    """Return the SHA-256 of a canonical form, 64 hex digits."""
    return hashlib.sha256(canonical).hexdigest()


def parse_document(text: str) -> dict[str, Any]:
    """Return the parsed TOML document; raise RulesetError if it is malformed, or longer than 65,536 characters."""
    if len(text) > _MAX_DOCUMENT:
        raise RulesetError(f"the document is longer than {_MAX_DOCUMENT} characters", limit=_MAX_DOCUMENT)
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise RulesetError(f"the document is not TOML: {error}") from error


def parse_canonical_document(canonical: bytes, kind: str) -> dict[str, Any]:
    """Return the document of a canonical form; raise FormatError, which names the kind of document, for another form.

    A form longer than 65,536 bytes is refused.
    """
    try:
        document = json.loads(canonical[: _MAX_DOCUMENT + 1])
    except (ValueError, RecursionError) as error:
        raise FormatError(f"the {kind} is not JSON", field=kind) from error
    if type(document) is not dict or canonical_form(document) != canonical:
        raise FormatError(f"the {kind} is not in its canonical form", field=kind)
    return document


class CheckedRows:
    """The rows of a table, each taken once and checked; `close` refuses the others. All raise RulesetError."""

    def __init__(self, table: Mapping[str, Any], path: str = "") -> None:
        self._rows = dict(table)
        self.names = tuple(table)
        self._path = path

    def refusal(self, key: str, problem: str) -> RulesetError:
        """Return the error for a row, under its full name."""
        return RulesetError(f"{self._path}{key}: {problem}", field=f"{self._path}{key}")

    def text(self, key: str) -> str:
        """Return a text that is not empty."""
        value: str = self._take(key, str)
        if not value:
            raise self.refusal(key, "is empty")
        return value

    def parsed(self, key: str, parse: Callable[[str], _Value]) -> _Value:
        """Return the value that `parse` makes of a text; its FormatError names the row then."""
        try:
            return parse(self.text(key))
        except FormatError as error:
            raise self.refusal(key, error.message) from error

    def identifier(self, key: str) -> str:
        """Return a short name: small letters and digits, in groups joined by hyphens."""
        value = self.text(key)
        if len(value) > _MAX_ID or not _ID.fullmatch(value):
            raise self.refusal(key, f"{value!r} is not a name of small letters, digits and hyphens")
        return value

    def choice(self, key: str, allowed: Iterable[str]) -> str:
        """One text of a closed vocabulary."""
        value, names = self.text(key), tuple(allowed)
        if value not in names:
            raise self.refusal(key, f"{value!r} is not one of {', '.join(names)}")
        return value

    def number(self, key: str, least: int, most: int) -> int:
        """Return a whole number within bounds."""
        value: int = self._take(key, int)
        if not least <= value <= most:
            raise self.refusal(key, f"{value} is outside {least}..{most}")
        return value

    def flag(self, key: str) -> bool:
        """Return a boolean."""
        value: bool = self._take(key, bool)
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts."""
        values: list[Any] = self._take(key, list)
        if any(type(value) is not str for value in values):
            raise self.refusal(key, "is not a list of texts")
        return tuple(values)

    def tables(self, key: str) -> tuple[Self, ...]:
        """Return a list of tables."""
        values: list[Any] = self._take(key, list)
        if any(type(value) is not dict for value in values):
            raise self.refusal(key, "is not a list of tables")
        return tuple(type(self)(value, f"{self._path}{key}[{number}].") for number, value in enumerate(values))

    def table(self, key: str) -> Self:
        """Return a table."""
        return type(self)(self._take(key, dict), f"{self._path}{key}.")

    def mapping(self, key: str) -> Mapping[str, str]:
        """Return a table of texts."""
        rows = self.table(key)
        return MappingProxyType({name: rows.text(name) for name in rows.names})

    def sources(self) -> Mapping[str, str]:
        """Take the last row, `sources`, and close: it has a text for every row but `id` and `version`, and no other."""
        rows = self.table("sources")
        self.close()
        sources = {name: rows.text(name) for name in self.names if name not in {"id", "version", "sources"}}
        rows.close()
        return MappingProxyType(sources)

    def close(self) -> None:
        """Raise for the first row that was not taken."""
        for key in self._rows:
            raise self.refusal(key, "is not known")

    def _take(self, key: str, kind: type) -> Any:
        if key not in self._rows:
            raise self.refusal(key, "is missing")
        value = self._rows.pop(key)
        # Not isinstance: a bool is an int, but true is no number.
        if type(value) is not kind:
            raise self.refusal(key, f"is of kind {type(value).__name__}, not {kind.__name__}")
        return value


# --- the ruleset ---


def _reduced(ruleset: Ruleset) -> tuple[Any, ...]:
    # Another process gets a ruleset as its canonical form, and checks it again.
    return parse_canonical_ruleset, (ruleset.canonical,)


copyreg.pickle(Ruleset, _reduced)


def parse_ruleset(text: str) -> Ruleset:
    """Return the ruleset of a TOML document; raise RulesetError naming the row."""
    return _ruleset(parse_document(text))


def parse_canonical_ruleset(canonical: bytes) -> Ruleset:
    """Return the ruleset of a canonical form; raise FormatError for another form, RulesetError as `parse_ruleset`."""
    return _ruleset(parse_canonical_document(canonical, "ruleset"))


def load_ruleset(ruleset_id: str) -> Ruleset:
    """Return the shipped ruleset of this id; raise UnknownRulesetError."""
    if ruleset_id not in SHIPPED_RULESETS:
        raise UnknownRulesetError(f"no ruleset {ruleset_id!r} is shipped", field="ruleset_id", ruleset_id=ruleset_id)
    return _load(ruleset_id)


@cache
def _load(ruleset_id: str) -> Ruleset:
    ruleset = parse_ruleset(
        (resources.files("rgs.core.games") / "rulesets" / f"{ruleset_id}.toml").read_text(encoding="utf-8")
    )
    if ruleset.id != ruleset_id:
        raise RulesetError(f"id: the file of {ruleset_id} holds {ruleset.id}", field="id")
    return ruleset


def _ruleset(document: dict[str, Any]) -> Ruleset:
    rows = CheckedRows(document)
    family = rows.choice("game", FAMILIES)
    rules = FAMILIES[family]
    after_fold = f"{rules.side_bet}_after_fold"
    forfeits = {after_fold: rows.choice(after_fold, ("paid", "lost"))}
    step_minor = rows.number("step_minor", 1, MAX_STAKE_MINOR)
    canonical = canonical_form(document)
    if len(canonical) > _MAX_DOCUMENT:
        raise RulesetError(f"the canonical form is longer than {_MAX_DOCUMENT} bytes", limit=_MAX_DOCUMENT)
    ruleset = Ruleset(
        id=rows.identifier("id"),
        version=rows.number("version", 1, _MAX_VERSION),
        family=family,
        rules=rules,
        table_only=rows.flag("table_only"),
        max_seats=rows.number("max_seats", 0, _MAX_SEATS),
        hole_cards=rows.choice("hole_cards", ("own", "shared")),
        visibility=rows.choice("visibility", ("open", "secret")),
        deal_procedure=parse_deal_procedure(rows.texts("deal_procedure")),
        paytables=_paytables(rows.table("paytables"), rules, step_minor),
        qualify=rows.parsed("qualify", parse_floor),
        limits=_limits(rows.table("limits"), rules, step_minor),
        step_minor=step_minor,
        timers=_timers(rows.table("timers")),
        default_decisions=_default_decisions(rows.table("default_decisions"), rules),
        trips_after_fold=forfeits.get("trips_after_fold"),
        aa_after_fold=forfeits.get("aa_after_fold"),
        seat_lost_after_rounds=rows.number("seat_lost_after_rounds", 0, _MAX_SEATS),
        reservation_lapses_after_rounds=rows.number("reservation_lapses_after_rounds", 0, _MAX_SEATS),
        sources=rows.sources(),
        canonical=canonical,
        sha256=hash_of(canonical),
    )
    _verify_seats(ruleset, rows)
    return ruleset


def _paytables(rows: CheckedRows, rules: FamilyRules, step_minor: int) -> Mapping[str, Paytable]:
    paytables = {}
    for bet in rules.paytables:
        paytable = parse_paytable(f"paytables.{bet}", rows.mapping(bet))
        for floor, odds in paytable.rows:
            # U-10: every stake is a multiple of the step (the blind equals the ante): exact on it is exact always.
            if not odds.is_exact_for(step_minor):
                raise rows.refusal(
                    f"{bet}.{format_floor(floor)}", f"{format_odds(odds)} could round with step_minor {step_minor}"
                )
        paytables[bet] = paytable
    rows.close()
    return MappingProxyType(paytables)


def _limits(rows: CheckedRows, rules: FamilyRules, step_minor: int) -> Mapping[str, StakeLimits]:
    limits = {}
    for bet in rules.placed_bets:
        row = rows.table(bet)
        least = row.number("min_minor", 1, MAX_STAKE_MINOR)
        most = row.number("max_minor", least, MAX_STAKE_MINOR)
        row.close()
        for key, limit_minor in (("min_minor", least), ("max_minor", most)):
            if limit_minor % step_minor:
                raise row.refusal(key, f"{limit_minor} is not a multiple of step_minor {step_minor}")
        limits[bet] = StakeLimits(least, most)
    rows.close()
    return MappingProxyType(limits)


def _timers(rows: CheckedRows) -> Timers:
    betting_ms = rows.number("betting_ms", 0, _MAX_MS)
    timers = Timers(
        betting_ms=betting_ms,
        amber_ms=rows.number("amber_ms", 0, betting_ms),
        decision_ms=rows.number("decision_ms", 0, _MAX_MS),
        result_ms=rows.number("result_ms", 0, _MAX_MS),
    )
    rows.close()
    return timers


def _default_decisions(rows: CheckedRows, rules: FamilyRules) -> Mapping[Phase, Action]:
    decisions = {}
    for phase, transitions in rules.transitions.items():
        # T-2, C-10: a decision taken in the player's stead never stakes his money.
        free = [action for action in transitions if action not in rules.multiples]
        decisions[phase] = Action(rows.choice(phase, free))
    rows.close()
    return MappingProxyType(decisions)


def _verify_seats(ruleset: Ruleset, rows: CheckedRows) -> None:
    if ruleset.hole_cards == "shared" and ruleset.visibility == "secret":
        raise rows.refusal("visibility", "a hand that all players share cannot be secret (U-0)")
    if ruleset.hole_cards == "own":
        if not ruleset.max_seats:
            raise rows.refusal("max_seats", "own cards for any number of players do not fit a deck")
        needed = cards_needed(ruleset.deal_procedure, ruleset.max_seats)
        if needed > DECK_SIZE:
            raise rows.refusal("max_seats", f"{ruleset.max_seats} hands need {needed} of {DECK_SIZE} cards")
    if ruleset.table_only and 0 in (ruleset.timers.betting_ms, ruleset.timers.decision_ms):
        raise rows.refusal("timers", "a table needs betting_ms and decision_ms, or it could wait for ever (T-1, T-2)")
