"""`certify omission RECEIPT… --log LOG… --policy FILE --keys KEYS`: checks whether the log holds a signed statement.

A signed statement in somebody's hands, above all the opening of a round, is a promise: it stands in the log after the
stated delay at the latest. RECEIPT is its envelope, or export lines (with the `instance_start` of the instance that
signed it, if the log does not hold that either). Of the log only the checkpoint and the hash tiles of level 0 are
needed, which are open to everybody. Entries are read too where they are open, and count if their hash stands in a tile.
LOG is a shard. A statement belongs to the shard of its half-year; near the turn of a half-year, to that or the next.

Answers: INCLUDED (exit 0). NOT_YET_DUE (3): it is missing, and its time has not run out. PROVEN_OMITTED (1): it is
missing, and the cosignatures of the quorum, or a logged statement, are later than its time and the delay.
Further lines: WITHOUT_FINAL: a round's opening is there without a final, for longer than the jurisdiction lets an
interrupted round stay open; the same of a seat, and of a `table_round` without `table_final`. UNDER_ROOT: the path that
stands beside a `seat_opening` leads to the root that its `table_round` fixed before the draw, so that the round was
dealt with this seat; NOT_UNDER_ROOT: it does not. STALE: the log's newest time lies far behind `--now`, so the log
itself has stopped. AHEAD: the statement bears a time in the future, which puts off the day on which it is due.

Exit 2: nothing can be said: the receipt does not verify, the statement does not belong to these shards, or the log is
another system's. The clock of one witness proves nothing where the quorum asks for more.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from certification.log import Trust, read_trust
from certification.replay import FileError, fingerprint, read_file, whole_number
from certification.sources import LogSource, SourceError, add_tls_options, open_source
from certification.tree import ENTRY, TILES, Tree, failure, read_accepted, read_bundle, read_hashes
from rgs.core.errors import FormatError, RgsError, VerificationError
from rgs.core.jurisdictions import Jurisdiction
from rgs.core.replay import KeyBook, Rulebook
from rgs.core.replay.checks import KEY
from rgs.core.replay.reading import Statement, read_authentic
from rgs.core.shards import half_year, parse_origin
from rgs.core.statements import (
    KINDS,
    SESSION_OPEN_2,
    ExportLine,
    format_canonical,
    format_line,
    parse_envelope,
    parse_line,
    parse_statement,
)
from rgs.core.statements.lines import KEY_BUNDLE_BYTES_MAX, LINE_BYTES_MAX
from rgs.core.times import format_time, parse_time
from rgs.core.tlog.merkle import leaf_hash, verify_inclusion
from rgs.core.tlog.policies import Accepted
from rgs.core.tlog.tiles import TILE_WIDTH, Tile

DELAY_S: Final = 86_400
"""The stated maximum delay (docs/formats.md, section 16)."""
SKEW_S: Final = 3_600
"""A server's clock may be this far ahead of the one that turned the half-year; its guard stops play long before."""
RECEIPT_BYTES_MAX: Final = 64 * LINE_BYTES_MAX
_FINALS: Final = {"round_final": "opening", "seat_final": "opening", "table_final": "table_round"}
"""A kind that ends a round, and where it names what it ends."""
_READ: Final = tuple(
    kind.payload_type.encode("ascii")
    for kind in (*(KINDS[name] for name in (*_FINALS, "session_open")), SESSION_OPEN_2)
)
_OPENINGS: Final = frozenset({"round_opening", "seat_opening", "table_round"})
_INCLUDED, _OMITTED, _UNUSABLE, _NOT_DUE = 0, 1, 2, 3


@dataclass(frozen=True, slots=True)
class OmissionAnswer:
    """The answer for one statement of a receipt."""

    status: int
    text: str


def read_receipt(data: bytes) -> list[ExportLine]:
    """What a receipt holds: one envelope, or export lines. FormatError."""
    lines = data.removesuffix(b"\n").split(b"\n")
    return [parse_line(line) if line.startswith(b'{"envelope":') else ExportLine(line, None) for line in lines]


