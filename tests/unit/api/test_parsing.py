"""Requests as the services read them: what is taken, and that every refusal names field, limit and value."""

from __future__ import annotations

import re
from typing import Any

import pytest
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from rgs.api import launches, parsing
from rgs.api.parsing import parse_message
from rgs.core.errors import InvalidFieldError, UnknownFieldError
from rgs.core.games.types import Action, StakeLimits
from rgs.core.sessions import Mode
from rgs.service.play.requests import (
    Act,
    BuyParticipation,
    CloseSession,
    CreateLaunch,
    EndParticipation,
    OpenSession,
    StartRound,
)
from rgs.service.tables.requests import Decide, Join, Leave, PlaceBets, Say
from rgs.v1 import audit_pb2, common_pb2, history_pb2, play_pb2, session_pb2, table_pb2
from tests.support.api.views import REQUEST_ID, ROUND_ID, SESSION_ID

IDS = {"request_id": REQUEST_ID, "session_id": SESSION_ID}
CASES: dict[str, tuple[Any, Any, dict[str, Any], Any]] = {
    "StartRound": (
        parsing.parse_start_round,
        play_pb2.StartRoundRequest,
        {**IDS, "round_no": 3, "bets": [{"bet": "ante", "amount_minor": 10}, {"bet": "trips", "amount_minor": 20}]},
        StartRound(REQUEST_ID, SESSION_ID, 3, {"ante": 10, "trips": 20}),
    ),
    "Act": (
        parsing.parse_act,
        play_pb2.ActRequest,
        {**IDS, "round_id": ROUND_ID, "round_version": 2, "action": common_pb2.ACTION_PLAY_4X},
        Act(REQUEST_ID, SESSION_ID, ROUND_ID, 2, Action.PLAY_4X),
    ),
    "OpenSession": (
        launches.parse_open_session,
        session_pb2.OpenSessionRequest,
        {
            "request_id": REQUEST_ID,
            "game": "uth-solo",
            "player": "player-1",
            "currency": "EUR",
            "operator_reference": "ref:1",
        },
        OpenSession(REQUEST_ID, "uth-solo", "player-1", "EUR", "ref:1"),
    ),
    "CreateLaunch": (
        launches.parse_create_launch,
        session_pb2.CreateLaunchRequest,
        {
            "request_id": REQUEST_ID,
            "game": "uth-solo",
            "player": "player-1",
            "currency": "EUR",
            "operator_reference": "ref:1",
            "mode": common_pb2.MODE_DEMO,
            "bet_limits": [
                {"bet": "trips", "min_minor": 10, "max_minor": 20},
                {"bet": "ante", "min_minor": 50, "max_minor": 200},
            ],
            "language": "it",
            "return_url": "https://casino.example/",
        },
        CreateLaunch(
            REQUEST_ID,
            "uth-solo",
            "player-1",
            "EUR",
            "ref:1",
            mode=Mode.DEMO,
            bet_limits=(("ante", StakeLimits(50, 200)), ("trips", StakeLimits(10, 20))),
            language="it",
            return_url="https://casino.example/",
        ),
    ),
    "BuyParticipation": (
        parsing.parse_buy_participation,
        session_pb2.BuyParticipationRequest,
        {**IDS, "purchase_no": 1, "amount_minor": 10**12},
        BuyParticipation(REQUEST_ID, SESSION_ID, 1, 10**12),
    ),
    "EndParticipation": (
        parsing.parse_end_participation,
        session_pb2.EndParticipationRequest,
        IDS,
        EndParticipation(REQUEST_ID, SESSION_ID),
    ),
    "CloseSession": (
        parsing.parse_close_session,
        session_pb2.CloseSessionRequest,
        IDS,
        CloseSession(REQUEST_ID, SESSION_ID),
    ),
    "Join": (
        parsing.parse_join,
        table_pb2.JoinRequest,
        {**IDS, "box": 3, "nickname": "Ada"},
        Join(REQUEST_ID, SESSION_ID, 3, "Ada"),
    ),
    "Leave": (parsing.parse_leave, table_pb2.LeaveRequest, {**IDS, "device_no": 2}, Leave(REQUEST_ID, SESSION_ID, 2)),
    "PlaceBets": (
        parsing.parse_place_bets,
        table_pb2.PlaceBetsRequest,
        {**IDS, "device_no": 2, "round_id": ROUND_ID, "seat_version": 4, "bets": [{"bet": "ante", "amount_minor": 10}]},
        PlaceBets(REQUEST_ID, SESSION_ID, 2, ROUND_ID, 4, {"ante": 10}),
    ),
    "Decide": (
        parsing.parse_decide,
        table_pb2.DecideRequest,
        {**IDS, "device_no": 2, "round_id": ROUND_ID, "round_version": 3, "action": common_pb2.ACTION_CHECK},
        Decide(REQUEST_ID, SESSION_ID, 2, ROUND_ID, 3, Action.CHECK),
    ),
    "Say": (
        parsing.parse_say,
        table_pb2.SayRequest,
        {**IDS, "text": "Good luck"},
        Say(REQUEST_ID, SESSION_ID, "Good luck"),
    ),
}


