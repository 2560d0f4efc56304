"""Instances and draws at their limits, and what a cut export leaves unsaid of them."""

from __future__ import annotations

import pytest

from tests.factory import House
from tests.lies import lie_at, put
from tests.lying import two_instances
from tests.planted_ids import turned
from tests.unit.replay.replaying import Verdict, replay_lines


def words(verdict: Verdict) -> list[str]:
    return [failure.message for failure in verdict.failures]


def in_flight(count: int) -> House:
    """So many draws at once, of which the last is the first to be accounted for."""
    house = House("flight")
    one = house.start("rgs-1")
    *before, last = [house.draw(one) for _ in range(count)]
    for draw in (last, *before):
        house.discard(one, draw)
    house.end(one)
    return house


@pytest.mark.parametrize(
    ("count", "told"), [(9, []), (10, ["9 draws below 10 are outstanding, at most 8 may be"])], ids=["8", "9"]
)
def test_as_many_draws_as_the_window_holds_may_be_outstanding(count: int, told: list[str]) -> None:
    assert words(replay_lines(in_flight(count))) == told


def test_draws_that_a_cut_leaves_out_are_not_outstanding() -> None:
    house = House("many")
    one = house.start("rgs-1")
    for _ in range(20):
        house.discard(one)
    house.end(one)
    scope = house.scope(instances=[{"first": "21", "instance": "rgs-1", "last": "22"}])
    assert replay_lines(house, [scope, house.lines[0], *house.lines[20:]]).failures == []


def test_what_a_process_has_written_under_its_former_key_the_next_one_signs() -> None:
    """A process that changes its keys goes on; one that stops does not."""
    assert replay_lines(turned()).failures == []
    assert "before its key" in words(replay_lines(turned("SHUTDOWN")))[0]


def test_an_instance_that_declares_itself_lost_is_named_so() -> None:
    house = two_instances(lie_at("instance_lost", 1, put("lost", "instance", value="rgs-2")))
    assert words(replay_lines(house))[0] == "an instance cannot declare itself lost"
