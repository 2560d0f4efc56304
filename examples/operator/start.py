"""`make web`: game server, test regulator, wallet and platform on this machine, for development. One Ctrl-C ends all.

    .venv/bin/python examples/operator/start.py [--home var/web] [--http 127.0.0.1:8080]

It uses two environments: `.venv` for the game server, `.venv-web` for the platform. All state lies in one home folder.
The regulator is the embedded test regulator, the money is play money, and the certificates are those of `rgs init`.
"""

from __future__ import annotations

import argparse
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Final

import grpc

from rgs.v1 import table_pb2, table_pb2_grpc

ROOT: Final = Path(__file__).resolve().parents[2]
HERE: Final = Path(__file__).resolve().parent
SERVER: Final = (str(ROOT / ".venv/bin/python"), "-m", "rgs")
PLATFORM: Final = (str(ROOT / ".venv-web/bin/python"), "-m", "operator_platform")
TABLES: Final = ROOT / "rgs/core/table_data"
START_S: Final = 180.0
STOP_S: Final = 30.0
PAUSE_S: Final = 0.1
OPERATOR: Final = "demo-operator"
SEAMLESS: Final = "seamless-operator"
CURRENCIES: Final = ("EUR", "CHF", "GBP", "JPY")
"""Of the jurisdictions `demo` and `demo-seamless`."""

PEERS: Final = """# Written by examples/operator/start.py: the wallet of the reference platform.
[operator.{operator}]
funding = "{funding}"

[operator.{operator}.wallet]
target = "{wallet}"
ca = "tls/ca.pem"
certificate = "tls/peers.pem"
key = "tls/peers.key"
"""


class StartError(Exception):
    """Something did not start."""


