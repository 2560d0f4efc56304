"""`rgs party`: who may call, changed while a server runs, and wrong certificates refused by name."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path

import pytest
from cryptography import x509

from rgs.core.times import format_time
from rgs.node.clock import SystemClock
from rgs.node.config import load_config
from rgs.node.pki import (
    LEAF_DAYS,
    fingerprint_of,
    issue_client,
    last_ms_of,
    load_certificate,
    load_issued,
    make_development_ca,
)
from rgs.service.callers import Role
from rgs.store.sqlite.store import SqliteStore
from rng.entropy import EntropySource
from tests.support.process.commands import Cli
from tests.unit.node.test_pki import made, pem


def _party(cli: Cli, *arguments: str) -> tuple[str, ...]:
    return ("party", *arguments, "--home", str(cli.home))


def _rows(cli: Cli, *options: str) -> dict[str, list[str]]:
    lines = cli(*_party(cli, "list", *options)).splitlines()
    return {line.split("\t")[0]: line.split("\t")[1:] for line in lines}


def _foreign(folder: Path, party: str = "acme") -> Path:
    """A certificate of an authority of the operator's own."""
    read, now_ms = EntropySource().read, SystemClock().now_ms()
    issued = issue_client(make_development_ca(read, now_ms), Role.OPERATOR, party, read, now_ms)
    path = folder / "own.pem"
    path.write_bytes(issued.certificate_pem)
    return path


