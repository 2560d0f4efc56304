"""`rgs keys`: makes and ends root and node keys, and keeps the bundle that auditors get (ARCHITECTURE 2.13).

Each command works on one folder of keys: that of a node's home, or with --keys another one, such as the offline medium
that holds the root. Signing needs the private key of the newest root in this folder. Private keys are never printed.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from typing import Annotated

import typer

from rgs.cli.options import HOME, HomeOption, entropy, new_app, note, verify_together
from rgs.core.errors import InvalidFieldError, NotFoundError, UnavailableError, VerificationError
from rgs.core.ids import check_name
from rgs.core.replay.keys import KeyBook
from rgs.core.statements import Ed25519Signer, Signer, key_fingerprint, parse_envelope
from rgs.core.statements.lines import format_key_bundle
from rgs.node import files, keyring
from rgs.node.clock import now_ms
from rgs.node.config import Config, open_home
from rgs.node.hsm import HsmSigner, make_module_key, parse_address
from rgs.node.stores import reading

app = new_app(help="Root and node keys, and the bundle that auditors get.")

KeysOption = Annotated[
    Path | None, typer.Option("--keys", help="A folder of keys, instead of the home's folder.", file_okay=False)
]

Pkcs11Option = Annotated[
    str | None, typer.Option("--pkcs11", help="Use the key in a hardware module at this address (docs/keys.md).")
]


def _folder(home: Path, keys: Path | None) -> Path:
    folder = open_home(home).keys if keys is None else keys
    if not folder.is_dir():
        raise files.FileRefusedError(f"there is no folder of keys at {folder}", path=folder)
    return folder


@contextmanager
def _changing(folder: Path) -> Iterator[None]:
    """Hold the folder's lock, with an earlier change that was cut short completed or undone."""
    with files.alone_in(folder, "rgs keys"):
        keyring.settle(folder)
        yield


def _new_signer(pkcs11: str | None) -> tuple[bytes, Signer]:
    """The content of the key file and the signer: a new key, or the key that a hardware module holds."""
    if pkcs11 is None:
        key = keyring.new_key(entropy().read)
        return keyring.format_private_key(key), Ed25519Signer(key)
    return f"{pkcs11}\n".encode("ascii", "replace"), HsmSigner(parse_address(pkcs11))


@app.command()
def show(home: HomeOption = HOME, keys: KeysOption = None) -> int:
    """List the keys of the bundle and the log key, one a line, with columns separated by tabs."""
    folder = _folder(home, keys)
    for row in keyring.list_keys(keyring.read_bundle(folder)):
        kind = "development" if row.development else "-"
        print("\t".join((row.keyid, row.role, row.name or "-", row.time, kind, row.state)))
    if (folder / keyring.LOG_KEY).exists():
        print(f"{keyring.load_log_signer(folder).keyid}\tlog\t-\t-\t-\tin force")
    return 0


@app.command(name="log-new")
def log_new(home: HomeOption = HOME, keys: KeysOption = None, pkcs11: Pkcs11Option = None) -> int:
    """Make the key of the transparency log, if there is none. All nodes of a store need the same one."""
    folder = _folder(home, keys)
    with files.alone_in(folder, "rgs keys"):
        content, signer = _new_signer(pkcs11)
        files.write_new(folder / keyring.LOG_KEY, content, files.SECRET_MODE)
    print(f"log {signer.keyid}")
    print("`rgs log show` prints the verifier key that auditors need")
    return 0


@app.command(name="root-show")
def root_show(home: HomeOption = HOME, keys: KeysOption = None) -> int:
    """Print the fingerprint of the first root, which auditors bring from outside."""
    print(keyring.list_keys(keyring.read_bundle(_folder(home, keys)))[0].keyid)
    return 0


@app.command(name="root-new")
def root_new(
    folder: Annotated[Path, typer.Argument(help="An empty or new folder, best on an offline medium.")],
    pkcs11: Pkcs11Option = None,
) -> int:
    """Make a first root key and its bundle in a folder of their own, as the start of a production key path."""
    content, root = _new_signer(pkcs11)  # first, so that a module that fails leaves no folder behind
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with files.alone_in(folder, "rgs keys"):
        if any(folder.iterdir()):
            raise files.FileRefusedError(f"{folder} is not empty: a root needs a folder of its own", path=folder)
        files.write_new(folder / keyring.ROOT_KEY, content, files.SECRET_MODE)
        files.write_new(folder / keyring.ROOT_FINGERPRINT, f"{root.keyid}\n".encode("ascii"), files.PUBLIC_MODE)
        files.write_new(
            folder / keyring.BUNDLE,
            format_key_bundle([keyring.root_key_statement(root.public_key, root, now_ms())]),
            files.PUBLIC_MODE,
        )
        files.sync_folder(folder)
    files.sync_folder(folder.absolute().parent)
    print(f"root {root.keyid}")
    print(f"next: `rgs keys node-new --production --node NAME --keys {folder}`")
    return 0


