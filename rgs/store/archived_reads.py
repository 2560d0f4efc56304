"""What reads of rounds ask of the archive, where the store has one (docs/retention.md)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from rgs.core.rounds import Round
from rgs.store.archive import Archive
from rgs.store.queries import Queries

_IN_PLAY: Final = "SELECT 1 FROM table_rounds WHERE round_id = ? AND (status = 'open' OR sealed <> x'')"
"""No seat of such a round is archived (`rgs.store.archiving`)."""


class ArchivedReads(Queries):
    """The base of all reads of rounds and statements."""

    archive: Archive | None = None
    """Where ended rounds were moved to."""

    async def _archive_of(self, round_id: str) -> Archive | None:
        """The archive, where it may have seats of this round: None where none is set, and while a table plays the
        round.
        """
        if self.archive is None or await self._row(_IN_PLAY, round_id) is not None:
            return None
        return self.archive

    async def _with_players(self, rounds: Sequence[Round]) -> list[Round]:
        """Archived rounds, with the players whom the rows of their sessions name: an erased one is nowhere."""
        if not rounds:
            return []
        query = "SELECT session_id, player FROM sessions WHERE session_id IN (SELECT value FROM json_each(?))"
        named = json.dumps(sorted({one.session_id for one in rounds}))
        players: dict[str, str] = dict(await self._rows(query, named))
        return [replace(one, player=players.get(one.session_id, "")) for one in rounds]
