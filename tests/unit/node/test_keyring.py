"""Keys on disk: what the loaders take, and what they refuse."""

from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from rgs.core.errors import FormatError, VerificationError
from rgs.core.replay.keys import KeyBook
from rgs.core.statements import KINDS, Ed25519Signer, format_canonical, parse_envelope, parse_statement, seal_envelope
from rgs.core.statements.lines import format_key_bundle, parse_key_bundle
from rgs.core.times import format_time
from rgs.node.config import Config
from rgs.node.files import FileRefusedError
from rgs.node.home import ensure_home
from rgs.node.keyring import (
    append,
    format_kek,
    format_private_key,
    install,
    key_end_statement,
    list_keys,
    load_bundle,
    load_kek,
    load_node_signer,
    load_root_signer,
    new_key,
    node_key_statement,
    parse_kek,
    parse_private_key,
    root_key_statement,
)
from rng.entropy import EntropySource

NOW_MS = 1_763_764_200_123


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return ensure_home(tmp_path / "home", "node1", EntropySource().read, NOW_MS).config


def _new_node(config: Config, node: str = "node1") -> tuple[Ed25519PrivateKey, bytes]:
    key = new_key(EntropySource().read)
    root = load_root_signer(config.keys)
    public_key = key.public_key().public_bytes_raw()
    return key, node_key_statement(public_key, node, root, NOW_MS, development=True)


def test_the_bundle_is_what_auditors_read(config: Config) -> None:
    bundle = load_bundle(config)
    kinds = [parse_statement(parse_envelope(envelope)) for envelope in parse_key_bundle(bundle)]
    assert [kind.name for kind, _ in kinds] == ["root_key", "node_key"]
    assert kinds[1][1]["development"] is True
    root = (config.keys / "root.fingerprint").read_text().strip()
    assert KeyBook(bundle, root=root).anchored
    assert not KeyBook(bundle, root="0" * 64).anchored


def test_the_node_signer_is_the_one_that_the_bundle_names(config: Config) -> None:
    rows = list_keys(load_bundle(config))
    assert [(row.role, row.name, row.state) for row in rows] == [
        ("root", "", "in force"),
        ("node", "node1", "in force"),
    ]
    assert load_node_signer(config).keyid == rows[1].keyid
    assert load_root_signer(config.keys).keyid == rows[0].keyid


def test_a_node_that_the_bundle_does_not_name_has_no_signer(config: Config) -> None:
    with pytest.raises(VerificationError, match="no key of node node2"):
        load_node_signer(replace(config, node="node2"))


def test_a_new_node_key_replaces_the_old_one(config: Config) -> None:
    before = load_node_signer(config).keyid
    key, statement = _new_node(config)
    install(config.keys, "node.key", format_private_key(key), statement)
    assert load_node_signer(config).keyid == Ed25519Signer(key).keyid != before
    assert [row.state for row in list_keys(load_bundle(config))] == ["in force", "replaced", "in force"]
    assert sorted(path.name for path in config.keys.iterdir()) == [
        "keys.json",
        "log.key",
        "node.key",
        "root.fingerprint",
        "root.key",
    ]
    assert stat.S_IMODE((config.keys / "node.key").stat().st_mode) == 0o600


def test_a_new_root_is_signed_by_the_old_one_and_signs_from_then_on(config: Config) -> None:
    old = load_root_signer(config.keys)
    key = new_key(EntropySource().read)
    public_key = key.public_key().public_bytes_raw()
    install(config.keys, "root.key", format_private_key(key), root_key_statement(public_key, old, NOW_MS))
    assert load_root_signer(config.keys).keyid == Ed25519Signer(key).keyid
    key, statement = _new_node(config)
    install(config.keys, "node.key", format_private_key(key), statement)
    book = KeyBook(load_bundle(config), root=old.keyid)
    assert book.anchored, "auditors keep the fingerprint of the first root"
    with pytest.raises(VerificationError, match="newest root"):
        append(config.keys, key_end_statement("0" * 64, "RETIRED", old, NOW_MS))


def test_an_ended_key_signs_no_more(config: Config) -> None:
    keyid = load_node_signer(config).keyid
    append(config.keys, key_end_statement(keyid, "RETIRED", load_root_signer(config.keys), NOW_MS))
    with pytest.raises(VerificationError, match="is ended: make a new one"):
        load_node_signer(config)


