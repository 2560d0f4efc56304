"""The calls of tables over mutual TLS, with doubles behind them: what comes through, what goes back, who may call."""

from __future__ import annotations

from typing import Any

import grpc
import pytest

from rgs.core.errors import NotSeatedError, TableChangedError
from rgs.core.games.types import Action
from rgs.service.callers import Role
from rgs.service.tables.requests import Decide, Join, Leave, PlaceBets, Say
from rgs.v1 import common_pb2
from rgs.v1 import table_pb2 as pb
from tests.support.api.client import refused, request_id
from tests.support.api.harness import info_in, reason_in, status_in
from tests.support.api.table_endpoint import PARTIES, STATEMENT, Tabled, entry, tabled
from tests.support.api.tables import TABLE, session_id
from tests.support.api.views import ROUND_ID

R, MESSAGE_ID = request_id(), "01" + "M" * 24
S = session_id(1)
PLAYED = [
    ("Join", pb.JoinRequest(request_id=R, session_id=S, box=3, nickname="Ada"), Join(R, S, 3, "Ada")),
    ("Leave", pb.LeaveRequest(request_id=R, session_id=S, device_no=2), Leave(R, S, 2)),
    (
        "PlaceBets",
        pb.PlaceBetsRequest(
            request_id=R, session_id=S, device_no=2, round_id=ROUND_ID, seat_version=4,
            bets=[common_pb2.Bet(bet="ante", amount_minor=100)],
        ),
        PlaceBets(R, S, 2, ROUND_ID, 4, {"ante": 100}),
    ),
    (
        "Decide",
        pb.DecideRequest(
            request_id=R, session_id=S, device_no=2, round_id=ROUND_ID, round_version=3,
            action=common_pb2.ACTION_CHECK,
        ),
        Decide(R, S, 2, ROUND_ID, 3, Action.CHECK),
    ),
]  # fmt: skip
ORDERED = [
    (
        pb.ConfigureTableRequest(request_id=R, config="id = 1", reason="NEW"),
        ("configure", (R, "id = 1", "NEW")),
    ),
    (
        pb.SetTableOpenRequest(request_id=R, table=TABLE, open=True, reason="DAY"),
        ("set_open", (R, TABLE, True, "DAY")),
    ),
    (
        pb.PauseTableRequest(request_id=R, table=TABLE, malfunction_code="CARDS_SHOWN"),
        ("pause", (R, TABLE, "CARDS_SHOWN")),
    ),
    (pb.ResumeTableRequest(request_id=R, table=TABLE, reason="CHECKED"), ("resume", (R, TABLE, "CHECKED"))),
    (pb.CancelBetsRequest(request_id=R, table=TABLE, reason="BROKEN"), ("cancel", (R, TABLE, "BROKEN"))),
    (
        pb.VoidTableRoundRequest(request_id=R, table=TABLE, round_id=ROUND_ID, reason="CARDS_SHOWN"),
        ("void", (R, TABLE, ROUND_ID, "CARDS_SHOWN", False)),
    ),
    (
        pb.BarPlayerRequest(request_id=R, table=TABLE, operator="op1", player="p", barred=True, reason="RUDE"),
        ("bar", (R, TABLE, "op1", "p", True, "RUDE")),
    ),
    (
        pb.ReserveBoxRequest(request_id=R, table=TABLE, box=3, operator="op1", player="p", reason="GUEST"),
        ("reserve", (R, TABLE, 3, "op1", "p", "GUEST")),
    ),
    (
        pb.EraseMessageRequest(request_id=R, message_id=MESSAGE_ID, reason="RUDE"),
        ("erase_message", (R, MESSAGE_ID, "RUDE")),
    ),
]  # fmt: skip


def method_of(request: Any) -> str:
    name: str = request.DESCRIPTOR.name
    return name.removesuffix("Request")


