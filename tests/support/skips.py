"""How many tests were skipped, and why, in words: at the end of a run, and over both runs of `make test`.

`make test` names a file with RGS_SKIPS, each run adds its skips to it, and `python -m tests.support.skips FILE` prints
them as the last lines. A skip is for what the README calls optional; whatever else a machine lacks fails.

`.ci/run` names the packages that it has installed with RGS_INSTALLED. A test that needs one of them and is skipped then
fails: nothing is left out of a run that was set up for it.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

SETTING = "RGS_SKIPS"
INSTALLED = "RGS_INSTALLED"
NEEDED_FOR = {
    "golang-go": r"\bno Go here",
    "golang-golang-x-mod-dev": r"golang\.org/x/mod is not here",
    "golang-google-grpc-dev": r"gRPC for Go is not here",
    "softhsm2": r"\bSoftHSM2\b",
    "dieharder": r"\bdieharder is not on PATH",
    "rng-tools5": r"\brngtest is not on PATH",
    "prometheus": r"\bpromtool is missing",
    "nginx-light": r"\bnginx is not installed",
    "systemd": r"\bsystemd is not installed",
    "caddy": r"\bcaddy is not installed",
    "postgresql": r"\bPostgreSQL with TLS is not installed",
    "grpcurl": r"\bno grpcurl here",
    "chromium": r"\bno Chromium\b|\bPlaywright is not installed|\bthe page is not built",
    "nodejs": r"\bNode\b|\bnode and npm\b|\bmake sdk\b",
}
"""A package of Debian, and what the reason of a skip says where the test needs it."""


def reason_of(report: Any) -> str:
    """Why a test was skipped, without pytest's own words."""
    _, _, said = report.longrepr
    return str(said).removeprefix("Skipped: ")


def verify_allowed(report: Any) -> None:
    """Make the report of a test that was skipped one of a failure, if `.ci/run` has installed what the test needs."""
    if not report.skipped or hasattr(report, "wasxfail"):
        return
    reason = reason_of(report)
    for package in os.environ.get(INSTALLED, "").split():
        if package in NEEDED_FOR and re.search(NEEDED_FOR[package], reason):
            report.outcome = "failed"
            report.longrepr = f"This test was skipped although {package} is installed. The reason: {reason}"
            return


def lines(reasons: Iterable[str]) -> list[str]:
    """The number of skipped tests, then each reason with its own."""
    counted = Counter(reasons)
    if not counted:
        return ["0 tests were skipped."]
    total = counted.total()
    head = "1 test was skipped" if total == 1 else f"{total} tests were skipped"
    return [f"{head}, each for something optional that is not here:"] + [
        f"  {number} x  {reason}" for reason, number in sorted(counted.items())
    ]


def emit(reporter: Any) -> None:
    """At the end of one run, for `make test` or for who sits before it."""
    reasons = [reason_of(report) for report in reporter.stats.get("skipped", [])]
    if SETTING in os.environ:
        with Path(os.environ[SETTING]).open("a", encoding="utf-8") as file:
            file.writelines(f"{reason}\n" for reason in reasons)
    else:
        for line in lines(reasons):
            reporter.write_line(line)


if __name__ == "__main__":
    print("\n".join(lines(Path(sys.argv[1]).read_text("utf-8").splitlines())))  # noqa: T201 - that is its job
