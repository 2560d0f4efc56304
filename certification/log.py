"""`certify log LOG --policy FILE --state FILE --keys KEYS [--root FINGERPRINT]`: verifies a transparency log and every
record in it, from its files alone (docs/verify.md, section 7).

LOG is a folder or an http(s) address. The state file remembers what was verified: the next run reads what is new, and
notices a log that was rolled back or forked. Exit 0: no check failed; 1: a check failed, now or in an earlier run; 2:
usage, or nothing could be verified. Verdicts: ANCHORED or UNANCHORED as in replay; WITNESSED, or SELF-WITNESSED where
the quorum needs witnesses of the operator of the RGS, as the policy (`# self-witness NAME`) or `--self-witness` names
them. A policy whose quorum is `none` is a failed check.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from certification import replay
from certification.auditing import Auditor, LogAudit, measure_bare
from certification.cosigned import read_notes
from certification.engines import EngineError, add_engine_options, engine_of
from certification.log_report import document_of, render_html, rows_of
from certification.memory import format_state, parse_state
from certification.sources import SourceError, add_tls_options, open_source
from rgs.core.errors import FormatError, RgsError, VerificationError
from rgs.core.replay import Rulebook
from rgs.core.statements.lines import KEY_BUNDLE_BYTES_MAX
from rgs.core.times import parse_time
from rgs.core.tlog.policies import POLICY_BYTES_MAX, Policy, parse_policy, self_witnesses

STATE_BYTES_MAX: Final = 1 << 34
_SHOWN: Final = 50


@dataclass(frozen=True, slots=True)
class Trust:
    """A policy file, and which of its witnesses belong to the operator of the RGS."""

    policy: Policy
    own: frozenset[str]

    def verdict(self, witnessed: Sequence[str]) -> str:
        """Whether the quorum stands without the operator's own witnesses."""
        return "WITNESSED" if self.policy.is_met_by(set(witnessed) - self.own) else "SELF-WITNESSED"


def read_trust(path: Path, own: Sequence[str]) -> Trust:
    """The policy of a file. FileError."""
    data = replay.read_file(path, POLICY_BYTES_MAX)
    try:
        policy = parse_policy(data)
        named = self_witnesses(data) | set(own)
        if unknown := named - policy.witnesses.keys():
            raise replay.FileError(f"--self-witness {min(unknown)}: {path} names no such witness")
        return Trust(policy, named)
    except RgsError as error:
        raise replay.FileError(f"{path}: {error}") from error


