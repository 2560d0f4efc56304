"""What admins do, over the wire: every method, its signed event, its repeat, and what it stops."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from rgs.node.pki import fingerprint_of
from rgs.service.callers import Role
from rgs.v1 import admin_pb2 as pb
from rgs.v1 import common_pb2, history_pb2, play_pb2, session_pb2
from rgs.v1.admin_pb2_grpc import AdminServiceStub
from tests.support.api.client import ApiClient, cards_in, no_update, refused, request_id
from tests.support.api.harness import ApiHarness, info_in, reason_in, serving, status_in
from tests.support.api.submitting import reason_of
from tests.support.service.harness import read_statement

CHECK, FOLD = common_pb2.ACTION_CHECK, common_pb2.ACTION_FOLD
PLAY, OPERATOR, GAME, PLAYER = 1, 2, 3, 4


def admin_of(harness: ApiHarness, certificate: Any = "demo-admin") -> Any:
    return AdminServiceStub(harness.channel(certificate))


async def second_admin(harness: ApiHarness) -> Any:
    certificate = harness.issue(Role.ADMIN, "admin-2")
    await harness.allow(certificate, Role.ADMIN, "admin-2")
    return certificate


def switch(scope: int, *, enabled: bool, **fields: Any) -> pb.SetSwitchRequest:
    return pb.SetSwitchRequest(request_id=request_id(), scope=scope, enabled=enabled, reason="WATCHED", **fields)  # type: ignore[arg-type]


# --- switches ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scope", "fields", "subject"),
    [
        (PLAY, {}, "play"),
        (OPERATOR, {"operator": "demo-operator"}, "operator demo-operator"),
        (GAME, {"game": "uth-solo"}, "game uth-solo"),
        (PLAYER, {"operator": "demo-operator", "player": "player-1"}, "player demo-operator/player-1"),
    ],
)
async def test_a_switch_stops_what_is_new_and_only_there(
    tmp_path: Path, scope: int, fields: dict[str, str], subject: str
) -> None:
    async with serving(tmp_path) as harness:
        admin, player = admin_of(harness), await ApiClient(harness.channel()).seated()
        await player.start()
        done = await admin.SetSwitch(switch(scope, enabled=False, **fields))
        body = read_statement(done.statement)
        reported = {name: body[name] for name in ("code", "actor", "subject", "before", "after", "reason")}
        assert reported == {
            "code": "SWITCH_CHANGED", "actor": "demo-admin", "subject": subject, "before": "enabled",
            "after": "disabled", "reason": "WATCHED",
        }  # fmt: skip
        (listed,) = (await admin.ListSwitches(pb.ListSwitchesRequest())).switches
        assert (listed.scope, listed.admin, listed.reason) == (scope, "demo-admin", "WATCHED")
        assert {name: getattr(listed, name) for name in ("operator", "game", "player")} == {
            "operator": "", "game": "", "player": "", **fields,
        }  # fmt: skip
        # The dealt round is played out; nothing new begins, also after a restart.
        for action in (CHECK, CHECK, FOLD):
            await player.act(action)
        await harness.restart()
        again = ApiClient(harness.channel())
        again.session_id, again.round_no = player.session_id, 2
        for call in (
            again.play.StartRound(again.start_request()),
            again.sessions.BuyParticipation(again.buy_request(purchase_no=2)),
            again.sessions.OpenSession(again.open_request()),
        ):
            info = info_in(status_in(await refused(call)))
            assert (info.reason, info.metadata["code"]) == ("DISABLED", "WATCHED")
        # Others play on where the switch is not theirs.
        other = ApiClient(harness.channel(), "somebody-else")
        opening = other.sessions.OpenSession(other.open_request(game="casino-holdem"))
        if scope in (GAME, PLAYER):
            assert (await opening).session.session_id
        else:
            assert await reason_of(opening) == "DISABLED"
        admin = admin_of(harness)
        done = await admin.SetSwitch(switch(scope, enabled=True, **fields))
        assert (read_statement(done.statement)["before"], read_statement(done.statement)["after"]) == (
            "disabled",
            "enabled",
        )
        assert not (await admin.ListSwitches(pb.ListSwitchesRequest())).switches
        await again.start()


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"scope": 0}, "scope"),
        ({"scope": 9}, "scope"),
        ({"scope": PLAY, "operator": "op"}, "operator"),
        ({"scope": OPERATOR}, "operator"),
        ({"scope": OPERATOR, "operator": "Op"}, "operator"),
        ({"scope": PLAYER, "operator": "op"}, "player"),
        ({"scope": PLAYER, "operator": "op", "player": "a/b"}, "player"),
        ({"scope": GAME, "game": "chess"}, "scope"),
        ({"scope": PLAY, "reason": "because"}, "reason"),
        ({"scope": PLAY, "reason": "Z\u00fcrich"}, "reason"),
        ({"scope": PLAY, "request_id": ""}, "request_id"),
        ({"scope": PLAY, "request_id": "5"}, "request_id"),
    ],
)
async def test_a_switch_that_is_none(tmp_path: Path, fields: dict[str, Any], field: str) -> None:
    async with serving(tmp_path) as harness:
        request = pb.SetSwitchRequest(**{"request_id": request_id(), "reason": "WATCHED", **fields})
        error = await refused(admin_of(harness).SetSwitch(request))
        info = info_in(status_in(error))
        assert (error.code().name, info.metadata["field"]) == ("INVALID_ARGUMENT", field)
        assert not (await admin_of(harness).ListSwitches(pb.ListSwitchesRequest())).switches


# --- repeats ----------------------------------------------------------------------------------------------------------


async def test_a_repeat_is_the_first_answer_and_other_content_is_refused(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        admin, player = admin_of(harness), await ApiClient(harness.channel()).seated()
        await player.start()
        off = switch(PLAY, enabled=False)
        clear = pb.ClearGuardRequest(request_id=request_id(), name="rules", reason="CHECKED")
        report = pb.ReportMalfunctionRequest(request_id=request_id(), round_id=player.round_id, code="CARDS_SHOWN")
        resume = pb.ResumeRoundRequest(request_id=request_id(), round_id=player.round_id, reason="WAS_NONE")
        certificate = harness.issue(Role.AUDITOR, "auditor-9")
        add = pb.AddCertificateRequest(
            request_id=request_id(), certificate=certificate.certificate_pem, reason="NEW_AUDITOR"
        )
        remove = pb.RemoveCertificateRequest(
            request_id=request_id(), fingerprint=fingerprint_of(certificate.certificate), reason="LEFT"
        )
        calls = [
            (admin.SetSwitch, off), (admin.ClearGuard, clear), (admin.ReportMalfunction, report),
            (admin.ResumeRound, resume), (admin.AddCertificate, add), (admin.RemoveCertificate, remove),
        ]  # fmt: skip
        answers = [await call(request) for call, request in calls]
        assert len({answer.statement for answer in answers}) == len(answers)
        before = await admin.ListEvents(pb.ListEventsRequest(page_size=200))
        await harness.restart()
        admin = admin_of(harness)
        requests: list[Any] = [request for _, request in calls]
        methods = ("SetSwitch", "ClearGuard", "ReportMalfunction", "ResumeRound", "AddCertificate", "RemoveCertificate")
        for name, request, answer in zip(methods, requests, answers, strict=True):
            again = await asyncio.gather(*[getattr(admin, name)(request) for _ in range(3)])
            assert again == [answer] * 3
            if name != "ReportMalfunction":
                request.reason = "SOMETHING_ELSE"
            else:
                request.code = "SOMETHING_ELSE"
            assert await reason_of(getattr(admin, name)(request)) == "IDEMPOTENCY_CONFLICT"
        after = await admin.ListEvents(pb.ListEventsRequest(page_size=200))
        reported = [event for event in after.events if event.actor]
        assert reported == [event for event in before.events if event.actor]


async def test_the_same_at_once_has_one_effect(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        admin = admin_of(harness)
        request = switch(PLAY, enabled=False)
        answers = await asyncio.gather(*[admin.SetSwitch(request) for _ in range(10)], return_exceptions=True)
        given = [answer for answer in answers if isinstance(answer, pb.SetSwitchResponse)]
        others: list[Any] = [answer for answer in answers if not isinstance(answer, pb.SetSwitchResponse)]
        assert len({answer.statement for answer in given}) == 1
        assert {reason_in(status_in(error)) for error in others} <= {"REQUEST_SEEN"}
        assert len((await admin.ListEvents(pb.ListEventsRequest(code="SWITCH_CHANGED"))).events) == 1
        assert await admin.SetSwitch(request) == given[0]


# --- malfunctions and voids -------------------------------------------------------------------------------------------


async def test_a_round_is_paused_told_of_and_resumed(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        admin, player = admin_of(harness), await ApiClient(harness.channel()).seated()
        stream = player.play.Play()
        await stream.write(play_pb2.PlayRequest(start_round=player.start_request()))
        player.seen((await stream.read()).start_round)
        report = pb.ReportMalfunctionRequest(request_id=request_id(), round_id=player.round_id, code="CARDS_SHOWN")
        done = await admin.ReportMalfunction(report)
        body = read_statement(done.statement)
        assert (body["code"], body["reason"], body["round_id"]) == ("MALFUNCTION", "CARDS_SHOWN", player.round_id)
        notice = (await no_update(stream)).notice
        assert (notice.round_id, notice.paused, notice.malfunction_code) == (player.round_id, True, "CARDS_SHOWN")
        request = session_pb2.GetSessionRequest(session_id=player.session_id)
        shown = (await player.sessions.GetSession(request)).session
        ids = (shown.regulator_session_id, shown.regulator_participation_id)
        assert all(ids)
        assert (notice.regulator_session_id, notice.regulator_participation_id) == ids
        get = play_pb2.GetRoundRequest(session_id=player.session_id, round_id=player.round_id)
        view = (await player.play.GetRound(get)).round
        assert (view.paused, view.malfunction_code, len(view.legal_actions)) == (True, "CARDS_SHOWN", 0)
        info = info_in(status_in(await refused(player.act(CHECK))))
        assert (info.reason, info.metadata["malfunction_code"]) == ("ROUND_PAUSED", "CARDS_SHOWN")
        listed = (await player.sessions.ListOpenRounds(session_pb2.ListOpenRoundsRequest())).rounds[0]
        assert (listed.paused, listed.malfunction_code, listed.HasField("finish_time")) == (True, "CARDS_SHOWN", False)
        twice = pb.ReportMalfunctionRequest(request_id=request_id(), round_id=player.round_id, code="AGAIN")
        assert await reason_of(admin.ReportMalfunction(twice)) == "ROUND_NOT_PAUSED"
        resume = pb.ResumeRoundRequest(request_id=request_id(), round_id=player.round_id, reason="WAS_NONE")
        assert read_statement((await admin.ResumeRound(resume)).statement)["code"] == "ROUND_RESUMED"
        notice = (await no_update(stream)).notice
        assert (notice.paused, notice.status) == (False, common_pb2.ROUND_STATUS_OPEN)
        view = (await player.play.GetRound(get)).round
        player.round_version = view.round_version
        for action in (CHECK, CHECK, FOLD):
            await player.act(action)
        resume = pb.ResumeRoundRequest(request_id=request_id(), round_id=player.round_id, reason="WAS_NONE")
        assert await reason_of(admin.ResumeRound(resume)) == "ROUND_NOT_OPEN"


async def test_a_void_takes_two_admins_and_gives_everything_back(tmp_path: Path) -> None:
    harness = ApiHarness(tmp_path / "home")
    certificate = await second_admin(harness)
    async with serving(tmp_path) as harness:
        first, second = admin_of(harness), admin_of(harness, certificate)
        player, other = (
            await ApiClient(harness.channel()).seated(),
            await ApiClient(harness.channel(), "player-2").seated(),
        )
        stream = player.play.Play()
        await stream.write(play_pb2.PlayRequest(start_round=player.start_request()))
        player.seen((await stream.read()).start_round)
        await other.start()
        report = pb.ReportMalfunctionRequest(request_id=request_id(), round_id=player.round_id, code="CARDS_SHOWN")
        await first.ReportMalfunction(report)
        assert (await no_update(stream)).notice.paused
        nobody = "01" + "0" * 24
        ids = [player.round_id, other.round_id, nobody]
        propose = pb.ProposeVoidRequest(request_id=request_id(), round_ids=ids, reason="CARDS_SHOWN")
        proposed = await first.ProposeVoid(propose)
        assert [(found.round_id, found.status, found.refusal) for found in proposed.results] == [
            (player.round_id, 1, ""), (other.round_id, 0, "ROUND_NOT_PAUSED"), (nobody, 0, "NOT_FOUND"),
        ]  # fmt: skip
        assert await first.ProposeVoid(propose) == proposed
        # Not by the same admin, not for another list under the same id.
        alone = pb.ApproveVoidRequest(request_id=request_id(), round_ids=[player.round_id])
        assert (await first.ApproveVoid(alone)).results[0].refusal == "SECOND_ADMIN_NEEDED"
        alone.round_ids[:] = [other.round_id]
        assert await reason_of(first.ApproveVoid(alone)) == "IDEMPOTENCY_CONFLICT"
        approve = pb.ApproveVoidRequest(request_id=request_id(), round_ids=[player.round_id])
        approved = await second.ApproveVoid(approve)
        (result,) = approved.results
        final = read_statement(result.statement)
        assert (result.status, final["kind"], final["status"]) == (3, "round_final", "void")
        assert [approval["party"] for approval in final["void"]["approvals"]] == ["demo-admin", "admin-2"]
        assert (await no_update(stream)).notice.status == common_pb2.ROUND_STATUS_VOID
        assert await second.ApproveVoid(approve) == approved
        later = pb.ApproveVoidRequest(request_id=request_id(), round_ids=[player.round_id])
        assert (await second.ApproveVoid(later)).results[0].refusal == "ROUND_NOT_OPEN"
        view = (await player.sessions.GetSession(session_pb2.GetSessionRequest(session_id=player.session_id))).session
        assert (view.balance_minor, view.open_round.round_id) == (50_000, "")
        record = await player.history.GetRoundRecord(history_pb2.GetRoundRecordRequest(round_id=player.round_id))
        assert record.records[0].round.returned_minor == record.records[0].round.staked_minor == 200
        await other.act(CHECK)  # nothing happened to the other


async def test_a_settled_round_is_never_void(tmp_path: Path) -> None:
    harness = ApiHarness(tmp_path / "home")
    certificate = await second_admin(harness)
    async with serving(tmp_path) as harness:
        first, second = admin_of(harness), admin_of(harness, certificate)
        player = await ApiClient(harness.channel()).seated()
        await player.round_to_the_end()
        report = pb.ReportMalfunctionRequest(request_id=request_id(), round_id=player.round_id, code="CARDS_SHOWN")
        assert await reason_of(first.ReportMalfunction(report)) == "ROUND_NOT_OPEN"
        ids = [player.round_id]
        propose = pb.ProposeVoidRequest(request_id=request_id(), round_ids=ids, reason="CARDS_SHOWN")
        assert (await first.ProposeVoid(propose)).results[0].refusal == "ROUND_NOT_OPEN"
        approve = pb.ApproveVoidRequest(request_id=request_id(), round_ids=ids)
        assert (await second.ApproveVoid(approve)).results[0].refusal == "ROUND_NOT_OPEN"


@pytest.mark.parametrize("round_ids", [[], ["01" + "0" * 24] * 2, [f"01{nth:024d}" for nth in range(101)], ["x"]])
async def test_a_list_of_rounds_that_is_none(tmp_path: Path, round_ids: list[str]) -> None:
    async with serving(tmp_path) as harness:
        request = pb.ApproveVoidRequest(request_id=request_id(), round_ids=round_ids)
        info = info_in(status_in(await refused(admin_of(harness).ApproveVoid(request))))
        assert (info.reason, info.metadata["field"]) == ("INVALID_FIELD", "round_ids")


# --- the allow-list ---------------------------------------------------------------------------------------------------


async def test_a_certificate_is_let_in_at_once_and_out_at_once(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        admin = admin_of(harness)
        certificate = harness.issue(Role.OPERATOR, "op-9")
        fingerprint = fingerprint_of(certificate.certificate)
        newcomer = ApiClient(harness.channel(certificate))
        assert await reason_of(newcomer.sessions.OpenSession(newcomer.open_request())) == "CERTIFICATE_NOT_ALLOWED"
        add = pb.AddCertificateRequest(
            request_id=request_id(), certificate=certificate.certificate_pem, jurisdiction="demo", reason="CONTRACT"
        )
        added = await admin.AddCertificate(add)
        assert (added.certificate.fingerprint, added.certificate.party) == (fingerprint, "op-9")
        assert (added.certificate.role, added.certificate.jurisdiction) == ("operator", "demo")
        body = read_statement(added.statement)
        assert (body["code"], body["actor"], body["reason"]) == ("CERTIFICATE_ADDED", "demo-admin", "CONTRACT")
        assert (body["subject"], body["before"], body["after"]) == (
            f"operator op-9 {fingerprint}", "denied", "allowed demo",
        )  # fmt: skip
        await newcomer.seated()
        stream = newcomer.play.Play()
        await stream.write(play_pb2.PlayRequest(start_round=newcomer.start_request()))
        assert (await stream.read()).WhichOneof("response") == "start_round"
        remove = pb.RemoveCertificateRequest(request_id=request_id(), fingerprint=fingerprint, reason="ENDED")
        body = read_statement((await admin.RemoveCertificate(remove)).statement)
        assert (body["code"], body["before"][:7], body["after"]) == ("CERTIFICATE_REMOVED", "allowed", "denied")
        assert await reason_of(newcomer.sessions.OpenSession(newcomer.open_request())) == "CERTIFICATE_NOT_ALLOWED"
        await stream.write(play_pb2.PlayRequest(start_round=newcomer.start_request(round_no=2)))
        assert reason_in((await stream.read()).error) == "CERTIFICATE_NOT_ALLOWED"
        assert (await stream.code()).name == "UNAUTHENTICATED"
        rows = (await admin.ListCertificates(pb.ListCertificatesRequest())).certificates
        assert fingerprint not in {row.fingerprint for row in rows}
        every = (await admin.ListCertificates(pb.ListCertificatesRequest(removed_too=True))).certificates
        (row,) = [row for row in every if row.fingerprint == fingerprint]
        assert row.HasField("removed_time")
        again = pb.RemoveCertificateRequest(request_id=request_id(), fingerprint=fingerprint, reason="ENDED")
        assert await reason_of(admin.RemoveCertificate(again)) == "NOT_FOUND"
        back = pb.AddCertificateRequest()
        back.CopyFrom(add)
        back.request_id = request_id()
        error = await refused(admin.AddCertificate(back))
        assert (error.code().name, reason_in(status_in(error))) == ("ALREADY_EXISTS", "CERTIFICATE_KNOWN")
        assert "was removed from the allow-list at 20" in str(error.details())


async def test_the_last_certificate_of_an_admin_is_not_removed(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        admin = admin_of(harness)

        def removal(certificate: Any) -> pb.RemoveCertificateRequest:
            fingerprint = fingerprint_of(certificate.certificate)
            return pb.RemoveCertificateRequest(request_id=request_id(), fingerprint=fingerprint, reason="ENDED")

        error = await refused(admin.RemoveCertificate(removal(harness.certificate("demo-admin"))))
        assert (error.code().name, reason_in(status_in(error))) == ("FAILED_PRECONDITION", "LAST_ADMIN")
        second = await second_admin(harness)
        stale = await harness.server.services.certificates.list(removed_too=True)
        assert (await admin.RemoveCertificate(removal(harness.certificate("demo-admin")))).statement
        await asyncio.sleep(0.3)  # the list is read again
        other = admin_of(harness, second)
        assert await reason_of(other.RemoveCertificate(removal(second))) == "LAST_ADMIN"

        # As another process would, that has not seen yet who is gone: the commit itself refuses.
        async def stale_rows() -> Any:
            return stale

        with patch.object(harness.server.services.certificates.parties, "all", stale_rows):
            assert await reason_of(other.RemoveCertificate(removal(second))) == "STORE_UNAVAILABLE"
        rows = (await other.ListCertificates(pb.ListCertificatesRequest())).certificates
        assert [row.party for row in rows if row.role == "admin"] == ["admin-2"]
        assert all(row.HasField("end_time") for row in rows)


async def test_certificates_that_are_refused_change_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        admin = admin_of(harness)
        auditor = harness.issue(Role.AUDITOR, "auditor-9")
        known = harness.certificate("demo-auditor")
        cases = [
            (b"", "", "INVALID_FIELD", "certificate"),
            (auditor.certificate_pem * 2, "", "INVALID_FIELD", "certificate"),
            (auditor.certificate_pem + auditor.key_pem, "", "INVALID_FIELD", "certificate"),
            (harness.authority.certificate_pem, "", "INVALID_FIELD", "certificate"),
            (auditor.certificate_pem, "demo", "INVALID_FIELD", "jurisdiction"),
            (harness.issue(Role.OPERATOR, "op-9").certificate_pem, "", "INVALID_FIELD", "jurisdiction"),
            (harness.issue(Role.OPERATOR, "op-9").certificate_pem, "it-adm", "JURISDICTION_REFUSES", ""),
            (harness.issue(Role.OPERATOR, "op-9").certificate_pem, "atlantis", "JURISDICTION_REFUSES", ""),
            (harness.issue(Role.LAB, "demo-auditor").certificate_pem, "", "INVALID_FIELD", "certificate"),
            (known.certificate_pem, "", "CERTIFICATE_KNOWN", ""),
            (harness.issue(Role.ADMIN, "admin-2").certificate_pem, "", "INVALID_FIELD", "certificate"),
        ]
        before = (await admin.ListCertificates(pb.ListCertificatesRequest(removed_too=True))).certificates
        for pem, jurisdiction, reason, field in cases:
            request = pb.AddCertificateRequest(
                request_id=request_id(), certificate=pem, jurisdiction=jurisdiction, reason="WHY"
            )
            error = await refused(admin.AddCertificate(request))
            info = info_in(status_in(error))
            assert (info.reason, info.metadata.get("field", "")) == (reason, field), info
            assert b"PRIVATE" not in str(error).encode()
        for fingerprint in ("", "0" * 63, "G" * 64):
            wrong = pb.RemoveCertificateRequest(request_id=request_id(), fingerprint=fingerprint, reason="WHY")
            assert await reason_of(admin.RemoveCertificate(wrong)) == "INVALID_FIELD"
        assert (await admin.ListCertificates(pb.ListCertificatesRequest(removed_too=True))).certificates == before
        assert not [
            event
            for event in (await admin.ListEvents(pb.ListEventsRequest(page_size=200))).events
            if event.code.startswith("CERTIFICATE") and event.actor
        ]


async def test_no_card_is_in_what_admins_are_told(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness:
        admin, player = admin_of(harness), await ApiClient(harness.channel()).seated()
        started = await player.start()
        assert list(cards_in(started.round))
        report = pb.ReportMalfunctionRequest(request_id=request_id(), round_id=player.round_id, code="DOUBT")
        reported = [
            await admin.ReportMalfunction(report),
            await admin.ListEvents(pb.ListEventsRequest(page_size=200)),
            await ApiClient(harness.channel("demo-admin")).sessions.ListOpenRounds(session_pb2.ListOpenRoundsRequest()),
        ]
        assert [card for message in reported for card in cards_in(message)] == []
