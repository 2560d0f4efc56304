"""The return test: whether the cards of real rounds are as good as they should be, in every stratum.

What players win depends on how they play. So three figures are taken from the cards alone and compared with exact ones:
the **showdown** (better hand +1, worse -1, tie 0, folded or not: mean 0 by symmetry), the **main** bets under best
play, per ante (`rgs.core.returns.certified`), and the **side** bet on its own merits. What was really staked and
returned is shown beside.

Each figure is taken over all rounds of a ruleset and within strata: stake, session, operator, node, time since the
start of the instance, settled or void. An operator that cheats does so where it pays. Holm decides over all of them at
the family level. Beside each stands the smallest bias that a sample of its size shows with power 0.9. A deal of several
seats counts once (its first seat) except by session, because its seats share the dealer's hand. Strata with too few
rounds are shown and not tested: pay-outs are too skewed for a normal law.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Final

from scipy.stats import norm

from certification.rtp.certificate import Enumerated
from certification.rtp.strategy import Decisions
from certification.statistics.battery.rounds import SeatPlayed
from certification.statistics.families import holm
from rgs.core import games
from rgs.core.errors import RulesetError
from rgs.core.games.types import Action, Phase, Seat, SeatStakes
from rgs.core.hands import evaluate
from rgs.core.returns.certified import load_certified_returns
from rgs.core.rulesets import Ruleset, load_ruleset

LEAST: Final = {"showdown": 30, "main": 100_000, "side": 5_000}
"""Rounds from which the mean is near enough to normal: the skewness of the main bets is 33 (a royal flush pays 500 to
1 on the blind, once in 30,940 rounds), 0.1 over 100,000 rounds; that of trips 4. The showdown is bounded and even."""
POWER: Final = 0.9
_TIMES: Final = ((60_000, "first minute"), (3_600_000, "first hour"), (86_400_000, "first day"))
_STAKES: Final = ((1, "least ante"), (4, "up to 4 times"), (19, "up to 19 times"))


@dataclass(frozen=True, slots=True)
class Exact:
    """Mean and standard deviation of a figure in one round."""

    mean: float
    deviation: float


@dataclass(frozen=True, slots=True)
class Compared:
    """One figure of one stratum; `z` and `p` are None below the least number of rounds."""

    ruleset: str
    stratum: str
    figure: str
    rounds: int
    exact: float
    measured: float
    z: float | None
    p: float | None
    smallest_bias: float


@dataclass(frozen=True, slots=True)
class Returned:
    """`word` is passed | failed | not applicable; staked and returned are what happened, in minor units."""

    word: str
    alpha: float
    rounds: int
    rows: tuple[Compared, ...]
    rejected: tuple[str, ...]
    staked_minor: dict[str, int] = field(default_factory=dict)
    returned_minor: dict[str, int] = field(default_factory=dict)


class ReturnTest:
    """Takes seats one by one, keeps sums by stratum, judges at the end."""

    def __init__(self, decisions: Callable[[str], Decisions] | None = None) -> None:
        """`decisions` gives best play by ruleset id; the default enumerates it."""
        self._decisions = decisions or enumerated_decisions
        self._sums: defaultdict[tuple[str, str, str], list[float]] = defaultdict(lambda: [0, 0.0])
        self._staked: Counter[str] = Counter()
        self._returned: Counter[str] = Counter()
        self._rounds = 0

    def add(self, seat: SeatPlayed) -> None:
        """Take in one seat of one round."""
        self._rounds += 1
        self._staked[seat.ruleset.id] += seat.staked_minor
        self._returned[seat.ruleset.id] += seat.returned_minor
        figures = figures_of(seat, self._decisions(seat.ruleset.id))
        for stratum in strata_of(seat):
            for figure, value in figures.items():
                sums = self._sums[seat.ruleset.id, stratum, figure]
                sums[0] += 1
                sums[1] += value

    def judge(self, alpha: float) -> Returned:
        """Compare every stratum with the exact figures."""
        tested = sum(count >= LEAST[figure] for (_, _, figure), (count, _) in self._sums.items())
        rows = tuple(
            self._compared(name, stratum, figure, int(count), total, alpha / max(tested, 1))
            for (name, stratum, figure), (count, total) in sorted(self._sums.items())
        )
        p_values = {f"{row.ruleset}, {row.stratum}: {row.figure}": row.p for row in rows if row.p is not None}
        rejected = tuple(holm(p_values, alpha))
        word = "failed" if rejected else "passed"
        return Returned(
            word if p_values else "not applicable",
            alpha,
            self._rounds,
            rows,
            rejected,
            dict(self._staked),
            dict(self._returned),
        )

    @staticmethod
    def _compared(name: str, stratum: str, figure: str, count: int, total: float, level: float) -> Compared:
        exact = exact_figures(name)[figure]
        error = exact.deviation / math.sqrt(count)
        z = (total / count - exact.mean) / error if count >= LEAST[figure] else None
        p = None if z is None else math.erfc(abs(z) / math.sqrt(2))
        bias = float(norm.isf(level / 2) + norm.isf(1 - POWER)) * error
        return Compared(name, stratum, figure, count, exact.mean, total / count, z, p, bias)


# --- exact ---


@cache
def exact_figures(ruleset_id: str) -> dict[str, Exact]:
    """Return the exact figures, from the committed certificate. Raises RulesetError where there is none."""
    ruleset = load_ruleset(ruleset_id)
    certificate = load_certified_returns(ruleset)
    if certificate is None:
        raise RulesetError(f"{ruleset_id} has no certificate of its returns", field="certificate", ruleset=ruleset_id)
    file = resources.files("rgs.core") / "certificate_data" / f"{ruleset.sha256}.json"
    document = json.loads(file.read_text(encoding="ascii"))
    ties = sum(
        count
        for hands in document["outcomes"].values()
        for line in hands.values()
        for outcome, count in line.items()
        if outcome.endswith("_tie")
    )
    side = ruleset.rules.side_bet
    return {
        "showdown": Exact(0.0, math.sqrt(1 - ties / document["deals"])),
        "main": Exact(float(certificate.return_initial - 1), float(document["standard_deviation"])),
        "side": Exact(
            float(certificate.side_bets[side] - 1), float(document["side_bets"][side]["standard_deviation"])
        ),
    }  # fmt: skip


@cache
def enumerated_decisions(ruleset_id: str) -> Decisions:
    """Return best play of a ruleset for its main bets."""
    return Decisions.of(Enumerated(load_ruleset(ruleset_id)).play)


# --- of one round ---


def figures_of(seat: SeatPlayed, decisions: Decisions) -> dict[str, float]:
    """Return the three figures of a seat, from the deck alone, through the production code."""
    ruleset = seat.ruleset
    dealt = dealt_seat(seat)
    best = stayed = dealt
    while best.phase is not Phase.SHOWDOWN:
        seen = games.view(best, shown_phase=best.phase)
        best = games.apply(best, decisions.decide(seen.hole_cards, seen.board))
    while stayed.phase is not Phase.SHOWDOWN:
        stays = next(legal.action for legal in games.legal_actions(stayed) if legal.action is not Action.FOLD)
        stayed = games.apply(stayed, stays)
    side = ruleset.rules.side_bet
    ante = dealt.ante_minor
    main = sum(row.net_minor for row in games.settle(best).bets if row.bet != side)
    own = next(row.net_minor for row in games.settle(stayed).bets if row.bet == side)
    player, dealer = evaluate((*dealt.hole_cards, *dealt.board)), evaluate((*dealt.dealer_cards, *dealt.board))
    return {
        "showdown": float((player > dealer) - (player < dealer)),
        "main": main / ante,
        "side": own / ante,
    }


def dealt_seat(seat: SeatPlayed) -> Seat:
    """Return the seat as its deck deals it, every bet placed at the least stake that all of them allow."""
    ruleset: Ruleset = seat.ruleset
    ante = max(limits.min_minor for limits in ruleset.limits.values())
    bets = dict.fromkeys(ruleset.limits, ante)
    numbers = range(1, seat.seats + 1) if ruleset.hole_cards == "own" else range(seat.seat_no, seat.seat_no + 1)
    stakes = [SeatStakes(number, bets, games.dearest_finish(ruleset, bets)) for number in numbers]
    return games.deal(ruleset, seat.deck, stakes)[seat.seat_no - numbers[0]]


def strata_of(seat: SeatPlayed) -> Iterator[str]:
    """Give the strata that a seat belongs to; a deal's further seats belong to their sessions only."""
    yield f"session {seat.session_id}"
    if seat.seat_no != 1:
        return
    yield "all"
    times = seat.bets["ante"] // seat.ruleset.limits["ante"].min_minor
    yield f"stake {next((word for most, word in _STAKES if times <= most), 'above 19 times')}"
    yield f"operator {seat.operator or 'unknown'}"
    yield f"node {seat.node or 'unknown'}"
    if seat.since_start_ms is None:
        yield "since start unknown"
    else:
        yield f"since start {next((word for most, word in _TIMES if seat.since_start_ms < most), 'later')}"
    yield f"status {seat.status}"


