"""`rgs serve`: reads the settings and starts the server (`rgs.node.server`), or several workers (`rgs.node.workers`).

The first start makes the default home; a home that was named must exist. The command fails if the software is not
locked, was loaded without being measured, or differs from `certified.json`; if the process is not isolated
(`rgs.integrity.isolation`); and if another process serves the home.
"""

from __future__ import annotations

from typing import Annotated

import structlog
import typer

from rgs.cli.init import report
from rgs.cli.options import HOME, HomeOption, entropy
from rgs.integrity.isolation import verify_isolated
from rgs.integrity.manifest import Manifest, verify_loaded
from rgs.node.clock import SystemClock, now_ms
from rgs.node.config import LOG_LEVELS, Config
from rgs.node.home import ensure_home, open_home
from rgs.node.logging import Log
from rgs.node.parts import part
from rgs.node.stderr import BoundedStderr
from rgs.node.workers import WorkerPlan, port_kept, serving_alone, supervise, worker_command
from rgs.store.address import PostgresAddress, parse_address


def command(
    context: typer.Context,
    home: HomeOption = HOME,
    store: Annotated[str | None, typer.Option(help="A file, or postgresql://user@host/name.")] = None,
    listen: Annotated[str | None, typer.Option(help="host:port, port 0 for any free one.")] = None,
    logging_level: Annotated[str | None, typer.Option(help=f"{', '.join(LOG_LEVELS)}.")] = None,
    reflection: Annotated[bool | None, typer.Option(help="Offer gRPC reflection.")] = None,
    drain_s: Annotated[
        int | None, typer.Option("--drain-s", help="Seconds that a stopping server waits for calls under way.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Number of processes behind the port; more than 1 need PostgreSQL.")
    ] = None,
    worker: Annotated[int | None, typer.Option(hidden=True)] = None,
    worker_port: Annotated[int, typer.Option(hidden=True)] = 0,
) -> int:
    """Serve until SIGTERM or SIGINT. The first start makes the default home, for development.

    SIGHUP replaces several workers one after the other.
    """
    manifest: Manifest = context.obj
    manifest.verify_locked()
    if home == HOME and not home.exists():
        address = None if store is None else parse_address(store)
        database = address if isinstance(address, PostgresAddress) else None
        report(home, ensure_home(home, None, entropy().read, now_ms(), database))
    options: dict[str, object] = {
        "store": store,
        "listen": listen,
        "logging_level": logging_level,
        "reflection": reflection,
        "drain_s": drain_s,
        "workers": workers,
    }
    config = open_home(home, options)
    if worker is not None:  # started by a supervisor, which holds the home's lock
        return _serve(config, manifest, worker, worker_port)
    with serving_alone(config.home) as lock:
        if config.workers > 1:
            return _supervise(config, options, lock)
        return _serve(config, manifest)


def _serve(config: Config, manifest: Manifest, worker: int | None = None, port: int = 0) -> int:
    with BoundedStderr() as stderr:  # it forks, so this comes before any thread
        server = part("rgs.node.server", "server")
        verify_isolated()
        verify_loaded()
        part("rgs.node.software_identity", "server").verify_certified(config.certified, manifest)
        status: int = server.serve(config, manifest, stderr, worker=worker, port=port)
    return status


def _supervise(config: Config, options: dict[str, object], lock: int) -> int:
    """Run the workers. Each has a log of its own; this process writes the one that the settings name."""
    with port_kept(config.listen) as port, Log(config.log, config.logging_level, SystemClock()):
        command = worker_command(config.home, options, port)
        host = config.listen.rpartition(":")[0]
        structlog.get_logger().info("supervising", address=f"{host}:{port}", workers=config.workers)
        return supervise(WorkerPlan(config.workers, command, config.drain_s, (lock,)))
