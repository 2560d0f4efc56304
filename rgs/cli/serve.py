"""`rgs serve`: settings in, `rgs.server.serve` out; the server itself is there.

Makes the default home at the first start, and no other: a home that was named must exist. Refuses to serve software
that is not locked, or that came into the process past its hashes.
"""

from __future__ import annotations

from typing import Annotated

import typer

from rgs.cli.init import ensure_home, report
from rgs.cli.options import HOME, HomeOption, entropy, now_ms, open_home, part
from rgs.config import LOG_LEVELS
from rgs.manifest import Manifest, verify_loaded
from rgs.store.address import PostgresAddress, parse_address


def command(
    context: typer.Context,
    home: HomeOption = HOME,
    store: Annotated[str | None, typer.Option(help="A file, or postgresql://user@host/name.")] = None,
    listen: Annotated[str | None, typer.Option(help="host:port, port 0 for any free one.")] = None,
    log_level: Annotated[str | None, typer.Option(help=f"{', '.join(LOG_LEVELS)}.")] = None,
    reflection: Annotated[bool | None, typer.Option(help="Offer gRPC reflection.")] = None,
    drain_s: Annotated[int | None, typer.Option("--drain-s", help="Seconds that a stopping server waits.")] = None,
) -> int:
    """Serve until SIGTERM or SIGINT. The default home is made at the first start, for development."""
    manifest: Manifest = context.obj
    manifest.verify_locked()
    server = part("rgs.server", "server")
    if home == HOME and not home.exists():
        address = None if store is None else parse_address(store)
        database = address if isinstance(address, PostgresAddress) else None
        report(home, ensure_home(home, None, entropy().read, now_ms(), database))
    options: dict[str, object] = {
        "store": store,
        "listen": listen,
        "log_level": log_level,
        "reflection": reflection,
        "drain_s": drain_s,
    }
    config = open_home(home, options)
    verify_loaded()
    status: int = server.serve(config, manifest)
    return status
