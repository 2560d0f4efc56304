"""The single writer of one shard of the log: files first, then a signature, then the public checkpoint.

There are three steps, each of which can be repeated after a crash: `write` (bundles and tiles, whose content follows
from the entries), `sign` (which keeps the new checkpoint before anybody sees it), `publish`. At the start the last kept
checkpoint decides: the files must have its root.

A tree is signed only if it begins with the one that was signed last (C2SP tlog-checkpoint). A consistency proof from
the files that readers get shows it. Where files, database and published checkpoint contradict each other, the shard is
not opened, and the error names them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Self

from rgs.core.errors import RgsError, VerificationError
from rgs.core.statements.envelope import Signer
from rgs.core.tlog.checkpoints import Checkpoint, format_checkpoint, parse_checkpoint
from rgs.core.tlog.merkle import EMPTY_ROOT, consistency_proof, leaf_hash, root_at, verify_consistency
from rgs.core.tlog.note import ED25519, Note, add_signatures, format_note, note_key, parse_note, sign_text, verify_note
from rgs.core.tlog.tiles import TILE_WIDTH
from rgs.store.checkpoints import CheckpointRow, Checkpoints
from rgs.tlog.directory import ARTIFACTS, Edge, LogDirectory, LogRefusedError

KEPT: Final = 2 * TILE_WIDTH
"""Partial tiles of so many last entries stay, for readers that have a slightly older checkpoint."""


class ShardWriter:
    """The writer of one origin, made by `open`. After any error its state is unknown: open it again."""

    def __init__(
        self, directory: LogDirectory, checkpoints: Checkpoints, signer: Signer, row: CheckpointRow, edge: Edge
    ) -> None:
        self._directory = directory
        self._checkpoints = checkpoints
        self._signer = signer
        self._row = row
        self._edge = edge
        self._dropped = max(0, row.size - KEPT - 2 * TILE_WIDTH)
        """Partial tiles below are removed; what a kill has left is near the end."""
        self._drop_partials()

    @classmethod
    def open(cls, directory: LogDirectory, checkpoints: Checkpoints, origin: str, signer: Signer) -> Self:
        """The shard as it was left, or a new one with the checkpoint of an empty tree. LogRefusedError."""
        directory.prepare()
        row = checkpoints.newest(origin)
        published = directory.checkpoint()
        if row is None:
            if published:
                raise LogRefusedError(
                    "CHECKPOINT_LOST",
                    f"a checkpoint of {origin} is published that the checkpoint database does not know: it is lost or"
                    " restored from a backup, and a second history could be signed",
                    path=directory.folder,
                )
            row = _signed(origin, 0, EMPTY_ROOT, signer)
            checkpoints.swap(None, row)
        _verify_own(row.note, row, signer, "the checkpoint database")
        edge = Edge.read(directory, row.size)
        if edge.root() != row.root:
            raise LogRefusedError(
                "ROOT_DIFFERS",
                f"the files of {origin} do not have the root that was signed for size {row.size}",
                path=directory.folder,
            )
        if published != row.note:
            _verify_published(published, row, directory, signer)
            directory.publish(row.note)
        return cls(directory, checkpoints, signer, row, edge)

    @property
    def size(self) -> int:
        """Entries under the last signed checkpoint."""
        return self._row.size

    @property
    def newest(self) -> CheckpointRow:
        """The last signed checkpoint."""
        return self._row

    def last_leaves(self) -> list[bytes]:
        """The hashes of the last entries that are signed, up to 256 of them."""
        first = max(0, self.size - TILE_WIDTH)
        return [leaf_hash(entry) for entry in self._directory.entries(first, self.size)]

    def verify_seen(self, size: int, root: bytes) -> None:
        """LogRefusedError unless the log begins with the tree that a witness has seen."""
        if size > self.size or root_at(self._directory.subtrees(self.size), size) != root:
            raise LogRefusedError(
                "WITNESSED_DIFFERS",
                f"a witness has seen {size} entries of {self._row.origin} that are not the {self.size} here: the"
                " folder of the log was restored from a backup, and a second history could be signed",
                path=self._directory.folder,
            )

    def write(self, entries: Iterable[bytes], artifacts: Iterable[tuple[str, bytes]] = ()) -> None:
        """Write the files of the next entries, durable on return; before them `artifacts` (hex SHA-256, content)."""
        for sha256, content in artifacts:
            self._directory.put(f"{ARTIFACTS}/{sha256}", content)
        for name, content in self._edge.grow(entries):
            self._directory.put(name, content)
        self._directory.sync()

    def sign(self) -> None:
        """Sign what is written and keep the checkpoint, which is not public yet. LogRefusedError, StoreError."""
        size, root, subtrees = self._edge.size, self._edge.root(), self._directory.subtrees(self._edge.size)
        try:
            if root_at(subtrees, size) != root:
                raise VerificationError("the files do not have the root of the entries", field="root")
            proof = consistency_proof(subtrees, self._row.size, size)
            verify_consistency(self._row.size, self._row.root, size, root, proof)
        except VerificationError as error:
            raise LogRefusedError("INCONSISTENT", f"nothing is signed for size {size}: {error.message}") from None
        row = _signed(self._row.origin, size, root, self._signer)
        self._checkpoints.swap(self._row, row)
        self._row = row

    def publish(self) -> None:
        """Publish the last signed checkpoint, and remove partial tiles that are not needed any more."""
        self._directory.publish(self._row.note)
        self._drop_partials()

    def _drop_partials(self) -> None:
        kept = max(0, self.size - KEPT)
        self._directory.drop_partials(self._dropped, kept)
        self._dropped = kept

    def cosign(self, note: Note, *, has_quorum: bool) -> None:
        """As `keep_cosigned`, for this shard."""
        self._row = keep_cosigned(self._directory, self._checkpoints, self._row, note, has_quorum=has_quorum)


def keep_cosigned(
    directory: LogDirectory, checkpoints: Checkpoints, last: CheckpointRow, note: Note, *, has_quorum: bool
) -> CheckpointRow:
    """Keep a checkpoint of a shard with its witnesses' lines, and return the last signed checkpoint as it is then.

    If the checkpoint is `last`, the last signed one, it is published with the lines. One that has its quorum can still
    be read when others have been signed since.
    """
    if has_quorum:
        directory.keep_cosigned(format_note(note))
    signed = parse_note(last.note)
    if note.text != signed.text:
        return last
    row = CheckpointRow(last.origin, last.size, last.root, format_note(add_signatures(signed, note.signatures)))
    checkpoints.swap(last, row)
    directory.publish(row.note)
    return row


def _signed(origin: str, size: int, root: bytes, signer: Signer) -> CheckpointRow:
    text = format_checkpoint(Checkpoint(origin, size, root))
    return CheckpointRow(origin, size, root, format_note(Note(text, (sign_text(text, origin, signer),))))


def _verify_own(note: bytes, row: CheckpointRow, signer: Signer, where: str) -> Checkpoint:
    """The checkpoint of a note of this origin that this key has signed; LogRefusedError for any other."""
    try:
        parsed = parse_note(note)
        verify_note(parsed, [note_key(row.origin, ED25519, signer)])
        checkpoint = parse_checkpoint(parsed.text)
    except RgsError as error:
        raise LogRefusedError(
            "KEY_DIFFERS", f"the checkpoint in {where} is not signed by this log key for {row.origin}: {error.message}"
        ) from None
    if checkpoint.origin != row.origin:
        raise LogRefusedError("ORIGIN_DIFFERS", f"the checkpoint in {where} is of {checkpoint.origin}")
    return checkpoint


def _verify_published(published: bytes, row: CheckpointRow, directory: LogDirectory, signer: Signer) -> None:
    """LogRefusedError if something is published that is not an earlier state of this log."""
    if not published:
        return
    seen = _verify_own(published, row, signer, "the folder")
    if seen.size > row.size:
        raise LogRefusedError(
            "CHECKPOINT_BEHIND",
            f"{seen.size} entries of {row.origin} are published, the checkpoint database knows {row.size}: it was"
            " restored from a backup, and a second history could be signed",
            path=directory.folder,
        )
    if root_at(directory.subtrees(row.size), seen.size) != seen.root:
        raise LogRefusedError(
            "ROOT_DIFFERS", f"the checkpoint that is published for size {seen.size} is of another history"
        )
