"""The operator's own id of a session: one session has it, a repeat finds it, and a list is searched by it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rgs.core.errors import InvalidFieldError, NotFoundError, ReferenceUsedError, RegulatorRefusedError
from rgs.service.callers import Caller, Role
from rgs.service.play.history import RoundsFilter
from rgs.service.play.requests import OpenSession
from tests.support.service.harness import OPERATOR, ServiceHarness, open_harness, read_reply
from tests.support.service.oracles import table
from tests.support.service.player import Player

OTHER = Caller("op-2", Role.OPERATOR, "demo")


def opening(harness: ServiceHarness, reference: str = "visit-1", player: str = "anna") -> OpenSession:
    return OpenSession(harness.request_id(), "uth-solo", player, "EUR", reference)


def session_id_of(reply: Any) -> str:
    found: str = read_reply(reply)["session"]["session_id"]
    return found


async def listed(harness: ServiceHarness, reference: str, caller: Caller = OPERATOR, **more: Any) -> list[str]:
    given = {"player": "", "open_only": False, "page_size": 0, "page_token": "", **more}
    views, _ = await harness.sessions.list(caller, **given, operator_reference=reference)
    return [view.session.session_id for view in views]


async def test_a_second_session_with_the_reference_is_refused_and_changes_nothing(
    tmp_path: Path, harness: ServiceHarness
) -> None:
    request = opening(harness)
    first = await harness.send(request)
    before = [table(tmp_path, f"SELECT * FROM {name}") for name in ("sessions", "operations", "statements", "answers")]  # noqa: S608
    for player in ("anna", "bert"):
        with pytest.raises(ReferenceUsedError) as caught:
            await harness.send(opening(harness, player=player))
        assert caught.value.field == "operator_reference"
        assert caught.value.metadata == {"value": "visit-1", "session_id": session_id_of(first)}
    after = [table(tmp_path, f"SELECT * FROM {name}") for name in ("sessions", "operations", "statements", "answers")]  # noqa: S608
    assert after == before
    assert await harness.send(request) == first  # the same request is a repeat, not a second session
    await harness.send(opening(harness), OTHER)  # another operator's references are its own


async def test_one_of_many_that_come_at_once_gets_the_reference(tmp_path: Path, harness: ServiceHarness) -> None:
    requests = [opening(harness, player=f"player-{number}") for number in range(8)]
    outcomes = await asyncio.gather(*map(harness.send, requests), return_exceptions=True)
    opened = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
    assert len(opened) == 1
    refused = [outcome for outcome in outcomes if isinstance(outcome, ReferenceUsedError)]
    assert len(refused) == 7
    assert {error.metadata["session_id"] for error in refused} == {session_id_of(opened[0])}
    assert table(tmp_path, "SELECT count(*) FROM sessions") == [(1,)]


async def test_a_session_that_the_regulator_refused_gives_its_reference_back(
    harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refusing(_: Any) -> Any:
        raise RegulatorRefusedError("no", rejection="REFERENCE_USED")

    request = opening(harness)
    genuine = harness.operations.regulator.open_session
    monkeypatch.setattr(harness.operations.regulator, "open_session", refusing)
    with pytest.raises(RegulatorRefusedError):
        await harness.send(request)
    monkeypatch.setattr(harness.operations.regulator, "open_session", genuine)
    with pytest.raises(RegulatorRefusedError):
        await harness.send(request)  # its own answer, for ever
    opened = session_id_of(await harness.send(opening(harness)))
    assert (await listed(harness, "visit-1"))[0] == opened
    with pytest.raises(ReferenceUsedError):
        await harness.send(opening(harness))


async def test_sessions_and_rounds_are_found_by_the_reference(harness: ServiceHarness) -> None:
    anna = Player(harness)
    await anna.sit()
    await anna.play()
    harness.clock.tick(5_000)
    await anna.play()
    view, _ = await harness.sessions.get(OPERATOR, anna.session_id)
    reference = view.session.operator_reference
    assert await listed(harness, reference) == [anna.session_id]
    assert await listed(harness, reference, OTHER) == []
    assert await listed(harness, "nothing") == []
    history = harness.history
    by_reference, token = await history.list_rounds(OPERATOR, RoundsFilter(operator_reference=reference), 1, "")
    rest, end = await history.list_rounds(OPERATOR, RoundsFilter(operator_reference=reference), 1, token)
    assert [line.round.round_no for line in (*by_reference, *rest)] == [2, 1]
    assert end == ""
    by_session, _ = await history.list_rounds(OPERATOR, RoundsFilter(session_id=anna.session_id), 0, "")
    assert by_session == (*by_reference, *rest)
    await anna.start()  # a round in play is not listed
    assert len((await history.list_rounds(OPERATOR, RoundsFilter(session_id=anna.session_id), 0, ""))[0]) == 2
    for wanted in (RoundsFilter(session_id=anna.session_id), RoundsFilter(operator_reference=reference)):
        with pytest.raises(NotFoundError):
            await history.list_rounds(OTHER, wanted, 0, "")
        auditor = Caller("auditor", Role.AUDITOR, "")
        found, _ = await history.list_rounds(auditor, replace(wanted, operator="op-1"), 0, "")
        assert len(found) == 2
        with pytest.raises(NotFoundError):
            await history.list_rounds(auditor, replace(wanted, operator="op-2"), 0, "")


async def test_what_names_one_session_stands_alone(harness: ServiceHarness) -> None:
    for more in ({"player": "anna"}, {"open_only": True}):
        with pytest.raises(InvalidFieldError, match="operator_reference") as caught:
            await listed(harness, "visit-1", **more)
        assert caught.value.field == next(iter(more))
    with pytest.raises(InvalidFieldError):
        await listed(harness, "a/b")
    one = "01" + "A" * 24
    for wanted, field in (
        (RoundsFilter(session_id=one, player="anna"), "player"),
        (RoundsFilter(session_id=one, operator_reference="visit-1"), "operator_reference"),
        (RoundsFilter(session_id=one, first_day="2026-11-21"), "first_day"),
        (RoundsFilter(operator_reference="visit-1", game="uth-solo"), "game"),
        (RoundsFilter(operator_reference="visit-1", game_code="#12:00:00"), "game_code"),
        (RoundsFilter(session_id="x"), "session_id"),
        (RoundsFilter(operator_reference="a/b"), "operator_reference"),
    ):
        with pytest.raises(InvalidFieldError) as caught:
            await harness.history.list_rounds(OPERATOR, wanted, 0, "")
        assert caught.value.field == field


async def test_an_erased_players_reference_is_free_and_a_repeat_still_finds_the_session(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness:
        request = opening(harness)
        first = session_id_of(await harness.send(request))
        harness.store._db.execute("UPDATE sessions SET operator_reference = '', player = ''")
        assert session_id_of(await harness.send(opening(harness))) != first
        assert session_id_of(await harness.send(request)) == first