def bets(*pairs: tuple[str, int]) -> list[dict[str, Any]]:
    return [{"bet": bet, "amount_minor": amount} for bet, amount in pairs]


ANTE_LIMIT: dict[str, Any] = {"bet": "ante", "min_minor": 10, "max_minor": 20}
VIOLATIONS = [
    *(
        (method, "request_id", value, "request_id")
        for method in CASES
        for value in ("", "1", REQUEST_ID.replace("-", ""), "0000000A-0000-4000-8000-000000000001", REQUEST_ID + "0")
    ),
    *(
        (method, "session_id", value, "session_id")
        for method in CASES
        if method not in {"OpenSession", "CreateLaunch"}
        for value in ("", SESSION_ID[:-1], SESSION_ID.lower(), "8" + "0" * 25, SESSION_ID + "\n")
    ),
    *(("StartRound", "round_no", value, "round_no") for value in (0, -1, -(2**63))),
    ("StartRound", "bets", [], "bets"),
    ("StartRound", "bets", bets(("ante", 10), ("ante", 10)), "bets[1].bet"),
    *(
        ("StartRound", "bets", bets(("ante", 10), (name, 10)), "bets[1].bet")
        for name in ("", "Ante", "1x", "a" * 17, "ante ", "ante\n", "änte")
    ),
    *(
        ("StartRound", "bets", bets(("trips", 10), ("ante", amount)), "bets[1].amount_minor")
        for amount in (0, -1, 10**12 + 1, 2**63 - 1)
    ),
    ("StartRound", "bets", bets(*((f"b{nth}", 1) for nth in range(9))), "bets"),
    *(("Act", "round_id", value, "round_id") for value in ("", "x")),
    *(("Act", "round_version", value, "round_version") for value in (0, -7)),
    *(("Act", "action", value, "action") for value in (0, 8, -1, 2**31 - 1)),
    *(("OpenSession", "game", value, "game") for value in ("", "UTH", "a" * 65, "../x")),
    *(("OpenSession", "player", value, "player") for value in ("", "a b", "x" * 65, "-x")),
    *(("OpenSession", "currency", value, "currency") for value in ("", "eur", "EURO", "E1R")),
    *(("OpenSession", "operator_reference", value, "operator_reference") for value in ("", "a/b", "x" * 65)),
    *((method, "mode", value, "mode") for method in ("OpenSession", "CreateLaunch") for value in (3, -1)),
    *(
        (method, field, "x" * length, field)
        for method in ("OpenSession", "CreateLaunch")
        for field, length in (("language", 9), ("return_url", 2_049), ("session_token", 1_025))
    ),
    ("OpenSession", "launch_token", "x" * 65, "launch_token"),
    *(
        (
            "CreateLaunch",
            "bet_limits",
            [{"bet": "ante", "min_minor": 10, "max_minor": 20} | change],
            f"bet_limits[0].{field}",
        )
        for change, field in (
            ({"bet": ""}, "bet"),
            ({"bet": "Ante"}, "bet"),
            ({"min_minor": 0}, "min_minor"),
            ({"max_minor": 10**12 + 1}, "max_minor"),
            ({"max_minor": -1}, "max_minor"),
        )
    ),
    ("CreateLaunch", "bet_limits", [ANTE_LIMIT] * 2, "bet_limits[1].bet"),
    (
        "CreateLaunch",
        "bet_limits",
        [{"bet": f"b{nth}", "min_minor": 1, "max_minor": 1} for nth in range(9)],
        "bet_limits",
    ),
    *(("CreateLaunch", field, "", field) for field in ("game", "player", "currency", "operator_reference")),
    *(("BuyParticipation", "purchase_no", value, "purchase_no") for value in (0, -1)),
    *(("BuyParticipation", "amount_minor", value, "amount_minor") for value in (0, -1, 10**12 + 1)),
    *(("OpenSession", "table", value, "table") for value in ("UTH", "a" * 65, "../x", " ")),
    *((method, "device_no", value, "device_no") for method in ("Leave", "PlaceBets", "Decide") for value in (0, -1)),
    *((method, "round_id", "x", "round_id") for method in ("PlaceBets", "Decide")),
    ("Decide", "round_id", "", "round_id"),
    *(("Decide", "round_version", value, "round_version") for value in (0, -7)),
    *(("Decide", "action", value, "action") for value in (0, 8)),
    *(("PlaceBets", "seat_version", value, "seat_version") for value in (0, -1)),
    ("PlaceBets", "bets", bets(("ante", 10), ("ante", 10)), "bets[1].bet"),
    ("PlaceBets", "bets", bets(("ante", 0)), "bets[0].amount_minor"),
]


