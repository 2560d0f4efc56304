"""`rgs simulate` as a process and `rgs conformance` against it: verdicts, exit status, switches, exported books."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from rgs.core.errors import UnavailableError
from rgs.devkit.processes import child
from rgs.devkit.processes.simulator import SimulatorProcess
from rgs.node.clock import SystemClock
from rgs.node.home import PEERS_CERTIFICATE, ensure_home
from tests.support.api.harness import entropy
from tests.support.process.served import rgs, rgs_here

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("peers") / "home"
    ensure_home(folder, None, entropy().read, SystemClock().now_ms())
    return folder


@contextmanager
def simulating(kind: str, home: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The program and the address where it listens; SIGTERM at the end, and an orderly one is demanded."""
    command = [sys.executable, "-m", "rgs", "simulate", kind, "--home", str(home), "--listen", "127.0.0.1:0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.fullmatch(rf"{kind} simulator on (127\.0\.0\.1:\d+) \(for tests only\)\n", line)
        try:
            assert found is not None, line
            yield process, found[1]
        finally:
            process.send_signal(signal.SIGTERM)
            rest = process.stdout.read()
            assert process.wait(30) == 0, rest


@pytest.mark.parametrize("kind", ["wallet", "regulator"])
def test_the_help_of_a_simulator_names_the_defaults_of_its_files(kind: str) -> None:
    said = " ".join(word for word in rgs_here("simulate", kind, "--help").stdout.split() if word != "│")
    assert "default: simulators/wallet.db or regulator.db in the home." in said
    assert "written at the end; default: none." in said


def test_a_wallet_that_forgets_fails_with_2_and_passes_when_its_faults_are_switched_off(
    home: Path, tmp_path: Path
) -> None:
    junit, csv = tmp_path / "junit.xml", tmp_path / "wallet.csv"
    options = ("--books", str(tmp_path / "w.db"), "--export", str(csv), "--fault", "*:*:forgetful")
    with simulating("wallet", home, *options) as (process, target):
        kit = ("conformance", "wallet", "--target", target, "--player", "anna", "--home", str(home))
        bad = rgs(*kit, "--junit", str(junit))
        assert bad.returncode == 2, bad.stderr
        assert "56 checks: 50 passed, 4 FAILED, 2 skipped" in bad.stdout
        root = ET.fromstring(junit.read_bytes())  # noqa: S314 - our own file
        assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("56", "4", "2")
        process.send_signal(signal.SIGUSR1)
        good = rgs_here(*kit, "--expired-token", "expired", "--tls", str(home / "tls"))
        assert good.returncode == 0, good.stdout
        assert "56 checks: 56 passed, 0 FAILED, 0 skipped" in good.stdout
    header, *rows = csv.read_text("ascii").splitlines()
    assert header.startswith("transaction_id,kind,player,currency,amount_minor,time,reference,status")
    assert len(rows) > 100


def test_a_regulator_passes_and_writes_its_regulator(home: Path, tmp_path: Path) -> None:
    plan, export = tmp_path / "plan.toml", tmp_path / "regulator.jsonl"
    plan.write_text('[[schedule]]\nfault = "closes_seated"\n', "ascii")
    options = ("--books", str(tmp_path / "r.db"), "--export", str(export), "--faults", str(plan))
    with simulating("regulator", home, *options) as (process, target):
        kit = ("conformance", "regulator", "--target", target, "--home", str(home))
        bad = rgs_here(*kit)
        assert bad.returncode == 2, bad.stderr
        assert "1 FAILED" in bad.stdout, bad.stdout
        process.send_signal(signal.SIGUSR1)
        assert rgs_here(*kit).returncode == 0
    assert '"kind": "stage"' in export.read_text("ascii")


def test_faults_go_on_by_the_plan_as_its_file_stands_then(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, export, said = tmp_path / "plan.toml", tmp_path / "wallet.csv", tmp_path / "said.txt"
    plan.write_text('[[schedule]]\nfault = "forgetful"\n', "ascii")
    with SimulatorProcess("wallet", home, plan, export, said) as peer:
        peer.await_listening()
        kit = ("conformance", "wallet", "--target", peer.address, "--player", "anna", "--home", str(home))
        assert "4 FAILED" in rgs_here(*kit).stdout
        assert set(peer.faults()) == {"forgetful"}
        peer.misbehave('[[schedule]]\nfault = "wrong_balance"\n')
        before = peer.faults()["forgetful"]
        assert rgs_here(*kit, "--player", "berta").returncode == 2
        assert peer.faults()["wrong_balance"] > 0
        assert peer.faults()["forgetful"] == before
        monkeypatch.setattr(child, "OBEY_S", 1)
        with pytest.raises(UnavailableError, match="did not write 'faults on' within 1 s"):
            peer.misbehave("nonsense")
        monkeypatch.undo()
        assert "the faults stay as they were: the plan of faults is neither TOML nor JSON" in said.read_text("utf-8")
        assert rgs_here(*kit, "--player", "carla").returncode == 2  # by the plan that it had
        peer.behave()
        good = rgs_here(*kit, "--player", "dora")
        assert good.returncode == 0, good.stdout
        assert peer.write_statement() == export
        assert "dora" in export.read_text("ascii")
        peer.kill()
        with pytest.raises(UnavailableError, match="simulated wallet ended with status -9 while it was needed"):
            peer.behave()


def test_a_peer_that_cannot_be_reached_is_1(home: Path) -> None:
    kit = ("--player", "anna", "--home", str(home), "--deadline-ms", "300")
    gone = rgs_here("conformance", "wallet", "--target", "127.0.0.1:1", *kit)
    assert gone.returncode == 1
    assert "no connection to 127.0.0.1:1" in gone.stderr
    for wrong in (["--target", "nonsense", *kit], ["--target", "127.0.0.1:1"], ["--nonsense"]):
        refused = rgs("conformance", "wallet", *wrong)
        assert refused.returncode == 1  # 2 is a failed check
        assert refused.stderr.count("\n") == 1


@pytest.mark.parametrize("options", [("--fault", "Debit:x:delay"), ("--fault", "delay"), ("--currency", "eur")])
def test_a_plan_that_is_not_understood_is_refused(home: Path, options: tuple[str, str]) -> None:
    refused = rgs_here("simulate", "wallet", "--home", str(home), *options)
    assert refused.returncode == 2
    assert "Traceback" not in refused.stderr


def test_init_gives_the_node_a_certificate_for_outward_calls(home: Path) -> None:
    assert (home / "tls" / f"{PEERS_CERTIFICATE}.pem").is_file()
    assert (home / "tls" / f"{PEERS_CERTIFICATE}.key").stat().st_mode & 0o077 == 0
