"""Decisions at tables: in the table's window, once a phase, without a card (RULEBOOK U-2, U-11, T-2)."""

from __future__ import annotations

import pytest

from rgs.core.errors import IllegalActionError, NotFoundError, NotSeatedError, RgsError, TableChangedError
from rgs.core.games.types import Action
from rgs.core.tables.machine import State
from rgs.service.callers import Caller, Role
from rgs.service.tables.requests import Decide
from tests.support.service.harness import OPERATOR, ServiceHarness, read_reply
from tests.support.service.oracles import replay, stored_statements
from tests.support.service.tables import Evening, Sitter


@pytest.fixture
async def evening(harness: ServiceHarness) -> Evening:
    return await Evening(harness, "uth-seven-box", early_close=False).open()


@pytest.fixture
async def sitter(evening: Evening) -> Sitter:
    """A player with bets, the table in its first decision window."""
    sitter = await Sitter(evening, "player-1").sit()
    await sitter.bet(ante=1_000)
    await evening.until(State.DECIDING)
    await sitter.look()
    return sitter


async def decision(sitter: Sitter, action: str = "check", **other: object) -> Decide:
    """The request that `Sitter.decide` sends, with other fields."""
    await sitter.look()
    round_ = sitter.seat["round"]
    fields = {
        "device_no": sitter.seat["device_no"],
        "round_id": round_["round_id"],
        "round_version": round_["round_version"],
        **other,
    }
    request_id = sitter.evening.harness.request_id()
    return Decide(request_id, sitter.session_id, action=Action(action), **fields)


async def test_a_decision_is_staked_and_shown(sitter: Sitter) -> None:
    assert sitter.legal == ["check", "play_4x", "play_3x"]
    await sitter.decide("play_4x")
    round_ = sitter.seat["round"]
    assert (sitter.session["balance_minor"], round_["bets"][-1]) == (94_000, ["play", 4_000])
    assert [(one["action"], one["by"], one["party"]) for one in round_["actions"]] == [("play_4x", "player", "op-1")]
    assert (len(round_["hole_cards"]), round_["board"], round_["legal_actions"]) == (2, [], [])


async def test_the_own_round_is_seen_in_the_tables_phase_with_what_the_timer_decided(
    evening: Evening, sitter: Sitter
) -> None:
    async def seen() -> tuple[str, list[str], list[str], int]:
        await sitter.look()
        round_ = sitter.seat["round"]
        by = [f"{action['action']} by {action['by']}" for action in round_["actions"]]
        return round_["phase"], by, sitter.legal, round_["deadline_ms"]

    deadline_ms = (await evening.row()).table.deadline_ms
    assert await seen() == ("preflop", [], ["check", "play_4x", "play_3x"], deadline_ms)
    await evening.pass_time()
    deadline_ms = (await evening.row()).table.deadline_ms
    assert await seen() == ("flop", ["check by timer"], ["check", "play_2x"], deadline_ms)
    await sitter.decide("play_2x")
    assert await seen() == ("flop", ["check by timer", "play_2x by player"], [], 0)
    await evening.until(State.RESULT)
    assert await seen() == ("showdown", ["check by timer", "play_2x by player"], [], 0)


async def test_everybody_sees_who_has_decided_in_the_window(evening: Evening) -> None:
    checks, waits = await evening.seated("player-1", "player-2")
    for sitter in (checks, waits):
        await sitter.bet(ante=1_000)
    await evening.until(State.DECIDING)
    watches = await Sitter(evening, "player-3").sit()

    async def decided() -> list[bool]:
        boxes = (await evening.view()).boxes
        return [boxes[one.seat["box"] - 1].decided for one in (checks, waits, watches)]

    assert await decided() == [False, False, False]
    assert [box.in_round for box in (await evening.view()).boxes[:3]] == [True, True, False]
    await checks.decide("check")
    assert await decided() == [True, False, False]
    await evening.pass_time()
    assert (await evening.row()).table.phase == "flop"
    assert await decided() == [False, False, False]
    await evening.until(State.RESULT)
    assert await decided() == [False, False, False]