async def test_a_certificate_is_issued_and_allowed_while_the_store_is_in_use(cli: Cli) -> None:
    store = SqliteStore(Path(str(load_config(cli.home).store)))
    try:
        before = int(await store.meta("parties"))
        add = _party(cli, "add", "--role", "operator", "--party", "acme", "--jurisdiction", "demo", "--issue")
        await asyncio.to_thread(cli, *add)
        assert int(await store.meta("parties")) == before + 1, "the server notices by this counter"
    finally:
        await store.close()
    stem = cli.home / "tls" / "clients" / "acme"
    certificate = load_certificate(stem.with_suffix(".pem").read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [name.value for name in names] == ["rgs://party/operator/acme"]
    rows = await asyncio.to_thread(_rows, cli)
    assert rows[fingerprint_of(certificate)][:3] == ["operator", "acme", "demo"]
    assert stat.S_IMODE(stem.with_suffix(".key").stat().st_mode) == 0o600


def test_a_second_certificate_of_a_party_has_files_of_its_own(cli: Cli) -> None:
    folder = cli.home / "tls" / "clients"
    old = (folder / "demo-lab.pem").read_bytes()
    cli(*_party(cli, "add", "--role", "lab", "--party", "demo-lab", "--issue"))
    assert (folder / "demo-lab.pem").read_bytes() == old
    (new,) = folder.glob("demo-lab-*.pem")
    assert fingerprint_of(load_certificate(new.read_bytes()))[:12] == new.stem.removeprefix("demo-lab-")
    assert new.with_suffix(".key").exists()


def test_an_operators_own_certificate_is_allowed_with_a_remark_about_its_authority(cli: Cli, tmp_path: Path) -> None:
    path = _foreign(tmp_path)
    cli(*_party(cli, "add", "--role", "operator", "--party", "acme", "--jurisdiction", "demo", "--cert", str(path)))
    assert "no CA of" in cli.err
    assert fingerprint_of(load_certificate(path.read_bytes())) in _rows(cli)
    config = load_config(cli.home)
    home_ca = load_issued(config.ca.read_bytes(), (config.tls / "ca.key").read_bytes())
    issued = issue_client(home_ca, Role.LAB, "third", EntropySource().read, SystemClock().now_ms())
    path.write_bytes(issued.certificate_pem)
    cli(*_party(cli, "add", "--role", "lab", "--party", "third", "--cert", str(path)))
    assert cli.err == ""


def test_a_removed_certificate_stays_in_the_books_and_out_of_the_list(cli: Cli) -> None:
    fingerprint = next(name for name, row in _rows(cli).items() if row[1] == "demo-lab")
    spelled = ":".join(fingerprint[at : at + 2] for at in range(0, 64, 2)).upper()
    assert cli(*_party(cli, "remove", spelled)) == f"removed {fingerprint}\n"
    assert fingerprint not in _rows(cli)
    assert _rows(cli, "--all")[fingerprint][4].startswith("removed 20")
    assert "[NOT_FOUND]" in cli.refused(*_party(cli, "remove", fingerprint))
    path = cli.home / "tls" / "clients" / "demo-lab.pem"
    line = cli.refused(*_party(cli, "add", "--role", "lab", "--party", "demo-lab", "--cert", str(path)))
    assert "was removed from the allow-list at 20" in line
    assert "[CERTIFICATE_KNOWN]" in line
    path = cli.home / "tls" / "clients" / "demo-auditor.pem"
    line = cli.refused(*_party(cli, "add", "--role", "auditor", "--party", "demo-auditor", "--cert", str(path)))
    assert "is in the allow-list since 20" in line


def test_the_last_certificate_of_an_admin_is_not_removed(cli: Cli) -> None:
    def admins() -> list[str]:
        return [name for name, row in _rows(cli).items() if row[0] == "admin"]

    (first,) = admins()
    line = cli.refused(*_party(cli, "remove", first))
    assert "add one first" in line
    assert "[LAST_ADMIN value=0]" in line
    assert admins() == [first]
    cli(*_party(cli, "add", "--role", "admin", "--party", "second", "--issue"))
    (second,) = set(admins()) - {first}
    cli(*_party(cli, "remove", first))
    assert "[LAST_ADMIN" in cli.refused(*_party(cli, "remove", second))


@pytest.mark.parametrize(("days_left", "warned"), [(29, True), (31, False)])
def test_a_certificate_that_ends_soon_is_added_with_a_warning(
    cli: Cli, tmp_path: Path, days_left: int, warned: bool
) -> None:
    config, now_ms = load_config(cli.home), SystemClock().now_ms()
    home_ca = load_issued(config.ca.read_bytes(), (config.tls / "ca.key").read_bytes())
    made_ms = now_ms - (LEAF_DAYS - days_left) * 86_400_000
    issued = issue_client(home_ca, Role.LAB, "third", EntropySource().read, made_ms)
    path = tmp_path / "third.pem"
    path.write_bytes(issued.certificate_pem)
    cli(*_party(cli, "add", "--role", "lab", "--party", "third", "--cert", str(path)))
    assert ("warning: the certificate ends at 20" in cli.err) == warned
    (row,) = [row for row in _rows(cli).values() if row[1] == "third"]
    assert row[5] == f"ends {format_time(last_ms_of(issued.certificate))}"


REFUSED = [
    ("two roles in one certificate", ["--role", "admin", "--party", "acme"], "has the URI rgs://party/operator/acme"),
    (
        "another party",
        ["--role", "operator", "--party", "else", "--jurisdiction", "demo"],
        "it must be rgs://party/operator/else",
    ),
    ("no jurisdiction", ["--role", "operator", "--party", "acme"], "needs --jurisdiction [INVALID_FIELD field=juris"),
    ("unknown jurisdiction", ["--role", "operator", "--party", "acme", "--jurisdiction", "xx"], "no jurisdiction 'xx'"),
    ("surplus jurisdiction", ["--role", "lab", "--party", "acme", "--jurisdiction", "demo"], "only operators"),
    ("a bad name", ["--role", "lab", "--party", "../acme"], "[INVALID_FIELD field=party limit=64 value=../acme]"),
    (
        "real money",
        ["--role", "operator", "--party", "acme", "--jurisdiction", "it-adm"],
        "[JURISDICTION_REFUSES field=juris",
    ),
]


@pytest.mark.parametrize(
    ("how", "options", "text"),
    # What is issued always agrees with what it was issued for.
    [(how, *row[1:]) for how in ("--cert", "--issue") for row in REFUSED if how == "--cert" or "rgs://" not in row[2]],
)
def test_what_does_not_fit_is_refused_and_changes_nothing(
    cli: Cli, tmp_path: Path, how: str, options: list[str], text: str
) -> None:
    source = [how, str(_foreign(tmp_path))] if how == "--cert" else [how]
    before = _rows(cli, "--all"), sorted((cli.home / "tls" / "clients").iterdir())
    assert text in cli.refused(*_party(cli, "add", *options, *source))
    assert (_rows(cli, "--all"), sorted((cli.home / "tls" / "clients").iterdir())) == before


def test_a_production_authority_admits_real_money_and_issues_nothing(cli: Cli, tmp_path: Path) -> None:
    (cli.home / "tls" / "ca.pem").write_bytes(pem(made(subject="A real authority")))
    path = _foreign(tmp_path)
    options = ["--role", "operator", "--party", "acme", "--jurisdiction", "it-adm"]
    assert "is not a development CA" in cli.refused(*_party(cli, "add", *options, "--issue"))
    cli(*_party(cli, "add", *options, "--cert", str(path)))
    assert [row[2] for row in _rows(cli).values() if row[1] == "acme"] == ["it-adm"]


def test_a_party_keeps_its_role_and_a_refusal_leaves_no_key_behind(cli: Cli) -> None:
    before = sorted((cli.home / "tls" / "clients").iterdir())
    line = cli.refused(*_party(cli, "add", "--role", "admin", "--party", "demo-lab", "--issue"))
    assert "party demo-lab is lab" in line
    assert sorted((cli.home / "tls" / "clients").iterdir()) == before


@pytest.mark.parametrize("options", [[], ["--issue", "--cert", "CERT"]])
def test_either_a_certificate_or_an_issue(cli: Cli, tmp_path: Path, options: list[str]) -> None:
    path = str(_foreign(tmp_path))
    given = [path if option == "CERT" else option for option in options]
    assert "either --cert or --issue" in cli.refused(*_party(cli, "add", "--role", "lab", "--party", "x", *given))


def test_files_that_are_no_certificate_are_refused(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "file.pem"
    add = _party(cli, "add", "--role", "lab", "--party", "x", "--cert", str(path))
    assert "does not exist" in cli.refused(*add, status=2)
    path.write_text("not a certificate")
    assert "must be a certificate in PEM" in cli.refused(*add)
    path.write_bytes((cli.home / "tls" / "clients" / "demo-lab.key").read_bytes())
    assert "private key" in cli.refused(*add)


def test_without_a_home_or_with_a_broken_store_the_way_on_is_told(cli: Cli, tmp_path: Path) -> None:
    assert "rgs init --home" in cli.refused("party", "list", "--home", str(tmp_path / "none"))
    (cli.home / "store" / "rgs.db").write_bytes(b"no database at all" * 100)
    assert "is no store" in cli.refused(*_party(cli, "list"))
    (cli.home / "store" / "rgs.db").unlink()
    assert "there is no store" in cli.refused(*_party(cli, "list"))


def test_the_links_of_an_operator_are_set_and_shown(cli: Cli) -> None:
    assert cli(*_party(cli, "links", "demo-operator")) == "cashier\t-\nresponsible_play\t-\nhelp\t-\n"
    pages = ("--cashier", "https://op.example/cashier", "--help-page", "https://op.example/help")
    cli(*_party(cli, "links", "demo-operator", *pages))
    shown = cli(*_party(cli, "links", "demo-operator", "--cashier", ""))
    assert shown == "cashier\t-\nresponsible_play\t-\nhelp\thttps://op.example/help\n"
    assert cli(*_party(cli, "links", "demo-operator")) == shown
    line = cli.refused(*_party(cli, "links", "demo-operator", "--help-page", "http://op.example"))
    assert "'http://op.example' is not an https URL" in line
    assert "[INVALID_FIELD field=help" in line
    assert "[NOT_FOUND" in cli.refused(*_party(cli, "links", "nobody", "--help-page", "https://op.example"))
    assert "[NOT_FOUND" in cli.refused(*_party(cli, "links", "demo-auditor", "--help-page", "https://op.example"))
    assert cli(*_party(cli, "links", "demo-operator")) == shown
