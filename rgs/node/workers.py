"""`rgs serve --workers N`: several worker processes behind one port, and their supervisor (ARCHITECTURE section 4).

A worker is a new process of `rgs serve`, never a fork of a process with gRPC in it. It measures its software itself,
has a number of its own in the names of its instances, and shares the port with the others (SO_REUSEPORT); the
supervisor keeps the port. It prints `serving` when it serves. Its standard input ends with the supervisor; then it
drains by itself.

A worker that ends by itself is started again, after a pause that grows. A worker whose exit status says that it cannot
start until somebody changes something is not started again. SIGTERM and SIGINT drain all workers; SIGHUP replaces them
one after the other, each when the one before serves. Only one `rgs serve` may use a home, and no other program may have
the port.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

from rgs.api.listening import not_listening
from rgs.core.errors import RgsError
from rgs.integrity.isolation import HOPELESS, isolated_command

LOCK: Final = "serve.lock"
SERVING: Final = b"serving\n"
"""What a worker prints when it serves."""
PAUSE_S: Final = 0.5
PAUSE_MAX_S: Final = 30.0
"""The pause before a worker is started again: PAUSE_S first, doubled each time, up to PAUSE_MAX_S."""
STEADY_S: Final = 60.0
"""After so long a run, the pause is PAUSE_S again."""
USAGE: Final = 2
"""Exit status of a worker whose settings are not understood; it is treated as `HOPELESS`."""
FIRST_TRIES: Final = 3
"""Failed starts in a row that end the supervisor before any worker has served."""
TRIES: Final = 8
"""Failed starts in a row that end it later: about a minute."""
KILL_AFTER_S: Final = 30.0
"""Time that a draining worker gets beyond its own limit."""


class ServingAlreadyError(RgsError, reason="SERVING_ALREADY"):
    """Another process serves this home."""


@contextlib.contextmanager
def serving_alone(home: Path) -> Iterator[int]:
    """Hold the home's lock. Yields its descriptor, which workers inherit; the last of them frees the lock.

    ServingAlreadyError if another `rgs serve`, or a worker that it left behind, holds it.
    """
    descriptor = os.open(home / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ServingAlreadyError(
                f"another `rgs serve` of {home} is running, or its last worker is draining"
            ) from None
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def port_kept(listen: str) -> Iterator[int]:
    """Yields the port of `listen`; 0 takes any free one. It is bound here, so that only workers can listen on it.

    UnavailableError, InvalidFieldError.
    """
    host, _, port = listen.rpartition(":")
    try:
        found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as gRPC does; a shared port fails here
            probe.bind(address)
            address = probe.getsockname()
        kept = socket.socket(family, kind, protocol)
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        with kept:
            kept.bind(address)
            yield kept.getsockname()[1]
    except OSError as error:
        raise not_listening(error, "cannot listen on", field="listen", listen=listen) from None


@dataclass(frozen=True, slots=True)
class WorkerPlan:
    """What to run: `command` returns a worker's command line; `inherited` are descriptors that it keeps open."""

    workers: int
    command: Callable[[int], Sequence[str]]
    drain_s: float
    inherited: tuple[int, ...] = ()
    beside: Callable[[], AbstractAsyncContextManager[object]] = contextlib.nullcontext
    """What this process does beside, as long as it keeps workers."""


class Worker:
    """One worker process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.pid = process.pid

    @classmethod
    @contextlib.asynccontextmanager
    async def begun(cls, command: Sequence[str], inherited: tuple[int, ...]) -> AsyncIterator[Worker]:
        """Start the process. It is killed at the end of the context."""
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            pass_fds=inherited,
            start_new_session=True,  # an interrupt at the keyboard is the supervisor's to pass on
        )
        try:
            yield cls(process)
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()
            if process.stdin is not None:
                process.stdin.close()

    async def serves(self) -> bool:
        """Wait until it serves, or ends without serving; returns whether it serves."""
        output = self._process.stdout
        said = b"" if output is None else await output.readline()
        return said == SERVING

    async def ended(self) -> int:
        """Wait for its end; returns its exit status. Its output is ignored."""
        output = self._process.stdout
        while output is not None and await output.read(4096):
            pass
        return await self._process.wait()

    def send(self, number: int) -> None:
        """Send a signal, if the process still runs."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)


