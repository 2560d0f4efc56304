"""The bundle: a folder of files, their hashes in SHA256SUMS, a node's signature over these, and a zip of all.

`SHA256SUMS` is what `sha256sum -c` reads. `dossier.jsonl` is one export line: the statement `report` with the name
`dossier/sha256sums`, its SHA-256 and the time, under a node key (docs/formats.md). `signer.txt` holds the public key in
hex, which must match the key id in the envelope. The key bundle, or a key id brought from outside, says whose key that
is; without either the verdict is UNANCHORED.

VerificationError for a folder with a file too many, a link, a name that leaves it, or files other than those signed.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from rgs.core.errors import FormatError, InvalidFieldError, VerificationError
from rgs.core.replay import KeyBook
from rgs.core.replay.reading import read_statement
from rgs.core.statements import (
    KINDS,
    Ed25519Signer,
    ExportLine,
    format_canonical,
    format_line,
    key_fingerprint,
    parse_envelope,
    parse_line,
    parse_statement,
    seal_envelope,
    verify_signature,
)
from rgs.core.times import format_time

SUMS: Final = "SHA256SUMS"
SIGNED: Final = "dossier.jsonl"
SIGNER: Final = "signer.txt"
REPORT_NAME: Final = "dossier/sha256sums"
_UNLISTED: Final = frozenset({SUMS, SIGNED, SIGNER})
_LINE: Final = re.compile(r"([0-9a-f]{64})  ([A-Za-z0-9][A-Za-z0-9._-]*(?:/[A-Za-z0-9][A-Za-z0-9._-]*)*)")
_SMALL: Final = 1 << 20
_ZIP_TIME: Final = (1980, 1, 1, 0, 0, 0)
_PKCS8_ED25519: Final = bytes.fromhex("302e020100300506032b657004220420")
"""RFC 8410: what stands before the 32 bytes of the seed in a PKCS #8 private key of Ed25519."""


def write_bundle(folder: Path, files: Mapping[str, bytes], signer: Ed25519Signer | None, time_ms: int) -> str:
    """Write files, sums and signature into an empty folder; the SHA-256 of the sums."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    sums = "".join(f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in sorted(files)).encode("ascii")
    (folder / SUMS).write_bytes(sums)
    digest = hashlib.sha256(sums).hexdigest()
    if signer is not None:
        body = {"kind": "report", "name": REPORT_NAME, "sha256": digest, "time": format_time(time_ms)}
        envelope = seal_envelope(KINDS["report"].payload_type, format_canonical(body), signer)
        (folder / SIGNED).write_bytes(format_line(ExportLine(envelope, None)) + b"\n")
        (folder / SIGNER).write_text(f"{signer.public_key.hex()}\n", encoding="ascii")
    return digest


def write_zip(folder: Path, path: Path) -> None:
    """All of the folder as a zip, under the folder's name; the same bytes for the same files."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(_names(folder)):
            entry = zipfile.ZipInfo(f"{folder.name}/{name}", _ZIP_TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, (folder / name).read_bytes())


def verify(
    folder: Path, *, bundle: bytes | None = None, root: str | None = None, keyid: str | None = None
) -> Iterator[str]:
    """What holds, line by line. VerificationError at the first thing that does not; FormatError for a bad bundle.

    `bundle` is the server's key bundle and `root` the fingerprint of its root, `keyid` the name of a key, all brought
    from outside.
    """
    sums = _small(folder, SUMS)
    due = dict(_parse_sums(sums))
    there = set(_names(folder))
    if missing := sorted(set(due) - there):
        raise VerificationError(f"{missing[0]} is not there", check="dossier")
    if surplus := sorted(there - set(due) - _UNLISTED):
        raise VerificationError(f"{surplus[0]} is not named in {SUMS}", check="dossier")
    for name, sha256 in due.items():
        with (folder / name).open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != sha256:
                raise VerificationError(f"{name} is not the file that {SUMS} names", check="dossier")
    digest = hashlib.sha256(sums).hexdigest()
    yield f"{len(due)} files are those of {SUMS}, SHA-256 {digest}"
    yield _verify_signature(folder, there, digest, bundle, root, keyid)


