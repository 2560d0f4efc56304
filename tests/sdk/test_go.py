"""`examples/go`: built from the contract as docs/integration.md says, and rounds played with it on a real server."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.process.sandbox import sandbox

ROOT = Path(__file__).resolve().parents[2]
SOURCES = Path("/usr/share/gocode/src")
NEEDED = (
    "google.golang.org/grpc",
    "google.golang.org/genproto/googleapis/rpc",
    "github.com/golang/protobuf/protoc-gen-go",
)
BUILD_S = 300
STEP = re.compile(r'^\*\*\d\. In Go\..*?^```sh\n(.*)\n\./(\S+) "\$@"\n```$', re.MULTILINE | re.DOTALL)

WHY_NOT = (
    "skipped, there is no Go here (Debian: golang-go)"
    if shutil.which("go") is None
    else ""
    if all((SOURCES / path).is_dir() for path in NEEDED)
    else "skipped, gRPC for Go is not here (Debian: golang-google-grpc-dev)"
)
pytestmark = [
    pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "it is here"),
    pytest.mark.slow,
    pytest.mark.timeout(2 * BUILD_S),
]


def test_a_round_in_go(tmp_path: Path) -> None:
    build, play = STEP.findall((ROOT / "docs/integration.md").read_text("utf-8"))[0]
    program = tmp_path / play
    built = subprocess.run(
        ["/bin/sh", "-euc", build],
        cwd=tmp_path,
        env={**os.environ, "RGS": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=BUILD_S,
    )
    assert built.returncode == 0, built.stderr
    assert [path.name for path in tmp_path.iterdir()] == [program.name]  # nothing else was left
    with sandbox(tmp_path / "sandbox", "--fault", "Debit:1:lost_reply") as running:
        _, *arguments = running.call_of("Go")
        played = run(program, *arguments)
        assert played.returncode == 0, played.stderr
        assert re.search(r"^round #[\d:]{8}: \[.. ..\] on \[.. .. .. .. ..\]", played.stdout), played.stdout
        assert re.search(r"^staked 3\.00 EUR, back \d+\.\d\d EUR$", played.stdout, re.MULTILINE), played.stdout
        assert played.stderr.startswith("again, with the same request id: wallet of demo-operator did not answer Debit")
        assert "[WALLET_UNAVAILABLE map[" in played.stderr
        bet_by_bet = [argument.replace("demo-operator", "seamless-operator") for argument in arguments]
        played = run(program, *bet_by_bet)
        assert played.returncode == 0, played.stderr
        assert "staked 3.00 EUR" in played.stdout
        refused = run(program, *arguments[:3], arguments[1])  # not a key
        assert refused.returncode == 1
        assert "tls: " in refused.stderr
    debits = [row[4] for row in running.wallet_rows() if row[1] == "debit" and "accepted" in row]
    assert debits == ["5000", "100", "200"]  # the purchase once; ante and call bet by bet


def run(program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False, timeout=60)
