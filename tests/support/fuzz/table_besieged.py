"""The table of a server under fuzz: each example finds a player there, every second time in a round that is dealt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from google.protobuf.message import Message

from rgs.core.tables.machine import State
from rgs.service.tables.chat import PAUSE_MS
from rgs.v1 import common_pb2, session_pb2, table_pb2
from tests.support.api.wired import Wire
from tests.support.service.tables import ALWAYS, Evening, config_text

TABLE, TABLE_ADMIN = "rgs.v1.TableService/", "rgs.v1.TableAdminService/"
TABLE_NAME = "uth-seven-box"
RESERVED_BOX = 7
ROWS: dict[str, Any] = {"operators": ["op-1", "op-2"], "hours": ALWAYS}


class BesiegedTable:
    """A table with seven boxes and one player of op-1. `request_id(0)` gives a new id."""

    def __init__(self, wire: Wire, request_id: Callable[[int], str]) -> None:
        self._wire, self._request_id = wire, request_id
        self._evening = Evening(wire.harness, TABLE_NAME, **ROWS)
        self._version = self._evening.config.version
        self.session_id = ""
        self._player = ""
        self._stands: dict[str, Any] = {}

    async def start(self) -> None:
        message = table_pb2.ConfigureTableRequest(
            request_id=self._request_id(0), config=self._evening.text, reason="NEW_TABLE"
        )
        await self._wire.ask("admin-1", f"{TABLE_ADMIN}ConfigureTable", message)
        assert await self._evening.until(State.IDLE) is State.IDLE

    async def begin(self, player: str, *, plays: bool) -> list[bytes]:
        """Seat a player; with bets, in a round that waits for decisions. The secrets of its deck."""
        opening = session_pb2.OpenSessionRequest(
            request_id=self._request_id(0),
            game=self._evening.config.ruleset_id,
            player=player,
            currency="EUR",
            operator_reference=player,
            table=TABLE_NAME,
        )
        data = await self._ask("Session", "OpenSession", opening)
        self.session_id, self._player = session_pb2.OpenSessionResponse.FromString(data).session.session_id, player
        purchase = session_pb2.BuyParticipationRequest(
            request_id=self._request_id(0), session_id=self.session_id, purchase_no=1, amount_minor=20_000
        )
        await self._ask("Session", "BuyParticipation", purchase)
        joining = table_pb2.JoinRequest(request_id=self._request_id(0), session_id=self.session_id, nickname="anna")
        await self._ask("Table", "Join", joining)
        said = table_pb2.SayRequest(request_id=self._request_id(0), session_id=self.session_id, text="good evening")
        line = table_pb2.SayResponse.FromString(await self._ask("Table", "Say", said)).line
        self._stands = {"message_id": line.message_id}
        self._wire.harness.clock.tick(PAUSE_MS)
        if not plays:
            await self._evening.look()
            return []
        return await self._dealt()

    async def _dealt(self) -> list[bytes]:
        await self.read()
        bets = table_pb2.PlaceBetsRequest(
            request_id=self._request_id(0),
            session_id=self.session_id,
            device_no=self._stands["device_no"],
            seat_version=self._stands["seat_version"],
            bets=[common_pb2.Bet(bet="ante", amount_minor=500)],
        )
        await self._ask("Table", "PlaceBets", bets)
        await self._evening.until(State.DECIDING)
        await self.read()
        harness = self._wire.harness
        round_ = await harness.store.table_round(self._stands["round_id"])
        assert round_ is not None
        opened = harness.tables.seat_rounds.decks.open(round_)
        return [opened.salt, opened.transcript]

    async def read(self) -> None:
        """The numbers that the player's client would name now."""
        store = self._wire.harness.store
        row, sitting = await self._evening.row(), await store.sitting(self.session_id)
        round_ = await store.seat(row.table.round_id, self.session_id) if row.table.round_id else None
        self._stands |= {
            "round_id": row.table.round_id,
            "device_no": 1 if sitting is None else sitting.device_no,
            "seat_version": 1 if sitting is None else sitting.version,
            "round_version": 1 if round_ is None else round_.version,
        }

    async def restore(self) -> None:
        """Make what accepted calls did undone: the table is open, empty and without a round."""
        row = await self._evening.row()
        if row.is_shut:
            await self._order("SetTableOpen", table_pb2.SetTableOpenRequest(table=TABLE_NAME, open=True, reason="NEXT"))
        if row.table.state is State.PAUSED:
            await self._order("ResumeTable", table_pb2.ResumeTableRequest(table=TABLE_NAME, reason="NEXT"))
        await self.read()
        if await self._wire.harness.store.sitting(self.session_id) is not None:
            leaving = table_pb2.LeaveRequest(
                request_id=self._request_id(0), session_id=self.session_id, device_no=self._stands["device_no"]
            )
            await self._ask("Table", "Leave", leaving)
        for one in await self._wire.harness.store.reservations(TABLE_NAME):
            await self._order("ReserveBox", table_pb2.ReserveBoxRequest(table=TABLE_NAME, box=one.box, reason="NEXT"))
        await self._evening.until(State.IDLE, most=40)

    async def _order(self, name: str, message: Any) -> None:
        message.request_id = self._request_id(0)
        await self._wire.ask("admin-1", f"{TABLE_ADMIN}{name}", message)

    async def _ask(self, service: str, name: str, message: Message) -> bytes:
        data = await self._wire.ask("op-1", f"rgs.v1.{service}Service/{name}", message)
        await self._wire.harness.tables.dealer.stop()
        return data

    def known(self, method: str, nth: int) -> dict[str, Any]:
        """What stands at the table now, by field; only these fields differ from those of solo play."""
        name = method.partition("/")[2]
        self._version += 1
        return {
            "table": TABLE_NAME,
            "session_id": self.session_id,
            "round_id": self._stands["round_id"] if name != "PlaceBets" or nth else "",
            "round_version": self._stands["round_version"] + nth,
            "device_no": self._stands["device_no"] + nth,
            "seat_version": self._stands["seat_version"] + nth,
            "after_version": nth,
            "box": 0 if name == "Join" else RESERVED_BOX - nth,
            "bets": [{"bet": "ante", "amount_minor": 500}],
            "player": self._player,
            "operator": "op-1",
            "nickname": "anna",
            "text": "good evening",
            "message_id": self._stands["message_id"],
            "malfunction_code": "CAMERA_FAILED",
            "barred": not nth % 2,
            "open": not nth % 2,
            "config": config_text(TABLE_NAME, version=self._version, **ROWS),
        }
