"""`rgs doctor`: checks a home before it serves, and says what is wrong and what to do (docs/doctor.md).

It changes nothing, and may run beside a server. Exit status: 0 nothing is wrong, 1 warnings only, 2 an error: do not
serve. What could not be checked, an option that is not understood too, is 2. With `--before-start` warnings are 0, and
what only others can put right is a warning.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Final

import typer

from rgs.cli.options import HOME, HomeOption, new_app
from rgs.node.doctor.checkup import check_home, worst
from rgs.node.doctor.findings import Finding, Level

app = new_app(help="Check a home before it serves.")

STATUS: Final = {Level.OK: 0, Level.WARNING: 1, Level.ERROR: 2}
FORMAT: Final = "rgs/doctor/v1"


@app.command()
def command(
    home: HomeOption = HOME,
    development: Annotated[
        bool, typer.Option("--development", help="Leave out what counts only where real money is played for.")
    ] = False,
    before_start: Annotated[
        bool,
        typer.Option(
            "--before-start",
            help="For whatever starts the server: status 0 with warnings, and what only others can put right is one.",
        ),
    ] = False,
    backups: Annotated[
        Path | None, typer.Option(help="The folder of the backups: is the newest one of last night?", file_okay=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document, for programs.")] = False,
) -> int:
    """Check settings, permissions, disks, keys, certificates, clock, store, log, allow-list and peers of a home."""
    findings = asyncio.run(
        check_home(home.absolute(), development=development, before_start=before_start, backups=backups)
    )
    level = worst(findings)
    status = 0 if before_start and level is Level.WARNING else STATUS[level]
    if as_json:
        document = {
            "format": FORMAT,
            "home": str(home.absolute()),
            "status": status,
            "findings": [asdict(one) for one in findings],
        }
        print(json.dumps(document, indent=1))
    else:
        _print(findings)
    return status


def _print(findings: list[Finding]) -> None:
    order = list(Level)
    for one in sorted(findings, key=lambda finding: -order.index(finding.level)):
        print(f"{one.level:<8}{one.check}: {one.what}" + (f" [{one.code}]" if one.level is not Level.OK else ""))
        facts = ", ".join(f"{name} {value}" for name, value in (("value", one.value), ("limit", one.limit)) if value)
        if facts:
            print(f"        {facts}")
        if one.do:
            print(f"        do: {one.do}")
    counts = {level: sum(one.level is level for one in findings) for level in Level}
    verdict = {0: "all is well", 1: "it can serve; somebody has to look", 2: "do not serve"}[STATUS[worst(findings)]]
    print(
        f"{verdict}: {counts[Level.ERROR]} errors, {counts[Level.WARNING]} warnings, {counts[Level.OK]} checks are fine"
    )
