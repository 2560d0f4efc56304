"""One audit of a log: checkpoint, quorum, consistency with the last audit, every tile, every record.

Reads only what is new since the state. Entries that the state covers were read by the same checks, and their root is
the beginning of this root. The tree is judged last: nothing that was read becomes state before the root fits. Memory
stays bounded: open sessions and rounds, 16 bytes for each id, a few chunks.

Two cases stop a run: a checkpoint that the policy does not accept, and one that does not continue the last one. Where
the state builds on statements of a key that was revoked since, everything is read again and judged by its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from time import process_time
from typing import Any, Final

from certification.chunks import LogChunk, VerifiedChunk, named_keys, verify_chunk
from certification.cosigned import CosignedCheckpoints, of_document
from certification.engines import ALONE, Engine, EngineChoice, answered, started
from certification.findings import AuditFindings
from certification.kept_files import verify_artifacts
from certification.memory import format_replay, parse_replay
from certification.sources import LogSource
from certification.tree import (
    CONSISTENCY,
    ENTRY,
    MARGIN_S,
    TIMES,
    Tree,
    failure,
    read_accepted,
    read_bundle,
    read_hashes,
)
from rgs.core.errors import FormatError, RgsError, VerificationError
from rgs.core.replay import HashedEntry, KeyBook, Place, Replay, Rulebook
from rgs.core.replay.checks import KEY
from rgs.core.replay.reading import Statement
from rgs.core.statements import parse_envelope, verify_signature
from rgs.core.statements.bulk import is_signed_by
from rgs.core.times import format_time
from rgs.core.tlog.checkpoints import Checkpoint, format_checkpoint, parse_checkpoint
from rgs.core.tlog.merkle import consistency_proof, verify_consistency
from rgs.core.tlog.note import Note, format_note, parse_note
from rgs.core.tlog.policies import Accepted, Policy
from rgs.core.tlog.tiles import TILE_WIDTH, TileSubtrees

CHUNK_BUNDLES: Final = 2
SAVE_ENTRIES: Final = 1 << 18
"""After so many entries a run saves its part, so that an interrupted run can go on."""
FAILURES_MAX: Final = 1_000
"""So many failures are kept in full; all are counted."""
FEW: Final = 4_096
"""For fewer entries no process is started: starting one takes longer."""
SAMPLE: Final = 1_000
"""Envelopes on which the bare verification of signatures is measured."""


@dataclass(slots=True)
class LogAudit:
    """What was found. `is_sound`: the tree is that of the checkpoint, and goes on from the one before."""

    note: Note | None = None
    accepted: Accepted | None = None
    published: Checkpoint | None = None
    """The newest checkpoint of the log. It is not the accepted one if it is not cosigned yet."""
    before: Checkpoint | None = None
    is_sound: bool = False
    is_begun: bool = False
    """Whether reading began: there were a checkpoint and keys to go on from."""
    failures: list[dict[str, str]] = field(default_factory=list)
    failed: int = 0
    entries: int = 0
    """Read in this run."""
    cpu_s: float = 0.0
    sample: list[tuple[bytes, bytes]] = field(default_factory=list)
    """Envelopes and the public keys that signed them."""
    read_again: str = ""
    """Why entries that the state covers were read again."""
    keys: KeyBook | None = None
    replay: Replay | None = None
    findings: AuditFindings | None = None

    def report(self, error: VerificationError, place: str) -> None:
        self.failed += 1
        if len(self.failures) < FAILURES_MAX:
            self.failures.append({**error.metadata, "message": error.message, "place": place})


@dataclass(slots=True)
class Auditor:
    """The parameters of a run. `bundle` is the key bundle, `root` the fingerprint brought from outside."""

    source: LogSource
    policy: Policy
    bundle: bytes
    root: str | None
    rulebook: Rulebook = field(default_factory=Rulebook)
    own: frozenset[str] = frozenset()
    """The witnesses of the policy that belong to the operator of the RGS."""
    notes: Sequence[bytes] = ()
    """Checkpoints that the auditor brings, cosigned by outside witnesses."""
    engine: EngineChoice = ALONE
    """Where signatures are verified."""
    now_s: int | None = None
    """The auditor's clock; None: cosignatures are not compared with it."""
    whole: bool = False
    """Read everything again; the state's checkpoint must still be part of the log."""
    save: Callable[[dict[str, Any]], None] = lambda _: None
    """Called with the state so far, every SAVE_ENTRIES."""
    advance: Callable[[int, int], None] = lambda _read, _size: None
    """Called with how many entries of how many were read."""

    def run(self, state: Mapping[str, Any] | None, part: Mapping[str, Any] | None = None) -> LogAudit:
        """An audit from the state of the one before; `part` is what one that was interrupted has left.

        SourceError where the log cannot be read, FormatError where the state cannot be used.
        """
        audit = LogAudit()
        began = process_time()
        if self.root not in {None, self.root_found}:  # nothing is read, so that no state remembers a slip of the hand
            audit.report(KEY.failure(f"the root of the key bundle is {self.root_found}, not {self.root}"), "keys")
            return audit
        try:
            audit.note, audit.accepted, audit.published = read_accepted(self.source, self.policy)
            checkpoint = audit.accepted.checkpoint
            # Two that the log has signed: whichever is newer begins with the other, or here is the proof of a fork.
            first, last = sorted((audit.published, checkpoint), key=lambda one: one.size)
            self._verify_continuation(first, last, "signed by the log")
            cosigned = CosignedCheckpoints(self.policy, self.own)
            if state is not None:
                audit.before = _checkpoint_of(state)
                self._verify_continuation(audit.before, checkpoint, "verified before")
                cosigned = of_document(state.get("cosigned"), self.policy, self.own)
            for note in self.notes:
                seen = parse_checkpoint(parse_note(note).text)
                self._verify_continuation(seen, checkpoint, "cosigned by a witness")
                if seen.origin == checkpoint.origin:
                    cosigned.add(note)
            cosigned.add(format_note(audit.note))
        except VerificationError as error:
            audit.report(error, "checkpoint")
            return audit
        audit.is_begun = True
        if self.whole:
            state = part = None
        part = part if part is not None and _is_part(part, state, checkpoint) else None
        seen_s = audit.accepted.seen_s if self.now_s is None else min(audit.accepted.seen_s, self.now_s)
        run = _LogRun(self, audit, checkpoint, cosigned, part or state, seen_s)
        if fallen := run.fallen():
            if run.is_of_one_shard:
                audit.read_again, audit.failures, audit.failed = fallen.message, [], 0
                run = _LogRun(self, audit, checkpoint, cosigned, None, seen_s)
            else:
                more = "audit the log from its first shard on, with a new state and --witnessed"
                audit.report(
                    KEY.failure(f"{fallen.message}: what was verified before no longer counts; {more}"), "state"
                )
        audit.is_sound = run.read()
        for time in {format_time(time_s * 1000) for time_s in audit.accepted.witnessed.values()} | {
            seen.time for seen in cosigned.witnessed
        }:
            if self.now_s is not None and time > format_time((self.now_s + MARGIN_S) * 1000):
                audit.report(failure(TIMES, f"cosigned at {time}, which is in the future", time=time), "checkpoint")
        audit.cpu_s += process_time() - began
        return audit

    @property
    def root_found(self) -> str:
        """The fingerprint of the first root of the key bundle. VerificationError."""
        return KeyBook(self.bundle).root

    def _verify_continuation(self, before: Checkpoint, now: Checkpoint, what: str) -> None:
        if before.origin != now.origin:
            return  # another shard: its first entry says which it continues
        if now.size < before.size:
            raise failure(
                CONSISTENCY,
                f"rolled back: {now.size} entries, where {before.size} were {what}",
                value=now.size,
                limit=before.size,
            )
        try:
            tree = TileSubtrees(lambda tile: read_hashes(self.source, tile), now.size)
            proof = consistency_proof(tree, before.size, now.size)
        except VerificationError as error:
            raise failure(CONSISTENCY, f"what was {what} cannot be compared: {error.message}") from None
        try:
            verify_consistency(before.size, before.root, now.size, now.root, proof)
        except VerificationError as error:
            raise failure(CONSISTENCY, f"forked: not the log that was {what}: {error.message}") from None


