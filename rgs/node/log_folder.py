"""The transparency log of a home: its origin, its verifier keys, its shards."""

from __future__ import annotations

import asyncio
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from rgs.core.errors import FormatError
from rgs.core.shards import format_origin, half_year
from rgs.core.tlog.checkpoints import Checkpoint, parse_checkpoint
from rgs.core.tlog.note import ED25519, cosigned_s, format_vkey, note_key, parse_note
from rgs.core.tlog.tiles import CHECKPOINT_PATH, COSIGNED_PATH
from rgs.node.clock import now_ms
from rgs.node.config import Config
from rgs.node.files import PUBLIC_MODE, FileRefusedError, write_whole
from rgs.node.keyring import load_log_signer
from rgs.node.stores import reading
from rgs.service.cosigned import CosignedCheckpoint, parse_cosigned
from rgs.store.interface import LOG_EPOCH, StoreReads
from rgs.tlog.directory import STAGING, LogDirectory

PREFIX: Final = "rgs.example"
"""Start of the default origin: a name that nobody owns, used until `log_origin` is set."""


async def log_prefix(config: Config, store: StoreReads) -> str:
    """The origin of the log without its half-year: the setting, or made of the store epoch."""
    if config.log_origin:
        return config.log_origin
    epoch = await store.meta(LOG_EPOCH) or await store.meta("store_epoch")
    return f"{PREFIX}/{epoch.lower()}"


def vkey_of(config: Config, origin: str) -> str:
    """The verifier key of a shard. FileRefusedError."""
    return format_vkey(note_key(origin, ED25519, load_log_signer(config.keys)))


def vkey_now(config: Config) -> str:
    """The verifier key of the shard of this half-year."""
    with ThreadPoolExecutor(1) as alone:  # in a thread, because the caller may run in an event loop
        prefix = alone.submit(asyncio.run, _read_prefix(config)).result()
    return vkey_of(config, format_origin(prefix, half_year(now_ms())))


async def _read_prefix(config: Config) -> str:
    async with reading(config.store) as reads:
        return await log_prefix(config, reads)


def shards(config: Config) -> list[Path]:
    """The folders of the log's shards, oldest first."""
    return sorted(path.parent for path in config.translog.glob(f"*/{CHECKPOINT_PATH}"))


def newest_cosigned(config: Config) -> CosignedCheckpoint | None:
    """The newest checkpoint with the quorum of the log's policy; None if there is none or it cannot be read."""
    for shard in reversed(shards(config)):
        try:
            found = parse_cosigned(LogDirectory(shard).cosigned())
        except (OSError, FormatError):
            return None
        if found is not None:
            return found
    return None


def read_shard(shard: Path) -> Checkpoint:
    """The published checkpoint of a shard's folder, unverified. FileRefusedError."""
    try:
        return parse_checkpoint(parse_note((shard / CHECKPOINT_PATH).read_bytes()).text)
    except (OSError, FormatError):
        raise FileRefusedError(f"there is no log in {shard}", path=shard) from None


def read_cosigned(shard: Path) -> list[tuple[int, str, int]]:
    """The cosignatures of a shard's newest checkpoint with a quorum, unverified: its size, the witness's name, and the
    time in milliseconds. FileRefusedError.
    """
    try:
        note = parse_note(kept) if (kept := LogDirectory(shard).cosigned()) else None
        checkpoint = None if note is None else parse_checkpoint(note.text)
    except (OSError, FormatError):
        raise FileRefusedError(f"{shard / COSIGNED_PATH} is not a checkpoint", path=shard / COSIGNED_PATH) from None
    if note is None or checkpoint is None:
        return []
    lines = [line for line in note.signatures if line.name != checkpoint.origin]
    return [(checkpoint.size, line.name, cosigned_s(line) * 1000) for line in lines]


def leave_log(config: Config, folder: Path, vkey_file: Path) -> str:
    """Copy the log's newest shard into a new folder, and write its verifier key into a file; returns the key.

    The node must have stopped: otherwise the copy may mix two moments. FileRefusedError if there is no log, or the
    folder exists.
    """
    found = shards(config)
    if not found:
        raise FileRefusedError(f"there is no log in {config.translog}", path=config.translog / CHECKPOINT_PATH)
    if folder.exists():
        raise FileRefusedError(f"{folder} exists already and is not overwritten", path=folder)
    vkey = vkey_of(config, read_shard(found[-1]).origin)
    shutil.copytree(found[-1], folder, ignore=shutil.ignore_patterns(STAGING))
    write_whole(vkey_file, f"{vkey}\n".encode(), PUBLIC_MODE)
    return vkey
