"""The key files of a node: root and node keys, the bundle for auditors, the KEK (ARCHITECTURE 2.13, three keys).

    keys/keys.json         root_key, node_key and key_end statements, each signed by the newest root before it
    keys/root.key          private key of the newest root; belongs offline, the server never reads it
    keys/node.key          private key of this node
    keys/log.key           private key of the transparency log, the same on all nodes of a store
    keys/root.fingerprint  of the first root: what auditors bring from outside
    kek/kek.json           key-encryption keys by epoch, outside the store's folder

A new key is written as `<name>.next`, then named in the bundle, then renamed. If the process is killed in between, the
bundle decides which of the two files counts, and the next change cleans up. A replaced private key is deleted.

Errors: a secret that others may read, a bundle that does not verify as a whole, a node key that is not the newest of
its node in the bundle, or that ended or was revoked.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from rgs.core import statements
from rgs.core.errors import FormatError, VerificationError
from rgs.core.replay.keys import KeyBook
from rgs.core.shards import format_origin, parse_origin
from rgs.core.statements.lines import format_key_bundle, parse_key_bundle
from rgs.core.times import format_time
from rgs.node import files
from rgs.node.config import Config
from rgs.node.hsm import HsmSigner, is_address, parse_address
from rgs.node.pki import ReadEntropy
from rgs.service.sealing import Kek

SEED_BYTES: Final = 32
KEK_BYTES: Final = 32
KEK_EPOCH_MAX: Final = 255
"""A sealed deck stores its epoch in one byte."""
BUNDLE: Final = "keys.json"
ROOT_KEY: Final = "root.key"
LOG_KEY: Final = "log.key"
ROOT_FINGERPRINT: Final = "root.fingerprint"
_KEK_FORMAT: Final = "rgs/kek/v1"
_NEXT: Final = ".next"


@dataclass(frozen=True, slots=True)
class KeyRow:
    """A key of a bundle: `role` root or node, `name` the node or empty, `keyid` hex SHA-256."""

    role: str
    name: str
    keyid: str
    time: str
    development: bool
    state: str
    """`in force`, `replaced`, `ended` or `revoked`."""


# --- what the server loads ----------------------------------------------------------------------------------------


def load_bundle(config: Config) -> bytes:
    """The node's key bundle, verified as a whole. FileRefusedError, VerificationError."""
    return read_bundle(config.keys)


def load_node_signer(config: Config, bundle: bytes | None = None, *, now_ms: int | None = None) -> statements.Signer:
    """The signer of this node: its newest key in the verified bundle. Without `bundle` the one on disk is read.

    FileRefusedError; VerificationError as for `node_key_in_force`.
    """
    content = load_bundle(config) if bundle is None else bundle
    newest = node_key_in_force(content, config.node, now_ms)
    return _find_key(config.keys, node_key_file(config.node, config.node), newest.keyid)


def node_key_in_force(bundle: bytes, node: str, now_ms: int | None) -> KeyRow:
    """The newest key of the node in a verified bundle.

    VerificationError if it is not in force, or dated after `now_ms`: what it signs now would be dated before it.
    """
    rows = [row for row in list_keys(bundle) if row.role == "node" and row.name == node]
    if not rows:
        raise VerificationError(f"the key bundle has no key of node {node}", field="node", value=node)
    newest = rows[-1]
    if newest.state != "in force":
        raise VerificationError(
            f"the key {newest.keyid} of node {node} is {newest.state}: make a new one with `rgs keys node-new`",
            field="node",
            value=node,
        )
    if now_ms is not None and newest.time > (now := format_time(now_ms)):
        raise VerificationError(
            f"the key {newest.keyid} of node {node} is dated {newest.time}, but the server's time is {now}: set the"
            " clocks of this machine and of its database right, or wait until then",
            field="node",
            value=node,
            limit=newest.time,
        )
    return newest


def load_log_signer(folder: Path) -> statements.Signer:
    """The signer of the transparency log; FileRefusedError."""
    path = folder / LOG_KEY
    if not path.exists():
        raise files.FileRefusedError(
            f"there is no log key at {path}: make one with `rgs keys log-new`, or copy that of the other nodes there",
            path=path,
        )
    return load_signer(path)


def load_kek(config: Config) -> Kek:
    """The key-encryption keys; the highest epoch is the current one. FileRefusedError, FormatError."""
    return parse_kek(files.read_whole(config.kek, "key-encryption key file", secret=True))


# --- keys in files ------------------------------------------------------------------------------------------------


def new_key(read: ReadEntropy) -> Ed25519PrivateKey:
    """A signing key from the tested entropy source."""
    return Ed25519PrivateKey.from_private_bytes(read(SEED_BYTES))


