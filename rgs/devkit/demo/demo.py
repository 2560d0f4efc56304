"""Play hundreds of rounds, and an evening at two tables, on a new server between two misbehaving peers; then prove all
of them.

Each part is a process of its own: `rgs init`, `rgs simulate`, `rgs serve`, `rgs export`; then, over files alone,
`certify replay`, `rgs reconcile` and `certify log`. All files stay in the evidence folder
(`rgs.devkit.demo.evidence`). A part of the proof that fails ends the demo with an error.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rgs.core.amounts import format_money
from rgs.devkit.client import CallError, Client, ClientIdentity
from rgs.devkit.demo.checks import verify_export, verify_history, verify_keys, verify_owed, verify_wallet
from rgs.devkit.demo.evening import Admins
from rgs.devkit.demo.evidence import Evidence
from rgs.devkit.demo.log import audit_log, start_witness, verify_audit
from rgs.devkit.demo.peers import SILENT_REGULATOR, SILENT_WALLET, Peers, start_peers
from rgs.devkit.demo.player import CURRENCY, DemoError, DemoPlayer, PlayedSession, verify_figures
from rgs.devkit.demo.reconcile import (
    Found,
    copy_books,
    open_breaks,
    reconcile,
    run_command,
    verify_clean,
    write_receipts,
)
from rgs.devkit.demo.report import Proof, Steps, report
from rgs.devkit.demo.tables import ADMIN, SECOND_ADMIN, Tables, verify_shared
from rgs.devkit.processes.server import ServerProcess
from rgs.node.config import load_config
from rgs.node.files import PUBLIC_MODE, write_new
from rgs.node.keyring import read_bundle, read_fingerprint

FOLDER: Final = Path("var/demo")
GAMES: Final = ("uth-solo", "casino-holdem")
PARTY: Final = "demo-operator"
ROUNDS: Final = 400
SESSIONS: Final = 16
SESSIONS_MIN: Final = 3
"""While the peers are silent one player leaves, one buys, and one goes on playing."""
SESSIONS_MAX: Final = 64
AT_HOME: Final = "simulators/wallet.db"
"""The simulated wallet's book, below the home."""