def _verify_signature(
    folder: Path, there: set[str], digest: str, bundle: bytes | None, root: str | None, keyid: str | None
) -> str:
    if SIGNED not in there:
        raise VerificationError("the dossier is not signed", check="signature")
    line = _small(folder, SIGNED).removesuffix(b"\n")
    try:
        envelope = parse_envelope(parse_line(line).envelope)
        kind, body = parse_statement(envelope)
        public_key = _parse_signer(_small(folder, SIGNER))
    except (FormatError, ValueError) as error:
        raise VerificationError(f"{SIGNED} or {SIGNER} is not in its form: {error}", check="signature") from None
    if kind.name != "report" or body["name"] != REPORT_NAME or body["sha256"] != digest:
        raise VerificationError(f"{SIGNED} is not about these {SUMS}", check="signature")
    if key_fingerprint(public_key) != envelope.keyid:
        raise VerificationError(f"{SIGNER} is not the key {envelope.keyid}", check="signature")
    verify_signature(envelope, public_key)
    if keyid is not None and keyid != envelope.keyid:
        raise VerificationError(f"signed with key {envelope.keyid}, not {keyid}", check="signature")
    result = f"signed at {body['time']} with key {envelope.keyid}"
    if bundle is None:
        return f"{result}, {'ANCHORED by its name' if keyid else 'UNANCHORED: nobody vouches for this key'}"
    keys = KeyBook(bundle, root=root)
    if root is not None and not keys.anchored:
        raise VerificationError(f"the root of the key bundle is {keys.root}, not {root}", check="root")
    node = read_statement(line, keys).key.name
    return f"{result} of node {node}, {'ANCHORED' if keys.anchored else 'UNANCHORED: no root was brought'}"


def _parse_signer(content: bytes) -> bytes:
    if not re.fullmatch(rb"[0-9a-f]{64}\n", content):
        raise FormatError(f"{SIGNER} is 64 lowercase hex digits and a line feed")
    return bytes.fromhex(content.decode("ascii"))


def _parse_sums(content: bytes) -> Iterator[tuple[str, str]]:
    before = ""
    for number, line in enumerate(content.decode("ascii", errors="replace").splitlines(), 1):
        match = _LINE.fullmatch(line)
        if match is None or match[2] <= before or match[2] in _UNLISTED:
            raise VerificationError(f"{SUMS}, line {number}: no hash and name, or out of order", check="dossier")
        before = match[2]
        yield match[2], match[1]


def _names(folder: Path) -> Iterator[str]:
    for path in folder.rglob("*"):
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise VerificationError(f"{path.relative_to(folder)} is not a plain file", check="dossier")
        if path.is_file():
            yield path.relative_to(folder).as_posix()


def _small(folder: Path, name: str) -> bytes:
    try:
        with (folder / name).open("rb") as file:
            content = file.read(_SMALL + 1)
    except OSError as error:
        raise VerificationError(f"{name}: {error.strerror}", check="dossier") from None
    if len(content) > _SMALL:
        raise VerificationError(f"{name} is longer than {_SMALL} bytes", check="dossier")
    return content


# --- the key that signs -----------------------------------------------------------------------------------------------


def load_signer(path: Path) -> Ed25519Signer:
    """The signer of a private key file: PEM, Ed25519, no password. FormatError, which quotes nothing of it."""
    refused = FormatError(
        "the signing key is not an Ed25519 private key in PEM without a password", field="signing_key"
    )
    try:
        if path.stat().st_mode & 0o077:
            raise FormatError(f"{path} may be read by others: chmod 600", field="signing_key")
        lines = path.read_text(encoding="ascii").split()
    except OSError as error:
        raise FormatError(f"the signing key {path} cannot be read: {error.strerror}", field="signing_key") from None
    except ValueError:
        raise refused from None
    text = " ".join(lines)
    match = re.fullmatch(r"-----BEGIN PRIVATE KEY----- ([A-Za-z0-9+/= ]+) -----END PRIVATE KEY-----", text)
    try:
        der = base64.b64decode(match[1].replace(" ", ""), validate=True) if match else b""
    except binascii.Error:
        raise refused from None
    if len(der) != len(_PKCS8_ED25519) + 32 or not der.startswith(_PKCS8_ED25519):
        raise refused
    return Ed25519Signer.from_seed(der[len(_PKCS8_ED25519) :])


def load_node_signer(home: Path, time_ms: int) -> Ed25519Signer:
    """The node key of a home, which its key bundle must name as in force. InvalidFieldError, VerificationError."""
    try:
        settings = tomllib.loads((home / "rgs.toml").read_text(encoding="utf-8"))
        keys = home / str(settings.get("keys", "keys"))
        bundle = KeyBook((keys / "keys.json").read_bytes())
    except (OSError, ValueError) as error:
        raise InvalidFieldError(f"{home} is not a home with a key bundle: {error}", field="home") from None
    signer = load_signer(keys / "node.key")
    body = {"kind": "report", "name": REPORT_NAME, "sha256": "0" * 64, "time": format_time(time_ms)}
    line = format_line(ExportLine(seal_envelope(KINDS["report"].payload_type, format_canonical(body), signer), None))
    read_statement(line, bundle)  # as an auditor will read it: VerificationError for a key that does not count
    return signer
