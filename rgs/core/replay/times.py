"""Times inside statements (part of check 4): the schema checks their form, this module that they exist.

There is no 30 February, no hour 24 and no second 60. Elsewhere times are compared as texts: their one form sorts.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from rgs.core.errors import FormatError
from rgs.core.statements import UnhandledKindError
from rgs.core.times import parse_date

ONE_TIME: Final = frozenset({
    "artifact", "countersignature", "discarded_draw", "draw_window", "event", "export_scope", "instance_end",
    "instance_lost", "instance_start", "key_end", "transfer", "node_key", "participation_end", "purchase", "report",
    "revocation", "root_key", "seat_opening", "session_close", "session_open", "table_deal", "table_seats",
})  # fmt: skip
"""The kinds whose only time is that of signing."""


@lru_cache(maxsize=4096)  # the times of a log come nearly in order
def _minute_exists(minute: str) -> bool:
    try:
        parse_date(minute[:10])
    except FormatError:
        return False
    return minute[11:13] <= "23" and minute[14:] <= "59"


def verify_time(text: str) -> None:
    """FormatError unless the time, already of the right form, exists."""
    if text[17:19] > "59" or not _minute_exists(text[:16]):
        raise FormatError(f"time {text} does not exist", value=text)


def verify_times(kind: str, body: dict[str, Any]) -> None:
    """FormatError unless every time of the statement exists."""
    verify_time(body["time"])
    if kind == "round_opening":
        verify_time(body["deal"]["start_time"])
    elif kind == "free_bet":
        if "expiry_time" in body:
            verify_time(body["expiry_time"])
    elif kind == "table_round":
        verify_time(body["betting_open_time"])
        verify_time(body["betting_close_time"])
    elif kind == "table_final":
        for window in body["windows"]:
            verify_time(window["open_time"])
            verify_time(window["close_time"])
        for approval in body.get("void", {}).get("approvals", ()):
            verify_time(approval["time"])
    elif kind in ("round_final", "seat_final"):
        for action in body["actions"]:
            verify_time(action["time"])
        for approval in body.get("void", {}).get("approvals", ()):
            verify_time(approval["time"])
    elif kind not in ONE_TIME:
        raise UnhandledKindError(kind, "rgs.core.replay.times.verify_times")
