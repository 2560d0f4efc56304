"""`certify omission RECEIPT --log LOG --policy FILE --keys KEYS`: whether the log holds what the house signed.

A signed statement in somebody's hands, most of all the opening of a round, is a promise that it stands in the log after
the stated delay at the latest. RECEIPT is its envelope, or export lines (with the `instance_start` of the instance that
signed it, where the log does not hold that either). Of the log only the checkpoint and the hash tiles of level 0 are
needed, which are open to everybody.

INCLUDED (exit 0); NOT_YET_DUE (3): it is not there, and the house has time still; PROVEN_OMITTED (1): it is not there,
and a cosignature or a logged statement is later than its time and the delay. STALE beside it: the log's newest time
lies so far behind `--now` that the log itself has stopped. A receipt that does not verify accuses nobody (exit 2), nor
does a log that lacks the half-year in which the statement would stand: around the turn of one `--log` and `--policy`
are given twice (a policy names no key twice, and shards may share theirs).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from certification.log import Trust, read_trust
from certification.replay import FileError, fingerprint, read_file
from certification.sources import Source, SourceError, open_source
from certification.tree import Tree, failure, read_bundle, read_checkpoint, read_hashes, verify_note_and_quorum
from rgs.core.errors import FormatError, RgsError, VerificationError
from rgs.core.policies import Accepted
from rgs.core.replay import KeyBook
from rgs.core.replay.checks import KEY
from rgs.core.replay.reading import Statement, read_authentic
from rgs.core.shards import half_year, parse_origin
from rgs.core.statements import ExportLine, format_line, parse_envelope, parse_line, parse_statement
from rgs.core.statements.lines import KEY_BUNDLE_BYTES_MAX, LINE_BYTES_MAX
from rgs.core.tiles import TILE_WIDTH, Tile
from rgs.core.times import format_time, parse_time

DELAY_S: Final = 86_400
"""The stated maximum delay (docs/formats.md, section 16)."""
SKEW_S: Final = 3_600
"""So far a clock of the house may be ahead of the one that turned the half-year; its guard stops play long before."""
RECEIPT_BYTES_MAX: Final = 64 * LINE_BYTES_MAX
_INCLUDED, _OMITTED, _UNUSABLE, _NOT_DUE = 0, 1, 2, 3


@dataclass(frozen=True, slots=True)
class Answer:
    """What is to be said of one receipt."""

    status: int
    text: str


@dataclass(frozen=True, slots=True)
class Shard:
    """A log that was given: where it is read, and its checkpoint as accepted."""

    source: Source
    accepted: Accepted
    verdict: str
    """Whether others than the house have witnessed it."""

    @property
    def size(self) -> int:
        return self.accepted.checkpoint.size

    @property
    def half_year(self) -> str:
        return parse_origin(self.accepted.checkpoint.origin)[1]


def open_shards(logs: Sequence[str], trusted: Sequence[Trust]) -> list[Shard]:
    """The shards of one log, each under its policy. SourceError, VerificationError; FileError for two logs."""
    if len(trusted) not in {1, len(logs)}:
        raise FileError(f"--policy: one, or one for each of the {len(logs)} --log; not {len(trusted)}")
    shards = []
    for log, trust in zip(logs, trusted if len(trusted) > 1 else [*trusted] * len(logs), strict=True):
        source = open_source(log)
        accepted = verify_note_and_quorum(read_checkpoint(source), trust.policy)
        shards.append(Shard(source, accepted, trust.verdict(list(accepted.witnessed))))
    prefixes = sorted({parse_origin(shard.accepted.checkpoint.origin)[0] for shard in shards})
    if len(prefixes) > 1:
        raise FileError(f"--log: shards of one log are asked for, these are of {', '.join(prefixes)}")
    return shards


def read_receipt(data: bytes) -> list[bytes]:
    """The envelopes of a receipt: one, or those of export lines. FormatError."""
    lines = data.removesuffix(b"\n").split(b"\n")
    return [parse_line(line).envelope if line.startswith(b'{"envelope":') else line for line in lines]


class Receipts:
    """The statements of a receipt, verified down to the root, with starts from the log where the receipt has none."""

    def __init__(self, envelopes: Sequence[bytes], keys: KeyBook, shards: Sequence[Shard]) -> None:
        self._keys = keys
        self._shards = shards
        self._started: set[str] = set()
        starts = [one for one in envelopes if _is_start(one)]
        for one in starts:
            self._start(one)
        self.statements = [self._read(one) for one in envelopes if one not in starts or len(starts) == len(envelopes)]

    def _read(self, envelope: bytes) -> Statement:
        _, body = parse_statement(parse_envelope(envelope))
        instance = body.get("instance", "")
        if instance not in self._started and not _is_start(envelope):
            self._search(instance)
        return read_authentic(format_line(ExportLine(envelope, None)), self._keys)

    def _start(self, envelope: bytes) -> bool:
        try:
            statement = read_authentic(format_line(ExportLine(envelope, None)), self._keys)
            body = statement.body
            if statement.kind.name == "instance_start" and body["instance"] not in self._started:
                self._keys.add_instance(body["instance"], body["public_key"], statement.keyid)
                self._started.add(body["instance"])
        except VerificationError:
            return False
        return True

    def _search(self, instance: str) -> None:
        """Look through the log for the start of an instance."""
        for shard in self._shards:
            for index in range(-(-shard.size // TILE_WIDTH)):
                for entry in read_bundle(shard.source, index, shard.size)[1]:
                    if _is_start(entry) and self._start(entry) and instance in self._started:
                        return
        raise KEY.failure(
            f"neither receipt nor log has the instance_start of {instance}: whose key signed, none can say"
        )


def _is_start(envelope: bytes) -> bool:
    return b'"payloadType":"application/vnd.rgs.instance-start.v1+json"' in envelope


def places(shard: Shard, wanted: Sequence[bytes]) -> dict[bytes, int]:
    """Where leaf hashes stand in the shard, as far as they do; VerificationError unless the tiles have the root."""
    source, checkpoint = shard.source, shard.accepted.checkpoint
    tree, found = Tree(), dict[bytes, int]()
    asked = frozenset(wanted)
    for index in range(-(-checkpoint.size // TILE_WIDTH)):
        width = min(TILE_WIDTH, checkpoint.size - index * TILE_WIDTH)
        hashes = read_hashes(source, Tile(0, index, width))
        for at, hash_ in enumerate(hashes) if not asked.isdisjoint(hashes) else ():
            if hash_ in asked:
                found.setdefault(hash_, index * TILE_WIDTH + at)
        for _ in tree.grow(None, hashes):
            pass
    if tree.root() != checkpoint.root:
        raise failure("log tiles", "the tiles of level 0 do not have the root of the checkpoint")
    return found


def newest_ms(shards: Sequence[Shard]) -> int:
    """The latest time that the log itself admits: of a cosignature, or of a statement among the last entries.

    Entries that are not open to the caller count for nothing.
    """
    newest = 0
    for shard in shards:
        size = shard.size
        try:
            entries = read_bundle(shard.source, (size - 1) // TILE_WIDTH, size)[1] if size else []
        except (SourceError, VerificationError):
            entries = []
        newest = max([newest, shard.accepted.newest_s * 1000, *_times(entries)])
    return newest


def _times(entries: Sequence[bytes]) -> Iterator[int]:
    for entry in entries:
        try:
            kind, body = parse_statement(parse_envelope(entry))
            if kind.numbered:  # not a root's: its clock is a person's
                yield parse_time(body["time"])
        except FormatError:
            continue


def judge(statement: Statement, found: tuple[Shard, int] | None, newest: int, delay_s: int, by: str) -> Answer:
    """What is to be said of a statement that was looked for; `newest` in milliseconds, `by` who cosigned what."""
    named = f"{statement.kind.name} {statement.hash}"
    if found is not None:
        checkpoint = found[0].accepted.checkpoint
        return Answer(_INCLUDED, f"INCLUDED {named} as entry {found[1]} of {checkpoint.size} in {checkpoint.origin}")
    due = parse_time(statement.body["time"]) + delay_s * 1000
    told = f"signed {statement.body['time']}, due {format_time(due)}, the log has come to {format_time(newest)}"
    if due < newest:
        return Answer(_OMITTED, f"PROVEN_OMITTED {named}: {told}; it is none of the {by}")
    return Answer(_NOT_DUE, f"NOT_YET_DUE {named}: {told}")


def verify_covered(statement: Statement, shards: Sequence[Shard], delay_s: int) -> None:
    """FileError unless the shards are all in which a statement that is not found could stand."""
    signed = parse_time(statement.body["time"])
    needed = {half_year(signed + seconds * 1000) for seconds in (-SKEW_S, 0, delay_s)}
    if missing := needed - {shard.half_year for shard in shards}:
        raise FileError(
            f"{statement.kind.name} {statement.hash} of {statement.body['time']} is not in"
            f" {', '.join(shard.accepted.checkpoint.origin for shard in shards)}, and may stand in"
            f" {', '.join(sorted(missing))}: give that shard by --log, too"
        )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="certify omission", description="Is a signed statement in the log?")
    parser.add_argument("receipt", type=Path, metavar="RECEIPT", help="an envelope, or export lines")
    parser.add_argument(
        "--log",
        required=True,
        action="append",
        metavar="LOG",
        help="a shard: a folder, or an http(s) address",
    )
    parser.add_argument(
        "--policy", required=True, action="append", type=Path, help="whom you trust (C2SP tlog-policy), for each shard"
    )
    parser.add_argument("--keys", required=True, type=Path, help="the key bundle")
    parser.add_argument("--root", type=fingerprint, metavar="FINGERPRINT", help="the root's, brought from outside")
    parser.add_argument("--self-witness", action="append", default=[], metavar="NAME", help="a witness of the house")
    parser.add_argument("--delay-s", type=int, default=DELAY_S, help="the house's stated maximum delay")
    parser.add_argument("--now", metavar="TIME", help="2026-11-21T22:30:00.000Z; by default this machine's")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit status."""
    options = _parser().parse_args(argv)
    try:
        trusted = [read_trust(policy, options.self_witness) for policy in options.policy]
        keys = KeyBook(read_file(options.keys, KEY_BUNDLE_BYTES_MAX), root=options.root)
        if options.root is not None and not keys.anchored:
            raise FileError(f"the root of the key bundle is {keys.root}, not {options.root}")
        now_ms = time.time_ns() // 1_000_000 if options.now is None else parse_time(options.now)
        shards = open_shards(options.log, trusted)
        envelopes = read_receipt(read_file(options.receipt, RECEIPT_BYTES_MAX))
        receipts = Receipts(envelopes, keys, shards)
        answers = list(_answers(receipts.statements, shards, options.delay_s))
    except (FileError, SourceError, RgsError) as error:
        sys.stderr.write(f"certify omission: {error}\n")
        return _UNUSABLE
    for answer in answers:
        sys.stdout.write(f"{answer.text}\n")
    weakest = min((shard.verdict for shard in shards), key=("SELF-WITNESSED", "WITNESSED").index)
    sys.stdout.write(f"{weakest} {'ANCHORED' if keys.anchored else 'UNANCHORED'}\n")
    behind_s = (now_ms - newest_ms(shards)) // 1000
    if behind_s > options.delay_s:
        sys.stdout.write(f"STALE: the newest time of the log lies {behind_s} s behind\n")
    worst = {answer.status for answer in answers}
    return next(status for status in (_OMITTED, _NOT_DUE, _INCLUDED) if status in worst)


def _answers(statements: Sequence[Statement], shards: Sequence[Shard], delay_s: int) -> Iterator[Answer]:
    wanted = [bytes.fromhex(one.hash) for one in statements]
    found = {hash_: (shard, place) for shard in shards for hash_, place in places(shard, wanted).items()}
    newest, by = newest_ms(shards), "; nor of the ".join(map(_cosigned, shards))
    for one in statements:
        place = found.get(bytes.fromhex(one.hash))
        answer = judge(one, place, newest, delay_s, by)
        if answer.status == _OMITTED:
            verify_covered(one, shards, delay_s)
        yield answer


def _cosigned(shard: Shard) -> str:
    checkpoint, witnessed = shard.accepted.checkpoint, sorted(shard.accepted.witnessed.items())
    by = ", ".join(f"{name} at {format_time(at * 1000)}" for name, at in witnessed)
    return f"{checkpoint.size} entries of {checkpoint.origin}, cosigned by {by}"


if __name__ == "__main__":
    sys.exit(main())
