"""The systems outside the server: each operator's wallet, how its players are funded, and the regulator's system.

One TOML file names them (setting `peers` in rgs.toml); without it the embedded ones are used. Paths are relative to
the home.

    [regulator]                        # left out: the embedded test regulator
    target = "regulator.example:443"

    [operator.op-1]
    funding = "seamless"             # left out: "participation"
    currencies = ["EUR", "CHF"]      # left out: all of its jurisdiction

    [operator.op-1.bet_limits.EUR.ante]  # left out: the ruleset's; in minor units
    min_minor = 100
    max_minor = 20_000

    [operator.op-1.wallet]           # left out: the embedded wallet
    target = "wallet.example:443"
    deadline_ms = 3000

Each peer has one long-lived channel with mutual TLS, and every call has a deadline (ARCHITECTURE 2.17: unknown is a
state). Unknown keys, wrong types, values out of bounds and missing key files are errors.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from rgs.adapters.embedded.regulator import EmbeddedRegulator
from rgs.adapters.embedded.wallet import EmbeddedWallet
from rgs.adapters.grpc.peer import DEADLINE_MS, PeerSettings, log_contradiction
from rgs.adapters.grpc.regulator import GrpcRegulator
from rgs.adapters.grpc.wallet import GrpcWallet, RoutedWallet
from rgs.core.bet_limits import BetLimits, verify_bet_limits
from rgs.core.clock import Clock
from rgs.core.errors import FormatError, InvalidFieldError, UnknownFieldError
from rgs.core.games.types import StakeLimits
from rgs.core.ids import check_name
from rgs.core.money import MAX_STAKE_MINOR, parse_currency
from rgs.core.rulesets import SHIPPED_RULESETS, load_ruleset
from rgs.core.sessions import Funding
from rgs.node.clock import monotonic_ms
from rgs.node.config import PEERS_FILE, Config, Setting, number, refusal
from rgs.node.files import read_whole
from rgs.ports.readings import REGULATOR, CircuitReading, wallet_name
from rgs.ports.regulator import Regulator
from rgs.ports.wallet import Wallet
from rgs.service.game_catalog import GameCatalog
from rgs.service.instance import Instance
from rgs.store.regulator import RegulatorStore
from rgs.store.wallet import WalletStore

OpenAccount = Callable[[str, str, str], Awaitable[None]]
"""Takes operator, player and currency."""
DEMO_BALANCE_MINOR: Final = 1_000_000
"""First balance of an account in the embedded wallet, if the jurisdiction plays without money."""
_BYTES_MAX: Final = 256 * 1024
_TEXT_MAX: Final = 1024

_Peer = TypeVar("_Peer", GrpcWallet, GrpcRegulator)


def _text(field_: str, value: object) -> str:
    if not isinstance(value, str) or len(value) > _TEXT_MAX or "\0" in value:
        raise refusal(field_, f"a text of at most {_TEXT_MAX} characters", value)
    return value


def _target(field_: str, value: object) -> str:
    text = _text(field_, value)
    host, _, port = text.rpartition(":")
    if not host or not port.isascii() or not port.isdecimal() or not 1 <= int(port[:6]) <= 65_535:
        raise refusal(field_, "host:port, the port from 1 to 65535", value)
    return text


_SETTINGS: Final[Mapping[str, Setting]] = {
    "target": Setting("", _target),
    "server_name": Setting("", _text),
    "ca": Setting("tls/ca.pem", _text),
    "certificate": Setting("tls/peers.pem", _text),
    "key": Setting("tls/peers.key", _text),
    "deadline_ms": Setting(DEADLINE_MS, number(10, 60_000)),
    "failures_max": Setting(5, number(1, 1_000)),
    "open_ms": Setting(5_000, number(1, 600_000)),
    "in_flight_max": Setting(256, number(1, 100_000)),
}


@dataclass(frozen=True, slots=True)
class Operator:
    """The funding of an operator's players, and its wallet; None is the embedded one.

    `currencies` are those that it plays in, all of its jurisdiction where it names none; `bet_limits` by currency are
    its limits inside every ruleset's.
    """

    funding: Funding = Funding.PARTICIPATION
    wallet: PeerSettings | None = None
    currencies: tuple[str, ...] = ()
    bet_limits: Mapping[str, BetLimits] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NodePeers:
    """The whole file. `regulator` None is the embedded test regulator. `sha256` is empty if there is no file."""

    regulator: PeerSettings | None = None
    operators: Mapping[str, Operator] = field(default_factory=dict)
    sha256: str = ""

    @property
    def fundings(self) -> dict[str, Funding]:
        """How the players of each named operator are funded."""
        return {name: operator.funding for name, operator in self.operators.items()}

    def catalog(self) -> GameCatalog:
        """Rulesets and jurisdictions, with what the file sets for each operator."""
        return GameCatalog(
            self.fundings,
            currencies={name: operator.currencies for name, operator in self.operators.items()},
            bet_limits={name: operator.bet_limits for name, operator in self.operators.items()},
        )


class Connections:
    """Every wallet and the regulator's system of one process: over gRPC if the file names it, else embedded.

    Made and used in one event loop. They are closed with `opened`, after the calls under way. `note` is called with
    WALLET or REGULATOR when an answer contradicts the contract.
    """

    def __init__(
        self,
        config: Config,
        peers: NodePeers,
        instance: Instance,
        clock: Clock,
        note: Callable[[str], None],
        opened: AsyncExitStack,
    ) -> None:
        self._instance = instance
        self._clock = clock
        self._note = note
        self._opened = opened
        self.peers: list[GrpcWallet | GrpcRegulator] = []
        """The connections."""
        self._embedded = EmbeddedWallet(WalletStore(config.wallet), clock.now_ms)
        opened.push_async_callback(self._embedded.close)
        self._wallets = {
            name: self._connect(GrpcWallet, wallet_name(name), operator.wallet, "WALLET")
            for name, operator in peers.operators.items()
            if operator.wallet is not None
        }
        self.wallet: Wallet = RoutedWallet(self._wallets, self._embedded) if self._wallets else self._embedded
        self.regulator: Regulator
        if peers.regulator is not None:
            self.regulator = self._connect(GrpcRegulator, REGULATOR, peers.regulator, "REGULATOR")
        else:
            regulator = EmbeddedRegulator(RegulatorStore(config.regulator), instance.new_regulator_id, clock.now_ms)
            opened.push_async_callback(regulator.close)
            self.regulator = regulator

    def _connect(self, kind: type[_Peer], name: str, settings: PeerSettings, code: str) -> _Peer:
        def contradicted(peer: str, method: str, transaction_id: str, what: str) -> None:
            log_contradiction(peer, method, transaction_id, what)
            self._note(code)

        made = kind(name, settings, new_id=self._new_id, now_ms=monotonic_ms, on_contradiction=contradicted)
        self.peers.append(made)
        self._opened.push_async_callback(made.close)
        return made

    def _new_id(self) -> str:
        return self._instance.new_id(self._clock.now_ms())

    def readings(self) -> tuple[CircuitReading, ...]:
        """The state of each connection."""
        return tuple(peer.reading() for peer in self.peers)

    async def open_account(self, operator: str, player: str, currency: str) -> None:
        """Open the player's account in the embedded wallet. Without effect if the operator has a wallet of its own."""
        if operator not in self._wallets:
            await self._embedded.open_account(
                operator=operator, player=player, currency=currency, balance_minor=DEMO_BALANCE_MINOR
            )


