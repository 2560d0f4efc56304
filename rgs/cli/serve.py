"""`rgs serve`: reads the settings and starts the server (`rgs.node.server`), or several workers (`rgs.node.workers`).

The first start makes the default home; a home that was named must exist. The command fails if the software is not
locked, was loaded without being measured, or differs from `certified.json`; if the process is not isolated
(`rgs.integrity.isolation`); and if another process serves the home.
"""

from __future__ import annotations

import argparse
import gc
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import structlog

from rgs.cli.commands import PlainParser
from rgs.integrity.isolation import verify_isolated
from rgs.integrity.manifest import Manifest, verify_loaded
from rgs.node.clock import SystemClock, now_ms
from rgs.node.config import DEFAULT_HOME, LOG_LEVELS, Config, open_home
from rgs.node.home import ensure_home
from rgs.node.logging import Log
from rgs.node.parts import part
from rgs.node.stderr import BoundedStderr
from rgs.node.workers import WorkerPlan, port_kept, serving_alone, supervise, worker_command
from rgs.store.address import PostgresAddress, parse_address
from rng.entropy import EntropySource

_SETTINGS: Final = ("store", "listen", "logging_level", "reflection", "drain_s", "workers")
"""Options that stand for settings of the home."""


def command(arguments: Sequence[str], manifest: Manifest) -> int:
    """Serve until SIGTERM or SIGINT. NotUnderstoodError for arguments that are not understood."""
    given = _parser().parse_args(arguments)
    if given.help:
        print(_parser().format_help(), end="")
        return 0
    home: Path = given.home
    manifest.verify_locked()
    if home == DEFAULT_HOME and not home.exists():
        address = None if given.store is None else parse_address(given.store)
        database = address if isinstance(address, PostgresAddress) else None
        making = part("rgs.cli.init", "`rgs init`")
        making.report(home, ensure_home(home, None, EntropySource().read, now_ms(), database))
    options: dict[str, object] = {name: getattr(given, name) for name in _SETTINGS}
    config = open_home(home, options)
    if given.worker is not None:  # started by a supervisor, which holds the home's lock
        return _serve(config, manifest, given.worker, given.worker_port)
    with serving_alone(config.home) as lock:
        if config.workers > 1:
            return _supervise(config, options, lock)
        return _serve(config, manifest)


def _parser() -> PlainParser:
    """The options. One that is not given is None, so that the home's setting counts."""
    parser = PlainParser(
        "rgs serve",
        "Serve until SIGTERM or SIGINT. The first start makes the default home, for development. SIGHUP"
        " replaces several workers one after the other; one worker goes on as it is.",
    )
    home = Path(os.environ.get("RGS_HOME") or DEFAULT_HOME)
    said = f"The node's home directory. [env var: RGS_HOME; default: {DEFAULT_HOME}]"
    parser.add_argument("--home", type=Path, default=home, metavar="DIR", help=said)
    parser.add_argument("--store", help="A file, or postgresql://user@host/name.")
    parser.add_argument("--listen", metavar="HOST:PORT", help="Port 0 takes any free one.")
    parser.add_argument("--logging-level", metavar="LEVEL", help=f"{', '.join(LOG_LEVELS)}.")
    parser.add_argument("--reflection", action=argparse.BooleanOptionalAction, help="Offer gRPC reflection.")
    parser.add_argument(
        "--drain-s", type=int, metavar="S", help="Seconds that a stopping server waits for calls under way."
    )
    parser.add_argument(
        "--workers", type=int, metavar="N", help="Processes behind the port; more than 1 need PostgreSQL."
    )
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--worker-port", type=int, default=0, help=argparse.SUPPRESS)
    return parser


def _serve(config: Config, manifest: Manifest, worker: int | None = None, port: int = 0) -> int:
    with BoundedStderr() as stderr:  # it forks, so this comes before any thread
        gc.disable()
        try:
            server = part("rgs.node.server", "server")
        finally:
            gc.freeze()
            gc.enable()
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
        plan = WorkerPlan(config.workers, command, config.drain_s, (lock,))
        if config.metrics_listen:
            plan = replace(plan, beside=part("rgs.node.metrics.supervised", "metrics").of_workers(config))
        return supervise(plan)
