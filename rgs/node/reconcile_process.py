"""Starts the process of a reconciliation that was requested over gRPC: `rgs reconcile job`.

What the process runs is in `rgs.cli.reconcile_job`, so that the server does not load it.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from rgs.integrity.isolation import isolated_command
from rgs.node.config import Config
from rgs.service.reconciliation.runs import Job
from rgs.store.address import PostgresAddress


async def begin_job(config: Config, folder: Path, lock: int, memory_mb: int) -> Job:
    """Start the process of a run. It holds the lock until it ends."""
    command = isolated_command("reconcile", "job", str(folder), "--home", str(config.home))
    process = await asyncio.create_subprocess_exec(
        *command,
        *("--memory-mb", str(memory_mb)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        pass_fds=(lock,),
        start_new_session=True,
    )
    if process.stdin is not None:
        store = config.store.url if isinstance(config.store, PostgresAddress) else str(config.store)
        process.stdin.write(store.encode())
        process.stdin.close()
    return process
