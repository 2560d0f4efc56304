"""`rgs conformance wallet | regulator`: does a peer keep the contract? A table, a JUnit file, an exit status.

Exit 0: every check passed or was skipped; 2: a check failed; 1: the peer could not be reached, or the options are
wrong. Refuses to run against a peer without mutual TLS.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any, Final

import grpc
import typer

from rgs.adapters.grpc import regulator as regulator_grpc
from rgs.adapters.grpc import wallet as wallet_grpc
from rgs.cli.options import HOME, HomeOption, entropy
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
from rgs.node.config import check_address
from rgs.node.files import PUBLIC_MODE, read_whole, write_whole
from rgs.node.home import OUTWARD, open_home
from rgs.regulator.v1.regulator_pb2_grpc import CentralSystemServiceStub
from rgs.wallet.v1.wallet_pb2_grpc import WalletServiceStub

app = typer.Typer(
    help="Check a wallet or a regulator's gateway against the contract.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

FAILED_STATUS: Final = 2
DEADLINE_MS: Final = 3_000

TargetOption = Annotated[str, typer.Option(help="host:port of the peer.")]
TlsOption = Annotated[
    Path | None,
    typer.Option("--tls", help="Folder with ca.pem, outward.pem, outward.key; default: the home's.", file_okay=False),
]
JunitOption = Annotated[Path | None, typer.Option(help="Write the results as JUnit XML.", dir_okay=False)]
DeadlineOption = Annotated[int, typer.Option("--deadline-ms", help="Deadline of one call.", min=50, max=60_000)]


@app.command("wallet")
def check_wallet(  # noqa: PLR0913, PLR0917 - the options of a command line
    target: TargetOption,
    player: Annotated[str, typer.Option(help="Test player with some ten thousand minor units; used by nobody else.")],
    operator: Annotated[str, typer.Option(help="The operator's name at the game server.")] = "demo-operator",
    currency: Annotated[str, typer.Option(help="Currency of the player's account.")] = "EUR",
    second_player: Annotated[str, typer.Option(help="Another player with an account.")] = "conformance-second",
    unknown_player: Annotated[str, typer.Option(help="A pseudonym without an account.")] = "unknown-player",
    other_currency: Annotated[str, typer.Option(help="A currency that the player has no account in.")] = "XTS",
    token: Annotated[str, typer.Option(help="A session token that is valid, if the wallet wants one.")] = "",
    expired_token: Annotated[str, typer.Option(help="One that has expired; without it two checks are skipped.")] = "",
    tls: TlsOption = None,
    home: HomeOption = HOME,
    junit: JunitOption = None,
    deadline_ms: DeadlineOption = DEADLINE_MS,
) -> int:
    """Run the checks of an operator's wallet. They move money of the test player."""

    async def tried(channel: grpc.aio.Channel) -> list[CheckResult]:
        kit = WalletKit(
            stub=WalletServiceStub(channel),
            caller=ContractCaller(wallet_grpc.DOMAIN, wallet_grpc.REFUSALS, deadline_ms),
            new_id=_new_id(),
            operator=check_name(operator, "operator"),
            player=check_reference(player, "player"),
            currency=parse_currency(currency),
            second_player=check_reference(second_player, "second_player"),
            unknown_player=check_reference(unknown_player, "unknown_player"),
            other_currency=parse_currency(other_currency),
            token=token,
            expired_token=expired_token,
        )
        return await run_checks(wallet.CHECKS, kit)

    return _run("wallet", target, _credentials(tls, home), deadline_ms, junit, tried)


@app.command("regulator")
def check_regulator(
    target: TargetOption,
    operator: Annotated[str, typer.Option(help="An operator that the system knows.")] = "demo-operator",
    jurisdiction: Annotated[str, typer.Option(help="The jurisdiction that it serves.")] = "demo",
    ruleset: Annotated[str, typer.Option(help="A ruleset that it knows.")] = "uth-solo",
    currency: Annotated[str, typer.Option(help="ISO 4217.")] = "EUR",
    tls: TlsOption = None,
    home: HomeOption = HOME,
    junit: JunitOption = None,
    deadline_ms: DeadlineOption = DEADLINE_MS,
) -> int:
    """Run the checks of a central system or its gateway. They open sessions: use a test system."""
    clock = SystemClock()

    async def tried(channel: grpc.aio.Channel) -> list[CheckResult]:
        kit = RegulatorKit(
            stub=CentralSystemServiceStub(channel),
            caller=ContractCaller(regulator_grpc.DOMAIN, regulator_grpc.REFUSALS, deadline_ms),
            new_id=_new_id(),
            now_ms=clock.now_ms,
            operator=check_name(operator, "operator"),
            jurisdiction=check_name(jurisdiction, "jurisdiction"),
            ruleset=check_name(ruleset, "ruleset"),
            currency=parse_currency(currency),
        )
        return await run_checks(regulator.CHECKS, kit)

    return _run("regulator", target, _credentials(tls, home), deadline_ms, junit, tried)


def main(arguments: list[str], _manifest: object) -> int:
    """Run the command line below `rgs conformance`. One that is not understood is 1 here: 2 says that checks failed."""
    command = typer.main.get_command(app)
    try:
        status = command.main(args=arguments, prog_name="rgs conformance", standalone_mode=False)
    except typer.TyperException as error:
        print(f"rgs: {error.format_message().rstrip('.')} (see `rgs conformance --help`)", file=sys.stderr)
        return 1
    return status if isinstance(status, int) else 0


def _new_id() -> Callable[[], str]:
    source, clock = entropy(), SystemClock()
    return lambda: format_ulid(clock.now_ms(), source.read(ULID_RANDOM_BYTES))


def _credentials(tls: Path | None, home: Path) -> grpc.ChannelCredentials:
    folder = open_home(home).tls if tls is None else tls
    return grpc.ssl_channel_credentials(
        root_certificates=read_whole(folder / "ca.pem", "authority"),
        private_key=read_whole(folder / f"{OUTWARD}.key", "private key", secret=True),
        certificate_chain=read_whole(folder / f"{OUTWARD}.pem", "certificate"),
    )


def _run(
    name: str,
    target: str,
    credentials: grpc.ChannelCredentials,
    deadline_ms: int,
    junit: Path | None,
    check: Callable[[grpc.aio.Channel], Awaitable[list[CheckResult]]],
) -> int:
    check_address("target", target)

    async def run() -> list[CheckResult]:
        options: Any = (("grpc.enable_retries", 0), ("grpc.service_config_disable_resolution", 1))
        async with grpc.aio.secure_channel(target, credentials, options=options) as channel:
            await verify_reachable(channel, target, deadline_ms)
            return await check(channel)

    results = asyncio.run(run())
    print_table(f"{name} at {target}", results)
    if junit is not None:
        write_whole(junit.absolute(), format_junit(f"rgs.conformance.{name}", results), PUBLIC_MODE)
    return FAILED_STATUS if any(result.verdict is CheckVerdict.FAILED for result in results) else 0
