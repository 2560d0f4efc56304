"""`rgs log`: shows and serves the transparency log of a home. It never writes into the log.

The log is a plain folder, which any static web server can serve. `rgs log serve` also restricts who may read entries.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rgs.cli.options import HOME, HomeOption, new_app, note
from rgs.core.shards import format_origin, next_half_year, parse_origin
from rgs.core.times import format_time
from rgs.node.config import check_address, open_home
from rgs.node.files import FileRefusedError
from rgs.node.log_folder import read_cosigned, read_shard, shards, vkey_now, vkey_of
from rgs.node.parts import part

app = new_app(help="Show and serve the transparency log.")


@app.command()
def show(home: HomeOption = HOME) -> int:
    """List the log's shards, one a line: origin, size, root, verifier key, folder, separated by tabs.

    After each shard comes its newest cosigned checkpoint, one line a witness: `cosigned`, origin, size, the witness's
    name, its time. The last line is `next`, with origin and verifier key of the coming half-year: witnesses need them
    before it begins. If there is no log yet, only the verifier key is printed that it will have.
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
        bool, typer.Option("--plain", help="HTTP without TLS: everybody can read the entries, too.")
    ] = False,
    folder: Annotated[
        Path | None, typer.Option(help="A folder with one log, instead of the home's log.", file_okay=False)
    ] = None,
) -> int:
    """Serve the log read-only, each shard under its half-year, until interrupted.

    With TLS (the home's certificates) everybody can read checkpoints, hash tiles and artifacts. Entries need a client
    certificate of an auditor, regulator, lab or admin that is on the allow-list.
    """
    check_address("listen", listen)
    config = None if plain and folder is not None else open_home(home)  # a folder with one log needs no home
    root = config.translog if folder is None and config is not None else folder
    if root is None or not root.is_dir():
        raise FileRefusedError(f"there is no log in {root}", path=root)
    served = part("rgs.node.log_server", "`rgs log serve`")  # HTTP is loaded by this command only
    guard = None if plain or config is None else served.EntryReaders(config.store)
    context = None if plain or config is None else served.tls_context(config)
    with served.LogServer(root, listen, context, guard) as server:
        scheme = "http" if plain else "https"
        print(f"{scheme}://{listen.rpartition(':')[0]}:{server.port}/", flush=True)
        if plain:
            note("note: without TLS everybody who reaches this port can read the entries")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return 130
    return 0
