"""The certificate of a ruleset: everything that its enumeration says, as one document of exact numbers.

The document is a pure function of the ruleset: no time, no machine, no float. Its file is named by the ruleset's hash
(`rgs/core/certificate_data/<sha256>.json`), and the server reads returns only there. docs/returns.md says what each row
means. Fractions are "NUM/DEN" in lowest terms, `standard_deviation` is a decimal of twelve places.

EnumerationError if the two ways to the expected value differ: backwards through the decisions, and forwards through the
counted deals.
"""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from fractions import Fraction
from typing import Any, Final

import numpy as np

from certification.rtp import enumeration
from certification.rtp.decisions import EITHER, FOLDED, PASS
from certification.rtp.flops import flops
from certification.rtp.payments import OUTCOMES, Payments, payments_of
from certification.rtp.returns import (
    Moments,
    action_frequencies,
    bet_moments,
    format_decimal,
    format_fraction,
    format_root,
    hand_lines,
    main_moments,
    side_frequencies,
    side_moments,
    total_wager,
)
from rgs.core.cards import format_card
from rgs.core.rulesets import Ruleset

VERSION: Final = 1
_TIES_SHOWN: Final = 10


class EnumerationError(RuntimeError):
    """The enumeration contradicts itself: nothing that it says may be used."""


class Enumerated:
    """A ruleset enumerated for the player who plays the main bets best: its play, without the values, and its deals."""

    def __init__(
        self, ruleset: Ruleset, *, exactly_two: bool = False, engine: enumeration.PartEngine | None = None
    ) -> None:
        """`engine` works on the flops; without one this process does. EngineError."""
        self.payments = payments_of(ruleset)
        best = enumeration.play(enumeration.Game(ruleset, exactly_two=exactly_two), engine=engine)
        self.counts = enumeration.count(best, engine=engine)
        _verify(best, self.counts)
        self.play = replace(best, values=best.values[:0].copy())  # 160 MB that nobody asks for again


def certificate(
    ruleset: Ruleset, enumerated: Enumerated | None = None, engine: enumeration.PartEngine | None = None
) -> dict[str, Any]:
    """Return the certificate; the enumeration of the main bets may be brought. `engine` as for `Enumerated`."""
    done = enumerated or Enumerated(ruleset, engine=engine)
    payments, best, counts = done.payments, done.play, done.counts
    side_bet = ruleset.rules.side_bet
    on_merits = side_moments(payments, counts, forfeited=False)
    return {
        "certificate": VERSION,
        "ruleset": ruleset.id,
        "ruleset_version": ruleset.version,
        "ruleset_sha256": ruleset.sha256,
        "deals": enumeration.DEALS,
        **_returns(payments, counts),
        "ties": _ties(best, counts),
        "ties_raised": _returns(payments, enumeration.count(best, raise_ties=True, engine=engine)),
        "bets": {bet: _spread(moments) for bet, moments in bet_moments(payments, counts).items()},
        "side_bets": {
            side_bet: {
                "return": format_fraction(1 + on_merits.mean),
                **_spread(on_merits),
                "hands": {name: format_fraction(share) for name, share in side_frequencies(payments, counts).items()},
            }
        },
        "fold_forfeits": {side_bet: _forfeits(payments, best, counts, engine)},
        "hands": {
            name: {field: format_fraction(share) for field, share in asdict(line).items()}
            for name, line in hand_lines(payments, counts).items()
        },
        "exactly_two_own": _exactly_two(ruleset, engine),
        "outcomes": _outcomes(payments, counts),
    }


def format_certified_returns(document: dict[str, Any]) -> str:
    """Return the text of a certificate, always the same for the same document."""
    return json.dumps(document, indent=1, ensure_ascii=True) + "\n"


def _returns(payments: Payments, counts: enumeration.DealCounts) -> dict[str, Any]:
    main = main_moments(payments, counts)
    return {
        **_means(payments, counts),
        "variance": format_fraction(main.variance),
        "standard_deviation": format_root(main.variance),
        "action_frequency": {
            action: format_fraction(share) for action, share in action_frequencies(payments, counts).items()
        },
    }


def _means(payments: Payments, counts: enumeration.DealCounts) -> dict[str, str]:
    mean, wager = main_moments(payments, counts).mean, total_wager(payments, counts)
    return {
        "expected_value_per_ante": format_fraction(mean),
        "return_initial": format_fraction(1 + mean),
        "expected_total_wager": format_fraction(wager),
        "return_total": format_fraction(1 + mean / wager),
    }


def _spread(moments: Moments) -> dict[str, str]:
    return {
        "value": format_fraction(moments.mean),
        "variance": format_fraction(moments.variance),
        "standard_deviation": format_root(moments.variance),
    }


