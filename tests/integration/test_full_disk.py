"""A server process whose disk is full for a while, asked over gRPC: calls fail with a reason and a time to come again,
what is there can be read, nothing is half done, and it goes on without a restart when there is room again.

Full is a limit on the size of files (RLIMIT_FSIZE) that is set on the running process, and taken away again.
"""

from __future__ import annotations

import asyncio
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.rpc.error_details_pb2 import RetryInfo

from rgs.node.files import read_whole
from rgs.node.pki import load_issued
from rgs.v1 import play_pb2, session_pb2
from tests.support.api.client import ApiClient, refused, request_id
from tests.support.api.harness import channel_of, info_in, status_in
from tests.support.process.served import Served, rgs, serving

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="no prlimit on this system"),
]


def channel(served: Served) -> grpc.aio.Channel:
    ca, certificate, key = served.identity
    client = load_issued(certificate.read_bytes(), read_whole(key, "key", secret=True))
    authority = load_issued(ca.read_bytes(), (ca.parent / "ca.key").read_bytes())
    return channel_of(int(served.address.rpartition(":")[2]), client, authority)


def fill(served: Served) -> None:
    """No file of the server takes another byte."""
    set_limit(served, 1)


def make_room(served: Served) -> None:
    set_limit(served, resource.RLIM_INFINITY)


def set_limit(served: Served, limit: int) -> None:
    process = served.server._process.pid
    _, hard = resource.prlimit(process, resource.RLIMIT_FSIZE)
    resource.prlimit(process, resource.RLIMIT_FSIZE, (limit, hard))


async def verify_unavailable(call: Any) -> str:
    """The reason of a call that is refused for now, which says when to come again."""
    error = await refused(call)
    assert error.code() is grpc.StatusCode.UNAVAILABLE, error
    status = status_in(error)
    retry = RetryInfo()
    assert [detail.Unpack(retry) for detail in status.details].count(True) == 1
    assert retry.retry_delay.ToMilliseconds() > 0
    return info_in(status).reason


async def patiently(ask: Any, request: Any) -> Any:
    """The answer, once the server takes requests again."""
    for _ in range(200):
        try:
            return await ask(request)
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.UNAVAILABLE:
                raise
            await asyncio.sleep(0.05)
    raise AssertionError("it did not come back")


async def live(served: Served) -> None:
    to_server = channel(served)
    anna, bert, carl = [await ApiClient(to_server, name).seated() for name in ("anna", "bert", "carl")]
    await anna.start()
    before = await anna.sessions.GetSession(session_pb2.GetSessionRequest(session_id=anna.session_id))
    act, start, buy = anna.act_request(1), bert.start_request(), carl.buy_request(purchase_no=2, amount_minor=500)
    opening = carl.open_request(player="dora")
    fill(served)
    assert await verify_unavailable(bert.play.StartRound(start)) == "STORE_UNAVAILABLE"
    assert await verify_unavailable(bert.play.StartRound(start)) == "GUARD_CLOSED"
    assert await verify_unavailable(anna.play.Act(act)) == "STORE_UNAVAILABLE"
    assert await verify_unavailable(carl.sessions.BuyParticipation(buy)) == "STORE_UNAVAILABLE"
    await verify_unavailable(carl.sessions.OpenSession(opening))
    stream = anna.play.Play()
    await stream.write(play_pb2.PlayRequest(act=act))
    assert info_in((await stream.read()).error).reason == "STORE_UNAVAILABLE"
    # What is there can be read, and stands as it stood.
    found = await anna.sessions.GetSession(session_pb2.GetSessionRequest(session_id=anna.session_id))
    assert found.session.open_round == before.session.open_round
    assert found.session.balance_minor == before.session.balance_minor
    make_room(served)
    # The very same requests, in the same process: each takes effect once.
    acted = await patiently(anna.play.Act, act)
    assert await anna.play.Act(act) == acted
    anna.seen(acted)
    started = await patiently(bert.play.StartRound, start)
    bert.seen(started)
    bought = await patiently(carl.sessions.BuyParticipation, buy)
    assert bought.session.bought_minor == 50_500
    opened = await patiently(carl.sessions.OpenSession, opening)
    assert await carl.sessions.OpenSession(opening) == opened
    await anna.act(1)
    await anna.act(7)
    for action in (1, 1, 7):
        await bert.act(action)
    for player, left_minor in ((anna, 49_800), (bert, 49_800), (carl, 50_500)):
        ids = {"session_id": player.session_id}
        ending = session_pb2.EndParticipationRequest(request_id=request_id(), **ids)
        ended = await patiently(player.sessions.EndParticipation, ending)
        assert ended.session.paid_out_minor == left_minor
        closing = session_pb2.CloseSessionRequest(request_id=request_id(), **ids)
        await patiently(player.sessions.CloseSession, closing)
    stream.cancel()
    await to_server.close()


def test_a_server_goes_on_when_its_full_disk_has_room_again(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        process = served.server._process.pid
        asyncio.run(live(served))
        served.server.verify_running()
        assert served.server._process.pid == process
    export, bundle = tmp_path / "all.jsonl", served.home / "keys" / "keys.json"
    made = rgs("export", "--home", str(served.home), "--out", str(export))
    assert made.returncode == 0, made.stderr
    command = [sys.executable, "-m", "certification", "replay", str(export), "--keys", str(bundle)]
    replayed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr
    # The draw of the start that failed is accounted for, as one that was not used.
    assert "draws        2 in rounds, 1 discarded, at most 0 unknown" in replayed.stdout
    assert replayed.stdout.splitlines()[-1].startswith("2 rounds verified, 0 failed")
