"""Events that the server signs by itself: large wins, the log's key, another configuration. Each once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rgs.service.events import EventCode, Events, event_draft
from tests.support.service.harness import ServiceHarness, open_harness, read_statement
from tests.support.service.oracles import stored_statements
from tests.support.service.player import Player


def reported(folder: Path, code: str) -> list[dict[str, Any]]:
    bodies = [read_statement(row.envelope) for row in stored_statements(folder)]
    return [body for body in bodies if body.get("code") == code]


def events_of(harness: ServiceHarness) -> Events:
    """As a process has them that begins now."""
    return Events(store=harness.store, clock=harness.clock)


async def test_a_large_win_is_told_once_with_what_was_won_and_where(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness:
        harness.store.large_win_minor = 1
        anna = Player(harness)
        await anna.sit()
        won: dict[str, str] = {}
        while len(won) < 2:
            await anna.play()
            gain = anna.round["returned_minor"] - anna.round["staked_minor"]
            if gain > 0:
                won[anna.round["round_id"]] = str(gain)
        events = events_of(harness)
        assert reported(tmp_path, "LARGE_WIN") == []
        assert [await events.report_wins(), await events.report_wins()] == [2, 0]
        rows = reported(tmp_path, "LARGE_WIN")
        assert {body["round_id"]: body["after"] for body in rows} == won
        assert {body["session_id"] for body in rows} == {anna.session_id}
        assert all(not {"actor", "before", "reason", "subject"} & body.keys() for body in rows)


FIRST, SECOND = "rgs.example/log+1a2b3c4d+key", "rgs.example/log+99999999+another"


async def test_a_key_of_the_log_is_told_once_and_the_next_one_with_the_one_before(
    tmp_path: Path, harness: ServiceHarness
) -> None:
    events = events_of(harness)
    await events.report_log_key("")
    assert reported(tmp_path, "LOG_KEY_STARTED") == []
    for _ in range(2):
        await events.report_log_key(FIRST)
    await events_of(harness).report_log_key(FIRST)
    await events.report_log_key("")
    await events.report_log_key(SECOND)
    await events_of(harness).report_log_key(SECOND)
    rows = reported(tmp_path, "LOG_KEY_STARTED")
    assert [(body["subject"], body.get("before", ""), body["after"]) for body in rows] == [
        ("rgs.example/log", "", FIRST),
        ("rgs.example/log", FIRST, SECOND),
    ]


async def test_a_node_that_begins_with_a_new_store_tells_no_change_of_its_configuration(
    tmp_path: Path, harness: ServiceHarness
) -> None:
    events = events_of(harness)
    await events.report_configuration("node-1", "a" * 64, first_boot=True)
    await events.report_configuration("node-1", "a" * 64, first_boot=False)
    assert reported(tmp_path, "CONFIGURATION_CHANGED") == []
    await events.report_configuration("node-1", "b" * 64, first_boot=True)  # the number alone does not make it new
    await events.report_configuration("node-2", "a" * 64, first_boot=False)  # unknown, and not new
    await events.report_configuration("node-1", "b" * 64, first_boot=False)
    rows = reported(tmp_path, "CONFIGURATION_CHANGED")
    assert [(body["subject"], body.get("before", ""), body["after"]) for body in rows] == [
        ("node-1", "a" * 64, "b" * 64),
        ("node-2", "", "a" * 64),
    ]


def test_what_strangers_sent_is_told_in_printable_ascii_and_not_at_length() -> None:
    printable = "".join(map(chr, range(0x20, 0x7F)))
    kept = printable.replace('"', "?").replace("\\", "?")
    for sent, found in ((printable, kept), ("a\tb\x7f\u00e9\n", "a?b???"), ("x" * 201, "x" * 200)):
        draft = event_draft(EventCode.SERVER_FAULT, 0, after=sent, subject="")
        assert draft.kind == "event"
        assert draft.body == {"after": found, "code": "SERVER_FAULT", "time": "1970-01-01T00:00:00.000Z"}
