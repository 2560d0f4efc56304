"""What other processes do at tables without a step: it is found once a second, and marked once."""

from __future__ import annotations

import pytest

from rgs.service.tables import feed as feed_module
from rgs.service.tables.mailbox import SeatMark
from tests.support.api.tables import OP1, TABLE, Hall, all_of, session_id, settle, version_in


async def test_who_sits_down_at_another_process_is_seen_within_a_second() -> None:
    """No step of the table tells of it: the view has the same version, and is newer."""
    hall = Hall(elsewhere=True)
    with hall.feed.mailbox(OP1) as mailbox:
        await hall.feed.watch_table(mailbox, TABLE)
        await hall.feed.scan_seats()
        await settle()
        all_of(mailbox)  # whatever happened before the first look is in it
        for marks in ({("s-1", 1, 3)}, {("s-1", 2, 3)}, {("s-1", 2, 4)}, {("s-2", 2, 4)}, set()):
            hall.marks = {TABLE: frozenset(marks)} if marks else {}
            await hall.feed.scan()
            await settle()
            assert all_of(mailbox) == []
            for sent in ([1], []):
                await hall.feed.scan_seats()
                await settle()
                assert [version_in(parcel) for parcel in all_of(mailbox)] == sent
    hall.reads.clear()
    await hall.feed.scan_seats()
    assert not hall.reads


async def test_a_box_that_changed_before_the_first_look_is_not_lost() -> None:
    hall = Hall(elsewhere=True)
    with hall.feed.mailbox(OP1) as mailbox:
        await hall.feed.watch_table(mailbox, TABLE)  # somebody sits there, who is gone by the first look
        await hall.feed.scan_seats()
        await settle()
        assert [version_in(parcel) for parcel in all_of(mailbox)] == [1]


async def test_a_seat_is_told_of_a_device_that_came_at_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_module, "DEVICES_MAX", 2)
    hall = Hall(elsewhere=True)
    with hall.feed.mailbox(OP1) as mailbox:
        for nth in (1, 2, 3):
            await hall.feed.watch_session(mailbox, hall.sit(nth))
        for nth in (1, 2, 3):
            hall.sit(nth, device_no=2)
        marked: list[list[object]] = []
        for _ in range(4):
            hall.reads.clear()
            await hall.feed.scan_seats()
            assert hall.reads["devices"] <= 2
            marked.append([parcel.session_id for parcel in all_of(mailbox) if isinstance(parcel, SeatMark)])
        assert marked == [[session_id(1), session_id(2)], [session_id(3)], [], []]
        hall.close(session_id(2))
        for _ in range(2):
            await hall.feed.scan_seats()
        assert [parcel.session_id for parcel in all_of(mailbox) if isinstance(parcel, SeatMark)] == [session_id(2)]
        hall.feed.leave_session(mailbox, session_id(1))
        hall.reads.clear()
        for _ in range(4):
            await hall.feed.scan_seats()
        assert set(hall.feed._devices) == {session_id(2), session_id(3)}


async def test_a_session_without_a_seat_is_not_marked() -> None:
    hall = Hall(elsewhere=True)
    with hall.feed.mailbox(OP1) as mailbox:
        await hall.feed.watch_session(mailbox, hall.sit(1, device_no=0, ended="NOT_SEATED"))
        for _ in range(2):
            await hall.feed.scan_seats()
        assert [parcel for parcel in all_of(mailbox) if isinstance(parcel, SeatMark)] == []


async def test_without_other_processes_no_seat_is_looked_for() -> None:
    hall = Hall()
    with hall.feed.mailbox(OP1) as mailbox:
        await hall.feed.watch_table(mailbox, TABLE)
        hall.reads.clear()
        await hall.feed.scan_seats()
        assert not hall.reads


async def test_who_watches_a_session_before_it_sits_down_elsewhere_is_shown_the_seat() -> None:
    hall = Hall(elsewhere=True)
    with hall.feed.mailbox(OP1) as mailbox:
        await hall.feed.watch_session(mailbox, hall.sit(1, device_no=0))
        await hall.feed.scan_seats()
        await settle()
        all_of(mailbox)  # the first look marks whatever happened before it
        await hall.feed.scan_seats()
        assert all_of(mailbox) == []
        hall.sit(1, device_no=1)
        await hall.feed.scan_seats()
        assert SeatMark(session_id(1)) in all_of(mailbox)
