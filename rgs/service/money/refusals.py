"""Refusals stored as answers: the error that ended an operation, for every repeat of its request (ARCHITECTURE 2.16).

By then another system may have seen the transaction id, so the refusal is an effect. A repeat of the request gets it
again and never calls the wallet with another id. An UnavailableError ends nothing, and is not stored.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from rgs.core.errors import RgsError, TransactionRolledBackError, UnavailableError
from rgs.store.changes import Operation


def format_refusal(error: RgsError) -> str:
    """Reason, message, field and metadata as one line of JSON; inverse of `parse_refusal`."""
    if isinstance(error, UnavailableError):
        raise TypeError(f"{error.reason} does not end an operation")
    result = {"field": error.field, "message": error.message, "metadata": error.metadata, "reason": error.reason}
    return json.dumps(result, sort_keys=True, separators=(",", ":"))


def parse_refusal(text: str) -> RgsError:
    """The error that `format_refusal` wrote, of its class again."""
    result = json.loads(text)
    kind = next(kind for kind in _kinds(RgsError) if kind.reason == result["reason"])
    return kind(result["message"], field=result["field"], **result["metadata"])


def refusal_of(operation: Operation) -> RgsError:
    """The error for the request of an operation that ended without its effect."""
    return parse_refusal(operation.refusal) if operation.refusal else given_up(operation)


def given_up(operation: Operation) -> TransactionRolledBackError:
    """The error of an operation that was given up for its `reason`, after its caller got an unknown outcome."""
    return TransactionRolledBackError(
        f"{operation.method} {operation.request_id} was given up ({operation.reason}) and its debit rolled back:"
        " nothing was taken; send it again with another request id",
        transaction_id=operation.operation_id,
        refusal=operation.reason,
    )


def _kinds(kind: type[RgsError]) -> Iterator[type[RgsError]]:
    """An error class and those below it, each before its own."""
    yield kind
    for below in kind.__subclasses__():
        yield from _kinds(below)