def load_peers(path: Path, home: Path) -> NodePeers:
    """Read the file at `path`. InvalidFieldError, UnknownFieldError. Without the home's own peers.toml everything is
    embedded; a file that the setting names elsewhere must be there.
    """
    if not path.exists():
        if path != home / PEERS_FILE:
            raise InvalidFieldError(
                f"there is no file {path}: correct the setting peers; without it, and without {PEERS_FILE} in the home,"
                " wallet and regulator are embedded",
                field="peers",
                value=path,
            )
        return NodePeers()
    try:
        data = path.read_bytes()
        if len(data) > _BYTES_MAX:
            raise InvalidFieldError(f"{path.name} is longer than {_BYTES_MAX} bytes", field="peers", limit=_BYTES_MAX)
        document = tomllib.loads(data.decode("utf-8"))
    except (ValueError, RecursionError, OSError) as error:
        raise InvalidFieldError(f"{path.name} is not TOML: {error}", field="peers") from None
    _check_keys("", document, ("regulator", "operator"))
    regulator = _peer("regulator", document["regulator"], home) if "regulator" in document else None
    operators = {
        check_name(name, "operator"): _operator(f"operator.{name}", rows, home)
        for name, rows in _table("operator", document.get("operator", {})).items()
    }
    return NodePeers(regulator, operators, hashlib.sha256(data).hexdigest())


