"""Turns errors into google.rpc.Status by one table: reason -> canonical code, meaning, time until a retry.

A status follows AIP-193: the canonical code, exactly one ErrorInfo (stable reason, domain, the facts of the message as
metadata), BadRequest for a field, RetryInfo if a retry makes sense. The key of the table is `RgsError.reason`, so that
it has rows for errors of rooms that may not be imported here. docs/errors.md is made from it (`rgs.api.errors_page`).
Metadata values that are enums of the contract appear under the names of the enum.

The caller gets only an incident id for an exception that is not an `RgsError`, for an error about our own data, and for
an error without a row. The log then has type and place of the error, never its message or its values.
"""

from __future__ import annotations

import hashlib
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import grpc
import structlog
from google.protobuf.any_pb2 import Any
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from rgs.core.errors import RgsError
from rgs.core.views import RoundChangedError, RoundView, SessionView
from rgs.v1 import play_pb2

DOMAIN: Final = "rgs.v1"
INTERNAL: Final = "INTERNAL"
RETRY_AFTER_MS: Final = "retry_after_ms"
TEXT_MAX: Final = 512
"""Longest message, and longest value of the metadata, in characters."""
STATUS_BYTES_MAX: Final = 4_608
"""Largest status: in base64 and with the message it stays below the 8 KiB of metadata that gRPC takes."""
FRAMES_MAX: Final = 20
ENUMS: Final[Mapping[str, str]] = {
    "action": "ACTION",
    "legal": "ACTION",
    "phase": "PHASE",
    "scope": "SWITCH_SCOPE",
    "state": "REPORT_STATE",
    "status": "ROUND_STATUS",
}
"""Metadata key -> the prefix of the enum in the contract whose names replace the key's values."""
REPORT_REASON: Final = "REPORT_NOT_DONE"
"""The one reason whose `state` is that of a report. The state of a table stays in words: it may take several."""

ToActResponse = Callable[[SessionView, RoundView], play_pb2.ActResponse]


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """One reason. `retry_ms`: the same request may be sent again after it; 0: do not, or the error says when."""

    code: grpc.StatusCode
    meaning: str
    retry_ms: int = 0


_INVALID: Final = grpc.StatusCode.INVALID_ARGUMENT
_STATE: Final = grpc.StatusCode.FAILED_PRECONDITION
_DOWN: Final = grpc.StatusCode.UNAVAILABLE
_EXHAUSTED: Final = grpc.StatusCode.RESOURCE_EXHAUSTED
_DATA: Final = grpc.StatusCode.DATA_LOSS
_FAULTS: Final = (grpc.StatusCode.INTERNAL, _DATA)
FAULT_NUMBERS: Final = frozenset(code.value[0] for code in _FAULTS)
"""The codes of server faults, as numbers in a Status."""

