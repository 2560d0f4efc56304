"""`rgs doctor` finds every fault of its table: one plant for each code. A home without the fault does not have it."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest

from rgs.integrity.manifest import make_manifest
from rgs.node import keyring
from rgs.node.clock import now_ms
from rgs.node.doctor import checkup
from rgs.node.doctor import store as store_checks
from rgs.node.doctor.certificates import check_certificates
from rgs.node.doctor.findings import KINDS, OUTSIDE, REAL_MONEY, Finding, Level, found
from rgs.node.doctor.generator import check_generator
from rgs.node.doctor.permissions import GIB
from rgs.node.doctor.store import check_store
from rgs.node.generator.wire import rng_sha256
from rgs.node.home import ensure_home
from rgs.node.workers import serving_alone
from rgs.store.address import PostgresAddress
from tests.support.doctor.host_plants import backups, settings_findings
from tests.support.doctor.peer_plants import database_with, reach_wallet
from tests.support.doctor.planting import (
    DAY_MS,
    PASSWORD,
    PLANTS,
    Plant,
    Planted,
    gathered,
    issued,
)
from tests.support.ports import free_ports
from tests.support.process.commands import Cli, secrets_of
from tests.support.process.generator import serving_thread

# --- the tests --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("doctor") / "rgs"
    ensure_home(home, None, os.urandom, now_ms())
    return home


@pytest.fixture
def planted(made: Path, tmp_path: Path) -> Planted:
    shutil.copytree(made, tmp_path / "rgs")
    return Planted(tmp_path / "rgs")


NAMES = [f"{code}-{plant.__name__}" for code, those in PLANTS.items() for plant in those]
EACH = [
    pytest.param(code, plant, marks=[pytest.mark.slow] if code == "SOFTWARE_DIFFERS" else [])  # starts the launcher
    for code, those in PLANTS.items()
    for plant in those
]


@pytest.mark.parametrize(("code", "plant"), EACH, ids=NAMES)
def test_the_fault_is_found(code: str, plant: Plant, planted: Planted) -> None:
    findings = list(plant(planted))
    (first, *_) = [one for one in findings if one.code == code]
    assert (first.level, first.do) == (KINDS[code].level, KINDS[code].do)
    assert first.what
    assert PASSWORD not in repr(findings)


def test_a_generator_process_of_this_software_is_fine(planted: Planted) -> None:
    assert asyncio.run(gathered(check_generator(planted.home))) == [], "the embedded one needs no check"
    planted.set('generator = "unix:g.sock"')
    with serving_thread(planted.path / "g.sock", rng_hash=rng_sha256(make_manifest())) as reported:
        assert [one.code for one in asyncio.run(gathered(check_generator(planted.home)))] == ["OK"]
    assert [line.get("draws") for line in reported] == [None, 0]


def test_every_finding_of_the_table_has_a_plant() -> None:
    assert sorted(PLANTS) == sorted(KINDS)
    assert set(KINDS) >= REAL_MONEY


@pytest.mark.parametrize("name", list(store_checks.SAFE))
def test_each_setting_of_a_durable_database_counts(name: str) -> None:
    assert [one.code for one in database_with()] == ["OK"]
    for value in ("off", "local", "on"):
        is_bad = value not in store_checks.SAFE[name][0]
        assert ("NOT_DURABLE" in [one.code for one in database_with(1, True, **{name: value})]) == is_bad


def test_the_database_of_the_tests_says_how_it_is_set(planted: Planted, database: PostgresAddress) -> None:
    home = replace(planted.home, config=replace(planted.home.config, store=database))
    findings = asyncio.run(gathered(check_store(home)))
    whats = {one.what for one in findings}
    assert "the database has fsync = off" in whats, whats
    assert "the database has full_page_writes = off" in whats
    assert "the database has synchronous_commit = on" not in whats
    assert {"NO_STANDBY", "NOT_ARCHIVED"} <= {one.code for one in findings}
    assert any(one.what.startswith("the database's clock agrees") for one in findings)


def test_a_wallet_that_answers_is_fine(planted: Planted) -> None:
    (found,) = asyncio.run(reach_wallet(planted, planted.authority()))
    assert (found.level, found.what.split(" answers")[0]) == (Level.OK, "the wallet of demo-operator")


def test_a_backup_of_last_night_and_metrics_are_fine(planted: Planted) -> None:
    planted.set('metrics_listen = "127.0.0.1:9464"', 'traces = "log/traces.jsonl"')
    assert [one.code for one in backups(planted, 25 * 3_600_000)] == ["OK", "OK"]


def test_a_home_that_is_served_has_its_port(planted: Planted) -> None:
    with serving_alone(planted.path):
        findings = settings_findings(planted)
    assert any("is served now" in one.what for one in findings)


def test_a_kernel_that_refuses_to_be_asked_is_unknown(planted: Planted) -> None:
    """A unit of systemd refuses the call with EPERM."""

    class Refusing:
        def adjtimex(self, _read: object) -> int:
            return -1

    with patch("rgs.node.doctor.store.ctypes.CDLL", lambda *_args, **_options: Refusing()):
        assert store_checks.kernel_status() is None
        assert list(store_checks.check_clock(planted.home)) == []


@pytest.mark.parametrize("code", sorted(OUTSIDE))
def test_what_only_others_can_put_right_keeps_no_node_from_starting(code: str, planted: Planted) -> None:
    """One operator's wallet that is down must not keep the rounds of all others from being settled."""
    (of_other,) = [one for one in PLANTS[code][0](planted) if one.code == code]
    assert of_other.level is Level.ERROR
    settings = found("settings", "LISTEN_REFUSED", "an error of its own")

    def checked(*findings: Finding, before_start: bool) -> Level:
        checks = (("planted", lambda _home: iter(findings)),)
        with patch.object(checkup, "CHECKS", checks), patch.object(checkup, "ASYNC_CHECKS", ()):
            return checkup.worst(asyncio.run(checkup.check_home(planted.path, before_start=before_start)))

    assert checked(of_other, before_start=False) is Level.ERROR
    assert checked(of_other, before_start=True) is Level.WARNING
    assert checked(of_other, settings, before_start=True) is Level.ERROR


