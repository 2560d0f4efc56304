"""What erases a player from the store (ARCHITECTURE 2.14, the erasable private block): the SQL for both databases.

Private blocks go with their salts, pseudonym and ids beside them are emptied, and the days' totals stay without the
player. Statements stay: they hold salted hashes only, and verify as before. Whether a player may be erased is decided
by `rgs.service.admin.erasure`.
"""

from __future__ import annotations

from typing import Final

ERASE_SQL: Final = (
    """
        DELETE FROM privates WHERE EXISTS (SELECT 1 FROM statements s JOIN sessions o ON o.session_id = s.session_id
        WHERE o.operator = ? AND o.player = ? AND s.instance = privates.instance
        AND s.statement_no = privates.statement_no)
    """,
    """
        UPDATE affairs SET detail = '', refusal = '', digest = x'' WHERE status <> 'pending' AND session_id IN
        (SELECT session_id FROM sessions WHERE operator = ? AND player = ?)
    """,
    "UPDATE rounds SET player = '' WHERE operator = ? AND player = ?",
    """
        INSERT INTO totals (day, operator, player, game, currency, rounds, staked_minor, returned_minor, void_rounds,
        void_minor) SELECT day, operator, '', game, currency, rounds, staked_minor, returned_minor, void_rounds,
        void_minor FROM totals WHERE operator = ? AND player = ?
        ON CONFLICT (operator, day, player, game, currency) DO UPDATE SET rounds = totals.rounds + excluded.rounds,
        staked_minor = totals.staked_minor + excluded.staked_minor,
        returned_minor = totals.returned_minor + excluded.returned_minor,
        void_rounds = totals.void_rounds + excluded.void_rounds, void_minor = totals.void_minor + excluded.void_minor
    """,
    "DELETE FROM totals WHERE operator = ? AND player = ?",
    "DELETE FROM switches WHERE scope = 'player' AND subject = ? || '/' || ?",
    """
        DELETE FROM session_tokens WHERE session_id IN
        (SELECT session_id FROM sessions WHERE operator = ? AND player = ?)
    """,
    """
        UPDATE sessions SET player = '', operator_reference = '', regulator_session_id = '',
        regulator_participation_id = '' WHERE operator = ? AND player = ?
    """,
)
"""All of it, in order: sessions last, because the others find their rows by them. The parameters are operator and
player.
"""
