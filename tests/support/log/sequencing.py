"""Statements to be logged without a server behind them, logs to be looked at, and a sequencer that is killed.

`Shelf` is a store with nothing but committed statements, of as many instances as the test likes; `Logged` reads what a
log folder holds and checks it against the shelf. Run as a module it maltreats sequencers, and checks what they leave:
`python -m tests.support.log.sequencing killed|fought|full FOLDER` kills one between every two steps; lets two at a time
fight for the lead and kills them; takes the room of its files away in the middle of a write.
"""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any, cast

import structlog

from rgs.core.shards import parse_origin
from rgs.core.statements import Ed25519Signer, Signer
from rgs.core.times import parse_time
from rgs.core.tlog.checkpoints import Checkpoint, parse_checkpoint
from rgs.core.tlog.merkle import leaf_hash, root_of
from rgs.core.tlog.note import (
    COSIGNATURE,
    ED25519,
    add_signatures,
    cosign,
    note_key,
    parse_note,
    sign_text,
    verify_note,
)
from rgs.core.tlog.tiles import TILE_WIDTH, new_tiles
from rgs.store.changes import StoreError, StoreRefusedError
from rgs.store.interface import InstanceRow, StatementRow, Store
from rgs.store.wallet import SqliteFile
from rgs.tlog import sequencer as sequencer_module
from rgs.tlog import shard as shard_module
from rgs.tlog.directory import LogDirectory
from rgs.tlog.sequencer import Sequencer
from tests.support.clocks import ManualClock
from tests.support.service.harness import NODE_KEY, sealed

PREFIX = "log.example"
SIGNER = Ed25519Signer.from_seed(b"the log key of a test server 32b")
SUMMER_MS = parse_time("2026-06-30T12:00:00.000Z")
AUTUMN_MS = parse_time("2026-07-02T12:00:00.000Z")
SIGNED = "signed"
"""The file in which a sequencer that may be killed keeps every note it ever signed."""


class Shelf:
    """Committed statements, in memory."""

    def __init__(self) -> None:
        self.rows: dict[str, list[StatementRow]] = {}
        self.ended: set[str] = set()
        self.artifacts: dict[str, bytes] = {}
        self.keys: tuple[bytes, ...] = ()
        """Statements of the key bundle."""
        self.reported: list[StatementRow] = []
        """Events that name a cosigned checkpoint."""
        self.is_leader = True
        self._ids = count(1)

    def commit(self, instance: str, *, id_: int | None = None, text: str = "") -> StatementRow:
        """One more statement of an instance."""
        number = len(self.rows.setdefault(instance, [])) + 1
        return self._add(instance, f"statement {number} of {instance} {text}".encode(), "event", id_)

    def witnessed(self, instance: str, checkpoint: Checkpoint) -> None:
        """An instance tells of a cosigned checkpoint."""
        number = len(self.rows.setdefault(instance, [])) + 1
        body = {
            "after": f"{checkpoint.size} {checkpoint.root.hex()}",
            "code": "CHECKPOINT_KNOWN",
            "instance": instance,
            "kind": "event",
            "statement_no": str(number),
            "subject": checkpoint.origin,
            "time": "2026-06-30T12:00:00.000Z",
        }
        self.reported.append(self._add(instance, sealed(body, NODE_KEY), "event", None))

    def artifact(self, instance: str, content: bytes) -> str:
        """A file that an instance names; its SHA-256."""
        digest = sha256(content).hexdigest()
        self.artifacts[digest] = content
        number = len(self.rows.setdefault(instance, [])) + 1
        body = {
            "bytes": str(len(content)),
            "instance": instance,
            "kind": "artifact",
            "name": "rulesets/uth-solo",
            "sha256": digest,
            "statement_no": str(number),
            "time": "2026-06-30T12:00:00.000Z",
        }
        self._add(instance, sealed(body, NODE_KEY), "artifact", None)
        return digest

    def key(self, text: str = "") -> bytes:
        """One more statement of the key bundle, the first root's at first."""
        body = {"kind": "node_key", "node": f"node-{len(self.keys)}{text}", "public_key": "00" * 32}
        self.keys += (sealed(body, NODE_KEY),)
        return self.keys[-1]

    def _add(self, instance: str, envelope: bytes, kind: str, id_: int | None) -> StatementRow:
        rows = self.rows[instance]
        at = next(self._ids) if id_ is None else id_
        row = StatementRow(at, kind, instance, len(rows) + 1, "", 0, "", leaf_hash(envelope), envelope, b"")
        rows.append(row)
        return row

    # --- as a store -----------------------------------------------------------------------------------------------

    async def lead(self, duty: str) -> bool:
        assert duty == "log"
        return self.is_leader

    async def instances(self, *, alive_only: bool) -> list[InstanceRow]:
        return [
            InstanceRow(name, "node", 1, 0, name not in self.ended, len(rows), 0, 0)
            for name, rows in self.rows.items()
            if not (alive_only and name in self.ended)
        ]

    async def statements_of_instance(
        self, instance: str, first_no: int, last_no: int, limit: int
    ) -> list[StatementRow]:
        return self.rows[instance][first_no - 1 : last_no][:limit]

    async def events(self, code: str, *, before: int, limit: int) -> list[StatementRow]:
        assert (code, before) == ("CHECKPOINT_KNOWN", 0)
        return self.reported[::-1][:limit]

    async def artifact_content(self, digest: str) -> bytes | None:
        return self.artifacts.get(digest)


