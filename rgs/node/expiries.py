"""How long certificates are valid: the server's own, those that it shows to peers, and those of the allow-list. One
line of warning a day for each that ends within 30 days.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import structlog

from rgs.core.clock import Clock
from rgs.core.times import format_time
from rgs.node import pki
from rgs.node.peers import NodePeers
from rgs.ports.readings import REGULATOR, wallet_name
from rgs.service.admin.certificates import ends_soon
from rgs.store.interface import Parties, PartyRow

DAY_MS: Final = 86_400_000


@dataclass(kw_only=True, eq=False, repr=False)
class Expiries:
    """The certificates of a node by name, in PEM; of a file with several the one that ends first counts."""

    clock: Clock
    parties: Parties
    certificates: Mapping[str, bytes]

    _warned_ms: int | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.ends_ms = {
            name: min(map(pki.last_ms_of, pki.load_certificates(pem))) for name, pem in self.certificates.items()
        }
        """When each ends, in milliseconds since 1970."""

    async def allowed(self) -> list[PartyRow]:
        """The allowed certificates whose end is known. StoreError."""
        return [row for row in await self.parties.allowed() if row.last_ms is not None]

    async def poll(self) -> None:
        """Warn once a day of what ends soon or has ended. StoreError: the next call tries again."""
        running_ms, now_ms = self.clock.running_ms(), self.clock.now_ms()
        if self._warned_ms is not None and running_ms - self._warned_ms < DAY_MS:
            return
        allowed = await self.allowed()
        self._warned_ms = running_ms
        warn = structlog.get_logger().warning
        for name, last_ms in self.ends_ms.items():
            if ends_soon(last_ms, now_ms):
                warn("certificate_ends_soon", certificate=name, ends=format_time(last_ms))
        for row in allowed:
            if row.last_ms is not None and ends_soon(row.last_ms, now_ms):
                warn(
                    "certificate_ends_soon",
                    party=row.party,
                    role=row.role,
                    fingerprint=row.fingerprint,
                    ends=format_time(row.last_ms),
                )


def certificates_of(chain: bytes, client_ca: bytes, peers: NodePeers) -> dict[str, bytes]:
    """The certificates of a node by name: its own, its CAs, and for each peer what is shown to it and its CAs."""
    found = {"server": chain, "ca": client_ca}
    settings = {wallet_name(name): operator.wallet for name, operator in peers.operators.items()}
    for name, peer in {**settings, REGULATOR: peers.regulator}.items():
        if peer is not None:
            found |= {name: peer.certificate, f"ca of {name}": peer.ca}
    return found
