"""`rgs init` makes a whole home, once, and says nothing that is secret."""

from __future__ import annotations

import hashlib
import shutil
import stat
from pathlib import Path

import pytest

from rgs.core.ids import check_ulid
from rgs.core.replay import KeyBook
from rgs.node.clock import SystemClock
from rgs.node.config import load_config
from rgs.node.files import alone_in
from rgs.node.keyring import load_bundle, load_kek, load_node_signer
from rgs.node.pki import is_development, load_certificate, verify_client_certificate
from rgs.service.callers import Role
from rgs.store.parties import SqliteParties
from rgs.store.sqlite.store import SqliteStore
from tests.support.process.commands import Cli, secrets_of

SECRET = {
    "ca.key",
    "server.key",
    "peers.key",
    "node.key",
    "log.key",
    "root.key",
    "kek.json",
    "rgs.db",
    *(f"demo-{role}.key" for role in Role),
}


@pytest.fixture
def cli(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Cli:
    return Cli(tmp_path / "var" / "rgs", capfd)


def _hashes(home: Path) -> dict[str, str]:
    files = (path for path in home.rglob("*") if path.is_file())
    return {str(path.relative_to(home)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_a_home_has_everything_with_the_right_modes(cli: Cli) -> None:
    cli("init", "--home", str(cli.home), "--node", "n7")
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in cli.home.rglob("*") if path.is_file()}
    assert {name for name, mode in modes.items() if mode == 0o600} == SECRET
    assert {name for name, mode in modes.items() if mode == 0o644} == set(modes) - SECRET
    folders = [cli.home, *(path for path in cli.home.rglob("*") if path.is_dir())]
    assert {stat.S_IMODE(path.stat().st_mode) for path in folders} == {0o700}


def test_its_keys_fit_each_other(cli: Cli) -> None:
    cli("init", "--home", str(cli.home), "--node", "n7")
    config = load_config(cli.home)
    assert config.node == "n7"
    fingerprint = (config.keys / "root.fingerprint").read_text()
    assert KeyBook(load_bundle(config), root=fingerprint.strip()).anchored
    assert load_node_signer(config).keyid in {
        row.split()[0] for row in cli("keys", "show", "--home", str(cli.home)).splitlines()
    }
    assert fingerprint == cli("keys", "root-show", "--home", str(cli.home))
    assert load_kek(config).current == 1
    assert isinstance(config.store, Path)
    assert not config.kek.is_relative_to(config.store.parent)


async def test_its_store_opens_and_allows_one_party_of_each_role(cli: Cli) -> None:
    cli("init", "--home", str(cli.home))
    config = load_config(cli.home)
    assert isinstance(config.store, Path)
    store = SqliteStore(config.store)
    check_ulid(await store.meta("store_epoch"), "store_epoch")
    parties = SqliteParties(config.store)
    rows = {row.party: row for row in await parties.allowed()}
    await parties.close()
    await store.close()
    assert {(row.party, row.role, row.jurisdiction) for row in rows.values()} == {
        (f"demo-{role}", role, "demo" if role is Role.OPERATOR else "") for role in Role
    }
    assert is_development(config.ca.read_bytes())
    for role in Role:
        certificate = load_certificate((config.tls / "clients" / f"demo-{role}.pem").read_bytes())
        verify_client_certificate(certificate, role, f"demo-{role}", SystemClock().now_ms())


def test_a_second_init_changes_nothing(cli: Cli) -> None:
    cli("init", "--home", str(cli.home), "--node", "n7")
    before = _hashes(cli.home)
    assert "nothing to do" in cli("init", "--home", str(cli.home))
    assert "nothing to do" in cli("init", "--home", str(cli.home), "--node", "n7")
    assert _hashes(cli.home) == before
    assert "limit=n7 value=n8" in cli.refused("init", "--home", str(cli.home), "--node", "n8")
    assert _hashes(cli.home) == before


def test_two_homes_share_no_secret(cli: Cli) -> None:
    cli("init", "--home", str(cli.home))
    cli("init", "--home", str(cli.home.with_name("other")))
    first, second = _hashes(cli.home), _hashes(cli.home.with_name("other"))
    assert {name for name in first if first[name] == second[name]} == {"rgs.toml"}


def test_what_is_no_home_is_left_alone(cli: Cli) -> None:
    cli.home.mkdir(parents=True)
    (cli.home / "thesis.txt").write_text("precious")
    assert "missing: " in cli.refused("init", "--home", str(cli.home))
    assert _hashes(cli.home).keys() == {"thesis.txt"}


@pytest.mark.parametrize(
    "gone", ["rgs.toml", "keys/keys.json", "kek/kek.json", "tls/ca.pem", "tls/server.key", "store/rgs.db"]
)
def test_an_incomplete_home_is_named_and_not_mended(cli: Cli, gone: str) -> None:
    cli("init", "--home", str(cli.home))
    (cli.home / gone).unlink()
    before = _hashes(cli.home)
    assert gone in cli.refused("init", "--home", str(cli.home))
    assert _hashes(cli.home) == before


def test_keys_that_were_taken_offline_are_not_missed(cli: Cli) -> None:
    cli("init", "--home", str(cli.home))
    (cli.home / "keys" / "root.key").unlink()
    (cli.home / "tls" / "ca.key").unlink()
    shutil.rmtree(cli.home / "tls" / "clients")
    assert "nothing to do" in cli("init", "--home", str(cli.home))
    load_node_signer(load_config(cli.home))


def test_an_empty_folder_is_taken_and_a_second_init_beside_waits_for_nobody(cli: Cli) -> None:
    cli.home.mkdir(parents=True)
    with alone_in(cli.home.parent, "rgs init"):
        assert "another process is at work" in cli.refused("init", "--home", str(cli.home))
    assert not any(cli.home.iterdir())
    cli("init", "--home", str(cli.home))
    assert [path.name for path in cli.home.parent.iterdir()] == ["rgs"]


def test_a_wrong_name_makes_nothing(cli: Cli) -> None:
    line = cli.refused("init", "--home", str(cli.home), "--node", "Node 1")
    assert "[INVALID_FIELD field=node limit=64 value=Node 1]" in line
    assert not cli.home.parent.exists()


def test_no_secret_is_said(cli: Cli) -> None:
    home = str(cli.home)
    cli("init", "--home", home)
    for command in ("show", "root-show", "bundle"):
        cli("keys", command, "--home", home)
    cli("party", "list", "--home", home)
    cli("party", "add", "--home", home, "--role", "lab", "--party", "second", "--issue")
    cli("export", "--home", home)
    said = "".join(cli.said)
    assert "Made" in said
    for secret in secrets_of(cli.home):
        assert secret not in said
