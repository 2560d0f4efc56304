"""The report as a document: what was compared with what, what that proves, what was found (docs/reconciliation.md).

The same parts give the same bytes: there is no time of the run, no path and no machine in it. Two sources are not
called independent if one repeats the other.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from rgs.core.reconcile.classes import BUCKET_NAMES, MEANINGS, PRIORITY, BreakClass, bucket_of
from rgs.core.reconcile.facts import Break
from rgs.core.reconcile.resolutions import Resolution
from rgs.core.times import format_time

FORMAT: Final = "rgs/reconciliation/v1"
LISTED_MAX: Final = 2000
"""Breaks in the report itself; all of them stand in breaks.csv."""
CLEAN, BREAKS, INCOMPLETE = "clean", "breaks", "incomplete"


@dataclass(frozen=True, slots=True)
class Input:
    """One file that was read. `rows` were taken, `rejected` were not; `mapping_sha256` is empty for our own layout."""

    source: str
    name: str
    sha256: str
    rows: int
    rejected: int
    mapping_sha256: str = ""


@dataclass(frozen=True, slots=True)
class Sources:
    """Which sources there are, and where they come from."""

    wallet: bool
    receipts: bool
    regulator: bool
    has_rounds: bool
    seamless: bool
    embedded_wallet: bool
    test_regulator: bool


def independence(sources: Sources) -> list[dict[str, Any]]:
    """For each check: its two sources, whether they are independent of one another, and why (not)."""
    checks = (
        (
            "purchases and payouts",
            "wallet",
            sources.wallet,
            not sources.embedded_wallet,
            "the wallet is the operator's own book"
            if not sources.embedded_wallet
            else "this wallet is our own, embedded or simulated: both books are written by the same software",
        ),
        (
            "stakes and returns of single rounds",
            "wallet",
            sources.wallet and sources.seamless,
            not sources.embedded_wallet,
            "each bet is a transaction of the wallet"
            if sources.seamless
            else "under the participation model the wallet sees what is bought and what is paid out, never a round",
        ),
        (
            "every round dealt is in the record",
            "receipts",
            sources.receipts,
            True,
            "the operator stored each opening before the outcome was known",
        ),
        (
            "sessions and rights of participation",
            "regulator",
            sources.regulator,
            not sources.test_regulator,
            "the ids are issued by the regulator's system"
            if not sources.test_regulator
            else "this is a test regulator: its ids are invented by our own software",
        ),
        (
            "stages of the regulator",
            "regulator",
            sources.regulator,
            False,
            "the regulator repeats the server's own stage reports: they were delivered and not changed since"
            if not sources.test_regulator
            else "this is a test regulator: no outside party at all",
        ),
        (
            "outcome and settlement of each round",
            "replay",
            sources.has_rounds,
            True,
            "recomputed from the revealed transcript; what that shows and what not is in docs/verify.md",
        ),
    )
    return [
        {"between": ["statements", other], "check": name, "independent": made and own, "made": made, "why": why}
        for name, other, made, own, why in checks
    ]


@dataclass
class BreakFindings:
    """Counts over all breaks, fed in the order of the report; the first LISTED_MAX are kept whole."""

    as_of_ms: int
    resolutions: Mapping[str, Resolution] = field(default_factory=dict)
    listed: list[dict[str, Any]] = field(default_factory=list)
    total: int = 0
    open: Counter[str] = field(default_factory=Counter)
    resolved: Counter[str] = field(default_factory=Counter)
    ages: dict[str, Counter[str]] = field(default_factory=dict)
    amounts: dict[str, Counter[str]] = field(default_factory=dict)
    owed: Counter[str] = field(default_factory=Counter)
    owed_open: Counter[str] = field(default_factory=Counter)
    new: int = 0
    still: int = 0

    def add(self, document: dict[str, Any], *, is_known: bool) -> dict[str, Any]:
        """Count one break; return its document with age, state and action."""
        name = document["class"]
        resolution = self.resolutions.get(document["break_id"])
        age_ms = max(0, self.as_of_ms - document.pop("time_ms"))
        result = {
            **document,
            "action": MEANINGS[BreakClass(name)].action,
            "age": bucket_of(age_ms),
            "resolved": None if resolution is None else asdict(resolution),
        }
        self.total += 1
        self.new += not is_known
        self.still += is_known
        if resolution is None:
            self.open[name] += 1
            self.ages.setdefault(name, Counter())[result["age"]] += 1
            self.amounts.setdefault(name, Counter())[document["currency"]] += document["amount_minor"]
            if result["owed"]:
                self.owed[document["currency"]] += document["amount_minor"]
                self.owed_open[name] += 1
        else:
            self.resolved[name] += 1
        if len(self.listed) < LISTED_MAX:
            self.listed.append(result)
        return result

    def classes(self) -> list[dict[str, Any]]:
        """Every class in order of urgency, with its counts."""
        rows = []
        for kind in BreakClass:
            ages, amounts = self.ages.get(kind, Counter()), self.amounts.get(kind, Counter())
            rows.append(
                {
                    **asdict(MEANINGS[kind]),
                    "ages": {name: ages[name] for name in BUCKET_NAMES},
                    "amounts": dict(sorted(amounts.items())),
                    "class": kind.value,
                    "open": self.open[kind],
                    "owed": self.owed_open[kind],
                    "resolved": self.resolved[kind],
                }
            )
        return rows


def break_document(found: Break) -> dict[str, Any]:
    """A break as it is stored until the report is sorted."""
    return {
        "amount_minor": found.amount_minor,
        "break_id": found.break_id,
        "class": found.kind.value,
        "currency": found.currency,
        "found": [list(pair) for pair in found.found],
        "game": found.game,
        "operator": found.operator,
        "owed": found.is_owed,
        "player": found.player,
        "sources": list(found.sources),
        "subject": found.subject,
        "time": format_time(found.time_ms),
        "time_ms": found.time_ms,
    }


def priority_of(found: Break) -> int:
    """Its place in the report: players who are owed first, then the most urgent class."""
    return PRIORITY[found.kind] + (0 if found.is_owed else len(PRIORITY))


def verdict_of(open_breaks: int, rejected: int, *, allow_rejects: bool) -> str:
    """The verdict of the run; the command's exit status follows from it (0, 2, 1)."""
    if rejected and not allow_rejects:
        return INCOMPLETE
    return BREAKS if open_breaks else CLEAN


def identity_rows(numbers: Sequence[int]) -> list[dict[str, Any]]:
    """The identity bought - staked + returned = paid out, by source: how many participations show it, for how many it
    holds.
    """
    names = ("statements", "wallet", "regulator")
    return [
        {"holds": numbers[2 * place + 1], "source": name, "reported": numbers[2 * place]}
        for place, name in enumerate(names)
    ]


def format_report(document: Mapping[str, Any]) -> bytes:
    """The bytes of report.json: sorted keys, one form."""
    return (json.dumps(document, sort_keys=True, indent=1, ensure_ascii=True) + "\n").encode("ascii")
