"""The home of a node for real money (docs/production.md): keys and certificates are given, none of development made.

What is given is verified first: the node's newest key in the bundle is in force, not marked as a development key, and
its private key is there; the certificates are no development authority's. The private key of a root or of an authority
is never copied. The allow-list of a new store is empty. An existing home is not changed.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rgs.core.errors import RgsError
from rgs.core.ids import ULID_RANDOM_BYTES, check_name, format_ulid
from rgs.node import files, keyring, pki
from rgs.node.config import CONFIG_FILE, Config, load_config
from rgs.node.home import build_home
from rgs.store.address import PostgresAddress
from rgs.store.opening import create_store

FOLDERS: Final = ("store", "embedded", "keys", "kek", "tls", "log")
_CONFIG: Final = """\
# Settings of this node; docs/node.md names the others. Paths are relative to this folder.
node = "{node}"
log_origin = {origin}
"""


class NotForProductionError(RgsError, reason="NOT_FOR_PRODUCTION"):
    """What was given is made for development, or does not belong together."""


@dataclass(frozen=True, slots=True)
class Given:
    """What a production home is made of. Folders: `keys` of `rgs keys root-new` and `node-new`, with a
    log.key where it is not to be made; `tls` with ca.pem,
    server.pem, server.key and, where the node calls peers, peers.pem and peers.key.
    """

    node: str
    keys: Path
    tls: Path
    log_origin: str
    store: PostgresAddress | None


def make_production_home(home: Path, given: Given, read: pki.ReadEntropy, time_ms: int) -> Config:
    """Make the home; returns its settings. FileRefusedError if anything is at the path, NotForProductionError."""
    check_name(given.node, "node")
    secret, public = _verified(given, time_ms)

    def fill(building: Path) -> None:
        files.make_folder(building)
        for name in FOLDERS:
            files.make_folder(building / name)
        config = _CONFIG.format(node=given.node, origin=json.dumps(given.log_origin))
        if given.store is not None:
            config += f"store = {json.dumps(given.store.url)}\n"
        files.write_new(building / CONFIG_FILE, config.encode("utf-8"), files.SECRET_MODE)
        load_config(building)
        for name, content in secret.items():
            files.write_new(building / name, content, files.SECRET_MODE)
        for name, content in public.items():
            files.write_new(building / name, content, files.PUBLIC_MODE)
        kek = keyring.format_kek({1: read(keyring.KEK_BYTES)})
        files.write_new(building / "kek" / "kek.json", kek, files.SECRET_MODE)
        if f"keys/{keyring.LOG_KEY}" not in secret:
            log_key = keyring.format_private_key(keyring.new_key(read))
            files.write_new(building / "keys" / keyring.LOG_KEY, log_key, files.SECRET_MODE)
        where = building / "store" / "rgs.db" if given.store is None else given.store
        with ThreadPoolExecutor(1) as alone:  # in a thread, because the caller may run in an event loop
            alone.submit(asyncio.run, create_store(where, format_ulid(time_ms, read(ULID_RANDOM_BYTES)))).result()

    build_home(home.absolute(), fill)
    return load_config(home)


def _verified(given: Given, time_ms: int) -> tuple[Mapping[str, bytes], Mapping[str, bytes]]:
    """The content of the secret files and of the others, by their names in the home."""
    bundle = keyring.read_bundle(given.keys)
    newest = keyring.node_key_in_force(bundle, given.node, time_ms)
    if newest.development:
        raise NotForProductionError(
            f"the key of node {given.node} is marked as a development key: use `rgs keys node-new --production`",
            field="keys",
            value=newest.keyid,
        )
    key_file = next(
        (path for path in (given.keys / f"node-{given.node}.key", given.keys / "node.key") if path.exists()), None
    )
    if key_file is None or keyring.load_signer(key_file).keyid != newest.keyid:
        raise NotForProductionError(
            f"{given.keys}/node-{given.node}.key must be the private key {newest.keyid} of node {given.node}",
            field="keys",
            value=newest.keyid,
        )
    authorities = files.read_whole(given.tls / "ca.pem", "authorities of clients")
    if pki.is_development(authorities):
        raise NotForProductionError(
            f"{given.tls / 'ca.pem'} is a development authority: give your own", field="tls", value=given.tls / "ca.pem"
        )
    secret = {"keys/node.key": files.read_whole(key_file, "node key", secret=True)}
    public = {
        f"keys/{keyring.BUNDLE}": bundle,
        f"keys/{keyring.ROOT_FINGERPRINT}": f"{keyring.list_keys(bundle)[0].keyid}\n".encode("ascii"),
        "tls/ca.pem": authorities,
    }
    if (given.keys / keyring.LOG_KEY).exists():
        secret[f"keys/{keyring.LOG_KEY}"] = files.read_whole(given.keys / keyring.LOG_KEY, "log key", secret=True)
    for name in ("server", "peers"):
        if name == "server" or (given.tls / f"{name}.pem").exists():
            public[f"tls/{name}.pem"] = files.read_whole(given.tls / f"{name}.pem", f"certificate {name}")
            secret[f"tls/{name}.key"] = files.read_whole(given.tls / f"{name}.key", f"key of {name}", secret=True)
    return secret, public
