"""Who stands outside the house: each operator's wallet and how his players are funded, and the central system.

One TOML file beside the settings (`outward` in rgs.toml); without it wallet and register are the embedded ones. Paths
are relative to the home.

    [central]                        # left out: the embedded test register
    target = "central.example:443"

    [operator.op-1]
    funding = "seamless"             # left out: "participation"

    [operator.op-1.wallet]           # left out: the embedded wallet
    target = "wallet.example:443"
    deadline_ms = 3000

One long-lived channel a peer (ARCHITECTURE 2.17: unknown is a state), mutual TLS, a deadline on every call. Refuses
unknown keys, wrong types and values out of bounds, and a key file that is missing where a peer needs it.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rgs.adapters.embedded.wallet import EmbeddedWallet
from rgs.adapters.grpc.peer import DEADLINE_MS, OnContradiction, PeerSettings, log_contradiction
from rgs.adapters.grpc.regulator import GrpcCentralSystem
from rgs.adapters.grpc.wallet import GrpcWallet, RoutedWallet
from rgs.core.errors import InvalidFieldError, UnknownFieldError
from rgs.core.ids import check_name
from rgs.core.sessions import Funding
from rgs.node.clock import monotonic_ms
from rgs.node.files import read_whole
from rgs.ports.readings import CENTRAL_SYSTEM, CircuitReading, wallet_name
from rgs.ports.wallet import Wallet

OpenAccount = Callable[[str, str, str], Awaitable[None]]
"""Of (operator, player, currency)."""
DEMO_BALANCE_MINOR: Final = 1_000_000
"""First balance of a player's account in the embedded wallet, where the jurisdiction plays without money."""
_BYTES_MAX: Final = 256 * 1024
_TEXT_MAX: Final = 1024
_NUMBERS: Final[Mapping[str, tuple[int, int, int]]] = {
    "deadline_ms": (DEADLINE_MS, 10, 60_000),
    "failures_max": (5, 1, 1_000),
    "open_ms": (5_000, 1, 600_000),
    "in_flight_max": (256, 1, 100_000),
}
"""Setting -> default, least, most."""
_FILES: Final = {"ca": "tls/ca.pem", "certificate": "tls/outward.pem", "key": "tls/outward.key"}
_TEXTS: Final = ("target", "server_name")


@dataclass(frozen=True, slots=True)
class Operator:
    """How one operator is dealt with; `wallet` None: the embedded one."""

    funding: Funding = Funding.PARTICIPATION
    wallet: PeerSettings | None = None


@dataclass(frozen=True, slots=True)
class Outward:
    """The whole file. `central` None: the embedded register. `sha256` is the file's, empty where there is none."""

    central: PeerSettings | None = None
    operators: Mapping[str, Operator] = field(default_factory=dict)
    sha256: str = ""

    @property
    def fundings(self) -> dict[str, Funding]:
        """How each operator's players are funded, of those that are named."""
        return {name: operator.funding for name, operator in self.operators.items()}

    def has_wallet(self, operator: str) -> bool:
        """Whether the operator has a wallet of its own."""
        found = self.operators.get(operator)
        return found is not None and found.wallet is not None


class Connections:
    """The connections of one process. `new_id` makes ULIDs, `tell` hears of answers that cannot be: WALLET or
    CENTRAL_SYSTEM. Made and used in one event loop.
    """

    def __init__(self, outward: Outward, new_id: Callable[[], str], tell: Callable[[str], None]) -> None:
        def contradicted(code: str) -> OnContradiction:
            def hear(peer: str, method: str, transaction_id: str, what: str) -> None:
                log_contradiction(peer, method, transaction_id, what)
                tell(code)

            return hear

        self._wallets = {
            name: GrpcWallet(
                wallet_name(name),
                operator.wallet,
                new_id=new_id,
                now_ms=monotonic_ms,
                on_contradiction=contradicted("WALLET"),
            )
            for name, operator in outward.operators.items()
            if operator.wallet is not None
        }
        self.central: GrpcCentralSystem | None = None
        """None: the embedded register."""
        if outward.central is not None:
            self.central = GrpcCentralSystem(
                CENTRAL_SYSTEM,
                outward.central,
                new_id=new_id,
                now_ms=monotonic_ms,
                on_contradiction=contradicted("CENTRAL_SYSTEM"),
            )

    def wallet(self, embedded: Wallet) -> Wallet:
        """Every operator's wallet; the embedded one where the file names none."""
        return RoutedWallet(self._wallets, embedded) if self._wallets else embedded

    def readings(self) -> tuple[CircuitReading, ...]:
        """How each connection is."""
        wallets = [wallet.reading() for wallet in self._wallets.values()]
        return (*wallets, *([self.central.reading()] if self.central else []))

    async def close(self) -> None:
        """Let calls under way end, and close."""
        for wallet in self._wallets.values():
            await wallet.close()
        if self.central is not None:
            await self.central.close()


