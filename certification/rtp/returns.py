"""Returns, wagers, spreads and frequencies of the counted deals, as exact fractions.

Everything is per ante and per round dealt. `return_initial` is 1 + the expected value per ante. `return_total` is 1 +
the expected value over the expected total wager on the main bets (one less the element of risk). A side bet has the
size of the ante. Its `return` is its own merit, as if no fold could forfeit it; what a fold takes from it stands
apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Final, NamedTuple

from certification.rtp.boards import LOST, TIED, WON
from certification.rtp.decisions import FOLDED, RAISED_FLOP, RAISED_PREFLOP, RAISED_RIVER
from certification.rtp.enumeration import DEALS, DealCounts
from certification.rtp.payments import Payments, action_of
from rgs.core.games.types import Action, Phase

ACTION_WORDS: Final[Mapping[Action, str]] = {
    Action.PLAY_4X: "raise4",
    Action.PLAY_3X: "raise3",
    Action.PLAY_2X: "raise2",
    Action.PLAY_1X: "raise1",
    Action.FOLD: "fold",
    Action.CALL: "call",
}
"""The actions that end the player's decisions, by the words of the recorded rounds (`certify vectors`)."""

_DECIMALS: Final = 12


class Moments(NamedTuple):
    """Mean and variance of what a bet, or all main bets, win in one round, in antes."""

    mean: Fraction
    variance: Fraction


class Tale(NamedTuple):
    """Deals that pay the same: how they were played, the player's class, the dealer's, who won; and how many."""

    how: int
    hand: int
    qualifies: int
    outcome: int
    deals: int


@dataclass(frozen=True)
class HandLine:
    """One class of final hands: shares of all rounds, and what it adds to the expected value per ante.

    `won`, `tied` and `lost` compare the hands of those who stayed; `unqualified` is the share of those who stayed
    against a dealer that did not qualify.
    """

    dealt: Fraction
    folded: Fraction
    stayed: Fraction
    won: Fraction
    tied: Fraction
    lost: Fraction
    unqualified: Fraction
    value: Fraction


def format_fraction(value: Fraction) -> str:
    """Return "NUM/DEN" in lowest terms, whole numbers too."""
    return f"{value.numerator}/{value.denominator}"


def format_decimal(value: Fraction, decimals: int = _DECIMALS) -> str:
    """Return a decimal, rounded half to even."""
    scaled = round(value * 10**decimals)
    whole, rest = divmod(abs(scaled), 10**decimals)
    return f"{'-' if scaled < 0 else ''}{whole}.{rest:0{decimals}}"