def report_returns(returned: Returned) -> Iterator[str]:
    """Give the lines of a return test; strata with too few rounds are only counted."""
    yield f"returns of {returned.rounds:,} seats: cards against exact figures, per stratum"
    for name, staked in returned.staked_minor.items():
        yield f"{name}: {returned.returned_minor[name] / staked:.3%} of what was really staked came back"
    yield f"{'ruleset, stratum':<58}{'figure':<10}{'rounds':>9}{'exact':>10}{'measured':>10}{'z':>7}{'bias shown':>12}"
    untested = 0
    for row in returned.rows:
        if row.z is None and row.stratum != "all":
            untested += 1
            continue
        z = "-" if row.z is None else f"{row.z:.2f}"
        yield (
            f"{f'{row.ruleset}, {row.stratum}':<58}{row.figure:<10}{row.rounds:>9,}{row.exact:>10.4f}"
            f"{row.measured:>10.4f}{z:>7}{row.smallest_bias:>12.4f}"
        )
    yield f"{untested} further figures are not tested, for too few rounds"
    yield "bias shown: the smallest shift of the mean that such a sample shows with power 0.9, at the corrected level"
    yield from (f"rejected by Holm: {name}" for name in returned.rejected)
    yield f"returns: {returned.word} at a family level of {returned.alpha:g}"
