"""Lies that `small_factory` can tell in one place, each with the check that must name it (docs/verify.md).

A lie is told under the right key and with chains in order, unless it is about keys or chains itself. Some lies show
in a second check as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.support.records.factory import Body, Lie, RecordFactory

Change = Callable[[Body], None]


@dataclass(frozen=True)
class Planted:
    """A fault and how it is built; `exporting` makes the file where it is not simply the factory's."""

    name: str
    check: str
    build: Callable[[], RecordFactory]
    exporting: Callable[[RecordFactory], bytes] = RecordFactory.export

    def __str__(self) -> str:
        return self.name


def lie_at(kind: str, nth: int, change: Change) -> Lie:
    """A lie in the nth statement of a kind."""

    def lie(reported: str, count: int, body: Body) -> None:
        if (reported, count) == (kind, nth):
            change(body)

    return lie


def put(*path: str | int, value: Any) -> Change:
    """Set what stands at the path."""

    def change(body: Any) -> None:
        for step in path[:-1]:
            body = body[step]
        body[path[-1]] = value

    return change


def drop(*path: str | int) -> Change:
    """Take away what stands at the path."""

    def change(body: Any) -> None:
        for step in path[:-1]:
            body = body[step]
        del body[path[-1]]

    return change


def swap(path: str, first: int, second: int) -> Change:
    """Exchange two items of a list."""

    def change(body: Body) -> None:
        items = body[path]
        items[first], items[second] = items[second], items[first]

    return change


def add(*path: str | int, by: int) -> Change:
    """Add to a number that travels as text."""

    def change(body: Any) -> None:
        for step in path[:-1]:
            body = body[step]
        body[path[-1]] = str(int(body[path[-1]]) + by)

    return change


Z = "0" * 64
OTHER_ULID = "01K4ZQ7M2J8T5V9X3B6C1D0EFG"
RULES_OF_NOBODY = {"id": "uth-solo", "sha256": Z, "version": "1"}
KEYED, STARTED = "2026-11-18T11:06:41.500Z", "2026-11-18T11:06:42.200Z"
"""Between the first node key and the first start; between that and the first session."""
EARLY, LATE = "2001-01-01T00:00:00.000Z", "2099-12-31T23:59:59.999Z"

