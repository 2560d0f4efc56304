"""`rgs keys`: from a root in a folder of its own to nodes, rotations and ends, as auditors can follow them."""

from __future__ import annotations

import shutil
import stat
from pathlib import Path

from rgs.core.replay import KeyBook
from rgs.core.statements import parse_envelope, parse_statement
from rgs.core.statements.lines import parse_key_bundle
from rgs.node.config import load_config
from rgs.node.files import alone_in
from rgs.node.keyring import load_node_signer
from tests.support.process.commands import Cli, secrets_of


def _keys(cli: Cli, *arguments: str) -> tuple[str, ...]:
    return ("keys", *arguments, "--home", str(cli.home))


def _rows(cli: Cli) -> list[tuple[str, str, str]]:
    *rows, log = [line.split("\t") for line in cli(*_keys(cli, "show")).splitlines()]
    assert (len(log[0]), *log[1:]) == (64, "log", "-", "-", "-", "in force")
    assert all(len(row[0]) == 64 and row[3].endswith("Z") for row in rows)
    return [(row[1], row[2], row[5]) for row in rows]


def test_a_life_of_keys(cli: Cli, tmp_path: Path) -> None:
    root = cli(*_keys(cli, "root-show")).strip()
    first = load_node_signer(load_config(cli.home)).keyid
    cli(*_keys(cli, "node-new", "--node", "node1"))
    cli(*_keys(cli, "node-new", "--node", "node2"))
    cli(*_keys(cli, "root-rotate"))
    cli(*_keys(cli, "node-new", "--node", "node1", "--production"))
    cli(*_keys(cli, "end", first, "--reason", "RETIRED"))
    assert _rows(cli) == [
        ("root", "-", "replaced"),
        ("node", "node1", "ended"),
        ("node", "node1", "replaced"),
        ("node", "node2", "in force"),
        ("root", "-", "in force"),
        ("node", "node1", "in force"),
    ]
    config = load_config(cli.home)
    assert load_node_signer(config).keyid in cli(*_keys(cli, "show")).splitlines()[-2]
    assert stat.S_IMODE((config.keys / "node-node2.key").stat().st_mode) == 0o600
    assert cli(*_keys(cli, "root-show")).strip() == root == (config.keys / "root.fingerprint").read_text().strip()
    bundle = cli(*_keys(cli, "bundle")).encode("ascii")
    assert bundle == config.bundle.read_bytes()
    assert KeyBook(bundle, root=root).anchored
    file = tmp_path / "bundle.json"
    file.write_bytes(bundle)
    assert cli("keys", "verify", str(file), "--root", root) == f"ANCHORED {root}: 6 keys\n"
    assert cli("keys", "verify", str(file)) == f"UNANCHORED {root}: 6 keys\n"
    assert "not confirmed from outside" in cli.err
    assert "another root" in cli.refused("keys", "verify", str(file), "--root", first)
    said = "".join(cli.said)
    for secret in secrets_of(cli.home):
        assert secret not in said


def test_the_other_nodes_key_works_in_its_home(cli: Cli, tmp_path: Path) -> None:
    cli(*_keys(cli, "node-new", "--node", "node2"))
    other = tmp_path / "second"
    cli("init", "--home", str(other), "--node", "node2")
    keys = cli.home / "keys"
    shutil.copy2(keys / "keys.json", other / "keys" / "keys.json")
    shutil.copy2(keys / "node-node2.key", other / "keys" / "node.key")
    (other / "keys" / "root.key").unlink()
    load_node_signer(load_config(other))


def test_a_production_path_begins_in_a_folder_of_its_own(cli: Cli, tmp_path: Path) -> None:
    offline = tmp_path / "medium"
    cli("keys", "root-new", str(offline))
    cli("keys", "node-new", "--production", "--node", "node1", "--keys", str(offline))
    assert {path.name for path in offline.iterdir()} == {"root.key", "root.fingerprint", "keys.json", "node-node1.key"}
    assert stat.S_IMODE((offline / "root.key").stat().st_mode) == 0o600
    lines = cli("keys", "show", "--keys", str(offline)).splitlines()
    assert [line.split("\t")[4] for line in lines] == ["-", "-"], "neither is marked for development"
    shutil.copy2(offline / "keys.json", cli.home / "keys" / "keys.json")
    shutil.copy2(offline / "node-node1.key", cli.home / "keys" / "node.key")
    (cli.home / "keys" / "root.key").unlink()
    assert load_node_signer(load_config(cli.home)).keyid == lines[1].split("\t")[0]
    assert "is not empty" in cli.refused("keys", "root-new", str(offline))


def test_without_the_roots_private_key_nothing_is_signed(cli: Cli) -> None:
    (cli.home / "keys" / "root.key").unlink()
    before = (cli.home / "keys" / "keys.json").read_bytes()
    node = load_node_signer(load_config(cli.home)).keyid
    for arguments in (["node-new", "--node", "node1"], ["root-rotate"], ["end", node, "--reason", "RETIRED"]):
        assert "there is no private key of" in cli.refused(*_keys(cli, *arguments))
    assert (cli.home / "keys" / "keys.json").read_bytes() == before
    assert load_node_signer(load_config(cli.home)).keyid == node


