"""Resolutions: how an open break was settled, as an append-only file of hashed entries (docs/reconciliation.md).

There is one canonical JSON object a line. Each names the hash of the one before, so that a changed, removed or moved
entry shows to anybody who keeps the last hash. A resolution binds to the break's id, a hash of what was found: if
something else is found, the break is open again. A resolution needs a reason, evidence and two different people.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Final

from rgs.core.errors import InvalidFieldError, VerificationError
from rgs.core.reconcile.lines import LINE_BYTES_MAX
from rgs.core.statements import digest, format_canonical, parse_canonical
from rgs.core.statements.kinds import CODE, HASH, NAME, POSITIVE, TIME
from rgs.core.statements.shapes import Record, Text, check_shape

DOMAIN: Final = "rgs/resolution/v1"
HASH_ZERO: Final = "0" * 64
BREAK_ID: Final = Text(r"[0-9a-f]{32}", "the id of a break")
EVIDENCE: Final = Text(r"[ -!#-\[\]-~]{1,200}", "where the proof lies: a ticket, a file, a transaction id")
_FIELDS: Final = {
    "approved_by": NAME,
    "break_id": BREAK_ID,
    "entry_no": POSITIVE,
    "evidence": EVIDENCE,
    "previous": HASH,
    "reason": CODE,
    "resolved_by": NAME,
    "time": TIME,
}
_SHAPE: Final = Record(_FIELDS)


@dataclass(frozen=True, slots=True)
class Resolution:
    """Who settled which break, why, and where the proof lies."""

    break_id: str
    reason: str
    evidence: str
    resolved_by: str
    approved_by: str
    time: str


def format_entry(resolution: Resolution, entry_no: int, previous: str) -> bytes:
    """The next entry, without its line feed. InvalidFieldError for a malformed field or the same name twice."""
    body = {**asdict(resolution), "entry_no": str(entry_no), "previous": previous}
    for name, shape in _FIELDS.items():
        if shape.compiled.fullmatch(body[name]) is None:
            raise InvalidFieldError(
                f"{name} must be of the form {shape.pattern}", field=name, limit=shape.pattern, value=body[name][:80]
            )
    if resolution.resolved_by == resolution.approved_by:
        raise InvalidFieldError(
            "a resolution needs two different people", field="approved_by", value=resolution.approved_by
        )
    return format_canonical(body)


def entry_hash(line: bytes) -> str:
    """The hash of an entry, as the next entry names it."""
    return digest(DOMAIN, line).hex()


def read_resolutions(lines: Iterable[bytes]) -> tuple[dict[str, Resolution], int, str]:
    """(the newest resolution of each break, number of entries, hash of the last); VerificationError for a bad entry."""
    found: dict[str, Resolution] = {}
    count, previous = 0, HASH_ZERO
    for count, line in enumerate(lines, 1):
        body = parse_canonical(line, limit=LINE_BYTES_MAX)
        check_shape(_SHAPE, body, f"resolution {count}")
        if body.pop("previous") != previous or body.pop("entry_no") != str(count):
            raise VerificationError(f"resolution {count} does not follow the one before it", check="resolutions")
        resolution = Resolution(**body)
        if resolution.resolved_by == resolution.approved_by:
            raise VerificationError(f"resolution {count} names one person twice", check="resolutions")
        found[resolution.break_id] = resolution
        previous = entry_hash(line)
    return found, count, previous
