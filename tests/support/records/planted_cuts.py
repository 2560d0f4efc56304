"""Planted faults that only cut files can tell, or a scope that stands where none may."""

from __future__ import annotations

from functools import partial

from tests.support.records.betting import Bettor
from tests.support.records.cutting import held, sessions_of
from tests.support.records.factory import RecordFactory, join
from tests.support.records.lies import Planted, put
from tests.support.records.lying import begun, ended, second_purchase
from tests.support.records.planted_ids import boots
from tests.support.records.ready_made import small_factory

Row = dict[str, str]


def credited() -> RecordFactory:
    """A participation whose balance is credited, behind link 5, as if bets were debited one by one."""
    factory, one, player = begun()
    factory.buy(one, player, 100)
    round_id = factory.ulid()
    factory.deal(one, [player], {"ante": 100}, round_id=round_id)
    factory.act(player, ["play_4x"])
    factory.settle(one, player)
    Bettor(factory, one, player, ()).transfer("credit", player.balance, round_id)
    factory.close(one, player)
    factory.end(one)
    return factory


def former(last_no: int) -> RecordFactory:
    """A boot that shows five statements, and the next one, which names a last number of it."""
    factory, one, player = begun()
    factory.play(one, player, {"ante": 100}, ["play_4x"])
    named = {**factory.boot(one), "last_statement_no": str(last_no)}
    return ended(factory, factory.start("rgs-2", boot_no=2, previous_boot=named), player)


def without_the_end(factory: RecordFactory) -> bytes:
    """A cut file with both boots of `former`, of which the first shows no end."""
    return join([factory.scope([of_instance("rgs-1", 5), of_instance("rgs-2", 4)]), *factory.lines])


def of_instance(name: str, last: int) -> Row:
    return {"first": "1", "instance": name, "last": str(last)}


def scope_behind(factory: RecordFactory) -> bytes:
    """The whole file, and behind it a scope that names all of it."""
    return join([*factory.lines, factory.scope([of_instance("rgs-1", len(factory.lines))])])


def empty_scope_behind(factory: RecordFactory) -> bytes:
    """The file, and behind it a scope that names nothing."""
    return join([*factory.lines, factory.scope()])


def second_scope(factory: RecordFactory, *, place: int, row: Row) -> bytes:
    """A scope of all statements before the lines, and one with this row before the line at a place."""
    first = factory.scope([of_instance("rgs-1", len(factory.lines))])
    second = factory.scope([row]) if "instance" in row else factory.scope(sessions=[row])
    return join([first, *factory.lines[:place], second, *factory.lines[place:]])


def session_scope_behind(factory: RecordFactory, *, place: int, first: int) -> bytes:
    """The same with a scope of the session from a link on."""
    session_id, last = next(sessions_of(factory))
    row = {"first": str(first), "last": str(max(first, last)), "session_id": session_id}
    return second_scope(factory, place=place, row=row)


CUTS = (
    Planted("a scope behind what it names", "22 scope", small_factory, scope_behind),
    Planted(
        "a boot left out, and a scope of nothing behind it",
        "22 scope",
        partial(boots, numbers=(1, 3), names=False),
        empty_scope_behind,
    ),
    Planted(
        "a scope of a session in its midst", "22 scope", small_factory, partial(session_scope_behind, place=4, first=2)
    ),
    Planted(
        "a scope of a session that was closed",
        "22 scope",
        small_factory,
        partial(session_scope_behind, place=7, first=1),
    ),
    Planted(
        "a scope of a session behind its close",
        "22 scope",
        small_factory,
        partial(session_scope_behind, place=7, first=7),
    ),
    Planted("a participation credited as a bet", "7 session", credited, held((3, 0))),
    Planted(
        "the first purchase of a cut brings less than it costs",
        "18 balance",
        partial(second_purchase, put("bought_minor", value="99")),
        held((3, 5)),
    ),
    Planted("a boot before that shows more than its last number", "21 instance", partial(former, 4), without_the_end),
)
"""Faults of scopes, and of what stands behind one."""