def format_root(value: Fraction, decimals: int = _DECIMALS) -> str:
    """Return the square root of a fraction >= 0 as a decimal, rounded to the nearest."""
    # floor(2 * root * 10^d), then half of it rounded up, is the root to the nearest.
    doubled = isqrt(4 * value.numerator * 10 ** (2 * decimals) // value.denominator)
    return format_decimal(Fraction((doubled + 1) // 2, 10**decimals), decimals)


def tales(counts: DealCounts) -> Iterator[Tale]:
    """Give every group of deals that is not empty."""
    for how, by_hand in enumerate(counts.final.tolist()):
        for hand, by_dealer in enumerate(by_hand):
            for qualifies, by_outcome in enumerate(by_dealer):
                for outcome, deals in enumerate(by_outcome):
                    if deals:
                        yield Tale(how, hand, qualifies, outcome, deals)


def multiple_of(payments: Payments, how: int) -> int:
    """Return how many antes were bet by decision."""
    if how == RAISED_PREFLOP:
        return payments.preflop_multiples[0]
    return {RAISED_FLOP: payments.flop_multiple, RAISED_RIVER: payments.river_multiple, FOLDED: 0}[how]


def nets(payments: Payments, tale: Tale) -> dict[str, int]:
    """Return what each main bet wins, net, in units of 1 / scale antes; the bet decided on last, if it was made."""
    if tale.how == FOLDED:
        return dict(payments.fold)
    paid = {bet: int(table[tale.hand, tale.qualifies, tale.outcome]) for bet, table in payments.main.items()}
    decided = int(payments.decided[tale.qualifies, tale.outcome])
    return paid | {payments.ruleset.rules.decided_bet: multiple_of(payments, tale.how) * decided}


def main_moments(payments: Payments, counts: DealCounts) -> Moments:
    """Return the moments of all main bets together."""
    return _moments(payments, [(sum(nets(payments, tale).values()), tale.deals) for tale in tales(counts)])


def bet_moments(payments: Payments, counts: DealCounts) -> dict[str, Moments]:
    """Return the moments of each main bet; a round in which the decided bet is not made counts 0 for it."""
    bets = (*payments.main, payments.ruleset.rules.decided_bet)
    return {
        bet: _moments(payments, [(nets(payments, tale).get(bet, 0), tale.deals) for tale in tales(counts)])
        for bet in bets
    }


def side_moments(payments: Payments, counts: DealCounts, *, forfeited: bool) -> Moments:
    """Return the moments of the side bet, on its own merits or lost with every fold."""
    by_class = counts.five if payments.ruleset.rules.side_bet_on_flop else counts.final.sum(axis=(2, 3))
    return _moments(
        payments,
        [
            (payments.side_folded if forfeited and how == FOLDED else int(payments.side[hand]), deals)
            for how, row in enumerate(by_class.tolist())
            for hand, deals in enumerate(row)
        ],
    )


def side_frequencies(payments: Payments, counts: DealCounts) -> dict[str, Fraction]:
    """Return how often each class that the side bet is paid by is dealt, best first."""
    by_class = counts.five.sum(axis=0) if payments.ruleset.rules.side_bet_on_flop else counts.final.sum(axis=(0, 2, 3))
    shares = [Fraction(deals, DEALS) for deals in by_class.tolist()]
    return dict(zip(reversed(payments.side_class.names), reversed(shares), strict=True))


def total_wager(payments: Payments, counts: DealCounts) -> Fraction:
    """Return the expected wager on all main bets."""
    decided = sum(tale.deals * multiple_of(payments, tale.how) for tale in tales(counts))
    return payments.opening_stakes + Fraction(decided, DEALS)


def action_frequencies(payments: Payments, counts: DealCounts) -> dict[str, Fraction]:
    """Return how many rounds end the player's decisions with each action; 0 for those that never do."""
    ruleset = payments.ruleset
    phases = {RAISED_PREFLOP: Phase.PREFLOP, RAISED_FLOP: Phase.FLOP, RAISED_RIVER: Phase.RIVER}
    frequencies = dict.fromkeys(ACTION_WORDS.values(), Fraction(0))
    for how, deals in enumerate(counts.final.sum(axis=(1, 2, 3)).tolist()):
        if deals:
            fold = how == FOLDED
            action = Action.FOLD if fold else action_of(ruleset, phases[how], multiple_of(payments, how))
            frequencies[ACTION_WORDS[action]] += Fraction(deals, DEALS)
    return frequencies


def hand_lines(payments: Payments, counts: DealCounts) -> dict[str, HandLine]:
    """Return the classes of final hands, best first."""
    deals = counts.final
    stayed = deals[:FOLDED].sum(axis=0)
    values = dict.fromkeys(range(len(payments.final.names)), 0)
    for tale in tales(counts):
        values[tale.hand] += sum(nets(payments, tale).values()) * tale.deals

    def share(count: int) -> Fraction:
        return Fraction(int(count), DEALS)

    return {
        payments.final.names[hand]: HandLine(
            dealt=share(deals[:, hand].sum()),
            folded=share(deals[FOLDED, hand].sum()),
            stayed=share(stayed[hand].sum()),
            won=share(stayed[hand, :, WON].sum()),
            tied=share(stayed[hand, :, TIED].sum()),
            lost=share(stayed[hand, :, LOST].sum()),
            unqualified=share(stayed[hand, 0].sum()),
            value=Fraction(values[hand], DEALS * payments.scale),
        )
        for hand in reversed(range(len(payments.final.names)))
    }


def _moments(payments: Payments, paid: list[tuple[int, int]]) -> Moments:
    mean = Fraction(sum(net * deals for net, deals in paid), DEALS * payments.scale)
    square = Fraction(sum(net * net * deals for net, deals in paid), DEALS * payments.scale**2)
    return Moments(mean, square - mean * mean)
