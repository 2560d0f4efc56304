"""External test batteries, where they are on PATH: fed by `rng export`, their output read, shown beside our own.

ent, rngtest (FIPS 140-2) and dieharder are Debian's. NIST's `assess`, PractRand's `RNG_test` and a driver for TestU01
called `testu01-stdin` (32-bit words on standard input, SmallCrush) must be built by the user. A missing program is *not
run*. One that crashes, hangs, looks at fewer bytes than it was given, leaves out tests, or says anything that is not
understood is *void*: neither passed nor failed. These programs raise false alarms on good generators
(docs/statistics.md). So a test fails here only with p below 1e-6, or if the program itself calls it a failure beyond
doubt; weaker words are shown.
"""

from __future__ import annotations

import math
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from scipy import stats

from certification.statistics.progress import Reported, silent
from certification.statistics.sp800_22.patterns import aperiodic_templates
from certification.statistics.sp800_22.suite import P_VALUES

MEGABYTES: Final = 100
FAILS_BELOW: Final = 1e-6
_FIPS_FAILURES: Final = 0.0008
"""Of blocks of 20,000 good bits."""
_FIPS_BLOCK_BITS: Final = 20_000
_ENDLESS: Final = 1 << 36
LIMIT_S: Final = 7200.0
"""For one program, or one test of dieharder; what takes longer hangs."""
_DIEHARDER: Final = (0, 2, 8, 15, 100, 101, 102)
"""Tests that dieharder itself calls good, and that end within minutes on a pipe."""
_STS_BITS: Final = 1_000_000
_STS_FOLDERS: Final = (
    *("Frequency", "BlockFrequency", "CumulativeSums", "Runs", "LongestRun", "Rank", "FFT", "NonOverlappingTemplate"),
    *("OverlappingTemplate", "Universal", "ApproximateEntropy", "RandomExcursions", "RandomExcursionsVariant"),
    *("Serial", "LinearComplexity"),
)


WORDS: Final = ("passed", "failed", "void", "not run")


@dataclass(frozen=True, slots=True)
class Read:
    """What a program's output says: passed | failed | void, and the figures behind it."""

    word: str
    detail: str


@dataclass(frozen=True, slots=True)
class ProgramOutcome:
    """One program: passed | failed | void | not run."""

    program: str
    word: str
    detail: str


class VoidError(Exception):
    """A run that says nothing, and why."""


def _by(p: float, detail: str) -> Read:
    if math.isnan(p):
        return Read("void", f"no p-value: {detail}")
    return Read("failed" if p < FAILS_BELOW else "passed", f"p {p:.3g}, {detail}")


# --- what the programs say ---
# Each takes the text and how many bytes the program was fed with.


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def read_ent(text: str, count: int) -> Read:
    """`ent -t`: the chi-square's p-value is computed here, two-sided."""
    for line in text.splitlines():
        fields = line.split(",")
        if fields[0] == "1" and len(fields) == 7:
            if fields[1] != str(count):
                return Read("void", f"looked at {fields[1]} of {count} bytes")
            law = stats.chi2(255)
            chi = _number(fields[3])
            p = 2 * min(float(law.sf(chi)), float(law.cdf(chi)))
            return _by(p, f"chi-square {fields[3]} of {fields[1]} bytes, {fields[2]} bits a byte")
    return Read("void", "no line of figures")


def read_rngtest(text: str, count: int) -> Read:
    """rngtest: blocks that fail FIPS 140-2, against the share that good bits fail; its status means nothing."""
    counts = {word: int(number) for word, number in re.findall(r"FIPS 140-2 (successes|failures): (\d+)", text)}
    blocks, fed = sum(counts.values()), 8 * count // _FIPS_BLOCK_BITS
    if len(counts) != 2 or not blocks:
        return Read("void", "no counts of blocks")
    if not fed - 1 <= blocks <= fed:  # it takes the first word for itself
        return Read("void", f"looked at {blocks} of {fed} blocks")
    p = float(stats.binom.sf(counts["failures"] - 1, blocks, _FIPS_FAILURES))
    return _by(p, f"{counts['failures']} of {blocks} blocks failed")


