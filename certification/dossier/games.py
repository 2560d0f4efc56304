"""The steps about games: recorded rounds settled, exact returns derived, rounds simulated through the production code.

docs/returns.md says what the returns mean and how they are counted. A certificate that a plan does not derive anew is
read as it was committed, and reported as such: never as derived.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

from certification.dossier.chance import engine_of
from certification.dossier.work import ROOT, Result, not_run
from certification.rtp.certificate import Enumerated, certificate, format_certified_returns
from certification.rtp.command import DIRECTORY
from certification.rtp.returns import format_decimal, format_fraction, nets, tales
from certification.rtp.strategy import Decisions, Strategy
from certification.simulate import compare, simulate
from certification.statistics.progress import Reported
from certification.strategy import grid
from certification.vectors import RowVerdict, check_lines
from rgs.core.games.published import published_returns
from rgs.core.rulesets import Ruleset, load_ruleset

VECTORS: Final = ROOT / "tests" / "vectors" / "games"
_FILES: Final = {"ultimate_texas_holdem": "uth_rounds.jsonl", "casino_holdem": "casino_holdem_rounds.jsonl"}


def run_vectors(parameters: Mapping[str, Any], reported: Reported) -> Result:
    """Recorded rounds, settled by each ruleset, every field compared."""
    rows: list[dict[str, Any]] = []
    for done, name in enumerate(parameters["rulesets"]):
        reported("rulesets", done, len(parameters["rulesets"]))
        ruleset = load_ruleset(name)
        path = VECTORS / _FILES[ruleset.family]
        if not path.is_file():
            return not_run("the recorded rounds are not part of this installation", rows=[])
        found: Counter[str] = Counter()
        remarks: list[str] = []
        for number, verdict, said in check_lines(ruleset, path.read_bytes()):
            found["error" if verdict is None else verdict.value] += 1
            remarks += [f"line {number}: {remark}" for remark in said]
        counts = {word: found[word] for word in ("passed", "failed", "refused", "error")}
        rows.append({"ruleset": name, "file": path.name, **counts, "remarks": remarks[:20]})
    held = sum(row[RowVerdict.PASSED.value] + row[RowVerdict.REFUSED.value] for row in rows)
    wrong = sum(row[RowVerdict.FAILED.value] + row["error"] for row in rows)
    return {
        "verdict": "failed" if wrong or not held else "passed",
        "reported": f"{held:,} of {held + wrong:,} recorded rounds settle as recorded",
        "rows": rows,
    }


def run_returns(parameters: Mapping[str, Any], _reported: Reported) -> Result:
    """The certificate of a ruleset: derived anew by complete enumeration, or read as it was committed."""
    ruleset = load_ruleset(parameters["ruleset"])
    path = DIRECTORY / f"{ruleset.sha256}.json"
    committed = path.read_text(encoding="ascii") if path.is_file() else ""
    extra: Result = {}
    if parameters["derive"]:
        enumerated = _enumerated(ruleset)
        text = format_certified_returns(certificate(ruleset, enumerated))
        extra = {"net_wins": _net_wins(enumerated)}
        if parameters["grid"]:
            extra["grid"] = grid(Strategy(ruleset))
        verdict = "passed" if text == committed else "failed"
        how = (
            "derived anew, equal to the committed one"
            if verdict == "passed"
            else "DERIVED ANEW AND NOT THE COMMITTED ONE"
        )
    else:
        text = committed
        verdict = "not run" if committed else "failed"
        how = "as committed, not derived in this run" if committed else "there is no certificate"
    document = json.loads(text) if text else {}
    share = f"{format_decimal(100 * Fraction(document['return_initial']), 4)} %" if document else ""
    return {
        "verdict": verdict,
        "reported": f"{share} of the initial bet, {how}" if document else how,
        "ruleset": ruleset.id,
        "derived": bool(parameters["derive"]),
        "certificate": document,
        "published": [asdict(row) for row in published_returns(ruleset.id)],
        **extra,
    }


@lru_cache(maxsize=2)
def _enumerated(ruleset: Ruleset) -> Enumerated:
    """Two at a time are kept: the step that simulates uses what the step before it derived."""
    return Enumerated(ruleset)


def _net_wins(enumerated: Enumerated) -> list[dict[str, str]]:
    """How many of all deals win what, net, on the main bets together: in antes, the least first."""
    payments = enumerated.payments
    deals: Counter[int] = Counter()
    for tale in tales(enumerated.counts):
        deals[sum(nets(payments, tale).values())] += tale.deals
    return [
        {"antes": format_fraction(Fraction(net, payments.scale)), "deals": str(count)}
        for net, count in sorted(deals.items())
    ]


def run_simulation(parameters: Mapping[str, Any], reported: Reported) -> Result:
    """Rounds through the production code, every bet and action against its exact figure."""
    ruleset: Ruleset = load_ruleset(parameters["ruleset"])
    rounds: int = parameters["rounds"]
    enumerated = _enumerated(ruleset)
    seed = parameters["seed"]
    tally = simulate(
        Decisions.of(enumerated.play),
        rounds,
        seed=bytes.fromhex(seed) if seed else None,
        engine=engine_of(parameters),
        reported=lambda done: reported("rounds", done, rounds),
    )
    bets = len(enumerated.payments.main) + 2  # the bet decided on and the side bet; actions come behind them
    rows = [
        {"kind": "bet" if place < bets else "action", **asdict(row)}
        for place, row in enumerate(compare(ruleset, enumerated, tally))
    ]
    outside = [row["name"] for row in rows if abs(row["z"]) > parameters["z"]]
    most = max(abs(row["z"]) for row in rows)
    return {
        "verdict": "failed" if outside else "passed",
        "reported": f"{rounds:,} rounds, {len(rows)} figures, the farthest {most:.2f} of {parameters['z']:g} standard"
        " errors",
        "ruleset": ruleset.id,
        "rounds": rounds,
        "z": parameters["z"],
        "rows": rows,
        "outside": outside,
    }
