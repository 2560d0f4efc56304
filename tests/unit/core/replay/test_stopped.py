"""A replay may be stopped after any line, and goes on from what it has written as if it had not been stopped."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from rgs.core.errors import VerificationError
from rgs.core.replay import KeyBook, Replay
from rgs.core.statements import KINDS, LINK_ZERO, UnhandledKindError
from tests.support.records.lies import OTHER_ULID
from tests.support.records.planted import PLANTED
from tests.support.records.ready_made import large_factory
from tests.support.records.replaying import RULEBOOK

LARGE = large_factory()
EXPORTS = {str(one): one for one in PLANTED}


def said(failures: Sequence[VerificationError], replay: Replay) -> tuple[list[Any], dict[str, Any]]:
    return [(failure.message, failure.metadata) for failure in failures], replay.summary.fields()


def replayed(lines: Sequence[bytes], keys: bytes, *, is_stopped: bool) -> tuple[list[Any], dict[str, Any]]:
    """All that a replay says of a log. If it is stopped, it is so after every line, and a new one goes on."""
    book = KeyBook(keys)
    replay = Replay(book, RULEBOOK, goes_on=True)
    failures: list[VerificationError] = []
    for line in lines:
        failures += replay.feed(line)
        if is_stopped:
            state = json.loads(json.dumps(replay.state()))
            replay = Replay(book, RULEBOOK, goes_on=True)
            replay.restore(state)
            assert json.loads(json.dumps(replay.state())) == state
    return said([*failures, *replay.finish()], replay)


def test_a_replay_that_is_stopped_after_every_line_says_the_same() -> None:
    """The last lines come twice: what is over must be remembered, too."""
    lines, keys = [*LARGE.lines, *LARGE.lines[-20:]], LARGE.keys()
    failures, counts = replayed(lines, keys, is_stopped=True)
    assert (failures, counts) == replayed(lines, keys, is_stopped=False)
    assert failures
    assert (counts["rounds_verified"], counts["instances"]) == (9, 3)


@pytest.mark.slow_exhaustive
@pytest.mark.parametrize("name", EXPORTS)
def test_a_fault_is_found_whenever_the_replay_was_stopped(name: str) -> None:
    factory = EXPORTS[name].build()
    lines, keys = EXPORTS[name].exporting(factory).splitlines(), factory.keys()
    assert replayed(lines, keys, is_stopped=True) == replayed(lines, keys, is_stopped=False)


@pytest.mark.parametrize(
    ("is_numbered", "is_linked", "place"),
    [(False, False, "_take_unnumbered"), (True, False, "_take_unlinked"), (True, True, "_link")],
)
def test_a_kind_that_the_replay_has_no_case_for_stops_it(is_numbered: bool, is_linked: bool, place: str) -> None:
    """A statement that nobody looks at would pass as verified."""
    replay = Replay(KeyBook(LARGE.keys()), RULEBOOK)
    assert replay.feed(LARGE.lines[0]) == []
    start = replay.statement
    assert start is not None
    body = {**start.body, "statement_no": "2", "session_id": OTHER_ULID, "link_no": "1", "previous": LINK_ZERO}
    kind = replace(KINDS["report"], name="pigeon", numbered=is_numbered, linked=is_linked)
    with pytest.raises(UnhandledKindError, match=f"kind pigeon is not handled in .*{place}:"):
        replay._take(replace(start, kind=kind, body=body))