ERRORS: Final[Mapping[str, ErrorRow]] = {
    # The request is wrong in any state.
    "INVALID_FIELD": ErrorRow(_INVALID, "A field is missing, malformed or outside its limit."),
    "UNKNOWN_FIELD": ErrorRow(_INVALID, "The message carries fields that this version does not know."),
    "STAKE_BELOW_MINIMUM": ErrorRow(_INVALID, "A stake is below the table's minimum."),
    "STAKE_ABOVE_MAXIMUM": ErrorRow(_INVALID, "A stake is above the table's maximum."),
    "STAKE_NOT_MULTIPLE_OF_STEP": ErrorRow(_INVALID, "A stake is not a multiple of the table's step."),
    "UNKNOWN_BET": ErrorRow(_INVALID, "The game does not have this bet, or the player may not place it."),
    "TABLE_CONFIG_REFUSED": ErrorRow(
        _INVALID, "The configuration of a table is refused: the message names the row, its value and the limit."
    ),
    # The caller.
    "CERTIFICATE_NOT_ALLOWED": ErrorRow(
        grpc.StatusCode.UNAUTHENTICATED,
        "The certificate is not in the allow-list, was removed from it, expired while its connection was open, or names"
        " another party than the list.",
    ),
    "ROLE_NOT_ALLOWED": ErrorRow(grpc.StatusCode.PERMISSION_DENIED, "The party's role does not allow this method."),
    # Not found. What belongs to another party looks the same.
    "NOT_FOUND": ErrorRow(grpc.StatusCode.NOT_FOUND, "It does not exist, or it belongs to another party."),
    "UNKNOWN_RULESET": ErrorRow(grpc.StatusCode.NOT_FOUND, "The catalog has no game with this id."),
    # The state does not allow it.
    "ILLEGAL_ACTION": ErrorRow(_STATE, "The action is not legal in this phase; `legal` names those that are."),
    "INSUFFICIENT_BALANCE": ErrorRow(_STATE, "The balance of the participation does not cover it."),
    "INSUFFICIENT_FUNDS": ErrorRow(_STATE, "The operator's wallet does not cover the purchase or the bet."),
    "WALLET_REFUSED": ErrorRow(_STATE, "The operator's wallet refused; `refusal` is its code."),
    "TRANSACTION_ROLLED_BACK": ErrorRow(
        _STATE,
        "The debit of this request was rolled back: nothing was taken. Use a new request id; `refusal` says why.",
    ),
    "REGULATOR_REFUSED": ErrorRow(_STATE, "The regulator's system refused; `rejection` is its code."),
    "SESSION_CLOSED": ErrorRow(_STATE, "The session is closed."),
    "ROUND_OPEN": ErrorRow(_STATE, "A round is still open; `round_id` names it."),
    "ROUND_NOT_OPEN": ErrorRow(_STATE, "The round has ended; its result stands."),
    "ROUND_PAUSED": ErrorRow(
        _STATE, "A malfunction of the round is being examined; `malfunction_code` names it. No decision is accepted."
    ),
    "ROUND_NOT_PAUSED": ErrorRow(_STATE, "The round is paused already, or it is not paused and must be."),
    "TABLE_STATE": ErrorRow(_STATE, "The table's state does not allow it; `state` and `step` say what was tried when."),
    "TABLE_FULL": ErrorRow(_STATE, "Every seat of the table is taken or reserved."),
    "BOX_TAKEN": ErrorRow(_STATE, "The box is another player's, or reserved for one."),
    "TABLES_AT_ONCE": ErrorRow(
        _STATE, "The player sits at as many tables as the jurisdiction, or one of the tables, allows."
    ),
    "DEVICE_REPLACED": ErrorRow(_STATE, "Another device of the player has taken the seat."),
    "PLAYER_BARRED": ErrorRow(_STATE, "The player is barred from this table."),
    "NOT_SEATED": ErrorRow(_STATE, "The session has no seat at its table: join first."),
    "ALREADY_AT_TABLE": ErrorRow(_STATE, "The player sits at the table with another session; `session_id` names it."),
    "TABLE_NEEDS_PARTICIPATION": ErrorRow(
        _STATE, "Players who are funded bet by bet cannot play at tables: a bet is a reservation in a participation."
    ),
    "BETS_RESERVED": ErrorRow(
        _STATE, "Bets are reserved at a table: take them back, or wait until their round has ended."
    ),
    "CHAT_CLOSED": ErrorRow(
        _STATE,
        "The table has no chat, or none while its cards are secret; or the player writes too fast, and RetryInfo says"
        " when to write again.",
    ),
    "SECOND_ADMIN_NEEDED": ErrorRow(_STATE, "The admin who proposed a void may not approve it."),
    "LAST_ADMIN": ErrorRow(
        _STATE, "This is the last valid certificate of an admin in the allow-list: it cannot be removed."
    ),
    "CLOCKS_DIFFER": ErrorRow(
        _STATE,
        "The database's clock and the node's wall clock are more than `limit` ms apart: guard `clock` stays as it is.",
    ),
    "REPORT_NOT_DONE": ErrorRow(
        _STATE, "The reconciliation is still running, failed or was interrupted; `state` says which."
    ),
    "LOSS_LIMIT": ErrorRow(_STATE, "The session's loss limit does not cover it."),
    "STAKE_LIMIT": ErrorRow(_STATE, "The session's stake limit does not cover it."),
    "DURATION_LIMIT": ErrorRow(_STATE, "The session's time is up: no new rounds."),
    "SESSION_INACTIVE": ErrorRow(_STATE, "The session was inactive for too long: no new rounds, no purchase."),
    "RETENTION_PERIOD": ErrorRow(
        _STATE, "The player's record must still be kept, or an operation of it is under way: nothing was erased."
    ),
    "DISABLED": ErrorRow(
        _STATE, "An admin has disabled all play, the operator, the game or the player; `scope` says which."
    ),
    "FREE_BET_REFUSED": ErrorRow(
        _STATE,
        "The free bet cannot be played in this round: used, cancelled, expired, or for another game, currency or ante.",
    ),
    "FUNDING_MODE": ErrorRow(
        _STATE,
        "The session is funded bet by bet: it has no participation to buy or to end, and takes no free bet. "
        "Or it has play money, and takes no free bet.",
    ),
    "PARTICIPATION_MISSING": ErrorRow(_STATE, "No right of participation has been bought in this session."),
    "PARTICIPATION_ENDED": ErrorRow(_STATE, "The participation has ended: no top-up, no round."),
    "PARTICIPATION_OPEN": ErrorRow(_STATE, "The participation must be ended first."),
    "PARTICIPATION_CAP": ErrorRow(_STATE, "All purchases together would exceed the cap of the participation."),
    "ALREADY_SEATED": ErrorRow(_STATE, "The player has, or had, a participation in this regulator session."),
    "OPERATION_PENDING": ErrorRow(
        _STATE,
        "A purchase, paid start, bet, end or close of this session is under way; RetryInfo says when it is tried next.",
    ),
    "TABLE_ONLY": ErrorRow(_STATE, "The game is played at tables only."),
    "GAME_NOT_OFFERED": ErrorRow(
        _STATE, "The game's returns are not certified, or one of them is below the jurisdiction's floor."
    ),
    "JURISDICTION_REFUSES": ErrorRow(_STATE, "The jurisdiction does not allow it."),
    "LAUNCH_USED": ErrorRow(_STATE, "The launch has opened its session already: a token opens one session."),
    "LAUNCH_EXPIRED": ErrorRow(_STATE, "The launch's time is over: create another one, under another request id."),
    "TOO_EARLY": ErrorRow(_STATE, "The minimum time between round starts has not passed; RetryInfo says when it has."),
    "NUMBER_NOT_EXPECTED": ErrorRow(_STATE, "The round or purchase number must be `limit`, the next one."),
    # Not INVALID_ARGUMENT: the same message with more time succeeds. Not DEADLINE_EXCEEDED: that leaves open whether
    # something was done, and here nothing was.
    "DEADLINE_TOO_SHORT": ErrorRow(_STATE, "The remaining time was too short to begin; nothing was done."),
    # Repeats and races.
    "IDEMPOTENCY_CONFLICT": ErrorRow(
        grpc.StatusCode.ALREADY_EXISTS,
        "The party has used the request id before for this method, with other content.",
    ),
    "OPERATOR_REFERENCE_USED": ErrorRow(
        grpc.StatusCode.ALREADY_EXISTS,
        "Another session of the operator was opened with this operator_reference; session_id names it. Nothing was"
        " opened: go on with that session, or open one with another reference.",
    ),
    "CERTIFICATE_KNOWN": ErrorRow(
        grpc.StatusCode.ALREADY_EXISTS,
        "The certificate is in the allow-list, or was removed from it. A removed one stays denied: issue another.",
    ),
    "ROUND_CHANGED": ErrorRow(
        grpc.StatusCode.ABORTED,
        "The round has another version than the request names; the details hold an `ActResponse` with the fresh view.",
    ),
    "SESSION_CHANGED": ErrorRow(
        grpc.StatusCode.ABORTED, "Another request changed the session at the same time: read it, then decide again."
    ),
    "TABLE_CHANGED": ErrorRow(
        grpc.StatusCode.ABORTED,
        "The table or the seat has moved on: what the request names is over, or has not begun. Read the table, then"
        " decide again.",
    ),
    "TABLE_MOVED": ErrorRow(
        grpc.StatusCode.ABORTED,
        "The table took a step at the same time, or its time was up: read it, then decide again.",
    ),
    "REQUEST_SEEN": ErrorRow(
        grpc.StatusCode.ABORTED, "The same request was answered at the same time: send it again to get its answer."
    ),
    # Too much.
    "PARTY_LIMIT": ErrorRow(
        _EXHAUSTED,
        "The party has too many calls under way, messages a second or open streams in this process; `field` names the"
        " setting. Nothing was done; RetryInfo says when to come again.",
    ),
    "RECONCILIATION_BUSY": ErrorRow(
        _EXHAUSTED, "This node is running another reconciliation, or receives another submission of this operator."
    ),
    "RECONCILIATION_FULL": ErrorRow(
        _EXHAUSTED,
        "The operator's submissions and reports fill the space that this node gives it; `field` is the limit.",
    ),
    "JOIN_LIMIT": ErrorRow(
        _EXHAUSTED, "The player joins and leaves tables too often; RetryInfo says when to join again."
    ),
    "STREAM_STALLED": ErrorRow(
        _EXHAUSTED, "The client did not read an answer of the stream for too long: it ends. Repeat unanswered requests."
    ),
    # Not now: the same request with the same request id may be sent again.
    "UNAVAILABLE": ErrorRow(_DOWN, "Something that is needed is down, or the server is stopping.", 1_000),
    "NOT_LOGGED_YET": ErrorRow(
        _DOWN, "The statement is signed, and no published checkpoint of the log covers it yet.", 1_000
    ),
    "GUARD_CLOSED": ErrorRow(
        _DOWN,
        "A guard of the server stops new sessions and rounds; `guard` names it. Rounds already dealt are settled.",
        10_000,
    ),
    "RNG_UNAVAILABLE": ErrorRow(
        _DOWN, "The generator does not work: no new rounds. Rounds already dealt are settled.", 10_000
    ),
    "REGULATOR_UNAVAILABLE": ErrorRow(_DOWN, "The regulator's system does not answer: no ids, so no rounds.", 2_000),
    "WALLET_UNAVAILABLE": ErrorRow(
        _DOWN, "The operator's wallet did not answer; the operation is kept and continued.", 2_000
    ),
    "STORE_OUTCOME_UNKNOWN": ErrorRow(
        _DOWN,
        "The store did not say in time whether it committed. Send the same request id again: it takes effect once.",
        2_000,
    ),
    "STORE_UNAVAILABLE": ErrorRow(_DOWN, "The store could not commit; nothing took effect.", 1_000),
    "INSTANCE_LOST": ErrorRow(
        _DOWN,
        "Another process has taken over the store, or declared this one lost; nothing took effect, and this process"
        " ends. Send the same request id again: another process answers it.",
        2_000,
    ),
    "STREAM_IDLE": ErrorRow(
        _DOWN, "The client sent nothing on the stream for too long: open another one when you need it.", 1_000
    ),
    "DECK_UNRECOVERABLE": ErrorRow(
        _DOWN,
        "The sealed deck of the round cannot be opened with the present keys; the server's operator must act.",
        60_000,
    ),
    # Faults of the server's own data: requests were checked before.
    "MALFORMED": ErrorRow(_DATA, "A stored document is not in its canonical form."),
    "RULESET_REFUSED": ErrorRow(_DATA, "A ruleset or jurisdiction is refused."),
    "VERIFICATION_FAILED": ErrorRow(_DATA, "A stored record does not verify."),
    "WITNESS_REFUSED": ErrorRow(_DATA, "A witness does not cosign the log's checkpoint."),
    "RECONCILIATION_FAILED": ErrorRow(_DATA, "A reconciliation ran out of memory or disk, or a file of it changed."),
    "LOG_UNREADABLE": ErrorRow(_DATA, "The files of the transparency log are not what was signed, or are missing."),
    "ARCHIVE_DAMAGED": ErrorRow(_DATA, "A file of the archive of ended rounds was changed, or cannot be read."),
    "STORE_REFUSED": ErrorRow(_DATA, "The store cannot be used."),
    INTERNAL: ErrorRow(
        grpc.StatusCode.INTERNAL,
        "A fault of the server. The request may have taken effect: repeat it with its request id to find out.",
    ),
}


