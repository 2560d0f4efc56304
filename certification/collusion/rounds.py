"""Rounds of tables with own cards, as an export or a log shows them: who sat where, all hole cards, who decided what.

The deck of a `table_final` shows the hole cards of all seats, also of those whose finals are not in the file. A player
is named by operator and pseudonym where the private block of his `session_open` is there, else by his session. Nothing
is verified here: run `certify replay` or `certify log` first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from certification.monitor import PlaceError, envelopes
from certification.overlap import SeenRounds
from certification.replay import read_lines
from certification.table_rounds import KINDS_OF_TABLES, TableDeal, TableRounds
from rgs.core.cards import Card, parse_cards
from rgs.core.errors import RgsError, UnknownRulesetError
from rgs.core.games.dealing import dealt_cards
from rgs.core.games.types import Action, Phase
from rgs.core.rulesets import Ruleset, load_ruleset
from rgs.core.statements import leaf_hash, parse_envelope, parse_line, parse_statement

Body = Mapping[str, Any]
_PLAYER: Final = "player"


@dataclass(frozen=True, slots=True)
class SeatDecisions:
    """A seat: its place among the hands dealt, its player, and in which phases he himself bet or did not."""

    hand: int
    player: str
    bets: Mapping[Phase, bool]


@dataclass(frozen=True, slots=True)
class TableHands:
    """A settled round: the hash of its deal, all hole cards and the board, and the seats that are in the file."""

    ruleset_id: str
    name: str
    holes: tuple[tuple[Card, ...], ...]
    board: tuple[Card, ...]
    seats: tuple[SeatDecisions, ...]


class HandReader:
    """Takes statements in the order of a log or export."""

    def __init__(self) -> None:
        self.unread: Counter[str] = Counter()
        self._players: dict[str, str] = {}
        self._tables = TableRounds(SeenRounds(), self.unread)

    def take(self, envelope: bytes, block: Body | None) -> TableHands | None:
        """Take in one statement and the block beside it; return the round that it completes. FormatError."""
        kind, body = parse_statement(parse_envelope(envelope))
        if kind.name == "session_open":
            if block is not None and _PLAYER in block:
                self._players[body["session_id"]] = f"{body['operator']} {block[_PLAYER]}"
        elif kind.name in KINDS_OF_TABLES:
            deal = self._tables.take(kind.name, leaf_hash(envelope).hex(), body)
            if deal is not None and deal.has_ended and deal.seats:
                return self._hands(deal)
        return None

    def _hands(self, deal: TableDeal) -> TableHands | None:
        opening, final = deal.seats[0]
        named = opening["deal"]["ruleset"]
        hands = int(opening["deal"]["seats"])
        ruleset = _shipped(named["id"], named["sha256"])
        if ruleset is None:
            self.unread[f"rounds of {named['id']}, which is not shipped in this version"] += 1
        elif ruleset.hole_cards != "own":
            self.unread[f"rounds of {ruleset.id}, where one hand is open to all"] += 1
        elif final["status"] == "void":
            self.unread["void rounds"] += 1
        elif hands == 1:
            self.unread["rounds with one player"] += 1
        else:
            dealt = dealt_cards(ruleset, parse_cards(final["deck"]), hands)
            seats = sorted(deal.seats, key=lambda seat: int(seat[1]["seat_no"]))
            players = self._named([first["session_id"] for first, _ in seats])
            decided = tuple(
                SeatDecisions(int(one["seat_no"]) - 1, player, _bets(ruleset, one["actions"]))
                for player, (_, one) in zip(players, seats, strict=True)
            )
            return TableHands(ruleset.id, deal.name, dealt.hands, dealt.board, decided)
        return None

    def _named(self, sessions: list[str]) -> list[str]:
        """The players of a round. Where a name comes twice, which no honest record has, the sessions stand for them."""
        players = [self._players.get(session_id, session_id) for session_id in sessions]
        return players if len(set(players)) == len(players) else sessions


def _bets(ruleset: Ruleset, actions: Iterable[Body]) -> dict[Phase, bool]:
    """The player's own decisions; silence, for which the timer decides, tells nothing of what he knows."""
    multiples = ruleset.rules.multiples
    return {Phase(one["phase"]): Action(one["action"]) in multiples for one in actions if one["by"] == _PLAYER}


def _shipped(ruleset_id: str, sha256: str) -> Ruleset | None:
    try:
        ruleset = load_ruleset(ruleset_id)
    except UnknownRulesetError:
        return None
    return ruleset if ruleset.sha256 == sha256 else None


def read_hands(
    places: Iterable[str], reader: HandReader, reported: Callable[[str], None] = lambda _: None
) -> Iterator[TableHands]:
    """The rounds of exports and logs, one after the other as one. PlaceError."""
    for place in places:
        reported(place)
        for number, (envelope, block) in enumerate(_statements(place), 1):
            try:
                hands = reader.take(envelope, block)
            except RgsError as error:
                raise PlaceError(f"{place}, statement {number}: {error.message}") from error
            if hands is not None:
                yield hands


def _statements(place: str) -> Iterator[tuple[bytes, Body | None]]:
    """Statements and their private blocks; a log has none."""
    if "://" in place or Path(place).is_dir():
        yield from ((envelope, None) for envelope in envelopes(place))
        return
    try:
        with Path(place).open("rb") as file:
            for number, data in enumerate(read_lines(file), 1):
                try:
                    line = parse_line(data.rstrip(b"\n"))
                except RgsError as error:
                    raise PlaceError(f"{place}, line {number}: {error.message}") from error
                yield line.envelope, line.private["block"] if line.private else None
    except OSError as error:
        raise PlaceError(f"{place}: {error.strerror}") from error