def test_before_a_start_the_status_is_0_or_2(planted: Planted, capfd: pytest.CaptureFixture[str]) -> None:
    cli = Cli(planted.path, capfd)
    command = ("doctor", "--home", str(planted.path))
    away = found("store", "STORE_AWAY", "the database does not answer")
    with patch.object(checkup, "CHECKS", (("store", lambda _home: iter([away])),)):
        with patch.object(checkup, "ASYNC_CHECKS", ()):
            cli(*command, status=2)
            text = cli(*command, "--before-start", status=0)
            assert "warning store: the database does not answer [STORE_AWAY]" in text
        planted.set("wrokers = 3")
        cli(*command, "--before-start", status=2)


@pytest.mark.slow
def test_the_command_says_what_to_do_and_how_bad_it_is(planted: Planted, capfd: pytest.CaptureFixture[str]) -> None:
    planted.set(f'listen = "127.0.0.1:{free_ports(1)[0]}"')  # nobody else's
    cli = Cli(planted.path, capfd)
    text = cli("doctor", "--home", str(planted.path), status=2)
    assert text.splitlines()[-1].startswith("do not serve: ")
    assert "[DEMO_PARTY]" in text
    assert "do: Remove it with `rgs party remove FINGERPRINT`." in text
    document = json.loads(cli("doctor", "--home", str(planted.path), "--json", status=2))
    assert (document["format"], document["status"]) == ("rgs/doctor/v1", 2)
    assert {one["level"] for one in document["findings"]} == {"ok", "warning", "error"}
    assert all(one["do"] for one in document["findings"] if one["level"] != "ok")

    with patch.object(store_checks, "kernel_status", lambda: 0), patch.object(checkup, "CHECKS", checkup.CHECKS[:2]):
        fine = cli("doctor", "--home", str(planted.path), "--development", status=0)
    assert fine.splitlines()[-1].startswith("all is well: 0 errors, 0 warnings, ")
    planted.server(issued(planted, now_ms() - 336 * DAY_MS))
    usage = shutil.disk_usage(planted.path)._replace(free=20 * GIB)
    with patch("rgs.node.doctor.permissions.shutil.disk_usage", lambda _path: usage):
        warned = cli("doctor", "--home", str(planted.path), "--development", status=1)
    assert warned.splitlines()[-1].startswith("it can serve; somebody has to look: 0 errors, 1 warnings")
    cli("doctor", "--hmoe", "x", status=2)
    said = "".join(cli.said)
    assert not [secret for secret in secrets_of(planted.path) if secret in said]


@pytest.mark.slow
def test_it_changes_nothing(planted: Planted, capfd: pytest.CaptureFixture[str]) -> None:
    def seen() -> dict[str, tuple[int, bytes]]:
        files = [
            path for path in planted.path.rglob("*") if path.is_file() and path.suffix not in {".db-wal", ".db-shm"}
        ]
        return {str(path): (path.stat().st_mode, path.read_bytes()) for path in files if path.name != ".serving"}

    before = seen()
    Cli(planted.path, capfd)("doctor", "--home", str(planted.path), status=2)
    now = seen()
    assert {name: now[name] for name in before} == before
    assert {Path(name).name for name in now.keys() - before.keys()} <= {"serve.lock", ".lock"}


def test_the_keys_of_the_test_are_those_of_a_home(planted: Planted) -> None:
    """A plant that removes what was not there would show nothing."""
    assert keyring.load_kek(planted.home.config).current == 1
    assert list(check_certificates(planted.home))


def test_the_page_has_the_table() -> None:
    page = (Path(__file__).parents[2] / "docs" / "doctor.md").read_text("utf-8")
    for code, kind in KINDS.items():
        real = "real money" if code in REAL_MONEY else "always"
        start = ", warning before a start" if code in OUTSIDE else ""
        assert f"| `{code}` | {kind.level}{start} | {real} | {kind.do} |" in page
    assert page.count("\n| `") == len(KINDS)
