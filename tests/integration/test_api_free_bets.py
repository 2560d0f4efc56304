"""Free bets at the wire: granted, listed, played, taken back; a malformed request changes nothing."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from rgs.v1 import common_pb2, free_bet_pb2, history_pb2
from rgs.v1.free_bet_pb2_grpc import FreeBetServiceStub
from tests.support.api.client import ANTE_MINOR, BOUGHT_MINOR, ApiClient, refused, request_id
from tests.support.api.harness import info_in, reason_in, serving, status_in
from tests.support.service.harness import read_statement


def expiry(in_s: float = 3600) -> Timestamp:
    found = Timestamp()
    found.FromMilliseconds(int((time.time() + in_s) * 1000))
    return found


def granting(**changed: Any) -> free_bet_pb2.GrantFreeBetsRequest:
    given = {
        "request_id": request_id(),
        "player": "player-1",
        "game": "uth-solo",
        "currency": "EUR",
        "campaign": "spring",
        "stake_minor": ANTE_MINOR,
        "count": 2,
        "expiry_time": expiry(),
    }
    return free_bet_pb2.GrantFreeBetsRequest(**{**given, **changed})


async def paid(player: ApiClient, grant: free_bet_pb2.FreeBet) -> list[tuple[str, str]]:
    """What the record of the newest round holds of the free bet: directions and amounts."""
    request = history_pb2.GetRoundRecordRequest(round_id=player.round_id)
    (record,) = (await player.history.GetRoundRecord(request)).records
    links = [read_statement(envelope) for envelope in record.free_bets]
    for link in links:
        assert (link["kind"], link["grant_id"], link["round_id"]) == ("free_bet", grant.grant_id, player.round_id)
    return [(link["direction"], link["amount_minor"]) for link in links]


async def test_a_free_bet_from_its_grant_to_its_final(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        player = ApiClient(harness.channel())
        stub: Any = FreeBetServiceStub(player.channel)
        await player.open()
        await player.buy()
        request = granting()
        granted = await stub.GrantFreeBets(request)
        assert await stub.GrantFreeBets(request) == granted
        first, second = sorted(granted.free_bets, key=lambda one: one.grant_id)
        assert (first.campaign, first.stake_minor, first.status) == (
            "spring",
            ANTE_MINOR,
            free_bet_pb2.FREE_BET_STATUS_OPEN,
        )
        listed = await stub.ListFreeBets(free_bet_pb2.ListFreeBetsRequest(player="player-1", page_size=1))
        assert [one.grant_id for one in listed.free_bets] == [first.grant_id]
        rest = await stub.ListFreeBets(
            free_bet_pb2.ListFreeBetsRequest(player="player-1", page_size=1, page_token=listed.next_page_token)
        )
        assert ([one.grant_id for one in rest.free_bets], rest.next_page_token) == ([second.grant_id], "")
        started = await player.play.StartRound(player.start_request(free_bet=first.grant_id))
        player.seen(started)
        assert started.session.balance_minor == BOUGHT_MINOR
        assert (started.round.grant_id, started.round.granted_minor) == (first.grant_id, 2 * ANTE_MINOR)
        assert read_statement(started.opening)["kind"] == "round_opening"
        assert await paid(player, first) == [("debit", str(2 * ANTE_MINOR))]
        for _ in range(2):
            await player.act(common_pb2.ACTION_CHECK)
        last = await player.act(common_pb2.ACTION_FOLD)
        assert read_statement(last.final)["kind"] == "round_final"
        assert (last.round.staked_minor, last.round.reclaimed_minor) == (2 * ANTE_MINOR, 0)
        assert (last.session.balance_minor, last.session.net_position_minor) == (BOUGHT_MINOR, 0)
        assert await paid(player, first) == [("debit", str(2 * ANTE_MINOR)), ("credit", "0")]
        again = player.start_request(free_bet=first.grant_id, round_no=last.session.next_round_no)
        error = await refused(player.play.StartRound(again))
        assert reason_in(status_in(error)) == "FREE_BET_REFUSED"
        assert info_in(status_in(error)).metadata["grant_id"] == first.grant_id
        cancelled = await stub.CancelFreeBet(
            free_bet_pb2.CancelFreeBetRequest(request_id=request_id(), grant_id=second.grant_id)
        )
        assert cancelled.free_bet.status == free_bet_pb2.FREE_BET_STATUS_CANCELLED


async def test_a_record_holds_the_free_bets_of_its_own_round_only(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        player = ApiClient(harness.channel())
        stub: Any = FreeBetServiceStub(player.channel)
        await player.open()
        await player.buy()
        granted = await stub.GrantFreeBets(granting())
        held = []
        for number, grant in enumerate((*granted.free_bets, None), 1):
            named = {"free_bet": grant.grant_id} if grant else {}
            player.seen(await player.play.StartRound(player.start_request(round_no=number, **named)))
            for _ in range(2):
                await player.act(common_pb2.ACTION_CHECK)
            await player.act(common_pb2.ACTION_FOLD)
            held.append(player.round_id)
        for round_id, grant in zip(held, (*granted.free_bets, None), strict=True):
            player.round_id = round_id
            if grant:
                assert await paid(player, grant) == [("debit", str(2 * ANTE_MINOR)), ("credit", "0")]
            else:
                request = history_pb2.GetRoundRecordRequest(round_id=round_id)
                (record,) = (await player.history.GetRoundRecord(request)).records
                assert not record.free_bets


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"request_id": "1"}, "request_id"),
        ({"player": ""}, "player"),
        ({"campaign": "A"}, "campaign"),
        ({"stake_minor": 0}, "stake_minor"),
        ({"count": 0}, "count"),
        ({"count": 101}, "count"),
        ({"expiry_time": Timestamp()}, "expiry_time"),
        ({"expiry_time": Timestamp(seconds=-1)}, "expiry_time"),
        ({"expiry_time": Timestamp(seconds=1 << 62)}, "expiry_time"),
        ({"expiry_time": Timestamp(seconds=1)}, "expiry_time"),
    ],
)
async def test_a_malformed_grant_is_refused_by_its_field(tmp_path: Path, changed: dict[str, Any], field: str) -> None:
    async with serving(tmp_path) as harness:
        stub: Any = FreeBetServiceStub(harness.channel())
        error = await refused(stub.GrantFreeBets(granting(**changed)))
        assert (reason_in(status_in(error)), info_in(status_in(error)).metadata["field"]) == ("INVALID_FIELD", field)
        found = await stub.ListFreeBets(free_bet_pb2.ListFreeBetsRequest(player="player-1"))
        assert not found.free_bets
