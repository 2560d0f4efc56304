"""Rounds of tables as stories: honest ones of each ruleset, cut exports of one session, and a table on which lies are
told.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.support.records.factory import Body, Lie, RecordFactory, join
from tests.support.records.parts import SessionRecord, Worker
from tests.support.records.tables import TableRecord

Stakes = list[tuple[SessionRecord, Mapping[str, int]]]
PLACED = {"ante": 100, "trips": 20}
DECISIONS = {"preflop": {1: "play_4x"}, "flop": {2: "play_2x"}}
OF_A_ROUND = ("table_round", "table_deal", "table_final")


@dataclass
class Story:
    """A table, two workers of two nodes, and its players."""

    factory: RecordFactory
    one: Worker
    two: Worker
    table: TableRecord
    players: list[SessionRecord]

    @property
    def stakes(self) -> Stakes:
        return [(player, PLACED) for player in self.players]

    def play(self, worker: Worker | None = None) -> None:
        """A whole round."""
        self.table.play(worker or self.one, self.stakes, DECISIONS)

    def dealt(self) -> None:
        """A round up to the openings of its seats."""
        self.table.fix(self.one, self.stakes)
        self.table.deal(self.one)
        self.table.open_seats(self.one)

    def shown(self) -> None:
        """All windows of the open round, without decisions."""
        for phase in ("preflop", "flop", "river"):
            self.table.window(phase, {})

    def settle(self) -> None:
        """The rest of a dealt round."""
        self.shown()
        self.table.reveal(self.one)
        self.table.end_seats(self.one)

    def end(self) -> RecordFactory:
        """Everybody leaves."""
        for player in self.players:
            self.factory.end_participation(self.one, player)
            self.factory.close(self.one, player)
        self.factory.end(self.one)
        self.factory.end(self.two)
        return self.factory


def begun(
    ruleset: str = "uth-seven-box",
    lie: Lie | None = None,
    *,
    players: int = 3,
    early_close: bool = False,
    jurisdiction: str = "demo",
    of_session: Mapping[str, str] | None = None,
    law_version: int | None = 2,
) -> Story:
    """A table with its players; `of_session` has what the sessions name instead of the table's ruleset and
    jurisdiction.
    """
    factory = RecordFactory("tables", lie=lie, law_version=law_version)
    one, two = factory.start("rgs-1"), factory.start("rgs-2", "node-2")
    table = TableRecord(factory, "table-1", ruleset, jurisdiction, early_close)
    said = {"ruleset": ruleset, "jurisdiction": jurisdiction, "table": "table-1", **(of_session or {})}
    seated = [
        factory.open(one, said["ruleset"], jurisdiction=said["jurisdiction"], table=said["table"])
        for _ in range(players)
    ]
    for player in seated:
        factory.buy(one, player, 50_000)
    return Story(factory, one, two, table, seated)


def played(ruleset: str = "uth-seven-box", lie: Lie | None = None, **more: Any) -> RecordFactory:
    """Two rounds that were played."""
    story = begun(ruleset, lie, **more)
    story.play()
    story.play(story.two)
    return story.end()


def voided(reason: str = "MALFUNCTION", lie: Lie | None = None, ruleset: str = "uth-seven-box") -> RecordFactory:
    """A round that is void after its first window."""
    story = begun(ruleset, lie)
    story.dealt()
    story.table.window("preflop", {1: "play_4x"})
    story.table.make_void(story.one, reason)
    story.table.end_seats(story.one)
    return story.end()


def undealt(lie: Lie | None = None) -> RecordFactory:
    """A round that is void before its draw, and one that is played."""
    story = begun(lie=lie)
    story.table.fix(story.one, story.stakes)
    story.table.make_void(story.one)
    story.play()
    return story.end()


def every_kind(ruleset: str) -> RecordFactory:
    """Honest: two rounds played, one void before the draw, one in mid-round, one with a deck that nobody can open."""
    story = begun(ruleset)
    table, one, two = story.table, story.one, story.two
    story.play()
    table.play(two, story.stakes, {"preflop": {1: "check"}, "river": {2: "play_1x"}})
    table.fix(one, story.stakes)
    table.make_void(two)
    for reason in ("MALFUNCTION", "DECK_UNRECOVERABLE"):
        table.fix(one, story.stakes)
        table.deal(two)
        table.open_seats(one)
        table.window("preflop", {3: "play_3x"})
        table.make_void(two, reason)
        table.end_seats(one)
    return story.end()


# --- cut exports ---


def body_of(line: bytes) -> Body:
    """The payload of an export line."""
    body: Body = json.loads(base64.b64decode(json.loads(line)["envelope"]["payload"]))
    return body


def kept_lines(factory: RecordFactory, keep: Callable[[Body], bool], sessions: Mapping[str, tuple[int, int]]) -> bytes:
    """A cut export: the starts, these links of sessions, and the other statements that `keep` takes."""
    kept: list[bytes] = []
    spans: list[dict[str, str]] = []
    for line in factory.lines:
        body = body_of(line)
        first, last = sessions.get(body.get("session_id", ""), (1, 0))
        is_held = first <= int(body["link_no"]) <= last if "link_no" in body else keep(body)
        if body["kind"] == "instance_start":
            kept.append(line)
        elif is_held:
            kept.append(line)
            name, number = body["instance"], int(body["statement_no"])
            before = next((span for span in reversed(spans) if span["instance"] == name), None)
            if before is not None and int(before["last"]) == number - 1:
                before["last"] = str(number)
            else:
                spans.append({"first": str(number), "instance": name, "last": str(number)})
    links = [{"first": str(one), "last": str(two), "session_id": name} for name, (one, two) in sessions.items()]
    return join([factory.scope(spans, links), *kept])


def cut(factory: RecordFactory, *kinds: str, player: int = 0) -> bytes:
    """One session and the table statements of its rounds (`kinds`, by default without table_seats)."""
    ids = list(dict.fromkeys(body["session_id"] for body in map(body_of, factory.lines) if "link_no" in body))
    links = [body for body in map(body_of, factory.lines) if body.get("session_id") == ids[player]]
    rounds = {body["round_id"] for body in links if body["kind"] == "seat_opening"}
    last = max(int(body["link_no"]) for body in links if "link_no" in body)

    def keep(body: Body) -> bool:
        return body["kind"] in (kinds or OF_A_ROUND) and body["round_id"] in rounds

    return kept_lines(factory, keep, {ids[player]: (1, last)})
