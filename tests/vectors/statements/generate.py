"""Write the scenarios: `python -m tests.vectors.statements.generate`.

One file a scenario: what it is about, the export, the key bundle, the root that the auditor brings, and what a verifier
must say. They name rulesets by hash, so a changed ruleset changes them; a test tells when they are out of date.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.support.records.betting import bet_by_bet
from tests.support.records.factory import RecordFactory
from tests.support.records.granted import free_bets
from tests.support.records.lying import windowed
from tests.support.records.planted import PLANTED
from tests.support.records.planted_demo import second_versions
from tests.support.records.planted_tables import PLANTED_AT_TABLES
from tests.support.records.ready_made import large_factory, small_factory
from tests.support.records.table_stories import cut, every_kind

FOLDER = Path(__file__).parent / "scenarios"
Scenario = dict[str, Any]

FAULTS = (
    "bet above the signed limit",
    "demo counted as real",
    "play money with the regulator's ids",
    "play money bought at the wallet",
    "a free bet for another round",
    "the campaign gets more back",
    "another deck, the old commitment",
    "a byte too many",
    "a byte too few",
    "a byte rejected that was none to reject",
    "hole cards swapped",
    "action underpriced",
    "better category",
    "bet returns less",
    "balance after the round",
    "deal core differs between seats",
    "malfunction of nothing",
    "malfunction of the round before",
    "approved by an admin who was removed",
    "one id for two participations",
    "end names another participation",
    "second boot that names none",
    "two reseeds a draw",
    "player's decision sent by operator-2",
    "statement dated before its instance",
    "draw skipped",
    "last number of a lost instance",
    "signed by nobody",
    "node key revoked from a place of the log on",
    "a draw window that shrinks",
    "draws beyond the window",
    "a path that leads elsewhere",
    "a seat added after the draw, seen by its player",
    "a decision in another phase's window",
    "previous of nothing, cut",
)


def scenario(about: str, factory: RecordFactory, expect: str, checks: Sequence[str] = (), **more: Any) -> Scenario:
    """`expect` is the last line, `checks` are those that fail; `lines` and `root` where they are not the server's."""
    made = {
        "about": about,
        "checks": sorted(set(checks)),
        "expect": expect,
        "keys": factory.keys().decode(),
        "lines": factory.lines,
        "root": factory.root.keyid,
        **more,
    }
    made["lines"] = [line.decode() for line in made["lines"]]
    return made


def scenarios() -> dict[str, Scenario]:
    """All scenarios by file name."""
    small, large, foreign = small_factory(), large_factory(), small_factory(seed="foreign")
    made = {
        "small": scenario("one instance, one session, one round", small, "1 rounds verified, 0 failed, ANCHORED"),
        "large": scenario(
            "three instances, one lost; two games; a table of three, a shared hand, voids, a discarded draw",
            large,
            "9 rounds verified, 0 failed, ANCHORED",
        ),
        "development": scenario(
            "a node key that is marked so", small_factory(development=True), "1 rounds verified, 0 failed, ANCHORED"
        ),
        "unanchored": scenario("nobody brought a root", small, "1 rounds verified, 0 failed, UNANCHORED", root=""),
        "other_root": scenario(
            "the auditor brought another root",
            small,
            "1 rounds verified, 0 failed, UNANCHORED",
            ["3 key"],
            root=foreign.root.keyid,
        ),
        "foreign_keys": scenario(
            "another house's round, signed by its own keys",
            small,
            "0 rounds verified, 0 failed, ANCHORED",
            ["3 key"],
            lines=foreign.lines,
        ),
        "draw_window": scenario(
            "a draw window that grows before the draws that need it, of an instance that is lost",
            windowed(12, 16, 0),
            "1 rounds verified, 0 failed, ANCHORED",
        ),
        "cut_session": cut_session(),
        "second_versions": scenario(
            "a session with play money and one with limits on its bets, both of version 2, beside one of version 1",
            second_versions(),
            "4 rounds verified, 0 failed, ANCHORED",
        ),
        "free_bets": scenario(
            "five rounds of one session, four of them paid for by free bets: won, lost, void, with a side bet",
            free_bets(),
            "5 rounds verified, 0 failed, ANCHORED",
        ),
        "seamless": scenario(
            "four rounds whose bets are debited one by one and whose returns are credited",
            bet_by_bet(),
            "4 rounds verified, 0 failed, ANCHORED",
        ),
        "table_shared": scenario(
            "a table where all share one hand: two rounds played, one void before its draw, two void after it",
            every_kind("uth-online"),
            "4 rounds verified, 0 failed, ANCHORED",
        ),
        "table_boxes": scenario(
            "a table of boxes with own cards: the same five rounds",
            every_kind("uth-seven-box"),
            "4 rounds verified, 0 failed, ANCHORED",
        ),
        "table_session": table_session(),
    }
    for name, change, checks, expect in TRANSFORMED:
        made[name] = scenario(
            f"the small export, {name.replace('_', ' ')}", small, expect, checks, lines=change(small.lines)
        )
    for planted in (*PLANTED, *PLANTED_AT_TABLES):
        if planted.name in FAULTS:
            made[planted.name.replace(" ", "_").replace(",", "").replace("'", "")] = fault(planted.name)
    return made


