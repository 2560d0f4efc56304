"""The fan-out: who gets what of a table, encoded how often, and what is left when nobody watches."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest

from rgs.core.errors import InvalidFieldError, NotFoundError
from rgs.core.tables.machine import State
from rgs.core.tables.views import TableView
from rgs.service.tables import feed as feed_module
from rgs.service.tables.mailbox import Mailbox, SeatMark, TableLost
from rgs.store.changes import StoreError
from tests.support.api.tables import (
    OP1,
    OP2,
    TABLE,
    Hall,
    all_of,
    chat_message,
    session_id,
    settle,
    table_view,
    version_in,
)


def is_forgotten(hall: Hall) -> bool:
    return not hall.feed._topics and not hall.feed._listening


# --- tables -----------------------------------------------------------------------------------------------------------


async def test_a_thousand_watchers_get_the_same_bytes_encoded_once() -> None:
    hall = Hall()
    with ExitStack() as open_:
        mailboxes = [open_.enter_context(hall.feed.mailbox(OP1)) for _ in range(1_000)]
        for mailbox in mailboxes:
            assert (await hall.feed.watch_table(mailbox, TABLE)).version == 1
        hall.encoded.clear()
        hall.reads.clear()
        hall.step()
        await settle()
        parcels = [mailbox.take() for mailbox in mailboxes]
        assert version_in(parcels[0]) == 2
        assert len({id(parcel) for parcel in parcels}) == 1
        assert (hall.encoded, hall.reads["table"]) == ([(TABLE, 2)], 1)
        assert all_of(mailboxes[0]) == []
    assert is_forgotten(hall)


async def test_two_operators_get_bytes_of_their_own() -> None:
    hall = Hall()
    with hall.feed.mailbox(OP1) as one, hall.feed.mailbox(OP2) as other:
        for mailbox in (one, other):
            await hall.feed.watch_table(mailbox, TABLE)
        hall.step()
        await settle()
        assert (one.take(), other.take()) == (b"lugano-1 2 seen by op1", b"lugano-1 2 seen by op2")


async def test_who_reads_fast_gets_every_version_and_who_reads_slowly_the_newest() -> None:
    hall = Hall()
    with hall.feed.mailbox(OP1) as fast, hall.feed.mailbox(OP1) as slow:
        for mailbox in (fast, slow):
            await hall.feed.watch_table(mailbox, TABLE)
        seen = []
        for _ in range(50):
            hall.step(State.OPENING)
            await settle()
            seen += all_of(fast)
        assert [version_in(parcel) for parcel in seen] == list(range(2, 52))
        assert [version_in(parcel) for parcel in all_of(slow)] == [51]


async def test_steps_that_are_faster_than_their_reading_are_read_once_more_and_no_further() -> None:
    hall = Hall()
    with hall.feed.mailbox(OP1) as mailbox:
        await hall.feed.watch_table(mailbox, TABLE)
        hall.held.clear()
        hall.step()
        await settle()
        for _ in range(9):
            hall.step()
        hall.reads.clear()
        hall.held.set()
        await settle()
        assert [version_in(parcel) for parcel in all_of(mailbox)] == [11]
        assert hall.reads["table"] == 1


async def test_a_stream_carries_each_statement_of_a_round_once_whatever_it_skips() -> None:
    hall = Hall()
    sent: list[tuple[bytes, bytes]] = []

    def encode(view: TableView) -> bytes:
        sent.append((view.table_round, view.table_deal))
        return b"v"

    hall.feed.encode = encode
    with hall.feed.mailbox(OP1) as fast, hall.feed.mailbox(OP1) as slow:
        for mailbox in (fast, slow):
            await hall.feed.watch_table(mailbox, TABLE)
        steps: list[tuple[dict[str, Any], list[tuple[bytes, bytes]]]] = [
            ({"table_round": b"r"}, [(b"r", b"")]),
            ({"table_deal": b"d"}, [(b"", b"d"), (b"r", b"d")]),  # the slow one has not taken the view before
            ({}, [(b"", b""), (b"r", b"d")]),
        ]
        for changes, expected in steps:
            sent.clear()
            hall.step(State.OPENING, **changes)
            await settle()
            assert sorted(sent) == sorted(expected)
            fast.take()
        slow.take()
        sent.clear()
        hall.step(State.DECIDING)
        await settle()
        assert sent == [(b"", b"")]  # both have all of it now: one encoding again
        sent.clear()
        hall.step(State.FIXED, round_id="01" + "Q" * 24, table_round=b"next", table_deal=b"")
        await settle()
        assert sent == [(b"next", b"")]


async def test_who_has_a_view_already_gets_its_statements_with_the_next() -> None:
    """The stream before may have ended on the way."""
    hall = Hall()
    hall.tables[TABLE] = table_view(table_round=b"r")
    sent: list[bytes] = []

    def encode(view: TableView) -> bytes:
        sent.append(view.table_round)
        return b"v"

    hall.feed.encode = encode
    with hall.feed.mailbox(OP1) as had, hall.feed.mailbox(OP1) as got:
        for mailbox in (had, got):
            assert mailbox.given(await hall.feed.watch_table(mailbox, TABLE))
        got.carry(hall.tables[TABLE])
        hall.step(State.OPENING)
        await settle()
        assert sorted(sent) == [b"", b"r"]


async def test_what_another_process_did_is_found_by_the_scan() -> None:
    hall = Hall()
    hall.tables["other"] = table_view(table_id="other")
    with hall.feed.mailbox(OP1) as mailbox:
        await hall.feed.watch_table(mailbox, TABLE)
        await hall.feed.watch_table(mailbox, "other")
        hall.step(quiet=True)
        await settle()
        assert all_of(mailbox) == []
        hall.reads.clear()
        await hall.feed.scan()
        await settle()
        assert [version_in(parcel) for parcel in all_of(mailbox)] == [2]
        assert hall.reads == {"versions": 1, "table": 1}  # the other table has not moved
        await hall.feed.scan()
        await settle()
        assert all_of(mailbox) == []


async def test_nothing_is_read_while_nobody_watches() -> None:
    hall = Hall()
    hall.step()
    await hall.feed.scan()
    await settle()
    assert not hall.reads


async def test_a_step_while_the_first_view_is_read_is_not_lost() -> None:
    hall = Hall()
    with hall.feed.mailbox(OP1) as mailbox:
        hall.held.clear()
        watching = asyncio.create_task(hall.feed.watch_table(mailbox, TABLE))
        await settle()  # it has read version 1 and waits
        hall.step()
        hall.held.set()
        assert (await watching).version == 1
        await settle()
        assert [version_in(parcel) for parcel in all_of(mailbox)] == [2]


async def test_a_view_that_comes_behind_a_newer_one_is_not_given() -> None:
    mailbox = Mailbox(OP1)
    newer, older = table_view(version=3), table_view(version=2)
    mailbox.put(newer, b"3")
    assert not mailbox.given(older)
    mailbox.put(older, b"2")
    assert all_of(mailbox) == [b"3"]
    mailbox.put(older, b"2")
    assert all_of(mailbox) == []
    # At the same version the time decides: somebody sat down at a box.
    mailbox.put(replace(newer, time_ms=newer.time_ms - 1), b"too old")
    mailbox.put(replace(newer, time_ms=newer.time_ms + 1), b"3 again")
    assert all_of(mailbox) == [b"3 again"]


async def test_a_table_that_looks_different_at_its_version_is_sent_again() -> None:
    hall = Hall()
    sitter = hall.sit(1)
    with hall.feed.mailbox(OP1) as mailbox:
        await hall.feed.watch_table(mailbox, TABLE)
        await hall.feed.watch_session(mailbox, sitter)
        all_of(mailbox)
        hall.signals.moved(TABLE, 1)
        await settle()
        (parcel,) = all_of(mailbox)  # and no seat has changed
        assert version_in(parcel) == 1


async def test_a_failure_is_raised_by_the_scan_and_mended_by_it() -> None:
    hall = Hall()
    with hall.feed.mailbox(OP1) as mailbox:
        await hall.feed.watch_table(mailbox, TABLE)
        hall.failing = StoreError("away")
        hall.step()
        await settle()
        with pytest.raises(StoreError):
            await hall.feed.scan()
        await settle()
        hall.failing = None
        with pytest.raises(StoreError):  # the scan before has tried, too
            await hall.feed.scan()
        await settle()
        assert [version_in(parcel) for parcel in all_of(mailbox)] == [2]
        await hall.feed.scan()


async def test_a_failure_at_the_same_version_is_mended_too() -> None:
    hall = Hall()
    with hall.feed.mailbox(OP1) as mailbox:
        await hall.feed.watch_table(mailbox, TABLE)
        hall.failing = StoreError("away")
        hall.signals.moved(TABLE, 1)
        await settle()
        hall.failing = None
        with pytest.raises(StoreError):
            await hall.feed.scan()
        await settle()
        assert [version_in(parcel) for parcel in all_of(mailbox)] == [1]


async def test_what_one_stream_finds_the_others_get() -> None:
    hall = Hall()
    with hall.feed.mailbox(OP1) as first, hall.feed.mailbox(OP1) as second:
        await hall.feed.watch_table(first, TABLE)
        hall.step(quiet=True)
        assert (await hall.feed.watch_table(second, TABLE)).version == 2
        await settle()
        assert [version_in(parcel) for parcel in all_of(first)] == [2]


async def test_a_table_that_is_taken_from_an_operator_is_lost_for_its_streams_alone() -> None:
    hall = Hall()
    sitter = hall.sit(1)
    with hall.feed.mailbox(OP1) as one, hall.feed.mailbox(OP2) as other:
        await hall.feed.watch_session(one, sitter)
        for mailbox in (one, other):
            await hall.feed.watch_table(mailbox, TABLE)
        all_of(one)
        hall.operators[TABLE] = {"op2"}
        hall.step()
        await settle()
        assert all_of(one) == [TableLost(TABLE), SeatMark(sitter)]
        assert [version_in(parcel) for parcel in all_of(other)] == [2]
        hall.reads.clear()
        await hall.feed.scan()
        await settle()
        assert hall.reads == {"versions": 1}
        with pytest.raises(NotFoundError):
            await hall.feed.watch_table(one, TABLE)
    assert is_forgotten(hall)


async def test_leaving_frees_everything() -> None:
    hall = Hall()
    sitter = hall.sit(1)
    with hall.feed.mailbox(OP1) as mailbox:
        await hall.feed.watch_table(mailbox, TABLE)
        await hall.feed.watch_session(mailbox, sitter)
        hall.step()
        await settle()
        hall.feed.leave_table(mailbox, TABLE)
        hall.feed.leave_table(mailbox, "never watched")
        assert not is_forgotten(hall)
        assert all_of(mailbox) == [SeatMark(sitter)]  # the session is still watched
        hall.step(State.RESULT)
        hall.signals.said(chat_message(1))
        await settle()
        assert all_of(mailbox) == [SeatMark(sitter)]
        hall.feed.leave_session(mailbox, sitter)
        hall.feed.leave_session(mailbox, sitter)
        assert is_forgotten(hall)
        assert not any((mailbox.tables, mailbox.sessions, mailbox._sessions_at, mailbox._newest, mailbox._ready))
        assert not any((mailbox._waiting, mailbox._carried))
        hall.signals.seat(sitter)
        assert all_of(mailbox) == []


async def test_who_asks_for_what_is_not_there_leaves_nothing_behind() -> None:
    hall = Hall()
    foreign = hall.sit(2, "op2")
    with hall.feed.mailbox(OP1) as mailbox:
        for wanted in ("nowhere", TABLE):
            hall.operators[TABLE] = {"op2"}
            with pytest.raises(NotFoundError):
                await hall.feed.watch_table(mailbox, wanted)
        for session in (foreign, session_id(9)):
            with pytest.raises(NotFoundError):
                await hall.feed.watch_session(mailbox, session)
        assert is_forgotten(hall)


async def test_a_stream_watches_so_much_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (feed_module.TABLES_MAX, feed_module.SESSIONS_MAX) == (1_024, 20_000)
    monkeypatch.setattr(feed_module, "TABLES_MAX", 2)
    monkeypatch.setattr(feed_module, "SESSIONS_MAX", 2)
    hall = Hall()
    hall.tables |= {name: table_view(table_id=name) for name in "abc"}
    for nth in (1, 2, 3):
        hall.sit(nth)
    with hall.feed.mailbox(OP1) as mailbox:
        for name in ("a", "b", "a"):
            await hall.feed.watch_table(mailbox, name)
        for nth in (1, 2, 1):
            await hall.feed.watch_session(mailbox, session_id(nth))
        for refused in (hall.feed.watch_table(mailbox, "c"), hall.feed.watch_session(mailbox, session_id(3))):
            with pytest.raises(InvalidFieldError) as caught:
                await refused
            assert (caught.value.metadata["limit"], caught.value.metadata["value"]) == ("2", "3")
        hall.feed.leave_table(mailbox, "a")
        await hall.feed.watch_table(mailbox, "c")


# --- seats ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "is_marked"),
    [
        (State.RESULT, State.BETTING, True),
        (State.BETTING, State.CLOSED, False),
        (State.CLOSED, State.FIXED, False),
        (State.FIXED, State.OPENING, False),
        (State.OPENING, State.DECIDING, True),
        (State.DECIDING, State.DECIDING, True),  # the next phase: other decisions are legal
        (State.DECIDING, State.SETTLING, False),
        (State.SETTLING, State.RESULT, True),
        (State.DECIDING, State.PAUSED, True),
        (State.PAUSED, State.DECIDING, True),
        (State.PAUSED, State.IDLE, True),  # the bets are back
        (State.PAUSED, State.VOIDING, True),
        (State.RESULT, State.IDLE, False),
        (State.IDLE, State.SHUT, False),
    ],
)
async def test_which_steps_mark_the_seats_of_a_table(before: State, after: State, *, is_marked: bool) -> None:
    hall = Hall()
    hall.tables[TABLE] = table_view(state=before)
    sitters = [hall.sit(nth) for nth in (1, 2)]
    with hall.feed.mailbox(OP1) as mailbox:
        await hall.feed.watch_table(mailbox, TABLE)
        for sitter in sitters:
            await hall.feed.watch_session(mailbox, sitter)
        assert all_of(mailbox) == []
        hall.step(after)
        await settle()
        view, *marks = all_of(mailbox)
        assert version_in(view) == 2
        assert marks == ([SeatMark(sitter) for sitter in sitters] if is_marked else [])


async def test_another_round_marks_the_seats_whatever_was_skipped() -> None:
    hall = Hall()
    sitter = hall.sit(1)
    with hall.feed.mailbox(OP1) as mailbox:
        await hall.feed.watch_table(mailbox, TABLE)
        await hall.feed.watch_session(mailbox, sitter)
        hall.step(State.OPENING, quiet=True, round_id="01" + "Q" * 24)
        await hall.feed.scan()
        await settle()
        assert all_of(mailbox)[1:] == [SeatMark(sitter)]


async def test_a_session_alone_is_marked_and_its_table_is_not_sent() -> None:
    hall = Hall()
    sitter = hall.sit(1)
    with hall.feed.mailbox(OP1) as mailbox:
        _, seat = await hall.feed.watch_session(mailbox, sitter)
        assert seat.session_id == sitter
        await hall.feed.scan()  # where the table stood before is not known
        await settle()
        assert all_of(mailbox) == [SeatMark(sitter)]
        hall.step()
        await settle()
        assert all_of(mailbox) == [SeatMark(sitter)]
        assert hall.encoded == []


async def test_a_seat_that_changes_is_marked_once_until_it_is_taken() -> None:
    hall = Hall()
    first, second = hall.sit(1), hall.sit(2)
    with hall.feed.mailbox(OP1) as mailbox, hall.feed.mailbox(OP1) as other:
        for box, sitter in ((mailbox, first), (other, second)):
            await hall.feed.watch_session(box, sitter)
            all_of(box)
        for _ in range(3):
            hall.signals.seat(first)
        assert (all_of(mailbox), all_of(other)) == ([SeatMark(first)], [])


async def test_who_watches_a_table_finds_what_moved_before_for_the_seats_that_are_watched() -> None:
    hall = Hall()
    sitter = hall.sit(1)
    with hall.feed.mailbox(OP1) as seat, hall.feed.mailbox(OP1) as table:
        await hall.feed.watch_session(seat, sitter)
        hall.step(quiet=True)  # by another process, and no scan has found it
        await hall.feed.watch_table(table, TABLE)
        await hall.feed.scan()
        await settle()
        assert all_of(seat) == [SeatMark(sitter)]


@pytest.mark.parametrize("is_coarse", [False, True], ids=["fine-clock", "coarse-clock"])
async def test_a_table_that_moves_while_a_seat_is_read_marks_the_seat(
    monkeypatch: pytest.MonkeyPatch, is_coarse: bool
) -> None:
    if is_coarse:  # all of it happens within one tick
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: 1.0)
    hall = Hall()
    sitter = hall.sit(1)
    with hall.feed.mailbox(OP1) as there, hall.feed.mailbox(OP1) as new:
        await hall.feed.watch_table(there, TABLE)
        watching = hall.feed.watch_session(new, sitter)
        watching.send(None)  # it reads the seat
        hall.step()
        await settle()
        with pytest.raises(StopIteration):
            watching.send(None)
        assert all_of(new) == [SeatMark(sitter)]


# --- waiting ----------------------------------------------------------------------------------------------------------


async def test_a_mailbox_wakes_its_stream_once_it_is_filled() -> None:
    hall = Hall()
    with hall.feed.mailbox(OP1) as mailbox:
        await hall.feed.watch_table(mailbox, TABLE)
        assert mailbox.take() is None
        waiting = mailbox.wait()
        waiting.send(None)
        hall.step()
        await settle()
        with pytest.raises(StopIteration):
            waiting.send(None)
        assert version_in(mailbox.take()) == 2
