"""`certify simulate RULESET --rounds N [--seed HEX] [--z Z] [--engine process|ray|dask] [--cluster ADDRESS]
[--workers N]`: plays rounds through the code that the server runs, and compares them with the exact figures.

Every deck comes from the production generator, reseeded from the operating system before each draw: on a cluster that
is the one of the machine that plays, and the report says so. With `--seed` it comes from its Hash_DRBG alone, so that a
run can be repeated, and says the same with every engine. The transcript becomes a deck as an auditor makes it. The
player sees what `view` shows, plays best for the main bets and places every side bet. `deal`, `apply` and `settle` do
the rest.

For every bet the mean net win of n rounds is compared with the exact one, in units of its exact standard deviation over
the root of n; for every action the same with its frequency. `z` is the interval (default 4.5: of a right program one
figure in 150,000 lies outside). Exit 0: all inside; 1: one lies outside; 2: usage. The number of rounds is fixed
beforehand: nothing is judged before the end.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from certification.engines import ALONE, EngineChoice, add_engine_options, engine_of, over
from certification.replay import refused, whole_number
from certification.rtp.certificate import Enumerated
from certification.rtp.returns import ACTION_WORDS, Moments, action_frequencies, bet_moments, side_moments
from certification.rtp.strategy import Decisions
from certification.statistics import progress
from rgs.core import games
from rgs.core.errors import RgsError
from rgs.core.games.types import Phase, SeatStakes
from rgs.core.rulesets import Ruleset, load_ruleset
from rng.drbg import MAX_REQUEST_BYTES, HashDrbg
from rng.generator import Generator
from rng.shuffle import shuffle, transcript_to_deck

_CHUNK = 5_000
_Z = 4.5
_Z_MAX = 100


@dataclass(frozen=True)
class RoundChunk:
    """What one worker plays in one go."""

    number: int
    rounds: int
    seed: bytes | None


@dataclass
class SimulationTally:
    """Sums over rounds: what each bet won, net, in minor units, and how the rounds were played."""

    rounds: int
    ante_minor: int
    net_minor: Counter[str]
    actions: Counter[str]

    def add(self, other: SimulationTally) -> None:
        """Take in the sums of other rounds at the same stakes."""
        self.rounds += other.rounds
        self.net_minor.update(other.net_minor)
        self.actions.update(other.actions)


@dataclass(frozen=True)
class FigureComparison:
    """One figure: exact, measured, and how many standard errors lie between."""

    name: str
    exact: float
    measured: float
    z: float


def play_chunk(decisions: Decisions, chunk: RoundChunk) -> SimulationTally:
    """Play so many rounds through the production code and return their sums."""
    ruleset = decisions.ruleset
    # The least stake that every bet allows: side bets are as large as the ante.
    ante_minor = max(limits.min_minor for limits in ruleset.limits.values())
    bets = dict.fromkeys(ruleset.limits, ante_minor)
    stakes = SeatStakes(1, bets, games.dearest_finish(ruleset, bets))
    tally = SimulationTally(chunk.rounds, ante_minor, Counter(), Counter())
    decks = _decks(chunk)
    for _ in range(chunk.rounds):
        (seat,) = games.deal(ruleset, next(decks), [stakes])
        while seat.phase is not Phase.SHOWDOWN:
            seen = games.view(seat, shown_phase=seat.phase)
            seat = games.apply(seat, decisions.decide(seen.hole_cards, seen.board))
        for bet in games.settle(seat).bets:
            tally.net_minor[bet.bet] += bet.net_minor
        tally.actions[ACTION_WORDS[seat.actions[-1].action]] += 1
    return tally


def _decks(chunk: RoundChunk) -> Iterator[Sequence[int]]:
    if chunk.seed is None:
        generator = Generator(f"simulate-{os.getpid()}-{chunk.number}")
        while True:
            yield transcript_to_deck(generator.draw().transcript)
    next_byte = _seeded_bytes(chunk.seed, chunk.number)
    while True:
        yield shuffle(next_byte)


def _seeded_bytes(seed: bytes, number: int) -> Callable[[], int]:
    """Return the bytes of a Hash_DRBG of the chunk's own."""
    drbg = HashDrbg(
        entropy_input=hashlib.sha512(seed).digest(), nonce=number.to_bytes(16, "big"), personalization=b"simulate"
    )

    def stream() -> Iterator[int]:
        while True:
            yield from drbg.generate(MAX_REQUEST_BYTES)

    return stream().__next__


