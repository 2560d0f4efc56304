"""Ready-made houses: exports that tests replay, bend and break."""

from __future__ import annotations

from typing import Any

from tests.factory import House, Lie


def small_house(lie: Lie | None = None, seed: str = "small-135", **more: Any) -> House:
    """One instance, one session, one round of Ultimate Texas Hold'em with trips:

    The smallest whole export with a round.
    """
    house = House(seed, lie=lie, **more)
    one = house.start("rgs-1")
    player = house.open(one)
    house.buy(one, player, 10_000)
    house.play(one, player, {"ante": 100, "trips": 50}, ["check", "play_2x"])
    house.end_participation(one, player)
    house.close(one, player)
    house.end(one)
    return house


def large_house(lie: Lie | None = None, seed: str = "large") -> House:
    """Two nodes, three instances, one lost;

    Two games, a table of three, a shared hand; a discarded draw, a void, rules' decisions.
    """
    house = House(seed, lie=lie)
    one = house.start("rgs-1", "node-1")
    two = house.start("rgs-2", "node-2")
    anna = house.open(one)
    house.buy(one, anna, 20_000)
    house.play(one, anna, {"ante": 100}, ["play_4x"])
    bert = house.open(two, "casino-holdem", jurisdiction="it-adm")
    house.buy(two, bert, 5_000)
    house.buy(two, bert, 2_500)
    house.play(two, bert, {"ante": 200, "aa": 10}, ["call"])
    house.play(two, bert, {"ante": 10}, ["fold"])
    house.discard(one)
    table = [house.open(one, "uth-seven-box", table="box-table") for _ in range(3)]
    for player in table:
        house.buy(one, player, 30_000)
    house.deal(one, table, {"ante": 60, "trips": 10})
    for player, actions in zip(table, (["play_3x"], ["check", "play_2x"], ["check", "check", "fold"]), strict=True):
        house.act(player, actions, by="player")
    for player in table:
        house.settle(one, player)
    # The first instance is lost with a round open; the second goes on with its sessions.
    house.deal(one, [anna], {"ante": 20, "trips": 20})
    house.lose(two, one)
    house.act(anna, ["check", "check", "fold"], by="rule")
    house.settle(two, anna)
    three = house.start("rgs-3", "node-1", 2, previous_boot=house.boot(one))
    crowd = [house.open(three, "uth-online", table="open-table") for _ in range(2)]
    for player in crowd:
        house.buy(three, player, 10_000)
    house.deal(three, crowd, {"ante": 10})
    for player in crowd:
        house.act(player, ["check", "check", "play_1x"])
        house.settle(three, player)
    house.deal(two, [anna], {"ante": 30})
    house.act(anna, ["check"])
    house.void(two, anna, paused_by=three)
    house.deal(two, [anna], {"ante": 30})
    house.void(three, anna, "DECK_UNRECOVERABLE")
    lugano = house.open(two, "uth-lugano", table="lugano-1")
    house.buy(two, lugano, 1_000)
    house.deal(two, [lugano], {"ante": 10, "trips": 10})
    house.act(lugano, ["check", "check", "fold"], by="timer")
    house.settle(two, lugano)
    for player in (anna, bert, lugano, *table, *crowd):
        house.end_participation(three, player)
        house.close(three, player)
    house.close(two, house.open(two))
    house.end(two)
    house.end(three)
    return house