def _operator(where: str, value: object, home: Path) -> Operator:
    rows = _table(where, value)
    _check_keys(where, rows, ("funding", "wallet", "currencies", "bet_limits"))
    funding = rows.get("funding", Funding.PARTICIPATION.value)
    if funding not in set(Funding):
        raise refusal(f"{where}.funding", " or ".join(Funding), funding)
    wallet = _peer(f"{where}.wallet", rows["wallet"], home) if "wallet" in rows else None
    currencies = _currencies(f"{where}.currencies", rows["currencies"]) if "currencies" in rows else ()
    bet_limits = {
        _currency(f"{where}.bet_limits", code): _bet_limits(f"{where}.bet_limits.{code}", limits)
        for code, limits in _table(f"{where}.bet_limits", rows.get("bet_limits", {})).items()
    }
    return Operator(Funding(funding), wallet, currencies, bet_limits)


def _currency(where: str, value: object) -> str:
    try:
        return parse_currency(_text(where, value))
    except FormatError:
        raise refusal(where, "a currency code of three capital letters", value) from None


def _currencies(where: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise refusal(where, "a list of one currency or more", value)
    codes = tuple(_currency(where, one) for one in value)
    if len(set(codes)) != len(codes):
        raise refusal(where, "each currency once", value)
    return codes


def _bet_limits(where: str, value: object) -> BetLimits:
    """Limits inside those of every ruleset that has the bet, and on its step."""
    found: list[tuple[str, StakeLimits]] = []
    for bet, limits in sorted(_table(where, value).items()):
        place = f"{where}.{bet}"
        rows = _table(place, limits)
        _check_keys(place, rows, ("min_minor", "max_minor"))
        check = number(1, MAX_STAKE_MINOR)
        one = StakeLimits(*(check(f"{place}.{key}", rows.get(key)) for key in ("min_minor", "max_minor")))
        having = [ruleset for ruleset in map(load_ruleset, SHIPPED_RULESETS) if bet in ruleset.limits]
        if not having:
            raise refusal(place, "a bet that players place in a shipped ruleset", bet)
        for ruleset in having:
            verify_bet_limits(((bet, one),), ruleset.limits, ruleset.step_minor, whose=ruleset.id, field=where)
        found.append((bet, one))
    return tuple(found)


def _peer(where: str, value: object, home: Path) -> PeerSettings:
    rows = _table(where, value)
    _check_keys(where, rows, _SETTINGS)
    settings = {name: row.check(f"{where}.{name}", rows.get(name, row.default)) for name, row in _SETTINGS.items()}
    for name in ("ca", "certificate", "key"):
        settings[name] = read_whole(home / settings[name], where, secret=name == "key")
    return PeerSettings(**settings)


def _table(where: str, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise refusal(where, "a table", value)
    return value


def _check_keys(where: str, rows: Mapping[str, object], known: Collection[str]) -> None:
    for key in rows:
        if key not in known:
            name = f"{where}.{key}".lstrip(".")[:120]
            raise UnknownFieldError(
                f"unknown setting {name}; known settings: {', '.join(known)}", field=name, value=key[:80]
            )
