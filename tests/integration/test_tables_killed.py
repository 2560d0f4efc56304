"""Workers of one node over PostgreSQL, as processes: the one that leads the tables is killed in each state of a round.

Windows end by what is signed, so how late they ended is read from the statements.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pytest

from rgs.core.times import parse_time
from rgs.devkit.client import Client, ClientIdentity
from rgs.devkit.demo.tables import with_timers
from rgs.devkit.shipped_tables import set_up, shipped_table
from rgs.node.clock import SystemClock
from rgs.node.config import Config, load_config
from rgs.node.home import ensure_home
from rgs.service.tables.dealer import DUTY
from rgs.store.address import PostgresAddress
from rgs.v1 import table_pb2 as pb
from rgs.v1.common_pb2 import ACTION_PLAY_4X, PHASE_FLOP, PHASE_PREFLOP, PHASE_RIVER
from tests.support.api.cluster import exported, kinds, new_database
from tests.support.api.harness import entropy
from tests.support.process.workers import Service, served_by_workers
from tests.support.store.postgres import QUICK, one_server

pytestmark = pytest.mark.slow

WORKERS = 2
TABLE = "uth-seven-box"
TIMERS = {"betting_ms": 3_000, "amber_ms": 500, "decision_ms": 2_000, "result_ms": 1_000}
LATE_MAX_MS = 2_500
"""What a window may end late where its leader was killed."""
PLACES = [
    (pb.TABLE_STATE_BETTING, 0), (pb.TABLE_STATE_DECIDING, PHASE_PREFLOP), (pb.TABLE_STATE_DECIDING, PHASE_FLOP),
    (pb.TABLE_STATE_DECIDING, PHASE_RIVER), (pb.TABLE_STATE_RESULT, 0),
]  # fmt: skip


class Player:
    """Sits at a box, bets each round, raises at once or stays silent."""

    def __init__(self, client: Client, number: int) -> None:
        self.client, self.raises = client, number == 0
        requests = client.requests
        opening = requests.open(TABLE, f"player-{number}", "EUR", f"ref-{number}", TABLE)
        self.session = client.call(client.sessions.OpenSession, opening).session
        client.call(client.sessions.BuyParticipation, requests.buy(self.session, 50_000))
        joining = requests.join(self.session.session_id, f"player-{number}", number + 1)
        self.seat = client.call(client.tables.Join, joining).seat

    def look(self) -> pb.TableView:
        """Table and seat as any worker shows them."""
        request = pb.GetTableRequest(table=TABLE, session_id=self.session.session_id)
        answer = self.client.call(self.client.tables.GetTable, request)
        self.seat, self.session = answer.seat, answer.session
        return answer.table

    def bet(self, round_id: str) -> None:
        request = self.client.requests.place_bets(self.seat, round_id, {"ante": 500})
        self.seat = self.client.call(self.client.tables.PlaceBets, request).seat

    def decide(self) -> None:
        if self.raises:
            self.look()
            request = self.client.requests.decide(self.seat, ACTION_PLAY_4X)
            self.client.call(self.client.tables.Decide, request)


def until(player: Player, state: int, phase: int = 0) -> pb.TableView:
    last = time.monotonic() + 40
    while True:
        view = player.look()
        if view.state == state and phase in (0, view.phase):
            return view
        assert time.monotonic() < last, view
        time.sleep(0.05)


def client_of(config: Config, port: int, party: str) -> Client:
    return Client(f"127.0.0.1:{port}", ClientIdentity.of_party(config, party))


async def leader(url: str, service: Service) -> int:
    """The process id of the worker that leads the tables."""
    connection = await asyncpg.connect(url)
    try:
        port = await connection.fetchval(
            """SELECT a.client_port FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE l.locktype = 'advisory'
            AND l.granted AND l.classid = hashtext('rgs duty')::bigint & 4294967295
            AND l.objid = hashtext($1)::bigint & 4294967295""",
            DUTY,
        )
    finally:
        await connection.close()
    return holder(port, urlsplit(url).port or 5432, [pid for _, pid in service.serving()])


def holder(port: int, database: int, pids: list[int]) -> int:
    """Which of these processes has a connection from the port to the database's. Another connection may have the first
    one, too, to elsewhere.
    """
    held = {pid: sockets_of(pid) for pid in pids}
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    (inode,) = [row[9] for row in rows if tuple(int(end.partition(":")[2], 16) for end in row[1:3]) == (port, database)]
    (found,) = [pid for pid, inodes in held.items() if inode in inodes]
    return found


def sockets_of(pid: int) -> set[str]:
    """The inodes of the process's sockets; none if it is gone."""
    found = set()
    for link in Path(f"/proc/{pid}/fd").glob("*"):
        with contextlib.suppress(OSError):
            found.add(str(link.readlink()).removeprefix("socket:[").rstrip("]"))
    return found