TRANSFORMED: tuple[tuple[str, Callable[[list[bytes]], list[bytes]], list[str], str], ...] = (
    (
        "purchase_removed",
        lambda lines: [*lines[:2], *lines[3:]],
        ["6 number", "7 session"],
        "0 rounds verified, 1 failed, ANCHORED",
    ),
    (
        "final_removed",
        lambda lines: [*lines[:4], *lines[5:]],
        ["11 opening", "6 number", "7 session"],
        "0 rounds verified, 1 failed, ANCHORED",
    ),
    (
        "final_repeated",
        lambda lines: [*lines[:5], *lines[4:]],
        ["6 number", "7 session"],
        "0 rounds verified, 1 failed, ANCHORED",
    ),
    (
        "final_before_opening",
        lambda lines: [*lines[:3], lines[4], lines[3], *lines[5:]],
        ["11 opening", "6 number", "7 session"],
        "0 rounds verified, 1 failed, ANCHORED",
    ),
    (
        "tail_cut_off",
        lambda lines: lines[:5],
        ["22 scope"],
        "1 rounds verified, 0 failed, ANCHORED",
    ),
)


def cut_session() -> Scenario:
    """The session of one player of a table, cut out of the large export."""
    factory = large_factory()
    marked = [json.loads(line)["envelope"]["payload"] for line in factory.lines]
    bodies = [json.loads(base64.b64decode(payload)) for payload in marked]
    session_id = next(body["session_id"] for body in bodies if body.get("table") == "box-table")
    last = max(int(body["link_no"]) for body in bodies if body.get("session_id") == session_id and "link_no" in body)
    scope = factory.scope(sessions=[{"first": "1", "last": str(last), "session_id": session_id}])
    wanted = [
        line
        for line, body in zip(factory.lines, bodies, strict=True)
        if body["kind"] == "instance_start" or body.get("session_id") == session_id
    ]
    return scenario(
        "one session of a table, with the scope that says so",
        factory,
        "1 rounds verified, 0 failed, ANCHORED",
        lines=[scope, *wanted],
    )


def table_session() -> Scenario:
    """The session of one player at a table of boxes, cut out of the whole."""
    factory = every_kind("uth-seven-box")
    return scenario(
        "one session at a table of boxes, with what its rounds share and the paths of its seats",
        factory,
        "4 rounds verified, 0 failed, ANCHORED",
        lines=cut(factory).splitlines(),
    )


def fault(name: str) -> Scenario:
    (planted,) = [planted for planted in (*PLANTED, *PLANTED_AT_TABLES) if planted.name == name]
    factory = planted.build()
    lines = planted.exporting(factory).splitlines()
    return scenario(f"planted: {name}", factory, EXPECTED[name][0], EXPECTED[name][1], lines=lines)


