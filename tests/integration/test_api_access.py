"""Who gets in, at the whole server over mutual TLS: every role at every method, strangers, other operators."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.rpc.status_pb2 import Status

from rgs.api.auth import ROLES
from rgs.node.clock import SystemClock
from rgs.node.pki import fingerprint_of, issue_client, make_development_ca
from rgs.service.callers import Role
from rgs.v1 import audit_pb2, history_pb2, play_pb2, session_pb2
from tests.support.api.client import ApiClient, refused, request_id
from tests.support.api.harness import ApiHarness, channel_of, entropy, reason_in, serving, status_in

MAY = {
    "CatalogService": {"operator", "auditor", "regulator", "lab", "admin", "support"},
    "SessionService": {"operator"},
    "PlayService": {"operator"},
    "TableService": {"operator"},
    "TableAdminService": {"admin"},
    "FreeBetService": {"operator"},
    "ReportService": {"operator"},
    "SupportService": {"support"},
    "HistoryService": {"operator", "auditor", "regulator"},
    "AuditService": {"operator", "auditor", "regulator", "lab"},
    "AdminService": {"admin"},
    "ReconciliationService": {"operator", "auditor", "regulator", "admin"},
}
OVERSIGHT = {"admin", "auditor", "regulator"}
OPERATOR, ADMIN = {"operator"}, {"admin"}
OTHERWISE = {
    "GetTerms": OPERATOR,
    "ListOpenRounds": OVERSIGHT | {"operator"},
    "ListPendingCredits": OVERSIGHT | {"operator"},
    **dict.fromkeys(("GetOutbox", "ListHeldReports", "GetReturns"), OVERSIGHT),
    **dict.fromkeys(("SubmitWalletStatement", "SubmitReceipts", "Countersign"), OPERATOR),
    **dict.fromkeys(("SubmitRegulatorBook", "ResolveBreak"), ADMIN),
    "RunReconciliation": {"operator", "auditor", "admin"},
    "StreamEntries": {"auditor", "regulator", "lab"},
    **dict.fromkeys(
        ("ListSwitches", "ListGuards", "ListEvents", "ListTotals", "ExportTotals", "GetReturns"), OVERSIGHT
    ),
    **dict.fromkeys(("ListTables", "WatchLobby", "GetTable"), OVERSIGHT | OPERATOR),
    **dict.fromkeys(("ListMessages", "BarPlayer"), ADMIN | OPERATOR),
}
NOT_LET_IN = (grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNAUTHENTICATED)


async def code_of(channel: grpc.aio.Channel, method: str, lobby_s: float = 20) -> grpc.StatusCode:
    """What an empty request ends with."""
    call: Any
    if method.endswith(("/Play", "/Watch")):
        call = channel.stream_stream(f"/{method}")()
        await call.done_writing()
    elif "/Submit" in method:
        upload: Any = channel.stream_unary(f"/{method}")
        call = upload(iter(()))
    elif method.endswith("/WatchLobby"):  # goes on for as long as somebody reads
        lobby: Any = channel.unary_stream(f"/{method}")
        call = lobby(b"", timeout=lobby_s)
    elif method.endswith(("/ExportTotals", "/GetReport", "/StreamEntries", "/WatchSeat")):
        download: Any = channel.unary_stream(f"/{method}")
        call = download(b"")
        with contextlib.suppress(grpc.aio.AioRpcError):
            while await call.read() is not grpc.aio.EOF:
                pass
    else:
        unary: Any = channel.unary_unary(f"/{method}")
        call = unary(b"")
    code: grpc.StatusCode = await call.code()
    if code in NOT_LET_IN:
        result = Status.FromString(dict(await call.trailing_metadata())["grpc-status-details-bin"])
        assert reason_in(result) in ("ROLE_NOT_ALLOWED", "CERTIFICATE_NOT_ALLOWED")
    return code


async def test_every_role_at_every_method(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        for role in Role:
            channel = harness.channel(f"demo-{role.value}")
            for method in ROLES:
                service, name = method.removeprefix("rgs.v1.").split("/")
                may = role.value in OTHERWISE.get(name, MAY[service])
                code = await code_of(channel, method, 0.2 if may else 20)
                if may:
                    allowed = [grpc.StatusCode.OK, grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND]
                    allowed += [grpc.StatusCode.DEADLINE_EXCEEDED] * (name == "WatchLobby")
                    assert code in allowed, (role, method)
                else:
                    assert code is grpc.StatusCode.PERMISSION_DENIED, (role, method)
    assert len(ROLES) == 85


async def test_strangers_of_every_kind(tmp_path: Path) -> None:
    harness = ApiHarness(tmp_path / "home")
    unknown = harness.issue(Role.OPERATOR, "demo-operator")
    # Allowed by fingerprint, but its URI says another party or role than its row.
    other_party = harness.issue(Role.OPERATOR, "somebody")
    other_role = harness.issue(Role.AUDITOR, "demo-operator")
    for certificate in (other_party, other_role):
        await harness.allow(certificate, Role.OPERATOR, "demo-operator", "demo")
    async with serving(tmp_path) as harness:
        for certificate in (unknown, other_party, other_role):
            for method in ROLES:
                assert await code_of(harness.channel(certificate), method) is grpc.StatusCode.UNAUTHENTICATED
        # Of another authority: no connection at all.
        foreign = make_development_ca(entropy().read, SystemClock().now_ms())
        forged = issue_client(foreign, Role.OPERATOR, "demo-operator", entropy().read, SystemClock().now_ms())
        channel: Any = channel_of(harness.server.port, forged, harness.authority)
        error = await refused(channel.unary_unary("/rgs.v1.CatalogService/ListGames")(b"", timeout=5))
        assert error.code() is grpc.StatusCode.UNAVAILABLE
        await channel.close()


async def test_a_removal_bites_on_an_open_connection_and_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rgs.node.server.BACKGROUND_S", 0.02)
    async with serving(tmp_path) as harness:
        player = await ApiClient(harness.channel()).seated()
        stream = player.play.Play()
        await player.start()
        get = play_pb2.GetRoundRequest(session_id=player.session_id, round_id=player.round_id)
        await stream.write(play_pb2.PlayRequest(get_round=get))
        assert (await stream.read()).WhichOneof("response") == "get_round"
        async with harness.parties() as parties:
            await parties.remove(
                fingerprint_of(harness.certificate("demo-operator").certificate), harness.clock.now_ms()
            )
        await asyncio.sleep(0.5)
        error = await refused(player.play.GetRound(get))
        assert reason_in(status_in(error)) == "CERTIFICATE_NOT_ALLOWED"
        await stream.write(play_pb2.PlayRequest(get_round=get))
        assert reason_in((await stream.read()).error) == "CERTIFICATE_NOT_ALLOWED"
        assert (await refused(stream.read())).code() is grpc.StatusCode.UNAUTHENTICATED


async def test_an_expiry_bites_on_an_open_connection(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        player = await ApiClient(harness.channel()).seated()
        harness.clock.ahead_ms = 366 * 24 * 3_600_000
        found = player.sessions.GetSession(session_pb2.GetSessionRequest(session_id=player.session_id))
        assert (await refused(found)).code() is grpc.StatusCode.UNAUTHENTICATED


async def test_operators_do_not_see_one_another(tmp_path: Path) -> None:
    harness = ApiHarness(tmp_path / "home")
    certificate = harness.issue(Role.OPERATOR, "other")
    await harness.allow(certificate, Role.OPERATOR, "other", "demo")
    async with serving(tmp_path) as harness:
        mine, other = await ApiClient(harness.channel()).seated(), ApiClient(harness.channel(certificate))
        await mine.round_to_the_end()
        other.session_id, other.round_id, other.round_version = mine.session_id, mine.round_id, mine.round_version
        ids: dict[str, Any] = {"session_id": mine.session_id}
        statements = await mine.audit.ListStatements(audit_pb2.ListStatementsRequest(**ids))
        row = statements.statements[0]
        for call in (
            other.sessions.GetSession(session_pb2.GetSessionRequest(**ids)),
            other.sessions.BuyParticipation(other.buy_request()),
            other.sessions.EndParticipation(session_pb2.EndParticipationRequest(request_id=request_id(), **ids)),
            other.sessions.CloseSession(session_pb2.CloseSessionRequest(request_id=request_id(), **ids)),
            other.play.StartRound(other.start_request(round_no=2)),
            other.play.Act(other.act_request(1)),
            other.play.GetRound(play_pb2.GetRoundRequest(round_id=mine.round_id, **ids)),
            other.history.GetRoundRecord(history_pb2.GetRoundRecordRequest(round_id=mine.round_id)),
            other.audit.GetStatement(audit_pb2.GetStatementRequest(hash=row.hash)),
            other.audit.ListStatements(audit_pb2.ListStatementsRequest(**ids)),
        ):
            error = await refused(call)
            assert reason_in(status_in(error)) == "NOT_FOUND"
            assert "demo-operator" not in str(error)
        assert not (await other.sessions.ListSessions(session_pb2.ListSessionsRequest())).sessions
        assert not (await other.history.ListRounds(history_pb2.ListRoundsRequest(player="player-1"))).rounds
        by_round = await other.audit.ListStatements(audit_pb2.ListStatementsRequest(round_id=mine.round_id))
        assert not by_round.statements


async def test_the_private_block_goes_to_its_operator_to_auditors_and_regulators(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        player = await ApiClient(harness.channel()).seated()
        request = audit_pb2.ListStatementsRequest(session_id=player.session_id)
        seen = {}
        for party in ("operator", "auditor", "regulator", "lab"):
            page = await ApiClient(harness.channel(f"demo-{party}")).audit.ListStatements(request)
            seen[party] = [(row.kind, row.envelope, b"player-1" in row.private) for row in page.statements]
        assert [kind for kind, _, _ in seen["operator"]] == ["session_open", "purchase"]
        assert [has for _, _, has in seen["operator"]] == [True, False]
        assert seen["operator"] == seen["auditor"] == seen["regulator"]
        assert [row[:2] for row in seen["lab"]] == [row[:2] for row in seen["operator"]]
        assert not any(has for _, _, has in seen["lab"])


@pytest.mark.parametrize("jurisdiction", ["it-adm", "gb-ukgc", ""])
async def test_an_operator_whose_jurisdiction_forbids_the_development_ca(tmp_path: Path, jurisdiction: str) -> None:
    harness = ApiHarness(tmp_path / "home")
    certificate = harness.issue(Role.OPERATOR, "serious")
    await harness.allow(certificate, Role.OPERATOR, "serious", jurisdiction)
    async with serving(tmp_path) as harness:
        serious = ApiClient(harness.channel(certificate))
        for call in (
            serious.sessions.OpenSession(serious.open_request()),
            serious.sessions.ListSessions(session_pb2.ListSessionsRequest()),
        ):
            error = await refused(call)
            assert (error.code(), reason_in(status_in(error))) == (
                grpc.StatusCode.FAILED_PRECONDITION,
                "JURISDICTION_REFUSES",
            )