@dataclass(frozen=True)
class AuditedShard:
    """A log as it is read: its files, its checkpoint as the policy accepts it, whether others have witnessed it, where
    the leaf hashes that are looked for stand, and the SHA-256 of the leaf hashes of each bundle.
    """

    source: LogSource
    accepted: Accepted
    verdict: str
    places: Mapping[bytes, int]
    bundles: Sequence[bytes]

    @property
    def size(self) -> int:
        return self.accepted.checkpoint.size

    def entries(self, first: int = 0) -> Iterator[bytes]:
        """From bundle `first` on. SourceError, VerificationError where they are not open to the caller, or are not
        those of the checkpoint: a copy of a log can be given entries that tell another time.
        """
        for index in range(first, len(self.bundles)):
            entries = read_bundle(self.source, index, self.size)[1]
            if _digest(map(leaf_hash, entries)) != self.bundles[index]:
                raise failure(ENTRY, f"bundle {index} is not what the tile over it says")
            yield from entries

    @cached_property
    def newest_ms(self) -> int:
        """The latest time that the log itself admits: of the quorum's cosignatures, or of a statement among the last
        entries.

        Entries that are not open to the caller count for nothing.
        """
        try:
            entries = list(self.entries(len(self.bundles) - 1)) if self.bundles else []
        except (SourceError, VerificationError):
            entries = []
        return max([self.accepted.seen_s * 1000, *_times(entries)])


