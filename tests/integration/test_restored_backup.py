"""A server that restored an old copy of its store and went on: what the files show, and to whom.

The copy does not know what came after it: its next boot has the number of a boot that there was already, and its
sessions go on from an older link. Each of the two stories verifies alone. Together they do not: whoever has kept an
export, a session's statements or a single opening from before sees the fork. (That a wallet and a regulator which were
not restored disagree with the store is a comparison of its own: `tests/support/service/oracles.py`.)
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from rgs.core.replay import KeyBook, Replay, Rulebook
from rgs.core.statements import parse_envelope, parse_line, parse_statement
from tests.support.records.factory import RecordFactory

RULEBOOK = Rulebook()


@dataclass(frozen=True)
class Story:
    """The lines up to the copy, and those after it."""

    factory: RecordFactory
    before: tuple[bytes, ...]
    after: tuple[bytes, ...]


def story(chance_after: str, rounds: int) -> Story:
    """One boot, the copy of the store, then the next boot, with chance of its own."""
    factory = RecordFactory("restored")
    one = factory.start("rgs-1-b1")
    player = factory.open(one)
    factory.buy(one, player, 50_000)
    factory.play(one, player, {"ante": 100}, ["play_4x"])
    factory.end(one)
    before = tuple(factory.lines)
    factory.random = type(factory.random)(chance_after)
    two = factory.start("rgs-1-b2", boot_no=2, previous_boot=factory.boot(one))
    for _ in range(rounds):
        factory.play(two, player, {"ante": 200}, ["check", "check", "fold"])
    factory.end_participation(two, player)
    factory.close(two, player)
    factory.end(two)
    return Story(factory, before, tuple(factory.lines[len(before) :]))


def failed(factory: RecordFactory, lines: tuple[bytes, ...]) -> list[str]:
    replay = Replay(KeyBook(factory.keys(), root=factory.root.keyid), RULEBOOK)
    failures = [failure for line in lines for failure in replay.feed(line)] + replay.finish()
    return [failure.metadata["check"] for failure in failures]


@pytest.fixture(scope="module")
def first() -> Story:
    return story("as it went", rounds=3)


@pytest.fixture(scope="module")
def again() -> Story:
    return story("after the restore", rounds=2)


def test_each_story_verifies_alone(first: Story, again: Story) -> None:
    """A server that shows its auditor the second story only, and nobody who has kept anything: nothing is seen."""
    assert first.before == again.before
    assert failed(first.factory, first.before + first.after) == []
    assert failed(again.factory, again.before + again.after) == []


def test_together_they_do_not(first: Story, again: Story) -> None:
    seen = failed(first.factory, first.before + first.after + again.after)
    assert seen[0] == "21 instance"  # a second start of one name
    assert set(seen[1:]) == {"3 key"}  # and all that was signed under its other key
    assert len(seen) == len(again.after)


@pytest.mark.parametrize("nth", range(3))
def test_one_kept_opening_is_enough(first: Story, again: Story, nth: int) -> None:
    """Any opening from before is in the first story alone, under a boot that the second says was another."""
    envelopes = [parse_line(line).envelope for line in first.after]
    receipt = [one for one in envelopes if b"round-opening" in one][nth]
    shown = [parse_line(line).envelope for line in again.before + again.after]
    assert receipt not in shown
    named = parse_statement(parse_envelope(receipt))[1]["instance"]
    starts = [
        parse_envelope(one)
        for one in (*envelopes, *shown)
        if b"instance-start" in one and parse_statement(parse_envelope(one))[1]["instance"] == named
    ]
    keys = {parse_statement(one)[1]["public_key"] for one in starts}
    assert len(starts) == len(keys) == 2  # two keys of one name, both signed by the node: the fork, undeniable
    assert len({one.keyid for one in starts}) == 1