def format_private_key(key: Ed25519PrivateKey) -> bytes:
    """PEM, PKCS #8, not encrypted. Inverse of `parse_private_key`."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def parse_private_key(content: bytes, what: str) -> Ed25519PrivateKey:
    """The Ed25519 key of a PEM file. FormatError, which never quotes the content."""
    try:
        key = serialization.load_pem_private_key(content, password=None)
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise FormatError(f"{what} is not an Ed25519 private key in PEM without a password")
    return key


def format_public_key(public_key: bytes) -> bytes:
    """PEM, SubjectPublicKeyInfo, of 32 bytes. Inverse of `parse_public_key`."""
    return Ed25519PublicKey.from_public_bytes(public_key).public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def parse_public_key(content: bytes, what: str) -> bytes:
    """The 32 bytes of the Ed25519 public key of a PEM file. FormatError."""
    try:
        key = serialization.load_pem_public_key(content)
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise FormatError(f"{what} is not an Ed25519 public key in PEM", field="public_key")
    return key.public_bytes_raw()


def format_kek(keys: dict[int, bytes]) -> bytes:
    """The key-encryption keys by epoch as a file. Inverse of `parse_kek`."""
    epochs = [{"epoch": str(epoch), "key": keys[epoch].hex()} for epoch in sorted(keys)]
    return statements.format_canonical({"epochs": epochs, "format": _KEK_FORMAT}) + b"\n"


def parse_kek(content: bytes) -> Kek:
    """The key-encryption keys of a file. FormatError, which never quotes the content."""
    keys: dict[int, bytes] = {}
    try:
        document = statements.parse_canonical(content.removesuffix(b"\n"))
        for item in document["epochs"]:
            keys[int(item["epoch"])] = bytes.fromhex(item["key"])
    except (FormatError, KeyError, TypeError, ValueError):
        raise FormatError("the key-encryption key file is not in its canonical form") from None
    fits = all(1 <= epoch <= KEK_EPOCH_MAX and len(key) == KEK_BYTES for epoch, key in keys.items())
    if not keys or not fits or format_kek(keys) != content:
        raise FormatError(
            f"the key-encryption key file must hold keys of {KEK_BYTES} bytes for epochs 1 to {KEK_EPOCH_MAX}"
        )
    return Kek(max(keys), keys)


def node_key_file(node: str, own: str) -> str:
    """The file name of a node's private key in the home of the node `own`."""
    return "node.key" if node == own else f"node-{node}.key"


# --- statements about keys ----------------------------------------------------------------------------------------


def root_key_statement(public_key: bytes, signer: statements.Signer, now_ms: int) -> bytes:
    """The envelope of a `root_key`. The first root signs itself; a later one names the one before, which signs it."""
    body = {"public_key": public_key.hex()}
    if public_key != signer.public_key:
        body["previous"] = signer.keyid
    return _seal("root_key", body, signer, now_ms)


def node_key_statement(
    public_key: bytes, node: str, signer: statements.Signer, now_ms: int, *, development: bool
) -> bytes:
    """The envelope of a `node_key`, signed by the newest root."""
    body = {"development": development, "node": node, "public_key": public_key.hex()}
    return _seal("node_key", body, signer, now_ms)


def key_end_statement(
    keyid: str, reason: str, signer: statements.Signer, now_ms: int, *, last: tuple[str, int] | None = None
) -> bytes:
    """The envelope of a `key_end`: what the key signs after now does not count, nor do statements of its last instance
    above `last` (instance, statement number).
    """
    body = {"key": keyid, "reason": reason}
    if last is not None:
        body["instance"], body["last_statement_no"] = last[0], str(last[1])
    return _seal("key_end", body, signer, now_ms)


def revocation_statement(
    keyid: str, reason: str, signer: statements.Signer, now_ms: int, *, position: tuple[str, int] | None = None
) -> bytes:
    """The envelope of a `revocation`: nothing signed by the key counts, except what is in the log below the position
    (origin of a shard, size) and was seen there before by an outside witness.
    """
    body = {"key": keyid, "reason": reason}
    if position is not None:
        body["origin"], body["size"] = format_origin(*parse_origin(position[0])), str(position[1])
    return _seal("revocation", body, signer, now_ms)


def _seal(kind: str, body: dict[str, Any], signer: statements.Signer, now_ms: int) -> bytes:
    content = statements.format_canonical({**body, "kind": kind, "time": format_time(now_ms)})
    envelope = statements.seal_envelope(statements.KINDS[kind].payload_type, content, signer)
    # Checked as its readers do, before it is written anywhere.
    statements.parse_statement(statements.parse_envelope(envelope))
    return envelope


# --- the bundle ---------------------------------------------------------------------------------------------------


