"""Rounds at real tables over `Watch`: what each operator's stream carries, and what it never does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import Message

from rgs.core.tables.machine import State
from rgs.service.callers import Caller, Role
from rgs.v1 import common_pb2
from rgs.v1 import table_pb2 as pb
from tests.support.api.client import request_id
from tests.support.api.harness import channel_of
from tests.support.api.table_endpoint import ServedTables, certificate, listening, stream_of
from tests.support.service.harness import OPERATOR, open_harness
from tests.support.service.tables import ALWAYS, Evening, Sitter
from tests.support.waiting import until

OTHER = Caller("op-2", Role.OPERATOR, "demo")


@dataclass
class Side:
    """One operator's stream and what came of it."""

    stream: Any
    sitter: Sitter
    seen: list[pb.WatchResponse] = field(default_factory=list)

    async def read(self) -> None:
        while True:
            self.seen.append(await self.stream.read())

    async def answer(self, **request: Any) -> pb.WatchResponse:
        """Send a call of play; its answer."""
        (message,) = request.values()
        await self.stream.write(pb.WatchRequest(**request))
        await until(lambda: any(one.request_id == message.request_id for one in self.seen))
        return next(one for one in self.seen if one.request_id == message.request_id)

    @property
    def table(self) -> pb.TableView:
        return next(one.table for one in reversed(self.seen) if one.HasField("table"))

    @property
    def seat(self) -> pb.SeatView:
        return next(one.seat for one in reversed(self.seen) if one.HasField("seat"))


@dataclass
class Played:
    evening: Evening
    sides: list[Side]

    async def to(self, state: State) -> None:
        """Let time pass; every stream has heard of where the table stands then."""
        await self.evening.until(state)
        version = (await self.evening.row()).table.version
        await until(lambda: all(side.table.version == version for side in self.sides))


@asynccontextmanager
async def played(folder: Path, table_id: str) -> AsyncIterator[Played]:
    """Two operators, each with one player who watches the table and the seat, and sits down over the stream."""
    async with open_harness(folder) as harness:
        evening = await Evening(harness, table_id, hours=ALWAYS, operators=[OPERATOR.party, OTHER.party]).open()
        served = ServedTables(harness)
        roles = dict.fromkeys((OPERATOR.party, OTHER.party), Role.OPERATOR)
        async with listening(served.methods, roles) as (endpoint, _, _, _):
            sides, channels, readers = [], [], []
            for nth, caller in enumerate((OPERATOR, OTHER), 1):
                channels.append(channel_of(endpoint.port, certificate(caller.party, Role.OPERATOR)))
                sitter = Sitter(evening, f"player-{nth}", caller)
                await sitter.open()
                side = Side(stream_of(channels[-1]), sitter)
                sides.append(side)
                readers.append(asyncio.create_task(side.read()))
                join = pb.JoinRequest(request_id=request_id(), session_id=sitter.session_id, nickname=f"nickname {nth}")
                answer = (await side.answer(join=join)).join
                assert (answer.session.table, answer.seat.device_no) == (table_id, 1)
                await side.stream.write(pb.WatchRequest(watch_table=pb.WatchTable(table=table_id)))
                await side.stream.write(pb.WatchRequest(watch_session=pb.WatchSession(session_id=sitter.session_id)))
                await until(lambda side=side: any(one.HasField("seat") for one in side.seen))  # type: ignore[misc]
            try:
                yield Played(evening, sides)
            finally:
                for reader in readers:
                    reader.cancel()
                for channel in channels:
                    await channel.close()


async def bet(side: Side, amount_minor: int, *, begins: bool) -> pb.PlaceBetsResponse:
    request = pb.PlaceBetsRequest(
        request_id=request_id(),
        session_id=side.sitter.session_id,
        device_no=side.seat.device_no,
        round_id="" if begins else side.table.round_id,
        seat_version=side.seat.seat_version,
        bets=[common_pb2.Bet(bet="ante", amount_minor=amount_minor)],
    )
    return (await side.answer(place_bets=request)).place_bets


def texts(message: Message) -> Iterator[str]:
    for _, value in message.ListFields():
        for item in value if isinstance(value, list) or hasattr(value, "append") else [value]:
            if isinstance(item, Message):
                yield from texts(item)
            elif isinstance(item, str):
                yield item


def shows_cards(view: pb.TableView) -> bool:
    return bool(view.hole_cards or view.board or view.dealer_cards or any(box.hole_cards for box in view.boxes))


