"""The steps about the software: its manifest, the tests of the clauses, mutation testing, what it is made of.

Other programs do the work and leave their answer: `certify manifest`, pytest, and `tools/mutants.py` with its file. A
program that did not run, or left no answer, is not run, never passed.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from certification import mutants
from certification.dossier.sbom import make_sbom, validate_sbom
from certification.dossier.work import ROOT, Result, not_run
from certification.statistics.progress import Reported

_TIMEOUT_S: Final = 3600


def run_manifest(_parameters: Mapping[str, Any], _reported: Reported) -> Result:
    """The manifest of what is certified, as `certify manifest --json` prints it."""
    command = [sys.executable, "-m", "certification", "manifest", "--json"]
    done = subprocess.run(  # noqa: S603
        command, cwd=ROOT, env=_plain(), capture_output=True, timeout=_TIMEOUT_S, check=False
    )
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        return {"verdict": "failed", "reported": said[-1] if said else "no manifest", "files": []}
    document = json.loads(done.stdout)
    digest = hashlib.sha256(done.stdout).hexdigest()
    certified = [row for row in document["files"] if row["class"] != "none"]
    return {
        "verdict": "passed",
        "reported": f"{len(document['files'])} files, {len(certified)} of a certified class; SHA-256 {digest[:16]}…",
        "sha256": digest,
        "content": done.stdout.decode(),
        "files": certified,
        "others": len(document["files"]) - len(certified),
        **{name: document[name] for name in ("modules", "rulesets", "jurisdictions", "schema", "contract", "versions")},
    }


# --- tests ---


def run_tests(parameters: Mapping[str, Any], _reported: Reported) -> Result:
    """Run these tests in a process of their own; what each came to, by the file that pytest writes."""
    nodes: Sequence[str] = parameters["tests"]
    if not (ROOT / "tests").is_dir():
        return not_run("the tests are not part of this installation", tests={})
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "junit.xml"
        processes = "auto" if not parameters["workers"] else str(parameters["workers"] - 1)  # 0: pytest's own
        command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", processes, "--timeout", "900"]
        command += ["-o", "junit_family=xunit1", f"--junitxml={report}", *nodes]
        done = subprocess.run(  # noqa: S603
            [sys.executable, *command], cwd=ROOT, env=_plain(), capture_output=True, timeout=_TIMEOUT_S, check=False
        )
        cases = read_junit(report.read_bytes()) if report.is_file() else []
    found = outcomes(nodes, cases)
    words = [row["word"] for row in found.values()]
    counted = {word: words.count(word) for word in ("passed", "failed", "not run")}
    cases_run = sum(row["cases"] for row in found.values())
    verdict = "failed" if counted["failed"] or done.returncode else "not run" if counted["not run"] else "passed"
    return {
        "verdict": verdict,
        "reported": f"{counted['passed']} of {len(nodes)} tests passed ({cases_run} cases), {counted['failed']} failed,"
        f" {counted['not run']} not run",
        "tests": found,
        "said": [] if verdict == "passed" else done.stdout.decode(errors="replace").splitlines()[-15:],
    }


def read_junit(content: bytes) -> list[tuple[str, str]]:
    """(file::function, passed | failed | not run) of each case of a report that our own pytest wrote."""
    cases = []
    for case in ET.fromstring(content).iter("testcase"):  # noqa: S314 - the file was written a moment ago
        name = f"{case.get('file', '')}::{(case.get('name') or '').partition('[')[0]}"
        failed = case.find("failure") is not None or case.find("error") is not None
        word = "failed" if failed else "not run" if case.find("skipped") is not None else "passed"
        cases.append((name, word))
    return cases


def outcomes(nodes: Sequence[str], cases: Sequence[tuple[str, str]]) -> dict[str, dict[str, Any]]:
    """What each test came to: failed if one of its cases did, passed if all ran and passed, else not run."""
    found: dict[str, dict[str, Any]] = {}
    for node in nodes:
        words = [word for name, word in cases if name == node]
        word = "failed" if "failed" in words else "passed" if words and set(words) == {"passed"} else "not run"
        found[node] = {"word": word, "cases": len(words)}
    return found


def _plain() -> dict[str, str]:
    """The environment without what an outer run of pytest or a measurement of coverage has put there."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_", "COVERAGE_"))}
    return {**kept, "PYTHONPATH": str(ROOT)}


# --- mutants, and what the software is made of ---


def run_mutants(_parameters: Mapping[str, Any], _reported: Reported) -> Result:
    """What mutation testing left (docs/mutation.md). Not run: nothing, a sample, a run over other bytes than these."""
    if not (ROOT / mutants.RESULT).is_file():
        return not_run("mutation testing has left no result here", targets=[])
    document = mutants.read(ROOT)
    targets, stale = document["targets"], mutants.stale(document, ROOT)
    made, killed, timeouts = (sum(int(target[name]) for target in targets) for name in ("mutants", "killed", "timeout"))
    survived = [row for target in targets for row in target["survived"]]
    unexplained = sum(not row["why"] for row in survived)
    said = {f"{len(stale)} files are others since, or were left out": stale, "a sample only": document["sample"]}
    missing = [text for text, holds in said.items() if holds]
    counts = f"{killed + timeouts:,} of {made:,} mutants noticed, {len(survived)} survived, {unexplained} unexplained"
    return {
        **document,
        "verdict": "failed" if unexplained else "not run" if missing or not made else "passed",
        "reported": "; ".join((counts, *missing)),
        "stale": stale,
    }


def run_sbom(_parameters: Mapping[str, Any], _reported: Reported) -> Result:
    """The software bill of materials, from the locks and what is installed."""
    if not (ROOT / "requirements").is_dir():
        return not_run("the locks are not part of this installation", document={})
    document = make_sbom(ROOT)
    faults = validate_sbom(document)
    components = document["components"]
    unknown = [part["name"] for part in components if not part.get("licenses")]
    installed = sum(property_of(part, "rgs:installed") == "yes" for part in components)
    return {
        "verdict": "failed" if faults else "passed",
        "reported": f"{len(components)} components, {installed} installed here, {len(unknown)} without a known licence",
        "document": document,
        "faults": faults,
        "without_licence": unknown,
    }


def property_of(component: Mapping[str, Any], name: str) -> str:
    """The value of a component's property, empty if it has none of this name."""
    return next((row["value"] for row in component.get("properties", ()) if row["name"] == name), "")
