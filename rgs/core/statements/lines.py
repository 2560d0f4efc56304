"""Export lines: `{"envelope": …, "private": {"block": …, "salt": …} | null}`, one statement a line; and key bundles.

The envelope stands in the line byte for byte as it was signed. A `seat_opening` has its audit path beside it, as
`"path": [<hex>, …]` before `private`. A line is accepted only in its one form.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from rgs.core.errors import FormatError
from rgs.core.statements.canonical import format_canonical, parse_canonical, verify_length
from rgs.core.statements.envelope import ENVELOPE_BYTES_MAX
from rgs.core.statements.kinds import CODE, CURRENCY, HASH, NAME
from rgs.core.statements.shapes import Array, Record, Text, canonical_pattern, check_shape

LINE_BYTES_MAX = ENVELOPE_BYTES_MAX + 8192
KEY_BUNDLE_BYTES_MAX = 64 * 1024 * 1024

_PRINTABLE = Text(r"[ -!#-\[\]-~]{0,256}")
PRIVATE_BLOCK = Record(
    {},
    {
        "currency": CURRENCY,
        "operator_reference": _PRINTABLE,
        "player": _PRINTABLE,
        "reason": CODE,
        "regulator_participation_id": Text(r"[0-9A-Z]{16}"),
        "regulator_session_id": Text(r"[0-9A-Z]{16}"),
        "regulator": NAME,
        "wallet_transaction_id": _PRINTABLE,
    },
)
_PRIVATE = Record({"block": PRIVATE_BLOCK, "salt": HASH})
PATH_HASHES_MAX = 20
"""Of a tree of 1,048,576 leaves (docs/formats.md, section 10)."""
_PATH = Array(HASH, PATH_HASHES_MAX)
_PRIVATE_FORM = re.compile(canonical_pattern(_PRIVATE).encode("ascii"))
_DECODER = json.JSONDecoder()
_HEAD, _BESIDE, _MIDDLE, _NULL = b'{"envelope":', b',"path":', b',"private":', b"null}"


class ExportLine(NamedTuple):
    """One statement of an export: its envelope bytes, its private block with salt where that still exists, and the
    audit path of a `seat_opening`, its sibling first.
    """

    envelope: bytes
    private: dict[str, Any] | None
    path: tuple[bytes, ...] = ()


def format_line(line: ExportLine) -> bytes:
    """The line without its line feed. Inverse of `parse_line`."""
    private = b"null" if line.private is None else format_canonical(line.private)
    path = (_BESIDE, format_canonical([node.hex() for node in line.path])) if line.path else ()
    return b"".join((_HEAD, line.envelope, *path, _MIDDLE, private, b"}"))


def parse_line(data: bytes) -> ExportLine:
    """The line of `data` (no line feed); FormatError unless it is in its one form. The envelope is not parsed."""
    verify_length("line", data, LINE_BYTES_MAX)
    cut = data.find(_MIDDLE)
    if not data.startswith(_HEAD) or cut < 0 or not data.endswith(b"}"):
        raise FormatError("not an export line")
    envelope, rest = data[len(_HEAD) : cut], data[cut + len(_MIDDLE) :]
    envelope, beside, text = envelope.partition(_BESIDE)
    path = []
    if beside:
        path = parse_canonical(text)
        check_shape(_PATH, path, "path")
        if not path:
            raise FormatError("path: an empty one is left out", field="path")
    private = None
    if rest != _NULL:
        private = _parse_private(rest[:-1])
    return ExportLine(envelope, private, tuple(map(bytes.fromhex, path)))


def _parse_private(text: bytes) -> dict[str, Any]:
    """The private block with its salt; FormatError that names the first fault."""
    private: dict[str, Any]
    if _PRIVATE_FORM.fullmatch(text) is not None:
        private, _ = _DECODER.raw_decode(text.decode("ascii"))  # nothing follows it
        return private
    # The bytes are not canonical or not of the shape: the slow way finds out which, and where.
    private = parse_canonical(text)
    check_shape(_PRIVATE, private, "private")
    raise FormatError("not the canonical form of a private block")  # pragma: no cover - the two ways agree (tested)


def format_key_bundle(statements: list[bytes]) -> bytes:
    """A key bundle: the envelopes of `root_key`, `node_key`, `key_end` and `revocation` statements, the first root's
    first.
    """
    return b'{"format":"rgs/keys/v1","statements":[\n' + b",\n".join(statements) + b"\n]}\n"


def parse_key_bundle(data: bytes) -> list[bytes]:
    """The envelope bytes of a key bundle; FormatError unless it is in its one form. Inverse of `format_key_bundle`."""
    if len(data) > KEY_BUNDLE_BYTES_MAX:
        raise FormatError("key bundle is too long", limit=KEY_BUNDLE_BYTES_MAX, value=len(data))
    head, foot = b'{"format":"rgs/keys/v1","statements":[\n', b"\n]}\n"
    if not data.startswith(head) or not data.endswith(foot) or len(data) <= len(head) + len(foot):
        raise FormatError("not a key bundle of format rgs/keys/v1")
    return data[len(head) : -len(foot)].split(b",\n")
