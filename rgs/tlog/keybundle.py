"""The key statements as entries of the log: root_key, node_key, key_end and revocation, in the order of the key bundle
(docs/keys.md).

They have no numbers of their own, so their place in the bundle is their number. A bundle only grows; one with a new
root begins again, under another name. So the order has each of them once and without a gap, as it has the statements of
an instance. A bundle that contradicts the log is refused. A bundle that is behind the order is waited for.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rgs.core.errors import FormatError
from rgs.core.statements.envelope import parse_envelope
from rgs.core.tlog.merkle import leaf_hash
from rgs.store.interface import StatementRow
from rgs.store.sequence import read_place
from rgs.tlog.directory import LogRefusedError
from rgs.tlog.published import published_shards

_PREFIX: Final = "keys/"
"""With the keyid of the first root: a name that no instance can have."""
KIND: Final = "key statement"


def is_bundle(name: str) -> bool:
    """Whether a name of the order is that of a key bundle, not of an instance."""
    return name.startswith(_PREFIX)


def bundle_name(statements: Sequence[bytes]) -> str:
    """The name of a verified bundle; empty for one without statements."""
    return _PREFIX + parse_envelope(statements[0]).keyid if statements else ""


def bundle_rows(statements: Sequence[bytes], first_no: int, last_no: int) -> list[StatementRow]:
    """The statements at these places as rows that sort before those of any instance."""
    name = bundle_name(statements)
    return [
        StatementRow(0, KIND, name, number, "", 0, "", leaf_hash(envelope), envelope, b"")
        for number, envelope in enumerate(statements[first_no - 1 : last_no], first_no)
    ]


def verify_bundle(statements: Sequence[bytes], folder: Path, order: Path) -> None:
    """LogRefusedError where the log in the folder has another statement at some place of the bundle."""
    try:
        shards = {shard.origin: shard for shard in published_shards(folder)}
    except FormatError as error:
        raise LogRefusedError("FILE_MALFORMED", f"a checkpoint: {error.message}", path=folder) from None
    for row in bundle_rows(statements, 1, len(statements)):
        place = read_place(order, row.instance, row.statement_no)
        if place is None:
            return
        origin, index = place
        shard = shards.get(origin)
        # What is not published yet will be written from this bundle. A shard that was moved away is not checked.
        if shard is not None and index < shard.size and shard.leaf(index) != row.hash:
            raise LogRefusedError(
                "KEYS_DIFFER",
                f"statement {row.statement_no} of the key bundle is another one in the log: put the bundle back that"
                " the log was written from",
                path=order,
            )


def verify_holds(statements: Sequence[bytes], name: str, last_no: int) -> None:
    """LogRefusedError where the bundle is shorter than the order, or another one."""
    if bundle_name(statements) != name or len(statements) < last_no:
        raise LogRefusedError(
            "KEYS_BEHIND",
            f"statement {last_no} of the key bundle has its place in the log, and is not in the bundle of this node:"
            " carry the newest one here",
        )
