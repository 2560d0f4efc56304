"""A seat whose final lies outside of a cut export, and whose `table_deal` is missing, too: it fails by itself."""

from __future__ import annotations

from itertools import takewhile

from rgs.core.replay import KeyBook, Replay, Rulebook
from rgs.core.statements import parse_envelope, parse_line, parse_statement
from tests.support.records.table_day import table_day


def test_a_seat_without_its_deal_at_the_end_of_a_range_fails_and_stops_nothing() -> None:
    day = table_day()
    factory, player = day.factory, day.players[0]
    read = [(line, *parse_statement(parse_envelope(parse_line(line).envelope))) for line in factory.lines]
    links = [(line, kind.name) for line, kind, body in read if body.get("session_id") == player.session_id]
    before = [line for line, _ in takewhile(lambda link: link[1] != "seat_opening", links)]
    kept = [*before, links[len(before)][0]]
    starts = [line for line, kind, _ in read if kind.name == "instance_start"]
    scope = factory.scope((), [{"first": "1", "last": str(len(kept)), "session_id": player.session_id}])
    replay = Replay(KeyBook(factory.keys()), Rulebook())
    failures = [failure for line in (scope, *starts, *kept) for failure in replay.feed(line)]
    assert [failure.metadata["check"] for failure in failures] == ["25 table deal"]
    assert replay.finish() == []
    assert (replay.summary.rounds_verified, replay.summary.rounds_failed) == (0, 1)
