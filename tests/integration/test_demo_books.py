"""Play money in the books of others, and after a recovery: left out by rule, counted, and nowhere owed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rgs.core.errors import NotFoundError
from rgs.core.reconcile.classes import BreakClass
from rgs.core.sessions import Mode, SessionStatus
from rgs.service.play.requests import CreateLaunch, OpenSession
from rgs.store.opening import open_reads
from tests.support.clocks import ManualClock
from tests.support.service.harness import OPERATOR, open_harness
from tests.support.service.oracles import verify_books
from tests.support.service.places import Place, sequence
from tests.support.service.player import Guest, Player
from tests.support.service.reconciling import Day, day_of, export_day


async def played(folder: Path) -> Day:
    """A day of anna, who plays for money and before that with play money."""
    home = folder / "home"
    home.mkdir(parents=True)
    async with open_harness(home) as harness:
        for player, rounds in ((Guest(harness), 2), (Player(harness), 3), (Guest(harness, game="casino-holdem"), 1)):
            await player.sit()
            harness.clock.tick(60_000)
            for _ in range(rounds):
                await player.play(100)
            await player.leave()
            harness.clock.tick(60_000)
        await harness.settle()
    verify_books(home)
    return day_of(home, folder / "day")


async def test_reconciliation_leaves_play_money_out_and_says_how_much(tmp_path: Path) -> None:
    day = await played(tmp_path)
    receipts = day.receipts.read_text().splitlines()
    assert len(receipts) == 6  # an operator keeps the openings of every session
    done = day.run(tmp_path / "out")
    assert (done.verdict, done.document["play_money"]) == ("clean", {"rounds": 3, "sessions": 2})
    assert [row["reported"] for row in done.document["identity"]] == [1, 1, 1]
    assert sum(row["rounds"] for row in done.document["totals"] if row["source"] == "statements") == 3
    assert "2 sessions with 3 ended rounds are left out" in (tmp_path / "out" / "report.html").read_text()


async def test_a_wallet_that_moves_money_for_play_money_shows(tmp_path: Path) -> None:
    day = await played(tmp_path)
    bodies = day.bodies()
    demo = next(body["session_id"] for body in bodies if body.get("mode") == "demo")
    named = next(body for body in bodies if body["kind"] == "purchase" and body["session_id"] == demo)

    def add(rows: list[dict[str, str]]) -> None:
        moved = next(row for row in rows if row["kind"] == "debit")
        rows.append({**moved, "transaction_id": "01" + "Z" * 24, "reference": named["participation_id"]})

    day.change_wallet(add)
    assert day.breaks(tmp_path / "out") == [BreakClass.MISSING_IN_RGS]


async def test_a_receipt_of_money_is_still_missed(tmp_path: Path) -> None:
    day = await played(tmp_path)
    demos = {body["session_id"] for body in day.bodies() if body.get("mode") == "demo"}
    lines = day.receipts.read_text().splitlines()
    kept = [line for line in lines if json.loads(line)["session_id"] not in demos][1:]
    day.receipts.write_text("".join(f"{line}\n" for line in kept))
    assert day.breaks(tmp_path / "out") == [BreakClass.SEAT_MISSING]


async def test_after_a_recovery_play_money_goes_on_and_launches_are_gone(place: Place, tmp_path: Path) -> None:
    """In the gap a guest comes, plays and stays; a launch of before was never redeemed."""
    clock = ManualClock()
    harness = await place.harness(clock)
    await harness.start()
    anna = Player(harness)
    await anna.sit()
    early, _ = await harness.launches.create(
        OPERATOR, CreateLaunch(harness.request_id(), "uth-solo", "bert", "EUR", "ref:2")
    )
    await harness.settle()
    await sequence(harness, place.log)
    await harness.stop(ended=False)
    place.back_up()
    again = await place.harness(clock)
    await again.start()
    guest, anna.harness = Guest(again, name="cleo"), again
    await guest.sit(5_000)
    await guest.play()
    await anna.play()
    await again.settle()
    await sequence(again, place.log)
    balance = guest.balance_minor
    await again.stop(ended=False)
    place.restore()
    await place.lapse()
    await place.import_all()
    await place.sign(clock)
    harness = await place.harness(clock)
    await harness.start()
    guest.harness = anna.harness = harness
    session = (await guest.view()).session
    assert (session.mode, session.player, session.balance_minor) == (Mode.DEMO, "cleo", balance)
    with pytest.raises(NotFoundError, match="no launch has this token"):
        await harness.send(OpenSession(harness.request_id(), "", "", "", "", launch_token=early))
    await guest.play()
    for player in (guest, anna):
        await player.end()
        await player.close()
    assert (await guest.view()).session.status is SessionStatus.CLOSED
    await harness.settle()
    await harness.stop()
    reads = await open_reads(place.store)
    try:
        rows = [row async for row in reads.statements_in_order()]
    finally:
        await reads.close()
    done = export_day(place.folder, rows, tmp_path / "books").run(tmp_path / "out")
    assert (done.verdict, done.document["owed"]) == ("clean", {})
    assert done.document["play_money"] == {"rounds": 2, "sessions": 1}
