"""What another process over the same store has done meanwhile: answered, never done twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from rgs.core.errors import RegulatorUnavailableError, SessionChangedError
from rgs.store.changes import Affair
from tests.house import OPERATOR, Player, open_house, read_reply
from tests.oracles import stored_statements, verify_books


async def test_an_affair_that_is_done_is_not_done_again(tmp_path: Path) -> None:
    """Whoever has read a purchase as pending before it was done finds the session without it."""
    async with open_house(tmp_path) as house:
        anna = Player(house)
        await anna.open()
        request = anna.purchase(10_000)
        house.central_script.plan("buy_participation", "before")
        with pytest.raises(RegulatorUnavailableError):
            await anna.send(request)
        affair = await house.store.pending_affair(anna.session_id)
        assert affair is not None
        first = await anna.send(request)
        with pytest.raises(SessionChangedError):
            await house.affairs.advance(affair)
        assert anna.balance_minor == 10_000
        # Who asked for it gets the answer that it had elsewhere.
        assert await house.sessions._advance(affair) == first
        await anna.leave()
        await house.settle()
    verify_books(tmp_path)


async def test_an_opening_that_was_answered_meanwhile_opens_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same request at another process, from its first look to its answer, between our look and our intent."""
    async with open_house(tmp_path) as house:
        anna = Player(house)
        request = anna.opening()
        begin, answered = house.sessions._begin, []

        async def begin_late(session: object, affair: Affair) -> bool:
            if not answered:
                answered.append(None)
                answered.append(await house.sessions.open(OPERATOR, request))
            return await begin(session, affair)  # type: ignore[arg-type]

        monkeypatch.setattr(house.sessions, "_begin", begin_late)
        reply = await anna.send(request)
        assert reply == answered[1]
        assert [row.kind for row in stored_statements(tmp_path)].count("session_open") == 1
        sessions, _ = await house.sessions.list(OPERATOR, "", open_only=False, page_size=10, page_token="")
        states = {view.session.session_id: view.session.status.value for view in sessions}
        assert states.pop(read_reply(reply)["session"]["session_id"]) == "open"
        assert list(states.values()) == ["closed"]
        await anna.buy()
        await anna.play()
        await anna.leave()
        await house.settle()
    verify_books(tmp_path)
