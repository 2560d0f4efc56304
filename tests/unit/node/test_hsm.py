"""Keys in a hardware module, played by SoftHSM2: what it signs verifies, and what is wrong is told by its name.

Skipped where SoftHSM2 (Debian: softhsm2) or the driver (python-pkcs11) is not installed. RGS_TEST_SOFTHSM names the
library where it lies elsewhere.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rgs.core.errors import FormatError, UnavailableError
from rgs.core.replay import KeyBook
from rgs.core.statements import KINDS, parse_envelope, seal_envelope, verify_signature
from rgs.core.tlog.note import ED25519, Note, note_key, sign_text, verify_note
from rgs.node.hsm import HsmSigner, KeyAddress, format_address, parse_address
from rgs.node.keyring import load_signer
from tests.support.process.commands import Cli

PLACES = (
    os.environ.get("RGS_TEST_SOFTHSM", ""),
    "/usr/lib/softhsm/libsofthsm2.so",
    "/usr/lib64/softhsm/libsofthsm2.so",
    "/usr/local/lib/softhsm/libsofthsm2.so",
)
MODULE = next((Path(place) for place in PLACES if place and Path(place).is_file()), None)
UTIL = shutil.which("softhsm2-util")
WHOLE = MODULE is not None and UTIL is not None and importlib.util.find_spec("pkcs11") is not None
needs_softhsm = pytest.mark.skipif(not WHOLE, reason="SoftHSM2, softhsm2-util or python-pkcs11 is not installed")
ED25519_OID = bytes.fromhex("06032b6570")
P256_OID = bytes.fromhex("06082a8648ce3d030107")
PIN = "493817"


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> dict[str, KeyAddress]:
    """A token with two Ed25519 keys and one of another curve."""
    folder = tmp_path_factory.mktemp("softhsm")
    (folder / "tokens").mkdir()
    (folder / "softhsm2.conf").write_text(f"directories.tokendir = {folder / 'tokens'}\nlog.level = ERROR\n")
    os.environ["SOFTHSM2_CONF"] = str(folder / "softhsm2.conf")
    assert UTIL is not None
    assert MODULE is not None
    for label in ("rgs", "locked"):
        command = [UTIL, "--module", str(MODULE), "--init-token", "--free", "--label", label, "--so-pin", "7777"]
        subprocess.run([*command, "--pin", PIN], check=True, capture_output=True)
    pin = folder / "pin"
    pin.write_text(f"{PIN}\n")
    pin.chmod(0o600)
    pkcs11 = importlib.import_module("pkcs11")
    with pkcs11.lib(str(MODULE)).get_token(token_label="rgs").open(user_pin=PIN, rw=True) as session:  # noqa: S106 - a label
        for label, kind, curve in (
            ("root", pkcs11.KeyType.EC_EDWARDS, ED25519_OID),
            ("root-2", pkcs11.KeyType.EC_EDWARDS, ED25519_OID),
            ("other", pkcs11.KeyType.EC, P256_OID),
        ):
            parameters = session.create_domain_parameters(kind, {pkcs11.Attribute.EC_PARAMS: curve}, local=True)
            parameters.generate_keypair(store=True, label=label)
    return {label: KeyAddress("rgs", label, MODULE, pin) for label in ("root", "root-2", "other", "none")}


@needs_softhsm
def test_what_the_module_signs_verifies(addresses: dict[str, KeyAddress]) -> None:
    signer = HsmSigner(addresses["root"])
    envelope = parse_envelope(seal_envelope(KINDS["report"].payload_type, b"{}", signer))
    assert envelope.keyid == signer.keyid
    verify_signature(envelope, signer.public_key)
    text = "log.example/2026h2\n0\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n"
    line = sign_text(text, "log.example/2026h2", signer)
    verify_note(Note(text, (line,)), [note_key("log.example/2026h2", ED25519, signer)])
    assert PIN not in repr(signer)


@needs_softhsm
def test_a_root_in_a_module_makes_a_bundle_and_follows_itself(
    addresses: dict[str, KeyAddress], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    cli = Cli(tmp_path / "rgs", capfd)
    keys = tmp_path / "root"
    cli("keys", "root-new", str(keys), "--pkcs11", format_address(addresses["root"]))
    cli("keys", "node-new", "--production", "--node", "node1", "--keys", str(keys))
    cli("keys", "root-rotate", "--keys", str(keys), "--pkcs11", format_address(addresses["root-2"]))
    cli("keys", "node-new", "--production", "--node", "node2", "--keys", str(keys))
    root = (keys / "root.fingerprint").read_text().strip()
    assert KeyBook((keys / "keys.json").read_bytes(), root=root).anchored
    assert root == HsmSigner(addresses["root"]).keyid
    assert load_signer(keys / "root.key").keyid == HsmSigner(addresses["root-2"]).keyid
    assert "PRIVATE" not in (keys / "root.key").read_text()
    assert not any(PIN in said for said in cli.said)


@needs_softhsm
def test_what_is_wrong_is_told_by_its_name(addresses: dict[str, KeyAddress], tmp_path: Path) -> None:
    good = addresses["root"]
    wrong = tmp_path / "pin"
    wrong.write_text("1111")
    wrong.chmod(0o600)
    for address, name in (
        (addresses["none"], "NoSuchKey"),
        (KeyAddress("other", "root", good.module, good.pin), "NoSuchToken"),
        (KeyAddress("locked", "root", good.module, wrong), "PinIncorrect"),
        (KeyAddress("rgs", "root", tmp_path / "no.so", good.pin), "Error"),
    ):
        with pytest.raises(UnavailableError, match=name):
            HsmSigner(address)
    with pytest.raises(FormatError, match="is not Ed25519"):
        HsmSigner(addresses["other"])


def test_a_module_that_refuses_leaves_nothing_behind(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    cli, folder = Cli(tmp_path / "rgs", capfd), tmp_path / "root"
    absent = KeyAddress("rgs", "root", tmp_path / "no.so", tmp_path / "no-pin")
    cli("keys", "root-new", str(folder), "--pkcs11", format_address(absent), status=1)
    assert not folder.exists()


def test_an_address_is_read_back() -> None:
    address = KeyAddress("my token", "a;b?&=%", Path("/usr/lib/x y.so"), Path("/etc/pin"))
    assert parse_address(format_address(address)) == address


@pytest.mark.parametrize(
    "uri",
    [
        "pkcs11:token=rgs;object=root?module-path=/x.so&pin-value=1234",
        "pkcs11:token=rgs;object=root?module-path=x.so&pin-source=/p",
        "pkcs11:object=root;token=rgs?module-path=/x.so&pin-source=/p",
        "pkcs11:token=;object=root?module-path=/x.so&pin-source=/p",
        "pkcs11:token=r%67s;object=root?module-path=/x.so&pin-source=/p",
        "pkcs11:token=rgs;object=root;id=1?module-path=/x.so&pin-source=/p",
        "pkcs11:",
    ],
)
def test_another_address_is_refused_and_not_quoted(uri: str) -> None:
    with pytest.raises(FormatError, match=r"^the address of a key") as caught:
        parse_address(uri)
    assert "1234" not in str(caught.value)


def test_without_the_driver_it_is_said_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pkcs11", None)
    key = tmp_path / "root.key"
    key.write_text("pkcs11:token=rgs;object=root?module-path=/x.so&pin-source=/p\n")
    key.chmod(0o600)
    with pytest.raises(UnavailableError, match=r"python-pkcs11 of requirements/runtime\.txt"):
        load_signer(key)
