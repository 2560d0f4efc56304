"""Turns requests of the contract into the values of the services: required fields, shapes and ranges.

Every error names field, limit and value. Bytes that are not the message, and fields that this version does not know,
are errors (ARCHITECTURE 2.16: unknown fields are refused). What depends on a ruleset, a session or a page is checked by
the services.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

from google.protobuf.message import DecodeError, Message
from google.protobuf.timestamp_pb2 import Timestamp
from google.protobuf.unknown_fields import UnknownFieldSet

from rgs.api.mapping import ACTION_OF
from rgs.core.errors import FormatError, InvalidFieldError, UnknownFieldError
from rgs.core.games.types import Action
from rgs.core.ids import check_name, check_reference, check_request_id, check_ulid
from rgs.core.ledger import PARTICIPATION_MINOR_MAX
from rgs.core.money import parse_currency
from rgs.core.values import check_range
from rgs.service.play.requests import (
    Act,
    BuyParticipation,
    CloseSession,
    EndParticipation,
    GrantFreeBets,
    StartRound,
)
from rgs.service.tables.requests import Decide, Join, Leave, PlaceBets, Say
from rgs.v1 import audit_pb2, common_pb2, free_bet_pb2, history_pb2, play_pb2, session_pb2, table_pb2

AMOUNT_MINOR_MAX: Final = PARTICIPATION_MINOR_MAX
NUMBER_MAX: Final = (1 << 63) - 1
"""Largest number of a stage, a purchase, a statement or a round's version: the largest int64."""
BETS_MAX: Final = 8
"""Largest number of bets in one request; every game has fewer."""
BET: Final = re.compile(r"[a-z][a-z0-9_]{0,15}", re.ASCII)

_Request = TypeVar("_Request", bound=Message)


def parse_message(kind: type[_Request], data: bytes) -> _Request:
    """The message in `data`. InvalidFieldError if it cannot be decoded, UnknownFieldError for an unknown field."""
    try:
        message = kind.FromString(data)
    except DecodeError:
        name = kind.DESCRIPTOR.name
        raise InvalidFieldError(f"cannot decode {len(data)} bytes as {name}", kind=name, value=len(data)) from None
    size = message.ByteSize()
    message.DiscardUnknownFields()
    if message.ByteSize() != size:
        paths = list(_unknown_paths(kind.FromString(data)))
        raise UnknownFieldError(
            f"{kind.DESCRIPTOR.name} has no field with the number {', '.join(paths)}",
            field=paths[0],
            kind=kind.DESCRIPTOR.name,
            value=" ".join(paths),
        )
    return message


def _unknown_paths(message: Message, prefix: str = "") -> Iterator[str]:
    """The unknown fields of a message and of those in it, as `7` or `bets[0].7`."""
    unknown = UnknownFieldSet(message)
    yield from (f"{prefix}{unknown[nth].field_number}" for nth in range(len(unknown)))
    for field, value in message.ListFields():
        if field.message_type is not None:
            inner = [(f"{field.name}[{nth}]", item) for nth, item in enumerate(value)] if field.is_repeated else []
            for name, item in inner or [(field.name, value)]:
                yield from _unknown_paths(item, f"{prefix}{name}.")


# --- the mutating requests --------------------------------------------------------------------------------------------


def parse_start_round(message: play_pb2.StartRoundRequest) -> StartRound:
    """StartRound. The service checks the bets and their limits by the ruleset."""
    return StartRound(
        request_id=check_request_id(message.request_id),
        session_id=check_ulid(message.session_id, "session_id"),
        round_no=_number(message.round_no, "round_no"),
        bets=_bets(message.bets, least=1),
        free_bet=check_ulid(message.free_bet, "free_bet") if message.free_bet else "",
    )


