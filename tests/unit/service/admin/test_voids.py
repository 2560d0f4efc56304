"""Malfunctions and voids (RULEBOOK R-6, ARCHITECTURE 2.20): paused, resumed exactly, or void in two steps by two."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rgs.core.errors import (
    IdempotencyConflictError,
    InvalidFieldError,
    NotFoundError,
    RoundNotOpenError,
    RoundNotPausedError,
    RoundOpenError,
    RoundPausedError,
)
from rgs.core.rounds import RoundStatus
from rgs.service.play.notices import Notice
from rgs.service.sealing import DeckSealedError, Kek
from rgs.store.changes import StoreError
from tests.support.service.admins import AdminOf, refusals, void
from tests.support.service.harness import KEK, ServiceHarness, open_harness, read_statement
from tests.support.service.oracles import replay, stored_statements, verify_books
from tests.support.service.player import Player

WAYS = [("uth-solo", ()), ("uth-solo", ("check",)), ("uth-solo", ("check", "check")), ("casino-holdem", ())]


@pytest.fixture
def one(harness: ServiceHarness) -> AdminOf:
    return AdminOf(harness)


@pytest.fixture
def two(harness: ServiceHarness) -> AdminOf:
    return AdminOf(harness, "admin-2")


async def dealt(player: Player, *actions: str) -> str:
    """The id of the round that the player is in after these decisions."""
    await player.sit()
    await player.start()
    for action in actions:
        await player.act(action)
    return str(player.round["round_id"])


async def read_again(player: Player) -> Any:
    """What a client reads; its next request is made from it."""
    view, _ = await player.harness.sessions.get(player.caller, player.session_id)
    player.session["next_round_no"] = view.session.round_no + 1
    if view.open_round is not None:
        player.round["round_version"] = view.open_round.round_version
    return view


def reported(folder: Path, kind: str) -> list[dict[str, Any]]:
    return [read_statement(row.envelope) for row in stored_statements(folder) if row.kind == kind]


def codes(folder: Path) -> list[str]:
    return [body["code"] for body in reported(folder, "event") if body["code"] != "RNG_INSTANTIATED"]


# --- paused and resumed -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("game", "actions"), WAYS)
async def test_a_resumed_round_goes_on_exactly(
    tmp_path: Path, harness: ServiceHarness, one: AdminOf, game: str, actions: tuple[str, ...]
) -> None:
    anna = Player(harness, game=game)
    round_id = await dealt(anna, *actions)
    before = (await read_again(anna)).open_round
    queue: asyncio.Queue[Notice] = asyncio.Queue(8)
    harness.services.notices.listen(anna.session_id, queue)
    event = read_statement((await one.pause(round_id)).envelope)
    assert (event["code"], event["reason"], event["actor"]) == ("MALFUNCTION", "DISPLAY_FAULT", "admin-1")
    assert (event["before"], event["after"], event["round_id"]) == ("IN_PLAY", "PAUSED", round_id)
    with pytest.raises(RoundPausedError) as caught:
        await anna.act("fold")
    assert caught.value.metadata["malfunction_code"] == "DISPLAY_FAULT"
    paused = (await read_again(anna)).open_round
    assert (paused.legal_actions, paused.malfunction_code) == ((), "DISPLAY_FAULT")
    for call in (anna.start, anna.end, anna.close):
        with pytest.raises(RoundOpenError):
            await call()
    event = read_statement((await one.resume(round_id)).envelope)
    assert (event["code"], event["before"], event["after"]) == ("ROUND_RESUMED", "PAUSED", "IN_PLAY")
    resumed = (await read_again(anna)).open_round
    # Paused and resumed are versions of the round; nothing else of it has changed.
    assert resumed == replace(before, round_version=before.round_version + 2)
    notices = [queue.get_nowait() for _ in range(queue.qsize())]
    assert [notice.malfunction_code for notice in notices] == ["DISPLAY_FAULT", ""]
    await anna.finish_round()
    await anna.leave()
    verify_books(tmp_path)


async def test_a_round_is_paused_once_and_resumed_if_it_is(harness: ServiceHarness, anna: Player, one: AdminOf) -> None:
    round_id = await dealt(anna)
    with pytest.raises(RoundNotPausedError):
        await one.resume(round_id)
    await one.pause(round_id)
    with pytest.raises(RoundNotPausedError) as caught:
        await one.pause(round_id, "OTHER_FAULT")
    assert caught.value.metadata["malfunction_code"] == "DISPLAY_FAULT"
    await one.resume(round_id)
    await read_again(anna)
    await anna.finish_round()
    for call in (one.pause(round_id), one.resume(round_id)):
        with pytest.raises(RoundNotOpenError):
            await call
    for call in (one.pause("0" * 26), one.resume("0" * 26)):
        with pytest.raises(NotFoundError):
            await call


@pytest.mark.parametrize("code", ["", "free text", "lower", "A" * 64])
async def test_reasons_are_codes(harness: ServiceHarness, anna: Player, one: AdminOf, code: str) -> None:
    round_id = await dealt(anna)
    await one.pause(round_id)
    for call in (one.pause(round_id, code), one.resume(round_id, code), one.propose(round_id, reason=code)):
        with pytest.raises(InvalidFieldError):
            await call


async def test_an_order_that_comes_again_gets_its_answer(
    tmp_path: Path, harness: ServiceHarness, anna: Player, one: AdminOf
) -> None:
    round_id = await dealt(anna)
    admin = harness.services.admin
    order = one.order("ReportMalfunction", round_id=round_id, code="A")
    first = await admin.report_malfunction(order, round_id, "A")
    assert await admin.report_malfunction(order, round_id, "A") == first
    with pytest.raises(IdempotencyConflictError):
        await admin.report_malfunction(replace(order, digest=bytes(32)), round_id, "B")
    order = one.order("ResumeRound", round_id=round_id, reason="B")
    second = await admin.resume_round(order, round_id, "B")
    assert await admin.resume_round(order, round_id, "B") == second
    assert codes(tmp_path) == ["MALFUNCTION", "ROUND_RESUMED"]


# --- void -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("game", "actions"), WAYS)
async def test_a_void_gives_the_stakes_back_and_tells_everything(
    tmp_path: Path, harness: ServiceHarness, one: AdminOf, two: AdminOf, game: str, actions: tuple[str, ...]
) -> None:
    anna = Player(harness, game=game)
    await anna.sit()
    before = anna.balance_minor
    await anna.start(100, **{"trips" if game == "uth-solo" else "aa": 20})
    for action in actions:
        await anna.act(action)
    round_id = anna.round["round_id"]
    malfunction = await one.pause(round_id)
    harness.clock.tick(60_000)
    (proposed,) = await one.propose(round_id)
    assert (proposed.status, proposed.refusal) == (RoundStatus.OPEN, "")
    assert read_statement(proposed.envelope)["code"] == "VOID_PROPOSED"
    # Nothing has happened to the round yet.
    assert (await read_again(anna)).open_round.malfunction_code == "DISPLAY_FAULT"
    harness.clock.tick(1000)
    (approved,) = await two.approve(round_id)
    assert (approved.status, approved.refusal) == (RoundStatus.VOID, "")
    body = read_statement(approved.envelope)
    assert (body["status"], body["round_id"]) == ("void", round_id)
    assert body["returned_minor"] == body["staked_minor"] == ("220" if game == "uth-solo" else "120")
    assert body["void"]["reason"] == "DISPLAY_FAULT"
    (event,) = [row for row in stored_statements(tmp_path) if row.envelope == malfunction.envelope]
    assert body["void"]["malfunction"] == event.hash.hex()
    assert [approval["party"] for approval in body["void"]["approvals"]] == ["admin-1", "admin-2"]
    assert body["void"]["would_have_outcome"]["outcome"] == "fold"
    assert len(body["deck"]) == 52
    view = await read_again(anna)
    money = view.session.participation
    assert (money.balance_minor, view.open_round, money.net_position_minor) == (before, None, 0)
    assert sum(money.accounts().values()) == 0
    past, _, final, _ = await harness.play.get_round(anna.caller, anna.session_id, round_id)
    assert (past.status, past.settlement, final) == (RoundStatus.VOID, None, approved.envelope)
    assert (past.malfunction_code, past.legal_actions) == ("", ())
    harness.clock.tick(2000)
    await anna.play()
    await anna.leave()
    await harness.settle()
    summary = verify_books(tmp_path)  # wallet, regulator, statements and sessions tell the same; replay is clean
    assert (summary.seats_void, summary.rounds_verified, summary.draws_exposed) == (1, 2, 0)


async def test_two_different_admins_are_needed(
    tmp_path: Path, harness: ServiceHarness, anna: Player, one: AdminOf, two: AdminOf
) -> None:
    round_id = await dealt(anna)
    assert refusals(await one.propose(round_id)) == ["ROUND_NOT_PAUSED"]
    await one.pause(round_id)
    assert refusals(await two.approve(round_id)) == ["NOT_FOUND"]
    assert refusals(await one.propose(round_id)) == [""]
    assert refusals(await one.approve(round_id)) == ["SECOND_ADMIN_NEEDED"]
    assert reported(tmp_path, "round_final") == []
    # Whoever proposes anew is the first of two again.
    assert refusals(await two.propose(round_id, reason="OTHER_FAULT")) == [""]
    assert refusals(await two.approve(round_id)) == ["SECOND_ADMIN_NEEDED"]
    assert refusals(await one.approve(round_id)) == [""]
    (body,) = reported(tmp_path, "round_final")
    assert [approval["party"] for approval in body["void"]["approvals"]] == ["admin-2", "admin-1"]
    assert body["void"]["reason"] == "OTHER_FAULT"


async def test_a_resumed_round_needs_a_new_proposal(
    harness: ServiceHarness, anna: Player, one: AdminOf, two: AdminOf
) -> None:
    round_id = await dealt(anna)
    await one.pause(round_id)
    await one.propose(round_id)
    await one.resume(round_id)
    assert refusals(await two.approve(round_id)) == ["ROUND_NOT_PAUSED"]
    await one.pause(round_id)
    assert refusals(await two.approve(round_id)) == ["NOT_FOUND"]


async def test_what_has_ended_is_not_made_void(
    tmp_path: Path, harness: ServiceHarness, anna: Player, one: AdminOf, two: AdminOf
) -> None:
    round_id = await dealt(anna)
    await anna.finish_round()
    assert refusals(await one.propose(round_id)) == ["ROUND_NOT_OPEN"]
    assert refusals(await two.approve(round_id)) == ["ROUND_NOT_OPEN"]
    harness.clock.tick(2000)
    await anna.start()
    await void(harness, anna.round["round_id"])
    assert refusals(await one.propose(anna.round["round_id"])) == ["ROUND_NOT_OPEN"]
    assert refusals(await two.approve(anna.round["round_id"])) == ["ROUND_NOT_OPEN"]
    with pytest.raises(RoundNotOpenError):
        await one.resume(anna.round["round_id"])
    assert [body["status"] for body in reported(tmp_path, "round_final")] == ["settled", "void"]


async def test_a_list_is_taken_round_by_round(
    tmp_path: Path, harness: ServiceHarness, one: AdminOf, two: AdminOf
) -> None:
    players = [Player(harness, name=f"player-{number}") for number in range(3)]
    ids = [await dealt(player) for player in players]
    for round_id in ids[:2]:
        await one.pause(round_id)
    assert refusals(await one.propose(*ids, "0" * 26)) == ["", "", "ROUND_NOT_PAUSED", "NOT_FOUND"]
    order = two.order("ApproveVoid", round_ids=ids)
    assert refusals(await harness.services.admin.approve_void(order, ids[:1])) == ["CERTIFICATE_NOT_ALLOWED"]
    await harness.let_in("admin-2")
    results = await harness.services.admin.approve_void(order, ids)
    assert refusals(results) == ["", "", "ROUND_NOT_PAUSED"]
    assert await harness.services.admin.approve_void(order, ids) == results
    assert [body["round_id"] for body in reported(tmp_path, "round_final")] == ids[:2]
    for wrong in ((), (ids[0], ids[0]), ("x",)):
        with pytest.raises(InvalidFieldError):
            await one.propose(*wrong)


async def test_an_order_whose_answer_is_lost_says_so(
    harness: ServiceHarness, anna: Player, one: AdminOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    round_id = await dealt(anna)
    await one.pause(round_id)

    async def nothing(*_: object) -> None:
        return None

    monkeypatch.setattr(harness.services.admin.orders, "known", nothing)
    with pytest.raises(StoreError):
        await one.propose(round_id)


# --- a deck that is lost ----------------------------------------------------------------------------------------------

LOST = Kek(2, {2: bytes(32)})
"""The key of the rounds dealt so far is not among these."""


async def test_only_a_deck_that_is_lost_is_void_without_cards(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness:
        anna, bert = Player(harness), Player(harness, name="bert")
        ids = [await dealt(anna, "check"), await dealt(bert)]
        one, two = AdminOf(harness), AdminOf(harness, "admin-2")
        await one.pause(ids[0])
        assert refusals(await one.propose(ids[0], reason="DECK_UNRECOVERABLE")) == ["INVALID_FIELD"]
    async with open_harness(tmp_path, kek=LOST, clock=harness.clock) as harness:
        for player in (anna, bert):
            player.harness = harness
        one, two = AdminOf(harness), AdminOf(harness, "admin-2")
        with pytest.raises(DeckSealedError):
            await bert.act("check")
        harness.clock.tick(10**7)
        assert await harness.services.interruptions.finish_due() == 0
        await one.pause(ids[1], "KEY_LOST")
        view = (await read_again(anna)).open_round
        assert (view.hole_cards, view.board, view.phase.value) == ((), (), "flop")
        assert refusals(await one.propose(*ids)) == ["INVALID_FIELD"] * 2
        assert refusals(await one.propose(*ids, reason="DECK_UNRECOVERABLE")) == ["", ""]
        assert refusals(await two.approve(*ids)) == ["", ""]
        for body in reported(tmp_path, "round_final"):
            assert not body.keys() & {"cards", "deck", "salt", "transcript", "outcome", "settlement"}
            assert body["returned_minor"] == body["staked_minor"] == "200"
            assert body["void"].keys() == {"approvals", "malfunction", "reason"}
        past, _, _, _ = await harness.play.get_round(anna.caller, anna.session_id, ids[0])
        assert (past.status, past.hole_cards, past.board) == (RoundStatus.VOID, (), ())
        for player in (anna, bert):
            await player.leave()
            assert player.session["paid_out_minor"] == 10_000
        await harness.settle()
    summary = verify_books(tmp_path)
    assert (summary.seats_void, summary.draws_exposed) == (2, 2)


@pytest.mark.parametrize(("proposed", "back"), [("DECK_UNRECOVERABLE", True), ("DISPLAY_FAULT", False)])
async def test_whether_the_deck_is_lost_is_looked_at_again_when_approved(
    tmp_path: Path, proposed: str, back: bool
) -> None:
    """Between proposal and approval the key came back, or was lost: the proposal does not fit any more."""
    async with open_harness(tmp_path, ended=False) as harness:
        anna = Player(harness)
        round_id = await dealt(anna)
    async with open_harness(tmp_path, kek=LOST if back else KEK, clock=harness.clock, ended=False) as harness:
        await AdminOf(harness).pause(round_id)
        assert refusals(await AdminOf(harness).propose(round_id, reason=proposed)) == [""]
    async with open_harness(tmp_path, kek=KEK if back else LOST, clock=harness.clock) as harness:
        assert refusals(await AdminOf(harness, "admin-2").approve(round_id)) == ["INVALID_FIELD"]
        assert reported(tmp_path, "round_final") == []
        other = "DISPLAY_FAULT" if back else "DECK_UNRECOVERABLE"
        assert refusals(await AdminOf(harness).propose(round_id, reason=other)) == [""]
        assert refusals(await AdminOf(harness, "admin-2").approve(round_id)) == [""]
    (body,) = reported(tmp_path, "round_final")
    assert ("deck" in body) is back
    replay(tmp_path)
