"""Views as messages: every word and field has its place, hidden cards have none, the statement goes behind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st

from rgs.api import mapping
from rgs.api.mapping import field_bytes, reply_bytes, round_message, tag_of, time_fields
from rgs.core.cards import format_card
from rgs.core.games.types import Action, BetResult, Outcome, Phase, StakeLimits
from rgs.core.limits import SessionLimits
from rgs.core.rounds import RoundStatus
from rgs.core.sessions import Funding, Mode, SessionStatus
from rgs.core.views import PendingOperation, round_view
from rgs.service.callers import Reply
from rgs.v1 import common_pb2, play_pb2, session_pb2
from tests.support.api.views import BOOKS, ENCODER, ROUND_ID, SESSION_ID, START_MS, played, session_view, view_of

DECK = list(range(52))
UTH_TO_THE_END = (Action.CHECK, Action.CHECK, Action.PLAY_1X)


def json_of(message: Message) -> dict[str, Any]:
    return MessageToDict(message, preserving_proto_field_name=True)


# --- words ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "ours", "theirs", "prefix"),
    [
        (mapping.PHASES, [phase.value for phase in Phase], common_pb2.Phase, "PHASE"),
        (mapping.ACTIONS, [action.value for action in Action], common_pb2.Action, "ACTION"),
        (mapping.DECIDED_BY, ["player", "timer", "rule"], common_pb2.DecidedBy, "DECIDED_BY"),
        (mapping.OUTCOMES, list(Outcome), common_pb2.Outcome, "OUTCOME"),
        (mapping.RESULTS, [result.value for result in BetResult], common_pb2.BetResult, "BET_RESULT"),
        (mapping.ROUND_STATUSES, list(RoundStatus), common_pb2.RoundStatus, "ROUND_STATUS"),
        (mapping.SESSION_STATUSES, list(SessionStatus), common_pb2.SessionStatus, "SESSION_STATUS"),
    ],
)
def test_every_word_has_its_number_and_every_number_its_word(words: Any, ours: Any, theirs: Any, prefix: str) -> None:
    assert list(words) == ours
    assert sorted(words.values()) == sorted(number for number in theirs.values() if number)
    for word, number in words.items():
        assert theirs.Name(number) == f"{prefix}_{word.upper()}"


def test_an_action_read_back_is_the_action() -> None:
    assert {number: action for action, number in mapping.ACTIONS.items()} == mapping.ACTION_OF


# --- rounds -----------------------------------------------------------------------------------------------------------


def test_a_round_before_the_first_decision() -> None:
    round_, seat = played("uth-solo", DECK, (), "trips")
    assert json_of(round_message(view_of(round_, seat))) == {
        "round_id": ROUND_ID,
        "game_code": "#10:11:12",
        "round_no": "5",
        "round_version": "1",
        "status": "ROUND_STATUS_OPEN",
        "phase": "PHASE_PREFLOP",
        "hole_cards": ["2c", "3c"],
        "bets": [{"bet": bet, "amount_minor": "10"} for bet in ("ante", "blind", "trips")],
        "legal_actions": [
            {"action": "ACTION_CHECK", "available": True},
            {"action": "ACTION_PLAY_4X", "cost_minor": "40", "available": True},
            {"action": "ACTION_PLAY_3X", "cost_minor": "30", "available": True},
        ],
        "staked_minor": "30",
        "start_time": "2026-11-18T11:06:40.123Z",
        "commitment": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
        "actions_hash": "A" * 43 + "=",
    }


def test_a_round_that_is_settled() -> None:
    # Clubs from the two upwards: player 23, dealer 45, board 6789T.
    round_, seat = played("uth-solo", DECK, UTH_TO_THE_END, "trips")
    reported = json_of(round_message(view_of(round_, seat)))
    assert reported["status"] == "ROUND_STATUS_SETTLED"
    assert reported["phase"] == "PHASE_SHOWDOWN"
    assert "legal_actions" not in reported
    assert reported["dealer_cards"] == ["4c", "5c"]
    assert reported["board"] == ["6c", "7c", "8c", "9c", "Tc"]
    best = {"category": "straight_flush", "cards": ["Tc", "9c", "8c", "7c", "6c"]}
    assert (reported["player_hand"], reported["dealer_hand"]) == (best, best)
    assert reported["outcome"] == "OUTCOME_TIE"
    assert reported["dealer_qualifies"] is True
    assert reported["settlement"] == [
        {"bet": "ante", "stake_minor": "10", "returned_minor": "10", "result": "BET_RESULT_PUSH"},
        {"bet": "blind", "stake_minor": "10", "returned_minor": "10", "result": "BET_RESULT_PUSH"},
        {
            "bet": "trips",
            "stake_minor": "10",
            "returned_minor": "410",
            "result": "BET_RESULT_WIN",
            "row": "straight_flush",
            "cards": best["cards"],
        },
        {"bet": "play", "stake_minor": "10", "returned_minor": "10", "result": "BET_RESULT_PUSH"},
    ]
    assert (reported["staked_minor"], reported["returned_minor"]) == ("40", "440")
    assert reported["end_time"] == "2026-11-18T11:07:40.124Z"
    assert reported["actions"][0] == {
        "phase": "PHASE_PREFLOP",
        "action": "ACTION_CHECK",
        "time": "2026-11-18T11:06:40.124Z",
        "by": "DECIDED_BY_PLAYER",
    }
    assert reported["actions"][2]["amount_minor"] == "10"
    assert [action["by"] for action in reported["actions"]] == [
        "DECIDED_BY_PLAYER",
        "DECIDED_BY_TIMER",
        "DECIDED_BY_RULE",
    ]


def test_a_void_round_returns_its_stakes() -> None:
    round_, seat = played("uth-solo", DECK, (Action.PLAY_4X,))
    void = replace(round_, status=RoundStatus.VOID, end_ms=START_MS + 1)
    reported = json_of(round_message(round_view(void, seat, actions_hash=bytes(32))))
    assert reported["status"] == "ROUND_STATUS_VOID"
    assert (reported["staked_minor"], reported["returned_minor"]) == ("60", "60")
    assert "outcome" not in reported


def test_an_option_that_is_not_covered_says_why() -> None:
    round_, seat = played("casino-holdem", DECK, ())
    poor = replace(seat, funds_minor=0)
    reported = json_of(round_message(view_of(round_, poor)))
    assert reported["legal_actions"][0] == {
        "action": "ACTION_CALL",
        "cost_minor": "20",
        "reason": "INSUFFICIENT_BALANCE",
    }


def test_no_field_of_a_round_or_session_is_forgotten() -> None:
    timed = replace(view_of(*played("uth-solo", DECK, ())), deadline_ms=START_MS + 1)
    called = view_of(*played("casino-holdem", [51, 50, *range(50)], (Action.CALL,), "aa"))
    settled = view_of(*played("uth-solo", DECK, UTH_TO_THE_END))
    paused = replace(timed, malfunction_code="CARDS_SHOWN")
    free = replace(settled, grant_id=ROUND_ID, granted_minor=20, reclaimed_minor=10)
    views = [timed, called, settled, paused, free]
    seen = {field.name for view in views for field, _ in round_message(view).ListFields()}
    assert seen == {field.name for field in common_pb2.RoundView.DESCRIPTOR.fields}
    full = session_view(timed)
    ended = replace(full.session.participation, ended=True, paid_out_minor=5)
    closed = session_view(status=SessionStatus.CLOSED, close_ms=START_MS + 1, participation=ended)
    limited = session_view(limits=SessionLimits(1_000, 2_000, 3_600_000))
    waiting = replace(full, pending=PendingOperation("act", 1, "r", 100, START_MS, 2, "WALLET_UNAVAILABLE"))
    bets = session_view(session_id=ROUND_ID, funding=Funding.SEAMLESS, wallet_balance_ms=START_MS)
    reported = json_of(ENCODER.session(bets))
    assert (reported["wallet_balance_minor"], reported["wallet_balance_time"]) == ("0", "2026-11-18T11:06:40.123Z")
    reported = json_of(ENCODER.session(waiting))["pending"]
    assert (reported["progress"], reported["amount_minor"]) == ("OPERATION_PROGRESS_UNKNOWN", "100")
    seated = session_view(session_id="01" + "U" * 24, table_id="lugano-1", reserved_minor=700)
    reported = json_of(ENCODER.session(seated))
    assert (reported["table"], reported["reserved_minor"]) == ("lugano-1", "700")
    paced = replace(full, next_start_ms=START_MS + 5_000)
    assert json_of(ENCODER.session(paced))["next_start_time"] == "2026-11-18T11:06:45.123Z"
    prepared = session_view(
        session_id="01" + "W" * 24, mode=Mode.DEMO, bet_limits=(("ante", StakeLimits(20, 400)),), language="it",
        return_url="https://casino.example/",
    )  # fmt: skip
    reported = json_of(ENCODER.session(prepared))
    assert (reported["mode"], reported["language"]) == ("MODE_DEMO", "it")
    assert reported["return_url"] == "https://casino.example/"
    assert reported["bet_limits"] == [{"bet": "ante", "min_minor": "20", "max_minor": "400"}]
    views_of_sessions = (full, closed, limited, waiting, bets, seated, paced, prepared)
    seen = {field.name for view in views_of_sessions for field, _ in ENCODER.session(view).ListFields()}
    assert seen == {field.name for field in common_pb2.SessionView.DESCRIPTOR.fields}


def test_a_session() -> None:
    assert json_of(ENCODER.session(session_view())) == {
        "session_id": SESSION_ID,
        "status": "SESSION_STATUS_OPEN",
        "ruleset": {"id": "uth-solo", "version": "1", "sha256": BOOKS.rulesets["uth-solo"].sha256},
        "game_name": "Ultimate Texas Hold'em",
        "jurisdiction": {"id": "demo", "version": "3", "sha256": BOOKS.jurisdictions["demo"].sha256},
        "funding": "FUNDING_PARTICIPATION",
        "currency": "EUR",
        "player": "player-1",
        "regulator_session_id": "M00000000000000S",
        "regulator_participation_id": "N00000000000000P",
        "test_regulator": True,
        "participation_id": "01" + "P" * 24,
        "balance_minor": "49700",
        "bought_minor": "50000",
        "staked_minor": "700",
        "returned_minor": "400",
        "net_position_minor": "-300",
        "elapsed_ms": "9000",
        "open_time": "2026-11-18T11:06:40.123Z",
        "next_round_no": "5",
        "next_purchase_no": "3",
        "largest_ante_minor": "8282",
        "purchase_left_minor": "50000",
        "operator_reference": "ref-1",
        "inactive_time": "2026-11-18T11:36:45.123Z",
        "mode": "MODE_REAL",
        "session_version": "3",
    }


def test_what_is_left_of_limits_and_nothing_where_there_is_none() -> None:
    # 700 staked, 400 returned; 9 s after the opening.
    reported = json_of(ENCODER.session(session_view(limits=SessionLimits(loss_minor=300, duration_ms=10_000))))
    assert reported["limits"] == {"loss_minor": "300", "duration_ms": "10000"}
    assert (reported["loss_left_minor"], reported["time_left_ms"]) == ("0", "1000")
    assert "stake_left_minor" not in reported
    reported = json_of(ENCODER.session(session_view(limits=SessionLimits(stake_minor=1_000))))
    assert reported["stake_left_minor"] == "300"
    assert "loss_left_minor" not in reported
    assert "inactive_time" not in json_of(ENCODER.session(session_view(status=SessionStatus.CLOSED)))


def texts_in(message: Message) -> Iterator[str]:
    for field, value in message.ListFields():
        for item in value if field.is_repeated else [value]:
            if isinstance(item, Message):
                yield from texts_in(item)
            elif isinstance(item, str):
                yield item


@given(st.permutations(DECK), st.integers(0, 2))
def test_no_card_is_told_before_it_is_turned(deck: list[int], n_actions: int) -> None:
    round_, seat = played("uth-solo", deck, (Action.CHECK,) * n_actions)
    turned = {*deck[:2], *deck[4 : 4 + (0, 3, 5)[n_actions]]}
    hidden = {format_card(card) for card in DECK if card not in turned}
    view = view_of(round_, seat)
    reported = set(texts_in(play_pb2.ActResponse.FromString(ENCODER("Act", session_view(view), view))))
    assert not reported & hidden
    assert reported >= {format_card(card) for card in turned}


# --- answers ----------------------------------------------------------------------------------------------------------

RESPONSES: dict[str, tuple[Any, str]] = {
    "StartRound": (play_pb2.StartRoundResponse, "opening"),
    "Act": (play_pb2.ActResponse, "final"),
    "OpenSession": (session_pb2.OpenSessionResponse, "statement"),
    "BuyParticipation": (session_pb2.BuyParticipationResponse, "statement"),
    "EndParticipation": (session_pb2.EndParticipationResponse, "statement"),
    "CloseSession": (session_pb2.CloseSessionResponse, "statement"),
}


@pytest.mark.parametrize("method", RESPONSES)
@pytest.mark.parametrize("length", [0, 1, 127, 128, 1_500, 16_384])
def test_the_statement_stands_in_its_field_behind_the_stored_bytes(method: str, length: int) -> None:
    kind, field = RESPONSES[method]
    round_ = view_of(*played("uth-solo", DECK, ())) if method in {"StartRound", "Act"} else None
    view = session_view()
    body = ENCODER(method, view, round_)
    envelope = b"e" * length
    sent = reply_bytes(method, Reply(body, envelope))
    assert sent.startswith(body)
    expected: Any = kind.FromString(body)
    assert expected.session == ENCODER.session(view)
    assert round_ is None or expected.round == round_message(round_)
    assert not getattr(expected, field)
    setattr(expected, field, envelope)
    assert kind.FromString(sent) == expected


def test_a_method_without_an_answer_has_no_encoding() -> None:
    with pytest.raises(KeyError):
        ENCODER("GetRound", session_view(), None)
    with pytest.raises(KeyError):
        ENCODER("StartRound", session_view(), None)


@given(st.binary(max_size=300))
def test_fields_are_put_together_as_the_library_does(content: bytes) -> None:
    for kind, field in ((session_pb2.GetSessionResponse, "opening"), (common_pb2.RoundView, "commitment")):
        data = field_bytes(tag_of(kind.DESCRIPTOR, field), content)
        message: Any = kind.FromString(data)
        assert [name.name for name, _ in message.ListFields()] == ([field] if content else [])
        assert getattr(message, field) == content


@given(st.integers(1, 253_402_300_799_999))
def test_times_are_timestamps(time_ms: int) -> None:
    expected = Timestamp()
    expected.FromMilliseconds(time_ms)
    assert Timestamp(**time_fields(time_ms)) == expected


def test_no_time_is_no_timestamp() -> None:
    assert time_fields(0) is None
