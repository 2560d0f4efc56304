"""What a game day runs on: a server, a wallet, a regulator and a witness, each a process, and players who go on asking.

Built from the parts of `rgs demo`. `Scene.prove` ends every day: each statement that a player holds is in the export,
the export replays, wallet and regulator reconcile without a break, and the log is audited.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from rgs.core.statements import parse_envelope, parse_line, parse_statement
from rgs.core.tlog.checkpoints import parse_checkpoint
from rgs.core.tlog.note import parse_note
from rgs.devkit.client import Client, ClientIdentity, OutcomeUnknownError
from rgs.devkit.demo.checks import verify_export, verify_wallet
from rgs.devkit.demo.evidence import Evidence
from rgs.devkit.demo.log import audit_log, start_witness, verify_audit
from rgs.devkit.demo.player import DemoPlayer, PlayedSession, rounds_of
from rgs.devkit.demo.reconcile import reconcile, verify_clean, write_receipts
from rgs.devkit.processes.child import Child
from rgs.devkit.processes.server import ServerProcess
from rgs.devkit.processes.simulator import SimulatorProcess
from rgs.integrity.isolation import HOPELESS, isolated_command
from rgs.node.config import Config, load_config
from rgs.node.files import PUBLIC_MODE, write_new
from rgs.node.keyring import read_bundle, read_fingerprint
from rgs.node.log_folder import shards
from rgs.tlog.directory import LogDirectory
from rgs.v1.common_pb2 import SESSION_STATUS_CLOSED
from tests.gamedays.transcript import Transcript
from tests.support.ports import free_ports
from tests.support.process.served import PARTY, rgs

AT_HOME = "simulators/wallet.db"
PEERS = """\
[regulator]
target = "{regulator}"
deadline_ms = 1000
[operator.demo-operator.wallet]
target = "{wallet}"
deadline_ms = 1000
"""
PATIENCE_S = 150.0
"""For so long a request is repeated."""
PAUSE_S = 0.1
"""Between two attempts of a request."""
UNKNOWN_MAX = 1024
"""The setting `draws_in_flight_max`: so many draws one killed process may leave unknown."""
PACE_S = 0.05
"""Between two rounds of a player: the machine has to begin processes, too."""


class Patient(Client):
    """A client that repeats what was not answered, under the same request id, at each of its servers in turn."""

    def __init__(self, addresses: Sequence[str], identity: ClientIdentity) -> None:
        super().__init__(addresses[0], identity)
        self._others = [Client(address, identity) for address in addresses[1:]]
        self._at = 0
        self.longest_s = 0.0
        """The longest that a player waited for an answer."""
        self.unanswered = 0
        self.reasons: set[str] = set()

    def call(self, method: Any, request: Any) -> Any:
        began, at = time.monotonic(), self._at
        while True:
            try:
                answer = super().call_once(self._of(method, at), request)
            except OutcomeUnknownError as error:
                self.unanswered += 1
                self.reasons.add(error.reason or error.code.name)
                if time.monotonic() - began > PATIENCE_S:
                    raise
                if self._at == at:  # else another player has gone on to the next server already
                    self._at += 1
                at = self._at
                time.sleep(PAUSE_S)
            else:
                self.longest_s = max(self.longest_s, time.monotonic() - began)
                return answer

    def call_once(self, method: Any, request: Any) -> Any:
        return self.call(method, request)

    def close(self) -> None:
        super().close()
        for client in self._others:
            client.close()

    def _of(self, method: Any, at: int) -> Any:
        """The same method at the server whose turn it is."""
        turn = at % (len(self._others) + 1)
        if not turn:
            return method
        service, name = _path(method).strip("/").split("/")
        stub = {"PlayService": "play", "SessionService": "sessions"}[service.rpartition(".")[2]]
        return getattr(getattr(self._others[turn - 1], stub), name)


def _path(method: Any) -> str:
    """The path of a method of a stub."""
    found = method._method
    return found.decode() if isinstance(found, bytes) else str(found)


class Scene:
    """`begin` makes and starts it all; afterwards each part may be killed and started again."""

    def __init__(self, folder: Path, written: Transcript, running: ExitStack) -> None:
        self.evidence = Evidence(folder)
        self.written = written
        self.players: list[DemoPlayer] = []
        self.clients: list[Patient] = []
        self._running = running
        self.witness: Child
        self._addresses: dict[str, str] = {}
        self.killed = 0
        """Servers that were killed."""

    @property
    def home(self) -> Path:
        return self.evidence.home

    @property
    def config(self) -> Config:
        return load_config(self.home)

    @property
    def root(self) -> str:
        return read_fingerprint(self.config.keys)

    def begin(self, *init: str, settings: str = "", prepare: Callable[[], None] = lambda: None) -> None:
        """Make the home, `prepare` what it needs besides, and start peers, witness and server."""
        self.make(*init, settings=settings)
        prepare()
        self.start_outside("127.0.0.1")
        self.witness = start_witness(self.evidence, self.config, self._running)
        self.witness.await_listening()
        self.start_server()
        self.written.did("began: wallet, regulator, witness and server, a process each")

    def make(self, *init: str, settings: str = "") -> None:
        """Make the home."""
        self.rgs("init", "--home", self.home, *init)
        with (self.home / "rgs.toml").open("a") as file:
            file.write(settings)

    def start_outside(self, host: str) -> None:
        """Start wallet and regulator at this address of the machine, and name them in the home."""
        kinds = ("wallet", "regulator")
        for kind, port in zip(kinds, free_ports(2), strict=True):
            write_new(self.plan(kind), b"", PUBLIC_MODE)
            self._addresses[kind] = f"{host}:{port}"
        self.start_wallet()
        self.start_regulator()
        write_new(self.home / "peers.toml", PEERS.format(**self._addresses).encode(), PUBLIC_MODE)

    def rgs(self, *arguments: str | Path, status: int = 0) -> str:
        """Run a command, and expect this exit status; what it wrote."""
        done = rgs(*map(str, arguments))
        assert done.returncode == status, (arguments, done.returncode, done.stdout, done.stderr)
        return done.stdout + done.stderr

    # --- processes ----------------------------------------------------------------------------------------------------

    def plan(self, kind: str) -> Path:
        return self.home / f"{kind}-faults.toml"

    def start_wallet(self) -> None:
        self.wallet = self._start_peer("wallet", self.evidence.wallet, self.evidence.wallet_said)

    def start_regulator(self) -> None:
        self.regulator = self._start_peer("regulator", self.evidence.regulator, self.evidence.regulator_said)

    def _start_peer(self, kind: str, export: Path, said: Path) -> SimulatorProcess:
        """At the address that it had, over the book that it had."""
        said.unlink(missing_ok=True)
        peer = SimulatorProcess(kind, self.home, self.plan(kind), export, said, self._addresses[kind])
        self._running.enter_context(peer)
        peer.await_listening()
        return peer

    def start_server(self) -> None:
        """Start the server, at the address that it had."""
        self.server = ServerProcess(self.home, self.evidence.server, PARTY, self._addresses.get("server", ""))
        self._running.enter_context(self.server)
        self.server.await_serving()
        self._addresses["server"] = self.server.address

    def kill_server(self) -> None:
        """SIGKILL, as a power failure."""
        self.server.kill()
        self.killed += 1

    def start_server_unready(self) -> None:
        """Start the server, which is not expected to take new rounds; it listens."""
        self.server = ServerProcess(self.home, self.evidence.server, PARTY, self._addresses["server"])
        self._running.enter_context(self.server)
        lines = len(self.lines("listening"))
        until(lambda: len(self.lines("listening")) > lines, what="a server that listens")

    def refused_start(self) -> str:
        """The last line of a server that can never start like this: exit status 3."""
        command = isolated_command("serve", "--home", str(self.home), "--listen", self._addresses["server"])
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == HOPELESS, done.stderr
        return done.stderr.strip().splitlines()[-1]

    # --- players ------------------------------------------------------------------------------------------------------

    def client(self, *addresses: str, party: str = PARTY) -> Patient:
        """A client of the server, or of several."""
        identity = ClientIdentity.of_party(self.config, party)
        client = self._running.enter_context(Patient(addresses or (self.server.address,), identity))
        self.clients.append(client)
        return client

    @property
    def longest_s(self) -> float:
        """The longest that a player waited for an answer."""
        return max(client.longest_s for client in self.clients)

    def seat(self, count: int, client: Patient) -> list[DemoPlayer]:
        """So many more players, who have not begun."""
        games = ("uth-solo", "casino-holdem")
        first = len(self.players)
        seated = [
            DemoPlayer(client, games[number % 2], f"player-{first + number}", by_stream=False)
            for number in range(count)
        ]
        self.players += seated
        return seated

    def play(self, rounds: int, players: Sequence[DemoPlayer] = ()) -> None:
        """So many more rounds of each player, at once."""

        def more(player: DemoPlayer) -> None:
            player.play_to(player.played + rounds, lambda: None)

        Doing(more, players or self.players).join()

    @contextmanager
    def playing(self, players: Sequence[DemoPlayer] = ()) -> Iterator[None]:
        """All play until the end of the block; then each ends its round."""
        ended = threading.Event()

        def on(player: DemoPlayer) -> None:
            while not ended.is_set():
                player.play_to(player.played + 1, lambda: None)
                time.sleep(PACE_S)

        under_way = Doing(on, players or self.players)
        try:
            yield
        finally:
            ended.set()
        under_way.join()

    def await_rounds(self, more: int, limit_s: float = 90) -> None:
        """So many rounds more have been played, by whomever."""
        due = self.rounds + more
        until(lambda: self.rounds >= due, limit_s, f"{more} more rounds")

    @property
    def rounds(self) -> int:
        """Rounds that have been played."""
        return sum(player.played for player in self.players)

    @property
    def sessions(self) -> list[PlayedSession]:
        return [session for player in self.players for session in player.sessions]

    # --- what tells of it ---------------------------------------------------------------------------------------------

    def lines(self, event: str, home: Path | None = None) -> list[dict[str, Any]]:
        """The lines of the technical log with this event. An unfinished last one is not read."""
        path = load_config(home or self.home).log
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        named = f'"event":"{event}"'
        rows = [json.loads(line) for line in lines if named in line and line.endswith("\n")]
        return [row for row in rows if row["event"] == event]

    def await_line(self, event: str, limit_s: float = 60, home: Path | None = None, **facts: object) -> dict[str, Any]:
        """The newest line with this event and these facts, once there is one."""
        found: list[dict[str, Any]] = []

        def seen() -> bool:
            found[:] = [row for row in self.lines(event, home) if facts.items() <= row.items()]
            return bool(found)

        until(seen, limit_s, f"line {event} {facts}")
        return found[-1]

    def guards(self) -> list[str]:
        """The closed guards, a line each, as an admin is told."""
        said = self.rgs("admin", "guards", "--home", self.home, "--server", self.server.address)
        return [line for line in said.splitlines() if "closed" in line]

    # --- the log ------------------------------------------------------------------------------------------------------

    def await_cosigned(self) -> bytes:
        """The log's checkpoint, once it covers all that has been signed so far and the witness has cosigned it."""
        time.sleep(4)  # a statement is in the log within about a second
        shard = LogDirectory(shards(self.config)[-1])
        due = size_of(shard.checkpoint())
        until(lambda: bool(shard.cosigned()) and size_of(shard.cosigned()) >= due, what="a cosignature")
        return shard.cosigned()

    def await_lost(self, instance: str) -> str:
        """The name of the instance, once another process has declared it lost."""
        scratch = self.evidence.folder / "lost.jsonl"

        def is_lost() -> bool:
            scratch.unlink(missing_ok=True)
            self.rgs("export", "--home", self.home, "--out", scratch, "--no-private")
            envelopes = (parse_line(line).envelope for line in scratch.read_bytes().splitlines())
            bodies = (parse_statement(parse_envelope(envelope))[1] for envelope in envelopes)
            return any(body["kind"] == "instance_lost" and body["lost"]["instance"] == instance for body in bodies)

        until(is_lost, what=f"instance_lost of {instance}")
        return instance

    def audit(self, status: int = 0, state: str = "auditor.state", *options: str | Path) -> str:
        """What `certify log` says to an auditor who runs the witness, and whose runs remember the last one."""
        evidence, policy = self.evidence, self.evidence.folder / "auditor.policy"
        keys = evidence.folder / "auditor.keys"
        keys.write_bytes(read_bundle(self.config.keys))
        policy.write_text(re.sub("# self-witness.*\n", "", evidence.policy.read_text()))
        files = ("--policy", policy, "--state", evidence.folder / state, "--keys", keys)
        log = shards(self.config)[-1]
        command = ["-m", "certification", "log", log, *files, "--root", self.root, *options]
        done = subprocess.run([sys.executable, *map(str, command)], capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout.strip() or done.stderr.strip()

    # --- the end ------------------------------------------------------------------------------------------------------

    def leave(self) -> None:
        """Every player who has not done so ends and closes."""
        Doing(DemoPlayer.leave, [player for player in self.players if not is_closed(player)]).join()

    def prove(self) -> None:
        """Everybody leaves, all is stopped, and all is proved from the files that are left."""
        self.leave()
        self.stop()
        self.prove_files()

    def stop(self) -> None:
        """Stop the server in good order, then all that it calls."""
        for process in (self.server, self.witness, self.wallet, self.regulator):
            process.stop()

    def prove_files(self) -> None:
        """What is proved once nothing runs any more."""
        self.prove_books(read_bundle(self.config.keys))
        self.prove_log()

    def prove_books(self, keys: bytes) -> None:
        """By the export, under this key bundle, and the books of wallet and regulator."""
        evidence, sessions, after = self.evidence, self.sessions, self.written.after
        evidence.keys.unlink(missing_ok=True)
        write_new(evidence.keys, keys, PUBLIC_MODE)
        self.rgs("export", "--home", self.home, "--out", evidence.statements)
        compared = verify_export(evidence.statements, sessions)
        after(f"{rounds_of(sessions)} rounds were acknowledged; all {compared} statements of players are in the export")
        moved_minor = verify_wallet(self.home / AT_HOME, sessions)
        after(f"the wallet moved {moved_minor / 100:.2f} EUR, what the sessions come to")
        write_receipts(evidence.receipts, sessions)
        found = reconcile(evidence, self.root)
        verify_clean(found, sessions)
        verified = found.document["verification"]["rounds_verified"]
        after(f"replayed: {verified} rounds verified, 0 failed; reconciled with wallet and regulator: clean")

    def prove_log(self) -> None:
        """By the transparency log."""
        document = audit_log(self.evidence, self.config, self.root)
        summary, size = document["summary"], document["checkpoint"]["size"]
        unknown = summary["draws_exposed"]
        verify_audit({**document, "summary": {**summary, "draws_exposed": 0}}, self.sessions)
        assert unknown <= UNKNOWN_MAX * self.killed
        window = (
            f"; at most {unknown} draws of killed processes unknown, within their signed windows" if unknown else ""
        )
        self.written.after(f"the log of {size} entries is audited: PASSED{window}")


def is_closed(player: DemoPlayer) -> bool:
    """Whether the player has closed every session."""
    return bool(player.sessions) and player.sessions[-1].view.status == SESSION_STATUS_CLOSED


def size_of(note: bytes) -> int:
    """How many entries a checkpoint covers."""
    return parse_checkpoint(parse_note(note).text).size


def until(holds: Callable[[], object], limit_s: float = 60, what: str = "it") -> None:
    """Wait until it holds."""
    last = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < last, f"{what} did not come within {limit_s} s"
        time.sleep(0.05)


class Doing:
    """What several players do at once, each in a thread, since this was made."""

    def __init__(self, do: Callable[[DemoPlayer], object], players: Sequence[DemoPlayer]) -> None:
        self._failed: list[BaseException] = []
        self._threads = [threading.Thread(target=self._one, args=(do, player), daemon=True) for player in players]
        for thread in self._threads:
            thread.start()

    def _one(self, do: Callable[[DemoPlayer], object], player: DemoPlayer) -> None:
        try:
            do(player)
        except BaseException as error:  # noqa: BLE001 - raised again by `join`
            self._failed.append(error)

    @property
    def under_way(self) -> int:
        """How many have not come to an end."""
        return sum(thread.is_alive() for thread in self._threads)

    def join(self) -> None:
        """Wait for all. The first failure is raised then."""
        for thread in self._threads:
            thread.join()
        if self._failed:
            raise self._failed[0]


@contextmanager
def open_scene(folder: Path, written: Transcript) -> Iterator[Scene]:
    """A scene whose processes end with the block."""
    with ExitStack() as running:
        yield Scene(folder, written, running)
