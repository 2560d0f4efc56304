"""After a recovery nothing is paid twice: who came, played and went in the gap is known again, the books agree, and
what waits for the regulator has a way out. The private blocks lie beside the log, sealed; also played without them.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from rgs.core.reconcile.classes import BreakClass
from rgs.core.recovery import split_request
from rgs.core.replay import KeyBook
from rgs.core.sessions import SessionStatus
from rgs.service.admin.erasure import Erasure
from rgs.service.admin.orders import order_of
from rgs.service.admin.recovery import Recovered, plan_import
from rgs.service.sealing import Kek, Sealer
from rgs.store.interface import StatementRow
from rgs.store.opening import open_reads
from rgs.store.privates import PRIVATES_FILE, SealedPrivate, SealedPrivates
from rgs.store.wallet import WalletStore
from rgs.tlog.gap import find_gap
from tests.support.clocks import ManualClock
from tests.support.service.harness import KEK, ServiceHarness, key_bundle
from tests.support.service.places import Place, sequence, void_all
from tests.support.service.player import Player
from tests.support.service.reconciling import Day, export_day
from tests.unit.service.admin.test_outbox import ADMIN

DAY_MS = 86_400_000


class Gap:
    """A server that was backed up, lived on and was restored. In the gap: anna, who had been there, ends and goes; bert
    comes, plays and goes; cleo, who was there, buys first; dora comes, plays, and has a round open.
    """

    def __init__(self, place: Place) -> None:
        self.place = place
        self.clock = ManualClock()

    async def live(self) -> None:
        harness = await self.place.harness(self.clock)
        self.anna, self.bert, self.cleo, self.dora = (
            Player(harness, name=name) for name in ("anna", "bert", "cleo", "dora")
        )
        await harness.start()
        await self.anna.sit()
        await self.anna.play()
        await self.cleo.open()
        await harness.settle()
        await sequence(harness, self.place.log)
        await harness.stop(ended=False)
        self.place.back_up()
        again = await self.place.harness(self.clock)
        await again.start()
        for player in (self.anna, self.bert, self.cleo, self.dora):
            player.harness = again
        await self.anna.play()
        await self.anna.leave()
        await self.bert.sit()
        await self.bert.play()
        await self.bert.play(200)
        await self.bert.leave()
        await self.cleo.buy(5_000)
        await self.cleo.play()
        await self.dora.sit()
        await self.dora.play()
        await self.dora.start()
        await again.settle()
        await sequence(again, self.place.log)
        await again.stop(ended=False)
        self.place.restore()
        await self.place.lapse()

    async def recover(self) -> tuple[ServiceHarness, Recovered]:
        """The server again, serving, with its open round void."""
        await self.place.import_all()
        recovered = await self.place.sign(self.clock)
        harness = await self.place.harness(self.clock)
        await harness.start()
        for player in (self.anna, self.bert, self.cleo, self.dora):
            player.harness = harness
        await void_all(harness, recovered.paused)
        await harness.settle()
        return harness, recovered

    async def books(self, folder: Path) -> Day:
        """What everybody has to compare, of the server that was stopped."""
        reads = await open_reads(self.place.store)
        try:
            rows: list[StatementRow] = [row async for row in reads.statements_in_order()]
        finally:
            await reads.close()
        return export_day(self.place.folder, rows, folder)


async def gone(place: Place) -> Gap:
    gap = Gap(place)
    await gap.live()
    return gap


def credits_of(place: Place) -> Counter[str]:
    """How often each player was credited."""
    store = WalletStore(place.folder / "wallet.db")
    try:
        return Counter(entry.player for entry in store.rows() if entry.kind == "credit")
    finally:
        store.close()


async def test_who_came_and_went_in_the_gap_is_paid_once_and_the_books_agree(place: Place, tmp_path: Path) -> None:
    gap = await gone(place)
    before = credits_of(place)
    assert before == {"anna": 1, "bert": 1}
    harness, recovered = await gap.recover()
    assert [round_.session_id for round_ in recovered.paused] == [gap.dora.session_id]
    bert = await harness.store.session(gap.bert.session_id)
    assert bert is not None
    assert (bert.player, bert.status, bert.balance_minor) == ("bert", SessionStatus.CLOSED, 0)
    assert (await harness.services.outbox.held_reports(0, ""))[0] == ()
    for player in (gap.cleo, gap.dora):
        await player.end()
        await player.close()
    await harness.settle()
    assert await harness.services.outbox.figures() is not None
    assert await harness.store.reports(10) == []
    await harness.stop()
    assert credits_of(place) == {"anna": 1, "bert": 1, "cleo": 1, "dora": 1}
    done = (await gap.books(tmp_path / "books")).run(tmp_path / "out")
    assert (done.verdict, done.document["owed"]) == ("clean", {})
    assert done.document["identity"][0] == {"source": "statements", "reported": 4, "holds": 4}


async def test_the_rounds_of_those_who_have_ended_are_not_reported_again(place: Place) -> None:
    """The regulator takes no end before the rounds of its participation."""
    gap = await gone(place)
    reads = await open_reads(place.store)
    planned = await plan_import(reads, await find_gap(reads, place.log, KeyBook(key_bundle())))
    await reads.close()
    assert {report.session_id for report, _ in planned.reports} == {gap.cleo.session_id, gap.dora.session_id}
    assert len(planned.reports) == 2
    assert sum(day.stages for day in planned.days) == 5


async def test_without_the_private_blocks_what_is_over_is_not_owed(place: Place, tmp_path: Path) -> None:
    """Planted: the file beside the log is lost. Who was there before is known by the backup."""
    gap = await gone(place)
    (place.log / PRIVATES_FILE).unlink()
    harness, _ = await gap.recover()
    bert, dora = [await harness.store.session(player.session_id) for player in (gap.bert, gap.dora)]
    assert bert is not None
    assert dora is not None
    assert (bert.player, bert.status) == ("", SessionStatus.CLOSED)
    assert (dora.player, dora.status, dora.regulator_session_id) == ("", SessionStatus.OPEN, "")
    held, _ = await harness.services.outbox.held_reports(0, "")
    assert [(one.kind, one.reason) for one in held if one.subject == dora.session_id] == [("stages", "INVALID_FIELD")]
    for one in held:
        order = order_of(ADMIN, "ReleaseReports", harness.request_id(), subject=one.subject)
        await harness.services.outbox.release_reports(order, "stages", one.subject, "LINKS_LOST")
    assert await harness.reporting.report_stages() == 0  # refused again, as before
    for one in held:
        order = order_of(ADMIN, "ReleaseReports", harness.request_id(), subject=one.subject, close_out=True)
        await harness.services.outbox.release_reports(order, "stages", one.subject, "LINKS_LOST", close_out=True)
    assert (await harness.services.outbox.held_reports(0, ""))[0] == ()
    assert await harness.store.reports_of(dora.session_id, 10) == []
    await harness.settle()
    await harness.stop()
    done = (await gap.books(tmp_path / "books")).run(tmp_path / "out", allow_rejects=True)
    assert done.document["owed"] == {}
    result = [(one["class"], one["owed"]) for one in done.document["breaks"]]
    # Of dora's rounds the regulator was never told: a compliance break, and nothing of anybody's money.
    assert {kind for kind, _ in result} <= {BreakClass.MISSING_AT_REGULATOR, BreakClass.CONTENT_DIFFERS}
    assert credits_of(place) == {"anna": 1, "bert": 1}


async def test_who_came_in_the_gap_is_found_and_erased(place: Place) -> None:
    gap = await gone(place)
    harness, _ = await gap.recover()
    harness.clock.tick(10 * DAY_MS)
    erasure = Erasure(store=harness.store, clock=harness.clock, events=harness.services.events, retention_days=10)
    found = await erasure.poll("op-1", "bert")
    assert (found.sessions, found.blocks, found.session_ids) == (1, 3, (gap.bert.session_id,))
    sealed = SealedPrivates(place.log / PRIVATES_FILE)
    assert sealed.erase(found.session_ids) == 3
    assert sealed.erase(found.session_ids) == 0
    sealed.close()
    await erasure.erase("op-1", "bert")
    await harness.stop()


async def test_what_lies_beside_the_log_is_sealed_and_is_what_was_signed_for(place: Place) -> None:
    """Planted: another key, another statement's block, a byte changed."""
    gap = await gone(place)
    content = (place.log / PRIVATES_FILE).read_bytes()
    assert b"bert" not in content
    assert b"player" not in content
    assert gap.bert.session["regulator_session_id"].encode() not in content
    reads = await open_reads(place.store)
    rows = [row async for row in reads.statements_in_order() if row.private]
    await reads.close()
    sealed, sealer = SealedPrivates(place.log / PRIVATES_FILE), Sealer(KEK)
    one, other = (sealed.find(row.instance, row.statement_no) for row in rows[:2])
    sealed.close()
    assert one is not None
    assert other is not None
    kept = sealer.unseal_private(rows[0].hash, one)
    assert kept is not None
    private, request = split_request(kept)
    assert private == rows[0].private
    assert request["request_id"] == gap.anna.sent[0][0].request_id
    assert sealer.seal_private(rows[0].hash, kept) == one  # sealed again it is the same
    assert sealer.unseal_private(rows[0].hash, other) is None
    assert sealer.unseal_private(rows[0].hash, one[:-1] + bytes([one[-1] ^ 1])) is None
    assert Sealer(Kek(2, {2: bytes(32)})).unseal_private(rows[0].hash, one) is None
    assert sealer.unseal_private(rows[0].hash, b"") is None


def test_the_newest_private_blocks_are_kept(tmp_path: Path) -> None:
    sealed = SealedPrivates(tmp_path / PRIVATES_FILE, kept_max=3)
    for number in range(1, 6):
        sealed.add([SealedPrivate("i", number, "s", bytes([number]))])
    sealed.add([SealedPrivate("i", 5, "s", b"another")])
    assert [sealed.find("i", number) for number in range(1, 6)] == [None, None, b"\x03", b"\x04", b"\x05"]
    sealed.close()
