"""The part of an audit that needs no memory, as a pure function over chunks: leaf hashes, envelopes, signatures, and
the form of signed payloads.

`verify_chunk` takes bytes and gives values, so it runs in this process or on any of the `certification.engines`. They
return results in the order of the chunks. A signature is verified under the public key whose fingerprint is the
envelope's keyid, and no other; the replay says whose key that is. An entry that is not an envelope is passed on, and
the replay refuses it.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from time import thread_time
from typing import Final

from rgs.core.errors import FormatError
from rgs.core.statements import KINDS, Envelope, key_fingerprint, parse_envelope
from rgs.core.statements.bulk import is_signed_by
from rgs.core.statements.kinds import is_formed
from rgs.core.tlog.merkle import leaf_hash

_START: Final = KINDS["instance_start"].payload_type.encode("ascii")
_PAYLOAD: Final = re.compile(rb'\{"payload":"([A-Za-z0-9+/=]{1,45000})"')

Found = tuple[bytes, Envelope | None, bool, bool]
"""Leaf hash, the envelope (None if it is not one), whether its signature verifies under its keyid, and whether what is
signed is a payload in the form of its kind.
"""


@dataclass(frozen=True, slots=True)
class LogChunk:
    """Entries in the order of the log, and the public keys (keyid -> 32 bytes) that may have signed them."""

    entries: tuple[bytes, ...]
    keys: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class VerifiedChunk:
    """What was found of a chunk, and the CPU seconds that it took."""

    found: tuple[Found, ...]
    cpu_s: float


def verify_chunk(chunk: LogChunk) -> VerifiedChunk:
    """Pure."""
    began = thread_time()
    found: list[Found] = []
    for entry in chunk.entries:
        hash_ = leaf_hash(entry)
        try:
            envelope = parse_envelope(entry)
        except FormatError:
            found.append((hash_, None, False, False))
            continue
        key = chunk.keys.get(envelope.keyid)
        is_signed = key is not None and is_signed_by(envelope, key)
        found.append((hash_, envelope, is_signed, is_signed and is_formed(envelope)))
    return VerifiedChunk(tuple(found), thread_time() - began)


def named_keys(entries: Iterable[bytes]) -> dict[str, bytes]:
    """The public keys that instance_starts among the entries name, by their own fingerprint. Nothing is believed."""
    keys = {}
    for entry in entries:
        payload = _PAYLOAD.match(entry) if _START in entry else None
        if payload is None:
            continue
        try:
            key = bytes.fromhex(json.loads(base64.b64decode(payload[1]))["public_key"])
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
        if len(key) == 32:
            keys[key_fingerprint(key)] = key
    return keys