def came(served: Tabled) -> tuple[str, str, Any]:
    """The one call that came through: method, party, what it gave."""
    ((method, caller, given),) = served.doubles.calls
    served.doubles.calls.clear()
    assert caller.role is PARTIES[caller.party]
    return method, caller.party, given


async def test_what_players_do() -> None:
    async with tabled() as served:
        served.hall.sit(1)
        for method, request, expected in PLAYED:
            response = await getattr(served.tables(), method)(request)
            assert came(served) == (method, "op1", expected)
            assert (response.session.session_id, response.seat.session_id) == (S, S)
            assert response.session.table == TABLE
        said = await served.tables().Say(pb.SayRequest(request_id=R, session_id=S, text="hello"))
        assert came(served) == ("Say", "op1", Say(R, S, "hello"))
        assert (said.line.text, said.line.player, said.line.is_own) == ("line 1", "player-1", True)


async def test_what_admins_order() -> None:
    async with tabled() as served:
        for request, expected in ORDERED:
            response = await getattr(served.admin(), method_of(request))(request)
            method, party, given = came(served)
            assert ((method, given), party) == (expected, "admin1")
            assert response.statement == STATEMENT
        configured = await served.admin().ConfigureTable(ORDERED[0][0])
        assert (configured.table.table, configured.table.boxes) == (entry().config.id, 7)
        assert (await served.admin().VoidTableRound(ORDERED[5][0])).approved
        served.doubles.calls.clear()
        dry_run = pb.VoidTableRoundRequest(table=TABLE, round_id=ROUND_ID, dry_run=True)
        tried = await served.admin().VoidTableRound(dry_run)
        assert came(served)[2] == ("", TABLE, ROUND_ID, "", True)
        assert (tried.seats, tried.staked_minor, tried.currency) == (2, 700, "EUR")
        listed = [(one.seat_no, one.session_id, one.operator, one.staked_minor) for one in tried.stakes]
        assert listed == [(1, session_id(1), "op1", 500), (2, session_id(2), "op2", 200)]
        # An operator may bar players, and nothing else.
        await served.admin("op1").BarPlayer(ORDERED[6][0])
        assert came(served)[:2] == ("bar", "op1")
        for request, _ in ORDERED:
            if method_of(request) != "BarPlayer":
                error = await refused(getattr(served.admin("op1"), method_of(request))(request))
                assert error.code() is grpc.StatusCode.PERMISSION_DENIED
        assert served.doubles.calls == []


async def test_a_request_that_is_no_request_does_not_come_through() -> None:
    async with tabled() as served:
        named: list[Any] = [request for request, _ in ORDERED if hasattr(request, "table")]
        assert len(named) == 7
        for request in named:
            changed = type(request)()
            changed.CopyFrom(request)
            changed.table = "No Table"
            error = await refused(getattr(served.admin(), method_of(request))(changed))
            assert info_in(status_in(error)).metadata["field"] == "table"
        for bad, field in (
            (pb.VoidTableRoundRequest(table=TABLE, round_id="x"), "round_id"),
            (pb.EraseMessageRequest(message_id="x"), "message_id"),
        ):
            error = await refused(getattr(served.admin(), method_of(bad))(bad))
            assert info_in(status_in(error)).metadata["field"] == field
        error = await refused(served.tables().GetTable(pb.GetTableRequest(table="")))
        assert info_in(status_in(error)).metadata["field"] == "table"
        error = await refused(served.tables().GetTable(pb.GetTableRequest(table=TABLE, session_id="x")))
        assert info_in(status_in(error)).metadata["field"] == "session_id"
        error = await refused(served.tables().ListMessages(pb.ListMessagesRequest(table="A")))
        assert info_in(status_in(error)).metadata["field"] == "table"
        assert served.doubles.calls == []