# --- in parallel ---


def simulate(
    decisions: Decisions,
    rounds: int,
    *,
    seed: bytes | None = None,
    engine: EngineChoice = ALONE,
    reported: Callable[[int], None] = lambda _: None,
) -> SimulationTally:
    """Play the rounds, wherever the engine works; the same seed, the same sums. EngineError."""
    chunks = [
        RoundChunk(number, min(_CHUNK, rounds - start), seed) for number, start in enumerate(range(0, rounds, _CHUNK))
    ]
    total = SimulationTally(0, 0, Counter(), Counter())
    for tally in over(partial(play_chunk, decisions), chunks, engine):
        total.ante_minor = tally.ante_minor
        total.add(tally)
        reported(total.rounds)
    return total


# --- against the exact figures ---


def compare(ruleset: Ruleset, enumerated: Enumerated, tally: SimulationTally) -> list[FigureComparison]:
    """Return every bet and every action that is ever taken beside its exact figure."""
    payments, counts = enumerated.payments, enumerated.counts
    exact = bet_moments(payments, counts)
    exact[ruleset.rules.side_bet] = side_moments(payments, counts, forfeited=not ruleset.side_bet_survives_fold)
    comparisons = [
        _compared(bet, moments, Fraction(tally.net_minor[bet], tally.ante_minor * tally.rounds), tally.rounds)
        for bet, moments in exact.items()
    ]
    for action, share in action_frequencies(payments, counts).items():
        if share:
            measured = Fraction(tally.actions[action], tally.rounds)
            comparisons.append(_compared(action, Moments(share, share * (1 - share)), measured, tally.rounds))
    return comparisons


def _compared(name: str, exact: Moments, measured: Fraction, rounds: int) -> FigureComparison:
    error = math.sqrt(exact.variance / rounds)
    return FigureComparison(name, float(exact.mean), float(measured), float(measured - exact.mean) / error)


def main(argv: Sequence[str] | None = None) -> int:
    """Play, compare and tell; the exit status."""
    arguments = _parser().parse_args(argv)
    engine = engine_of(arguments)
    try:
        ruleset = load_ruleset(arguments.ruleset)
        enumerated = Enumerated(ruleset)
    except RgsError as error:
        return refused("simulate", error)
    try:
        tally = simulate(
            Decisions.of(enumerated.play),
            arguments.rounds,
            seed=arguments.seed,
            engine=engine,
            reported=lambda done: progress.show("rounds", done, arguments.rounds),
        )
    except OSError as error:  # the engine
        return refused("simulate", error)
    comparisons = compare(ruleset, enumerated, tally)
    source = f"seed {arguments.seed.hex()}" if arguments.seed else f"the production generator {engine.place}".strip()
    sys.stdout.write(f"{ruleset.id}: {tally.rounds:,} rounds, decks from {source}\n")
    sys.stdout.write(f"{'':<10}{'exact':>12}{'measured':>12}{'z':>8}\n")
    sys.stdout.writelines(
        f"{row.name:<10}{row.exact:>12.6f}{row.measured:>12.6f}{row.z:>8.2f}\n" for row in comparisons
    )
    outside = [row.name for row in comparisons if abs(row.z) > arguments.z]
    sys.stdout.write(
        f"{', '.join(outside)}: outside {arguments.z} standard errors\n"
        if outside
        else f"all {len(comparisons)} figures lie within {arguments.z} standard errors\n"
    )
    return 1 if outside else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="certify simulate", description="Play rounds against the exact figures.")
    parser.add_argument("ruleset", metavar="RULESET")
    parser.add_argument("--rounds", type=whole_number(1, 10**12), default=100_000, metavar="N")
    parser.add_argument("--seed", type=bytes.fromhex, metavar="HEX", help="for a run that can be repeated")
    add_engine_options(parser, "rounds are played")
    parser.add_argument("--z", type=_errors, default=_Z, metavar="Z", help="standard errors that are allowed")
    return parser


def _errors(text: str) -> float:
    try:
        errors = float(text)
    except ValueError:
        errors = 0.0
    if not 0 < errors < _Z_MAX:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number above 0 and below {_Z_MAX}")
    return errors
