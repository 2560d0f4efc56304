"""The rounds of tables in the order of their statements: the chain, the deal, the seats (checks 24, 25, 27, 28).

A round is kept until its seats have ended and the table has begun the next one. Of a seat its leaf is kept (32 bytes).
In cut files the rounds that an operator's players did not play are missing, and so is `table_seats`; there each
`seat_opening` has its audit path beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from rgs.core.errors import VerificationError
from rgs.core.replay.checks import EARLY, SEATS, TABLE, TABLE_DEAL
from rgs.core.replay.finals import verify_approvals
from rgs.core.replay.reading import Statement
from rgs.core.replay.rules import Rulebook
from rgs.core.replay.table_finals import verified_deck, verify_fields, verify_windows
from rgs.core.replay.table_rounds import TableRound, usable_ruleset, verify_fixed
from rgs.core.statements import LINK_ZERO, format_canonical
from rgs.core.tables.tree import SEATS_MAX, leaves_for, root_of_padded
from rgs.core.tlog.merkle import verify_inclusion
from rng.shuffle import PROCEDURE


@dataclass(slots=True)
class TableState:
    """The newest round of a table: its number, the hash of its end, the codes of its second."""

    last_no: int = 0
    head: str = LINK_ZERO
    round: str = ""
    """Hash of the newest `table_round`, empty once it is forgotten."""
    end_time: str = ""
    second: str = ""
    codes: frozenset[str] = frozenset()


class Tables:
    """All tables of a replay, and their rounds that are still needed."""

    def __init__(self) -> None:
        self._tables: dict[str, TableState] = {}
        self._rounds: dict[str, TableRound] = {}
        """By the hash of the `table_round`."""
        self._by_deal: dict[str, str] = {}

    def of_deal(self, deal: str) -> TableRound | None:
        """The round of a `table_deal`, by its hash."""
        return self._rounds.get(self._by_deal.get(deal, ""))

    def of_round(self, table_round: str) -> TableRound | None:
        """The round of a `table_round`, by its hash."""
        return self._rounds.get(table_round)

    def newest(self, table: str) -> TableRound | None:
        """The newest round of a table, unless it is forgotten."""
        return self._rounds.get(self._tables[table].round) if table in self._tables else None

    # --- table_round -------------------------------------------------------------------------------------------------

    def begin(self, statement: Statement, rulebook: Rulebook, *, is_whole: bool) -> None:
        """Take a `table_round`: checks 24, 8, 10, 25, 26 and 27.

        The round is taken as the newest whatever check it fails.
        """
        body = statement.body
        state = self._tables.setdefault(body["table"], TableState())
        known, before = TableState(**asdict(state)), self._rounds.get(state.round)
        if before is not None:
            before.is_followed = True
        made = TableRound(statement.hash, body, usable_ruleset(body, rulebook))
        self._rounds[statement.hash] = made
        is_same_second = body["betting_open_time"][:19] == state.second
        state.codes = (state.codes if is_same_second else frozenset()) | {body["game_code"]}
        state.second = body["betting_open_time"][:19]
        state.last_no, state.round = max(int(body["table_round_no"]), state.last_no), statement.hash
        _verify_order(statement, known, before, is_whole=is_whole)
        verify_fixed(statement, rulebook)
        if body["game_code"] in known.codes and is_same_second:
            raise statement.failure(TABLE_DEAL, f"game code {body['game_code']} is that of another round of the table")

    def forget(self, round_: TableRound) -> None:
        """Drop a round that nothing can name any more; the same `table_round` a second time stays."""
        if self._rounds.get(round_.hash) is round_:
            del self._rounds[round_.hash]
        self._by_deal.pop(round_.deal, None)

    # --- table_seats, table_deal -------------------------------------------------------------------------------------

    def take_seats(self, statement: Statement) -> None:
        """Check 28 of a `table_seats`: it belongs to a round that is not dealt yet, and to its tree."""
        body = statement.body
        round_ = self._named_round(statement)
        if round_.seats or round_.deal or round_.final:
            raise statement.failure(SEATS, "the seats of the round were counted before, or it was dealt or has ended")
        seats = int(body["seats"])
        round_.seats, round_.salt = min(seats, SEATS_MAX), body["salt"]
        most = round_.ruleset.max_seats if round_.ruleset else 0
        if seats > (most or SEATS_MAX):
            raise statement.failure(SEATS, f"{seats} seats where at most {most or SEATS_MAX} may play")
        if leaves_for(seats) != int(round_.body["leaves"]):
            raise statement.failure(SEATS, f"{seats} seats do not make a tree of {round_.body['leaves']} leaves")
        if round_.ruleset is not None and round_.ruleset.hole_cards == "own" and seats != round_.hands:
            raise statement.failure(SEATS, f"{seats} seats where {round_.hands} hands are dealt")

    def take_deal(self, statement: Statement, *, is_whole: bool) -> TableRound:
        """Check 25 of a `table_deal`: the instance that drew signs it, after all that it names."""
        body, deal = statement.body, statement.body["deal"]
        round_ = self._named_round(statement, deal["table_round"])
        if round_.deal:
            raise statement.failure(TABLE_DEAL, "the round was dealt before")
        if round_.final:
            raise statement.failure(TABLE_DEAL, "the round had ended before it was dealt")
        round_.deal, round_.deal_time = statement.hash, body["time"]
        round_.core, round_.commitment = format_canonical(deal).decode("ascii"), body["commitment"]
        self._by_deal[statement.hash] = round_.hash
        if deal["instance"] != body["instance"]:
            raise statement.failure(TABLE_DEAL, f"dealt by {deal['instance']}, signed by {body['instance']}")
        if deal["shuffle"] != PROCEDURE:
            raise statement.failure(TABLE_DEAL, f"shuffle procedure {deal['shuffle']} is not {PROCEDURE}")
        if is_whole and not round_.seats:
            raise statement.failure(SEATS, "no table_seats counts the seats before the draw")
        if body["time"] < round_.body["betting_close_time"]:
            raise statement.failure(EARLY, f"dealt at {body['time']}, before the betting window closed")
        return round_

    def _named_round(self, statement: Statement, named: str = "") -> TableRound:
        round_ = self._rounds.get(named or statement.body["table_round"])
        if round_ is None:
            raise statement.failure(TABLE, "its table_round does not stand before it")
        if statement.body["round_id"] != round_.round_id:
            raise statement.failure(TABLE, f"round {statement.body['round_id']} is not that of its table_round")
        return round_

    # --- seats -------------------------------------------------------------------------------------------------------

    def join(self, statement: Statement, round_: TableRound, leaf: bytes, *, is_whole: bool) -> None:
        """Check 28 of a `seat_opening`: its seat is under the root, once, and before the table's end."""
        seat_no, time = int(statement.body["seat"]["seat_no"]), statement.body["time"]
        round_.unanswered += 1
        if seat_no in round_.leaves:
            raise statement.failure(SEATS, f"seat {seat_no} of the round was opened before")
        round_.leaves[seat_no] = leaf
        round_.last_seat_time = max(round_.last_seat_time, time)
        if seat_no > (round_.seats or int(round_.body["leaves"])):
            raise statement.failure(SEATS, f"seat {seat_no} is beyond the seats of the round")
        self._take_box(statement, round_)
        if round_.final:
            raise statement.failure(SEATS, "the seat was opened after the table's final")
        if statement.path or not is_whole:
            try:
                verify_inclusion(
                    leaf, seat_no - 1, int(round_.body["leaves"]), statement.path, bytes.fromhex(_root(round_))
                )
            except VerificationError as error:
                raise statement.failure(SEATS, f"seat {seat_no}: {error.message}") from None

    @staticmethod
    def _take_box(statement: Statement, round_: TableRound) -> None:
        """Each seat has a box of its own where it has a hand of its own, else none."""
        box = int(statement.body["seat"].get("box", 0))
        ruleset = round_.ruleset
        boxes = 0 if ruleset is None or ruleset.hole_cards == "shared" else ruleset.max_seats
        if ruleset is not None and (not 1 <= box <= boxes if boxes else box):
            raise statement.failure(SEATS, f"box {box or 'none'} at a table of {boxes} boxes")
        if box in round_.boxes:
            raise statement.failure(SEATS, f"box {box} is another seat's")
        if box:
            round_.boxes.append(box)

    def answer(self, round_: TableRound) -> None:
        """A final was read for a seat of the round, right or wrong."""
        round_.unanswered -= 1

    # --- table_final -------------------------------------------------------------------------------------------------

    def end(self, statement: Statement, *, is_whole: bool) -> TableRound:
        """Take a `table_final`: what it names, the cards (12 to 14, 16), the windows (26), the seats (28)."""
        body = statement.body
        round_ = self._named_round(statement)
        if round_.final:
            raise statement.failure(TABLE, "the round had ended before")
        round_.final, round_.final_body = statement.hash, body
        state = self._tables[round_.table]
        if state.round == round_.hash:
            state.head, state.end_time = statement.hash, body["time"]
        verify_fields(statement, round_)
        if "deck" in body and round_.ruleset is not None:
            round_.deck = verified_deck(statement, round_, round_.ruleset)
        verify_windows(statement, round_)
        self._verify_seats(statement, round_, is_whole=is_whole)
        if body["status"] == "void":
            verify_approvals(statement)
        return round_

    @staticmethod
    def _verify_seats(statement: Statement, round_: TableRound, *, is_whole: bool) -> None:
        """In whole files every seat stands before the table's end, and all of them give the root."""
        windows = statement.body["windows"]
        if windows and round_.last_seat_time > windows[0]["open_time"]:
            raise statement.failure(EARLY, f"a seat was opened at {round_.last_seat_time}, after the cards were shown")
        if is_whole and not round_.seats and not round_.deal:
            raise statement.failure(SEATS, "no table_seats counts the seats before the end")
        if not round_.deal or not round_.seats:
            return
        if len(round_.leaves) != round_.seats:
            if is_whole:
                raise statement.failure(SEATS, f"{round_.seats} seats were dealt, {len(round_.leaves)} opened")
            return
        leaves = [round_.leaves[seat_no] for seat_no in sorted(round_.leaves)]
        if root_of_padded(leaves, bytes.fromhex(round_.salt)).hex() != _root(round_):
            raise statement.failure(SEATS, "the seats of the round do not have its seats_root")

    # --- the end, and between two runs -------------------------------------------------------------------------------

    def finish(self) -> Iterator[TableRound]:
        """The rounds that are not forgotten, in the order of their statements."""
        yield from self._rounds.values()

    def state(self) -> dict[str, Any]:
        """What `restore` needs, for JSON."""
        rounds = [
            {
                **asdict(replace(one, ruleset=None, leaves={})),
                "leaves": {str(seat_no): leaf.hex() for seat_no, leaf in one.leaves.items()},
            }
            for one in self._rounds.values()
        ]
        tables = {name: {**asdict(one), "codes": sorted(one.codes)} for name, one in self._tables.items()}
        return {"rounds": rounds, "tables": tables}

    def restore(self, state: Mapping[str, Any], rulebook: Rulebook) -> None:
        """Go on from a `state`."""
        self._tables = {
            name: TableState(**{**row, "codes": frozenset(row["codes"])}) for name, row in state["tables"].items()
        }
        for row in state["rounds"]:
            leaves = {int(seat_no): bytes.fromhex(leaf) for seat_no, leaf in row["leaves"].items()}
            ruleset = usable_ruleset(row["body"], rulebook)
            one = TableRound(**{**row, "deck": tuple(row["deck"]), "leaves": leaves, "ruleset": ruleset})
            self._rounds[one.hash] = one
            if one.deal:
                self._by_deal[one.deal] = one.hash


def _root(round_: TableRound) -> str:
    return str(round_.body["seats_root"])


def _verify_order(statement: Statement, state: TableState, before: TableRound | None, *, is_whole: bool) -> None:
    """Check 24. In cut files the end of the round before may lie outside."""
    body = statement.body
    number = int(body["table_round_no"])
    if number <= state.last_no:
        raise statement.failure(TABLE, f"round {number} of {body['table']} comes after {state.last_no}: a second one")
    is_next = number == state.last_no + 1
    if is_whole and not is_next:
        raise statement.failure(TABLE, f"round {number} of {body['table']} comes after {state.last_no}")
    if is_next:
        has_ended = before is None or before.final
        if is_whole and not has_ended:
            raise statement.failure(TABLE, f"round {state.last_no} of {body['table']} has not ended")
        if has_ended and body["previous"] != state.head:
            raise statement.failure(TABLE, f"round {number} does not name the hash of the end of {state.last_no}")
    if body["betting_open_time"] < state.end_time:
        raise statement.failure(TABLE, f"betting opened before the round before had ended, at {state.end_time}")
