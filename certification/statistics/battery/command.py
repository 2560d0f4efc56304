"""The command `certify rng`: the shuffle battery on the production generator, a seed, planted defects or an export.

`--decks N` from the production path (or from `--seed HEX`, which can be repeated). `--replicates R` tests instead
whether p-values are uniform over R samples of N decks. `--defects usual | all` plants every defect, which the battery
must fail. `--statements FILE…` takes the decks of recorded rounds and compares their returns. `--programs` runs the
external batteries that are on PATH. `--engine` says where decks are made and counted; without a seed a cluster's come
from the generators of its machines, and the report says so. Exit 0: passed; 1: failed; 2: usage, unreadable files,
nothing applicable, nothing run, an engine that does not answer.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from certification.engines import add_engine_options, engine_of
from certification.replay import refused, whole_number
from certification.statistics import programs, progress
from certification.statistics.battery import battery, planting, rounds
from certification.statistics.battery.decks import DeckSource, Given, Production, Seeded
from certification.statistics.battery.defects import NOT_CAUGHT
from certification.statistics.battery.returns import ReturnTest, report_returns
from certification.statistics.sp800_22.command import level
from rgs.core.errors import RgsError

_USUAL_DECKS: Final = 100_000
_count = whole_number(1, 10**9)


def main(argv: Sequence[str] | None = None) -> int:
    """Run what is asked for; the exit status."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    if arguments.engine != "process" and (arguments.programs or arguments.statements):
        parser.error(f"--engine {arguments.engine} has no part in --programs and --statements: they run here")
    try:
        document, lines = _requested(arguments)
    except (OSError, ValueError, RgsError) as error:
        return refused("rng", error)
    if arguments.json:
        sys.stdout.write(json.dumps(document, indent=1, sort_keys=True) + "\n")
    else:
        sys.stdout.writelines(f"{line}\n" for line in lines)
    return {"passed": 0, "failed": 1}.get(document["verdict"], 2)


def _requested(arguments: argparse.Namespace) -> tuple[dict[str, Any], Iterator[str]]:
    alpha, engine = arguments.alpha, engine_of(arguments)
    production = Production(f"{Production.reported} {engine.place}".strip())
    source: DeckSource = Seeded(arguments.seed) if arguments.seed else production
    if arguments.defects:
        plantings = planting.plant(arguments.defects, engine=engine, reported=progress.show)
        return planting.document(plantings), planting.emit(plantings)
    if arguments.programs:
        outcomes = programs.run_all(arguments.megabytes, reported=progress.show)
        return programs.document(outcomes), programs.emit(outcomes)
    if arguments.statements:
        return _recorded(arguments.statements, alpha)
    if arguments.replicates:
        sizes = (arguments.replicates, arguments.decks, alpha)
        second = battery.replicate(source, *sizes, engine=engine, reported=progress.show)
        return {"verdict": second.word, "alpha": alpha, **asdict(second)}, report_second(second)
    verdict = battery.run_battery(source, arguments.decks, alpha, engine=engine, reported=progress.show)
    return document_of(verdict), emit(verdict)


def _recorded(paths: Sequence[Path], alpha: float) -> tuple[dict[str, Any], Iterator[str]]:
    returns = ReturnTest()
    recorded = rounds.read(paths, returns.add, reported=lambda count: progress.show("rounds", 0, max(count, 1)))
    source = Given(recorded.transcripts, f"{len(recorded.transcripts):,} deals of {', '.join(p.name for p in paths)}")
    verdict = battery.run_battery(source, len(recorded.transcripts), alpha, can_repeat=False)
    returned = returns.judge(alpha)
    words = {verdict.word, returned.word}
    word = next((word for word in ("failed", "not applicable") if word in words), "passed")
    document = {**document_of(verdict), "verdict": word, "returns": asdict(returned), "unread": recorded.unread}

    def lines() -> Iterator[str]:
        yield from emit(verdict)
        yield ""
        yield from report_returns(returned)
        yield ""
        yield from (f"not read: {count} {what}" for what, count in recorded.unread.items())
        yield "no signature was verified: run certify replay first"
        yield f"both together: {word}"

    return document, lines()


# --- told ---


