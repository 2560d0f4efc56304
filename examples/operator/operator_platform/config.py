"""What the platform is started with."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

DAY_MS: Final = 24 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class Config:
    """All settings. Times are milliseconds unless the name says otherwise."""

    home: Path
    rgs_address: str
    ca: Path
    certificate: Path
    key: Path
    operator: str = "demo-operator"
    currencies: tuple[str, ...] = ("EUR",)
    """What accounts may be in, each a currency of the operator at the game server. The first is that of a new account
    that names none."""
    http_host: str = "127.0.0.1"
    http_port: int = 8080
    origins: tuple[str, ...] = ()
    """The page's origins; empty: http://localhost and http://127.0.0.1 with the port."""
    proxies: tuple[str, ...] = ()
    """Addresses of proxies in front, whose X-Forwarded-For is believed: its last entry."""
    http_certificate: Path | None = None
    http_key: Path | None = None
    wallet_listen: str = "127.0.0.1:50561"
    wallet_certificate: Path | None = None
    wallet_key: Path | None = None
    wallet_ca: Path | None = None
    page: Path = field(default_factory=lambda: Path(__file__).parents[1] / "page" / "dist")
    root_fingerprint: str = ""
    limit_raise_delay_ms: int = 0
    """How long a raised limit waits at least; the jurisdiction may say longer."""
    reality_check_ms: int = 0
    """Time between reality checks, where the jurisdiction says none or longer; 0: as the jurisdiction says."""
    sign_in_ms: int = 12 * 3600 * 1000
    play_deposits: bool = True
    """Whether the cashier offers play deposits. They are for development."""
    rate_factor: int = 1
    """Multiplies all rate limits. Tests that sign up many players raise it."""

    @property
    def is_secure(self) -> bool:
        """Whether the page is served over TLS, here or by a proxy in front."""
        return self.http_certificate is not None or any(one.startswith("https://") for one in self.origins)

    @property
    def cookie(self) -> str:
        """The name of the players' cookie. The prefix has browsers enforce Secure, path and host."""
        return "__Host-sid" if self.is_secure else "sid"

    @property
    def staff_cookie(self) -> str:
        """The name of the staff's cookie."""
        return "__Host-staff" if self.is_secure else "staff"
