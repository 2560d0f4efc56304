"""Version 2 of session_open in the replay: play money counts apart, and each fault is named word by word."""

from __future__ import annotations

import json

import pytest

from certification.findings import AuditFindings
from certification.memory import format_replay, parse_replay
from certification.monitor import ReturnMonitor
from rgs.core.replay import KeyBook, Replay, Rulebook
from rgs.core.statements import KINDS, SESSION_OPEN_2, kind_of, parse_envelope, parse_line, parse_statement
from tests.support.records.factory import RecordFactory
from tests.support.records.planted_demo import second_versions
from tests.support.records.replaying import planted, replay_lines


def kinds_of(factory: RecordFactory) -> list[str]:
    """The payload types of the session_opens, in order."""
    types = [parse_envelope(parse_line(line).envelope).payload_type for line in factory.lines]
    return [one for one in types if "session-open" in one]


def test_version_2_is_signed_only_where_version_1_cannot_say_it() -> None:
    first, second = KINDS["session_open"], SESSION_OPEN_2
    assert kinds_of(second_versions()) == [first.payload_type, second.payload_type, second.payload_type]
    assert kind_of("session_open", {"limits": {}, "table": "t"}) is first
    assert kind_of("session_open", {"mode": "demo"}) is kind_of("session_open", {"bet_limits": []}) is second
    assert kind_of("purchase", {"mode": "demo"}) is KINDS["purchase"]
    assert (second.name, second.version, second.numbered, second.linked, second.private) == (
        "session_open", 2, True, True, True,
    )  # fmt: skip


def test_play_money_is_in_no_sum() -> None:
    factory = second_versions()
    verdict = replay_lines(factory)
    assert verdict.failures == []
    assert (verdict.summary.rounds_verified, verdict.summary.rounds_demo) == (4, 2)
    finals = [parse_statement(parse_envelope(parse_line(line).envelope))[1] for line in factory.lines]
    staked = [int(body["staked_minor"]) for body in finals if body["kind"] == "round_final"]
    returned = [int(body["returned_minor"]) for body in finals if body["kind"] == "round_final"]
    assert verdict.summary.staked_minor == {"EUR": staked[0] + staked[3]}
    assert verdict.summary.returned_minor == {"EUR": returned[0] + returned[3]}


def test_a_file_that_begins_later_shows_play_money_by_its_blocks() -> None:
    """The session_opens of the first two sessions lie before the cut: the block beside a purchase says the rest."""
    factory = second_versions()
    rest = factory.lines[4:]
    ranges = [{"first": "5", "instance": "rgs-1", "last": str(len(factory.lines))}]
    verdict = replay_lines(factory, [factory.scope(ranges), factory.lines[0], *rest])
    assert [failure.message for failure in verdict.failures] == []
    assert verdict.summary.rounds_demo == 2
    assert sorted(verdict.summary.staked_minor) == ["", "EUR"]
    whole = replay_lines(factory).summary.staked_minor["EUR"]
    assert sum(verdict.summary.staked_minor.values()) == whole


def test_an_audit_goes_on_between_two_runs() -> None:
    factory = second_versions()
    book = KeyBook(factory.keys())
    replay = Replay(book, Rulebook(), goes_on=True)
    for line in factory.lines:
        assert replay.feed(line) == []
        document = json.loads(json.dumps(format_replay(replay, book)))
        book = KeyBook(factory.keys())
        replay = parse_replay(document, book, Rulebook())
    assert replay.summary.rounds_demo == 2


def test_findings_of_an_audit_leave_play_money_out() -> None:
    factory = second_versions()
    found = AuditFindings(Rulebook(), {})
    replay = Replay(KeyBook(factory.keys()), Rulebook(), goes_on=True)
    for line in factory.lines:
        replay.feed(line)
        assert replay.statement is not None
        list(found.take(replay.statement))
        kept = json.loads(json.dumps(found.state()))
        found = AuditFindings(Rulebook(), {})
        found.restore(kept)
    assert found.bought_minor == {"EUR": 10_000}
    paid_out = replay.summary.returned_minor["EUR"] - replay.summary.staked_minor["EUR"]
    assert found.paid_out_minor == {"EUR": 10_000 + paid_out}
    assert len(found.voids) == 1
    assert found.voids_by_admin == {}


def test_the_monitoring_of_returns_counts_money_only() -> None:
    watch = ReturnMonitor()
    for line in second_versions().lines:
        watch.take(parse_line(line).envelope)
    watch.finish()
    assert sum(watched.tally.life.rounds for watched in watch.rulesets.values()) == 2
    assert not watch.unread


@pytest.mark.parametrize(
    ("name", "reported"),
    [
        (
            "version 2 that says what version 1 says",
            "version 2 without mode and bet_limits, which version 1 says as well",
        ),
        ("play money where none is allowed", "gb-ukgc version 3 allows no play money"),
        ("play money funded bet by bet", "demo requires a participation"),
        ("play money at a table", "a session with play money has table"),
        ("play money of the test regulator", "a session with play money has test_regulator"),
        ("no bet limit", "bet_limits is empty"),
        ("bet below the signed limit", "ante 50 is not within 60 to 200"),
        ("side bet above the signed limit", "trips 200 is not within 50 to 198"),
        ("bet limit off the step", "bet_limits.ante.min_minor: 49 is not a multiple of 2, the step of uth-solo"),
        ("play money with the regulator's ids", "regulator in a session with play money"),
        ("play money with a reason", "reason PLAY_MONEY where none is due"),
        ("play money bought at the wallet", "regulator_participation_id in a session with play money"),
        ("play money bought without a reason", "reason none where PLAY_MONEY is due"),
        ("money bought as play money", "reason PLAY_MONEY, which only a session with play money has"),
    ],
)  # fmt: skip
def test_each_fault_is_named(name: str, reported: str) -> None:
    assert reported in planted(name)
