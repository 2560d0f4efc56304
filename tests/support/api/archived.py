"""Sessions that may be archived, and what is compared before and after (`tests/integration/test_archive*.py`)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from certification import replay as certify
from rgs.cli import export
from rgs.cli.archive import Counted, due_sessions
from rgs.node.clock import now_ms
from rgs.node.config import Config
from rgs.node.keyring import read_fingerprint
from rgs.node.stores import reading
from rgs.v1 import common_pb2, free_bet_pb2, session_pb2
from rgs.v1.free_bet_pb2_grpc import FreeBetServiceStub
from tests.support.api.client import ANTE_MINOR, ApiClient, request_id

ROUNDS = 3


async def play_and_close(player: ApiClient, folds: list[tuple[Any, Any]] | None = None) -> list[str]:
    """A session of rounds, from open to close; the ids of the rounds. A free bet pays for the first. `folds` gets the
    last request of each round with its answer.
    """
    rounds: list[str] = []
    await player.seated()
    grants: Any = FreeBetServiceStub(player.channel)
    granted = await grants.GrantFreeBets(
        free_bet_pb2.GrantFreeBetsRequest(
            request_id=request_id(),
            player=player.player,
            game="uth-solo",
            currency="EUR",
            campaign="spring",
            stake_minor=ANTE_MINOR,
            count=1,
            expiry_time=Timestamp(seconds=now_ms() // 1000 + 3600),
        )
    )
    for _ in range(ROUNDS):
        named = {} if rounds else {"free_bet": granted.free_bets[0].grant_id}
        started = await player.play.StartRound(player.start_request(**named))
        player.seen(started)
        player.round_no = started.session.next_round_no
        for action in (common_pb2.ACTION_CHECK, common_pb2.ACTION_CHECK):
            await player.act(action)
        fold = player.act_request(common_pb2.ACTION_FOLD)
        (folds if folds is not None else []).append((fold, await player.play.Act(fold)))
        rounds.append(player.round_id)
    ids: dict[str, Any] = {"session_id": player.session_id}
    await player.sessions.EndParticipation(session_pb2.EndParticipationRequest(request_id=request_id(), **ids))
    await player.sessions.CloseSession(session_pb2.CloseSessionRequest(request_id=request_id(), **ids))
    return rounds


async def until_read(config: Config) -> None:
    """The lists of finals and the watch over returns have read all sessions that are closed."""
    for _ in range(400):
        if not (await counted(config)).stays["unread"]:
            return
        await asyncio.sleep(0.05)
    pytest.fail("not read after 20 s")


async def counted(config: Config) -> Counted:
    found = Counted()
    async with reading(config.store) as reads:
        async for _ in due_sessions(reads, now_ms() + 1000, found):
            pass
    return found


def exported(config: Config, out: Path) -> bytes:
    asyncio.run(export.export_to(config, ([], []), str(out), private=True))
    return out.read_bytes()


def replayed(config: Config, path: Path) -> int:
    """The status of `certify replay` over a file, anchored."""
    return certify.main([str(path), "--keys", str(config.bundle), "--root", read_fingerprint(config.keys)])
