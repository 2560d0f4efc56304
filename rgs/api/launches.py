"""OpenSession and CreateLaunch of the contract, as the values of the service: both say what a session is to be.

An error shows no token, and no address.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from rgs.api.mapping import MODE_OF
from rgs.api.parsing import AMOUNT_MINOR_MAX, BET, BETS_MAX, check_currency
from rgs.core.bet_limits import BetLimits
from rgs.core.errors import InvalidFieldError
from rgs.core.games.types import StakeLimits
from rgs.core.ids import check_name, check_reference, check_request_id
from rgs.core.limits import SessionLimits
from rgs.core.sessions import Mode
from rgs.core.values import check_range
from rgs.service.play.requests import CreateLaunch, OpenSession
from rgs.v1 import common_pb2, session_pb2

TOKEN_BYTES_MAX: Final = 1024
"""Longest session token, in bytes of UTF-8."""
LAUNCH_TOKEN_MAX: Final = 64
LANGUAGE_MAX: Final = 8
URL_MAX: Final = 2_048


def parse_open_session(message: session_pb2.OpenSessionRequest) -> OpenSession:
    """OpenSession. The service checks game and currency by the catalog and the jurisdiction."""
    token = _short(message.launch_token, "launch_token", LAUNCH_TOKEN_MAX)
    return OpenSession(**_wanted(message, is_needed=not token), launch_token=token)


def parse_create_launch(message: session_pb2.CreateLaunchRequest) -> CreateLaunch:
    """CreateLaunch. The service checks it as it checks OpenSession."""
    return CreateLaunch(**_wanted(message, is_needed=True))


def _wanted(message: Any, *, is_needed: bool) -> dict[str, Any]:
    """What both requests say of the session. Unless it is needed, the launch has what is left out."""

    def name(value: str, field: str, *, needed: bool) -> str:
        return check_name(value, field) if value or needed else ""

    def reference(value: str, field: str) -> str:
        return check_reference(value, field) if value or is_needed else ""

    return {
        "request_id": check_request_id(message.request_id),
        "game": name(message.game, "game", needed=is_needed),
        "player": reference(message.player, "player"),
        "currency": check_currency(message.currency) if message.currency or is_needed else "",
        "operator_reference": reference(message.operator_reference, "operator_reference"),
        "limits": _limits(message.limits),
        "session_token": _token(message.session_token),
        "table": name(message.table, "table", needed=False),
        "mode": _mode(message.mode),
        "bet_limits": _bet_limits(message.bet_limits),
        "language": _short(message.language, "language", LANGUAGE_MAX),
        "return_url": _short(message.return_url, "return_url", URL_MAX),
    }


def _mode(value: int) -> Mode | None:
    return MODE_OF[check_range(value, "mode", min(MODE_OF), max(MODE_OF))] if value else None


def _bet_limits(limits: Iterable[common_pb2.BetLimit]) -> BetLimits:
    """In the order of the names, whatever order they came in."""
    found: dict[str, StakeLimits] = {}
    for nth, one in enumerate(limits):
        if nth == BETS_MAX:
            raise InvalidFieldError(f"more than {BETS_MAX} bet_limits", field="bet_limits", limit=BETS_MAX)
        field = f"bet_limits[{nth}]"
        if BET.fullmatch(one.bet) is None:
            limit = "1 to 16 of a-z, 0-9 and _, a letter first"
            raise InvalidFieldError(
                f"{field}.bet must be {limit}", field=f"{field}.bet", limit=limit, value=one.bet[:40]
            )
        if one.bet in found:
            raise InvalidFieldError(
                f"{field}.bet: bet {one.bet} is given twice", field=f"{field}.bet", limit="once", value=one.bet
            )
        least = check_range(one.min_minor, f"{field}.min_minor", 1, AMOUNT_MINOR_MAX)
        found[one.bet] = StakeLimits(least, check_range(one.max_minor, f"{field}.max_minor", 1, AMOUNT_MINOR_MAX))
    return tuple(sorted(found.items()))


def _short(text: str, field: str, most: int) -> str:
    """The text, unchanged. An error shows its length only."""
    if len(text) > most:
        raise InvalidFieldError(
            f"{field} has {len(text)} characters, more than {most}", field=field, limit=most, value=len(text)
        )
    return text


def _limits(message: common_pb2.SessionLimits) -> SessionLimits:
    limits = SessionLimits(message.loss_minor, message.stake_minor, message.duration_ms)
    limits.verify()
    return limits


def _token(text: str) -> str:
    """The token, unchanged. An error shows its length only."""
    size = len(text.encode("utf-8"))
    if size > TOKEN_BYTES_MAX:
        raise InvalidFieldError(
            f"session_token has {size} bytes, more than {TOKEN_BYTES_MAX}",
            field="session_token",
            limit=TOKEN_BYTES_MAX,
            value=size,
        )
    return text