def load_outward(path: Path, home: Path) -> Outward:
    """The file at `path`; all embedded where there is none. InvalidFieldError, UnknownFieldError."""
    if not path.exists():
        return Outward()
    try:
        data = path.read_bytes()
        if len(data) > _BYTES_MAX:
            raise InvalidFieldError(f"{path.name} is longer than {_BYTES_MAX} bytes", field="outward", limit=_BYTES_MAX)
        document = tomllib.loads(data.decode("utf-8"))
    except (ValueError, RecursionError, OSError) as error:
        raise InvalidFieldError(f"{path.name} is not TOML: {error}", field="outward") from None
    _check_keys("", document, ("central", "operator"))
    central = _peer("central", document["central"], home) if "central" in document else None
    operators = {
        check_name(name, "operator"): _operator(f"operator.{name}", rows, home)
        for name, rows in _table("operator", document.get("operator", {})).items()
    }
    return Outward(central, operators, hashlib.sha256(data).hexdigest())


def _operator(where: str, value: object, home: Path) -> Operator:
    rows = _table(where, value)
    _check_keys(where, rows, ("funding", "wallet"))
    funding = rows.get("funding", Funding.PARTICIPATION.value)
    if funding not in set(Funding):
        raise _refusal(f"{where}.funding", " or ".join(Funding), funding)
    return Operator(Funding(funding), _peer(f"{where}.wallet", rows["wallet"], home) if "wallet" in rows else None)


def _peer(where: str, value: object, home: Path) -> PeerSettings:
    rows = _table(where, value)
    _check_keys(where, rows, (*_TEXTS, *_FILES, *_NUMBERS))
    texts = {name: _text(f"{where}.{name}", rows.get(name, "")) for name in _TEXTS}
    if not texts["target"]:
        raise _refusal(f"{where}.target", "host:port", "")
    files = {
        name: read_whole(home / _text(f"{where}.{name}", rows.get(name, default)), where, secret=name == "key")
        for name, default in _FILES.items()
    }
    numbers = {name: _number(f"{where}.{name}", rows.get(name, row[0]), row) for name, row in _NUMBERS.items()}
    settings: dict[str, Any] = {**texts, **files, **numbers}
    return PeerSettings(**settings)


def account_opener(wallet: EmbeddedWallet, outward: Outward) -> OpenAccount:
    """Opens the player's account where the operator's wallet is the embedded one."""

    async def open_account(operator: str, player: str, currency: str) -> None:
        if outward.has_wallet(operator):
            return
        await wallet.open_account(operator=operator, player=player, currency=currency, balance_minor=DEMO_BALANCE_MINOR)

    return open_account


def _table(where: str, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _refusal(where, "a table", value)
    return value


def _check_keys(where: str, rows: Mapping[str, object], known: tuple[str, ...]) -> None:
    for key in rows:
        if key not in known:
            name = f"{where}.{key}".lstrip(".")
            raise UnknownFieldError(
                f"{name[:120]} is no setting; there are {', '.join(known)}", field=name[:120], value=key[:80]
            )


def _text(field_: str, value: object) -> str:
    if not isinstance(value, str) or len(value) > _TEXT_MAX or "\0" in value:
        raise _refusal(field_, f"a text of at most {_TEXT_MAX} characters", value)
    return value


def _number(field_: str, value: object, row: tuple[int, int, int]) -> int:
    _, least, most = row
    if type(value) is not int or not least <= value <= most:
        raise _refusal(field_, f"a whole number from {least} to {most}", value)
    return value


def _refusal(field_: str, limit: str, value: object) -> InvalidFieldError:
    return InvalidFieldError(f"{field_} must be {limit}", field=field_, limit=limit, value=str(value)[:80])
