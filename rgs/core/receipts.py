"""The key path that a receipt carries beside a statement: key bundle and `instance_start` (docs/formats.md, 17).

It stands in the extra data of a `.tlog-proof`. Nothing signs that data: a reader verifies it from a root that he has
from elsewhere.
"""

from __future__ import annotations

from typing import Final

from rgs.core.errors import FormatError
from rgs.core.statements import key_fingerprint, parse_envelope, parse_statement
from rgs.core.statements.lines import format_key_bundle, parse_key_bundle

_FOOT: Final = b"\n]}\n"


def narrow_bundle(bundle: bytes, start: bytes) -> bytes:
    """The part of a key bundle that the path to one instance needs: all roots, the node key that signed its
    instance_start, and their ends and revocations. Readers of a proof take at most 64 KiB.
    """
    envelope = parse_envelope(start)
    path = {envelope.keyid, _fingerprint(start)}
    kept = []
    for data in parse_key_bundle(bundle):
        kind, body = parse_statement(parse_envelope(data))
        if kind.name == "root_key":
            path.add(_fingerprint(data))
        named = _fingerprint(data) if "public_key" in body else body["key"]
        if named in path:
            kept.append(data)
    return format_key_bundle(kept)


def _fingerprint(data: bytes) -> str:
    return key_fingerprint(bytes.fromhex(parse_statement(parse_envelope(data))[1]["public_key"]))


def format_key_path(bundle: bytes, start: bytes) -> bytes:
    """Key bundle, then the envelope of the instance_start, then a line feed. Inverse of `parse_key_path`."""
    return bundle + start + b"\n"


def parse_key_path(data: bytes) -> tuple[bytes, bytes]:
    """Bundle and envelope; FormatError."""
    head, foot, rest = data.partition(_FOOT)
    bundle, start = head + foot, rest.removesuffix(b"\n")
    parse_key_bundle(bundle)
    parse_envelope(start)
    if format_key_path(bundle, start) != data:
        raise FormatError("the key path is not in its one form", field="extra")
    return bundle, start
