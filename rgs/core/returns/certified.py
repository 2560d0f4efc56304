"""Certificates: the exact returns of a ruleset, found by its hash, and whether a jurisdiction lets it be offered.

`certify rtp` makes a certificate (docs/returns.md). It lies in `certificate_data` under the hash of its ruleset
(RULEBOOK section 4; IT-03, GL-23). Only what a server shows and compares is read here. Returns are those of best play
of the main bets; a side bet has a return of its own.

A certificate is refused if it names another ruleset, lacks a bet, has fractions that are not in lowest terms, or
returns that are not those of its own values. A game without a usable certificate, or with a return below the
jurisdiction's floor, is offered to nobody.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Final

from rgs.core.errors import FormatError, GameNotOfferedError, RgsError
from rgs.core.jurisdictions import Jurisdiction
from rgs.core.rulesets import CheckedRows, Ruleset

LABEL: Final = "certified"

_FRACTION: Final = re.compile(r"(0|[1-9][0-9]{0,39})/([1-9][0-9]{0,39})")
_WHOLE: Final = 10_000


@dataclass(frozen=True, slots=True)
class CertifiedReturns:
    """The returns of a ruleset: of the main bets per ante and per total stake, and of each side bet per stake."""

    ruleset_sha256: str
    return_initial: Fraction
    return_total: Fraction
    side_bets: Mapping[str, Fraction]


def parse_return(text: str) -> Fraction:
    """Return the fraction of "NUM/DEN", >= 0 and in lowest terms; raise FormatError for any other text."""
    match = _FRACTION.fullmatch(text)
    value = Fraction(text) if match else Fraction(-1)
    if not match or (value.numerator, value.denominator) != (int(match[1]), int(match[2])):
        raise FormatError(f"{text[:90]!r} is not a fraction in lowest terms", field="certificate", value=text[:90])
    return value


def parse_certified_returns(text: str, ruleset: Ruleset) -> CertifiedReturns:
    """Return the certificate of this ruleset; raise FormatError if it is no JSON, RulesetError naming the row."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError("the certificate is not JSON", field="certificate") from error
    if type(document) is not dict:
        raise FormatError("the certificate is not a JSON object", field="certificate")
    rows = CheckedRows(document)
    rows.choice("ruleset_sha256", (ruleset.sha256,))
    side_bets = rows.table("side_bets")
    value = rows.parsed("expected_value_per_ante", _parse_signed)
    wager = rows.parsed("expected_total_wager", _parse_signed)
    side_rows = side_bets.table(ruleset.rules.side_bet)
    side_value = side_rows.parsed("value", _parse_signed)
    if wager <= 0:
        raise rows.refusal("expected_total_wager", f"{wager} must be positive")
    return CertifiedReturns(
        ruleset_sha256=ruleset.sha256,
        return_initial=_return(rows, "return_initial", 1 + value),
        return_total=_return(rows, "return_total", 1 + value / wager),
        side_bets=MappingProxyType({ruleset.rules.side_bet: _return(side_rows, "return", 1 + side_value)}),
    )


def load_certified_returns(ruleset: Ruleset) -> CertifiedReturns | None:
    """The shipped certificate of this ruleset, None without a usable one."""
    found = _read(ruleset)
    return None if isinstance(found, str) else found


def verify_offered(ruleset: Ruleset, jurisdiction: Jurisdiction) -> None:
    """Raise GameNotOfferedError unless a certificate shows every return at or above the jurisdiction's floor."""
    certificate = load_certified_returns(ruleset)
    if certificate is None:
        raise GameNotOfferedError(why_not(ruleset), game=ruleset.id, ruleset_sha256=ruleset.sha256)
    floor = Fraction(jurisdiction.return_floor_basis_points, _WHOLE)
    for bet, value in (("main", certificate.return_initial), *certificate.side_bets.items()):
        if value < floor:
            raise GameNotOfferedError(
                f"{ruleset.id}: {bet} returns {value}, the floor of {jurisdiction.id} is {floor}",
                game=ruleset.id,
                bet=bet,
                value=value,
                limit=floor,
                jurisdiction=jurisdiction.id,
            )


def why_not(ruleset: Ruleset) -> str:
    """Return why there is no certificate of this ruleset."""
    found = _read(ruleset)
    refused = f" that can be used: {found}" if isinstance(found, str) and found else ""
    return f"{ruleset.id} has no certificate of its returns{refused}"


@cache
def _read(ruleset: Ruleset) -> CertifiedReturns | str:
    """The certificate; or what is wrong with its file, empty without a file."""
    file = resources.files("rgs.core") / "certificate_data" / f"{ruleset.sha256}.json"
    if not file.is_file():
        return ""
    try:
        return parse_certified_returns(file.read_bytes().decode("ascii"), ruleset)
    except (RgsError, UnicodeDecodeError) as error:
        return f"{file.name}: {error}"


def _return(rows: CheckedRows, key: str, derived: Fraction) -> Fraction:
    """The return of a row. It must be the one that follows from the values beside it."""
    value = rows.parsed(key, parse_return)
    if value != derived:
        raise rows.refusal(key, f"{value} is not the {derived} that its value comes to")
    return value


def _parse_signed(text: str) -> Fraction:
    value = parse_return(text.removeprefix("-"))
    return -value if text.startswith("-") else value
