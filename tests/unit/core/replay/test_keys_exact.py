"""The key path to the millisecond and to the word: where a key's life begins and ends, and which rule refuses."""

from __future__ import annotations

import pytest

from rgs.core.replay import KeyBook, Replay
from rgs.core.statements import parse_envelope, parse_line, parse_statement
from tests.support.records.factory import RecordFactory
from tests.support.records.ready_made import small_factory
from tests.support.records.replaying import RULEBOOK, planted, replay_lines, words
from tests.unit.core.replay.test_keys import instance_key, key_end, two_boots


class Instant(RecordFactory):
    """Everything happens in one millisecond."""

    def now(self, _: int = 0) -> str:
        return super().now(0)


def test_what_is_dated_as_its_key_is_counts() -> None:
    factory = Instant("instant")
    one = factory.start("rgs-1")
    player = factory.open(one)
    factory.buy(one, player, 10_000)
    factory.play(one, player, {"ante": 100}, ["play_4x"])
    factory.end_participation(one, player)
    factory.close(one, player)
    factory.end(one)
    verdict = replay_lines(factory)
    assert (verdict.failures, verdict.rounds) == ([], (1, 0, 0))
    key_end(factory, factory.nodes["node-1"].keyid)
    key_end(factory, instance_key(factory))
    assert replay_lines(factory).failures == []  # each key ended in the same millisecond


def times(factory: RecordFactory) -> list[str]:
    return [parse_statement(parse_envelope(parse_line(line).envelope))[1]["time"] for line in factory.lines]


@pytest.mark.parametrize("last", range(1, 8))
def test_an_instance_key_that_ended_without_a_number_ended_at_its_time(last: int) -> None:
    factory = small_factory()
    time = times(factory)[last]
    factory.key_statement(factory.root, "key_end", {"key": instance_key(factory), "reason": "RETIRED", "time": time})
    refused = [one for one in words(replay_lines(factory)) if one.endswith(f"ended at {time}")]
    assert len(refused) == 7 - last


def test_an_ended_node_key_may_sign_what_has_no_number_until_its_time() -> None:
    factory = two_boots()
    report = {"name": "daily", "sha256": "0" * 64}
    factory.line(factory.seal(factory.nodes["node-1"], "report", dict(report)))
    key_end(factory, factory.nodes["node-1"].keyid, instance="rgs-2", last_statement_no="4")
    assert replay_lines(factory).failures == []
    factory.line(factory.seal(factory.nodes["node-1"], "report", dict(report)))
    (failure,) = words(replay_lines(factory))
    assert "ended at" in failure


def test_every_key_of_the_path_has_its_name() -> None:
    factory = small_factory()
    keys = KeyBook(factory.keys())
    replay = Replay(keys, RULEBOOK)
    for line in factory.lines:
        assert replay.feed(line) == []
    named = {factory.root.keyid: "", factory.nodes["node-1"].keyid: "node-1", instance_key(factory): "rgs-1"}
    assert {keyid: key.name for keyid, key in keys.known.items()} == named


@pytest.mark.parametrize(
    ("name", "reported"),
    [
        ("key of another instance", "of instance rgs-2 is known already"),
        ("signed by the root", "round_final may not be signed by a key of role root"),
    ],
)
def test_the_rule_that_refuses_is_the_one_that_is_named(name: str, reported: str) -> None:
    assert planted(name)[0].endswith(reported)


def test_in_a_cut_export_only_the_same_start_is_a_repetition() -> None:
    """Another one of the same name is a second start."""
    factory = RecordFactory("twice")
    one = factory.start("rgs-1")
    factory.end(one)
    end = {"first": "1", "instance": "rgs-1", "last": "2"}
    scope = factory.scope(instances=[end])
    assert replay_lines(factory, [scope, *factory.lines, factory.lines[0]]).failures == []
    factory.start("rgs-1", boot_no=2, previous_boot=factory.boot(one))
    assert words(replay_lines(factory, [scope, *factory.lines])) == ["instance rgs-1 was started before"]
