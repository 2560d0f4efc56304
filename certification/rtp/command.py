"""The command `certify rtp`: the certificate of a ruleset, for people or as JSON, and the CPU time that it took.

`--engine` says where the flops are enumerated; the certificate is the same with each. Exit 0: done;
1: `--check` found another committed certificate, or none; 2: usage, a ruleset that is not shipped or not covered, an
engine that does not answer, or a file that cannot be written. With `--json` times go to standard error, so that
standard output is the document alone.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from certification.engines import ALONE, EngineError, add_engine_options, engine_of, started
from certification.replay import refused
from certification.rtp.certificate import Enumerated, EnumerationError, certificate, format_certified_returns
from certification.rtp.compiled import CompileTimer
from certification.rtp.enumeration import run_part
from certification.rtp.evaluator import SEVEN_CARD_HANDS, count_seven_card_hands, evaluator
from certification.rtp.flops import flops
from certification.rtp.returns import ACTION_WORDS, format_decimal
from rgs.core.errors import RgsError
from rgs.core.games.published import published_returns
from rgs.core.rulesets import SHIPPED_RULESETS, load_ruleset

DIRECTORY: Final = Path(__file__).parents[2] / "rgs" / "core" / "certificate_data"


def main(argv: Sequence[str] | None = None) -> int:
    """Enumerate a ruleset and print, write or check its certificate; the exit status."""
    parser = argparse.ArgumentParser(prog="certify rtp", description="Exact returns by complete enumeration.")
    parser.add_argument("ruleset", metavar="RULESET", help=", ".join(SHIPPED_RULESETS))
    parser.add_argument("--json", action="store_true", help="print the certificate")
    parser.add_argument("--write", type=Path, metavar="DIRECTORY", help="write the certificate, named by the hash")
    parser.add_argument("--check", action="store_true", help="compare with the committed certificate")
    add_engine_options(parser, "the flops are enumerated", workers=1)
    arguments = parser.parse_args(argv)
    if arguments.write and not arguments.write.is_dir():
        parser.error(f"argument --write: {arguments.write} is not a directory")
    try:
        ruleset = load_ruleset(arguments.ruleset)
        evaluator.cache_clear()
        flops.cache_clear()
        choice = engine_of(arguments)
        with started(run_part, choice) as opened:
            engine = None if choice == ALONE else opened
            with CompileTimer() as timer:
                enumerated = Enumerated(ruleset, engine=engine)
            enumeration_s = timer.cpu_s
            compile_s = timer.compile_s
            with CompileTimer() as timer:
                document = certificate(ruleset, enumerated, engine)
            beside_s = timer.cpu_s
            compile_s += timer.compile_s
    except (EngineError, RgsError) as error:
        return refused("rtp", error)
    text = format_certified_returns(document)
    if arguments.json:
        sys.stdout.write(text)
    else:
        sys.stdout.writelines(f"{line}\n" for line in emit(document))
    result = sys.stderr if arguments.json else sys.stdout
    result.write(
        f"CPU: enumeration {enumeration_s:.2f} s, and {beside_s:.2f} s for ties, forfeits and the other reading; "
        f"compiling or loading {compile_s:.1f} s besides\n"
    )
    if engine is None:
        yardstick_s = _yardstick()
        result.write(
            f"CPU ratio to enumerating the {SEVEN_CARD_HANDS:,} seven-card hands with the same evaluator "
            f"({yardstick_s:.2f} s): {enumeration_s / yardstick_s:.2f}\n"
        )
    else:
        result.write(f"this is the CPU of this process; the flops were enumerated by --engine {choice.name}\n")
    name = f"{ruleset.sha256}.json"
    if arguments.write:
        try:
            (arguments.write / name).write_text(text, encoding="ascii")
        except OSError as error:
            return refused("rtp", error)
    if arguments.check:
        path = DIRECTORY / name
        if not path.is_file() or path.read_bytes() != text.encode("ascii"):
            sys.stderr.write(f"certify rtp: {path.name} of {ruleset.id} is missing or says something else\n")
            return 1
        result.write(f"the committed certificate {name} is this one\n")
    return 0


def _yardstick() -> float:
    """Return the CPU seconds of counting every seven-card hand once, with the evaluator that the enumeration used."""
    tables = evaluator().tables
    with CompileTimer() as timer:
        counts = count_seven_card_hands(tables)
    if int(counts.sum()) != SEVEN_CARD_HANDS:
        raise EnumerationError(f"{counts.sum()} seven-card hands are counted, there are {SEVEN_CARD_HANDS}")
    return timer.cpu_s


# --- for people ---


def emit(document: Mapping[str, Any]) -> Iterator[str]:
    """Give the lines of a certificate: every figure as a decimal and as the exact fraction."""
    yield f"{document['ruleset']} version {document['ruleset_version']}, sha256 {document['ruleset_sha256']}"
    yield f"all {document['deals']:,} deals counted, best play for the main bets"
    yield ""
    words = _words(document["ruleset"])
    yield from _rows(document, words)
    yield ""
    yield from _readings(document)
    yield ""
    yield from _ties(document, words)
    yield ""
    yield _line("bet", ("value per ante", "standard deviation"))
    for bet, spread in document["bets"].items():
        yield _line(bet, (_decimal(spread["value"]), spread["standard_deviation"]))
    for bet, side in document["side_bets"].items():
        yield _line(f"{bet} (side)", (_decimal(side["value"]), side["standard_deviation"]))
        yield ""
        yield f"side bet {bet}, on its own merits: return {_percent(side['return'])}  {side['return']}"
        yield from (_line(name, (_decimal(share),)) for name, share in side["hands"].items())
        yield ""
        yield from _forfeits(bet, document["fold_forfeits"][bet])
    yield ""
    fields = ("dealt", "folded", "stayed", "won", "tied", "lost", "unqualified", "value")
    yield _line("final hand", fields)
    for name, line in document["hands"].items():
        yield _line(name, tuple(_decimal(line[field], 10) for field in fields))
    yield ""
    other = document["exactly_two_own"]
    yield "two own cards and three of the board, exactly (H-5: not the game; shown to tell the readings apart)"
    yield from (_exact(name, other[name]) for name in other)


def _words(ruleset_id: str) -> frozenset[str]:
    """The actions that end the decisions of this game."""
    actions = {action for legal in load_ruleset(ruleset_id).rules.transitions.values() for action in legal}
    return frozenset(word for action, word in ACTION_WORDS.items() if action in actions)


def _rows(document: Mapping[str, Any], words: frozenset[str]) -> Iterator[str]:
    """The figures of one way of playing; of the actions those `words` that the game has."""
    names = ("expected_value_per_ante", "return_initial", "expected_total_wager", "return_total", "variance")
    yield from (_exact(name, document[name]) for name in names)
    yield f"{'standard_deviation':<26}{document['standard_deviation']:>20}"
    shares = document["action_frequency"]
    yield from (_exact(name, shares[name]) for name in shares if name in words)


def _readings(document: Mapping[str, Any]) -> Iterator[str]:
    """The returns as the source document publishes them (U-12, C-9), and by either reading of what a hand is (H-5)."""
    published = {
        (row.bet, row.per): f"{format_decimal(Fraction(row.basis_points, 100), 2)} %"
        for row in published_returns(document["ruleset"])
    }
    ((side_bet, side),), other = document["side_bets"].items(), document["exactly_two_own"]
    yield _line("return", ("published", "best five of seven", "two own and three"))
    for bet, per, ours, theirs in (
        ("main", "initial stake", document["return_initial"], other["return_initial"]),
        ("main", "total stake", document["return_total"], other["return_total"]),
        (side_bet, "initial stake", side["return"], other["side_return"]),
    ):
        yield _line(f"{bet}, per {per}", (published.get((bet, per), "-"), _percent(ours), _percent(theirs)))


def _ties(document: Mapping[str, Any], words: frozenset[str]) -> Iterator[str]:
    ties, raised = document["ties"], document["ties_raised"]
    flop, river = (Fraction(ties[street]["frequency"]) for street in ("flop", "river"))
    if not flop + river and not ties["preflop"]:
        yield "no decision is exactly indifferent"
        return
    yield (
        f"exactly indifferent: {ties['preflop']} of the 169 holes before the flop, "
        f"{format_decimal(100 * flop)} % of rounds on the flop, {format_decimal(100 * river)} % on the river"
    )
    for state in ties["flop"]["states"]:
        yield f"  {state[:5]} on {state[6:]}, and what differs in the names of suits only"
    yield "in the figures above they are folded or checked; raised instead:"
    yield from _rows(raised, words)


def _forfeits(bet: str, forfeits: Mapping[str, Any]) -> Iterator[str]:
    if forfeits["rule"] == "paid":
        yield f"a fold does not touch {bet}: one way of playing is best for every player"
        return
    yield f"a fold forfeits {bet}, and with it {_percent(forfeits['forfeited'])} of its stakes when the main bets are"
    yield "played best; whoever makes it each time, as large as the ante, does better folding less:"
    first, second = forfeits["players"].values()
    yield _line("", tuple(forfeits["players"]))
    yield from (_line(name, (_decimal(first[name]), _decimal(second[name]))) for name in first)


def _exact(name: str, fraction: str) -> str:
    return f"{name:<26}{_decimal(fraction):>20}  {fraction}"


def _line(name: str, cells: Sequence[str]) -> str:
    return f"{name:<26}" + "".join(f"{cell:>{20 if len(cells) < 4 else 15}}" for cell in cells)


def _decimal(fraction: str, decimals: int = 12) -> str:
    return format_decimal(Fraction(fraction), decimals)


def _percent(fraction: str) -> str:
    return f"{format_decimal(100 * Fraction(fraction), 4)} %"
