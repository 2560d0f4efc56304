"""The sandbox: a server, an operator's wallet and two operators on this machine, for an engineer who writes a client.

`demo-operator` plays in participation mode in jurisdiction `demo`, with the test regulator. `seamless-operator` plays
in jurisdiction `demo-seamless`, where each bet is debited from the wallet. The wallet is `rgs simulate wallet`, which
makes faults on order; the test regulator is the embedded one. All keys are marked DEVELOPMENT. A folder that a sandbox
has made is used again, with its sessions and accounts; a folder of another origin is refused.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rgs.core.jurisdictions import DEMO
from rgs.devkit.client import CallError, Client, ClientIdentity
from rgs.devkit.processes.server import ServerProcess
from rgs.devkit.processes.simulator import SimulatorProcess
from rgs.devkit.shipped_tables import SHIPPED_TABLES, set_up, shipped_table
from rgs.devkit.simulators.faults import Fault, parse_plan, parse_planned
from rgs.node import files, pki
from rgs.node.config import Config
from rgs.node.home import ensure_home, ensure_operator
from rgs.v1.table_pb2 import GetTableRequest

PARTICIPATION: Final = "demo-operator"
SEAMLESS: Final = "seamless-operator"
ADMIN: Final = "demo-admin"
DEMO_SEAMLESS: Final = "demo-seamless"
JURISDICTIONS: Final = {PARTICIPATION: DEMO, SEAMLESS: DEMO_SEAMLESS}
MARK: Final = ".made-by-rgs-sandbox"

_MARK_TEXT: Final = b"This folder was made by `rgs sandbox`, which uses it again.\n"
_PEERS: Final = """\
# Written by `rgs sandbox` at each start: one simulated wallet for both operators. A wallet that makes faults on order
# must not open the circuit breaker at once.
[operator.{participation}.wallet]
target = "{wallet}"
failures_max = 1000

[operator.{seamless}]
funding = "seamless"

[operator.{seamless}.wallet]
target = "{wallet}"
failures_max = 1000
"""


@dataclass(frozen=True, slots=True)
class Sandbox:
    """A sandbox that runs: its processes, and the files of its clients."""

    home: Path
    server: ServerProcess
    wallet: SimulatorProcess
    wallet_output: Path

    @property
    def ca(self) -> Path:
        """The authority that signed the certificates of server and clients."""
        return self.home / "tls" / "ca.pem"

    def certificate(self, party: str) -> Path:
        """The certificate of a party; its key lies beside it, with the suffix `.key`."""
        return self.home / "tls" / "clients" / f"{party}.pem"


@contextmanager
def running(
    folder: Path, read: pki.ReadEntropy, now_ms: int, addresses: tuple[str, str], plan: str
) -> Iterator[Sandbox]:
    """Start all of it in `folder`, and stop it in good order at the end. `addresses`: of the server and of the wallet.
    `plan`: the wallet's faults (`plan_of`).

    FileRefusedError for a folder of another origin; UnavailableError if another sandbox runs in it, or if a process
    does not start; CallError if the server refuses the tables.
    """
    _claim(folder)
    run = folder / "run"
    run.mkdir(exist_ok=True)
    with files.alone_in(run, "rgs sandbox"), ExitStack() as stack:
        config = ensure_home(folder / "home", None, read, now_ms).config
        asyncio.run(ensure_operator(config, SEAMLESS, DEMO_SEAMLESS, read, now_ms))
        server_at, wallet_at = addresses
        _write(config.peers, _PEERS.format(wallet=wallet_at, participation=PARTICIPATION, seamless=SEAMLESS))
        faults, said = run / "faults.json", {name: run / f"{name}.txt" for name in ("server", "wallet")}
        _write(faults, plan)
        for output in said.values():
            output.unlink(missing_ok=True)
        export = run / "wallet.csv"
        wallet = stack.enter_context(SimulatorProcess("wallet", config.home, faults, export, said["wallet"], wallet_at))
        wallet.await_listening()
        server = stack.enter_context(ServerProcess(config.home, said["server"], PARTICIPATION, server_at))
        server.await_serving()
        _set_up_tables(config, server.address)
        yield Sandbox(config.home, server, wallet, said["wallet"])
        server.stop()
        wallet.stop()


def _claim(folder: Path) -> None:
    """Make and mark the folder, or find it marked."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise files.FileRefusedError(f"{folder} is not a folder: name another one with --home", path=folder)
    mark = folder / MARK
    if mark.is_file():
        return
    if folder.exists() and any(folder.iterdir()):
        raise files.FileRefusedError(
            f"{folder} was not made by `rgs sandbox`: name a new or empty folder with --home", path=folder
        )
    folder.mkdir(parents=True, exist_ok=True)
    files.write_new(mark, _MARK_TEXT, files.PUBLIC_MODE)


def _set_up_tables(config: Config, address: str) -> None:
    """Set up the tables that the project ships, and that are not there already."""
    with Client(address, ClientIdentity.of_party(config, ADMIN)) as admin:
        set_up(
            admin, [shipped_table(table) for table in SHIPPED_TABLES if not _has(admin, table)], "DEVELOPMENT_SET_UP"
        )


def _has(admin: Client, table: str) -> bool:
    try:
        admin.call(admin.tables.GetTable, GetTableRequest(table=table))
    except CallError as error:
        if error.reason == "NOT_FOUND":
            return False
        raise
    return True


def _write(path: Path, text: str) -> None:
    files.write_whole(path.absolute(), text.encode("utf-8"), files.PUBLIC_MODE)


def plan_of(lost_per_mille: int, faults: Sequence[str]) -> str:
    """The wallet's plan, JSON: so many of a thousand replies lost, and these METHOD:CALL:FAULT. InvalidFieldError."""
    rows = [parse_planned(text) for text in faults]
    plan = {
        "seed": "rgs sandbox",
        "per_mille": {Fault.LOST_REPLY: lost_per_mille},
        "schedule": [{"fault": row.fault, "method": row.method, "call": row.call} for row in rows],
    }
    text = json.dumps(plan, indent=1)
    parse_plan(text)
    return text
