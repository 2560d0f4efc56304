"""Evenings at tables whose peers fall silent: every book has every seat, and reconciliation finds nothing.

Wallet and regulator are silent before and after their effect, while players buy, while rounds are played, at the end.
One round is void. The watch over returns counts what `certify monitor` counts.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from certification import monitor
from rgs.cli.reconcile_job import JobInputs, _export
from rgs.core.errors import UnavailableError
from rgs.core.replay import KeyBook, Replay, Rulebook
from rgs.core.returns.tally import format_tally
from rgs.core.tables.machine import State
from rgs.service.admin.monitoring import LATE_PERIOD_MS, PATIENCE_MS
from rgs.service.play.requests import BuyParticipation, CloseSession, EndParticipation
from rgs.store.interface import TotalsFilter, TotalsKey
from tests.support.service.harness import NODE_KEY, OPERATOR, ROOT_KEY, ServiceHarness, key_bundle, open_harness
from tests.support.service.harness import read_statement as body_of
from tests.support.service.oracles import stored_statements, verify_books
from tests.support.service.reconciling import Day, day_of
from tests.support.service.table_records import OTHER, SharedEvening, kind_and_body
from tests.support.service.tables import ADMIN, ALWAYS, SECOND_ADMIN, Evening, Sitter
from tests.verifier import independent_verifier

SILENT = ("before", "after")
TABLES = ("uth-online", "uth-seven-box", "uth-lugano")


async def repeated(harness: ServiceHarness, request: Any) -> None:
    """The client asks until it is answered; it is refused as often as the peers are silent."""
    refused = 0
    while True:
        try:
            await harness.send(request)
        except UnavailableError:
            refused += 1
            assert refused < 10
            await harness.settle()
        else:
            return


async def seated(evening: Evening, name: str) -> Sitter:
    """A player whose purchase meets silent peers."""
    harness, sitter = evening.harness, Sitter(evening, name)
    await sitter.open(0)
    harness.wallet_script.plan("debit", *SILENT)
    harness.regulator_script.plan("buy_participation", *SILENT)
    await repeated(harness, BuyParticipation(harness.request_id(), sitter.session_id, 1, 100_000))
    await sitter.join()
    return sitter


async def play_evening(harness: ServiceHarness, table_id: str) -> None:
    """Two settled rounds and a void one, of three players."""
    evening = await Evening(harness, table_id, hours=ALWAYS).open()
    sitters = [await seated(evening, f"player-{number}") for number in range(3)]
    for number in range(3):
        await evening.until(State.IDLE, State.BETTING)
        for sitter in sitters:
            await sitter.look()
            await sitter.bet(ante=1_000, trips=500)
        await evening.until(State.DECIDING)
        await sitters[0].decide("play_4x")
        if number == 1:
            await voided(evening)
        await evening.until(State.RESULT)
        harness.regulator_script.plan("report_stages", *SILENT)
        for _ in SILENT:
            with pytest.raises(UnavailableError):
                await harness.reporting.report_stages()
    for sitter in sitters:
        await sitter.look()
        await sitter.leave()
        harness.wallet_script.plan("credit", *SILENT)
        harness.regulator_script.plan("end_participation", *SILENT)
        await repeated(harness, EndParticipation(harness.request_id(), sitter.session_id))
        await harness.send(CloseSession(harness.request_id(), sitter.session_id))
    harness.regulator_script.forget()
    harness.wallet_script.forget()
    await harness.settle()
    await evening.until(State.IDLE)


async def voided(evening: Evening) -> None:
    harness, table_id = evening.harness, evening.config.id
    round_id = (await evening.row()).table.round_id
    await harness.tables.admin.pause(ADMIN, harness.request_id(), table_id, "DISPLAY_FAULT")
    for admin in (ADMIN, SECOND_ADMIN):
        await harness.tables.admin.void(admin, harness.request_id(), table_id, round_id, "DISPLAY_FAULT")


@pytest.mark.parametrize("table_id", TABLES)
def test_every_book_has_every_seat(tmp_path: Path, table_id: str) -> None:
    home = tmp_path / "home"
    home.mkdir()

    async def played() -> tuple[list[Any], list[Any]]:
        async with open_harness(home) as harness:
            await play_evening(harness, table_id)
            while await harness.services.monitoring.poll():
                pass
            wanted = TotalsFilter("0001-01-01", "9999-12-31")
            return (await harness.services.monitoring.measured())[0], list(
                await harness.store.totals(wanted, after=TotalsKey(), limit=50)
            )

    measured, totals = asyncio.run(played())
    summary = verify_books(home)  # totals, wallet, regulator's stages: each beside the signed finals
    assert (summary.rounds_verified, summary.seats_void) == (3, 3)
    finals = [body_of(row.envelope) for row in stored_statements(home) if row.kind == "seat_final"]
    settled = [final for final in finals if final["status"] == "settled"]
    assert sum(row.staked_minor for row in totals) == sum(int(final["staked_minor"]) for final in settled)
    assert (sum(row.rounds for row in totals), sum(row.void_rounds for row in totals)) == (6, 3)

    day = day_of(home, tmp_path / "day")
    done = day.run(tmp_path / "out")
    assert (done.verdict, done.document["breaks"]) == ("clean", [])
    compared = done.document["compared"]
    assert (compared["seats"], compared["transfers"]) == (9, 6)
    lost = day.copy(tmp_path / "lost")
    lost.change_regulator(lambda rows: [row for row in rows if row != next(r for r in rows if r["kind"] == "stage")])
    assert lost.breaks(tmp_path / "lost-out") != []

    watch = monitor.run([str(day.statements)])
    assert watch.finish() == 0
    (one,) = measured
    counted = watch.rulesets[one.ruleset_sha256].tally
    assert format_tally(counted) == format_tally(one.tally)
    assert (one.tally.life.rounds, one.tally.voids, one.tally.unseen) == (3, 3, 0)
    assert sum(staked for staked, _ in one.tally.money["EUR"].values()) == sum(row.staked_minor for row in totals)


async def test_a_round_of_a_table_is_waited_for_and_then_passed_over(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness:
        watch = harness.services.monitoring
        evening = await SharedEvening(harness).gather()
        await evening.bet()
        await evening.until(State.DECIDING)

        async def counted() -> list[int]:
            while await watch.poll():
                pass
            found, late = await watch.measured()
            return [*(one.tally.life.rounds for one in found), late]

        assert await counted() == [0]
        await harness.tables.admin.pause(ADMIN, harness.request_id(), "uth-online", "DISPLAY_FAULT")
        harness.clock.tick(PATIENCE_MS)
        assert await counted() == [1]
        harness.clock.tick(LATE_PERIOD_MS)
        assert await counted() == [1], "it has not ended"
        await harness.tables.admin.resume(ADMIN, harness.request_id(), "uth-online", "REPAIRED")
        await evening.until(State.RESULT)
        harness.clock.tick(LATE_PERIOD_MS)
        assert await counted() == [1, 0]
        await evening.play()
        assert await counted() == [2, 0]


def test_the_job_of_one_operator_gets_its_own_seats_alone(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()

    async def played() -> SharedEvening:
        async with open_harness(home) as harness:
            evening = await SharedEvening(harness).gather()
            await evening.play()
            await evening.play(*evening.others)
            await evening.break_up()
            await evening.until(State.IDLE)
            return evening

    evening = asyncio.run(played())
    whole = day_of(home, tmp_path / "whole")
    inputs = JobInputs(home / "rgs.db", home / "regulator.db", key_bundle(), NODE_KEY, 1_796_000_000_000, 512)
    for caller, own, others, rounds in (
        (OPERATOR, evening.own, evening.others, 1),
        (OTHER, evening.others, evening.own, 2),
    ):
        day = whole.copy(tmp_path / caller.party)
        asyncio.run(_export(inputs, caller.party, day.statements))
        content = day.statements.read_bytes()
        assert not any(sitter.session_id.encode() in content for sitter in others)
        run, kinds = Replay(KeyBook(key_bundle(), root=ROOT_KEY.keyid), Rulebook()), Counter[str]()
        for line in content.splitlines():
            assert run.feed(line) == []
            assert run.statement is not None
            kinds[run.statement.kind.name] += 1
        assert run.finish() == []
        assert run.summary.rounds_verified == rounds
        assert (kinds["table_seats"], kinds["table_final"], kinds["seat_final"]) == (0, rounds, rounds * 2)
        arguments = [str(day.statements), "--keys", str(day.keys), "--root", ROOT_KEY.keyid]
        assert independent_verifier.main(arguments) == 0
        assert len({body["session_id"] for _, body in read(day) if "session_id" in body}) == len(own)
        done = day.run(tmp_path / f"{caller.party}-out", operator=caller.party, regulator=None, receipts=None)
        assert (done.verdict, done.document["breaks"]) == ("clean", [])


def read(day: Day) -> list[tuple[str, dict[str, Any]]]:
    return [
        kind_and_body(line.split(b'"envelope":', 1)[1].split(b',"pr', 1)[0].split(b',"path"', 1)[0])
        for line in day.statements.read_bytes().splitlines()
    ]
