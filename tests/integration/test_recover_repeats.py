"""After `rgs recover` a repeat has no second effect: an opening of the gap finds its session, and what was paid in the
last moment, of which no log tells, is paid once.

The tail is what was committed after the newest entry of the log: recovery knows nothing of it, the wallet does.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from rgs.core.errors import AlreadySeatedError, IdempotencyConflictError, RgsError
from rgs.core.ids import ulid_time_ms
from rgs.core.reconcile.classes import BreakClass
from rgs.core.rounds import Round
from rgs.service.play.requests import OpenSession
from rgs.store.opening import open_parties, open_reads, open_store
from rgs.store.privates import PRIVATES_FILE
from rgs.store.wallet import WalletEntry, WalletStore
from tests.support.clocks import ManualClock
from tests.support.service.harness import ServiceHarness
from tests.support.service.places import Place, sequence, void_all
from tests.support.service.player import Player
from tests.support.service.reconciling import export_day
from tests.support.service.seamless import FUNDINGS, Better

MINUTE_MS = 60_000


class Loss:
    """A server that is backed up, lives on, and is restored: `before` the backup, `logged` in the gap, and in the
    `tail` that is in no log. Behind it the server serves again, brought up to its log.
    """

    def __init__(self, place: Place) -> None:
        self.place = place
        self.clock = ManualClock()
        self.harness: ServiceHarness
        self.paused: tuple[Round, ...] = ()

    async def open(self, *players: Player) -> ServiceHarness:
        """The server of the place, serving these players."""
        store = parties = None
        if not isinstance(self.place.store, Path):
            store, parties = await open_store(self.place.store), await open_parties(self.place.store)
        harness = ServiceHarness(self.place.folder, clock=self.clock, fundings=FUNDINGS, store=store, parties=parties)
        await harness.start()
        self.harness = harness
        for player in players:
            player.harness = harness
        return harness

    async def lose(
        self, before: Callable[[], Awaitable[object]], logged: Callable[[], Awaitable[object]],
        tail: Callable[[], Awaitable[object]], *players: Player,
    ) -> None:  # fmt: skip
        await before()
        await self.harness.settle()
        await sequence(self.harness, self.place.log)
        await self.harness.stop(ended=False)
        self.place.back_up()
        again = await self.open(*players)
        await logged()
        await again.settle()
        await sequence(again, self.place.log)
        await tail()
        await again.settle()
        await again.stop(ended=False)
        self.place.restore()
        await self.place.lapse()
        self.clock.tick(MINUTE_MS)
        await self.place.import_all()
        self.paused = (await self.place.sign(self.clock)).paused
        await self.open(*players)
        await void_all(self.harness, self.paused)
        await self.harness.settle()

    def moved(self, *kinds: str) -> list[WalletEntry]:
        """What the wallet has of these kinds."""
        store = WalletStore(self.place.folder / "wallet.db")
        try:
            return [entry for entry in store.rows() if entry.kind in kinds]
        finally:
            store.close()

    async def books(self, out: Path, **options: Any) -> dict[str, Any]:
        """The report over what everybody has, the server stopped."""
        await self.harness.settle()
        await self.harness.stop()
        reads = await open_reads(self.place.store)
        try:
            rows = [row async for row in reads.statements_in_order()]
        finally:
            await reads.close()
        done = export_day(self.place.folder, rows, out / "books").run(out / "out", **options)
        document: dict[str, Any] = done.document
        return document


async def nothing() -> None:
    pass


async def same_session(loss: Loss, player: Player) -> None:
    """The opening's bytes once more, twice: the same session, and no other."""
    opening, first = player.sent[0]
    assert isinstance(opening, OpenSession)
    session_id = player.session_id
    for _ in range(2):
        reply = await player.send(opening)
        assert player.session_id == session_id
        assert reply.envelope == first.envelope
    found = await loss.harness.store.sessions_of(player.caller.party, player.name, open_only=False, before=0, limit=9)
    assert [session.session_id for _, session in found] == [session_id]


async def test_an_opening_of_the_gap_that_is_repeated_finds_its_session(place: Place) -> None:
    """anna's session is open still, bert's has ended and is closed in the gap, cleo had come before."""
    loss = Loss(place)
    harness = await loss.open()
    anna, bert, cleo = (Player(harness, name=name) for name in ("anna", "bert", "cleo"))
    privates: list[bytes] = []

    async def logged() -> None:
        await anna.sit()
        await anna.play()
        await bert.sit()
        await bert.leave()
        privates.extend([row.private async for row in loss.harness.store.statements_in_order() if row.private])

    await loss.lose(cleo.sit, logged, nothing, anna, bert, cleo)
    restored = [row.private async for row in loss.harness.store.statements_in_order() if row.private]
    assert sorted(restored) == sorted(privates)  # what was kept beside them is no part of them
    for player in (anna, bert, cleo):
        await same_session(loss, player)
    debited = loss.moved("debit")
    for player in (anna, bert):
        with pytest.raises(RgsError):  # by its number, or because all is over
            await player.send(player.sent[1][0])
    assert loss.moved("debit") == debited
    opening = anna.sent[0][0]
    assert isinstance(opening, OpenSession)
    other = OpenSession(opening.request_id, opening.game, "dora", opening.currency, opening.operator_reference)
    with pytest.raises(IdempotencyConflictError):
        await loss.harness.send(other)
    assert opening.request_id.encode() not in (place.log / PRIVATES_FILE).read_bytes()
    await loss.harness.stop()


