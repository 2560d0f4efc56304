"""What the store keeps of a table and of its rounds, beside the seats: durable state, as `Session` and `Round` are."""

from __future__ import annotations

from dataclasses import dataclass, field

from rgs.core.rounds import RoundStatus
from rgs.core.tables.machine import Table


@dataclass(frozen=True, slots=True)
class TableRow:
    """A table as durable state. `table.version` rises by one with every change; writers compare and swap on it."""

    table: Table
    config: str
    """Hex SHA-256 of the configuration that is in force."""
    next_config: str = ""
    """Of the one that comes into force when no round is running; empty for none."""
    is_shut: bool = False
    """An admin keeps the table shut, whatever its hours say."""
    due_ms: int = 0
    """When it is to be looked at again: a deadline, a change of its hours, or at once; 0: never by time."""
    closed_ms: int = 0
    """When the betting window of the round closed; a pause after it does not make the window longer."""
    malfunction_code: str = ""
    """Why it is paused, for people; empty while it is not."""


@dataclass(frozen=True)
class TableRound:
    """A round of a table as durable state, from its `table_round` on. Times are milliseconds, hashes hex."""

    round_id: str
    table_id: str
    table_round_no: int
    game_code: str
    ruleset_id: str
    jurisdiction_id: str
    config: str
    """Hex SHA-256 of the configuration by which the round is played."""
    seats: int
    hands: int
    salt: bytes = field(repr=False)
    """Of the padding behind the seats, 32 bytes. Operators do not get it."""
    seats_root: bytes
    betting_open_ms: int
    betting_close_ms: int
    version: int = 1
    table_round: str = ""
    """Hash of the `table_round`; empty until it is signed, as are the two others."""
    instance: str = ""
    """The instance that drew; empty before the draw."""
    draw_no: int = 0
    core: bytes = b""
    """The deal core's canonical bytes."""
    commitment: bytes = b""
    sealed: bytes = field(default=b"", repr=False)
    """Salt and transcript of the deck, sealed; empty once every seat has its final."""
    deal: str = ""
    deal_ms: int = 0
    final: str = ""
    status: RoundStatus = RoundStatus.OPEN
    end_ms: int = 0
