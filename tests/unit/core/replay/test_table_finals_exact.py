"""Finals at tables by the word, what a replay counts of them, and the windows that a timer's decision has to end."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rgs.core.errors import VerificationError
from rgs.core.games.types import Phase
from rgs.core.replay import KeyBook, Replay, Rulebook
from rgs.core.replay.table_finals import verify_action_times
from rgs.core.replay.table_rounds import verify_length
from rgs.core.times import format_time
from tests.support.clocks import NOW_MS
from tests.support.records.lies import drop, lie_at, put
from tests.support.records.replaying import replay_file, replay_lines, words
from tests.support.records.table_lies import other_outcome
from tests.support.records.table_stories import body_of, cut, every_kind, kept_lines, played, voided

# --- what is counted ---


def test_stakes_and_returns_at_tables_are_counted() -> None:
    factory = every_kind("uth-seven-box")
    finals = [body for line in factory.lines if (body := body_of(line))["kind"] == "seat_final"]
    summary = replay_lines(factory).summary
    sums = {name: sum(int(body[f"{name}_minor"]) for body in finals) for name in ("staked", "returned")}
    assert sums["staked"] > 0
    assert (summary.staked_minor["EUR"], summary.returned_minor["EUR"]) == (sums["staked"], sums["returned"])


@pytest.mark.parametrize(("reason", "exposed"), [("MALFUNCTION", 0), ("DECK_UNRECOVERABLE", 1)])
def test_a_draw_whose_deck_is_lost_is_exposed(reason: str, exposed: int) -> None:
    verdict = replay_lines(voided(reason))
    assert (verdict.failures, verdict.summary.draws_exposed) == ([], exposed)


def test_a_seat_whose_final_lies_outside_leaves_its_round_open() -> None:
    """The table's final is there. Of the session's two rounds the second one has no final in the file."""
    factory = played()
    bodies = [body_of(line) for line in factory.lines]
    opened = [body for body in bodies if body["kind"] == "seat_opening"]
    session = opened[0]["session_id"]
    last = [body["link_no"] for body in opened if body["session_id"] == session][-1]
    kinds = ("table_round", "table_deal", "table_final")
    export = kept_lines(factory, lambda body: body["kind"] in kinds, {session: (1, int(last))})
    verdict = replay_file(export, factory.keys())
    assert (verdict.failures, verdict.rounds) == ([], (1, 0, 1))


def test_rounds_of_a_cut_file_are_forgotten_once_their_seats_have_ended() -> None:
    factory = every_kind("uth-seven-box")
    replay = Replay(KeyBook(factory.keys()), Rulebook())
    most = 0
    for line in cut(factory).splitlines():
        assert replay.feed(line) == []
        most = max(most, len(replay._tables._rounds))
    assert replay.finish() == []
    assert most <= 2, "the newest round, and the one before until it is told to be over"


# --- what is said ---


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (drop("outcome"), "outcome is missing, for a seat_final of status settled"),
        (
            put("would_have_been", value=[]),
            "would_have_been does not belong into it, for a seat_final of status settled",
        ),
    ],
    ids=["missing", "too much"],
)
def test_a_field_of_another_status_is_named(change: Any, said: str) -> None:
    assert said in words(replay_lines(played(lie=lie_at("seat_final", 1, change))))


def test_the_field_of_an_outcome_that_the_cards_do_not_give_is_named() -> None:
    said = [each for each in words(replay_lines(played(lie=lie_at("seat_final", 1, other_outcome)))) if "cards" in each]
    assert said == ["outcome is tie, the cards give player"]


# --- windows of a phase that was paused ---


def window(phase: str, begin_ms: int, end: str) -> dict[str, str]:
    times = (format_time(NOW_MS + begin_ms), format_time(NOW_MS + begin_ms + 1_000))
    return {"phase": phase, "open_time": times[0], "close_time": times[1], "end": end}


def refused(actions: list[dict[str, Any]], windows: list[dict[str, str]], phase: Phase = Phase.RIVER) -> str:
    """Why decisions of a seat are not those of these windows; empty if they are."""
    statement: Any = SimpleNamespace(
        body={"actions": actions}, failure=lambda check, message: VerificationError(message, check=check.label)
    )
    round_: Any = SimpleNamespace(windows_of=lambda of: [one for one in windows if one["phase"] == of])
    try:
        verify_action_times(statement, round_, phase)
    except VerificationError as error:
        return error.message
    return ""


PAUSED_THEN_OVER = [window("preflop", 0, "paused"), window("preflop", 5_000, "time")]
OVER_THEN_PAUSED = [window("preflop", 0, "time"), window("preflop", 5_000, "paused")]


def by_timer(time: str) -> dict[str, Any]:
    return {"phase": "preflop", "by": "timer", "time": time}


def test_the_timer_decides_at_the_end_of_the_last_window_of_a_phase() -> None:
    first, last = (one["close_time"] for one in PAUSED_THEN_OVER)
    assert refused([by_timer(last)], PAUSED_THEN_OVER) == ""
    said = "action 1 by timer is not at the end of a window that ran out"
    assert refused([by_timer(first)], PAUSED_THEN_OVER) == said
    assert refused([by_timer(OVER_THEN_PAUSED[0]["close_time"])], OVER_THEN_PAUSED) == said
    assert refused([by_timer(last)], []) == said


def test_a_phase_whose_last_window_ran_out_has_a_decision() -> None:
    said = "no decision is there for preflop, whose window ran out"
    assert refused([], PAUSED_THEN_OVER, Phase.PREFLOP) == said
    assert refused([], OVER_THEN_PAUSED, Phase.PREFLOP) == ""
    assert refused([], [], Phase.PREFLOP) == ""


@pytest.mark.parametrize(("lasted_ms", "is_right"), [(-1, False), (0, True), (11_000, True), (11_001, False)])
def test_a_window_that_did_not_run_out_may_be_as_short_as_it_was(lasted_ms: int, is_right: bool) -> None:
    statement: Any = SimpleNamespace(failure=lambda check, message: VerificationError(message, check=check.label))
    times = (format_time(NOW_MS), format_time(NOW_MS + lasted_ms))
    if is_right:
        verify_length(statement, *times, 1_000, ran_out=False)
    else:
        with pytest.raises(VerificationError, match=f"lasted {lasted_ms} ms, it had to be open for 1000"):
            verify_length(statement, *times, 1_000, ran_out=False)
