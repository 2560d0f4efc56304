"""The rounds of tables: their chain, what is fixed before the draw, the deal, the cards, and the windows (checks 24 to
28; 8, 12 to 14, 16 and 19 of a `table_final`).

A round is kept until its seats have ended and the table has begun the next one. Of a seat its leaf is kept (32 bytes).
In cut files the rounds that an operator's players did not play are missing, and so is `table_seats`; there each
`seat_opening` has its audit path beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from rgs.core.cards import format_card
from rgs.core.errors import VerificationError
from rgs.core.games.dealing import Dealt, dealt_cards
from rgs.core.games.settling import Showdown, showdown
from rgs.core.replay.checks import (
    CARDS,
    COMMITMENT,
    EARLY,
    HANDS,
    OPENING,
    RULES,
    SEATS,
    STAKES,
    TABLE,
    TABLE_DEAL,
    TRANSCRIPT,
    WINDOWS,
)
from rgs.core.replay.finals import verify_approvals
from rgs.core.replay.reading import Statement
from rgs.core.replay.rules import Rulebook
from rgs.core.rounds import DECK_UNRECOVERABLE, hand_object
from rgs.core.rulesets import Ruleset
from rgs.core.statements import LINK_ZERO, commitment_of, format_canonical
from rgs.core.tables.bodies import player_hands_object
from rgs.core.tables.tree import LEAVES_MIN, SEATS_MAX, leaves_for, root_of_padded
from rgs.core.tables.windows import LATE_MAX_MS, WindowEnd
from rgs.core.times import parse_time
from rgs.core.tlog.merkle import verify_inclusion
from rng.shuffle import PROCEDURE, TranscriptError, transcript_to_deck  # type: ignore[attr-defined]

Body = dict[str, Any]
_REVEALED: Final = ("cards", "deck", "hands", "salt", "transcript")


@dataclass(slots=True)
class TableRound:
    """One round of a table, as its statements so far say. The hashes are empty, and `seats` 0, until they come."""

    hash: str
    body: Body
    """Of the `table_round`."""
    ruleset: Ruleset | None
    """None if it is not known, or cannot deal so many hands: then no card can be compared."""
    seats: int = 0
    salt: str = ""
    deal: str = ""
    deal_time: str = ""
    core: str = ""
    """The deal core's canonical bytes, as text."""
    commitment: str = ""
    leaves: dict[int, bytes] = field(default_factory=dict)
    last_seat_time: str = ""
    unanswered: int = 0
    final: str = ""
    final_body: Body = field(default_factory=dict)
    deck: tuple[int, ...] = ()
    """The deck that the `table_final` reveals, if it passed checks 12 to 14."""
    is_cut: bool = False
    """Some of its seats lie outside cut files."""
    is_followed: bool = False
    """The table has begun its next round."""

    @property
    def round_id(self) -> str:
        return str(self.body["round_id"])

    @property
    def table(self) -> str:
        return str(self.body["table"])

    @property
    def hands(self) -> int:
        return int(self.body["hands"])

    @property
    def is_void(self) -> bool:
        return bool(self.final_body) and self.final_body["status"] == "void"

    def dealt(self, ruleset: Ruleset) -> Dealt:
        """All cards of the revealed deck by place."""
        return dealt_cards(ruleset, self.deck, self.hands)

    def showdown(self, ruleset: Ruleset, seat_no: int) -> Showdown:
        """The hands of a seat and of the dealer."""
        dealt = self.dealt(ruleset)
        return showdown(ruleset, dealt.hands[seat_no - 1 if self.hands > 1 else 0], dealt.dealer_cards, dealt.board)

    def windows_of(self, phase: str) -> list[Body]:
        """The windows of a phase, in order; the last one may have ended by a pause."""
        return [window for window in self.final_body["windows"] if window["phase"] == phase]


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
        made = TableRound(statement.hash, body, _usable_ruleset(body, rulebook))
        self._rounds[statement.hash] = made
        is_same_second = body["betting_open_time"][:19] == state.second
        state.codes = (state.codes if is_same_second else frozenset()) | {body["game_code"]}
        state.second = body["betting_open_time"][:19]
        state.last_no, state.round = max(int(body["table_round_no"]), state.last_no), statement.hash
        _verify_order(statement, known, before, is_whole=is_whole)
        _verify_fixed(statement, rulebook)
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
        if round_.final:
            raise statement.failure(SEATS, "the seat was opened after the table's final")
        if statement.path or not is_whole:
            try:
                verify_inclusion(
                    leaf, seat_no - 1, int(round_.body["leaves"]), statement.path, bytes.fromhex(_root(round_))
                )
            except VerificationError as error:
                raise statement.failure(SEATS, f"seat {seat_no}: {error.message}") from None

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
        _verify_fields(statement, round_)
        if "deck" in body and round_.ruleset is not None:
            round_.deck = _verified_deck(statement, round_, round_.ruleset)
        _verify_windows(statement, round_)
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
            ruleset = _usable_ruleset(row["body"], rulebook)
            one = TableRound(**{**row, "deck": tuple(row["deck"]), "leaves": leaves, "ruleset": ruleset})
            self._rounds[one.hash] = one
            if one.deal:
                self._by_deal[one.deal] = one.hash


