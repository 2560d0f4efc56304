"""`certify replay FILE… --keys KEYS [--root FINGERPRINT]`: replays an export of signed statements from its files alone.

The procedure is `rgs.core.replay` (docs/verify.md). This module reads the files line by line, prints what failed and
counts. The last line is `N rounds verified, N failed, ANCHORED` or `… UNANCHORED`. Exit 0: no check failed and a round
was verified, anchored or not; 1: a check failed, the root is another, or there was no round; 2: usage, unreadable
files.

Needs no server, database or network. Never holds a line that is longer than a statement can be.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final

from rgs.core.amounts import format_money
from rgs.core.errors import RgsError, VerificationError
from rgs.core.jurisdictions import Jurisdiction, parse_jurisdiction
from rgs.core.replay import KeyBook, Replay, Rulebook, Summary
from rgs.core.replay.checks import KEY
from rgs.core.rulesets import Ruleset, parse_canonical_ruleset, parse_ruleset
from rgs.core.statements.lines import KEY_BUNDLE_BYTES_MAX, LINE_BYTES_MAX

_FINGERPRINT: Final = re.compile(r"[0-9a-f]{64}")
_LINE_MAX: Final = LINE_BYTES_MAX + 1
"""With its line feed."""
_RULES_BYTES_MAX: Final = 1 << 18
_PIECE: Final = 1 << 20
_LINES_BETWEEN_SIGNS: Final = 2000


class FileError(ValueError):
    """A file of the command line that cannot be used."""


def read_lines(file: BinaryIO) -> Iterator[bytes]:
    """The lines of a file with their line feeds; of a longer line the beginning only, without one. Bounded memory."""
    while line := file.readline(_LINE_MAX):
        yield line
        while not line.endswith(b"\n") and (line := file.readline(_LINE_MAX)):
            pass


class _Reported:
    """Prints failures and the summary: for people, or one JSON object a line."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json

    def failure(self, error: VerificationError, place: str) -> None:
        if self._as_json:
            self._write({"failure": {**error.metadata, "message": error.message, "place": place}})
            return
        named = [f"{key} {value}" for key, value in error.metadata.items() if key != "check"]
        sys.stdout.write(f"FAILED {error.metadata['check']}: {error.message} ({', '.join([place, *named])})\n")

    def summary(self, summary: Summary | None, keys: KeyBook | None, verdict: str) -> None:
        if self._as_json:
            counts = {**summary.fields(), "root": keys.root} if summary and keys else {}
            self._write({"summary": {"verdict": verdict, **counts}})
            return
        if summary and keys:
            sys.stdout.writelines(f"{name:<12} {text}\n" for name, text in _rows(summary, keys))
            sys.stdout.writelines(f"{text}\n" for text in _warnings(summary))
        verified, failed = (summary.rounds_verified, summary.rounds_failed) if summary else (0, 0)
        sys.stdout.write(f"{verified} rounds verified, {failed} failed, {verdict}\n")

    @staticmethod
    def _write(document: Mapping[str, Any]) -> None:
        sys.stdout.write(json.dumps(document, sort_keys=True, separators=(",", ":")) + "\n")


def _rows(summary: Summary, keys: KeyBook) -> Iterator[tuple[str, str]]:
    yield "failures", str(summary.failures)
    yield "statements", f"{sum(summary.statements.values())} in {summary.lines} lines"
    yield "", _counts(summary.statements.most_common())
    games = _counts(sorted(summary.games.items())) or "none"
    demo = f", {summary.rounds_demo} with play money" if summary.rounds_demo else ""
    yield "rounds", f"{games}; {summary.rounds_open} open at the cut, {summary.seats_void} seats void{demo}"
    yield "sessions", str(summary.sessions)
    cut = "; the export is cut, as its scope says" if summary.is_cut else ""
    yield "instances", f"{summary.instances}{cut}"
    exposed = f"at most {summary.draws_exposed} unknown"
    if summary.is_cut:
        exposed += " by the windows that are in this export"
    yield "draws", f"{summary.draws_in_rounds} in rounds, {summary.draws_discarded} discarded, {exposed}"
    erased = f" ({summary.ids_absent} of them in which ids of the regulator are required)" if summary.ids_absent else ""
    yield "private", f"{summary.private_verified} blocks verified, {summary.private_absent} absent{erased}"
    for currency in sorted(summary.staked_minor):
        staked, returned = summary.staked_minor[currency], summary.returned_minor[currency]
        yield (
            currency or "money",
            f"staked {format_money(staked, currency)}, returned {format_money(returned, currency)}",
        )
    yield "root", f"{keys.root} {'as brought from outside' if keys.anchored else 'of the bundle, not anchored'}"


def _warnings(summary: Summary) -> Iterator[str]:
    """Warnings that must be seen although no check failed."""
    if summary.seats_unrecoverable:
        yield (
            f"EXPOSED: {summary.seats_unrecoverable} void seats whose deck was never shown (DECK_UNRECOVERABLE):"
            " what they would have returned is not known"
        )
    if summary.has_development_keys:
        yield "DEVELOPMENT KEYS"


