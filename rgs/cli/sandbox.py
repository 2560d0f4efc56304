"""`rgs sandbox`: a server, a wallet and two operators on this machine, and a first call for each language.

For an engineer who writes a client (`rgs.devkit.sandbox`, docs/sandbox.md). It prints addresses, certificates and calls
to copy, then each fault that the wallet makes, until Ctrl-C or SIGTERM, which stop all of it. A sandbox that was killed
leaves nothing to clean up: the next one uses the folder again.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from pathlib import Path
from typing import Annotated, Final

import typer

from rgs.cli.options import entropy, new_app
from rgs.core.errors import InvalidFieldError, UnavailableError
from rgs.devkit.client import CallError
from rgs.devkit.sandbox import JURISDICTIONS, PARTICIPATION, SEAMLESS, Sandbox, plan_of, running
from rgs.node.clock import now_ms
from rgs.node.config import check_address

app = new_app()

FOLDER: Final = Path("var/sandbox")
_PAUSE_S: Final = 0.2
_NAMES: Final = {"127.0.0.1": "localhost", "[::1]": "localhost"}
"""The server's certificate has these addresses too, but some clients warn about a certificate of an address."""
_FUNDING: Final = {PARTICIPATION: "participation", SEAMLESS: "seamless"}
_CALLS: Final = (
    ("Python", ".venv/bin/python examples/minimal_client.py {address} {ca} {certificate} {key} 1", ""),
    ("Node", "node sdk/typescript/client/examples/first_round.mjs {address} {ca} {certificate} {key}", "make sdk"),
    ("Go", "var/first-round-go {address} {ca} {certificate} {key}", "examples/go/build.sh var/first-round-go"),
    (
        "grpcurl",
        "grpcurl -cacert {ca} -cert {certificate} -key {key} {address} rgs.v1.CatalogService/ListGames",
        "",
    ),
)
"""Language, call, and what builds it first."""


@app.command()
def sandbox(
    home: Annotated[Path, typer.Option(help="The sandbox's folder, made if missing.", file_okay=False)] = FOLDER,
    listen: Annotated[str, typer.Option(help="The server's host:port.")] = "127.0.0.1:50651",
    wallet_listen: Annotated[str, typer.Option(help="The wallet's host:port.")] = "127.0.0.1:50661",
    lost_replies: Annotated[
        int, typer.Option(help="Of 1000 calls the wallet answers, it loses so many replies.", min=0, max=1000)
    ] = 0,
    fault: Annotated[
        list[str] | None,
        typer.Option(help='METHOD:CALL:FAULT at the wallet, e.g. "Debit:1:lost_reply"; * for every. May be repeated.'),
    ] = None,
) -> int:
    """Bring up a server, a wallet and two operators, and print a first call for each language."""
    _verify_addresses({"listen": listen, "wallet_listen": wallet_listen})
    plan = plan_of(lost_replies, fault or ())
    stopping: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _frame: stopping.append(received))
    print(f"starting a sandbox in {home} ...", flush=True)
    try:
        with running(home, entropy().read, now_ms(), (listen, wallet_listen), plan) as started:
            _show(started)
            _follow(started, stopping)
            print("stopping ...", flush=True)
    except CallError as error:
        raise UnavailableError(f"the server refused to set up the tables: {error}") from None
    print("stopped; the folder can be used again", flush=True)
    return 0


def _verify_addresses(addresses: dict[str, str]) -> None:
    """InvalidFieldError unless the addresses differ, name a port, and are free."""
    taken: set[str] = set()
    for name, address in addresses.items():
        check_address(name, address)
        option = f"--{name.replace('_', '-')}"
        host, _, port = address.rpartition(":")
        if port == "0" or address in taken:
            raise InvalidFieldError(
                f"{option} needs a port of its own: clients copy the address", field=name, value=address
            )
        taken.add(address)
        try:
            with socket.create_server((host.strip("[]"), int(port)), family=_family(host)):
                pass
        except OSError as error:
            why = f"cannot listen on {address}: {os.strerror(error.errno or 0)}; name another address with {option}"
            raise InvalidFieldError(why, field=name, value=address) from None


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if host.startswith("[") else socket.AF_INET


def _follow(started: Sandbox, stopping: list[int]) -> None:
    """Print each fault of the wallet, until a signal. UnavailableError if server or wallet ends by itself."""
    with started.wallet_output.open(encoding="utf-8") as lines:
        while not stopping:
            started.server.verify_running()
            started.wallet.verify_running()
            for line in lines:
                if line.startswith("fault "):
                    print(f"wallet: {line.rstrip()}", flush=True)
            time.sleep(_PAUSE_S)


def _show(started: Sandbox) -> None:
    """Print addresses, certificates and calls."""
    host, _, port = started.server.address.rpartition(":")
    names = {"address": f"{_NAMES.get(host, host)}:{port}", "ca": started.ca}
    print(f"\nserver     {names['address']}   (mutual TLS; reflection is on)")
    print(f"wallet     {started.wallet.address}   (simulated; each new player has 10000.00 EUR there)")
    print("regulator  the embedded test regulator")
    print(f"CA         {started.ca}")
    for party, jurisdiction in JURISDICTIONS.items():
        certificate = started.certificate(party)
        print(f"\n{party}: {_FUNDING[party]}, jurisdiction {jurisdiction}")
        print(f"  certificate  {certificate}\n  key          {certificate.with_suffix('.key')}")
    print("\nA first call in each language, to be copied:")
    own = started.certificate(PARTICIPATION)
    for language, call, build in _CALLS:
        print(f"\n  # {language}" + (f" (build it once: {build})" if build else ""))
        print("  " + call.format(**names, certificate=own, key=own.with_suffix(".key")))
    print("\nWith the files of seamless-operator Node and Go play bet by bet: docs/sandbox.md. Ctrl-C ends all of it.")
    print("The sandbox is ready.", flush=True)