ONE_FAILED = "0 rounds verified, 1 failed, ANCHORED"
EXPECTED: dict[str, tuple[str, list[str]]] = {
    "another deck, the old commitment": (ONE_FAILED, ["12 commitment"]),
    "a byte too many": (ONE_FAILED, ["13 transcript"]),
    "a byte too few": (ONE_FAILED, ["13 transcript"]),
    "a byte rejected that was none to reject": (ONE_FAILED, ["13 transcript"]),
    "hole cards swapped": (ONE_FAILED, ["14 cards"]),
    "action underpriced": (ONE_FAILED, ["15 actions"]),
    "better category": (ONE_FAILED, ["16 hands"]),
    "bet returns less": (ONE_FAILED, ["17 settlement"]),
    "balance after the round": (ONE_FAILED, ["18 balance"]),
    "deal core differs between seats": (ONE_FAILED, ["11 opening", "9 deal"]),
    "malfunction of nothing": (ONE_FAILED, ["19 void"]),
    "draw skipped": (ONE_FAILED, ["12 commitment", "20 draws"]),
    "a draw window that shrinks": ("1 rounds verified, 0 failed, ANCHORED", ["20 draws"]),
    "draws beyond the window": ("1 rounds verified, 0 failed, ANCHORED", ["20 draws"]),
    "last number of a lost instance": ("1 rounds verified, 0 failed, ANCHORED", ["21 instance"]),
    "node key revoked from a place of the log on": (
        "0 rounds verified, 0 failed, ANCHORED",
        ["3 key"],
    ),
    "malfunction of the round before": ("1 rounds verified, 1 failed, ANCHORED", ["19 void"]),
    "approved by an admin who was removed": (ONE_FAILED, ["19 void"]),
    "one id for two participations": ("1 rounds verified, 0 failed, ANCHORED", ["23 ids"]),
    "end names another participation": ("1 rounds verified, 0 failed, ANCHORED", ["23 ids"]),
    "second boot that names none": ("3 rounds verified, 0 failed, ANCHORED", ["21 instance"]),
    "two reseeds a draw": ("0 rounds verified, 2 failed, ANCHORED", ["20 draws"]),
    "player's decision sent by operator-2": (ONE_FAILED, ["15 actions"]),
    "statement dated before its instance": ("1 rounds verified, 0 failed, ANCHORED", ["22 scope", "3 key"]),
    "bet above the signed limit": ("3 rounds verified, 1 failed, ANCHORED", ["10 stakes", "11 opening"]),
    "demo counted as real": ("4 rounds verified, 0 failed, ANCHORED", ["23 ids"]),
    "play money with the regulator's ids": ("4 rounds verified, 0 failed, ANCHORED", ["23 ids"]),
    "a free bet for another round": (
        "4 rounds verified, 1 failed, ANCHORED",
        ["11 opening", "18 balance", "7 session"],
    ),
    "the campaign gets more back": ("4 rounds verified, 1 failed, ANCHORED", ["11 opening", "18 balance"]),
    "play money bought at the wallet": ("4 rounds verified, 0 failed, ANCHORED", ["23 ids"]),
    "a path that leads elsewhere": ("0 rounds verified, 2 failed, ANCHORED", ["28 seats"]),
    "a seat added after the draw, seen by its player": (
        "0 rounds verified, 1 failed, ANCHORED",
        ["11 opening", "28 seats", "9 deal"],
    ),
    "a decision in another phase's window": ("1 rounds verified, 1 failed, ANCHORED", ["26 windows"]),
    "previous of nothing, cut": ("1 rounds verified, 1 failed, ANCHORED", ["24 table"]),
    "signed by nobody": (ONE_FAILED, ["11 opening", "3 key", "6 number", "7 session"]),
}


def main() -> int:
    FOLDER.mkdir(exist_ok=True)
    for name, made in scenarios().items():
        (FOLDER / f"{name}.json").write_text(json.dumps(made, indent=1, sort_keys=True) + "\n", encoding="ascii")
    return 0


if __name__ == "__main__":
    sys.exit(main())
