"""`certify vectors FILE --ruleset ID`: settles recorded rounds by a ruleset and compares every field.

The rows are JSON lines as `tests/vectors/games/README.md` describes them. Each round is dealt from a deck that holds
its cards where the ruleset's deal procedure looks for them. The code that the server runs plays and settles it, without
the limits of a table. Where a payout falls on half a unit that code refuses, as it must (RULEBOOK U-10: whole payouts).
The fields are then compared at twice the stakes, and a row that agrees counts as refused. After a fold a row gives the
side bet in two readings, on its own merits and forfeited. Both are compared, and the ruleset's own settlement with the
one that it takes (U-8, C-7: side bets after a fold).

A row is an error with its line, and never left out, if it is malformed, lacks a key or has one too many, has decisions
that the game does not allow, or is of another game. A file without rows is an error too.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from certification.replay import refused
from rgs.core import games
from rgs.core.cards import FULL_DECK, Card, parse_cards
from rgs.core.errors import FormatError, RgsError, RulesetError, StakeStepError
from rgs.core.games.dealing import BURN, DEALER, PLAYER
from rgs.core.games.settling import settle_bet
from rgs.core.games.types import Action, BetResult, BetSettlement, Outcome, Phase, SeatStakes, Settlement
from rgs.core.hands import Category, HandValue, evaluate
from rgs.core.money import LOST, MAX_STAKE_MINOR
from rgs.core.rulesets import CheckedRows, Ruleset, load_ruleset

_HALVES: Final = re.compile(r"-?(0|[1-9][0-9]{0,14})\.5")
_MAX_AMOUNT: Final = 10**15
_ACTIONS: Final[Mapping[str, Action]] = {
    "check": Action.CHECK,
    "raise4": Action.PLAY_4X,
    "raise3": Action.PLAY_3X,
    "raise2": Action.PLAY_2X,
    "raise1": Action.PLAY_1X,
    "call": Action.CALL,
    "fold": Action.FOLD,
}


class RowVerdict(Enum):
    """What became of a row; REFUSED is right where a payout falls on half a unit, and given only there."""

    PASSED = "passed"
    FAILED = "failed"
    REFUSED = "refused"


class RowError(ValueError):
    """A row that cannot be compared at all."""


@dataclass(frozen=True, slots=True)
class RowFormat:
    """What the rows of one game call it, their key of the decisions, and their key of the side bet forfeited."""

    game: str
    decisions: str
    forfeited: str


_FORMATS: Final[Mapping[str, RowFormat]] = {
    "ultimate_texas_holdem": RowFormat("uth", "decisions", "variant_fold_loses_trips"),
    "casino_holdem": RowFormat("casino_holdem", "decision", "variant_fold_loses_aa"),
}


@dataclass(frozen=True, slots=True)
class Row:
    """A well-formed row: what was played, and what the row claims came of it, by the full name of the field."""

    id: str
    hole_cards: tuple[Card, ...]
    dealer_cards: tuple[Card, ...]
    board: tuple[Card, ...]
    bets: Mapping[str, int]
    actions: tuple[Action, ...]
    claims: Mapping[str, object]


class RowReader(CheckedRows):
    """The strict reader of rulesets, with the kinds of value that only rows have."""

    def cards(self, key: str, count: int) -> tuple[Card, ...]:
        """Return so many different cards."""
        cards = parse_cards(self.texts(key))
        if len(cards) != count:
            raise self.refusal(key, f"holds {len(cards)} cards, not {count}")
        return cards

    def numbers(self, key: str) -> tuple[int, ...]:
        """Return a list of whole numbers."""
        values: list[Any] = self._take(key, list)
        if any(type(value) is not int for value in values):
            raise self.refusal(key, "is not a list of whole numbers")
        return tuple(values)

    def units(self, key: str) -> Fraction:
        """Return an amount, whole or on a half."""
        if type(self._rows.get(key)) is Fraction:
            value: Fraction = self._take(key, Fraction)
            return value
        return Fraction(self.number(key, -_MAX_AMOUNT, _MAX_AMOUNT))

    def hand(self, key: str, cards: Sequence[Card]) -> dict[str, object]:
        """Return the claims on a hand; `best5` claims the worth of its five cards, which must be of these."""
        rows = self.table(key)
        best5 = rows.cards("best5", 5)
        claims: dict[str, object] = {
            f"{key}.category": rows.choice("category", (category.text for category in Category)),
            f"{key}.key": rows.numbers("key"),
            f"{key}.best5": evaluate(best5).key if set(best5) <= set(cards) else "cards that are not there",
        }
        rows.close()
        return claims

    def flop_hand(self, key: str) -> dict[str, object]:
        """Return the claims on the first five cards."""
        rows = self.table(key)
        claims: dict[str, object] = {
            f"{key}.category": rows.choice("category", (category.text for category in Category)),
            f"{key}.key": rows.numbers("key"),
            f"{key}.aa_pays_to_1": rows.units("aa_pays_to_1"),
        }
        rows.close()
        return claims

    def bet(self, key: str, name: str) -> dict[str, object]:
        """Return the claims on one bet, under this name."""
        rows = self.table(key)
        claims: dict[str, object] = {
            f"{name}.stake": rows.units("stake"),
            f"{name}.net": rows.units("net"),
            f"{name}.returned": rows.units("returned"),
            f"{name}.result": rows.choice("result", BetResult),
        }
        rows.close()
        return claims


def parse_row(line: bytes, ruleset: Ruleset) -> Row:
    """Return the row of one line; raise RowError if it is malformed or of another game."""
    try:
        document = json.loads(
            line.decode(), object_pairs_hook=_without_duplicates, parse_float=_half, parse_constant=_half
        )
    except (ValueError, RecursionError) as error:
        raise RowError(f"the row is not JSON: {error}") from error
    if type(document) is not dict:
        raise RowError("the row is not a JSON object")
    rows = RowReader(document)
    try:
        row = _row(rows, ruleset)
        rows.close()
    except (RulesetError, FormatError) as error:
        raise RowError(error.message) from error
    return row


def check_row(ruleset: Ruleset, row: Row) -> tuple[RowVerdict, list[str]]:
    """Return the verdict on a row and the differences, each naming its field, the claim and what the ruleset makes."""
    try:
        scale, settlement = 1, _play(ruleset, row, 1)
    except StakeStepError:
        scale, settlement = 2, _play(ruleset, row, 2)
    computed = _computed(ruleset, settlement, scale)
    differences = [
        f"{name}: the row says {claim}, the ruleset {computed[name]}"
        for name, claim in row.claims.items()
        if claim != computed[name]
    ]
    if differences:
        return RowVerdict.FAILED, differences
    return RowVerdict.PASSED if scale == 1 else RowVerdict.REFUSED, []


def check_lines(ruleset: Ruleset, content: bytes) -> Iterator[tuple[int, RowVerdict | None, list[str]]]:
    """Give for each line its number from 1, the verdict (None: an error) and what there is to say about it."""
    for number, line in enumerate(content.removesuffix(b"\n").split(b"\n"), start=1):
        try:
            row = parse_row(line, ruleset)
        except RowError as error:
            yield number, None, [f"error: {error}"]
        else:
            verdict, differences = check_row(ruleset, row)
            yield number, verdict, [f"{row.id}: {difference}" for difference in differences]


def main(argv: list[str] | None = None) -> int:
    """Print `N passed, N failed, N refused`; 0, or 1 if a row failed or there was none, or 2: nothing could be read."""
    parser = argparse.ArgumentParser(prog="certify vectors", description="Settle recorded rounds by a ruleset.")
    parser.add_argument("file", type=Path, metavar="FILE", help="JSON lines, one round each")
    parser.add_argument("--ruleset", required=True, metavar="ID", help="the ruleset to settle them by")
    arguments = parser.parse_args(argv)
    try:
        ruleset = load_ruleset(arguments.ruleset)
        content = arguments.file.read_bytes()
    except (RgsError, OSError) as error:
        return refused("vectors", error)
    if not content:
        sys.stderr.write(f"error: {arguments.file} holds no rows\n")
        return 1
    verdicts: Counter[RowVerdict | None] = Counter()
    for number, verdict, remarks in check_lines(ruleset, content):
        verdicts[verdict] += 1
        sys.stderr.writelines(f"line {number}: {remark}\n" for remark in remarks)
    sys.stdout.write(", ".join(f"{verdicts[verdict]} {verdict.value}" for verdict in RowVerdict) + "\n")
    if verdicts[None]:
        sys.stderr.write(f"{verdicts[None]} lines are not rows of {ruleset.id}\n")
    return 1 if verdicts[RowVerdict.FAILED] or verdicts[None] else 0


# --- reading a row ---


def _half(text: str) -> Fraction:
    """Return a number on a half; the only numbers with a decimal point that a row may hold."""
    if not _HALVES.fullmatch(text):
        raise RowError(f"{text} is neither whole nor on a half")
    return Fraction(text)


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        raise RowError("a key stands twice")
    return table


def _row(rows: RowReader, ruleset: Ruleset) -> Row:
    rules, row_format = ruleset.rules, _FORMATS[ruleset.family]
    rows.choice("game", (row_format.game,))
    row_id, _ = rows.text("id"), rows.text("tag")
    hole_cards, dealer_cards, board = rows.cards("player", 2), rows.cards("dealer", 2), rows.cards("board", 5)
    if len({*hole_cards, *dealer_cards, *board}) != 9:
        raise RowError("a card stands twice")
    opening = _opening_bets(rows.table("stakes"), ruleset)
    actions = _actions(rows, row_format, ruleset)
    staked = [*opening, *(rules.decided_bet for action in actions if action in rules.multiples)]
    claims: dict[str, object] = {
        "outcome": rows.choice("outcome", Outcome),
        "dealer_qualifies": rows.flag("dealer_qualifies"),
        "total_staked": rows.units("total_staked"),
        "total_returned": rows.units("total_returned"),
        "net": rows.units("net"),
        "half_unit": rows.flag("half_unit"),
        **rows.hand("player_hand", hole_cards + board),
        **rows.hand("dealer_hand", dealer_cards + board),
    }
    if rules.side_bet_on_flop:
        claims |= rows.flop_hand("flop_hand")
    settlement = rows.table("settlement")
    for bet in staked:
        claims |= settlement.bet(bet, f"settlement.{bet}")
    settlement.close()
    if Action.FOLD in actions and rules.side_bet in opening:
        claims |= rows.bet(row_format.forfeited, row_format.forfeited)
    placed = {bet: stake for bet, stake in opening.items() if bet in rules.placed_bets}
    return Row(row_id, hole_cards, dealer_cards, board, placed, actions, claims)


def _opening_bets(rows: RowReader, ruleset: Ruleset) -> dict[str, int]:
    """Return the opening bets that were placed: a stake of 0 says that the side bet was not."""
    rules = ruleset.rules
    stakes = {bet: rows.number(bet, int(bet != rules.side_bet), MAX_STAKE_MINOR) for bet in rules.opening_bets}
    rows.close()
    for bet, stake in stakes.items():
        if bet not in rules.placed_bets and stake != stakes["ante"]:
            raise rows.refusal(bet, f"{stake} is not the ante, {stakes['ante']}")
    return {bet: stake for bet, stake in stakes.items() if stake}


def _actions(rows: RowReader, row_format: RowFormat, ruleset: Ruleset) -> tuple[Action, ...]:
    """Return the decisions, which must lead from the first phase to the showdown, and no further."""
    key, rules = row_format.decisions, ruleset.rules
    # One decision is written as a text, several as a list.
    words = rows.texts(key) if len(rules.transitions) > 1 else (rows.text(key),)
    phase, actions = rules.first_phase, []
    for word in words:
        action = _ACTIONS.get(word)
        following = rules.transitions.get(phase, {})
        if action is None or action not in following:
            raise rows.refusal(key, f"{word!r} is not a decision at {phase}")
        actions.append(action)
        phase = following[action]
    if phase is not Phase.SHOWDOWN:
        raise rows.refusal(key, f"ends at {phase}, where a decision is open")
    return tuple(actions)


# --- playing it ---


def _deck(ruleset: Ruleset, row: Row) -> tuple[Card, ...]:
    """Return a deck from which the ruleset's deal procedure deals the row's cards; the others lie anywhere else."""
    flop, turn, river = row.board[:3], row.board[3:4], row.board[4:]
    blocks = {PLAYER: row.hole_cards, DEALER: row.dealer_cards, "flop": flop, "turn": turn, "river": river}
    others = iter(sorted(set(FULL_DECK).difference(*blocks.values())))
    deck: list[Card] = []
    for step in ruleset.deal_procedure:
        deck += [next(others)] if step.block == BURN else blocks[step.block]
    return (*deck, *others)


def _play(ruleset: Ruleset, row: Row, scale: int) -> Settlement:
    """Return the row settled at so many times its stakes; raise StakeStepError if a payout falls on half a unit."""
    bets = {bet: stake * scale for bet, stake in row.bets.items()}
    stakes = SeatStakes(1, bets, games.dearest_finish(ruleset, bets))
    (seat,) = games.deal(ruleset, _deck(ruleset, row), [stakes], enforce_limits=False)
    for action in row.actions:
        seat = games.apply(seat, action)
    return games.settle(seat)


def _computed(ruleset: Ruleset, settlement: Settlement, scale: int) -> dict[str, object]:
    """Return what the ruleset makes of the row, by the names of its claims; amounts at the row's own stakes."""
    rules = ruleset.rules
    base = {bet.bet: bet for bet in settlement.bets}
    computed: dict[str, object] = {
        "outcome": settlement.outcome,
        "dealer_qualifies": settlement.dealer_qualifies,
        "half_unit": scale != 1,
        **_hand("player_hand", settlement.player_hand),
        **_hand("dealer_hand", settlement.dealer_hand),
    }
    if settlement.flop_hand is not None:
        odds = ruleset.paytables[rules.side_bet].odds_for(settlement.flop_hand)
        computed |= _hand("flop_hand", settlement.flop_hand)
        computed["flop_hand.aa_pays_to_1"] = Fraction(odds.wins, odds.per)
    if settlement.outcome is Outcome.FOLD and rules.side_bet in base:
        # The ruleset settles the side bet in one of the two readings; the other one is worked out beside it.
        settled, key = base[rules.side_bet], _FORMATS[ruleset.family].forfeited
        if ruleset.side_bet_survives_fold:
            computed |= _bet(key, settle_bet(settled.bet, settled.stake_minor, LOST), scale)
        else:
            computed |= _bet(key, settled, scale)
            odds = ruleset.paytables[rules.side_bet].odds_for(settlement.flop_hand or settlement.player_hand)
            base[rules.side_bet] = settle_bet(settled.bet, settled.stake_minor, odds)
    for bet, settled in base.items():
        computed |= _bet(f"settlement.{bet}", settled, scale)
    # The totals of a row are those of its base settlement.
    returned_minor = sum(bet.returned_minor for bet in base.values())
    computed["total_staked"] = Fraction(settlement.staked_minor, scale)
    computed["total_returned"] = Fraction(returned_minor, scale)
    computed["net"] = Fraction(returned_minor - settlement.staked_minor, scale)
    return computed


def _hand(name: str, hand: HandValue) -> dict[str, object]:
    return {f"{name}.category": hand.category.text, f"{name}.key": hand.key, f"{name}.best5": hand.key}


def _bet(name: str, bet: BetSettlement, scale: int) -> dict[str, object]:
    return {
        f"{name}.stake": Fraction(bet.stake_minor, scale),
        f"{name}.net": Fraction(bet.net_minor, scale),
        f"{name}.returned": Fraction(bet.returned_minor, scale),
        f"{name}.result": bet.result,
    }
