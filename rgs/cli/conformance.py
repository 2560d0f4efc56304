"""`rgs conformance wallet | regulator`: checks whether a peer keeps the contract; prints a table, writes a JUnit file.

Exit status: 0 every check passed or was skipped, 2 a check failed, 1 the peer cannot be reached or the options are
wrong. The peer must use mutual TLS.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import grpc
import typer

from rgs.adapters.grpc import regulator as regulator_grpc
from rgs.adapters.grpc import wallet as wallet_grpc
from rgs.cli.options import HOME, HomeOption, entropy, grouped, new_app
from rgs.core.ids import ULID_RANDOM_BYTES, check_name, check_reference, format_ulid
from rgs.core.money import parse_currency
from rgs.devkit.conformance import regulator, wallet
from rgs.devkit.conformance.kit import (
    CheckResult,
    CheckVerdict,
    ContractCaller,
    format_junit,
    print_table,
    run_checks,
    verify_reachable,
)
from rgs.devkit.conformance.regulator_kit import RegulatorKit
from rgs.devkit.conformance.wallet_kit import WalletKit
from rgs.node.clock import SystemClock
from rgs.node.config import check_address, open_home
from rgs.node.files import PUBLIC_MODE, read_whole, write_whole
from rgs.node.home import PEERS_CERTIFICATE
from rgs.regulator.v1.regulator_pb2_grpc import RegulatorServiceStub
from rgs.wallet.v1.wallet_pb2_grpc import WalletServiceStub

app = new_app(help="Check a wallet or a regulator's gateway against the contract.", no_args_is_help=True)

FAILED_STATUS: Final = 2


@dataclass(frozen=True, slots=True)
class TestedPeer:
    """The system that is checked, how it is reached, and where the results go."""

    target: Annotated[str, typer.Option(help="host:port of the peer.")]
    tls: Annotated[
        Path | None,
        typer.Option(help="Folder with ca.pem, peers.pem, peers.key; default: the home's.", file_okay=False),
    ] = None
    home: HomeOption = HOME
    junit: Annotated[Path | None, typer.Option(help="Write the results as JUnit XML.", dir_okay=False)] = None
    deadline_ms: Annotated[int, typer.Option(help="Deadline of one call.", min=50, max=60_000)] = 3_000

    def credentials(self) -> grpc.ChannelCredentials:
        """The certificates for mutual TLS. FileRefusedError."""
        folder = open_home(self.home).tls if self.tls is None else self.tls
        return grpc.ssl_channel_credentials(
            root_certificates=read_whole(folder / "ca.pem", "authority"),
            private_key=read_whole(folder / f"{PEERS_CERTIFICATE}.key", "private key", secret=True),
            certificate_chain=read_whole(folder / f"{PEERS_CERTIFICATE}.pem", "certificate"),
        )


@dataclass(frozen=True, slots=True)
class WalletAccounts:
    """What the checks of a wallet may use there."""

    player: Annotated[str, typer.Option(help="Test player with some ten thousand minor units; used by nobody else.")]
    operator: Annotated[str, typer.Option(help="The operator's name at the game server.")] = "demo-operator"
    currency: Annotated[str, typer.Option(help="Currency of the player's account.")] = "EUR"
    second_player: Annotated[str, typer.Option(help="Another player with an account.")] = "conformance-second"
    unknown_player: Annotated[str, typer.Option(help="A pseudonym without an account.")] = "unknown-player"
    other_currency: Annotated[str, typer.Option(help="A currency in which the player has no account.")] = "XTS"
    token: Annotated[str, typer.Option(help="A valid session token, if the wallet needs one.")] = ""
    expired_token: Annotated[str, typer.Option(help="An expired session token; without it two checks are skipped.")] = (
        ""
    )
    free_bet: Annotated[
        str, typer.Option(help="A free bet (campaign:grant_id) of the player's that pays 100; some wallets need one.")
    ] = ""


@app.command("wallet")
@grouped
def check_wallet(peer: TestedPeer, accounts: WalletAccounts) -> int:
    """Run the checks of an operator's wallet. They move money of the test player."""

    async def check(channel: grpc.aio.Channel) -> list[CheckResult]:
        kit = WalletKit(
            stub=WalletServiceStub(channel),
            caller=ContractCaller(wallet_grpc.CONTRACT, peer.deadline_ms),
            new_id=_new_id(),
            operator=check_name(accounts.operator, "operator"),
            player=check_reference(accounts.player, "player"),
            currency=parse_currency(accounts.currency),
            second_player=check_reference(accounts.second_player, "second_player"),
            unknown_player=check_reference(accounts.unknown_player, "unknown_player"),
            other_currency=parse_currency(accounts.other_currency),
            token=accounts.token,
            expired_token=accounts.expired_token,
            free_bet=check_reference(accounts.free_bet, "free_bet") if accounts.free_bet else "",
        )
        return await run_checks(wallet.CHECKS, kit)

    return _run("wallet", peer, check)


@app.command("regulator")
@grouped
def check_regulator(
    peer: TestedPeer,
    operator: Annotated[str, typer.Option(help="An operator that the system knows.")] = "demo-operator",
    jurisdiction: Annotated[str, typer.Option(help="The jurisdiction that the system serves.")] = "demo",
    ruleset: Annotated[str, typer.Option(help="A ruleset that the system knows.")] = "uth-solo",
    currency: Annotated[str, typer.Option(help="ISO 4217.")] = "EUR",
) -> int:
    """Run the checks of a regulator's system or its gateway. They open sessions: use a test system."""

    async def check(channel: grpc.aio.Channel) -> list[CheckResult]:
        kit = RegulatorKit(
            stub=RegulatorServiceStub(channel),
            caller=ContractCaller(regulator_grpc.CONTRACT, peer.deadline_ms),
            new_id=_new_id(),
            now_ms=SystemClock().now_ms,
            operator=check_name(operator, "operator"),
            jurisdiction=check_name(jurisdiction, "jurisdiction"),
            ruleset=check_name(ruleset, "ruleset"),
            currency=parse_currency(currency),
        )
        return await run_checks(regulator.CHECKS, kit)

    return _run("regulator", peer, check)


def _new_id() -> Callable[[], str]:
    source, clock = entropy(), SystemClock()
    return lambda: format_ulid(clock.now_ms(), source.read(ULID_RANDOM_BYTES))


def _run(name: str, peer: TestedPeer, check: Callable[[grpc.aio.Channel], Awaitable[list[CheckResult]]]) -> int:
    credentials = peer.credentials()
    check_address("target", peer.target)

    async def run() -> list[CheckResult]:
        options: Any = (("grpc.enable_retries", 0), ("grpc.service_config_disable_resolution", 1))
        async with grpc.aio.secure_channel(peer.target, credentials, options=options) as channel:
            await verify_reachable(channel, peer.target, peer.deadline_ms)
            return await check(channel)

    results = asyncio.run(run())
    print_table(f"{name} at {peer.target}", results)
    if peer.junit is not None:
        write_whole(peer.junit.absolute(), format_junit(f"rgs.conformance.{name}", results), PUBLIC_MODE)
    return FAILED_STATUS if any(result.verdict is CheckVerdict.FAILED for result in results) else 0
