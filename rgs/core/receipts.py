"""The key path that a receipt carries beside a statement: key bundle and `instance_start` (docs/formats.md, 17).

It stands in the extra data of a `.tlog-proof`, which nothing signs and nothing needs to sign: whoever reads it verifies
it from a root that he brings. Refuses anything but a bundle and one envelope behind it.
"""

from __future__ import annotations

from typing import Final

from rgs.core.errors import FormatError
from rgs.core.statements import parse_envelope
from rgs.core.statements.lines import parse_key_bundle

_FOOT: Final = b"\n]}\n"


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
