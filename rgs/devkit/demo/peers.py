"""The demo's two peers: an operator's wallet and a regulator's system that misbehave (`rgs simulate`).

They start with plans of a fixed seed; then each falls silent in one way, so that the open credits and reports of that
time are known; then they make no more faults. All faults are of the way: messages lost, repeated, late, or refused as a
conflict. No recovery can correct wrong entries in a book; the tests have those.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple

from rgs.devkit.demo.evidence import Evidence
from rgs.devkit.processes.simulator import SimulatorProcess
from rgs.node.files import PUBLIC_MODE, write_new

DEADLINE_MS: Final = 1_000
WALLET, REGULATOR = "wallet", "regulator"

_PEERS: Final = """\
# Written by `rgs demo`: the simulated peers of this machine. One failing call in three must not open the breaker.
[regulator]
target = "{regulator}"
deadline_ms = {deadline_ms}
failures_max = 1000

[operator.{operator}.wallet]
target = "{wallet}"
deadline_ms = {deadline_ms}
failures_max = 1000
"""
_ROUGH: Final = """\
seed = "rgs demo, {kind}"
[per_mille]
lost_reply = 150
lost_request = 80
duplicate = 80
reorder = 40
restart = 30
conflicting_retry = 80
[[schedule]]
fault = "lost_reply"
method = "{first}"
call = 1
[[schedule]]
fault = "delay"
method = "{first}"
call = 2
"""
_FIRST: Final = {WALLET: "Debit", REGULATOR: "OpenSession"}
SILENT_WALLET: Final = """\
[[schedule]]
fault = "lost_reply"
method = "Debit"
[[schedule]]
fault = "lost_request"
method = "Credit"
[[schedule]]
fault = "lost_request"
method = "GetTransaction"
"""
"""Debits are taken, but the answers are lost; credits do not arrive."""
SILENT_REGULATOR: Final = """\
[[schedule]]
fault = "lost_request"
"""
"""No message arrives."""


class Peers(NamedTuple):
    """The processes of both peers."""

    wallet: SimulatorProcess
    regulator: SimulatorProcess


def start_peers(evidence: Evidence, operator: str, running: ExitStack) -> Peers:
    """Start both, until `running` ends, and write the server's settings for them. Both misbehave at once."""

    def start(kind: str, export: Path, output: Path) -> SimulatorProcess:
        plan = evidence.home / f"{kind}-faults.toml"
        write_new(plan, _ROUGH.format(kind=kind, first=_FIRST[kind]).encode("utf-8"), PUBLIC_MODE)
        return running.enter_context(SimulatorProcess(kind, evidence.home, plan, export, output))

    wallet = start(WALLET, evidence.wallet, evidence.wallet_said)
    regulator = start(REGULATOR, evidence.regulator, evidence.regulator_said)
    found = _PEERS.format(
        operator=operator, wallet=wallet.address, regulator=regulator.address, deadline_ms=DEADLINE_MS
    )
    write_new(evidence.home / "peers.toml", found.encode("utf-8"), PUBLIC_MODE)
    return Peers(wallet, regulator)
