"""What the store keeps of free bets: one row a grant (`rgs.core.free_bets`), from granting to its use.

Each record changes exactly one row or its commit fails. So a grant pays for one round, whatever happens at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from rgs.core.free_bets import Grant
from rgs.store.queries import Queries
from rgs.store.tables import Table


@dataclass(frozen=True, slots=True)
class GrantAdded:
    """A new grant, with the fields of `Grant`."""

    grant_id: str
    operator: str
    player: str = field(repr=False)
    ruleset_id: str
    currency: str
    campaign: str
    stake_minor: int
    granted_ms: int
    expires_ms: int
    status: str
    round_id: str
    request_id: str
    nth: int


@dataclass(frozen=True, slots=True)
class GrantUsed:
    """The debit that pays for a round is about to be sent."""

    round_id: str
    grant_id: str


@dataclass(frozen=True, slots=True)
class GrantReopened:
    """The debit was refused or rolled back: the round was not dealt."""

    grant_id: str
    round_id: str


@dataclass(frozen=True, slots=True)
class GrantCancelled:
    """The operator takes it back."""

    grant_id: str


@dataclass(frozen=True, slots=True)
class GrantRenewed:
    """A round that had used a grant is void: another one with its terms, usable until `least_ms` at least."""

    grant_id: str
    granted_ms: int
    least_ms: int
    round_id: str


FreeBetRecord = GrantAdded | GrantUsed | GrantReopened | GrantCancelled | GrantRenewed

GRANTS: Final = Table("free_bets", Grant, key=("grant_id",))

FREE_BET_SQL: Final[dict[type, str]] = {
    GrantAdded: GRANTS.insert,
    GrantUsed: "UPDATE free_bets SET status = 'used', round_id = ? WHERE grant_id = ? AND status = 'open'",
    GrantReopened: (
        "UPDATE free_bets SET status = 'open', round_id = '' WHERE grant_id = ? AND round_id = ? AND status = 'used'"
    ),
    GrantCancelled: "UPDATE free_bets SET status = 'cancelled' WHERE grant_id = ? AND status = 'open'",
    GrantRenewed: """
        INSERT INTO free_bets (grant_id, operator, player, ruleset_id, currency, campaign, stake_minor, granted_ms,
        expires_ms, status, round_id, request_id, nth) SELECT CAST(?1 AS TEXT), operator, player, ruleset_id, currency,
        campaign, stake_minor, CAST(?2 AS BIGINT),
        CASE WHEN expires_ms < ?3 THEN CAST(?3 AS BIGINT) ELSE expires_ms END, 'open', '', '', 0
        FROM free_bets WHERE round_id = ?4
    """,
}
"""How the records of free bets are written. The fields of a record are the parameters, in order."""
FREE_BET_ONE_ROW: Final = (GrantUsed, GrantReopened, GrantCancelled)
ERASE_FREE_BETS_SQL: Final = ("UPDATE free_bets SET player = '' WHERE operator = ? AND player = ?",)
"""What erases a player from the grants. The parameters are operator and player."""


class FreeBetReads(Queries):
    """The queries, once for both databases."""

    async def grant(self, grant_id: str) -> Grant | None:
        return await self._first(GRANTS, "WHERE grant_id = ?", grant_id)

    async def grants_of(self, operator: str, player: str, after: str, limit: int, *, now_ms: int) -> list[Grant]:
        """A player's open grants that have not expired, in the order of their ids, behind `after`."""
        where = (
            "WHERE operator = ? AND player = ? AND status = 'open' AND expires_ms > ? AND grant_id > ?"
            " ORDER BY grant_id LIMIT ?"
        )
        return await self._found(GRANTS, where, operator, player, now_ms, after, limit)

    async def grants_of_request(self, operator: str, request_id: str) -> list[Grant]:
        """What a request has granted, in order."""
        return await self._found(
            GRANTS, "WHERE request_id = ? AND operator = ? AND request_id <> '' ORDER BY nth", request_id, operator
        )
