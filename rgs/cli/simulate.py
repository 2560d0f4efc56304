"""`rgs simulate wallet | regulator`: runs a wallet or a regulator's system that makes the faults of a plan.

It uses the home's own certificates (`rgs init`). It prints one line with its address and one for every fault. Signals:
SIGUSR1 switches the faults off and delivers what was held back, SIGUSR2 reads the plan again and switches the faults
on, SIGHUP writes the export, SIGTERM and SIGINT write it and end the program. Its money, ids and regulators are for
tests only.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer

from rgs.cli.options import HOME, HomeOption, entropy, grouped, new_app
from rgs.core.errors import RgsError
from rgs.core.money import parse_currency
from rgs.devkit.simulators.faults import FaultPlan, Faults, parse_plan, parse_planned
from rgs.devkit.simulators.regulator import SimulatedRegulator
from rgs.devkit.simulators.serving import ServerTls, Simulator, SimulatorServer
from rgs.devkit.simulators.statements import regulator_statement, wallet_statement
from rgs.devkit.simulators.wallet import SimulatedWallet
from rgs.node.clock import SystemClock
from rgs.node.config import Config, check_address, open_home
from rgs.node.files import PUBLIC_MODE, decode_ascii, read_whole, write_whole
from rgs.node.tls_identity import load_tls
from rgs.service.instance import regulator_id

app = new_app(help="Peers that make the faults of a plan, for tests and for the demo.", no_args_is_help=True)

OPENING_MINOR: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class FaultOptions:
    """The faults that a simulator makes."""

    faults: Annotated[Path | None, typer.Option(help="Plan of faults, TOML or JSON.", dir_okay=False)] = None
    fault: Annotated[
        list[str] | None, typer.Option(help='METHOD:CALL:FAULT, e.g. "Debit:3:lost_reply"; * for every.')
    ] = None
    faults_until: Annotated[int, typer.Option(help="No faults after so many calls; 0: no limit.", min=0)] = 0

    def read(self) -> FaultPlan:
        """The plan as its file is now, with the --fault rows after its own. --faults-until replaces the file's."""
        content = None if self.faults is None else read_whole(self.faults, "plan of faults")
        plan = FaultPlan() if content is None else parse_plan(decode_ascii(content, str(self.faults)))
        schedule = (*plan.schedule, *(parse_planned(text) for text in self.fault or ()))
        return replace(plan, schedule=schedule, until_call=self.faults_until or plan.until_call)


@dataclass(frozen=True, slots=True)
class Files:
    """The files of a simulator."""

    home: HomeOption = HOME
    books: Annotated[
        Path | None,
        typer.Option(
            help="The book, created if missing; default: simulators/wallet.db or regulator.db in the home.",
            dir_okay=False,
        ),
    ] = None
    export: Annotated[
        Path | None, typer.Option(help="The file for the export, written at the end; default: none.", dir_okay=False)
    ] = None

    def books_at(self, config: Config, name: str) -> Path:
        """The file of the books; by default one in the home."""
        if self.books is not None:
            return self.books
        folder = config.home / "simulators"
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder / name


ListenOption = Annotated[str, typer.Option(help="host:port, port 0 for any free one.")]


@app.command()
@grouped
def wallet(
    files: Files,
    plan: FaultOptions,
    listen: ListenOption = "127.0.0.1:50561",
    balance_minor: Annotated[
        int, typer.Option(help="First balance of every new account, minor units.", min=0)
    ] = OPENING_MINOR,
    currency: Annotated[str, typer.Option(help="Currency of the accounts.")] = "EUR",
) -> int:
    """Run an operator's wallet: `rgs.wallet.v1.WalletService`. Players named `unknown...` have no account."""
    config = open_home(files.home)
    check_address("listen", listen)
    faults = Faults(plan.read(), _print)
    simulator = SimulatedWallet(
        files.books_at(config, "wallet.db"),
        SystemClock().now_ms,
        faults,
        opening_minor=balance_minor,
        currency=parse_currency(currency),
    )
    _run("wallet", simulator, (listen, _tls(config)), plan, files.export, lambda: wallet_statement(simulator.store))
    return 0


@app.command()
@grouped
def regulator(
    files: Files,
    plan: FaultOptions,
    listen: ListenOption = "127.0.0.1:50562",
    counts: Annotated[
        bool, typer.Option("--as-real", help="Leave out `test_regulator`: for jurisdictions that do not allow it.")
    ] = False,
) -> int:
    """Run a regulator's system: `rgs.regulator.v1.RegulatorService`."""
    config = open_home(files.home)
    check_address("listen", listen)
    faults, new_id = Faults(plan.read(), _print), partial(regulator_id, entropy().read)
    path = files.books_at(config, "regulator.db")
    simulator = SimulatedRegulator(path, SystemClock().now_ms, faults, new_id, counts=counts)
    _run(
        "regulator", simulator, (listen, _tls(config)), plan, files.export, lambda: regulator_statement(simulator.store)
    )
    return 0


def _tls(config: Config) -> ServerTls:
    tls = load_tls(config)
    return ServerTls(tls.key, tls.chain, tls.client_ca)


def _print(text: str) -> None:
    print(text, flush=True)


def _run(
    name: str,
    simulator: Simulator,
    server_at: tuple[str, ServerTls],
    plan: FaultOptions,
    export: Path | None,
    statement: Callable[[], str],
) -> None:
    """Serve until SIGTERM or SIGINT, under the signals that the module names."""

    def write() -> None:
        if export is not None:
            write_whole(export.absolute(), statement().encode("utf-8"), PUBLIC_MODE)
            _print(f"wrote {export}")

    async def serve() -> None:
        loop, stopped = asyncio.get_running_loop(), asyncio.Event()
        server = SimulatorServer(simulator, *server_at)
        switching: set[asyncio.Task[None]] = set()

        def switch(on: bool) -> None:
            if on:
                try:
                    simulator.faults.follow(plan.read())
                except RgsError as error:
                    _print(f"the faults stay as they were: {error}")
                    return
            task = loop.create_task(server.switch_faults(on))
            switching.add(task)
            task.add_done_callback(switching.discard)
            _print(f"faults {'on' if on else 'off'}")

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stopped.set)
        loop.add_signal_handler(signal.SIGUSR1, switch, False)
        loop.add_signal_handler(signal.SIGUSR2, switch, True)
        loop.add_signal_handler(signal.SIGHUP, write)
        await server.start()
        _print(f"{name} simulator on {server_at[0].rpartition(':')[0]}:{server.port} (for tests only)")
        await stopped.wait()
        await server.drain()
        write()
        await server.stop()

    asyncio.run(serve())
