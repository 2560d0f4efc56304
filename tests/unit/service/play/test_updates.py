"""Who hears of a change: every stream that follows the session but the one that made it; in this process and others."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from rgs.core.errors import InvalidFieldError, NotFoundError
from rgs.core.sessions import Session
from rgs.service.callers import Caller, Role
from rgs.service.play import updates as module
from rgs.service.play.updates import Mailbox, Update, Updates
from rgs.store.changes import Change
from tests.support.store.shelf import dealt, session, ulid

ANNA = Caller("op-1", Role.OPERATOR, "demo")


class Shelf:
    """Sessions as other processes may have moved them."""

    def __init__(self, count: int = 3) -> None:
        self.sessions = {ulid(number): session(number) for number in range(1, count + 1)}
        self.rounds: list[Any] = []
        self.in_play: Any = None
        self.looked_at: list[Sequence[str]] = []
        self.updates = Updates(store=self, session=self.read, view=lambda round_, final, offer: (round_, final))  # type: ignore[arg-type,return-value]

    async def session_versions(self, session_ids: Sequence[str]) -> dict[str, int]:
        self.looked_at.append(session_ids)
        return {one: self.sessions[one].version for one in session_ids if one in self.sessions}

    async def rounds_of_session(self, session_id: str, *, before_no: int, limit: int) -> list[Any]:
        return [(1, one) for one in self.rounds if one.session_id == session_id and one.round_no < before_no][:limit]

    async def round_envelopes(self, round_id: str, seat_no: int = 1) -> tuple[bytes, bytes]:
        return b"opening", b"final"

    async def read(self, caller: Caller, session_id: str) -> Any:
        if session_id not in self.sessions or caller != ANNA:
            raise NotFoundError("no session")
        return SimpleNamespace(session=self.sessions[session_id], open_round=self.in_play), b"in play"

    def move(self, number: int) -> Session:
        """By whoever: a version more."""
        read = self.sessions[ulid(number)]
        moved = self.sessions[ulid(number)] = replace(read, version=read.version + 1)
        return moved

    def commit(self, number: int) -> None:
        """By this process."""
        self.updates.committed(Change(session=self.move(number)))


def marks(mailbox: Mailbox) -> list[str]:
    found = []
    while session_id := mailbox.take():
        found.append(session_id)
    return found


async def test_everybody_hears_but_the_stream_that_asked() -> None:
    shelf = Shelf()
    one, two, other = Mailbox(ANNA), Mailbox(ANNA), Mailbox(ANNA)
    for mailbox in (one, two):
        await shelf.updates.watch(mailbox, ulid(1))
    await shelf.updates.watch(other, ulid(2))
    with shelf.updates.asking(one, ulid(1)):
        shelf.commit(1)
    assert [marks(mailbox) for mailbox in (one, two, other)] == [[], [ulid(1)], []]
    shelf.commit(1)  # a unary call, or the server itself
    shelf.commit(1)
    shelf.updates.committed(Change())
    assert [marks(mailbox) for mailbox in (one, two, other)] == [[ulid(1)], [ulid(1)], []]
    await shelf.updates.scan()
    assert [marks(mailbox) for mailbox in (one, two, other)] == [[], [], []], "all of it is known here"
    shelf.move(1)  # another process
    await shelf.updates.scan()
    assert [marks(mailbox) for mailbox in (one, two, other)] == [[ulid(1)], [ulid(1)], []]
    await shelf.updates.scan()
    assert marks(one) == []


async def test_what_a_task_of_another_request_commits_is_news() -> None:
    shelf = Shelf()
    mailbox = Mailbox(ANNA)
    await shelf.updates.watch(mailbox, ulid(1))

    async def elsewhere() -> None:
        shelf.commit(1)

    other = asyncio.create_task(elsewhere())  # made before the stream asks: its context is its own
    with shelf.updates.asking(mailbox, ulid(1)):
        await other
    assert marks(mailbox) == [ulid(1)]


async def test_a_stream_knows_what_it_played_itself_and_reads_what_it_cannot_know() -> None:
    shelf = Shelf()
    mailbox = Mailbox(ANNA)
    with shelf.updates.asking(mailbox, ulid(1)):
        shelf.commit(1)
    shelf.updates.played(mailbox, ulid(1))
    with shelf.updates.asking(mailbox, ulid(2)):
        shelf.updates.seen(shelf.sessions[ulid(2)])  # as GetRound does
    shelf.updates.played(mailbox, ulid(2))
    shelf.updates.played(mailbox, ulid(3))  # a repeat: the answer was stored, and the session may have moved since
    await shelf.updates.scan()
    assert marks(mailbox) == [ulid(3)]


async def test_a_look_between_a_commit_and_its_signal_takes_it_for_nobody_elses() -> None:
    shelf = Shelf()
    one, two = Mailbox(ANNA), Mailbox(ANNA)
    for mailbox in (one, two):
        await shelf.updates.watch(mailbox, ulid(1))
    with shelf.updates.asking(one, ulid(1)):
        moved = shelf.move(1)
        await shelf.updates.scan()  # durable, and not told of yet
        assert marks(one) == marks(two) == []
        shelf.updates.committed(Change(session=moved))
    await shelf.updates.scan()
    assert (marks(one), marks(two)) == ([], [ulid(1)])
    with shelf.updates.asking(one, ulid(1)):
        shelf.move(1)  # by another process
        await shelf.updates.scan()
        assert marks(one) == []
    await shelf.updates.scan()
    assert (marks(one), marks(two)) == ([ulid(1)], [ulid(1)])
    assert not shelf.updates._in_hand


async def test_only_what_was_played_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SESSIONS_MAX", 2)
    shelf = Shelf(6)
    mailbox = Mailbox(ANNA)
    await shelf.updates.watch(mailbox, ulid(1))
    assert shelf.updates.played(mailbox, ulid(2)) == ""
    assert shelf.updates.played(mailbox, ulid(1)) == ""  # it stays requested
    assert shelf.updates.played(mailbox, ulid(3)) == ulid(2)
    await shelf.updates.watch(mailbox, ulid(4))
    with pytest.raises(InvalidFieldError, match="watches 2 sessions") as caught:
        await shelf.updates.watch(mailbox, ulid(5))
    assert (caught.value.field, caught.value.metadata["limit"]) == ("watch_session", "2")
    await shelf.updates.watch(mailbox, ulid(4))  # again is no more
    assert set(mailbox.sessions) == {ulid(1), ulid(3), ulid(4)}
    assert shelf.updates.played(mailbox, ulid(5)) == ulid(3)
    shelf.updates.leave(mailbox, ulid(5))
    assert shelf.updates.played(mailbox, ulid(6)) == "", "nothing may make room: it is not followed"
    assert set(mailbox.sessions) == {ulid(1), ulid(4)}


async def test_nothing_is_left_of_a_stream_that_has_ended_or_was_refused() -> None:
    shelf = Shelf()
    with shelf.updates.mailbox(ANNA) as mailbox:
        await shelf.updates.watch(mailbox, ulid(1))
        shelf.updates.played(mailbox, ulid(2))
        with pytest.raises(NotFoundError):
            await shelf.updates.watch(mailbox, ulid(9))
        assert set(mailbox.sessions) == {ulid(1), ulid(2)}
        shelf.commit(2)
        shelf.updates.leave(mailbox, ulid(2))
        assert marks(mailbox) == []
    assert (shelf.updates._followers, shelf.updates._versions) == ({}, {})
    await shelf.updates.scan()
    assert shelf.looked_at == []
    stranger = Mailbox(Caller("op-2", Role.OPERATOR, "demo"))
    with pytest.raises(NotFoundError):
        await shelf.updates.watch(stranger, ulid(1))
    shelf.commit(1)
    assert marks(stranger) == []


async def test_a_look_is_bounded_and_everything_has_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SCAN_MAX", 2)
    shelf = Shelf(5)
    mailbox = Mailbox(ANNA)
    for number in range(1, 6):
        await shelf.updates.watch(mailbox, ulid(number))
        shelf.move(number)
    for _ in range(3):
        await shelf.updates.scan()
    assert max(map(len, shelf.looked_at)) == 2
    assert marks(mailbox) == [ulid(number) for number in range(1, 6)]


async def test_a_session_that_is_left_during_a_look_stays_left() -> None:
    shelf = Shelf()
    mailbox = Mailbox(ANNA)
    await shelf.updates.watch(mailbox, ulid(1))
    genuine = shelf.session_versions

    async def leaving(session_ids: Sequence[str]) -> dict[str, int]:
        shelf.updates.leave(mailbox, ulid(1))
        return await genuine(session_ids)

    shelf.session_versions = leaving  # type: ignore[method-assign]
    shelf.move(1)
    await shelf.updates.scan()
    assert marks(mailbox) == []
    assert shelf.updates._versions == {}


async def test_what_an_update_shows() -> None:
    shelf = Shelf()
    mailbox = Mailbox(ANNA)

    async def read() -> Update:
        return await shelf.updates.read(mailbox, ulid(1))

    assert (await read()).last_round is None  # nothing was played yet
    shelf.sessions[ulid(1)] = replace(session(1), round_no=2)
    ended = replace(dealt(session(1), 7), round_no=2, end_ms=9)
    shelf.rounds = [ended]
    shown: Any = await read()
    assert (shown.last_round, shown.opening, shown.final) == ((ended, b"final"), b"opening", b"final")
    shelf.rounds = [replace(ended, end_ms=0)]  # dealt since the session was read
    shown = await read()
    assert (shown.last_round, shown.opening, shown.final) == (None, b"", b"")
    shelf.in_play = object()
    shown = await read()
    assert (shown.last_round, shown.opening, shown.final) == (None, b"in play", b"")
    shelf.in_play, shelf.rounds = None, [ended]
    shelf.sessions[ulid(1)] = replace(shelf.sessions[ulid(1)], table_id="table")
    assert (await read()).last_round is None  # a seat is seen with its table


async def test_a_mark_waits_once_and_reading_takes_it() -> None:
    shelf = Shelf()
    mailbox = Mailbox(ANNA)
    await shelf.updates.watch(mailbox, ulid(1))
    await shelf.updates.watch(mailbox, ulid(2))
    for _ in range(50):
        shelf.commit(1)
    shelf.commit(2)
    await asyncio.wait_for(mailbox.wait(), 1)
    await shelf.updates.read(mailbox, ulid(1))
    assert marks(mailbox) == [ulid(2)]
    assert mailbox.take() == ""
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(mailbox.wait(), 0.01)