def read_dieharder(text: str, _: int) -> Read:
    """dieharder: its table; a file that was rewound makes every result void."""
    if "rewound" in text:
        return Read("void", "too few bytes: the input was rewound")
    lines = [line for line in text.splitlines() if line.count("|") == 5 and not line.strip().startswith("test_name")]
    rows = re.findall(
        r"^\s*(\w+)\|\s*(\d+)\|\s*\d+\|\s*\d+\|\s*([01]\.\d+)\|\s*(PASSED|WEAK|FAILED)\s*$", text, re.MULTILINE
    )
    if len(rows) != len(lines):
        return Read("void", f"{len(lines) - len(rows)} rows of the table are not understood")
    tests = len({row[0] for row in rows})
    if tests < len(_DIEHARDER):
        return Read("void", f"rows of {tests} tests of {len(_DIEHARDER)}")
    words = [row[3] for row in rows]
    named = [f"{name} {tuple_size} p {p} {word}" for name, tuple_size, p, word in rows if word != "PASSED"]
    detail = "; ".join((f"{words.count('PASSED')} of {len(rows)} passed", *named))
    return Read("failed" if "FAILED" in words else "passed", detail)


def read_practrand(text: str, count: int) -> Read:
    """PractRand: only FAIL is decisive; unusual and suspicious happen."""
    lines = [line.strip() for line in text.splitlines()]
    worst = [line for line in lines if re.search(r"\bFAIL\b", line)]
    if worst:
        return Read("failed", "; ".join(" ".join(line.split()) for line in worst[:5]))
    _, reported, last = text.rpartition("length=")
    reached = re.match(r".*\(2\^(\d+(?:\.\d+)?) bytes\)", last) if reported else None
    counts = re.findall(r"(?:in|and) (\d+) test result", last)
    if reached is None or not counts:
        return Read("void", "no count of test results")
    if 2.0 ** float(reached[1]) < 0.98 * (_mebibytes(count) << 20):  # it tells two decimals of the exponent
        return Read("void", f"ended at 2^{reached[1]} of {count} bytes")
    odd = [" ".join(line.split()) for line in lines if re.search(r"\b(unusual|suspicious|SUSPICIOUS)\b", line)]
    return Read("passed", "; ".join((f"{counts[-1]} results at the last length", *odd)))


def read_testu01(text: str, _: int) -> Read:
    """TestU01: all passed, or the p-values outside [0.001, 0.9990]; eps means below 1e-300."""
    if "All tests were passed" in text:
        return Read("passed", "all tests were passed")
    _before, header, table = text.rpartition("p-value")
    rows = re.findall(r"^\s*\d+\s+(\S.*?)\s{2,}(\S.*?)\s*$", table, re.MULTILINE) if header else []
    if not rows or "All other tests were passed" not in table:
        return Read("void", "no summary")
    detail = "; ".join(f"{name} {p}" for name, p in rows)
    ends = [0.0 if "eps" in p else _number(p.removeprefix("1 -")) for _, p in rows]
    if any(math.isnan(end) for end in ends):
        return Read("void", f"no p-value: {detail}")
    word = "failed" if min(ends) < FAILS_BELOW else "passed"
    return Read(word, f"outside [0.001, 0.999]: {detail}")


def read_sts(text: str, count: int) -> Read:
    """NIST's finalAnalysisReport.txt: uniformity below 1e-6, or a proportion that a good generator has once in 1e6."""
    rows = re.findall(
        r"^\s*(?:\d+\s+){10}([01]\.\d+|----)\s*\*?\s+(\d+)/(\d+)\s*\*?\s+(\w+)\s*$", text, re.MULTILINE
    )  # fmt: skip
    if len(rows) != P_VALUES:
        return Read("void", f"{len(rows)} rows of {P_VALUES} in the report")
    fed, most = _sequences(count), max(int(row[2]) for row in rows)
    if most != fed:
        return Read("void", f"looked at {most} of {fed} sequences")
    failed = []
    for uniform, passed, sequences, name in rows:
        chance = float(stats.binom.sf(int(sequences) - int(passed) - 1, int(sequences), 0.01))
        if chance < FAILS_BELOW or (uniform != "----" and float(uniform) < FAILS_BELOW):
            failed.append(f"{name} {passed}/{sequences}, P_T {uniform}")
    return Read("failed" if failed else "passed", "; ".join((f"{len(rows)} rows", *failed)))


# --- how they are run ---


