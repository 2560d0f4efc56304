"""Whole lives: open, buy, rounds of both games, end, close. Every book agrees, and what was said is said again."""

from __future__ import annotations

from pathlib import Path

import pytest

from rgs.core.errors import IdempotencyConflictError, RegulatorRefusedError, RgsError
from rgs.core.statements import leaf_hash
from rgs.ports.regulator import ParticipationEnd, RegulatorReceipt
from rgs.service.callers import Caller, Role
from rgs.service.play.requests import Act, BuyParticipation, CloseSession, EndParticipation, OpenSession, StartRound
from tests.support.service.harness import (
    ACCOUNT_MINOR,
    Request,
    ServiceHarness,
    open_harness,
    read_reply,
    read_statement,
)
from tests.support.service.oracles import replay, stored_statements, verify_books
from tests.support.service.player import Choose, Player, cheapest

FIRST = {"uth-solo": ("play_4x", "check", "play_2x", "fold"), "casino-holdem": ("call", "fold")}


def rather(action: str) -> Choose:
    """This action where it is legal, else the cheapest way on."""
    return lambda legal: action if action in legal else cheapest(legal)


@pytest.mark.parametrize("game", ["uth-solo", "casino-holdem"])
async def test_a_whole_life(tmp_path: Path, harness: ServiceHarness, game: str) -> None:
    anna = Player(harness, game=game)
    opened = await anna.open()
    assert anna.session["status"] == "open"
    assert (anna.session["regulator_session_id"][0], len(anna.session["regulator_session_id"])) == ("M", 16)
    assert read_statement(opened.envelope)["kind"] == "session_open"
    assert await harness.balance() == ACCOUNT_MINOR

    await anna.buy(6_000)
    await anna.buy(4_000)
    assert (anna.balance_minor, anna.session["next_purchase_no"]) == (10_000, 3)
    assert await harness.balance() == ACCOUNT_MINOR - 10_000
    assert anna.session["regulator_participation_id"][0] == "N"

    side = {"uth-solo": {"trips": 20}, "casino-holdem": {"aa": 10}}[game]
    for number in range(1, 9):
        before = anna.balance_minor
        final = await anna.play(100, rather(FIRST[game][number % len(FIRST[game])]), **side)
        body = read_statement(final.envelope)
        assert (body["kind"], body["status"], body["round_no"]) == ("round_final", "settled", str(number))
        assert anna.balance_minor == before - anna.round["staked_minor"] + anna.round["returned_minor"]
        assert int(body["balance_after_minor"]) == anna.balance_minor

    left = anna.balance_minor
    await anna.end()
    assert (anna.balance_minor, anna.session["paid_out_minor"], anna.session["ended"]) == (0, left, True)
    assert await harness.balance() == ACCOUNT_MINOR - 10_000 + left
    await anna.close()
    assert anna.session["status"] == "closed"
    await harness.settle()
    summary = verify_books(tmp_path)
    assert (summary.rounds_verified, summary.sessions) == (8, 1)


