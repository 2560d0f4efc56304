"""A wallet, and a regulator, that are gone for a whole day of the server's clock.

The server runs in this process, over real sockets, under a jurisdiction for real money and an authority that is no
development one. Its clock is moved by twenty minutes at a time; gRPC's deadlines and the pauses of repeats by the
circuit are real.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import grpc
import pytest
from structlog.testing import capture_logs

from rgs.adapters.embedded.books import receipt_line
from rgs.devkit.simulators.serving import Simulator, SimulatorServer
from rgs.devkit.simulators.statements import regulator_statement, wallet_statement
from rgs.node.keyring import read_fingerprint
from rgs.store.regulator import RegulatorStore
from rgs.store.wallet import WalletStore
from rgs.v1 import session_pb2
from tests.gamedays.test_peers_away import listed
from tests.gamedays.transcript import Transcript
from tests.integration.test_money_outside import Outside, again, outside, until
from tests.support.api.client import ApiClient, refused, request_id
from tests.support.api.harness import reason_in, status_in
from tests.support.process.served import rgs

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

STEP_MS = 20 * 60_000
"""Less than the inactivity after which a session is closed for play."""
STEPS = 72
REAL = '"test_regulator": false'


class Day:
    """Players of one server, and the openings that they hold."""

    def __init__(self, world: Outside, first: ApiClient, written: Transcript) -> None:
        self.world, self.written = world, written
        self._first = first
        self.receipts: list[bytes] = []
        self.statements: list[bytes] = []

    async def player(self, name: str) -> ApiClient:
        player = ApiClient(self._first.channel, name)
        opened = await player.open()
        bought = await player.buy()
        self.statements += [opened.statement, bought.statement]
        await self.round(player)
        return player

    async def round(self, player: ApiClient) -> None:
        started = await player.start()
        self.receipts.append(started.opening)
        ended = [await player.act(action) for action in (1, 1, 7)][-1]
        self.statements += [started.opening, ended.final]

    async def pass_(self, playing: list[ApiClient]) -> None:
        """A day of the server's clock, with a round of each of these in every step."""
        for _ in range(STEPS):
            self.world.harness.clock.ahead_ms += STEP_MS
            await self.world.harness.until_serving()
            for player in playing:
                await self.round(player)
        self.written.did(f"let 24 hours of the server's clock pass in {STEPS} steps; {len(playing)} play in each")

    async def back(self, name: str, simulator: Simulator) -> None:
        """The peer is started again, over its book and on its port."""
        stopped = self.world.servers[name]
        self.world.servers[name] = SimulatorServer(simulator, f"localhost:{stopped.port}", self.world.wires[name])
        await self.world.servers[name].start()

    async def leave(self, player: ApiClient, ending: Any = None) -> None:
        end = ending or session_pb2.EndParticipationRequest(request_id=request_id(), session_id=player.session_id)
        ended = await until(again(player.sessions.EndParticipation, end), 300)
        close = session_pb2.CloseSessionRequest(request_id=request_id(), session_id=player.session_id)
        closed = await until(again(player.sessions.CloseSession, close), 300)
        self.statements += [ended.statement, closed.statement]

    async def waiting(self) -> Counter[str]:
        figures, _ = await self.world.harness.server.services.outbox.figures()
        found = Counter[str]()
        for row in figures:
            found[row.kind] += row.count
        return found


@asynccontextmanager
async def day(folder: Path, written: Transcript) -> AsyncIterator[Day]:
    """A server that has served, then the proof from the files."""
    with patch("rgs.node.server.BACKGROUND_S", 0.1), capture_logs():
        async with outside(folder) as world:
            one = Day(world, await world.player(), written)
            yield one
    prove(folder, one)


