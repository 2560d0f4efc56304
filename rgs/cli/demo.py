"""`rgs demo`: a fresh home, a server, hundreds of rounds over mutual TLS, then the proof.

Every part is the real one: `rgs init`, `rgs serve` as a process of its own, gRPC with certificates, `rgs export`, and
`certify replay` over the exported files alone. Exit 0 only if all of it holds. What it used and found stays in the
evidence folder (`rgs.cli.evidence`).

Refuses to reuse a former home, to share a store, and to call a part of the proof good that was not made.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from rgs.cli.client import CallError, Client, Identity
from rgs.cli.demo_checks import verify_export, verify_history, verify_keys, verify_wallet
from rgs.cli.demo_player import DemoError, DemoPlayer, PlayedSession
from rgs.cli.demo_report import Proof, Steps, report
from rgs.cli.evidence import Evidence, claim
from rgs.cli.files import PUBLIC_MODE, write_new
from rgs.cli.keyring import read_bundle, read_fingerprint
from rgs.cli.server_process import ServerProcess
from rgs.cli.terminal import open_console
from rgs.config import load_config
from rgs.core.errors import InvalidFieldError, RgsError

FOLDER: Final = Path("var/demo")
GAMES: Final = ("uth-solo", "casino-holdem")
PARTY: Final = "demo-operator"
ROUNDS: Final = 400
SESSIONS: Final = 16
SESSIONS_MAX: Final = 64
COMMAND_S: Final = 300
"""No command of the demo may take longer."""


def demo(
    rounds: Annotated[int, typer.Option(help="Rounds of each game.", min=1)] = ROUNDS,
    sessions: Annotated[
        int, typer.Option(help="Concurrent sessions, both games together.", min=len(GAMES), max=SESSIONS_MAX)
    ] = SESSIONS,
    home: Annotated[Path, typer.Option(help="The folder of the evidence; made anew.", file_okay=False)] = FOLDER,
) -> int:
    """Play hundreds of rounds against a server of its own, replay them offline, and show what is proved."""
    if rounds * len(GAMES) < sessions:
        raise InvalidFieldError("fewer rounds than sessions", field="rounds", limit=sessions, value=rounds)
    console = open_console()
    console.print("\n  [bold]A remote game server, from nothing to proof[/]\n")
    steps = Steps(console)
    with claim(home) as evidence:
        try:
            _demo(evidence, steps, rounds, sessions)
        except (RgsError, CallError) as error:
            steps.failed(error, evidence)
            return 1
    console.print(f"\n  [bold green]All of it holds.[/] [dim]{steps.elapsed_s:.1f} s[/]")
    return 0


def _demo(evidence: Evidence, steps: Steps, rounds: int, sessions: int) -> None:
    with steps.step("development CA, certificates, keys and store"):
        _run("rgs", "init", "--home", str(evidence.home))
        config = load_config(evidence.home)
        root = read_fingerprint(config.keys)
        write_new(evidence.keys, read_bundle(config.keys), PUBLIC_MODE)
        write_new(evidence.root, f"{root}\n".encode("ascii"), PUBLIC_MODE)
    with steps.step("server") as step:
        server = ServerProcess(evidence.home, evidence.server, PARTY)
        step.what = f"server at {server.address}, mutual TLS"
        server.await_serving()
    with server, Client(server.address, Identity.of_party(config, PARTY)) as client:
        try:
            played, listed = _live(client, evidence, steps, rounds, sessions)
        except CallError:
            server.verify_running()  # says more than that nobody answers
            raise
        with steps.step("server stopped by SIGTERM, its last statement signed"):
            server.stop()
    with steps.step("export of the statements") as step:
        _run("rgs", "export", "--home", str(evidence.home), "--out", str(evidence.statements))
        compared = verify_export(evidence.statements, played)
        step.what = f"export of the statements, {compared} compared with those received"
    with steps.step("wallet compared with the sessions"):
        moved_minor = verify_wallet(config.wallet, played)
    with steps.step("replay offline, from the exported files alone"):
        replay = replay_offline(evidence, root)
        verify_replay(replay, played)
    report(steps.console, evidence, played, Proof(compared, listed, moved_minor, replay), root)


def _live(
    client: Client, evidence: Evidence, steps: Steps, rounds: int, sessions: int
) -> tuple[list[PlayedSession], int]:
    """What is done while the server runs: the sessions, and how many rounds the histories list."""
    total = rounds * len(GAMES)
    with steps.step(f"{total} rounds in {sessions} sessions at once, half on the Play stream", total) as step:
        played = _play(client, rounds, sessions, step.advance)
    with steps.step("keys and histories compared with what is known"):
        verify_keys(client, evidence.keys)
        listed = verify_history(client, played)
    return played, listed


def _play(client: Client, rounds: int, sessions: int, told: Callable[[], None]) -> list[PlayedSession]:
    """All players at once; the first failure stops the others."""
    failed = threading.Event()

    def advance() -> None:
        if failed.is_set():
            raise DemoError("stopped, because another session failed")
        told()

    with ThreadPoolExecutor(sessions, thread_name_prefix="player") as pool:
        plays = [pool.submit(player.play, share, advance) for player, share in _players(client, rounds, sessions)]
        try:
            for play in as_completed(plays):
                play.result()
        except BaseException:
            failed.set()
            raise
    return [session for play in plays for session in play.result()]


def _players(client: Client, rounds: int, sessions: int) -> list[tuple[DemoPlayer, int]]:
    """The players with their shares of the rounds: of each game, half by unary calls and half on the stream."""
    players = []
    for game_no, game in enumerate(GAMES):
        count = (sessions + len(GAMES) - 1 - game_no) // len(GAMES)
        for number in range(count):
            share = rounds // count + (number < rounds % count)
            by_stream = (number + game_no) % 2 == 1
            players.append((DemoPlayer(client, game, f"player-{game}-{number + 1}", by_stream=by_stream), share))
    return players


def replay_offline(evidence: Evidence, root: str) -> Mapping[str, Any]:
    """The summary of `certify replay` over the exported files."""
    files = (str(evidence.statements), "--keys", str(evidence.keys), "--root", root)
    said = _run("certification", "replay", *files, "--json", may_fail=True)
    write_new(evidence.replay, said.encode("utf-8"), PUBLIC_MODE)
    documents = [json.loads(line) for line in said.splitlines()]
    for document in documents:
        if "failure" in document:
            failure = document["failure"]
            raise DemoError(f"replay: check {failure['check']}: {failure['message']} ({failure['place']})")
    if not documents or "summary" not in documents[-1]:
        raise DemoError("the replay has not come to its summary")
    summary: Mapping[str, Any] = documents[-1]["summary"]
    return summary


def verify_replay(summary: Mapping[str, Any], played: list[PlayedSession]) -> None:
    """DemoError unless the replay has seen exactly what was played, anchored, and every draw of it."""
    rounds = sum(len(session.rounds) for session in played)
    due = {
        "verdict": "ANCHORED",
        "failures": 0,
        "rounds_verified": rounds,
        "rounds_failed": 0,
        "rounds_open": 0,
        "sessions": len(played),
        "draws_in_rounds": rounds,
        "draws_exposed": 0,
        "is_cut": False,
        "staked_minor": {"EUR": sum(session.view.staked_minor for session in played)},
        "returned_minor": {"EUR": sum(session.view.returned_minor for session in played)},
    }
    for name, value in due.items():
        if summary.get(name) != value:
            raise DemoError(f"replay: {name} is {summary.get(name)}, expected is {value}")


def _run(module: str, *arguments: str, may_fail: bool = False) -> str:
    """What a command of ours wrote to stdout. DemoError if it fails, or with `may_fail` if it wrote nothing."""
    name = f"`{module} {arguments[0]}`"
    try:
        done = subprocess.run(  # noqa: S603 - our own commands
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise DemoError(f"{name} did not end within {COMMAND_S} s") from None
    if done.returncode and not (may_fail and done.stdout):
        said = (done.stderr.strip() or done.stdout.strip() or "nothing").splitlines()[-1]
        raise DemoError(f"{name} ended with status {done.returncode}; it said last: {said}")
    return done.stdout


def main(arguments: list[str], _manifest: Any) -> int:
    """Run the command; the exit status."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(demo)
    status = typer.main.get_command(app).main(args=arguments, prog_name="rgs demo", standalone_mode=False)
    return status if isinstance(status, int) else 0
