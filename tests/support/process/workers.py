"""`rgs serve --workers` as processes over one store."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc

from rgs.node.config import Config
from rgs.node.pki import load_issued
from tests.support.ports import free_ports

ROOT = Path(__file__).resolve().parents[3]


class Service:
    """A supervisor with its workers. What it says goes to `log`."""

    def __init__(self, config: Config, log: Path, workers: int) -> None:
        self.config = config
        self.log = log
        (self.port,) = free_ports(1)
        command = [sys.executable, "-m", "rgs", "serve", "--home", str(config.home), "--workers", str(workers)]
        with log.open("ab") as said:
            self.process = subprocess.Popen(
                [*command, "--listen", f"127.0.0.1:{self.port}", "--drain-s", "3"],
                cwd=ROOT, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )  # fmt: skip

    def lines(self) -> list[dict[str, Any]]:
        """What the supervisor has logged."""
        path = self.config.log
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def serving(self) -> list[tuple[int, int]]:
        """(worker, pid) of every worker that came to serve, in order."""
        return [(line["worker"], line["pid"]) for line in self.lines() if line["event"] == "worker_serves"]

    async def until_serving(self, times: int) -> None:
        """So many workers have come to serve since the start."""
        async with asyncio.timeout(120):
            while True:
                if len(self.serving()) >= times:
                    return
                assert self.process.poll() is None, self.log.read_text()
                await asyncio.sleep(0.05)

    def channel(self) -> grpc.aio.Channel:
        """One connection of its own: one worker, until that ends."""
        tls = self.config.tls
        authority = load_issued((tls / "ca.pem").read_bytes(), (tls / "ca.key").read_bytes())
        client = tls / "clients" / "demo-operator"
        credentials = grpc.ssl_channel_credentials(
            authority.certificate_pem, client.with_suffix(".key").read_bytes(), client.with_suffix(".pem").read_bytes()
        )
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.initial_reconnect_backoff_ms", 100)]
        return grpc.aio.secure_channel(f"127.0.0.1:{self.port}", credentials, options=options)


@contextmanager
def served_by_workers(config: Config, log: Path, workers: int) -> Iterator[Service]:
    """The processes, killed at the end if they have not ended."""
    service = Service(config, log, workers)
    try:
        yield service
    finally:
        if service.process.poll() is None:
            service.process.kill()
        service.process.wait()