async def test_a_life_goes_on_after_a_restart(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as first:
        anna = Player(first)
        await anna.sit()
        await anna.play()
        await anna.start()
        first.clock.tick(5000)
    assert replay(tmp_path).is_cut
    async with open_harness(tmp_path, clock=first.clock) as second:
        view, opening = await second.sessions.get(anna.caller, anna.session_id)
        assert view.open_round is not None
        assert view.open_round.round_id == anna.round["round_id"]
        assert read_statement(opening)["instance"] == "node-1-b1-w0"
        anna.harness = second
        await anna.finish_round()
        assert read_statement(anna.sent[-1][1].envelope)["instance"] == "node-1-b2-w0"
        await anna.leave()
        await second.settle()
    summary = verify_books(tmp_path)
    assert (summary.rounds_verified, summary.instances, summary.is_cut) == (2, 2, False)


async def test_time_never_runs_backwards_in_a_session(tmp_path: Path, harness: ServiceHarness, anna: Player) -> None:
    """The clock steps back by an hour, as after a restart on another machine (ARCHITECTURE 2.21)."""
    await anna.sit()
    await anna.play()
    harness.clock.tick(-3_600_000)
    await anna.start()
    harness.clock.tick(-1)
    await anna.finish_round()
    # The regulator takes nothing from the future: the money comes back, and the session goes on.
    with pytest.raises(RegulatorRefusedError):
        await anna.buy(100)
    harness.clock.tick(3_600_001)
    await anna.buy(100)
    request = anna.ending()
    genuine = harness.regulator.end_participation

    async def slow(end: ParticipationEnd) -> RegulatorReceipt:
        receipt = await genuine(end)
        harness.clock.tick(-3_600_000)  # while the operation is under way
        return receipt

    harness.regulator.end_participation = slow  # type: ignore[method-assign]
    await anna.send(request)
    harness.clock.tick(3_600_000)
    await anna.close()
    await harness.settle()
    verify_books(tmp_path)
    times = [read_statement(row.envelope)["time"] for row in stored_statements(tmp_path) if row.link_no]
    assert times == sorted(times)


async def test_several_players_at_once_and_one_after_the_other(tmp_path: Path, harness: ServiceHarness) -> None:
    for name in ("anna", "bert"):
        for game in ("uth-solo", "casino-holdem"):
            player = Player(harness, game=game, name=name)
            await player.sit(2_000)
            await player.play(50)
            await player.leave()
    await harness.settle()
    assert verify_books(tmp_path).sessions == 4


async def test_a_session_may_be_closed_without_a_purchase(
    tmp_path: Path, harness: ServiceHarness, anna: Player
) -> None:
    await anna.open()
    await anna.close()
    assert [row.kind for row in stored_statements(tmp_path) if row.link_no] == ["session_open", "session_close"]


async def test_a_participation_may_end_without_a_round(tmp_path: Path, harness: ServiceHarness, anna: Player) -> None:
    await anna.sit()
    await anna.leave()
    assert await harness.balance() == ACCOUNT_MINOR
    verify_books(tmp_path)


# --- idempotency (ARCHITECTURE 2.16) ----------------------------------------------------------------------------------


async def lived(harness: ServiceHarness) -> Player:
    """A life with every mutating call in it."""
    anna = Player(harness)
    await anna.sit()
    await anna.buy(500)
    await anna.play()
    await anna.play(60, lambda legal: "fold" if "fold" in legal else "check")
    await anna.leave()
    return anna


async def test_every_mutating_call_is_answered_byte_for_byte_again(tmp_path: Path, harness: ServiceHarness) -> None:
    anna = await lived(harness)
    assert {type(request) for request, _ in anna.sent} == {
        OpenSession, BuyParticipation, StartRound, Act, EndParticipation, CloseSession,
    }  # fmt: skip
    before = len(stored_statements(tmp_path))
    calls = len(harness.wallet_script.calls) + len(harness.regulator_script.calls)
    for request, reply in [*anna.sent, *reversed(anna.sent)]:
        assert await harness.send(request) == reply
    assert len(stored_statements(tmp_path)) == before
    assert len(harness.wallet_script.calls) + len(harness.regulator_script.calls) == calls


async def test_an_answer_survives_the_process(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as first:
        anna = await lived(first)
    async with open_harness(tmp_path, clock=first.clock) as second:
        for request, reply in anna.sent:
            assert await second.send(request) == reply


def otherwise(request: Request) -> Request:
    """The same request id with other content."""
    match request:
        case OpenSession():
            return OpenSession(request.request_id, request.game, request.player + "x", request.currency, "ref:1")
        case BuyParticipation():
            return BuyParticipation(
                request.request_id, request.session_id, request.purchase_no, request.amount_minor + 1
            )
        case StartRound():
            return StartRound(request.request_id, request.session_id, request.round_no, {"ante": 222})
        case Act():
            return Act(
                request.request_id, request.session_id, request.round_id, request.round_version + 1, request.action
            )
        case EndParticipation():
            return EndParticipation(request.request_id, request.session_id)
        case CloseSession():
            return CloseSession(request.request_id, request.session_id)


async def test_other_content_under_a_used_request_id_is_a_conflict(tmp_path: Path, harness: ServiceHarness) -> None:
    anna = await lived(harness)
    other = Player(harness, name="bert")
    await other.sit()
    before = len(stored_statements(tmp_path))
    for request, _ in anna.sent:
        changed = otherwise(request)
        if changed == request:  # nothing in it but its session
            changed = type(request)(request.request_id, other.session_id)  # type: ignore[call-arg]
        with pytest.raises(IdempotencyConflictError) as caught:
            await harness.send(changed)
        assert caught.value.field == "request_id"
    assert len(stored_statements(tmp_path)) == before


async def test_a_used_request_id_conflicts_even_where_the_request_would_do(
    tmp_path: Path, harness: ServiceHarness
) -> None:
    """Act and StartRound find out at the commit: the draw of the start is accounted for."""
    anna = Player(harness)
    await anna.sit()
    first = anna.starting(100)
    await anna.send(first)
    check = anna.decision("check")
    await anna.send(check)
    with pytest.raises(IdempotencyConflictError):
        await harness.send(
            Act(check.request_id, check.session_id, check.round_id, anna.round["round_version"], check.action)
        )
    await anna.finish_round()
    with pytest.raises(IdempotencyConflictError):
        await harness.send(StartRound(first.request_id, first.session_id, 2, {"ante": 100}))
    await anna.play()
    await anna.leave()
    await harness.settle()
    assert verify_books(tmp_path).draws_discarded == 1


async def test_a_very_late_retry_fails_by_its_numbers(tmp_path: Path, harness: ServiceHarness) -> None:
    """The stored answers have gone, as after their retention: nothing is done twice all the same."""
    anna = await lived(harness)
    harness.store._db.execute("DELETE FROM answers")
    before = len(stored_statements(tmp_path))
    for request, _ in anna.sent[1:]:
        with pytest.raises(RgsError) as caught:
            await harness.send(request)
        assert caught.value.reason in {"SESSION_CLOSED", "ROUND_CHANGED"}
    assert len(stored_statements(tmp_path)) == before
    await harness.settle()
    verify_books(tmp_path)


async def test_a_late_retry_in_a_running_session_fails_by_its_numbers(harness: ServiceHarness, anna: Player) -> None:
    await anna.open()
    requests: list[tuple[Request, str]] = [(anna.purchase(5000), "NUMBER_NOT_EXPECTED")]
    await anna.send(requests[-1][0])
    requests.append((anna.starting(100), "NUMBER_NOT_EXPECTED"))
    await anna.send(requests[-1][0])
    requests.append((anna.decision("check"), "ROUND_CHANGED"))
    await anna.send(requests[-1][0])
    await anna.finish_round()
    harness.store._db.execute("DELETE FROM answers")
    for request, reason in requests:
        with pytest.raises(RgsError) as caught:
            await harness.send(request)
        assert caught.value.reason == reason


async def test_request_ids_belong_to_their_party_and_method(harness: ServiceHarness) -> None:
    anna = Player(harness)
    await anna.sit()
    bert = Player(harness, name="bert", caller=Caller("op-2", Role.OPERATOR, "demo"))
    opening = anna.sent[0][0]
    await bert.send(opening)  # the same request, bytes and all, from another operator
    assert bert.session_id != anna.session_id
    start = StartRound(anna.sent[1][0].request_id, anna.session_id, 1, {"ante": 100})  # the purchase's request id
    assert read_reply(await harness.send(start))["round"]["status"] == "open"


async def test_a_reply_is_what_was_signed(harness: ServiceHarness, anna: Player) -> None:
    await anna.sit()
    await anna.play()
    for _, reply in anna.sent:
        if reply.envelope:
            row = await harness.store.statement_of_hash(leaf_hash(reply.envelope))
            assert row is not None
            assert row.envelope == reply.envelope