def test_what_cannot_be_ended_is_refused(cli: Cli) -> None:
    root = cli(*_keys(cli, "root-show")).strip()
    node = load_node_signer(load_config(cli.home)).keyid
    assert "is a root key" in cli.refused(*_keys(cli, "end", root, "--reason", "RETIRED"))
    assert "no such key" in cli.refused(*_keys(cli, "end", "0" * 64, "--reason", "RETIRED"))
    assert "64 hex digits" in cli.refused(*_keys(cli, "end", "xyz", "--reason", "RETIRED"))
    assert "key_end.reason" in cli.refused(*_keys(cli, "end", node, "--reason", "free text"))
    cli(*_keys(cli, "end", node, "--reason", "RETIRED"))
    assert "only node keys and replaced roots can end, once each" in cli.refused(
        *_keys(cli, "end", node, "--reason", "RETIRED")
    )


def test_a_bad_node_name_or_folder_is_refused(cli: Cli, tmp_path: Path) -> None:
    before = sorted(path.name for path in (cli.home / "keys").iterdir())
    assert "field=node" in cli.refused(*_keys(cli, "node-new", "--node", "../x"))
    assert "no folder of keys" in cli.refused("keys", "show", "--keys", str(tmp_path / "none"))
    with alone_in(cli.home / "keys", "rgs keys"):
        assert "another process is at work" in cli.refused(*_keys(cli, "node-new", "--node", "node1"))
    assert sorted(path.name for path in (cli.home / "keys").iterdir()) == before


def test_a_broken_bundle_is_not_written_out(cli: Cli) -> None:
    path = cli.home / "keys" / "keys.json"
    path.write_bytes(path.read_bytes().replace(b"payloadType", b"payloadtype", 1))
    assert "[VERIFICATION_FAILED" in cli.refused(*_keys(cli, "bundle"))


def test_what_names_no_key_or_half_an_end_is_refused(cli: Cli) -> None:
    before = (cli.home / "keys" / "keys.json").read_bytes()
    node = load_node_signer(load_config(cli.home)).keyid
    for arguments, why in (
        ([], "either a key or --node"),
        ([node, "--node", "node1"], "either a key or --node"),
        (["--node", "node1"], "no such key"),  # none of its keys is replaced
        ([node, "--instance", "node1-b1-w0"], "together, or neither"),
        ([node, "--last-statement-no", "7"], "together, or neither"),
        ([node, "--instance", "../x", "--last-statement-no", "7"], "field=instance"),
    ):
        assert why in cli.refused(*_keys(cli, "end", *arguments, "--reason", "RETIRED"))
    (cli.home / "store" / "rgs.db").unlink()
    assert "there is no store" in cli.refused(*_keys(cli, "end", node, "--reason", "RETIRED"))
    assert (cli.home / "keys" / "keys.json").read_bytes() == before


def test_a_root_that_was_replaced_is_ended_by_the_next(cli: Cli) -> None:
    root = cli(*_keys(cli, "root-show")).strip()
    cli(*_keys(cli, "root-rotate"))
    cli(*_keys(cli, "end", root, "--reason", "RETIRED"))
    assert [row[::2] for row in _rows(cli) if row[0] == "root"] == [("root", "ended"), ("root", "in force")]
    cli(*_keys(cli, "node-new", "--node", "node1"))


def test_a_stolen_key_is_revoked_at_a_position(cli: Cli) -> None:
    """The compromise drill of docs/keys.md, as far as files go: a new key first, then the revocation."""
    stolen = load_node_signer(load_config(cli.home)).keyid
    cli(*_keys(cli, "node-new", "--node", "node1"))
    position = ("--origin", "rgs.example/rounds/2026h2", "--size", "70000")
    result = cli(*_keys(cli, "revoke", stolen, "--reason", "STOLEN", *position))
    assert result.startswith(f"revoked {stolen} from entry 70000 of rgs.example/rounds/2026h2 on\n")
    assert _rows(cli)[1:] == [("node", "node1", "revoked"), ("node", "node1", "in force")]
    assert load_node_signer(load_config(cli.home)).keyid != stolen
    body = parse_statement(parse_envelope(parse_key_bundle(load_config(cli.home).bundle.read_bytes())[-1]))[1]
    assert (body["key"], body["origin"], body["size"]) == (stolen, position[1], "70000")


def test_a_revocation_that_makes_no_sense_is_refused(cli: Cli) -> None:
    known, strange = load_node_signer(load_config(cli.home)).keyid, "ab" * 32
    before = load_config(cli.home).bundle.read_bytes()
    for arguments, words in (
        ((known, "--size", "7"), "--origin and --size together"),
        ((known, "--origin", "rgs.example/2026h2"), "--origin and --size together"),
        ((known, "--origin", "rgs.example/2026", "--size", "7"), "an origin is"),
        ((known, "--instance"), "the bundle names the key"),
        ((strange,), "the bundle does not name the key"),
        (("nonsense",), "keyid"),
    ):
        assert words in cli.refused(*_keys(cli, "revoke", *arguments, "--reason", "STOLEN"))
    assert load_config(cli.home).bundle.read_bytes() == before
    cli(*_keys(cli, "revoke", strange, "--instance", "--reason", "STOLEN"))
    root = cli(*_keys(cli, "root-show")).strip()
    assert "start a new one" in cli(*_keys(cli, "revoke", root, "--reason", "STOLEN"))
