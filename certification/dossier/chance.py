"""The steps about chance: self-test, known answers, health tests, the shuffle battery, SP 800-22, external programs.

Each calls the code of the command of its name and returns plain values. docs/statistics.md says what they show, and
what they cannot. A step that did not run is not run, never passed.
"""

from __future__ import annotations

import hashlib
import io
import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from certification.dossier.work import ROOT, Result, not_run
from certification.engines import EngineChoice
from certification.statistics import programs
from certification.statistics.battery import battery, planting
from certification.statistics.battery.command import document_of
from certification.statistics.battery.decks import DeckSource, Production, Seeded
from certification.statistics.progress import Reported
from certification.statistics.sp800_22 import levels, reading, suite
from certification.statistics.sp800_22.command import timed
from rng import kat, selftest
from rng.entropy import BLOCK_BYTES, STARTUP_BYTES, EntropySource
from rng.errors import HealthTestError, RngError
from rng.health import PROPORTION_CUTOFF, PROPORTION_WINDOW, REPETITION_CUTOFF, HealthTests

VECTORS: Final = ROOT / "tests" / "vectors" / "drbg"
_SEQUENCE_BITS: Final = 1_000_000
_PIECE: Final = 1 << 24


def source_of(parameters: Mapping[str, Any]) -> DeckSource:
    """Where chance comes from: the production generator, or the seed of a run that can be repeated."""
    seed = parameters["seed"]
    return Seeded(bytes.fromhex(seed)) if seed else Production()


def run_selftest(_parameters: Mapping[str, Any], _reported: Reported) -> Result:
    """The generator's power-up self-test."""
    try:
        names = selftest.run()
    except RngError as error:
        return {"verdict": "failed", "reported": str(error), "tests": []}
    return {"verdict": "passed", "reported": f"{len(names)} of {len(names)} parts", "tests": list(names)}


def run_known_answers(_parameters: Mapping[str, Any], _reported: Reported) -> Result:
    """NIST's answers for Hash_DRBG, file by file, case by case."""
    rows: list[dict[str, Any]] = []
    for path in sorted(VECTORS.glob("*.json")):
        out, err = io.StringIO(), io.StringIO()
        status = kat.run_files([str(path)], out, err)
        passed, failed = (int(part.split()[0]) for part in out.getvalue().splitlines()[-1].split(", "))
        failures = [*out.getvalue().splitlines()[:-1], *err.getvalue().splitlines()]
        rows.append({"file": path.name, "passed": passed, "failed": failed, "status": status, "failures": failures})
    if not rows:
        return not_run("the vectors are not part of this installation", files=[])
    passed, failed = sum(row["passed"] for row in rows), sum(row["failed"] for row in rows)
    verdict = "failed" if failed or any(row["status"] for row in rows) else "passed"
    return {"verdict": verdict, "reported": f"{passed:,} of {passed + failed:,} answers", "files": rows}


# --- health tests of the entropy ---


def _stuck(number: int) -> bytes:
    return bytes(BLOCK_BYTES) if number else bytes(range(BLOCK_BYTES))