@pytest.mark.parametrize("method", CASES)
def test_a_good_request_is_read(method: str) -> None:
    parse, kind, fields, expected = CASES[method]
    assert parse(parse_message(kind, kind(**fields).SerializeToString())) == expected


@pytest.mark.parametrize(("method", "changed", "value", "field"), VIOLATIONS)
def test_a_violation_names_its_field_and_value(method: str, changed: str, value: Any, field: str) -> None:
    parse, kind, fields, _ = CASES[method]
    message = parse_message(kind, kind(**{**fields, changed: value}).SerializeToString())
    with pytest.raises(InvalidFieldError) as caught:
        parse(message)
    assert caught.value.field == field
    if isinstance(value, int):
        assert caught.value.metadata["value"] == str(value)
    if isinstance(value, int) or field.endswith("amount_minor"):
        # AIP-193: what varies in the message stands in the metadata.
        numbers = set(re.findall(r"-?\b\d+", caught.value.message.replace(field, "")))
        assert numbers <= set(caught.value.metadata.values())
        assert caught.value.metadata["limit"] in numbers


def test_bets_at_a_table_may_be_none_and_name_no_round() -> None:
    parse, kind, fields, _ = CASES["PlaceBets"]
    request = parse(kind(**{**fields, "bets": [], "round_id": ""}))
    assert (request.bets, request.round_id) == ({}, "")


def test_a_session_is_opened_at_a_table_or_at_none() -> None:
    parse, kind, fields, _ = CASES["OpenSession"]
    assert parse(kind(**fields)).table == ""
    assert parse(kind(**fields, table="lugano-1")).table == "lugano-1"


def test_with_a_launch_the_rest_may_be_empty() -> None:
    parse, kind, _, _ = CASES["OpenSession"]
    token = "A" * 43
    bare = parse(kind(request_id=REQUEST_ID, launch_token=token))
    assert bare == OpenSession(REQUEST_ID, "", "", "", "", launch_token=token)
    assert token not in repr(bare)
    with pytest.raises(InvalidFieldError) as caught:
        parse(kind(request_id=REQUEST_ID, launch_token=token, game="UTH"))
    assert caught.value.field == "game"


def test_the_most_bets_that_a_request_may_hold() -> None:
    parse, kind, fields, _ = CASES["StartRound"]
    request = parse(kind(**{**fields, "bets": bets(*((f"b{nth}", 1) for nth in range(8)))}))
    assert len(request.bets) == 8


# --- bytes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"\xff", b"\x0a\x05ab", b"\x0a\x02\xff\xfe", b"\x00"])
def test_bytes_that_are_no_message(data: bytes) -> None:
    with pytest.raises(InvalidFieldError) as caught:
        parse_message(play_pb2.ActRequest, data)
    assert caught.value.metadata == {"kind": "ActRequest", "value": str(len(data))}


UNKNOWN = b"\xf8\x07\x01"  # field 127, a varint


@pytest.mark.parametrize(
    ("kind", "data", "paths"),
    [
        (play_pb2.ActRequest, UNKNOWN, "127"),
        (play_pb2.ActRequest, play_pb2.ActRequest(round_version=1).SerializeToString() + UNKNOWN * 2, "127 127"),
        (play_pb2.StartRoundRequest, b"\x22\x02\x10\x05" + b"\x22\x05\x10\x05" + UNKNOWN, "bets[1].127"),
        (play_pb2.PlayRequest, b"\x12\x03" + UNKNOWN, "act.127"),
        (play_pb2.PlayRequest, b"\x0a\x05\x22\x03" + UNKNOWN, "start_round.bets[0].127"),
        (audit_pb2.ListKeyStatementsRequest, UNKNOWN, "127"),
        # A known number with another wire type is an unknown field as well.
        (play_pb2.ActRequest, b"\x08\x01", "1"),
    ],
)
def test_an_unknown_field_is_refused_by_its_path(kind: type[Message], data: bytes, paths: str) -> None:
    with pytest.raises(UnknownFieldError) as caught:
        parse_message(kind, data)
    assert caught.value.field == paths.split(" ", maxsplit=1)[0]
    assert caught.value.metadata["value"] == paths


