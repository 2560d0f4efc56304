"""`certify collusion worth` and `certify collusion watch`: what shared cards are worth at a table with boxes, and
whether the record shows that players share them (docs/collusion.md).

    certify collusion worth --ruleset RULESET [--known N] [--deals N] [--seed N] [--workers N] [--json]
    certify collusion watch PLACE... [--error E] [--alpha A] [--workers N] [--json]

PLACE is an export (docs/formats.md, 12), or a log as a folder or an http(s) address. `worth`: exit 0; 2: usage, or a
ruleset without boxes. `watch`: exit 0: nothing found; 1: a player's decisions go with cards of others; 2: usage, a
place that cannot be read, or nothing that could be judged. Nothing is verified here: run `certify replay` or `certify
log` first.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, Final

from certification.collusion.rounds import HandReader, TableHands, read_hands
from certification.collusion.watch import ERROR, EVERYBODY, PlayerWatch, Scorer, Series, Weight
from certification.collusion.worth import Mean, Worth, verify_boxes, worth_of
from certification.monitor import PlaceError
from certification.processes import ProcessLostError, over
from certification.replay import refused, whole_number
from certification.rtp.enumeration import Game, play
from certification.rtp.strategy import Strategy
from certification.statistics import progress
from rgs.core.errors import RgsError
from rgs.core.returns.tally import ALPHA
from rgs.core.rulesets import load_ruleset

DEALS: Final = 1_000
_PAIRS_SHOWN: Final = 10
_STEPS: Final = ("river", "flop", "first decision")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one of the two; the exit status."""
    arguments = _parser().parse_args(argv)
    try:
        status: int = arguments.run(arguments)
    except (RgsError, PlaceError, ProcessLostError) as error:
        return refused(f"collusion {arguments.part}", error)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="certify collusion", description="Shared cards at a table with boxes.")
    parts = parser.add_subparsers(dest="part", required=True, metavar="PART")
    worth = parts.add_parser("worth", help="what it is worth to know the cards of neighbours")
    worth.add_argument("--ruleset", required=True, metavar="RULESET", help="one with boxes: uth-seven-box, uth-lugano")
    worth.add_argument("--known", type=whole_number(0, 6), metavar="N", help="neighbours whose cards are known: all")
    worth.add_argument("--deals", type=whole_number(2, 10**9), default=DEALS, metavar="N", help="deals to sample")
    worth.add_argument("--seed", type=whole_number(0), default=1, metavar="N", help="another sample; 1")
    worth.set_defaults(run=_worth)
    watch = parts.add_parser("watch", help="do decisions of an export or a log go with cards of others?")
    watch.add_argument("places", nargs="+", metavar="PLACE", help="an export, or a log: a folder or an address")
    watch.add_argument("--error", type=_between(0.5), default=ERROR, metavar="E", help="how often players err; 0.05")
    watch.add_argument("--alpha", type=_between(1), default=ALPHA, metavar="A", help="chance of a false alarm; 0.001")
    watch.set_defaults(run=_watch)
    for part in (worth, watch):
        part.add_argument("--workers", type=whole_number(1), default=os.cpu_count() or 1, metavar="N", help="processes")
        part.add_argument("--json", action="store_true")
    return parser