def fill(shelf: Shelf, count: int, instance: str = "a") -> None:
    for _ in range(count):
        shelf.commit(instance)


class _ShelfStore:
    """The shelf with a store's names where those of its making are others."""

    def __init__(self, shelf: Shelf) -> None:
        self.lead, self.instances, self.events = shelf.lead, shelf.instances, shelf.events
        self.statements_of_instance, self.artifact = shelf.statements_of_instance, shelf.artifact_content


def make_sequencer(shelf: Shelf, folder: Path, clock: ManualClock, **options: Any) -> Sequencer:
    """A sequencer over a shelf."""
    given: dict[str, Any] = {"prefix": PREFIX, "signer": SIGNER, "delay_ms": 60_000, "keys": lambda: shelf.keys}
    given |= options
    return Sequencer(store=cast(Store, _ShelfStore(shelf)), clock=clock, folder=folder, **given)


class Logged:
    """What one shard's folder holds; AssertionError unless it is whole and signed."""

    def __init__(self, folder: Path, *, signer: Signer = SIGNER) -> None:
        self.directory = LogDirectory(folder)
        note = parse_note(self.directory.checkpoint())
        self.checkpoint: Checkpoint = parse_checkpoint(note.text)
        verify_note(note, [note_key(self.checkpoint.origin, ED25519, signer)])
        self.entries = list(self.directory.entries(0, self.checkpoint.size))
        assert self.root(self.checkpoint.size) == self.checkpoint.root
        for tile in new_tiles(0, len(self.entries)):
            if tile.level == 0:
                begin = tile.index * TILE_WIDTH
                held = self.entries[begin : begin + tile.width]
                assert self.directory.hashes(tile) == [leaf_hash(entry) for entry in held]

    def root(self, size: int) -> bytes:
        """The root over the first entries, from nothing but them."""
        return root_of([leaf_hash(entry) for entry in self.entries[:size]])


def verify_shelf(shelf: Shelf, logs: list[Logged]) -> None:
    """Every statement of the shelf stands in the logs once, those of an instance and of the key bundle in order, and
    nothing else does.
    """
    firsts = [log.entries[0] for log in logs[1:]]
    entries = [entry for log in logs for entry in log.entries if entry not in firsts]
    sequences = [[row.envelope for row in rows] for rows in shelf.rows.values()] + [list(shelf.keys)]
    assert Counter(entries) == Counter(entry for sequence in sequences for entry in sequence)
    places = {entry: at for at, entry in enumerate(entries)}
    for sequence in sequences:
        at = [places[entry] for entry in sequence]
        assert at == sorted(at)
    for before, first in zip(logs, firsts, strict=False):
        assert parse_note(first).text == parse_note(before.directory.checkpoint()).text  # cosigned since, maybe


async def cosign_published(sequencer: Sequencer, shard: Path) -> None:
    """A witness has seen what is published."""
    note = parse_note(LogDirectory(shard).checkpoint())
    line = cosign(note.text, "witness.example", NODE_KEY, 1_800_000_000)
    assert await sequencer.cosign(add_signatures(note, [line]), has_quorum=True)


