"""Limits of a session, inactivity and rounds in play, over the wire: what is refused, what goes on, who sees it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rgs.core.ledger import PARTICIPATION_MINOR_MAX
from rgs.core.limits import DURATION_MS_MAX
from rgs.service.callers import Role
from rgs.v1 import common_pb2, session_pb2
from rgs.v1.common_pb2 import SessionLimits
from tests.support.api.client import ApiClient, cards_in, refused
from tests.support.api.harness import ApiHarness, info_in, reason_in, serving, status_in
from tests.support.service.harness import read_statement

CHECK, FOLD = common_pb2.ACTION_CHECK, common_pb2.ACTION_FOLD


async def limited(harness: ApiHarness, **limits: int) -> ApiClient:
    """A player with 50,000 minor units in a session with these limits."""
    player = ApiClient(harness.channel())
    opened = await player.sessions.OpenSession(player.open_request(limits=SessionLimits(**limits)))
    player.session_id = opened.session.session_id
    await player.buy()
    return player


async def session_of(player: ApiClient) -> common_pb2.SessionView:
    request = session_pb2.GetSessionRequest(session_id=player.session_id)
    view: common_pb2.SessionView = (await player.sessions.GetSession(request)).session
    return view


async def test_limits_are_signed_shown_and_part_of_the_request(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        player = ApiClient(harness.channel())
        limits = SessionLimits(loss_minor=1_000, stake_minor=2_000, duration_ms=3_600_000)
        request = player.open_request(limits=limits)
        opened = await player.sessions.OpenSession(request)
        assert read_statement(opened.statement)["limits"] == {
            "duration_ms": "3600000", "loss_minor": "1000", "stake_minor": "2000",
        }  # fmt: skip
        view = opened.session
        assert view.limits == limits
        assert (view.loss_left_minor, view.stake_left_minor) == (1_000, 2_000)
        assert view.time_left_ms == 3_600_000 - view.elapsed_ms
        assert view.inactive_time.ToMilliseconds() - view.open_time.ToMilliseconds() == 1_800_000 + view.elapsed_ms
        assert await player.sessions.OpenSession(request) == opened
        request.limits.loss_minor = 1_001
        assert reason_in(status_in(await refused(player.sessions.OpenSession(request)))) == "IDEMPOTENCY_CONFLICT"


async def test_no_limits_is_unset_not_zero(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        player = ApiClient(harness.channel())
        opened = await player.open()
        assert "limits" not in read_statement(opened.statement)
        for field in ("limits", "loss_left_minor", "stake_left_minor", "time_left_ms"):
            assert not opened.session.HasField(field), field


@pytest.mark.parametrize(
    ("field", "value", "limit"),
    [
        ("loss_minor", -1, 0),
        ("loss_minor", PARTICIPATION_MINOR_MAX + 1, PARTICIPATION_MINOR_MAX),
        ("stake_minor", -1, 0),
        ("duration_ms", DURATION_MS_MAX + 1, DURATION_MS_MAX),
        ("duration_ms", -(2**63), 0),
    ],
)
async def test_a_limit_that_is_none(tmp_path: Path, field: str, value: int, limit: int) -> None:
    async with serving(tmp_path) as harness:
        player = ApiClient(harness.channel())
        limits = SessionLimits(**{field: value})
        error = await refused(player.sessions.OpenSession(player.open_request(limits=limits)))
        info = info_in(status_in(error))
        assert (error.code().name, info.reason) == ("INVALID_ARGUMENT", "INVALID_FIELD")
        assert (info.metadata["field"], info.metadata["limit"]) == (f"limits.{field}", str(limit))


@pytest.mark.parametrize(
    ("limits", "reason"), [({"loss_minor": 300}, "LOSS_LIMIT"), ({"stake_minor": 300}, "STAKE_LIMIT")]
)
async def test_a_limit_stops_what_it_does_not_cover_and_no_decision_that_is_owed(
    tmp_path: Path, limits: dict[str, int], reason: str
) -> None:
    async with serving(tmp_path) as harness:
        player = await limited(harness, **limits)
        assert (await session_of(player)).largest_ante_minor == 50  # ante, blind, and 4x to play
        # 100 + 100 are covered; what 4x costs is not.
        started = await player.start()
        named = {legal.action: (legal.available, legal.reason) for legal in started.round.legal_actions}
        assert named[common_pb2.ACTION_PLAY_4X] == (False, reason)
        assert named[CHECK] == (True, "")
        error = await refused(player.act(common_pb2.ACTION_PLAY_4X))
        info = info_in(status_in(error))
        assert (error.code().name, info.reason, info.metadata["limit"]) == ("FAILED_PRECONDITION", reason, "100")
        for action in (CHECK, CHECK):
            await player.act(action)
        last = await player.act(FOLD)
        assert last.round.outcome == common_pb2.OUTCOME_FOLD
        # 200 of 300 are gone: another round of 200 is not covered, a smaller one is.
        error = await refused(player.play.StartRound(player.start_request()))
        assert reason_in(status_in(error)) == reason
        bets = [common_pb2.Bet(bet="ante", amount_minor=50)]
        started = await player.play.StartRound(player.start_request(bets=bets))
        assert started.round.status == common_pb2.ROUND_STATUS_OPEN


async def test_the_time_of_a_session_ends_with_the_right_to_start(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        player = await limited(harness, duration_ms=60_000)
        await player.start()
        harness.clock.ahead_ms = 61_000
        view = await session_of(player)
        assert (view.HasField("time_left_ms"), view.time_left_ms) == (True, 0)
        for action in (CHECK, CHECK, FOLD):
            await player.act(action)
        await harness.until_serving()
        error = await refused(player.play.StartRound(player.start_request()))
        assert reason_in(status_in(error)) == "DURATION_LIMIT"
        assert error.code().name == "FAILED_PRECONDITION"


async def test_inactivity_ends_the_right_to_start_and_to_buy_and_nothing_else(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        player = await limited(harness)
        harness.clock.ahead_ms = 1_800_000 + 5_000
        await harness.until_serving()
        for call in (
            player.play.StartRound(player.start_request()),
            player.sessions.BuyParticipation(player.buy_request(purchase_no=2)),
        ):
            error = await refused(call)
            assert (error.code().name, reason_in(status_in(error))) == ("FAILED_PRECONDITION", "SESSION_INACTIVE")
        ids: dict[str, Any] = {"session_id": player.session_id}
        end = session_pb2.EndParticipationRequest(request_id=player.buy_request().request_id, **ids)
        assert (await player.sessions.EndParticipation(end)).session.paid_out_minor == 50_000
        close = session_pb2.CloseSessionRequest(request_id=player.buy_request().request_id, **ids)
        closed = (await player.sessions.CloseSession(close)).session
        assert (closed.status, closed.HasField("inactive_time")) == (common_pb2.SESSION_STATUS_CLOSED, False)


async def test_rounds_in_play_are_listed_to_those_they_concern(tmp_path: Path) -> None:
    harness = ApiHarness(tmp_path / "home")
    certificate = harness.issue(Role.OPERATOR, "other")
    await harness.allow(certificate, Role.OPERATOR, "other", "demo")
    async with serving(tmp_path) as harness:
        mine = [await ApiClient(harness.channel(), f"player-{nth}").seated() for nth in range(3)]
        theirs = await ApiClient(harness.channel(certificate), "player-x").seated()
        for player in (*mine, theirs):
            await player.start()
        await mine[0].act(CHECK)
        await mine[2].act(CHECK)
        await mine[2].act(CHECK)
        await mine[2].act(FOLD)
        harness.clock.ahead_ms = 5_000

        async def listed(player: ApiClient, **fields: Any) -> Any:
            return await player.sessions.ListOpenRounds(session_pb2.ListOpenRoundsRequest(**fields))

        own = await listed(mine[0])
        assert [found.round_id for found in own.rounds] == [mine[0].round_id, mine[1].round_id]
        first = own.rounds[0]
        assert (first.operator, first.player, first.game) == ("demo-operator", "player-0", "uth-solo")
        assert (first.session_id, first.staked_minor, first.paused) == (mine[0].session_id, 200, False)
        assert 5_000 <= first.idle_ms < 60_000
        idle_from_ms = own.rounds[1].start_time.ToMilliseconds()
        assert own.rounds[1].finish_time.ToMilliseconds() == idle_from_ms + 600_000
        assert list(cards_in(first)) == []
        shown = (await mine[0].sessions.GetSession(session_pb2.GetSessionRequest(session_id=first.session_id))).session
        ids = (shown.regulator_session_id, shown.regulator_participation_id)
        assert all(ids)
        assert (first.regulator_session_id, first.regulator_participation_id) == ids
        assert [found.round_id for found in (await listed(theirs)).rounds] == [theirs.round_id]
        for party in ("auditor", "regulator", "admin"):
            reader = ApiClient(harness.channel(f"demo-{party}"))
            page = await listed(reader, page_size=2)
            rest = await listed(reader, page_size=2, page_token=page.next_page_token)
            found = [row.round_id for row in (*page.rounds, *rest.rounds)]
            assert found == [mine[0].round_id, mine[1].round_id, theirs.round_id]
            assert not rest.next_page_token
