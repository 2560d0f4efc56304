"""Launches in the store: what an operator has prepared for a player, until a one-use token opens a session with it.

Only the SHA-256 of a token is kept. The operator's own token of the player's session, if it gave one, is sealed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from rgs.store.queries import Queries
from rgs.store.tables import Table


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch. `content` is canonical JSON of what the session is to be; `session_id` is empty until it is opened.

    `digest` is that of the request that made it, so that a repeat finds the same launch.
    """

    launch_id: str
    operator: str
    player: str
    request_id: str
    digest: bytes
    token_hash: bytes = field(repr=False)
    content: str
    sealed: bytes = field(repr=False)
    created_ms: int
    expire_ms: int
    session_id: str = ""


@dataclass(frozen=True, slots=True)
class LaunchTokenReplaced:
    """A repeat of the request has got another token; the one before opens nothing any more."""

    token_hash: bytes = field(repr=False)
    launch_id: str


@dataclass(frozen=True, slots=True)
class LaunchRedeemed:
    """The token has opened its session. The commit is refused with SessionRaceError where it has done so before."""

    session_id: str
    launch_id: str
    token_hash: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class LaunchesForgotten:
    """All launches that were made up to this time go."""

    created_ms: int


LaunchRecord = Launch | LaunchTokenReplaced | LaunchRedeemed | LaunchesForgotten

LAUNCHES: Final = Table("launches", Launch)

LAUNCH_SQL: Final[dict[type, str]] = {
    Launch: LAUNCHES.insert,
    LaunchTokenReplaced: "UPDATE launches SET token_hash = ? WHERE launch_id = ? AND session_id = ''",
    LaunchRedeemed: (
        "UPDATE launches SET session_id = ?, sealed = x'' WHERE launch_id = ? AND token_hash = ? AND session_id = ''"
    ),
    LaunchesForgotten: "DELETE FROM launches WHERE created_ms <= ?",
}
"""How the records are written. The fields of a record are the parameters, in order."""
LAUNCH_CONDITIONS: Final = (LaunchTokenReplaced, LaunchRedeemed)
"""Records that find an unused launch, or the whole commit is undone."""
ERASE_LAUNCHES: Final = "DELETE FROM launches WHERE operator = ? AND player = ?"
FORGET_LAUNCHES: Final = (
    "DELETE FROM launches WHERE launch_id IN"
    " (SELECT launch_id FROM launches WHERE created_ms < ? ORDER BY created_ms LIMIT ?)"
)


class LaunchReads(Queries):
    """The queries, once for both databases."""

    async def launch_of_token(self, token_hash: bytes) -> Launch | None:
        return await self._first(LAUNCHES, "WHERE token_hash = ?", token_hash)

    async def launch_of_request(self, operator: str, request_id: str) -> Launch | None:
        return await self._first(LAUNCHES, "WHERE operator = ? AND request_id = ?", operator, request_id)
