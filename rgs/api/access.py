"""One line in the technical log for every call that may change something: party, method, ids, result and duration.

    {"time":"…","level":"info","event":"call","method":"PlayService/Act","party":"operator-1","request_id":"…",
     "session_id":"…","round_id":"…","reason":"OK","ms":1.8}

While calls are traced, `trace_id` comes last. Ids that the server makes (of an opened session or a started round) are
read from the beginning of the answer. `reason` is OK, or the reason of the error (docs/errors.md). The line is written
in one piece without the log's pipeline, which would cost several times as much. So a line must never hold amounts,
cards, pseudonyms, statements or error messages.
What a caller sent as an id is cut, and escaped unless it consists of letters and digits.

A party's failed calls get at most REFUSALS_MAX lines a second; then one line has the number of those left out, so that
no party can fill the disk:

    {"time":"…","level":"info","event":"calls_left_out","party":"operator-1","count":4711}

Reads are not logged, and neither are calls that were not admitted: these are counted as events.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Final

from google.protobuf.message import Message

from rgs.core.clock import Clock
from rgs.core.times import format_time
from rgs.observe.traces import CURRENT

OK: Final = "OK"
ID_MAX: Final = 64
REFUSALS_MAX: Final = 20
"""Lines for failed calls of one party between two calls of `poll`."""
_MAKING: Final = frozenset({"rgs.v1.SessionService/OpenSession", "rgs.v1.PlayService/StartRound"})
"""Methods that make a session or a round: its id is only in the answer."""
_ULID_CHARACTERS: Final = 26
_FIRST_FIELD, _SECOND_FIELD = 0x0A, 0x12  # of a message: number and "with a length", in one byte
_MORE: Final = 0x80
_is_plain: Final = re.compile(rf"[A-Za-z0-9-]{{0,{ID_MAX}}}").fullmatch


_are_plain: Final = re.compile(r"[A-Za-z0-9-]{0,88}").fullmatch
"""The ids of a call that was answered, one behind the other: a UUID, and two of the server's own."""


class CallLines:
    """Writes the lines. `write` takes one line without its line feed."""

    def __init__(self, write: Callable[[str], None], clock: Clock) -> None:
        self._write = write
        self._clock = clock
        self._refusals: dict[str, int] = {}
        """Failed calls since the last `poll`, by party."""

    def emit(self, name: str, party: str, message: Message, answer: bytes, reason: str, passed_s: float) -> None:
        """Log a call that has ended: `name` is `rgs.v1.PlayService/Act`, `answer` the bytes of the response, if any."""
        if reason != OK:
            refusals = self._refusals[party] = self._refusals.get(party, 0) + 1
            if refusals > REFUSALS_MAX:
                return
        if answer and name in _MAKING:
            session_id, round_id = ids_of(answer)
        else:
            session_id, round_id = getattr(message, "session_id", ""), getattr(message, "round_id", "")
        request_id = getattr(message, "request_id", "")
        if reason == OK and _are_plain(f"{request_id}{session_id}{round_id}"):
            ids = f',"request_id":"{request_id}","session_id":"{session_id}","round_id":"{round_id}"'
        else:
            ids = f',"request_id":{quoted(request_id)},"session_id":{quoted(session_id)},"round_id":{quoted(round_id)}'
        self._write(
            f'{{"time":"{format_time(self._clock.now_ms())}","level":"info","event":"call"'
            f',"method":"{name[name.find(".v1.") + 4 :]}","party":"{party}"{ids}'
            f',"reason":"{reason}","ms":{passed_s * 1000:.1f}{trace_field()}}}'
        )

    def poll(self) -> None:
        """Log how many lines were left out since the last time."""
        refusals, self._refusals = self._refusals, {}
        for party, count in refusals.items():
            if count > REFUSALS_MAX:
                time = format_time(self._clock.now_ms())
                self._write(
                    f'{{"time":"{time}","level":"info","event":"calls_left_out"'
                    f',"party":"{party}","count":{count - REFUSALS_MAX}}}'
                )


def trace_field() -> str:
    """The id of the trace as a further field, with the ids of others that this is done for; empty if none is."""
    span = CURRENT.get()
    if span is None:
        return ""
    also = ",".join(f'"{one}"' for one in span.serves)
    return f',"trace_id":"{span.context.trace_id}"' + (f',"trace_ids":[{also}]' if also else "")


def quoted(text: str) -> str:
    """An id as a JSON string. Other text is cut to ID_MAX characters and escaped."""
    if _is_plain(text):
        return f'"{text}"'
    return json.dumps(text[:ID_MAX])


def ids_of(answer: bytes) -> tuple[str, str]:
    """Session id and round id of a response whose first fields are the two views; empty for what it does not have.

    Both views start with their id.
    """
    session_id, end = _leading_id(answer, 0, _FIRST_FIELD)
    round_id, _ = _leading_id(answer, end, _SECOND_FIELD) if session_id else ("", 0)
    return session_id, round_id


def _leading_id(data: bytes, at: int, field: int) -> tuple[str, int]:
    """The id at the start of the message in this field, and the offset of the message's end."""
    if at >= len(data) or data[at] != field:
        return "", at
    at, length, shift = at + 1, 0, 0
    while at < len(data):
        byte = data[at]
        at, length, shift = at + 1, length | (byte & ~_MORE) << shift, shift + 7
        if byte < _MORE:
            break
    if data[at : at + 2] != bytes((_FIRST_FIELD, _ULID_CHARACTERS)):
        return "", at + length
    found = data[at + 2 : at + 2 + _ULID_CHARACTERS]
    return (found.decode("ascii") if found.isalnum() and len(found) == _ULID_CHARACTERS else ""), at + length
