"""Launches and play money at the wire: what an operator's platform and a thief of a token get to hear."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import structlog

from rgs.node.logging import Log
from rgs.service.callers import Role
from rgs.v1 import common_pb2, history_pb2, session_pb2
from tests.support.api.client import ApiClient, refused, request_id
from tests.support.api.harness import ApiHarness, info_in, reason_in, serving, status_in
from tests.support.service.harness import read_statement


def creating(**fields: Any) -> session_pb2.CreateLaunchRequest:
    given: dict[str, Any] = {
        "request_id": request_id(),
        "game": "uth-solo",
        "player": "player-1",
        "currency": "EUR",
        "operator_reference": "ref-1",
        "language": "de",
        "return_url": "https://casino.example/lobby",
    }
    return session_pb2.CreateLaunchRequest(**given | fields)


def redeeming(token: str, **fields: Any) -> session_pb2.OpenSessionRequest:
    return session_pb2.OpenSessionRequest(**{"request_id": request_id(), "launch_token": token, **fields})


async def test_a_launch_from_the_platform_to_the_page(tmp_path: Path) -> None:
    prepared = ApiHarness(tmp_path / "home")
    other = prepared.issue(Role.OPERATOR, "op-9")
    await prepared.allow(other, Role.OPERATOR, "op-9", "demo")
    async with serving(tmp_path) as harness:
        with Log(harness.config.log, "debug", harness.clock, people=None) as log:
            player, stranger = ApiClient(harness.channel()), ApiClient(harness.channel(other))
            made = await player.sessions.CreateLaunch(creating())
            request = redeeming(made.launch_token)
            stolen = status_in(await refused(stranger.sessions.OpenSession(redeeming(made.launch_token))))
            unknown = status_in(await refused(player.sessions.OpenSession(redeeming("A" * 43))))
            assert reason_in(stolen) == "NOT_FOUND"
            assert (stolen.message, info_in(stolen).metadata) == (unknown.message, info_in(unknown).metadata)
            opened = await player.sessions.OpenSession(request)
            assert (opened.session.language, opened.session.return_url) == ("de", "https://casino.example/lobby")
            assert opened.session.mode == common_pb2.MODE_REAL
            assert await player.sessions.OpenSession(request) == opened
            used = status_in(await refused(player.sessions.OpenSession(redeeming(made.launch_token))))
            assert reason_in(used) == "LAUNCH_USED"
            again = status_in(await refused(player.sessions.OpenSession(redeeming(made.launch_token, game="poker"))))
            assert reason_in(again) == "LAUNCH_USED"
            malformed = status_in(await refused(player.sessions.OpenSession(redeeming("x" * 43 + "="))))
            assert (reason_in(malformed), info_in(malformed).metadata["field"]) == ("INVALID_FIELD", "launch_token")
            structlog.get_logger().info("request", request=str(request_id()), of=repr(opened.session.session_id))
            log.flush()
            kept = {}
            for path in harness.config.home.rglob("*"):
                with suppress(FileNotFoundError):  # what the log stages comes and goes
                    if path.is_file():
                        kept[path.name] = path.read_bytes()
    assert any(b"session-open" in data for data in kept.values())
    assert [name for name, data in kept.items() if made.launch_token.encode() in data] == []


async def test_play_money_is_marked_wherever_it_is_shown(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        player = ApiClient(harness.channel())
        made = await player.sessions.CreateLaunch(creating(mode=common_pb2.MODE_DEMO))
        opened = await player.sessions.OpenSession(redeeming(made.launch_token))
        assert opened.session.mode == common_pb2.MODE_DEMO
        assert (opened.session.regulator_session_id, opened.session.test_regulator) == ("", False)
        assert read_statement(opened.statement)["mode"] == "demo"
        player.session_id = opened.session.session_id
        await player.buy()
        await player.round_to_the_end()
        listed = await player.history.ListRounds(history_pb2.ListRoundsRequest(player="player-1"))
        assert [row.mode for row in listed.rounds] == [common_pb2.MODE_DEMO]
        (page,) = (await player.sessions.ListSessions(session_pb2.ListSessionsRequest(player="player-1"))).sessions
        assert page.mode == common_pb2.MODE_DEMO