def _two_values(number: int) -> bytes:
    """Half of each value in every block, in an order that no block repeats and no run gives away."""
    order = hashlib.sha256(b"two values %d" % number).digest()
    return b"".join(b"\x5a\xa5" if order[place] & 1 else b"\xa5\x5a" for place in range(BLOCK_BYTES // 2))


def _same_block(_number: int) -> bytes:
    return bytes((37 * place + 11) % 256 for place in range(BLOCK_BYTES))


PLANTED: Final = (
    ("a stuck source: one byte without end", _stuck, "REPETITION_COUNT"),
    ("a source that falls to two values", _two_values, "ADAPTIVE_PROPORTION"),
    ("a source that gives the same good-looking block again", _same_block, "SAME_BLOCK"),
)
"""Faults of a source, and the test that is due."""
_PLANTED_BLOCKS: Final = 64


def run_health(parameters: Mapping[str, Any], reported: Reported) -> Result:
    """The health tests on fresh entropy of this machine, and on sources with a planted fault."""
    count: int = parameters["bytes"]
    alarm = ""
    try:
        source = EntropySource()
        for done in range(0, count, _READ):
            source.read(min(_READ, count - done))
            reported("bytes", done, count)
    except RngError as error:
        alarm = str(error)
    planted: list[dict[str, Any]] = []
    for name, block, due in PLANTED:
        tests, noticed, blocks = HealthTests(), "nothing", 0
        try:
            for number in range(_PLANTED_BLOCKS):
                blocks = number + 1
                tests.check(block(number))
        except HealthTestError as error:
            noticed = error.reason
        planted.append({"fault": name, "due": due, "reported": noticed, "blocks": blocks, "is_caught": noticed == due})
    caught = sum(row["is_caught"] for row in planted)
    return {
        "verdict": "passed" if not alarm and caught == len(planted) else "failed",
        "reported": f"{alarm or 'no alarm'} in {count:,} fresh bytes; {caught} of {len(planted)} planted faults caught",
        "cutoffs": {
            "repetition": REPETITION_CUTOFF,
            "proportion": PROPORTION_CUTOFF,
            "window": PROPORTION_WINDOW,
            "block_bytes": BLOCK_BYTES,
            "startup_bytes": STARTUP_BYTES,
        },
        "fresh_bytes": count,
        "alarm": alarm,
        "planted": planted,
    }


_READ: Final = 1 << 16

# --- the shuffle battery ---


def run_battery(parameters: Mapping[str, Any], reported: Reported) -> Result:
    """The battery on so many decks, with the repeat that the rule may call for."""
    source, decks, alpha = source_of(parameters), parameters["decks"], parameters["alpha"]
    verdict = battery.run_battery(source, decks, alpha, engine=engine_of(parameters), reported=reported)
    document = document_of(verdict)
    run = verdict.runs[-1]
    p_values = sorted(result.p for result in run.results if result.p is not None)
    least = f"smallest of {len(p_values)} p-values {p_values[0]:.3g}" if p_values else "no p-value"
    if len(p_values) < len(run.results):  # some ran: what is told counts them, and the whole is not called passed
        least += f", {len(run.results) - len(p_values)} of {len(run.results)} tests not applicable"
        document["verdict"] = "not run" if verdict.word == "passed" else verdict.word
    again = ", after the one repeat" if len(verdict.runs) > 1 else ""
    return {**document, "reported": f"{run.decks:,} decks{again}, {least}, {len(run.rejected)} rejected"}


def run_replicates(parameters: Mapping[str, Any], reported: Reported) -> Result:
    """Whether the p-values of continuous tests are uniform over independent samples."""
    sizes = (parameters[name] for name in ("replicates", "decks", "alpha"))
    second = battery.replicate(source_of(parameters), *sizes, engine=engine_of(parameters), reported=reported)
    rejected = len(second.rejected)
    return {
        "verdict": second.word,
        "reported": f"{len(second.p_values)} tests over {second.replicates} samples of {second.decks:,} decks, "
        f"{rejected} not uniform",
        **asdict(second),
    }


def run_defects(parameters: Mapping[str, Any], reported: Reported) -> Result:
    """Every planted defect through the battery."""
    plantings = planting.plant(parameters["which"], engine=engine_of(parameters), reported=reported)
    caught = sum(row.is_caught for row in plantings)
    return {**planting.document(plantings), "reported": f"{caught} of {len(plantings)} planted defects caught"}


# --- SP 800-22, and programs of others ---


def run_sp800_22(parameters: Mapping[str, Any], reported: Reported) -> Result:
    """All fifteen tests on so many sequences of 10^6 bits of raw output."""
    count: int = parameters["sequences"]
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "raw.bin"
        _write_raw(source_of(parameters), path, count * _SEQUENCE_BITS // 8, reported)
        values = _sequences(path, count, reported)
    verdict = levels.judge(values, parameters["alpha"])
    families = [{**asdict(family), "floor": family.floor} for family in verdict.families]
    applicable = sum(family.applicable > 0 for family in verdict.families)
    return {
        "verdict": "not run" if verdict.word == "passed" and applicable < len(families) else verdict.word,
        "reported": f"{count:,} sequences of {_SEQUENCE_BITS:,} bits, {applicable} of {len(families)} tests"
        f" applicable, {len(verdict.rejected)} rejected",
        "bits": _SEQUENCE_BITS,
        "sequences": count,
        "constants": suite.CORRECTED.name,
        "judged": {**asdict(verdict), "families": families},
        "p_values": {
            f"{value.test} {value.part}".strip(): [sequence[place].p for sequence in values]
            for place, value in enumerate(values[0])
        }
        if count == 1
        else {},
    }


def _write_raw(source: DeckSource, path: Path, count: int, reported: Reported) -> None:
    """Write raw output. A production source is asked piece by piece; a seeded one would repeat itself."""
    with path.open("wb") as file:
        if isinstance(source, Seeded):
            file.write(source.raw(count))
            return
        for done in range(0, count, _PIECE):
            file.write(source.raw(min(_PIECE, count - done)) or b"")
            reported("raw bytes", done, count)


def _sequences(path: Path, count: int, reported: Reported) -> list[list[suite.PValue]]:
    """The p-values of each sequence. In this process: a sequence takes less than a tenth of a second."""
    values = []
    for bits in reading.read_sequences(path, "raw", _SEQUENCE_BITS, count):
        values.append(timed(bits, suite.CORRECTED)[0])
        reported("sequences", len(values), count)
    return values


def run_programs(parameters: Mapping[str, Any], reported: Reported) -> Result:
    """The batteries of others that are on PATH; none where the plan leaves them out."""
    megabytes: int = parameters["megabytes"]
    if not megabytes:
        left_out = ("not run", "left out by this plan")
        outcomes = [programs.ProgramOutcome(program.name, *left_out) for program in programs.PROGRAMS]
    else:
        outcomes = programs.run_all(megabytes, reported=reported)
    words = [outcome.word for outcome in outcomes]
    reported_words = ", ".join(f"{words.count(word)} {word}" for word in programs.WORDS)
    document = programs.document(outcomes)
    if document["verdict"] == "passed" and "not run" in words:
        document["verdict"] = "not run"  # some did: what is told names them, and the whole is not called passed
    return {**document, "reported": reported_words, "megabytes": megabytes}


def engine_of(parameters: Mapping[str, Any]) -> EngineChoice:
    """So many processes here: 0 is as many as there are cores."""
    return EngineChoice(workers=int(parameters["workers"]) or os.cpu_count() or 1)