@dataclass(frozen=True, slots=True)
class Part:
    """One player, and its number of rounds in all. While the peers are silent it leaves, buys or goes on playing."""

    player: DemoPlayer
    rounds: int
    leaves: bool
    buys: bool

    @property
    def before(self) -> int:
        """Rounds before the silence."""
        return self.rounds if self.leaves else self.rounds - max(1, self.rounds // 4)

    def play_before(self, reported: Callable[[], None]) -> None:
        """Play these rounds, and buy enough for a further round unless the player leaves."""
        self.player.play_to(self.before, reported)
        if not self.leaves:
            self.player.make_ready()


def play_and_prove(evidence: Evidence, steps: Steps, rounds: int, sessions: int, players: int) -> None:
    """Run the whole demo, one line for each step. DemoError or CallError if a part fails."""
    with steps.step("development CA, certificates, keys and store"):
        run_command("rgs", "init", "--home", str(evidence.home))
        second = ("--role", "admin", "--party", SECOND_ADMIN, "--issue")  # a void takes two
        run_command("rgs", "party", "add", *second, "--home", str(evidence.home))
        config = load_config(evidence.home)
        root = read_fingerprint(config.keys)
        write_new(evidence.keys, read_bundle(config.keys), PUBLIC_MODE)
        write_new(evidence.root, f"{root}\n".encode("ascii"), PUBLIC_MODE)
    with ExitStack() as running:
        with steps.step("simulated peers, server") as step:
            peers = start_peers(evidence, PARTY, running)
            witness = start_witness(evidence, config, running)
            server = running.enter_context(ServerProcess(evidence.home, evidence.server, PARTY))
            step.what = f"simulated peers, witness, server at {server.address}"
            server.await_serving()
            for peer in peers:
                peer.await_listening()
            witness.await_listening()

        def verify_running() -> None:
            for process in (server, *peers):
                process.verify_running()

        client, *admins = (
            running.enter_context(Client(server.address, ClientIdentity.of_party(config, party)))
            for party in (PARTY, ADMIN, SECOND_ADMIN)
        )
        parts = _parts(client, rounds, sessions, verify_running)
        try:
            with steps.step("two tables, set up by an admin"):
                tables = running.enter_context(Tables(client, Admins(*admins), players, verify_running))
            midway, listed = _live(client, evidence, steps, peers, parts, tables, root)
        except CallError:
            verify_running()  # its error says more
            raise
        with steps.step("all stopped by SIGTERM, last statement signed and witnessed"):
            for process in (server, witness, *peers):
                process.stop()
    played = _sessions(parts, tables)
    with steps.step("export of the statements"):
        run_command("rgs", "export", "--home", str(evidence.home), "--out", str(evidence.statements))
    write_receipts(evidence.receipts, played)
    with ThreadPoolExecutor(3) as beside:  # over files alone: all three at once
        reconciled = beside.submit(reconcile, evidence, root)
        audited = beside.submit(audit_log, evidence, config, root)
        replayed = beside.submit(replay_offline, evidence, root)
        with steps.step("export compared with what was received") as step:
            compared = verify_export(evidence.statements, played) + verify_shared(evidence.statements, tables.shared)
            step.what = f"{compared} statements received are in the export, byte for byte"
        with steps.step("wallet compared with the sessions"):
            moved_minor = verify_wallet(config.home / AT_HOME, played)
        with steps.step("replay offline, from the exported files alone"):
            replay = replayed.result()
            verify_replay(replay, played)
        with steps.step("reconciliation, from the files alone: clean"):
            end = reconciled.result()
            verify_clean(end, played)
        with steps.step("audit of the transparency log") as step:
            audit = audited.result()
            verify_audit(audit, played)
            step.what = f"audit of the transparency log, {audit['checkpoint']['size']} entries"
    faults = sum((peer.faults() for peer in peers), Counter[str]())
    repeats = sum(player.repeats for player in (*(part.player for part in parts), *tables.players))
    proof = Proof(compared, listed, moved_minor, replay, midway, end, audit, faults, repeats)
    report(steps.console, evidence, played, tables, proof, root)


def _live(
    client: Client, evidence: Evidence, steps: Steps, peers: Peers, parts: Sequence[Part], tables: Tables, root: str
) -> tuple[Found, int]:
    """The steps while the server runs. Returns the reconciliation midway, and the number of rounds in the histories."""
    count = len(tables.players)
    with steps.step(f"{count} players open, buy and sit down at them, peers at fault", count) as step:
        tables.sit_down(step.advance)
    tables.begin()  # it goes on beside the next steps
    before = sum(part.before for part in parts)
    with steps.step(f"{before} rounds in {len(parts)} sessions at once, peers at fault", before) as step:
        _together(parts, Part.play_before, step.advance)
    leaving, buying = [part for part in parts if part.leaves], [part for part in parts if part.buys]
    with steps.step("wallet silent") as step:
        peers.wallet.misbehave(SILENT_WALLET)
        _together(leaving, lambda part, _: part.player.try_to_leave())
        _together(buying, lambda part, _: part.player.try_to_buy())
        owed_minor = verify_owed(client, [part.player.sessions[-1] for part in leaving])
        owed = format_money(owed_minor, CURRENCY)
        step.what = f"wallet silent: {owed} owed to {len(leaving)}, {len(buying)} debits without an answer"
    with steps.step("regulator silent") as step:
        peers.regulator.misbehave(SILENT_REGULATOR)
        playing = [part for part in parts if not part.leaves and not part.buys]
        _together(playing, lambda part, reported: part.player.play_on(part.rounds, reported))
        more = sum(part.player.played for part in parts) - before
        step.what = f"regulator silent: {more} rounds played on"
    with steps.step("the evening at the tables ends") as step:
        tables.finish()
        happened = tables.counts()
        step.what = f"at the tables meanwhile: {happened['rounds']} rounds with {happened['seats']} seats"
    with steps.step("books of all sides copied as they are now"):
        so_far = copy_books(evidence, peers, _sessions(parts, tables))
    with ThreadPoolExecutor(1) as beside:
        reconciled = beside.submit(open_breaks, so_far, root)  # over files alone: play goes on beside it
        left = sum(part.rounds - part.player.played for part in parts)
        with steps.step(f"faults off: asked again, {left} rounds more, all closed", left) as step:
            for peer in peers:
                peer.behave()
            _together(parts, _finish, step.advance)
            tables.leave()
            verify_owed(client, [])
        with steps.step("keys and histories compared with what is known"):
            verify_keys(client, evidence.keys)
            listed = verify_history(client, _sessions(parts, tables))
        with steps.step("reconciliation of the copied books") as step:
            midway = reconciled.result()
            step.what = f"reconciliation of the copied books: {midway.open_breaks} breaks open"
    return midway, listed


def _sessions(parts: Sequence[Part], tables: Tables) -> list[PlayedSession]:
    """All sessions so far; those at the tables come last."""
    return [*(session for part in parts for session in part.player.sessions), *tables.sessions]


def _finish(part: Part, reported: Callable[[], None]) -> None:
    if not part.leaves:
        part.player.play_to(part.rounds, reported)
    part.player.leave()


def _together(
    parts: Sequence[Part], do: Callable[[Part, Callable[[], None]], None], reported: Callable[[], None] = lambda: None
) -> None:
    """Run all players at once; the first failure stops the others."""
    failed = threading.Event()

    def advance() -> None:
        if failed.is_set():
            raise DemoError("stopped, because another session failed")
        reported()

    if not parts:
        return
    with ThreadPoolExecutor(len(parts), thread_name_prefix="player") as pool:
        plays = [pool.submit(do, part, advance) for part in parts]
        try:
            for play in as_completed(plays):
                play.result()
        except BaseException:
            failed.set()
            raise


def _parts(client: Client, rounds: int, sessions: int, on_silence: Callable[[], None]) -> list[Part]:
    """The players with their shares of the rounds: of each game, half by unary calls and half on the stream."""
    parts: list[Part] = []
    for game_no, game in enumerate(GAMES):
        count = (sessions + len(GAMES) - 1 - game_no) // len(GAMES)
        for number in range(count):
            share = rounds // count + (number < rounds % count)
            by_stream = (number + game_no) % 2 == 1
            name = f"player-{game}-{number + 1}"
            player = DemoPlayer(client, game, name, by_stream=by_stream, on_silence=on_silence)
            third = len(parts) % 3
            parts.append(Part(player, share, leaves=third == 0, buys=third == 1))
    return parts


def replay_offline(evidence: Evidence, root: str) -> Mapping[str, Any]:
    """The summary of `certify replay` over the exported files."""
    files = (str(evidence.statements), "--keys", str(evidence.keys), "--root", root)
    said = run_command("certification", "replay", *files, "--json", may_fail=True).stdout
    write_new(evidence.replay, said.encode("utf-8"), PUBLIC_MODE)
    documents = [json.loads(line) for line in said.splitlines()]
    for document in documents:
        if "failure" in document:
            failure = document["failure"]
            raise DemoError(f"replay: check {failure['check']}: {failure['message']} ({failure['place']})")
    if not documents or "summary" not in documents[-1]:
        raise DemoError("the replay wrote no summary")
    summary: Mapping[str, Any] = documents[-1]["summary"]
    return summary


def verify_replay(summary: Mapping[str, Any], played: list[PlayedSession]) -> None:
    """DemoError unless the replay is anchored and saw exactly the rounds and draws that were played."""
    further = {
        "verdict": "ANCHORED",
        "failures": 0,
        "is_cut": False,
        "staked_minor": {"EUR": sum(session.view.staked_minor for session in played)},
        "returned_minor": {"EUR": sum(session.view.returned_minor for session in played)},
    }
    verify_figures("replay", summary, played, further)
