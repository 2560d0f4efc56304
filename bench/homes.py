"""Homes for the run: made as `rgs init` makes them, served by a process of their own, exported as `rgs export` does.

The store has its production settings.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from bench.figures import BenchError
from bench.process import Subject
from bench.windows import Load
from rgs.cli.options import entropy
from rgs.devkit.client import ClientIdentity
from rgs.node.clock import now_ms
from rgs.node.config import Config, load_config
from rgs.node.home import ensure_home
from rgs.store.address import PostgresAddress

PARTY: Final = "demo-operator"


def make_home(home: Path, store: PostgresAddress | None = None) -> tuple[Config, str]:
    """A new home: its settings, and its root's fingerprint. Its store is a file, or in the database `store`."""
    made = ensure_home(home, None, entropy().read, now_ms(), store)
    return made.config, made.root


@asynccontextmanager
async def serving(home: Path, database_s: Callable[[], float] = lambda: 0.0) -> AsyncIterator[Load]:
    """The server of a home, and a load on it as its operator; `database_s` tells the CPU seconds of its database."""
    credentials = ClientIdentity.of_party(load_config(home), PARTY).credentials()
    subject = await Subject.start(home)
    try:
        load = Load(subject, credentials, database_s)
        try:
            yield load
        finally:
            await load.close()
    finally:
        await subject.stop()


def export_lines(config: Config) -> list[bytes]:
    """All statements of a store at rest, a line each."""
    run = subprocess.run(
        [sys.executable, "-m", "rgs", "export", "--home", str(config.home)], check=False, capture_output=True
    )
    if run.returncode:
        raise BenchError(f"the export failed: {run.stderr.decode(errors='replace').strip()}")
    return run.stdout.splitlines()