def _piped(command: Sequence[str], count: int) -> str:
    """Return what the program wrote, fed with so many bytes of `rng export`; it may stop reading before."""
    export = [sys.executable, "-m", "rng", "export", "--what", "raw", "--count", str(count)]
    with (
        subprocess.Popen(export, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as exporting,  # noqa: S603
        subprocess.Popen(  # noqa: S603
            command, stdin=exporting.stdout, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as testing,
    ):
        if exporting.stdout is not None:
            exporting.stdout.close()  # the program alone reads, so that the export ends when it does
        try:
            said = testing.communicate(timeout=LIMIT_S)[0]
        except subprocess.TimeoutExpired:
            testing.kill()
            raise
    if testing.returncode < 0:
        raise VoidError(f"ended by signal {-testing.returncode}")
    return said.decode("utf-8", "replace")


def _dieharder(path: str, _: int) -> str:
    return "".join(_piped([path, "-g", "200", "-d", str(number)], _ENDLESS) for number in _DIEHARDER)


def _sequences(count: int) -> int:
    return max(1, 8 * count // _STS_BITS)


def _mebibytes(count: int) -> int:
    """What PractRand is asked for: a number without a unit it takes for a power of two."""
    return max(1, count >> 20)


def _sts(path: str, count: int) -> str:
    """NIST's program wants its folders, its templates, and its menu answered."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for test in _STS_FOLDERS:
            (folder / "experiments" / "AlgorithmTesting" / test).mkdir(parents=True)
        (folder / "templates").mkdir()
        rows = (" ".join(template) for template in aperiodic_templates())
        (folder / "templates" / "template9").write_text("".join(f"{row}\n" for row in rows), encoding="ascii")
        sequences = _sequences(count)
        export = [sys.executable, "-m", "rng", "export", "--what", "raw", "--count", str(sequences * _STS_BITS // 8)]
        with (folder / "bits").open("wb") as bits:
            subprocess.run(export, stdout=bits, stderr=subprocess.DEVNULL, check=True)  # noqa: S603
        menu = f"0\nbits\n1\n0\n{sequences}\n1\n"
        done = subprocess.run(  # noqa: S603
            [path, str(_STS_BITS)],
            cwd=folder,
            input=menu.encode(),
            capture_output=True,
            check=False,
            timeout=LIMIT_S,
        )
        if done.returncode < 0:
            raise VoidError(f"ended by signal {-done.returncode}")
        report = folder / "experiments" / "AlgorithmTesting" / "finalAnalysisReport.txt"
        return report.read_text(encoding="ascii", errors="replace") if report.is_file() else ""


@dataclass(frozen=True, slots=True)
class Program:
    """A program of others: what it is called on PATH, how it is run on so many bytes, how its output is read."""

    name: str
    executable: str
    run: Callable[[str, int], str]
    read: Callable[[str, int], Read]


PROGRAMS: Final = (
    Program("ent", "ent", lambda path, count: _piped([path, "-t"], count), read_ent),
    Program("rngtest", "rngtest", lambda path, count: _piped([path], count), read_rngtest),
    Program("dieharder", "dieharder", _dieharder, read_dieharder),
    Program("NIST STS", "assess", _sts, read_sts),
    Program(
        "PractRand",
        "RNG_test",
        lambda path, count: _piped([path, "stdin64", "-tlmax", f"{_mebibytes(count)}MB", "-multithreaded"], _ENDLESS),
        read_practrand,
    ),
    Program("TestU01", "testu01-stdin", lambda path, _: _piped([path, "smallcrush"], _ENDLESS), read_testu01),
)


def run(program: Program, count: int) -> ProgramOutcome:
    """Run one program on so many bytes, if it is on PATH."""
    path = shutil.which(program.executable)
    if path is None:
        return ProgramOutcome(program.name, "not run", f"{program.executable} is not on PATH")
    try:
        found = program.read(program.run(path, count), count)
    except subprocess.TimeoutExpired:
        found = Read("void", f"no end after {LIMIT_S:g} s")
    except (OSError, subprocess.CalledProcessError, VoidError) as error:
        found = Read("void", str(error))
    return ProgramOutcome(program.name, found.word, found.detail)


def run_all(megabytes: int = MEGABYTES, reported: Reported = silent) -> list[ProgramOutcome]:
    """Run every program that is there."""
    outcomes = []
    for done, program in enumerate(PROGRAMS, 1):
        outcomes.append(run(program, megabytes * 1_000_000))
        reported("programs", done, len(PROGRAMS))
    return outcomes


def verdict_of(outcomes: Sequence[ProgramOutcome]) -> str:
    """Return failed if one failed, passed if some ran and none is failed or void, else not run."""
    words = [outcome.word for outcome in outcomes]
    if "failed" in words:
        return "failed"
    return "passed" if "passed" in words and "void" not in words else "not run"


def document(outcomes: Sequence[ProgramOutcome]) -> dict[str, Any]:
    """Return the outcomes as plain values."""
    return {"verdict": verdict_of(outcomes), "programs": [asdict(outcome) for outcome in outcomes]}


def emit(outcomes: Sequence[ProgramOutcome]) -> Iterator[str]:
    """Give the lines."""
    yield from (f"{outcome.program:<12}{outcome.word:<9}{outcome.detail}" for outcome in outcomes)
    words = [outcome.word for outcome in outcomes]
    yield f"{verdict_of(outcomes)}: {', '.join(f'{words.count(word)} {word}' for word in WORDS)}"
