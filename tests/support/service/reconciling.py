"""A clean day in files, for tests of reconciliation: a real server plays, its books and receipts are exported.

`Day` is one such folder; `plant` gives a copy in which one file is changed. `run` reconciles it.
"""

from __future__ import annotations

import asyncio
import csv
import io
import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from rgs.adapters.embedded.books import receipt_line, regulator_lines, wallet_lines
from rgs.core.statements import ExportLine, format_line, parse_canonical, parse_envelope, parse_statement
from rgs.service.reconciliation.reconciliation import Reconciled, ReconcileRequest, Reconciliation
from rgs.store.interface import StatementRow
from rgs.store.regulator import RegulatorStore
from rgs.store.sqlite.store import SqliteReads, connect
from rgs.store.wallet import WalletStore
from tests.support.service.harness import NODE_KEY, ROOT_KEY, key_bundle, open_harness
from tests.support.service.player import Player
from tests.support.waiting import all_at_once

Row = dict[str, Any]
Change = Callable[[list[Row]], list[Row] | None]


class Day:
    """The files of a day in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.statements = folder / "statements.jsonl"
        self.keys = folder / "keys.json"
        self.wallet = folder / "wallet.csv"
        self.receipts = folder / "receipts.jsonl"
        self.regulator = folder / "regulator.jsonl"

    def copy(self, folder: Path) -> Day:
        shutil.copytree(self.folder, folder)
        return Day(folder)

    def request(self, out: Path, **changes: Any) -> ReconcileRequest:
        return ReconcileRequest(
            **{
                "statements": self.statements,
                "keys": self.keys,
                "root": ROOT_KEY.keyid,
                "receipts": self.receipts,
                "wallet": self.wallet,
                "regulator": self.regulator,
                "out": out,
                "memory_mb": 512,
                **changes,
            }
        )

    def run(self, out: Path, *, signed: bool = True, **changes: Any) -> Reconciled:
        signer = NODE_KEY if signed else None
        return Reconciliation(version="test", signer=signer).run(self.request(out, **changes))

    def breaks(self, out: Path, **changes: Any) -> list[str]:
        """The classes of all open breaks."""
        return [result["class"] for result in self.run(out, **changes).document["breaks"]]

    # --- planting ---

    def change_wallet(self, change: Change) -> None:
        rows = list(csv.DictReader(io.StringIO(self.wallet.read_text())))
        header = list(rows[0])
        changed = change(rows)
        text = io.StringIO()
        writer = csv.DictWriter(text, header, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows if changed is None else changed)
        self.wallet.write_text(text.getvalue())

    def change_lines(self, path: Path, change: Change) -> None:
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        changed = change(rows)
        path.write_text("".join(json.dumps(row) + "\n" for row in (rows if changed is None else changed)))

    def change_regulator(self, change: Change) -> None:
        self.change_lines(self.regulator, change)

    def change_receipts(self, change: Change) -> None:
        self.change_lines(self.receipts, change)

    def bodies(self) -> list[dict[str, Any]]:
        """The bodies of all statements."""
        lines = self.statements.read_bytes().splitlines()
        return [parse_statement(parse_envelope(json_envelope(line)))[1] for line in lines]


def json_envelope(line: bytes) -> bytes:
    start, end = line.index(b'"envelope":') + 11, line.index(b',"private":')
    return line[start:end]


async def _play(folder: Path, *, is_open: bool) -> None:
    async with open_harness(folder, ended=not is_open) as harness:
        for number, name in enumerate(("anna", "bert", "carla")):
            player = Player(harness, name=name)
            await player.sit(10_000)
            harness.clock.tick(60_000)
            for _ in range(2 + number):
                await player.play(100)
            if number == 1:
                await player.buy(5_000)
            if is_open and number == 2:
                harness.clock.tick(1500)
                await player.start(100)
                harness.clock.tick(3_600_000)
                await Player(harness, name="dora").open()  # something newer than the open round
                break
            await player.leave()
            harness.clock.tick(60_000)
        await harness.settle()


def play_day(folder: Path, *, is_open: bool = False) -> Day:
    """A day of three players, six transfers and nine rounds; with `is_open` the last round is left
    without its final.
    """
    home = folder / "home"
    home.mkdir(parents=True)
    asyncio.run(_play(home, is_open=is_open))
    return day_of(home, folder / "day")


def day_of(home: Path, folder: Path) -> Day:
    """The files of what has been played in this folder, which nobody has open any more."""
    connection = connect(home / "rgs.db", read_only=True)
    try:
        return export_day(home, all_at_once(SqliteReads(connection).statements_in_order()), folder)
    finally:
        connection.close()


def export_day(home: Path, rows: Iterable[StatementRow], folder: Path) -> Day:
    """The files of what a server has played: its statements as they are given, the embedded books of its folder."""
    day = Day(folder)
    day.folder.mkdir()
    wallet, regulator = WalletStore(home / "wallet.db"), RegulatorStore(home / "regulator.db")
    try:
        day.wallet.write_bytes(b"".join(wallet_lines(wallet.rows())))
        entries = [parse_canonical(entry.body.encode()) for entry in regulator.entries()]
        day.regulator.write_bytes(b"".join(regulator_lines(entries)))
    finally:
        wallet.close()
        regulator.close()
    lines, receipts = [], []
    for row in rows:
        private = parse_canonical(row.private) if row.private else None
        lines.append(format_line(ExportLine(row.envelope, private)) + b"\n")
        if row.kind in {"round_opening", "seat_opening"}:
            receipts.append(receipt_line(row.envelope))
    day.statements.write_bytes(b"".join(lines))
    day.receipts.write_bytes(b"".join(receipts))
    day.keys.write_bytes(key_bundle())
    return day