def parse_grant_free_bets(message: free_bet_pb2.GrantFreeBetsRequest) -> GrantFreeBets:
    """GrantFreeBets. The service checks the game, the stake and the expiry."""
    return GrantFreeBets(
        request_id=check_request_id(message.request_id),
        player=check_reference(message.player, "player"),
        game=check_name(message.game, "game"),
        currency=check_currency(message.currency),
        campaign=message.campaign,
        stake_minor=_amount(message.stake_minor, "stake_minor"),
        count=message.count,
        expires_ms=_time_ms(message.expiry_time, "expiry_time"),
    )


def parse_act(message: play_pb2.ActRequest) -> Act:
    """Act. The service checks whether the action is legal now."""
    return Act(
        request_id=check_request_id(message.request_id),
        session_id=check_ulid(message.session_id, "session_id"),
        round_id=check_ulid(message.round_id, "round_id"),
        round_version=_number(message.round_version, "round_version"),
        action=_action(message.action),
    )


def parse_buy_participation(message: session_pb2.BuyParticipationRequest) -> BuyParticipation:
    """BuyParticipation. The service checks the cap of the jurisdiction."""
    return BuyParticipation(
        request_id=check_request_id(message.request_id),
        session_id=check_ulid(message.session_id, "session_id"),
        purchase_no=_number(message.purchase_no, "purchase_no"),
        amount_minor=_amount(message.amount_minor, "amount_minor"),
    )


def parse_end_participation(message: session_pb2.EndParticipationRequest) -> EndParticipation:
    """EndParticipation."""
    return EndParticipation(check_request_id(message.request_id), check_ulid(message.session_id, "session_id"))


def parse_close_session(message: session_pb2.CloseSessionRequest) -> CloseSession:
    """CloseSession."""
    return CloseSession(check_request_id(message.request_id), check_ulid(message.session_id, "session_id"))


# --- the mutating requests of players at tables -----------------------------------------------------------------------


def parse_join(message: table_pb2.JoinRequest) -> Join:
    """Join. The service checks the box by the table, and the nickname."""
    return Join(
        request_id=check_request_id(message.request_id),
        session_id=check_ulid(message.session_id, "session_id"),
        box=message.box,
        nickname=message.nickname,
    )


def parse_leave(message: table_pb2.LeaveRequest) -> Leave:
    """Leave."""
    return Leave(
        request_id=check_request_id(message.request_id),
        session_id=check_ulid(message.session_id, "session_id"),
        device_no=_number(message.device_no, "device_no"),
    )


def parse_place_bets(message: table_pb2.PlaceBetsRequest) -> PlaceBets:
    """PlaceBets. No bets take the bet back; an empty round id begins at an idle table. The service checks the bets."""
    return PlaceBets(
        request_id=check_request_id(message.request_id),
        session_id=check_ulid(message.session_id, "session_id"),
        device_no=_number(message.device_no, "device_no"),
        round_id=check_ulid(message.round_id, "round_id") if message.round_id else "",
        seat_version=_number(message.seat_version, "seat_version"),
        bets=_bets(message.bets, least=0),
    )


def parse_decide(message: table_pb2.DecideRequest) -> Decide:
    """Decide. The service checks whether the action is legal now."""
    return Decide(
        request_id=check_request_id(message.request_id),
        session_id=check_ulid(message.session_id, "session_id"),
        device_no=_number(message.device_no, "device_no"),
        round_id=check_ulid(message.round_id, "round_id"),
        round_version=_number(message.round_version, "round_version"),
        action=_action(message.action),
    )


def parse_say(message: table_pb2.SayRequest) -> Say:
    """Say. The service checks the text."""
    return Say(
        request_id=check_request_id(message.request_id),
        session_id=check_ulid(message.session_id, "session_id"),
        text=message.text,
    )


# --- reads: what the services do not check themselves -----------------------------------------------------------------