def _ties(best: enumeration.BestPlay, counts: enumeration.DealCounts) -> dict[str, Any]:
    """Return where a decision is exactly indifferent, and in how many of the rounds it comes up."""
    states = flops().states
    reached = best.preflop[enumeration.hole_numbers()[states.hole[:, 0], states.hole[:, 1]]] == PASS
    indifferent = np.flatnonzero(reached & (best.flop == EITHER))
    shown = [
        " ".join(format_card(int(card)) for card in (*states.hole[state], *states.cards[flop]))
        for state in indifferent[:_TIES_SHOWN].tolist()
        for flop in [int(np.searchsorted(states.first_state, state, side="right")) - 1]
    ]
    on_flop = int(enumeration.state_weights()[indifferent].sum()) * enumeration.RIVERS * enumeration.DEALERS
    return {
        "preflop": int((best.preflop == EITHER).sum()),
        "flop": {"states": shown, "frequency": format_fraction(Fraction(on_flop, enumeration.DEALS))},
        "river": {"frequency": format_fraction(Fraction(counts.indifferent_rivers, enumeration.DEALS))},
    }


def _forfeits(
    payments: Payments,
    best: enumeration.BestPlay,
    counts: enumeration.DealCounts,
    engine: enumeration.PartEngine | None,
) -> dict[str, Any]:
    """Return what folds take from the side bet, for two kinds of player: see docs/returns.md."""
    if payments.ruleset.side_bet_survives_fold:
        return {"rule": "paid", "forfeited": format_fraction(Fraction(0)), "players": {}}
    both = enumeration.play(replace(best.game, with_side_bet=True), best.boards, engine)
    both_counts = enumeration.count(both, engine=engine)
    _verify(both, both_counts)
    del both
    merits = side_moments(payments, counts, forfeited=False)
    kept = side_moments(payments, counts, forfeited=True)
    return {
        "rule": "lost",
        "forfeited": format_fraction(merits.mean - kept.mean),
        "players": {
            "best_for_main_bets": _player(payments, counts),
            "best_for_all_bets": _player(payments, both_counts),
        },
    }


def _player(payments: Payments, counts: enumeration.DealCounts) -> dict[str, Any]:
    """Return the figures of a player who always makes the side bet, as large as the ante, under the ruleset's fold."""
    main, wager = main_moments(payments, counts), total_wager(payments, counts)
    side = side_moments(payments, counts, forfeited=True)
    combined = main.mean + side.mean
    return {
        "main_value": format_fraction(main.mean),
        "main_return_initial": format_fraction(1 + main.mean),
        "main_expected_total_wager": format_fraction(wager),
        "main_return_total": format_fraction(1 + main.mean / wager),
        "side_return": format_fraction(1 + side.mean),
        "combined_value": format_fraction(combined),
        "combined_return_initial": format_fraction(1 + combined / 2),
        "combined_return_total": format_fraction(1 + combined / (wager + 1)),
        "fold": format_fraction(action_frequencies(payments, counts)["fold"]),
    }


def _exactly_two(ruleset: Ruleset, engine: enumeration.PartEngine | None) -> dict[str, Any]:
    """Return the returns of the game that H-5 is not: two own cards and three of the board, exactly."""
    done = Enumerated(ruleset, exactly_two=True, engine=engine)
    return {
        **_means(done.payments, done.counts),
        "side_return": format_fraction(1 + side_moments(done.payments, done.counts, forfeited=False).mean),
    }


def _outcomes(payments: Payments, counts: enumeration.DealCounts) -> dict[str, Any]:
    """Return all deals, so that anyone can price them anew: action -> class -> deals by (qualifies, outcome)."""
    columns = [f"{'' if qualifies else 'un'}qualified_{outcome}" for qualifies in (0, 1) for outcome in OUTCOMES]
    names = ("raised_preflop", "raised_flop", "raised_river", "folded")
    return {
        name: {
            payments.final.names[hand]: dict(zip(columns, counts.final[how, hand].ravel().tolist(), strict=True))
            for hand in reversed(range(len(payments.final.names)))
        }
        for how, name in enumerate(names)
        if counts.final[how].any()
    }


def _verify(best: enumeration.BestPlay, counts: enumeration.DealCounts) -> None:
    """Raise EnumerationError unless every deal is counted once and the value found backwards is the one counted."""
    payments = best.payments
    value = main_moments(payments, counts).mean
    if best.with_side_bet:
        value += side_moments(payments, counts, forfeited=True).mean
    if int(counts.final.sum()) != enumeration.DEALS or int(counts.five.sum()) != enumeration.DEALS:
        raise EnumerationError(f"{counts.final.sum()} deals are counted, there are {enumeration.DEALS}")
    if Fraction(best.value, payments.scale * enumeration.DEALS) != value:
        raise EnumerationError(f"the decisions are worth {best.value}, the deals {format_decimal(value)}")
    if not payments.river_multiple and counts.final[FOLDED].sum() != counts.five[FOLDED].sum():
        raise EnumerationError("the two counts differ in their folds")
