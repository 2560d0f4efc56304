"""The demo's output: a line for each step, then tables of what was played and what is proved.

All figures come from the players' receipts, the reports of replay, reconciliation and audit, and the peers' output.
"""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.table import Table
from rich.text import Text

from rgs.core.amounts import format_money
from rgs.devkit.demo.evidence import Evidence
from rgs.devkit.demo.log import command as log_command
from rgs.devkit.demo.player import CURRENCY, PlayedSession
from rgs.devkit.demo.reconcile import Found, command
from rgs.devkit.demo.tables import Tables
from rgs.devkit.terminal.screen import table_of

_STEP_WIDTH: Final = 68
_BAR: Final = 24
_FAULTS_A_LINE: Final = 4


@dataclass(frozen=True, slots=True)
class Proof:
    """The numbers of statements, rounds and minor units compared; the summary of `certify replay --json`; both
    reconciliations; the report of `certify log --json`; the peers' faults; the number of repeated requests.
    """

    statements: int
    listed_rounds: int
    wallet_minor: int
    replay: Mapping[str, Any]
    midway: Found
    end: Found
    audit: Mapping[str, Any]
    faults: Mapping[str, int]
    repeats: int


class Steps:
    """The demo's steps, one line each; in a terminal a long step has a bar."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._began = time.monotonic()

    @contextmanager
    def step(self, what: str, total: int | None = None) -> Iterator[DemoStep]:
        """One step: when it is done, a line with its seconds."""
        began = time.monotonic()
        columns = (BarColumn(_BAR), MofNCompleteColumn()) if total else ()
        with Progress(
            TextColumn("  … {task.description}"),
            *columns,
            console=self.console,
            transient=True,
            disable=not self.console.is_terminal,
        ) as progress:
            step = DemoStep(what, progress, progress.add_task(what, total=total))
            yield step
        line = Text.assemble(("  ✓ ", "green"), step.what)
        line.append(" " * max(1, _STEP_WIDTH - len(line)))
        self.console.print(line.append(f"{time.monotonic() - began:6.1f} s", "dim"))

    def failed(self, error: Exception, evidence: Evidence) -> None:
        """The error, and the files to look at."""
        self.console.print(Text(f"  ✗ {error}", "bold red"))
        log = evidence.home / "log" / "rgs.log"
        for path, what in (
            (evidence.server, "output of the server"),
            (log, "its log"),
            (evidence.wallet_said, "output of the wallet"),
            (evidence.regulator_said, "output of the regulator"),
            (evidence.witness_said, "output of the witness"),
            (evidence.replay, "the replay"),
            (evidence.reconciliation / "report.html", "the reconciliation"),
        ):
            if path.exists():
                self.console.print(Text(f"    look at {path}: {what}", "dim"), soft_wrap=True)

    @property
    def elapsed_s(self) -> float:
        """Seconds since the first step."""
        return time.monotonic() - self._began


class DemoStep:
    """A step that runs; `what` may become more exact meanwhile."""

    def __init__(self, what: str, progress: Progress, task: TaskID) -> None:
        self.what = what
        self._progress = progress
        self._task = task

    def advance(self) -> None:
        """One more is done."""
        self._progress.advance(self._task)


def report(
    console: Console,
    evidence: Evidence,
    sessions: Sequence[PlayedSession],
    tables: Tables,
    proof: Proof,
    root: str,
) -> None:
    """What was played and what is proved."""
    console.print()
    console.print(_games([session for session in sessions if not session.view.table]))
    console.print()
    console.print(_evenings(tables))
    console.print(Text("     So few rounds say nothing about the return of the games.", "dim"))
    console.print()
    console.print(_rows(" ", *_happened(tables.counts())))
    for table in (_sample(sessions[0]), _breaks(proof), _proved(proof, root)):
        console.print()
        console.print(table)
    console.print()
    console.print(Text(f"  Evidence in {evidence.folder}. Once more, from the files alone:", "dim"))
    replay = ("certification", "replay", str(evidence.statements), "--keys", str(evidence.keys), "--root", root)
    again = command(evidence, root, evidence.folder.with_name("reconciliation"))
    for arguments in (replay, again, log_command(evidence, root)):
        console.print(Text(f"  {shlex.join([_python(), '-m', *arguments])}", "dim"), soft_wrap=True)


def _python() -> str:
    """This Python, relative to the current folder if it lies below."""
    python, here = Path(sys.executable), Path.cwd()
    return str(python.relative_to(here) if python.is_relative_to(here) else python)


def _games(sessions: Sequence[PlayedSession]) -> Table:
    figures = ("rounds", "folded", "side bets", f"staked {CURRENCY}", f"returned {CURRENCY}")
    table = table_of("   ", "game", right=figures)
    for game in dict.fromkeys(session.game for session in sessions):
        _add_game(table, [session for session in sessions if session.game == game])
    _add_game(table, sessions, "together")
    return table


def _add_game(table: Table, sessions: Sequence[PlayedSession], together: str = "") -> None:
    rounds = [round_ for session in sessions for round_ in session.rounds]
    table.add_row(
        "",
        Text(together, "bold") if together else sessions[0].view.game_name,
        str(len(rounds)),
        str(sum(round_.has_folded for round_ in rounds)),
        str(sum(round_.has_side_bet for round_ in rounds)),
        *_amounts(sessions),
    )


def _evenings(tables: Tables) -> Table:
    figures = ("rounds", "seats", "automatic", "void", f"staked {CURRENCY}", f"returned {CURRENCY}")
    table = table_of("   ", "table", right=figures)
    for evening in tables.evenings:
        counts = (str(evening.counts[name]) for name in ("rounds", "seats", "automatic", "void"))
        sessions = [session for player in evening.players for session in player.sessions]
        table.add_row("", evening.table, *counts, *_amounts(sessions))
    return table


def _happened(counts: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """What went wrong at the tables."""
    yield (
        "at tables",
        f"{counts['left before red']} left before red, bets returned; {counts['left after red']} after it",
    )
    yield "", f"{counts['devices replaced']} seats taken over by another device, {counts['pauses']} pauses"
    yield "", f"{counts['late']} bets or decisions too late, {counts['void']} round void by two admins"


def _amounts(sessions: Sequence[PlayedSession]) -> Iterator[str]:
    """What the sessions have staked, and what was returned."""
    for name in ("staked_minor", "returned_minor"):
        amount = sum(getattr(session.view, name) for session in sessions)
        yield format_money(amount, CURRENCY).removesuffix(f" {CURRENCY}")


def _sample(session: PlayedSession) -> Table:
    view, round_ = session.view, session.rounds[-1].view
    regulator = "test regulator, not a real one" if view.test_regulator else "regulator"
    return _rows(
        " ",
        ("a session", view.session_id),
        ("its ids", f"session {view.regulator_session_id}, participation {view.regulator_participation_id}"),
        ("", f"({regulator})"),
        ("last round", f"{round_.game_code}, {round_.round_id}"),
        ("commitment", f"{round_.commitment.hex()[:48]}…"),
    )


def _breaks(proof: Proof) -> Table:
    """The open breaks while both peers were silent, and at the end."""
    midway, end = proof.midway.open_by_title(), proof.end.open_by_title()
    table = table_of("   ", "open breaks, by reconciliation", right=("midway", "at the end"))
    for title in dict.fromkeys((*midway, *end)):
        table.add_row("", title, str(midway.get(title, 0)), str(end.get(title, 0)))
    table.add_row("", Text("together", "bold"), str(proof.midway.open_breaks), str(proof.end.open_breaks))
    return table


def _proved(proof: Proof, root: str) -> Table:
    replay = proof.replay
    in_rounds, discarded, unknown = (replay[f"draws_{what}"] for what in ("in_rounds", "discarded", "exposed"))
    verified, failed = replay["rounds_verified"], replay["rounds_failed"]
    counts = proof.end.document["compared"]
    books = f"{counts['wallet']} wallet rows, {counts['r_stages']} stages, {counts['receipts']} receipts"
    development = " (development keys)" if replay["has_development_keys"] else ""
    return _rows(
        "✓",
        ("received", f"{proof.statements} statements over gRPC, byte for byte those of the export"),
        ("history", f"{proof.listed_rounds} rounds listed, one of each session found by date and code"),
        *_faults(proof.faults),
        ("again", f"{proof.repeats} requests sent again, each under the id that it had"),
        ("wallet", f"moved {format_money(proof.wallet_minor, CURRENCY, signed=True)}, as the sessions come to"),
        ("draws", f"{in_rounds} in rounds, {discarded} discarded, {unknown} unknown"),
        ("replay", f"{verified} rounds verified, {failed} failed, {replay['verdict']}{development}"),
        ("books", f"{books}: {proof.end.document['verdict']}"),
        ("log", f"{proof.audit['checkpoint']['size']} entries: {proof.audit['verdict']}"),
        ("root", root),
    )


def _faults(faults: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """The peers' faults, the most frequent first, four on each line."""
    ordered = sorted(faults.items(), key=lambda row: (-row[1], row[0]))
    result = [f"{count} {name.replace('_', ' ')}" for name, count in ordered]
    for first in range(0, len(result), _FAULTS_A_LINE):
        yield "" if first else "faults", ", ".join(result[first : first + _FAULTS_A_LINE])


def _rows(mark: str, *rows: tuple[str, str]) -> Table:
    table = Table.grid(padding=(0, 1))
    for name, value in rows:
        table.add_row(" ", Text(mark, "green"), Text(f"{name} ", "dim"), value)
    return table
