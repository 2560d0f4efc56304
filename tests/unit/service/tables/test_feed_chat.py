"""Lines of chat in the fan-out: to whom they go, how many wait, and those of other processes."""

from __future__ import annotations

from dataclasses import replace

from rgs.core.ids import format_ulid
from rgs.service.tables.feed import LATE_MS
from rgs.service.tables.mailbox import LINES_MAX
from tests.support.api.tables import OP1, OP2, TABLE, Hall, all_of, chat_message
from tests.support.clocks import NOW_MS


async def test_a_line_goes_to_who_watches_the_table_and_names_own_players_only() -> None:
    hall = Hall()
    sitter = hall.sit(1)
    with hall.feed.mailbox(OP1) as one, hall.feed.mailbox(OP2) as other, hall.feed.mailbox(OP1) as seat:
        for mailbox in (one, other):
            await hall.feed.watch_table(mailbox, TABLE)
        await hall.feed.watch_session(seat, sitter)
        all_of(seat)
        hall.signals.said(chat_message(1))
        hall.signals.said(chat_message(2, table_id="elsewhere"))
        assert (all_of(one), all_of(other), all_of(seat)) == ([b"line 1 player-1"], [b"line 1 "], [])


async def test_who_does_not_read_keeps_the_newest_lines() -> None:
    hall = Hall()
    with hall.feed.mailbox(OP1) as mailbox:
        await hall.feed.watch_table(mailbox, TABLE)
        for nth in range(1, LINES_MAX + 11):
            hall.signals.said(chat_message(nth))
            if nth == 5:
                assert mailbox.take() == b"line 1 player-1"
        lines = [parcel.split()[1] for parcel in all_of(mailbox) if isinstance(parcel, bytes)]
        assert lines == [str(nth).encode() for nth in range(11, LINES_MAX + 11)]
        assert not mailbox._lines


async def test_a_line_that_is_erased_is_sent_again_or_replaced_where_it_waits() -> None:
    hall = Hall(elsewhere=True)
    line = replace(chat_message(1), message_id=format_ulid(NOW_MS, bytes(10)))
    erased = replace(line, text="", player="", nickname="")
    with hall.feed.mailbox(OP1) as mailbox:
        await hall.feed.watch_table(mailbox, TABLE)
        for message in (line, erased):
            hall.signals.said(message)
        assert all_of(mailbox) == [b" "]
        hall.signals.said(erased)
        await hall.feed.scan()
        assert all_of(mailbox) == [b" "]
        for nth in range(1, LINES_MAX + 11):
            hall.signals.said(chat_message(nth))
        assert len(all_of(mailbox)) == LINES_MAX


async def test_lines_of_other_processes_are_found_once_and_in_order() -> None:
    hall = Hall(elsewhere=True)

    def at(age_ms: int, nth: int) -> str:
        return format_ulid(NOW_MS - age_ms, bytes([0] * 9 + [nth]))

    with hall.feed.mailbox(OP1) as mailbox:
        await hall.feed.watch_table(mailbox, TABLE)
        ours = replace(chat_message(1), message_id=at(900, 1))
        theirs = [replace(chat_message(nth), message_id=at(1_000 - nth, nth)) for nth in (2, 3)]
        late = replace(chat_message(4), message_id=at(LATE_MS + 1, 4))
        hall.signals.said(ours)
        hall.chat = [late, *theirs, ours]
        for _ in range(2):
            await hall.feed.scan()
        assert all_of(mailbox) == [b"line 1 player-1", b"line 2 player-2", b"line 3 player-3"]


async def test_ids_of_lines_that_are_too_old_to_be_found_again_are_forgotten() -> None:
    hall = Hall(elsewhere=True)
    with hall.feed.mailbox(OP1) as mailbox:
        await hall.feed.watch_table(mailbox, TABLE)
        for age_ms in (LATE_MS + 1, LATE_MS - 1):
            hall.signals.said(replace(chat_message(1), message_id=format_ulid(NOW_MS - age_ms, bytes(10))))
        await hall.feed.scan()
        assert hall.feed._heard == {format_ulid(NOW_MS - LATE_MS + 1, bytes(10))}
