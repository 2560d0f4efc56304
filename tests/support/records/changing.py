"""Exports of free bets, play money and bets one by one, changed in every line and field, and cut at every link: for
verifiers that must agree on whatever they read.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

from tests.integration.test_table_rounds_twice import LEFT_OUT, places
from tests.support.records.betting import bet_by_bet
from tests.support.records.cutting import cut_session, sessions_of
from tests.support.records.factory import Body, Lie, RecordFactory, join
from tests.support.records.granted import free_bets
from tests.support.records.planted_demo import second_versions

Export = tuple[RecordFactory, bytes]

STORIES: dict[str, Callable[..., RecordFactory]] = {
    "free bets": free_bets,
    "second versions": second_versions,
    "bets one by one": bet_by_bet,
}
_KINDS = frozenset({"session_open", "purchase", "free_bet", "transfer", "participation_end"})
"""The kinds whose fields and blocks are changed; of openings and finals the fields that are about money."""
_MONEY = frozenset({"round_opening", "round_final"})
_FIELDS = frozenset({"balance_before_minor", "balance_after_minor", "settlement", "staked_minor", "returned_minor"})
_OF_THE_LINE = frozenset({"instance", "kind", "link_no", "session_id", "statement_no"})


def with_changed_lines(build: Callable[..., RecordFactory]) -> Iterator[Export]:
    """A line left out, repeated, moved by one and by five, put at the end, and everything from it on missing."""
    factory = build()
    lines = factory.lines
    for place, line in enumerate(lines):
        before, behind = lines[:place], lines[place + 1 :]
        for changed in (
            [*before, *behind],
            [*before, line, line, *behind],
            [*before, *behind[:1], line, *behind[1:]],
            [*before, *behind[:5], line, *behind[5:]],
            [*before, *behind, line],
            before,
        ):
            yield factory, join(changed)


def with_changed_fields(build: Callable[..., RecordFactory]) -> Iterator[Export]:
    """A field of a statement or of a private block left out, or with another value."""
    said: list[tuple[str, int, Body]] = []
    build(lambda kind, count, body: said.append((kind, count, copy.deepcopy(body))))
    for kind, count, body in said:
        for path, other in places(body):
            is_wanted = kind.removesuffix(" block") in _KINDS or (kind in _MONEY and path[0] in _FIELDS)
            if is_wanted and path[0] not in _OF_THE_LINE:
                factory = build(_lie(kind, count, path, other))
                yield factory, factory.export()


def _lie(kind: str, count: int, path: tuple[str | int, ...], other: object) -> Lie:
    def lie(reported: str, number: int, body: Any) -> None:
        if (reported, number) == (kind, count):
            for name in path[:-1]:
                body = body[name]
            if other is LEFT_OUT:
                del body[path[-1]]
            else:
                body[path[-1]] = copy.deepcopy(other)

    return lie


def cut_at_links(build: Callable[..., RecordFactory]) -> Iterator[Export]:
    """Each session of the story, from each of its links to each later one."""
    factory = build()
    for session, most in sessions_of(factory):
        for first in range(1, most + 1):
            for last in range(first, most + 1):
                yield factory, cut_session(factory, session, (first, last))


def cut_with_holes(build: Callable[..., RecordFactory]) -> Iterator[Export]:
    """Each session of the story without one, two or more links in a row, from the second to the one before the last."""
    factory = build()
    for session, most in sessions_of(factory):
        for last in range(1, most - 1):
            for first in range(last + 2, most + 1):
                yield factory, cut_session(factory, session, (1, last), (first, most))
