"""Game server, wallet and platform as processes, with the state of a folder; each can be killed and started again."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from examples.operator import start

STOP_S = 30


class Whole:
    """All processes. `platform_options` go to the platform, `start_options` to start.py."""

    def __init__(self, folder: Path, *platform_options: str, start_options: tuple[str, ...] = ()) -> None:
        self.folder = folder
        self.http = start.free_address()
        self.origin = f"http://localhost:{self.http.rpartition(':')[2]}"
        self._parts: list[start.Part] = []
        options = start.options_of(
            [
                "--home",
                str(folder),
                "--http",
                self.http,
                *start_options,
                "--",
                "--rate-factor",
                "1000",
                *platform_options,
            ]
        )
        try:
            start.start(options, folder, self._parts)
        except BaseException:
            self.stop()
            raise
        self.platform, self.server = self._parts
        self._command = self.platform.command

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def stop(self) -> None:
        """End all."""
        for part in reversed(self._parts):
            part.stop()

    def kill_platform(self) -> None:
        """SIGKILL, as a power failure."""
        self.platform.process.kill()
        self.platform.process.wait(STOP_S)

    def restart_platform(self, kill_after: int = 0) -> None:
        """Start the platform again, with the same files and addresses; to be killed after so many writes."""
        if self.platform.process.poll() is None:
            self.platform.process.send_signal(signal.SIGTERM)
            self.platform.process.wait(STOP_S)
        command = list(self._command)
        if kill_after:
            command[1:3] = [str(Path(__file__).with_name("killing_platform.py")), str(kill_after)]
        self.platform = start.Part("the platform", command, self.platform.output)
        self._parts[0] = self.platform
        try:
            start.await_line(self.platform, "platform on ")
        except start.StartError:  # its first writes are in the background: one may kill it before it says so
            if not kill_after or self.platform.process.wait(STOP_S) != -signal.SIGKILL:
                raise

    @property
    def server_home(self) -> Path:
        """The home of the game server."""
        return self.folder / "rgs"

    def add_table(self, name: str, **timers_ms: int) -> None:
        """Set up a table of the kind of uth-online under another name, with other timers."""
        config = (start.TABLES / "uth-online.toml").read_text("utf-8")
        config = re.sub(r"^id = .*", f'id = "{name}"', config, flags=re.MULTILINE)
        config = re.sub(r"^(it|de|en) = .*", rf'\1 = "{name}"', config, flags=re.MULTILINE)
        for timer, value in timers_ms.items():
            config, found = re.subn(rf"^{timer} = .*", f"{timer} = {value}", config, flags=re.MULTILINE)
            assert found == 1, timer
        start.set_up_table(self.server_home, self.server_address, config)

    @property
    def server_address(self) -> str:
        """Where the game server listens."""
        return self._command[self._command.index("--rgs") + 1]

    def kill_server(self) -> None:
        """SIGKILL of the game server, as a power failure."""
        self.server.process.kill()
        self.server.process.wait(STOP_S)

    def restart_server(self) -> None:
        """Start the game server again, with the same store and address."""
        self.server = start.Part("the game server", self.server.command, self.server.output)
        self._parts[1] = self.server
        start.await_port(self.server, self.server_address)

    def wallet_address(self) -> str:
        """Where the wallet listens."""
        return self._command[self._command.index("--wallet") + 1]

    def rgs(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the game server."""
        command = [sys.executable, "-m", "rgs", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=110, cwd=start.ROOT)


def bound(idle_s: float) -> float:
    """Seconds that a machine with nothing else to do keeps to; ten times as many where more waits than it has cores."""
    return idle_s if os.getloadavg()[0] <= (os.cpu_count() or 1) else 10 * idle_s


async def until(is_true: Callable[[], Awaitable[bool]], seconds: float = 60.0) -> None:
    """Wait until a function says so. TimeoutError if it does not in time."""
    async with asyncio.timeout(seconds):
        while not await is_true():  # noqa: ASYNC110 - another process moves it
            await asyncio.sleep(0.1)


def wait_until(is_true: object, seconds: float = 10.0) -> None:
    """Wait until a function says so. AssertionError if it does not in time."""
    assert callable(is_true)
    last = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < last, f"not within {seconds} s"
        time.sleep(0.02)
