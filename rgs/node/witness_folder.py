"""The folder of a witness: `witness.key` (secret), `witness.vkey`, `logs.txt`, `seen.db` (docs/verify.md)."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rgs.core.errors import FormatError
from rgs.core.statements import Ed25519Signer
from rgs.core.tlog.note import COSIGNATURE, ED25519, NoteKey, format_vkey, note_key, parse_vkey
from rgs.node.clock import SystemClock
from rgs.node.files import PUBLIC_MODE, SECRET_MODE, FileRefusedError, make_folder, read_whole, write_new, write_whole
from rgs.node.keyring import format_private_key, new_key, parse_private_key
from rgs.store.witness import WitnessStore
from rgs.tlog.witness.witness import Witness
from rng.entropy import EntropySource

KEY: Final = "witness.key"
VKEY: Final = "witness.vkey"
LOGS: Final = "logs.txt"
SEEN: Final = "seen.db"


def make_witness(folder: Path, name: str, vkeys: Sequence[str]) -> str:
    """Make the folder of a witness for logs with these verifier keys; returns the witness's verifier key.

    FileRefusedError if the folder has a key already, FormatError.
    """
    logs = [format_vkey(_log_key(vkey)) for vkey in vkeys]
    if not folder.exists():
        make_folder(folder)
    key = new_key(EntropySource().read)
    vkey = format_vkey(note_key(name, COSIGNATURE, Ed25519Signer(key)))
    write_new(folder / KEY, format_private_key(key), SECRET_MODE)
    write_whole(folder / VKEY, f"{vkey}\n".encode(), PUBLIC_MODE)
    write_whole(folder / LOGS, "".join(f"{one}\n" for one in logs).encode(), PUBLIC_MODE)
    return vkey


def open_witness(folder: Path) -> tuple[Witness, WitnessStore]:
    """The witness of a folder, and its store, which the caller closes. FileRefusedError, FormatError."""
    own = parse_vkey(read_whole(folder / VKEY, "verifier key").decode("utf-8", "replace").rstrip("\n"))
    signer = Ed25519Signer(parse_private_key(read_whole(folder / KEY, "witness key", secret=True), "the witness key"))
    if note_key(own.name, COSIGNATURE, signer) != own:
        raise FileRefusedError(f"{folder / VKEY} is not the verifier key of {folder / KEY}", path=folder)
    lines = read_whole(folder / LOGS, "list of logs").decode("utf-8", "replace").split("\n")
    logs = [_log_key(line) for line in lines if line and not line.startswith("#")]
    if not logs:
        raise FileRefusedError(f"{folder / LOGS} names no log: add its verifier key", path=folder)
    store = WitnessStore(folder / SEEN)
    return Witness(own.name, signer, logs, store, SystemClock()), store


def load_witness_tls(certificate: Path, key: Path) -> ssl.SSLContext:
    """TLS 1.2 or newer with this certificate, its chain behind it. FileRefusedError if others may read the key, or the
    two do not belong together.
    """
    read_whole(certificate, "certificate of the witness")
    read_whole(key, "private key of the witness's certificate", secret=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key)
    except (ssl.SSLError, OSError):
        raise FileRefusedError(f"{certificate} and {key} are not a certificate and its key", path=certificate) from None
    return context


def _log_key(vkey: str) -> NoteKey:
    key = parse_vkey(vkey)
    if key.kind != ED25519:
        raise FormatError(f"{key.name}: a log has a key of kind {ED25519}, not {key.kind}", field="log")
    return key
