"""What was signed before version 0.1.0 verifies with the verifier of its time; its log, by C2SP alone."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from pathlib import Path

from rgs.core.tlog.merkle import leaf_hash, root_of
from rgs.core.tlog.note import parse_note
from rgs.core.tlog.policies import parse_policy, verify_checkpoint
from rgs.core.tlog.tiles import parse_bundle, parse_tile

FOLDER = Path(__file__).parents[1] / "vectors" / "before-0.1.0"
ROOT = "8ffbf01580d029399c714a9b5bd55f3c7d4f15bdaed5a5cda44aea4b9bd3f36b"
ENTRIES = 85


def judged(verifier: Path, statements: Path) -> subprocess.CompletedProcess[str]:
    arguments = [sys.executable, str(verifier), str(statements), "--keys", str(FOLDER / "keys.json"), "--root", ROOT]
    return subprocess.run(arguments, capture_output=True, text=True, timeout=120, check=False)


def test_the_verifier_of_its_time_accepts_it() -> None:
    done = judged(FOLDER / "verifier.txt", FOLDER / "statements.jsonl")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "24 rounds verified, 0 failed, ANCHORED")


def test_the_verifier_of_its_time_still_sees_a_changed_commitment(tmp_path: Path) -> None:
    lines = (FOLDER / "statements.jsonl").read_text("ascii").splitlines()
    at = next(number for number, line in enumerate(lines) if "round-opening" in line)
    envelope = json.loads(lines[at])
    signed = base64.b64decode(envelope["envelope"]["payload"])
    payload = signed.replace(b'"commitment":"', b'"commitment":"0', 1)
    assert payload != signed
    envelope["envelope"]["payload"] = base64.b64encode(payload).decode()
    lines[at] = json.dumps(envelope, separators=(",", ":"))
    (tmp_path / "changed.jsonl").write_text("\n".join(lines) + "\n", "ascii")
    assert judged(FOLDER / "verifier.txt", tmp_path / "changed.jsonl").returncode == 1


def test_the_verifier_of_today_refuses_it() -> None:
    today = FOLDER.parents[1] / "verifier" / "independent_verifier.py"
    done = judged(today, FOLDER / "statements.jsonl")
    assert done.returncode == 1
    assert "FAILED 4 schema" in done.stdout


def test_its_log_is_whole_and_cosigned_and_holds_every_statement() -> None:
    entries = parse_bundle((FOLDER / "log/tile/entries/000.p/85").read_bytes(), ENTRIES)
    leaves = [leaf_hash(entry) for entry in entries]
    assert leaves == parse_tile((FOLDER / "log/tile/0/000.p/85").read_bytes(), ENTRIES)
    policy = parse_policy((FOLDER / "policy.txt").read_bytes())
    checkpoint = verify_checkpoint(parse_note((FOLDER / "log/checkpoint.cosigned").read_bytes()), policy).checkpoint
    assert (checkpoint.size, checkpoint.root) == (ENTRIES, root_of(leaves))
    logged = set(entries)
    for line in (FOLDER / "statements.jsonl").read_text("ascii").splitlines():
        envelope = json.loads(line)["envelope"]
        assert json.dumps(envelope, separators=(",", ":")).encode() in logged
