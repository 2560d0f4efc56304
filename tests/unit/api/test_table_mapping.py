"""Views of tables as messages: every field has its place, and what is not in a view is not in a message."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from rgs.api import table_mapping
from rgs.api.table_mapping import (
    TableEncoder,
    entry_message,
    line_message,
    seat_bytes,
    seat_message,
    table_message,
    watched_line,
    watched_seat,
    watched_table,
)
from rgs.core.cards import parse_cards
from rgs.core.games.types import Phase
from rgs.core.hands import evaluate
from rgs.core.tables.machine import State
from rgs.core.tables.views import BoxView, ChatLine, SeatView
from rgs.v1 import table_pb2 as pb
from tests.support.api.client import cards_in
from tests.support.api.table_endpoint import entry
from tests.support.api.tables import TABLE, seat_view, session_id, table_view
from tests.support.api.views import ENCODER, ROUND_ID, START_MS, played, session_view, view_of

HAND = evaluate(parse_cards(("As", "Ad", "Kc", "Kd", "2h")))
FULL = table_view(
    version=9,
    state=State.PAUSED,
    paused_from=State.DECIDING,
    phase=Phase.RIVER,
    table_round_no=7,
    game_code="#10:11:12",
    amber_ms=START_MS + 15_000,
    hole_cards=("As", "Ad"),
    board=("Kc", "Kd", "2h"),
    dealer_cards=("3c", "4c"),
    dealer_hand=HAND,
    player_hand=HAND,
    dealer_qualifies=True,
    boxes=(BoxView(2, "Ada", session_id(1), (("ante", 100), ("blind", 100)), True, True, ("Qs", "Qd"), True),),
    players_at_least=5,
    commitment=b"c" * 32,
    malfunction_code="CARDS_SHOWN",
    table_round=b"{1}",
    table_deal=b"{2}",
    table_final=b"{3}",
)
TWO_PAIR = {"category": "two_pair", "cards": ["Ad", "As", "Kc", "Kd", "2h"]}


def json_of(message: Message) -> dict[str, Any]:
    return MessageToDict(message, preserving_proto_field_name=True)


def names_of(message: Message) -> set[str]:
    return {field.name for field, _ in message.ListFields()}


def test_every_state_has_its_number_and_every_number_its_state() -> None:
    assert list(table_mapping.STATES) == list(State)
    assert sorted(table_mapping.STATES.values()) == sorted(number for number in pb.TableState.values() if number)
    for state, number in table_mapping.STATES.items():
        assert pb.TableState.Name(number) == f"TABLE_STATE_{state.name}"


def test_a_whole_table() -> None:
    assert json_of(table_message(FULL)) == {
        "table": TABLE,
        "version": "9",
        "state": "TABLE_STATE_PAUSED",
        "paused_from": "TABLE_STATE_DECIDING",
        "phase": "PHASE_RIVER",
        "round_id": ROUND_ID,
        "table_round_no": "7",
        "game_code": "#10:11:12",
        "open_time": "2026-11-18T11:06:40.123Z",
        "amber_time": "2026-11-18T11:06:55.123Z",
        "deadline": "2026-11-18T11:07:00.123Z",
        "time": "2026-11-18T11:06:40.124Z",
        "hole_cards": ["As", "Ad"],
        "board": ["Kc", "Kd", "2h"],
        "dealer_cards": ["3c", "4c"],
        "dealer_hand": TWO_PAIR,
        "player_hand": TWO_PAIR,
        "dealer_qualifies": True,
        "boxes": [
            {
                "box": 2,
                "nickname": "Ada",
                "session_id": session_id(1),
                "bets": [{"bet": bet, "amount_minor": "100"} for bet in ("ante", "blind")],
                "in_round": True,
                "decided": True,
                "hole_cards": ["Qs", "Qd"],
                "reserved": True,
            }
        ],
        "players_at_least": "5",
        "commitment": "Y2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2M=",
        "malfunction_code": "CARDS_SHOWN",
        "table_round": "ezF9",
        "table_deal": "ezJ9",
        "table_final": "ezN9",
    }


def test_no_field_of_a_view_is_forgotten() -> None:
    assert names_of(table_message(FULL)) == {field.name for field in pb.TableView.DESCRIPTOR.fields}
    assert names_of(table_message(FULL).boxes[0]) == {field.name for field in pb.BoxView.DESCRIPTOR.fields}
    view = seat_view(box=3, round=view_of(*played("uth-solo", range(52), ())), ended="BARRED")
    assert names_of(seat_message(view)) == {field.name for field in pb.SeatView.DESCRIPTOR.fields}
    line = ChatLine(session_id(1), TABLE, START_MS, "Ada", "hello", "BETS_OPEN", "player-1", "op-1", is_own=True)
    assert names_of(line_message(line)) == {field.name for field in pb.ChatLine.DESCRIPTOR.fields}
    full = replace(entry(), config=replace(entry().config, tables_beside=True, early_close=True, chat=True))
    assert names_of(entry_message(full)) == {field.name for field in pb.TableEntry.DESCRIPTOR.fields}


def test_every_field_of_a_view_changes_the_message() -> None:
    """From the other side: what the core shows is sent, each field by itself."""
    cases: list[tuple[Any, Callable[[Any], Message]]] = [
        (FULL, table_message),
        (seat_view(ended="LEFT", box=2), seat_message),
    ]
    others = {bool: False, int: 12, str: "other", bytes: b"other", tuple: (), State: State.IDLE, Phase: Phase.FLOP}
    round_view = view_of(*played("uth-solo", range(52), ()))
    for view, message_of in cases:
        for field in fields(view):
            other = round_view if field.name == "round" else others.get(type(getattr(view, field.name)))
            assert message_of(replace(view, **{field.name: other})) != message_of(view), field.name


def test_an_idle_table_says_no_more_than_that() -> None:
    idle = table_view(state=State.IDLE, round_id="", open_ms=0, deadline_ms=0)
    assert json_of(table_message(idle)) == {
        "table": TABLE,
        "version": "1",
        "state": "TABLE_STATE_IDLE",
        "time": "2026-11-18T11:06:40.124Z",
    }


@pytest.mark.parametrize("phase", [None, Phase.PREFLOP])
def test_a_card_that_is_not_in_a_view_is_not_in_the_message(phase: Phase | None) -> None:
    hidden = replace(
        FULL, phase=phase, hole_cards=(), board=(), dealer_cards=(), dealer_hand=None, player_hand=None,
        boxes=(replace(FULL.boxes[0], hole_cards=()),),
    )  # fmt: skip
    assert list(cards_in(table_message(hidden))) == []
    shown = set(cards_in(table_message(replace(hidden, board=("Kc",)))))
    assert shown == {"Kc"}


def test_a_seat_and_its_round() -> None:
    round_view = view_of(*played("uth-solo", range(52), ()))
    view = seat_view(box=3, device_no=2, seat_version=5, round=round_view)
    reported = json_of(seat_message(view))
    assert reported.pop("round") == json_of(table_mapping.seat_message(view).round)
    assert reported == {
        "session_id": session_id(1),
        "table": TABLE,
        "box": 3,
        "device_no": 2,
        "seat_version": "5",
        "bets": [{"bet": "ante", "amount_minor": "100"}],
        "reserved_minor": "100",
        "regulator_session_id": "RS-1",
        "regulator_participation_id": "RP-1",
    }
    assert seat_message(view).round.hole_cards == list(round_view.hole_cards)
    assert not seat_message(replace(view, round=None)).HasField("round")


def test_a_table_of_the_lobby() -> None:
    config = entry().config
    assert json_of(entry_message(entry())) == {
        "table": "uth-lugano",
        "names": dict(config.names),
        "game": "uth-lugano",
        "currency": config.currency,
        "limits": [
            {"bet": bet, "min_minor": str(limits.min_minor), "max_minor": str(limits.max_minor)}
            for bet, limits in config.limits.items()
        ],
        "state": "TABLE_STATE_IDLE",
        "players_at_least": "5",
        "boxes": 7,
        "boxes_free": 2,
        **{name: True for name in ("tables_beside", "chat", "early_close") if getattr(config, name)},
        **{name: str(getattr(config.timers, name)) for name in ("betting_ms", "amber_ms", "decision_ms", "result_ms")},
        "hours_change_time": "2026-11-18T11:06:40.123Z",
        "config": config.sha256,
        "hours": [
            {"weekday": weekday, "opens_minute": 18 * 60, "closes_minute": (29 if weekday in {5, 6} else 26) * 60}
            for weekday in (1, 2, 3, 4, 7, 5, 6)
        ],
        "time_zone": "Europe/Zurich",
        "currency_exponent": 2,
    }


def test_who_wrote_a_line() -> None:
    own = ChatLine(session_id(1), TABLE, START_MS, "Ada", "hello", "", "player-1", is_own=True)
    assert json_of(line_message(own)) == {
        "message_id": session_id(1),
        "table": TABLE,
        "time": "2026-11-18T11:06:40.123Z",
        "nickname": "Ada",
        "text": "hello",
        "is_own": True,
        "player": "player-1",
    }
    foreign, dealer = (
        replace(own, player="", is_own=False),
        replace(own, player="", is_own=False, nickname="", text="", code="BETS_OPEN"),
    )
    assert (line_message(foreign).is_own, line_message(foreign).player) == (False, "")
    assert (line_message(dealer).is_own, line_message(dealer).code) == (False, "BETS_OPEN")


# --- responses --------------------------------------------------------------------------------------------------------

ENCODE = TableEncoder(ENCODER)
RESPONSES = {
    "Join": pb.JoinResponse,
    "Leave": pb.LeaveResponse,
    "PlaceBets": pb.PlaceBetsResponse,
    "Decide": pb.DecideResponse,
}


@pytest.mark.parametrize("method", RESPONSES)
def test_the_answer_of_a_call_is_session_and_seat(method: str) -> None:
    session, seat = session_view(session_id="01" + "V" * 24, table_id=TABLE, reserved_minor=100), seat_view()
    response: Any = RESPONSES[method].FromString(ENCODE(method, session, seat))
    assert (response.session, response.seat) == (ENCODER.session(session), seat_message(seat))
    assert (response.session.table, response.session.reserved_minor) == (TABLE, 100)
    assert [field.name for field in RESPONSES[method].DESCRIPTOR.fields] == ["session", "seat"]


@pytest.mark.parametrize("method", ["Say", "StartRound", ""])
def test_no_other_call_has_such_an_answer(method: str) -> None:
    with pytest.raises(KeyError):
        ENCODE(method, session_view(), seat_view())


def test_what_a_stream_sends() -> None:
    line = ChatLine(session_id(1), TABLE, START_MS, "Ada", "hello", "", "")
    seat: SeatView = seat_view()
    assert pb.WatchResponse.FromString(watched_table(FULL)) == pb.WatchResponse(table=table_message(FULL))
    assert pb.WatchResponse.FromString(watched_seat(seat)) == pb.WatchResponse(seat=seat_message(seat))
    assert pb.WatchResponse.FromString(watched_line(line)) == pb.WatchResponse(line=line_message(line))
    assert pb.SeatView.FromString(seat_bytes(seat)) == seat_message(seat)
