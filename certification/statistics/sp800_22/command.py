"""The command `certify sp800-22 FILE`: all fifteen tests on the bits of a file, for people or as JSON.

`--length` bits a sequence (default 1,000,000, or all there are if fewer), `--sequences` of them (default all that fit,
at most 1,000), `--format raw | ascii` where the file shall not speak for itself, `--variant nist-2.1.2` for the C
program's constants, `--dft-divisor 3.8`. Exit 0: passed; 1: failed; 2: usage, unreadable file, nothing applicable.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from certification.processes import over
from certification.replay import refused, whole_number
from certification.rtp.compiled import Bytes
from certification.statistics import progress
from certification.statistics.sp800_22 import levels, reading, suite

_USUAL_LENGTH: Final = 1_000_000
LENGTH_MOST: Final = 10**8
"""Of a sequence: a bit takes 33 bytes of memory while it is tested."""
_count = whole_number(1, 10**10)
_length = whole_number(1, LENGTH_MOST)
_VARIANTS: Final = {variant.name: variant for variant in (suite.CORRECTED, suite.NIST_2_1_2)}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tests and tell; the exit status."""
    arguments = _parser().parse_args(argv)
    variant = replace(_VARIANTS[arguments.variant], dft_divisor=arguments.dft_divisor)
    path: Path = arguments.file
    try:
        reading.check_regular(path)
        form = reading.format_of(path) if arguments.format == "auto" else arguments.format
        held = reading.bits_in(path, form)
        length = arguments.length or max(1, min(held, _USUAL_LENGTH))
        count = arguments.sequences or max(1, min(held // length, levels.SEQUENCES_MOST))
        results, cpu_s = _run(reading.read_sequences(path, form, length, count), count, variant, arguments.workers)
    except (OSError, reading.SequenceError) as error:
        return refused("sp800-22", error)
    verdict = levels.judge(results, arguments.alpha)
    report = _SuiteReport(path, form, length, variant, results, verdict)
    if arguments.json:
        sys.stdout.write(json.dumps(report.document(cpu_s), indent=1, sort_keys=True) + "\n")
    else:
        sys.stdout.writelines(f"{line}\n" for line in report.emit())
        sys.stdout.write(f"CPU: {cpu_s:.2f} s, {cpu_s / (count * length) * 1e6:.3f} s for 1,000,000 bits\n")
    return {"passed": 0, "failed": 1}.get(verdict.word, 2)


def _run(
    sequences: Iterator[Bytes], count: int, variant: suite.Variant, workers: int
) -> tuple[list[list[suite.PValue]], float]:
    results: list[list[suite.PValue]] = []
    cpu_s = 0.0
    for values, used_s in over(partial(timed, variant=variant), sequences, min(workers, count)):
        results.append(values)
        cpu_s += used_s
        progress.show("sequences", len(results), count)
    return results, cpu_s


def timed(bits: Bytes, variant: suite.Variant) -> tuple[list[suite.PValue], float]:
    """Return the p-values of a sequence and the CPU seconds that they took."""
    started = time.process_time()
    values = suite.run(bits, variant)
    return values, time.process_time() - started


@dataclass(frozen=True, slots=True)
class _SuiteReport:
    """What was read, and the verdict over it."""

    path: Path
    form: str
    length: int
    variant: suite.Variant
    results: Sequence[Sequence[suite.PValue]]
    verdict: levels.SuiteVerdict

    def document(self, cpu_s: float) -> dict[str, Any]:
        return {
            "file": self.path.name,
            "format": self.form,
            "bits": self.length,
            "sequences": len(self.results),
            "variant": asdict(self.variant),
            "p_values": [
                {"test": value.test, "part": value.part, "p": [values[place].p for values in self.results]}
                | ({"reason": value.reason} if value.reason else {})
                for place, value in enumerate(self.results[0])
            ],
            "verdict": asdict(self.verdict),
            "cpu_s": round(cpu_s, 3),
        }

    def emit(self) -> Iterator[str]:
        results, verdict = self.results, self.verdict
        yield f"{self.path.name}: {len(results):,} sequences of {self.length:,} bits, read as {self.form}"
        yield f"constants: {self.variant.name}; divisor of the spectral test {self.variant.dft_divisor:g}"
        yield ""
        if len(results) == 1:
            yield f"{'section':<9}{'test':<28}{'part':<12}{'p':>10}"
            sections = {test.name: test.section for test in suite.TESTS}
            for value in results[0]:
                result = f"{value.p:>10.6f}" if value.p is not None else f"  not applicable: {value.reason}"
                yield f"{sections[value.test]:<9}{value.test:<28}{value.part:<12}{result}"
        else:
            yield f"{'test':<28}{'part':<12}{'passed':>14}{'floor':>9}{'P_T':>10}"
            yield from map(_row, verdict.families)
            yield ""
            yield (
                f"below the publication's floor: {verdict.below_floor} of {len(verdict.families)} "
                f"(a good generator: {verdict.below_floor_expected:.2f} on average)"
            )
            yield f"uniformity P_T below {levels.UNIFORMITY_FLOOR}: {verdict.below_uniformity}"
        yield ""
        yield from (f"caution: {caution}" for caution in verdict.cautions)
        for name in verdict.rejected:
            yield f"rejected: {name}"
        judged = sum(family.applicable > 0 for family in verdict.families)
        yield (
            f"{verdict.word} at a family level of {verdict.alpha:g} (Holm); "
            f"{judged} of {len(verdict.families)} p-values are applicable"
        )


def _row(family: levels.Family) -> str:
    name = f"{family.test:<28}{family.part:<12}"
    if not family.applicable:
        return f"{name}  not applicable"
    uniform = "-" if family.uniformity_p is None else f"{family.uniformity_p:.6f}"
    mark = "" if family.is_within else "  below the floor"
    return f"{name}{family.passed:>7} / {family.applicable:<4}{family.floor:>9}{uniform:>10}{mark}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="certify sp800-22", description="The fifteen tests of NIST SP 800-22.")
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("--format", choices=reading.FORMATS, default="auto", help="default: by the file's beginning")
    parser.add_argument("--length", type=_length, metavar="BITS", help="of a sequence, at most 10^8")
    parser.add_argument("--sequences", type=_count, metavar="N")
    parser.add_argument("--variant", choices=sorted(_VARIANTS), default=suite.CORRECTED.name)
    parser.add_argument("--dft-divisor", type=float, choices=(4.0, 3.8), default=4.0)
    parser.add_argument("--alpha", type=level, default=levels.LEVEL, help="family level, default 0.01")
    parser.add_argument("--workers", type=_count, default=os.cpu_count() or 1, metavar="N", help="processes")
    parser.add_argument("--json", action="store_true")
    return parser


def level(text: str) -> float:
    """Return a family level; for parsers of command lines."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a level between 0 and 1")
    return value