@given(st.binary(max_size=60))
def test_bytes_are_a_message_without_rest_or_refused(data: bytes) -> None:
    try:
        message = parse_message(play_pb2.StartRoundRequest, data)
    except (InvalidFieldError, UnknownFieldError):
        return
    assert play_pb2.StartRoundRequest.FromString(message.SerializeToString()) == message


# --- reads ------------------------------------------------------------------------------------------------------------


def reported(value: object) -> str | None:
    return " ".join(str(value).split()) or "empty" if isinstance(value, Message) else None


RECORD, STATEMENT, LOGGED, RANGE = (
    history_pb2.GetRoundRecordRequest,
    audit_pb2.GetStatementRequest,
    audit_pb2.GetRecordRequest,
    audit_pb2.ListStatementsRequest,
)


@pytest.mark.parametrize(
    ("verify", "message"),
    [
        (parsing.verify_record_request, RECORD(round_id=ROUND_ID)),
        (parsing.verify_record_request, RECORD(player="p", date="2026-11-21", game_code="#10:10:10")),
        (parsing.verify_logged_request, LOGGED(hash=bytes(32))),
        (parsing.verify_logged_request, LOGGED(round_id=ROUND_ID, session_id=ROUND_ID, kind="round_final")),
        (parsing.verify_statement_request, STATEMENT(hash=bytes(32))),
        (parsing.verify_statement_request, STATEMENT(instance="n-b1-w0", statement_no=1)),
        (parsing.verify_range, RANGE(instance="n-b1-w0", first_no=3, last_no=3)),
        (parsing.verify_range, RANGE(instance="n-b1-w0", first_no=3)),
        (parsing.verify_range, RANGE(session_id=SESSION_ID)),
    ],
    ids=reported,
)
def test_a_read_that_says_what_it_wants(verify: Any, message: Message) -> None:
    assert verify(message) is None


@pytest.mark.parametrize(
    ("verify", "message", "field", "value"),
    [
        (parsing.verify_record_request, RECORD(), "round_id", ""),
        (parsing.verify_record_request, RECORD(round_id=ROUND_ID, player="p"), "round_id", "round_id player"),
        (parsing.verify_record_request, RECORD(player="p", date="d"), "round_id", "player date"),
        (parsing.verify_statement_request, STATEMENT(), "hash", ""),
        (parsing.verify_statement_request, STATEMENT(hash=b"x", statement_no=1), "hash", "hash statement_no"),
        (parsing.verify_statement_request, STATEMENT(instance="n-b1-w0"), "hash", "instance"),
        (parsing.verify_statement_request, STATEMENT(instance="n", statement_no=-1), "statement_no", "-1"),
        (parsing.verify_logged_request, LOGGED(), "hash", ""),
        (parsing.verify_logged_request, LOGGED(hash=b"x", kind="k"), "hash", "hash kind"),
        (parsing.verify_logged_request, LOGGED(round_id=ROUND_ID, kind="k"), "hash", "round_id kind"),
        (parsing.verify_range, RANGE(instance="n-b1-w0", first_no=-1), "first_no", "-1"),
        (parsing.verify_range, RANGE(session_id=SESSION_ID, first_no=1), "first_no", "1"),
        (parsing.verify_range, RANGE(round_id=ROUND_ID, last_no=1), "last_no", "1"),
        (parsing.verify_range, RANGE(instance="n-b1-w0", first_no=4, last_no=3), "last_no", "3"),
    ],
    ids=reported,
)
def test_a_read_that_does_not(verify: Any, message: Message, field: str, value: str) -> None:
    with pytest.raises(InvalidFieldError) as caught:
        verify(message)
    assert (caught.value.field, caught.value.metadata["value"]) == (field, value)
    assert caught.value.metadata["limit"]


def test_a_session_token_is_taken_as_it_is_and_never_quoted() -> None:
    given = CASES["OpenSession"][2]
    for token in ("", "x", "\u00e9 \n\0", "t" * 1024, "\u20ac" * 341):
        message = session_pb2.OpenSessionRequest(**given, session_token=token)
        assert launches.parse_open_session(message).session_token == token
    for token in ("t" * 1025, "\u20ac" * 342):
        message = session_pb2.OpenSessionRequest(**given, session_token=token)
        with pytest.raises(InvalidFieldError) as reported:
            launches.parse_open_session(message)
        assert (reported.value.field, reported.value.metadata) == (
            "session_token",
            {"limit": "1024", "value": str(len(token.encode()))},
        )
        assert token[:8] not in reported.value.message
