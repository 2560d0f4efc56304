"""What an admin closes out of the reports that the central system refused: records of one commit, and their SQL for
both databases. They are never told again; the event that stands in the same commit says so, and why.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class StagesClosedOut:
    """The queued stages of a session."""

    session_id: str


@dataclass(frozen=True, slots=True)
class DayClosedOut:
    """A day as it stands now: `operator:currency:day`. Later changes of it are told again."""

    subject: str


ClosedOut = StagesClosedOut | DayClosedOut

CLOSE_OUT_SQL: Final[dict[type, str]] = {
    StagesClosedOut: "DELETE FROM stage_reports WHERE session_id = ?",
    DayClosedOut: """
        UPDATE register_days SET aligned = purchases || ',' || bought_minor || ',' || stages || ',' || staked_minor
        || ',' || returned_minor || ',' || ends || ',' || final_balance_minor
        WHERE operator || ':' || currency || ':' || day = ?
    """,
}
"""Of both databases: what differs between them is how a parameter is written (`postgres_text`)."""
