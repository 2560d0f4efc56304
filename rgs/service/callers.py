"""Who asks, what a mutating call answers, and the locks that let the calls of one session follow one another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from weakref import WeakValueDictionary

from rgs.core.errors import IdempotencyConflictError, RoundChangedError
from rgs.core.views import RoundView, SessionView
from rgs.store.changes import Answer


class Role(StrEnum):
    """What a party is; the certificate's URI names it and the allow-list must agree."""

    OPERATOR = "operator"
    AUDITOR = "auditor"
    REGULATOR = "regulator"
    LAB = "lab"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated party. `jurisdiction` is the operator's, empty for other roles."""

    party: str
    role: Role
    jurisdiction: str


@dataclass(frozen=True, slots=True)
class Reply:
    """Answer of a mutating call: the response's bytes as stored, and the signed statement that travels with it (or
    none).
    """

    body: bytes
    envelope: bytes


Encode = Callable[[str, SessionView, RoundView | None], bytes]
"""(method, session, round) -> the response's bytes without its statement: given by the api layer, so that what is
stored is what is said.
"""


class RoundMovedError(RoundChangedError):
    """ROUND_CHANGED with the fresh view."""

    def __init__(
        self, message: str, *, session: SessionView, round_: RoundView, field: str | None = None, **metadata: object
    ) -> None:
        super().__init__(message, field=field, **metadata)
        self.session = session
        self.round = round_


def verify_same_content(stored: bytes, digest: bytes, request_id: str, method: str) -> None:
    """IdempotencyConflictError if a request id comes again with other content (AIP-155)."""
    if stored != digest:
        raise IdempotencyConflictError(
            f"request_id {request_id} was used before for {method} with other content",
            field="request_id",
            value=request_id,
            method=method,
        )


def reply_of(answer: Answer, digest: bytes) -> Reply:
    """The stored answer again, if the request is the same."""
    verify_same_content(answer.digest, digest, answer.request_id, answer.method)
    return Reply(answer.body, answer.envelope)


class SessionLocks:
    """One lock a session while anybody holds or awaits it. The store's versions decide; the lock spares lost races."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def of(self, session_id: str) -> asyncio.Lock:
        lock = self._locks.get(session_id)
        if lock is None:
            lock = self._locks[session_id] = asyncio.Lock()
        return lock
