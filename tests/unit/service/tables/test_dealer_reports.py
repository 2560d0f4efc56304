"""What the dealer tells: why a table stands, in the log; each step, to the streams. And when a window begins."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from rgs.core.tables.machine import State
from rgs.core.tables.rows import TableRow
from rgs.service.tables import views as views_module
from rgs.store.changes import Change, SessionRaceError, Signed, StoreError
from tests.support.service.harness import ServiceHarness
from tests.support.service.oracles import replay
from tests.support.service.tables import ALWAYS, Evening


async def test_why_a_table_stands_is_logged_once_and_again_after_it_went_on(
    harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    evening = await Evening(harness, "uth-online").open()
    (sitter,) = await evening.seated("player-1")
    dealer, read = harness.tables.dealer, harness.store.table
    standing: Exception | None = None

    async def broken(table_id: str) -> tuple[TableRow, int | None] | None:
        if standing is not None:
            raise standing
        return await read(table_id)

    monkeypatch.setattr(harness.store, "table", broken)
    logs: list[list[str]] = []
    for standing in (StoreError("away"), StoreError("away"), OSError("full"), None, OSError("full")):
        with capture_logs() as seen:
            dealer.look(evening.config.id)
            if standing is not None:
                with pytest.raises(type(standing)):
                    await dealer.poll()
            else:
                assert await dealer.poll() == 1
        logs.append([line["event"] for line in seen])
    assert logs == [["table_stands"], [], ["table_stands"], [], ["table_stands"]]
    standing = None
    await sitter.bet(ante=1_000)
    await evening.until(State.RESULT)


class Heard:
    """Hears which versions of tables are reported."""

    def __init__(self) -> None:
        self.versions: list[int] = []

    def moved(self, _table_id: str, version: int) -> None:
        self.versions.append(version)

    def seat_changed(self, session_id: str) -> None: ...

    def said(self, message: object) -> None: ...


async def test_every_step_of_a_round_is_told_at_once(harness: ServiceHarness) -> None:
    evening = await Evening(harness, "uth-online").open()
    (sitter,) = await evening.seated("player-1")
    heard = Heard()
    before = (await evening.row()).table.version
    harness.tables.signals.listen(heard)
    await sitter.bet(ante=1_000)
    await evening.until(State.RESULT)
    after = (await evening.row()).table.version
    assert list(dict.fromkeys(heard.versions)) == list(range(before + 1, after + 1))


async def test_no_window_begins_before_the_openings_that_a_process_with_a_faster_clock_has_signed(
    harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    evening = await Evening(harness, "uth-online").open()
    (sitter,) = await evening.seated("player-1")
    await sitter.bet(ante=1_000)
    seats = harness.tables.dealer.seats
    open_seats, opened_ms = seats.open, list[int]()

    async def elsewhere(row: TableRow) -> None:
        harness.clock.tick(2_000)
        opened_ms.append(harness.clock.now_ms())
        await open_seats(row)
        harness.clock.tick(-2_000)

    monkeypatch.setattr(seats, "open", elsewhere)
    await evening.until(State.DECIDING)
    assert len(opened_ms) == 1
    assert (await evening.row()).table.step_ms == opened_ms[0]
    await evening.until(State.RESULT)
    assert replay(harness.folder).failures == 0


async def test_a_table_that_is_due_for_nothing_is_not_looked_at_again_and_again(harness: ServiceHarness) -> None:
    evening = await Evening(harness, "uth-online", hours=ALWAYS).open()
    due_ms = (await evening.row()).due_ms
    harness.store._db.execute("UPDATE tables SET due_ms = ?", (harness.clock.now_ms() - 1,))
    assert [await harness.tables.dealer.poll() for _ in range(3)] == [1, 0, 0]
    assert (await evening.row()).due_ms == due_ms


async def test_seats_that_another_process_opens_and_ends_meanwhile_are_left_to_it(
    harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    evening = await Evening(harness, "uth-online").open()
    for sitter in await evening.seated("player-1", "player-2"):
        await sitter.bet(ante=1_000)
    commit, overtaken = harness.store.commit, list[str]()

    async def late(change: Change) -> tuple[Signed, ...]:
        signed = await commit(change)
        kinds = [draft.kind for draft in change.drafts if draft.kind in ("seat_opening", "seat_final")]
        overtaken.extend(kinds)
        if kinds:
            raise SessionRaceError("the session was changed by another request")
        return signed

    monkeypatch.setattr(harness.store, "commit", late)
    await evening.until(State.RESULT)
    assert sorted(overtaken) == ["seat_final"] * 2 + ["seat_opening"] * 2
    assert replay(harness.folder).failures == 0


async def test_how_many_play_and_since_when_the_window_is_open(harness: ServiceHarness) -> None:
    evening = await Evening(harness, "uth-online").open()
    view = await evening.view()
    assert (view.players_at_least, view.open_ms, view.deadline_ms) == (0, 0, 0)
    sitters = await evening.seated(*(f"player-{number}" for number in range(5)))
    harness.clock.tick(500)
    await sitters[0].bet(ante=1_000)
    view = await evening.view()
    assert (view.players_at_least, view.open_ms) == (5, harness.clock.now_ms())
    assert view.deadline_ms == view.open_ms + evening.config.timers.betting_ms


async def test_what_was_shown_of_rounds_is_remembered_of_the_newest_only(
    harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views_module, "SHOWN_MAX", 2)
    evening = await Evening(harness, "uth-seven-box", early_close=False).open()
    (sitter,) = await evening.seated("player-1")
    views, known = harness.tables.views, list[int]()
    await sitter.bet(ante=1_000)
    await evening.until(State.DECIDING)
    while await evening.state() is not State.RESULT:
        shown = await evening.view()
        known.append(len(views._known))
        assert (await evening.view()).board == shown.board
        await evening.pass_time()
    assert known == [1, 2, 2]
