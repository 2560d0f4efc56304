"""`rgs witness init | serve`: a witness of transparency logs, for an auditor or a regulator to run (docs/verify.md).

Its folder holds `witness.key` (its owner's alone), `witness.vkey` (for the policy files of those who trust it),
`logs.txt` (a verifier key a line, of the logs that it watches) and `seen.db`. Refuses a folder that has a key already,
a key that others may read, and a folder that another witness has open. A witness run by the house that it watches is a
self-witness and proves nothing to others: policies say so.
"""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Annotated

import typer

from rgs.core.errors import InvalidFieldError
from rgs.node.files import (
    alone_in,
)
from rgs.node.witness_folder import make_witness, open_witness
from rgs.tlog.witness.serving import WitnessServer

app = typer.Typer(
    help="Watch transparency logs and cosign their checkpoints.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

FolderArgument = Annotated[Path, typer.Argument(help="The witness's folder.", file_okay=False)]


@app.command()
def init(
    folder: FolderArgument,
    name: Annotated[str, typer.Option(help="The key's name, such as witness.auditor.example.")],
    log: Annotated[list[str] | None, typer.Option("--log", help="Verifier key of a log to watch.")] = None,
) -> int:
    """Make a witness: its key, and the list of logs. Prints the verifier key, which policies name."""
    print(make_witness(folder, name, log or ()))
    return 0


@app.command()
def serve(
    folder: FolderArgument,
    listen: Annotated[str, typer.Option(help="host:port, port 0 for any free one.")] = "127.0.0.1:50571",
) -> int:
    """Cosign what the logs of `logs.txt` show, over HTTP, until SIGTERM or SIGINT."""
    host, _, port = listen.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65_535:
        raise InvalidFieldError("listen is host:port", field="listen", value=listen[:100])
    with alone_in(folder, "rgs witness"):
        asyncio.run(_serve(folder, host, int(port)))
    return 0


def main(arguments: list[str], _manifest: object) -> int:
    """Run the command line below `rgs witness`."""
    status = typer.main.get_command(app).main(args=arguments, prog_name="rgs witness", standalone_mode=False)
    return status if isinstance(status, int) else 0


async def _serve(folder: Path, host: str, port: int) -> None:
    witness, store = open_witness(folder)
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    server = WitnessServer(witness, host, port)
    try:
        await server.start()
        print(f"witness on {host}:{server.port}", flush=True)
        await stopped.wait()
        await server.stop()
    finally:
        store.close()