async def test_a_seamless_opening_of_the_gap_that_is_repeated_finds_its_session(place: Place) -> None:
    loss = Loss(place)
    anna = Better(await loss.open())
    await loss.lose(nothing, anna.open, nothing, anna)
    await same_session(loss, anna)
    await loss.harness.stop()


async def test_an_end_that_was_paid_in_the_tail_is_paid_once(place: Place, tmp_path: Path) -> None:
    """In the tail anna ends and goes: her participation and dora's opening are all that the log knows."""
    loss = Loss(place)
    anna = Player(await loss.open())

    async def tail() -> None:
        loss.clock.tick(MINUTE_MS)
        await anna.leave()

    await loss.lose(anna.sit, anna.play, tail, anna)
    (paid,) = loss.moved("credit")
    await anna.end()
    await anna.close()
    assert loss.moved("credit") == [paid]
    done = await loss.books(tmp_path)
    assert (done["breaks"], done["owed"]) == ([], {})


async def test_an_end_of_another_amount_is_not_paid_and_is_told(place: Place, tmp_path: Path) -> None:
    """In the tail anna plays on before she ends: the wallet has paid another balance than the record comes to."""
    loss = Loss(place)
    anna = Player(await loss.open())
    left = 0

    async def tail() -> None:
        nonlocal left
        left = anna.balance_minor
        while anna.balance_minor == left:
            await anna.play()
        await anna.leave()

    await loss.lose(anna.sit, anna.play, tail, anna)
    (paid,) = loss.moved("credit")
    assert paid.amount_minor != left
    await anna.end()
    assert anna.session["paid_out_minor"] == left
    await anna.close()
    assert loss.moved("credit") == [paid]
    result = (await loss.books(tmp_path))["breaks"]
    differing = [one for one in result if one["class"] == BreakClass.AMOUNT_DIFFERS]
    assert {one["subject"] for one in differing} >= {f"transaction {paid.transaction_id}"}


async def test_a_return_of_the_tail_is_not_made_again(place: Place, tmp_path: Path) -> None:
    """anna's round was settled and returned in the tail: for the log it is open, is void, and its stake goes back."""
    loss = Loss(place)
    anna = Better(await loss.open())

    async def tail() -> None:
        await anna.finish_round()

    await loss.lose(anna.open, anna.start, tail, anna)
    assert [round_.round_id for round_ in loss.paused] == [anna.round["round_id"]]
    (returned,) = loss.moved("credit")
    assert ulid_time_ms(str(returned.transaction_id)) == ulid_time_ms(anna.round["round_id"])
    assert await loss.harness.store.round_credit(anna.session_id) is None
    result = (await loss.books(tmp_path, regulator=None))["breaks"]
    differing = [one["class"] for one in result if one["subject"] == f"transaction {returned.transaction_id}"]
    assert differing == [BreakClass.AMOUNT_DIFFERS]  # no round of these stakes returns what was staked at its start


async def test_a_purchase_of_the_tail_that_is_repeated_is_taken_back(place: Place, tmp_path: Path) -> None:
    """The regulator has a participation that the server does not know, and gives no second one: the second debit
    goes back, for good, and the first is told as owed.
    """
    loss = Loss(place)
    harness = await loss.open()
    anna, bert = Player(harness), Player(harness, name="bert")

    async def before() -> None:
        await bert.sit()
        await bert.play()
        await anna.open()

    async def tail() -> None:
        await anna.buy(500)

    await loss.lose(before, nothing, tail, anna, bert)
    _, lost = loss.moved("debit")
    purchase = anna.sent[-1][0]
    for _ in range(2):
        with pytest.raises(AlreadySeatedError):
            await anna.send(purchase)
    _, kept, taken, back = loss.moved("debit", "rollback")
    assert (kept, taken.transaction_id) == (lost, back.transaction_id)
    document = await loss.books(tmp_path)
    result = [one["class"] for one in document["breaks"] if one["subject"] == f"transaction {lost.transaction_id}"]
    assert result == [BreakClass.LINK_MISSING]
    assert document["owed"] == {"EUR": 500}
