"""Errors as callers see them: one table, reason -> (canonical code, meaning, when to try again), and google.rpc.Status.

AIP-193: the canonical code, exactly one ErrorInfo (stable reason, domain, every number of the message as metadata),
field violations as BadRequest, RetryInfo where trying again makes sense. The table is keyed by `RgsError.reason`, so
that errors of rooms that this one may not import have their rows too; docs/errors.md is made from it
(`rgs.api.errors_page`). Words of the metadata that the contract has enums for are told by the enums' names.

Refuses to quote an error that is not ours, or that is about our own data: the caller gets an incident id, and the log
has type and place, never the message and never the values that led to it. An error without a row is treated the same.
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
from rgs.core.views import RoundView, SessionView
from rgs.service.callers import RoundMovedError
from rgs.v1 import play_pb2

DOMAIN: Final = "rgs.v1"
INTERNAL: Final = "INTERNAL"
RETRY_AFTER_MS: Final = "retry_after_ms"
TEXT_MAX: Final = 512
"""Longest message, and longest value of the metadata, in characters."""
STATUS_BYTES_MAX: Final = 4_608
"""Largest status: in base64, with the message beside it, it stays below the 8 KiB of metadata that gRPC takes."""
FRAMES_MAX: Final = 20
ENUMS: Final[Mapping[str, str]] = {
    "action": "ACTION",
    "legal": "ACTION",
    "phase": "PHASE",
    "scope": "SWITCH_SCOPE",
    "state": "REPORT_STATE",
    "status": "ROUND_STATUS",
}
"""Metadata whose words are told by the names of an enum of the contract -> what those names begin with."""

ToActResponse = Callable[[SessionView, RoundView], play_pb2.ActResponse]


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """One reason. `retry_ms` is when the same request may be sent again, 0: not as it is, or the error says when."""

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
"""The codes of faults of ours, as a Status has them."""

ERRORS: Final[Mapping[str, ErrorRow]] = {
    # The request is wrong, whatever the state.
    "INVALID_FIELD": ErrorRow(_INVALID, "A field is missing, malformed or outside its limit."),
    "UNKNOWN_FIELD": ErrorRow(_INVALID, "The message carries fields that this version does not know."),
    "STAKE_BELOW_MINIMUM": ErrorRow(_INVALID, "A stake is below the table's minimum."),
    "STAKE_ABOVE_MAXIMUM": ErrorRow(_INVALID, "A stake is above the table's maximum."),
    "STAKE_NOT_MULTIPLE_OF_STEP": ErrorRow(_INVALID, "A stake is no multiple of the table's step."),
    "UNKNOWN_BET": ErrorRow(_INVALID, "The game has no such bet, or the player may not place it."),
    # Who is asking.
    "CERTIFICATE_NOT_ALLOWED": ErrorRow(
        grpc.StatusCode.UNAUTHENTICATED,
        "The certificate is not in the allow-list, or was removed from it, or ended while its connection was open, or"
        " says another party than the list.",
    ),
    "ROLE_NOT_ALLOWED": ErrorRow(grpc.StatusCode.PERMISSION_DENIED, "The party's role does not allow this method."),
    # Not there, or not this party's, which reads the same.
    "NOT_FOUND": ErrorRow(grpc.StatusCode.NOT_FOUND, "There is no such thing, or it is not this party's."),
    "UNKNOWN_RULESET": ErrorRow(grpc.StatusCode.NOT_FOUND, "The catalog has no game of this id."),
    # The state does not allow it.
    "ILLEGAL_ACTION": ErrorRow(_STATE, "The action is not legal in this phase; `legal` names those that are."),
    "INSUFFICIENT_BALANCE": ErrorRow(_STATE, "The balance of the participation does not cover it."),
    "INSUFFICIENT_FUNDS": ErrorRow(_STATE, "The operator's wallet does not cover the purchase or the bet."),
    "WALLET_REFUSED": ErrorRow(_STATE, "The operator's wallet refuses; `refusal` is its code."),
    "TRANSACTION_ROLLED_BACK": ErrorRow(_STATE, "The operator's wallet has rolled this transaction back."),
    "REGULATOR_REFUSED": ErrorRow(_STATE, "The regulator's central system refuses; `rejection` is its code."),
    "SESSION_CLOSED": ErrorRow(_STATE, "The session is closed."),
    "ROUND_OPEN": ErrorRow(_STATE, "A round is still open; `round_id` names it."),
    "ROUND_NOT_OPEN": ErrorRow(_STATE, "The round has ended; its result stands."),
    "ROUND_PAUSED": ErrorRow(
        _STATE, "A malfunction of the round is looked into; `malfunction_code` says what. No decision is taken."
    ),
    "ROUND_NOT_PAUSED": ErrorRow(_STATE, "The round is not in the state for it: paused already, or not paused."),
    "SECOND_ADMIN_NEEDED": ErrorRow(_STATE, "The admin who proposed a void may not approve it."),
    "LAST_ADMIN": ErrorRow(_STATE, "No other admin's certificate is allowed and still valid: the last one stays."),
    "CLOCKS_DIFFER": ErrorRow(
        _STATE,
        "The database's clock and the node's wall clock are more than `limit` ms apart: guard `clock` stays as it is.",
    ),
    "REPORT_NOT_DONE": ErrorRow(
        _STATE, "The reconciliation is still running, failed or was interrupted: `state` says which."
    ),
    "LOSS_LIMIT": ErrorRow(_STATE, "The session's loss limit does not cover it."),
    "STAKE_LIMIT": ErrorRow(_STATE, "The session's stake limit does not cover it."),
    "DURATION_LIMIT": ErrorRow(_STATE, "The session's time is up: no new rounds."),
    "SESSION_INACTIVE": ErrorRow(_STATE, "Nothing happened in the session for too long: no new rounds, no purchase."),
    "RETENTION_PERIOD": ErrorRow(
        _STATE, "The player's record has to be kept still, or something of it is under way: nothing is erased."
    ),
    "DISABLED": ErrorRow(
        _STATE, "An admin has disabled all play, the operator, the game or the player: `scope` says which."
    ),
    "FUNDING_MODE": ErrorRow(_STATE, "The session is funded bet by bet: there is nothing to buy or to end."),
    "PARTICIPATION_MISSING": ErrorRow(_STATE, "No right of participation has been bought in this session."),
    "PARTICIPATION_ENDED": ErrorRow(_STATE, "The participation has ended: no top-up, no round."),
    "PARTICIPATION_OPEN": ErrorRow(_STATE, "The participation must be ended first."),
    "PARTICIPATION_CAP": ErrorRow(_STATE, "All purchases together would exceed the cap of the participation."),
    "ALREADY_SEATED": ErrorRow(_STATE, "The player holds, or held, a participation in this regulator session."),
    "AFFAIR_PENDING": ErrorRow(
        _STATE,
        "A purchase, bet, end or close of this session is still under way; RetryInfo says when it is tried next.",
    ),
    "TABLE_ONLY": ErrorRow(_STATE, "The game is played at tables only."),
    "GAME_NOT_OFFERED": ErrorRow(
        _STATE, "No certificate shows the game's returns, or one of them is below the jurisdiction's floor."
    ),
    "JURISDICTION_REFUSES": ErrorRow(_STATE, "The jurisdiction does not allow it."),
    "TOO_EARLY": ErrorRow(_STATE, "The minimum time between round starts has not passed; RetryInfo says when it has."),
    "NUMBER_NOT_EXPECTED": ErrorRow(_STATE, "The stage or purchase number is not the next one; `limit` is."),
    # Not INVALID_ARGUMENT: the message is right, and the same message with more time will do. Not DEADLINE_EXCEEDED
    # either: that leaves open whether something was done, and here nothing was.
    "DEADLINE_TOO_SHORT": ErrorRow(_STATE, "The time that was left did not suffice to begin; nothing was done."),
    # Two of the same, or a race.
    "IDEMPOTENCY_CONFLICT": ErrorRow(
        grpc.StatusCode.ALREADY_EXISTS,
        "The party has used the request id before, for the same method, with other content.",
    ),
    "CERTIFICATE_KNOWN": ErrorRow(
        grpc.StatusCode.ALREADY_EXISTS,
        "The certificate is in the allow-list already, or was removed from it: then it stays denied, issue another.",
    ),
    "ROUND_CHANGED": ErrorRow(
        grpc.StatusCode.ABORTED,
        "The round is not at the version that the request names; an `ActResponse` with the fresh view is among the"
        " details.",
    ),
    "SESSION_CHANGED": ErrorRow(
        grpc.StatusCode.ABORTED, "Another request changed the session at the same moment: read it, decide anew."
    ),
    "REQUEST_SEEN": ErrorRow(
        grpc.StatusCode.ABORTED, "The same request was answered at the same moment: send it again for its answer."
    ),
    # Too much of it.
    "PARTY_LIMIT": ErrorRow(
        _EXHAUSTED,
        "The party has more calls under way, messages a second or open streams than its share of a process; `field`"
        " names the setting. Nothing was done; RetryInfo says when to come again.",
    ),
    "RECONCILIATION_BUSY": ErrorRow(
        _EXHAUSTED, "This node runs another reconciliation, or takes another submission of this operator."
    ),
    "RECONCILIATION_FULL": ErrorRow(
        _EXHAUSTED, "The operator's submissions and reports take all that this node keeps for it: `field` is the limit."
    ),
    "STREAM_STALLED": ErrorRow(
        _EXHAUSTED, "No answer was read from the stream for too long: it ends. Repeat what was not answered."
    ),
    # Not now: the same request with the same request id may be sent again.
    "UNAVAILABLE": ErrorRow(_DOWN, "Something that is needed is down, or the server is about to stop.", 1_000),
    "NOT_LOGGED_YET": ErrorRow(
        _DOWN, "The statement is signed, and no published checkpoint of the log covers it yet.", 1_000
    ),
    "GUARD_CLOSED": ErrorRow(
        _DOWN, "A guard of the house stops new rounds, `guard` says which; dealt ones are settled.", 10_000
    ),
    "RNG_UNAVAILABLE": ErrorRow(_DOWN, "The generator draws no more: no new rounds, dealt ones are settled.", 10_000),
    "REGULATOR_UNAVAILABLE": ErrorRow(_DOWN, "The central system does not answer: no id, no round.", 2_000),
    "WALLET_UNAVAILABLE": ErrorRow(
        _DOWN, "The operator's wallet did not answer; the affair is kept and continued.", 2_000
    ),
    "STORE_OUTCOME_UNKNOWN": ErrorRow(
        _DOWN,
        "The store has not told in time whether it committed. Send the same request id again: it takes effect once.",
        2_000,
    ),
    "STORE_UNAVAILABLE": ErrorRow(_DOWN, "The store could not commit; nothing took effect.", 1_000),
    "INSTANCE_LOST": ErrorRow(
        _DOWN,
        "Another process has taken the store, or declared this one lost; nothing took effect, and this process ends."
        " Send the same request id again: another one answers it.",
        2_000,
    ),
    "STREAM_IDLE": ErrorRow(
        _DOWN, "Nothing was asked on the stream for too long: open another when there is a need.", 1_000
    ),
    "DECK_UNRECOVERABLE": ErrorRow(
        _DOWN, "The sealed deck of the round cannot be opened with the keys at hand; its operator is needed.", 60_000
    ),
    # The data is not what it claims: requests are checked before they come here, so it is the server's own.
    "MALFORMED": ErrorRow(_DATA, "A stored document is not in its one form."),
    "RULESET_REFUSED": ErrorRow(_DATA, "A ruleset or jurisdiction is refused."),
    "VERIFICATION_FAILED": ErrorRow(_DATA, "A stored record does not verify."),
    "WITNESS_REFUSED": ErrorRow(_DATA, "A witness does not cosign the log's checkpoint."),
    "RECONCILIATION_FAILED": ErrorRow(_DATA, "A reconciliation ran out of memory or disk, or a file of it changed."),
    "LOG_UNREADABLE": ErrorRow(_DATA, "The files of the transparency log are not what was signed, or are missing."),
    "STORE_REFUSED": ErrorRow(_DATA, "The store is not fit to be used."),
    INTERNAL: ErrorRow(
        grpc.StatusCode.INTERNAL,
        "A fault of the server: whether the request took effect is not known, a repeat under its id tells.",
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
    """The status that tells a caller of an error; a fault of ours is logged here, once, unless there are too many."""
    reason = error.reason if isinstance(error, RgsError) else INTERNAL
    row = ERRORS.get(reason)
    if row is None or row.code in _FAULTS or not isinstance(error, RgsError):
        incident = hashlib.sha256(f"{method}|{request_id}|{now_ms}".encode()).hexdigest()[:16]
        if logged:
            _log_fault(error, incident, method, request_id)
        return _fault(reason if row else INTERNAL, incident)
    metadata = {key: _told(key, value)[:TEXT_MAX] for key, value in error.metadata.items()}
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
    if isinstance(error, RoundMovedError) and to_act_response is not None:
        status.details.append(_packed(to_act_response(error.session, error.round)))
    if status.ByteSize() > STATUS_BYTES_MAX:
        return _status(row.code, error.message, reason, {"truncated": "true"})
    return status


def _told(key: str, value: str) -> str:
    enum = ENUMS.get(key)
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
    packed.Pack(detail, deterministic=True)  # the same refusal, the same bytes
    return packed