async def test_a_decision_opens_no_deck(sitter: Sitter, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is legal and what it costs follows from the rows. Only the view of the own cards needs the deck."""
    seats = sitter.evening.harness.tables.seats
    request = await decision(sitter)
    with monkeypatch.context() as patched:
        patched.setattr(sitter.evening.harness.tables.views, "own_round", _no_round)
        patched.setattr("rgs.service.tables.decks.TableDecks.open", _opened)
        assert read_reply(await seats.decide(OPERATOR, request))["seat"]["round"] is None


async def _no_round(*_: object) -> None:
    return None


def _opened(*_: object) -> None:
    raise AssertionError("a deck was opened")


async def test_the_same_decision_is_taken_once(sitter: Sitter) -> None:
    seats, request = sitter.evening.harness.tables.seats, await decision(sitter, "play_3x")
    first = await seats.decide(OPERATOR, request)
    assert await seats.decide(OPERATOR, request) == first
    await sitter.look()
    assert sitter.session["balance_minor"] == 95_000


@pytest.mark.parametrize(
    ("other", "field"),
    [
        ({"round_version": 2}, "round_version"),
        ({"round_id": "01M7Q5CQG00000000000000000"}, "round_id"),
    ],
)
async def test_a_decision_names_round_and_version(sitter: Sitter, other: dict[str, object], field: str) -> None:
    with pytest.raises(TableChangedError) as caught:
        await sitter.evening.harness.tables.seats.decide(OPERATOR, await decision(sitter, "check", **other))
    assert caught.value.field == field


async def test_one_decision_a_phase(sitter: Sitter) -> None:
    await sitter.decide("check")
    with pytest.raises(IllegalActionError) as caught:
        await sitter.decide("check")
    assert "waits for the others" in caught.value.message
    with pytest.raises(IllegalActionError):
        await sitter.decide("play_1x")


async def test_a_decision_at_the_deadline_counts_and_one_later_does_not(evening: Evening, sitter: Sitter) -> None:
    deadline_ms = (await evening.row()).table.deadline_ms
    evening.harness.clock.time_ms = deadline_ms
    await evening.harness.tables.seats.decide(OPERATOR, await decision(sitter, "play_4x"))
    evening.harness.clock.time_ms = deadline_ms + 1
    with pytest.raises(TableChangedError):
        await sitter.decide("check")
    await evening.until(State.RESULT)
    assert replay(evening.harness.folder).failures == 0
    await sitter.look()
    assert sitter.seat["round"]["actions"][0]["by"] == "player"


async def test_who_has_no_seat_in_the_round_decides_nothing(evening: Evening, sitter: Sitter) -> None:
    late, round_id = await Sitter(evening, "player-2").sit(), sitter.seat["round"]["round_id"]
    request = Decide(evening.harness.request_id(), late.session_id, 1, round_id, 1, Action.CHECK)
    with pytest.raises(NotFoundError):
        await evening.harness.tables.seats.decide(OPERATOR, request)


async def test_who_comes_back_goes_on(evening: Evening, sitter: Sitter) -> None:
    """A player left, and sits down again in the middle of the round: the timer took the decisions between."""
    await sitter.leave()
    with pytest.raises(NotSeatedError):
        await evening.harness.tables.seats.decide(OPERATOR, await decision(sitter, device_no=1))
    await evening.pass_time()
    await sitter.join()
    await sitter.decide("play_2x")
    await evening.until(State.RESULT)
    await sitter.look()
    assert [(one["phase"], one["by"]) for one in sitter.seat["round"]["actions"]] == [
        ("preflop", "timer"), ("flop", "player"),
    ]  # fmt: skip
    assert replay(evening.harness.folder).failures == 0


async def test_a_play_bet_needs_its_funds(evening: Evening) -> None:
    sitter = await Sitter(evening, "player-1").sit(bought_minor=5_000)
    await sitter.bet(ante=1_000)
    await evening.until(State.DECIDING)
    with pytest.raises(RgsError) as caught:
        await sitter.decide("play_4x")
    assert caught.value.reason == "INSUFFICIENT_BALANCE"
    await sitter.decide("play_3x")


@pytest.mark.parametrize("caller", [Caller("op-2", Role.OPERATOR, "demo")])
async def test_another_operators_seat_does_not_exist(evening: Evening, sitter: Sitter, caller: Caller) -> None:
    request = await decision(sitter)
    with pytest.raises(NotFoundError) as caught:
        await evening.harness.tables.seats.decide(caller, request)
    assert sitter.name not in caught.value.message


async def test_what_the_seats_of_a_hand_share_is_one_draw(harness: ServiceHarness) -> None:
    evening = await Evening(harness, "uth-online").open()
    for sitter in await evening.seated(*(f"player-{number}" for number in range(20))):
        await sitter.bet(ante=1_000)
    await evening.until(State.RESULT)
    kinds = [row.kind for row in stored_statements(harness.folder)]
    assert [kinds.count(kind) for kind in ("table_round", "table_deal", "table_final", "seat_opening")] == [1, 1, 1, 20]