def _between(most: float) -> Callable[[str], float]:
    """The type of an option that is a number above 0 and below `most`."""

    def read(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = 0.0
        if not 0 < number < most:
            raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number above 0 and below {most}")
        return number

    return read


# --- worth ------------------------------------------------------------------------------------------------------------


def _worth(arguments: argparse.Namespace) -> int:
    ruleset = load_ruleset(arguments.ruleset)
    verify_boxes(ruleset)
    known = ruleset.max_seats - 1 if arguments.known is None else arguments.known
    if known >= ruleset.max_seats:
        raise PlaceError(f"--known {known}: {ruleset.id} has {ruleset.max_seats} boxes, name at most one less")
    found = worth_of(
        play(Game(ruleset)),
        known,
        arguments.deals,
        arguments.seed,
        workers=arguments.workers,
        reported=lambda done: progress.show("deals", done, arguments.deals),
    )
    if arguments.json:
        _write(worth_document(ruleset.id, ruleset.sha256, arguments.seed, found))
    else:
        sys.stdout.writelines(f"{line}\n" for line in emit_worth(ruleset.id, arguments.seed, found))
    return 0


def emit_worth(ruleset_id: str, seed: int, worth: Worth) -> Iterator[str]:
    """Give the lines for people."""
    who = f"{worth.known} neighbour{'' if worth.known == 1 else 's'} ({2 * worth.known} cards)"
    yield f"{ruleset_id}: the hole cards of {who} known, {worth.deals:,} deals of seed {seed}, antes per round"
    yield f"{'':<28}{'mean':>12}{'error':>12}{'95 % interval':>26}"
    yield f"{'by own cards, exact':<28}{worth.exact:>12.6f}{0:>12.6f}"
    yield _mean_line("by own cards, these deals", worth.sampled)
    yield _mean_line("worth of knowing", worth.worth)
    for name, step in zip(_STEPS, worth.steps, strict=True):
        yield _mean_line(f"  of it, {name}", step)
    yield _mean_line("by all known cards", worth.informed)


def _mean_line(name: str, mean: Mean) -> str:
    low, high = mean.interval
    return f"{name:<28}{mean.value:>12.6f}{mean.error:>12.6f}{f'{low:.6f}..{high:.6f}':>26}"


def worth_document(ruleset_id: str, sha256: str, seed: int, worth: Worth) -> dict[str, Any]:
    """Return the same as plain values."""
    return {
        "ruleset": ruleset_id,
        "ruleset_sha256": sha256,
        "known": worth.known,
        "deals": worth.deals,
        "seed": seed,
        "own_exact": worth.exact,
        "own_sampled": _mean_document(worth.sampled),
        "worth": _mean_document(worth.worth),
        "steps": {name: _mean_document(step) for name, step in zip(_STEPS, worth.steps, strict=True)},
        "informed": _mean_document(worth.informed),
    }


def _mean_document(mean: Mean) -> dict[str, float]:
    low, high = mean.interval
    return {"mean": mean.value, "error": mean.error, "low": low, "high": high}


# --- watch ------------------------------------------------------------------------------------------------------------


@cache
def _scorer(ruleset_id: str, error: float) -> Scorer:
    return Scorer(Strategy(load_ruleset(ruleset_id)), error)


def weigh(error: float, hands: TableHands) -> list[Weight]:
    """What a round says. Each process makes its own scorers, at the first round of a ruleset."""
    return _scorer(hands.ruleset_id, error).weigh(hands)


def _watch(arguments: argparse.Namespace) -> int:
    reader = HandReader()
    watch = PlayerWatch(arguments.alpha)
    rounds = read_hands(arguments.places, reader)
    for weights in over(partial(weigh, arguments.error), rounds, arguments.workers):
        watch.add(weights)
    alarming = watch.alarming
    verdict = "alarm" if alarming else "nothing found" if watch.series else "nothing to judge"
    if arguments.json:
        _write({"verdict": verdict, **watch_document(watch, arguments.error), "unread": reader.unread})
    else:
        sys.stdout.writelines(f"{line}\n" for line in emit_watch(watch, arguments.error))
        sys.stdout.writelines(f"not counted: {count} {what}\n" for what, count in reader.unread.items())
        sys.stdout.writelines(f"ALARM: {one.player} decides as one who knows {one.whom}\n" for one in alarming)
        sys.stdout.write(f"{verdict}\n")
    return 1 if alarming else 0 if watch.series else 2


def emit_watch(watch: PlayerWatch, error: float) -> Iterator[str]:
    """Give the lines for people: every player against the whole table, and the pairs with the highest evidence."""
    yield f"{watch.rounds:,} rounds, {len(watch.series):,} series; error {error}, alpha {watch.alpha}"
    by_height = sorted(watch.series.values(), key=lambda one: (-one.highest, one.player, one.whom))
    tables = [one for one in by_height if one.whom == EVERYBODY]
    pairs = [one for one in by_height if one.whom != EVERYBODY]
    shown = [*tables, *pairs[: max(_PAIRS_SHOWN, sum(one.highest >= watch.limit(one) for one in pairs))]]
    wide = max((len(text) for one in shown for text in (one.player, one.whom)), default=0) + 2
    heads = ("rounds", "decisions", "differ", "as known", "ln ratio", "ln E", "highest", "limit")
    yield f"{'player':<{wide}}{'whose cards':<{wide}}" + "".join(f"{head:>10}" for head in heads)
    for one in shown:
        counts = (one.rounds, one.decisions, one.followed + one.against, one.followed)
        logs = (one.ratio(error), one.evidence, one.highest, watch.limit(one))
        yield (
            f"{one.player:<{wide}}{one.whom:<{wide}}"
            + "".join(f"{count:>10,}" for count in counts)
            + "".join(f"{log:>10.2f}" for log in logs)
        )
    if len(shown) < len(watch.series):
        yield f"{len(watch.series) - len(shown):,} more pairs below these: --json has all"


def watch_document(watch: PlayerWatch, error: float) -> dict[str, Any]:
    """Return the same as plain values, all series."""
    return {
        "rounds": watch.rounds,
        "alpha": watch.alpha,
        "error": error,
        "series": [_series_document(watch, error, one) for one in watch.series.values()],
    }


def _series_document(watch: PlayerWatch, error: float, series: Series) -> dict[str, Any]:
    limit = watch.limit(series)
    return {
        "player": series.player,
        "whom": series.whom,
        "rounds": series.rounds,
        "decisions": series.decisions,
        "followed": series.followed,
        "against": series.against,
        "ratio": series.ratio(error),
        "evidence": series.evidence,
        "highest": series.highest,
        "limit": limit,
        "alarm": series.highest >= limit,
    }


def _write(document: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(document, indent=1, sort_keys=True) + "\n")
