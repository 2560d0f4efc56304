"""A line a call: which calls, with which ids, and that nothing else can be in one."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import grpc
import pytest
from structlog.testing import capture_logs

from rgs.api.access import REFUSALS_MAX, CallLines, ids_of, quoted
from rgs.api.calls import FAULT_LINES_MAX, Calls, Unary
from rgs.node.config import load_config
from rgs.node.logging import Log
from rgs.node.server import Server
from rgs.service.callers import Caller, Role
from rgs.v1 import admin_pb2, common_pb2, play_pb2, session_pb2
from tests.support.api.client import ApiClient, refused, request_id
from tests.support.api.harness import ApiHarness, manifest, reason_in, status_in
from tests.support.clocks import ShiftedClock
from tests.support.service.harness import read_statement

SESSION, ROUND = "01K4ZQ6A0B1C2D3E4F5G6H7J81", "01K4ZQ7M2J8T5V9X3B6C1D0EFG"
FIELDS = ["time", "level", "event", "method", "party", "request_id", "session_id", "round_id", "reason", "ms"]


def lines_of(path: Path) -> list[dict[str, Any]]:
    every = [json.loads(line) for line in path.read_text("ascii").splitlines()]
    return [line for line in every if line["event"] == "call"]


# --- one line ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bytes_before", [0, 1, 100, 127, 128, 5_000, 40_000])
def test_ids_are_read_from_the_beginning_of_an_answer(bytes_before: int) -> None:
    session = common_pb2.SessionView(session_id=SESSION, game_name="x" * bytes_before)
    round_ = common_pb2.RoundView(round_id=ROUND, game_code="x" * bytes_before)
    started = play_pb2.StartRoundResponse(session=session, round=round_, opening=b"\x0a\x1a" * 40)
    assert ids_of(started.SerializeToString()) == (SESSION, ROUND)
    opened = session_pb2.OpenSessionResponse(session=session, statement=b'{"payload":"' + b"A" * 40)
    assert ids_of(opened.SerializeToString()) == (SESSION, "")


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\x0a",
        b"\x0a\x80",
        b"\x0a\xff\xff",
        b"\x12\x04\x0a\x1a12",
        b"\x0a\x1c\x0a\x1a" + b"A" * 25,
        b"\x0a\x1c\x0a\x1a" + b'"' * 26,
        admin_pb2.SetSwitchResponse(statement=b"{" * 60).SerializeToString(),
        session_pb2.GetSessionResponse(session=common_pb2.SessionView(player="p")).SerializeToString(),
    ],
    ids=lambda answer: answer.hex()[:24] or "empty",
)
def test_what_has_no_ids_has_none(answer: bytes) -> None:
    assert ids_of(answer) == ("", "")


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("", '""'),
        (SESSION, f'"{SESSION}"'),
        ("28f1f05a-b88b-45a4-977e-20ddca5744fd", '"28f1f05a-b88b-45a4-977e-20ddca5744fd"'),
        ('a","salt":"b', r'"a\",\"salt\":\"b"'),
        ("a\nb", r'"a\nb"'),
        ("a\\", r'"a\\"'),
        ("é", r'"\u00e9"'),
        ("²", r'"\u00b2"'),
        ("x" * 65, f'"{"x" * 64}"'),
        ("--", json.dumps("--")),
        ("\x1b[2J", r'"\u001b[2J"'),
    ],
)
def test_what_is_typed_as_an_id_stays_in_its_quotes(text: str, reported: str) -> None:
    assert quoted(text) == reported
    assert json.loads(reported) == text[:64]


def test_a_line_has_its_fields_and_no_other() -> None:
    written: list[str] = []
    request = session_pb2.OpenSessionRequest(request_id="r-1", player="the player", operator_reference="the reference")
    CallLines(written.append, ShiftedClock()).emit(
        "rgs.v1.SessionService/OpenSession", "op-1", request, b"", "DISABLED", 0.01234
    )
    (line,) = (json.loads(one) for one in written)
    assert list(line) == FIELDS
    assert (line["method"], line["party"], line["reason"], line["ms"]) == (
        *("SessionService/OpenSession", "op-1", "DISABLED"),
        12.3,
    )
    assert (line["request_id"], line["session_id"], line["round_id"]) == ("r-1", "", "")
    assert "the " not in written[0]


@pytest.mark.parametrize("strange", ['a","x":"b', "x" * 65, "é"])
@pytest.mark.parametrize("field", ["request_id", "session_id", "round_id"])
def test_a_line_of_an_answered_call_holds_each_id_as_the_others_do(strange: str, field: str) -> None:
    for reason in ("OK", "ILLEGAL_ACTION"):
        written: list[str] = []
        request = play_pb2.ActRequest(request_id=request_id(), session_id=SESSION, round_id=ROUND)
        setattr(request, field, strange)
        CallLines(written.append, ShiftedClock()).emit("rgs.v1.PlayService/Act", "op-1", request, b"", reason, 0.0)
        line = json.loads(written[0])
        assert list(line) == FIELDS
        assert {name: line[name] for name in ("request_id", "session_id", "round_id")} == {
            "request_id": request.request_id,
            "session_id": SESSION,
            "round_id": ROUND,
            field: strange[:64],
        }


# --- too many of them ---------------------------------------------------------------------------------------------


def test_of_refusals_a_party_has_so_many_lines_and_then_their_number() -> None:
    written: list[str] = []
    lines = CallLines(written.append, ShiftedClock())
    request = play_pb2.ActRequest(request_id=request_id(), session_id=SESSION, round_id=ROUND)

    def emit(party: str, reason: str, times: int) -> None:
        for _ in range(times):
            lines.emit("rgs.v1.PlayService/Act", party, request, b"", reason, 0.0)

    emit("op-1", "ILLEGAL_ACTION", 5_000)
    assert len(written) == REFUSALS_MAX
    emit("op-2", "ILLEGAL_ACTION", 3)
    emit("op-1", "OK", 50)  # what took effect is always told
    assert len(written) == REFUSALS_MAX + 53
    for _ in range(3):
        lines.poll()
    reported = json.loads(written[-1])
    assert (reported["event"], reported["party"], reported["count"]) == ("calls_left_out", "op-1", 5_000 - REFUSALS_MAX)
    assert len(written) == REFUSALS_MAX + 54
    emit("op-1", "ILLEGAL_ACTION", REFUSALS_MAX)
    lines.poll()
    assert len(written) == 2 * REFUSALS_MAX + 54


async def test_a_flood_that_is_refused_does_not_fill_the_log_of_a_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refused by its quota, by a fault of ours, and by the service: for each a bounded number of lines, and numbers."""
    polls = 0
    poll = Calls.poll

    def count(self: Calls) -> None:
        nonlocal polls
        polls += 1
        poll(self)

    monkeypatch.setattr(Calls, "poll", count)
    harness = ApiHarness(tmp_path / "home", party_messages_per_s=150)
    with Log(harness.config.log, "info", harness.clock, people=None) as log:
        harness.server = Server(harness.config, manifest(), clock=harness.clock, log=log)
        await harness.start()
        try:
            player = await ApiClient(harness.channel()).seated()
            harness.clock.ahead_ms += 2_000
            harness.clock.stand()
            reasons: Counter[str] = Counter()
            for _ in range(400):
                error = await refused(player.play.StartRound(player.start_request(round_no=9)))
                reasons[reason_in(status_in(error))] += 1
        finally:
            await harness.stop()
    assert reasons == {"NUMBER_NOT_EXPECTED": 150, "PARTY_LIMIT": 250}
    every = [json.loads(line) for line in harness.config.log.read_text("ascii").splitlines()]
    events = Counter(line["event"] for line in every)
    assert events["call"] <= 2 + REFUSALS_MAX * (polls + 1)
    assert sum(line.get("count", 1) for line in every if line["event"] in ("call", "calls_left_out")) == 2 + 150
    assert sum(line["refused"] for line in every if line["event"] == "party_limit") == 250
    assert events["party_limit"] <= polls