def _root(round_: TableRound) -> str:
    return str(round_.body["seats_root"])


# --- (24) (28) ---


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


# --- (8) (10) (25) (26) of a table_round ---


def _hands_max(ruleset: Ruleset) -> int:
    return 1 if ruleset.hole_cards == "shared" else ruleset.max_seats


def _usable_ruleset(body: Body, rulebook: Rulebook) -> Ruleset | None:
    ruleset = rulebook.ruleset(body["ruleset"])
    return ruleset if ruleset is not None and int(body["hands"]) <= _hands_max(ruleset) else None


def _verify_fixed(statement: Statement, rulebook: Rulebook) -> None:
    body = statement.body
    ruleset = rulebook.ruleset(body["ruleset"])
    if ruleset is None:
        raise statement.failure(RULES, f"ruleset {body['ruleset']['id']} {body['ruleset']['version']} is not known")
    jurisdiction = rulebook.jurisdiction(body["jurisdiction"])
    if jurisdiction is None:
        raise statement.failure(RULES, f"jurisdiction {body['jurisdiction']['id']} is not known")
    if not ruleset.table_only:
        raise statement.failure(RULES, f"{ruleset.id} is not played at a table")
    if body["early_close"] and not jurisdiction.early_close_allowed:
        raise statement.failure(RULES, f"{jurisdiction.id} does not allow a window to end early")
    _verify_limits(statement, ruleset)
    hands, leaves = int(body["hands"]), int(body["leaves"])
    if hands > _hands_max(ruleset):
        raise statement.failure(TABLE_DEAL, f"{hands} hands where at most {_hands_max(ruleset)} may be dealt")
    if leaves & (leaves - 1) or not LEAVES_MIN <= leaves <= SEATS_MAX:
        raise statement.failure(TABLE_DEAL, f"a tree of {leaves} leaves, not a power of two from {LEAVES_MIN}")
    opened, closed = body["betting_open_time"], body["betting_close_time"]
    if body["game_code"].partition("-")[0] != f"#{opened[11:19]}":
        raise statement.failure(TABLE_DEAL, f"game code {body['game_code']} is not that of {opened}")
    _verify_length(statement, opened, closed, int(body["betting_ms"]))
    if closed > body["time"]:
        raise statement.failure(EARLY, f"the round was fixed at {body['time']}, before the betting window closed")


def _verify_limits(statement: Statement, ruleset: Ruleset) -> None:
    """The limits are those of all bets that a player places, within the ruleset's."""
    stated = {row["bet"]: (int(row["min_minor"]), int(row["max_minor"])) for row in statement.body["limits"]}
    if list(stated) != sorted(ruleset.limits) or len(stated) != len(statement.body["limits"]):
        raise statement.failure(STAKES, f"limits of {', '.join(stated)}, not of {', '.join(sorted(ruleset.limits))}")
    for bet, (least, most) in stated.items():
        limits = ruleset.limits[bet]
        if not limits.min_minor <= least <= most <= limits.max_minor:
            raise statement.failure(
                STAKES, f"{bet} from {least} to {most} is not within {limits.min_minor} to {limits.max_minor}"
            )


def _verify_length(statement: Statement, opened: str, closed: str, due_ms: int) -> None:
    """Check 26: a window that ran out was neither shorter nor much longer than it had to be."""
    lasted_ms = parse_time(closed) - parse_time(opened)
    if not due_ms <= lasted_ms <= due_ms + LATE_MAX_MS:
        raise statement.failure(
            WINDOWS, f"the window from {opened} lasted {lasted_ms} ms, it had to be open for {due_ms}"
        )


# --- (11) (12) (13) (14) (16) of a table_final ---


def _verify_fields(statement: Statement, round_: TableRound) -> None:
    body = statement.body
    if body.get("deal", "") != round_.deal:
        raise statement.failure(OPENING, "deal is not the hash of the round's table_deal")
    is_void = body["status"] == "void"
    due = set() if is_void else {*_REVEALED, "deal"}
    barred = set() if is_void else {"void"}
    if is_void:
        due.add("void")
        is_hidden = not round_.deal or body.get("void", {}).get("reason") == DECK_UNRECOVERABLE
        (barred if is_hidden else due).update(_REVEALED)
    for name in sorted(due - body.keys()):
        raise statement.failure(OPENING, f"{name} is missing in a table_final of status {body['status']}")
    for name in sorted(barred & body.keys()):
        raise statement.failure(OPENING, f"{name} does not belong into this table_final of status {body['status']}")


