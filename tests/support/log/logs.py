"""Good logs of any size, and what a log can have wrong: shared by the tests of the log, of the auditor's tool and of
the Go check. A corruption changes one thing in a good log of SIZE entries; every verifier that is given the log's key
has to refuse the result. What no verifier sees without a memory of its own stands apart (`roll_back`).
"""

from __future__ import annotations

import base64
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rgs.core.statements import Ed25519Signer, Signer
from rgs.core.tlog.checkpoints import Checkpoint, format_checkpoint, parse_checkpoint
from rgs.core.tlog.merkle import leaf_hash
from rgs.core.tlog.note import ED25519, Note, format_note, format_vkey, note_key, parse_note, sign_text
from rgs.core.tlog.tiles import ENTRIES, Tile, format_bundle, format_tile_path, parse_bundle
from rgs.tlog.directory import Edge, LogDirectory

ORIGIN: Final = "log.example/2026h2"
SIGNER: Final = Ed25519Signer.from_seed(bytes(range(32)))
STRANGER: Final = Ed25519Signer.from_seed(bytes(range(1, 33)))
VKEY: Final = format_vkey(note_key(ORIGIN, ED25519, SIGNER))
SIZE: Final = 70_000
"""Of the log that is corrupted: full and partial tiles on three levels."""
SIZES: Final = (0, 1, 2, 255, 256, 257, 511, 512, 513, 65_535, 65_536, 65_537, 70_000)


def make_entries(count: int) -> list[bytes]:
    """Entries that nobody could mistake for one another."""
    return [b"entry %d of a log for tests" % number for number in range(count)]


def signed_checkpoint(size: int, root: bytes, *, origin: str = ORIGIN, signer: Signer = SIGNER) -> bytes:
    """A checkpoint as the server signs it."""
    text = format_checkpoint(Checkpoint(origin, size, root))
    return format_note(Note(text, (sign_text(text, origin, signer),)))


def make_log(folder: Path, entries: Sequence[bytes], *, origin: str = ORIGIN, signer: Signer = SIGNER) -> Checkpoint:
    """A good log of these entries in a new folder; its checkpoint. Its key is VKEY."""
    directory = LogDirectory(folder)
    directory.prepare()
    edge = Edge()
    for name, content in edge.grow(entries):
        directory.put(name, content)
    directory.sync()
    checkpoint = Checkpoint(origin, edge.size, edge.root())
    directory.publish(signed_checkpoint(edge.size, edge.root(), origin=origin, signer=signer))
    return checkpoint


# --- what can be wrong ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Corruption:
    """`apply` changes a good log of SIZE entries in its folder."""

    name: str
    apply: Callable[[Path], None]


def _path(folder: Path, tile: Tile) -> Path:
    return folder / format_tile_path(tile)