def read_shard(source: LogSource, trust: Trust, wanted: frozenset[bytes]) -> AuditedShard:
    """A shard, and where the wanted leaf hashes stand in it, as far as they do. SourceError; VerificationError unless
    the policy accepts it and the tiles have its root.
    """
    _, accepted, _ = read_accepted(source, trust.policy)
    checkpoint, tree, found, bundles = accepted.checkpoint, Tree(), dict[bytes, int](), list[bytes]()
    for index in range(-(-checkpoint.size // TILE_WIDTH)):
        hashes = read_hashes(source, Tile(0, index, min(TILE_WIDTH, checkpoint.size - index * TILE_WIDTH)))
        for at, hash_ in enumerate(hashes) if not wanted.isdisjoint(hashes) else ():
            if hash_ in wanted:
                found.setdefault(hash_, index * TILE_WIDTH + at)
        for _ in tree.grow(None, hashes):
            pass
        bundles.append(_digest(hashes))
    if tree.root() != checkpoint.root:
        raise failure(TILES, "the tiles of level 0 do not have the root of the checkpoint")
    return AuditedShard(source, accepted, trust.verdict(list(accepted.witnessed)), found, bundles)


def _digest(hashes: Iterable[bytes]) -> bytes:
    return sha256(b"".join(hashes)).digest()


class Receipts:
    """The statements of a receipt, verified down to the root, with starts from the log where the receipt has none."""

    def __init__(self, lines: Sequence[ExportLine], keys: KeyBook, shards: Sequence[AuditedShard]) -> None:
        self._keys = keys
        self._shards = shards
        self._started: set[str] = set()
        starts = [one for one in lines if _is_start(one.envelope)]
        for one in starts:
            self._start(one.envelope)
        self.statements = [self._read(one) for one in lines if one not in starts or len(starts) == len(lines)]

    def _read(self, line: ExportLine) -> Statement:
        _, body = parse_statement(parse_envelope(line.envelope))
        instance = body.get("instance", "")
        if instance not in self._started and not _is_start(line.envelope):
            self._search(instance)
        return read_authentic(format_line(ExportLine(line.envelope, None, line.path)), self._keys)

    @property
    def is_of_another_server(self) -> bool:
        """Whether the entries of the log can be read, and none is signed by these keys."""
        if any(shard.places for shard in self._shards):
            return False
        try:
            if any(self._is_authentic(entry) for shard in self._shards for entry in shard.entries()):
                return False
        except (SourceError, VerificationError):
            return False  # only the policy says whose log it is
        return any(shard.size for shard in self._shards)

    def _is_authentic(self, entry: bytes) -> bool:
        try:
            read_authentic(format_line(ExportLine(entry, None)), self._keys)
        except (FormatError, VerificationError):
            return False
        return True

    def _start(self, envelope: bytes) -> bool:
        try:
            statement = read_authentic(format_line(ExportLine(envelope, None)), self._keys)
            body = statement.body
            if statement.kind.name == "instance_start" and body["instance"] not in self._started:
                self._keys.add_instance(body, statement.keyid)
                self._started.add(body["instance"])
        except VerificationError:
            return False
        return True

    def _search(self, instance: str) -> None:
        """Look through the log for the start of an instance."""
        for shard in self._shards:
            for entry in shard.entries():
                if _is_start(entry) and self._start(entry) and instance in self._started:
                    return
        raise KEY.failure(
            f"neither receipt nor log has the instance_start of {instance}: it cannot be said whose key signed"
        )


def _is_start(envelope: bytes) -> bool:
    return b'"payloadType":"application/vnd.rgs.instance-start.v1+json"' in envelope


def newest_ms(shards: Sequence[AuditedShard]) -> int:
    """The latest time that any of the shards admits."""
    return max(shard.newest_ms for shard in shards)


def _times(entries: Sequence[bytes]) -> Iterator[int]:
    for entry in entries:
        try:
            kind, body = parse_statement(parse_envelope(entry))
            if kind.numbered:  # a root key's statement is dated by a person
                yield parse_time(body["time"])
        except FormatError:
            continue


def judge(
    statement: Statement, found: tuple[AuditedShard, int] | None, shards: Sequence[AuditedShard], delay_s: int
) -> OmissionAnswer:
    """The answer for a statement; `found` is the shard and the place in it, None if it is missing."""
    named = f"{statement.kind.name} {statement.hash}"
    if found is not None:
        checkpoint = found[0].accepted.checkpoint
        return OmissionAnswer(
            _INCLUDED, f"INCLUDED {named} as entry {found[1]} of {checkpoint.size} in {checkpoint.origin}"
        )
    time, newest = parse_time(statement.body["time"]), newest_ms(shards)
    due = time + delay_s * 1000
    read = {parse_origin(shard.accepted.checkpoint.origin)[1] for shard in shards}
    if missing := sorted({half_year(time - SKEW_S * 1000), half_year(time), half_year(due)} - read):
        return OmissionAnswer(
            _UNUSABLE, f"NOT_LOOKED_FOR {named}: signed {statement.body['time']}, so --log {missing[0]}, too"
        )
    result = f"signed {statement.body['time']}, due {format_time(due)}, the log has come to {format_time(newest)}"
    if due < newest:
        of = " nor of the ".join(f"{shard.size} entries of {shard.accepted.checkpoint.origin}" for shard in shards)
        seen = {name: at for shard in shards for name, at in shard.accepted.witnessed.items()}
        by = ", ".join(f"{name} at {format_time(at * 1000)}" for name, at in sorted(seen.items()))
        return OmissionAnswer(_OMITTED, f"PROVEN_OMITTED {named}: {result}; it is not among the {of}, cosigned by {by}")
    return OmissionAnswer(_NOT_DUE, f"NOT_YET_DUE {named}: {result}")


def unfinished(openings: Sequence[Statement], shards: Sequence[AuditedShard]) -> Iterator[str]:
    """The rounds, seats and rounds of tables of which the log holds the opening and no final, for longer than their
    jurisdiction allows.

    SourceError, VerificationError where the entries are not open to the caller. That what is found verifies, `certify
    log` says.
    """
    open_ = {one.hash: one for one in openings}
    sessions = {one.body["session_id"] for one in openings if one.kind.linked}
    named: dict[str, Mapping[str, str]] = {}
    rulebook, newest = Rulebook(), newest_ms(shards)
    for shard in shards:
        for _, kind, body in _found(shard, _READ):
            if kind in _FINALS:
                open_.pop(body[_FINALS[kind]], None)
            elif body["session_id"] in sessions:
                named[body["session_id"]] = body["jurisdiction"]
    for one in open_.values():
        law: Jurisdiction | None = rulebook.jurisdiction(
            named.get(one.body["session_id"]) if one.kind.linked else one.body["jurisdiction"]
        )
        if law is not None and newest - parse_time(one.body["time"]) > law.finish_after_s * 1000:
            period = timedelta(seconds=law.finish_after_s)
            what = {
                "round_opening": f"round {one.round_id}",
                "seat_opening": f"seat {one.body.get('seat', {}).get('seat_no')} of round {one.round_id}",
                "table_round": f"round {one.round_id} of table {one.body.get('table')}",
            }[one.kind.name]
            yield (
                f"WITHOUT_FINAL {what}: opened {one.body['time']}; under {law.id} an interrupted round ends after"
                f" {period}"
            )


def rooted(statements: Sequence[Statement], shards: Sequence[AuditedShard]) -> Iterator[str]:
    """Whether the path beside a `seat_opening` leads to the root that its `table_round` fixed before the draw.

    Deal and round are those of the receipt, or those of the log under the same hashes. SourceError, VerificationError
    where the entries are not open to the caller.
    """
    seats = [one for one in statements if one.kind.name == "seat_opening" and one.path]
    deals = _of_kind("table_deal", {one.body["deal"] for one in seats}, statements, shards)
    rounds = _of_kind("table_round", {deal["deal"]["table_round"] for deal in deals.values()}, statements, shards)
    for one in seats:
        seat = one.body["seat"]
        what = f"seat {seat['seat_no']} of round {one.round_id}"
        deal = deals.get(one.body["deal"])
        round_ = None if deal is None else rounds.get(deal["deal"]["table_round"])
        if round_ is None:
            yield f"{what}: neither receipt nor log has its table_deal and table_round, the path was not compared"
            continue
        leaf, root = leaf_hash(format_canonical(seat)), bytes.fromhex(round_["seats_root"])
        try:
            verify_inclusion(leaf, int(seat["seat_no"]) - 1, int(round_["leaves"]), one.path, root)
        except VerificationError:
            yield f"NOT_UNDER_ROOT {what}: the path beside it does not lead to the seats_root of its table_round"
        else:
            yield f"UNDER_ROOT {what}: its table_round fixed it before the draw, signed {round_['time']}"


def _of_kind(
    kind: str, hashes: AbstractSet[str], statements: Sequence[Statement], shards: Sequence[AuditedShard]
) -> dict[str, Mapping[str, Any]]:
    """The bodies of these statements by their hashes, from the receipt, else from the log."""
    bodies: dict[str, Mapping[str, Any]] = {
        one.hash: one.body for one in statements if one.kind.name == kind and one.hash in hashes
    }
    for shard in shards if hashes - bodies.keys() else ():
        for entry, found, body in _found(shard, (KINDS[kind].payload_type.encode("ascii"),)):
            if found == kind and (name := leaf_hash(entry).hex()) in hashes:
                bodies[name] = body
    return bodies


def _found(shard: AuditedShard, types: Sequence[bytes]) -> Iterator[tuple[bytes, str, Mapping[str, Any]]]:
    """The entries of these payload types, each with its kind and body. SourceError, VerificationError."""
    for entry in shard.entries():
        if any(type_ in entry for type_ in types):
            try:
                kind, body = parse_statement(parse_envelope(entry))
            except FormatError:
                continue
            yield entry, kind.name, body


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="certify omission", description="Is a signed statement in the log?")
    parser.add_argument(
        "receipt", type=Path, nargs="+", metavar="RECEIPT", help="an envelope, or export lines, of one system"
    )
    parser.add_argument(
        "--log", required=True, action="append", metavar="LOG", help="a shard of the log: a folder, or an address"
    )
    parser.add_argument(
        "--policy", required=True, action="append", type=Path, help="whom you trust (C2SP tlog-policy), for each shard"
    )
    parser.add_argument("--keys", required=True, type=Path, help="the key bundle")
    parser.add_argument("--root", type=fingerprint, metavar="FINGERPRINT", help="the root's, brought from outside")
    parser.add_argument("--self-witness", action="append", default=[], metavar="NAME", help="the operator's witness")
    parser.add_argument("--delay-s", type=whole_number(0), default=DELAY_S, help="the stated maximum delay, in seconds")
    parser.add_argument("--now", metavar="TIME", help="2026-11-21T22:30:00.000Z; by default this machine's")
    add_tls_options(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit status."""
    options = _parser().parse_intermixed_args(argv)
    try:
        trusted = [read_trust(policy, options.self_witness) for policy in options.policy]
        keys = KeyBook(read_file(options.keys, KEY_BUNDLE_BYTES_MAX), root=options.root)
        if options.root is not None and not keys.anchored:
            raise FileError(f"the root of the key bundle is {keys.root}, not {options.root}")
        now_ms = time.time_ns() // 1_000_000 if options.now is None else parse_time(options.now)
        lines = [one for path in options.receipt for one in _read_file(path)]
        hashes = {leaf_hash(one.envelope) for one in lines}
        shards = _read_shards(options, trusted, frozenset({*hashes, *keys.statements}))
        receipts = Receipts(lines, keys, shards)
        answers = list(_answers(receipts.statements, shards, options.delay_s))
        if any(answer.status == _OMITTED for answer, _ in answers) and receipts.is_of_another_server:
            raise FileError("--log: nothing in it is signed by these --keys: it is another system's log")
    except (FileError, SourceError, RgsError) as error:
        sys.stderr.write(f"certify omission: {error}\n")
        return _UNUSABLE
    for answer, one in answers:
        sys.stdout.write(f"{answer.text}\n")
        ahead_ms = parse_time(one.body["time"]) - now_ms
        if ahead_ms > SKEW_S * 1000:
            sys.stdout.write(f"AHEAD {one.kind.name} {one.hash}: signed for {timedelta(seconds=ahead_ms // 1000)} on\n")
    _report_seats(receipts.statements, shards)
    _report_unfinished([one for answer, one in answers if answer.status == _INCLUDED], shards)
    newest = newest_ms(shards)
    if now_ms - newest > options.delay_s * 1000:
        behind = timedelta(seconds=(now_ms - newest) // 1000)
        sys.stdout.write(f"STALE: the newest time of the log is {format_time(newest)}, {behind} ago\n")
    witnessed = "WITNESSED" if {shard.verdict for shard in shards} == {"WITNESSED"} else "SELF-WITNESSED"
    sys.stdout.write(f"{witnessed} {'ANCHORED' if keys.anchored else 'UNANCHORED'}\n")
    statuses = {answer.status for answer, _ in answers}
    return next(status for status in (_OMITTED, _UNUSABLE, _NOT_DUE, _INCLUDED) if status in statuses)


def _read_shards(options: argparse.Namespace, trusted: Sequence[Trust], wanted: frozenset[bytes]) -> list[AuditedShard]:
    """Each shard under its policy, or all under one. A policy names no key twice, and shards may share theirs."""
    logs: list[str] = options.log
    if len(trusted) not in {1, len(logs)}:
        raise FileError(f"--policy: one, or one for each of the {len(logs)} --log; not {len(trusted)}")
    shards = []
    for log, trust in zip(logs, trusted if len(trusted) > 1 else [*trusted] * len(logs), strict=True):
        shards.append(read_shard(open_source(log, options), trust, wanted))
    prefixes = sorted({parse_origin(shard.accepted.checkpoint.origin)[0] for shard in shards})
    if len(prefixes) > 1:
        raise FileError(f"--log: shards of one log are asked for, these are of {', '.join(prefixes)}")
    return shards


def _read_file(path: Path) -> list[ExportLine]:
    data = read_file(path, RECEIPT_BYTES_MAX)
    try:
        read = [(one, parse_statement(parse_envelope(one.envelope))[0]) for one in read_receipt(data)]
    except FormatError as error:
        raise FileError(f"{path}: {error.message}") from error
    # The scope of an export is no entry; a statement of the key bundle is one when a node has taken it up.
    promised = [one for one, kind in read if kind.numbered]
    if not promised:
        raise FileError(f"{path}: {read[0][1].name} is not a statement that must stand in the log")
    return promised


def _answers(
    statements: Sequence[Statement], shards: Sequence[AuditedShard], delay_s: int
) -> Iterator[tuple[OmissionAnswer, Statement]]:
    found = {hash_: (shard, place) for shard in shards for hash_, place in shard.places.items()}
    for one in statements:
        yield judge(one, found.get(bytes.fromhex(one.hash)), shards, delay_s), one


def _report_seats(statements: Sequence[Statement], shards: Sequence[AuditedShard]) -> None:
    try:
        for line in rooted(statements, shards):
            sys.stdout.write(f"{line}\n")
    except (SourceError, VerificationError):
        sys.stdout.write("the paths were not compared: the entries of the log are not open to you\n")


def _report_unfinished(included: Sequence[Statement], shards: Sequence[AuditedShard]) -> None:
    openings = [one for one in included if one.kind.name in _OPENINGS]
    try:
        for line in unfinished(openings, shards) if openings else ():
            sys.stdout.write(f"{line}\n")
    except (SourceError, VerificationError):
        sys.stdout.write("the finals were not read: the entries of the log are not open to you\n")
