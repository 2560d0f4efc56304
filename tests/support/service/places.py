"""Where a harness keeps its store and its log: what is backed up, lost, restored and brought up to the log again."""

from __future__ import annotations

import shutil
from pathlib import Path

import asyncpg

from rgs.core.replay import KeyBook
from rgs.core.rounds import DECK_UNRECOVERABLE, Round
from rgs.core.statements import Ed25519Signer
from rgs.core.tlog.checkpoints import Checkpoint
from rgs.service.admin.recovery import REASON, Recovered, plan_import, sign_recovery, with_privates
from rgs.service.instance import Instance
from rgs.service.sealing import Sealer
from rgs.store.address import PostgresAddress, StoreAddress
from rgs.store.opening import import_gap, open_parties, open_reads, open_store
from rgs.store.privates import PRIVATES_FILE, SealedPrivates
from rgs.tlog.gap import Missing, find_gap
from rgs.tlog.sequencer import Sequencer
from tests.support.clocks import ManualClock
from tests.support.service.admins import AdminOf, refusals
from tests.support.service.harness import KEK, NODE, NODE_KEY, ServiceHarness, key_bundle
from tests.support.store.databases import copy_database

LOG_KEY = Ed25519Signer.from_seed(b"\x31" * 32)


class Place:
    """Where a server keeps its store: a file of the folder, or a database; it can be backed up and restored."""

    def __init__(self, folder: Path, database: PostgresAddress | None) -> None:
        self.folder = folder
        self.log = folder / "log"
        self.store: StoreAddress = database or folder / "rgs.db"

    async def harness(self, clock: ManualClock | None = None) -> ServiceHarness:
        if isinstance(self.store, Path):
            return ServiceHarness(self.folder, clock=clock)
        return ServiceHarness(
            self.folder, clock=clock, store=await open_store(self.store), parties=await open_parties(self.store)
        )

    def back_up(self) -> None:
        self._copy(self._backup, restores=False)

    def restore(self) -> None:
        self._copy(self._backup, restores=True)

    @property
    def _backup(self) -> StoreAddress:
        if isinstance(self.store, Path):
            return self.folder / "backup" / "rgs.db"
        return PostgresAddress(f"{self.store.url}_backup")

    def _copy(self, backup: StoreAddress, *, restores: bool) -> None:
        source, target = (backup, self.store) if restores else (self.store, backup)
        if isinstance(source, Path) and isinstance(target, Path):
            target.parent.mkdir(exist_ok=True)
            for path in target.parent.glob("rgs.db*"):
                path.unlink()
            for path in source.parent.glob("rgs.db*"):
                shutil.copy(path, target.parent / path.name)
        else:
            assert isinstance(source, PostgresAddress)
            assert isinstance(target, PostgresAddress)
            copy_database(source, target)

    async def gap(self, seen: Checkpoint | None = None) -> list[Missing]:
        reads = await open_reads(self.store)
        try:
            return await find_gap(reads, self.log, KeyBook(key_bundle()), seen)
        finally:
            await reads.close()

    async def import_all(self) -> int:
        """The first half: nothing is signed. Private blocks come back where the file of them is there still."""
        reads = await open_reads(self.store)
        sealed = SealedPrivates(self.log / PRIVATES_FILE)
        try:
            gap = await find_gap(reads, self.log, KeyBook(key_bundle()))
            planned = await plan_import(reads, with_privates(gap, sealed, Sealer(KEK)))
        finally:
            sealed.close()
            await reads.close()
        await import_gap(self.store, planned)
        return len(planned.statements)

    async def sign(self, clock: ManualClock) -> Recovered:
        """The second half, under the clock of the server that was."""
        store = await open_store(self.store)
        shared = isinstance(self.store, PostgresAddress)
        instance = Instance(store=store, clock=clock, sealer=Sealer(KEK), node=NODE, worker=999, shared=shared)
        try:
            await instance.start(
                NODE_KEY, manifest_sha256="0" * 64, software_version="0.1.0", artifacts=(), recovers=True
            )
            recovered = await sign_recovery(store, instance, clock)
            await instance.end(REASON)
            return recovered
        finally:
            await store.close()

    async def lapse(self) -> None:
        """Leases run by the database's clock, and no test waits for them."""
        if isinstance(self.store, PostgresAddress):
            connection = await asyncpg.connect(self.store.url)
            await connection.execute("UPDATE instances SET lease_ms = 1")
            await connection.close()


async def sequence(harness: ServiceHarness, log: Path) -> None:
    """Everything that is committed into the log."""
    sequencer = Sequencer(
        store=harness.store, clock=harness.clock, folder=log, prefix="log.example", signer=LOG_KEY, delay_ms=60_000,
        seal=Sealer(KEK).seal_private,
    )  # fmt: skip
    await sequencer.close()
    assert sequencer.code == ""


async def void_all(harness: ServiceHarness, rounds: tuple[Round, ...]) -> None:
    one, two = AdminOf(harness), AdminOf(harness, "admin-2")
    for round_ in rounds:
        reason = REASON if round_.sealed else DECK_UNRECOVERABLE
        assert refusals(await one.propose(round_.round_id, reason=reason)) == [""]
        assert refusals(await two.approve(round_.round_id)) == [""]
