"""Every error has its row, every status its details, and a fault tells nothing but where it was."""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status
from grpc_status import rpc_status
from structlog.testing import capture_logs

import rgs
from rgs.api.errors import DOMAIN, ERRORS, STATUS_BYTES_MAX, status_of
from rgs.api.errors_page import renewed
from rgs.core import errors
from rgs.core.errors import InvalidFieldError, RgsError, TooEarlyError, UnavailableError
from rgs.core.tlog.checkpoints import EmptyRootError
from rgs.core.views import RoundChangedError
from rgs.node.clock import SystemClock
from rgs.node.logging import Log
from rgs.service.sealing import TokenSealedError
from rgs.store.changes import OvertakenError, StoreAwayError, TableMovedError
from rgs.v1 import play_pb2
from tests.support.api.views import ENCODER, REQUEST_ID, played, session_view, view_of

REACHES_CALLERS = ("rgs.core", "rgs.store", "rgs.service", "rgs.ports", "rgs.adapters", "rgs.api")
STAYS_INSIDE = ("rgs.cli", "rgs.devkit", "rgs.integrity", "rgs.node", "rgs.tlog")
"""Command lines, the start and the log: no call is under way."""


def error_classes() -> list[type[RgsError]]:
    for module in pkgutil.walk_packages(rgs.__path__, "rgs."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    found: dict[str, type[RgsError]] = {}
    waiting: list[type[RgsError]] = [RgsError]
    while waiting:
        cls = waiting.pop()
        if cls.__module__.startswith("rgs."):
            found[f"{cls.__module__}.{cls.__qualname__}"] = cls
        waiting += cls.__subclasses__()
    return [found[name] for name in sorted(found)]


CLASSES = [cls for cls in error_classes() if cls.__module__.startswith(REACHES_CALLERS)]
ROUND = view_of(*played("uth-solo", range(52), ()))


def made(cls: type[RgsError], **metadata: object) -> RgsError:
    if cls is RoundChangedError:
        view = {"session": session_view(), "round_": ROUND}
        return RoundChangedError("moved to 7", **view, field="here", value=7, **metadata)  # type: ignore[arg-type]
    return cls("it is 7", field="here", value=7, **metadata)


def status(error: Exception) -> Status:
    return status_of(
        error, method="rgs.v1.PlayService/Act", request_id=REQUEST_ID, now_ms=1, to_act_response=ENCODER.act
    )


DETAILS: tuple[Any, ...] = (BadRequest, ErrorInfo, RetryInfo, play_pb2.ActResponse)


def details(reported: Status, *kinds: Any) -> Iterator[Any]:
    """The details of these kinds; every detail must be of a kind that we know."""
    for packed in reported.details:
        known = [kind for kind in DETAILS if packed.TypeName() == kind.DESCRIPTOR.full_name]
        assert len(known) == 1, packed.type_url
        if known[0] in kinds:
            message = known[0]()
            packed.Unpack(message)
            yield message


# --- the table --------------------------------------------------------------------------------------------------------


def test_every_class_belongs_to_a_known_part_of_the_project() -> None:
    assert len(CLASSES) >= 40
    for cls in error_classes():
        assert cls.__module__.startswith((*REACHES_CALLERS, *STAYS_INSIDE)), cls


OF_ONE_REASON = (EmptyRootError, OvertakenError, StoreAwayError, TokenSealedError)
"""Told apart inside, and the same to callers as the class above them."""


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_class_has_its_row(cls: type[RgsError]) -> None:
    assert cls.reason in ERRORS
    assert "reason" in vars(cls) or cls in OF_ONE_REASON, "a class that says nothing of its own"


def test_every_row_has_its_class() -> None:
    assert set(ERRORS) == {cls.reason for cls in CLASSES}


@pytest.mark.parametrize("reason", ERRORS)
def test_a_reason_is_stable_text_with_a_meaning(reason: str) -> None:
    row = ERRORS[reason]
    assert re.fullmatch(r"[A-Z][A-Z0-9_]{1,61}[A-Z0-9]", reason)
    assert re.fullmatch(r"[A-Z].{10,}\.", row.meaning)
    assert row.code is not grpc.StatusCode.OK
    assert (row.retry_ms > 0) == (row.code is grpc.StatusCode.UNAVAILABLE)


@pytest.mark.parametrize(
    ("cls", "code"),
    [
        (errors.InvalidFieldError, "INVALID_ARGUMENT"),
        (errors.StakeStepError, "INVALID_ARGUMENT"),
        (errors.UnauthenticatedError, "UNAUTHENTICATED"),
        (errors.PermissionDeniedError, "PERMISSION_DENIED"),
        (errors.NotFoundError, "NOT_FOUND"),
        (errors.InsufficientFundsError, "FAILED_PRECONDITION"),
        (errors.OperationPendingError, "FAILED_PRECONDITION"),
        (errors.NumberExpectedError, "FAILED_PRECONDITION"),
        (errors.SessionClosedError, "FAILED_PRECONDITION"),
        (errors.DeadlineTooShortError, "FAILED_PRECONDITION"),
        (errors.TooEarlyError, "FAILED_PRECONDITION"),
        (errors.IdempotencyConflictError, "ALREADY_EXISTS"),
        (RoundChangedError, "ABORTED"),
        (errors.SessionChangedError, "ABORTED"),
        (errors.TableChangedError, "ABORTED"),
        (TableMovedError, "ABORTED"),
        (errors.BetsReservedError, "FAILED_PRECONDITION"),
        (errors.NotSeatedError, "FAILED_PRECONDITION"),
        (errors.AlreadyAtTableError, "FAILED_PRECONDITION"),
        (errors.TableFundingError, "FAILED_PRECONDITION"),
        (errors.ChatClosedError, "FAILED_PRECONDITION"),
        (errors.JoinLimitError, "RESOURCE_EXHAUSTED"),
        (errors.RngUnavailableError, "UNAVAILABLE"),
        (errors.WalletUnavailableError, "UNAVAILABLE"),
        (errors.VerificationError, "DATA_LOSS"),
    ],
)
def test_the_code_of_a_class(cls: type[RgsError], code: str) -> None:
    assert ERRORS[cls.reason].code.name == code


def test_whatever_is_unavailable_says_so() -> None:
    for cls in CLASSES:
        assert (ERRORS[cls.reason].code is grpc.StatusCode.UNAVAILABLE) == issubclass(cls, UnavailableError)


def test_the_catalog_in_the_docs_is_the_table() -> None:
    text = (Path(__file__).resolve().parents[3] / "docs/errors.md").read_text("utf-8")
    assert text == renewed(text), "python -m rgs.api.errors_page docs/errors.md"


# --- the status -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_a_status_is_well_formed(cls: type[RgsError]) -> None:
    row = ERRORS[cls.reason]
    is_fault = row.code in (grpc.StatusCode.INTERNAL, grpc.StatusCode.DATA_LOSS)
    reported = status(made(cls))
    assert reported.code == row.code.value[0]
    (info,) = details(reported, ErrorInfo)
    assert (info.reason, info.domain) == (cls.reason, DOMAIN)
    if is_fault:
        assert set(info.metadata) == {"incident"}
        assert info.metadata["incident"] in reported.message
    else:
        assert dict(info.metadata) == {"field": "here", "value": "7"}
    violations = [violation for bad in details(reported, BadRequest) for violation in bad.field_violations]
    if row.code is grpc.StatusCode.INVALID_ARGUMENT:
        assert [(violation.field, violation.description, violation.reason) for violation in violations] == [
            ("here", reported.message, cls.reason)
        ]
    else:
        assert violations == []
    assert [retry.retry_delay.ToMilliseconds() for retry in details(reported, RetryInfo)] == (
        [row.retry_ms] if row.retry_ms else []
    )
    assert list(details(reported, play_pb2.ActResponse)) == (
        [ENCODER.act(session_view(), ROUND)] if cls is RoundChangedError else []
    )
    sent: Any = rpc_status.to_status(reported)
    assert (sent.code, sent.details) == (row.code, reported.message)
    assert Status.FromString(sent.trailing_metadata[0][1]) == reported


def test_too_early_says_when() -> None:
    reported = status(TooEarlyError("in 1234 ms", retry_after_ms=1234, limit=3000))
    (retry,) = details(reported, RetryInfo)
    assert retry.retry_delay.ToMilliseconds() == 1234


def test_who_joins_or_writes_too_often_learns_when_to_come_again() -> None:
    for kind in (errors.JoinLimitError, errors.ChatClosedError):
        (retry,) = details(status(kind("in 700 ms", retry_after_ms=700)), RetryInfo)
        assert retry.retry_delay.ToMilliseconds() == 700


def test_what_is_pending_says_when_it_is_tried_next() -> None:
    reported = status(errors.OperationPendingError("under way", operation_id="a", retry_after_ms=4_321))
    (retry,) = details(reported, RetryInfo)
    assert retry.retry_delay.ToMilliseconds() == 4_321


def test_an_invalid_message_without_a_field_has_no_violation() -> None:
    reported = status(InvalidFieldError("these 3 bytes are nothing", value=3))
    assert list(details(reported, BadRequest)) == []


def test_what_is_too_large_is_cut() -> None:
    long = InvalidFieldError("m" * 100_000, field="f" * 100_000, value="v" * 100_000)
    many = InvalidFieldError("m", **{f"value{nth}": "v" * 400 for nth in range(40)})
    infos: list[ErrorInfo] = []
    for error in (long, many):
        reported = status(error)
        assert reported.ByteSize() <= STATUS_BYTES_MAX
        infos += details(reported, ErrorInfo)
    assert [info.reason for info in infos] == ["INVALID_FIELD"] * 2
    assert dict(infos[1].metadata) == {"truncated": "true"}


# --- faults -----------------------------------------------------------------------------------------------------------

SECRET = "5a17ba11" * 8


class _NewError(RgsError):
    reason = "NOT_IN_THE_TABLE"


def fault(error: Exception) -> Exception:
    """The error as raised, with a secret in a local value of the frame."""

    def deal(salt: str) -> None:
        assert salt
        raise error

    try:
        deal(SECRET)
    except Exception as caught:  # noqa: BLE001 - the test is about all of them
        return caught
    raise AssertionError


@pytest.mark.parametrize(
    ("error", "reason", "code"),
    [
        (KeyError(SECRET), "INTERNAL", grpc.StatusCode.INTERNAL),
        (ValueError(SECRET), "INTERNAL", grpc.StatusCode.INTERNAL),
        (RgsError(SECRET, salt=SECRET), "INTERNAL", grpc.StatusCode.INTERNAL),
        (_NewError(SECRET, salt=SECRET), "INTERNAL", grpc.StatusCode.INTERNAL),
        (errors.FormatError(SECRET, value=SECRET), "MALFORMED", grpc.StatusCode.DATA_LOSS),
        (errors.VerificationError(SECRET, check=SECRET), "VERIFICATION_FAILED", grpc.StatusCode.DATA_LOSS),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_a_fault_is_logged_once_and_tells_no_values(error: Exception, reason: str, code: grpc.StatusCode) -> None:
    with capture_logs() as logs:
        reported = status(fault(error))
    (info,) = details(reported, ErrorInfo)
    assert (reported.code, info.reason) == (code.value[0], reason)
    (line,) = logs
    assert line["incident"] == info.metadata["incident"]
    assert re.fullmatch(r"[0-9a-f]{16}", line["incident"])
    assert (line["event"], line["error"], line["log_level"]) == ("fault", type(error).__name__, "error")
    assert [frame.split()[-1] for frame in line["frames"]] == ["fault", "deal"]
    assert SECRET not in str(reported)
    assert SECRET not in repr(logs)


def test_a_refusal_is_not_logged() -> None:
    with capture_logs() as logs:
        status(InvalidFieldError("no", field="x"))
    assert logs == []


def test_the_log_of_the_server_keeps_a_fault_readable(tmp_path: Path) -> None:
    path = tmp_path / "rgs.log"
    with Log(path, "debug", SystemClock(), people=None):
        reported = status(fault(KeyError(SECRET)))
    text = path.read_text("ascii")
    line = json.loads(text)
    assert SECRET not in text
    assert line["incident"] in reported.message
    assert line["request_id"] == REQUEST_ID
    assert line["frames"][-1].startswith("test_errors.py:")


def test_incidents_differ_by_request_and_time() -> None:
    reported = {
        status_of(KeyError(), method=method, request_id=request_id, now_ms=now_ms).message
        for method in ("a", "b")
        for request_id in ("x", "y")
        for now_ms in (1, 2)
    }
    assert len(reported) == 8
