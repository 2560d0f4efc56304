"""Callers, the stored answers of their mutating calls, and the locks that put the calls of one session in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from rgs.core.errors import IdempotencyConflictError
from rgs.core.views import RoundView, SessionView
from rgs.service.roles import Role as Role  # noqa: PLC0414 - offered here, beside the callers that have them
from rgs.store.changes import Answer

LOCKS_KEPT_MAX: Final = 10_000
"""Locks of sessions, some hundred bytes each. When there are so many, those that nobody holds are dropped."""


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated party. `jurisdiction` is the operator's, empty for other roles; `operator` is the one whose
    players a support party may look up, empty for all of them, and for other roles.
    """

    party: str
    role: Role
    jurisdiction: str
    operator: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """Answer of a mutating call: the response's bytes as stored, and the signed statement beside it, if any."""

    body: bytes
    envelope: bytes


Encode = Callable[[str, SessionView, RoundView | None], bytes]
"""(method, session, round) -> the response's bytes without its statement. The api layer gives this function: what is
stored is what is sent.
"""


def verify_same_content(stored: object, given: object, request_id: str, method: str) -> None:
    """IdempotencyConflictError if a request id comes again with other content (AIP-155)."""
    if stored != given:
        raise IdempotencyConflictError(
            f"request_id {request_id} was used before for {method} with other content",
            field="request_id",
            value=request_id,
            method=method,
        )


def reply_of(answer: Answer, digest: bytes) -> Reply:
    """The stored answer, if the request is the same. IdempotencyConflictError."""
    verify_same_content(answer.digest, digest, answer.request_id, answer.method)
    return Reply(answer.body, answer.envelope)


class SessionLocks:
    """One lock for each session that was in use lately. The store's versions decide; the lock only avoids commits that
    would fail.
    """

    def __init__(self) -> None:
        self._locks: dict[str, asyncio.Lock] = {}

    def of(self, session_id: str) -> asyncio.Lock:
        lock = self._locks.get(session_id)
        if lock is None:
            if len(self._locks) >= LOCKS_KEPT_MAX:
                self._locks = {other: held for other, held in self._locks.items() if held.locked()}
            lock = self._locks[session_id] = asyncio.Lock()
        return lock
