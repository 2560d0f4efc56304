"""Stage reports to the regulator: queued with the final, told in order, exactly once in effect, whoever is silent."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from rgs.core.errors import UnavailableError
from tests.support.service.harness import ServiceHarness
from tests.support.service.oracles import verify_books
from tests.support.service.player import Player
from tests.unit.service.play.test_operations import before_ending


@pytest.mark.parametrize("silent", [(), ("before",), ("after",), ("after", "before", "after")])
async def test_stages_are_told_in_order_and_once(
    tmp_path: Path, harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch, silent: tuple[str, ...]
) -> None:
    monkeypatch.setattr("rgs.service.regulator.reports.REPORT_BATCH", 3)
    players = [Player(harness, name=name) for name in ("anna", "bert")]
    for player in players:
        await player.sit()
    for _ in range(4):
        for player in players:
            await player.play()
    harness.regulator_script.plan("report_stages", *silent)
    for _ in silent:
        with pytest.raises(UnavailableError):
            await harness.reporting.report_stages()
    assert len(await harness.store.reports(100)) == 8
    assert await harness.reporting.report_stages() == 8
    assert await harness.reporting.report_stages() == 0
    entries = [entry for entry in harness.regulator_store.entries() if entry.kind == "stage"]
    assert len(entries) == 8
    for subject in {entry.subject for entry in entries}:
        assert [entry.number for entry in entries if entry.subject == subject] == [1, 2, 3, 4]
    for player in players:
        await player.leave()
    verify_books(tmp_path)


async def test_reporting_beside_an_end_tells_nothing_twice(
    tmp_path: Path, harness: ServiceHarness, anna: Player
) -> None:
    request = await before_ending(anna)
    await asyncio.gather(harness.reporting.report_stages(), anna.send(request), harness.reporting.report_stages())
    await anna.close()
    verify_books(tmp_path)


async def test_a_report_that_was_told_but_not_forgotten_is_told_again(
    tmp_path: Path, harness: ServiceHarness, anna: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    await before_ending(anna)
    genuine = harness.store.forget_reports

    async def fails(_row_ids: object) -> None:
        raise UnavailableError("full")

    monkeypatch.setattr(harness.store, "forget_reports", fails)
    with pytest.raises(UnavailableError):
        await harness.reporting.report_stages()
    monkeypatch.setattr(harness.store, "forget_reports", genuine)
    assert await harness.reporting.report_stages() == 2
    await anna.leave()
    verify_books(tmp_path)