@pytest.mark.parametrize("table_id", ["uth-online", "uth-seven-box"])
async def test_a_round_of_two_operators(tmp_path: Path, table_id: str) -> None:
    async with played(tmp_path, table_id) as evening:
        one, other = evening.sides
        placed = await bet(one, 1_000, begins=True)
        assert (placed.seat.reserved_minor, placed.session.reserved_minor) == (2_000, 2_000)
        await until(lambda: other.table.state == pb.TABLE_STATE_BETTING)
        await bet(other, 1_500, begins=False)
        await evening.to(State.DECIDING)
        await until(lambda: all(side.seat.round.hole_cards and side.seat.round.legal_actions for side in evening.sides))
        for side, action in ((one, common_pb2.ACTION_PLAY_4X), (other, common_pb2.ACTION_CHECK)):
            decide = pb.DecideRequest(
                request_id=request_id(),
                session_id=side.sitter.session_id,
                device_no=1,
                round_id=side.table.round_id,
                round_version=side.seat.round.round_version,
                action=action,
            )
            answer = await side.answer(decide=decide)
            assert answer.decide.seat.round.actions[-1].action == action, answer
        await evening.to(State.RESULT)
        settled = common_pb2.ROUND_STATUS_SETTLED
        await until(lambda: all(side.seat.round.status == settled for side in evening.sides))

        for side, foreign in ((one, other), (other, one)):
            own, their = side.sitter.session_id, foreign.sitter.session_id
            views = [response.table for response in side.seen if response.HasField("table")]
            versions = [view.version for view in views]
            assert versions == sorted(versions)
            said = {text for response in side.seen for text in texts(response)}
            assert own in said
            assert their not in said
            assert foreign.sitter.name not in said
            boxes = [box for view in views for box in view.boxes]
            assert all(not box.bets and not box.session_id for box in boxes if box.session_id != own)
            # No card of the table before its first decision window, and no dealer's card before the last has ended.
            before = (pb.TABLE_STATE_BETTING, pb.TABLE_STATE_CLOSED, pb.TABLE_STATE_FIXED, pb.TABLE_STATE_OPENING)
            assert not any(shows_cards(view) for view in views if view.state in before)
            deciding = [view for view in views if view.state == pb.TABLE_STATE_DECIDING]
            assert {view.phase for view in deciding} >= {common_pb2.PHASE_PREFLOP}
            assert not any(view.dealer_cards for view in deciding)
            shown = {common_pb2.PHASE_PREFLOP: 0, common_pb2.PHASE_FLOP: 3, common_pb2.PHASE_RIVER: 5}
            assert all(len(view.board) == shown[view.phase] for view in deciding)
            rounds = [response.seat.round for response in side.seen if response.HasField("seat")]
            assert not any(one.dealer_cards and one.legal_actions for one in rounds)
            assert len(views[-1].dealer_cards) == 2
            for name in ("table_round", "table_deal", "table_final"):
                envelopes = [getattr(view, name) for view in views if getattr(view, name)]
                assert len(envelopes) == 1, name  # once a stream


async def test_another_device_is_said_to_the_first(tmp_path: Path) -> None:
    async with played(tmp_path, "uth-online") as evening:
        one, _ = evening.sides
        join = pb.JoinRequest(request_id=request_id(), session_id=one.sitter.session_id, nickname="again")
        assert (await one.answer(join=join)).join.seat.device_no == 2
        await until(lambda: one.seat.device_no == 2)
        placed = await one.answer(
            place_bets=pb.PlaceBetsRequest(
                request_id=request_id(), session_id=one.sitter.session_id, device_no=1, seat_version=1
            )
        )
        assert "another device" in placed.error.message or "no longer plays" in placed.error.message


async def test_a_line_reaches_both_and_names_its_writer_to_one(tmp_path: Path) -> None:
    async with played(tmp_path, "uth-online") as evening:
        one, other = evening.sides
        say = pb.SayRequest(request_id=request_id(), session_id=one.sitter.session_id, text="good luck")
        answer = (await one.answer(say=say)).say.line
        assert (answer.player, answer.nickname) == ("player-1", "nickname 1")
        for side, player in ((one, "player-1"), (other, "")):
            await until(lambda side=side: any(response.line.text for response in side.seen))  # type: ignore[misc]
            (line,) = (response.line for response in side.seen if response.line.text)
            assert (line.text, line.player, line.is_own) == ("good luck", player, bool(player))