class Part:
    """A process of the whole. Its output goes to a file."""

    def __init__(self, name: str, command: list[str], output: Path) -> None:
        self.name = name
        self.output = output
        self.command = command
        self._before = output.stat().st_size if output.exists() else 0
        with output.open("ab") as file:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                cwd=ROOT,
                env=environment(),
                start_new_session=True,  # Ctrl-C reaches this process only, which ends the others in their order
            )

    def verify_running(self) -> None:
        """StartError if the process has ended."""
        if (status := self.process.poll()) is not None:
            raise StartError(f"{self.name} ended with status {status}; {self.output} says why")

    def says(self, beginning: str) -> bool:
        """Whether it has written a line that begins so."""
        with self.output.open("rb") as file:
            file.seek(self._before)
            return any(line.startswith(beginning.encode()) for line in file.read().splitlines())

    def stop(self) -> None:
        """End it in good order, or kill it after a while."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def environment() -> dict[str, str]:
    """What the processes get: the platform finds its own package and the generated code."""
    return {**os.environ, "PYTHONPATH": f"{HERE}:{ROOT}"}


def options_of(arguments: list[str]) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path, default=ROOT / "var/web", help="folder of all state (%(default)s)")
    parser.add_argument(
        "--http", default="127.0.0.1:8080", metavar="HOST:PORT", help="the lobby's address (%(default)s)"
    )
    parser.add_argument("--rgs", default="", metavar="HOST:PORT", help="the game server's address (any free port)")
    parser.add_argument("--wallet", default="", metavar="HOST:PORT", help="the wallet's address (any free port)")
    parser.add_argument(
        "--wallet-front", default="", metavar="HOST:PORT", help="where the game server calls the wallet, if elsewhere"
    )
    parser.add_argument(
        "--seamless", action="store_true", help="each bet is debited from the wallet; without tables (docs/money.md)"
    )
    parser.add_argument("platform", nargs="*", help="after `--`: further options of the platform")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    """Start all, wait for Ctrl-C, end all; the exit status."""
    options = options_of(arguments)
    home: Path = options.home.resolve()
    parts: list[Part] = []
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        start(options, home, parts)
        while True:
            time.sleep(1)
            for part in parts:
                part.verify_running()
    except KeyboardInterrupt:
        print("\nending all", file=sys.stderr)
        return 0
    except StartError as error:
        print(f"web: {error}", file=sys.stderr)
        return 1
    finally:
        for part in reversed(parts):
            part.stop()


def start(options: argparse.Namespace, home: Path, parts: list[Part]) -> None:
    """Start the parts one after the other, and say where the lobby is. StartError."""
    server_home, log = home / "rgs", home / "log"
    log.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not (server_home / "rgs.toml").is_file():
        run([*SERVER, "init", "--home", str(server_home)])
    server, wallet = options.rgs or free_address(), options.wallet or free_address()
    operator, funding = (SEAMLESS, "seamless") if options.seamless else (OPERATOR, "participation")
    peers = PEERS.format(operator=operator, funding=funding, wallet=options.wallet_front or wallet)
    (server_home / "peers.toml").write_text(peers, encoding="utf-8")
    tls, clients = server_home / "tls", server_home / "tls/clients"
    root = (server_home / "keys/root.fingerprint").read_text(encoding="ascii").strip()
    files = {
        "--ca": tls / "ca.pem",
        "--certificate": clients / f"{operator}.pem",
        "--key": clients / f"{operator}.key",
        "--wallet-certificate": tls / "server.pem",
        "--wallet-key": tls / "server.key",
        "--wallet-ca": tls / "ca.pem",
    }
    command = [*PLATFORM, "--home", str(home / "platform"), "--rgs", server, "--wallet", wallet, "--http", options.http]
    command += [text for name, path in files.items() for text in (name, str(path))]
    if options.seamless and not files["--certificate"].is_file():
        added = ("--role", "operator", "--party", SEAMLESS, "--jurisdiction", "demo-seamless", "--issue")
        run([*SERVER, "party", "add", *added, "--home", str(server_home)])
    command += [text for currency in CURRENCIES for text in ("--currency", currency)]
    command += ["--operator", operator, "--root-fingerprint", root, *options.platform]
    password = staff_password(home)
    parts.append(Part("the platform", command, log / "platform.log"))
    await_line(parts[-1], "platform on ")
    serve = [*SERVER, "serve", "--home", str(server_home), "--listen", server]
    parts.append(Part("the game server", serve, log / "rgs.log"))
    await_port(parts[-1], server)
    if not options.seamless:
        set_up_tables(server_home, server)
    print(f"Lobby:        http://localhost:{options.http.rpartition(':')[2]}/")
    print(f"Back office:  http://localhost:{options.http.rpartition(':')[2]}/office/   staff, {password}")
    print(f"Game server:  {server}, wallet: {wallet}, all state and logs: {home}")
    print("For development: play money, a test regulator, certificates of this machine. Ctrl-C ends all.", flush=True)


def staff_password(home: Path) -> str:
    """Make the staff account at the first start. Returns what to say of its password."""
    file = home / "staff-password"
    if not file.is_file():
        password = secrets.token_urlsafe(12)
        run([*PLATFORM, "--home", str(home / "platform"), "--add-staff", "staff", "--role", "manager"], f"{password}\n")
        file.touch(mode=0o600)
        file.write_text(f"{password}\n", encoding="ascii")
    return f"password in {file}"


def set_up_tables(home: Path, server: str) -> None:
    """Set up the tables that the project ships, as an admin, at the first start. StartError."""
    mark = home / "tables-are-set-up"
    if mark.exists():
        return
    for file in sorted(TABLES.glob("*.toml")):
        set_up_table(home, server, file.read_text(encoding="utf-8"))
    mark.touch()


def set_up_table(home: Path, server: str, config: str) -> None:
    """Set up one table, from the text of its TOML file, as an admin. StartError."""
    clients = home / "tls/clients"
    credentials = grpc.ssl_channel_credentials(
        root_certificates=(home / "tls/ca.pem").read_bytes(),
        private_key=(clients / "demo-admin.key").read_bytes(),
        certificate_chain=(clients / "demo-admin.pem").read_bytes(),
    )
    order = table_pb2.ConfigureTableRequest(request_id=str(uuid.uuid4()), config=config, reason="DEVELOPMENT")
    with grpc.secure_channel(server, credentials) as channel:
        try:
            table_pb2_grpc.TableAdminServiceStub(channel).ConfigureTable(order, timeout=START_S, wait_for_ready=True)
        except grpc.RpcError as error:
            name = config.partition('id = "')[2].partition('"')[0]
            raise StartError(f"the table {name} could not be set up: {error}") from None


def run(command: list[str], text: str = "") -> None:
    """Run a command to its end. StartError with its last line."""
    found = subprocess.run(
        command, input=text, capture_output=True, text=True, cwd=ROOT, env=environment(), check=False
    )
    if found.returncode:
        lines = (found.stderr or found.stdout).strip().splitlines()
        raise StartError(
            f"`{' '.join(command[1:5])}` ended with status {found.returncode}: {lines[-1] if lines else ''}"
        )


def await_line(part: Part, beginning: str) -> None:
    """Wait until the process writes this. StartError."""
    last = time.monotonic() + START_S
    while not part.says(beginning):
        part.verify_running()
        if time.monotonic() > last:
            raise StartError(f"{part.name} did not start within {START_S:.0f} s; see {part.output}")
        time.sleep(PAUSE_S)


def await_port(part: Part, address: str) -> None:
    """Wait until the process listens. StartError."""
    host, _, port = address.rpartition(":")
    last = time.monotonic() + START_S
    while time.monotonic() < last:
        part.verify_running()
        with socket.socket() as probe:
            probe.settimeout(PAUSE_S)
            if probe.connect_ex((host, int(port))) == 0:
                return
        time.sleep(PAUSE_S)
    raise StartError(f"{part.name} did not listen on {address} within {START_S:.0f} s; see {part.output}")


def free_address() -> str:
    """An address with a port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
