"""A home to plant a fault in, and the table of plants by the code of what is found."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from rgs.node import pki
from rgs.node.clock import now_ms
from rgs.node.config import load_config
from rgs.node.doctor import parties
from rgs.node.doctor.findings import Finding, Home
from rgs.node.doctor.store import check_store
from rgs.node.peers import NodePeers, load_peers
from rgs.node.witness_folder import make_witness

DAY_MS = 86_400_000
PASSWORD = "correct-horse"  # noqa: S105 - planted, to be looked for


@dataclass
class Planted:
    """A home of its own to plant a fault in."""

    path: Path

    @property
    def home(self) -> Home:
        return Home(load_config(self.path), now_ms())

    def set(self, *lines: str) -> None:
        """Set these settings, in place of what they were."""
        path, names = self.path / "rgs.toml", {line.partition(" ")[0] for line in lines}
        kept = [line for line in path.read_text("ascii").splitlines() if line.partition(" ")[0] not in names]
        path.write_text("".join(f"{line}\n" for line in [*kept, *lines]), "ascii")

    def peers(self, text: str) -> NodePeers:
        (self.path / "peers.toml").write_text(text, "ascii")
        return load_peers(self.path / "peers.toml", self.path)

    def server(self, issued: pki.Issued, *more: bytes) -> None:
        """Another certificate and key of the server."""
        tls = self.path / "tls"
        (tls / "server.pem").write_bytes(b"".join([issued.certificate_pem, *more]))
        (tls / "server.key").write_bytes(issued.key_pem)

    def authority(self) -> pki.Issued:
        tls = self.path / "tls"
        return pki.load_issued((tls / "ca.pem").read_bytes(), (tls / "ca.key").read_bytes())


Plant = Callable[["Planted"], Iterable[Finding]]
PLANTS: dict[str, list[Plant]] = {}


def plants(*codes: str) -> Callable[[Plant], Plant]:
    """The function plants each of these faults, and returns what is found then."""

    def keep(plant: Plant) -> Plant:
        for code in codes:
            PLANTS.setdefault(code, []).append(plant)
        return plant

    return keep


def store_findings(planted: Planted) -> list[Finding]:
    return asyncio.run(gathered(check_store(planted.home)))


def party_findings(planted: Planted) -> list[Finding]:
    return asyncio.run(gathered(parties.check_parties(planted.home)))


async def gathered(findings: AsyncIterator[Finding]) -> list[Finding]:
    return [one async for one in findings]


def issued(planted: Planted, time_ms: int) -> pki.Issued:
    return pki.issue_server(planted.authority(), ["localhost"], os.urandom, time_ms)


def policy(planted: Planted, tmp: Path, *, more: str = "", url: str = "http://127.0.0.1:1") -> None:
    log = make_witness(tmp / "other", "log.example/rgs/2026h2", ())
    vkey = make_witness(tmp / "witness", "witness.example", ())
    del log
    (planted.path / "policy.txt").write_text(f"witness own {vkey} {url}\n{more}quorum own\n", "ascii")
    planted.set('log_policy = "policy.txt"')
