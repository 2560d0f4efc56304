"""The services of tables on a port, over mutual TLS: the product's streams and feed, and doubles behind them."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import grpc
from structlog.testing import capture_logs

from rgs.api import table, table_admin
from rgs.api.auth import Gate
from rgs.api.calls import Calls, Methods
from rgs.api.endpoint import Endpoint, Tls
from rgs.api.quotas import PartyLimits
from rgs.api.table_mapping import TableEncoder, watched_line, watched_table
from rgs.core.jurisdictions import load_jurisdiction
from rgs.core.rulesets import load_ruleset
from rgs.core.tables.config import load_table_config
from rgs.core.tables.machine import State
from rgs.core.tables.views import ChatLine, TableEntry
from rgs.node.clock import SystemClock
from rgs.node.pki import Issued, fingerprint_of, issue_client
from rgs.node.tls_identity import read_certificate
from rgs.service.callers import Caller, Reply, Role
from rgs.service.tables.feed import Feed
from rgs.service.tables.stakes import SeatStake, Stakes
from rgs.store.interface import PartyRow
from rgs.v1 import table_pb2
from rgs.v1.table_pb2_grpc import TableAdminServiceStub, TableServiceStub
from tests.support.api.harness import AllowList, authority, channel_of, entropy, server_certificate
from tests.support.api.tables import TABLE, Hall, chat_message, session_id
from tests.support.api.views import ENCODER, START_MS
from tests.support.clocks import ShiftedClock
from tests.support.service.harness import ServiceHarness

PARTIES = {"op1": Role.OPERATOR, "op2": Role.OPERATOR, "auditor1": Role.AUDITOR, "admin1": Role.ADMIN}
STATEMENT = b"the signed event"
WATCH = f"{table.SERVICE}/Watch"


@cache
def certificate(party: str, role: Role) -> Issued:
    return issue_client(authority(), role, party, entropy().read, SystemClock().now_ms())


def stream_of(channel: grpc.aio.Channel) -> Any:
    """A stream of `Watch`; it takes messages or bytes."""
    method: Any = channel.stream_stream(
        f"/{WATCH}",
        request_serializer=_as_bytes,
        response_deserializer=table_pb2.WatchResponse.FromString,
    )
    return method()


def _as_bytes(request: Any) -> bytes:
    data: bytes = request if isinstance(request, bytes) else request.SerializeToString()
    return data


@cache
def entry(state: State = State.IDLE) -> TableEntry:
    config = load_table_config(
        "uth-lugano",
        rulesets={"uth-lugano": load_ruleset("uth-lugano")},
        jurisdictions={"demo": load_jurisdiction("demo")},
    )
    return TableEntry(config, state, 5, 7, 2, START_MS)


@dataclass
class Doubles:
    """What stands behind the services. `calls` are those that came through: method, caller, what they gave."""

    hall: Hall
    calls: list[tuple[str, Caller, Any]] = field(default_factory=list)
    refusal: Exception | None = None
    lobby: list[tuple[TableEntry, ...] | None] = field(default_factory=list)

    async def play(self, method: str, caller: Caller, request: Any) -> Reply:
        """Of `Seats`: the answer holds the seat as it stands in the hall."""
        self._note(method, caller, request)
        session, seat = await self.hall.seat(caller, request.session_id)
        return Reply(TableEncoder(ENCODER)(method, session, seat), b"")

    async def say(self, caller: Caller, request: Any) -> ChatLine:
        self._note("Say", caller, request)
        return self._line(caller)

    async def messages(
        self, caller: Caller, table_id: str, page_size: int, page_token: str
    ) -> tuple[tuple[ChatLine, ...], str]:
        self._note("ListMessages", caller, (table_id, page_size, page_token))
        return (self._line(caller),), "k1"

    async def tables(self, caller: Caller, page_size: int, page_token: str) -> tuple[tuple[TableEntry, ...], str]:
        self._note("ListTables", caller, (page_size, page_token))
        return (entry(),), "k2"

    async def changes(self, caller: Caller) -> AsyncIterator[tuple[TableEntry, ...] | None]:
        self._note("WatchLobby", caller, ())
        for entries in self.lobby:
            yield entries

    async def order(self, method: str, caller: Caller, *given: Any, **named: Any) -> Any:
        """Of `TableAdmin`."""
        self._note(method, caller, (*given, *named.values()))
        return {"configure": (entry(), STATEMENT), "void": (True, STATEMENT)}.get(method, STATEMENT)

    async def stakes(self, _table_id: str, _round_id: str) -> Stakes:
        """Of `TableAdmin`."""
        return Stakes("EUR", 2, 700, (SeatStake(1, session_id(1), "op1", 500), SeatStake(2, session_id(2), "op2", 200)))

    def _note(self, method: str, caller: Caller, given: Any) -> None:
        self.calls.append((method, caller, given))
        if self.refusal is not None:
            raise self.refusal

    def _line(self, caller: Caller) -> ChatLine:
        message = chat_message(1)
        player = message.player if caller.party == message.operator else ""
        return ChatLine(
            message.message_id, TABLE, message.time_ms, message.nickname, message.text, "", player, is_own=bool(player)
        )


class _Named:
    """An object with these attributes."""

    def __init__(self, **named: Any) -> None:
        self.__dict__.update(named)


@dataclass
class Tabled:
    """An endpoint with the services of tables; one channel a party."""

    endpoint: Endpoint
    calls: Calls
    gate: Gate
    parties: AllowList
    hall: Hall
    doubles: Doubles
    channels: dict[str, grpc.aio.Channel] = field(default_factory=dict)

    def channel(self, party: str = "op1") -> grpc.aio.Channel:
        if party not in self.channels:
            self.channels[party] = channel_of(self.endpoint.port, certificate(party, PARTIES[party]))
        return self.channels[party]

    def tables(self, party: str = "op1") -> Any:
        return TableServiceStub(self.channel(party))

    def admin(self, party: str = "admin1") -> Any:
        return TableAdminServiceStub(self.channel(party))

    def watch(self, party: str = "op1") -> Any:
        return stream_of(self.channel(party))

    async def close(self) -> None:
        for channel in self.channels.values():
            await channel.close()


@contextlib.asynccontextmanager
async def tabled(*, grace_s: float = 5, limits: PartyLimits = PartyLimits()) -> AsyncIterator[Tabled]:  # noqa: B008
    """The services over doubles."""
    hall = Hall(encode=watched_table, encode_line=watched_line)
    doubles = Doubles(hall)
    seats = {"join": "Join", "leave": "Leave", "place_bets": "PlaceBets", "decide": "Decide"}
    orders = ("configure", "set_open", "pause", "resume", "cancel", "void", "bar", "reserve", "erase_message")
    services: dict[str, Any] = {
        "seats": _Named(**{name: partial(doubles.play, method) for name, method in seats.items()}),
        "views": hall,
        "lobby": _Named(list=doubles.tables, changes=doubles.changes),
        "chat": _Named(say=doubles.say, list=doubles.messages),
    }
    ordered: Any = _Named(**{name: partial(doubles.order, name) for name in orders}, stakes=doubles.stakes)
    methods = {
        table.SERVICE: table.table_methods(**services, feed=hall.feed, encoder=ENCODER),
        table_admin.SERVICE: table_admin.table_admin_methods(ordered),
    }
    async with listening(methods, PARTIES, grace_s, limits) as (endpoint, calls, gate, parties):
        served = Tabled(endpoint, calls, gate, parties, hall, doubles)
        try:
            yield served
        finally:
            await served.close()


@contextlib.asynccontextmanager
async def listening(
    methods: Mapping[str, Methods],
    roles: Mapping[str, Role],
    grace_s: float = 5,
    limits: PartyLimits = PartyLimits(),  # noqa: B008
) -> AsyncIterator[tuple[Endpoint, Calls, Gate, AllowList]]:
    """An endpoint of the product with these services, for these parties."""
    rows = [
        PartyRow(fingerprint_of(certificate(party, role).certificate), party, role.value, "demo", 0, None)
        for party, role in roles.items()
    ]
    parties, clock = AllowList(rows), ShiftedClock()
    gate = Gate(parties, clock, read_certificate)
    await gate.refresh()
    calls = Calls(gate, clock, ENCODER.act, limits=limits)
    endpoint = Endpoint(
        listen="127.0.0.1:0",
        tls=Tls(server_certificate().key_pem, server_certificate().certificate_pem, authority().certificate_pem),
        calls=calls,
        services=methods,
        with_reflection=False,
    )
    with capture_logs():
        await endpoint.start()
        try:
            yield endpoint, calls, gate, parties
        finally:
            await endpoint.stop(grace_s)


class ServedTables:
    """The whole of a `ServiceHarness` with tables behind the wire, and two operators before it."""

    def __init__(self, harness: ServiceHarness) -> None:
        tables = self.tables = harness.tables
        tables.seats.encode = TableEncoder(ENCODER)
        self.feed = Feed(
            signals=tables.signals,
            table=tables.views.table,
            seat=tables.views.seat,
            versions=harness.store.table_versions,
            encode=watched_table,
            encode_line=watched_line,
            clock=harness.clock,
        )
        self.methods = {
            table.SERVICE: table.table_methods(
                seats=tables.seats,
                views=tables.views,
                lobby=tables.lobby,
                chat=tables.chat,
                feed=self.feed,
                encoder=ENCODER,
            ),
            table_admin.SERVICE: table_admin.table_admin_methods(tables.admin),
        }
