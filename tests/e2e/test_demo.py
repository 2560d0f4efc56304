"""`rgs demo` from nothing to proof: what was open on the way, the reports again from the files alone, each of its
comparisons shown to fail.
"""

from __future__ import annotations

import csv
import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest

from certification.replay import main as certify_replay
from rgs.cli import demo
from rgs.cli.options import run_app
from rgs.core.statements import parse_envelope, parse_line, parse_statement
from rgs.core.statements.lines import format_key_bundle, parse_key_bundle
from rgs.core.tlog.checkpoints import parse_checkpoint
from rgs.core.tlog.note import parse_note
from rgs.devkit.client import Client, ClientIdentity
from rgs.devkit.demo import checks, reconcile
from rgs.devkit.demo import demo as devkit_demo
from rgs.devkit.demo import log as demo_log
from rgs.devkit.demo.evidence import Evidence
from rgs.devkit.demo.peers import Peers
from rgs.devkit.demo.player import DemoError, DemoPlayer, PlayedRound, PlayedSession
from rgs.devkit.demo.reconcile import Found, verify_clean
from rgs.devkit.processes.server import ServerProcess
from rgs.node.config import load_config
from rgs.tlog.directory import LogDirectory
from rgs.v1.common_pb2 import SessionView
from tests.support.log.logcheck import LogCheck, logcheck
from tests.support.process.served import PARTY, rgs, serving

pytestmark = pytest.mark.slow

__all__ = ["logcheck"]


AT_TABLES = 5 + 7
"""The players of the small demo at its two tables, one session each."""


def test_what_went_wrong_at_the_tables_is_in_the_record(folder: Path) -> None:
    """The counts of the report, found again in the exported statements alone."""
    said = (folder.parent / "said.txt").read_text("utf-8")
    assert "2 left before red, bets returned; 2 after it" in said
    assert "2 seats taken over by another device, 2 pauses" in said
    assert "1 round void by two admins" in said
    bodies: dict[str, list[dict[str, Any]]] = {}
    for line in (folder / "statements.jsonl").read_bytes().splitlines():
        kind, body = parse_statement(parse_envelope(parse_line(line).envelope))
        bodies.setdefault(kind.name, []).append(body)
    assert [body["status"] for body in bodies["table_final"]].count("void") == 1
    assert {body["table"] for body in bodies["table_round"]} == {"uth-online", "uth-seven-box"}
    ends = [window["end"] for body in bodies["table_final"] for window in body["windows"]]
    assert ends.count("paused") == 2
    automatic = sum(action["by"] == "timer" for body in bodies["seat_final"] for action in body["actions"])
    rows = re.findall(r"^ +uth-(?:online|seven-box) +3 +(\d+) +(\d+) +(\d) ", said, re.MULTILINE)
    assert sum(int(seats) for seats, _, _ in rows) == len(bodies["seat_final"]) == len(bodies["seat_opening"])
    assert sum(int(count) for _, count, _ in rows) == automatic >= 6  # the silent and the gone, in three windows
    assert [void for _, _, void in rows] == ["0", "1"]
    voids = [body for body in bodies["seat_final"] if body["status"] == "void"]
    assert all(body["staked_minor"] == body["returned_minor"] for body in voids)


def test_it_says_what_it_did(folder: Path) -> None:
    said = (folder.parent / "said.txt").read_text("utf-8")
    assert "46 rounds verified, 0 failed, ANCHORED (development keys)" in said
    assert "46 in rounds, 0 discarded, 0 unknown" in said
    seats = int(re.findall(r"at the tables meanwhile: 6 rounds with (\d+) seats", said)[0])
    assert (
        6 <= seats <= AT_TABLES * 3 - 4
    )  # in the first round one does not bet, in the second one leaves; at each table
    assert f"{40 + seats} rounds listed" in said
    # 4 sessions of 4 statements, a purchase more, 40 rounds of 2; then those of the tables, 3 for each of their rounds
    assert f"{97 + 4 * AT_TABLES + 2 * seats + 6 * 3} statements over gRPC" in said
    assert "owed to 2, 1 debits without an answer" in said
    assert re.search(r"again +\d+ requests sent again", said)
    assert "All of it holds." in said
    assert "✗" not in said