def verify_cosigned(logs: list[Logged]) -> None:
    """What is kept as cosigned is whole, and is what is published in each log."""
    witness = note_key("witness.example", COSIGNATURE, NODE_KEY)
    for log in logs:
        note = parse_note(log.directory.cosigned())
        assert len(verify_note(note, [witness])) == 1
        assert parse_checkpoint(note.text) == log.checkpoint
        assert len(verify_note(parse_note(log.directory.checkpoint()), [witness])) == 1


def verify_signed(folder: Path, logs: list[Logged]) -> int:
    """Every checkpoint that was ever signed is one of a beginning of its log, so that no two contradict each other."""
    notes = (folder / SIGNED).read_bytes().split(b"\0")[:-1]
    by_origin = {log.checkpoint.origin: log for log in logs}
    for text in notes:
        checkpoint = parse_checkpoint(text.decode())
        assert by_origin[checkpoint.origin].root(checkpoint.size) == checkpoint.root
    return len(notes)


# --- killed between every two steps -----------------------------------------------------------------------------------


class Steps:
    """Counts the steps by which anything becomes durable, and kills the process before the one numbered `last`."""

    def __init__(self, last: int) -> None:
        self._last = last
        self.done = 0

    def step(self) -> None:
        self.done += 1
        if self.done == self._last:
            os.kill(os.getpid(), signal.SIGKILL)

    def watch(self, names: Sequence[str] = ("fsync", "link", "unlink", "replace", "mkdir", "rmdir")) -> None:
        """From now on, in this process."""
        for name in names:
            setattr(os, name, self._stepped(getattr(os, name)))
        transaction, steps = SqliteFile.transaction, self

        @contextmanager
        def stepped(file: SqliteFile) -> Iterator[Any]:
            with transaction(file) as db:
                yield db
                steps.step()
            steps.step()

        SqliteFile.transaction = stepped  # type: ignore[method-assign, assignment]

    def _stepped(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def stepped(*values: Any, **named: Any) -> Any:
            self.step()
            return call(*values, **named)

        return stepped


def keep_signed(folder: Path) -> None:
    """Whatever is signed from now on is kept in a file before anything else happens to it."""
    sign = sign_text

    def kept(text: str, name: str, signer: Any) -> Any:
        with (folder / SIGNED).open("ab") as file:
            file.write(text.encode() + b"\0")
        return sign(text, name, signer)

    shard_module.sign_text = kept  # type: ignore[attr-defined]


def _stages(shelf: Shelf, clock: ManualClock) -> Iterator[None]:
    """A life in which each kind of thing happens: commits of three instances, keys, full tiles, a new half-year."""
    shelf.key()
    shelf.key()
    for _ in range(3):
        shelf.commit("node-1-b1-w0")
    shelf.artifact("node-1-b1-w0", b"a ruleset")
    yield
    for nth in range(252):  # beyond the end of the first full tile
        shelf.commit(f"node-{nth % 2 + 1}-b1-w0")
    yield
    shelf.key()
    shelf.commit("node-2-b1-w0")
    shelf.ended.add("node-2-b1-w0")
    yield
    for _ in range(5):
        shelf.commit("node-1-b1-w0")
    yield
    clock.time_ms = AUTUMN_MS
    shelf.commit("node-3-b1-w0")
    yield
    shelf.key()
    shelf.commit("node-1-b1-w0")
    yield


def _come_late(shelf: Shelf) -> None:
    """After a life was killed, a statement commits that would have stood before all others of its batch."""
    shelf.commit("late", id_=0)


async def _live(folder: Path) -> None:
    """From the stage that the life before was killed in. Partial tiles go as soon as the full one is published."""
    shard_module.KEPT = 0  # type: ignore[misc]
    shelf, clock, reached = Shelf(), ManualClock(SUMMER_MS), folder / "reached"
    before = int(reached.read_text()) if reached.exists() else 0
    if reached.exists():
        _come_late(shelf)
    sequencer = make_sequencer(shelf, folder / "log", clock)
    for stage, _ in enumerate(_stages(shelf, clock)):
        if stage >= before:
            reached.write_text(str(stage))
            await sequencer.work()
            await cosign_published(sequencer, _newest(folder / "log").folder)
    await sequencer.close()


def _newest(log: Path) -> LogDirectory:
    return LogDirectory(max(path.parent for path in log.glob("*/checkpoint")))


def _in_a_child(work: Callable[[], None]) -> bool:
    """Whether it lived to its end."""
    child = os.fork()
    if not child:
        work()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status in {0, signal.SIGKILL}, status
    return status == 0


def kill_everywhere(folder: Path, first: int = 1, stride: int = 1) -> int:
    """At how many places it was killed: each, or every so many from this one on."""
    for last in count(first, stride):
        home = folder / str(last)
        home.mkdir()

        def live(home: Path = home, last: int = last) -> None:
            keep_signed(home)
            Steps(last).watch()
            asyncio.run(_live(home))

        def live_again(home: Path = home) -> None:
            keep_signed(home)
            asyncio.run(_live(home))

        lived = _in_a_child(live)
        assert _in_a_child(live_again)
        shelf = Shelf()
        _come_late(shelf)
        for _ in _stages(shelf, ManualClock(SUMMER_MS)):
            pass
        logs = [Logged(home / "log" / name) for name in ("2026h1", "2026h2")]
        assert [parse_origin(log.checkpoint.origin)[1] for log in logs] == ["2026h1", "2026h2"]
        verify_shelf(shelf, logs)
        verify_signed(home, logs)
        verify_cosigned(logs[1:])
        assert not (home / "log" / "2026h1" / "tile" / "0" / "000.p").exists()
        if lived:
            return (last - first) // stride
    raise AssertionError


# --- two that fight for the lead --------------------------------------------------------------------------------------

LIVES = 40
STATEMENTS = 2_500


def _work_for(home: Path, last: int) -> None:
    """One node: it leads for a batch where it can, and lets go. Killed before its step `last`, where that is not 0."""
    shelf = _busy_shelf()

    async def live() -> None:
        sequencer, size = make_sequencer(shelf, home / "log", ManualClock(SUMMER_MS)), 0
        while size < STATEMENTS + len(shelf.keys):
            await sequencer.work()
            await sequencer._let_go()
            size = parse_checkpoint(parse_note(_newest(home / "log").checkpoint()).text).size if _begun(home) else 0
            await asyncio.sleep(0.001)

    keep_signed(home)
    sequencer_module.BATCHES_MAX = 1  # type: ignore[misc]
    Steps(last).watch(("fsync", "link", "unlink", "replace"))  # who stands by takes none of these
    asyncio.run(live())


def _begun(home: Path) -> bool:
    return (home / "log" / "2026h1" / "checkpoint").exists()


def _busy_shelf() -> Shelf:
    shelf = Shelf()
    shelf.key()
    shelf.key()
    for nth in range(STATEMENTS):
        shelf.commit(f"node-{nth % 3 + 1}-b1-w0")
    return shelf


def fight(home: Path) -> int:
    """How many were killed."""
    killed, number, running = 0, 0, set[int]()
    while running or number < LIVES:
        while number < LIVES and len(running) < 2:
            number += 1
            child = os.fork()
            if not child:
                # The last one lives; the others are killed somewhere in their second or third batch.
                _work_for(home, 0 if number == LIVES else 3 + number * 37 % 71)
                os._exit(0)
            running.add(child)
        child, status = os.wait()
        running.remove(child)
        assert status in {0, signal.SIGKILL}, status
        killed += status != 0
    log = Logged(home / "log" / "2026h1")
    verify_shelf(_busy_shelf(), [log])
    verify_signed(home, [log])
    return killed


# --- a full disk ------------------------------------------------------------------------------------------------------


def fill_everywhere(folder: Path) -> int:
    """How often there was no room, files being cut off at this size and that."""
    refused = 0
    for limit in (1, 100, 1_000, 4_096, 8_191, 8_200, 10_000, 16_384, 20_480, 28_672, 1_000_000):
        home = folder / str(limit)
        home.mkdir()
        refused += asyncio.run(_live_without_room(home, limit))
    return refused


async def _live_without_room(home: Path, limit: int) -> int:
    shelf, clock, refused = Shelf(), ManualClock(SUMMER_MS), 0
    sequencer = make_sequencer(shelf, home / "log", clock)
    for stage in _stages(shelf, clock):
        assert stage is None
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
        try:
            await sequencer.work()
        except (OSError, StoreError, StoreRefusedError):
            refused += 1
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        await sequencer.work()
    await sequencer.close()
    verify_shelf(shelf, [Logged(home / "log" / name) for name in ("2026h1", "2026h2")])
    return refused


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    do: dict[str, Callable[..., int]] = {"killed": kill_everywhere, "fought": fight, "full": fill_everywhere}
    done = do[sys.argv[1]](Path(sys.argv[2]), *map(int, sys.argv[3:]))
    sys.stdout.write(f"{done}\n")
