"""`rgs witness init | serve`: a witness of transparency logs, for an auditor or a regulator to run (docs/verify.md).

Its folder holds `witness.key` (its owner's alone), `witness.vkey` (for the policy files of those who trust it),
`logs.txt` (a verifier key a line, of the logs that it watches) and `seen.db`. Refuses a folder that has a key already,
a key that others may read, and a folder that another witness has open. A witness run by the house that it watches is a
self-witness and proves nothing to others: policies say so.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from rgs.cli.files import (
    PUBLIC_MODE,
    SECRET_MODE,
    FileRefusedError,
    alone_in,
    make_folder,
    read_whole,
    write_new,
    write_whole,
)
from rgs.cli.keyring import format_private_key, new_key, parse_private_key
from rgs.cli.options import entropy
from rgs.clock import SystemClock
from rgs.core.errors import FormatError, InvalidFieldError
from rgs.core.note import COSIGNATURE, ED25519, NoteKey, format_vkey, note_key, parse_vkey
from rgs.core.statements import Ed25519Signer
from rgs.store.witness import WitnessStore
from rgs.witness.serving import WitnessServer
from rgs.witness.witness import Witness

app = typer.Typer(
    help="Watch transparency logs and cosign their checkpoints.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

KEY: Final = "witness.key"
VKEY: Final = "witness.vkey"
LOGS: Final = "logs.txt"
SEEN: Final = "seen.db"

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


def make_witness(folder: Path, name: str, vkeys: Sequence[str]) -> str:
    """The folder of a new witness of logs with these verifier keys; its own. FileRefusedError, FormatError."""
    logs = [format_vkey(_log_key(vkey)) for vkey in vkeys]
    if not folder.exists():
        make_folder(folder)
    key = new_key(entropy().read)
    vkey = format_vkey(note_key(name, COSIGNATURE, Ed25519Signer(key)))
    write_new(folder / KEY, format_private_key(key), SECRET_MODE)
    write_whole(folder / VKEY, f"{vkey}\n".encode(), PUBLIC_MODE)
    write_whole(folder / LOGS, "".join(f"{one}\n" for one in logs).encode(), PUBLIC_MODE)
    return vkey


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


def open_witness(folder: Path) -> tuple[Witness, WitnessStore]:
    """The witness of a folder, and its file, which the caller closes."""
    own = parse_vkey(read_whole(folder / VKEY, "verifier key").decode("utf-8", "replace").rstrip("\n"))
    signer = Ed25519Signer(parse_private_key(read_whole(folder / KEY, "witness key", secret=True), "the witness key"))
    if note_key(own.name, COSIGNATURE, signer) != own:
        raise FileRefusedError(f"{folder / VKEY} is not the verifier key of {folder / KEY}", path=folder)
    lines = read_whole(folder / LOGS, "list of logs").decode("utf-8", "replace").split("\n")
    logs = [_log_key(line) for line in lines if line and not line.startswith("#")]
    if not logs:
        raise FileRefusedError(f"{folder / LOGS} names no log: add its verifier key", path=folder)
    store = WitnessStore(folder / SEEN)
    return Witness(own.name, signer, logs, store, SystemClock()), store


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


def _log_key(vkey: str) -> NoteKey:
    key = parse_vkey(vkey)
    if key.kind != ED25519:
        raise FormatError(f"{key.name}: a log has a key of kind {ED25519}, not {key.kind}", field="log")
    return key
