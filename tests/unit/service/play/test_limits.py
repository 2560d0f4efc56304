"""Limits of a session: what they stop, what they name, and that a decision owed is never stopped."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rgs.core.errors import (
    DurationLimitError,
    InsufficientBalanceError,
    InvalidFieldError,
    LossLimitError,
    RgsError,
    SessionInactiveError,
    StakeLimitError,
)
from rgs.core.limits import Headroom, SessionLimits
from tests.support.service.admins import void
from tests.support.service.harness import ServiceHarness, read_statement
from tests.support.service.oracles import stored_statements, verify_books
from tests.support.service.player import Player

INACTIVITY_MS = 1_800_000


async def seated(harness: ServiceHarness, bought: int = 10_000, game: str = "uth-solo", /, **limits: int) -> Player:
    player = Player(harness, game=game)
    await player.send(replace(player.opening(), limits=SessionLimits(**limits)))
    await player.buy(bought)
    return player


async def refused(error: type[RgsError], call: Any) -> RgsError:
    with pytest.raises(error) as caught:
        await call
    assert type(caught.value) is error
    return caught.value


async def fold(player: Player, ante: int = 100) -> None:
    """A round that loses ante and blind, or ante alone."""
    player.harness.clock.tick(1500)
    await player.start(ante)
    await player.finish_round(lambda legal: "check" if "check" in legal else "fold")


async def test_limits_are_told_in_the_statement_and_in_every_view(tmp_path: Path, harness: ServiceHarness) -> None:
    anna = await seated(harness, loss_minor=500, stake_minor=900, duration_ms=60_000)
    (opened,) = [row for row in stored_statements(tmp_path) if row.kind == "session_open"]
    result = read_statement(opened.envelope)["limits"]
    assert result == {"duration_ms": "60000", "loss_minor": "500", "stake_minor": "900"}
    await fold(anna)
    view = await anna.view()
    assert view.headroom == Headroom(9800, 300, 700)
    assert view.time_left_ms == 60_000 - 1500
    assert view.session.participation.net_position_minor == -200
    # 300 cover an ante, its blind and four antes on top: 50.
    assert view.largest_ante_minor == 50
    await anna.leave()
    assert (await anna.view()).time_left_ms == 60_000 - 1500
    verify_books(tmp_path)


async def test_a_session_without_limits_says_so(tmp_path: Path, harness: ServiceHarness, anna: Player) -> None:
    await anna.sit()
    (opened,) = [row for row in stored_statements(tmp_path) if row.kind == "session_open"]
    assert "limits" not in read_statement(opened.envelope)
    assert (await anna.view()).time_left_ms is None


async def test_a_limit_that_is_none_opens_nothing(tmp_path: Path, harness: ServiceHarness, anna: Player) -> None:
    for limits in (SessionLimits(loss_minor=-1), SessionLimits(stake_minor=10**13), SessionLimits(duration_ms=-1)):
        await refused(InvalidFieldError, anna.send(replace(anna.opening(), limits=limits)))
    assert [row.kind for row in stored_statements(tmp_path)] == ["instance_start", "artifact", "event"]


@pytest.mark.parametrize(
    ("bought", "limits", "error"),
    [
        (199, {}, InsufficientBalanceError),
        (10_000, {"loss_minor": 199}, LossLimitError),
        (10_000, {"stake_minor": 199}, StakeLimitError),
        (199, {"loss_minor": 199, "stake_minor": 199}, InsufficientBalanceError),
        (10_000, {"loss_minor": 199, "stake_minor": 199}, LossLimitError),
    ],
)
async def test_a_round_starts_only_if_its_bets_and_the_cheapest_way_on_are_covered(
    harness: ServiceHarness, bought: int, limits: dict[str, int], error: type[RgsError]
) -> None:
    anna = await seated(harness, bought, **limits)
    caught = await refused(error, anna.start(100))
    assert (caught.field, caught.metadata["value"], caught.metadata["limit"]) == ("bets", "200", "199")
    await fold(anna, 98)
    assert anna.session["staked_minor"] == 196


@pytest.mark.parametrize("game", ["uth-solo", "casino-holdem"])
@pytest.mark.parametrize(
    ("name", "error"),
    [("balance", InsufficientBalanceError), ("loss_minor", LossLimitError), ("stake_minor", StakeLimitError)],
)
async def test_a_dearer_decision_is_told_with_its_reason_and_the_owed_one_is_free(
    tmp_path: Path, harness: ServiceHarness, game: str, name: str, error: type[RgsError]
) -> None:
    """What is left after the opening bets is one minor unit short of each bet."""
    opening, dear = (200, "play_4x") if game == "uth-solo" else (100, "call")
    cost = 400 if game == "uth-solo" else 200
    room = opening + cost - 1
    anna = await (seated(harness, room, game) if name == "balance" else seated(harness, 10_000, game, **{name: room}))
    await anna.start(100)
    view = (await anna.view()).open_round
    assert view is not None
    reasons = {legal.action.value: legal.reason for legal in view.legal_actions}
    assert reasons[dear] == error.reason
    free = "check" if game == "uth-solo" else "fold"
    assert reasons[free] is None
    caught = await refused(error, anna.act(dear))
    assert caught.field == "action"
    assert (caught.metadata["value"], caught.metadata["limit"]) == (str(cost), str(cost - 1))
    before = len(stored_statements(tmp_path))
    await anna.finish_round(lambda legal: legal[0] if legal[0] == "check" else "fold")
    assert len(stored_statements(tmp_path)) == before + 1
    await anna.leave()
    verify_books(tmp_path)


async def test_the_largest_ante_covers_every_option_and_the_next_does_not(harness: ServiceHarness) -> None:
    anna = await seated(harness, loss_minor=611)
    largest = (await anna.view()).largest_ante_minor
    assert largest == 100
    await anna.start(largest)
    assert all(available for _, _, available in anna.round["legal_actions"])
    other = Player(harness, name="bert")
    await other.send(replace(other.opening(), limits=SessionLimits(loss_minor=611)))
    await other.buy(10_000)
    await other.start(largest + 2)
    assert not all(available for _, _, available in other.round["legal_actions"])


async def test_a_loss_limit_counts_what_was_lost_and_a_stake_limit_what_was_staked(
    tmp_path: Path, harness: ServiceHarness
) -> None:
    anna = await seated(harness, loss_minor=600, stake_minor=1_000_000)
    for _ in range(3):
        await fold(anna)
    await refused(LossLimitError, anna.start(10))
    assert (await anna.view()).headroom.loss_left_minor == 0
    await anna.leave()
    bert = await seated(harness, stake_minor=420)
    for _ in range(2):
        await fold(bert)
    await refused(StakeLimitError, bert.start(12))
    await fold(bert, 10)
    assert (await bert.view()).headroom.stake_left_minor == 0
    # Another purchase raises no limit.
    await bert.buy(1000)
    await refused(StakeLimitError, bert.start(10))
    await bert.leave()
    verify_books(tmp_path)


async def test_what_a_void_gives_back_may_be_lost_again(tmp_path: Path, harness: ServiceHarness) -> None:
    anna = await seated(harness, loss_minor=200, stake_minor=400)
    await anna.start(100)
    assert (await anna.view()).headroom == Headroom(9800, 0, 200)
    await void(harness, anna.round["round_id"])
    view = await anna.view()
    assert view.headroom == Headroom(10_000, 200, 200)
    anna.session["next_round_no"] = 2
    await fold(anna)
    await anna.leave()
    verify_books(tmp_path)


async def test_when_the_time_is_up_no_round_starts_and_the_dealt_one_is_played(
    tmp_path: Path, harness: ServiceHarness
) -> None:
    anna = await seated(harness, duration_ms=60_000)
    harness.clock.tick(59_999)
    await anna.start()
    harness.clock.tick(1)
    assert (await anna.view()).time_left_ms == 0
    await anna.finish_round()
    harness.clock.tick(5)
    caught = await refused(DurationLimitError, anna.start())
    assert (caught.metadata["limit"], caught.metadata["value"]) == ("60000", "60005")
    await anna.leave()
    verify_books(tmp_path)


async def test_a_session_in_which_nothing_happens_starts_and_buys_nothing(
    tmp_path: Path, harness: ServiceHarness
) -> None:
    anna = await seated(harness)
    harness.clock.tick(INACTIVITY_MS)
    assert (await anna.view()).inactive_ms == harness.clock.now_ms()
    await anna.start()
    # A decision owed is taken whenever it comes.
    harness.clock.tick(INACTIVITY_MS + 1)
    await anna.finish_round()
    harness.clock.tick(INACTIVITY_MS + 1)
    caught = await refused(SessionInactiveError, anna.start())
    assert caught.metadata["limit"] == str(INACTIVITY_MS)
    await refused(SessionInactiveError, anna.buy(100))
    before = await harness.balance()
    await anna.leave()
    assert await harness.balance() == before + anna.session["paid_out_minor"]
    verify_books(tmp_path)
