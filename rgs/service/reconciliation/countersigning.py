"""The signatures of a reconciliation report: verifies ours, adds and verifies the operator's.

`report.jsonl` holds export lines: first the `report` statement under a node key, then any number of `countersignature`
statements. Each of these is over the hash of the first and under a key of the party's own, whose keyid is brought from
outside (docs/reconciliation.md). Before a countersignature the files are compared with those that the report names.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from rgs.core.errors import FormatError, InvalidFieldError, VerificationError
from rgs.core.replay import KeyBook
from rgs.core.replay.reading import read_statement
from rgs.core.statements import (
    KINDS,
    ExportLine,
    Signer,
    format_canonical,
    format_line,
    key_fingerprint,
    leaf_hash,
    parse_envelope,
    parse_line,
    parse_statement,
    seal_envelope,
    verify_signature,
)
from rgs.core.times import format_time
from rgs.service.reconciliation.files import REPORT, REPORT_NAME, SIGNED, sha256_of

COUNTERKEYS: Final = "countersigners.txt"
"""Public keys of countersigners, one a line in hex, checked against the keyid that is brought from outside."""
COUNTERSIGNATURES_MAX: Final = 16
PUBLIC_KEY_BYTES: Final = 32
_SIZE_MAX: Final = 256 * 1024 * 1024


def _read(folder: Path, name: str) -> bytes:
    path = folder / name
    try:
        with path.open("rb") as file:
            content = file.read(_SIZE_MAX + 1)
    except OSError as error:
        raise InvalidFieldError(f"{path}: {error.strerror}", field="report", value=name) from None
    if len(content) > _SIZE_MAX:
        raise InvalidFieldError(f"{path} is longer than {_SIZE_MAX} bytes", field="report", limit=_SIZE_MAX)
    return content


def _lines(folder: Path) -> list[bytes]:
    if not (folder / SIGNED).is_file():
        raise InvalidFieldError(f"{folder} holds no signed report", field="report", value=SIGNED)
    return _read(folder, SIGNED).splitlines()


def verify_files(folder: Path, sha256: str) -> int:
    """Compare report.json with `sha256`, and the other files with report.json; their number. VerificationError."""
    content = _read(folder, REPORT)
    if hashlib.sha256(content).hexdigest() != sha256:
        raise VerificationError(f"{REPORT} is not the file that was signed", check="report")
    files: dict[str, str] = json.loads(content)["files"]
    for name, due in sorted(files.items()):
        try:
            found = sha256_of(folder / Path(name).name)
        except OSError as error:
            raise VerificationError(f"{name}: {error.strerror}", check="report") from None
        if found != due:
            raise VerificationError(f"{name} is not the file that the report names", check="report")
    return len(files) + 1


def _report_of(line: bytes) -> tuple[str, str]:
    try:
        data = parse_line(line).envelope
        kind, body = parse_statement(parse_envelope(data))
    except FormatError as error:
        raise VerificationError(f"{SIGNED}: {error.message}", check="report") from None
    if kind.name != "report" or body["name"] != REPORT_NAME:
        raise VerificationError(f"{SIGNED} does not begin with the report of a reconciliation", check="report")
    return leaf_hash(data).hex(), body["sha256"]


def countersign(folder: Path, signer: Signer, party: str, now_ms: int) -> None:
    """Append the party's countersignature. Raises VerificationError where the files are not the report's."""
    lines = _lines(folder)
    statement, sha256 = _report_of(lines[0] if lines else b"")
    verify_files(folder, sha256)
    body = {"kind": "countersignature", "party": party, "statement": statement, "time": format_time(now_ms)}
    envelope = seal_envelope(KINDS["countersignature"].payload_type, format_canonical(body), signer)
    with (folder / COUNTERKEYS).open("a", encoding="ascii") as file:
        file.write(signer.public_key.hex() + "\n")
    with (folder / SIGNED).open("ab") as file:
        file.write(format_line(ExportLine(envelope, None)) + b"\n")


def add_countersignature(folder: Path, envelope: bytes, public_key: bytes, party: str) -> int:
    """Append a countersignature that was made elsewhere, unless it is there; how many there are.

    FormatError, VerificationError if it is malformed, of another report or party, or not by this key.
    """
    lines = _lines(folder)
    statement, sha256 = _report_of(lines[0])
    verify_files(folder, sha256)
    parsed = parse_envelope(envelope)
    kind, body = parse_statement(parsed)
    if kind.name != "countersignature" or body["statement"] != statement or body["party"] != party:
        raise VerificationError(f"it is no countersignature of {party} over {statement}", check="countersignature")
    if len(public_key) != PUBLIC_KEY_BYTES or parsed.keyid != key_fingerprint(public_key):
        raise VerificationError(f"the public key is not that of {parsed.keyid}", check="countersignature")
    verify_signature(parsed, public_key)
    if any(parse_envelope(parse_line(line).envelope).keyid == parsed.keyid for line in lines[1:]):
        return len(lines) - 1
    if len(lines) > COUNTERSIGNATURES_MAX:
        raise VerificationError(f"there are {COUNTERSIGNATURES_MAX} already", check="countersignature")
    with (folder / COUNTERKEYS).open("a", encoding="ascii") as file:
        file.write(public_key.hex() + "\n")
    new = folder / f".{SIGNED}.new"
    new.write_bytes(b"".join(line + b"\n" for line in [*lines, format_line(ExportLine(envelope, None))]))
    new.replace(folder / SIGNED)
    return len(lines)


def verify_report(folder: Path, bundle: bytes, root: str | None, countersigners: frozenset[str]) -> list[str]:
    """Lines that say what was verified. VerificationError at the first fault.

    `countersigners` are keyids that were brought from outside; each must have signed.
    """
    keys = KeyBook(bundle, root=root)
    if root is not None and not keys.anchored:
        raise VerificationError(f"the root of the key bundle is {keys.root}, not {root}", check="root")
    lines = _lines(folder)
    statement, sha256 = _report_of(lines[0] if lines else b"")
    signed = read_statement(lines[0], keys)
    result = [f"{verify_files(folder, sha256)} files are those that were signed, SHA-256 {sha256}"]
    result.append(f"signed by node {signed.key.name}, {'ANCHORED' if keys.anchored else 'UNANCHORED'}")
    due = set(countersigners)
    public_keys = _public_keys(folder) if len(lines) > 1 else {}
    for number, line in enumerate(lines[1:], 2):
        try:
            envelope = parse_envelope(parse_line(line).envelope)
            kind, body = parse_statement(envelope)
        except FormatError as error:
            raise VerificationError(f"{SIGNED}, line {number}: {error.message}", check="countersignature") from None
        if kind.name != "countersignature" or body["statement"] != statement:
            raise VerificationError(f"{SIGNED}, line {number} is about something else", check="countersignature")
        if envelope.keyid not in public_keys:
            raise VerificationError(f"there is no public key {envelope.keyid}", check="countersignature")
        verify_signature(envelope, public_keys[envelope.keyid])
        is_known = envelope.keyid in countersigners
        due.discard(envelope.keyid)
        known = "whose key was brought from outside" if is_known else "whose key nobody vouches for"
        result.append(f"countersigned by {body['party']}, key {envelope.keyid}, {known}")
    if due:
        raise VerificationError(f"no countersignature of {', '.join(sorted(due))}", check="countersignature")
    return result


def _public_keys(folder: Path) -> dict[str, bytes]:
    found = {}
    for text in _read(folder, COUNTERKEYS).decode("ascii", errors="replace").split():
        try:
            key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(text)).public_bytes_raw()
        except ValueError:
            raise VerificationError(
                f"{COUNTERKEYS} holds no public key of 32 bytes in hex", check="countersignature"
            ) from None
        found[key_fingerprint(key)] = key
    return found