async def test_faults_that_come_in_floods_are_told_by_their_number() -> None:
    calls = Calls(None, ShiftedClock(), None)  # type: ignore[arg-type]
    with capture_logs() as logs:
        for _ in range(500):
            calls.status(RuntimeError("no"), "rgs.v1.PlayService/Act", "r")
        calls.poll()
        calls.poll()
        calls.status(RuntimeError("no"), "rgs.v1.PlayService/Act", "r")
    events = [line["event"] for line in logs]
    assert events == ["fault"] * FAULT_LINES_MAX + ["faults_left_out", "fault"]
    assert logs[FAULT_LINES_MAX]["count"] == 500 - FAULT_LINES_MAX


# --- a server ----------------------------------------------------------------------------------------------------


async def played(
    folder: Path, *, level: str = "info", logging_calls: bool = True
) -> tuple[ApiHarness, dict[str, Any], list[str]]:
    """A life with a refusal, a repeat, a stream and reads; the server, the round's final, the request ids in order."""
    harness = ApiHarness(folder / "home", logging_calls=logging_calls)
    requested: list[str] = []

    def noted(request: Any) -> Any:
        requested.append(request.request_id)
        return request

    with Log(harness.config.log, level, harness.clock, people=None) as log:
        harness.server = Server(harness.config, manifest(), clock=harness.clock, log=log)
        await harness.start()
        try:
            player = ApiClient(harness.channel())
            opened = await player.sessions.OpenSession(noted(player.open_request()))
            player.session_id = opened.session.session_id
            buy = noted(player.buy_request())
            await player.sessions.BuyParticipation(buy)
            await player.sessions.BuyParticipation(noted(buy))  # a repeat, answered from the store
            await refused(player.play.StartRound(noted(player.start_request(round_no=7))))
            stream = player.play.Play()
            await stream.write(play_pb2.PlayRequest(start_round=noted(player.start_request())))
            player.seen((await stream.read()).start_round)
            await player.play.GetRound(play_pb2.GetRoundRequest(session_id=player.session_id, round_id=player.round_id))
            await player.sessions.GetSession(session_pb2.GetSessionRequest(session_id=player.session_id))
            bad = play_pb2.ActRequest(request_id='x","salt":"', session_id="\n", round_id="y" * 99)
            await stream.write(play_pb2.PlayRequest(act=noted(bad)))
            assert (await stream.read()).HasField("error")
            await stream.done_writing()
            acted = await player.play.Act(noted(player.act_request(common_pb2.ACTION_PLAY_4X)))
            stranger = ApiClient(harness.channel("demo-lab"))
            error = await refused(stranger.sessions.OpenSession(stranger.open_request()))
            assert error.code() is grpc.StatusCode.PERMISSION_DENIED
        finally:
            await harness.stop()
    return harness, read_statement(acted.final), requested