@pytest.mark.parametrize("revoked", ["node", "root"])
def test_a_key_that_is_or_hangs_on_a_revoked_one_signs_no_more(config: Config, revoked: str) -> None:
    root = load_root_signer(config.keys)
    keyid = root.keyid if revoked == "root" else load_node_signer(config).keyid
    body = {"key": keyid, "kind": "revocation", "reason": "STOLEN", "time": format_time(NOW_MS)}
    append(config.keys, seal_envelope(KINDS["revocation"].payload_type, format_canonical(body), root))
    append(config.keys, key_end_statement(keyid, "RETIRED", root, NOW_MS))
    with pytest.raises(VerificationError, match="is revoked: make a new one"):
        load_node_signer(config)


def test_a_bundle_with_one_bad_byte_is_refused(config: Config) -> None:
    good = config.bundle.read_bytes()
    for at in (50, len(good) // 2, len(good) - 40):
        config.bundle.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
        with pytest.raises(VerificationError):
            load_bundle(config)
    config.bundle.write_bytes(format_key_bundle(parse_key_bundle(good)))
    load_bundle(config)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o644])
@pytest.mark.parametrize("what", ["node.key", "kek"])
def test_a_secret_that_others_can_read_or_write_is_refused(config: Config, what: str, mode: int) -> None:
    path = config.kek if what == "kek" else config.keys / what
    path.chmod(mode)
    with pytest.raises(FileRefusedError, match=f"mode {mode:04o}") as caught:
        (load_kek if what == "kek" else load_node_signer)(config)
    assert caught.value.metadata["limit"] == "0600"


def test_a_missing_or_foreign_private_key_is_named(config: Config) -> None:
    path = config.keys / "node.key"
    path.write_bytes(format_private_key(new_key(EntropySource().read)))
    with pytest.raises(FileRefusedError, match="must be the private key of"):
        load_node_signer(config)
    path.unlink()
    with pytest.raises(FileRefusedError, match="no private key of"):
        load_node_signer(config)


def test_a_private_key_is_read_back_and_what_is_none_is_not_quoted() -> None:
    key = new_key(EntropySource().read)
    assert parse_private_key(format_private_key(key), "x").private_bytes_raw() == key.private_bytes_raw()
    for content in (b"secretsecret", format_private_key(key)[:-30], b""):
        with pytest.raises(FormatError, match=r"^x is not an Ed25519 private key") as caught:
            parse_private_key(content, "x")
        assert "secret" not in caught.value.message


# --- the key-encryption keys ----------------------------------------------------------------------------------------


def test_the_highest_epoch_is_current_and_no_key_is_shown(config: Config) -> None:
    kek = load_kek(config)
    assert kek.current == 1
    assert len(kek.keys[1]) == 32
    assert kek.keys[1].hex() not in repr(kek)
    keys = {1: bytes(range(32)), 10: bytes(32), 9: bytes([7]) * 32}
    assert parse_kek(format_kek(keys)).current == 10
    assert parse_kek(format_kek(keys)).keys == keys


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b'{"epochs":[],"format":"rgs/kek/v1"}\n',
        b'{"epochs":[{"epoch":"1","key":"00"}],"format":"rgs/kek/v1"}\n',
        format_kek({0: bytes(32)}),
        format_kek({256: bytes(32)}),
        format_kek({1: bytes(31)}),
        format_kek({1: bytes(32)}).replace(b"v1", b"v2"),
        format_kek({1: bytes(32)}) + b"\n",
        format_kek({1: bytes(32)}).replace(b'"1"', b'"01"'),
        format_kek({1: bytes(32)}).replace(b"}]", b'},{"epoch":"1","key":"' + b"11" * 32 + b'"}]'),
        b'{"epochs":"secret","format":"rgs/kek/v1"}\n',
    ],
)
def test_a_kek_file_has_one_form_and_is_not_quoted(content: bytes) -> None:
    with pytest.raises(FormatError, match="key-encryption key file") as caught:
        parse_kek(content)
    assert "secret" not in caught.value.message
    assert "00" not in caught.value.message


def test_a_node_key_of_a_time_to_come_signs_nothing_yet(config: Config) -> None:
    """Planted: the machine of the root was ahead; what the key signed now would be dated before it."""
    assert load_node_signer(config, now_ms=NOW_MS).keyid == load_node_signer(config).keyid
    with pytest.raises(VerificationError, match=r"is dated .*, but the server's time is .*: set the clocks"):
        load_node_signer(config, now_ms=NOW_MS - 1)