@dataclass(eq=False)
class _LogRun:
    """The reading of one run."""

    auditor: Auditor
    audit: LogAudit
    checkpoint: Checkpoint
    cosigned: CosignedCheckpoints
    state: Mapping[str, Any] | None
    seen_s: int

    def __post_init__(self) -> None:
        auditor, audit, checkpoint, state = self.auditor, self.audit, self.checkpoint, self.state
        self._keys = KeyBook(auditor.bundle, root=auditor.root, witnessed=self.cosigned.witnessed)
        self._latest = format_time((self.seen_s + MARGIN_S) * 1000)
        """No statement under the checkpoint is later: the quorum had seen the checkpoint by then."""
        self._signed: dict[str, dict[str, int]] = {}
        """Key -> shard -> the last entry of it that counted."""
        self._shard_before = None if audit.before is None or audit.before.origin == checkpoint.origin else audit.before
        rulebook = auditor.rulebook
        self._findings = AuditFindings(rulebook, self._keys.statements)
        self._tree = Tree()
        self._base = None if audit.before is None else _document_of(audit.before)
        if state is None:
            self._replay = Replay(self._keys, rulebook, goes_on=True)
        else:
            try:
                self._take_up(state)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise FormatError(f"the state does not fit together, or is of another version: {error!r}") from None
        self._known = {keyid: key.public_key for keyid, key in self._keys.known.items()}

    def _take_up(self, state: Mapping[str, Any]) -> None:
        """Go on from a state. FormatError; KeyError, TypeError, ValueError or AttributeError if it is not one."""
        audit = self.audit
        if state["root_key"] != self._keys.root:
            raise FormatError(f"the state is of a system with the root {state['root_key']}, not {self._keys.root}")
        self._replay = parse_replay(state["replay"], self._keys, self.auditor.rulebook)
        self._findings.restore(state["findings"])
        self._signed = _signed_of(state, self._keys)
        audit.failures, audit.failed = list(state["failures"]), int(state["failed"])
        if _checkpoint_of(state).origin == self.checkpoint.origin:
            levels = [[bytes.fromhex(one) for one in level] for level in state["levels"]]
            self._tree = Tree(int(state["checkpoint"]["size"]), levels)
            if self._tree.root().hex() != state["checkpoint"]["root"]:
                raise FormatError("the state does not fit together: its tree has another root")

    @property
    def is_of_one_shard(self) -> bool:
        """Whether all that the state has read stands in the shard that is read."""
        return {origin for last in self._signed.values() for origin in last} <= {self.checkpoint.origin}

    def fallen(self) -> VerificationError | None:
        """Why something in the state no longer counts under today's key bundle; None if all of it counts.

        If a key's last statement counts, all earlier ones do.
        """
        for keyid, last in self._signed.items():
            for origin, index in last.items():
                try:
                    self._keys.verify_unrevoked(keyid, Place(origin, index))
                except VerificationError as error:
                    return error
        return None

    def read(self) -> bool:
        """Read everything new; whether the tree is that of the checkpoint."""
        audit, tree = self.audit, self._tree
        before = tree.size
        is_sound = True
        saved = before
        try:
            with self._engine() as engine:
                for chunk, found in answered(self._chunks(), engine):
                    audit.cpu_s += 0.0 if engine.is_here else found.cpu_s
                    for fault in self._take(chunk, found):
                        is_sound = False
                        audit.report(fault, "tree")
                    self.auditor.advance(tree.size - before, self.checkpoint.size - before)
                    if tree.size - saved >= SAVE_ENTRIES and is_sound:
                        saved = tree.size
                        self.auditor.save(self.document())
        except VerificationError as error:
            audit.report(error, "tree")
            return False
        for fault in tree.finish(self.auditor.source, self.checkpoint):
            is_sound = False
            audit.report(fault, "tree")
        audit.entries = tree.size - before
        if is_sound:
            self.auditor.save(self.document())
        for fault in self._replay.finish():
            audit.report(fault, "end of the log")
        for fault in verify_artifacts(self.auditor.source, self._findings.artifacts):
            audit.report(fault, "files")
        audit.keys, audit.replay, audit.findings = self._keys, self._replay, self._findings
        return is_sound

    def document(self) -> dict[str, Any]:
        """The state as it is now. `part_of` is the checkpoint that it began from."""
        reached = replace(self.checkpoint, size=self._tree.size, root=self._tree.root())
        return {
            "checkpoint": _document_of(reached),
            "cosigned": self.cosigned.notes,
            "failed": self.audit.failed,
            "failures": self.audit.failures,
            "findings": self._findings.state(),
            "levels": [[one.hex() for one in level] for level in self._tree.levels],
            "part_of": self._base,
            "replay": format_replay(self._replay, self._keys),
            "root_key": self._keys.root,
            "signed": self._signed,
        }

    # --- entries ---

    def _engine(self) -> AbstractContextManager[Engine[LogChunk, VerifiedChunk]]:
        choice, new = self.auditor.engine, self.checkpoint.size - self._tree.size
        return started(verify_chunk, choice if new > FEW else replace(choice, workers=1))

    def _chunks(self) -> Iterator[LogChunk]:
        size, at = self.checkpoint.size, self._tree.size
        while at < size:
            entries: list[bytes] = []
            for index in range(at // TILE_WIDTH, min(at // TILE_WIDTH + CHUNK_BUNDLES, -(-size // TILE_WIDTH))):
                _, held = read_bundle(self.auditor.source, index, size)
                entries += held[max(at - index * TILE_WIDTH, 0) :]
            self._known |= named_keys(entries)
            yield LogChunk(tuple(entries), dict(self._known))
            at += len(entries)

    def _take(self, chunk: LogChunk, found: VerifiedChunk) -> Iterator[VerificationError]:
        audit, replay, first = self.audit, self._replay, self._tree.size
        origin = self.checkpoint.origin
        yield from self._tree.grow(self.auditor.source, [one[0] for one in found.found])
        for index, (hash_, envelope, is_signed, is_formed) in enumerate(found.found, first):
            if index == 0 and (self._shard_before is not None or not chunk.entries[0].startswith(b"{")):
                yield from self._begin_shard(chunk.entries[0])
                continue
            if envelope is None:
                failures = replay.refuse("the entry is not an envelope in its one form")
            else:
                failures = replay.feed_entry(HashedEntry(hash_, envelope, Place(origin, index), is_signed, is_formed))
                if is_signed and len(audit.sample) < SAMPLE:
                    audit.sample.append((chunk.entries[index - first], chunk.keys[envelope.keyid]))
            for error in failures:
                audit.report(error, f"entry {index}")
            if replay.statement is not None:
                if replay.statement.kind.numbered:  # the others are the key bundle's, and stand with it
                    self._signed.setdefault(replay.statement.keyid, {})[origin] = index
                for error in self._findings.take(replay.statement) + self._verify_time(replay.statement, index):
                    audit.report(error, f"entry {index}")

    def _verify_time(self, statement: Statement, index: int) -> list[VerificationError]:
        """No statement is dated later than the checkpoint over it, or names a checkpoint that covers it."""
        body, wrong = statement.body, []
        if body["time"] > self._latest:
            wrong.append(f"dated {body['time']}, and the checkpoint over it was seen no later than {self._latest}")
        origin, size = _checkpoint_in(body)
        if origin == self.checkpoint.origin and not (size.isdecimal() and int(size) <= index):
            wrong.append(f"entry {index} names a checkpoint of {size[:20]} entries, which covers it")
        return [failure(TIMES, message, statement=statement.hash, kind=statement.kind.name) for message in wrong]

    def _begin_shard(self, entry: bytes) -> Iterator[VerificationError]:
        """The first entry of a later shard is the last checkpoint of the one before, and that is what was verified."""
        before = self._shard_before
        self._findings.artifacts.clear()  # those of the shard before lie in its folder
        try:
            named = parse_checkpoint(parse_note(entry).text)
        except FormatError as error:
            yield failure(ENTRY, f"the first entry of the shard is not a checkpoint of the one before: {error.message}")
            return
        if before is None or not self._replay.summary.lines:
            yield failure(ENTRY, f"this shard goes on from {named.origin}: audit that one first, with the same state")
        elif named != before:
            yield failure(
                ENTRY,
                f"the shard goes on from {named.origin} at {named.size}; verified was {before.origin} {before.size}",
            )


def _checkpoint_in(body: Mapping[str, Any]) -> tuple[str, str]:
    """Origin and size of the checkpoint that a statement names; empty, 0 where it names none."""
    if "checkpoint" in body:
        return body["checkpoint"]["origin"], body["checkpoint"]["size"]
    if body.get("code") == "CHECKPOINT_KNOWN":
        return body.get("subject", ""), body.get("after", "").partition(" ")[0]
    return "", "0"


def measure_bare(sample: list[tuple[bytes, bytes]], clock: Callable[[], float] = process_time) -> tuple[float, float]:
    """CPU seconds of one bare verification of a signature, by libsodium and by OpenSSL, over the envelopes read."""
    if not sample:
        return 0.0, 0.0
    parsed = [(parse_envelope(data), key) for data, key in sample]
    began = clock()
    for envelope, key in parsed:
        is_signed_by(envelope, key)
    between = clock()
    for envelope, key in parsed:
        verify_signature(envelope, key)
    return (between - began) / len(parsed), (clock() - between) / len(parsed)


def _checkpoint_of(state: Mapping[str, Any]) -> Checkpoint:
    try:
        held = state["checkpoint"]
        return parse_checkpoint(
            format_checkpoint(Checkpoint(held["origin"], int(held["size"]), bytes.fromhex(held["root"])))
        )
    except (KeyError, TypeError, ValueError, RgsError) as error:
        raise FormatError(f"the state has no checkpoint: {error!r}") from None


def _signed_of(state: Mapping[str, Any], keys: KeyBook) -> dict[str, dict[str, int]]:
    try:
        signed = {
            keyid: {str(origin): int(at) for origin, at in last.items()} for keyid, last in state["signed"].items()
        }
    except (KeyError, AttributeError, ValueError) as error:
        raise FormatError(f"the state does not say what each key has signed: {error!r}") from None
    if unknown := signed.keys() - keys.known.keys():
        raise FormatError(f"the state knows key {min(unknown)}, and the key bundle does not: get the newest bundle")
    return signed


def _document_of(checkpoint: Checkpoint) -> dict[str, str]:
    return {"origin": checkpoint.origin, "root": checkpoint.root.hex(), "size": str(checkpoint.size)}


def _is_part(part: Mapping[str, Any], state: Mapping[str, Any] | None, now: Checkpoint) -> bool:
    """Whether what an interrupted run left goes on from this state, towards this checkpoint."""
    reached = _checkpoint_of(part)
    base = None if state is None else state["checkpoint"]
    return part.get("part_of") == base and reached.origin == now.origin and reached.size <= now.size