def status_of(
    error: Exception,
    *,
    method: str,
    request_id: str,
    now_ms: int,
    to_act_response: ToActResponse | None = None,
    logged: bool = True,
) -> Status:
    """The status of an error for the caller. A server fault is logged here, unless `logged` is false."""
    reason = error.reason if isinstance(error, RgsError) else INTERNAL
    row = ERRORS.get(reason)
    if row is None or row.code in _FAULTS or not isinstance(error, RgsError):
        incident = hashlib.sha256(f"{method}|{request_id}|{now_ms}".encode()).hexdigest()[:16]
        if logged:
            _log_fault(error, incident, method, request_id)
        return _fault(reason if row else INTERNAL, incident)
    metadata = {key: _enum_names(reason, key, value)[:TEXT_MAX] for key, value in error.metadata.items()}
    if error.field is not None:
        metadata["field"] = error.field[:TEXT_MAX]
    status = _status(row.code, error.message, reason, metadata)
    if error.field is not None and row.code is _INVALID:
        violation = BadRequest.FieldViolation(
            field=error.field[:TEXT_MAX], description=error.message[:TEXT_MAX], reason=reason
        )
        status.details.append(_packed(BadRequest(field_violations=[violation])))
    if retry_ms := int(error.metadata.get(RETRY_AFTER_MS, row.retry_ms)):
        retry = RetryInfo()
        retry.retry_delay.FromMilliseconds(retry_ms)
        status.details.append(_packed(retry))
    moved = error if isinstance(error, RoundChangedError) else None
    if moved and moved.session and moved.round and to_act_response is not None:
        status.details.append(_packed(to_act_response(moved.session, moved.round)))
    if status.ByteSize() > STATUS_BYTES_MAX:
        return _status(row.code, error.message, reason, {"truncated": "true"})
    return status


def _enum_names(reason: str, key: str, value: str) -> str:
    enum = None if key == "state" and reason != REPORT_REASON else ENUMS.get(key)
    return value if enum is None else " ".join(f"{enum}_{word.upper()}" for word in value.split())


def _log_fault(error: Exception, incident: str, method: str, request_id: str) -> None:
    frames = traceback.extract_tb(error.__traceback__)[-FRAMES_MAX:]
    structlog.get_logger().error(
        "fault",
        incident=incident,
        method=method,
        request_id=request_id,
        error=type(error).__name__,
        frames=[f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames],
    )


def _fault(reason: str, incident: str) -> Status:
    return _status(ERRORS[reason].code, f"a fault of the server, incident {incident}", reason, {"incident": incident})


def _status(code: grpc.StatusCode, message: str, reason: str, metadata: Mapping[str, str]) -> Status:
    info = ErrorInfo(reason=reason, domain=DOMAIN, metadata=metadata)
    number: int = code.value[0]
    return Status(code=number, message=message[:TEXT_MAX], details=[_packed(info)])


def _packed(detail: Message) -> Any:
    packed = Any()
    packed.Pack(detail, deterministic=True)  # the same error gives the same bytes
    return packed
