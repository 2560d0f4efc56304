"""The home of a node: made complete with store, keys, KEK, CA, certificates and allow-list; and opened.

The home is built in a sibling folder, synced and renamed, so that it appears whole or not at all. The next run removes
what a killed run left behind. An existing home is never changed. Node key and CA are marked DEVELOPMENT: the home is
not for real money.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography import x509

from rgs.core.errors import InvalidFieldError
from rgs.core.ids import ULID_RANDOM_BYTES, check_name, format_ulid
from rgs.core.jurisdictions import DEMO
from rgs.core.statements import Ed25519Signer
from rgs.core.statements.lines import format_key_bundle
from rgs.node import files, keyring, pki
from rgs.node.config import CONFIG_FILE, Config, load_config
from rgs.node.stores import allow_list
from rgs.service.callers import Role
from rgs.store.address import PostgresAddress, StoreAddress
from rgs.store.interface import PartyRow
from rgs.store.opening import create_store

DEFAULT_NODE: Final = "node1"
PEERS_CERTIFICATE: Final = "peers"
"""File stem of the certificate and key with which the node calls wallets and the regulator's system."""
DEMO_PARTIES: Final = tuple((role, f"demo-{role}") for role in Role)
"""One party of each role."""

_CONFIG: Final = """\
# Settings of this node; docs/node.md names the others. Paths are relative to this folder.
node = "{node}"
listen = "127.0.0.1:50551"
"""


@dataclass(frozen=True, slots=True)
class Home:
    """A complete home: its settings, the first root's fingerprint, and whether this call made it."""

    config: Config
    root: str
    made: bool


def ensure_home(
    home: Path, node: str | None, read: pki.ReadEntropy, time_ms: int, store: PostgresAddress | None = None
) -> Home:
    """Make the home, or find it complete. `node` None: DEFAULT_NODE for a new home, any node for an existing one.
    `store` is the database for a new home; None: a file in the home.

    FileRefusedError if something else is at the path, InvalidFieldError if the home belongs to another node,
    UnavailableError if another init is at work in the parent folder.
    """
    check_name(DEFAULT_NODE if node is None else node, "node")
    home = home.absolute()
    named = DEFAULT_NODE if node is None else node
    if not _is_taken(home) and _build(home, lambda building: _fill(building, named, read, time_ms, store)):
        return Home(load_config(home), keyring.read_fingerprint(home / "keys"), made=True)
    return _found(home, node)


def _is_taken(home: Path) -> bool:
    """Whether there is anything other than an empty folder."""
    return home.is_symlink() or (home.exists() and not (home.is_dir() and not any(home.iterdir())))


def _found(home: Path, node: str | None) -> Home:
    missing = [home / CONFIG_FILE] if not (home / CONFIG_FILE).is_file() else []
    if not missing:
        config = load_config(home)
        server = (config.tls / "server.pem", config.tls / "server.key")
        needed = (config.store, config.kek, config.bundle, config.ca, *server)
        missing = [path for path in needed if isinstance(path, Path) and not path.is_file()]
        if not missing:
            if node is not None and config.node != node:
                raise InvalidFieldError(
                    f"{home} is the home of node {config.node}", field="node", limit=config.node, value=node
                )
            root = next(row.keyid for row in keyring.list_keys(keyring.load_bundle(config)))
            return Home(config, root, made=False)
    raise files.FileRefusedError(
        f"{home} exists and is not a complete home (missing: {', '.join(str(path) for path in missing)});"
        " name another folder, or move it away",
        path=home,
    )


def build_home(home: Path, fill: Callable[[Path], None]) -> None:
    """Make a home: `fill` makes the folder that it gets, and all in it. FileRefusedError if anything is there already,
    UnavailableError if another init is at work in the parent folder.
    """
    if _is_taken(home) or not _build(home, fill):
        raise files.FileRefusedError(f"{home} exists already and is not changed: name another folder", path=home)


def _build(home: Path, fill: Callable[[Path], None]) -> bool:
    """Make the home in a sibling folder, and rename that; False if another process was first."""
    home.parent.mkdir(parents=True, exist_ok=True)
    with files.alone_in(home.parent, "rgs init"):
        if _is_taken(home):
            return False
        # We hold the parent's lock: a sibling with this name was left by a killed run.
        building = home.with_name(f".{home.name}.unfinished")
        if building.exists():
            shutil.rmtree(building)
        try:
            fill(building)
            files.sync_tree(building)
            building.rename(home)  # replaces an empty folder only
        finally:
            shutil.rmtree(building, ignore_errors=True)
        files.sync_folder(home.parent)
    return True


def _fill(home: Path, node: str, read: pki.ReadEntropy, time_ms: int, store: PostgresAddress | None) -> None:
    files.make_folder(home)
    for name in ("store", "embedded", "keys", "kek", "tls", "tls/clients", "log"):
        files.make_folder(home / name)
    config = _CONFIG.format(node=node)
    if store is not None:
        config += f"store = {json.dumps(store.url)}\n"
    # A URL may hold a password.
    files.write_new(
        home / CONFIG_FILE, config.encode("utf-8"), files.PUBLIC_MODE if store is None else files.SECRET_MODE
    )
    files.write_new(home / "kek" / "kek.json", keyring.format_kek({1: read(keyring.KEK_BYTES)}), files.SECRET_MODE)
    _make_keys(home / "keys", node, read, time_ms)
    clients = _make_certificates(home / "tls", node, read, time_ms)
    making = _make_store(home / "store" / "rgs.db" if store is None else store, clients, read, time_ms)
    with ThreadPoolExecutor(1) as alone:  # in a thread, because the caller may run in an event loop
        alone.submit(asyncio.run, making).result()