SMALL: tuple[tuple[str, str, str, int, Change], ...] = (
    # name, check, kind, nth, change: in `small_factory`
    ("instance of another name", "3 key", "instance_end", 1, put("instance", value="rgs-9")),
    ("start of another node", "3 key", "instance_start", 1, put("node", value="node-9")),
    ("field unknown", "4 schema", "purchase", 1, put("extra", value="x")),
    ("field missing", "4 schema", "purchase", 1, drop("purchase_no")),
    ("30 February", "4 schema", "purchase", 1, put("time", value="2026-02-30T00:00:00.000Z")),
    ("hour 24", "4 schema", "purchase", 1, put("time", value="2026-11-20T24:00:00.000Z")),
    ("minute 60", "4 schema", "purchase", 1, put("time", value="2026-11-20T00:60:00.000Z")),
    ("second 60", "4 schema", "purchase", 1, put("time", value="2026-11-20T00:00:60.000Z")),
    ("year 1969", "4 schema", "instance_end", 1, put("time", value="1969-12-31T23:59:59.999Z")),
    (
        "start at 30 February",
        "4 schema",
        "round_opening",
        1,
        put("deal", "start_time", value="2026-02-30T00:00:00.000Z"),
    ),
    ("action at hour 24", "4 schema", "round_final", 1, put("actions", 0, "time", value="2026-11-20T24:00:00.000Z")),
    ("private hash of nothing", "5 private", "session_open", 1, put("private", value=Z)),
    ("statement number skipped", "6 number", "purchase", 1, put("statement_no", value="4")),
    ("statement number repeated", "6 number", "purchase", 1, put("statement_no", value="2")),
    ("start with number 2", "6 number", "instance_start", 1, put("statement_no", value="2")),
    ("link number skipped", "7 session", "purchase", 1, put("link_no", value="3")),
    ("link number repeated", "7 session", "purchase", 1, put("link_no", value="1")),
    ("first link is the second", "7 session", "session_open", 1, put("link_no", value="2")),
    ("link of another session", "7 session", "purchase", 1, put("session_id", value=OTHER_ULID)),
    ("previous of nothing", "7 session", "purchase", 1, put("previous", value=Z)),
    ("previous in the first link", "7 session", "session_open", 1, put("previous", value="1" * 64)),
    ("time goes back", "7 session", "purchase", 1, put("time", value=STARTED)),
    ("purchase 2 before 1", "7 session", "purchase", 1, put("purchase_no", value="2")),
    ("end of another participation", "7 session", "participation_end", 1, put("participation_id", value=OTHER_ULID)),
    ("stage 2 before 1", "7 session", "round_opening", 1, put("round_no", value="2")),
    ("rounds at the end", "7 session", "participation_end", 1, put("rounds", value="2")),
    ("rounds at the close", "7 session", "session_close", 1, put("rounds", value="0")),
    ("ruleset of nobody", "8 rules", "session_open", 1, put("ruleset", value=RULES_OF_NOBODY)),
    ("ruleset version of nobody", "8 rules", "session_open", 1, put("ruleset", "version", value="2")),
    ("jurisdiction of nobody", "8 rules", "session_open", 1, put("jurisdiction", "sha256", value=Z)),
    ("currency of another jurisdiction", "8 rules", "session_open", 1, put("currency", value="GBP")),
    ("deal by a ruleset of nobody", "8 rules", "round_opening", 1, put("deal", "ruleset", value=RULES_OF_NOBODY)),
    ("dealt by another instance", "9 deal", "round_opening", 1, put("deal", "instance", value="rgs-9")),
    ("shuffle of another kind", "9 deal", "round_opening", 1, put("deal", "shuffle", value="riffle/v1")),
    ("start after the opening", "9 deal", "round_opening", 1, put("deal", "start_time", value=LATE)),
    ("code of another time", "9 deal", "round_opening", 1, put("deal", "game_code", value="#00:00:00")),
    ("table of another session", "9 deal", "round_opening", 1, put("deal", "table", value="table-1")),
    ("two seats for one player", "9 deal", "round_opening", 1, put("deal", "seats", value="2")),
    ("seat of another session", "9 deal", "round_opening", 1, put("seat", "session_id", value=OTHER_ULID)),
    ("seat outside the deal", "9 deal", "round_opening", 1, put("seat", "seat_no", value="2")),
    ("seats root of nothing", "9 deal", "round_opening", 1, put("deal", "seats_root", value=Z)),
    ("path where none is due", "9 deal", "round_opening", 1, put("path", value=[Z])),
    ("balance before the opening", "18 balance", "round_opening", 1, add("balance_before_minor", by=1)),
    ("balance after the opening", "18 balance", "round_opening", 1, add("balance_after_minor", by=1)),
    ("opening of nothing", "11 opening", "round_final", 1, put("opening", value=Z)),
    ("round of nobody", "11 opening", "round_final", 1, put("round_id", value=OTHER_ULID)),
    ("another seat", "11 opening", "round_final", 1, put("seat_no", value="2")),
    ("another stage", "11 opening", "round_final", 1, put("round_no", value="2")),
    ("settled without deck", "11 opening", "round_final", 1, drop("deck")),
    ("void without reason", "11 opening", "round_final", 1, put("status", value="void")),
    (
        "settled with a void",
        "11 opening",
        "round_final",
        1,
        put("void", value={"approvals": [], "malfunction": Z, "reason": "MALFUNCTION"}),
    ),
    ("another salt", "12 commitment", "round_final", 1, put("salt", value=Z)),
    ("another commitment", "12 commitment", "round_opening", 1, put("commitment", value=Z)),
    ("two cards of the deck swapped", "13 transcript", "round_final", 1, swap("deck", 0, 51)),
    ("a card of the deck missing", "13 transcript", "round_final", 1, drop("deck", 51)),
    ("hole cards swapped", "14 cards", "round_final", 1, lambda body: body["cards"]["hole_cards"].reverse()),
    ("another dealer", "14 cards", "round_final", 1, lambda body: body["cards"]["dealer_cards"].reverse()),
    ("another board", "14 cards", "round_final", 1, lambda body: body["cards"]["board"].reverse()),
    ("a burn where none is", "14 cards", "round_final", 1, put("cards", "burns", value=["As"])),
    ("action in another phase", "15 actions", "round_final", 1, put("actions", 0, "phase", value="river")),
    ("action out of time", "15 actions", "round_final", 1, put("actions", 1, "time", value=EARLY)),
    ("action before the opening", "15 actions", "round_final", 1, put("actions", 0, "time", value=EARLY)),
    ("action after the final", "15 actions", "round_final", 1, put("actions", 1, "time", value=LATE)),
    ("action that the phase does not have", "15 actions", "round_final", 1, put("actions", 1, "action", value="fold")),
    ("action underpriced", "15 actions", "round_final", 1, put("actions", 1, "amount_minor", value="199")),
    ("check with a price", "15 actions", "round_final", 1, put("actions", 0, "amount_minor", value="1")),
    ("timer plays", "15 actions", "round_final", 1, put("actions", 1, "by", value="timer")),
    ("rule plays", "15 actions", "round_final", 1, put("actions", 1, "by", value="rule")),
    ("action by another party", "15 actions", "round_final", 1, put("actions", 0, "party", value="operator-9")),
    ("action of another request", "15 actions", "round_final", 1, put("actions", 0, "request_digest", value=Z)),
    ("action hash of nothing", "15 actions", "round_final", 1, put("actions_hash", value=Z)),
    ("action missing", "15 actions", "round_final", 1, drop("actions", 1)),
    ("dealer wins", "16 hands", "round_final", 1, put("outcome", "outcome", value="dealer")),
    ("dealer does not qualify", "16 hands", "round_final", 1, put("outcome", "dealer_qualifies", value=False)),
    ("better category", "16 hands", "round_final", 1, put("outcome", "player_hand", "category", value="quads")),
    (
        "best five reordered",
        "16 hands",
        "round_final",
        1,
        lambda body: body["outcome"]["player_hand"]["best5"].reverse(),
    ),
    (
        "dealer's best five",
        "16 hands",
        "round_final",
        1,
        lambda body: body["outcome"]["dealer_hand"]["best5"].reverse(),
    ),
    (
        "flop hand in a game without",
        "16 hands",
        "round_final",
        1,
        lambda body: body["outcome"].update(flop_hand=body["outcome"]["player_hand"]),
    ),
    ("bet returns less", "17 settlement", "round_final", 1, add("settlement", 1, "returned_minor", by=-1)),
    ("bet staked less", "17 settlement", "round_final", 1, add("settlement", 1, "stake_minor", by=-1)),
    ("win called a push", "17 settlement", "round_final", 1, put("settlement", 0, "result", value="push")),
    ("bets settled in another order", "17 settlement", "round_final", 1, swap("settlement", 0, 1)),
    ("bet not settled", "17 settlement", "round_final", 1, drop("settlement", 3)),
    ("balance before the round", "18 balance", "round_final", 1, add("balance_before_minor", by=-1)),
    ("staked more", "18 balance", "round_final", 1, add("staked_minor", by=1)),
    ("returned less", "18 balance", "round_final", 1, add("returned_minor", by=-1)),
    ("balance after the round", "18 balance", "round_final", 1, add("balance_after_minor", by=1)),
    ("purchase from a balance", "18 balance", "purchase", 1, add("balance_before_minor", by=1)),
    ("purchase of less", "18 balance", "purchase", 1, add("balance_after_minor", by=-1)),
    ("bought before", "18 balance", "purchase", 1, add("bought_minor", by=1)),
    ("bought at the end", "18 balance", "participation_end", 1, add("bought_minor", by=1)),
    ("staked at the end", "18 balance", "participation_end", 1, add("staked_minor", by=1)),
    ("returned at the end", "18 balance", "participation_end", 1, add("returned_minor", by=1)),
    ("paid out more", "18 balance", "participation_end", 1, add("paid_out_minor", by=1)),
    ("draw skipped", "20 draws", "round_opening", 1, put("deal", "draw_no", value="2")),
    ("draws beyond the flight", "20 draws", "round_opening", 1, put("deal", "draw_no", value="10")),
    ("draws at the end", "20 draws", "instance_end", 1, put("last_draw_no", value="2")),
    ("no draws at the end", "20 draws", "instance_end", 1, put("last_draw_no", value="0")),
)
