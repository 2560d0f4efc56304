"""What the files leave out, as signed `export_scope` statements say (check 22), and the gap-free orders of instances
and sessions (checks 6 and 7).

Without a scope the files are whole: each instance runs from its start to its end, each session from its open to its
close. A scope names ranges of statement and link numbers that the files hold completely. It stands before the first
statement behind a gap, and from then on the files hold nothing else, except each instance's start. An instance that
only the range of a session brings in, or the other way round, shows rising numbers with gaps.

A scope cannot show whether more should have been asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from rgs.core.replay.checks import SCOPE


class Range(NamedTuple):
    """Numbers `first` to `last`, all of them held."""

    first: int
    last: int


_Shows = Callable[[str, int], bool]
"""Whether the files have shown this number, or a later one, of an instance or session."""


class Scope:
    """The ranges of all scopes read so far. Each of one name lies behind the one before."""

    def __init__(self) -> None:
        self.is_whole = True
        self.has_begun = False
        """A numbered statement besides an instance_start was read."""
        self.instances: dict[str, list[Range]] = {}
        self.sessions: dict[str, list[Range]] = {}

    def add(self, body: dict[str, Any], shows_instance: _Shows, shows_session: _Shows) -> None:
        """Add an export_scope. The other arguments say what the files have shown before it.

        VerificationError (check 22) if a range is empty, not above those before it, or behind what it names. Such a
        range, and those that the scope names behind it, are not taken. The same if it is the first one and numbered
        statements were read, which are in no range of it: it must not excuse what is missing in whole files.
        """
        if self.is_whole and self.has_begun:
            raise SCOPE.failure("the first scope stands behind numbered statements")
        self.is_whole = False
        rows = [(self.instances, shows_instance, row["instance"], row) for row in body["instances"]]
        rows += [(self.sessions, shows_session, row["session_id"], row) for row in body["sessions"]]
        for named, shows, name, row in rows:
            ranges = named.get(name, [])
            found = Range(int(row["first"]), int(row["last"]))
            if found.first > found.last or (ranges and found.first <= ranges[-1].last):
                raise SCOPE.failure(
                    f"the range {found.first}..{found.last} is empty or does not lie behind those before it"
                )
            if shows(name, found.first):
                raise SCOPE.failure(f"the scope of {name} stands behind what it names")
            named[name] = [*ranges, found]

    def shows_beginning(self, instance: str) -> bool:
        """Whether all statements of an instance up to any that is here are here too."""
        ranges = self.instances.get(instance, [])
        return self.is_whole or (not self.sessions and [found.first for found in ranges] == [1])

    def names(self, body: dict[str, Any]) -> bool:
        """Whether some range holds this numbered statement."""
        return _holds(self.instances.get(body["instance"], []), int(body["statement_no"])) or (
            "link_no" in body and _holds(self.sessions.get(body["session_id"], []), int(body["link_no"]))
        )


def _holds(ranges: list[Range], number: int) -> bool:
    return any(found.first <= number <= found.last for found in ranges)


@dataclass(slots=True, kw_only=True)
class NumberSequence:
    """The numbers of one instance or session as they are read."""

    is_whole: bool
    """No scope was read when the sequence began."""
    head: int
    """The numbers 1..head stand in the files in any case."""
    is_unbroken: bool = True
    """No number from 1 to `last` is missing."""
    last: int = 0
    """The highest number so far."""

    def advance(self, number: int, ranges: list[Range] | None) -> str:
        """Take the next number; return what is wrong with it, or an empty text.

        A number that is not above `last` does not change `last`.
        """
        last = self.last
        if number == last + 1:
            self.last = number
            return ""
        if number <= last:
            return f"{number} comes after {last}: repeated or out of order"
        self.last = number
        self.is_unbroken = False
        if (self.is_whole and not ranges) or (ranges and not self._may_leap(last, number, ranges)):
            return f"{number} comes after {last}: {number - last - 1} missing"
        return ""

    def _may_leap(self, last: int, number: int, ranges: list[Range]) -> bool:
        """From the end of one range, or from the head, to the beginning of the next."""
        before = self.head
        for found in ranges:
            if found.first == number:
                return last == before
            before = found.last
        return False

    def missing_end(self, *, has_ended: bool, ranges: list[Range] | None) -> str:
        """What is wrong with stopping here, or an empty text.

        `has_ended`: the last statement is the one that ends the sequence.
        """
        if ranges:
            promised = ranges[-1].last
            return "" if self.last == promised else f"ends at {self.last}, the scope promises {promised}"
        return "" if has_ended or not self.is_whole else f"ends at {self.last} without its end"
