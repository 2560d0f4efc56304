"""A round of a table as its statements say it, and what its `table_round` fixes before the draw (checks 8, 10, 25, 26,
27).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from rgs.core.games.dealing import Dealt, dealt_cards
from rgs.core.games.settling import Showdown, showdown
from rgs.core.replay.checks import EARLY, RULES, STAKES, TABLE_DEAL, WINDOWS
from rgs.core.replay.reading import Statement
from rgs.core.replay.rules import Rulebook
from rgs.core.rulesets import Ruleset
from rgs.core.tables.tree import LEAVES_MIN, SEATS_MAX
from rgs.core.tables.windows import LATE_MAX_MS
from rgs.core.times import parse_time

Body = dict[str, Any]


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
    boxes: list[int] = field(default_factory=list)
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

    def showdown(self, ruleset: Ruleset, seat_no: int) -> Showdown:
        """The hands of a seat and of the dealer, by the revealed deck."""
        return _showdown(ruleset, self.deck, self.hands, seat_no if self.hands > 1 else 1)

    def windows_of(self, phase: str) -> list[Body]:
        """The windows of a phase, in order; the last one may have ended by a pause."""
        return [window for window in self.final_body["windows"] if window["phase"] == phase]


@lru_cache(maxsize=64)  # seats that share a hand share what it is worth
def _showdown(ruleset: Ruleset, deck: tuple[int, ...], hands: int, hand_no: int) -> Showdown:
    dealt: Dealt = dealt_cards(ruleset, deck, hands)
    return showdown(ruleset, dealt.hands[hand_no - 1], dealt.dealer_cards, dealt.board)


def _hands_max(ruleset: Ruleset) -> int:
    return 1 if ruleset.hole_cards == "shared" else ruleset.max_seats


def usable_ruleset(body: Body, rulebook: Rulebook) -> Ruleset | None:
    """The ruleset of a `table_round`; None if it is not known, or cannot deal so many hands."""
    ruleset = rulebook.ruleset(body["ruleset"])
    return ruleset if ruleset is not None and int(body["hands"]) <= _hands_max(ruleset) else None


def verify_fixed(statement: Statement, rulebook: Rulebook) -> None:
    """Checks 8, 10, 25, 26 and 27 of a `table_round`."""
    body = statement.body
    ruleset = rulebook.ruleset(body["ruleset"])
    if ruleset is None:
        raise statement.failure(RULES, f"ruleset {body['ruleset']['id']} {body['ruleset']['version']} is not known")
    jurisdiction = rulebook.jurisdiction(body["jurisdiction"])
    if jurisdiction is None:
        raise statement.failure(RULES, f"jurisdiction {body['jurisdiction']['id']} is not known")
    if not ruleset.table_only:
        raise statement.failure(RULES, f"{ruleset.id} is not played at a table")
    if not jurisdiction.tables_max:
        raise statement.failure(RULES, f"{jurisdiction.id} version {jurisdiction.version} allows no tables")
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
    verify_length(statement, opened, closed, int(body["betting_ms"]))
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


def verify_length(statement: Statement, opened: str, closed: str, due_ms: int, *, ran_out: bool = True) -> None:
    """Check 26: no window was much longer than it had to be, and one that ran out was not shorter."""
    lasted_ms = parse_time(closed) - parse_time(opened)
    if not (due_ms if ran_out else 0) <= lasted_ms <= due_ms + LATE_MAX_MS:
        raise statement.failure(
            WINDOWS, f"the window from {opened} lasted {lasted_ms} ms, it had to be open for {due_ms}"
        )