@dataclass(eq=False, repr=False)
class Slot:
    """The place of the worker with one number, which is filled again and again."""

    number: int
    plan: WorkerPlan
    any_served: asyncio.Event
    others_serve: Callable[[Slot], bool]

    def __post_init__(self) -> None:
        self._stopping = asyncio.Event()
        self._worker: Worker | None = None
        self._end_requested = False
        """The worker was asked to end."""
        self._begun = asyncio.Event()
        self.serving = asyncio.Event()
        self.failures = 0
        """Failed starts in a row."""
        self._hopeless = asyncio.Event()
        """The last start failed, and so will the next one until somebody changes something."""
        self._requested = asyncio.Event()
        """A replacement or the end was requested."""

    async def keep(self) -> int:
        """Start the worker again and again until `stop`, then return 0; or return its status when it has failed too
        often. A hopeless start returns at once if no other worker serves. Otherwise it waits for the next `replace`:
        a bad setting must not end workers that run with the settings before.
        """
        pause_s = PAUSE_S
        while not self._stopping.is_set():
            self._end_requested = False
            began_s = asyncio.get_running_loop().time()
            status = await self._run()
            if self._end_requested:
                pause_s = PAUSE_S
                continue
            if self._hopeless.is_set():
                structlog.get_logger().error("worker_hopeless", worker=self.number, status=status)
                if not self.others_serve(self):
                    return status
                await self._requested.wait()
                self._requested.clear()
                continue
            if self.failures >= (TRIES if self.any_served.is_set() else FIRST_TRIES):
                return status if status > 0 else 1
            if asyncio.get_running_loop().time() - began_s >= STEADY_S:
                pause_s = PAUSE_S
            structlog.get_logger().error("worker_ended", worker=self.number, status=status, again_in_s=pause_s)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), pause_s)
            pause_s = min(2 * pause_s, PAUSE_MAX_S)
        return 0

    def stop(self) -> None:
        """Drain the worker, and start no other."""
        self._stopping.set()
        self._requested.set()
        self._end()

    async def replace(self) -> bool:
        """Drain the worker, even while it starts. Returns True when another serves in its place, False when the start
        of that one is hopeless.
        """
        self._requested.set()
        await self._begun.wait()
        self._requested.clear()
        self.serving.clear()
        self._hopeless.clear()
        self._end()
        ends = [asyncio.ensure_future(event.wait()) for event in (self.serving, self._hopeless)]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in ends:
                end.cancel()
        return self.serving.is_set()

    async def _run(self) -> int:
        async with Worker.begun(self.plan.command(self.number), self.plan.inherited) as worker:
            self._worker = worker
            self._begun.set()
            try:
                if self._stopping.is_set():  # requested while it was started
                    self._end()
                if await worker.serves():
                    self.failures = 0
                    self.any_served.set()
                    if not self._end_requested:  # else `replace` waits for the next worker
                        self.serving.set()
                    structlog.get_logger().info("worker_serves", worker=self.number, pid=worker.pid)
                    return await worker.ended()
                status = await worker.ended()
                self.failures += not self._end_requested
                if status in (HOPELESS, USAGE) and not self._end_requested:
                    self._hopeless.set()
                return status
            finally:
                self.serving.clear()
                self._begun.clear()
                self._worker = None

    def _end(self) -> None:
        if self._worker is not None and not self._end_requested:
            self._end_requested = True
            self._worker.send(signal.SIGTERM)
            kill_after_s = self.plan.drain_s + KILL_AFTER_S
            asyncio.get_running_loop().call_later(kill_after_s, self._worker.send, signal.SIGKILL)


class Supervisor:
    """Keeps all workers."""

    def __init__(self, plan: WorkerPlan) -> None:
        any_served = asyncio.Event()
        self.slots = [Slot(number, plan, any_served, self._others_serve) for number in range(plan.workers)]
        self._hung_up = asyncio.Event()
        self._stopping = asyncio.Event()

    async def run(self) -> int:
        """Keep the workers until `stop` and return 0; if one fails too often, drain all and return its status."""
        keeping = [asyncio.create_task(slot.keep()) for slot in self.slots]
        rolling = asyncio.create_task(self._roll())
        result = asyncio.create_task(self._report_all_serve())
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait([stopping, *keeping], return_when=asyncio.FIRST_COMPLETED)
            for slot in self.slots:
                slot.stop()
            return max(await asyncio.gather(*keeping))
        finally:
            for task in (rolling, result, stopping, *keeping):
                task.cancel()
            await asyncio.gather(rolling, result, stopping, *keeping, return_exceptions=True)

    def stop(self) -> None:
        """Drain all workers."""
        self._stopping.set()

    def roll(self) -> None:
        """Replace the workers one after the other. A request during a replacement starts another one after it."""
        self._hung_up.set()

    async def _roll(self) -> None:
        while True:
            await self._hung_up.wait()
            self._hung_up.clear()
            structlog.get_logger().info("rolling_restart")
            for slot in self.slots:
                if not await slot.replace():
                    structlog.get_logger().error("rolling_restart_given_up")
                    break
            else:
                structlog.get_logger().info("rolling_restart_done")

    def _others_serve(self, one: Slot) -> bool:
        return any(slot.serving.is_set() for slot in self.slots if slot is not one)

    async def _report_all_serve(self) -> None:
        for slot in self.slots:
            await slot.serving.wait()
        structlog.get_logger().info("all_workers_serve", workers=len(self.slots))


def refuse_reload() -> None:
    """SIGHUP where there is no supervisor: it must not end the process, and no other one would serve meanwhile."""
    why = "only a supervisor of several workers replaces them: restart the server"
    structlog.get_logger().warning("reload_refused", why=why)


def follow_signals(stop: Callable[[], None], reload: Callable[[], None] = refuse_reload) -> None:
    """What SIGTERM and SIGINT do, and what SIGHUP does."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    loop.add_signal_handler(signal.SIGHUP, reload)


def supervise(plan: WorkerPlan) -> int:
    """Run a supervisor that follows the signals of this process."""

    async def run() -> int:
        supervisor = Supervisor(plan)
        follow_signals(supervisor.stop, supervisor.roll)
        async with plan.beside():
            return await supervisor.run()

    return asyncio.run(run())


def worker_command(home: Path, options: Mapping[str, object], port: int) -> Callable[[int], list[str]]:
    """Makes the command line of each worker: the supervisor's, with the number and the port."""
    given: list[str] = []
    for name, value in options.items():
        flag = name.replace("_", "-")
        if isinstance(value, bool):
            given.append(f"--{flag}" if value else f"--no-{flag}")
        elif value is not None:
            given += [f"--{flag}", str(value)]

    def command(number: int) -> list[str]:
        name = ["--worker", str(number), "--worker-port", str(port)]
        return isolated_command("serve", "--home", str(home), *given, *name)

    return command
