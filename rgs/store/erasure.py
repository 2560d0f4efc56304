"""What erases a player from the store (ARCHITECTURE 2.14): records of one commit, in the order of `erasure_of`, and
their SQL for both databases.

Private blocks with their salts go, pseudonym and ids beside them are emptied, the days' totals go on without saying
whose they were. Statements stay: they hold salted hashes only, and verify as before. Refuses to know when a player may
be erased: `rgs.service.admin.erasure` does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class _OfPlayer:
    operator: str
    player: str


class PrivatesErased(_OfPlayer):
    """The private blocks and salts of the player's sessions."""


class AffairsErased(_OfPlayer):
    """What the requests behind the player's ended affairs asked and were told, and the digest: a late repeat finds
    other content.
    """


class RoundsErased(_OfPlayer):
    """Whose the rounds were."""


class TotalsMoved(_OfPlayer):
    """The player's totals, added to those of nobody."""


class TotalsErased(_OfPlayer):
    """The player's own totals."""


class SwitchErased(_OfPlayer):
    """That the player is disabled."""


class TokensErased(_OfPlayer):
    """The operator's tokens of the player's sessions."""


class SessionsErased(_OfPlayer):
    """Whose the sessions were, to the operator and to the regulator."""


PlayerErased = (
    PrivatesErased
    | AffairsErased
    | RoundsErased
    | TotalsMoved
    | TotalsErased
    | SwitchErased
    | TokensErased
    | SessionsErased
)


def erasure_of(operator: str, player: str) -> tuple[PlayerErased, ...]:
    """All of it. Sessions last: the others find their rows by them."""
    return (
        PrivatesErased(operator, player),
        AffairsErased(operator, player),
        RoundsErased(operator, player),
        TotalsMoved(operator, player),
        TotalsErased(operator, player),
        SwitchErased(operator, player),
        TokensErased(operator, player),
        SessionsErased(operator, player),
    )


ERASE_SQL: Final[dict[type, str]] = {
    PrivatesErased: """
        DELETE FROM privates WHERE EXISTS (SELECT 1 FROM statements s JOIN sessions o ON o.session_id = s.session_id
        WHERE o.operator = ? AND o.player = ? AND s.instance = privates.instance
        AND s.statement_no = privates.statement_no)
    """,
    AffairsErased: """
        UPDATE affairs SET detail = '', refusal = '', digest = x'' WHERE status <> 'pending' AND session_id IN
        (SELECT session_id FROM sessions WHERE operator = ? AND player = ?)
    """,
    RoundsErased: "UPDATE rounds SET player = '' WHERE operator = ? AND player = ?",
    TotalsMoved: """
        INSERT INTO totals (day, operator, player, game, currency, rounds, staked_minor, returned_minor, void_rounds,
        void_minor) SELECT day, operator, '', game, currency, rounds, staked_minor, returned_minor, void_rounds,
        void_minor FROM totals WHERE operator = ? AND player = ?
        ON CONFLICT (operator, day, player, game, currency) DO UPDATE SET rounds = totals.rounds + excluded.rounds,
        staked_minor = totals.staked_minor + excluded.staked_minor,
        returned_minor = totals.returned_minor + excluded.returned_minor,
        void_rounds = totals.void_rounds + excluded.void_rounds, void_minor = totals.void_minor + excluded.void_minor
    """,
    TotalsErased: "DELETE FROM totals WHERE operator = ? AND player = ?",
    SwitchErased: "DELETE FROM switches WHERE scope = 'player' AND subject = ? || '/' || ?",
    TokensErased: """
        DELETE FROM session_tokens WHERE session_id IN
        (SELECT session_id FROM sessions WHERE operator = ? AND player = ?)
    """,
    SessionsErased: """
        UPDATE sessions SET player = '', operator_reference = '', regulator_session_id = '',
        regulator_participation_id = '' WHERE operator = ? AND player = ?
    """,
}
"""Of both databases: what differs between them is how a parameter is written (`postgres_text`)."""
