"""The daily duties at the test regulator: a day's totals are those of its entries, modules are kept as told."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from rgs.adapters.embedded.regulator import DAY_MS, EmbeddedRegulator
from rgs.core.errors import IdempotencyConflictError, InvalidFieldError, RegulatorRefusedError
from rgs.core.times import format_date
from rgs.ports.regulator import DayAlignment, DayTotals, SoftwareModule
from rgs.store.regulator import RegulatorStore
from tests.support.adapters.books import NOTHING, NOW_MS, Played, counting_ids, modules

TODAY = DayTotals(1, 500, 2, 60, 0, 1, 440)


@pytest.fixture
async def day(tmp_path: Path) -> AsyncIterator[Played]:
    """The day after it was played, everything told."""
    store = RegulatorStore(tmp_path / "regulator.sqlite")
    played = Played(EmbeddedRegulator(store, counting_ids(), lambda: NOW_MS + DAY_MS), store)
    await played.play()
    await played.end()
    yield played
    store.verify()
    await played.regulator.close()


def alignment(played: Played, totals: DayTotals, **other: str) -> DayAlignment:
    named = {"operator": "op", "currency": "EUR", "day": format_date(NOW_MS)} | other
    return DayAlignment(played.number(), totals=totals, **named)


async def test_a_day_is_aligned_by_what_its_entries_come_to(day: Played) -> None:
    for name, value in asdict(TODAY).items():
        with pytest.raises(RegulatorRefusedError) as refused:
            await day.regulator.align_day(alignment(day, replace(TODAY, **{name: value + 1})))
        assert refused.value.metadata["rejection"] == "TOTALS_MISMATCH"
        assert refused.value.metadata["limit"] == str(value)
    message = alignment(day, TODAY)
    first = await day.regulator.align_day(message)
    assert await day.regulator.align_day(message) == first
    with pytest.raises(IdempotencyConflictError):
        await day.regulator.align_day(replace(message, operator="other"))


async def test_totals_are_of_one_operator_currency_and_day(day: Played) -> None:
    for other in ({"operator": "op-2"}, {"currency": "USD"}, {"day": format_date(NOW_MS - DAY_MS)}):
        await day.regulator.align_day(alignment(day, NOTHING, **other))


async def test_a_day_may_be_aligned_again_when_a_late_purchase_has_changed_it(day: Played) -> None:
    await day.regulator.align_day(alignment(day, TODAY))
    await day.buy(player="bert", reference="participation-2")
    await day.regulator.align_day(alignment(day, replace(TODAY, purchases=2, bought_minor=1000)))
    numbers = [entry.number for entry in day.store.entries() if entry.kind == "alignment"]
    assert numbers == [1, 2]


async def test_modules_are_kept_as_told(day: Played) -> None:
    for _ in range(2):
        await day.regulator.report_modules(modules(day.number()))
    entry = list(day.store.entries())[-1]
    assert (entry.kind, entry.subject, entry.number) == ("modules", "node1", 2)
    assert json.loads(entry.body)["request"]["modules"][0] == {
        "name": "rng", "sha1": "b" * 40, "sha256": "a" * 64, "version": "1.0.0"
    }  # fmt: skip


@pytest.mark.parametrize(
    "bad",
    [
        (),
        (SoftwareModule("rng", "1", "a" * 64),) * 2,
        (SoftwareModule("rng", "1", "A" * 64),),
        (SoftwareModule("rng", "1", "a" * 64, "b" * 39),),
        (SoftwareModule("r n g", "1", "a" * 64),),
        (SoftwareModule("rng", "", "a" * 64),),
    ],
)
async def test_malformed_modules_are_refused(day: Played, bad: tuple[SoftwareModule, ...]) -> None:
    before = day.state()
    with pytest.raises(InvalidFieldError) as refused:
        await day.regulator.report_modules(replace(modules(day.number()), modules=bad))
    assert refused.value.field == "modules"
    assert day.state() == before
