"""The demo's reconciliations by `rgs reconcile`: midway, and at the end over everything.

Both run over files alone, without key, home or server. The last one must be clean, take every row, and see every round
played.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rgs.adapters.embedded.books import receipt_line
from rgs.core.reconcile.classes import MEANINGS, BreakClass
from rgs.devkit.demo.evidence import Evidence
from rgs.devkit.demo.peers import Peers
from rgs.devkit.demo.player import DemoError, PlayedSession, rounds_of
from rgs.node.files import PUBLIC_MODE, make_folder, write_new

COMMAND_S: Final = 300
"""Timeout of a command of the demo."""
CLEAN, BREAKS = 0, 2
"""Exit statuses of `rgs reconcile`. With 1 it could not use all rows."""


@dataclass(frozen=True, slots=True)
class Found:
    """A reconciliation's exit status and report."""

    status: int
    document: Mapping[str, Any]

    @property
    def open_breaks(self) -> int:
        open_breaks: int = self.document["open"]
        return open_breaks

    def open_by_title(self) -> dict[str, int]:
        """Open breaks by class, in the order of urgency."""
        return {
            MEANINGS[BreakClass(row["class"])].title: row["open"] for row in self.document["classes"] if row["open"]
        }


def write_receipts(path: Path, sessions: Sequence[PlayedSession]) -> None:
    """Write the operator's receipts: one for each opening that it received."""
    lines = [receipt_line(round_.opening) for session in sessions for round_ in session.rounds]
    write_new(path, b"".join(lines), PUBLIC_MODE)


def copy_books(evidence: Evidence, peers: Peers, sessions: Sequence[PlayedSession]) -> Evidence:
    """Copy the books of all sides, as they are now, to the folder `midway`. Returns that folder."""
    so_far = Evidence(evidence.midway)
    make_folder(so_far.folder)
    for peer, copy in zip(peers, (so_far.wallet, so_far.regulator), strict=True):
        shutil.copyfile(peer.write_statement(), copy)
    shutil.copyfile(evidence.keys, so_far.keys)
    write_receipts(so_far.receipts, sessions)
    run_command("rgs", "export", "--home", str(evidence.home), "--out", str(so_far.statements))
    return so_far


def open_breaks(so_far: Evidence, root: str) -> Found:
    """Reconcile the copies. DemoError unless breaks are open: both peers were silent."""
    found = reconcile(so_far, root)
    if found.status != BREAKS:
        raise DemoError("nothing is open, although both peers were silent")
    return found


def reconcile(evidence: Evidence, root: str) -> Found:
    """Run `rgs reconcile` over the files of the folder. DemoError if it could not run."""
    done = run_command(*command(evidence, root), may_fail=True)
    return Found(done.returncode, json.loads((evidence.reconciliation / "report.json").read_bytes()))


def command(evidence: Evidence, root: str, out: Path | None = None) -> list[str]:
    """The arguments of `python -m` that make the report."""
    files = {
        "--statements": evidence.statements,
        "--keys": evidence.keys,
        "--root": root,
        "--receipts": evidence.receipts,
        "--wallet": evidence.wallet,
        "--regulator": evidence.regulator,
        "--out": out or evidence.reconciliation,
    }
    return ["rgs", "reconcile", *(str(part) for option in files.items() for part in option)]


def verify_clean(found: Found, sessions: Sequence[PlayedSession]) -> None:
    """DemoError unless all books were read and agree about everything played."""
    document = found.document
    rounds = rounds_of(sessions)
    due = {"verdict": "clean", "open": 0, "rejected": 0, "owed": {}}
    for name, value in due.items():
        if document[name] != value:
            still = ", ".join(f"{count} {title}" for title, count in found.open_by_title().items())
            raise DemoError(f"reconciliation: {name} is {document[name]}, expected is {value} ({still or 'no break'})")
    verified = document["verification"]
    seen = (verified["rounds_verified"], verified["sessions"], document["key_path"]["anchored"])
    if found.status != CLEAN or seen != (rounds, len(sessions), True):
        raise DemoError(f"reconciliation: saw {seen}, expected is {(rounds, len(sessions), True)}")
    if {row["source"] for row in document["inputs"]} != {"statements", "receipts", "wallet", "regulator"}:
        raise DemoError("reconciliation: a source is missing")


def run_command(module: str, *arguments: str, may_fail: bool = False) -> subprocess.CompletedProcess[str]:
    """Run a command of ours. DemoError if it fails; with `may_fail` only if it also writes nothing to stdout."""
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
        raise DemoError(f"{name} ended with status {done.returncode}; last line of its output: {said}")
    return done
