"""Recorded rounds from the finals of an export: transcripts for the battery, and the strata of their returns.

Reads export lines (docs/formats.md, 12) in the order of the files. Nothing is verified here, neither signature nor
chain: run `certify replay` first. Only finals count: a discarded draw was never played, and a void without transcript
revealed nothing. Deals are put in the order of their drawing (instance, draw number), because the order in which rounds
end follows from the cards. Keeps a transcript of some 54 bytes for every deal.

UnreadableExportError for a line that is not a statement. What cannot be used is counted: finals whose opening is not in
the files, rounds that came before (files may overlap), rulesets that are not shipped in that version, transcripts that
are not those of one shuffle.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from certification.overlap import SeenRounds
from certification.replay import read_lines
from certification.table_rounds import KINDS_OF_TABLES, TableDeal, TableRounds
from rgs.core.errors import FormatError, RgsError
from rgs.core.rulesets import Ruleset, load_ruleset
from rgs.core.statements import leaf_hash, parse_envelope, parse_line, parse_statement
from rgs.core.times import parse_time
from rng.errors import TranscriptError
from rng.shuffle import transcript_to_deck

_LINES_BETWEEN_SIGNS = 2000


class UnreadableExportError(ValueError):
    """A line that is no statement of an export."""


@dataclass(frozen=True, slots=True)
class SeatPlayed:
    """One seat of one recorded round. Times in milliseconds; `since_start_ms` is None if the instance is not told."""

    deck: tuple[int, ...]
    ruleset: Ruleset
    session_id: str
    operator: str
    node: str
    since_start_ms: int | None
    status: str
    seat_no: int
    seats: int
    bets: dict[str, int]
    staked_minor: int
    returned_minor: int


@dataclass(frozen=True, slots=True)
class Recorded:
    """The transcripts in the order of their drawing, and what could not be used, by reason."""

    transcripts: tuple[bytes, ...]
    unread: dict[str, int]


def read(
    paths: Iterable[Path], seat_played: Callable[[SeatPlayed], None], reported: Callable[[int], None] = lambda _: None
) -> Recorded:
    """Read the files as one export; `seat_played` is called for every final that can be used."""
    reader = _RoundReader(seat_played)
    for path in paths:
        with path.open("rb") as file:
            for number, line in enumerate(read_lines(file), 1):
                try:
                    reader.feed(line.rstrip(b"\n"))
                except FormatError as error:
                    raise UnreadableExportError(f"{path.name}, line {number}: {error.message}") from error
                if not number % _LINES_BETWEEN_SIGNS:
                    reported(len(reader.transcripts))
    ordered = tuple(transcript for _, transcript in sorted(reader.transcripts.items()))
    return Recorded(ordered, dict(reader.unread))


class _RoundReader:
    def __init__(self, seat_played: Callable[[SeatPlayed], None]) -> None:
        self.transcripts: dict[tuple[str, int], bytes] = {}
        self.unread: Counter[str] = Counter()
        self._seat_played = seat_played
        self._instances: dict[str, tuple[str, int]] = {}
        self._operators: dict[str, str] = {}
        self._openings: dict[str, dict[str, Any]] = {}
        self._seen = SeenRounds()
        self._tables = TableRounds(self._seen, self.unread)

    def feed(self, line: bytes) -> None:
        data = parse_line(line).envelope
        kind, body = parse_statement(parse_envelope(data))
        if kind.name == "instance_start":
            self._instances[body["instance"]] = (body["node"], parse_time(body["time"]))
        elif kind.name == "session_open":
            self._operators[body["session_id"]] = body["operator"]
        elif kind.name == "round_opening":
            name = leaf_hash(data).hex()
            if name not in self._openings and not self._seen.is_again(name, body):
                self._openings[name] = body
        elif kind.name == "round_final":
            opening = self._openings.pop(body["opening"], None)
            if opening is None:
                self.unread[self._seen.why_unopened(body["opening"])] += 1
            elif deck := self._drawn(opening["deal"], body):
                self._seat(opening, body, deck, int(body["seat_no"]))
        elif kind.name in KINDS_OF_TABLES:
            ended = self._tables.take(kind.name, leaf_hash(data).hex(), body)
            if ended is not None and ended.has_ended:
                self._table(ended)

    def _table(self, table: TableDeal) -> None:
        """A round of a table: one draw, whatever the number of seats. Where they share one hand, the first seat that is
        there stands for it, and no seat if the deal came before.
        """
        shown = table.final or {}
        deck = self._drawn(table.body["deal"], shown)
        if not deck:
            return
        seats = sorted(table.seats, key=lambda seat: int(seat[1]["seat_no"]))
        is_shared = "hole_cards" in shown.get("cards", {})
        for nth, (opening, final) in enumerate(seats, 2 if table.is_again else 1):
            self._seat(opening, final, deck, nth if is_shared else int(final["seat_no"]))

    def _drawn(self, deal: dict[str, Any], final: Mapping[str, Any]) -> tuple[int, ...]:
        """The deck that a final reveals, with its transcript kept; nothing where it does not."""
        if "transcript" not in final:
            self.unread["voids that reveal no transcript"] += 1
            return ()
        transcript = bytes.fromhex(final["transcript"])
        try:
            deck = transcript_to_deck(transcript)
        except TranscriptError:
            self.unread["transcripts that are not one shuffle's"] += 1
            return ()
        self.transcripts[deal["instance"], int(deal["draw_no"])] = transcript
        return deck

    def _seat(self, opening: Mapping[str, Any], body: Mapping[str, Any], deck: tuple[int, ...], seat_no: int) -> None:
        deal = opening["deal"]
        ruleset = _shipped(deal["ruleset"]["id"], deal["ruleset"]["sha256"])
        if ruleset is None:
            self.unread["returns of rulesets that are not shipped"] += 1
            return
        node, started = self._instances.get(deal["instance"], ("", None))
        self._seat_played(
            SeatPlayed(
                deck=deck,
                ruleset=ruleset,
                session_id=body["session_id"],
                operator=self._operators.get(body["session_id"], ""),
                node=node,
                since_start_ms=None if started is None else parse_time(deal["start_time"]) - started,
                status=body["status"],
                seat_no=seat_no,
                seats=int(deal["seats"]),
                bets={row["bet"]: int(row["amount_minor"]) for row in opening["seat"]["bets"]},
                staked_minor=int(body["staked_minor"]),
                returned_minor=int(body["returned_minor"]),
            )
        )


@cache
def _shipped(ruleset_id: str, sha256: str) -> Ruleset | None:
    try:
        ruleset = load_ruleset(ruleset_id)
    except RgsError:
        return None
    return ruleset if ruleset.sha256 == sha256 else None
