"""How many tests were skipped, and why, in words: at the end of a run, and over both runs of `make test`.

`make test` names a file with RGS_SKIPS, each run adds its skips to it, and `python -m tests.support.skips FILE` prints
them as the last lines. A skip is for what the README calls optional; whatever else a machine lacks fails.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

SETTING = "RGS_SKIPS"


def reason_of(report: Any) -> str:
    """Why a test was skipped, without pytest's own words."""
    _, _, said = report.longrepr
    return str(said).removeprefix("Skipped: ")


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
