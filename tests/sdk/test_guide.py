"""The Node client of docs/integration.md, as it stands on the page, plays against a sandbox whose wallet loses a reply.

It needs nothing but what the page installs: gRPC for Node, which the build of `@rgs/client` has brought.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.process.sandbox import ROOT, Running, sandbox
from tests.support.sdk import PACKAGES, missing, run_node
from tools.protos import contract

GUIDE = ROOT / "docs" / "integration.md"
LIBRARIES = PACKAGES / "client" / "node_modules"

WHY_NOT = missing("client", "node_modules/@grpc/proto-loader/package.json")
pytestmark = [pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "it is here"), pytest.mark.slow]


def test_the_client_of_the_page_plays_in_both_ways_of_funding(tmp_path: Path) -> None:
    (piece,) = re.findall(r"^```js\n(.*?)^```$", GUIDE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    folder = tmp_path / "first-client"
    contract(folder / "contract")
    (folder / "first.mjs").write_text(piece, "utf-8")
    (folder / "node_modules").symlink_to(LIBRARIES)
    with sandbox(tmp_path / "sandbox", "--fault", "Debit:2:lost_reply") as running:
        assert "StartRound again, " not in played(running, folder, "demo-operator")
        assert re.search(
            r"^StartRound again, [0-9a-f-]{36}: wallet of seamless-operator did not answer Debit",
            played(running, folder, "seamless-operator"),
            re.MULTILINE,
        )
    debits = [row[4] for row in running.wallet_rows() if row[1] == "debit" and "accepted" in row]
    assert debits == ["5000", "100", "200"]  # the purchase; then bet by bet, each once


def played(running: Running, folder: Path, party: str) -> str:
    """What the client says that plays for a party."""
    arguments = [argument.replace("demo-operator", party) for argument in running.call_of("Node")[2:]]
    done = run_node(folder, "first.mjs", *arguments)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^staked 300, back \d+ cents$", done.stdout, re.MULTILINE), done.stdout
    return done.stdout
