"""Planted faults of free bets at tables, where none is played: no campaign pays for a seat (check 7)."""

from __future__ import annotations

from functools import partial

from tests.support.records.factory import RecordFactory
from tests.support.records.granted import Guest
from tests.support.records.lies import Planted
from tests.support.records.table_stories import OF_A_ROUND, begun, body_of, kept_lines


def paid_seat(ruleset: str, *, skip: int = 0) -> RecordFactory:
    """A campaign pays for the first player's seat, and gets its stakes back; `skip` leaves out its debit (1) or its
    return (2).
    """
    story = begun(ruleset, law_version=None)
    player = story.players[0]
    table, one = story.table, story.one
    guest = Guest(story.factory, one, player, [skip])
    table.fix(one, story.stakes)
    table.deal(one)
    round_id, grant_id = table.round_id, story.factory.ulid()
    guest.move("debit", 200, grant_id, round_id)
    table.open_seats(one)
    story.settle()
    guest.move("credit", 0, grant_id, round_id)
    return story.end()


def from_the_seat(factory: RecordFactory) -> bytes:
    """The cut export of the first session that begins at its seat_opening."""
    links = [body for body in map(body_of, factory.lines) if "link_no" in body]
    mine = [body for body in links if body["session_id"] == links[0]["session_id"]]
    (first,) = [int(body["link_no"]) for body in mine if body["kind"] == "seat_opening"]
    spans = {mine[0]["session_id"]: (first, int(mine[-1]["link_no"]))}
    return kept_lines(factory, lambda body: body["kind"] in OF_A_ROUND, spans)


SEAT_GRANTS = (
    *(
        Planted(f"a free bet before a seat of {ruleset}", "7 session", partial(paid_seat, ruleset))
        for ruleset in ("uth-seven-box", "uth-online")
    ),
    Planted("a free bet before a seat, and nothing goes back", "7 session", partial(paid_seat, "uth-online", skip=2)),
    Planted("a seat's stakes go back to a campaign", "7 session", partial(paid_seat, "uth-online", skip=1)),
    Planted("a seat's stakes go back to a campaign, cut", "7 session", partial(paid_seat, "uth-online"), from_the_seat),
)
"""Faults of free bets at tables."""