def _verified_deck(statement: Statement, round_: TableRound, ruleset: Ruleset) -> tuple[int, ...]:
    """The deck, if commitment, transcript, cards and hands agree."""
    body = statement.body
    salt, transcript = bytes.fromhex(body["salt"]), bytes.fromhex(body["transcript"])
    if commitment_of(round_.core.encode("ascii"), salt, transcript).hex() != round_.commitment:
        raise statement.failure(COMMITMENT, "salt and transcript do not give the commitment of the deal")
    try:
        deck = transcript_to_deck(transcript)
    except TranscriptError as error:
        raise statement.failure(TRANSCRIPT, str(error)) from None
    if _faces(deck) != body["deck"]:
        raise statement.failure(TRANSCRIPT, "the transcript gives another deck")
    dealt = dealt_cards(ruleset, deck, round_.hands)
    is_shared = ruleset.hole_cards == "shared"
    expected = {
        "board": _faces(dealt.board),
        "burns": _faces(dealt.burns),
        "dealer_cards": _faces(dealt.dealer_cards),
        **({"hole_cards": _faces(dealt.hands[0])} if is_shared else {}),
    }
    if body["cards"] != expected:
        raise statement.failure(CARDS, "cards are not those that the deck gives")
    hands = showdown(ruleset, dealt.hands[0], dealt.dealer_cards, dealt.board)
    due = {
        "dealer_hand": hand_object(hands.dealer_hand),
        "dealer_qualifies": hands.dealer_qualifies,
        **(player_hands_object(hands) if is_shared else {}),
    }
    if body["hands"] != due:
        raise statement.failure(HANDS, "hands are not those that the cards give")
    return tuple(deck)


def _faces(cards: tuple[int, ...] | list[int]) -> list[str]:
    return [format_card(card) for card in cards]


# --- (26) (27) of a table_final ---


def _verify_windows(statement: Statement, round_: TableRound) -> None:
    """The windows stand in the order of the phases, each whole unless a pause or all decisions ended it."""
    body, time = statement.body, round_.deal_time
    due_ms = int(round_.body["decision_ms"])
    # Of a ruleset that is not known (8) neither phases nor cards can be compared.
    phases = [] if round_.ruleset is None else [phase.value for phase in round_.ruleset.rules.transitions]
    ended: list[str] = []
    for window in body["windows"]:
        if not time <= window["open_time"] <= window["close_time"]:
            raise statement.failure(WINDOWS, f"the window from {window['open_time']} is out of order")
        time = window["close_time"]
        if phases and phases[len(ended) : len(ended) + 1] != [window["phase"]]:
            raise statement.failure(WINDOWS, f"a window of {window['phase']} stands after {len(ended)} phases")
        if window["end"] != WindowEnd.PAUSED:
            ended.append(window["phase"])
        if window["end"] == WindowEnd.DECIDED and not round_.body["early_close"]:
            raise statement.failure(WINDOWS, f"the window from {window['open_time']} ended early")
        if window["end"] == WindowEnd.TIME:
            _verify_length(statement, window["open_time"], window["close_time"], due_ms)
    if phases and body["status"] == "settled" and ended != phases:
        raise statement.failure(WINDOWS, f"windows of {', '.join(ended) or 'no phase'}, not of {', '.join(phases)}")
    if body["windows"] and not round_.deal:
        raise statement.failure(WINDOWS, "windows of a round that was not dealt")
    if body["time"] < time:
        raise statement.failure(EARLY, f"the table's final is dated {body['time']}, before its last window closed")


def verify_action_times(statement: Statement, round_: TableRound) -> None:
    """Check 26 of a `seat_final`: a player's decision inside a window of its phase, a timer's at the end of one."""
    for number, action in enumerate(statement.body["actions"], 1):
        windows = round_.windows_of(action["phase"])
        if action["by"] == "player":
            if not any(window["open_time"] <= action["time"] <= window["close_time"] for window in windows):
                raise statement.failure(WINDOWS, f"action {number} at {action['time']} is outside every window")
        elif action["by"] == "rule":
            raise statement.failure(WINDOWS, f"action {number} is taken by rule: at a table the timer decides")
        elif not windows or windows[-1]["end"] != WindowEnd.TIME or action["time"] != windows[-1]["close_time"]:
            raise statement.failure(WINDOWS, f"action {number} by timer is not at the end of a window that ran out")