def document_of(verdict: battery.BatteryVerdict) -> dict[str, Any]:
    """Return a verdict as plain values."""
    return {
        "verdict": verdict.word,
        "alpha": verdict.alpha,
        "runs": [
            {
                "source": run.source,
                "decks": run.decks,
                "results": [asdict(result) for result in run.results],
                "rejected": run.rejected,
                "decisive": run.decisive,
                "too_good": run.too_good,
                "placements": None if run.placements is None else run.placements.tolist(),
            }
            for run in verdict.runs
        ],
        "not_caught": [dict(zip(("defect", "from", "guard"), row, strict=True)) for row in NOT_CAUGHT],
    }


def emit(verdict: battery.BatteryVerdict) -> Iterator[str]:
    """Give the lines of a verdict."""
    for place, run in enumerate(verdict.runs):
        repeat = "the repeat that was declared beforehand, " if place else ""
        yield f"{repeat}{run.decks:,} decks from {run.source}"
        yield ""
        yield f"{'test':<32}{'GLI-19':<34}{'p':>10}  {'statistic':>14}  law"
        for result in run.results:
            name = f"{result.name:<32}{result.clause:<34}"
            if result.p is None or result.statistic is None:
                yield f"{name}{'-':>10}  not applicable: {result.reason}"
            else:
                yield f"{name}{result.p:>10.6f}  {result.statistic:>14.6g}  {result.law}"
        yield ""
        yield from (f"rejected by Holm: {name}" for name in run.rejected)
        yield from (f"decisive, p < {battery.DECISIVE}: {name}" for name in run.decisive)
        yield from (f"too good, p > 1 - 1e-6: {name}" for name in run.too_good)
    results = verdict.runs[-1].results
    judged = sum(result.p is not None for result in results)
    yield f"{verdict.word} at a family level of {verdict.alpha:g} (Holm); {judged} of {len(results)} tests applicable"
    yield ""
    yield "what no such test shows, and what guards against it"
    yield from (f"  {defect}: {since}; {guard}" for defect, since, guard in NOT_CAUGHT)


def report_second(second: battery.SecondLevel) -> Iterator[str]:
    """Give the lines of a second level."""
    yield f"{second.replicates} replicates of {second.decks:,} decks; p-values of continuous statistics"
    yield f"{'test':<32}{'below 0.05':>12}{'Kolmogorov':>12}"
    for name, p_values in second.p_values.items():
        share = sum(p < 0.05 for p in p_values) / len(p_values)
        yield f"{name:<32}{share:>12.3f}{second.kolmogorov[name]:>12.4f}"
    yield from (f"{name:<32}  not applicable in a replicate: {why}" for name, why in second.missing.items())
    yield from (f"rejected by Holm: {name}" for name in second.rejected)
    if second.replicates < battery.REPLICATES_LEAST:
        yield f"fewer than {battery.REPLICATES_LEAST} replicates are too few for a verdict"
    yield second.word


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="certify rng", description="Statistics of the generator's final outcomes.")
    parser.add_argument("--decks", type=_count, default=_USUAL_DECKS, metavar="N")
    parser.add_argument("--alpha", type=level, default=battery.FAMILY_LEVEL, help="family level, default 0.01")
    parser.add_argument("--seed", type=_seed, metavar="HEX", help="for a run that can be repeated")
    add_engine_options(parser, "decks are made and counted")
    parser.add_argument("--json", action="store_true")
    other = parser.add_mutually_exclusive_group()
    other.add_argument(
        "--replicates",
        type=_count,
        metavar="R",
        help="uniformity of p-values over R samples of N decks",
    )
    other.add_argument("--defects", choices=("usual", "all"), help="plant every defect; all: those of millions too")
    other.add_argument("--statements", nargs="+", type=Path, metavar="FILE", help="the rounds of an export")
    other.add_argument("--programs", action="store_true", help="batteries of others, where on PATH")
    parser.add_argument("--megabytes", type=_count, default=programs.MEGABYTES, help="raw output for each program")
    return parser


def _seed(text: str) -> bytes:
    try:
        seed = bytes.fromhex(text)
    except ValueError:
        seed = b""
    if not seed:
        raise argparse.ArgumentTypeError(f"{text!r} is not a seed in hex")
    return seed
