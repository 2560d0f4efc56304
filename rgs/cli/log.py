"""`rgs log`: the transparency log of a home, shown and served; and a copy of it for whoever verifies it.

The log is a plain folder, servable by any static web server; `rgs log serve` is one that keeps the entries for those
who may see them. Refuses to write anything into a log.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rgs.cli.options import HOME, HomeOption, note
from rgs.core.shards import format_origin, next_half_year, parse_origin
from rgs.core.times import format_time
from rgs.node.config import check_address
from rgs.node.files import FileRefusedError
from rgs.node.home import open_home
from rgs.node.log_folder import read_cosigned, read_shard, shards, vkey_now, vkey_of
from rgs.node.parts import part

app = typer.Typer(help="The transparency log: shown, and served.", no_args_is_help=False)


@app.command()
def show(home: HomeOption = HOME) -> int:
    """List the log's shards, one a line: origin, size, root, verifier key, folder, with tabs between them; behind each
    the newest checkpoint that has its quorum, a line a witness: `cosigned`, origin, size, the witness's name, its time.
    Last `next`, with origin and verifier key of the coming half-year: witnesses want them before it begins.

    Where there is no log yet, only the verifier key that it will have.
    """
    config = open_home(home)
    found = shards(config)
    for shard in found:
        checkpoint = read_shard(shard)
        vkey = vkey_of(config, checkpoint.origin)
        print(f"{checkpoint.origin}\t{checkpoint.size}\t{checkpoint.root.hex()}\t{vkey}\t{shard}")
        for size, name, time_ms in read_cosigned(shard):
            print(f"cosigned\t{checkpoint.origin}\t{size}\t{name}\t{format_time(time_ms)}")
    if found:
        prefix, name = parse_origin(read_shard(found[-1]).origin)
        coming = format_origin(prefix, next_half_year(name))
        print(f"next\t{coming}\t{vkey_of(config, coming)}")
    else:
        print(vkey_now(config))
    return 0


@app.command()
def serve(
    home: HomeOption = HOME,
    listen: Annotated[str, typer.Option(help="host:port, port 0 for any free one.")] = "127.0.0.1:50580",
    plain: Annotated[
        bool, typer.Option("--plain", help="HTTP without TLS: the entries, too, are open to everybody.")
    ] = False,
    folder: Annotated[
        Path | None, typer.Option(help="Instead of the home's log: a folder with one log.", file_okay=False)
    ] = None,
) -> int:
    """Serve the log read-only, each shard below its half-year, until interrupted.

    With TLS (the home's certificates) checkpoint, hash tiles and artifacts are open; the entries are for certificates
    of auditors, regulators, labs and admins that the allow-list has.
    """
    check_address("listen", listen)
    config = None if plain and folder is not None else open_home(home)  # a folder by itself needs no home
    root = config.translog if folder is None and config is not None else folder
    if root is None or not root.is_dir():
        raise FileRefusedError(f"there is no log in {root}", path=root)
    served = part("rgs.node.log_server", "`rgs log serve`")  # HTTP, which nothing else here speaks
    guard = None if plain or config is None else served.Allowed(config.store)
    context = None if plain or config is None else served.tls_context(config)
    with served.LogServer(root, listen, context, guard) as server:
        scheme = "http" if plain else "https"
        print(f"{scheme}://{listen.rpartition(':')[0]}:{server.port}/", flush=True)
        if plain:
            note("note: without TLS the entries are open to everybody who reaches this port")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return 130
    return 0