@app.command(name="root-rotate")
def root_rotate(home: HomeOption = HOME, keys: KeysOption = None, pkcs11: Pkcs11Option = None) -> int:
    """Make a new root key, signed by the newest one. The private key of that one is deleted."""
    folder = _folder(home, keys)
    with _changing(folder):
        signer = keyring.load_root_signer(folder)
        content, root = _new_signer(pkcs11)
        keyring.install(
            folder, keyring.ROOT_KEY, content, keyring.root_key_statement(root.public_key, signer, now_ms())
        )
    print(f"root {root.keyid} follows {signer.keyid}, whose private key was deleted from {folder}")
    print("auditors keep the fingerprint of the first root; give them the new bundle")
    return 0


@app.command(name="node-new")
def node_new(
    node: Annotated[str, typer.Option(help="Name of the node.")],
    production: Annotated[bool, typer.Option("--production", help="Do not mark the key as a development key.")] = False,
    home: HomeOption = HOME,
    keys: KeysOption = None,
    pkcs11: Pkcs11Option = None,
    public_key: Annotated[
        Path | None,
        typer.Option(help="Sign this key (PEM) of a module elsewhere; write no key file.", exists=True, dir_okay=False),
    ] = None,
) -> int:
    """Make a new key of a node, signed by the newest root. A running server starts to use it within seconds."""
    if pkcs11 is not None and public_key is not None:
        raise InvalidFieldError("give either --pkcs11 or --public-key", field="public_key")
    check_name(node, "node")
    folder = _folder(home, keys)
    own = open_home(home).node if keys is None else ""
    file = keyring.node_key_file(node, own)
    with _changing(folder):
        signer = keyring.load_root_signer(folder)
        if public_key is not None:
            public = keyring.parse_public_key(files.read_whole(public_key, "public key"), public_key.name)
            statement = keyring.node_key_statement(public, node, signer, now_ms(), development=not production)
            keyring.append(folder, statement)
            print(f"node {node} {key_fingerprint(public)}")
            print(f"write the address of the key into node.key of the node, and copy {folder / keyring.BUNDLE} there")
            return 0
        content, new = _new_signer(pkcs11)
        statement = keyring.node_key_statement(new.public_key, node, signer, now_ms(), development=not production)
        keyring.install(folder, file, content, statement)
    print(f"node {node} {new.keyid}")
    if node != own:
        print(
            f"copy {folder / file} to the node as its node.key, and {folder / keyring.BUNDLE} to all nodes and auditors"
        )
    return 0


@app.command(name="module-new")
def module_new(
    address: Annotated[str, typer.Argument(help="Where the key shall be: pkcs11:token=…;object=…?…")],
    public: Annotated[Path | None, typer.Option(help="Write the public key here, PEM.", dir_okay=False)] = None,
) -> int:
    """Make an Ed25519 key in a hardware module, where its label is still free. It never leaves the module."""
    public_key = make_module_key(parse_address(address))
    if public is not None:
        files.write_new(public, keyring.format_public_key(public_key), files.PUBLIC_MODE)
    print(f"key {key_fingerprint(public_key)}")
    return 0


@app.command()
def end(
    reason: Annotated[str, typer.Option(help="A code such as RETIRED.")],
    keyid: Annotated[str | None, typer.Argument(help="A key, as `rgs keys show` names it.")] = None,
    node: Annotated[str | None, typer.Option(help="End the newest replaced key of this node.")] = None,
    instance: Annotated[
        str | None, typer.Option(help="The last instance under a node key, if its store is not here.")
    ] = None,
    last_statement_no: Annotated[int | None, typer.Option(help="The number of its last statement.", min=1)] = None,
    home: HomeOption = HOME,
    keys: KeysOption = None,
) -> int:
    """End a node key, or a root key that was replaced: what it signs from now on does not count.

    The end of a node key names the last statement of the last instance under it, which the home's store tells.
    """
    if (keyid is None) == (node is None):
        raise InvalidFieldError("give either a key or --node", field="keyid")
    verify_together("instance", instance=instance, last_statement_no=last_statement_no)
    folder = _folder(home, keys)
    with _changing(folder):
        row = _key_to_end(keyring.list_keys(keyring.read_bundle(folder)), keyid, node)
        signer, time_ms = keyring.load_root_signer(folder), now_ms()
        last = None
        if instance is not None and last_statement_no is not None:
            last = (check_name(instance, "instance"), last_statement_no)
        elif row.role == "node" and keys is None:
            last = asyncio.run(_last_statement(open_home(home), row, time_ms))
        keyring.append(folder, keyring.key_end_statement(row.keyid, reason, signer, time_ms, last=last))
    print(f"ended {row.keyid}" + ("" if last is None else f" with statement {last[1]} of {last[0]}"))
    print("give the new bundle to all nodes and auditors")
    return 0