FULL_BUNDLE: Final = Tile(ENTRIES, 100, 256)
LAST_BUNDLE: Final = Tile(ENTRIES, SIZE // 256, SIZE % 256)
FULL_TILE: Final = Tile(0, 100, 256)
LAST_TILE: Final = Tile(0, SIZE // 256, SIZE % 256)


def _flip(tile: Tile, at: int) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        path = _path(folder, tile)
        data = bytearray(path.read_bytes())
        data[at] ^= 1
        path.write_bytes(data)

    return apply


def _cut(tile: Tile, count: int) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        path = _path(folder, tile)
        path.write_bytes(path.read_bytes()[:-count])

    return apply


def _extend(tile: Tile, more: bytes) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        path = _path(folder, tile)
        path.write_bytes(path.read_bytes() + more)

    return apply


def _remove(tile: Tile) -> Callable[[Path], None]:
    return lambda folder: _path(folder, tile).unlink()


def _swap_entries(folder: Path) -> None:
    path = _path(folder, FULL_BUNDLE)
    entries = parse_bundle(path.read_bytes(), 256)
    entries[7], entries[8] = entries[8], entries[7]
    path.write_bytes(format_bundle(entries))


def _rewrite_entry(folder: Path) -> None:
    """The server changes a record after the fact, and the tile above it: nothing higher up."""
    bundle, tile = _path(folder, FULL_BUNDLE), _path(folder, FULL_TILE)
    entries = parse_bundle(bundle.read_bytes(), 256)
    entries[7] = entries[7].replace(b"log", b"lie")
    bundle.write_bytes(format_bundle(entries))
    hashes = bytearray(tile.read_bytes())
    hashes[7 * 32 : 8 * 32] = leaf_hash(entries[7])
    tile.write_bytes(hashes)


def _swap_bundles(folder: Path) -> None:
    one, other = _path(folder, FULL_BUNDLE), _path(folder, Tile(ENTRIES, 101, 256))
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)


def _resign(change: Callable[[Checkpoint], Checkpoint], signer: Signer = SIGNER) -> Callable[[Path], None]:
    """The holder of a key signs something else."""

    def apply(folder: Path) -> None:
        path = folder / "checkpoint"
        new = change(parse_checkpoint(parse_note(path.read_bytes()).text))
        path.write_bytes(signed_checkpoint(new.size, new.root, origin=new.origin, signer=signer))

    return apply


def _note(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        path = folder / "checkpoint"
        before = path.read_bytes()
        path.write_bytes(change(before))
        assert path.read_bytes() != before

    return apply


def _resigned_text(change: Callable[[str], str]) -> Callable[[Path], None]:
    """A text that is no checkpoint, rightly signed."""

    def apply(folder: Path) -> None:
        path = folder / "checkpoint"
        text = change(parse_note(path.read_bytes()).text)
        path.write_bytes(format_note(Note(text, (sign_text(text, ORIGIN, SIGNER),))))

    return apply


def _with_key_id_of_stranger(note: bytes) -> bytes:
    parsed = parse_note(note)
    line = sign_text(parsed.text, ORIGIN, STRANGER)
    return format_note(Note(parsed.text, (line,)))


def _with_short_root(text: str) -> str:
    origin, size, _ = text.split("\n", 2)
    return "\n".join((origin, size, base64.b64encode(bytes(31)).decode(), ""))


CORRUPTIONS: Final = (
    Corruption("a byte of an entry", _flip(FULL_BUNDLE, 10)),
    Corruption("a byte of the last entry", _flip(LAST_BUNDLE, -1)),
    Corruption("a length of an entry", _flip(FULL_BUNDLE, 1)),
    Corruption("a bundle cut", _cut(FULL_BUNDLE, 1)),
    Corruption("a bundle with something behind it", _extend(FULL_BUNDLE, b"\0")),
    Corruption("a bundle with one more entry", _extend(LAST_BUNDLE, b"\0\1x")),
    Corruption("a bundle missing", _remove(FULL_BUNDLE)),
    Corruption("the last bundle missing", _remove(LAST_BUNDLE)),
    Corruption("two entries in each other's place", _swap_entries),
    Corruption("two bundles in each other's place", _swap_bundles),
    Corruption("an entry rewritten with its leaf", _rewrite_entry),
    Corruption("a byte of a full tile of level 0", _flip(FULL_TILE, 40)),
    Corruption("a byte of the partial tile of level 0", _flip(LAST_TILE, 40)),
    Corruption("a byte of the full tile of level 1", _flip(Tile(1, 0, 256), 40)),
    Corruption("a byte of the partial tile of level 1", _flip(Tile(1, 1, 17), 40)),
    Corruption("a byte of the tile of level 2", _flip(Tile(2, 0, 1), 5)),
    Corruption("a tile cut", _cut(FULL_TILE, 32)),
    Corruption("a tile with one more hash", _extend(LAST_TILE, bytes(32))),
    Corruption("a tile missing", _remove(FULL_TILE)),
    Corruption("the tile of level 2 missing", _remove(Tile(2, 0, 1))),
    Corruption("no checkpoint", lambda folder: (folder / "checkpoint").unlink()),
    Corruption("another size, signed", _resign(lambda old: Checkpoint(old.origin, old.size - 1, old.root))),
    Corruption("a larger size, signed", _resign(lambda old: Checkpoint(old.origin, old.size + 1, old.root))),
    Corruption("another root, signed", _resign(lambda old: Checkpoint(old.origin, old.size, old.root[::-1]))),
    Corruption("another origin, signed", _resign(lambda old: Checkpoint("log.example/other", old.size, old.root))),
    Corruption("signed by a stranger", _resign(lambda old: old, STRANGER)),
    Corruption("a stranger's line under the log's name", _note(_with_key_id_of_stranger)),
    Corruption("another size, not signed", _note(lambda note: note.replace(b"\n70000\n", b"\n69999\n"))),
    Corruption("a signature changed", _note(lambda note: note[:-12] + bytes([note[-12] ^ 2]) + note[-11:])),
    Corruption("a note without its last line feed", _note(lambda note: note[:-1])),
    Corruption("a size with a leading zero, signed", _resigned_text(lambda text: text.replace("70000", "070000"))),
    Corruption("a root of 31 bytes, signed", _resigned_text(_with_short_root)),
)


def copied(log: Path, to: Path) -> Path:
    """A copy of a log, to be corrupted."""
    shutil.copytree(log, to)
    return to


def roll_back(folder: Path, size: int) -> None:
    """Put an older, genuine checkpoint in the place of the newest one: only who remembers the newest can tell."""
    directory = LogDirectory(folder)
    newest = parse_checkpoint(parse_note(directory.checkpoint()).text).size
    edge = Edge()
    # The files of that time: where the log was as large once, they are there still.
    for name, content in edge.grow(list(directory.entries(0, newest))[:size]):
        directory.put(name, content)
    directory.publish(signed_checkpoint(edge.size, edge.root()))