def _make_keys(folder: Path, node: str, read: pki.ReadEntropy, time_ms: int) -> None:
    root_key, node_key, log_key = keyring.new_key(read), keyring.new_key(read), keyring.new_key(read)
    root, public_key = Ed25519Signer(root_key), node_key.public_key().public_bytes_raw()
    statements = [
        keyring.root_key_statement(root.public_key, root, time_ms),
        keyring.node_key_statement(public_key, node, root, time_ms, development=True),
    ]
    files.write_new(folder / keyring.ROOT_KEY, keyring.format_private_key(root_key), files.SECRET_MODE)
    files.write_new(folder / keyring.node_key_file(node, node), keyring.format_private_key(node_key), files.SECRET_MODE)
    files.write_new(folder / keyring.LOG_KEY, keyring.format_private_key(log_key), files.SECRET_MODE)
    files.write_new(folder / keyring.BUNDLE, format_key_bundle(statements), files.PUBLIC_MODE)
    files.write_new(folder / keyring.ROOT_FINGERPRINT, f"{root.keyid}\n".encode("ascii"), files.PUBLIC_MODE)


def _make_certificates(folder: Path, node: str, read: pki.ReadEntropy, time_ms: int) -> dict[str, x509.Certificate]:
    """Write the certificates of CA, server, outgoing calls and clients; returns those of the clients by party."""
    authority = pki.make_development_ca(read, time_ms)
    write_issued(folder / "ca", authority)
    write_issued(folder / "server", pki.issue_server(authority, pki.SERVER_NAMES, read, time_ms))
    write_issued(folder / PEERS_CERTIFICATE, pki.issue_peer_certificate(authority, node, read, time_ms))
    clients: dict[str, x509.Certificate] = {}
    for role, party in DEMO_PARTIES:
        issued = pki.issue_client(authority, role, party, read, time_ms)
        write_issued(folder / "clients" / party, issued)
        clients[party] = issued.certificate
    return clients


def write_issued(stem: Path, issued: pki.Issued) -> None:
    """Write `<stem>.key` and `<stem>.pem`, both new."""
    files.write_new(stem.with_name(f"{stem.name}.key"), issued.key_pem, files.SECRET_MODE)
    files.write_new(stem.with_name(f"{stem.name}.pem"), issued.certificate_pem, files.PUBLIC_MODE)


def allowed_row(
    certificate: x509.Certificate, role: Role, party: str, jurisdiction: str, time_ms: int, operator: str = ""
) -> PartyRow:
    """The row of the allow-list for a certificate that is allowed now."""
    last_ms = pki.last_ms_of(certificate)
    return PartyRow(pki.fingerprint_of(certificate), party, role, jurisdiction, time_ms, None, last_ms, operator)


def issue_client(config: Config, role: Role, party: str, read: pki.ReadEntropy, time_ms: int) -> pki.Issued:
    """A client certificate from the home's development CA; FileRefusedError if the home has another one."""
    ca_pem = files.read_whole(config.ca, "authority")
    if not pki.is_development(ca_pem):
        raise files.FileRefusedError(
            f"{config.ca} is not a development CA: --issue works with a development CA only", path=config.ca
        )
    key_pem = files.read_whole(config.tls / "ca.key", "private key of the development CA", secret=True)
    return pki.issue_client(pki.load_issued(ca_pem, key_pem), role, party, read, time_ms)


async def ensure_operator(config: Config, party: str, jurisdiction: str, read: pki.ReadEntropy, time_ms: int) -> None:
    """Give an operator a development certificate under its own name, unless it has one that is on the allow-list."""
    stem = config.tls / "clients" / party
    certificate, key = stem.with_name(f"{party}.pem"), stem.with_name(f"{party}.key")
    async with allow_list(config.store) as parties:
        if certificate.is_file() and key.is_file():
            known = pki.fingerprint_of(pki.load_certificate(files.read_whole(certificate, "certificate")))
            if known in {row.fingerprint for row in await parties.allowed()}:
                return
        for left in (certificate, key):  # by a process that was killed here
            left.unlink(missing_ok=True)
        issued = issue_client(config, Role.OPERATOR, party, read, time_ms)
        write_issued(stem, issued)
        await parties.add(allowed_row(issued.certificate, Role.OPERATOR, party, jurisdiction, time_ms))


async def _make_store(
    where: StoreAddress, clients: dict[str, x509.Certificate], read: pki.ReadEntropy, time_ms: int
) -> None:
    await create_store(where, format_ulid(time_ms, read(ULID_RANDOM_BYTES)))
    async with allow_list(where) as parties:
        for role, party in DEMO_PARTIES:
            jurisdiction = DEMO if role is Role.OPERATOR else ""
            await parties.add(allowed_row(clients[party], role, party, jurisdiction, time_ms))