def verify_record_request(message: history_pb2.GetRoundRecordRequest) -> None:
    """InvalidFieldError unless the request has a round id alone, or player, date and game code together; with a
    session id beside the round's, or none.
    """
    _verify_either(message, "round_id", ("player", "date", "game_code"))
    if message.session_id and not message.round_id:
        limit = "empty, or beside a round_id"
        raise InvalidFieldError(
            f"session_id must be {limit}", field="session_id", limit=limit, value=message.session_id[:40]
        )


def verify_statement_request(message: audit_pb2.GetStatementRequest) -> None:
    """InvalidFieldError unless the request has a hash alone, or instance and statement number together."""
    _verify_either(message, "hash", ("instance", "statement_no"))
    if message.instance:
        _number(message.statement_no, "statement_no")


def verify_logged_request(message: audit_pb2.GetRecordRequest) -> None:
    """InvalidFieldError unless the request has a hash alone, or round, session and kind together."""
    _verify_either(message, "hash", ("round_id", "session_id", "kind"))


def verify_range(message: audit_pb2.ListStatementsRequest) -> None:
    """InvalidFieldError for a negative or empty range, or one without an instance."""
    for field, value in (("first_no", message.first_no), ("last_no", message.last_no)):
        if value < 0 or (value and not message.instance):
            limit = "0 or more, and needs an instance"
            raise InvalidFieldError(f"{field} must be {limit}", field=field, limit=limit, value=value)
    if 0 < message.last_no < message.first_no:
        raise InvalidFieldError(
            f"last_no {message.last_no} is below first_no {message.first_no}",
            field="last_no",
            limit=message.first_no,
            value=message.last_no,
        )


def _verify_either(message: Message, one: str, others: tuple[str, ...]) -> None:
    given = tuple(name for name in (one, *others) if getattr(message, name))
    if given not in {(one,), others}:
        limit = f"{one} alone, or all of {', '.join(others)}"
        raise InvalidFieldError(f"give {limit}", field=one, limit=limit, value=" ".join(given))


# --- single fields ----------------------------------------------------------------------------------------------------


def _number(value: int, field: str) -> int:
    return check_range(value, field, 1, NUMBER_MAX)


def _amount(value: int, field: str) -> int:
    return check_range(value, field, 1, AMOUNT_MINOR_MAX)


def _time_ms(time: Timestamp, field: str) -> int:
    """Milliseconds since 1970; what is outside the calendar is too much or too little for every caller's range."""
    return check_range(time.seconds * 1000 + time.nanos // 1_000_000, field, 1, NUMBER_MAX)


def _bets(bets: Iterable[common_pb2.Bet], *, least: int) -> dict[str, int]:
    placed: dict[str, int] = {}
    for nth, bet in enumerate(bets):
        if nth == BETS_MAX:
            raise InvalidFieldError(f"more than {BETS_MAX} bets", field="bets", limit=BETS_MAX)
        field = f"bets[{nth}].bet"
        if BET.fullmatch(bet.bet) is None:
            limit = "1 to 16 of a-z, 0-9 and _, a letter first"
            raise InvalidFieldError(f"{field} must be {limit}", field=field, limit=limit, value=bet.bet[:40])
        if bet.bet in placed:
            raise InvalidFieldError(f"{field}: bet {bet.bet} is given twice", field=field, limit="once", value=bet.bet)
        placed[bet.bet] = _amount(bet.amount_minor, f"bets[{nth}].amount_minor")
    if len(placed) < least:
        raise InvalidFieldError("bets must hold at least 1 bet", field="bets", limit="at least 1", value=0)
    return placed


def _action(value: int) -> Action:
    return ACTION_OF[check_range(value, "action", min(ACTION_OF), max(ACTION_OF))]


def check_currency(text: str) -> str:
    """A currency code; InvalidFieldError."""
    try:
        return parse_currency(text)
    except FormatError:
        limit = "three capital letters"
        raise InvalidFieldError(f"currency must be {limit}", field="currency", limit=limit, value=text[:40]) from None