def lateness(bodies: list[dict[str, Any]]) -> list[int]:
    """How late each window ended, in milliseconds."""
    late = []
    for body in bodies:
        if body["kind"] == "table_round":
            opened, closed = (parse_time(body[f"betting_{name}_time"]) for name in ("open", "close"))
            late.append(closed - opened - int(body["betting_ms"]))
        if body["kind"] == "table_final":
            for window in body["windows"]:
                opened, closed = (parse_time(window[f"{name}_time"]) for name in ("open", "close"))
                late.append(closed - opened - TIMERS["decision_ms"])
    return late


@pytest.mark.timeout(300)
async def test_the_leader_is_killed_in_each_state_of_a_round(tmp_path: Path) -> None:
    with one_server(QUICK) as postgres:
        await new_database(postgres.url(), "tables")
        url = postgres.url("tables")
        home = tmp_path / "home"
        ensure_home(home, None, entropy().read, SystemClock().now_ms(), PostgresAddress(url))
        config = load_config(home)
        with served_by_workers(config, tmp_path / "said.txt", WORKERS) as service:
            await service.until_serving(WORKERS)
            with client_of(config, service.port, "demo-admin") as admin:
                set_up(admin, [with_timers(shipped_table(TABLE), TIMERS)], "NEW_TABLE")
            with client_of(config, service.port, "demo-operator") as client:
                await asyncio.to_thread(play, client, lambda: asyncio.run(leader(url, service)), service)
            service.process.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(service.process.wait, 30) == 0, service.log.read_text()
        bodies = await exported(config, tmp_path)
    found = kinds(bodies)
    assert (found["table_final"], found["seat_final"], found["instance_lost"]) == (len(PLACES), 3 * len(PLACES), 5)
    assert "MALFUNCTION" not in {body["code"] for body in bodies if body["kind"] == "event"}, "no table was paused"
    late = lateness(bodies)
    assert len(late) == 4 * len(PLACES)
    assert min(late) >= 0
    assert max(late) <= LATE_MAX_MS, late


def play(client: Client, leading: Any, service: Service) -> None:
    """A round for each state: one player raises at once, two stay silent, and the leader is killed there."""
    players = [Player(client, number) for number in range(3)]
    for number, (state, phase) in enumerate(PLACES):
        view = until(players[0], pb.TABLE_STATE_IDLE)
        for player in players:
            view = player.look()
            player.bet(view.round_id if view.state == pb.TABLE_STATE_BETTING else "")
        round_id = players[0].look().round_id
        if state == pb.TABLE_STATE_BETTING:
            os.kill(leading(), signal.SIGKILL)
        until(players[0], pb.TABLE_STATE_DECIDING, PHASE_PREFLOP)
        players[0].decide()
        if phase == PHASE_PREFLOP:
            os.kill(leading(), signal.SIGKILL)
        if phase in {PHASE_FLOP, PHASE_RIVER}:
            until(players[0], state, phase)
            os.kill(leading(), signal.SIGKILL)
        assert until(players[0], pb.TABLE_STATE_RESULT).round_id == round_id
        if state == pb.TABLE_STATE_RESULT:
            os.kill(leading(), signal.SIGKILL)
        asyncio.run(service.until_serving(WORKERS + number + 1))
    until(players[0], pb.TABLE_STATE_IDLE)
    for player in players:
        player.look()
        client.call(client.tables.Leave, client.requests.leave_seat(player.seat))
