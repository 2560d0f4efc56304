"""The verifier in TypeScript and `certify receipt` say the same of a statement and its place in the log."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from rgs.core.receipts import format_key_path
from rgs.core.statements import key_fingerprint, parse_envelope, parse_statement
from rgs.core.tlog.proofs import format_log_proof, parse_log_proof
from tests.sdk.test_verifier import NODE, PACKAGE, built, pytestmark
from tests.support.log.logs import VKEY
from tests.support.records.audited import POLICY_OWN, SEEN_S, Case, a_round, entries_of
from tests.support.records.factory import RecordFactory
from tests.unit.certification.audit.test_omission import made, verified

__all__ = ["built", "pytestmark"]
SEEN_MS = SEEN_S * 1000
Agree = Callable[..., int]


@pytest.fixture
def case(tmp_path: Path) -> Case:
    """One round: its opening is entry 3, its final entry 4."""
    factory = RecordFactory("receipts")
    worker = factory.start("node-1-b1-w0")
    player = factory.open(worker)
    factory.buy(worker, player, 50_000)
    a_round(factory, worker, player)
    case = Case(tmp_path, factory)
    (tmp_path / "keys.json").write_bytes(factory.keys())
    (tmp_path / "policy.txt").write_text(case.policy)
    return case


@pytest.fixture
def agree(built: None, case: Case, capsys: pytest.CaptureFixture[str]) -> Agree:
    """The exit status of both, demanded to be one; and both say whether only the licensee's own witness has seen it."""

    def judged(files: tuple[Path, Path], *more: str) -> int:
        assert NODE is not None
        ours = verified(case, files, *more)
        said = capsys.readouterr().out
        command = [NODE, str(PACKAGE / "bin/rgs-verify.mjs"), "receipt", *map(str, files)]
        command += ["--policy", str(case.folder / "policy.txt"), "--root", case.factory.root.keyid, *more]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (ours, ""), (said, done.stdout)
        assert ("SELF-WITNESSED" in done.stdout) == ("SELF-WITNESSED" in said)
        return ours

    return judged


@pytest.mark.parametrize("index", range(5))
def test_they_agree_on_each_entry(index: int, case: Case, agree: Agree) -> None:
    case.publish()
    assert agree(made(case, index)) == 0


def test_they_agree_on_witnesses(case: Case, agree: Agree) -> None:
    case.publish()
    files, policy = made(case, 4), case.folder / "policy.txt"
    policy.write_text(POLICY_OWN)
    assert agree(files) == 0
    policy.write_text(f"log {VKEY}\nquorum none\n")
    assert agree(files) == 1
    policy.write_text(case.policy)
    case.publish(is_witnessed=False)
    assert agree(made(case, 4)) == 1


def test_they_agree_on_what_does_not_hold(case: Case, agree: Agree) -> None:
    case.publish()
    files = made(case, 4)
    good = [path.read_bytes() for path in files]
    entries = entries_of(case.factory)
    proof = parse_log_proof(good[1])
    bare = format_log_proof(type(proof)(proof.index, proof.path, proof.checkpoint))
    other = format_log_proof(
        type(proof)(proof.index, proof.path, proof.checkpoint, format_key_path(case.factory.keys(), entries[1]))
    )
    for envelope, changed in (
        (entries[3], good[1]),
        (good[0], good[1].replace(b"index 4", b"index 3")),
        (good[0], b""),
        (good[0], bare),
        (good[0], other),
        (good[0][:-1], good[1]),
    ):
        files[0].write_bytes(envelope)
        files[1].write_bytes(changed)
        assert agree(files) == 1
    for path, data in zip(files, good, strict=True):
        path.write_bytes(data)
    assert agree(files, "--root", "0" * 64) == 1
    assert agree(files) == 0


@pytest.mark.parametrize(
    ("place", "reported_ms", "status"),
    [
        ({}, SEEN_MS, 1),
        ({"origin": "log.example/2026h2", "size": "5"}, SEEN_MS, 0),
        ({"origin": "log.example/2026h2", "size": "4"}, SEEN_MS, 1),
        ({"origin": "log.example/2026h2", "size": "5"}, SEEN_MS - 1000, 1),
        ({"origin": "log.example/2027h1", "size": "0"}, SEEN_MS, 0),
        ({"origin": "log.example/2026h1", "size": "9"}, SEEN_MS, 1),
        ({"origin": "other.example/2027h1", "size": "9"}, SEEN_MS, 1),
    ],
    ids=["everywhere", "behind it", "before it", "seen too late", "a later shard", "an earlier shard", "another log"],
)
def test_they_agree_on_a_key_that_was_revoked_since(
    place: dict[str, str], reported_ms: int, status: int, case: Case, agree: Agree
) -> None:
    case.publish()
    files = made(case, 4)
    _, start = parse_statement(parse_envelope(entries_of(case.factory)[0]))
    key = key_fingerprint(bytes.fromhex(start["public_key"]))
    case.factory.clock_ms = reported_ms
    case.factory.key_statement(case.factory.root, "revocation", {"key": key, "reason": "STOLEN", **place})
    newest = case.folder / "newest.json"
    newest.write_bytes(case.factory.keys())
    assert agree(files) == 0  # the keys that came with it know of no revocation
    assert agree(files, "--keys", str(newest)) == status
