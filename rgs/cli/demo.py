"""`rgs demo`: a fresh home, a server between two misbehaving peers, hundreds of rounds over mutual TLS, then the proof.

Every part is the real one: `rgs init`, `rgs simulate`, `rgs serve` as processes of their own, gRPC with certificates,
`rgs export`, and over the files alone `certify replay` and `rgs reconcile`: once while the faults are on, to show what
is open then, and once at the end, where nothing may be; and `certify log` over the transparency log, watched by a
witness of the house's own. Exit 0 only if all of it holds. What it used and found stays in the evidence folder
(`rgs.devkit.demo.evidence`).

Refuses to reuse a former home, to share a store, and to call a part of the proof good that was not made.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rgs.core.errors import InvalidFieldError, RgsError
from rgs.devkit.client import CallError
from rgs.devkit.demo.demo import FOLDER, GAMES, ROUNDS, SESSIONS, SESSIONS_MAX, SESSIONS_MIN, play_and_prove
from rgs.devkit.demo.evidence import claim
from rgs.devkit.demo.report import Steps
from rgs.devkit.terminal.terminal import open_console


def demo(
    rounds: Annotated[int, typer.Option(help="Rounds of each game.", min=1)] = ROUNDS,
    sessions: Annotated[
        int, typer.Option(help="Concurrent sessions, both games together.", min=SESSIONS_MIN, max=SESSIONS_MAX)
    ] = SESSIONS,
    home: Annotated[Path, typer.Option(help="The folder of the evidence; made anew.", file_okay=False)] = FOLDER,
) -> int:
    """Play between misbehaving peers; replay, reconcile and audit it, from files alone; show what is proved."""
    if rounds * len(GAMES) < sessions:
        raise InvalidFieldError("fewer rounds than sessions", field="rounds", limit=sessions, value=rounds)
    console = open_console()
    console.print("\n  [bold]A remote game server, from nothing to proof[/]\n")
    steps = Steps(console)
    with claim(home) as evidence:
        try:
            play_and_prove(evidence, steps, rounds, sessions)
        except (RgsError, CallError) as error:
            steps.failed(error, evidence)
            return 1
    console.print(f"\n  [bold green]All of it holds.[/] [dim]{steps.elapsed_s:.1f} s[/]")
    return 0


def main(arguments: list[str], _manifest: Any) -> int:
    """Run the command; the exit status."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(demo)
    status = typer.main.get_command(app).main(args=arguments, prog_name="rgs demo", standalone_mode=False)
    return status if isinstance(status, int) else 0
