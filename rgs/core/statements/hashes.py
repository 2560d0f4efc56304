"""The hashes that tie a round together: commitment, running hash of the actions, private block, request digest
(docs/formats.md).

Each has its own domain, so that the input of one cannot be read as the input of another.
"""

from __future__ import annotations

import hashlib
from typing import Any

from rgs.core.errors import FormatError
from rgs.core.statements.canonical import digest, format_canonical

SALT_BYTES = 32
TRANSCRIPT_BYTES_MAX = 4096
"""Far above what 51 draws by rejection consume (53.6 on average); the length field would hold 65,535."""


def commitment_of(deal_core: bytes, salt: bytes, transcript: bytes) -> bytes:
    """Commitment to a deal, 32 bytes:
    SHA-256("rgs/commitment/v1" 00 || SHA-256(deal core) || salt[32] || u16 big-endian length || transcript).
    """
    if len(salt) != SALT_BYTES:
        raise FormatError(f"a salt has {SALT_BYTES} bytes, not {len(salt)}", limit=SALT_BYTES, value=len(salt))
    if not 1 <= len(transcript) <= TRANSCRIPT_BYTES_MAX:
        raise FormatError(
            f"a transcript has 1 to {TRANSCRIPT_BYTES_MAX} bytes, not {len(transcript)}",
            limit=TRANSCRIPT_BYTES_MAX,
            value=len(transcript),
        )
    length = len(transcript).to_bytes(2, "big")
    return digest("rgs/commitment/v1", hashlib.sha256(deal_core).digest(), salt, length, transcript)


def first_actions_hash(start: bytes) -> bytes:
    """The running hash of a round before any action, 32 bytes. `start` is the commitment, at a table the hash of the
    seat's opening.
    """
    return digest("rgs/actions/v1", start)


def next_actions_hash(running: bytes, action: dict[str, Any]) -> bytes:
    """The running hash after `action` (its object as in the final), 32 bytes."""
    return hash_with_action(running, format_canonical(action))


def hash_with_action(running: bytes, action: bytes) -> bytes:
    """As `next_actions_hash`, from the canonical bytes of the action."""
    return digest("rgs/actions/v1", running, action)


def private_hash(salt: bytes, block: dict[str, Any]) -> bytes:
    """The hash of a private block in its statement: SHA-256("rgs/private/v1" 00 || salt[32] || canonical block)."""
    if len(salt) != SALT_BYTES:
        raise FormatError(f"a salt has {SALT_BYTES} bytes, not {len(salt)}", limit=SALT_BYTES, value=len(salt))
    return digest("rgs/private/v1", salt, format_canonical(block))


def request_digest(fields: dict[str, Any]) -> bytes:
    """Digest of a mutating request over its parsed fields (method and party among them), 32 bytes."""
    return digest("rgs/request/v1", format_canonical(fields))