def _counts(items: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{name} {count}" for name, count in items)


def replay(files: Sequence[Path], keys: KeyBook, rulebook: Rulebook, reported: _Reported) -> Summary:
    """Feed the files, one after the other as one export; raises FileError for one that cannot be read."""
    procedure = Replay(keys, rulebook)
    for path in files:
        try:
            with path.open("rb") as file:
                for number, line in enumerate(read_lines(file), 1):
                    for failure in _feed(procedure, line):
                        reported.failure(failure, f"{path}:{number}")
                    if not number % _LINES_BETWEEN_SIGNS:
                        _sign(f"{path}: {number} lines")
        except OSError as error:
            raise FileError(f"{path}: {error.strerror}") from error
    _sign("")
    for failure in procedure.finish():
        reported.failure(failure, "end of files")
    return procedure.summary


def _feed(procedure: Replay, line: bytes) -> list[VerificationError]:
    if line.endswith(b"\n"):
        return procedure.feed(line[:-1])
    return procedure.refuse(f"does not end in a line feed: cut off, or longer than {LINE_BYTES_MAX} bytes")


def _sign(text: str) -> None:
    """Progress for a person at a terminal."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()


def read_file(path: Path, limit: int) -> bytes:
    """The whole file; FileError if it cannot be read or is longer than `limit` bytes."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size  # memory for what is there, not for the limit; 0 of a pipe
            data = file.read(min(size, limit) + 1)
            while len(data) <= limit and (more := file.read(min(_PIECE, limit + 1 - len(data)))):
                data += more
    except OSError as error:
        raise FileError(f"{path}: {error.strerror}") from error
    if len(data) > limit:
        raise FileError(f"{path}: longer than {limit} bytes")
    return data


def _ruleset(path: Path) -> Ruleset:
    """A ruleset file: the TOML document, or its canonical form."""
    data = read_file(path, _RULES_BYTES_MAX)
    try:
        return parse_canonical_ruleset(data) if data.startswith(b"{") else parse_ruleset(data.decode())
    except (RgsError, UnicodeDecodeError) as error:
        raise FileError(f"{path}: {error}") from error


def _jurisdiction(path: Path) -> Jurisdiction:
    """A jurisdiction file. FileError."""
    try:
        return parse_jurisdiction(read_file(path, _RULES_BYTES_MAX).decode())
    except (RgsError, UnicodeDecodeError) as error:
        raise FileError(f"{path}: {error}") from error


def add_rules_options(parser: argparse.ArgumentParser) -> None:
    """The options for rules that are not shipped, which `rulebook_of` reads."""
    parser.add_argument("--ruleset", action="append", default=[], type=Path, metavar="FILE", help="a further ruleset")
    parser.add_argument(
        "--jurisdiction", action="append", default=[], type=Path, metavar="FILE", help="a further jurisdiction"
    )


def rulebook_of(options: argparse.Namespace) -> Rulebook:
    """The shipped rules, and those of `add_rules_options`. FileError."""
    return Rulebook(map(_ruleset, options.ruleset), map(_jurisdiction, options.jurisdiction))


def refused(command: str, error: Exception) -> int:
    """Say why a command of `certify` cannot run; its exit status."""
    sys.stderr.write(f"certify {command}: {error}\n")
    return 2


def fingerprint(text: str) -> str:
    """The type of an option that names a root."""
    if not _FINGERPRINT.fullmatch(text):
        raise argparse.ArgumentTypeError("a fingerprint is 64 lowercase hex digits")
    return text


def whole_number(least: int, most: int = 10**18) -> Callable[[str], int]:
    """The type of an option that is a number from `least` to `most`."""

    def read(text: str) -> int:
        if not text.isascii() or not text.isdigit() or len(text) > len(str(most)) or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a whole number from {least} to {most}")
        return int(text)

    return read


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="certify replay", description="Verify an export from its files alone.")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="export lines; several are read as one")
    parser.add_argument("--keys", required=True, type=Path, metavar="KEYS", help="the key bundle")
    parser.add_argument("--root", type=fingerprint, metavar="FINGERPRINT", help="the root's, brought from outside")
    add_rules_options(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit status."""
    arguments = _parser().parse_args(argv)
    reported = _Reported(as_json=arguments.json)
    try:
        rulebook = rulebook_of(arguments)
        try:
            keys = KeyBook(read_file(arguments.keys, KEY_BUNDLE_BYTES_MAX), root=arguments.root)
        except VerificationError as error:
            reported.failure(error, str(arguments.keys))
            reported.summary(None, None, "UNANCHORED")
            return 1
        is_other_root = arguments.root is not None and not keys.anchored
        if is_other_root:
            other = f"the root of the key bundle is {keys.root}, not {arguments.root}"
            reported.failure(KEY.failure(other), str(arguments.keys))
        summary = replay(arguments.files, keys, rulebook, reported)
    except FileError as error:
        return refused("replay", error)
    reported.summary(summary, keys, "ANCHORED" if keys.anchored else "UNANCHORED")
    return 1 if summary.failures or is_other_root or not summary.rounds_verified else 0
