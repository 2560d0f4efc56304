"""`rgs witness init | serve`: a witness of transparency logs, run by an auditor or a regulator (docs/verify.md).

Its folder holds `witness.key` (secret), `witness.vkey` (for the policy files of those who trust the witness),
`logs.txt` (the verifier keys of the watched logs, one a line) and `seen.db`. `init` fails if the folder has a key.
`serve` fails if others may read the key, or if another witness has the folder open. A witness that the operator of the
watched server runs is a self-witness: it proves nothing to others, and policies mark it.
"""

from __future__ import annotations

import asyncio
import signal
import ssl
from pathlib import Path
from typing import Annotated

import typer

from rgs.cli.options import new_app, verify_together
from rgs.core.errors import InvalidFieldError
from rgs.node.files import alone_in
from rgs.node.witness_folder import load_witness_tls, make_witness, open_witness
from rgs.tlog.witness.serving import WitnessServer

app = new_app(help="Watch transparency logs and cosign their checkpoints.", no_args_is_help=True)

FolderArgument = Annotated[Path, typer.Argument(help="The witness's folder.", file_okay=False)]


@app.command()
def init(
    folder: FolderArgument,
    name: Annotated[str, typer.Option(help="The key's name, such as witness.auditor.example.")],
    log: Annotated[list[str] | None, typer.Option("--log", help="Verifier key of a log to watch.")] = None,
) -> int:
    """Make a witness: its key, and the list of logs. Prints the verifier key for policy files."""
    print(make_witness(folder, name, log or ()))
    return 0


@app.command()
def serve(
    folder: FolderArgument,
    listen: Annotated[str, typer.Option(help="host:port, port 0 for any free one.")] = "127.0.0.1:50571",
    tls_cert: Annotated[
        Path | None, typer.Option("--tls-cert", help="Serve HTTPS with this certificate, PEM.", dir_okay=False)
    ] = None,
    tls_key: Annotated[Path | None, typer.Option("--tls-key", help="Its private key, PEM.", dir_okay=False)] = None,
) -> int:
    """Cosign checkpoints of the logs in `logs.txt`, over HTTPS or HTTP, until SIGTERM or SIGINT."""
    verify_together("tls_key", tls_cert=tls_cert, tls_key=tls_key)
    host, _, port = listen.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65_535:
        raise InvalidFieldError("listen must be host:port", field="listen", value=listen[:100])
    with alone_in(folder, "rgs witness"):
        tls = None if tls_cert is None or tls_key is None else load_witness_tls(tls_cert, tls_key)
        asyncio.run(_serve(folder, host, int(port), tls))
    return 0


async def _serve(folder: Path, host: str, port: int, tls: ssl.SSLContext | None) -> None:
    witness, store = open_witness(folder)
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    server = WitnessServer(witness, host, port, tls=tls)
    try:
        await server.start()
        print(f"witness on {host}:{server.port}" + ("" if tls is None else " (TLS)"), flush=True)
        await stopped.wait()
        await server.stop()
    finally:
        store.close()
