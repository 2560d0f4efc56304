"""Certificates: the exact returns of a ruleset, found by its hash, and whether a jurisdiction lets it be offered.

A certificate is made by `certify rtp` (docs/returns.md) and lies in `certificate_data`, named by the hash of the very
ruleset that it is about (RULEBOOK section 4; IT-03, GL-23). Only what a server shows and compares is read here; the
rest is for those who certify. Returns are those of best play of the main bets; a side bet's is its own merit.

Refuses a certificate that names another ruleset, lacks a bet, or whose fractions are not in lowest terms; and a game
without a certificate, or with a return below the jurisdiction's floor, to everyone.
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

from rgs.core.errors import FormatError, GameNotOfferedError
from rgs.core.jurisdictions import Jurisdiction
from rgs.core.rulesets import Rows, Ruleset

LABEL: Final = "certified"

_FRACTION: Final = re.compile(r"(0|[1-9][0-9]{0,39})/([1-9][0-9]{0,39})")
_WHOLE: Final = 10_000


@dataclass(frozen=True, slots=True)
class Certificate:
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
        raise FormatError(f"{text[:90]!r} is no fraction in lowest terms", field="certificate", value=text[:90])
    return value


def parse_certificate(text: str, ruleset: Ruleset) -> Certificate:
    """Return the certificate of this ruleset; raise FormatError if it is no JSON, RulesetError naming the row."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError("the certificate is no JSON", field="certificate") from error
    if type(document) is not dict:
        raise FormatError("the certificate is no JSON object", field="certificate")
    rows = Rows(document)
    rows.choice("ruleset_sha256", (ruleset.sha256,))
    side_bets = rows.table("side_bets")
    return Certificate(
        ruleset_sha256=ruleset.sha256,
        return_initial=_return(rows, "return_initial"),
        return_total=_return(rows, "return_total"),
        side_bets=MappingProxyType(
            {ruleset.rules.side_bet: _return(side_bets.table(ruleset.rules.side_bet), "return")}
        ),
    )


@cache
def load_certificate(ruleset: Ruleset) -> Certificate | None:
    """Return the shipped certificate of exactly this ruleset, None if there is none; raises as the parser does."""
    file = resources.files("rgs.core") / "certificate_data" / f"{ruleset.sha256}.json"
    return parse_certificate(file.read_text(encoding="ascii"), ruleset) if file.is_file() else None


def verify_offered(ruleset: Ruleset, jurisdiction: Jurisdiction) -> None:
    """Raise GameNotOfferedError unless a certificate shows every return at or above the jurisdiction's floor."""
    certificate = load_certificate(ruleset)
    if certificate is None:
        raise GameNotOfferedError(
            f"{ruleset.id} has no certificate of its returns", game=ruleset.id, ruleset_sha256=ruleset.sha256
        )
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


def _return(rows: Rows, key: str) -> Fraction:
    try:
        return parse_return(rows.text(key))
    except FormatError as error:
        raise rows.refusal(key, error.message) from error
