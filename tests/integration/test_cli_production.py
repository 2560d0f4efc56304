"""`rgs init --production` takes what is given, verifies it, and makes nothing of development; keys in modules; the
witness behind TLS.
"""

from __future__ import annotations

import os
import shutil
import ssl
import stat
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from rgs.core.statements import Ed25519Signer
from rgs.core.tlog.note import ED25519, format_vkey, note_key
from rgs.node import keyring, pki
from rgs.node.clock import now_ms
from rgs.node.config import load_config
from rgs.node.files import FileRefusedError
from rgs.node.hsm import HsmSigner, KeyAddress, format_address
from rgs.node.witness_folder import load_witness_tls, make_witness
from tests.support.process.commands import Cli
from tests.unit.node.test_hsm import addresses as addresses_of_a_token
from tests.unit.node.test_hsm import needs_softhsm
from tests.unit.tlog.test_witness import served

addresses = addresses_of_a_token


def write(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    path.chmod(0o600)


@pytest.fixture
def given(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> tuple[Cli, Path, Path]:
    """The command line, a folder of keys, and one of certificates; no authority of them is marked."""
    cli, keys, tls = Cli(tmp_path / "home", capfd), tmp_path / "root", tmp_path / "tls"
    cli("keys", "root-new", str(keys))
    cli("keys", "node-new", "--production", "--node", "node1", "--keys", str(keys))
    tls.mkdir()
    authority = pki.make_development_ca(os.urandom, now_ms())
    for name, issued in (
        ("server", pki.issue_server(authority, ["localhost"], os.urandom, now_ms())),
        ("peers", pki.issue_peer_certificate(authority, "node1", os.urandom, now_ms())),
    ):
        write(tls / f"{name}.pem", issued.certificate_pem)
        write(tls / f"{name}.key", issued.key_pem)
    # Any certificate without the mark: this one is a leaf, and the doctor would say so.
    write(tls / "ca.pem", pki.issue_server(authority, ["x"], os.urandom, now_ms()).certificate_pem)
    return cli, keys, tls


def init(cli: Cli, keys: Path, tls: Path) -> tuple[str, ...]:
    options = ("--node", "node1", "--keys", str(keys), "--tls", str(tls), "--log-origin", "log.example/rgs")
    return ("init", "--production", "--home", str(cli.home), *options)


def test_the_home_has_what_was_given_and_nothing_of_development(given: tuple[Cli, Path, Path]) -> None:
    cli, keys, tls = given
    said = cli(*init(cli, keys, tls))
    assert "log.example/rgs/" in said
    names = {str(path.relative_to(cli.home)) for path in cli.home.rglob("*") if path.is_file()}
    assert names == {
        *("rgs.toml", "store/rgs.db", "kek/kek.json", "keys/keys.json", "keys/node.key", "keys/log.key"),
        *("keys/root.fingerprint", "tls/ca.pem", "tls/server.pem", "tls/server.key", "tls/peers.pem", "tls/peers.key"),
    }
    assert all(stat.S_IMODE((cli.home / name).stat().st_mode) == 0o600 for name in names if name.endswith(".key"))
    assert cli("party", "list", "--home", str(cli.home)) == ""
    assert keyring.load_node_signer(load_config(cli.home)).keyid in cli("keys", "show", "--home", str(cli.home))
    secrets = [line for path in cli.home.rglob("*.key") for line in path.read_text().splitlines() if "---" not in line]
    assert len(secrets) > 4
    assert not [secret for secret in secrets if secret in "".join(cli.said)]
    assert "exists already" in cli.refused(*init(cli, keys, tls))


WRONG: dict[str, tuple[str, Callable[[Path, Path], object]]] = {
    "no key of the node": ("node-node1.key must be", lambda keys, _: (keys / "node-node1.key").unlink()),
    "the key of another": (
        "node-node1.key must be",
        lambda keys, _: write(keys / "node-node1.key", keyring.format_private_key(keyring.new_key(os.urandom))),
    ),
    "an open key": ("others may read", lambda keys, _: (keys / "node-node1.key").chmod(0o644)),
    "no certificate": ("there is no certificate server", lambda _, tls: (tls / "server.pem").unlink()),
    "an open key of a certificate": ("others may read", lambda _, tls: (tls / "peers.key").chmod(0o640)),
    "a development authority": (
        "is a development authority",
        lambda _, tls: write(tls / "ca.pem", pki.make_development_ca(os.urandom, now_ms()).certificate_pem),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_refused_and_leaves_nothing(name: str, given: tuple[Cli, Path, Path]) -> None:
    cli, keys, tls = given
    why, plant = WRONG[name]
    plant(keys, tls)
    assert why in cli.refused(*init(cli, keys, tls))
    assert not cli.home.exists()


def test_a_development_key_and_missing_options_are_refused(given: tuple[Cli, Path, Path]) -> None:
    cli, keys, tls = given
    cli("keys", "node-new", "--node", "node1", "--keys", str(keys))
    assert "marked as a development key" in cli.refused(*init(cli, keys, tls))
    assert "--production needs" in cli.refused("init", "--production", "--home", str(cli.home))
    assert "--production needs" in cli.refused("init", "--home", str(cli.home), "--tls", str(tls))


# --- keys in modules --------------------------------------------------------------------------------------------------


@needs_softhsm
def test_node_and_log_keys_stay_in_a_module(
    addresses: dict[str, KeyAddress], given: tuple[Cli, Path, Path], tmp_path: Path
) -> None:
    cli, keys, tls = given
    root = addresses["root"]
    made = {
        label: format_address(KeyAddress(root.token, f"{label}-{tmp_path.name}", root.module, root.pin))
        for label in ("node", "elsewhere", "log")
    }
    for label, address in made.items():
        cli("keys", "module-new", address, "--public", str(tmp_path / f"{label}.pub"))
        assert "name another" in cli.refused("keys", "module-new", address)
    cli("keys", "node-new", "--production", "--node", "node1", "--keys", str(keys), "--pkcs11", made["node"])
    cli("keys", "log-new", "--keys", str(keys), "--pkcs11", made["log"])
    cli(*init(cli, keys, tls))
    signer = keyring.load_node_signer(load_config(cli.home))
    assert isinstance(signer, HsmSigner)
    assert isinstance(keyring.load_log_signer(cli.home / "keys"), HsmSigner)
    assert "PRIVATE" not in "".join(path.read_text() for path in (cli.home / "keys").glob("*.key"))

    # The module of another machine: its public key is enough for the root.
    public = str(tmp_path / "elsewhere.pub")
    cli("keys", "node-new", "--production", "--node", "node2", "--keys", str(keys), "--public-key", public)
    write(keys / "node-node2.key", f"{made['elsewhere']}\n".encode())
    shutil.rmtree(cli.home)
    cli(*[word.replace("node1", "node2") if word == "node1" else word for word in init(cli, keys, tls)])
    assert isinstance(keyring.load_node_signer(load_config(cli.home)), HsmSigner)
    both = ("--pkcs11", made["node"], "--public-key", public)
    assert "either" in cli.refused("keys", "node-new", "--node", "node1", "--keys", str(keys), *both)
    write(tmp_path / "bad.pub", b"nothing")
    bad = ("--public-key", str(tmp_path / "bad.pub"))
    assert "not an Ed25519" in cli.refused("keys", "node-new", "--node", "node1", "--keys", str(keys), *bad)


def test_a_public_key_is_read_back() -> None:
    public = Ed25519Signer(keyring.new_key(os.urandom)).public_key
    assert keyring.parse_public_key(keyring.format_public_key(public), "x") == public


# --- the witness ------------------------------------------------------------------------------------------------------


def test_a_witness_serves_tls_itself(given: tuple[Cli, Path, Path], tmp_path: Path) -> None:
    _, _, tls = given
    log = note_key("log.example/rgs/2026h2", ED25519, Ed25519Signer(keyring.new_key(os.urandom)))
    make_witness(tmp_path / "witness", "witness.example", [format_vkey(log)])
    context = load_witness_tls(tls / "server.pem", tls / "server.key")
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    with served(tmp_path / "witness", tls=context) as server:
        address = f"localhost:{server.port}/{'0' * 64}/checkpoint"
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"https://{address}", context=trusting)
        with pytest.raises(OSError, match=r"reset|closed|disconnected|Remote end"):
            urllib.request.urlopen(f"http://{address}", timeout=5)
        with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
            urllib.request.urlopen(f"https://{address}")
    (tls / "server.key").chmod(0o644)
    with pytest.raises(FileRefusedError, match="others may read"):
        load_witness_tls(tls / "server.pem", tls / "server.key")
    with pytest.raises(FileRefusedError, match="are not a certificate and its key"):
        load_witness_tls(tls / "server.pem", tls / "peers.key")
