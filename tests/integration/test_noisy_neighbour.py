"""One operator keeps the server as busy as it may, with rounds that are committed; the calls of another are answered
within a bounded number of commits and of the first one's answers, unary and on a stream.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import grpc
import pytest

from rgs.api.quotas import PartyLimits
from rgs.v1 import play_pb2, session_pb2
from tests.integration.test_attack_wire import Recorder
from tests.support.api.client import ApiClient
from tests.support.api.harness import reason_in, status_in
from tests.support.api.wired import Wire, wired
from tests.support.service.oracles import verify_books

pytestmark = pytest.mark.slow

NOISY = 32
AT_ONCE = 12
"""Calls that the noisy operator may have under way: it always has as many as it can."""


class Noise:
    """Rounds that are played as fast as they are taken, by a client that asks again at once when it is refused."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self.answered = self.refused = 0
        self.stop = False

    async def play(self, player: Recorder) -> None:
        while not self.stop:
            self._wire.harness.clock.tick(1_500)
            player.seen(await self._persist(player.play.StartRound, player.start_request()))
            player.round_no += 1
            for action in (1, 1, 7):
                player.seen(await self._persist(player.play.Act, player.act_request(action)))

    async def _persist(self, call: Any, request: Any) -> Any:
        while True:
            try:
                answer = await call(request)
            except grpc.aio.AioRpcError as error:
                if reason_in(status_in(error)) != "PARTY_LIMIT":
                    raise
                self.refused += 1
                await asyncio.sleep(0)
            else:
                self.answered += 1
                return answer


@pytest.mark.parametrize("on_stream", [False, True])
async def test_a_noisy_operator_does_not_starve_another(tmp_path: Path, on_stream: bool) -> None:
    async with wired(tmp_path, limits=PartyLimits(calls_max=AT_ONCE)) as wire:
        crowd = [Recorder(wire, f"player-{nth}") for nth in range(NOISY)]
        for player in crowd:
            await player.sit()
        quiet = ApiClient(wire.channel("op-2"), "zoe")
        await quiet.seated()
        noise = Noise(wire)
        flood = [asyncio.create_task(noise.play(player)) for player in crowd]
        while noise.answered < 2 * NOISY or not noise.refused:  # noqa: ASYNC110 - the flood has come up
            await asyncio.sleep(0.005)
        stream = quiet.play.Play()
        turns: list[tuple[int, int]] = []

        async def ask(field: str, request: Any) -> Any:
            groups, answers = wire.harness.store.writer.groups, noise.answered
            if on_stream:
                await stream.write(play_pb2.PlayRequest(**{field: request}))
                result = await stream.read()
                assert result.WhichOneof("response") == field, result
                answer = getattr(result, field)
            else:
                answer = await (quiet.play.Act if field == "act" else quiet.play.StartRound)(request)
            turns.append((wire.harness.store.writer.groups - groups, noise.answered - answers))
            quiet.seen(answer)
            return answer

        for _ in range(3):
            wire.harness.clock.tick(1_500)
            await ask("start_round", quiet.start_request())
            quiet.round_no += 1
            for action in (1, 1, 7):
                await ask("act", quiet.act_request(action))
        noise.stop = True
        await asyncio.gather(*flood)
        stream.cancel()
        for player in crowd:
            await player.leave()
        request = session_pb2.GetSessionRequest(session_id=quiet.session_id)
        assert (await quiet.sessions.GetSession(request)).session.next_round_no == 4
        await wire.harness.settle()
    assert noise.refused, "the flood was above its limits all the while"
    # A few turns of those whom the other may have under way, however many it would like to have. Now and then the
    # machine lets a thread of gRPC wait: a single call may take longer, most may not.
    groups, answers = (sorted(column) for column in zip(*turns, strict=True))
    assert groups[len(turns) // 2] <= AT_ONCE, turns
    assert answers[len(turns) // 2] <= 8 * AT_ONCE, turns
    assert verify_books(tmp_path).rounds_verified > NOISY
