"""Receipts of statements that are in a log: a `.tlog-proof` (C2SP tlog-proof) under the newest checkpoint that
witnesses have cosigned, or under the published one where that does not cover the statement yet.

They are made from the log's own files, so any copy of them will do.
"""

from __future__ import annotations

from pathlib import Path

from rgs.core.errors import NotFoundError
from rgs.core.receipts import format_key_path, narrow_bundle
from rgs.tlog.published import published_shards


def make_proof(folder: Path, hash_: bytes, *, bundle: bytes, start: bytes) -> bytes:
    """The `.tlog-proof` of the statement with this hash, with its key path. NotFoundError, LogRefusedError.

    `folder` is a shard, or holds shards; `start` is the envelope of the signer's instance_start.
    """
    for shard in published_shards(folder):
        index = shard.find(hash_)
        if index is not None:
            return shard.proof(index, hash_, format_key_path(narrow_bundle(bundle, start), start))
    raise NotFoundError("the statement is not in the log yet", kind="log entry", hash=hash_.hex())
