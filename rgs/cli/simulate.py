"""`rgs simulate wallet | regulator`: a wallet or central system that misbehaves as it is told, as a program.

Takes the home's own certificates (`rgs init`). SIGUSR1 switches the faults off and delivers what was held back, SIGUSR2
switches them on by the plan as its file stands then, SIGHUP writes the export, SIGTERM and SIGINT write it and end.
Prints one line where it listens and one for every fault. Refuses to listen where it cannot, and a plan that it does not
understand. Money, ids and registers of these programs count for nothing.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer

from rgs.cli.options import HOME, HomeOption, entropy
from rgs.core.errors import RgsError
from rgs.core.ids import REGULATOR_ID_ALPHABET, REGULATOR_ID_CHARACTERS
from rgs.core.money import parse_currency
from rgs.devkit.simulators.faults import FaultPlan, Faults, parse_plan, parse_planned
from rgs.devkit.simulators.regulator import SimulatedCentralSystem
from rgs.devkit.simulators.serving import ServerTls, Simulator, SimulatorServer
from rgs.devkit.simulators.statements import regulator_statement, wallet_statement
from rgs.devkit.simulators.wallet import SimulatedWallet
from rgs.node.clock import SystemClock
from rgs.node.config import Config, check_address
from rgs.node.files import PUBLIC_MODE, decode_ascii, read_whole, write_whole
from rgs.node.home import open_home
from rng.scaling import below

app = typer.Typer(
    help="Peers that misbehave as they are told: for tests, for the demo, to try us.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

OPENING_MINOR: Final = 1_000_000

FaultsOption = Annotated[Path | None, typer.Option("--faults", help="Plan of faults, TOML or JSON.", dir_okay=False)]
FaultOption = Annotated[
    list[str] | None, typer.Option("--fault", help='METHOD:CALL:FAULT, e.g. "Debit:3:lost_reply"; * for every.')
]
UntilOption = Annotated[int, typer.Option("--faults-until", help="No faults after so many calls; 0: never.", min=0)]
ListenOption = Annotated[str, typer.Option(help="host:port, port 0 for any free one.")]
BooksOption = Annotated[Path | None, typer.Option(help="The books' file; made where there is none.", dir_okay=False)]
ExportOption = Annotated[Path | None, typer.Option(help="Where the statement is written at the end.", dir_okay=False)]


@app.command()
def wallet(
    home: HomeOption = HOME,
    listen: ListenOption = "127.0.0.1:50561",
    books: BooksOption = None,
    export: ExportOption = None,
    faults: FaultsOption = None,
    fault: FaultOption = None,
    faults_until: UntilOption = 0,
    balance_minor: Annotated[int, typer.Option(help="First balance of every new account, minor units.", min=0)] = (
        OPENING_MINOR
    ),
    currency: Annotated[str, typer.Option(help="Currency of the accounts.")] = "EUR",
) -> int:
    """An operator's wallet: `rgs.wallet.v1.WalletService`. Players beginning with `unknown` have no account."""
    config, clock = open_home(home), SystemClock()
    check_address("listen", listen)
    plan = partial(_plan, faults, fault, faults_until)
    at_work = Faults(plan(), _tell)
    simulator = SimulatedWallet(
        books or _folder(config) / "wallet.db",
        clock.now_ms,
        at_work,
        opening_minor=balance_minor,
        currency=parse_currency(currency),
    )
    _run("wallet", simulator, listen, _tls(config), plan, export, lambda: wallet_statement(simulator.store))
    return 0


@app.command()
def regulator(
    home: HomeOption = HOME,
    listen: ListenOption = "127.0.0.1:50562",
    books: BooksOption = None,
    export: ExportOption = None,
    faults: FaultsOption = None,
    fault: FaultOption = None,
    faults_until: UntilOption = 0,
    counts: Annotated[
        bool, typer.Option("--as-real", help="Do not say `test_register`: for jurisdictions that allow none.")
    ] = False,
) -> int:
    """A regulator's central system: `rgs.regulator.v1.CentralSystemService`."""
    config, clock, source = open_home(home), SystemClock(), entropy()
    check_address("listen", listen)
    plan = partial(_plan, faults, fault, faults_until)
    at_work = Faults(plan(), _tell)
    path = books or _folder(config) / "regulator.db"
    simulator = SimulatedCentralSystem(path, clock.now_ms, at_work, id_maker(source.read), counts=counts)
    tls = _tls(config)
    _run("regulator", simulator, listen, tls, plan, export, lambda: regulator_statement(simulator.store))
    return 0


def main(arguments: list[str], _manifest: object) -> int:
    """Run the command line below `rgs simulate`."""
    status = typer.main.get_command(app).main(args=arguments, prog_name="rgs simulate", standalone_mode=False)
    return status if isinstance(status, int) else 0


def id_maker(read: Callable[[int], bytes]) -> Callable[[str], str]:
    """Makes 16-character ids from fresh bytes: the prefix, then unbiased letters and digits."""

    def new_id(prefix: str) -> str:
        unread = iter(read(256))
        missing = REGULATOR_ID_CHARACTERS - len(prefix)
        chosen = (REGULATOR_ID_ALPHABET[below(len(REGULATOR_ID_ALPHABET), unread.__next__)] for _ in range(missing))
        return prefix + "".join(chosen)

    return new_id


def _plan(path: Path | None, rows: list[str] | None, until_call: int) -> FaultPlan:
    """The plan of the file, with the rows of the options behind its own; `until_call` goes before the file's."""
    plan = FaultPlan() if path is None else parse_plan(decode_ascii(read_whole(path, "plan of faults"), str(path)))
    schedule = (*plan.schedule, *(parse_planned(text) for text in rows or ()))
    return replace(plan, schedule=schedule, until_call=until_call or plan.until_call)


def _folder(config: Config) -> Path:
    folder = config.home / "simulators"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def _tls(config: Config) -> ServerTls:
    return ServerTls(
        key=read_whole(config.tls / "server.key", "server key", secret=True),
        chain=read_whole(config.tls / "server.pem", "server certificate"),
        client_ca=read_whole(config.ca, "client authorities"),
    )


def _tell(text: str) -> None:
    print(text, flush=True)


def _run(
    name: str,
    simulator: Simulator,
    listen: str,
    tls: ServerTls,
    plan: Callable[[], FaultPlan],
    export: Path | None,
    statement: Callable[[], str],
) -> None:
    def write() -> None:
        if export is not None:
            write_whole(export.absolute(), statement().encode("utf-8"), PUBLIC_MODE)
            _tell(f"wrote {export}")

    async def serve() -> None:
        loop, stopped = asyncio.get_running_loop(), asyncio.Event()
        server = SimulatorServer(simulator, listen, tls)
        switching: set[asyncio.Task[None]] = set()

        def switch(on: bool) -> None:
            if on:
                try:
                    simulator.faults.follow(plan())
                except RgsError as error:
                    _tell(f"faults as before: {error}")
                    return
            task = loop.create_task(server.switch_faults(on))
            switching.add(task)
            task.add_done_callback(switching.discard)
            _tell(f"faults {'on' if on else 'off'}")

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stopped.set)
        loop.add_signal_handler(signal.SIGUSR1, switch, False)
        loop.add_signal_handler(signal.SIGUSR2, switch, True)
        loop.add_signal_handler(signal.SIGHUP, write)
        await server.start()
        _tell(f"{name} simulator on {listen.rpartition(':')[0]}:{server.port} (counts for nothing)")
        await stopped.wait()
        await server.drain()
        write()
        await server.stop()

    asyncio.run(serve())