def _key_to_end(rows: list[keyring.KeyRow], keyid: str | None, node: str | None) -> keyring.KeyRow:
    if keyid is None:
        found = [row for row in rows if (row.role, row.name, row.state) == ("node", node, "replaced")]
        value = node
    else:
        value = files.check_fingerprint(keyid, "keyid")
        found = [row for row in rows if row.keyid == value]
    if not found:
        raise NotFoundError("the bundle has no such key", kind="key", field="keyid", value=value)
    row = found[-1]
    if row.state in {"ended", "revoked"} or (row.role == "root" and row.state != "replaced"):
        raise InvalidFieldError(
            f"key {row.keyid} is a {row.role} key, {row.state}: only node keys and replaced roots can end, once each",
            field="keyid",
            value=row.keyid,
        )
    return row


async def _last_statement(config: Config, row: keyring.KeyRow, time_ms: int) -> tuple[str, int] | None:
    """Name and last statement number of the newest instance that the key has started; None if the store has none.

    UnavailableError if the instance is alive, or started after `time_ms`.
    """
    if isinstance(config.store, Path) and not config.store.is_file():
        raise files.FileRefusedError(f"there is no store at {config.store}: give --instance", path=config.store)
    async with reading(config.store) as reads:
        for instance in sorted(await reads.instances(alive_only=False), key=attrgetter("boot_no"), reverse=True):
            start = await reads.start_of(instance.instance)
            if parse_envelope(start).keyid != row.keyid:
                continue
            if instance.alive:
                raise UnavailableError(
                    f"instance {instance.instance} under this key has not ended: rotate the key, and let the server"
                    " run (or start it once)",
                    instance=instance.instance,
                )
            if time_ms < instance.start_ms:
                raise UnavailableError("this machine's clock is before the start of the last instance under this key")
            return instance.instance, instance.statement_no
    return None


@app.command()
def revoke(
    keyid: Annotated[str, typer.Argument(help="A key, as `rgs keys show` names it.")],
    reason: Annotated[str, typer.Option(help="A code such as STOLEN.")],
    origin: Annotated[
        str | None, typer.Option(help="The log shard that could hold the first statement of the thief.")
    ] = None,
    size: Annotated[
        int | None, typer.Option(help="How many entries the shard had while the key was still safe.", min=0)
    ] = None,
    instance: Annotated[
        bool, typer.Option("--instance", help="The key is an instance's key, which no bundle names.")
    ] = False,
    home: HomeOption = HOME,
    keys: KeysOption = None,
) -> int:
    """Revoke a stolen key: after a position of the log nothing under it counts, before it only what a witness saw.

    Without --origin and --size nothing under the key counts. docs/keys.md has the whole procedure.
    """
    files.check_fingerprint(keyid, "keyid")
    verify_together("origin", origin=origin, size=size)
    folder = _folder(home, keys)
    with _changing(folder):
        rows = {row.keyid: row for row in keyring.list_keys(keyring.read_bundle(folder))}
        if (keyid in rows) == instance:
            raise InvalidFieldError(
                f"the bundle {'names' if instance else 'does not name'} the key: --instance is only for a key that it"
                " does not name",
                field="keyid",
                value=keyid,
            )
        position = None if origin is None or size is None else (origin, size)
        keyring.append(
            folder,
            keyring.revocation_statement(keyid, reason, keyring.load_root_signer(folder), now_ms(), position=position),
        )
    print(f"revoked {keyid}" + ("" if position is None else f" from entry {position[1]} of {position[0]} on"))
    if keyid in rows and rows[keyid].role == "root":
        print("a bundle with a revoked root is useless: start a new one, and give auditors its fingerprint")
    print("give the new bundle to all nodes and auditors at once, by another way than the server")
    return 0


@app.command()
def bundle(home: HomeOption = HOME, keys: KeysOption = None) -> int:
    """Verify the bundle and write it to stdout."""
    content = keyring.read_bundle(_folder(home, keys))
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()
    return 0


@app.command()
def verify(
    file: Annotated[Path, typer.Argument(help="A key bundle.", exists=True, dir_okay=False)],
    root: Annotated[str | None, typer.Option(help="The first root's fingerprint, brought from outside.")] = None,
) -> int:
    """Verify a key bundle as an auditor does. Without --root this only shows that the bundle agrees with itself."""
    fingerprint = None if root is None else files.check_fingerprint(root, "root")
    content = files.read_whole(file, "key bundle")
    book = KeyBook(content, root=fingerprint)
    if fingerprint is not None and not book.anchored:
        raise VerificationError(f"the bundle starts with another root: {book.root}")
    print(f"{'ANCHORED' if book.anchored else 'UNANCHORED'} {book.root}: {len(keyring.list_keys(content))} keys")
    if fingerprint is None:
        note("note: this root is not confirmed from outside; give its fingerprint with --root")
    return 0