def read_bundle(folder: Path) -> bytes:
    """The bundle of a keys folder, verified as a whole; FileRefusedError, VerificationError."""
    content = files.read_whole(folder / BUNDLE, "key bundle")
    KeyBook(content)
    return content


def list_keys(bundle: bytes) -> list[KeyRow]:
    """The keys of a verified bundle, in its order."""
    rows: list[KeyRow] = []
    parents: dict[str, str] = {}
    newest: dict[tuple[str, str], str] = {}
    replaced: set[str] = set()
    gone: dict[str, str] = {}
    for data in parse_key_bundle(bundle):
        envelope = statements.parse_envelope(data)
        kind, body = statements.parse_statement(envelope)
        if kind.name not in {"root_key", "node_key"}:
            # A revocation is never replaced by an end.
            if gone.get(body["key"]) != "revoked":
                gone[body["key"]] = "revoked" if kind.name == "revocation" else "ended"
            continue
        keyid = statements.key_fingerprint(bytes.fromhex(body["public_key"]))
        row = KeyRow(
            role=kind.name.removesuffix("_key"),
            name=body.get("node", ""),
            keyid=keyid,
            time=body["time"],
            development=body.get("development", False),
            state="in force",
        )
        rows.append(row)
        parents[keyid] = "" if envelope.keyid == keyid else envelope.keyid
        replaced.add(newest.get((row.role, row.name), ""))
        newest[row.role, row.name] = keyid
    return [replace(row, state=_state(row.keyid, parents, replaced, gone)) for row in rows]


def _state(keyid: str, parents: Mapping[str, str], replaced: Collection[str], gone: Mapping[str, str]) -> str:
    above = parents[keyid]
    while above:  # a revoked key revokes every key below it
        if gone.get(above) == "revoked":
            return "revoked"
        above = parents[above]
    return gone.get(keyid, "replaced" if keyid in replaced else "in force")


def load_root_signer(folder: Path) -> statements.Signer:
    """The signer of the newest root. FileRefusedError if its private key is not in the folder (it belongs offline)."""
    roots = [row for row in list_keys(read_bundle(folder)) if row.role == "root"]
    return _find_key(folder, ROOT_KEY, roots[-1].keyid)


def install(folder: Path, file: str, key: bytes, statement: bytes) -> None:
    """Add the statement of a new key to the bundle, and write its key file. The caller holds the folder's lock."""
    bundle = _extended(folder, statement)
    # A crash before the next line leaves nothing; after it, a key that the bundle does not name (`settle` removes it).
    files.write_whole(folder / (file + _NEXT), key, files.SECRET_MODE)
    # From here on the new key counts: the loaders read `.next` too.
    files.write_whole(folder / BUNDLE, bundle, files.PUBLIC_MODE)
    settle(folder)


def append(folder: Path, statement: bytes) -> None:
    """Add a statement without a new key to the bundle. The caller holds the folder's lock."""
    files.write_whole(folder / BUNDLE, _extended(folder, statement), files.PUBLIC_MODE)


def _extended(folder: Path, statement: bytes) -> bytes:
    bundle = format_key_bundle([*parse_key_bundle(read_bundle(folder)), statement])
    KeyBook(bundle)
    return bundle


def settle(folder: Path) -> None:
    """Finish or undo a change that was interrupted. The caller holds the folder's lock."""
    known = {row.keyid for row in list_keys(read_bundle(folder))}
    for path in sorted(folder.glob(f"*{_NEXT}")):
        if load_signer(path).keyid in known:
            path.replace(path.with_suffix(""))
        else:
            path.unlink()
    files.remove_unfinished(folder)
    files.sync_folder(folder)


def _find_key(folder: Path, file: str, keyid: str) -> statements.Signer:
    for path in (folder / file, folder / (file + _NEXT)):
        if path.exists() and (signer := load_signer(path)).keyid == keyid:
            return signer
    if (folder / file).exists():
        raise files.FileRefusedError(
            f"{folder / file} must be the private key of {keyid}, as the bundle says, and is another one", keyid=keyid
        )
    raise files.FileRefusedError(
        f"there is no private key of {keyid} at {folder / file}", path=folder / file, keyid=keyid
    )


def load_signer(path: Path) -> statements.Signer:
    """The signer of a key file: a private key in PEM, or the address of a key in a hardware module (`rgs.node.hsm`)."""
    content = files.read_whole(path, "private key", secret=True)
    if is_address(content):
        return HsmSigner(parse_address(files.decode_ascii(content, path.name).removesuffix("\n")))
    return statements.Ed25519Signer(parse_private_key(content, path.name))


def read_fingerprint(folder: Path) -> str:
    """The first root's fingerprint, as the folder's file has it. FileRefusedError, FormatError."""
    path = folder / ROOT_FINGERPRINT
    return files.decode_ascii(files.read_whole(path, "root fingerprint"), path.name).strip()
