"""`rgs demo`: plays hundreds of rounds between misbehaving peers, and an evening at two tables, and proves them from
files alone.

Every part is real: a new home (`rgs init`), `rgs simulate` and `rgs serve` as processes, gRPC with certificates,
`rgs export`, then `certify replay` and `rgs reconcile` over the files alone. It reconciles copies made while the faults
are on, to show the open breaks, and all files at the end, when there must be none. `certify log` checks the
transparency log, which a witness of the demo has cosigned. The exit status is 0 only if everything holds. All inputs
and results stay in the evidence folder (`rgs.devkit.demo.evidence`), which must not exist before.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rgs.cli.options import new_app
from rgs.core.errors import InvalidFieldError, RgsError
from rgs.devkit.client import CallError
from rgs.devkit.demo.demo import FOLDER, GAMES, ROUNDS, SESSIONS, SESSIONS_MAX, SESSIONS_MIN, play_and_prove
from rgs.devkit.demo.evening import PLAYERS_MIN
from rgs.devkit.demo.evidence import claim
from rgs.devkit.demo.report import Steps
from rgs.devkit.demo.tables import PLAYERS, PLAYERS_MAX
from rgs.devkit.terminal.terminal import open_console

app = new_app()


@app.command()
def demo(
    rounds: Annotated[int, typer.Option(help="Rounds of each game.", min=1)] = ROUNDS,
    sessions: Annotated[
        int, typer.Option(help="Concurrent sessions, both games together.", min=SESSIONS_MIN, max=SESSIONS_MAX)
    ] = SESSIONS,
    players: Annotated[
        int, typer.Option(help="Players at the table with one hand for all.", min=PLAYERS_MIN, max=PLAYERS_MAX)
    ] = PLAYERS,
    home: Annotated[Path, typer.Option(help="The folder of the evidence; made anew.", file_okay=False)] = FOLDER,
) -> int:
    """Play between misbehaving peers; replay, reconcile and audit it, from files alone; show what is proved."""
    if rounds * len(GAMES) < sessions:
        raise InvalidFieldError(
            "the rounds of all games must be at least as many as the sessions", field="rounds", limit=sessions,
            value=rounds,
        )  # fmt: skip
    console = open_console()
    console.print("\n  [bold]A remote game server, from nothing to proof[/]\n")
    steps = Steps(console)
    with claim(home) as evidence:
        try:
            play_and_prove(evidence, steps, rounds, sessions, players)
        except (RgsError, CallError) as error:
            steps.failed(error, evidence)
            return 1
    console.print(f"\n  [bold green]All of it holds.[/] [dim]{steps.elapsed_s:.1f} s[/]")
    return 0
