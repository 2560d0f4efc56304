"""What the log has and the store lacks after a backup of the store was restored (ARCHITECTURE 2.15; docs/keys.md).

`verify_not_behind` is checked at every start and costs one query. `find_gap` reads the whole log, verifies its root and
every missing statement, and returns them in the order of the log. Where the store has committed on its own since, there
are two histories: then it raises, because no program may choose between them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from rgs.core.errors import VerificationError
from rgs.core.replay.keys import KeyBook
from rgs.core.statements import parse_envelope, parse_statement
from rgs.core.tlog.checkpoints import Checkpoint, parse_checkpoint
from rgs.core.tlog.merkle import Frontier, leaf_hash, root_at
from rgs.core.tlog.note import parse_note
from rgs.store.interface import StoreReads
from rgs.tlog.directory import ARTIFACTS, LogDirectory, LogRefusedError
from rgs.tlog.keybundle import is_bundle
from rgs.tlog.sequencer import counters_of, positions_in

STORE_BEHIND = "STORE_BEHIND"
STORE_FORKED = "STORE_FORKED"


@dataclass(frozen=True, slots=True)
class Missing:
    """A statement of the log that the store lacks. `content` is the file that an artifact names, else empty. `private`
    is its private block with the salt, which the log does not have: empty where there is none or it is lost. `request`
    is the request that opened the session (rgs.core.recovery), empty where it was not kept.
    """

    kind: str
    body: dict[str, Any]
    hash: bytes
    envelope: bytes
    content: bytes = b""
    private: bytes = field(default=b"", repr=False)
    request: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def instance(self) -> str:
        return str(self.body["instance"])

    @property
    def statement_no(self) -> int:
        return int(self.body["statement_no"])


async def verify_not_behind(store: StoreReads, folder: Path) -> None:
    """LogRefusedError if the log in the folder has statements that the store lacks."""
    positions = positions_in(folder)
    if not positions:
        return
    counters = counters_of(await store.instances(alive_only=False))
    for name, last in positions.items():
        if counters.get(name, 0) < last and not is_bundle(name):
            raise LogRefusedError(
                STORE_BEHIND,
                f"the log has {last} statements of {name}, the store {counters.get(name, 0)}: a backup of the store was"
                " restored. Nothing may be signed over it: run `rgs recover`",
                path=folder,
            )


async def find_gap(
    store: StoreReads, folder: Path, keys: KeyBook, witnessed: Checkpoint | None = None
) -> list[Missing]:
    """The statements that the store lacks. `keys` gains the instance keys of the log. `witnessed` is a checkpoint that
    a witness has cosigned, verified: the log must contain it. LogRefusedError, VerificationError.
    """
    counters = counters_of(await store.instances(alive_only=False))
    logged: dict[str, int] = {}
    common: dict[str, tuple[int, bytes]] = {}
    gap: list[Missing] = []
    for path, entry in _entries(folder, witnessed):
        name, number = entry.instance, entry.statement_no
        if number != logged.get(name, 0) + 1:
            raise LogRefusedError("LOG_GAP", f"statement {number} of {name} does not follow in the log", path=folder)
        logged[name] = number
        is_missing = number > counters.get(name, 0)
        if is_missing or entry.kind == "instance_start":
            _verify(entry, keys)
        if is_missing:
            gap.append(_with_content(entry, path))
        else:
            common[name] = (number, entry.hash)
    for name, (number, hash_) in common.items():
        (row,) = await store.statements_of_instance(name, number, number, 1)
        if row.hash != hash_:
            raise LogRefusedError(STORE_FORKED, f"statement {number} of {name} is another one in the log", path=folder)
    for name, last in counters.items():
        if gap and last > logged.get(name, 0):
            raise LogRefusedError(
                STORE_FORKED,
                f"the store has {last} statements of {name}, the log {logged.get(name, 0)}, and others that the store"
                " has not: it has gone on since it was restored. Take the backup again, and recover before any start",
                path=folder,
            )
    return gap


def _verify(entry: Missing, keys: KeyBook) -> None:
    key = keys.verify_envelope(parse_envelope(entry.envelope), entry.hash)
    if entry.kind == "instance_start":
        if key.name != entry.body["node"]:
            raise VerificationError(f"the start of {entry.instance} is signed by the key of {key.name}")
        keys.add_instance(entry.body, parse_envelope(entry.envelope).keyid)
    elif key.name != entry.instance:
        raise VerificationError(f"a statement of {entry.instance} is signed by the key of {key.name}")


def _with_content(entry: Missing, shard: Path) -> Missing:
    """The statement with the file that it names, if it is an artifact: nobody has signed the file, its hash is."""
    if entry.kind != "artifact":
        return entry
    path = shard / ARTIFACTS / str(entry.body["sha256"])
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise LogRefusedError("FILE_MISSING", f"artifact {path.name} is missing", path=path) from None
    if sha256(content).hexdigest() != path.name:
        raise LogRefusedError("FILE_DIFFERS", f"artifact {path.name} has another content than its hash says", path=path)
    return replace(entry, content=content)


def _entries(folder: Path, witnessed: Checkpoint | None) -> Iterator[tuple[Path, Missing]]:
    """The numbered statements of all shards, each with the folder of its shard."""
    if not folder.is_dir():
        raise LogRefusedError("LOG_MISSING", f"there is no folder {folder}", path=folder)
    shards = sorted(path for path in folder.iterdir() if (path / "checkpoint").is_file())
    if not shards:
        raise LogRefusedError("LOG_MISSING", f"there is no log in {folder}", path=folder)
    origins = set()
    for nth, path in enumerate(shards):
        directory = LogDirectory(path)
        checkpoint = parse_checkpoint(parse_note(directory.checkpoint()).text)
        origins.add(checkpoint.origin)
        edge = Frontier()
        for entry in directory.entries(0, checkpoint.size):
            edge.append(leaf_hash(entry))
        if edge.root() != checkpoint.root:
            raise LogRefusedError("ROOT_DIFFERS", f"the entries of {checkpoint.origin} do not have its root", path=path)
        if witnessed is not None and witnessed.origin == checkpoint.origin:
            _verify_witnessed(directory, checkpoint, witnessed)
        # A later shard begins with the last checkpoint of the one before.
        for entry in directory.entries(1 if nth else 0, checkpoint.size):
            kind, body = parse_statement(parse_envelope(entry))
            if not kind.numbered:
                continue  # of the key bundle, which is not the store's
            yield path, Missing(kind.name, body, leaf_hash(entry), entry)
    if witnessed is not None and witnessed.origin not in origins:
        raise VerificationError(f"the log has no shard {witnessed.origin}, which a witness has seen", field="origin")


def _verify_witnessed(directory: LogDirectory, checkpoint: Checkpoint, witnessed: Checkpoint) -> None:
    if witnessed.size > checkpoint.size:
        raise VerificationError(
            f"a witness has seen {witnessed.size} entries of {witnessed.origin}, the log here has {checkpoint.size}:"
            " the log was restored from a backup, too; get its files from whoever mirrors it",
            field="size",
            limit=checkpoint.size,
            value=witnessed.size,
        )
    if root_at(directory.subtrees(checkpoint.size), witnessed.size) != witnessed.root:
        raise VerificationError("the witness has seen another history of this log", field="root")
