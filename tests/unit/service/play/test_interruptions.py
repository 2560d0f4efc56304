"""Interrupted rounds: left longer than the jurisdiction allows, they end as a player's default decisions would."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from rgs.core.errors import InvalidFieldError, RoundOpenError
from rgs.core.views import RoundChangedError
from rgs.service.callers import Caller, Role
from rgs.service.play.notices import Notice
from rgs.service.play.sessions import OpenRound
from tests.support.clocks import ManualClock
from tests.support.service.admins import AdminOf
from tests.support.service.harness import ServiceHarness, open_harness, read_statement
from tests.support.service.oracles import stored_statements, verify_books
from tests.support.service.player import Player

FINISH_MS = 600_000
WAYS = [("uth-solo", ()), ("uth-solo", ("check",)), ("uth-solo", ("check", "check")), ("casino-holdem", ())]
DEFAULTS = {"uth-solo": ("check", "check", "fold"), "casino-holdem": ("fold",)}
AUDITOR = Caller("audit-1", Role.AUDITOR, "")


def finals(folder: Path) -> list[dict[str, Any]]:
    return [read_statement(row.envelope) for row in stored_statements(folder) if row.kind == "round_final"]


@pytest.mark.parametrize(("game", "actions"), WAYS)
async def test_a_round_is_finished_by_rule_wherever_it_stands(
    tmp_path: Path, game: str, actions: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_harness(tmp_path) as harness:
        anna, bert = Player(harness, game=game), Player(harness, game=game, name="bert")
        for player in (anna, bert):
            await player.sit()
        queue: asyncio.Queue[Notice] = asyncio.Queue(8)
        harness.services.notices.listen(anna.session_id, queue)
        await anna.start()
        for action in actions:
            harness.clock.tick(1000)
            await anna.act(action)
        left_ms = harness.clock.now_ms()
        harness.clock.tick(FINISH_MS - 1)
        assert await harness.services.interruptions.finish_due() == 0
        harness.clock.tick(1)
        assert await harness.services.interruptions.finish_due() == 1
        assert await harness.services.interruptions.finish_due() == 0
        (notice,) = [queue.get_nowait() for _ in range(queue.qsize())]
        assert (notice.round_id, notice.status.value, notice.malfunction_code) == (
            anna.round["round_id"],
            "settled",
            "",
        )
        # The client goes on from there.
        with pytest.raises(RoundChangedError) as moved:
            await anna.act("fold")
        assert moved.value.round is not None
        assert (moved.value.round.status.value, moved.value.round.phase.value) == ("settled", "showdown")
        view, opening = await harness.sessions.get(anna.caller, anna.session_id)
        assert (view.open_round, opening) == (None, b"")
        anna.session["next_round_no"] = 2
        # The same deal, played to the same end by a player: the same settlement.
        (body,) = finals(tmp_path)
        round_ = await harness.store.round(anna.round["round_id"])
        assert round_ is not None
        taken = [(action["action"], action["by"], action["party"]) for action in body["actions"]]
        by_player = [(action, "player", "op-1") for action in actions]
        assert taken == by_player + [(action, "rule", "rgs") for action in DEFAULTS[game][len(actions) :]]
        assert {action["time"] for action in body["actions"][len(actions) :]} == {body["time"]}
        assert round_.end_ms == left_ms + FINISH_MS
        monkeypatch.setattr(harness.instance, "draw", _same(harness, bytes.fromhex(body["transcript"])))
        await bert.start()
        for action in DEFAULTS[game]:
            await bert.act(action)
        same = finals(tmp_path)[1]
        for name in ("cards", "deck", "outcome", "settlement", "staked_minor", "returned_minor"):
            assert same[name] == body[name], name
        monkeypatch.undo()
        events = [read_statement(row.envelope) for row in stored_statements(tmp_path) if row.kind == "event"]
        (event,) = [event for event in events if event["code"] == "ROUND_FINISHED_BY_RULE"]
        assert (event["round_id"], event["session_id"]) == (anna.round["round_id"], anna.session_id)
        harness.clock.tick(2000)
        await anna.play()
        for player in (anna, bert):
            await player.leave()
        await harness.settle()
    verify_books(tmp_path)


def _same(harness: ServiceHarness, transcript: bytes) -> Any:
    """The generator draws a deck that was drawn before; nobody honest does that."""
    genuine = harness.instance.draw

    async def draw() -> Any:
        drawn = await genuine()
        return type(drawn)(**{**{name: getattr(drawn, name) for name in drawn.__slots__}, "transcript": transcript})

    return draw


async def test_a_round_left_by_a_dead_process_is_finished_by_the_next(tmp_path: Path) -> None:
    clock = ManualClock()
    harness = ServiceHarness(tmp_path, clock=clock)
    await harness.start()
    anna = Player(harness)
    await anna.sit()
    await anna.start()
    await anna.act("check")
    await harness.stop(ended=False)
    clock.tick(FINISH_MS)
    async with open_harness(tmp_path, clock=clock) as after:
        assert await after.services.interruptions.finish_due() == 1
        anna.harness = after
        await anna.leave()
        await after.settle()
    verify_books(tmp_path)


async def test_closing_names_the_round_that_is_open(harness: ServiceHarness, anna: Player) -> None:
    await anna.sit()
    await anna.start()
    for call in (anna.end, anna.close):
        with pytest.raises(RoundOpenError) as caught:
            await call()
        assert caught.value.metadata["round_id"] == anna.round["round_id"]


async def test_a_paused_round_is_not_finished_and_has_its_time_again_when_resumed(
    tmp_path: Path, harness: ServiceHarness, anna: Player
) -> None:
    await anna.sit()
    await anna.start()
    admin = AdminOf(harness)
    await admin.pause(anna.round["round_id"])
    harness.clock.tick(3 * FINISH_MS)
    assert await harness.services.interruptions.finish_due() == 0
    await admin.resume(anna.round["round_id"])
    assert await harness.services.interruptions.finish_due() == 0
    harness.clock.tick(FINISH_MS - 1)
    assert await harness.services.interruptions.finish_due() == 0
    harness.clock.tick(1)
    assert await harness.services.interruptions.finish_due() == 1
    await anna.leave()
    verify_books(tmp_path)


async def test_a_round_whose_deck_cannot_be_opened_holds_up_no_other(
    harness: ServiceHarness, anna: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    bert = Player(harness, name="bert")
    for player in (anna, bert):
        await player.sit()
        await player.start()
    monkeypatch.setattr("rgs.service.play.interruptions.FINISH_BATCH", 1)
    harness.clock.tick(FINISH_MS)
    lost = await harness.store.round(anna.round["round_id"])
    assert lost is not None
    genuine = harness.services.decks.open

    def opens(round_: Any) -> Any:
        if round_.round_id == lost.round_id:
            harness.instance.sealer.unseal(lost.instance, lost.draw_no, lost.deal, b"\x09")
        return genuine(round_)

    monkeypatch.setattr(harness.services.decks, "open", opens)
    assert await harness.services.interruptions.finish_due() == 1
    rounds, _ = await harness.sessions.list_open_rounds(AUDITOR, 0, "")
    assert [open_.round.round_id for open_ in rounds] == [lost.round_id]


# --- what is open -----------------------------------------------------------------------------------------------------


async def test_open_rounds_are_listed_oldest_first_with_their_age(harness: ServiceHarness) -> None:
    players = []
    for number in range(5):
        player = Player(
            harness, name=f"player-{number}", caller=Caller("op-2" if number == 2 else "op-1", Role.OPERATOR, "demo")
        )
        await player.sit()
        await player.start()
        players.append(player)
        harness.clock.tick(1000)
    await players[1].act("check")
    await AdminOf(harness).pause(players[3].round["round_id"])
    now_ms = harness.clock.now_ms()
    ids = [player.round["round_id"] for player in players]
    for caller, which in (
        (AUDITOR, [0, 1, 2, 3, 4]),
        (players[0].caller, [0, 1, 3, 4]),
        (players[2].caller, [2]),
        (Caller("op-3", Role.OPERATOR, "demo"), []),
    ):
        for size in (1, 2, 100):
            found: list[OpenRound] = []
            token, pages = "", 0
            while True:
                rounds, token = await harness.sessions.list_open_rounds(caller, size, token)
                assert len(rounds) <= size
                found += rounds
                pages += 1
                if not token:
                    break
            assert [open_.round.round_id for open_ in found] == [ids[number] for number in which]
            assert pages == max(1, -(-len(which) // size))
    idle = [5000, 0, 3000, 2000, 1000]
    rounds, _ = await harness.sessions.list_open_rounds(AUDITOR, 0, "")
    assert [open_.idle_ms for open_ in rounds] == idle
    finish = [now_ms - age + FINISH_MS for age in idle]
    finish[3] = 0
    assert [open_.finish_ms for open_ in rounds] == finish
    await players[0].finish_round()
    rounds, _ = await harness.sessions.list_open_rounds(AUDITOR, 0, "")
    assert [open_.round.round_id for open_ in rounds] == ids[1:]


@pytest.mark.parametrize(("size", "token"), [(-1, ""), (10**6, ""), (0, "!")])
async def test_pages_of_open_rounds_that_are_none(harness: ServiceHarness, size: int, token: str) -> None:
    with pytest.raises(InvalidFieldError):
        await harness.sessions.list_open_rounds(AUDITOR, size, token)


async def test_rounds_begun_just_now_cost_one_page(
    harness: ServiceHarness, anna: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rgs.service.play.interruptions.FINISH_BATCH", 2)
    await anna.sit()
    await anna.start()
    harness.clock.tick(FINISH_MS)
    for number in range(6):
        player = Player(harness, name=f"player-{number}")
        await player.sit()
        await player.start()
    pages = []
    genuine = harness.store.open_rounds

    async def counted(operator: str, *, after: int, limit: int) -> Any:
        pages.append(after)
        return await genuine(operator, after=after, limit=limit)

    monkeypatch.setattr(harness.store, "open_rounds", counted)
    assert await harness.services.interruptions.finish_due() == 1
    assert len(pages) == 2, "the page with the one that is due, and one in which none can be"
