"""What an export of some sessions or instances needs beside them: of seats at tables the statements that all seats of
their rounds share, of finals the openings that they answer; and the ranges of statement numbers that then stand in the
file (docs/formats.md, 12).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from rgs.core.statements import parse_envelope, parse_statement
from rgs.service.table_statements import SHARED_KINDS, shared_statements
from rgs.store.interface import StatementRow, StoreReads

Span = tuple[int, int]
"""The first and the last of the numbers of a range."""
_OPENINGS: Final = frozenset({"round_opening", "seat_opening"})
_FINALS: Final = frozenset({"round_final", "seat_final"})
_OF_TABLES: Final = frozenset({*SHARED_KINDS, "table_seats", "seat_opening", "seat_final"})


class SeatNumbers:
    """The statement numbers of a selection by instance, the rounds of tables in it, and seats of which one half is in
    it.
    """

    def __init__(self) -> None:
        self._spans: dict[str, list[Span]] = {}
        self._rounds: dict[str, None] = {}
        self._halves: dict[tuple[str, str], str] = {}
        """Round and session -> the opening's hash that a final names; empty for an opening."""

    @property
    def instances(self) -> set[str]:
        """Those that signed a statement of the selection."""
        return set(self._spans)

    def take(self, row: StatementRow) -> None:
        """Take a statement that stands in the file."""
        self._add(row)
        self.follow(row)

    def follow(self, row: StatementRow) -> None:
        """Take only what the statement needs beside it; its number is in a range already."""
        if row.kind in _OF_TABLES:
            self._rounds[row.round_id] = None
        if row.kind in _OPENINGS | _FINALS:
            seat = (row.round_id, row.session_id)
            half = "" if row.kind in _OPENINGS else parse_statement(parse_envelope(row.envelope))[1]["opening"]
            if bool(self._halves.get(seat, half)) is bool(half):
                self._halves[seat] = half
            else:
                del self._halves[seat]

    def _add(self, row: StatementRow) -> None:
        number, found = row.statement_no, self._spans.setdefault(row.instance, [])
        if found and found[-1][1] == number - 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))

    async def beside(self, reads: StoreReads, whole: Mapping[str, int]) -> tuple[tuple[int, str, int], ...]:
        """The further statements, in commit order, except of the instances that are exported `whole`, up to a number:
        (row number, instance, statement number).
        """
        found = []
        for round_id in self._rounds:
            round_ = await reads.table_round(round_id)
            found += [] if round_ is None else await shared_statements(reads, round_)
        for opening in filter(None, self._halves.values()):
            row = await reads.statement_of_hash(bytes.fromhex(opening))
            found += [] if row is None else [row]
        needed = [row for row in found if row.instance not in whole]
        for row in needed:
            self._add(row)
        return tuple(sorted((row.id, row.instance, row.statement_no) for row in needed))

    def held(self, whole: Mapping[str, int]) -> dict[str, list[Span]]:
        """The numbers as ranges that do not touch, by instance, except of those that are exported `whole`."""
        return {name: merged(found) for name, found in self._spans.items() if name not in whole}


def merged(found: Iterable[Span]) -> list[Span]:
    """The numbers of these ranges as ranges that rise and do not touch."""
    result: list[Span] = []
    for first, last in sorted(found):
        if result and first <= result[-1][1] + 1:
            result[-1] = (result[-1][0], max(result[-1][1], last))
        else:
            result.append((first, last))
    return result