@pytest.mark.parametrize(
    ("refusal", "code"),
    [
        (TableChangedError("moved", table=TABLE), grpc.StatusCode.ABORTED),
        (NotSeatedError("join first"), grpc.StatusCode.FAILED_PRECONDITION),
        (KeyError("x"), grpc.StatusCode.INTERNAL),
    ],
)
async def test_a_refusal_is_told_with_its_reason(refusal: Exception, code: grpc.StatusCode) -> None:
    async with tabled() as served:
        served.doubles.refusal = refusal
        error = await refused(served.tables().Join(PLAYED[0][1]))
        assert error.code() is code
        assert reason_in(status_in(error)) == getattr(refusal, "reason", "INTERNAL")


async def test_a_table_as_its_caller_may_see_it() -> None:
    async with tabled() as served:
        served.hall.sit(1)
        response = await served.tables().GetTable(pb.GetTableRequest(table=TABLE))
        assert (response.table.table, response.table.version) == (TABLE, 1)
        assert response.table.boxes[0].nickname == "seen by op1"
        assert not response.HasField("seat")
        assert not response.HasField("session")
        response = await served.tables().GetTable(pb.GetTableRequest(table=TABLE, session_id=S))
        assert (response.seat.session_id, response.session.session_id, response.table.version) == (S, S, 1)


async def test_what_is_not_the_callers_looks_as_if_it_were_not_there() -> None:
    async with tabled() as served:
        served.hall.sit(1)
        served.hall.sit(3, "auditor1")  # an operator of the same name would have it
        served.hall.operators[TABLE] = {"op1", "auditor1"}
        served.hall.tables["other"] = served.hall.tables[TABLE]
        served.hall.operators["other"] = {"op1"}
        for party, request in (
            ("op2", pb.GetTableRequest(table=TABLE)),
            ("op2", pb.GetTableRequest(table=TABLE, session_id=S)),
            ("op1", pb.GetTableRequest(table="nowhere")),
            ("op1", pb.GetTableRequest(table="other", session_id=S)),  # it sits elsewhere
            ("op1", pb.GetTableRequest(table=TABLE, session_id=session_id(2))),
            ("auditor1", pb.GetTableRequest(table=TABLE, session_id=S)),
            ("auditor1", pb.GetTableRequest(table=TABLE, session_id=session_id(3))),
        ):
            error = await refused(served.tables(party).GetTable(request))
            assert error.code() is grpc.StatusCode.NOT_FOUND, (party, request)
        assert (await served.tables("auditor1").GetTable(pb.GetTableRequest(table=TABLE))).table.version == 1


async def test_lists_come_in_pages_whose_tokens_are_bound() -> None:
    async with tabled() as served:
        page = await served.tables().ListTables(pb.ListTablesRequest(page_size=7))
        assert came(served) == ("ListTables", "op1", (7, ""))
        assert [one.table for one in page.tables] == [entry().config.id]
        await served.tables().ListTables(pb.ListTablesRequest(page_token=page.next_page_token))
        assert came(served) == ("ListTables", "op1", (0, "k2"))
        error = await refused(served.tables("op2").ListTables(pb.ListTablesRequest(page_token=page.next_page_token)))
        assert info_in(status_in(error)).metadata["field"] == "page_token"
        lines = await served.tables("op2").ListMessages(pb.ListMessagesRequest(table=TABLE))
        assert came(served) == ("ListMessages", "op2", (TABLE, 0, ""))
        assert [(line.text, line.player, line.is_own) for line in lines.lines] == [("line 1", "", False)]
        other = pb.ListMessagesRequest(table="other", page_token=lines.next_page_token)
        error = await refused(served.tables("op2").ListMessages(other))
        assert info_in(status_in(error)).metadata["field"] == "page_token"


async def test_the_lobby_is_followed() -> None:
    async with tabled() as served:
        served.doubles.lobby = [(entry(), entry()), None, (entry(),)]
        messages = [message async for message in served.tables("admin1").WatchLobby(pb.WatchLobbyRequest())]
        assert [[one.table for one in message.tables] for message in messages] == [["uth-lugano"] * 2, ["uth-lugano"]]
        assert served.doubles.calls[0][1].role is Role.ADMIN