def prove(folder: Path, one: Day) -> None:
    home, names = folder / "home", ("wallet.csv", "regulator.jsonl", "receipts.jsonl")
    files = {name.partition(".")[0]: folder / name for name in names}
    export, keys, report = folder / "export.jsonl", home / "keys" / "keys.json", folder / "report"
    made = rgs("export", "--home", str(home), "--out", str(export))
    assert made.returncode == 0, made.stderr
    held = export.read_bytes()
    for statement in one.statements:
        assert statement in held
    one.written.after(f"all {len(one.statements)} statements that players hold are in the export")
    wallet, regulator = WalletStore(folder / "wallet.db"), RegulatorStore(folder / "regulator.db")
    files["wallet"].write_text(wallet_statement(wallet))
    # The simulator marks its book as a test regulator's. Here it stands for the real one.
    files["regulator"].write_text(regulator_statement(regulator).replace('"test_regulator": true', REAL))
    wallet.verify()
    for store in (wallet, regulator):
        store.close()
    files["receipts"].write_bytes(b"".join(receipt_line(opening) for opening in one.receipts))
    options = [part for name, path in files.items() for part in (f"--{name}", str(path))]
    root = read_fingerprint(home / "keys")
    command = ["-m", "rgs", "reconcile", "--statements", str(export), "--keys", str(keys), "--root", root, *options]
    done = subprocess.run([sys.executable, *command, "--out", str(report)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    first, *_, last = done.stdout.strip().splitlines()
    one.written.after(f"replayed: {first}; reconciled with wallet and regulator: {last.partition(';')[0]}")


async def test_wallet_a_day(tmp_path: Path, written: Transcript) -> None:
    """The wallet is away for a day"""
    async with day(tmp_path, written) as one:
        leaving = [await one.player(f"leaving-{number}") for number in range(3)]
        buying, playing = await one.player("buying"), await one.player("playing")
        await one.world.servers["wallet"].drain()
        written.did("stopped the wallet; three players leave, one buys, one plays on")
        ends = [
            session_pb2.EndParticipationRequest(request_id=request_id(), session_id=player.session_id)
            for player in leaving
        ]
        for player, end in zip(leaving, ends, strict=True):
            error = await refused(player.sessions.EndParticipation(end))
            assert reason_in(status_in(error)) == "WALLET_UNAVAILABLE"
        purchase = buying.buy_request(purchase_no=2, amount_minor=5_000)
        assert reason_in(status_in(await refused(buying.sessions.BuyParticipation(purchase)))) == "WALLET_UNAVAILABLE"
        await one.pass_([playing])
        waiting = await one.waiting()
        written.alarm(f"GetOutbox after the day: {listed(waiting)} (RgsCircuitOpen, RgsCreditOwed, RgsOutboxOld)")
        assert waiting["end"] == len(leaving)
        await one.back("wallet", one.world.wallet)
        written.operator("nothing: the wallet is back, and everything owed is sent under the ids that it had")
        for player, end in zip(leaving, ends, strict=True):
            await one.leave(player, end)
        try:
            bought = await until(again(buying.sessions.BuyParticipation, purchase), 300)
            one.statements.append(bought.statement)
            written.saw("the purchase of a day ago has been made, once")
        except grpc.aio.AioRpcError as error:
            reason = reason_in(status_in(error))
            written.saw(f"the purchase of a day ago is refused for good: {reason}; nothing was taken")
        for player in (buying, playing):
            await one.leave(player)
        await until(lambda: nothing_waits(one), 300)
    with_credit = [row for row in rows_of(tmp_path) if row.kind == "credit"]
    assert len(with_credit) == 5
    written.after("the wallet holds one credit for each of the five players")


async def nothing_waits(one: Day) -> bool:
    return not await one.waiting()


def rows_of(folder: Path) -> list[Any]:
    store = WalletStore(folder / "wallet.db")
    try:
        return list(store.rows())
    finally:
        store.close()


async def test_regulator_a_day(tmp_path: Path, written: Transcript) -> None:
    """The regulator is away for a day"""
    async with day(tmp_path, written) as one:
        playing = [await one.player(f"player-{number}") for number in range(3)]
        await until(lambda: nothing_waits(one))
        await one.world.servers["regulator"].drain()
        written.did("stopped the regulator; three players are in their sessions")
        await one.pass_(playing)
        late = ApiClient(playing[0].channel, "late")
        error = await refused(late.open())
        written.saw(f"rounds go on; a new session is refused for now: {reason_in(status_in(error))}")
        waiting = await one.waiting()
        assert waiting["stages"] == STEPS * len(playing)
        written.alarm(f"GetOutbox after the day: {listed(waiting)} (RgsCircuitOpen, RgsOutboxGrows, RgsOutboxOld)")
        await one.back("regulator", one.world.regulator)
        written.operator("nothing: the regulator is back, and every report is sent under the id that it had")
        await until(lambda: nothing_waits(one), 600)
        for player in playing:
            await one.leave(player)
    store = RegulatorStore(tmp_path / "regulator.db")
    order: defaultdict[str, list[int]] = defaultdict(list)
    for row in regulator_statement(store).splitlines():
        entry = json.loads(row)
        if entry["kind"] == "stage":
            order[entry["regulator_participation_id"]].append(int(entry["stage_no"]))
    store.close()
    assert sorted(order.values()) == [list(range(1, STEPS + 2))] * len(playing), order
    written.after(f"the regulator holds the {STEPS + 1} stages of each participation, once and in their order")