class StateFile:
    """The auditor's memory on disk; beside it, while a run is under way, how far it has come (`.part`). Two runs at a
    time would take one's part for the other's end: `held` refuses the second.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._part = path.with_name(f"{path.name}.part")

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the file for this run. FileError where it cannot be made, or another run has it."""
        lock = self._path.with_name(f".{self._path.name}.lock")
        try:
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise replay.FileError(f"{lock}: {error.strerror}") from error
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise replay.FileError(f"{self._path}: another run uses this state") from None
            yield
        finally:
            os.close(descriptor)

    def read(self) -> dict[str, Any] | None:
        """The state; None at the first run. FormatError, FileError."""
        return parse_state(replay.read_file(self._path, STATE_BYTES_MAX)) if self._path.exists() else None

    def read_part(self) -> dict[str, Any] | None:
        """What an interrupted run left; None if it cannot be used."""
        try:
            return parse_state(replay.read_file(self._part, STATE_BYTES_MAX)) if self._part.exists() else None
        except (FormatError, ValueError):
            return None

    def save_part(self, document: dict[str, Any]) -> None:
        """Write it durably and whole, or not at all."""
        temporary = self._path.with_name(f".{self._path.name}.unfinished")
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.writelines(format_state(document))
                file.flush()
                os.fsync(file.fileno())
            self._rename(temporary, self._part)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise replay.FileError(f"{self._part}: {error.strerror}") from error

    def accept(self) -> None:
        """Make the last part the state; durable on return."""
        self._rename(self._part, self._path)

    @staticmethod
    def _rename(old: Path, new: Path) -> None:
        old.replace(new)
        descriptor = os.open(new.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def discard(self) -> None:
        """Delete the part: the log is not what its checkpoint says."""
        self._part.unlink(missing_ok=True)


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(f"{task.speed or 0:,.0f} records/s")


@contextmanager
def progress(what: str) -> Iterator[Progress]:
    """A bar with rate and time left, on stderr, for people."""
    console = Console(stderr=True)
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), _Rate(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        yield bar


def audit(options: argparse.Namespace, trust: Trust, rulebook: Rulebook) -> tuple[LogAudit, str]:
    """One run; the audit, and the fingerprint of the bundle's root. FileError, SourceError, FormatError."""
    file = StateFile(options.state)
    with file.held():
        state = file.read()
        now_s = time.time_ns() // 1_000_000_000 if options.now is None else parse_time(options.now) // 1000
        source = open_source(options.log, options)
        with progress("records") as bar:
            task = bar.add_task("records", total=None)
            auditor = Auditor(
                source=source,
                policy=trust.policy,
                bundle=replay.read_file(options.keys, KEY_BUNDLE_BYTES_MAX),
                root=options.root,
                rulebook=rulebook,
                own=trust.own,
                notes=read_notes(options.witnessed, trust.policy, trust.own),
                engine=engine_of(options),
                now_s=now_s,
                save=file.save_part,
                advance=lambda read, size: bar.update(task, completed=read, total=size),
                whole=options.whole,
            )
            found = auditor.run(state, file.read_part())
        if found.is_sound:
            file.accept()
        elif found.is_begun:
            file.discard()
        return found, auditor.root_found


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="certify log", description="Verify a transparency log and all its records.")
    parser.add_argument("log", metavar="LOG", help="the log: a folder, or an http(s) address")
    parser.add_argument("--policy", required=True, type=Path, help="whom you trust (C2SP tlog-policy)")
    parser.add_argument("--state", required=True, type=Path, help="your memory between runs; made where it is missing")
    parser.add_argument("--keys", required=True, type=Path, help="the key bundle")
    parser.add_argument(
        "--root", type=replay.fingerprint, metavar="FINGERPRINT", help="the root's, brought from outside"
    )
    parser.add_argument("--self-witness", action="append", default=[], metavar="NAME", help="the operator's witness")
    parser.add_argument(
        "--witnessed",
        action="append",
        default=[],
        type=Path,
        metavar="NOTE",
        help="a checkpoint that an outside witness has cosigned: the log must hold it, and what it covers"
        " stands under a key that was revoked later",
    )
    replay.add_rules_options(parser)
    parser.add_argument("--now", metavar="TIME", help="2026-11-21T22:30:00.000Z; by default this machine's")
    parser.add_argument("--whole", action="store_true", help="read everything again, also what was verified before")
    add_engine_options(parser, "signatures are verified")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write the report as a page")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the report as JSON")
    add_tls_options(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit status."""
    options = _parser().parse_args(argv)
    try:
        trust = read_trust(options.policy, options.self_witness)
        rulebook = replay.rulebook_of(options)
        found, root = audit(options, trust, rulebook)
        document = document_of(
            found, trust.own, _verdict(found, trust, options.root == root), root, measure_bare(found.sample)
        )
        for path, text in ((options.json, json.dumps(document, indent=1) + "\n"), (options.html, None)):
            if path is not None:
                path.write_text(render_html(document) if text is None else text, encoding="utf-8")
    except (replay.FileError, SourceError, EngineError, FormatError) as error:
        return replay.refused("log", error)
    except VerificationError as error:  # the key bundle
        sys.stdout.write(f"FAILED {error.metadata['check']}: {error.message}\nFAILED UNANCHORED\n")
        return 1
    except OSError as error:
        sys.stderr.write(f"certify log: {error.filename}: {error.strerror}\n")
        return 2
    for row in found.failures[:_SHOWN]:
        sys.stdout.write(f"FAILED {row['check']}: {row['message']} ({row['place']})\n")
    if found.failed > _SHOWN:
        sys.stdout.write(f"and {found.failed - _SHOWN} more\n")
    sys.stdout.writelines(f"{name:<12} {text}\n" for name, text in rows_of(document))
    sys.stdout.write(f"{document['verdict']}\n")
    return 1 if found.failed else 0


def _verdict(found: LogAudit, trust: Trust, is_anchored: bool) -> str:
    words = ["FAILED" if found.failed else "PASSED"]
    if found.accepted is not None:
        words.append(trust.verdict(list(found.accepted.witnessed)))
    words.append("ANCHORED" if is_anchored else "UNANCHORED")
    return " ".join(words)
