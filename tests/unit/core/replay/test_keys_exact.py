"""The key path to the millisecond and to the word: where a key's life begins and ends, and which rule refuses."""

from __future__ import annotations

import pytest

from rgs.core.replay import KeyBook, Replay
from rgs.core.statements import parse_envelope, parse_line, parse_statement
from tests.factory import House
from tests.houses import small_house
from tests.planted import PLANTED
from tests.unit.core.replay.replaying import RULEBOOK, Verdict, replay_file, replay_lines
from tests.unit.core.replay.test_keys import instance_key, key_end, two_boots


def words(verdict: Verdict) -> list[str]:
    return [failure.message for failure in verdict.failures]


def planted(name: str) -> list[str]:
    (one,) = [each for each in PLANTED if each.name == name]
    house = one.build()
    return words(replay_file(one.exporting(house), house.keys()))


class Instant(House):
    """Everything happens in one millisecond."""

    def now(self, _: int = 0) -> str:
        return super().now(0)


def test_what_is_dated_as_its_key_is_counts() -> None:
    house = Instant("instant")
    one = house.start("rgs-1")
    player = house.open(one)
    house.buy(one, player, 10_000)
    house.play(one, player, {"ante": 100}, ["play_4x"])
    house.end_participation(one, player)
    house.close(one, player)
    house.end(one)
    verdict = replay_lines(house)
    assert (verdict.failures, verdict.rounds) == ([], (1, 0, 0))
    key_end(house, house.nodes["node-1"].keyid)
    key_end(house, instance_key(house))
    assert replay_lines(house).failures == []  # each key ended in the same millisecond


def times(house: House) -> list[str]:
    return [parse_statement(parse_envelope(parse_line(line).envelope))[1]["time"] for line in house.lines]


@pytest.mark.parametrize("last", range(1, 8))
def test_an_instance_key_that_ended_without_a_number_ended_at_its_time(last: int) -> None:
    house = small_house()
    time = times(house)[last]
    house.key_statement(house.root, "key_end", {"key": instance_key(house), "reason": "RETIRED", "time": time})
    refused = [one for one in words(replay_lines(house)) if one.endswith(f"ended at {time}")]
    assert len(refused) == 7 - last


def test_an_ended_node_key_may_sign_what_has_no_number_until_its_time() -> None:
    house = two_boots()
    report = {"name": "daily", "sha256": "0" * 64}
    house.line(house.seal(house.nodes["node-1"], "report", dict(report)))
    key_end(house, house.nodes["node-1"].keyid, instance="rgs-2", last_statement_no="4")
    assert replay_lines(house).failures == []
    house.line(house.seal(house.nodes["node-1"], "report", dict(report)))
    (failure,) = words(replay_lines(house))
    assert "ended at" in failure


def test_every_key_of_the_path_has_its_name() -> None:
    house = small_house()
    keys = KeyBook(house.keys())
    replay = Replay(keys, RULEBOOK)
    for line in house.lines:
        assert replay.feed(line) == []
    named = {house.root.keyid: "", house.nodes["node-1"].keyid: "node-1", instance_key(house): "rgs-1"}
    assert {keyid: key.name for keyid, key in keys.known.items()} == named


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("key of another instance", "of instance rgs-2 is known already"),
        ("signed by the root", "round_final may not be signed by a key of role root"),
    ],
)
def test_the_rule_that_refuses_is_the_one_that_is_named(name: str, told: str) -> None:
    assert planted(name)[0].endswith(told)


def test_in_a_cut_export_only_the_same_start_is_a_repetition() -> None:
    """Another one of the same name is a second start."""
    house = House("twice")
    one = house.start("rgs-1")
    house.end(one)
    end = {"first": "1", "instance": "rgs-1", "last": "2"}
    scope = house.scope(instances=[end])
    assert replay_lines(house, [scope, *house.lines, house.lines[0]]).failures == []
    house.start("rgs-1", boot_no=2, previous_boot=house.boot(one))
    assert words(replay_lines(house, [scope, *house.lines])) == ["instance rgs-1 was started before"]