def test_the_evidence_verifies_by_itself(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = (folder / "root.fingerprint").read_text("ascii").strip()
    files = [str(folder / "statements.jsonl"), "--keys", str(folder / "keys.json"), "--root", root]
    assert certify_replay(files) == 0
    assert capsys.readouterr().out.endswith("46 rounds verified, 0 failed, ANCHORED\n")
    kept = json.loads((folder / "replay.jsonl").read_text("utf-8"))["summary"]
    assert (kept["rounds_verified"], kept["sessions"], kept["draws_in_rounds"]) == (46, 4 + AT_TABLES, 46)
    assert (folder / "home" / "store" / "rgs.db").is_file()
    assert '"event":"listening"' in (folder / "home" / "log" / "rgs.log").read_text("ascii")


def test_an_outsider_accepts_the_log_that_is_left(folder: Path, logcheck: LogCheck) -> None:
    assert logcheck(folder / "log", (folder / "log.vkey").read_text("ascii").strip()) == ""


def test_the_log_that_is_left_holds_what_was_exported_under_a_policy_that_says_whose_witness_it_is(
    folder: Path,
) -> None:
    vkey = (folder / "log.vkey").read_text("ascii").strip()
    policy = (folder / "policy.txt").read_text("ascii")
    assert f"\nlog {vkey}\n" in policy
    assert "\n# self-witness demo-witness\n" in policy
    assert not list((folder / "log").rglob(".*"))
    lines = (folder / "statements.jsonl").read_bytes().splitlines()
    logged = set(_entries(folder / "log"))
    exported = {parse_line(line).envelope for line in lines}
    keys = set(parse_key_bundle((folder / "keys.json").read_bytes()))
    assert logged == exported | keys  # none is missing, none was slipped in


def test_printed_command_audits_the_log_again_from_the_files_alone_and_over_http(folder: Path, tmp_path: Path) -> None:
    said = (folder.parent / "said.txt").read_text("utf-8")
    size = json.loads((folder / "log.json").read_bytes())["checkpoint"]["size"]
    assert re.search(rf"log +{size} entries: PASSED SELF-WITNESSED ANCHORED", said)
    (line,) = (line.strip() for line in said.splitlines() if " log " in line and " --policy " in line)
    for name in ("policy.txt", "keys.json", "log.state"):
        shutil.copy(folder / name, tmp_path / name)  # no home, no key, nothing else
    shutil.copytree(folder / "log", tmp_path / "log")
    python, *arguments = (part.replace(str(folder), str(tmp_path)) for part in shlex.split(line))
    again = subprocess.run([python, *arguments], capture_output=True, text=True, check=False)
    assert again.stdout.endswith("\nPASSED SELF-WITNESSED ANCHORED\n"), again.stdout + again.stderr
    assert f"{size} of them verified before" in again.stdout
    (tmp_path / "log.state").unlink()
    command = [python, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", str(tmp_path / "log")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            (url,) = re.findall(r"http://127\.0\.0\.1:[0-9]+", server.stdout.readline())
            arguments[arguments.index(str(tmp_path / "log"))] = url
            again = subprocess.run([python, *arguments], capture_output=True, text=True, check=False)
        finally:
            server.terminate()
    assert again.stdout.endswith("\nPASSED SELF-WITNESSED ANCHORED\n"), again.stdout + again.stderr
    assert "rounds       46 verified, 0 failed, 0 open" in again.stdout


def test_a_log_that_is_not_what_was_played_stops_the_demo(folder: Path, tmp_path: Path) -> None:
    document = json.loads((folder / "log.json").read_bytes())
    rounds = [cast("PlayedRound", None)] * 46  # they are counted
    sessions = [PlayedSession("", "", SessionView()) for _ in range(4 + AT_TABLES)]
    sessions[0].rounds += rounds
    demo_log.verify_audit(document, sessions)
    for name in ("rounds_verified", "rounds_failed", "rounds_open", "sessions", "draws_in_rounds", "lines"):
        summary = {**document["summary"], name: document["summary"][name] + 1}
        with pytest.raises(DemoError, match=f"the log: {name} is"):
            demo_log.verify_audit({**document, "summary": summary}, sessions)
    evidence, config = Evidence(tmp_path / "again"), load_config(folder / "home")
    evidence.folder.mkdir()
    shutil.copy(folder / "keys.json", evidence.keys)
    other = (folder / "policy.txt").read_text("ascii").replace("# self-witness demo-witness\n", "")
    evidence.policy.write_text(other)
    with pytest.raises(DemoError, match="says PASSED WITNESSED ANCHORED, expected is PASSED SELF-WITNESSED ANCHORED"):
        demo_log.audit_log(evidence, config, (folder / "root.fingerprint").read_text().strip())


def test_midway_reconciliation_has_named_what_was_open(folder: Path) -> None:
    report = json.loads((folder / "midway" / "reconciliation" / "report.json").read_bytes())
    found = {row["class"]: row["open"] for row in report["classes"] if row["open"]}
    assert found.pop("missing_in_rgs") == 1  # the debit that was taken, and nobody heard of it
    assert found.pop("state_differs") == 2  # both participations that ended at the regulator alone
    assert found.pop("missing_at_regulator") >= 2  # rounds played on while it was silent, with what waited before
    assert not found
    said = (folder.parent / "said.txt").read_text("utf-8")
    assert f"reconciliation of the copied books: {report['open']} breaks open" in said
    assert re.search(rf"together +{report['open']} +0\n", said)


def test_faults_of_both_peers_were_committed_and_repeats_had_their_effect_once(folder: Path) -> None:
    for peer in ("wallet", "regulator"):
        lines = (folder / f"{peer}.txt").read_text("utf-8").splitlines()
        assert any(line.endswith(": lost_reply") for line in lines)
        assert [line for line in lines if line.startswith("faults")] == ["faults on", "faults off"]
    rows = list(csv.DictReader((folder / "wallet.csv").read_text("utf-8").splitlines()))
    ids = [row["transaction_id"] for row in rows]
    assert len(ids) == len(set(ids)) == (4 + AT_TABLES) * 2 + 1
    assert {row["status"] for row in rows} == {"accepted"}


def test_printed_command_gives_the_same_reconciliation_from_the_files_alone(folder: Path, tmp_path: Path) -> None:
    said = (folder.parent / "said.txt").read_text("utf-8")
    (line,) = (line.strip() for line in said.splitlines() if " reconcile --statements " in line)
    python, *arguments = shlex.split(line)
    assert arguments[-2] == "--out"
    moved = tmp_path / "moved"
    for name in ("statements.jsonl", "keys.json", "receipts.jsonl", "wallet.csv", "regulator.jsonl"):
        (moved / name).parent.mkdir(exist_ok=True)
        shutil.copy(folder / name, moved / name)  # no home, no key, nothing else
    arguments = [argument.replace(str(folder), str(moved)) for argument in arguments[:-1]]
    done = subprocess.run([python, *arguments, str(tmp_path / "out")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"clean: 0 open breaks, 0 rejected rows; report in {tmp_path / 'out'}" in done.stdout
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert {"report.html", "report.json", "breaks.csv", "totals.csv", "participations.csv"} <= set(names)
    assert names == sorted(path.name for path in (folder / "reconciliation").iterdir())
    for name in names:
        assert (tmp_path / "out" / name).read_bytes() == (folder / "reconciliation" / name).read_bytes(), name


def test_the_next_demo_begins_anew_and_its_failure_says_what_and_where(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The last of its comparisons fails: all before it has been done, over what an older demo left."""

    def lacks_an_entry(_document: object, sessions: list[PlayedSession]) -> None:
        raise DemoError(f"the log of {sessions[0].player} lacks an entry")

    again = tmp_path / "evidence"
    shutil.copytree(folder, again)
    monkeypatch.setattr(devkit_demo, "verify_audit", lacks_an_entry)
    assert run_app(demo.app, "demo", ["--home", str(again), "--rounds", "2", "--sessions", "3", "--players", "5"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "✗ the log of player-uth-solo-1 lacks an entry" in said
    assert "look at" in said
    assert "rgs.log" in said
    assert "All of it holds" not in said
    assert json.loads((again / "replay.jsonl").read_text("utf-8"))["summary"]["rounds_verified"] == 10
    for name in ("root.fingerprint", "log.vkey"):
        assert (again / name).read_text() != (folder / name).read_text()


def test_a_server_that_does_not_start_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def loses_the_key(home: Path) -> object:
        (home / "tls" / "server.key").unlink()
        return load_config(home)

    monkeypatch.setattr(devkit_demo, "load_config", loses_the_key)
    assert (
        run_app(
            demo.app, "demo", ["--home", str(tmp_path / "demo"), "--rounds", "2", "--sessions", "3", "--players", "5"]
        )
        == 1
    )
    assert "server key" in (tmp_path / "demo" / "server.txt").read_text("utf-8")


def test_a_server_that_dies_in_between_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Mortal(ServerProcess):
        def await_serving(self) -> None:
            super().await_serving()
            self.kill()

    monkeypatch.setattr(devkit_demo, "ServerProcess", Mortal)
    monkeypatch.setattr("rgs.devkit.client.PAUSES_S", (0.01,))
    assert (
        run_app(
            demo.app, "demo", ["--home", str(tmp_path / "demo"), "--rounds", "2", "--sessions", "3", "--players", "5"]
        )
        == 1
    )
    said = " ".join(capsys.readouterr().out.split())
    assert "✗ the server ended with status -9 while it was needed; last line of its output: rgs: listening" in said


def test_more_sessions_than_rounds_are_refused(tmp_path: Path) -> None:
    done = rgs("demo", "--home", str(tmp_path / "demo"), "--rounds", "1", "--sessions", "3")
    assert done.returncode == 2
    assert "must be at least as many as the sessions" in done.stderr
    assert not (tmp_path / "demo").exists()


# --- each comparison is shown to fail ------------------------------------------------------------------------------


@dataclass
class Played:
    """Two sessions as their players saw them, the server that still runs, and what it exported."""

    client: Client
    home: Path
    sessions: list[PlayedSession]
    export: Path


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    folder = tmp_path_factory.mktemp("played")
    with serving(folder) as served:
        identity = ClientIdentity.of_party(load_config(served.home), PARTY)
        with Client(served.address, identity) as client:
            sessions = []
            for game, by_stream in (("uth-solo", True), ("casino-holdem", False)):
                player = DemoPlayer(client, game, f"of-{game}", by_stream=by_stream)
                player.play_to(4, lambda: None)
                player.leave()
                sessions += player.sessions
            export = folder / "statements.jsonl"
            done = rgs("export", "--home", str(served.home), "--out", str(export))
            assert done.returncode == 0, done.stderr
            yield Played(client, served.home, sessions, export)


def test_a_history_that_differs_is_seen(played: Played) -> None:
    assert checks.verify_history(played.client, played.sessions) == 8
    fewer = deepcopy(played.sessions)
    del fewer[0].rounds[1]
    with pytest.raises(DemoError, match="lists 4 rounds that are not the 3 played"):
        checks.verify_history(played.client, fewer)
    dearer = deepcopy(played.sessions)
    dearer[1].rounds[0].view.staked_minor += 1
    with pytest.raises(DemoError, match="not the 4 played"):
        checks.verify_history(played.client, dearer)
    other = deepcopy(played.sessions)
    other[0].rounds[2] = replace(other[0].rounds[2], final=other[0].rounds[1].final)
    with pytest.raises(DemoError, match="is not found as it was played"):
        checks.verify_history(played.client, other)


def test_other_keys_are_seen(played: Played, tmp_path: Path) -> None:
    bundle = played.home / "keys" / "keys.json"
    checks.verify_keys(played.client, bundle)
    fewer = tmp_path / "keys.json"
    fewer.write_bytes(format_key_bundle(parse_key_bundle(bundle.read_bytes())[:1]))
    with pytest.raises(DemoError, match=r"2 key statements are not those of keys\.json"):
        checks.verify_keys(played.client, fewer)


def test_credits_that_are_owed_and_should_not_be_are_seen(played: Played) -> None:
    assert checks.verify_owed(played.client, []) == 0
    with pytest.raises(DemoError, match=r"1 credits of 0 are due, the server lists \{\}"):
        checks.verify_owed(played.client, played.sessions[:1])


def test_a_reconciliation_that_is_not_clean_is_seen(folder: Path, played: Played) -> None:
    report = json.loads((folder / "reconciliation" / "report.json").read_bytes())
    sessions = [replace(played.sessions[0], rounds=[]) for _ in range(4 + AT_TABLES)]  # as many as in the demo
    sessions[0].rounds += (played.sessions[0].rounds * 12)[:46]
    verify_clean(Found(0, report), sessions)

    def refused(match: str, status: int = 0, **changed: object) -> None:
        with pytest.raises(DemoError, match=match):
            verify_clean(Found(status, {**report, **changed}), sessions)

    refused("verdict is breaks", verdict="breaks")
    refused("open is 1, expected is 0", open=1)
    refused("rejected is 1", rejected=1)
    refused("owed is {'EUR': 1}", owed={"EUR": 1})
    refused("expected is", status=2)
    refused("expected is", verification={**report["verification"], "rounds_verified": 45})
    refused("expected is", verification={**report["verification"], "sessions": 3})
    refused("expected is", key_path={**report["key_path"], "anchored": False})
    refused("a source is missing", inputs=report["inputs"][1:])
    missing = [{**row, "open": int(row["class"] == "missing_in_rgs")} for row in report["classes"]]
    refused("1 Missing in the RGS", open=1, classes=missing)


def test_two_silent_peers_leave_something_open_or_the_demo_fails(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Silent(NamedTuple):
        statement: Path

        def write_statement(self) -> Path:
            return self.statement

    peers = cast("Peers", (Silent(folder / "wallet.csv"), Silent(folder / "regulator.jsonl")))
    report = json.loads((folder / "reconciliation" / "report.json").read_bytes())
    monkeypatch.setattr(reconcile, "run_command", lambda *_: None)
    monkeypatch.setattr(reconcile, "reconcile", lambda *_: Found(0, report))
    evidence = Evidence(tmp_path)
    shutil.copy(folder / "keys.json", evidence.keys)
    with pytest.raises(DemoError, match="nothing is open"):
        reconcile.open_breaks(reconcile.copy_books(evidence, peers, []), "")


def test_an_export_that_differs_is_seen(played: Played, tmp_path: Path) -> None:
    lines = played.export.read_bytes().splitlines(keepends=True)
    assert checks.verify_export(played.export, played.sessions) == 2 * 4 + 8 * 2

    def refused(changed: list[bytes], match: str) -> None:
        path = tmp_path / "changed.jsonl"
        path.write_bytes(b"".join(changed))
        with pytest.raises(DemoError, match=match):
            checks.verify_export(path, played.sessions)

    finals = [number for number, line in enumerate(lines) if _kind(line) == "round_final"]
    refused(lines[: finals[0]] + lines[finals[0] + 1 :], "11 links are exported, 12 were received")
    refused([*lines, lines[finals[0]]], "13 links are exported, 12 were received")
    swapped = list(lines)
    swapped[finals[0]], swapped[finals[1]] = lines[finals[1]], lines[finals[0]]
    refused(swapped, "exported in another order")
    with pytest.raises(DemoError, match="holds 1 sessions that nobody played"):
        checks.verify_export(played.export, played.sessions[:1])


def test_a_wallet_that_differs_is_seen(played: Played) -> None:
    wallet = played.home / "embedded" / "wallet.db"
    due = sum(session.view.paid_out_minor - session.view.bought_minor for session in played.sessions)
    assert checks.verify_wallet(wallet, played.sessions) == due
    richer = deepcopy(played.sessions)
    richer[0].view.paid_out_minor += 1
    with pytest.raises(DemoError, match=r"the wallet moved -?[0-9]+ for of-uth-solo"):
        checks.verify_wallet(wallet, richer)
    with pytest.raises(DemoError, match="for of-casino-holdem, its sessions come to 0"):
        checks.verify_wallet(wallet, played.sessions[:1])


@pytest.mark.parametrize("field", ["bought_minor", "staked_minor", "returned_minor", "paid_out_minor"])
def test_a_session_that_does_not_add_up_is_seen(played: Played, field: str) -> None:
    session = deepcopy(played.sessions[0])
    session.verify_money()
    setattr(session.view, field, getattr(session.view, field) + 1)
    with pytest.raises(DemoError, match=r"paid out|sums up to"):
        session.verify_money()


GOOD = {
    "verdict": "ANCHORED",
    "failures": 0,
    "rounds_verified": 8,
    "rounds_failed": 0,
    "rounds_open": 0,
    "sessions": 2,
    "draws_in_rounds": 8,
    "draws_exposed": 0,
    "is_cut": False,
}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("verdict", "UNANCHORED"),
        ("failures", 1),
        ("rounds_verified", 7),
        ("rounds_failed", 1),
        ("rounds_open", 1),
        ("sessions", 3),
        ("draws_in_rounds", 7),
        ("draws_exposed", 1),
        ("is_cut", True),
        ("staked_minor", {"EUR": 1}),
        ("returned_minor", {}),
    ],
)
def test_a_replay_that_saw_something_else_is_seen(played: Played, field: str, value: object) -> None:
    amounts = {
        name: {"EUR": sum(getattr(session.view, name) for session in played.sessions)}
        for name in ("staked_minor", "returned_minor")
    }
    devkit_demo.verify_replay({**GOOD, **amounts}, played.sessions)
    with pytest.raises(DemoError, match=field):
        devkit_demo.verify_replay({**GOOD, **amounts, field: value}, played.sessions)


def test_a_bent_export_stops_the_demo(played: Played, tmp_path: Path) -> None:
    lines = played.export.read_bytes().splitlines(keepends=True)
    bent = next(number for number, line in enumerate(lines) if _kind(line) == "round_final")
    root = (played.home / "keys" / "root.fingerprint").read_text("ascii").strip()
    evidence = Evidence(tmp_path)
    shutil.copy(played.home / "keys" / "keys.json", evidence.keys)
    evidence.statements.write_bytes(b"".join(lines[:bent] + lines[bent + 1 :]))
    with pytest.raises(DemoError, match="replay: check 6 number: "):
        devkit_demo.replay_offline(evidence, root)
    assert "failure" in evidence.replay.read_text("utf-8")


def _entries(log: Path) -> list[bytes]:
    directory = LogDirectory(log)
    return list(directory.entries(0, parse_checkpoint(parse_note(directory.checkpoint()).text).size))


def _kind(line: bytes) -> str:
    return parse_statement(parse_envelope(parse_line(line.removesuffix(b"\n")).envelope))[0].name