async def test_every_step_of_a_life_has_its_line(tmp_path: Path) -> None:
    harness, final, requested = await played(tmp_path)
    lines = lines_of(harness.config.log)
    assert [line["request_id"] for line in lines] == requested
    assert [(line["method"], line["reason"]) for line in lines] == [
        ("SessionService/OpenSession", "OK"),
        ("SessionService/BuyParticipation", "OK"),
        ("SessionService/BuyParticipation", "OK"),
        ("PlayService/StartRound", "NUMBER_NOT_EXPECTED"),
        ("PlayService/StartRound", "OK"),
        ("PlayService/Act", "INVALID_FIELD"),
        ("PlayService/Act", "OK"),
    ]
    assert all(list(line) == FIELDS for line in lines)
    assert {line["party"] for line in lines} == {"demo-operator"}
    good = [line for line in lines if line["reason"] != "INVALID_FIELD"]
    assert {line["session_id"] for line in good} == {final["session_id"]}
    assert [line["round_id"] for line in good] == [""] * 4 + [final["round_id"]] * 2
    assert all(line["ms"] >= 0 for line in lines)
    hostile = lines[5]
    assert (hostile["session_id"], hostile["round_id"]) == ("\n", "y" * 64)


async def test_nothing_secret_and_nothing_personal_is_in_a_line(tmp_path: Path) -> None:
    harness, final, _ = await played(tmp_path, level="debug")
    text = harness.config.log.read_text("ascii")
    assert text.count('"event":"call"') == 7
    calls = "\n".join(line for line in text.splitlines() if '"event":"call"' in line)
    for secret in (final["salt"], final["transcript"], "".join(final["deck"]), final["actions_hash"], final["opening"]):
        assert secret not in text
    for reported in ("player-1", "ref-1", "amount", "bets"):
        assert reported not in calls
    # No card as a word of its own: "Ac" stands in Act, and "9d" may stand in an id.
    assert not set(re.findall(r"\w+", calls)) & set(final["deck"])


async def test_the_lines_can_be_turned_off(tmp_path: Path) -> None:
    harness, _, _ = await played(tmp_path, logging_calls=False)
    assert lines_of(harness.config.log) == []
    assert load_config(harness.config.home).logging_calls


async def test_a_level_above_info_has_none(tmp_path: Path) -> None:
    harness, _, _ = await played(tmp_path, level="warning")
    assert lines_of(harness.config.log) == []


async def test_a_call_that_is_cancelled_while_its_service_works_says_so(tmp_path: Path) -> None:
    written: list[str] = []
    calls = Calls(None, ShiftedClock(), None, lines=CallLines(written.append, ShiftedClock()))  # type: ignore[arg-type]
    begun = asyncio.Event()

    async def never(_caller: Caller, _message: Any) -> bytes:
        begun.set()
        await asyncio.Event().wait()
        return b""

    request = play_pb2.ActRequest(request_id=request_id(), session_id=SESSION, round_id=ROUND)
    caller = Caller("op-1", Role.OPERATOR, "demo")
    task = asyncio.create_task(
        calls.answer("rgs.v1.PlayService/Act", Unary(play_pb2.ActRequest, never), caller, request)
    )
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    (line,) = (json.loads(one) for one in written)
    assert (line["reason"], line["session_id"], line["round_id"]) == ("CANCELLED", SESSION, ROUND)


def test_the_token_of_a_launch_is_no_id() -> None:
    """It stands where other answers have the session: a line of the log takes an id only, and a token never is one."""
    for token in ("A" * 43, "01M84PT71HSQH5WKMHXJ02GQ9B" + "A" * 17, "01M84PT71HSQH5WKMHXJ02GQ9B"):
        answer = session_pb2.CreateLaunchResponse(launch_token=token).SerializeToString()
        assert ids_of(answer) == ("", "")
